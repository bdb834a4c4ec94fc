# Arguments and results that are validated by a tool's schemas.
#
# 2025-11-25 and 2026-07-28, server/tools, "Security Considerations": "Servers
# MUST: Validate all tool inputs"

use warnings;
use strict;

use FindBin;
use lib "$FindBin::Bin/lib";

use JSON::PP;
use Test::More;

use MCPClient;
use MCPFile qw/ write_file /;
use MCPTasks qw/ workers /;

my $tools = <<'END';
{"tools": [
    {"name": "sum", "inputSchema": {
        "type": "object", "required": ["n"], "additionalProperties": false,
        "properties": {
            "n": {"type": "integer", "minimum": 1, "maximum": 1e400},
            "list": {"type": "array", "uniqueItems": true,
                     "items": {"$ref": "#/$defs/item"}},
            "word": {"type": "string", "pattern": "^(a+)+$"},
            "huge": {"const": 123456789012345678901234567890}
        },
        "$defs": {"item": {"type": ["string", "object"],
                           "propertyNames": {"maxLength": 3}}}}},
    {"name": "any", "inputSchema": {"type": "object"}},
    {"name": "must", "inputSchema": {"type": "object", "required": ["x"]},
     "mcpTasks": {"taskSupport": "required"}},
    {"name": "out", "inputSchema": {"type": "object"},
     "outputSchema": {"type": "object", "required": ["sum"],
                      "properties": {"sum": {"type": "integer"}}}}
]}
END

my $t = MCPTasks->new(
    workers => workers(),
    files => { 'tools.json' => $tools },
    http => 'mcp_tasks_zone zone=z:8m; mcp_tasks_tools tools.json;',
    surfaces => [qw/ mcp worker status /]);

my $c = MCPClient->new($t, extensions =>
    ['io.modelcontextprotocol/tasks', 'org.nginx.mcp-tasks/extended']);
my $plain = $c->as(extensions => []);


sub is_mismatch {
    my ($res, $text, $name) = @_;
    is($res->{status}, 200, "$name: 200");
    my $result = $res->{json}{result};
    is_deeply($result->{content}, [{ type => 'text',
                                     text => "Invalid arguments: $text" }],
              "$name: says where and why") or diag($res->{body});
    is($result->{isError}, JSON::PP::true, "$name: is an error of the tool");
    my $modern = exists $result->{resultType};
    is_deeply([sort keys %$result],
              [$modern ? '_meta' : (), qw/ content isError /,
               $modern ? 'resultType' : ()],
              "$name: nothing else");
}


# --- both eras, with and without a task

for my $case (['{}', 'required is not satisfied, "n" is missing'],
              ['{"n":0}', '/n: minimum is not satisfied'],
              ['{"n":"1"}', '/n: type is not satisfied'],
              ['{"n":1.5}', '/n: type is not satisfied'],
              ['{"n":1e401}', '/n: maximum is not satisfied'],
              ['{"n":1,"a~/\"\\\\\u00e9\u0007":2}',
               "/a~0~1\"\\\xc3\xa9\x07: additionalProperties is not satisfied"],
              ['{"n":1,"\u006e":2}', '/n: properties is not satisfied'],
              ['{"n":1,"list":["a","\u0061"]}',
               '/list: uniqueItems is not satisfied'],
              ['{"n":1,"list":["a",{"abcd":1}]}',
               '/list/1/abcd: maxLength is not satisfied'],
              ['{"n":1,"huge":123456789012345678901234567891}',
               '/huge: const is not satisfied'],
              ['{"n":1,"word":"' . 'a' x 60 . 'b"}',
               'too complex to be validated'])
{
    my ($arguments, $text) = @$case;
    my $params = qq({"name":"sum","arguments":$arguments});
    my %name = (headers => { 'Mcp-Name' => 'sum' });

    # a result of the tool is no CreateTaskResult
    my $res = $c->legacy('tools/call', $params =~ s/\}\z/,"task":{}}/r);
    is($res->{json}{error}{code}, -32602,
       "legacy, with a task, $arguments: an error");
    is($res->{json}{error}{message}, "Invalid params: arguments: $text",
       'says where and why');

    $res = $c->modern('tools/call', $params, %name);
    is_mismatch($res, $text, "modern $arguments");
    is($res->{json}{result}{resultType}, 'complete', 'a complete result');

    is_mismatch($c->legacy('tools/call', $params), $text,
                "legacy $arguments");
    is_mismatch($plain->modern('tools/call', $params, %name), $text,
                "modern, without tasks, $arguments");
}

{
    my $res = $c->legacy('tools/call', '{"name":"sum","task":{}}');
    is_deeply($res->{json}{error}{data},
              { pointer => '', keyword => 'required' },
              'no arguments are an empty object');
    is_mismatch($c->legacy('tools/call', '{"name":"sum"}'),
                'required is not satisfied, "n" is missing', 'none');

    $res = $c->legacy('tools/call',
                      '{"name":"must","arguments":{"x":1}}');
    is($res->{json}{error}{code}, -32601, 'a tool that must be a task');

    $res = $c->legacy('tasks/create', '{"action":"sum","params":{"n":0}}');
    is($res->{json}{error}{message},
       'Invalid params: params.params: /n: minimum is not satisfied',
       'tasks/create');
    is_deeply($res->{json}{error}{data},
              { pointer => '/n', keyword => 'minimum' }, 'with data');
    ok($c->legacy('tasks/create', '{"action":"other","params":{"n":0}}')
       ->{json}{result}, 'an action that is no tool');
}


# --- REST

{
    my $res = $c->rest_post('tasks', '{"tool":"sum","arguments":{"n":[]}}');
    is($res->{status}, 422, 'REST: 422');
    is($res->{header}{'content-type'}, 'application/problem+json', 'problem');
    is_deeply($res->{json}, { title => 'Unprocessable Content', status => 422,
                              reason => 'invalid_arguments',
                              detail => '/n: type is not satisfied',
                              pointer => '/n', keyword => 'type' },
              'which and why');
    is($c->rest_post('tasks', '{"tool":"sum"}')->{status}, 422,
       'REST: no arguments');

    $res = $c->rest_post('tasks', '{"tool":"sum","arguments":{"n":1,"word":"'
                                  . 'a' x 60 . 'b"}}');
    is($res->{json}{detail}, 'too complex to be validated', 'REST: too long');
}


# --- only what matched has become a task

{
    my ($queued) = $t->request('GET', '/status?format=json')->{body}
                   =~ /"queued":\s*(\d+)/;
    is($queued, 1, 'the action is the only task');

    my $id = $c->create('sum', arguments => { n => 1e2, list => ['a', {}],
                                              word => 'aa' });
    is($c->status($id), 'working', 'arguments that match: a task');
    ok($c->create('any', arguments => { anything => [] }), 'any arguments');
    ok($c->rest_post('tasks', '{"tool":"sum","arguments":{"n":1e400}}')
       ->{json}{taskId}, 'REST: a task');
}


# --- results of workers

sub out {
    my $id = $c->create('out');
    return ($id, $c->claim_id('out', $id));
}

{
    my ($id, $work) = out();
    my $got = $c->complete($work, '{"content":[],"structuredContent":'
                                  . '{"sum":1.0}}');
    is($got->{phase}, 'completed', 'a result that matches');

    ($id, $work) = out();
    $got = $c->complete($work, '{"content":[],"isError":true}');
    is($got->{phase}, 'completed', 'an error of the tool needs none');

    for my $case (['{"content":[]}', 'is missing, the tool has an '
                                     . 'outputSchema', undef],
                  ['{"structuredContent":{"sum":1},"structuredContent":1}',
                   'is duplicate', undef],
                  ['{"structuredContent":{"sum":0.5}}',
                   '/sum: type is not satisfied',
                   { pointer => '/sum', keyword => 'type' }],
                  ['{"structuredContent":[1],"isError":false}',
                   'type is not satisfied',
                   { pointer => '', keyword => 'type' }])
    {
        my ($result, $text, $data) = @$case;

        ($id, $work) = out();
        my $error = $c->complete($work, $result)->{error};
        is($error->{code}, -32602, "$result: an error");
        is($error->{message}, "Invalid params: structuredContent: $text",
           'says what is wrong');
        is_deeply($error->{data}, $data, 'and where');

        is($c->status($id), 'failed', 'the task has failed');
        $error = $c->legacy('tasks/result', { taskId => $id })->{json}{error};
        is($error->{code}, -32603, 'with an error');
        is($error->{message}, "Invalid result: structuredContent: $text",
           'that says the same');
        is($c->get($id)->{statusMessage}, $error->{message},
           'as its status does');
        is($c->complete($work, $result)->{error}{code}, -31011, 'for good');
    }

    ($id, $work) = out();
    $got = $c->complete({ %$work, lease => 'other' }, '{"content":[]}');
    is($got->{error}{code}, -31011, 'without the lease');
    is($c->status($id), 'working', 'nothing has failed');
}


# --- nginx -t

sub refused {
    my ($schema, $want, $field) = @_;
    $field ||= 'inputSchema';
    my $type = $field eq 'inputSchema' ? ''
                                       : '"inputSchema":{"type":"object"},';
    write_file("$t->{dir}/bad.json",
               "{\"tools\":[{\"name\":\"a\",$type\n\"$field\":"
               . "{\"type\":\"object\",$schema}}]}");
    $t->configure(server => 'location /x { mcp_tasks zone=z; '
                            . 'mcp_tasks_tools bad.json; }');
    my ($ok, $said) = $t->check();
    ok(!$ok, "refused: $schema");

    my $where = "in $t->{dir}/bad.json:2";
    like($said, qr{\[emerg\] .*"$field" of tool "a": \Q$want\E.* \Q$where\E},
         'says where and why');
}

refused('"properties":{"a":{"minLength":-1}}',
        '"#/properties/a/minLength" must be a non-negative integer');
refused('"properties":{"a":{"$ref":"https://example.com/s.json"}}',
        '"#/properties/a/$ref" refers to another document');
refused('"$ref":"#/$defs/none"', '"#/$ref" refers to a missing location');
refused('"$ref":"#"', '"#" applies itself to the same value');
refused('"patternProperties":{"(":{}}',
        '"#/patternProperties/(" is not a valid pattern');
refused('"$schema":"http://json-schema.org/draft-07/schema#"',
        '"#/$schema" must be "https://json-schema.org/draft/2020-12/schema"');
refused('"required":"x"', '"#/required" must be an array of strings',
        'outputSchema');

unlike($t->log(), qr/a~|abcd|uniqueItems/, 'nothing of it in the log');

done_testing();
