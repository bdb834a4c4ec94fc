# Arguments that a tool wants to have repeated in headers.

use warnings;
use strict;

use FindBin;
use lib "$FindBin::Bin/lib";

use JSON::PP;
use MIME::Base64;
use Test::More;

use MCPFile qw/ write_file /;
use MCPTasks;

my $t = MCPTasks->new();
ok($t->stop(), 'nginx stops');

my $file = "$t->{dir}/tools.json";
my $server = "location /mcp { mcp_tasks zone=z; mcp_tasks_tools $file; }";


sub tools {
    my ($schema) = @_;
    write_file($file, JSON::PP->new->utf8->canonical->encode({ tools => [
        { name => 'q', inputSchema => { type => 'object', %$schema } } ] }));
    $t->configure(http => 'mcp_tasks_zone zone=z:1m;', server => $server);
    return $t->check();
}


sub property {
    my (%schema) = @_;
    return { properties => { p => { type => 'string', %schema } } };
}


# --- marks that are none

my $mark = 'x-mcp-header';

for my $case (
    ['empty', property($mark => ''), 'not a valid header name'],
    ['a space', property($mark => 'a b'), 'not a valid header name'],
    ['a line feed', property($mark => "a\nb"), 'not a valid header name'],
    ['not ASCII', property($mark => "\x{e9}"), 'not a valid header name'],
    ['a number', property($mark => 1), 'not a valid header name'],
    ['on a number', property(type => 'number', $mark => 'A'),
     'not a string, integer or boolean'],
    ['on an object', property(type => 'object', $mark => 'A'),
     'not a string, integer or boolean'],
    ['without a type', { properties => { p => { $mark => 'A' } } },
     'not a string, integer or boolean'],
    ['on the schema itself', { $mark => 'A' },
     'not a string, integer or boolean'],
    ['in items', property(type => 'array',
                          items => { type => 'string', $mark => 'A' }),
     'outside of a property'],
    ['in oneOf', { oneOf => [{ properties => {
        p => { type => 'string', $mark => 'A' } } }] },
     'outside of a property'],
    ['twice', { properties => { a => { type => 'string', $mark => 'A' },
                                b => { type => 'string', $mark => 'a' } } },
     'duplicate'])
{
    my ($name, $schema, $message) = @$case;
    my ($passed, $said) = tools($schema);
    ok(!$passed, "$name: refused");
    like($said, qr/"inputSchema" has .*\Q$message\E.* in \Q$file\E:1\b/,
         "$name: and why");
}

# --- headers and arguments

my ($passed, $said) = tools({ properties => {
    region => { type => 'string', $mark => 'Region' },
    deep   => { type => 'object', properties => {
        n => { type => 'integer', $mark => 'N' } } },
    flag   => { type => 'boolean', $mark => 'Flag' },
    $mark  => { type => 'string' },
} });
ok($passed, 'marks on properties are fine') or diag($said);
ok($t->start(), 'nginx starts');


sub call {
    my ($arguments, $headers, $era) = @_;
    my $meta = $era ? '{}' : '{'
        . '"io.modelcontextprotocol/protocolVersion":"2026-07-28",'
        . '"io.modelcontextprotocol/clientCapabilities":{"extensions":'
        . '{"io.modelcontextprotocol/tasks":{}}}}';
    my $task = $era ? ',"task":{}' : '';
    my $res = $t->post('/mcp', '{"jsonrpc":"2.0","id":1,"method":"tools/call",'
        . qq/"params":{"name":"q","arguments":$arguments,"_meta":$meta$task}}/,
        { $era ? () : ('MCP-Protocol-Version' => '2026-07-28',
                       'Mcp-Method' => 'tools/call', 'Mcp-Name' => 'q'),
          %$headers });
    my $answer = JSON::PP->new->decode($res->{body});
    return $answer->{error} ? "$res->{status} $answer->{error}{code}" : 'ok';
}

my $bad = '400 -32020';

is(call('{}', {}), 'ok', 'no value, no header');
is(call('{"region":null}', {}), 'ok', 'null, no header');
is(call('{"region":"eu"}', { 'Mcp-Param-Region' => 'eu' }), 'ok', 'the same');
is(call('{"region":"eu"}', { 'mcp-param-REGION' => 'eu' }), 'ok',
   'the name in other case');
is(call('{"region":"\u0065u"}', { 'Mcp-Param-Region' => 'eu' }), 'ok',
   'the value escaped');

# "Any server that processes the message body MUST validate that encoded header
# values [...] match the corresponding values in the request body", however long
for my $n (256, 257, 4000) {
    my $long = '\u0065' . 'u' x ($n - 1);
    is(call(qq/{"region":"$long"}/,
            { 'Mcp-Param-Region' => 'e' . 'u' x ($n - 1) }), 'ok',
       "the value of $n bytes escaped");
    is(call(qq/{"region":"$long"}/,
            { 'Mcp-Param-Region' => 'e' . 'u' x ($n - 2) . 'v' }), $bad,
       "and another of $n bytes");
}

is(call('{"region":"eu"}', {}), $bad, 'a value, no header');
is(call('{}', { 'Mcp-Param-Region' => 'eu' }), $bad, 'a header, no value');
is(call('{"region":"eu"}', { 'Mcp-Param-Region' => 'EU' }), $bad,
   'the value in other case');
is(call('{"region":"eu"}', { 'Mcp-Param-Region' => ['eu', 'eu'] }), $bad,
   'the header twice');
is(call('{"region":""}', { 'Mcp-Param-Region' => '' }), 'ok', 'empty');

my $text = '=?base64?' . encode_base64("w\xc3\xa4rts ", '') . '?=';
is(call("{\"region\":\"w\xc3\xa4rts \"}", { 'Mcp-Param-Region' => $text }),
   'ok', 'base64');
is(call('{"region":"x"}', { 'Mcp-Param-Region' => '=?base64?!!?=' }), $bad,
   'base64 that is none');

for (['SGVsbG8=', 'ok'], ['SGVsbG8', $bad], ['SGVsbG8==', $bad],
     ['SGVsbG8=SGVs', $bad], ['SGVsbG8=====', $bad], ['=', $bad])
{
    my ($value, $want) = @$_;
    is(call('{"region":"Hello"}',
            { 'Mcp-Param-Region' => "=?base64?$value?=" }), $want,
       "base64, padding: $value");
}

is(call('{"deep":{"n":42}}', { 'Mcp-Param-N' => '42' }), 'ok', 'a number');
is(call('{"deep":{"n":42}}', { 'Mcp-Param-N' => '42.0' }), 'ok',
   'the same number');
is(call('{"deep":{"n":42}}', { 'Mcp-Param-N' => '43' }), $bad, 'another');
is(call('{"deep":{"n":42}}', { 'Mcp-Param-N' => '42x' }), $bad, 'no number');

for ([qw/ 42 4.2e1 ok /], [qw/ 42 420E-1 ok /], [qw/ -42 -42.0 ok /],
     [qw/ 42 0x2a /], [qw/ 42 0X2A /], [qw/ 42 0x1.5p5 /], [qw/ 42 042 /],
     [qw/ 42 +42 /], [qw/ 42 42. /], [qw/ 42 .42e2 /], [qw/ 42 42e /],
     [42, '42,0'], [qw/ 42 "42" /], [qw/ 42 [42] /], [qw/ 42 4_2 /],
     [qw/ 42 1e999 /], [qw/ 42 inf /], [qw/ 42 nan /], [qw/ 1e999 inf /],
     [qw/ 0 -0 ok /], [qw/ 0 0x0 /], [qw/ 9007199254740993 9007199254740992 /],
     [qw/ 9007199254740993 9007199254740993.0 ok /],
     [42, '=?base64?IDQy?='], [42, '=?base64?NDIg?='],
     [42, '=?base64?NDIA?='], [42, '=?base64?NDI=?=', 'ok'], [42, ''])
{
    my ($value, $header, $want) = @$_;
    is(call("{\"deep\":{\"n\":$value}}", { 'Mcp-Param-N' => $header }),
       $want || $bad, "$value in the body, $header in the header");
}

is(call('{"n":42}', {}), 'ok', 'of the same name, but elsewhere');

for my $case ('{"region":"eu","region":"us"}', '{"region":"us","region":"eu"}',
              '{"region":"eu","reg\u0069on":"us"}', '{"region":"eu","region":null}')
{
    is(call($case, { 'Mcp-Param-Region' => 'eu' }), $bad,
       "nobody knows which one counts: $case");
}

is(call('{"deep":{"n":1},"deep":{"n":2}}', { 'Mcp-Param-N' => '1' }), $bad,
   'nor which object');
is(call('{"deep":{"n":1,"n":2}}', { 'Mcp-Param-N' => '1' }), $bad,
   'nor which number');
is(call('{"flag":true}', { 'Mcp-Param-Flag' => 'true' }), 'ok', 'true');
is(call('{"flag":true}', { 'Mcp-Param-Flag' => 'false' }), $bad, 'not false');

is(call('{"region":"eu"}', {}, 'legacy'), 'ok',
   'the legacy era knows nothing of it');

ok($t->stop(), 'nginx stops');

done_testing();
