# What is not the gateway's own business goes through it as it came, in both
# directions.

use warnings;
use strict;

use FindBin;
use lib "$FindBin::Bin/lib";

use Test::More;

use MCPClient;
use MCPGateway;
use MCPJson;
use MCPTasks qw/ wait_for workers /;
use MCPTools qw/ tools_json /;

my $uuid = '01234567-89ab-4cde-8f01-23456789abcd';

# of prompts/list below
MCPJson::allow('x');

my $g = MCPGateway->new(
    workers => workers(),
    file => tools_json('queued'),
    tool => ['slow support=optional', 'never support=forbidden'],
    server => 'client_body_buffer_size 1k; client_max_body_size 4m;',
    on => {
        'prompts/list' => [['json', "{\"jsonrpc\":\"2.0\" ,\n\"id\":%ID%,"
                                    . '"result":{"x":1.0,"x":"\u00e9"}}', 200,
                            { 'X-Up' => 'yes', 'Set-Cookie' => 'a=b' }]],
        'resources/list' => [['sse'], ['event', '{"n":1}'], ['hold']],
        'lost' => [['json', '{"jsonrpc":"2.0","id":null,"error":{"code":-5,'
                            . '"message":"no"}}', 404]],
        'html' => [['json', '<h1>no</h1>', 500,
                    { 'Content-Type' => 'text/html' }]],
        'nothing' => [['head', 401, { 'Content-Length' => 0,
                                      'WWW-Authenticate' => 'Bearer x' }],
                      ['end']],
    });

my ($up, $t, $c) = @{$g}{qw/ up t c /};


# what upstream got last
sub last_of {
    return ($up->requests())[-1];
}


sub seen {
    return scalar(my @all = $up->requests());
}


# --- requests, to the byte

my @bodies = (
    '{"jsonrpc":"2.0","id":1,"method":"prompts/get","params":{"n":1.0e2}}',
    "{ \"id\" :\"\\u00e9\",\n\"method\":\"x/y\", \"jsonrpc\": \"2.0\"}",
    '{"jsonrpc":"2.0","id":9007199254740993,"method":"ping"}',
    '{"jsonrpc":"2.0","id":2,"method":"logging/setLevel","params":'
        . '{"level":"debug"}}',
    '{"jsonrpc":"2.0","method":"notifications/initialized"}',
    '{"jsonrpc":"2.0","method":"notifications/cancelled","params":'
        . '{"requestId":77}}',
    '{"jsonrpc":"2.0","method":"notifications/roots/list_changed"}',
    '{"jsonrpc":"2.0","id":"q1","result":{"roots":[]}}',
    '{"jsonrpc":"2.0","id":5,"error":{"code":-1,"message":"x"}}',
    '{"jsonrpc":"2.0","id":"a/b","result":{}}',
    "{\"jsonrpc\":\"2.0\",\"id\":\"$uuid/k\",\"result\":{}}",
    '[{"jsonrpc":"2.0","id":1,"method":"ping"},{"jsonrpc":"2.0","id":2,'
        . '"method":"x"}]',
    '{"jsonrpc":"2.0","id":3,"method":"tools/call","params":{"name":"slow",'
        . '"arguments":{"n":1.0}}}',
    '{"jsonrpc":"2.0","id":3,"method":"tools/call","params":{"name":"other",'
        . '"_meta":{"progressToken":7}}}',
);

for my $body (@bodies) {
    my $before = seen();

    # the only revision that has batches
    my $res = $c->post($body, $body =~ /^\[/ ? ('MCP-Protocol-Version' =>
                                                '2025-03-26') : ());
    is(seen() - $before, 1, "passed once: $body");
    is(last_of()->{body}, $body, 'to the byte');
    is(last_of()->{method} . ' ' . last_of()->{path}, 'POST /mcp',
       'to where it belongs');
    is($res->{status}, $body =~ /^\{.*"(?:id"\s*:.*"method|method".*"id")/s
                       || $body =~ /^\[/ ? 200 : 202, 'with its status');
}

# modern ones
for my $method ('prompts/get', 'x/y') {
    my $bytes = $c->modern_bytes($method, { name => 'p' });
    my $res = $c->say_bytes($bytes);
    like($bytes, qr/\Q@{[last_of()->{body}]}\E\z/, "modern $method: the body");
    is(last_of()->{head}{'mcp-method'}, $method, 'and the header');
}

# --- answers, to the byte

my $res = $c->legacy('prompts/list');
is($res->{body}, "{\"jsonrpc\":\"2.0\" ,\n\"id\":1,\"result\":{\"x\":1.0,"
   . '"x":"\u00e9"}}', 'an answer comes back as it is');
is($res->{header}{'x-up'}, 'yes', 'with its headers');
is($res->{header}{'set-cookie'}, 'a=b', 'all of them');
is($res->{header}{'content-type'}, 'application/json', 'and its type');

$res = $c->legacy('lost');
is("$res->{status} $res->{json}{error}{code}", '404 -5', 'an error of HTTP');
$res = $c->legacy('html');
is("$res->{status} $res->{header}{'content-type'} $res->{body}",
   '500 text/html <h1>no</h1>', 'and one that is no JSON');
$res = $c->legacy('nothing');
is("$res->{status} $res->{header}{'www-authenticate'}", '401 Bearer x',
   'a demand for authorization');

# --- headers

$c->legacy('ping', undef, headers => {
    Authorization => 'Bearer abc', Cookie => 'c=1; d=2', 'X-Any' => 'thing',
    'Mcp-Session-Id' => 'not-ours', Origin => 'http://localhost' });
my $head = last_of()->{head};
is($head->{authorization}, 'Bearer abc', 'Authorization is passed');
is($head->{cookie}, 'c=1; d=2', 'and cookies');
is($head->{'x-any'}, 'thing', 'and anything');
is($head->{'mcp-session-id'}, 'not-ours', 'and sessions that we do not know');
is($head->{'mcp-protocol-version'}, '2025-11-25', 'and the version');
is($head->{origin}, undef, 'what the location removes is removed');

# --- bodies that do not fit into memory

for my $n (1000, 1025, 100_000, 3_000_000) {
    my $body = '{"jsonrpc":"2.0","id":1,"method":"ping","params":{"x":"'
               . 'y' x $n . '"}}';
    is($c->post($body)->{body}, '{"jsonrpc":"2.0","id":1,"result":{}}',
       "a body of $n bytes");
    ok(last_of()->{body} eq $body, 'came whole');
}

{
    my $body = '{"jsonrpc":"2.0","id":1,"method":"ping","x":"'
               . 'z' x 5000 . '"}';
    $res = $t->request('POST', '/mcp', { 'Transfer-Encoding' => 'chunked',
        'Content-Type' => 'application/json', Accept =>
        'application/json, text/event-stream' },
        join '', map { sprintf("%x\r\n%s\r\n", length, $_) }
                 $body =~ /.{1,700}/gs, '');
    is($res->{status}, 200, 'a chunked body');
    is(last_of()->{body}, $body, 'came whole');
}

# --- streams, as they come

{
    my $stream = $c->stream($c->legacy_bytes('resources/list', undef, id => 4));
    is($stream->message(10)->{n}, 1, 'a stream: the first event comes at once');
    my $call = ($up->said('resources/list'))[-1];
    $up->go($call, ['event', '{"n":2}'], ['hold']);
    is($stream->message(10)->{n}, 2, 'and the second');
    $up->go($call, ['result', '{}']);
    is_deeply($stream->message(10), { jsonrpc => '2.0', id => 4, result => {} },
              'and the end');

    $stream = $c->stream($c->legacy_bytes('resources/list'));
    $stream->message(10);
    $call = ($up->said('resources/list'))[-1];
    $stream->close();
    ok($up->left($call, 10), 'a client that leaves: upstream learns of it');
}

# --- GET and DELETE on the endpoint

{
    my $stream = $c->stream($c->get_bytes('', 'Mcp-Session-Id' => 's7'));
    is(($stream->event(10) || {})->{comment}, 'open', 'GET is passed');
    my $get = last_of();
    is("$get->{method} $get->{head}{'mcp-session-id'}", 'GET s7',
       'with the session');
    $up->go($get, ['event', '{"hello":1}']);
    is($stream->message(10)->{hello}, 1, 'and is a stream');
    $stream->close();
    ok($up->left($get, 10), 'until the client leaves');

    $up->script(GET => [['head', 405, { 'Content-Length' => 0 }], ['end']]);
    is($t->request('GET', '/mcp', { Accept => 'text/event-stream' })->{status},
       405, 'an upstream without such a stream');

    is($t->request('DELETE', '/mcp', { 'Mcp-Session-Id' => 's7' })->{status},
       200, 'DELETE is passed');
    is(last_of()->{method} . ' ' . last_of()->{head}{'mcp-session-id'},
       'DELETE s7', 'with the session');
}

# sessions are upstream's
$up->set(sessions => 1);
is($c->legacy('ping')->{status}, 400, 'without a session');
my $in = $c->in_session();
like($in->{session}, qr/^session-/, 'initialize gives one of upstream');
is($in->legacy('ping')->{status}, 200, 'which is good');
$up->forget();
is($in->legacy('ping')->{status}, 404, 'until upstream forgets it');
$up->set(sessions => 0);

# --- what is not passed

{
    my $before = seen();

    is($c->legacy('tasks/get', { taskId => $uuid })
       ->{json}{error}{data}{reason}, 'task_not_found', 'tasks/get is ours');
    is(ref $c->legacy('tasks/list')->{json}{result}{tasks}, 'ARRAY',
       'tasks/list is ours');
    is($c->modern('tasks/cancel', { taskId => $uuid })
       ->{json}{error}{data}{reason}, 'task_not_found', 'tasks/cancel is ours');
    is($c->rest("tasks/$uuid/poll")->{status}, 404, 'what lies below is ours');

    my $stream = $c->stream($c->modern_bytes('subscriptions/listen',
        { notifications => { taskIds => [$uuid] } }));
    like($stream->head(), qr/200 OK/, 'so are subscriptions to tasks');
    $stream->close();

    my $id = $c->create('queued');
    is($c->claim('queued')->{taskId}, $id, 'tools of the file are queued');

    my $bad = $c->post('{"jsonrpc":');
    is("$bad->{status} $bad->{json}{error}{code}", '400 -32700',
       'what is no JSON is refused');
    is($c->legacy('ping', undef, headers => { Origin => 'http://evil.test' })
       ->{status}, 403, 'a foreign origin is refused');

    is(seen(), $before, 'nothing of this was passed');

    # the listing of other things is not ours
    $c->modern('subscriptions/listen',
               { notifications => { toolsListChanged => \1 } });
    is(last_of()->{rpc}, 'subscriptions/listen',
       'subscriptions without tasks are passed');
}

# --- one connection, many requests

{
    my $s = $t->connect();
    my $via = $c->as(via => $s);
    my @got = map { $via->legacy($_ % 2 ? 'ping' : 'tasks/get',
                                 { taskId => $uuid }, id => $_)->{json}{id} }
              1 .. 20;
    is_deeply(\@got, [1 .. 20], 'passed and answered, over one connection');
}

is($t->request('GET', '/upstream', {})->{status}, 404,
   'the upstream location is internal');

$g->done('\[error\]');
done_testing();
