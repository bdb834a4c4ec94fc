# With "schemas=", the gateway validates arguments itself: a call that does not
# match never reaches upstream.
#
# 2025-11-25 and 2026-07-28, Tools, "Security Considerations": "Servers MUST:
# Validate all tool inputs"; "Error Handling": input validation errors are
# results with isError.

use warnings;
use strict;

use FindBin;
use lib "$FindBin::Bin/lib";

use JSON::PP;
use Test::More;

use MCPClient;
use MCPExample qw/ blocks section shell /;
use MCPFile qw/ slurp write_file /;
use MCPGateway;
use MCPTasks qw/ workers /;

my $root = "$FindBin::Bin/..";
my $old = 'http://json-schema.org/draft-07/schema#';

# as upstream lists them: what nginx has no use for is not looked at
my $sum = '{"name":"sum","title":7,"execution":{"taskSupport":"forbidden"},'
    . '"mcpTasks":1,"outputSchema":{"$schema":"' . $old . '"},'
    . '"inputSchema":{"type":"object","required":["n"],"properties":{'
    . '"n":{"type":"integer","minimum":1},"to":{"$ref":"#/$defs/to"},'
    . '"r":{"type":"array","x-mcp-header":"R"}},'
    . '"$defs":{"to":{"maxLength":3}}}}';
my $must = '{"name":"must","inputSchema":{"type":"object","required":["x"]}}';
my $dots = '{"name":"caf\u00e9","inputSchema":{"type":"object",'
           . '"maxProperties":0}}';

my $g = MCPGateway->new(
    workers => workers(),
    pass => '/upstream schemas=schemas.json',
    files => { 'schemas.json' =>
                   qq({"resultType":"complete","tools":[$sum,$must,$dots],\n)
                   . '"ttlMs":0}' },
    list => [$sum, $must, $dots, 'other'],
    tool => ['must support=required', 'never support=forbidden',
             'sum after=30s', '~. after=0']);
my ($up, $t, $c) = @{$g}{qw/ up t c /};
my $plain = $c->as(extensions => []);


sub is_mismatch {
    my ($res, $text, $name) = @_;
    is($res->{status}, 200, "$name: 200");
    my $result = $res->{json}{result};
    is_deeply($result->{content}, [{ type => 'text',
                                     text => "Invalid arguments: $text" }],
              "$name: says where and why") or diag($res->{body});
    is($result->{isError}, JSON::PP::true, "$name: is an error of the tool");
}


# --- what does not match: both eras, with and without a task

for my $case (['sum', '{}', 'required is not satisfied, "n" is missing'],
              ['sum', '{"n":0}', '/n: minimum is not satisfied'],
              ['sum', '{"n":"1"}', '/n: type is not satisfied'],
              ['sum', '{"n":1,"to":"abcd"}', '/to: maxLength is not satisfied'],
              ['sum', '{"n":1,"n":0}', '/n: properties is not satisfied'])
{
    my ($tool, $arguments, $text) = @$case;
    my $params = qq({"name":"$tool","arguments":$arguments});
    my %name = (headers => { 'Mcp-Name' => $tool });

    is_mismatch($c->legacy('tools/call', $params), $text,
                "legacy, plain, $arguments");

    my $res = $c->modern('tools/call', $params, %name);
    is_mismatch($res, $text, "modern, as a task, $arguments");
    is($res->{json}{result}{resultType}, 'complete', 'a complete result');
    is_mismatch($plain->modern('tools/call', $params, %name), $text,
                "modern, plain, $arguments");

    # a result of the tool is no CreateTaskResult
    $params =~ s/\}\z/,"task":{}}/;
    $res = $c->legacy('tools/call', $params);
    is($res->{json}{error}{code}, -32602, "legacy, as a task, $arguments");
    is($res->{json}{error}{message}, "Invalid params: arguments: $text",
       'with the same text');
    ok($res->{json}{error}{data}{keyword}, 'and data');
}

is_mismatch($c->legacy('tools/call', '{"name":"sum"}'),
            'required is not satisfied, "n" is missing', 'no arguments');
is_mismatch($c->legacy('tools/call', '{"name":"\u0073um","arguments":{}}'),
            'required is not satisfied, "n" is missing', 'an escaped name');
is_mismatch($c->legacy('tools/call', '{"name":"caf\u00e9","arguments":{"a":1}}'),
            'maxProperties is not satisfied', 'a name beyond ASCII');
is_mismatch($c->modern('tools/call', '{"name":"must"}',
                       headers => { 'Mcp-Name' => 'must' }),
            'required is not satisfied, "x" is missing', 'a required task');

# another round is a call, too
is_mismatch($c->modern('tools/call', '{"name":"sum","arguments":{"n":0},'
                       . '"requestState":"s","inputResponses":{}}',
                       headers => { 'Mcp-Name' => 'sum' }),
            '/n: minimum is not satisfied', 'with answers');

is($c->legacy('tools/call', '{"name":"must","arguments":{}}')
   ->{json}{error}{code}, -32601, 'what must be a task says that first');
is($c->legacy('tools/call', '{"name":"sum","arguments":[]}')
   ->{json}{error}{code}, -32602, 'arguments that are no object');

# --- past the validation

{
    my $call = '{"jsonrpc":"2.0","id":1,"method":"tools/call","params":'
               . '{"name":"sum","arguments":{"n":0}}}';
    my $res = $c->post("[$call]");
    is("$res->{status} $res->{json}{error}{code}", '400 -32600', 'a batch');
    is($res->{json}{error}{message}, 'Invalid Request: batches are not '
       . 'supported, send one message per POST', 'is refused');

    $res = $c->post($call, 'MCP-Protocol-Version' => '2024-11-05');
    is("$res->{status} $res->{json}{error}{message}", '400 Invalid Request: '
       . 'unsupported version in MCP-Protocol-Version',
       'so is a revision that is not known');
}

is($c->post('{"jsonrpc":"2.0","method":"tools/call","params":'
            . '{"name":"sum","arguments":{"n":0}}}')->{status}, 202,
   'a call without an id is dropped');

is(scalar(my @requests = $up->requests()), 0,
   'nothing of this has reached upstream');

# --- what matches

is($c->legacy('tools/call', '{"name":"sum","arguments":{"n":1}}')
   ->{json}{result}{content}[0]{text}, 'sum', 'legacy, plain');
is($c->modern('tools/call', { name => 'sum', arguments => { n => 2 } })
   ->{json}{result}{content}[0]{text}, 'sum', 'modern, as a task that is quick');
is($plain->modern('tools/call', { name => 'sum', arguments => { n => 2 } })
   ->{json}{result}{content}[0]{text}, 'sum', 'modern, plain');
is($g->ends($g->task('sum', params => { arguments => { n => 1 } }))->{status},
   'completed', 'legacy, as a task');
is($g->ends($g->modern_task('must', params => { arguments => { x => 1 } }))
   ->{status}, 'completed', 'modern, as a task');

# --- tools that are not in the file, and other messages

is($c->legacy('tools/call', '{"name":"other","arguments":{"n":[]}}')
   ->{json}{result}{content}[0]{text}, 'other', 'another tool is not checked');
is($g->ends($g->modern_task('other', params => { arguments => { n => 0 } }))
   ->{status}, 'completed', 'as a task, either');
is($c->post('{"jsonrpc":"2.0","id":1,"method":"tools/list"}',
            'MCP-Protocol-Version' => '2024-11-05')
   ->{json}{result}{tools}[0]{name}, 'sum',
   'other methods of a revision that is not known are passed');

# --- the file: made as the documentation shows, and read again by a reload

{
    my $docs = "$root/docs/gateway.md";
    my ($mcp) = blocks(section($docs, '## Step by step'), 'sh');
    my ($modern, $legacy) = blocks(section($docs, '## Validated arguments'),
                                   'sh');
    ok($legacy, 'the commands were read');

    # without what has no schema of 2020-12
    my @list = ($must, '{"name":"new","inputSchema":{"type":"object",'
                . '"maxProperties":1},"title":"A\n\u00e9"}');

    for my $style ('json', 'sse') {
        for my $case (['modern', 0, $modern], ['legacy', 1, $mcp, $legacy]) {
            my ($era, $sessions, @commands) = @$case;
            my $name = "$era, $style";
            $up->set(list => \@list, style => $style, sessions => $sessions);
            s/127\.0\.0\.1:3000/127.0.0.1:$up->{port}/g for @commands;
            unlink("$t->{dir}/schemas.json");
            shell($t, "cd $t->{dir}", @commands);

            my $made = decode_json(slurp("$t->{dir}/schemas.json") || '{}');
            is(join(' ', map { $_->{name} } @{ $made->{tools} || [] }),
               'must new', "$name: the file");
            my ($good, $said) = $t->check();
            ok($good, "$name: nginx -t") or diag($said);
        }
    }

    $up->set(style => 'json', sessions => 0);
    $t->{files}{'schemas.json'} = slurp("$t->{dir}/schemas.json");
    ok($t->reload_all(), 'a reload');
    is_mismatch($c->legacy('tools/call', '{"name":"new","arguments":'
                           . '{"a":1,"b":2}}'),
                'maxProperties is not satisfied', 'the new file is in effect');
    is($c->legacy('tools/call', '{"name":"sum","arguments":{}}')
       ->{json}{result}{content}[0]{text}, 'sum', 'and the old one is not');
}

$g->done();


# --- the directive, and errors of the file

my ($other) = MCPTasks->new(files => { 'tools.json' => '{"tools":[]}' });
ok($other->stop(), 'another nginx');


sub check {
    my ($pass, $file, %opt) = @_;
    my $path = "$other->{dir}/schemas.json";
    unlink($path);
    write_file($path, $file) if defined $file;
    $other->configure(http => 'mcp_tasks_zone zone=z:1m;', server =>
        ($opt{server} // '') . ' location /mcp { mcp_tasks zone=z; '
        . ($pass ? "mcp_tasks_pass $pass; " : '') . '}');
    return $other->check();
}


for my $pass ('/u schemas=schemas.json', '/u schemas=schemas.json era=legacy',
              '/u era=modern schemas=schemas.json',
              "/u schemas=$other->{dir}/schemas.json")
{
    my ($good, $said) = check($pass, "{\"tools\":[$sum]}");
    ok($good, "good: $pass") or diag($said);
}

ok((check('', '{"tools":[]}', server => 'mcp_tasks_pass /u '
          . 'schemas=schemas.json;'))[0], 'good: inherited, and no tools');

my $bad = qr{in \Q$other->{dir}\E/schemas\.json};

for my $case (
    ['/u schemas=', undef, qr{invalid parameter "schemas=", must be }
     . qr{"era=legacy", "era=modern" or "schemas=FILE" after a URI}],
    ['/u schema=schemas.json', undef, qr{invalid parameter "schema=schemas}],
    ['off schemas=schemas.json', '{"tools":[]}',
     qr{invalid parameter "schemas=schemas.json"}],
    ['/u schemas=schemas.json schemas=schemas.json', '{"tools":[]}',
     qr{parameter "schemas=schemas.json" is duplicate}],
    ['/u era=legacy era=modern', undef,
     qr{parameter "era=modern" is duplicate}],
    ['/u era=legacy schemas=schemas.json x', '{"tools":[]}',
     qr{invalid number of arguments in "mcp_tasks_pass"}],
    ['/u schemas=schemas.json', undef,
     qr{open\(\) "\Q$other->{dir}\E/schemas.json" failed}],
    ['/u schemas=schemas.json', '{"tools":', qr{$bad:1}],
    ['/u schemas=schemas.json', '{"result":{"tools":[]}}',
     qr{"tools" must be an array $bad:1}],
    ['/u schemas=schemas.json', "{\"tools\":[\n7]}",
     qr{a tool must be an object $bad:2}],
    ['/u schemas=schemas.json', "{\"tools\":[\n{\"name\":7}]}",
     qr{"name" must be a string of 1 to 128 bytes $bad:2}],
    ['/u schemas=schemas.json', "{\"tools\":[$must,\n$must]}",
     qr{"name" is duplicate $bad:2}],
    ['/u schemas=schemas.json', "{\"tools\":[\n{\"name\":\"a\"}]}",
     qr{"inputSchema" must be a schema with the type "object" $bad:2}],
    ['/u schemas=schemas.json', '{"tools":[{"name":"a",'
     . '"inputSchema":{"type":"object",' . "\n" . '"minProperties":-1}}]}',
     qr{"inputSchema" of tool "a": .*minProperties.* $bad:1}],
    ['/u schemas=schemas.json', '{"tools":[{"name":"a",'
     . '"inputSchema":{"type":"object","$schema":"' . $old . '"}}]}',
     qr{"inputSchema" of tool "a": .*\$schema.* $bad:1}],
)
{
    my ($pass, $file, $words) = @$case;
    my ($good, $said) = check($pass, $file);
    my $name = "refused: $pass, " . ($file // 'no file');
    ok(!$good, $name);
    like($said, qr/\[emerg\] .*$words/, 'says why');
}

done_testing();
