# Streams that clients of 2025-11-25 can resume (basic/transports, Streamable
# HTTP): the first event, and GET with its id after the connection was lost.

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
    tools => ['slow'],
    http => 'mcp_tasks_zone zone=z:4m; mcp_tasks_tools tools.json;',
    surfaces => [qw/ mcp worker probe /],
    server => <<'END');
    mcp_tasks_owner $http_x_user;
    location /one { mcp_tasks zone=z; mcp_tasks_max_waiters 1; }
    location /quick { mcp_tasks zone=z; mcp_tasks_keepalive 100ms; }
END

my $any = MCPClient->new($t);
my $ann = $any->user('ann')->in_session();
my $bob = $any->user('bob')->in_session();

my $calls = 100;


sub progress {
    my ($work, $progress) = @_;
    my $got = $any->held('progress', $work, progress => $progress,
                         total => 10);
    diag('progress: ' . MCPClient::encode($got)) unless $got->{phase};
}


# a plain call with a progress token, as a stream, and its work
sub call {
    my ($c, $id, %headers) = @_;
    my $stream = $c->stream($c->legacy_bytes('tools/call',
                     { name => 'slow', _meta => { progressToken => "p$id" } },
                     id => $id, headers => \%headers));
    return ($stream, $any->claim('slow', leaseMs => 600000));
}


# the same after its first progress; the ids of the first and the last event
sub open_call {
    my ($c, $id, %headers) = @_;
    my ($stream, $work) = call($c, $id, %headers);
    progress($work, 1);
    my $first = $stream->event();
    my $last = $stream->next_data();
    is($last->{json}{params}{progress}, 1, "call $id: progress");
    return ($stream, $work, $first->{id}, $last->{id});
}


sub get_bytes {
    my ($c, $last, %headers) = @_;
    return $c->get_bytes('', 'MCP-Protocol-Version' => '2025-11-25',
                         defined $last ? ('Last-Event-ID' => $last) : (),
                         %headers);
}


sub resume {
    my ($c, $last, $s) = @_;
    return $c->stream(get_bytes($c, $last), $s);
}


# 2025-11-25, basic/transports: "The server SHOULD immediately send an SSE event
# consisting of an event ID and an empty data field in order to prime the client
# to reconnect"
sub primes {
    my ($stream, $name) = @_;
    my $event = $stream->event() || {};
    is($event->{data}, '', "$name: the first event has no data");
    ok(length($event->{id} // ''), "$name: but an id");
    return $event->{id};
}


# the response, the end of the stream, and nothing to resume afterwards
sub answers {
    my ($c, $stream, $id, $name) = @_;
    my $event = $stream->next_data();
    is($event->{json}{id}, $id, "$name: the response") or diag($event->{data});
    ok($event->{json}{result}, "$name: a result");
    is($stream->event(), undef, "$name: then nothing");
    ok($stream->{whole}, "$name: the stream ends");
    gone($c, $event->{id}, $name);
}


# 405: neither a stream, nor a reason to try it again
sub gone {
    my ($c, $last, $name) = @_;
    my $res = $c->say_bytes(get_bytes($c, $last));
    is($res->{status}, 405, "$name: nothing to resume");
    is($res->{header}{allow}, 'POST, DELETE, OPTIONS', "$name: Allow");
    is($res->{json}{error}{message}, 'Invalid Request: the stream of this '
       . 'Last-Event-ID has ended', "$name: why");
}


sub refused {
    my ($c, $last, $name) = @_;
    my $res = $c->say_bytes(get_bytes($c, $last));
    is($res->{status}, 400, "$name: status");
    is($res->{body}, '{"jsonrpc":"2.0","error":{"code":-32600,"message":'
       . '"Invalid Request: Last-Event-ID is not of this session"}}',
       "$name: body");
}


# The first event of a call

my ($stream, $work) = call($ann, 1);

progress($work, 1);
my $first = primes($stream, 'a plain call');
my $event = $stream->event();
is($event->{json}{params}{progress}, 1, 'a plain call: progress');
isnt($event->{id}, $first, 'a plain call: with another id');
like($_, qr/\A[\x21-\x7e]+\z/, 'an id is visible ASCII')
    for $first, $event->{id};
$any->complete($work, '{}');
answers($ann, $stream, 1, 'a plain call');

# before a comment that keeps the connection alive, too
{
    my $quick = $any->user('ann')->as(uri => '/quick')->in_session();
    ($stream, $work) = call($quick, 50);
    primes($stream, 'kept alive');
    ok(exists $stream->event()->{comment}, 'kept alive: by a comment');

    my $id = $quick->create('slow');
    my $task = $any->claim('slow', leaseMs => 600000);
    my $result = $quick->stream($quick->legacy_bytes('tasks/result',
                                                     { taskId => $id }));
    primes($result, 'tasks/result, kept alive');
    ok(exists $result->event()->{comment}, 'tasks/result: by a comment');
    $any->complete($_, '{}') for $work, $task;
    is($stream->next_data()->{json}{id}, 50, 'kept alive: the response');
    is($result->next_data()->{json}{id}, 1, 'tasks/result: the response');
}

# the revision is that of the header, or else that of the session
my $old = $any->user('ann')->in_session(version => '2025-06-18');

for my $case (['2025-06-18', 2, $ann], ['2025-03-26', 3, $ann],
              [undef, 4, $old])
{
    my ($version, $id, $ann) = @$case;
    my $name = $version // 'no version';

    ($stream, $work) = call($ann, $id, 'MCP-Protocol-Version' => $version);
    progress($work, 1);
    $event = $stream->event();
    is($event->{json}{params}{progress}, 1, "$name: progress is the first");
    is($event->{id}, undef, "$name: without an id");
    $any->complete($work, '{}');
    is($stream->event()->{json}{id}, $id, "$name: the response");

    my $get = $ann->stream($ann->get_bytes('', 'MCP-Protocol-Version'
                                                   => $version));
    $event = $get->event();
    ok($event->{retry} && !defined $event->{id},
       "$name: the session stream, too");
    $get->close();
}

($stream, $work) = call($ann, 5, 'MCP-Protocol-Version' => undef);
progress($work, 1);
primes($stream, 'no version, in a session of 2025-11-25');
$stream->event();
$any->complete($work, '{}');
answers($ann, $stream, 5, 'no version, in a session of 2025-11-25');

# without what a client needs in order to resume

my $x60 = '"' . 'x' x 60 . '"';
my $x63 = '"' . 'x' x 63 . '"';

for my $case ([$any->user('ann'), 5, 'no session'],
              [$ann, $x63, 'a long request id'])
{
    my ($c, $id, $name) = @$case;
    my $stream = $c->stream($c->legacy_bytes('tools/call',
                     { name => 'slow', _meta => { progressToken => 1 } },
                     id => $id));
    my $work = $any->claim('slow', leaseMs => 600000);
    progress($work, 1);
    $event = $stream->event();
    is($event->{json}{params}{progress}, 1, "$name: progress is the first");
    is($event->{id}, undef, "$name: without an id");
    $any->complete($work, '{}');
    is($stream->event()->{id}, undef, "$name: nor has the response one");
}

# of the session stream

{
    my $c = $any->user('eve')->in_session();
    my $get = $c->stream(get_bytes($c));
    my $id = primes($get, 'the session stream');
    ok($get->event()->{retry}, 'the session stream: retry');
    my $other = $c->stream(get_bytes($c));
    isnt(primes($other, 'another one'), $id, 'another one: another id');
    $other->event();

    my $task = $c->create('slow');
    my $work = $any->claim_id('slow', $task);
    $any->held('progress', $work, message => 'm1');
    is($other->message()->{params}{statusMessage}, 'm1', 'a message');
    $get->close();
    $other->close();

    # received on no stream, as far as the client says
    $other = resume($c, $id);
    isnt(primes($other, 'resumed'), $id, 'resumed: a new id');
    is($other->message()->{params}{statusMessage}, 'm1',
       'resumed: the message is sent again');
    $other->close();
    $any->complete($work, '{}');
}

# Cut and resumed, in each worker process

for my $pid ($t->worker_pids()) {
    my $id = $calls++;
    my $name = "call $id";
    my ($stream, $work, $first) = open_call($ann, $id);
    $stream->close();

    progress($work, 2);
    my $get = resume($ann, $first, $t->connect_to($pid));
    my $again = primes($get, $name);
    isnt($again, $first, "$name: another id");
    my $event = $get->next_data();
    is($event->{json}{params}{progress}, 2, "$name: the latest progress");
    is($event->{json}{params}{progressToken}, "p$id", "$name: of its token");
    $get->close();

    # nothing that the client has
    $get = resume($ann, $event->{id});
    primes($get, "$name, again");
    progress($work, 3);
    is($get->next_data()->{json}{params}{progress}, 3,
       "$name: only new progress");
    $any->complete($work, '{"content":[]}');
    answers($ann, $get, $id, $name);
    ok(wait_for { $ann->status($work->{taskId}) eq 'task_not_found' },
       "$name: the task is removed");

    # an error response, with the id of the request
    $get = resume($ann, $first);
    primes($get, "$name, removed");
    $event = $get->next_data();
    is($event->{json}{id}, $id, "$name, removed: a response");
    is($event->{json}{error}{code}, -32602, "$name, removed: an error");
    is($event->{json}{error}{data}{reason}, 'task_not_found',
       "$name, removed: its reason");
    gone($ann, $event->{id}, "$name, removed");
}

# completed while nobody was there; a string as request id

{
    my $stream = $ann->stream($ann->legacy_bytes('tools/call',
                     { name => 'slow', _meta => { progressToken => 7 } },
                     id => $x60));
    my $work = $any->claim('slow', leaseMs => 600000);
    progress($work, 1);
    my $first = primes($stream, 'a string');
    $stream->close();
    $any->complete($work, '{"content":[1]}');
    is($ann->status($work->{taskId}), 'completed', 'a string: completed');
    my $get = resume($ann, $first);
    primes($get, 'a string, resumed');
    answers($ann, $get, 'x' x 60, 'a string, resumed');
}

# A stream that is resumed while nginx has not noticed the loss of the first

{
    my ($stream, $work, undef, $last) = open_call($ann, 200);
    my $get = resume($ann, $last);
    primes($get, 'two streams');
    progress($work, 2);
    is($_->message()->{params}{progress}, 2, 'two streams: both wait')
        for $stream, $get;
    $any->complete($work, '{}');
    answers($ann, $get, 200, 'two streams: the resumed one');
    is($stream->next_data()->{json}{id}, 200, 'two streams: the first one');
}

# tasks/result, with a question

{
    my $id = $ann->create('slow');
    my $work = $any->claim_id('slow', $id);
    my $ask = { color => { method => 'elicitation/create', params => {
                    message => 'Which?', requestedSchema => {
                        type => 'object', properties => {} } } } };

    my $stream = $ann->stream($ann->legacy_bytes('tasks/result',
                                  { taskId => $id }, id => 300));
    $any->held('ask', $work, inputRequests => $ask);
    my $first = primes($stream, 'tasks/result');
    my $question = $stream->next_data();
    is($question->{json}{method}, 'elicitation/create',
       'tasks/result: a question');
    is($question->{id}, undef, 'tasks/result: a question has no id');
    $stream->close();

    my $get = resume($ann, $first);
    primes($get, 'tasks/result, resumed');
    my $again = $get->message();
    is($again->{method}, 'elicitation/create',
       'tasks/result, resumed: the question is asked again');
    is($ann->post({ jsonrpc => '2.0', id => $again->{id},
                    result => { action => 'decline' } })->{status}, 202,
       'tasks/result, resumed: it is answered');
    ok(wait_for { my $got = $any->held('answers', $work);
                  $got->{inputResponses}{color} }, 'the worker has the answer');
    $any->complete($work, '{"content":[]}');
    my $event = $get->next_data();
    is($event->{json}{id}, 300, 'tasks/result, resumed: the response');
    is($event->{json}{result}{_meta}{'io.modelcontextprotocol/related-task'}
           {taskId}, $id, 'tasks/result, resumed: with the related task');
    gone($ann, $event->{id}, 'tasks/result, resumed');
    is($ann->status($id), 'completed', 'tasks/result: the task is kept');
}

# Ids of others, and none

{
    my ($stream, $work, $first) = open_call($ann, 400);
    my $other = $any->user('ann')->in_session();

    refused($bob, $first, 'another owner');
    refused($other, $first, 'another session of the owner');
    refused($ann, $first =~ s/(.)\z/$1 eq '0' ? '1' : '0'/er, 'changed');
    refused($ann, substr($first, 0, -2), 'too short');
    refused($ann, $first . '31', 'too long');
    refused($ann, $first . '3', 'half a byte');
    refused($ann, 'r-', 'empty');
    refused($ann, 'r-' . 'zz' x 60, 'not hexadecimal');
    refused($ann, 'r-' . '00' x 2000, 'much too long');

    for my $id ('r', 'x-1', '12345678-99', '"', 'a b') {
        my $get = $other->stream(get_bytes($other, $id));
        primes($get, "$id opens the session stream");
        $get->close();
    }

    is($any->user('ann')->say_bytes(get_bytes($any->user('ann'), $first))
           ->{status}, 400, 'no session');

    $any->complete($work, '{}');
    answers($ann, $stream, 400, 'not affected');
}

# Too many requests wait: the response says so

{
    my $one = $ann->as(uri => '/one');
    my ($stream, $work, undef, $last) = open_call($ann, 500);
    my $get = resume($one, $last);
    primes($get, 'one waiter');
    progress($work, 2);
    is($get->message()->{params}{progress}, 2, 'one waiter: it waits');
    my $more = resume($one, $last);
    my $event = $more->next_data();
    is($event->{json}{id}, 500, 'one more waiter: a response');
    is($event->{json}{error}{data}{reason}, 'limit_waiters',
       'one more waiter: an error');
    $any->complete($work, '{}');
    answers($ann, $get, 500, 'one waiter');
}

# A call that its client has cancelled: the last event is empty

{
    my ($stream, $work) = open_call($ann, 600);
    is($ann->post({ jsonrpc => '2.0', method => 'notifications/cancelled',
                    params => { requestId => 600 } })->{status}, 202,
       'cancelled');
    my $last = primes($stream, 'cancelled');
    is($stream->event(), undef, 'cancelled: no response');
    ok($stream->{whole}, 'cancelled: the stream ends');
    gone($ann, $last, 'cancelled');
}

# A reload: "it SHOULD send an SSE event with a standard retry field"

{
    my ($stream, $work, undef, $last) = open_call($ann, 700);
    my $quiet = $ann->stream($ann->legacy_bytes('tools/call',
                                 { name => 'slow' }, id => 701));
    my $idle = $any->claim('slow', leaseMs => 600000);
    my $get = resume($ann, $last);
    primes($get, 'before the reload');
    my $plain = $any->user('ann')->stream($any->user('ann')->legacy_bytes(
                    'tools/call', { name => 'slow' }, id => 702));
    my $old = $any->claim('slow', leaseMs => 600000);

    ok($t->reload_all(), 'a reload');

    ok($stream->event()->{retry}, 'an open stream: retry');
    is($stream->event(), undef, 'an open stream: ends without a response');
    ok($stream->{whole}, 'an open stream: properly');
    ok($get->event()->{retry}, 'a resumed stream: retry');

    my $second = primes($quiet, 'no stream so far');
    ok($quiet->event()->{retry}, 'no stream so far: retry');
    ok(!defined $quiet->event() && $quiet->{whole}, 'no stream so far: ends');

    is(MCPClient::answer($plain->{s})->{json}{error}{data}{reason},
       'result_not_ready', 'no session: an error as before');

    $get = resume($ann, $last);
    primes($get, 'after the reload');
    $any->complete($_, '{}') for $work, $idle, $old;
    answers($ann, $get, 700, 'after the reload');

    $get = resume($ann, $second);
    primes($get, 'the other one');
    answers($ann, $get, 701, 'the other one');
}

ok($t->stop(), 'nginx stops');
is($t->faults(), '', 'nothing in the log that should not be');

done_testing();
