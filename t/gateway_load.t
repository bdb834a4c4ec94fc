# Many calls at once, and reloads while they run: all of them end as they
# should, and nothing of them is left.

use warnings;
use strict;

use FindBin;
use lib "$FindBin::Bin/lib";

use Test::More;

use MCPClient;
use MCPFile qw/ slurp /;
use MCPGateway;
use MCPProcess qw/ descriptors_of memory_of /;
use MCPTasks qw/ scale wait_for workers /;

# a sanitizer keeps freed memory, as far as it is allowed to
$ENV{ASAN_OPTIONS} = 'quarantine_size_mb=1:thread_local_quarantine_size_kb=64';

use constant MANY => 200;

my @held = (['sse'], ['hold']);

my $g = MCPGateway->new(
    workers => 2, connections => 2048,
    conf => 'mcp_tasks_max_running 1000;',
    tool => ['slow support=optional', 'asks support=optional'],
    on => { slow => \@held, asks => \@held });
my ($up, $t, $c) = @{$g}{qw/ up t c /};


# as many calls of a tool as are under way
sub open_calls {
    my ($tool, $n) = @_;
    my @calls;
    wait_for {
        @calls = $up->open_calls($tool);
        return @calls == $n;
    };
    return @calls;
}


# one connection for all, to any process
sub client {
    return $c->as(via => $t->connect());
}


sub ended {
    my ($who, @ids) = @_;
    my %how;

    for my $id (@ids) {
        my $got = $g->until($id, sub {
            return ($_[0]{status} // '') =~ /^(completed|failed|cancelled)$/;
        }, 30, $who);
        $how{$got->{status} // 'none'}++;
    }

    return \%how;
}


# calls that complete, fail, are cancelled, and are left by their server
sub round {
    my ($name) = @_;
    my @who = (client(), client());
    $up->clear();
    my @ids = map { $g->task('slow', who => $who[$_ % 2]) } 1 .. MANY;
    my @calls = open_calls('slow', MANY);
    is(scalar @calls, MANY, "$name: that many calls run at once");

    # the n-th call need not be the n-th task's
    my $part = MANY / 4;
    $up->go($_, ['event', '{"jsonrpc":"2.0","method":"notifications/progress",'
                 . '"params":{"progressToken":%TOKEN%,"progress":1}}'],
            ['result', '{"content":[]}']) for @calls[0 .. $part - 1];
    $up->go($_, ['error', '{"code":-5,"message":"x"}'])
        for @calls[$part .. 2 * $part - 1];
    $up->go($_, ['reset']) for @calls[2 * $part .. 3 * $part - 1];

    my %open = map { $_ => 1 } @ids;
    wait_for {
        delete @open{grep { $g->get($_, $who[0])->{status} ne 'working' }
                     keys %open};
        return keys %open == $part;
    };
    $who[1]->legacy('tasks/cancel', { taskId => $_ }) for keys %open;

    is_deeply(ended($who[0], @ids), { completed => $part, failed => 2 * $part,
              cancelled => $part }, "$name: each ended as it should");
    ok((wait_for { !grep { !$_->{done} && !$_->{closed} }
                         $up->calls('slow') }), "$name: none is left");
    close($_->{via}) for @who;
    wait_for { ($up->connections())[0] == 0 };
    is(($up->connections())[0], 0, "$name: nor any connection");
}


# --- many at once: the first times take what is kept for later, and not all
# of them in the same processes

round("at first, $_") for 1 .. 3;
my $memory = memory_of($t->worker_pids());
my $fds = descriptors_of($t->worker_pids());
round("round $_") for 1 .. scale(3);

ok((wait_for { descriptors_of($t->worker_pids()) <= $fds }),
   'no descriptor was kept')
    or diag("$fds before, " . descriptors_of($t->worker_pids()) . ' now');
my $mb = 1024 * 1024 * (slurp('/proc/' . ($t->worker_pids())[0] . '/maps')
                        =~ /libasan/ ? 16 : 1);
my $grown = memory_of($t->worker_pids()) - $memory;
cmp_ok($grown, '<', 4 * $mb, "nor memory ($grown)");

# --- one call that goes on and on

{
    my $id = $g->task('asks');
    my ($call) = open_calls('asks', 1);
    my $event = '{"jsonrpc":"2.0","method":"notifications/progress","params":'
                . '{"progressToken":%TOKEN%,"progress":%d,"message":"m%d"}}';
    my $send = sub {
        my ($from, $to) = @_;
        my $text = join '', map { 'data: ' . $event =~ s/%d/$_/gr . "\n\n" }
                            $from .. $to;
        $up->go($call, ['text', $text]);
        $g->until($id, sub { ($_[0]{statusMessage} // '') eq "m$to" }, 30);
    };

    $send->(1, 1000);
    $memory = memory_of($t->worker_pids());
    my $got = $send->(1001, 21_000);
    is($got->{statusMessage}, 'm21000', 'a call with much progress');
    $grown = memory_of($t->worker_pids()) - $memory;
    cmp_ok($grown, '<', 2 * $mb, "takes no more for it ($grown)");
    $up->go($call, ['result', '{}']);
    is($g->ends($id)->{status}, 'completed', 'and completes');
}

# --- reloads while calls run

{
    my (@ids, @calls);
    $up->clear();

    for my $n (1 .. scale(6)) {
        my $who = client();
        push @ids, map { $g->task('slow', who => $who) } 1 .. 10;
        close($who->{via});
        @calls = open_calls('slow', scalar(@calls) + 10);

        my %old = map { $_ => 1 } $t->worker_pids();
        $t->reload();
        wait_for { 2 == grep { !$old{$_} } $t->worker_pids() };

        # who has not heard of it yet would hang up on the next client
        my $gone = join '|', keys %old;
        wait_for { keys %old == (() = $t->log()
                                 =~ /(?:$gone)#\d+: gracefully shutting/g) };

        # some end now, in whichever process they are
        $up->go($_, ['result', '{}']) for splice @calls, 0, 5;
        @calls = open_calls('slow', scalar @calls);
    }

    is(scalar @calls, 5 * scale(6), 'reloads: calls of each are left');
    is(@{[grep { $_->{closed} } $up->calls('slow')]}, 0, 'and none was cut');
    $up->go($_, ['result', '{}']) for @calls;
    is_deeply(ended($c, @ids), { completed => 10 * scale(6) },
              'all complete');
    ok((wait_for { $t->worker_pids() == 2 }), 'old processes are gone');
    is($up->count('slow'), 10 * scale(6), 'each was sent once');
}

$g->done('background call failed: upstream_closed|Connection reset');
done_testing();
