# A reload lets calls that run finish in the old process, within the time that
# it is given.

use warnings;
use strict;

use FindBin;
use lib "$FindBin::Bin/lib";

use Test::More;
use Time::HiRes qw/ time /;

use MCPClient;
use MCPGateway;
use MCPTasks qw/ wait_for workers /;

my $g = MCPGateway->new(
    workers => workers(),
    tool => ['slow support=optional', 'same idempotent'],
    on => { map { $_ => [['sse'], ['hold']] } qw/ slow same / });
my ($up, $t, $c) = @{$g}{qw/ up t c /};


# New processes are there, and one of them answers; the old ones may be there as
# well, and may not know yet that they are old.
sub reload {
    my (%conf) = @_;
    my %old = map { $_ => 1 } $t->worker_pids();
    $t->reload(%conf);

    my @new;
    wait_for {
        @new = grep { !$old{$_} } $t->worker_pids();
        return @new == workers();
    };

    return @new == workers() && $t->connect_to($new[0]);
}


sub alive {
    my ($pid) = @_;
    return scalar grep { $_ == $pid } $t->worker_pids();
}


# --- calls go on in the old process

{
    my ($pid) = $t->worker_pids();
    my $here = $c->as(via => $t->connect_to($pid));
    my ($id, $first) = $g->begin('slow', who => $here);
    my ($other, $second) = $g->begin('slow', modern => 1, who => $here);
    my @ids = ($id, $other);
    undef $here;
    my $s = reload();
    ok($s, 'nginx is reloaded while calls run');
    my $there = $c->as(via => $s);
    ok(alive($pid), 'the old process is there');
    is($up->get($first)->{closed}, undef, 'and so are the calls');
    is($g->get($ids[0], $there)->{status}, 'working',
       'new processes know them');

    # news, questions and answers pass between the processes
    $up->go($first, ['event', '{"jsonrpc":"2.0","method":"notifications/'
        . 'message","params":{"level":"info","data":"still here"}}'],
        ['event', '{"jsonrpc":"2.0","id":"q","method":"roots/list",'
                  . '"params":{}}']);
    my $got = $g->becomes($ids[0], 'input_required', 15);
    is($got->{statusMessage}, 'still here', 'messages arrive');
    my ($key) = keys %{ $got->{inputRequests} || {} };
    $c->post({ jsonrpc => '2.0', id => "$ids[0]/" . ($key // ''),
               result => { roots => [] } });
    ok($up->wait_for(sub { ($_[0]{id} // '') eq '"q"' }, 15),
       'so do questions and answers');

    # a new call goes to a new process, and ends before
    my $new = $g->task('same', who => $there);
    $g->go('same', ['result', '{}']);
    is($g->ends($new)->{status}, 'completed', 'new calls are served');

    $up->go($first, ['result', '{"a":1.0}']);
    is($g->ends($ids[0])->{status}, 'completed', 'the old call completes');
    ok(alive($pid), 'one is left');

    # cancelled from a new process
    $there->modern('tasks/cancel', { taskId => $ids[1] });
    ok($up->left($second, 15), 'the other is cancelled from a new process');
    ok((wait_for { !alive($pid) }), 'then the old process is gone');
}

# --- no calls: nothing to wait for

{
    my ($pid) = $t->worker_pids();
    ok(reload(), 'reloaded while nothing runs');
    ok((wait_for { !alive($pid) }), 'the old process goes at once');
}

# --- two reloads while a call runs

{
    my $n = $up->count('slow');
    my $id = $g->task('slow');
    my $call = $up->call('slow', $n + 1);
    ok(reload(), 'reloaded once');
    ok(reload(), 'and again');
    is($up->get($call)->{closed}, undef, 'the call is there');
    $up->go($call, ['result', '{}']);
    is($g->ends($id)->{status}, 'completed', 'and completes');
    ok((wait_for { $t->worker_pids() == workers() }), 'old processes are gone');
}

# --- the configuration that a call began with is the one it ends with

{
    my $n = $up->count('slow');
    my $id = $g->task('slow');
    my $call = $up->call('slow', $n + 1);
    my $s = reload(%{ $g->config(tool => ['slow support=forbidden']) });
    ok($s, 'reloaded with another configuration');
    $up->go($call, ['result', '{"a":1.0}']);
    like($g->becomes($id, 'completed')->{text}, qr/"a":1\.0/,
         'a call of before completes');
    is($c->as(via => $s)->legacy('tools/call', { name => 'slow', task => {} })
       ->{json}{error}{code}, -32601, 'a new one is refused');
    reload(%{ $g->config(tool => ['slow support=optional',
                                  'same idempotent']) });
}

# --- time is up

for my $tool ('slow', 'same') {
    reload(main => 'worker_shutdown_timeout 1s;');
    wait_for { $t->worker_pids() == workers() };

    my $n = $up->count($tool);
    my $id = $g->task($tool);
    my $call = $up->call($tool, $n + 1);
    my $start = time();
    ok(reload(), "$tool: reloaded");
    $g->fails($id, 'shutdown', "$tool: time is up", 20);
    cmp_ok(time() - $start, '>=', 0.9, "$tool: not before");
    ok($up->left($call, 10), "$tool: upstream is left");
    ok((wait_for { $t->worker_pids() == workers() }),
       "$tool: old processes are gone");
    is($up->count($tool), $n + 1, "$tool: it is not sent again");
}

# --- the end: nginx waits for calls, or not

{
    my $n = $up->count('slow');
    my $id = $g->task('slow');
    my $call = $up->call('slow', $n + 1);
    my $start = time();
    ok($t->stop('TERM'), 'nginx is terminated while a call runs');
    cmp_ok(time() - $start, '<', 10, 'at once');
    ok($up->left($call, 10), 'upstream is left');
    ok($t->start(), 'it starts again');

    # the zone was memory: nobody waits for what is not there
    is($g->{c}->modern('tasks/get', { taskId => $id })
          ->{json}{error}{data}{reason}, 'task_not_found',
       'the task is gone with the process');
    is($up->count('slow'), $n + 1, 'and its call is not sent again');
}

$g->done('background call failed: shutdown');
done_testing();
