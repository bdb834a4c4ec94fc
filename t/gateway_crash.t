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
    proxy => 'proxy_set_header X-Pid $pid;',
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


# a process, a client that speaks to it, and one that speaks to another
sub pair {
    my $conn = $t->connect_all() or BAIL_OUT('processes cannot be reached');
    my ($pid, $other) = sort keys %$conn;
    return ($pid, $c->as(via => $conn->{$pid}), $c->as(via => $conn->{$other}));
}


# Of the client's, only what is needed for any call: another process can run it.
my $nobody = $c->as(headers => {});


# the same client on the connection of another one
sub via {
    my ($who, $there, %opt) = @_;
    return $who->as(via => $there->{via}, %opt);
}


# --- not again: it has begun and the tool minds, it is bound to its client, or
# there is no attempt

for my $case (
    ['a tool that minds', 'plain', $nobody],
    ['no attempt is left', 'last', $nobody],
    ['a call of the legacy era', 'same', $nobody, legacy => 1],
    ['an owner', 'same', $c],
    ['Authorization', 'same', $nobody,
     headers => { Authorization => 'Bearer abc' }],
    ['a cookie', 'same', $nobody, headers => { Cookie => 'c=1' }],
    ['a header that nobody knows', 'same', $nobody, headers => { 'X-A' => 1 }],
    ['a query string', 'same', $nobody, uri => '/mcp?key=1'],
)
{
    my ($name, $tool, $client, %opt) = @$case;
    my ($pid, $here, $there) = pair();
    my $who = via($client, $here, uri => $opt{uri} // '/mcp');
    my $before = $up->count($tool);
    my $id = $opt{legacy} ? $g->task($tool, who => $who)
             : $g->modern_task($tool, who => $who, headers => $opt{headers});
    my $call = $up->call($tool, $before + 1);
    ok($call, "$name: it runs") or next;

    my $start = kill_one($pid);
    my $got = $g->until($id, sub { ($_[0]{status} // '') eq 'failed' }, 10,
                        via($client, $there));
    cmp_ok(time() - $start, '<', 5, "$name: it ends soon");
    is(join(' ', map { $_ // '-' } $got->{status}, $got->{error}{code},
                                   $got->{error}{data}{reason}),
       'failed -31013 process_lost', "$name: and says why");
    ok($up->left($call, 10), "$name: upstream was left");
    ok($t->replaced($pid), "$name: there is another process");
    is($up->count($tool) - $before, 1, "$name: it was not sent again");
}

# --- again, with headers that say nothing of the client

{
    my ($pid, $here, $there) = pair();
    my $before = $up->count('same');
    my $id = $g->modern_task('same', who => via($nobody, $here),
        headers => { 'User-Agent' => 'x/1', 'Accept-Language' => 'en',
                     'Cache-Control' => 'no-cache', Pragma => 'no-cache',
                     Priority => 'u=1', 'Sec-Fetch-Mode' => 'cors',
                     'Accept-Encoding' => 'gzip' },
        params => { arguments => { n => 7 } });
    my $call = $up->call('same', $before + 1);
    kill_one($pid);
    my $again = $up->call('same', $before + 2, 10);
    ok($again, 'it is sent again');
    is($g->get($id, via($nobody, $there))->{status}, 'working', 'and works');
    is_deeply($again->{json}{params}{arguments}, { n => 7 },
              'with its arguments');
    my %caps = %{ $again->{json}{params}{_meta}
                  {'io.modelcontextprotocol/clientCapabilities'} };
    is_deeply($caps{extensions}, {}, 'without tasks');
    is($again->{head}{$_->[0]}, $_->[1], "header $_->[0]") for
        ['mcp-protocol-version', '2026-07-28'],
        ['mcp-method', 'tools/call'], ['content-type', 'application/json'],
        ['accept', 'application/json, text/event-stream'];
    is($again->{head}{'mcp-name'}, '=?base64?c2FtZQ==?=', 'header mcp-name');
    isnt($again->{id}, $call->{id}, 'it is another request');
    $up->go($again, ['event', '{"jsonrpc":"2.0","method":"notifications/'
                     . 'progress","params":{"progressToken":%TOKEN%,"progress":'
                     . '1,"message":"again"}}']);
    is($g->until($id, sub { ($_[0]{statusMessage} // '') eq 'again' }, 10,
                 via($nobody, $there))->{statusMessage}, 'again', 'it tells');
    $up->go($again, ['result', '{"a":1.0}']);
    my $got = $g->until($id, sub { ($_[0]{status} // '') eq 'completed' }, 10,
                        via($nobody, $there));
    like($got->{text}, qr/"a":1\.0/, 'it completes');
    ok($t->replaced($pid), 'there is another process');
    is($up->count('same') - $before, 2, 'after two calls');
}

# twice, then there is no attempt left
{
    my $before = $up->count('same');
    my ($pid, $here) = pair();
    my $id = $g->modern_task('same', who => via($nobody, $here));

    for my $n (1 .. 3) {
        my $call = $up->call('same', $before + $n, 10);
        ok($call, "attempt $n");

        my $now = $call->{head}{'x-pid'};
        kill_one($now);
        ok($up->left($call, 10), 'is killed');
        ok($t->replaced($now), 'there is another process');
    }

    is($g->until($id, sub { ($_[0]{status} // '') eq 'failed' }, 10, $nobody)
       ->{error}{data}{reason}, 'process_lost', 'then it fails');
    is($up->count('same') - $before, 3, 'after three attempts');
}

# --- who waits elsewhere is told

{
    my ($pid, $here, $there) = pair();
    my $n = $up->count('plain');
    my $id = $g->task('plain', who => $here);
    $up->call('plain', $n + 1);
    MCPTasks::send_raw($there->{via}, $c->legacy_bytes('tasks/result',
                                                       { taskId => $id }));
    kill_one($pid);
    my $res = MCPTasks::read_response($there->{via});
    my $text = $res ? $res->{body} : '';
    like($text, qr/"reason":"process_lost"/, 'who waits elsewhere is told');
    ok($t->replaced($pid), 'there is another process');
}

# --- several calls in one process, others in another

{
    my ($pid, $here, $there) = pair();
    my $before = $up->count('plain');
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
    ok($t->replaced($pid), 'there is another process');
}

# --- while it asks: nobody is there to hear the answer

{
    my ($pid, $here, $there) = pair();
    my $n = $up->count('plain');
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
    ok($t->replaced($pid), 'there is another process');
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
