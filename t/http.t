# The endpoint as HTTP: methods, types, URIs, and bodies however they come.

use warnings;
use strict;

use FindBin;
use lib "$FindBin::Bin/lib";

use Test::More;

use MCPTasks qw/ wait_for /;

my $t = MCPTasks->new(
    http => <<'END',
    mcp_tasks_zone zone=z:1m;
    client_max_body_size 4m;
END
    server => <<'END',
        location /mcp { mcp_tasks zone=z; }
        location /slash/ { mcp_tasks zone=z; }
        location = /exact { mcp_tasks zone=z; }
        location ~ ^/regex/[0-9]+$ { mcp_tasks zone=z; }
        location @named { mcp_tasks zone=z; }
        location /to-named { error_page 418 = @named; return 418; }

        location /if { mcp_tasks zone=z; if ($args) { set $x 1; } }
        location /probe { mcp_tasks_probe zone=z; if ($arg_x) { set $x 1; } }

        location /memory {
            mcp_tasks zone=z;
            client_body_buffer_size 4m;
        }

        location /file {
            mcp_tasks zone=z;
            client_body_in_file_only clean;
        }

        location /small {
            mcp_tasks zone=z;
            client_body_buffer_size 1k;
        }

        location /single {
            mcp_tasks zone=z;
            client_body_buffer_size 1k;
            client_body_in_single_buffer on;
        }

        location /limit {
            mcp_tasks zone=z;
            client_max_body_size 1k;
        }
END
);

my $ping = '{"jsonrpc":"2.0","id":1,"method":"ping"}';
my $pong = '{"jsonrpc":"2.0","id":1,"result":{}}';
my @workers = $t->worker_pids();


sub refusal {
    my ($why) = @_;
    return '{"jsonrpc":"2.0","error":{"code":-32600,"message":'
           . "\"Invalid Request: $why\"}}";
}


sub is_answer {
    my ($res, $status, $body, $name) = @_;
    is($res ? "$res->{status} $res->{body}" : 'no answer',
       defined $body ? "$status $body" : "$status $res->{body}", $name);
}


sub headers {
    return { 'Content-Type' => 'application/json',
             'Accept' => 'application/json, text/event-stream', @_ };
}


# then, over the same connection and already on its way, another request
sub is_answer_and_next {
    my ($first, $method, $status, $body, $name) = @_;
    my $s = $t->connect();

    MCPTasks::send_raw($s, $first . MCPTasks::message('POST', '/mcp',
                                                      headers(), $ping));

    my $res = MCPTasks::read_response($s, $method);
    is_answer($res, $status, $body, $name);
    is_answer(MCPTasks::read_response($s), 200, $pong,
              "$name, and the next request is served");

    return $res || { header => {} };
}


# --- methods

my $use_post = 'HTTP method not allowed, use POST';

for my $method (qw/ PUT HEAD PATCH PROPFIND /) {
    my $body = $method =~ /PUT|PATCH/ ? $ping : undef;
    my $res = is_answer_and_next(
        MCPTasks::message($method, '/mcp', headers(), $body), $method, 405,
        $method eq 'HEAD' ? '' : refusal($use_post), $method);
    is($res->{header}{allow}, 'GET, POST, DELETE, OPTIONS', "$method: Allow");

    $res = is_answer_and_next(
        MCPTasks::message($method, '/mcp', headers('MCP-Protocol-Version'
                                                   => '2026-07-28'), $body),
        $method, 405, $method eq 'HEAD' ? '' : refusal($use_post),
        "$method, modern");
    is($res->{header}{allow}, 'POST, OPTIONS', "$method, modern: Allow");
}

# 2026-07-28, Streamable HTTP: "HTTP GET or DELETE to the MCP endpoint: respond
# with 405 Method Not Allowed"; in the legacy era GET opens the session's stream,
# and DELETE ends it.  RFC 9110, 405: "The origin server MUST generate an Allow
# header field in a 405 response containing a list of the target resource's
# currently supported methods."

{
    for my $method (qw/ GET DELETE /) {
        my $res = is_answer_and_next(
            MCPTasks::message($method, '/mcp',
                              headers('MCP-Protocol-Version' => '2026-07-28')),
            $method, 405, refusal($use_post), "$method, modern");
        is($res->{header}{allow}, 'POST, OPTIONS', "$method: Allow");
    }

    is_answer_and_next(MCPTasks::message('GET', '/mcp', headers()), 'GET', 400,
                       refusal('the Mcp-Session-Id header is missing'),
                       'GET without a session');
    is_answer_and_next(
        MCPTasks::message('GET', '/mcp', { Accept => 'application/json' }),
        'GET', 406, refusal('Accept must allow text/event-stream'),
        'GET that wants no stream');
}

# --- types

for my $type (undef, '', 'text/plain', 'application/jsonx', 'application/jso',
              'application/json-seq', 'application/x-www-form-urlencoded',
              'application/problem+json', 'x application/json', 'json')
{
    is_answer_and_next(
        MCPTasks::message('POST', '/mcp', headers('Content-Type' => $type),
                          $ping),
        'POST', 415, refusal('Content-Type must be application/json'),
        'type ' . (defined $type ? $type : 'missing'));
}

for my $type ('application/json', 'application/json; charset=utf-8',
              'application/json;charset=utf-8', 'application/json ;x=y',
              'Application/JSON', 'APPLICATION/json;')
{
    is_answer($t->post('/mcp', $ping, { 'Content-Type' => $type }), 200, $pong,
              "type $type");
}

for my $accept (undef, '*/*', 'application/json, text/event-stream',
                'text/event-stream,application/json',
                'application/*, text/*', 'application/json, text/*',
                'application/*,text/event-stream', 'text/html, */*;q=0.1',
                'application/json;q=0.9, text/event-stream;q=0.1',
                'application/json ; q=1 , text/event-stream ; q=1',
                'Application/Json,TEXT/EVENT-STREAM', ', */*',
                ['application/json', 'text/event-stream'],
                ['text/html', 'text/event-stream', 'application/json'])
{
    is_answer($t->post('/mcp', $ping, { Accept => $accept }), 200, $pong,
              'accept ' . (!defined $accept ? 'missing' : ref $accept
                           ? join(' and ', @$accept) : $accept));
}

for my $accept ('application/json', 'text/event-stream', 'application/*',
                'text/*', 'text/html', 'application/jsonx, text/event-stream',
                'application/json, text/event-streams', 'text/html, image/*',
                'application/json, application/*', '*', 'application/json;'
                . 'text/event-stream', ['application/json', 'text/html'])
{
    is_answer_and_next(
        MCPTasks::message('POST', '/mcp', headers(Accept => $accept), $ping),
        'POST', 406, refusal('Accept must allow application/json and '
                             . 'text/event-stream'),
        'accept ' . (ref $accept ? join(' and ', @$accept) : $accept));
}

# --- URIs

for my $uri (qw{ /mcp /mcp/ /mcp?x=1 /mcp/?x /mc%70 //mcp /mcp// /mcp/%2e
                 /slash/ /exact
                 /exact?x /regex/1 /regex/22 /to-named })
{
    is_answer($t->post($uri, $ping), 200, $pong, "POST $uri");
}

for my $uri (qw{ /mcp/foo /mcpfoo /mcp/foo/ /slash/foo /slash /exact/ /regex/
                 /regex/1/ /regex/x / /none })
{
    is_answer_and_next(
        MCPTasks::message('POST', $uri, headers(), $ping), 'POST', 404, undef,
        "POST $uri");
}

# an "if" block that applies is a location of its own, without a name

is_answer($t->post("/if$_", $ping), 200, $pong, "POST /if$_")
    for '', '?x=1', '/?x=1';

for my $args ('op=stats', 'op=stats&x=1') {
    my $got = $t->probe($args);
    is($got ? $got->{reason} : 'no answer', 'ok', "GET /probe?$args");
}

# --- bodies

my $large = '{"jsonrpc":"2.0","id":1,"method":"ping","params":{"x":"'
            . join('', map { chr(97 + $_ * 7 % 26) } 1 .. 300_000) . '"}}';


# with a length: the head, then what the body is cut into
sub pieces {
    my ($uri, @parts) = @_;
    my $head = MCPTasks::message('POST', $uri, headers(), join '', @parts);
    $head =~ s/(\r\n\r\n).*\z/$1/s;
    return ($head, @parts);
}


sub chunk {
    my ($data) = @_;
    return sprintf("%x\r\n", length $data) . "$data\r\n";
}


# chunked: the head, then each chunk by itself
sub chunked {
    my ($uri, @parts) = @_;
    return (MCPTasks::message('POST', $uri,
                              headers('Transfer-Encoding' => 'chunked')),
            (map { chunk($_) } @parts), "0\r\n\r\n");
}


sub exchange {
    my (@pieces) = @_;
    my $s = $t->connect();
    MCPTasks::send_raw($s, @pieces);
    return MCPTasks::read_response($s);
}


my @halves = (substr($ping, 0, 17), substr($ping, 17));
my @thirds = (substr($large, 0, 99_999), substr($large, 99_999, 1),
              substr($large, 100_000));

for my $uri (qw{ /mcp /memory /file /small /single }) {
    my @ping = pieces($uri, @halves);
    my @large = pieces($uri, @thirds);
    my @chunked = chunked($uri, @halves);
    my @chunked_large = chunked($uri, @thirds);

    is_answer(exchange(join '', @ping), 200, $pong, "$uri: at once");
    is_answer(exchange(@ping), 200, $pong, "$uri: in pieces");
    is_answer(exchange("$ping[0]$ping[1]", $ping[2]), 200, $pong,
              "$uri: the beginning with the head");
    is_answer(exchange(join '', @chunked), 200, $pong,
              "$uri: chunked, at once");
    is_answer(exchange(@chunked), 200, $pong, "$uri: chunked, in pieces");
    is_answer(exchange(join('', chunked($uri, split //, $ping))), 200, $pong,
              "$uri: chunks of a byte");

    is_answer(exchange(join '', @large), 200, $pong, "$uri: large, at once");
    is_answer(exchange(@large), 200, $pong, "$uri: large, in pieces");
    is_answer(exchange(join '', @chunked_large), 200, $pong,
              "$uri: large and chunked, at once");
    is_answer(exchange(@chunked_large), 200, $pong,
              "$uri: large and chunked, in pieces");

    # that each byte is where it belongs: the last one is looked at, too
    my @broken = pieces($uri, @thirds[0, 1], substr($thirds[2], 0, -1) . ']');
    is_answer(exchange(@broken), 400,
              '{"jsonrpc":"2.0","error":{"code":-32700,"message":'
              . '"Parse error: expected a comma or a closing bracket"}}',
              "$uri: large, and the last byte is wrong");

    # an id of many buffers comes back as it was sent
    my $id = '"' . substr($large, 60, 200_000) . '"';
    my $body = "{\"jsonrpc\":\"2.0\",\"id\":$id,\"method\":\"ping\"}";
    my $res = exchange(pieces($uri, substr($body, 0, 70_000),
                              substr($body, 70_000)));
    ok($res && $res->{body} eq "{\"jsonrpc\":\"2.0\",\"id\":$id,"
                               . '"result":{}}', "$uri: a large id");

    is_answer(exchange(join '', pieces($uri, '')), 400,
              '{"jsonrpc":"2.0","error":{"code":-32700,"message":'
              . '"Parse error: unexpected end of input"}}', "$uri: empty");
    is_answer(exchange(join '', chunked($uri)), 400,
              '{"jsonrpc":"2.0","error":{"code":-32700,"message":'
              . '"Parse error: unexpected end of input"}}',
              "$uri: empty, chunked");
}

is_answer(exchange(MCPTasks::message('POST', '/mcp', headers())), 400,
          '{"jsonrpc":"2.0","error":{"code":-32700,"message":'
          . '"Parse error: unexpected end of input"}}',
          'no body, and no length');

# --- cut short by a client that goes away

for my $uri (qw{ /mcp /memory /file /small }) {
    for my $pieces ([pieces($uri, $ping)], [pieces($uri, $large)],
                    [chunked($uri, @halves)], [chunked($uri, @thirds)])
    {
        my $all = join '', @$pieces;

        for my $len (length $pieces->[0], length($pieces->[0]) + 10,
                     int(length($all) / 2), length($all) - 1)
        {
            my $s = $t->connect();
            MCPTasks::send_raw($s, substr($all, 0, $len));
            close($s);
        }
    }

    is_answer($t->post($uri, $ping), 200, $pong,
              "$uri: bodies cut short, and the next is served");
}

# one that says only that it is done
{
    my $s = $t->connect();
    MCPTasks::send_raw($s, (pieces('/mcp', $ping))[0], substr($ping, 0, 10));
    shutdown($s, 1);
    my $res = MCPTasks::read_response($s);
    ok(!$res || $res->{status} == 400, 'half a body, and the end of it');
}

# chunks that are none
for my $bad ("x\r\n", "-1\r\n", "ffffffffffffffffff\r\n", "5\r\nabcdefg\r\n") {
    my $res = exchange(MCPTasks::message('POST', '/mcp',
                           headers('Transfer-Encoding' => 'chunked')) . $bad);
    is($res ? $res->{status} : 'none', 400, 'not a chunk: '
       . ($bad =~ s/\r\n/ /gr));
}

# --- too large

{
    my $body = '{"jsonrpc":"2.0","id":1,"method":"ping","params":{"x":"'
               . 'x' x 2000 . '"}}';
    my $just = '{"jsonrpc":"2.0","id":1,"method":"ping","x":"';
    $just .= 'x' x (1024 - 2 - length $just) . '"}';

    is(length $just, 1024, 'a body of the size that is allowed');
    is_answer($t->post('/limit', $just), 200, $pong, 'is served');
    is_answer($t->post('/limit', "$just "), 413, undef, 'not a byte more');
    is_answer($t->post('/limit', $body), 413, undef, 'too large');
    is_answer(exchange(join '', chunked('/limit', $body)), 413, undef,
              'too large, chunked');
    is_answer(exchange(chunked('/limit', substr($body, 0, 600),
                               substr($body, 600))), 413, undef,
              'too large, chunked, in pieces');
    is_answer($t->post('/limit', $ping), 200, $pong, 'and the next is served');
}

# --- the connection

is_answer_and_next(MCPTasks::message('POST', '/mcp', headers(), '{'), 'POST',
                   400, undef, 'malformed');
is_answer_and_next(MCPTasks::message('POST', '/mcp', headers(),
                   '{"jsonrpc":"2.0","method":"x"}'), 'POST', 202, '',
                   'notification');
is_answer_and_next(MCPTasks::message('POST', '/mcp', headers(), $ping),
                   'POST', 200, $pong, 'ping');
is_answer_and_next(join('', chunked('/mcp', @thirds)), 'POST', 200, $pong,
                   'chunked ping');
is_answer_and_next(MCPTasks::message('PUT', '/mcp', headers(), $large), 'PUT',
                   405, undef, 'a large body of a refused method');
is_answer_and_next(MCPTasks::message('POST', '/mcp',
                       headers('Content-Type' => 'text/plain'), $large),
                   'POST', 415, undef, 'a large body of a refused type');
is_answer_and_next(join('', MCPTasks::message('POST', '/mcp',
                       headers('Content-Type' => 'text/plain',
                               'Transfer-Encoding' => 'chunked')),
                       chunk($large), "0\r\n\r\n"),
                   'POST', 415, undef, 'a chunked body of a refused type');

{
    my $s = $t->connect();
    MCPTasks::send_raw($s, MCPTasks::message('POST', '/mcp',
                           headers(version => 'HTTP/1.0'), $ping));
    my $res = MCPTasks::read_response($s);
    is_answer($res, 200, $pong, 'HTTP/1.0');
    ok(MCPTasks::closed($s), 'HTTP/1.0: and the connection ends');

    $s = $t->connect();
    MCPTasks::send_raw($s, MCPTasks::message('POST', '/mcp',
                           headers(version => 'HTTP/1.0',
                                   Connection => 'keep-alive'), $ping) x 2);
    is_answer(MCPTasks::read_response($s), 200, $pong,
              "HTTP/1.0, kept alive: $_") for 1, 2;

    $s = $t->connect();
    MCPTasks::send_raw($s, MCPTasks::message('POST', '/mcp',
                           headers(Connection => 'close'), $ping));
    is_answer(MCPTasks::read_response($s), 200, $pong, 'Connection: close');
    ok(MCPTasks::closed($s), 'Connection: close: it does');
}

{
    my $s = $t->connect();
    my ($head, $body) = pieces('/mcp', $ping);
    $head =~ s/\r\n\r\n/\r\nExpect: 100-continue\r\n\r\n/;

    MCPTasks::send_raw($s, $head);
    is_answer(MCPTasks::read_response($s), 100, '', 'Expect: 100-continue');
    MCPTasks::send_raw($s, $body);
    is_answer(MCPTasks::read_response($s), 200, $pong, 'and the answer');
}

# many of them in one write
{
    my $s = $t->connect();
    my $n = 100;

    MCPTasks::send_raw($s, join '', map {
        MCPTasks::message('POST', '/mcp', headers(),
                          "{\"jsonrpc\":\"2.0\",\"id\":$_,\"method\":\"ping\"}")
    } 1 .. $n);

    my $ok = grep {
        my $res = MCPTasks::read_response($s);
        $res && $res->{body} eq "{\"jsonrpc\":\"2.0\",\"id\":$_,\"result\":{}}"
    } 1 .. $n;

    is($ok, $n, "$n requests in one write");
}

is_deeply([$t->worker_pids()], \@workers, 'no worker has died');
ok($t->stop(), 'nginx stops');

# what the clients above did to themselves
is($t->faults('client (intended to send too large|sent invalid)|'
              . 'open\(\) ".*" failed|is not found|is forbidden'), '',
   'nothing in the log that should not be');
is(join(' ', glob "$t->{dir}/client_body/*"), '', 'no temporary file is left');

done_testing();
