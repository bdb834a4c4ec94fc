# Calls that become tasks in the legacy era: what upstream gets, and what the
# client gets of it.

use warnings;
use strict;

use FindBin;
use lib "$FindBin::Bin/lib";

use Test::More;

use MCPClient;
use MCPGateway;
use MCPTasks qw/ wait_for workers /;

my $g = MCPGateway->new(
    workers => workers(),
    tool => ['slow support=optional', 'must support=required ttl=10m',
             'never support=forbidden', 'json support=optional',
             '~^any support=optional', '~^anything support=required'],
    on => { map { $_ => [['sse'], ['hold']] } qw/ slow must json /,
            'any1', 'anything' });
my ($up, $t, $c) = @{$g}{qw/ up t c /};

my $conn = $t->connect_all() or BAIL_OUT('processes cannot be reached');
my @all = map { $c->as(via => $conn->{$_}) } sort keys %$conn;


# the status and its message, as the process of that number sees it
sub status {
    my ($id, $n) = @_;
    my $got = $all[($n || 0) % @all]->legacy('tasks/get', { taskId => $id });
    my $task = $got->{json}{result} || {};
    return ($task->{status} // $got->{body})
           . (defined $task->{statusMessage} ? " $task->{statusMessage}" : '');
}


sub shows {
    my ($id, $want, $name) = @_;
    my $got = '';
    wait_for { $got = status($id); $got eq $want } 10;
    is($got, $want, $name);
}


sub notify {
    my ($method, $params) = @_;
    return ['event', "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/$method\""
                     . ",\"params\":$params}"];
}


# --- what upstream gets

my $body = '{"jsonrpc":"2.0","id":"c-1","method":"tools/call","params":{'
           . '"name":"slow","arguments":{"n":1.0e3,"s":"\u00e9","big":'
           . '12345678901234567890,"task":{"keep":1}},"task":{"ttl":60000},'
           . '"_meta":{"x":1,"progressToken":"mine"}}}';
my $res = $c->post($body, Authorization => 'Bearer abc', Cookie => 'c=1',
                   'Mcp-Session-Id' => 'sess', 'Accept-Encoding' => 'gzip',
                   'X-Any' => 'thing');
my $task = $res->{json}{result}{task};
is($res->{status}, 200, 'a call with task is answered');
is($res->{json}{id}, 'c-1', 'with its id');
is("$task->{status} $task->{ttl}", 'working 60000', 'by a task');
my $id = $task->{taskId};

my $call = $up->call('slow');
is("$call->{method} $call->{path}", 'POST /mcp', 'upstream gets the call');
is($call->{json}{method}, 'tools/call', 'as a call');
ok(defined $call->{id} && $call->{id} ne 'null', 'with an id');
is($call->{json}{params}{task}, undef, 'without task');
ok(index($call->{body}, '{"n":1.0e3,"s":"\u00e9","big":'
         . '12345678901234567890,"task":{"keep":1}}') > 0,
   'its arguments are as they were') or diag($call->{body});
is($call->{json}{params}{_meta}{x}, 1, 'and what else is in _meta');
ok(defined $call->{token}, 'it has a progress token');

my %want = (authorization => 'Bearer abc', cookie => 'c=1',
            'mcp-session-id' => 'sess', 'x-any' => 'thing',
            'mcp-protocol-version' => '2025-11-25',
            'content-type' => 'application/json',
            accept => 'application/json, text/event-stream');
is($call->{head}{$_}, $want{$_}, "header $_") for sort keys %want;
is($call->{head}{'accept-encoding'}, undef, 'but nothing of encodings');
is($call->{head}{'content-length'}, length $call->{body}, 'and the length');

status($id, $_) eq 'working' or fail("process $_ knows it") for 0 .. $#all;
pass('all processes know the task');

# --- progress and messages

$up->go($call, notify('progress', '{"progressToken":%TOKEN%,"progress":1,'
                                  . '"total":4,"message":"one of four"}'));
shows($id, 'working one of four', 'progress with a message');
my $poll = $c->rest("tasks/$id/poll")->{json};
is("$poll->{progress} $poll->{total}", '1 4', 'and its numbers');

$up->go($call, notify('message', '{"level":"info","data":"halfway"}'));
shows($id, 'working halfway', 'a message');

# none of these says anything
$up->go($call, notify('message', '{"level":"debug","data":"noise"}'),
        notify('message', '{"level":"info","data":{"an":"object"}}'),
        notify('progress', '{"progressToken":"other","progress":3,'
                           . '"message":"of another"}'),
        notify('tools/list_changed', '{}'), notify('unknown', '{"message":1}'),
        ['text', ": a comment\n\nid: 5\nretry: 10\n\n"],
        notify('progress', '{"progressToken":%TOKEN%,"progress":3,'
                           . '"total":4,"message":"three"}'));
shows($id, 'working three', 'what is of no interest is left out');
$poll = $c->rest("tasks/$id/poll")->{json};
is($poll->{progress}, 3, 'and the token tells');

# how much it is in all need not be known
$up->go($call, notify('progress', '{"progressToken":%TOKEN%,"progress":70,'
                                  . '"message":"seventy"}'));
shows($id, 'working seventy', 'progress without a total');

# --- the end, to the byte

my $waits = $t->connect();
MCPTasks::send_raw($waits, $c->legacy_bytes('tasks/result', { taskId => $id }));
$up->go($call, ['result', '{"content":[{"type":"text","text":"\u00e9"}],'
                          . '"x":1.0e0,"y":12345678901234567890}']);
my $want = MCPGateway::with_related($id, '"content":[{"type":"text","text":'
    . '"\u00e9"}],"x":1.0e0,"y":12345678901234567890');
is(MCPTasks::read_response($waits)->{body}, $want, 'who waits gets the result');
is($g->result($id, $_), $want, 'and so does who asks later') for @all;
is(status($id), 'completed seventy', 'it is completed');
ok(wait_for { $up->get($call)->{done} }, 'upstream is through');

# how a result comes does not matter
for my $case (
    ['JSON', ['json', '{"jsonrpc":"2.0","id":%ID%,"result":{"a":1.0}}']],
    ['JSON, members in another order',
     ['json', "{\"result\" : {\"a\":1.0},\n\"id\":%ID%, \"jsonrpc\":\"2.0\"}"]],
    ['JSON in chunks', ['head', 200, { 'Content-Type' => 'application/json' }],
     ['bytewise', '{"jsonrpc":"2.0","id":%ID%,"result":{"a":1.0}}'], ['end']],
    ['JSON with a charset', ['json', '{"jsonrpc":"2.0","id":%ID%,"result":'
                             . '{"a":1.0}}', 200, { 'Content-Type' =>
                             'application/json; charset=utf-8' }]],
    ['a stream', ['sse'], ['result', '{"a":1.0}']],
    ['a stream with a charset', ['sse', 200, { 'Content-Type' =>
     'Text/Event-Stream;charset=utf-8' }], ['result', '{"a":1.0}']],
    ['a stream byte by byte', ['sse'], ['bytewise', "\xef\xbb\xbf:c\r\nid: 1"
     . "\r\nretry: 5\r\ndata:{\"jsonrpc\":\"2.0\",\r\ndata: \"id\":%ID%,\r\n"
     . "data: \"result\":{\"a\":1.0}}\r\n\r\n"], ['end']],
    ['a stream with bare CR', ['sse'], ['bytewise', "data: {\"jsonrpc\":"
     . "\"2.0\",\"id\":%ID%,\rdata: \"result\":{\"a\":1.0}}\r\r"], ['end']],
    ['a stream that stays open', ['sse'], ['event',
     '{"jsonrpc":"2.0","id":%ID%,"result":{"a":1.0}}']],
)
{
    my ($name, @steps) = @$case;
    $up->script(json => \@steps);
    my $id = $g->task('json', who => $c);
    is($g->ends($id, 15)->{status}, 'completed', "$name: completed");
    is($g->result($id), MCPGateway::with_related($id, '"a":1.0'),
       "$name: the result");
}

# --- errors are handed on as well

$id = $g->task('slow');
$g->go('slow', ['error', '{"code":-32050,"message":"\u00e9","data":1.0}']);
is($g->ends($id)->{status}, 'failed', 'an error');
is($g->result($id), '{"jsonrpc":"2.0","id":1,"error":{"code":-32050,'
   . '"message":"\u00e9","data":1.0}}', 'to the byte');

$id = $g->task('slow');
$g->go('slow', ['result', '{"content":[],"isError":true}']);
is($g->becomes($id, 'completed')->{status}, 'completed',
   'a tool that fails, in the modern era');
is(status($id), 'failed The tool returned an error', 'and in this one');
is($g->result($id), MCPGateway::with_related($id,
   '"content":[],"isError":true'), 'with its result');

# --- which calls become tasks

$res = $c->legacy('tools/call', { name => 'never', task => {} });
is("$res->{status} " . ($res->{json}{error}{code} // $res->{body}),
   '200 -32601', 'forbidden: not as a task');
is(scalar(my @n = $up->calls('never')), 0, 'upstream is not asked');
is($c->legacy('tools/call', { name => 'never' })->{json}{result}{content}[0]
   {text}, 'never', 'but plainly');

my $must = scalar(my @m = $up->calls('must'));
$res = $c->legacy('tools/call', { name => 'must' });
is("$res->{status} $res->{json}{error}{code}", '200 -32601',
   'required: not plainly');
is(scalar(@m = $up->calls('must')), $must, 'upstream is not asked');
$res = $c->legacy('tools/call', { name => 'must', task => {} });
is($res->{json}{result}{task}{ttl}, 600000, 'but as a task, with its ttl');
ok($g->go('must', ['result', '{}']), 'which is called');

# the first expression that matches
$id = $g->task('any1');
ok($g->go('any1', ['result', '{}']), 'a tool by its pattern');
is($g->ends($id)->{status}, 'completed', 'is a task');
my $stream = $c->stream($c->legacy_bytes('tools/call', { name => 'anything' }));
like($stream->head(10), qr/ 200 /, 'the first pattern that matches: optional');
$stream->close();

# one that nothing is said of
$id = $g->task('unheard');
is($g->ends($id)->{status}, 'completed', 'without a word: as the client wants');
is($c->legacy('tools/call', { name => 'unheard' })->{json}{result}{content}[0]
   {text}, 'unheard', 'or plainly');

# --- clients may use an id again: upstream never gets the same one twice

{
    my $before = $up->count('slow');
    my @clients = ('1', '1', '"1"', '1');
    my @ids = map {
        $g->task('slow', id => $clients[$_],
                 params => { arguments => { i => $_ } })
    } 0 .. $#clients;
    $up->call('slow', $before + 4);

    # each has a connection of its own: they may overtake each other
    my @calls = sort { $a->{json}{params}{arguments}{i}
                       <=> $b->{json}{params}{arguments}{i} }
                @{[$up->calls('slow')]}[$before .. $before + 3];
    my %ids = map { $_->{id} => 1 } @calls;
    is(scalar keys %ids, 4, 'equal ids of clients: different ones upstream');
    like($_, qr/\A"nginx-[0-9a-f]{16}-1"\z/, 'each of our own') for keys %ids;
    my %tokens = map { $_->{token} => 1 } @calls;
    is(scalar keys %tokens, 4, 'and so are the tokens of progress');

    for my $i (reverse 0 .. 3) {
        $up->go($calls[$i], ['result', "{\"i\":$i}"]);
        is($g->ends($ids[$i])->{result}{i}, $i, 'each gets its own result');
    }
}

# --- headers that nginx looks into, with a value and without

for my $value ('', 'x', 'Mozilla/4.0 (compatible; MSIE 6.0) Opera Gecko/')
{
    my @names = ('User-Agent', 'Cookie', 'Referer', 'X-Forwarded-For', 'Via',
                 'X-Real-IP', 'Depth', 'Date', 'Authorization', 'If-Match',
                 'Accept-Language', 'Keep-Alive', 'If-Modified-Since', 'Range',
                 'TE');
    my $before = $up->count('headers');
    my $id = $g->task('headers', headers => { map { $_ => $value } @names });
    is($g->ends($id, 5)->{status}, 'completed', "headers: $value");
    my $call = $up->call('headers', $before + 1, 5) || {};
    is($call->{head}{'user-agent'}, $value, 'are passed');
    is($call->{head}{range}, undef, 'but not all');
}

# a revision without tasks
$res = $c->say_bytes(MCPClient::bytes('/mcp', MCPClient::rpc('tools/call',
    { name => 'plain', task => {} }), 'MCP-Protocol-Version' => '2025-06-18',
    'X-User' => 'ann'));
is($res->{json}{result}{task}, undef, 'a revision before tasks: no task');

$g->done();
done_testing();
