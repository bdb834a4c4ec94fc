# Tools and tasks in the modern era, from the call to the end.

use warnings;
use strict;

use FindBin;
use lib "$FindBin::Bin/lib";

use JSON::PP;
use MIME::Base64 qw/ encode_base64 /;
use Test::More;
use Time::HiRes qw/ sleep time /;

use MCPClient;
use MCPPattern qw/ $server result_like task_pattern /;
use MCPTasks qw/ wait_for workers /;

my $t = MCPTasks->new(
    workers => workers(),
    tools => [['slow', ''],
              ['must', '"taskSupport":"required"'],
              ['never', '"taskSupport":"forbidden"'],
              ['after', '"after":"1500ms"'],
              ['later', '"after":100'],
              ['\u00e9t\u00e9', '']],
    http => 'mcp_tasks_zone zone=z:2m; mcp_tasks_tools tools.json;',
    server => <<'END');
    mcp_tasks_owner $http_x_user;
    location /mcp { mcp_tasks zone=z; }
    location /endless { mcp_tasks zone=z; mcp_tasks_ttl off max=off; }
    location /quick { mcp_tasks zone=z; mcp_tasks_keepalive 200ms; }
    location /worker { mcp_tasks_worker zone=z; }
END

my $tasks = 'io.modelcontextprotocol/tasks';
my $ours = 'io.github.nginx-mcp-tasks/extended';

my $c = MCPClient->new($t);
my $plain = $c->as(extensions => [], can => {});

my $missing = '"error":{"code":-32021,"message":"Missing required client '
              . 'capability","data":{"requiredCapabilities":{"extensions":'
              . '{"io.modelcontextprotocol/tasks":{}}}}}';


sub task_like {
    my ($status, $ttl, $message) = @_;
    $ttl = 86400000 unless defined $ttl;
    return task_pattern('Ms', $status, $ttl, $message);
}


sub got {
    my ($id, $more, $status, $message) = @_;
    return result_like('\{"resultType":"complete",' . "\Q$server\E,"
                       . task_like($status, undef, $message)
                       . (defined $more ? quotemeta $more : '') . '\}');
}


sub created_like {
    my ($task) = @_;
    return result_like(qr/\{"resultType":"task",\Q$server\E,$task\}/);
}


sub get {
    my ($id, $who) = @_;
    return ($who || $c)->modern('tasks/get', { taskId => $id })->{body};
}


sub update {
    my ($id, $params, $who) = @_;
    return ($who || $c)->modern('tasks/update',
                                "{\"taskId\":\"$id\",$params}",
                                headers => { 'Mcp-Name' => $id })->{body};
}

# 2026-07-28, schema, serverInfo in ResultMetaObject: "Servers SHOULD include this
# field on every response unless specifically configured not to do so."
my $ack = '{"jsonrpc":"2.0","id":1,"result":{"resultType":"complete",'
          . "$server}}";


# The server decides

my $res = $c->modern('tools/call', { name => 'slow', arguments => { a => 1 } });
is($res->{status}, 200, 'tools/call');
my $created = task_like('working');
like($res->{body}, created_like($created),
     'a task: flat, and nothing more');
my $id = $res->{json}{result}{taskId};
like(get($id), got($id, undef, 'working'), 'tasks/get while it works');

for my $task ('{}', '{"ttl":5}', '"x"', 'null', '[]') {
    like($c->modern('tools/call', "{\"name\":\"slow\",\"task\":$task}",
                    headers => { 'Mcp-Name' => 'slow' })->{body},
         created_like($created),
         "task is ignored: $task");
}

like($c->as(uri => '/endless')->modern('tools/call', { name => 'slow' })
     ->{body}, qr/"ttlMs":null,"pollIntervalMs":1000\}/, 'no ttl');

my $work = $c->claim('slow');
is($work->{taskId}, $id, 'the worker gets it');
is_deeply($work->{arguments}, { a => 1 }, 'with its arguments');
$c->held('progress', $work, progress => 0.5, message => 'half');
like(get($id), got($id, undef, 'working', '"half"'), 'a message');
$c->complete($work, '{"content":[],"n":1.0,"_meta":{"k":1}}');
like(get($id), got($id, ',"result":{"resultType":"complete",'
                        . '"content":[],"n":1.0,"_meta":{"k":1}}',
                   'completed', '"half"'),
     'the result inline, as it is but for its type');

while (@{ $c->worker('worker/claim', { tools => ['slow'], max => 32 })
          ->{tasks} }) { }

$id = $c->create_modern('slow');
$c->complete($c->claim('slow'), '{"isError":true}');
like(get($id), got($id, ',"result":{"resultType":"complete","isError":true}',
                   'completed', '"The tool returned an error"'),
     'isError: completed');

$id = $c->create_modern('slow');
$c->complete($c->claim('slow'), '{"resultType":"complete","content":[]}');
like(get($id), got($id, ',"result":{"resultType":"complete","content":[]}',
                   'completed'),
     'the type only once');

$id = $c->create_modern('slow');
$work = $c->claim('slow');
$c->worker('worker/fail', "{\"taskId\":\"$id\",\"lease\":\"$work->{lease}\","
           . '"error":{"code":-32050,"message":"\u00e9","data":1.0}}');
like(get($id), got($id, ',"error":{"code":-32050,"message":"\u00e9",'
                        . '"data":1.0}', 'failed', '"\u00e9"'),
     'an error inline');

$id = $c->create_modern('slow');
$c->modern('tasks/cancel', { taskId => $id });
like(get($id), got($id, undef, 'cancelled'), 'cancelled: no error, no result');


# What a client can do

for my $method (qw/ tasks\/get tasks\/update tasks\/cancel /) {
    for my $id ($id, '00000000-0000-4000-8000-000000000000') {
        $res = $plain->modern($method, { taskId => $id, inputResponses => {} });
        is($res->{status}, 400, "$method without the extension: status");
        is($res->{body}, "{\"jsonrpc\":\"2.0\",\"id\":1,$missing}",
           "$method without the extension");
    }
}

$res = $plain->modern('tools/call', { name => 'must' });
is($res->{status}, 400, 'a tool that needs a task: status');
is($res->{body}, "{\"jsonrpc\":\"2.0\",\"id\":1,$missing}",
   'a tool that needs a task');
like($c->modern('tools/call', { name => 'must' })->{body},
     qr/"resultType":"task"/, 'with the extension it is one');
$c->claim('must');

for my $declared ('{"extensions":{"io.modelcontextprotocol/tasks":true}}',
                  '{"extensions":{"io.modelcontextprotocol/tasks":null}}',
                  '{"extensions":["io.modelcontextprotocol/tasks"]}',
                  '{"io.modelcontextprotocol/tasks":{}}', '{"tasks":{}}')
{
    is($c->modern('tasks/get', { taskId => $id }, meta => {
           'io.modelcontextprotocol/clientCapabilities'
               => MCPClient::decode($declared) })->{json}{error}{code}, -32021,
       "does not declare it: $declared");
}


# Methods of the other era, and ours

my $both = $c->as(extensions => [$tasks, $ours],
                  headers => { 'X-User' => 'ann' });

for my $method (map { "tasks/$_" } qw/ list result create send progress nix /) {
    my %params = (taskId => $id, action => 'act', progressToken => 1,
                  progress => 1);
    $res = $c->modern($method, \%params);
    is($res->{status}, 404, "$method: status");
    is($res->{body}, '{"jsonrpc":"2.0","id":1,"error":{"code":-32601,'
                     . '"message":"Method not found"}}', $method);
}

is($both->modern('tasks/result', { taskId => $id })->{status}, 404,
   'tasks/result is not of this era');

$res = $both->modern('tasks/create', { action => 'act', params => { p => 1 },
                                       metadata => { m => 1 }, ttl => 60000 });
my $made = task_like('working', 60000);
like($res->{body}, created_like($made),
     'tasks/create');
my $first = $res->{json}{result}{taskId};
$res = $both->modern('tasks/send', { action => 'act', progressToken => 'tok' });
like($res->{body}, created_like($created),
     'tasks/send');
my $second = $res->{json}{result}{taskId};
$work = $c->claim('act');
is_deeply([$work->{taskId}, $work->{arguments}, $work->{metadata}],
          [$first, { p => 1 }, { m => 1 }], 'the worker');

$res = $both->modern('tasks/list', {});
like($res->{body}, result_like(qr/\{"resultType":"complete",\Q$server\E,
     "ttlMs":0,"cacheScope":"private","tasks":\[.*\]\}/x), 'tasks/list');
is(scalar(@{ $res->{json}{result}{tasks} }), 2, 'the tasks of the owner');
is($both->modern('tasks/list', { status => 'completed' })->{json}{result}
   {tasks}[0], undef, 'by status');
is($c->as(extensions => [$tasks, $ours])->modern('tasks/list', {})
   ->{json}{error}{code}, -32601, 'not for nobody');
is($both->as(extensions => [$tasks, 'org.nginx.mcp-tasks/extended'])
   ->modern('tasks/list', {})->{status}, 200, 'the name of 0.1.0 is accepted');
is($both->modern('tasks/list', { cursor => 'x' })->{json}{error}{code}, -32602,
   'a bad cursor');

$c->claim('act');
is($both->modern('tasks/progress', { progressToken => 'tok', progress => 1 })
   ->{body}, $ack, 'tasks/progress');
is(update($second, '"metadata":{"a":1}', $both),
   '{"jsonrpc":"2.0","id":1,"result":{"resultType":"complete",'
   . "$server,\"metadata\":{\"a\":1}}}", 'tasks/update with metadata');
like(update($second, '"metadata":{"a":2}',
            $c->as(headers => { 'X-User' => 'ann' })),
     qr/"code":-32602/, 'only with our extension');
$both->modern('tasks/cancel', { taskId => $second, reason => 'why' });
like(get($second, $both), qr/"status":"cancelled","statusMessage":"why"/,
     'a reason');
$c->as(headers => { 'X-User' => 'ann' })
  ->modern('tasks/cancel', { taskId => $first, reason => 'why' });
unlike(get($first, $both), qr/why/, 'a reason only with our extension');


# "after": quick work is answered directly

my $s = $t->connect();
my $begin = time();
MCPTasks::send_raw($s, $c->modern_bytes('tools/call', { name => 'after' }));
$work = $c->claim('after');
$c->complete($work, '{"content":[]}');
is(MCPTasks::read_response($s)->{body},
   '{"jsonrpc":"2.0","id":1,"result":{"resultType":"complete",'
   . "$server,\"content\":[]}}", 'quick: the result of the call');
ok(time() - $begin < 1.4, 'at once');
is($c->modern('tasks/get', { taskId => $work->{taskId} })->{json}{error}{code},
   -32602, 'no task remains');

$s = $t->connect();
MCPTasks::send_raw($s, $c->modern_bytes('tools/call', { name => 'after' }));
$c->held('fail', $c->claim('after'), error => { code => 3, message => 'x' });
is(MCPTasks::read_response($s)->{body},
   '{"jsonrpc":"2.0","id":1,"error":{"code":3,"message":"x"}}',
   'quick: the error of the call');

$begin = time();
$res = $c->modern('tools/call', { name => 'later' });
like($res->{body}, created_like($created),
     'slow: the task');
ok(time() - $begin > 0.09, 'after a while');
$work = $c->claim('later');
is($work->{taskId}, $res->{json}{result}{taskId}, 'the worker has it');
$c->complete($work, '{"resultType":"complete","a":1}');
like(get($work->{taskId}), qr/"result":\{"resultType":"complete","a":1\}\}\}\z/,
     'its result');

# a question hands the task out before its time
$begin = time();
$s = $t->connect();
MCPTasks::send_raw($s, $c->modern_bytes('tools/call', { name => 'after' }));
$work = $c->claim('after', leaseMs => 60000);
$c->held('ask', $work, inputRequests => { q => MCPClient::form() });
my $asked = MCPTasks::read_response($s)->{body};
like($asked, qr/"resultType":"task",\Q$server\E,"taskId":
                "$work->{taskId}","status":"input_required"/x,
     'a question hands out the task');
unlike($asked, qr/inputRequests/, 'and is not told there');
ok(time() - $begin < 1.4, 'at once');
$c->complete($work, '{}');


# Questions

$id = $c->create_modern('slow');
$work = $c->claim('slow', leaseMs => 60000);
my $requests = '{"a":{"method":"elicitation/create","params":{"x":1.0,'
               . '"message":"?", "requestedSchema":{"properties":{},"type":"object"}}},'
               . '"b\u00e9":{"method":"sampling/createMessage","params":{'
               . '"messages":[],"maxTokens":1e1}},'
               . '"c":{"method":"roots/list","params":{}}}';
$c->worker('worker/ask', "{\"taskId\":\"$id\",\"lease\":\"$work->{lease}\","
                         . "\"inputRequests\":$requests}");
like(get($id), got($id, ",\"inputRequests\":$requests", 'input_required'),
     'inputRequests inline, as they are');

is(update($id, '"inputResponses":{}'), $ack, 'no answers');
is(update($id, '"inputResponses":{"nix":{}}'), $ack, 'an unknown key');
like(get($id), got($id, ",\"inputRequests\":$requests", 'input_required'),
     'change nothing');

for my $bad ('{"a":{"r":1},"a":{"r":2}}', '{"a":{"r":1},"\u0061":{"r":2}}',
             '{"a":{"r":1,"r":2}}', '{"nix":1,"nix":1}')
{
    is(update($id, "\"inputResponses\":$bad"), '{"jsonrpc":"2.0","id":1,'
       . '"error":{"code":-32602,"message":"Invalid params: duplicate key '
       . 'in the answers"}}', "refused: $bad");
}

like(get($id), got($id, ",\"inputRequests\":$requests", 'input_required'),
     'none of them was taken');

is(update($id, '"inputResponses":{"a":{"r":1.0},"nix":{}}'), $ack, 'a part');
$requests =~ s/"a":\{.*?\}\}\},//;
like(get($id), got($id, ",\"inputRequests\":$requests", 'input_required'),
     'the rest stays open');
is(update($id, '"inputResponses":{"a":{"r":2}}'), $ack, 'answered before');
is(update($id, "\"inputResponses\":{\"b\x{c3}\x{a9}\":{\"r\":3}}"), $ack,
   'a key with other escapes');
is($c->get_modern($id)->{status}, 'input_required', 'one is still open');
is(update($id, '"inputResponses":{"\u0063":{"r":4}}'), $ack, 'the last');
like(get($id), got($id, undef, 'working'), 'it works again');
is_deeply($c->held('answers', $work)->{inputResponses},
          { a => { r => 1 }, "b\x{e9}" => { r => 3 }, c => { r => 4 } },
          'the worker gets them');
is(update($id, '"inputResponses":{"c":{"r":5}}'), $ack, 'nothing is asked');

for my $bad ('"x":1', '"inputResponses":[]', '"inputResponses":null',
             '"inputResponses":"a"')
{
    like(update($id, $bad), qr/"code":-32602/, "tasks/update with $bad");
}

$c->complete($work, '{}');
is(update($id, '"inputResponses":{"c":{}}'), $ack, 'after the end');


# Cancelling: always the same answer

for my $state ('working', 'input_required', 'completed', 'failed',
               'cancelled')
{
    my $id = $c->create_modern('slow');
    my $work = $c->claim('slow');
    $c->held('ask', $work, inputRequests => { q => MCPClient::form() })
        if $state eq 'input_required';
    $c->complete($work, '{}') if $state eq 'completed';
    $c->held('fail', $work, error => { code => 1, message => '' })
        if $state eq 'failed';
    $c->modern('tasks/cancel', { taskId => $id }) if $state eq 'cancelled';

    is($c->get_modern($id)->{status}, $state, "a task that is $state");
    $res = $c->modern('tasks/cancel', { taskId => $id });
    is($res->{body}, $ack, 'tasks/cancel');
    is($res->{status}, 200, 'and its status');
    is($c->get_modern($id)->{status},
       $state =~ /ed$/ && $state ne 'input_required' ? $state : 'cancelled',
       'and what becomes of it');
}


# Mcp-Name

my $mismatch = '{"jsonrpc":"2.0","id":1,"error":{"code":-32020,"message":'
               . '"Header mismatch: Mcp-Name is missing, duplicate, or '
               . 'different from name or taskId in params"}}';


sub named {
    my ($method, $params, $name) = @_;
    return $c->modern($method, $params, headers => { 'Mcp-Name' => $name });
}


sub base64 {
    return '=?base64?' . encode_base64($_[0], '') . '?=';
}

$id = $c->create_modern('slow');

for my $case (['tools/call', { name => 'slow' }, 'slow'],
              ['tasks/get', { taskId => $id }, $id],
              ['tasks/update', { taskId => $id, inputResponses => {} }, $id],
              ['tasks/cancel', { taskId => $id }, $id])
{
    my ($method, $params, $name) = @$case;

    for my $bad (undef, '', 'x', "${name}x", uc $name, [$name, $name],
                 base64("${name}x"), '=?base64?%%%?=', base64($name) . 'x',
                 '=?BASE64?' . encode_base64($name, '') . '?=')
    {
        next if defined $bad && $bad eq $name;
        $res = named($method, $params, $bad);
        is($res->{status}, 400, "$method: status");
        is($res->{body}, $mismatch, "$method, Mcp-Name "
                                    . (defined $bad ? $bad : 'missing'));
    }
}

is($c->get_modern($id)->{status}, 'working', 'none of them did anything');

ok(named('tasks/get', { taskId => $id }, base64($id))->{json}{result},
   'base64 of an id');
ok(named('tools/call', { name => 'slow' }, base64('slow'))->{json}{result},
   'base64 of a name');

my $ete = '{"name":"\u00e9t\u00e9"}';
ok($c->modern('tools/call', $ete, headers => { 'Mcp-Name' => base64(
       "\x{c3}\x{a9}t\x{c3}\x{a9}") })->{json}{result},
   'a name that is not ASCII, in base64');
is($c->modern('tools/call', $ete, headers => { 'Mcp-Name' => base64(
       "\x{e9}t\x{e9}") })->{body}, $mismatch, 'and in another encoding');
is($c->modern('tools/call', $ete)->{body}, $mismatch, 'and without');

is(named('tools/call', { name => 'nix' }, 'nix')->{json}{error}{code}, -32602,
   'an unknown tool');
is($c->modern('tools/call', '{"arguments":{}}')->{json}{error}{code}, -32602,
   'no name at all');
is($c->modern('tools/call', '{"name":"slow","arguments":[]}',
              headers => { 'Mcp-Name' => 'slow' })->{json}{error}{code}, -32602,
   'arguments that are none');


# A plain call

while (@{ $c->worker('worker/claim', { tools => ['slow'], max => 32 })
          ->{tasks} }) { }

for my $case ([$plain, 'slow'], [$c, 'never'], [$plain, 'never'],
              [$plain, 'after'])
{
    my ($who, $tool) = @$case;
    my $s = $t->connect();
    MCPTasks::send_raw($s, $who->modern_bytes('tools/call', { name => $tool }));
    my $work = $c->claim($tool);
    my @early = IO::Select->new($s)->can_read(0.2);
    is(scalar(@early), 0, "$tool: a plain call waits");
    $c->complete($work, '{"content":[],"_meta":{"k":1}}');
    is(MCPTasks::read_response($s)->{body},
       '{"jsonrpc":"2.0","id":1,"result":{"resultType":"complete",'
       . '"content":[],' . $server =~ s/\}\z/,"k":1}/r . '}}',
       'and is answered');
}

# serverInfo is added to a result, once; a worker's own stays
my $info = 'io.modelcontextprotocol/serverInfo';
my ($member) = $server =~ /\A"_meta":\{(.*)\}\z/;

for my $case (
    ['{}', "{\"resultType\":\"complete\",$server}"],
    ['{ }', "{\"resultType\":\"complete\",$server }"],
    ['{"a":1}', "{\"resultType\":\"complete\",$server,\"a\":1}"],
    ['{"resultType":"complete"}', "{$server,\"resultType\":\"complete\"}"],
    ['{"_meta": { }}', "{\"resultType\":\"complete\",\"_meta\": {$member }}"],
    ['{"a":1,"\u005fmeta":{"k":{}} }',
     "{\"resultType\":\"complete\",\"a\":1,"
     . "\"\\u005fmeta\":{$member,\"k\":{}} }"],
    ["{\"_meta\":{\"$info\":{\"name\":\"w\"}}}",
     "{\"resultType\":\"complete\",\"_meta\":{\"$info\":{\"name\":\"w\"}}}"],
    ["{\"_meta\":{\"$info\":1,\"k\":2,\"$info\":3},\"a\":1}",
     "{\"resultType\":\"complete\",\"_meta\":{$member,\"k\":2},\"a\":1}"],
    ['{"_meta":1,"a":2}', "{\"resultType\":\"complete\",$server,\"a\":2}"])
{
    my ($result, $shown) = @$case;
    my $s = $t->connect();
    MCPTasks::send_raw($s, $plain->modern_bytes('tools/call',
                                                { name => 'slow' }));
    $c->complete($c->claim('slow'), $result);
    is(MCPTasks::read_response($s)->{body},
       "{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":$shown}",
       "identified: $result");
}

my $stream = $plain->stream($plain->modern_bytes('tools/call',
                 { name => 'slow' }, meta => { progressToken => 'p' }));
$work = $c->claim('slow');
$c->held('progress', $work, progress => 1, total => 4);
is($stream->event(10)->{data},
   '{"jsonrpc":"2.0","method":"notifications/progress","params":'
   . '{"progressToken":"p","progress":1,"total":4}}', 'its progress');
$c->complete($work, '{}');
is($stream->event(10)->{data}, $ack, 'its end');
is($stream->event(10), undef, 'nothing after it');

my $quick = $plain->as(uri => '/quick');
$stream = $quick->stream($quick->modern_bytes('tools/call',
                                              { name => 'slow' }));
$work = $c->claim('slow');
ok(defined $stream->event(10)->{comment}, 'kept alive');
unlike($stream->head(), qr/^last-event-id/mi, 'not resumable');
$c->complete($work, '{}');
is($stream->event(10)->{data}, $ack, 'and answered');

# a question that the client cannot be asked
$s = $t->connect();
MCPTasks::send_raw($s, $plain->modern_bytes('tools/call', { name => 'slow' }));
$work = $c->claim('slow');
$c->held('ask', $work, inputRequests => { q => MCPClient::form() });
is(MCPTasks::read_response($s)->{body},
   '{"jsonrpc":"2.0","id":1,"error":{"code":-32021,"message":"Missing required '
   . 'client capability","data":{"requiredCapabilities":{"elicitation":'
   . '{"form":{}}}}}}', 'a question that it cannot answer');

# the answer does not wait for the cancellation
ok(scalar(wait_for {
    return $c->held('heartbeat', $work)->{error}{data}{cancelled};
}), 'ends the call');


# Going away

sub gone {
    my ($who, $tool, %opt) = @_;
    my $s = $t->connect();
    MCPTasks::send_raw($s, $who->modern_bytes('tools/call', { name => $tool },
                                              %opt));
    my $work = $c->claim($tool, leaseMs => 60000);
    close($s);
    return $work;
}


sub cancelled {
    my ($work) = @_;
    return wait_for {
        my $got = $c->held('heartbeat', $work);
        return $got->{error}{data}{cancelled} || $got->{cancelled};
    } 10;
}

ok(cancelled(gone($plain, 'slow')), 'closing a plain call cancels it');
ok(cancelled(gone($c, 'never')), 'also of who knows tasks');
ok(cancelled(gone($c, 'after')), 'also before the task was handed out');

# while its stream has begun
$stream = $quick->stream($quick->modern_bytes('tools/call',
                                              { name => 'slow' }));
$work = $c->claim('slow', leaseMs => 60000);
$stream->event(10);
$stream->close();
ok(cancelled($work), 'closing its stream cancels it');

# a queued call that nobody waits for any more is not handed to a worker
$s = $t->connect();
MCPTasks::send_raw($s, $plain->modern_bytes('tools/call', { name => 'slow' }));
sleep(0.2);
close($s);
sleep(0.5);
is_deeply($c->worker('worker/claim', { tools => ['slow'] })->{tasks}, [],
          'nor does any worker get it');

# a task that was handed out
$s = $t->connect();
MCPTasks::send_raw($s, $c->modern_bytes('tools/call', { name => 'later' }));
$id = MCPClient::decode(MCPTasks::read_response($s)->{body})->{result}{taskId};
close($s);
sleep(0.3);
is($c->get_modern($id)->{status}, 'working', 'closing never touches a task');
$s = $t->connect();
MCPTasks::send_raw($s, $c->modern_bytes('tasks/get', { taskId => $id }));
close($s);
sleep(0.3);
is($c->get_modern($id)->{status}, 'working',
   'nor does closing while asking for it');
$c->complete($c->claim('later'), '{}');
is($c->get_modern($id)->{status}, 'completed', 'it ends as it should');


# One record, two eras

my $ann = $c->as(headers => { 'X-User' => 'ann' });
my $bob = $c->as(headers => { 'X-User' => 'bob' });

$id = $ann->create_modern('slow');
is($ann->legacy('tasks/get', { taskId => $id })->{json}{result}{status},
   'working', 'created modern, read legacy');
is($bob->legacy('tasks/get', { taskId => $id })->{json}{error}{code}, -32602,
   'not by others');
$work = $c->claim('slow', leaseMs => 60000);
$c->held('ask', $work, inputRequests => { q => MCPClient::form() });
my $able = $ann->in_session();
$stream = $ann->stream($able->legacy_bytes('tasks/result', { taskId => $id }));
my $question = $stream->message(10);
is($question->{method}, 'elicitation/create', 'a question for both');
is(update($id, '"inputResponses":{"q":{"r":1}}', $ann), $ack,
   'answered modern');
$c->complete($work, '{"isError":true}');
is($stream->message(10)->{result}{isError}, JSON::PP::true, 'ends for both');
is($ann->legacy('tasks/get', { taskId => $id })->{json}{result}{status},
   'failed', 'failed in one era');
is($ann->get_modern($id)->{status}, 'completed', 'completed in the other');

$id = $ann->legacy('tools/call', { name => 'slow', task => { ttl => 77000 } })
      ->{json}{result}{task}{taskId};
like(get($id, $ann), result_like('\{"resultType":"complete",'
                                 . "\Q$server\E,"
                                 . task_like('working', 77000) . '\}'),
     'created legacy, read modern');
is($bob->modern('tasks/get', { taskId => $id })->{json}{error}{code}, -32602,
   'not by others');
$work = $c->claim('slow', leaseMs => 60000);
$c->held('ask', $work, inputRequests => { 'k/"1' => MCPClient::form() });
$stream = $ann->stream($able->legacy_bytes('tasks/result', { taskId => $id }));
$question = $stream->message(10);
is($ann->post({ jsonrpc => '2.0', id => $question->{id}, result => { r => 2 }
              })->{status}, 202, 'answered legacy');
is($ann->get_modern($id)->{status}, 'working', 'seen modern');
$ann->modern('tasks/cancel', { taskId => $id });
is($stream->message(10)->{error}{data}{reason}, 'task_cancelled',
   'cancelled modern, seen legacy');

ok($t->stop(), 'nginx stops');
is($t->faults(), '', 'nothing bad in the log');

done_testing();
