# Results as each era shows them: with and without resultType and _meta, from
# workers and from a server behind the gateway, and out of a database whose
# rows do not say what is in them, as those of 0.1.0.

use warnings;
use strict;

use FindBin;
# what has a store here is said here
BEGIN { delete $ENV{MCP_TASKS_STORE} }

use lib "$FindBin::Bin/lib";

use Test::More;

use MCPGateway;
use MCPJson;
use MCPStore qw/ sql /;
use MCPTasks qw/ workers /;
use MCPTools qw/ tools_json /;

# flags of src/core/ngx_mcp_task.h
my ($error, $read, $type, $meta) = (0x02, 0x10, 0x20, 0x40);

my $related = 'io.modelcontextprotocol/related-task';

# what was sent twice is shown so, within the result
MCPJson::allow($related);

# the name, the result, and what is to be seen of it as the result of tasks/get
# and of tasks/result, where REL is the member that names the task; the flags;
# whether only workers may send it
my @cases = (
    ['empty', '{}',
     '{"resultType":"complete"}', '{"_meta":{REL}}', 0],
    ['a space', '{ }',
     '{"resultType":"complete" }', '{"_meta":{REL} }', 0],
    ['neither', '{"content":[],"x":1.0}',
     '{"resultType":"complete","content":[],"x":1.0}',
     '{"_meta":{REL},"content":[],"x":1.0}', 0],
    ['resultType', '{"content":[], "resultType":"complete"}',
     '{"content":[], "resultType":"complete"}',
     '{"_meta":{REL},"content":[], "resultType":"complete"}', $type],
    ['resultType null', '{"resultType":null}',
     '{"resultType":null}', '{"_meta":{REL},"resultType":null}', $type],
    ['_meta', '{"content":[],"_meta":{"a":1}}',
     '{"resultType":"complete","content":[],"_meta":{"a":1}}',
     '{"content":[],"_meta":{REL,"a":1}}', $meta],
    ['empty _meta', '{"_meta": { },"content":[]}',
     '{"resultType":"complete","_meta": { },"content":[]}',
     '{"_meta": {REL },"content":[]}', $meta],
    ['_meta that is no object', '{"_meta":1}',
     '{"resultType":"complete","_meta":1}',
     '{"_meta":{REL}}', $meta],
    ['both', '{"_meta":{"a":{}},"resultType":"other","isError":false}',
     '{"_meta":{"a":{}},"resultType":"other","isError":false}',
     '{"_meta":{REL,"a":{}},"resultType":"other","isError":false}',
     $type | $meta],
    ['both, escaped', '{"result\u0054ype":"complete","\u005fmeta":{"a":1}}',
     '{"result\u0054ype":"complete","\u005fmeta":{"a":1}}',
     '{"result\u0054ype":"complete","\u005fmeta":{REL,"a":1}}',
     $type | $meta],
    ['both, further down', '{"structuredContent":{"resultType":"a",'
     . '"_meta":{},"isError":true}}',
     '{"resultType":"complete","structuredContent":{"resultType":"a",'
     . '"_meta":{},"isError":true}}',
     '{"_meta":{REL},"structuredContent":{"resultType":"a","_meta":{},'
     . '"isError":true}}', 0],
    ['isError', '{"isError":true,"_meta":{"a":1}}',
     '{"resultType":"complete","isError":true,"_meta":{"a":1}}',
     '{"isError":true,"_meta":{REL,"a":1}}', $error | $meta],
    # 2025-11-25: the related task of a result is the one that it belongs to
    ["_meta with another server's task",
     '{"_meta":{"a":1, "' . $related . '" : {"taskId":"x"},"b":[2, 3]}, "c": 1}',
     '{"resultType":"complete","_meta":{"a":1, "' . $related
     . '" : {"taskId":"x"},"b":[2, 3]}, "c": 1}',
     '{"_meta":{REL,"a":1,"b":[2, 3]},"c":1}', $meta],
    ["_meta with another server's task twice",
     '{"c":1,"_meta":{"' . $related . '":1,"' . $related . '":2}}',
     '{"resultType":"complete","c":1,"_meta":{"' . $related . '":1,"'
     . $related . '":2}}', '{"_meta":{REL},"c":1}', $meta],
);

my $g = MCPGateway->new(
    workers => workers(), file => tools_json('queued'),
    store => 'store=sqlite:tasks.db', tool => ['far support=optional'],
    on => { far => [['sse'], ['hold']] });
my ($up, $t, $c) = @{$g}{qw/ up t c /};
my $db = "$t->{dir}/tasks.db";


# completes with the result: the id
sub by_worker {
    my ($result) = @_;
    my $id = $c->create('queued');
    $c->complete($c->claim_id('queued', $id), $result);
    return $id;
}


sub by_server {
    my ($result) = @_;
    my ($id, $call) = $g->begin('far');
    $up->go($call, ['result', $result]);
    $g->becomes($id, 'completed');
    return $id;
}


# one as another, to the byte
sub shown {
    my ($case, $id, $name) = @_;
    my (undef, undef, $modern, $legacy, $flags) = @$case;
    my $rel = qq("io.modelcontextprotocol/related-task":{"taskId":"$id"});

    my $got = $g->get($id)->{text};
    is($got =~ s/\A.*?:1000,"result":(.*)\}\}\z/$1/sr, $modern, "$name: modern")
        or diag($got);
    is($g->result($id),
       '{"jsonrpc":"2.0","id":1,"result":' . $legacy =~ s/REL/$rel/r . '}',
       "$name: legacy");
    is($c->status($id), $flags & $error ? 'failed' : 'completed',
       "$name: its status");
}


my @tasks;

for my $case (@cases) {
    my ($name, $result, $only) = @{$case}[0, 1, 5];
    push(@tasks, [$case, by_worker($result), "$name, worker"]);
    push(@tasks, [$case, by_server($result), "$name, gateway"]) unless $only;
}

shown(@$_) for @tasks;

# isError is what others depend on
for my $result ('{"isError":true,"isError":true}', '{"isError":1}', '[]',
                '{"_meta":{"a":1},"_meta":{"b":2}}',
                '{"resultType":"a","resultType":"b"}')
{
    my $work = $c->claim_id('queued', $c->create('queued'));
    is($c->complete($work, $result)->{error}{code}, -32602,
       "a worker's $result is refused");
}

for my $result ('{"isError":true,"isError":true}',
                '{"resultType":"a","resultType":"b"}',
                '{"_meta":{"a":1},"_meta":{"b":2}}')
{
    my ($id, $call) = $g->begin('far');
    $up->go($call, ['result', $result]);
    $g->fails($id, 'upstream_invalid', "a server's $result is refused");
}

# what was found is saved with a task, and is true after a restart

ok($t->stop(), 'nginx stops');

for (@tasks) {
    my ($case, $id, $name) = @$_;
    is(sql($db, "SELECT flags & 0x72 FROM task WHERE id = '$id'"),
       $case->[4] | $read, "$name: its flags");
}

ok($t->start(), 'nginx starts');
shown(@{$_}[0, 1], "$_->[2], saved") for @tasks;

# rows as 0.1.0 wrote them

ok($t->stop(), 'nginx stops');
sql($db, "UPDATE task SET flags = flags & ~($read | $type | $meta)");
is(sql($db, 'SELECT count(*) FROM task WHERE flags & 0x70'), 0, 'no flags');

ok($t->start(), 'nginx starts');
shown(@{$_}[0, 1], "$_->[2], 0.1.0") for @tasks;

$g->done('background call failed');
done_testing();
