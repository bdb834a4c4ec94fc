# Servers without measure: rounds without a pause, pings in masses, streams that
# end at once, acknowledgements without end.  Connections and memory stay
# bounded, others are served, and it ends with a reason or can be cancelled.

use warnings;
use strict;

use FindBin;
use lib "$FindBin::Bin/lib";

use Test::More;
use Time::HiRes qw/ time /;

use MCPClient;
use MCPGateway;
use MCPProcess qw/ descriptors_of memory_of /;
use MCPTasks qw/ wait_for /;

# what a sanitizer keeps of freed memory is not what we look for
$ENV{ASAN_OPTIONS} = 'quarantine_size_mb=1:thread_local_quarantine_size_kb=64';

my $noise = '{"jsonrpc":"2.0","method":"notifications/x"}';
my $asks = MCPClient::encode({ jsonrpc => '2.0', id => 'Q',
                               %{ MCPClient::form() } });
my $round = '{"resultType":"input_required","requestState":"x"}';
my $again = [['sse'], ['text', "id: 7\nretry: 1\ndata: $noise\n\n"], ['end']];
my $pings = join '', map { "data: {\"jsonrpc\":\"2.0\",\"id\":$_,"
                           . "\"method\":\"ping\"}\n\n" } 1 .. 400;

my $g = MCPGateway->new(
    tool => ['~. support=optional'],
    on => { loop => [['result', $round]],
            pings => [['sse'], ['text', $pings], ['hold']],
            again => $again, ask => [['sse'], ['event', $asks], ['hold']],
            open => [['sse'], ['event', '{"jsonrpc":"2.0","id":%ID%,"result":'
                . '{"resultType":"input_required","inputRequests":{"a":'
                . MCPClient::encode(MCPClient::form()) . '}}}'], ['hold']],
          });
my ($up, $t, $c) = @{$g}{qw/ up t c /};
my ($pid) = $t->worker_pids();


sub answer {
    my ($id) = @_;
    my ($key) = keys %{ $g->becomes($id, 'input_required', 10)
                        ->{inputRequests} };
    return $c->modern('tasks/update', { taskId => $id,
        inputResponses => { $key // 'none' => { action => 'accept' } } })
        ->{status};
}


my $fds = $t->idle_descriptors();

# --- rounds that ask nothing, with much to send

{
    my $memory = memory_of($pid);
    my $id = $g->modern_task('loop', params => {
        arguments => { a => 'x' x 400_000 } });
    my $most = 0;

    # a round takes a quarter of a second of processor time, most of it for
    # the upstream to decode the message: each one has its own time to begin
    my ($rounds, $since) = (0, time());
    my $got = $g->until($id, sub {
        my $now = ($up->connections())[1];
        ($rounds, $since) = ($now, time()) if $now > $rounds;
        $most = memory_of($pid) if memory_of($pid) > $most;
        return $_[0]{status} ne 'working' || time() - $since > 30;
    }, 600);
    is($got->{error}{data}{reason}, 'upstream_invalid', 'bare rounds: it ends');
    is(scalar(my @calls = $up->calls('loop')), 17, 'bare rounds: after some');
    cmp_ok($most - $memory, '<', 16 * 1024 * 1024, 'bare rounds: in little '
           . 'memory');
}

# --- many pings at once

{
    my $id = $g->task('pings');
    my $call = $up->call('pings');
    my $most = 0;
    my $some = wait_for {
        my $now = descriptors_of($pid);
        $most = $now if $now > $most;
        return $up->said('response') >= 8;
    } 20;
    ok($some, 'pings: some are answered');
    is($c->legacy('ping')->{status}, 200, 'pings: others are served');
    cmp_ok($most - $fds, '<', 50, 'pings: few connections are open at once');
    $up->go($call, ['result', '{"n":1}']);
    is($g->ends($id, 10)->{result}{n}, 1, 'pings: and the call completes');
    unlike($t->log(), qr/not enough/, 'pings: there was always room');
}

# --- a stream that ends at once, again and again

for my $new (0, 1) {
    my $name = $new ? 'again, with other events' : 'again';
    $up->clear();
    $up->script(GET => $again);
    my $start = time();
    my $id = $g->task('again');
    $up->wait_for(sub { $_[0]{method} eq 'GET' && $_[0]{n} }, 10);
    my $third = wait_for {
        my @got = $up->requests(sub { $_[0]{method} eq 'GET' });
        return $got[3];
    } 15;
    ok($third, "$name: it is asked for more");
    my @gets = $up->requests(sub { $_[0]{method} eq 'GET' });
    cmp_ok($gets[$_]{time} - $gets[$_ - 1]{time}, '>', 0.15,
           "$name: with a pause, $_") for 1 .. 3;
    is($gets[3]{head}{'last-event-id'}, 7, "$name: after the last event");

    if ($new) {
        $up->script(GET => [['sse'], ['text', 'id: 8' . "\ndata: {\"jsonrpc\""
            . ':"2.0","id":' . $up->call('again')->{id}
            . ",\"result\":{\"n\":4}}\n\n"], ['end']]);
        is($g->ends($id, 15)->{result}{n}, 4, "$name: until it is told");

    } else {
        $c->modern('tasks/cancel', { taskId => $id });
        is($g->ends($id, 10)->{status}, 'cancelled', "$name: it can end");
    }
}

# --- an acknowledgement without end

for my $case (['a stream', ['sse'], ['flood', ": x\n\n", 0.01]],
              ['much', ['head', 200, { 'Content-Type' => 'text/plain' }],
               ['flood', 'x' x 1000]],
              ['nothing', ['head', 200, { 'Content-Type' => 'text/plain' }],
               ['hold']])
{
    my ($name, @steps) = @$case;
    $up->clear();
    $up->script(response => \@steps);
    my $id = $g->task('ask');
    is(answer($id), 200, "$name: an answer");
    ok($up->wait_for(sub { ($_[0]{rpc} // '') eq 'response' }, 10),
       "$name: it is sent");
    my $memory = memory_of($pid);
    $up->go($up->call('ask'), ['result', '{"n":5}']);
    is($g->ends($id, 10)->{result}{n}, 5, "$name: the call completes");
    ok((wait_for { descriptors_of($pid) <= $fds } 15),
       "$name: nothing is left open")
        or diag("$fds before, " . descriptors_of($pid) . ' now');
    cmp_ok(memory_of($pid) - $memory, '<', 8 * 1024 * 1024,
           "$name: nor in memory");
    is(scalar(my @said = $up->said('response')), 1, "$name: it was told once");
}

# --- a server of the modern era that asks, and keeps its stream open

{
    $up->clear();
    my $id = $g->modern_task('open');
    my $call = $up->call('open');
    is(answer($id), 200, 'a stream is open: an answer');
    my $next = $up->call('open', 2, 10);
    is_deeply($next->{json}{params}{inputResponses},
              { a => { action => 'accept' } },
              'a stream is open: the next round comes all the same');
    ok($up->left($call, 10), 'a stream is open: and it is closed');
    $c->modern('tasks/cancel', { taskId => $id });
    like($g->ends($id, 10)->{status}, qr/^cancelled$/, 'and it is cancelled');
}

ok((wait_for { descriptors_of($pid) <= $fds } 15), 'no descriptor is left')
    or diag("$fds before, " . descriptors_of($pid) . ' now');
is_deeply([$t->worker_pids()], [$pid], 'it is the same process');
$g->done('background call failed: upstream_invalid');
done_testing();
