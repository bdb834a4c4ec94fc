# A process that runs calls is killed: its tasks fail soon, or are run again by
# another one if nothing speaks against it.

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
    conf => 'mcp_tasks_retries 2 backoff=100ms;',
    tool => ['plain support=optional', 'same idempotent', 'last idempotent '
             . 'retries=0'],
    on => { map { $_ => [['sse'], ['hold']] } qw/ plain same last / });
my ($up, $t, $c) = @{$g}{qw/ up t c /};


# when it was killed
sub kill_one {
    my ($pid) = @_;
    kill('KILL', $pid);
    return time();
}


sub all_back {
    my ($pid) = @_;
    return wait_for {
        my @pids = $t->worker_pids();
        @pids == workers() && !grep { $_ == $pid } @pids;
    };
}


# a process, a client that speaks to it, and one that speaks to another
sub pair {
    my $conn = $t->connect_all() or BAIL_OUT('processes cannot be reached');
    my ($pid, $other) = sort keys %$conn;
    return ($pid, $c->as(via => $conn->{$pid}), $c->as(via => $conn->{$other}));
}


sub count {
    my ($tool) = @_;
    return scalar @{[$up->calls($tool)]};
}


my %secret = (authorization => { Authorization => 'Bearer abc' },
              cookie => { Cookie => 'c=1' });

# --- not again: the tool minds, credentials are gone, or there is no attempt

for my $case (['plain', 'a tool that minds', {}],
              ['same', 'Authorization is lost', $secret{authorization}],
              ['same', 'a cookie is lost', $secret{cookie}],
              ['last', 'no attempt is left', {}])
{
    my ($tool, $name, $headers) = @$case;
    my ($pid, $here, $there) = pair();
    my $before = count($tool);
    my $id = $g->task($tool, who => $here, headers => $headers);
    my $call = $up->call($tool, $before + 1);
    ok($call, "$name: it runs") or next;

    my $start = kill_one($pid);
    my $got = $g->until($id, sub { ($_[0]{status} // '') eq 'failed' }, 10,
                        $there);
    cmp_ok(time() - $start, '<', 2, "$name: it ends soon");
    is(join(' ', map { $_ // '-' } $got->{status}, $got->{error}{code},
                                   $got->{error}{data}{reason}),
       'failed -32014 process_lost', "$name: and says why");
    ok($up->left($call, 10), "$name: upstream was left");
    ok(all_back($pid), "$name: there is another process");
    is(count($tool) - $before, 1, "$name: it was not sent again");
}

# --- again

for my $era ('legacy', 'modern') {
    my ($pid, $here, $there) = pair();
    my $before = count('same');
    my $id = $era eq 'legacy' ? $g->task('same', who => $here,
                                         params => { arguments => { n => 7 } })
                              : $g->modern_task('same', who => $here, params =>
                                                { arguments => { n => 7 } });
    my $call = $up->call('same', $before + 1);
    kill_one($pid);
    my $again = $up->call('same', $before + 2, 10);
    ok($again, "$era: it is sent again") or next;
    is($g->get($id, $there)->{status}, 'working', "$era: and works");
    is_deeply($again->{json}{params}{arguments}, { n => 7 },
              "$era: with its arguments");
    is($again->{json}{params}{task}, undef, "$era: without task");
    is($again->{head}{'mcp-protocol-version'},
       $era eq 'legacy' ? '2025-11-25' : '2026-07-28', "$era: in its era");
    $up->go($again, ['result', '{"a":1.0}']);
    my $got = $g->until($id, sub { ($_[0]{status} // '') eq 'completed' }, 10,
                        $there);
    like($got->{text}, qr/"a":1\.0/, "$era: it completes");
    ok(all_back($pid), "$era: there is another process");
    is(count('same') - $before, 2, "$era: after two calls");
}

# --- who waits elsewhere is told

{
    my ($pid, $here, $there) = pair();
    my $n = count('plain');
    my $id = $g->task('plain', who => $here);
    $up->call('plain', $n + 1);
    MCPTasks::send_raw($there->{via}, $c->legacy_bytes('tasks/result',
                                                       { taskId => $id }));
    kill_one($pid);
    my $res = MCPTasks::read_response($there->{via});
    my $text = $res ? $res->{body} : '';
    like($text, qr/"reason":"process_lost"/, 'who waits elsewhere is told');
    ok(all_back($pid), 'there is another process');
}

# --- several calls in one process, others in another

{
    my ($pid, $here, $there) = pair();
    my $before = count('plain');
    my @lost = map { $g->task('plain', who => $here) } 1 .. 5;
    my @kept = map { $g->task('plain', who => $there) } 1 .. 5;
    $up->call('plain', $before + 10);
    kill_one($pid);
    my @reasons = map {
        my $got = $g->until($_, sub { ($_[0]{status} // '') eq 'failed' }, 10,
                            $there);
        $got->{error}{data}{reason} // $got->{text};
    } @lost;
    is_deeply(\@reasons, [('process_lost') x 5], 'all calls of it have failed');
    is(@{[grep { $g->get($_, $there)->{status} eq 'working' } @kept]}, 5,
       'those of another go on');
    $up->go($_, ['result', '{}']) for $up->calls('plain');
    is(@{[grep { $g->ends($_)->{status} eq 'completed' } @kept]}, 5,
       'and complete');
    ok(all_back($pid), 'there is another process');
}

# --- while it asks: nobody is there to hear the answer

{
    my ($pid, $here, $there) = pair();
    my $n = count('plain');
    my $id = $g->task('plain', who => $here);
    my $call = $up->call('plain', $n + 1);
    $up->go($call, ['event', '{"jsonrpc":"2.0","id":"q","method":"roots/list"'
                             . ',"params":{}}']);
    $g->until($id, sub { ($_[0]{status} // '') eq 'input_required' }, 10,
              $there);
    kill_one($pid);
    my $got = $g->until($id, sub { ($_[0]{status} // '') eq 'failed' }, 10,
                        $there);
    is($got->{error}{data}{reason}, 'process_lost', 'a task that asks fails');
    ok(all_back($pid), 'there is another process');
}

# the room that lost calls took is there again
{
    my @ids = map { $g->task('plain') } 1 .. 20;
    my $n = 0;
    wait_for { $n = grep { !$_->{done} && !$_->{closed} } $up->calls('plain');
               $n == 20 } 15;
    is($n, 20, 'new calls run');
    $up->go($_, ['result', '{}']) for $up->calls('plain');
    is(@{[grep { $g->ends($_)->{status} eq 'completed' } @ids]}, 20,
       'and complete');
}

$g->done('exited on signal 9');
done_testing();
