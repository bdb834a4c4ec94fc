# Answers of clients that do not get through: the tool is not called twice, and
# who can be reached later gets them then.

use warnings;
use strict;

use FindBin;
use lib "$FindBin::Bin/lib";

use Test::More;

use MCPClient;
use MCPGateway;
use MCPTasks qw/ wait_for /;

my $asks = MCPClient::encode({ jsonrpc => '2.0', id => 'Q',
                               %{ MCPClient::form() } });
my $round = '{"resultType":"input_required","requestState":"s","inputRequests"'
            . ':{"a":' . MCPClient::encode(MCPClient::form()) . '}}';

my $g = MCPGateway->new(
    connections => 64, tool => ['~. support=optional'],
    conf => 'mcp_tasks_retries 3 backoff=100ms;',
    on => { ask => [['sse'], ['event', $asks], ['hold']],
            modern => { rounds => [[['result', $round]],
                [['result', '{"resultType":"complete","n":1}']]] } });
my ($up, $t, $c) = @{$g}{qw/ up t c /};


# an answer to the one question of a task, over that connection if there is one
sub answer_bytes {
    my ($id) = @_;
    my ($key) = keys %{ $g->becomes($id, 'input_required', 10)
                        ->{inputRequests} };
    return $c->modern_bytes('tasks/update', { taskId => $id,
        inputResponses => { $key // 'none' => { action => 'accept',
                                                content => {} } } });
}


sub begin {
    my ($tool, $modern) = @_;
    $up->clear();
    $up->script($tool => { rounds => [[['result', $round]],
        [['result', '{"resultType":"complete","n":1}']]] }) if $modern;
    my $id = $modern ? $g->modern_task($tool) : $g->task($tool);
    return ($id, answer_bytes($id), $up->call($tool));
}


# --- the server refuses it: the call would wait for it in vain

# at once, or if it does not get better
for my $case ([500, 4], [400, 1]) {
    my ($status, $times) = @$case;
    $up->script(response => [['json', '{"nope":1}', $status]]);
    my ($id, $bytes, $call) = begin('ask');
    is($c->say_bytes($bytes)->{status}, 200, "$status: an answer");
    my $got = $g->fails($id, 'upstream_status', "$status: the task ends", 25);
    is($got->{error}{data}{status}, $status, "$status: and says why");
    ok($up->left($call, 10), "$status: its request is ended");
    is($up->count('ask'), 1, "$status: it was called once");
    is(scalar(my @said = $up->said('response')), $times,
       "$status: told $times times");
}

$up->script(response => undef);

# --- nobody listens; then somebody does

{
    my ($id, $bytes, $call) = begin('ask');
    my $n = () = $t->log() =~ /connect\(\) failed/g;
    $up->shut();
    is($c->say_bytes($bytes)->{status}, 200, 'refused: an answer');
    ok((wait_for { (() = $t->log() =~ /connect\(\) failed/g) > $n } 10),
       'refused: it cannot be sent');
    is($g->get($id)->{status}, 'working', 'refused: the task goes on');
    $up->open();
    my $got = $up->wait_for(sub { ($_[0]{rpc} // '') eq 'response' }, 15);
    is_deeply($got->{json}, { jsonrpc => '2.0', id => 'Q',
              result => { action => 'accept', content => {} } },
              'refused: it is sent when the server is back');
    $up->go($call, ['result', '{"n":2}']);
    is($g->ends($id, 10)->{result}{n}, 2, 'refused: and the call completes');
    is($up->count('ask'), 1, 'refused: it was called once');
    is(scalar(my @said = $up->said('response')), 1, 'refused: and told once');
}

{
    my ($id, $bytes) = begin('modern', 1);
    my $n = () = $t->log() =~ /connect\(\) failed/g;
    $up->shut();
    is($c->say_bytes($bytes)->{status}, 200, 'a round that is refused');
    ok((wait_for { (() = $t->log() =~ /connect\(\) failed/g) > $n } 10),
       'a round: it cannot be sent');
    is($g->get($id)->{status}, 'working', 'a round: the task goes on');
    $up->open();
    my $call = $up->call('modern', 2, 15);
    is_deeply($call->{json}{params}{inputResponses},
              { a => { action => 'accept', content => {} } },
              'a round: it is sent when the server is back, with the answers');
    is($call->{json}{params}{requestState}, 's', 'a round: and its state');
    is($g->ends($id, 10)->{result}{n}, 1, 'a round: and the call completes');
    is($up->count('modern'), 2, 'a round: nothing began anew');
}

# --- no connection is left, while the answer comes

for my $modern (0, 1) {
    my $name = $modern ? 'full, modern' : 'full';
    my $tool = $modern ? 'modern' : 'ask';
    my ($id, $bytes, $call) = begin($tool, $modern);
    my ($pid) = $t->worker_pids();
    my $n = () = $t->log() =~ /connections are not enough/g;

    # all but the end of it, and others until there is no room; with the
    # beginning of another request it is kept when there is none
    my $s = $t->connect();
    MCPTasks::send_raw($s, substr($bytes, 0, -1));
    my @fill;

    wait_for {
        my $x = $t->connect();
        MCPTasks::send_raw($x, "POST /mcp HTTP/1.1\r\nHo") if $x;
        push @fill, $x;
        return (() = $t->log() =~ /connections are not enough/g) > $n;
    } 15;

    $n = () = $t->log() =~ /connections are not enough/g;
    MCPTasks::send_raw($s, substr($bytes, -1) . "POST /mcp HTTP/1.1\r\nHo");
    my $res = MCPTasks::read_response($s) || { status => 0 };
    is($res->{status}, 200, "$name: an answer");
    ok((wait_for { (() = $t->log() =~ /connections are not enough/g) > $n } 10),
       "$name: there is no connection to send it");
    close($_) for grep { $_ } @fill;

    if ($modern) {
        $call = $up->call($tool, 2, 20);
        is_deeply($call->{json}{params}{inputResponses},
                  { a => { action => 'accept', content => {} } },
                  "$name: it is sent when there is one, with the answers");
        is($g->ends($id, 10)->{result}{n}, 1, "$name: the call completes");
        is($up->count($tool), 2, "$name: nothing began anew");

    } else {
        ok($up->wait_for(sub { ($_[0]{rpc} // '') eq 'response' }, 20),
           "$name: it is sent when there is one");
        $up->go($call, ['result', '{"n":3}']);
        is($g->ends($id, 10)->{result}{n}, 3, "$name: the call completes");
        is($up->count($tool), 1, "$name: it was called once");
    }

    is_deeply([$t->worker_pids()], [$pid], "$name: it is the same process");
}

$g->done('connections are not enough|background call failed: upstream_status|'
         . 'connect\(\) failed|answered a message of a call|could not be told');
done_testing();
