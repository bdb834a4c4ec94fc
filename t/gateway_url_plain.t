# An upstream's error -32042 in a response that is only passed: a modern client
# is asked, or gets another error; a legacy client gets it as it is.  All else
# passes to the byte, and at once.

use warnings;
use strict;

use FindBin;
use lib "$FindBin::Bin/lib";

use IO::Uncompress::Gunzip qw/ gunzip /;
use Test::More;

use MCPClient;
use MCPGateway;
use MCPJson;
use MCPTasks qw/ wait_for workers /;

my $meta = 'io.modelcontextprotocol';
my $port = MCPTasks::free_port();


sub link_to {
    my ($n, $url) = @_;
    $url //= "https://example.com/$n";
    return "{\"mode\":\"url\",\"elicitationId\":\"e$n\",\"url\":\"$url\","
           . "\"message\":\"Sign in $n\"}";
}


sub required {
    my (@links) = @_;
    return '{"code":-32042,"message":"Sign in","data":{"elicitations":['
           . join(',', @links) . ']}}';
}

my $error = required(link_to(1), link_to(2));
my $message = '{"jsonrpc":"2.0","id":%ID%,"error":' . $error . '}';
my $type = { 'Content-Type' => 'application/json' };

my $g = MCPGateway->new(
    workers => workers(), port => $port,
    http => 'gzip on; gzip_types application/json; gzip_min_length 1; '
            . 'gzip_proxied any;',
    server => <<"END");
    location /buffered {
        mcp_tasks zone=z;
        mcp_tasks_pass /upstream_buffered;
    }

    location = /upstream_buffered {
        internal;
        proxy_pass http://127.0.0.1:$port/mcp;
        proxy_http_version 1.1;
        proxy_set_header Connection "";
        proxy_buffers 4 4k;
        proxy_buffer_size 4k;
        proxy_busy_buffers_size 8k;
    }
END
my ($up, $c) = ($g->{up}, $g->{c}->as(extensions => []));


sub call {
    my ($script, %opt) = @_;
    my $method = $opt{method} || 'tools/call';
    my $who = $opt{buffered} ? $c->as(uri => '/buffered') : $c;

    $up->script($method eq 'tools/call' ? 'x' : $method, $script);
    return $who->modern($method, $opt{params} || { name => 'x' }, %opt);
}


# the messages of a response, be it JSON or a stream
sub messages {
    my ($res) = @_;
    return ($res->{json}) if $res->{json};
    return map { s/^data: ?//mgr } $res->{body} =~ /((?:^data:.*\n)+)/mg;
}


sub message {
    my ($res) = @_;
    my ($text) = reverse messages($res);
    return (ref $text ? $text : MCPClient::decode($text // '')) || {};
}


sub urls {
    my ($requests) = @_;
    return join ' ', map {
        my $q = $requests->{$_};
        join ',', $_, $q->{method}, $q->{params}{mode}, $q->{params}{url},
                  $q->{params}{elicitationId} // 'none'
    } sort keys %{ $requests || {} };
}

my $urls = join ' ', map {
    "url-1-$_,elicitation/create,url,https://example.com/$_,none" } 1, 2;

# --- a modern client that opens URLs

my $pretty = "{\r\n \"id\" : %ID%,\r\"jsonrpc\":\"2.0\",\n\"error\" :\n$error}";
my $crlf = "id: 7\r\ndata: {\"jsonrpc\":\"2.0\",\r\ndata\r\n: c\r\n"
           . "data:\"id\":%ID%,\r\ndata:  \"error\":$error}\r\n\r\n";
my $cr = $crlf =~ s/\r\n/\r/gr;

my %shapes = (
    json => [['error', $error]],
    pretty => [['json', $pretty]],
    mark => [['json', "\xef\xbb\xbf$message"]],
    escaped => [['json', '{"\u0065rr\u006fr":' . $error . ',"id":%ID%,'
                         . '"jsonrpc":"2.0"}']],
    twice => [['json', $message =~ s/"error"/"error":{"code":-1},"error"/r]],
    real => [['json', $message =~ s/-32042/-32042.0/r]],
    null => [['json', $message =~ s/"error"/"result":null,"error"/r]],
    'status 400' => [['json', $message, 400]],
    'status 500' => [['json', $message, 500]],
    chunked => [['head', 200, $type], ['text', $message], ['end']],
    bytewise => [['head', 200, $type], ['bytewise', $message], ['end']],
    stream => [['sse'], ['error', $error]],
    after => [['sse'], ['event', '{"jsonrpc":"2.0","method":"notifications/x",'
                                 . '"params":{"error":{"code":-32042}}}'],
              ['error', $error]],
    'stream bytewise' => [['sse'], ['bytewise', "data: $message\n\n"],
                          ['end']],
    'stream of a length' => [['sse', 200, { 'Content-Length' => 13
                                            + length $message =~ s/%ID%/1/r }],
                             ['raw', ": x\n\ndata: $message\n\n"], ['end']],
    crlf => [['sse'], ['text', $crlf], ['end']],
    'crlf bytewise' => [['sse'], ['bytewise', $crlf], ['end']],
    cr => [['sse'], ['text', $cr], ['end']],
    'cr bytewise' => [['sse'], ['bytewise', $cr], ['end']],
    'not ended' => [['sse'], ['text', "data: $message"], ['end']],
    'stream mark' => [['sse'], ['text', "\xef\xbb\xbfdata: $message\n\n"],
                      ['end']],
);

# 2026-07-28, basic: "Implementations of this protocol version MUST NOT emit
# these codes: ... -32042 - URL elicitation required (2025-11-25 only)"
for my $shape (sort keys %shapes) {
    MCPJson::allow('error') if $shape eq 'twice';

    for my $buffered (0, 1) {
        my $res = call($shapes{$shape}, buffered => $buffered);
        $res->{body} =~ s/\r\n?/\n/g if $shape =~ /^cr/;
        $res->{body} =~ s/\A\xef\xbb\xbf//;
        my $got = message($res);
        my $name = "$shape, buffered $buffered";

        is($res->{status}, 200, "$name: the status");
        is($got->{result}{resultType}, 'input_required', 'asks')
            or diag($res->{body});
        is(urls($got->{result}{inputRequests}), $urls, 'for the URLs');
        is($got->{id}, 1, 'with the id of the request');
        unlike($res->{body}, qr/"error":\{"code":-32042(?!\}\}\})/,
               'no -32042');
        like($res->{body}, qr/^id: 7$/m, 'the event keeps its id')
            if $shape =~ /^cr/;
        like($res->{body}, qr/^: c$/m, 'and comments') if $shape =~ /^cr/;
    }
}

for my $method ('prompts/get', 'resources/read') {
    my $got = message(call([['error', $error]], method => $method));
    is(urls($got->{result}{inputRequests}), $urls, "$method: asks");
    ok($got->{result}{_meta}{"$meta/serverInfo"}, 'and says who does');
}

# the call is repeated: the upstream gets the answers as they are
{
    my $responses = { 'url-1-1' => { action => 'accept' } };
    my $got = message(call([['result', '{"a":1}']], params =>
        { name => 'x', inputResponses => $responses }));
    is($got->{result}{a}, 1, 'repeated: the result');
    is_deeply(($up->calls('x'))[-1]{json}{params}{inputResponses}, $responses,
              'with the answers');
}

# --- a client that opens no URLs

my $missing = { code => -32021, message => 'Missing required client capability',
                data => { requiredCapabilities => {
                    elicitation => { url => {} } } } };

for my $can ({}, { elicitation => {} }, { elicitation => { form => {} } }) {
    my $name = MCPClient::encode($can);

    for my $status (200, 400) {
        my $res = call([['json', $message, $status]], can => $can);
        is($res->{status}, 400, "$name: the status");
        is_deeply($res->{json}{error}, $missing, 'what is missing');
    }

    my $res = call([['sse'], ['error', $error]], can => $can);
    is($res->{status}, 200, 'a stream has begun');
    is_deeply(message($res)->{error}, $missing, 'likewise');
}

# --- requests that cannot be answered with questions

my %failed = (code => -31013, message => 'Sign in',
              data => { reason => 'url_elicitation_required' });

for my $method ('resources/list', 'tools/list', 'server/discover', 'x/y') {
    for my $script ([['error', $error]], [['json', $message, 400]],
                    [['sse'], ['error', $error]])
    {
        my $res = call($script, method => $method, params => {});
        is($res->{status}, 200, "$method, $script->[0][0]: the status");
        is_deeply(message($res), { jsonrpc => '2.0', id => 1,
                                   error => \%failed }, 'another error');
    }
}

# not a response to this request
for my $id ('null', '"other"') {
    my $got = message(call([['json', $message =~ s/%ID%/$id/r, 400]]));
    is_deeply($got, { jsonrpc => '2.0', id => MCPClient::decode($id),
                      error => \%failed }, "id $id: another error");
}

# --- URLs that nobody is sent to

for my $bad (required(), required(link_to(1), link_to(2, 'javascript:x')),
             required('{"mode":"url","url":"https://example.com/"}'),
             '{"code":-32042,"message":"m"}')
{
    for my $script ([['error', $bad]], [['sse'], ['error', $bad]]) {
        my $got = message(call($script))->{error};
        is("$got->{code} $got->{data}{reason}", '-31014 upstream_question',
           "$script->[0][0]: $bad");
        like($got->{data}{detail}, qr/^(\/data\S*: )?\w+ is not satisfied/,
             'where and why');
    }
}

# too large to be checked
{
    my $large = $message =~ s/Sign in 1/'x' x 1100000/er;

    for my $script ([['json', $large, 400]], [['sse'], ['event', $large],
                                              ['event', '{}'], ['end']])
    {
        for my $buffered (0, 1) {
            my $res = call($script, buffered => $buffered);
            my ($got) = messages($res);
            $got = MCPClient::decode($got) unless ref $got;
            is_deeply($got, { jsonrpc => '2.0', id => 1, error => {
                code => -31014, data => { reason => 'upstream_question' },
                message => 'The upstream server asked an invalid question' } },
                "$script->[0][0]: an error of a megabyte");
            like($res->{body}, qr/^data: \{\}\n\n\z/m, 'the next event passes')
                if $script->[0][0] eq 'sse';
        }
    }
}

# neither valid nor harmless
for my $script ([['json', substr($message, 0, -1)]],
                [['sse'], ['text', 'data: ' . substr $message, 0, -1],
                 ['end']])
{
    my $got = message(call($script))->{error};
    is("$got->{code} $got->{data}{reason}", '-31014 upstream_invalid',
       "$script->[0][0]: an error that is not valid JSON");
}

# the connection ends in the middle of it
for my $script ([['head', 200, $type], ['text', substr $message, 0, 100],
                 ['close']],
                [['head', 200, { %$type, 'Content-Length' => 1000 }],
                 ['raw', substr $message, 0, 100], ['close']],
                [['sse'], ['text', 'data: ' . substr $message, 0, 100],
                 ['close']])
{
    $up->script(x => $script);
    my $s = $g->{t}->connect();
    MCPTasks::send_raw($s, $c->modern_bytes('tools/call', { name => 'x' }));
    my $got = '';
    while (IO::Select->new($s)->can_read(15)
           && sysread($s, $got, 65536, length $got)) { }
    unlike($got, qr/32042/, 'a response that is cut off');
}

# --- all else passes

my $result = '{"content":[{"type":"text","text":"' . 'abcdefghij' x 300_000
             . '"}],"error":{"code":-32042}}';
my $large = '{"jsonrpc":"2.0","id":1,"result":' . $result . '}';

for my $buffered (0, 1) {
    my $res = call([['json', $large]], buffered => $buffered);
    ok($res->{body} eq $large, 'a large result passes to the byte');
    is($res->{header}{'content-length'}, length $large, 'with its length');

    $res = call([['head', 200, $type], ['text', substr $large, 0, 20],
                 ['pause', 0.1], ['text', substr $large, 20], ['end']],
                buffered => $buffered);
    ok($res->{body} eq $large, 'likewise in chunks');

    $res = call([['sse'], ['text', "id: 1\ndata: "],
                 ['text', substr $large, 0, 20],
                 ['pause', 0.1], ['text', substr($large, 20) . "\n\n"],
                 ['end']], buffered => $buffered);
    ok($res->{body} eq "id: 1\ndata: $large\n\n", 'likewise as an event');
}

for my $text ('{"error":"invalid_token","error_description":"-32042"}',
              '{"error":{"code":401,"message":"-32042"}}',
              '{"jsonrpc":"2.0","id":1,"error":{"code":-32602,"message":'
              . '"\u00e9 -32042"}}',
              '{"jsonrpc":"2.0" ,"error":null,"id":1,"result":{"a":1.0}}',
              '{"jsonrpc":"2.0","id":1}', '[]', '1', ' ', '{"error":{}}')
{
    for my $status (200, 401) {
        my $res = call([['json', $text, $status, { 'X-Up' => 'yes' }]]);
        is("$res->{status} $res->{header}{'x-up'} $res->{body}",
           "$status yes $text", "$status: $text");
    }
}

{
    my $res = call([['json', '', 200]]);
    is("$res->{status} $res->{body}", '200 ', 'nothing');
    $res = call([['head', 200, $type], ['end']]);
    is("$res->{status} $res->{body}", '200 ', 'nothing, in chunks');
    $res = call([['json', $large =~ s/abcdefghij//gr, 200,
                  { 'Content-Encoding' => 'x-test' }]]);
    is($res->{header}{'content-encoding'}, 'x-test', 'encoded: as it is');
}

# streams: all fields, line ends and comments, however they are cut
for my $nl ("\n", "\r\n", "\r") {
    my $other = '{"jsonrpc":"2.0","id":1,"error":{"code":-1,"message":"m"}}';
    my $text = join $nl, ': a', '', 'event: message', 'id: 1', 'retry: 10',
        'data: {"jsonrpc":"2.0",', 'data:"method":"x"}', '', 'data', '',
        'data: not JSON', 'data: at all', '', 'd', 'dat: x', 'datax: y', 'data',
        'data:', '', '', ":$other", "data: $other", '', 'id: 2', 'dat';

    for my $mark ('', "\xef\xbb\xbf", "\xef\xbb") {
        is(call([['sse'], ['text', "$mark$text"], ['end']])->{body},
           "$mark$text", 'a stream passes to the byte');
        is(call([['sse'], ['bytewise', "$mark$text"], ['end']])->{body},
           "$mark$text", 'likewise byte by byte');
    }
}

# --- and at once

for my $uri ('/mcp', '/buffered') {
    $up->script(x => [['sse'], ['text', ": first\n\n"], ['hold'],
                      ['event', '{"jsonrpc":"2.0","method":"n"}'], ['hold'],
                      ['text', "data: {\"jsonrpc\":\n: inside\n\n"], ['hold'],
                      ['text', 'data: {"id":1,'], ['hold'],
                      ['text', "\"result\":{}}\n\n"], ['hold'], ['end']]);
    my $n = $up->count('x');
    my $stream = $c->as(uri => $uri)->stream(
        $c->as(uri => $uri)->modern_bytes('tools/call', { name => 'x' }));
    my $call = $up->call('x', $n + 1);
    is($stream->event(15)->{comment}, 'first', "$uri: a comment at once");
    $up->go($call);
    is($stream->event(15)->{json}{method}, 'n', 'a notification');
    $up->go($call);
    is($stream->event(15)->{comment}, 'inside', 'a comment in an event');
    $up->go($call);
    is($stream->event(0.3), undef, 'half an event waits');
    $up->go($call);
    is_deeply($stream->event(15)->{json}{result}, {}, 'and passes');
    $up->go($call);
    is($stream->event(15), undef, 'then it ends');
    ok($stream->{whole}, 'properly');
    $stream->close();
}

# --- nginx compresses, the upstream does not

for my $method ('tools/call', 'tools/list') {
    my $text = '{"jsonrpc":"2.0","id":1,"result":{"tools":[],"a":"'
               . 'x' x 1000 . '"}}';
    my @headers = (headers => { 'Accept-Encoding' => 'gzip',
                                %{ $c->{headers} } });

    for my $modern (1, 0) {
        $up->script($_ => [['json', $text]]) for 'x', 'tools/list';
        my $bytes = $modern
            ? $c->modern_bytes($method, { name => 'x' }, @headers)
            : $c->legacy_bytes($method, { name => 'x' }, @headers);
        my $s = $g->{t}->connect();
        MCPTasks::send_raw($s, $bytes);
        my $res = MCPTasks::read_response($s);
        my $plain = '';
        is($res->{header}{'content-encoding'}, 'gzip', "$method: compressed");
        gunzip(\$res->{body} => \$plain);
        like($plain, qr/"a":"x{1000}"/, 'the same text');
        is(($up->said($method))[-1]{head}{'accept-encoding'},
           $modern || $method eq 'tools/list' ? 'identity' : 'gzip',
           'the upstream is asked not to compress what is read');
    }
}

# --- a legacy client: as it is

# 2025-11-25, client/elicitation: "The error MUST include a list of elicitations
# that are required to complete before the original can be retried"
for my $status (200, 400) {
    $up->script(x => [['json', $message, $status]]);
    my $res = $c->legacy('tools/call', { name => 'x' });
    is("$res->{status} $res->{body}", "$status " . $message =~ s/%ID%/1/r,
       'legacy: to the byte');
}

$up->script(x => [['sse'], ['error', $error]]);
is($c->legacy('tools/call', { name => 'x' })->{body},
   'data: ' . ($message =~ s/%ID%/1/r) . "\n\n", 'in a stream, too');

$g->done('upstream response is not passed: upstream_(?:question|invalid)'
         . '|upstream prematurely closed connection');
done_testing();
