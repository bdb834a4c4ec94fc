# The upstream that the gateway is tested with does what it is told, seen
# through a plain proxy.

use warnings;
use strict;

use FindBin;
use lib "$FindBin::Bin/lib";

use Test::More;
use Time::HiRes qw/ time /;

use MCPClient;
use MCPTasks qw/ wait_for /;
use MCPUpstream;

my $up = MCPUpstream->new(on => {
    held => [['sse'], ['event', '{"token":%TOKEN%}'], ['hold'],
             ['result', '{"content":[]}']],
    pieces => [['sse'], ['bytewise', "\xef\xbb\xbf: hi\r\nid: 7\r\n"
                         . "data: {\"jsonrpc\":\"2.0\",\r\n"
                         . "data: \"id\":%ID%,\"result\":{}}\r\n\r\n"],
               ['end']],
    short => [['head', 200, { 'Content-Type' => 'application/json',
                              'Content-Length' => 100 }],
              ['text', '{"a"'], ['close']],
    cut => [['sse'], ['text', 'data: {'], ['reset']],
    never => [['reset']],
    twice => { rounds => [[['json', 'no', 503]], [['result', '{"n":2}']]] },
    flood => [['sse'], ['flood', "data: x\n\n"]],
    asks => [['sse'], ['event', '{"id":"q","method":"roots/list"}'],
             ['answered', 'q'], ['result', '{"roots":1}']],
    endless => [['raw', "HTTP/1.1 200 OK\r\n"], ['flood', "X-A: b\r\n"]],
});

my $t = MCPTasks->new(
    http => "upstream up { server 127.0.0.1:$up->{port}; keepalive 4; }",
    server => <<'END');
    client_body_buffer_size 1k;
    location /mcp {
        proxy_pass http://up/mcp;
        proxy_http_version 1.1;
        proxy_set_header Connection "";
        proxy_buffering off;
        proxy_request_buffering off;
        proxy_next_upstream off;
    }
    location /old {
        proxy_pass http://up/old;
        proxy_buffering off;
    }
END

my $c = MCPClient->new($t);


sub call {
    my ($tool, %opt) = @_;
    return $c->legacy('tools/call', { name => $tool }, %opt);
}


sub stream {
    my ($tool) = @_;
    return $c->stream($c->legacy_bytes('tools/call',
        { name => $tool, _meta => { progressToken => 'tok' } }, id => 5));
}


# --- a plain server

is(call('echo', id => '"x"')->{body}, '{"jsonrpc":"2.0","id":"x","result":'
   . '{"content":[{"type":"text","text":"echo"}]}}', 'a call');
is($c->legacy('nothing/such')->{json}{error}{code}, -32601,
   'an unknown method');
like($c->legacy('tools/list')->{body}, qr/"name":"echo".*"name":"slow"/,
     'a list of tools');

my $res = $c->post({ jsonrpc => '2.0', method => 'notifications/initialized' });
is("$res->{status} $res->{body}", '202 ', 'a notification');
$res = $c->post({ jsonrpc => '2.0', id => 'q9', result => {} });
is("$res->{status} $res->{body}", '202 ', 'a response');
is($c->post('[{"jsonrpc":"2.0","id":1,"method":"ping"}]')->{body},
   '[{"jsonrpc":"2.0","id":1,"result":{}}]', 'a batch');
is($t->request('DELETE', '/mcp', {})->{status}, 200, 'DELETE');

my ($seen) = $up->said('notifications/initialized');
is($seen->{head}{'mcp-protocol-version'}, '2025-11-25', 'headers are kept');
is($seen->{path}, '/mcp', 'and the path');
cmp_ok($seen->{done}, '>=', $seen->{time}, 'and when it was answered');
is(($up->said('response'))[0]{id}, '"q9"', 'ids are kept as JSON');

my $body = '{"jsonrpc":"2.0","id":1,"method":"ping","params":{"x":"'
           . 'y' x 200_000 . '"}}';
is($c->post($body)->{status}, 200, 'a large body');
is(($up->said('ping'))[-1]{body}, $body, 'has come whole');

# what comes at once with the head would be sent on with a length
my @parts = ('{"jso', 'nrpc":"2.0","id":8,"method":"ping"}', '');
my $s = $t->connect();
MCPTasks::send_raw($s, MCPTasks::message('POST', '/mcp',
    { 'Transfer-Encoding' => 'chunked', 'Content-Type' => 'application/json' },
    ''), map { sprintf("%x\r\n%s\r\n", length, $_) } @parts);
$res = MCPTasks::read_response($s);
is($res->{body}, '{"jsonrpc":"2.0","id":8,"result":{}}', 'a chunked body');
is(($up->said('ping'))[-1]{head}{'transfer-encoding'}, 'chunked',
   'which was one on its way as well');

$up->set(style => 'sse');
is($c->legacy('ping')->{body}, 'data: {"jsonrpc":"2.0","id":1,"result":{}}'
   . "\n\n", 'answers as event streams');
is($c->as(uri => '/old')->legacy('ping')->{body},
   qq(data: {"jsonrpc":"2.0","id":1,"result":{}}\n\n), 'and with HTTP/1.0');
$up->set(style => 'json');

# --- sessions, hosts

$up->set(sessions => 1);
is($c->legacy('ping')->{status}, 400, 'no session');
my $in = $c->in_session();
is($in->legacy('ping')->{status}, 200, 'a session');
is($t->request('DELETE', '/mcp', $in->{headers})->{status}, 200, 'its end');
is($in->legacy('ping')->{status}, 404, 'is known');
$in = $c->in_session();
$up->forget();
is($in->legacy('ping')->{status}, 404, 'all are forgotten');
$up->set(sessions => 0);

$up->set(host => 'other');
is($c->legacy('ping')->{status}, 403, 'another host');
$up->set(host => undef);

# --- steering

my $stream = stream('held');
is($stream->message()->{token}, 'tok', 'a stream has begun');
my $call = $up->call('held');
is($call->{id}, '5', 'the call is known');
$up->go($call, ['event', '{"more":1}'], ['hold']);
is($stream->message()->{more}, 1, 'it is told what to send');
is($up->get($call)->{done}, undef, 'and goes on');
$up->go($call);
is_deeply($stream->message(), { jsonrpc => '2.0', id => 5,
                                result => { content => [] } }, 'to its end');
is($stream->event(), undef, 'of the stream');
ok($stream->{whole}, 'which is whole');
ok($up->get($call)->{done}, 'that is kept');
is($up->go($call), 0, 'it cannot go on');

$stream = stream('held');
$stream->message();
$call = $up->call('held', 2);
$stream->close();
ok($up->left($call, 5), 'a client that leaves is noticed');

$stream = stream('asks');
is($stream->message()->{id}, 'q', 'a question');
$c->post({ jsonrpc => '2.0', id => 'q', result => {} });
is($stream->message()->{result}{roots}, 1, 'and its answer');

# many at once
my @streams = map { stream('held') } 1 .. 50;
$_->message() for @streams;
my @calls = $up->calls('held');
$up->go($_) for @calls;
is(scalar(grep { $_->message()->{result} } @streams), 50, 'many at once');
ok((wait_for { ($up->connections())[0] <= 5 }), 'few connections are kept');

# --- what goes wrong

is(call('pieces')->{body}, "\xef\xbb\xbf: hi\r\nid: 7\r\ndata: "
   . "{\"jsonrpc\":\"2.0\",\r\ndata: \"id\":1,\"result\":{}}\r\n\r\n",
   'byte by byte');
is(call('short')->{body}, 'no answer', 'an answer that is too short');
is(call('cut')->{body}, 'no answer', 'a stream that is cut');
is(call('never')->{status}, 502, 'a reset instead of an answer');
is(call('twice')->{status}, 503, 'the first time');
is(call('twice')->{json}{result}{n}, 2, 'the second time');
is(call('endless')->{status}, 502, 'headers without an end');

$stream = stream('flood');
$stream->event() for 1 .. 10_000;
ok(!$stream->{over}, 'a stream without an end');
$stream->close();
ok($up->left($up->call('flood'), 5), 'until the client has had enough');

$up->shut();
ok((wait_for { call('echo')->{status} == 502 }), 'nobody listens');
ok($up->open(), 'it comes back');
is(call('echo')->{status}, 200, 'and is reached');

my $pid = $up->{pid};
$up->stop();
ok(!kill(0, $pid), 'it leaves no process');

$t->stop();
is($t->faults('\[error\]'), '', 'nothing bad in the log');

done_testing();
