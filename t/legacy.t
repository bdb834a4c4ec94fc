# Tools and tasks in the legacy era, from the call to the end.

use warnings;
use strict;

use FindBin;
use lib "$FindBin::Bin/lib";

use JSON::PP;
use Test::More;
use Time::HiRes qw/ sleep time /;

use MCPClient;
use MCPPattern qw/ result_like task_pattern /;
use MCPTasks qw/ wait_for workers /;

my $t = MCPTasks->new(
    workers => workers(),
    tools => [['slow', ''],
              ['must', '"taskSupport":"required"'],
              ['never', '"taskSupport":"forbidden"'],
              ['short', '"ttl":"90s"']],
    http => 'mcp_tasks_zone zone=z:2m; mcp_tasks_tools tools.json;',
    server => <<'END');
    mcp_tasks_owner $http_x_user;
    location /mcp { mcp_tasks zone=z; mcp_tasks_ttl 1h max=2h; }
    location /quick { mcp_tasks zone=z; mcp_tasks_keepalive 200ms; }
    location /endless { mcp_tasks zone=z; mcp_tasks_ttl off max=off; }
    location /worker { mcp_tasks_worker zone=z; }
END

my $c = MCPClient->new($t);
my $ann = $c->as(headers => { 'X-User' => 'ann' });


# a task as it has to be, byte for byte
sub task_like {
    my ($status, $ttl, $message) = @_;
    return task_pattern('', $status, $ttl, $message);
}


# an error, with our reason if it has one
sub refused {
    my ($res, $code, $reason, $name) = @_;
    is($res->{json}{error}{code}, $code, "$name: code") or diag($res->{body});
    is($res->{json}{error}{data}{reason}, $reason, "$name: reason");
    is($res->{status}, 200, "$name: status");
}


sub related {
    my ($id) = @_;
    return "\"io.modelcontextprotocol/related-task\":{\"taskId\":\"$id\"}";
}


# A task, from its creation to its result

my $res = $c->legacy('tools/call', '{"name":"slow","arguments":'
                     . '{"n":12345678901234567890,"x":1.0,"k":"\u00e9"},'
                     . '"task":{"ttl":60000},"_meta":{"a/b":[1]}}');
is($res->{status}, 200, 'tools/call with a task');
is($res->{header}{'content-type'}, 'application/json', 'no stream');
my $created = task_like('working', 60000);
like($res->{body}, result_like(qr/\{"task":\{$created\}\}/),
     'CreateTaskResult, and nothing more');

my $id = $res->{json}{result}{task}{taskId};
my $working = task_like('working', 60000);
$res = $c->legacy('tasks/get', { taskId => $id });
like($res->{body}, result_like(qr/\{$working\}/), 'tasks/get: the Task');

is($c->legacy('tasks/get', '{"taskId":"' . uc($id) . '"}')->{json}{error}
   && 'error', 'error', 'an id is what it was told to be');

my $claimed = $c->say_bytes(MCPClient::bytes('/worker', MCPClient::rpc(
                  'worker/claim', { tools => ['slow'], leaseMs => 60000 })));
like($claimed->{body}, qr/"tool":"slow","arguments":\{"n":12345678901234567890,
                          "x":1\.0,"k":"\\u00e9"\},"_meta":\{"a\/b":\[1\]\}/x,
     'the worker gets the bytes that the client sent');
my $work = $claimed->{json}{result}{tasks}[0];
is($work->{taskId}, $id, 'of that task');
is($work->{attempt}, 1, 'in the first attempt');

# tasks/result waits, on several workers of nginx at once
my @waiting = map {
    my $s = $t->connect();
    MCPTasks::send_raw($s, $c->legacy_bytes('tasks/result', { taskId => $id },
                                            id => "\"w$_\""));
    $s;
} 1 .. 6;

sleep(0.3);
is(scalar(my @early = IO::Select->new(@waiting)->can_read(0)), 0,
   'tasks/result waits');

is_deeply($c->complete($work, '{"content":[],"x":0.10,"_meta":{"m":1}}'),
          { phase => 'completed', cancelled => JSON::PP::false,
            drain => JSON::PP::false }, 'the work is done');

for my $i (1 .. 6) {
    $res = MCPTasks::read_response($waiting[$i - 1]);
    is($res->{body}, "{\"jsonrpc\":\"2.0\",\"id\":\"w$i\",\"result\":"
                     . '{"content":[],"x":0.10,"_meta":{' . related($id)
                     . ',"m":1}}}', 'the result, with the related task');
}

like($c->legacy('tasks/get', { taskId => $id })->{body},
     result_like('\{' . task_like('completed', 60000) . '\}'), 'completed');

# where _meta stands, and whether there is one
for my $case (['{}', '{"_meta":{%}}'],
              ['{"content":[]}', '{"_meta":{%},"content":[]}'],
              [' { "content" : [ ] } ', '{"_meta":{%}, "content" : [ ] }'],
              ['{"_meta":{}}', '{"_meta":{%}}'],
              ['{"_meta":{ },"a":1}', '{"_meta":{% },"a":1}'],
              ['{"a":{"_meta":{"x":1}}}',
               '{"_meta":{%},"a":{"_meta":{"x":1}}}'],
              ['{"\u005fmeta":{"x":1}}', '{"\u005fmeta":{%,"x":1}}'])
{
    my ($result, $want) = @$case;
    my $id = $c->create('slow');
    $c->complete($c->claim('slow'), $result);
    $want =~ s/%/related($id)/e;
    is($c->legacy('tasks/result', { taskId => $id })->{body},
       "{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":$want}", "related: $result");
}

# errors, of the tool and of the protocol
$id = $c->create('slow');
$c->complete($c->claim('slow'), '{"content":[],"isError":true}');
is($c->status($id), 'failed', 'isError: the task failed');
is($c->legacy('tasks/result', { taskId => $id })->{body},
   '{"jsonrpc":"2.0","id":1,"result":{"_meta":{' . related($id)
   . '},"content":[],"isError":true}}', 'and the result is that of the tool');

$id = $c->create('slow');
$work = $c->claim('slow');
$c->worker('worker/fail', "{\"taskId\":\"$id\",\"lease\":\"$work->{lease}\","
           . '"error":{"code":-32050,"message":"\u00e9","data":1.0}}');
is($c->status($id), 'failed', 'an error: the task failed');
is($c->legacy('tasks/result', { taskId => $id })->{body},
   '{"jsonrpc":"2.0","id":1,"error":{"code":-32050,"message":"\u00e9",'
   . '"data":1.0}}', 'and the result is that error');


# Parameters of the call

for my $case (['{"task":{}}', 'no name'], ['{"name":7,"task":{}}', 'a number'],
              ['{"name":"nix","task":{}}', 'an unknown tool'],
              ['{"name":"Slow","task":{}}', 'case matters'],
              ['{"name":"slow","task":[]}', 'task is an array'],
              ['{"name":"slow","task":true}', 'task is true'],
              ['{"name":"slow","task":null}', 'task is null'],
              ['{"name":"slow","task":{},"arguments":[]}', 'arguments: array'],
              ['{"name":"slow","task":{},"arguments":"x"}', 'arguments: text'],
              ['{"name":"slow","task":{},"arguments":null}', 'arguments: null'],
              ['{"name":"slow","name":"slow","task":{}}', 'a name twice'],
              ['{"name":"slow","task":{"ttl":1,"ttl":2}}', 'a ttl twice'],
              ['{"name":"slow","task":{},"_meta":{"progressToken":1.5}}',
               'a token that is no integer'],
              ['{"name":"slow","task":{},"_meta":{"progressToken":{}}}',
               'a token that is an object'],
              ['{"name":"slow","task":{},"_meta":{"progressToken":"'
               . 'x' x 60 . '"}}', 'a token that is too long'],
              map { ["{\"name\":\"slow\",\"task\":{\"ttl\":$_}}", "ttl $_"] }
                  '0', '-1', '1.5', '"1"', 'true', '{}', '1e400',
                  '99999999999999999999')
{
    refused($c->legacy('tools/call', $case->[0]), -32602, undef, $case->[1]);
}

for my $case ([{}, 3600000], [{ ttl => undef }, 7200000], [{ ttl => 1 }, 1],
              [{ ttl => 7200000 }, 7200000], [{ ttl => 7200001 }, 7200000],
              [{ ttl => 9007199254740991 }, 7200000])
{
    my ($task, $ttl) = @$case;
    is($c->legacy('tools/call', { name => 'slow', task => $task })
       ->{json}{result}{task}{ttl}, $ttl, 'ttl: ' . MCPClient::encode($task));
}

is($c->legacy('tools/call', { name => 'short', task => {} })
   ->{json}{result}{task}{ttl}, 90000, 'the ttl of the tool');

my $endless = $c->as(uri => '/endless');
like($endless->legacy('tools/call', { name => 'slow', task => {} })->{body},
     qr/"ttl":null/, 'no ttl');
like($endless->legacy('tools/call', { name => 'slow', task => { ttl => undef }
                                    })->{body}, qr/"ttl":null/, 'none asked');
is($endless->legacy('tools/call', { name => 'slow', task => { ttl => 5000 } })
   ->{json}{result}{task}{ttl}, 5000, 'one asked for');

# what is left in the queue would be claimed below
while (@{ $c->worker('worker/claim', { tools => ['slow', 'short'], max => 32 })
          ->{tasks} }) { }

refused($c->legacy('tools/call', { name => 'must' }), -32601, undef,
        'a tool that needs a task');
refused($c->legacy('tools/call', { name => 'never', task => {} }), -32601,
        undef, 'a tool that cannot be a task');
ok($c->create('must'), 'a task that is needed');
ok($c->claim('must'), 'and claimed');


# Other revisions: the same without tasks

for my $version ('2025-06-18', '2025-03-26') {
    my %h = (headers => { 'MCP-Protocol-Version' => $version });

    refused($c->legacy("tasks/$_", { taskId => $id }, %h), -32601, undef,
            "$version: tasks/$_")
        for qw/ get result list cancel update create send progress /;

    refused($c->legacy('tools/call', { name => 'must', task => {} }, %h),
            -32601, undef, "$version: a tool that needs a task");

    my $s = $t->connect();
    MCPTasks::send_raw($s, $c->legacy_bytes('tools/call',
                           { name => 'slow', task => {} }, %h));
    $c->complete($c->claim('slow'), '{"content":[]}');
    is(MCPTasks::read_response($s)->{body},
       '{"jsonrpc":"2.0","id":1,"result":{"content":[]}}',
       "$version: a plain call, whatever task says");

    my $init = $c->legacy('initialize',
                          { protocolVersion => $version, capabilities => {},
                            clientInfo => { name => 'x', version => '1' } });
    is_deeply($init->{json}{result}{capabilities}, { tools => {} },
              "$version: capabilities");
}

sub capabilities {
    my ($who) = @_;
    return $who->legacy('initialize',
                        { protocolVersion => '2025-11-25', capabilities => {},
                          clientInfo => { name => 'x', version => '1' } })
           ->{json}{result}{capabilities};
}

my %tasks = (cancel => {}, requests => { tools => { call => {} } });
is_deeply(capabilities($c), { tools => {}, tasks => \%tasks },
          'nobody can list who is not known');
is_deeply(capabilities($ann), { tools => {}, tasks => { %tasks, list => {} } },
          'who is known can list');


# A plain call

sub parked {
    my ($who, $bytes) = @_;
    return $who->stream($bytes);
}

my $s = $t->connect();
MCPTasks::send_raw($s, $c->legacy_bytes('tools/call',
                       { name => 'never', arguments => { a => 1 } },
                       id => '"p"'));
$work = $c->claim('never');
is_deeply($work->{arguments}, { a => 1 }, 'a plain call arrives');
is(scalar(IO::Select->new($s)->can_read(0.3)), undef, 'it waits');
$c->complete($work, '{"content":[{"type":"text","text":"\u00e9"}]}');
$res = MCPTasks::read_response($s);
is($res->{status}, 200, 'and is answered');
is($res->{header}{'content-type'}, 'application/json', 'without a stream');
is($res->{body}, '{"jsonrpc":"2.0","id":"p","result":{"content":'
                 . '[{"type":"text","text":"\u00e9"}]}}',
   'with the bytes of the worker, and no related task');
ok(wait_for(sub { $c->status($work->{taskId}) eq 'task_not_found' }),
   'the task was nobody\'s to know');

$s = $t->connect();
MCPTasks::send_raw($s, $c->legacy_bytes('tools/call', { name => 'slow' }));
$c->held('fail', $c->claim('slow'),
         error => { code => 7, message => 'no' });
is(MCPTasks::read_response($s)->{body},
   '{"jsonrpc":"2.0","id":1,"error":{"code":7,"message":"no"}}',
   'an error of a plain call');

# the same connection serves on
MCPTasks::send_raw($s, $c->legacy_bytes('ping'));
is(MCPTasks::read_response($s)->{body},
   '{"jsonrpc":"2.0","id":1,"result":{}}', 'the connection goes on');

# going away does not cancel
$s = $t->connect();
MCPTasks::send_raw($s, $c->legacy_bytes('tools/call', { name => 'slow' }));
$work = $c->claim('slow');
close($s);
sleep(0.5);
is($c->held('heartbeat', $work)->{phase}, 'running',
   'a client that goes away does not cancel');
is($c->complete($work, '{}')->{phase}, 'completed', 'the work can end');

$id = $c->create('slow');
$s = $t->connect();
MCPTasks::send_raw($s, $c->legacy_bytes('tasks/result', { taskId => $id }));
sleep(0.2);
close($s);
$work = $c->claim('slow');
is($work->{taskId}, $id, 'who does not wait any more leaves the task as it is');
$c->complete($work, '{}');
is($c->status($id), 'completed', 'and it ends');


# Progress

for my $token ('"t\u00f6"', '7') {
    my $stream = parked($c, $c->legacy_bytes('tools/call',
                        "{\"name\":\"slow\",\"_meta\":{\"progressToken\":"
                        . "$token}}"));
    $work = $c->claim('slow');
    $c->held('progress', $work, progress => 0.25);
    my $got = $stream->event(10);
    is($got->{data}, '{"jsonrpc":"2.0","method":"notifications/progress",'
                     . "\"params\":{\"progressToken\":$token,"
                     . '"progress":0.25}}', "progress for the token $token");
    is($got->{event}, undef, 'as a message');
    like($stream->head(), qr{^content-type: text/event-stream}mi, 'a stream');
    like($stream->head(), qr{^x-accel-buffering: no}mi, 'not to be buffered');
    like($stream->head(), qr{^cache-control: no-store}mi, 'not to be stored');

    $c->held('progress', $work, progress => 3, total => 10,
             message => "half\nway");
    is($stream->event(10)->{data},
       '{"jsonrpc":"2.0","method":"notifications/progress","params":'
       . "{\"progressToken\":$token,\"progress\":3,\"total\":10,"
       . '"message":"half\nway"}}', 'with a total and a message');

    is($c->held('progress', $work, progress => 2, total => 10)
       ->{error}{data}{reason}, 'progress_backwards', 'not backwards');

    $c->complete($work, "{\"content\":[],\n\"a\":\r\n1}");
    $got = $stream->event(10);
    is_deeply($got->{json}, { jsonrpc => '2.0', id => 1,
                              result => { content => [], a => 1 } },
              'the answer comes last');
    is($stream->event(10), undef, 'and then nothing');
    ok($stream->{whole} && !$stream->{cut}, 'the stream has its end');
}


# Keep-alive comments

my $quick = $c->as(uri => '/quick');
my $stream = parked($quick, $quick->legacy_bytes('tools/call',
                                                 { name => 'slow' }));
$work = $c->claim('slow');
ok(defined $stream->event(10)->{comment}, "comment $_") for 1 .. 3;
$c->complete($work, '{}');
my $last;
1 while ($last = $stream->event(10)) && !$last->{data};
is($last->{data}, '{"jsonrpc":"2.0","id":1,"result":{}}', 'then the answer');

$id = $c->create('slow');
$stream = parked($quick, $quick->legacy_bytes('tasks/result',
                                              { taskId => $id }));
ok(defined $stream->event(10)->{comment}, 'a comment from tasks/result');
$c->complete($c->claim('slow'), '{}');
is_deeply($stream->message(10)->{result}{_meta},
          MCPClient::decode('{' . related($id) . '}'), 'then the result');

# a stream whose task ends while nobody is looking
$id = $c->legacy('tools/call', { name => 'slow', task => { ttl => 900 } })
      ->{json}{result}{task}{taskId};
$stream = parked($quick, $quick->legacy_bytes('tasks/result',
                                              { taskId => $id }));
ok(defined $stream->event(10)->{comment}, 'a task that will expire');
is(($stream->message(15) || {})->{error}{code}, -32602,
   'an expired task ends the stream with an error');
is($stream->event(5), undef, 'and nothing after it');
ok($stream->{whole}, 'as a stream ends');


# Questions

my %form = (message => 'Which?', requestedSchema => { type => 'object',
                                                      properties => {} });


sub ask {
    my ($work, %questions) = @_;
    return $c->held('ask', $work, inputRequests => { map {
        $_ => { method => 'elicitation/create', params => $questions{$_} }
    } keys %questions });
}

$id = $c->create('slow');
$work = $c->claim('slow', leaseMs => 60000);
my $asked = $c->in_session();
$stream = parked($asked,
                 $asked->legacy_bytes('tasks/result', { taskId => $id }));
is(ask($work, 'q1' => \%form)->{phase}, 'input_required', 'the worker asks');
is($c->status($id), 'input_required', 'the client sees that');

my $question = $stream->message(10);
is($question->{method}, 'elicitation/create', 'the question on the stream');
is_deeply($question->{params},
          { %form, _meta => MCPClient::decode('{' . related($id) . '}') },
          'with the related task');
ok(defined $question->{id} && !ref $question->{id}, 'and an id');

# others have nothing to say to it
is($ann->post({ jsonrpc => '2.0', id => $question->{id},
                result => { action => 'decline' } })->{status}, 202,
   'the answer of a stranger is taken');
is($c->status($id), 'input_required', 'and of no consequence');

for my $bad ('{"action":"decline","action":"accept"}',
             '{"action":"accept","content":{"a":1,"\u0061":2}}')
{
    $res = $c->post("{\"jsonrpc\":\"2.0\",\"id\":\"$question->{id}\","
                    . "\"result\":$bad}");
    is($res->{status}, 400, "refused: $bad");
    is($res->{json}{error}{message},
       'Invalid params: duplicate key in the answers', 'and why');
}

is($c->status($id), 'input_required', 'the question is still open');

$res = $c->post({ jsonrpc => '2.0', id => $question->{id},
                  result => { action => 'accept', content => { a => 1 } } });
is($res->{status}, 202, 'the answer is taken');
is($res->{body}, '', 'without a body');
is($c->status($id), 'working', 'the task goes on');
is_deeply($c->held('answers', $work)->{inputResponses},
          { q1 => { action => 'accept', content => { a => 1 } } },
          'the worker gets it');

is($c->post({ jsonrpc => '2.0', id => $question->{id},
              result => { action => 'cancel' } })->{status}, 202,
   'a second answer is taken');
is_deeply($c->held('answers', $work)->{inputResponses},
          { q1 => { action => 'accept', content => { a => 1 } } },
          'and of no consequence');

like(ask($work, 'q1' => \%form)->{error}{message}, qr/already answered/,
     'a key means one question for life');

ask($work, 'q2' => { %form, _meta => { x => 1 } }, 'q3' => \%form);
my %questions = map { $_->{id} => $_ } map { $stream->message(10) } 1, 2;
is(scalar(keys %questions), 2, 'two questions at once');
my ($q2) = grep { $questions{$_}{params}{_meta}{x} } keys %questions;
my ($q3) = grep { $_ ne $q2 } keys %questions;
is($questions{$q2}{params}{_meta}{'io.modelcontextprotocol/related-task'}
   {taskId}, $id, '_meta of the question is kept, and ours added');

$c->post({ jsonrpc => '2.0', id => $q3,
           error => { code => -1, message => 'refused' } });
is($c->status($id), 'input_required', 'one answer is missing');
$c->post({ jsonrpc => '2.0', id => $q2, result => {} });
is($c->status($id), 'working', 'all are answered');
is_deeply($c->held('answers', $work)->{inputResponses}{q3},
          { error => { code => -1, message => 'refused' } },
          'an error is an answer too');

# keys that can be written in many ways, and ids that come back as others
# would write them
my $key = "a/b\"\\\x{e9}\n";
my $text = MCPClient::encode({ taskId => $id, lease => $work->{lease} });
chop $text;
my $any = MCPClient::encode(MCPClient::form());
$text .= ',"inputRequests":{"a\/b\"\\\\\u00e9\n":' . $any . ',"plain":'
         . $any . '}}';
is($c->worker('worker/ask', $text)->{phase}, 'input_required',
   'a key with escapes');
%questions = map { $_->{id} => 1 } map { $stream->message(10) } 1, 2;
my ($odd) = grep { !/plain$/ } keys %questions;
my ($plain) = grep { /plain$/ } keys %questions;
like($odd || '', qr/\Q$key\E\z/, 'its id');

sub all_escaped {
    return join '', map { sprintf '\\u%04X', ord } split //, $_[0];
}

$c->post('{"jsonrpc":"2.0","id":"' . all_escaped($odd)
         . '","result":{"n":1}}');
$plain =~ s{/}{\\/}g;
$c->post("{\"jsonrpc\":\"2.0\",\"id\":\"$plain\",\"result\":{\"n\":2}}");
is($c->status($id), 'working', 'answers by ids that are written differently');
my $answers = $c->held('answers', $work)->{inputResponses};
is($answers->{$key}{n}, 1, 'each character escaped');
is($answers->{plain}{n}, 2, 'a slash escaped');

# answers to nothing
for my $id ('1', '"x"', '"' . 'x' x 60 . '"',
            '"00000000-0000-4000-8000-000000000000/q1"', "\"$id\"",
            "\"$id/\"", "\"$id/nix\"")
{
    is($c->post("{\"jsonrpc\":\"2.0\",\"id\":$id,\"result\":{}}")->{status},
       202, "an answer to nothing: $id");
}

# who comes late sees what is still open
ask($work, 'late' => \%form);
$stream->close();
$stream = parked($asked,
                 $asked->legacy_bytes('tasks/result', { taskId => $id }));
$question = $stream->message(10);
like($question->{id}, qr/late/, 'an open question for who comes late');
$c->post({ jsonrpc => '2.0', id => $question->{id}, result => {} });
$c->complete($work, '{"done":1}');
is($stream->message(10)->{result}{done}, 1, 'the result on the same stream');

# the same in a plain call
$stream = parked($asked,
                 $asked->legacy_bytes('tools/call', { name => 'never' }));
$work = $c->claim('never');
ask($work, 'q' => \%form);
$question = $stream->message(10);
is($question->{method}, 'elicitation/create', 'a question of a plain call');
is($c->post({ jsonrpc => '2.0', id => $question->{id},
              result => { action => 'accept' } })->{status}, 202, 'answered');
is_deeply($c->held('answers', $work, waitMs => 5000)->{inputResponses},
          { q => { action => 'accept' } }, 'the worker gets it');
$c->complete($work, '{"content":[]}');
is_deeply($stream->message(10)->{result}, { content => [] }, 'the answer');


# Cancelling

$id = $c->create('slow');
$work = $c->claim('slow');
$s = $t->connect();
MCPTasks::send_raw($s, $c->legacy_bytes('tasks/result', { taskId => $id }));
$res = $c->legacy('tasks/cancel', { taskId => $id });
like($res->{body}, result_like('\{' . task_like('cancelled', 3600000) . '\}'),
     'tasks/cancel: the Task, cancelled');
is(MCPTasks::read_response($s)->{body} =~ /task_cancelled/ ? 1 : 0, 1,
   'who waits learns that');
my $late = $c->complete($work, '{}');
is($late->{error}{data}{reason}, 'task_terminal', 'the worker is told');
is($late->{error}{data}{cancelled}, JSON::PP::true, 'why');
is($c->status($id), 'cancelled', 'it stays cancelled');
refused($c->legacy('tasks/cancel', { taskId => $id }), -32602,
        'task_terminal', 'a second time');

$id = $c->create('slow');
$res = $c->legacy('tasks/cancel', "{\"taskId\":\"$id\",\"reason\":"
                                  . '"\u00e9 \"why\""}');
like($res->{body}, result_like('\{' . task_like('cancelled', 3600000,
                                                '"\u00e9 \"why\""') . '\}'),
     'with a reason');
is($c->legacy('tasks/get', { taskId => $id })->{json}{result}{statusMessage},
   "\x{e9} \"why\"", 'which stays');

$id = $c->create('slow');
refused($c->legacy('tasks/cancel', { taskId => $id, reason => $_ }), -32602,
        undef, 'a reason that is none')
    for 7, [], 'x' x 1100;
is($c->status($id), 'working', 'nothing was cancelled');

for my $state ('completed', 'failed') {
    my $id = $c->create('slow');
    my $work;
    do { $work = $c->claim('slow') } until $work->{taskId} eq $id;
    $state eq 'completed' ? $c->complete($work, '{}')
        : $c->held('fail', $work, error => { code => 1, message => '' });
    refused($c->legacy('tasks/cancel', { taskId => $id }), -32602,
            'task_terminal', "cancelling what is $state");
    is($c->status($id), $state, 'changes nothing');
}

refused($c->legacy("tasks/$_", { taskId => 7 }), -32602, undef,
        "tasks/$_: an id that is no string")
    for qw/ get result cancel update /;
refused($c->legacy("tasks/$_"), -32602, undef, "tasks/$_: no id")
    for qw/ get result cancel update /;


# Listing

refused($c->legacy('tasks/list'), -32601, undef, 'tasks/list for nobody');

my $lister = $c->as(headers => { 'X-User' => 'lister' });
is_deeply($lister->legacy('tasks/list')->{json}{result}, { tasks => [] },
          'nothing to list');

my @ids = map { $lister->create($_ % 2 ? 'slow' : 'must') } 1 .. 9;


sub list {
    my ($params, $who) = @_;
    my $res = ($who || $lister)->legacy('tasks/list', $params);
    return $res->{json}{result}
           ? join ' ', map { $_->{taskId} } @{ $res->{json}{result}{tasks} }
           : $res->{body};
}

my $order = list({});
ok($order eq "@ids" || $order eq join(' ', reverse @ids),
   'all of them, in order');
my @order = split / /, $order;
my $listed = task_like('working', 3600000);
like($lister->legacy('tasks/list', { limit => 1 })->{body},
     result_like(qr/\{"tasks":\[\{$listed\}\],"nextCursor":"[^"]+"\}/),
     'a Task, and a cursor');

my ($cursor, @paged, $pages);
do {
    my $got = $lister->legacy('tasks/list', { limit => 2, defined $cursor
                                              ? (cursor => $cursor) : () })
              ->{json}{result};
    push @paged, map { $_->{taskId} } @{ $got->{tasks} };
    $cursor = $got->{nextCursor};
} while (defined $cursor && ++$pages < 20);
is("@paged", $order, 'in pages');

is(list({ tool => 'must' }), join(' ', grep {
       my $id = $_; grep { $ids[$_] eq $id } 1, 3, 5, 7 } @order),
   'of a tool');
is(list({ tool => 'nix' }), '', 'of no tool');
is(list({ status => 'working' }), $order, 'of a status');

my %by = map { $_->{taskId} => $_ }
         map { $c->claim('must') || () } 1 .. 4;
$work = $by{$ids[1]};
$c->complete($work, '{}');
$c->complete($by{$ids[3]}, '{"isError":true}');
$c->held('fail', $by{$ids[5]}, error => { code => 1, message => 'x' });
ask($by{$ids[7]}, q => \%form);
$lister->legacy('tasks/cancel', { taskId => $ids[0] });

is(list({ status => 'completed' }), $ids[1], 'completed');
is(list({ status => 'failed' }), join(' ', grep { $_ eq $ids[3]
                                                  || $_ eq $ids[5] } @order),
   'failed, by an error or as a tool says it');
is(list({ status => 'input_required' }), $ids[7], 'input_required');
is(list({ status => 'cancelled' }), $ids[0], 'cancelled');
is(list({ status => 'working', tool => 'must' }), '', 'both filters');
is(list({}, $ann), '', 'somebody else');

$cursor = $lister->legacy('tasks/list', { limit => 2 })->{json}{result}
          {nextCursor};
refused($ann->legacy('tasks/list', { cursor => $cursor }), -32602, undef,
        'a cursor of somebody else');

my $forged = $cursor;
substr($forged, 5, 1) =~ tr/0-9a-zA-Z/1-9a-zA-Z0/;

for my $bad ('""', '"x"', '7', 'null', '"' . '0' x 64 . '"', "\"$forged\"",
             "\"${cursor}0\"")
{
    refused($lister->legacy('tasks/list', "{\"cursor\":$bad}"), -32602, undef,
            "cursor $bad");
}

for my $bad ('{"limit":0}', '{"limit":101}', '{"limit":-1}', '{"limit":"5"}',
             '{"limit":1.5}', '{"status":"queued"}', '{"status":"running"}',
             '{"status":"free"}', '{"status":7}', '{"status":""}',
             '{"tool":7}', '{"limit":1,"limit":1}')
{
    refused($lister->legacy('tasks/list', $bad), -32602, undef, "list $bad");
}

is(scalar(split / /, list({ limit => 100 })), 9, 'the largest page');


# Ours: any action

while (@{ $c->worker('worker/claim', { tools => ['slow'], max => 32 })
          ->{tasks} }) { }

for my $method ('tasks/create', 'tasks/send') {
    my $res = $c->legacy($method, '{"action":"do it","params":{"n":1.0},'
                         . '"metadata":{"m":[1]},"ttl":5000,'
                         . '"progressToken":"p1"}');
    like($res->{body}, result_like('\{"task":\{' . task_like('working', 5000)
                                   . '\}\}'), "$method: a task");
    my $got = $c->say_bytes(MCPClient::bytes('/worker', MCPClient::rpc(
                  'worker/claim', { tools => ['do it'], waitMs => 5000 })));
    like($got->{body}, qr/"tool":"do[ ]it","arguments":\{"n":1\.0\},
                          "metadata":\{"m":\[1\]\}/x, "$method: the worker");
    $c->complete($got->{json}{result}{tasks}[0], '{}');

    for my $bad ('{}', '{"action":7}', '{"action":""}',
                 '{"action":"a","params":[]}', '{"action":"a","metadata":7}',
                 '{"action":"a","ttl":0}', '{"action":"a","ttl":"1"}',
                 '{"action":"a","progressToken":[]}',
                 '{"action":"a","action":"a"}',
                 '{"action":"' . 'x' x 1025 . '"}')
    {
        is($c->legacy($method, $bad)->{json}{error}{code}, -32602,
           "$method " . substr($bad, 0, 40));
    }
}

# what belongs to a task, and is changed by its owner
$id = $c->legacy('tasks/create', '{"action":"noted","metadata":'
                                 . '{"a":1.0,"b":{"c":2},"\u0064":3}}')
      ->{json}{result}{task}{taskId};


sub update {
    my ($params) = @_;
    return $c->legacy('tasks/update', "{\"taskId\":\"$id\",$params}")->{body};
}

is(update('"metadata":{"e":"x"}'),
   '{"jsonrpc":"2.0","id":1,"result":{"metadata":{"a":1.0,"b":{"c":2},'
   . '"\u0064":3,"e":"x"}}}', 'metadata: a member more');
is(update('"metadata":{"b":7,"d":null,"nix":null}'),
   '{"jsonrpc":"2.0","id":1,"result":{"metadata":{"a":1.0,"e":"x","b":7}}}',
   'metadata: one replaced, one removed');
is(update('"metadata":{}'),
   '{"jsonrpc":"2.0","id":1,"result":{"metadata":{"a":1.0,"e":"x","b":7}}}',
   'metadata: nothing changed');
like(update('"metadata":[]'), qr/"code":-32602/, 'metadata: no object');

for my $bad ('{"b":1,"b":2}', '{"b":null,"\u0062":2}', '{"x":{"y":1,"y":1}}') {
    is(update("\"metadata\":$bad"), '{"jsonrpc":"2.0","id":1,"error":'
       . '{"code":-32602,"message":"Invalid params: duplicate key in '
       . 'metadata"}}', "metadata: $bad");
    is($c->legacy('tasks/create', "{\"action\":\"a\",\"metadata\":$bad}")
       ->{json}{error}{message}, 'Invalid params: duplicate key in metadata',
       "tasks/create with metadata $bad");
}

like(update('"x":1'), qr/"code":-32602/, 'tasks/update with nothing');

# members are compared with each other, so there must not be too many
sub many { return '{' . join(',', map { "\"n$_\":1" } 1 .. $_[0]) . '}' }
my $before = update('"metadata":{}');

like(update('"metadata":' . many(65)), qr/-32602.*more than 64 members/,
     'metadata: too many members');
like(update('"metadata":' . many(62)), qr/-32602.*would become larger/,
     'metadata: too many together with those that are there');
like(update('"metadata":{"t":"' . 'x' x 66_000 . '"}'),
     qr/-32602.*larger than 65536/, 'metadata: too many bytes');
is(update('"metadata":{}'), $before, 'metadata: nothing has changed');
like($c->legacy('tasks/create', '{"action":"a","metadata":' . many(65) . '}')
     ->{body}, qr/-32602.*more than 64 members/, 'tasks/create: the same');

# many at once lose nothing
my @s = map { $t->connect() } 1 .. 16;
for my $i (0 .. $#s) {
    MCPTasks::send_raw($s[$i], join '', map {
        $c->legacy_bytes('tasks/update', "{\"taskId\":\"$id\",\"metadata\":"
                                         . "{\"k$i\":$_}}")
    } 1 .. 50);
}
my @bodies;
for my $s (@s) {
    push @bodies, map { my $r = MCPTasks::read_response($s);
                        $r ? $r->{body} : 'none' } 1 .. 50;
}
is(scalar(grep { !/"result"/ } @bodies), 0, 'updates at the same time')
    or diag(join "\n", grep { !/"result"/ } @bodies);
my $all = MCPClient::decode(update('"metadata":{}'));
is(scalar(grep { $all->{result}{metadata}{"k$_"} == 50 } 0 .. 15), 16,
   'none is lost');

# a question by who runs the task, over the endpoint
like(update('"status":"input_required","inputRequests":{"q":{"method":'
            . '"roots/list"}},"lease":"0000000000000001"'),
     qr/"code":-31011.*lease_lost/, 'asking without the lease');
$work = $c->claim('noted', leaseMs => 60000);
for my $bad ('"status":"input_required","lease":"%"',
             '"status":"working","lease":"%"', '"status":7,"lease":"%"',
             '"status":"input_required","lease":"%","inputRequests":{}',
             '"status":"input_required","lease":"%","inputRequests":'
             . '{"q":{"method":"m"}}')
{
    (my $params = $bad) =~ s/%/$work->{lease}/;
    like(update($params), qr/"code":-32602/, "asking wrongly: $bad");
}
is($c->status($id), 'working', 'nothing was asked');
my $asking = '"status":"input_required","inputRequests":{"q":{"method":'
             . "\"roots/list\"}},\"lease\":\"$work->{lease}\"";
is(update($asking), '{"jsonrpc":"2.0","id":1,"result":{}}', 'asking');
is($c->status($id), 'input_required', 'it waits');
is(update('"inputResponses":{"q":{"r":1}}'),
   '{"jsonrpc":"2.0","id":1,"result":{}}', 'and is answered');
is($c->status($id), 'working', 'it goes on');
like(update($asking), qr/"code":-32602.*already answered/,
     'not the same key again');
$c->complete($work, '{}');
like(update('"metadata":{"z":1}'), qr/task_terminal/, 'after the end');


# Ours: progress by its token

# strangers are not told from each other, so their tokens are no keys
$c->legacy('tasks/create', '{"action":"lone","progressToken":"lone"}');
$c->claim('lone', leaseMs => 60000);
refused($c->legacy('tasks/progress', '{"progressToken":"lone","progress":1}'),
        -32602, 'invalid_progress_token', 'a token without an owner');

my $bob = $c->as(headers => { 'X-User' => 'bob' });
$id = $bob->legacy('tasks/create',
                   '{"action":"step","progressToken":"\u0061b"}')
      ->{json}{result}{task}{taskId};
$work = $c->claim('step', leaseMs => 60000);


sub progress {
    my ($params, $who) = @_;
    return ($who || $bob)->legacy('tasks/progress', $params);
}

is(progress('{"progressToken":"ab","progress":0.5,"message":"m"}')->{body},
   '{"jsonrpc":"2.0","id":1,"result":{}}', 'progress by a token');
is($bob->legacy('tasks/get', { taskId => $id })->{json}{result}{statusMessage},
   'm', 'its message');
refused(progress('{"progressToken":"ab","progress":0.4}'), -32602,
        'progress_backwards', 'not backwards');
refused(progress('{"progressToken":"nix","progress":0.6}'), -32602,
        'invalid_progress_token', 'an unknown token');
refused(progress('{"progressToken":"ab","progress":0.6}', $ann), -32602,
        'invalid_progress_token', 'the token of somebody else');

for my $bad ('{"progress":0.6}', '{"progressToken":"ab"}',
             '{"progressToken":[],"progress":0.6}',
             '{"progressToken":"ab","progress":1.1}',
             '{"progressToken":"ab","progress":-0.1}',
             '{"progressToken":"ab","progress":"0.6"}',
             '{"progressToken":"ab","progress":6,"total":5}',
             '{"progressToken":"ab","progress":6,"total":"7"}',
             '{"progressToken":"ab","progress":0.6,"message":7}',
             '{"progressToken":"ab","progress":0.6,"progress":0.6}')
{
    refused(progress($bad), -32602, undef, "progress $bad");
}

is(progress('{"progressToken":"ab","progress":7,"total":7}')->{json}{result}
   && 'ok', 'ok', 'with a total');
$c->complete($work, '{}');
refused(progress('{"progressToken":"ab","progress":8,"total":8}'), -32602,
        'task_terminal', 'after the end');


# A reload: who waits is answered, and no old worker stays for their sake

while (@{ $c->worker('worker/claim', { tools => ['slow'], max => 32 })
          ->{tasks} }) { }

$id = $c->create('slow');
$work = $c->claim('slow', leaseMs => 60000);

@waiting = map {
    my $s = $t->connect();
    MCPTasks::send_raw($s, $_);
    $s;
} $c->legacy_bytes('tasks/result', { taskId => $id }),
  $c->legacy_bytes('tools/call', { name => 'never' }),
  MCPClient::bytes('/worker', MCPClient::rpc('worker/claim',
      { tools => ['nix'], waitMs => 60000 })),
  MCPClient::bytes('/worker', MCPClient::rpc('worker/answers',
      { taskId => $id, lease => $work->{lease}, waitMs => 60000 }));
$stream = parked($quick, $quick->legacy_bytes('tasks/result',
                                              { taskId => $id }));
ok(defined $stream->event(10)->{comment}, 'a stream that has begun');

my %old = map { $_ => 1 } $t->worker_pids();
$t->reload();

my @answers = map { my $r = MCPTasks::read_response($_);
                    MCPClient::decode($r ? $r->{body} : '{}') } @waiting;
is($answers[0]{error}{code}, -31012, 'tasks/result is answered');
is($answers[0]{error}{data}{reason}, 'result_not_ready', 'as not ready');
is($answers[1]{error}{code}, -31012, 'a plain call is answered');
is_deeply($answers[2]{result}, { tasks => [], cancelled => JSON::PP::false,
                                 drain => JSON::PP::true },
          'a worker gets nothing, and is told to drain');
is_deeply($answers[3]{result}{inputResponses}, {}, 'no answers are there yet');
is($stream->message(10)->{error}{code}, -31012, 'the stream is answered');
is($stream->event(5), undef, 'and ends');

ok(wait_for(sub { !grep { $old{$_} } $t->worker_pids() }, 10),
   'the old workers leave');
is($c->status($id), 'working', 'the task goes on');
$c->complete($work, '{"n":1}');
is($c->legacy('tasks/result', { taskId => $id })->{json}{result}{n}, 1,
   'and ends');

ok($t->stop(), 'nginx stops');
is($t->faults(), '', 'nothing bad in the log');

done_testing();
