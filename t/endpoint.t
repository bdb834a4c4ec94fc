# The MCP endpoint: both eras, their headers, ids and methods.

use warnings;
use strict;
use utf8;

use FindBin;
use lib "$FindBin::Bin/lib";

use Test::More;

use MCPTasks;

my $t = MCPTasks->new(
    http => 'mcp_tasks_zone zone=z:1m;',
    server => 'location /mcp { mcp_tasks zone=z; }');

my $s = $t->connect();

# what differs from release to release
my ($version) = ($t->post('/mcp', '{"jsonrpc":"2.0","id":1,"method":'
                          . '"server/discover","params":{"_meta":{"io.'
                          . 'modelcontextprotocol/protocolVersion":'
                          . '"2026-07-28","io.modelcontextprotocol/'
                          . 'clientCapabilities":{}}}}',
                          { 'MCP-Protocol-Version' => '2026-07-28',
                            'Mcp-Method' => 'server/discover' })->{body}
                 =~ /"version":"(\d+\.\d+\.\d+)"/);
ok($version, 'the server tells its version');


# one request over the connection that all of them share
sub post {
    my ($body, $headers) = @_;
    utf8::encode($body) if utf8::is_utf8($body);

    my $res = $t->post('/mcp', $body, $headers, $s);

    if (!$res) {
        $s = $t->connect();
        return { status => 0, body => 'no answer', header => {} };
    }

    return $res;
}


sub answers {
    my ($body, $headers, $status, $want, $name) = @_;
    my $res = post($body, $headers);

    utf8::encode($want) if utf8::is_utf8($want);

    is($res->{status}, $status, "$name: status") or diag($res->{body});
    is($res->{body}, $want, "$name: body");
    is($res->{header}{'content-type'}, 'application/json', "$name: type");
}


# 202, and nothing in it
sub accepted {
    my ($body, $headers, $name) = @_;
    my $res = post($body, $headers);

    is($res->{status}, 202, "$name: status") or diag($res->{body});
    is($res->{body}, '', "$name: no body");
}


sub error {
    my ($id, $code, $message, $data) = @_;
    return '{"jsonrpc":"2.0"' . (defined $id ? ",\"id\":$id" : '')
           . ",\"error\":{\"code\":$code,\"message\":\"$message\""
           . (defined $data ? ",\"data\":$data" : '') . '}}';
}


sub legacy {
    my ($method, $params, $id) = @_;
    return '{"jsonrpc":"2.0","id":' . (defined $id ? $id : 1)
           . ",\"method\":\"$method\""
           . (defined $params ? ",\"params\":$params" : '') . '}';
}


my $meta_version = 'io.modelcontextprotocol/protocolVersion';
my $meta_capabilities = 'io.modelcontextprotocol/clientCapabilities';

sub modern {
    my ($method, $meta) = @_;
    $meta = "{\"$meta_version\":\"2026-07-28\",\"$meta_capabilities\":{}}"
        unless defined $meta;
    return legacy($method, "{\"_meta\":$meta}");
}


sub headers {
    my ($method, %more) = @_;
    return { 'MCP-Protocol-Version' => '2026-07-28', 'Mcp-Method' => $method,
             %more };
}


# --- the legacy era opens

sub initialized {
    my ($asked) = @_;
    my $tasks = $asked eq '2025-11-25'
                ? ',"tasks":{"cancel":{},"requests":{"tools":{"call":{}}}}'
                : '';
    return '{"jsonrpc":"2.0","id":1,"result":{"protocolVersion":"' . $asked
           . "\",\"capabilities\":{\"tools\":{}$tasks}"
           . ',"serverInfo":{"name":"nginx-mcp-tasks",'
           . "\"version\":\"$version\"}}}";
}

sub initialize {
    my ($asked) = @_;
    return legacy('initialize', "{\"protocolVersion\":$asked,"
                  . '"capabilities":{},"clientInfo":{"name":"t",'
                  . '"version":"1"}}');
}

for my $v (qw/ 2025-11-25 2025-06-18 2025-03-26 /) {
    answers(initialize("\"$v\""), {}, 200, initialized($v), "initialize $v");
    answers(initialize("\"$v\""), { 'MCP-Protocol-Version' => $v }, 200,
            initialized($v), "initialize $v, which the header repeats");
}

for my $v ('2024-11-05', '2026-07-28', '2099-01-01', '', 'x' x 1000,
           '2025-06-1', '2025-06-188')
{
    answers(initialize("\"$v\""), {}, 200, initialized('2025-11-25'),
            'initialize ' . substr($v, 0, 20) . ': ours is offered');
}

answers(initialize('"2025-06-\u00318"'), {}, 200, initialized('2025-06-18'),
        'initialize, the version written with an escape');

for (['{}', 'protocolVersion must be a string'],
     ['{"protocolVersion":1}', 'protocolVersion must be a string'],
     ['{"protocolVersion":null}', 'protocolVersion must be a string'],
     ['{"capabilities":{},"clientInfo":{}}',
      'protocolVersion must be a string'],
     ['{"protocolVersion":"2025-11-25"}', 'capabilities must be an object'],
     ['{"protocolVersion":"2025-11-25","capabilities":[],"clientInfo":{}}',
      'capabilities must be an object'],
     ['{"protocolVersion":"2025-11-25","capabilities":{}}',
      'clientInfo must be an object'],
     ['{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":"x"}',
      'clientInfo must be an object'],
     ['{"protocolVersion":"2025-11-25","protocolVersion":"2025-06-18",'
      . '"capabilities":{},"clientInfo":{}}', 'duplicate member in params'])
{
    my ($params, $why) = @$_;
    answers(legacy('initialize', $params), {}, 200,
            error(1, -32602, "Invalid params: $why"), "initialize $params");
}

answers(legacy('initialize'), {}, 200,
        error(1, -32602, 'Invalid params: protocolVersion must be a string'),
        'initialize without params');


# --- and goes on

my $pong = '{"jsonrpc":"2.0","id":1,"result":{}}';

answers(legacy('ping'), {}, 200, $pong, 'ping');
answers(legacy('ping', '{}'), {}, 200, $pong, 'ping with params');
answers(legacy('ping', '{"_meta":{"progressToken":1}}'), {}, 200, $pong,
        'ping with _meta');
answers(legacy('p\u0069ng'), {}, 200, $pong, 'ping with an escape');
answers(legacy('\u0070\u0069\u006e\u0067'), {}, 200, $pong,
        'ping with nothing but escapes');
answers('{"\u006aso\u006erpc":"\u0032.0","i\u0064":1,"m\u0065thod":"ping"}',
        {}, 200, $pong, 'members with escapes');
answers("\r\n\t {\"method\" : \"ping\" ,\n \"id\"\t: 1, \"jsonrpc\":\"2.0\"}\n",
        {}, 200, $pong, 'another order, and space');
answers('{"jsonrpc":"2.0","id":1,"method":"ping","more":[1,{}],"x":null}', {},
        200, $pong, 'members that nobody knows');

for my $v (qw/ 2025-11-25 2025-06-18 2025-03-26 /) {
    answers(legacy('ping'), { 'MCP-Protocol-Version' => $v }, 200, $pong,
            "ping, header $v");
    answers(legacy('ping'), { 'mcp-protocol-VERSION' => $v }, 200, $pong,
            "ping, header $v in another case");
}

my $bad_version = 'Invalid Request: unsupported version in '
                  . 'MCP-Protocol-Version';

for my $v (qw/ 2024-11-05 2025-11-26 2025-11-2 2025-11-255 x /) {
    answers(legacy('ping'), { 'MCP-Protocol-Version' => $v }, 400,
            error(1, -32600, $bad_version), "ping, header $v");
}

answers(legacy('ping'), { 'MCP-Protocol-Version' => '' }, 400,
        error(1, -32600, $bad_version), 'ping, empty header');

for my $method ('tools/nothing', 'PING', 'ping ', '', 'pin', 'pingg',
                'ping\u0001', 'π')
{
    answers(legacy($method), {}, 200, error(1, -32601, 'Method not found'),
            "unknown method \"" . join('', map { sprintf '%vd', $_ }
                                           substr($method, 0, 40)) . '"');
}

accepted('{"jsonrpc":"2.0","method":"notifications/initialized"}', {},
         'notification');
accepted('{"jsonrpc":"2.0","method":"notifications/cancelled","params":'
         . '{"requestId":1}}', { 'MCP-Protocol-Version' => '2025-11-25' },
         'notification with params');
accepted('{"jsonrpc":"2.0","method":"nobody/knows"}', {},
         'a notification that nobody knows');
accepted('{"jsonrpc":"2.0","method":"ping"}', {},
         'a request sent as a notification');
accepted('{"jsonrpc":"2.0","id":1,"result":{}}', {}, 'response');
accepted('{"jsonrpc":"2.0","id":"a","result":{"x":[1]}}', {},
         'response with a result');
accepted('{"jsonrpc":"2.0","id":1,"error":{"code":-1,"message":"no"}}', {},
         'error response');

answers('{"jsonrpc":"2.0","method":"notifications/initialized"}',
        { 'MCP-Protocol-Version' => '2024-01-01' }, 400,
        error(undef, -32600, $bad_version),
        'notification, unsupported header');


# --- ids come back byte for byte

for my $id (0, -5, 1, -0, 9007199254740993, '123456789012345678901234567890',
            '-123456789012345678901234567890', '""', '"a"', '"\u0061"',
            '"\"\\\\\/\b\f\n\r\t"', '"\u00e9\uD83D\uDE00\u0000"', '"\ud800"',
            '"😀é€"', '"</script>"', '"%d%s%V"', '"' . 'x' x 10000 . '"')
{
    my $name = substr($id, 0, 40);
    utf8::encode($name) if utf8::is_utf8($name);

    answers(legacy('ping', undef, $id), {}, 200,
            "{\"jsonrpc\":\"2.0\",\"id\":$id,\"result\":{}}", "id $name");
    answers(legacy('none', undef, $id), {}, 200,
            error($id, -32601, 'Method not found'), "id $name of an error");
}

answers(legacy('ping', undef, '-0'), {}, 200,
        '{"jsonrpc":"2.0","id":-0,"result":{}}', 'id -0');

for my $id (qw/ null true false 1.5 1e3 1E3 1.0 -1.0 0e0 [] {} [1] {"a":1} /) {
    answers(legacy('ping', undef, $id), {}, 400,
            error(undef, -32600, 'Invalid Request: id must be a string or '
                  . 'an integer'), "id $id");
}


# --- the modern era

answers(modern('server/discover'), headers('server/discover'), 200,
        '{"jsonrpc":"2.0","id":1,"result":{"resultType":"complete",'
        . '"supportedVersions":["2026-07-28","2025-11-25","2025-06-18",'
        . '"2025-03-26"],"capabilities":{"tools":{},"extensions":{'
        . '"io.modelcontextprotocol/tasks":{},"io.github.nginx-mcp-tasks/extended":'
        . '{}}},"_meta":{"io.modelcontextprotocol/'
        . 'serverInfo":{"name":"nginx-mcp-tasks","version":"' . $version
        . '"}},"ttlMs":3600000,"cacheScope":"public"}}', 'server/discover');

my $discovered = post(modern('server/discover'),
                      headers('server/discover'))->{body};

answers(modern('server/discover'),
        { 'mcp-protocol-version' => '2026-07-28',
          'MCP-METHOD' => 'server/discover' }, 200, $discovered,
        'header names in another case');
answers(modern('server\/d\u0069scover'), headers('server/discover'), 200,
        $discovered, 'server/discover with escapes');
answers(modern('server/discover', "{\"$meta_version\":\"2026-07-\\u00328\","
               . "\"$meta_capabilities\":{}}"),
        headers('server/discover'), 200, $discovered,
        'the version with an escape');
answers(modern('server/discover', '{"io.modelcontextprotocol\/'
               . 'protocol\u0056ersion":"2026-07-28",'
               . "\"$meta_capabilities\":{\"x\":{}}}"),
        headers('server/discover'), 200, $discovered,
        'the name of the version with escapes');

for my $method ('ping', 'initialize', 'tools/none', 'tasks/result', '') {
    answers(modern($method), headers($method), 404,
            error(1, -32601, 'Method not found'),
            "modern: unknown method \"$method\"");
}

# the header that repeats the version

my $other_version = 'Header mismatch: MCP-Protocol-Version is missing, '
                    . 'duplicate, or different from protocolVersion in _meta';
my $mismatch_version = error(1, -32020, $other_version);
my $mismatch_method = error(1, -32020, 'Header mismatch: Mcp-Method is '
                            . 'missing, duplicate, or different from method');
my $no_version = error(1, -32602, 'Invalid params: _meta must contain the '
                       . "string $meta_version");
my $no_capabilities = error(1, -32602, 'Invalid params: _meta must contain the '
                            . "object $meta_capabilities, and clientInfo at "
                            . 'most once');

for ([undef, 'missing'], ['2025-11-25', 'of the other era'],
     ['2026-07-29', 'another'], ['', 'empty'], ['2026-07-2', 'shorter'],
     ['2026-07-288', 'longer'], ['"2026-07-28"', 'quoted'],
     [['2026-07-28', '2026-07-28'], 'twice'],
     [['2026-07-28', '2025-11-25'], 'twice, the second another'])
{
    my ($value, $name) = @$_;
    answers(modern('server/discover'),
            headers('server/discover', 'MCP-Protocol-Version' => $value), 400,
            $mismatch_version, "MCP-Protocol-Version $name");
}

# the header that repeats the method

for ([undef, 'missing'], ['ping', 'another'], ['', 'empty'],
     ['server/discove', 'shorter'], ['server/discover2', 'longer'],
     ['Server/Discover', 'in another case'],
     [['server/discover', 'server/discover'], 'twice'])
{
    my ($value, $name) = @$_;
    answers(modern('server/discover'),
            headers('server/discover', 'Mcp-Method' => $value), 400,
            $mismatch_method, "Mcp-Method $name");
}

# versions that are not served

# 2026-07-28, Versioning: "listing the versions it does support"; what is refused
# is not among them

for my $v ('2025-11-25', '2025-03-26') {
    answers(modern('server/discover', "{\"$meta_version\":\"$v\","
                   . "\"$meta_capabilities\":{}}"),
            headers('server/discover', 'MCP-Protocol-Version' => $v), 400,
            error(1, -32022, 'Unsupported protocol version',
                  "{\"supported\":[\"2026-07-28\"],\"requested\":\"$v\"}"),
            "version \"$v\"");
}

for my $v ('2027-01-01', '2026-07-2', 'x', '') {
    answers(modern('server/discover', "{\"$meta_version\":\"$v\","
                   . "\"$meta_capabilities\":{}}"),
            headers('server/discover', 'MCP-Protocol-Version' => $v), 400,
            error(1, -32022, 'Unsupported protocol version',
                  '{"supported":["2026-07-28","2025-11-25","2025-06-18",'
                  . "\"2025-03-26\"],\"requested\":\"$v\"}"),
            "version \"$v\"");
}

answers(modern('server/discover', "{\"$meta_version\":\"20\\u00327\","
               . "\"$meta_capabilities\":{}}"),
        headers('server/discover', 'MCP-Protocol-Version' => '2027'), 400,
        error(1, -32022, 'Unsupported protocol version',
              '{"supported":["2026-07-28","2025-11-25","2025-06-18",'
              . '"2025-03-26"],"requested":"20\u00327"}'),
        'a version with an escape is told as it came');

# what _meta has to have

for ('{}', '{"x":1}', "{\"$meta_version\":1}", "{\"$meta_version\":null}",
     "{\"$meta_version\":[]}")
{
    answers(modern('server/discover', $_), headers('server/discover'), 400,
            $no_version, "server/discover, _meta $_");
}

for ('1', 'null', '[]', '"x"') {
    answers(modern('server/discover', $_), headers('server/discover'), 400,
            $no_version, "server/discover, _meta $_");
}

answers(legacy('server/discover'), {}, 400, $no_version,
        'server/discover without params and headers');
answers(legacy('server/discover', '{}'), headers('server/discover'), 400,
        $no_version, 'server/discover without _meta');
answers(legacy('ping'), headers('ping'), 400, $no_version,
        'ping without _meta, but with the header');

for ("{\"$meta_version\":\"2026-07-28\"}",
     "{\"$meta_version\":\"2026-07-28\",\"$meta_capabilities\":null}",
     "{\"$meta_version\":\"2026-07-28\",\"$meta_capabilities\":[]}")
{
    answers(modern('server/discover', $_), headers('server/discover'), 400,
            $no_capabilities, 'capabilities missing or not an object');
}

my $twice = error(1, -32602, 'Invalid params: duplicate _meta, or duplicate '
                  . 'protocolVersion or progressToken in _meta');

answers(modern('server/discover', "{\"$meta_version\":\"2026-07-28\","
               . "\"$meta_version\":\"2026-07-28\","
               . "\"$meta_capabilities\":{}}"),
        headers('server/discover'), 400, $twice, 'the version twice');
answers(legacy('server/discover', "{\"_meta\":{},\"_meta\":{}}"),
        headers('server/discover'), 400, $twice, '_meta twice');

# no requests

my $note = '{"jsonrpc":"2.0","method":"notifications/cancelled","params":'
           . "{\"_meta\":{\"$meta_version\":\"2026-07-28\"}}}";

accepted($note, { 'MCP-Protocol-Version' => '2026-07-28' },
         'modern: notification');
answers($note, {}, 400,
        error(undef, -32020, $other_version),
        'modern: notification without a header');
answers('{"jsonrpc":"2.0","id":7,"result":{}}',
        { 'MCP-Protocol-Version' => '2026-07-28' }, 400,
        error(7, -32600, 'Invalid Request: responses are not accepted, send '
              . 'answers in inputResponses'),
        'modern: response');

ok($t->stop(), 'nginx stops');
is($t->faults(), '', 'nothing in the log that should not be');

done_testing();
