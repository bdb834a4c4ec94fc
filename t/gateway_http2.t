# The gateway seen over HTTP/2: what is passed, what becomes a task, and clients
# that reset their streams.

use warnings;
use strict;

use FindBin;
use lib "$FindBin::Bin/lib";

use Test::More;

use MCPClient;
use MCPGateway;
use MCPHttp2;
use MCPTasks qw/ wait_for /;

my $port = MCPTasks::free_port();

my $g = MCPGateway->new(
    server => "listen 127.0.0.1:$port http2;",
    tool => ['slow support=optional'],
    on => { slow => [['sse'], ['event', '{"n":1}'], ['hold'],
                     ['result', '{"content":[]}']] });
my $up = $g->{up};
my $h2 = MCPHttp2->new($port);


sub post {
    my ($body, %headers) = @_;
    return $h2->post('/mcp', $body, 'content-type' => 'application/json',
                     accept => 'application/json, text/event-stream',
                     'x-user' => 'ann',
                     'mcp-protocol-version' => '2025-11-25', %headers);
}


sub answer {
    my ($n) = @_;
    $h2->until(sub { $h2->over($n) }, 20);
    return $h2->status($n) . ' ' . $h2->text($n);
}


# --- passed

is(answer(post(MCPClient::rpc('ping'))),
   '200 {"jsonrpc":"2.0","id":1,"result":{}}', 'a request');
my ($seen) = $up->said('ping');
is("$seen->{method} $seen->{path} $seen->{version}", 'POST /mcp HTTP/1.1',
   'reaches upstream');
is($seen->{body}, MCPClient::rpc('ping'), 'with its body');
is(answer(post('{"jsonrpc":"2.0","method":"notifications/initialized"}')),
   '202 ', 'a notification');

my $body = MCPClient::rpc('ping', '{"x":"' . 'y' x 50_000 . '"}', 2);
is(answer(post($body)), '200 {"jsonrpc":"2.0","id":2,"result":{}}',
   'a large one');
ok(($up->said('ping'))[-1]{body} eq $body, 'came whole');

# a stream, as it comes, beside other requests
my $n = post(MCPClient::rpc('tools/call', { name => 'slow' }, 3));
ok($h2->until(sub { $h2->text($n) =~ /"n":1/ }, 10), 'a stream begins');
is(answer(post(MCPClient::rpc('ping', undef, 4))),
   '200 {"jsonrpc":"2.0","id":4,"result":{}}', 'others are served meanwhile');
ok(!$h2->over($n), 'it goes on');
$g->go('slow');
is(answer($n), "200 data: {\"n\":1}\n\ndata: {\"jsonrpc\":\"2.0\",\"id\":3,"
   . "\"result\":{\"content\":[]}}\n\n", 'to its end');

# reset by the client
$n = post(MCPClient::rpc('tools/call', { name => 'slow' }, 5));
ok($h2->until(sub { $h2->text($n) =~ /"n":1/ }, 10), 'another stream');
$h2->reset($n);
ok($up->left($up->call('slow', 2), 10), 'is reset: upstream learns of it');

# --- tasks

$n = post(MCPClient::rpc('tools/call', { name => 'slow', task => {} }, 6));
my ($id) = answer($n) =~ /"taskId":"([^"]+)"/;
ok($id, 'a call becomes a task') or diag($h2->text($n));
my $call = $up->call('slow', 3);
is($call->{json}{params}{task}, undef, 'which upstream does not know');
is($up->get($call)->{closed}, undef, 'and goes on');

my $result = post(MCPClient::rpc('tasks/result', { taskId => $id }, 1));
$g->go('slow');
is(answer($result), '200 ' . MCPGateway::with_related($id, '"content":[]'),
   'its result comes over the same connection');

# the whole connection goes, the task stays
$n = post(MCPClient::rpc('tools/call', { name => 'slow', task => {} }, 7));
($id) = answer($n) =~ /"taskId":"([^"]+)"/;
$call = $up->call('slow', 4);
$h2->close();
is($g->{c}->legacy('ping')->{status}, 200, 'the connection is closed');
is($up->get($call)->{closed}, undef, 'the call is not');
$g->go('slow');
is($g->ends($id)->{status}, 'completed', 'and completes');

$g->done();
done_testing();
