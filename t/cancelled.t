# notifications/cancelled of a plain call, in the legacy era.
#
# 2025-11-25, basic/utilities/cancellation: "Receivers of cancellation
# notifications SHOULD: Stop processing the cancelled request, Free associated
# resources, Not send a response for the cancelled request"

use warnings;
use strict;

use FindBin;
use lib "$FindBin::Bin/lib";

use JSON::PP;
use Test::More;

use MCPClient;
use MCPTasks qw/ wait_for workers /;

# with a socket of its own for each worker, connections go to all of them
my $t = MCPTasks->new(
    workers => workers(), listen => 'reuseport',
    tools => ['slow', 'idle'],
    http => 'mcp_tasks_zone zone=z:4m; mcp_tasks_tools tools.json;',
    surfaces => [qw/ mcp worker /],
    server => 'mcp_tasks_owner $http_x_user;');

my $any = MCPClient->new($t);
my $ann = $any->user('ann')->in_session();
my $bob = $any->user('bob')->in_session();


# a plain call on a connection of its own
sub call {
    my ($c, $id, $tool, %opt) = @_;
    my $s = $t->connect();

    MCPTasks::send_raw($s, $c->legacy_bytes('tools/call',
                               { name => $tool || 'slow', %opt }, id => $id));
    return $s;
}


# the same, and the work that a worker has claimed
sub running {
    my ($c, $id, %opt) = @_;
    my $s = call($c, $id, 'slow', %opt);
    my $work = $any->claim('slow', leaseMs => 600000) or die "no work\n";
    return ($s, $work);
}


sub notify {
    my ($c, $params, $name) = @_;
    my $res = $c->post('{"jsonrpc":"2.0","method":"notifications/cancelled"'
                       . (defined $params ? ",\"params\":$params" : '') . '}');
    is($res->{status}, 202, "$name: accepted");
    is($res->{body}, '', "$name: without a body");
}


sub runs {
    my ($work, $name) = @_;
    my $got = $any->held('heartbeat', $work);
    is($got->{phase}, 'running', $name) or diag(MCPClient::encode($got));
}


sub stopped {
    my ($work, $name) = @_;
    my $got = $any->held('heartbeat', $work);
    ok($got->{error}{data}{cancelled}, $name) or diag(MCPClient::encode($got));
}


sub completes {
    my ($s, $work, $id, $name) = @_;
    $any->complete($work, '{"content":[]}');
    is(MCPTasks::read_response($s)->{body},
       "{\"jsonrpc\":\"2.0\",\"id\":$id,\"result\":{\"content\":[]}}", $name);
}


# "Stop processing the cancelled request", "Not send a response"
sub ends {
    my ($s, $name) = @_;
    my $res = MCPTasks::read_response($s);
    is($res->{status}, 200, "$name: the call ends");
    is($res->{header}{'content-type'}, 'text/event-stream',
       "$name: as a stream");
    unlike($res->{body}, qr/jsonrpc/, "$name: without a response");
}


# Through any worker process, by any kind of request id

my @ids = ('1', '"1"', '0', '-7', '12345678901234567890123', '""',
           '"a b"', '"\u00e9"', '"\ud800"', '"' . 'x' x 300 . '"');

for my $id (@ids) {
    my $short = substr($id, 0, 25);
    my ($s, $work) = running($ann, $id);

    notify($ann, "{\"requestId\":$id,\"reason\":\"no \\u00e9\"}", $short);
    stopped($work, "$short: the worker learns it");
    ends($s, $short);
    is($ann->get($work->{taskId})->{statusMessage}, "no \x{e9}",
       "$short: the reason is the status message");
}

for my $case (['"k\u00e9y"', "\"k\x{c3}\x{a9}y\""], ['"a/b"', '"a\/b"'],
              ['"\u006b"', '"k"'])
{
    my ($s, $work) = running($ann, $case->[0]);
    notify($ann, "{\"requestId\":$case->[1]}", 'another spelling');
    stopped($work, 'another spelling of the same string');
    ends($s, 'another spelling');
}

# with a stream that is open already

my $s = call($ann, 5, 'slow', _meta => { progressToken => 'p' });
my $work = $any->claim('slow', leaseMs => 600000);
my $stream = MCPClient::Stream->new($s);
$any->held('progress', $work, progress => 1);
is($stream->message()->{params}{progress}, 1, 'progress on the stream');
notify($ann, '{"requestId":5}', 'on a stream');
stopped($work, 'on a stream: the worker learns it');
is($stream->message(), undef, 'on a stream: no response');
ok($stream->{whole}, 'on a stream: it ends properly');

# before a worker has the call

$s = call($ann, 6, 'idle');
my $queued = wait_for {
    my ($task) = grep { $_->{status} eq 'working' }
                 @{ $ann->legacy('tasks/list')->{json}{result}{tasks} };
    $task;
};
ok($queued, 'a call that nobody has claimed');
notify($ann, '{"requestId":6}', 'queued');
ends($s, 'queued');
is($ann->status($queued->{taskId}), 'cancelled', 'queued: cancelled');
is($any->claim('idle', waitMs => 0), undef, 'queued: not claimed any more');

# What is not the call

($s, $work) = running($ann, 21);
my $again = $any->user('ann')->in_session();
my $stranger = $any->user('bob')->as(headers => { 'X-User' => 'bob',
                                     'Mcp-Session-Id' => $ann->{session} });

notify($bob, '{"requestId":21}', 'another owner');
notify($again, '{"requestId":21}', 'another session of the owner');
notify($any->user('ann'), '{"requestId":21}', 'without a session');
notify($any->in_session(), '{"requestId":21}', 'nobody');
is($stranger->post('{"jsonrpc":"2.0","method":"notifications/cancelled",'
                   . '"params":{"requestId":21}}')->{status}, 404,
   'another owner with the id of the session');
notify($ann, '{"requestId":"21"}', 'a string instead of a number');
notify($ann, '{"requestId":2}', 'another request');
notify($ann, '{"requestId":1,"requestId":21}', 'duplicate requestId');
notify($ann, "{\"requestId\":$_}", "requestId $_")
    for 'null', 'true', '{}', '[21]', '21.0', '"' . $work->{taskId} . '"';
notify($ann, '{"reason":"x"}', 'no requestId');
notify($ann, undef, 'no params');
runs($work, 'the call is not cancelled by any of these');
notify($ann, '{"requestId":21}', 'the call');
stopped($work, 'but by its own');
ends($s, 'the call');

($s, $work) = running($ann, 22);
completes($s, $work, 22, 'a call is answered');
notify($ann, '{"requestId":22}', 'a call that has ended');

# a reason that cannot be a status message

for my $reason ('"' . 'x' x 1023 . '"', '7', '{"a":1}', 'null') {
    my $short = substr($reason, 0, 9);
    my $request = "\"reason $short\"";
    $request =~ s/["{}]//g;
    ($s, $work) = running($ann, "\"$request\"");
    notify($ann, "{\"requestId\":\"$request\",\"reason\":$reason}",
           "reason $short");
    stopped($work, "reason $short: cancelled nevertheless");
    ends($s, "reason $short");
    is($ann->get($work->{taskId})->{statusMessage}, undef,
       "reason $short: no status message");
}

# "For task-augmented requests, the tasks/cancel request MUST be used"

my $id = $ann->legacy('tools/call', { name => 'slow', task => {} }, id => 8)
             ->{json}{result}{task}{taskId};
$work = $any->claim_id('slow', $id);
notify($ann, '{"requestId":8}', 'a task');
runs($work, 'a task is not cancelled by the notification');

my $waiting = $t->connect();
MCPTasks::send_raw($waiting, $ann->legacy_bytes('tasks/result',
                                 { taskId => $id }, id => 9));
notify($ann, '{"requestId":9}', 'tasks/result');
runs($work, 'nor by that of its tasks/result');
$any->complete($work, '{}');
is(MCPClient::answer($waiting)->{json}{id}, 9, 'tasks/result is answered');

# "The initialize request MUST NOT be cancelled": there is nothing to cancel

notify($ann, '{"requestId":1,"reason":"initialize"}', 'initialize');
is($ann->legacy('ping')->{status}, 200, 'the session continues');

# Calls without a session cannot be found by their request id

($s, $work) = running($any->user('ann'), 3);
notify($any->user('ann'), '{"requestId":3}', 'no session');
runs($work, 'no session: the call continues');
completes($s, $work, 3, 'no session: and is answered');

# A request id is used twice: forbidden, but both calls work

my ($first, $one) = running($ann, 4);
my ($second, $two) = running($ann, 4);
isnt($one->{taskId}, $two->{taskId}, 'the same request id: two tasks');
notify($ann, '{"requestId":4}', 'the same request id');
stopped($one, 'the same request id: the first is cancelled');
ends($first, 'the same request id');
runs($two, 'the same request id: the second continues');
completes($second, $two, 4, 'the same request id: and is answered');

for (1 .. 3) {
    ($s, $work) = running($ann, 10);
    completes($s, $work, 10, "request id 10, use $_");
    ok(wait_for { $ann->status($work->{taskId}) !~ /^(working|completed)$/ },
       "request id 10, use $_: the task is removed");
}

($s, $work) = running($ann, 10);
notify($ann, '{"requestId":10}', 'used again');
stopped($work, 'used again: found again');
ends($s, 'used again');

# Whoever else cancels a plain call: its client receives an error

($s, $work) = running($ann, 11);
is($ann->legacy('tasks/cancel', { taskId => $work->{taskId} })
       ->{json}{result}{status}, 'cancelled', 'cancelled by its task id');
my $res = MCPClient::answer($s);
is($res->{json}{id}, 11, 'cancelled by its task id: a response');
ok($res->{json}{error}, 'cancelled by its task id: an error');

# A batch, of revision 2025-03-26: the other calls are answered

my $old = $any->user('ann')->in_session(version => '2025-03-26');
my %version = ('MCP-Protocol-Version' => '2025-03-26');


sub batch {
    my (@ids) = @_;
    my $s = $t->connect();
    MCPTasks::send_raw($s, MCPClient::bytes('/mcp', '[' . join(',', map {
        MCPClient::rpc('tools/call', { name => 'slow', _meta => {
                       progressToken => $_ } }, $_) } @ids) . ']',
        %{ $old->{headers} }, %version));
    return ($s, map { $any->claim('slow', leaseMs => 600000) } @ids);
}


sub notify_batch {
    my (@ids) = @_;
    return $old->post('[' . join(',', map { '{"jsonrpc":"2.0","method":'
        . '"notifications/cancelled","params":{"requestId":' . $_ . '}}' } @ids)
        . ']', %version)->{status};
}

my @works;
($s, @works) = batch(31, 32);
is(notify_batch(31), 202, 'a batch: one is cancelled');
is(scalar(grep { $any->held('heartbeat', $_)->{phase} } @works), 1,
   'a batch: its worker learns it');
$any->complete($_, '{"content":[]}') for @works;
is(MCPTasks::read_response($s)->{body},
   '[{"jsonrpc":"2.0","id":32,"result":{"content":[]}}]',
   'a batch: the other call is answered');

# the connection can be used again
MCPTasks::send_raw($s, $ann->legacy_bytes('ping'));
is(MCPClient::answer($s)->{status}, 200, 'a batch: the next request');

($s, @works) = batch(33, 34);
is(notify_batch(33, 34), 202, 'a batch: all are cancelled');
stopped($_, 'a batch: each worker learns it') for @works;
is(MCPTasks::read_response($s)->{body}, '', 'a batch: no response at all');
MCPTasks::send_raw($s, $ann->legacy_bytes('ping'));
is(MCPClient::answer($s)->{status}, 200, 'all of a batch: the next request');
close($s);

($s, @works) = batch(35, 36);
$stream = MCPClient::Stream->new($s);
$any->held('progress', $_, progress => 1) for @works;
is($stream->message()->{params}{progress}, 1, 'a batch: progress') for 1, 2;
notify_batch(35);
$any->complete($_, '{"content":[]}') for @works;
is($stream->message()->{id}, 36, 'a batch: the other call, on the stream');
is($stream->message(), undef, 'a batch: nothing else');
ok($stream->{whole}, 'a batch: the stream ends');
$stream->close();

ok($t->stop(), 'nginx stops');
is($t->faults(), '', 'nothing in the log that should not be');

done_testing();
