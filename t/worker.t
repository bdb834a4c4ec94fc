# The worker protocol over the wire: what workers are given, what they say,
# and what is refused.

use warnings;
use strict;

use FindBin;
use lib "$FindBin::Bin/lib";

use IO::Socket::UNIX;
use JSON::PP;
use Test::More;
use Time::HiRes qw/ sleep time /;

use MCPTasks qw/ slurp wait_for workers /;

my $schema = '"inputSchema":{"type":"object"}';
my %policy = (
    plain => '"backoff":50',
    other => '"backoff":50',
    slow => '"priority":0',
    normal => '"priority":1',
    urgent => '"priority":3',
    quick => '"lease":400,"backoff":100,"attempts":3',
    once => '"lease":300,"attempts":1',
    patient => '"lease":400,"backoff":2000',
    queue => '"queueTimeout":300',
    run => '"runTimeout":500,"lease":"1m"',
    asks => '"taskSupport":"required"',
);

my $tools = '{"tools":[' . join(',', map {
    qq({"name":"$_",$schema,"mcpTasks":{$policy{$_}}})
} sort keys %policy) . ']}';

my $dir = "$ENV{MCP_TASKS_BUILD}/servroot-worker";

my $t = MCPTasks->new(
    workers => workers(), module => $ENV{MCP_TASKS_MODULE},
    listen => "reuseport;\n        listen  unix:$dir/sock",
    files => { 'tools.json' => $tools },
    http => 'mcp_tasks_zone zone=z:8m;',
    server => <<'END');
        server_name  one.example *.two.example .three.example ~^re\d\.example$;

        set_real_ip_from  127.0.0.1;
        real_ip_header    X-Forwarded-For;

        location /mcp {
            mcp_tasks        zone=z;
            mcp_tasks_tools  tools.json;
        }

        location /worker {
            mcp_tasks_worker  zone=z;
        }

        location /public {
            mcp_tasks_worker  zone=z public;
        }

        location /denied {
            mcp_tasks_worker  zone=z public;
            deny              all;
        }

        location /small {
            mcp_tasks_worker  zone=z;
            mcp_tasks_limit   payload=64;
        }
END


# --- what the tests are written with

my $json = JSON::PP->new->allow_nonref->canonical->allow_bignum;
my $modern = '"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28",'
    . '"io.modelcontextprotocol/clientCapabilities":{"extensions":'
    . '{"io.modelcontextprotocol/tasks":{}}}}';


sub body {
    my ($method, $params) = @_;
    return qq({"jsonrpc":"2.0","id":7,"method":"$method")
           . (defined $params ? qq(,"params":$params}) : '}');
}


# what a worker says, and the answer: decoded, with its bytes as "raw"
sub work {
    my ($method, $params, $uri) = @_;
    my $res = $t->post($uri || '/worker', body("worker/$method", $params),
                       { Accept => undef });
    return understood($res);
}


sub understood {
    my ($res) = @_;
    return { error => { code => 0 }, raw => '' }
        unless $res && $res->{status} == 200;

    my $got = $json->decode($res->{body});
    $got->{raw} = $res->{body};
    return $got;
}


sub legacy {
    my ($method, $params) = @_;
    return understood($t->post('/mcp', body($method, $params),
                               { 'MCP-Protocol-Version' => '2025-11-25' }));
}


sub modern {
    my ($method, $id, $more) = @_;
    my $params = qq({"taskId":"$id",) . ($more ? "$more," : '') . "$modern}";
    return understood($t->post('/mcp', body($method, $params),
                               { 'MCP-Protocol-Version' => '2026-07-28',
                                 'Mcp-Method' => $method,
                                 'Mcp-Name' => $id }));
}


sub task {
    my ($id) = @_;
    return modern('tasks/get', $id)->{result};
}


# a task that clients see: its id
sub create {
    my ($tool, $arguments, $more) = @_;
    $arguments = '{}' unless defined $arguments;
    $more = $more ? ",$more" : '';
    my $got = legacy('tools/call', qq({"name":"$tool","arguments":$arguments,)
                                   . qq("task":{}$more}));
    return $got->{result}{task}{taskId};
}


# what a worker gets that claims one task; nothing if there is none
sub claim {
    my ($tool, $more) = @_;
    $more = defined $more ? ",$more" : '';
    my $got = work('claim', qq({"tools":["$tool"]$more}));
    return $got->{result}{tasks}[0];
}


# the members that say which task, and by what right
sub held {
    my ($claim) = @_;
    return qq("taskId":"$claim->{taskId}","lease":"$claim->{lease}");
}


sub say_of {
    my ($claim, $method, $more) = @_;
    return work($method, '{' . held($claim) . ($more ? ",$more}" : '}'));
}


# a new task, and a worker that has it
sub taken {
    my ($tool, $more) = @_;
    my $id = create($tool);
    my $claim = claim($tool, $more);
    BAIL_OUT("no task of \"$tool\"") unless $id && $claim;
    is($claim->{taskId}, $id, "a task of \"$tool\" is claimed");
    return $claim;
}


sub finish {
    my ($claim) = @_;
    return say_of($claim, 'complete', '"result":{"content":[]}');
}


# a lost lease comes back by itself
sub reclaimed {
    my ($tool) = @_;
    return wait_for { return claim($tool) };
}


sub fails {
    my ($id) = @_;
    return wait_for { return task($id)->{status} eq 'failed' };
}


sub is_refused {
    my ($got, $code, $reason, $what) = @_;
    is($got->{error}{code}, $code, "$what: $code");
    is($got->{error}{data}{reason}, $reason, "$what: the reason")
        if defined $reason;
}


# --- claim

{
    my $got = work('claim', '{"tools":["plain"]}');
    is($got->{raw}, '{"jsonrpc":"2.0","id":7,"result":'
                    . '{"tasks":[],"cancelled":false,"drain":false}}',
       'nothing to do');

    my $id = create('plain', '{"a":1}');
    my $claim = claim('plain');

    is($claim->{taskId}, $id, 'a task');
    is($claim->{tool}, 'plain', 'of the tool');
    is_deeply($claim->{arguments}, { a => 1 }, 'with its arguments');
    like($claim->{lease}, qr/^[0-9a-f]{16}$/, 'with a token');
    is($claim->{attempt}, 1, 'the first attempt');
    is($claim->{attempts}, 3, 'of three');
    cmp_ok($claim->{leaseMs}, '>', 29000, 'for a time');
    cmp_ok($claim->{leaseMs}, '<=', 30000, 'that is the default');
    cmp_ok($claim->{deadlineMs}, '>', 3590000, 'before a deadline');
    cmp_ok($claim->{deadlineMs}, '<=', 3600000, 'that is the default');
    ok(!exists $claim->{_meta}, 'no _meta if the call had none');
    ok(!exists $claim->{metadata}, 'nor metadata');
    ok(!exists $claim->{inputResponses}, 'nor answers');
    is(claim('plain'), undef, 'and nobody else gets it');
    is(task($id)->{status}, 'working', 'clients see that it is worked on');
    is(finish($claim)->{result}{phase}, 'completed', 'it is done');
}

{
    my $claim = (create('plain'), claim('plain', '"leaseMs":5000'))[1];
    cmp_ok($claim->{leaseMs}, '<=', 5000, 'a lease of its own');
    cmp_ok($claim->{leaseMs}, '>', 4000, 'as long as asked for');
    finish($claim);

    create('plain');
    $claim = claim('plain', '"leaseMs":0');
    cmp_ok($claim->{leaseMs}, '>', 29000, 'a lease of 0 is the default');
    finish($claim);
}

# no arguments at all
{
    legacy('tools/call', '{"name":"plain","task":{}}');
    my $got = work('claim', '{"tools":["plain"]}');
    like($got->{raw}, qr/"arguments":\{\}/, 'no arguments are an empty object');
    finish($got->{result}{tasks}[0]);
}

# several
{
    my @ids = map { create('plain', qq({"n":$_})) } 1 .. 5;
    my $got = work('claim', '{"tools":["plain"],"max":3}');
    is_deeply([map { $_->{taskId} } @{ $got->{result}{tasks} }],
              [@ids[0 .. 2]], 'three at most, the oldest first');

    my $more = work('claim', '{"tools":["plain"],"max":32}');
    is_deeply([map { $_->{taskId} } @{ $more->{result}{tasks} }],
              [@ids[3, 4]], 'then what is left');

    my %leases = map { $_->{lease} => 1 } @{ $got->{result}{tasks} },
                                          @{ $more->{result}{tasks} };
    is(scalar keys %leases, 5, 'each with a token of its own');
    finish($_) for @{ $got->{result}{tasks} }, @{ $more->{result}{tasks} };
}

# by tool
{
    my $plain = create('plain');
    my $other = create('other');

    is(claim('asks'), undef, 'nothing for another tool');
    is(claim('no such tool'), undef, 'nor for one that nobody knows');

    my $claim = claim('other');
    is($claim->{taskId}, $other, 'the task of the tool');
    finish($claim);

    $claim = work('claim', '{"tools":["unknown","other","pl\u0061in"]}');
    is($claim->{result}{tasks}[0]{taskId}, $plain,
       'of any of several tools, however they are written');
    finish($claim->{result}{tasks}[0]);

    my $many = join ',', map { qq("tool$_") } 1 .. 63;
    is_deeply(work('claim', qq({"tools":[$many,"plain"]}))->{result}{tasks},
              [], '64 tools');
    is_refused(work('claim', qq({"tools":[$many,"a","b"]})), -32602, undef,
               '65 tools');
}

# priorities
{
    my @slow = map { create('slow') } 1, 2;
    my @normal = map { create('normal') } 1, 2;
    my @urgent = map { create('urgent') } 1, 2;

    my $got = work('claim', '{"tools":["slow","normal","urgent"],"max":6}');
    is_deeply([map { $_->{taskId} } @{ $got->{result}{tasks} }],
              [@urgent, @normal, @slow],
              'urgent ones first, in the order of creation');
    finish($_) for @{ $got->{result}{tasks} };
}

# byte for byte
{
    my $arguments = '{"z":12345678901234567890,"y":1.0,"x":1e+5, "a" : "\u00e9'
                    . '\/\"é","x2":[ ],"nested":{"b":-0,"a":{}}}';
    my $meta = '{"progressToken":"t1","x.y/z":{"n":10000000000000000000000,'
               . '"r":2.50}}';
    my $metadata = '{"k":1.10,"j":"\ud83d\ude00"}';

    legacy('tools/call', qq({"name":"plain","task":{},"arguments":$arguments,)
                         . qq("_meta":$meta}));
    my $got = work('claim', '{"tools":["plain"]}');
    ok(index($got->{raw}, qq(,"arguments":$arguments,)) > 0,
       'arguments byte for byte');
    ok(index($got->{raw}, qq(,"_meta":$meta)) > 0, '_meta byte for byte');
    finish($got->{result}{tasks}[0]);

    legacy('tasks/create', qq({"action":"act","params":$arguments,)
                           . qq("metadata":$metadata}));
    $got = work('claim', '{"tools":["act"]}');
    is($got->{result}{tasks}[0]{tool}, 'act', 'a task without a tool');
    ok(index($got->{raw}, qq("arguments":$arguments)) > 0,
       'its params byte for byte');
    ok(index($got->{raw}, qq("metadata":$metadata)) > 0,
       'its metadata byte for byte');

    # arguments of an action are under "params", whatever else is there
    finish($got->{result}{tasks}[0]);
    legacy('tasks/create', '{"action":"act","arguments":{"a":1}}');
    $got = claim('act');
    is_deeply($got->{arguments}, {}, 'only params are arguments of an action');
    finish($got);
}


# --- waiting for work

for my $round (1 .. 3) {
    my $s = $t->post_later('/worker', body('worker/claim',
                           '{"tools":["plain"],"waitMs":30000}'));
    sleep(0.5);

    my $began = time();
    my $id = create('plain');
    my $got = understood(MCPTasks::read_response($s));
    my $took = time() - $began;

    is($got->{result}{tasks}[0]{taskId}, $id, 'a waiting worker gets the task');
    cmp_ok($took, '<', 1, 'within a second');
    finish($got->{result}{tasks}[0]);
}

{
    my $began = time();
    my $got = work('claim', '{"tools":["plain"],"waitMs":600}');
    my $took = time() - $began;

    is_deeply($got->{result}{tasks}, [], 'nothing came');
    cmp_ok($took, '>=', 0.55, 'and it waited');
    cmp_ok($took, '<', 3, 'but not for long');
}

# each task goes to one of those who wait
{
    my @s = map { $t->post_later('/worker', body('worker/claim',
                  '{"tools":["other"],"waitMs":3000,"max":4}')) } 1 .. 6;
    sleep(0.3);
    my %ids = map { create('other') => 0 } 1 .. 12;

    my @claims = map { @{ understood(MCPTasks::read_response($_))
                          ->{result}{tasks} || [] } } @s;
    push @claims, @{ work('claim', '{"tools":["other"],"max":32}')
                     ->{result}{tasks} };
    $ids{$_->{taskId}}++ for @claims;
    is_deeply([sort { $a <=> $b } values %ids], [(1) x 12],
              'several wait: each task goes to one of them');
    finish($_) for @claims;
}

# one that went away takes nothing
{
    my $s = $t->post_later('/worker', body('worker/claim',
                           '{"tools":["plain"],"waitMs":30000}'));
    sleep(0.2);
    close($s);
    sleep(0.3);
    my $id = create('plain');
    sleep(0.4);
    my $claim = claim('plain');
    is($claim->{taskId}, $id, 'who hung up gets no task');
    finish($claim);
}

# a task that comes back later wakes, too
{
    my $claim = taken('plain');
    say_of($claim, 'fail', '"error":{"code":1,"message":"m"},'
                           . '"retryable":true,"delayMs":500');
    my $began = time();
    my $got = work('claim', '{"tools":["plain"],"waitMs":10000}');
    my $took = time() - $began;
    is($got->{result}{tasks}[0]{taskId}, $claim->{taskId},
       'a retry reaches who waits');
    cmp_ok($took, '>=', 0.3, 'after its delay');
    cmp_ok($took, '<', 2.5, 'and soon after it');
    finish($got->{result}{tasks}[0]);
}


# --- heartbeat

{
    my $claim = taken('quick');

    for (1 .. 8) {
        sleep(0.15);
        my $got = say_of($claim, 'heartbeat');
        is($got->{raw}, '{"jsonrpc":"2.0","id":7,"result":{"phase":"running",'
                        . '"cancelled":false,"drain":false}}',
           'the lease is prolonged');
    }

    my $version = task($claim->{taskId});
    say_of($claim, 'heartbeat');
    is_deeply(task($claim->{taskId}), $version,
              'a heartbeat changes nothing that clients see');

    # a longer one
    say_of($claim, 'heartbeat', '"leaseMs":1500');
    sleep(0.9);
    is(say_of($claim, 'progress', '"message":"alive"')->{result}{phase},
       'running', 'a lease of another length');
    is(finish($claim)->{result}{phase}, 'completed', 'it ends in time');

    # what was asked for is not cut by a sign of life
    $claim = taken('quick', '"leaseMs":2000');
    is(say_of($claim, 'progress', '"progress":0.5')->{result}{phase},
       'running', 'progress within a long lease');
    sleep(0.9);
    is(say_of($claim, 'heartbeat')->{result}{phase}, 'running',
       'progress does not shorten a lease');
    sleep(0.6);
    is(finish($claim)->{result}{phase}, 'completed',
       'nor does a heartbeat without a length');

    # but the worker itself may
    $claim = taken('quick', '"leaseMs":60000');
    say_of($claim, 'heartbeat', '"leaseMs":200');
    say_of($claim, 'heartbeat', '"leaseMs":100');
    sleep(0.1);
    my $again = reclaimed('quick');
    is($again->{attempt}, 2, 'a lease may be made shorter');
    finish($again);
}


# --- progress

{
    my $claim = taken('plain');

    for my $p ('0', '0.25', '0.25', '0.5', '1', '1.0') {
        is(say_of($claim, 'progress', qq("progress":$p))->{result}{phase},
           'running', "progress $p");
    }

    is_refused(say_of($claim, 'progress', '"progress":0.9'), -32602,
               'progress_backwards', 'backwards');
    is(say_of($claim, 'progress', '"message":"still here"')->{result}{phase},
       'running', 'a message alone');
    is(task($claim->{taskId})->{statusMessage}, 'still here',
       'clients see the message');
    is(say_of($claim, 'progress')->{result}{phase}, 'running',
       'nothing at all is a sign of life');
    is(task($claim->{taskId})->{statusMessage}, 'still here',
       'and the message stays');

    my $long = 'x' x 1022;
    is(say_of($claim, 'progress', qq("message":"$long"))->{result}{phase},
       'running', 'a message of 1024 bytes with its quotes');

    my $before = task($claim->{taskId});

    for my $bad ('"progress":"1"', '"progress":-0.1', '"progress":null',
                 '"progress":true', '"progress":{}', '"progress":1.5',
                 '"progress":[]', '"progress":1e999', '"progress":2',
                 '"progress":5,"total":4', '"progress":1,"total":"4"',
                 '"progress":1,"total":null', '"progress":1,"total":{}',
                 '"progress":1,"total":-1', '"total":-1', '"total":"x"',
                 '"message":1', '"message":null', '"message":{}',
                 '"message":["m"]', qq("message":"x$long"),
                 '"progress":1,"progress":1')
    {
        my $name = length $bad > 60 ? 'a message of 1025 bytes' : $bad;
        is_refused(say_of($claim, 'progress', $bad), -32602, undef, $name);
    }

    is_deeply(task($claim->{taskId}), $before, 'bad progress changes nothing');
    finish($claim);

    $claim = taken('plain');

    for my $p ('0,"total":7', '3,"total":7', '3.5,"total":7', '7,"total":7',
               '8,"total":10')
    {
        is(say_of($claim, 'progress', qq("progress":$p))->{result}{phase},
           'running', "progress $p");
    }

    is_refused(say_of($claim, 'progress', '"progress":7,"total":7'), -32602,
               'progress_backwards', 'backwards with a total');
    finish($claim);
}

# progress starts again with the next attempt
{
    my $claim = taken('plain');
    say_of($claim, 'progress', '"progress":0.9');
    say_of($claim, 'release');
    $claim = claim('plain');
    is(say_of($claim, 'progress', '"progress":0.1')->{result}{phase},
       'running', 'the next attempt begins at the beginning');
    finish($claim);
}

# a plain call gets it as notifications
{
    my $s = $t->post_later('/mcp', body('tools/call',
                           '{"name":"plain","_meta":{"progressToken":"p"}}'));
    my $claim = reclaimed('plain');

    for my $n (1 .. 3) {
        say_of($claim, 'progress',
               qq("progress":$n,"total":3,"message":"m\\u0041$n"));
        sleep(0.4);
    }

    say_of($claim, 'complete', '"result":{"content":[],"x":1.0}');
    my $res = MCPTasks::read_response($s);
    my @events = $res->{body} =~ /^data: (.*)$/mg;

    is_deeply([map { my $e = $json->decode($_); $e->{params}{progress} || 0 }
               @events], [1, 2, 3, 0], 'progress, then the result');
    like($events[0], qr/"progressToken":"p","progress":1,"total":3,"message":"m\\u00411"/,
         'with token, total and message as they came');
    is($events[3],
       '{"jsonrpc":"2.0","id":7,"result":{"content":[],"x":1.0}}',
       'and the result');
}


# --- questions and answers

my $question = '{"method":"elicitation/create","params":{"mode":"form",'
               . '"message":"Name?","requestedSchema":{"type":"object",'
               . '"properties":{"n":{"type":"number","maximum":1.0}}}}}';

{
    my $claim = taken('asks');
    my $id = $claim->{taskId};

    is(say_of($claim, 'answers')->{raw}, '{"jsonrpc":"2.0","id":7,"result":'
       . '{"inputResponses":{},"cancelled":false,"drain":false}}',
       'no questions, no answers, no waiting');

    my $got = say_of($claim, 'ask', qq("message":"two questions",)
                     . qq("inputRequests":{"a":$question,"b\\u00e9":$question}));
    is($got->{raw}, '{"jsonrpc":"2.0","id":7,"result":'
       . '{"phase":"input_required","cancelled":false,"drain":false}}',
       'questions are taken');

    my $seen = modern('tasks/get', $id);
    is($seen->{result}{status}, 'input_required', 'clients see the status');
    is($seen->{result}{statusMessage}, 'two questions', 'and the message');
    ok(index($seen->{raw},
             qq("inputRequests":{"a":$question,"b\\u00e9":$question})) > 0,
       'and the questions byte for byte');

    is_refused(say_of($claim, 'ask', qq("inputRequests":{"c":$question})),
               -32602, 'task_state_invalid', 'to ask while questions are open');

    my $began = time();
    $got = say_of($claim, 'answers', '"waitMs":500');
    is_deeply($got->{result}{inputResponses}, {}, 'no answer yet');
    cmp_ok(time() - $began, '>=', 0.45, 'after a while');

    is(say_of($claim, 'heartbeat')->{result}{phase}, 'input_required',
       'a heartbeat while waiting');
    is(say_of($claim, 'progress', '"progress":0.5')->{result}{phase},
       'input_required', 'progress while waiting');

    # one of two, and one that was never asked for
    modern('tasks/update', $id, '"inputResponses":{"a":{"action":"accept",'
           . '"content":{"n":1.0}},"zz":{"action":"accept"}}');
    $seen = modern('tasks/get', $id);
    is($seen->{result}{status}, 'input_required', 'one question is left');
    ok(index($seen->{raw}, qq("inputRequests":{"b\\u00e9":$question})) > 0,
       'the other one');

    $got = say_of($claim, 'answers', '"waitMs":200');
    ok(index($got->{raw}, '"inputResponses":{"a":{"action":"accept",'
                          . '"content":{"n":1.0}}},') > 0,
       'one answer, byte for byte, and nothing that was not asked for');

    # answered before: the first answer counts
    modern('tasks/update', $id, '"inputResponses":{"a":{"action":"decline"}}');

    my $s = $t->post_later('/worker', body('worker/answers',
                           '{' . held($claim) . ',"waitMs":30000}'));
    sleep(0.4);
    $began = time();
    modern('tasks/update', $id,
           '"inputResponses":{"b\u00E9":{"action":"cancel"}}');
    $got = understood(MCPTasks::read_response($s));
    cmp_ok(time() - $began, '<', 1, 'the last answer wakes who waits');
    is_deeply($got->{result}{inputResponses}, {
        a => { action => 'accept', content => { n => 1 } },
        "b\xe9" => { action => 'cancel' } }, 'with all answers');
    is(task($id)->{status}, 'working', 'it goes on');

    # a key means one question
    for my $key ('a', '\u0061', "b\xc3\xa9") {
        is_refused(say_of($claim, 'ask', qq("inputRequests":{"$key":$question})),
                   -32602, undef, "the key $key once more");
    }

    is_refused(say_of($claim, 'ask',
                      qq("inputRequests":{"d":$question,"\\u0064":$question})),
               -32602, undef, 'a key twice in one');
    is(task($id)->{status}, 'working', 'nothing was asked');

    is(say_of($claim, 'ask', qq("inputRequests":{"c":$question}))
       ->{result}{phase}, 'input_required', 'another key is fine');
    modern('tasks/update', $id, '"inputResponses":{"c":{"action":"accept"}}');
    $got = say_of($claim, 'answers');
    is(join(' ', sort keys %{ $got->{result}{inputResponses} }),
       "a b\xe9 c", 'all answers that there ever were');

    # the next attempt knows them
    say_of($claim, 'release');
    $claim = claim('asks');
    is(join(' ', sort keys %{ $claim->{inputResponses} }), "a b\xe9 c",
       'answers are there for the next worker');
    finish($claim);
}

# the lease does not run while a question is open, and is new afterwards
{
    my $claim = taken('quick');
    say_of($claim, 'ask', qq("inputRequests":{"a":$question}));
    sleep(1.2);
    is(task($claim->{taskId})->{status}, 'input_required',
       'no lease is lost while a question is open');
    modern('tasks/update', $claim->{taskId},
           '"inputResponses":{"a":{"action":"accept"}}');
    is(say_of($claim, 'heartbeat')->{result}{phase}, 'running',
       'and the worker still has it');
    my $again = reclaimed('quick');
    is($again->{attempt}, 2, 'but then it runs again');
    finish($again);
}

# bad questions
{
    my $claim = taken('asks');
    my $before = task($claim->{taskId});

    for my $bad ('"x":1', '"inputRequests":{}', '"inputRequests":[]',
                 '"inputRequests":null', '"inputRequests":"x"',
                 '"inputRequests":1', '"inputRequests":{"a":1}',
                 '"inputRequests":{"a":{}}', '"inputRequests":{"a":[]}',
                 '"inputRequests":{"a":{"method":"m"}}',
                 '"inputRequests":{"a":{"method":1,"params":{}}}',
                 '"inputRequests":{"a":{"method":"m","params":[]}}',
                 '"inputRequests":{"a":{"params":{}}}',
                 qq("message":1,"inputRequests":{"a":$question}),
                 qq("message":{},"inputRequests":{"a":$question}),
                 qq("inputRequests":{"a":$question},)
                 . qq("inputRequests":{"b":$question}))
    {
        is_refused(say_of($claim, 'ask', $bad), -32602, undef, $bad);
    }

    for my $bad ('"waitMs":"1"', '"waitMs":-1', '"waitMs":1.5',
                 '"waitMs":null', '"waitMs":[]', '"waitMs":3600001',
                 '"waitMs":1,"waitMs":1')
    {
        is_refused(say_of($claim, 'answers', $bad), -32602, undef,
                   "answers: $bad");
    }

    is_deeply(task($claim->{taskId}), $before, 'changes nothing');
    finish($claim);
}


# --- complete

{
    my $result = '{"z":12345678901234567890, "content":[{"type":"text",'
                 . '"text":"\u00e9\/é"}],"structuredContent":{"r":1.0,'
                 . '"e":1E5,"a":[ ]}}';
    my $inline = '"result":{"resultType":"complete",' . substr($result, 1)
                 . '}}';
    my $claim = taken('plain');
    my $got = say_of($claim, 'complete', qq("result":$result));
    is($got->{raw}, '{"jsonrpc":"2.0","id":7,"result":'
       . '{"phase":"completed","cancelled":false,"drain":false}}',
       'completed');

    $got = modern('tasks/get', $claim->{taskId});
    is($got->{result}{status}, 'completed', 'completed for modern clients');
    ok(index($got->{raw}, $inline) > 0, 'byte for byte');
    is(legacy('tasks/get', qq({"taskId":"$claim->{taskId}"}))
       ->{result}{status}, 'completed', 'completed for legacy clients');

    $got = legacy('tasks/result', qq({"taskId":"$claim->{taskId}"}));
    ok(index($got->{raw}, substr($result, 1)) > 0,
       'byte for byte for legacy clients');

    is_refused(finish($claim), -32011, 'task_terminal', 'once more');
    ok(index(modern('tasks/get', $claim->{taskId})->{raw}, $inline) > 0,
       'which changes nothing');
}

{
    my $claim = taken('plain');
    my $id = $claim->{taskId};
    say_of($claim, 'complete', '"result":{"content":[],"isError":true}');

    is(task($id)->{status}, 'completed', 'an error of the tool: completed');
    is(task($id)->{result}{isError}, JSON::PP::true, 'with the flag');
    is(legacy('tasks/get', qq({"taskId":"$id"}))->{result}{status}, 'failed',
       'but failed for legacy clients');
    is(legacy('tasks/result', qq({"taskId":"$id"}))->{result}{isError},
       JSON::PP::true, 'with the same result');

    $claim = taken('plain');
    $id = $claim->{taskId};
    say_of($claim, 'complete', '"result":{"content":[],"isError":false}');
    is(legacy('tasks/get', qq({"taskId":"$id"}))->{result}{status},
       'completed', 'isError that is false');
}

# while a question is open
{
    my $claim = taken('asks');
    say_of($claim, 'ask', qq("inputRequests":{"a":$question}));
    is(finish($claim)->{result}{phase}, 'completed',
       'a task may end while a question is open');
    ok(!exists task($claim->{taskId})->{inputRequests}, 'which then is gone');
}

{
    my $claim = taken('plain');
    my $before = task($claim->{taskId});

    for my $bad ('"x":1', '"result":null', '"result":[]', '"result":"x"',
                 '"result":1', '"result":true', '"result":{},"result":{}',
                 '"result":{"isError":1}', '"result":{"isError":"true"}',
                 '"result":{"isError":true,"isError":false}')
    {
        is_refused(say_of($claim, 'complete', $bad), -32602, undef, $bad);
    }

    is_deeply(task($claim->{taskId}), $before, 'changes nothing');

    my $got = work('complete', '{' . held($claim) . ',"result":{"x":"'
                               . 'x' x 100 . '"}}', '/small');
    is_refused($got, -32602, 'payload_too_large', 'a result that is too large');
    is_deeply(task($claim->{taskId}), $before, 'changes nothing either');
    finish($claim);
}


# --- fail

{
    my $error = '{"code":-32050,"message":"b\u00e9","data":{"n":1.0}}';
    my $claim = taken('plain');
    my $got = say_of($claim, 'fail', qq("error":$error));

    is($got->{raw}, '{"jsonrpc":"2.0","id":7,"result":'
       . '{"phase":"failed","cancelled":false,"drain":false}}', 'failed');
    $got = modern('tasks/get', $claim->{taskId});
    is($got->{result}{status}, 'failed', 'for modern clients');
    ok(index($got->{raw}, qq("error":$error}})) > 0, 'byte for byte');
    $got = legacy('tasks/result', qq({"taskId":"$claim->{taskId}"}));
    ok(index($got->{raw}, qq("error":$error})) > 0, 'for legacy clients, too');

    # false: the same
    $claim = taken('plain');
    say_of($claim, 'fail', qq("error":$error,"retryable":false,"delayMs":1));
    is(task($claim->{taskId})->{status}, 'failed', 'not retryable');
    is(claim('plain'), undef, 'nor retried');
}

{
    my $claim = taken('plain');
    my $id = $claim->{taskId};

    for my $attempt (1 .. 2) {
        my $got = say_of($claim, 'fail', qq("error":{"code":$attempt,)
                         . qq("message":"m$attempt"},"retryable":true,)
                         . '"delayMs":300');
        is($got->{result}{phase}, 'queued', "failed $attempt: queued again");
        is(task($id)->{status}, 'working', 'clients do not notice');
        is(claim('plain'), undef, 'not at once');
        is_refused(say_of($claim, 'heartbeat'), -32011, 'lease_lost',
                   'and it is not ours any more');

        my $began = time();
        my $next = reclaimed('plain');
        cmp_ok(time() - $began, '>', 0.1, 'after a delay');
        is($next->{attempt}, $attempt + 1, 'the next attempt');
        isnt($next->{lease}, $claim->{lease}, 'with another token');
        $claim = $next;
    }

    my $got = say_of($claim, 'fail', '"error":{"code":3,"message":"m3"},'
                                     . '"retryable":true');
    is($got->{result}{phase}, 'failed', 'no attempt is left');
    is_deeply(task($id)->{error}, { code => 3, message => 'm3' },
              'failed with the error of the last one');
}

# without a delay the backoff counts
{
    my $claim = taken('patient');
    say_of($claim, 'fail', '"error":{"code":1,"message":""},"retryable":true');
    sleep(0.5);
    is(claim('patient'), undef, 'the backoff of the tool');
    legacy('tasks/cancel', qq({"taskId":"$claim->{taskId}"}));
}

{
    my $claim = taken('plain');
    my $before = task($claim->{taskId});
    my $error = '"error":{"code":1,"message":"m"}';

    for my $bad ('"x":1', '"error":null', '"error":"x"', '"error":[]',
                 '"error":{}', '"error":{"code":1}', '"error":{"message":"m"}',
                 '"error":{"code":"1","message":"m"}',
                 '"error":{"code":1.5,"message":"m"}',
                 '"error":{"code":1,"message":2}',
                 '"error":{"code":1,"code":1,"message":"m"}',
                 "$error,\"retryable\":1", "$error,\"retryable\":\"true\"",
                 "$error,\"retryable\":null", "$error,\"retryable\":{}",
                 "$error,\"delayMs\":\"1\"", "$error,\"delayMs\":-1",
                 "$error,\"delayMs\":1.5", "$error,\"delayMs\":null",
                 "$error,\"delayMs\":86400001",
                 "$error,\"delayMs\":99999999999999999999",
                 "$error,$error")
    {
        is_refused(say_of($claim, 'fail', $bad), -32602, undef, $bad);
    }

    is_deeply(task($claim->{taskId}), $before, 'changes nothing');
    finish($claim);
}


# --- release

{
    my $claim = taken('once');
    my $id = $claim->{taskId};

    for (1 .. 3) {
        is($claim->{attempt}, 1, 'the first attempt');
        my $got = say_of($claim, 'release');
        is($got->{result}{phase}, 'queued', 'given back');
        is_refused(say_of($claim, 'complete', '"result":{}'), -32011,
                   'lease_lost', 'what was given back');
        $claim = claim('once');
        is($claim->{taskId}, $id, 'at once it may be claimed again');
    }

    finish($claim);
}


# --- leases that are lost

{
    my $claim = taken('quick');
    my $id = $claim->{taskId};
    my @lost = $claim;

    for my $attempt (2, 3) {
        my $next = reclaimed('quick');
        is($next->{taskId}, $id, 'a lost lease: the task comes back');
        is($next->{attempt}, $attempt, "attempt $attempt");
        push @lost, $next;
    }

    # the third worker is at work: the others have no say
    my $before = task($id);

    for my $stale (@lost[0, 1],
                   { taskId => $id, lease => '0000000000000000' },
                   { taskId => $id, lease => '' },
                   { taskId => $id, lease => 'nonsense' },
                   { taskId => $id, lease => uc $lost[2]{lease} . '0' },
                   { taskId => $id, lease => ('0' x 15) . '1' })
    {
        for my $say (['heartbeat'], ['progress', '"progress":1'],
                     ['progress', '"message":"x"'],
                     ['ask', qq("inputRequests":{"a":$question})],
                     ['answers', '"waitMs":1000'],
                     ['complete', '"result":{}'],
                     ['fail', '"error":{"code":1,"message":"m"}'],
                     ['fail', '"error":{"code":1,"message":"m"},'
                              . '"retryable":true'],
                     ['release'])
        {
            is_refused(say_of($stale, @$say), -32011, 'lease_lost',
                       "$say->[0] with a stale token");
        }

        say_of($lost[2], 'heartbeat');
    }

    is_deeply(task($id), $before, 'and nothing has changed');
    is(say_of($lost[2], 'heartbeat')->{result}{phase}, 'running',
       'the one who has it goes on');

    ok(fails($id),
       'the last lease is lost: failed');
    is(task($id)->{error}{data}{reason}, 'lease_lost', 'for that reason');
    is(task($id)->{error}{code}, -32013, 'with our code');
    is(legacy('tasks/result', qq({"taskId":"$id"}))->{error}{data}{reason},
       'lease_lost', 'in both eras');
    is_refused(say_of($lost[2], 'heartbeat'), -32011, 'task_terminal',
               'the last worker learns that it ended');
    is_refused(say_of($lost[0], 'heartbeat'), -32011, 'lease_lost',
               'the first one that it is not theirs');
}

{
    my $claim = taken('once');
    ok(fails($claim->{taskId}),
       'one attempt only');
    is(claim('once'), undef, 'is not repeated');
}

# backoff
{
    my $claim = taken('patient');
    sleep(1.2);
    is(claim('patient'), undef, 'a lost lease waits for the backoff');
    is_refused(say_of($claim, 'heartbeat'), -32011, 'lease_lost',
               'meanwhile nobody has it');
    my $next = reclaimed('patient');
    is($next->{attempt}, 2, 'then it may be claimed');
    finish($next);
}

# ids
for my $id ('00000000-0000-4000-8000-000000000000', 'nonsense', '') {
    my $claim = { taskId => $id, lease => '0123456789abcdef' };

    for my $say (['heartbeat'], ['complete', '"result":{}'], ['answers'],
                 ['ask', qq("inputRequests":{"a":$question})])
    {
        my $got = say_of($claim, @$say);
        is_refused($got, -32011, 'task_not_found', "$say->[0]: \"$id\"");
        is($got->{error}{data}{cancelled}, JSON::PP::false, 'not cancelled');
    }
}


# --- cancelled

{
    my $claim = taken('plain');
    my $id = $claim->{taskId};
    modern('tasks/cancel', $id);
    my $before = task($id);
    is($before->{status}, 'cancelled', 'cancelled');

    for my $say (['heartbeat'], ['progress', '"progress":0.5'],
                 ['ask', qq("inputRequests":{"a":$question})], ['answers'],
                 ['complete', '"result":{}'], ['release'],
                 ['fail', '"error":{"code":1,"message":"m"}'])
    {
        my $got = say_of($claim, @$say);
        is_refused($got, -32011, 'task_terminal', "$say->[0] when cancelled");
        is($got->{error}{data}{cancelled}, JSON::PP::true, 'told so');
        is($got->{error}{data}{phase}, 'cancelled', 'twice');
    }

    is_deeply(task($id), $before, 'it stays cancelled');
}

# while a worker waits for answers
{
    my $claim = taken('asks');
    say_of($claim, 'ask', qq("inputRequests":{"a":$question}));
    my $s = $t->post_later('/worker', body('worker/answers',
                           '{' . held($claim) . ',"waitMs":30000}'));
    sleep(0.3);
    my $began = time();
    modern('tasks/cancel', $claim->{taskId});
    my $got = understood(MCPTasks::read_response($s));
    cmp_ok(time() - $began, '<', 1, 'cancelling wakes who waits for answers');
    is_refused($got, -32011, 'task_terminal', 'answers when cancelled');
    is($got->{error}{data}{cancelled}, JSON::PP::true, 'told so');
}

# while it is queued
{
    my $id = create('plain');
    modern('tasks/cancel', $id);
    is(claim('plain'), undef, 'what was cancelled is not handed out');
}


# --- timeouts

{
    my $id = create('queue');
    ok(fails($id), 'nobody took it');
    is(task($id)->{error}{data}{reason}, 'task_timeout', 'for that reason');
    is(claim('queue'), undef, 'and nobody will');
    is(legacy('tasks/result', qq({"taskId":"$id"}))->{error}{code}, -32013,
       'legacy clients are told');
}

{
    my $claim = taken('run');
    cmp_ok($claim->{deadlineMs}, '<=', 500, 'the worker is told its deadline');
    say_of($claim, 'heartbeat', '"leaseMs":60000');
    ok(fails($claim->{taskId}),
       'it ran for too long');
    is(task($claim->{taskId})->{error}{data}{reason}, 'task_timeout',
       'for that reason');
    my $got = finish($claim);
    is_refused($got, -32011, 'task_terminal', 'the result comes too late');
    is($got->{error}{data}{cancelled}, JSON::PP::false, 'not cancelled');
    is($got->{error}{data}{phase}, 'failed', 'but failed');
}


# --- what is not understood

is(work('claim', '{"tools":["plain"],"x":1,"y":{"z":[]}}')->{error}, undef,
   'unknown members are ignored');

for my $bad ('{}', '{"tools":null}', '{"tools":"plain"}', '{"tools":{}}',
             '{"tools":1}', '{"tools":[]}', '{"tools":[1]}',
             '{"tools":["a",null]}', '{"tools":[["a"]]}',
             '{"tools":["a"],"tools":["b"]}',
             (map { qq({"tools":["a"],"max":$_}) } qw/ 0 -1 33 1.0 1e0 "1"
              null true [] {} 99999999999999999999 /),
             (map { my $name = $_;
                    map { qq({"tools":["a"],"$name":$_}) }
                    qw/ -1 1.5 "1" null true [] {} 99999999999999999999 / }
              qw/ waitMs leaseMs /),
             '{"tools":["a"],"waitMs":3600001}',
             '{"tools":["a"],"leaseMs":86400001}',
             '{"tools":["a"],"max":1,"max":1}')
{
    is_refused(work('claim', $bad), -32602, undef, "claim $bad");
}

is_refused(work('claim'), -32602, undef, 'claim without params');

{
    my $claim = taken('plain');
    my $before = task($claim->{taskId});

    for my $method (qw/ heartbeat progress ask answers complete fail
                        release /)
    {
        is_refused(work($method), -32602, undef, "$method without params");
        is_refused(work($method, '{}'), -32602, undef, "$method of nothing");

        for my $bad (qw/ 1 null true [] {} /) {
            is_refused(work($method, qq({"taskId":$bad,)
                                     . qq("lease":"$claim->{lease}"})),
                       -32602, undef, "$method: taskId $bad");
            is_refused(work($method, qq({"taskId":"$claim->{taskId}",)
                                     . qq("lease":$bad})),
                       -32602, undef, "$method: lease $bad");
        }

        is_refused(work($method, qq({"taskId":"$claim->{taskId}"})), -32602,
                   undef, "$method without a lease");
        is_refused(say_of($claim, $method, held($claim)), -32602, undef,
                   "$method with both twice");
    }

    for my $bad (qw/ -1 1.5 "1" null true [] {} 86400001 /) {
        is_refused(say_of($claim, 'heartbeat', qq("leaseMs":$bad)), -32602,
                   undef, "heartbeat: leaseMs $bad");
    }

    is_refused(say_of($claim, 'heartbeat', '"leaseMs":1,"leaseMs":1'), -32602,
               undef, 'heartbeat: leaseMs twice');

    is_deeply(task($claim->{taskId}), $before, 'changes nothing');
    finish($claim);
}

for my $method ('worker/nothing', 'worker/', 'claim', 'tools/call',
                'tasks/get', 'worker/claimx', '')
{
    is(understood($t->post('/worker', body($method, '{}')))->{error}{code},
       -32601, "no method \"$method\"");
}

is(understood($t->post('/mcp', body('worker/claim', '{"tools":["plain"]}')))
   ->{error}{code}, -32601, 'no worker method at the endpoint of clients');

{
    my $claim = body('worker/claim', '{"tools":["plain"]}');

    for my $case ([{ 'Content-Type' => 'text/plain' }, $claim, 415, -32600],
                  [{ 'Content-Type' => undef }, $claim, 415, -32600],
                  [{}, '{', 400, -32700],
                  [{}, '', 400, -32700],
                  [{}, '[]', 400, -32600],
                  [{}, "[$claim]", 400, -32600],
                  [{}, '{"jsonrpc":"2.0","method":"worker/claim",'
                       . '"params":{"tools":["plain"]}}', 400, -32600],
                  [{}, '{"jsonrpc":"2.0","id":1,"result":{}}', 400, -32600],
                  [{}, '{"jsonrpc":"2.0","id":1,"method":"worker/claim",'
                       . '"params":[]}', 400, -32602],
                  [{ Origin => 'http://example.com' }, $claim, 403, -32600],
                  [{ Host => 'example.com' }, $claim, 403, -32600])
    {
        my ($headers, $text, $status, $code) = @$case;
        my $res = $t->post('/worker', $text, $headers);
        my $what = join ' ', (map { "$_ " . ($headers->{$_} || 'none') }
                              keys %$headers), $text;
        is($res->{status}, $status, "$status: $what");
        is($json->decode($res->{body})->{error}{code}, $code, "$code: $what");
    }

    for my $method (qw/ GET HEAD PUT DELETE OPTIONS /) {
        my $res = $t->request($method, '/worker', {});
        is($res->{status}, 405, "405: $method");
        is($res->{header}{allow}, 'POST', 'and what is allowed');
    }
}


# --- who may come

{
    my $text = body('worker/claim', '{"tools":["plain"]}');
    my $id = create('plain');

    for my $from ('192.0.2.1', '10.0.0.1', '126.255.255.255', '128.0.0.1',
                  '2001:db8::1', '::2', '::ffff:192.0.2.1', 'fe80::1')
    {
        my $res = $t->post('/worker', $text, { 'X-Forwarded-For' => $from });
        is($res->{status}, 403, "no worker from $from");
        unlike($res->{body}, qr/$id/, 'gets a task');
    }

    for my $from ('127.0.0.1', '127.255.0.9', '::1', '::ffff:127.0.0.1') {
        my $res = $t->post('/worker', body('worker/claim', '{"tools":["x"]}'),
                           { 'X-Forwarded-For' => $from });
        is($res->{status}, 200, "a worker from $from");
    }

    for my $headers ({}, { 'X-Forwarded-For' => '192.0.2.1' }) {
        is($t->post('/denied', $text, $headers)->{status}, 403,
           'nginx itself denies');
    }

    my $got = understood($t->post('/public', $text,
                                  { 'X-Forwarded-For' => '192.0.2.1' }));
    is($got->{result}{tasks}[0]{taskId}, $id, 'from anywhere if public');
    finish($got->{result}{tasks}[0]);

    $id = create('plain');
    my $s = IO::Socket::UNIX->new(Peer => "$dir/sock");
    ok($s, 'a unix socket');
    $got = understood($t->post('/worker', $text, {}, $s));
    is($got->{result}{tasks}[0]{taskId}, $id, 'is of this machine');
    finish($got->{result}{tasks}[0]);
}


# --- by which name

{
    my $text = body('worker/claim', '{"tools":["plain"]}');

    for my $name (qw/ localhost 127.0.0.1 [::1] one.example ONE.Example
                      a.two.example a.b.two.example three.example
                      a.three.example re1.example localhost:1234
                      one.example:80 /)
    {
        is($t->post('/worker', $text, { Host => $name })->{status}, 200,
           "Host: $name");
        is($t->post('/worker', $text, { Origin => "http://$name" })->{status},
           200, "Origin: http://$name");
    }

    for my $name (qw/ example two.example xone.example one.example.org
                      re.example re11.example xthree.example 127.0.0.2
                      localhost.example /)
    {
        is($t->post('/worker', $text, { Host => $name })->{status}, 403,
           "not for Host: $name");
        is($t->post('/worker', $text, { Origin => "http://$name" })->{status},
           403, "not for Origin: http://$name");
    }

    for my $origin ('null', '', 'http://', 'one.example', 'file://') {
        is($t->post('/worker', $text, { Origin => $origin })->{status}, 403,
           "not for Origin: $origin");
    }
}


# --- nginx goes: those who wait are told, and lose nothing

{
    my $claim = taken('asks');
    say_of($claim, 'ask', qq("inputRequests":{"a":$question}));

    my $work = $t->post_later('/worker', body('worker/claim',
                              '{"tools":["plain"],"waitMs":30000}'));
    my $answers = $t->post_later('/worker', body('worker/answers',
                                 '{' . held($claim) . ',"waitMs":30000}'));
    sleep(0.3);
    my $began = time();
    $t->reload();

    my $got = understood(MCPTasks::read_response($work));
    is_deeply($got->{result}{tasks}, [], 'a reload: no task');
    is($got->{result}{drain}, JSON::PP::true, 'and told why');
    $got = understood(MCPTasks::read_response($answers));
    is_deeply($got->{result}{inputResponses}, {}, 'no answer');
    is($got->{result}{drain}, JSON::PP::true, 'and told why');
    cmp_ok(time() - $began, '<', 5, 'soon');

    my $s = wait_for {
        my $heart = say_of($claim, 'heartbeat');
        $heart->{result} && !$heart->{result}{drain};
    };
    ok($s, 'the new workers go on');

    modern('tasks/update', $claim->{taskId},
           '"inputResponses":{"a":{"action":"accept"}}');
    is_deeply(say_of($claim, 'answers')->{result}{inputResponses},
              { a => { action => 'accept' } }, 'with the same task');
    is(finish($claim)->{result}{phase}, 'completed', 'to its end');
}

ok($t->stop(), 'nginx exits');
is($t->faults(qr/access forbidden by rule/), '', 'nothing to complain about in the log');

done_testing();
