# Answers that no upstream should give: the task fails and says why, the call is
# over, and nginx goes on as if nothing had happened.

use warnings;
use strict;

use FindBin;
use lib "$FindBin::Bin/lib";

use Test::More;

use MCPClient;
use MCPGateway;
use MCPProcess qw/ memory_of /;
use MCPTasks qw/ wait_for /;

# what a sanitizer keeps of freed memory is not what we look for
$ENV{ASAN_OPTIONS} = 'quarantine_size_mb=1:thread_local_quarantine_size_kb=64';

my $g = MCPGateway->new(
    http => 'mcp_tasks_limit payload=64k;',
    conf => 'mcp_tasks_retries 0;',
    tool => ['bad support=optional'],
    proxy => 'proxy_next_upstream off; proxy_read_timeout 30s;');
my ($up, $t, $c) = @{$g}{qw/ up t c /};
my ($pid) = $t->worker_pids();


my $memory = memory_of($pid);
my $ok = '{"jsonrpc":"2.0","id":%ID%,"result":{"a":1.0}}';
my %json = ('Content-Type' => 'application/json');


# of messages in JSON, and the same on a stream
sub both {
    my ($name, $want, $text) = @_;
    return ([$name, $want, ['json', $text]],
            ["$name, streamed", $want, ['sse'],
             ['event', $text], ['end']]);
}


sub status {
    my ($status, @body) = @_;
    return ['json', $body[0] // '', $status, $body[1] || {}];
}


# the name, what is wanted, and what upstream does; what is wanted is a reason,
# "done" for a result, or a code
my @cases = (

    # HTTP
    ['500 with HTML', 'upstream_status 500',
     status(500, '<h1>no</h1>', { 'Content-Type' => 'text/html' })],
    ['503 with nothing', 'upstream_status 503', status(503)],
    ['404 with nothing', 'upstream_status 404', status(404)],
    ['401', 'upstream_status 401',
     status(401, '', { 'WWW-Authenticate' => 'Bearer' })],
    ['302', 'upstream_status 302',
     status(302, '', { Location => 'http://127.0.0.1:1/' })],
    ['400 with an error', '-7', status(400,
     '{"jsonrpc":"2.0","id":%ID%,"error":{"code":-7,"message":"x"}}')],
    ['404 with an error and no id', '-7', status(404,
     '{"jsonrpc":"2.0","id":null,"error":{"code":-7,"message":"x"}}')],
    ['400 with a broken error', 'upstream_status 400', status(400,
     '{"jsonrpc":"2.0","id":%ID%,"error":{"code":')],
    ['500 with a result', 'upstream_status 500', status(500, $ok)],
    ['400 with a very long error', 'upstream_status 400|upstream_too_large',
     status(400,
     '{"jsonrpc":"2.0","id":%ID%,"error":{"code":-7,"message":"'
     . 'x' x 200_000 . '"}}')],
    ['202 with nothing', 'upstream_invalid',
     ['head', 202, { 'Content-Length' => 0 }], ['end']],
    ['204', 'upstream_invalid', ['head', 204, { 'Content-Length' => 0 }],
     ['end']],
    ['200 with nothing', 'upstream_invalid', ['json', '']],
    ['HTML', 'upstream_invalid',
     ['json', '<p>hi</p>', 200, { 'Content-Type' => 'text/html' }]],
    ['JSON that is called HTML', 'upstream_invalid',
     ['json', $ok, 200, { 'Content-Type' => 'text/html' }]],
    ['no content type', 'upstream_invalid',
     ['json', $ok, 200, { 'Content-Type' => undef }]],
    ['gzip', 'upstream_invalid', ['json', "\x1f\x8b\x08\0\0\0\0\0", 200,
                                  { 'Content-Encoding' => 'gzip' }]],
    ['no HTTP', 'upstream_invalid', ['raw', "SSH-2.0-x\r\n\r\n"], ['close']],
    ['headers without end', 'upstream_closed',
     ['raw', "HTTP/1.1 200 OK\r\n"], ['flood', 'X-A: ' . 'a' x 90 . "\r\n"]],

    # the connection
    ['reset before the head', 'upstream_closed', ['reset']],
    ['closed before the head', 'upstream_closed', ['close']],
    ['reset in the head', 'upstream_closed', ['raw', "HTTP/1.1 200 OK\r\nX"],
     ['pause', 0.05], ['reset']],
    ['reset after the head', 'upstream_closed', ['sse'], ['pause', 0.05],
     ['reset']],
    ['a stream that is cut', 'upstream_closed', ['sse'],
     ['text', 'data: {"jsonrpc"'], ['pause', 0.05], ['close']],
    ['a stream that ends without an answer', 'upstream_closed', ['sse'],
     ['event', '{"jsonrpc":"2.0","method":"notifications/x"}'], ['end']],
    ['an event without its empty line', 'upstream_closed', ['sse'],
     ['text', "data: $ok\n"], ['end']],
    ['an empty stream', 'upstream_closed', ['sse'], ['end']],
    ['JSON that is shorter than its length', 'upstream_closed',
     ['head', 200, { %json, 'Content-Length' => 1000 }], ['text', $ok],
     ['pause', 0.05], ['close']],
    ['chunks that are cut', 'upstream_closed', ['head', 200, \%json],
     ['text', $ok], ['pause', 0.05], ['close']],
    ['a chunk that is none', 'upstream_(closed|invalid)', ['sse'],
     ['raw', "zz\r\n"], ['pause', 0.05], ['close']],

    # messages
    both('no JSON', 'upstream_invalid', '{"jsonrpc":"2.0","id":%ID%,'),
    both('not quite JSON', 'upstream_invalid',
         '{"jsonrpc":"2.0","id":%ID%,"result":{"a":01}}'),
    both('invalid UTF-8', 'upstream_invalid',
         "{\"jsonrpc\":\"2.0\",\"id\":%ID%,\"result\":{\"a\":\"\xff\"}}"),
    both('a batch', 'upstream_invalid', "[$ok]"),
    both('a result twice', 'upstream_invalid', '{"jsonrpc":"2.0","id":%ID%,'
         . '"result":{"a":1},"result":{"a":2}}'),
    both('a result and an error', 'upstream_invalid', '{"jsonrpc":"2.0","id":'
         . '%ID%,"result":{},"error":{"code":1,"message":"x"}}'),
    both('neither', 'upstream_invalid', '{"jsonrpc":"2.0","id":%ID%}'),
    both('a number as the result', 'upstream_invalid',
         '{"jsonrpc":"2.0","id":%ID%,"result":7}'),
    both('null as the result', 'upstream_invalid',
         '{"jsonrpc":"2.0","id":%ID%,"result":null}'),
    both('an error that is none', 'upstream_invalid',
         '{"jsonrpc":"2.0","id":%ID%,"error":"no"}'),
    both('an error without a code', 'upstream_invalid',
         '{"jsonrpc":"2.0","id":%ID%,"error":{"message":"x"}}'),
    both('no version', 'upstream_invalid', '{"id":%ID%,"result":{}}'),
    both('a string', 'upstream_invalid', '"hello"'),
    both('nested too deeply', 'upstream_invalid',
         '{"jsonrpc":"2.0","id":%ID%,"result":{"a":' . '[' x 5000
         . ']' x 5000 . '}}'),
    ['another id', 'upstream_invalid',
     ['json', '{"jsonrpc":"2.0","id":"other","result":{}}']],
    ['another id, streamed', 'upstream_invalid', ['sse'],
     ['event', '{"jsonrpc":"2.0","id":"other","result":{}}'], ['end']],
    ['no id', 'upstream_invalid', ['json', '{"jsonrpc":"2.0","result":{}}']],

    # sizes
    ['a large result', 'upstream_too_large', ['json', '{"jsonrpc":"2.0","id":'
     . '%ID%,"result":{"a":"' . 'x' x 70_000 . '"}}']],
    ['a large result, streamed', 'upstream_too_large', ['sse'], ['event',
     '{"jsonrpc":"2.0","id":%ID%,"result":{"a":"' . 'x' x 70_000 . '"}}']],
    ['JSON without end', 'upstream_too_large', ['head', 200, \%json],
     ['text', '{"jsonrpc":"2.0","id":%ID%,"result":{"a":"'],
     ['flood', 'x' x 1000]],
    ['space without end', 'upstream_too_large', ['head', 200, \%json],
     ['flood', ' ' x 1000]],
    ['an event without end', 'upstream_too_large', ['sse'], ['text', 'data: '],
     ['flood', 'x' x 1000]],
    ['an event of lines without end', 'upstream_too_large', ['sse'],
     ['flood', "data: x\n" x 100]],
    ['a comment without end', 'working', ['sse'],
     ['text', ':'], ['flood', 'x' x 1000]],

    # strange, but good
    ['an answer twice', 'done', ['sse'], ['event', $ok], ['event', $ok],
     ['end']],
    ['more after the answer', 'done', ['sse'], ['event', $ok],
     ['flood', "data: more\n\n", 0.01]],
    ['the answer to something else first', 'done', ['sse'],
     ['event', '{"jsonrpc":"2.0","id":"other","result":{}}'], ['event', $ok],
     ['end']],
    ['events of another name', 'done', ['sse'],
     ['text', "event: other\ndata: {}\n\nevent: message\ndata: $ok\n\n"],
     ['end']],
    ['members that nobody knows', 'done', ['json',
     '{"x":[{}],"jsonrpc":"2.0","id":%ID%,"result":{"a":1.0},"y":null}']],
    ['space around it', 'done', ['json', " \n$ok\r\n\t"]],
    ['notifications that are none', 'done', ['sse'],
     ['event', '{"jsonrpc":"2.0","method":"notifications/progress"}'],
     ['event', '{"jsonrpc":"2.0","method":"notifications/progress","params":'
               . '{"progressToken":%TOKEN%,"progress":"x","message":7}}'],
     ['event', '{"jsonrpc":"2.0","method":"notifications/message","params":'
               . '[]}'], ['event', $ok], ['end']],
);


sub outcome {
    my ($got) = @_;
    return 'done' if ($got->{status} // '') eq 'completed'
                     && ($got->{result}{a} // 0) == 1;
    my $error = $got->{error} or return $got->{status} // $got->{text};
    return $error->{code} if $error->{code} != MCPGateway::FAILED;
    return join ' ', grep { defined } @{ $error->{data} }{qw/ reason status /};
}


for my $case (@cases) {
    my ($name, $want, @steps) = @$case;
    $up->script(bad => \@steps);
    my $n = $up->count('bad');
    my $id = $g->task('bad');
    my $open = $want =~ /working/;
    my $got = outcome($open ? $g->ends($id, 0.5) : $g->ends($id, 20));

    like($got, qr/\A(?:$want)\z/, "$name: $want");

    if ($open) {
        $c->legacy('tasks/cancel', { taskId => $id });
    }

    my $call = ($up->calls('bad'))[$n] or fail("$name: was called"), next;
    ok((wait_for { my $now = $up->get($call); $now->{done} || $now->{closed} }
        10), "$name: the call is over");
    is($up->count('bad'), $n + 1, "$name: and was sent once");
}

# --- nobody listens

$up->shut();
$g->fails($g->task('bad'), 'upstream_unreachable', 'nobody listens', 20);
$up->open();

# --- tiny events without end: the client is not flooded, and it can be ended

{
    $up->script(bad => [['sse'], ['flood', "data: {\"jsonrpc\":\"2.0\","
        . "\"method\":\"notifications/progress\",\"params\":{"
        . "\"progressToken\":%TOKEN%,\"progress\":1}}\n\n"]]);
    my $n = $up->count('bad');
    my $id = $g->task('bad');
    my $call = $up->call('bad', $n + 1);

    is(@{[grep { $c->legacy('tasks/get', { taskId => $id })->{status} == 200 }
          1 .. 20]}, 20, 'tiny events without end: others are served');
    $c->legacy('tasks/cancel', { taskId => $id });
    ok($up->left($call, 20), 'and it can be cancelled');
}

# --- nginx has not grown, nor died

my $grown = memory_of($pid) - $memory;
is_deeply([$t->worker_pids()], [$pid], 'it is the same process');
cmp_ok($grown, '<', 64 * 1024 * 1024, "which has not kept much ($grown)");
ok((wait_for { ($up->connections())[0] == 0 } 10),
   'and no connection is left');

$up->script(bad => [['result', '{"a":1.0}']]);
is(outcome($g->ends($g->task('bad'))), 'done', 'it works as before');

$g->done('\[error\]');
done_testing();
