# The tools file: what clients see of it, and every mistake in it.

use warnings;
use strict;

use FindBin;
use lib "$FindBin::Bin/lib";

use Test::More;

use MCPClient;
use MCPFile qw/ write_file /;
use MCPTasks qw/ workers /;


my $t = MCPTasks->new(
    workers => workers(),
    http => 'mcp_tasks_zone zone=z:1m;',
    server => 'location /none { mcp_tasks zone=z; }');


sub file {
    my ($name, $text) = @_;
    write_file("$t->{dir}/$name", $text);
}


# A file that is good

file('good.json', <<'END');
{
    "tools": [
        {
            "name": "zeta",
            "title": "The last letter",
            "description": "\u00e9 stays as it is written",
            "inputSchema": {"type": "object", "properties": {"n": {"minimum": 1.0}}},
            "outputSchema": {"type": "object"},
            "annotations": {"readOnlyHint": true},
            "icons": [{"src": "data:,"}],
            "_meta": {"a/b": 1234567890123456789}
        },
        {"mcpTasks": {"taskSupport": "required", "attempts": 255, "priority": 3,
                      "after": 0, "lease": "30s", "backoff": 10,
                      "queueTimeout": "1m", "runTimeout": "1h", "ttl": 5000,
                      "retryOn": ["error", "timeout", "lease"]},
         "name": "alpha", "inputSchema": {"type": "object"}},
        {"name": "beta", "inputSchema": {"type": "object"},
         "mcpTasks": {"taskSupport": "forbidden", "retryOn": []},
         "x-other": null}
    ],
    "comment": "others may stand here"
}
END

file('one.json', '{"tools":[{"name":"one","inputSchema":{"type":"object"}}]}');
file('two.json', '{"tools":[{"name":"two","inputSchema":{"type":"object"}}]}');
file('empty.json', '{"tools":[]}');

# more than a page, and the second page full
file('many.json', '{"tools":['
     . join(',', map { "{\"name\":\"t$_\",\"inputSchema\":{\"type\":"
                       . "\"object\"}}" } 1 .. 250) . ']}');

$t->stop();
$t->{http} = <<"END";
    mcp_tasks_zone zone=z:1m;
    mcp_tasks_tools one.json;
END
$t->{server} = <<"END";
    location /http { mcp_tasks zone=z; }
    location /good { mcp_tasks zone=z; mcp_tasks_tools good.json; }
    location /full { mcp_tasks zone=z; mcp_tasks_tools $t->{dir}/many.json; }
    location /empty { mcp_tasks zone=z; mcp_tasks_tools empty.json; }
    location /owned { mcp_tasks zone=z; mcp_tasks_owner \$http_x_user; }
    location /outer {
        mcp_tasks_tools two.json;
        location /outer/inner { mcp_tasks zone=z; }
    }
    }

    server {
        listen 127.0.0.1:$t->{port};
        server_name two.local;
        mcp_tasks_tools two.json;
        location /server { mcp_tasks zone=z; }
        location /own { mcp_tasks zone=z; mcp_tasks_tools one.json; }
END
ok($t->start(), 'nginx starts with tools files') or diag($t->log());

my $zeta = '{"name":"zeta","title":"The last letter","description":'
           . '"\u00e9 stays as it is written","inputSchema":'
           . '{"type": "object", "properties": {"n": {"minimum": 1.0}}},'
           . '"outputSchema":{"type": "object"},"annotations":'
           . '{"readOnlyHint": true},"icons":[{"src": "data:,"}],"_meta":'
           . '{"a/b": 1234567890123456789}';
my $alpha = '{"name":"alpha","inputSchema":{"type": "object"}';
my $beta = '{"name":"beta","inputSchema":{"type": "object"},"x-other":null';

my $c = MCPClient->new($t, uri => '/good');


sub support {
    return ",\"execution\":{\"taskSupport\":\"$_[0]\"}}";
}

is($c->legacy('tools/list')->{body},
   '{"jsonrpc":"2.0","id":1,"result":{"tools":['
   . $zeta . support('optional') . ',' . $alpha . support('required') . ','
   . $beta . support('forbidden') . ']}}',
   '2025-11-25: as in the file, with execution and without our policy');

is($c->legacy('tools/list', {})->{body}, $c->legacy('tools/list')->{body},
   'empty parameters are none');

for my $version ('2025-06-18', '2025-03-26') {
    is($c->legacy('tools/list', undef,
                  headers => { 'MCP-Protocol-Version' => $version })->{body},
       '{"jsonrpc":"2.0","id":1,"result":{"tools":['
       . "$zeta},$alpha},$beta}]}}", "$version: without execution");
}

my $modern = $c->modern('tools/list')->{body};
$modern =~ s/("version":)"[^"]*"/$1"V"/;
is($modern,
   '{"jsonrpc":"2.0","id":1,"result":{"resultType":"complete","tools":['
   . "$zeta},$alpha},$beta}],\"_meta\":{"
   . '"io.modelcontextprotocol/serverInfo":{"name":"nginx-mcp-tasks",'
   . '"version":"V"}},"ttlMs":300000,"cacheScope":"public"}}',
   '2026-07-28: without execution, and with what caches need');

# 2026-07-28, Caching: a public response "may be shared between callers even if
# the Result is coming from an authenticated endpoint"
is($c->as(uri => '/owned')->modern('tools/list')->{json}{result}{cacheScope},
   'private', 'not to be shared where clients are known');

is($c->as(uri => '/empty')->legacy('tools/list')->{body},
   '{"jsonrpc":"2.0","id":1,"result":{"tools":[]}}', 'no tools are a list');


# Pages

for my $era ('legacy', 'modern') {
    my $m = $c->as(uri => '/full');
    my ($cursor, @names, @pages);

    do {
        my $got = $m->$era('tools/list',
                           defined $cursor ? { cursor => $cursor } : {})
                  ->{json}{result};
        push @pages, scalar @{ $got->{tools} };
        push @names, map { $_->{name} } @{ $got->{tools} };
        $cursor = $got->{nextCursor};
    } while (defined $cursor && @pages < 10);

    is("@pages", '100 100 50', "$era: pages of 100");
    is("@names", join(' ', map { "t$_" } 1 .. 250), "$era: each tool once");

    for my $bad ('""', '"0"', '"-100"', '"50"', '"300"', '"1e2"',
                 '"+100"', '" 100"', '"100 "', '"100x"', '"abc"', '100',
                 'null', '{}', '["100"]', '"99999999999999999999999"',
                 '"\u0000100"')
    {
        my $res = $m->$era('tools/list', "{\"cursor\":$bad}");
        is($res->{json}{error}{code}, -32602, "$era: cursor $bad")
            or diag(substr $res->{body}, 0, 200);
    }
}


# Where the directive stands

sub names {
    my ($uri, $host) = @_;
    my $res = MCPClient->new($t, uri => $uri,
                             headers => { Host => $host || 'localhost:1' })
              ->legacy('tools/list');
    return join ' ', map { $_->{name} } @{ $res->{json}{result}{tools} || [] };
}

is(names('/http', '127.0.0.1'), 'one', 'from http');
is(names('/outer/inner', '127.0.0.1'), 'two', 'from the location around');
is(names('/server', 'two.local'), 'two', 'from the server');
is(names('/own', 'two.local'), 'one', 'of the location itself');

is($c->as(uri => '/server', headers => { Host => 'two.local' })
   ->legacy('tools/call', { name => 'one', task => {} })->{json}{error}{code},
   -32602, 'a tool of another place cannot be called');

ok($t->stop(), 'nginx stops');
is($t->faults(), '', 'nothing bad in the log');


# Every mistake

$t->{http} = 'mcp_tasks_zone zone=z:1m;';

sub refused {
    my ($text, $want, $name) = @_;

    file('bad.json', $text) if defined $text;
    $t->configure(server => 'location /mcp { mcp_tasks zone=z;'
                            . ' mcp_tasks_tools bad.json; }');

    my ($ok, $said) = $t->check();
    ok(!$ok, "$name: refused");
    like($said, qr/\[emerg\].*$want/, "$name: says why");
    unlike($said, qr/Sanitizer|runtime error/, "$name: and nothing else");
}


# a tool with one member more or otherwise, on the line 4
sub tool {
    my ($members) = @_;
    return "{\n\"tools\": [\n{\"name\": \"a\",\"inputSchema\":"
           . "{\"type\":\"object\"},\n$members}]}\n";
}

my $bad = qr{in \Q$t->{dir}\E/bad\.json};

unlink "$t->{dir}/bad.json";
refused(undef, qr{open\(\) "\Q$t->{dir}\E/bad\.json" failed \(2: },
        'no such file');
refused('', qr{$bad:1}, 'an empty file');
refused("{\n\"tools\": [}", qr{$bad:2}, 'not JSON');
refused("{\"tools\":[]}\n\nx", qr{$bad:3}, 'something after it');
refused("{\"tools\":[],\n\"tools\":[]}", qr{$bad:2}, 'a member twice');
refused('[]', qr{"tools" must be an array $bad:1}, 'not an object');
refused('{}', qr{"tools" must be an array $bad:1}, 'no tools');
refused('{"tools":{}}', qr{"tools" must be an array $bad:1}, 'not an array');
refused("{\"tools\":[\n{\"name\":\"a\",\"inputSchema\":{\"type\":\"object\"}},"
        . "\n\"x\"]}", qr{a tool must be an object $bad:3},
        'a tool that is no object');

for my $name ('', '"name":"",', '"name":7,', '"name":null,',
              '"name":"' . 'x' x 129 . '",')
{
    refused("{\"tools\":[\n\n{$name\"inputSchema\":{\"type\":\"object\"}}]}",
            qr{"name" must be a string of 1 to 128 bytes $bad:3},
            'name: ' . substr($name || 'none', 0, 20));
}

refused("{\"tools\":[\n{\"name\":\"a\",\"inputSchema\":{\"type\":\"object\"}},"
        . "\n{\"inputSchema\":{\"type\":\"object\"},\n\"name\":\"\\u0061\"}]}",
        qr{"name" is duplicate $bad:4}, 'a name twice');

refused("{\"tools\":[\n{\"name\":\"a\"}]}",
        qr{"inputSchema" must be a schema with the type "object" $bad:2},
        'no inputSchema');

for my $schema ('{}', '{"type":"string"}', '{"type":["object"]}') {
    refused("{\"tools\":[{\"name\":\"a\",\n\"inputSchema\":$schema}]}",
            qr{"inputSchema" must be a schema with the type "object" $bad:2},
            "inputSchema $schema");
}

refused("{\"tools\":[{\"name\":\"a\",\n\"inputSchema\":true}]}",
        qr{"inputSchema" must be an object $bad:2}, 'inputSchema true');

for my $member (['title', '1', 'a string'], ['title', 'null', 'a string'],
                ['description', '[]', 'a string'],
                ['outputSchema', '"x"', 'an object'],
                ['annotations', '[]', 'an object'],
                ['icons', '{}', 'an array'], ['_meta', '7', 'an object'],
                ['mcpTasks', '[]', 'an object'],
                ['mcpTasks', 'null', 'an object'])
{
    my ($name, $value, $what) = @$member;
    refused(tool("\"$name\": $value"), qr{"$name" must be $what $bad:4},
            "$name: $value");
}

refused(tool('"execution": {"taskSupport":"optional"}'),
        qr{"execution" must not be set, it is generated from "mcpTasks" $bad:4},
        'execution');

sub policy {
    my ($members) = @_;
    return tool("\"mcpTasks\": {\n$members}");
}

refused(policy('"tries": 1'),
        qr{"tries" is an unknown parameter of "mcpTasks" $bad:5},
        'an unknown parameter');
refused(policy('"taskSupport": "required", "taskSupport": "required"'),
        qr{$bad:5}, 'a parameter twice');

for my $value ('"maybe"', 'true', 'null', '""', '1') {
    refused(policy("\"taskSupport\": $value"),
            qr{"taskSupport" must be "optional", "required" or "forbidden" }
            . qr{$bad:5}, "taskSupport $value");
}

for my $value ('"maybe"', 'true', 'null', '""', '1') {
    refused(policy("\"input\": $value"),
            qr{"input" must be "task", "call" or "first" $bad:5},
            "input $value");
}

for my $value ('0', '256', '-1', '1.5', '"2"', 'null') {
    refused(policy("\"attempts\": $value"),
            qr{"attempts" must be an integer from 1 to 255 $bad:5},
            "attempts $value");
}

for my $value ('4', '-1', '0.5', '"2"', 'null', 'true') {
    refused(policy("\"priority\": $value"),
            qr{"priority" must be an integer from 0 to 3 $bad:5},
            "priority $value");
}

for my $value ('"error"', 'null', '{}', '["all"]', '[1]', '[["error"]]',
               '["error", "error"]', '["Error"]', '[""]')
{
    refused(policy("\"retryOn\": $value"),
            qr{"retryOn" must be an array of "timeout", "lease" and "error", }
            . qr{each at most once $bad:5}, "retryOn $value");
}

for my $name (qw/ after lease backoff queueTimeout runTimeout ttl /) {
    for my $value ('-1', '1.5', '"x"', '""', '"-1s"', 'null', 'true',
                   '4294967295', '"100y"', '9223372036854775807')
    {
        refused(policy("\"$name\": $value"),
                qr{"$name" must be a time.* $bad:5}, "$name $value");
    }
}

# a task that lives for no time, or that nobody can hold
for my $name (qw/ lease ttl /) {
    refused(policy("\"$name\": 0"), qr{"$name" must .*$bad:5}, "$name 0");
}

# the directive itself
for my $conf ('mcp_tasks_tools;', 'mcp_tasks_tools good.json good.json;',
              'mcp_tasks_tools good.json; mcp_tasks_tools good.json;')
{
    $t->configure(server => "location /mcp { mcp_tasks zone=z; $conf }");
    my ($ok, $said) = $t->check();
    ok(!$ok, "refused: $conf");
    like($said, qr/\[emerg\] .*("mcp_tasks_tools"|duplicate)/, "says why");
}

done_testing();
