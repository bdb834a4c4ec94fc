# Batches: several messages in one POST, for clients of revision 2025-03-26.
#
# "MCP implementations MAY support sending JSON-RPC batches, but MUST support
# receiving JSON-RPC batches." (2025-03-26, basic/index, Batching)

use warnings;
use strict;

use FindBin;
use lib "$FindBin::Bin/lib";

use JSON::PP;
use MIME::Base64 qw/ encode_base64 /;
use Test::More;
use Time::HiRes qw/ sleep /;

use MCPClient;
use MCPFile qw/ slurp /;
use MCPProcess qw/ memory_of /;
use MCPTasks qw/ scale wait_for workers /;

my $h2 = MCPTasks::free_port();
my $t = MCPTasks->new(
    workers => workers(), listen => 'sndbuf=8k',
    tools => ['slow', 'other', ['must', '"taskSupport":"required"']],
    files => { users => "ann:{PLAIN}a\nbob:{PLAIN}b\n" },
    http => <<'END',
    mcp_tasks_zone zone=z:64m;
    mcp_tasks_tools tools.json;
    map $http_x_any $mapped { default "of $http_x_any"; }
    log_format message '[$mcp_method] [$mcp_tool] [$mcp_task_id] [$mcp_error]'
                       ' [$mcp_era] [$status] [$connection] [$pid] [$mapped]';
END
    surfaces => [qw/ worker probe /],
    server => <<"END");
    listen 127.0.0.1:$h2 http2;
    client_max_body_size 4m;
    client_body_buffer_size 4m;
    mcp_tasks_limit payload=2m;
    location /mcp { mcp_tasks zone=z; mcp_tasks_owner \$http_x_user; }
    location /quick { mcp_tasks zone=z; mcp_tasks_keepalive 100ms; }
    location /basic {
        mcp_tasks zone=z; mcp_tasks_owner \$remote_user;
        auth_basic x; auth_basic_user_file users;
    }
    location /asked {
        mcp_tasks zone=z; mcp_tasks_owner \$who;
        auth_request /auth; auth_request_set \$who "user \$http_x_user";
    }
    location = /auth {
        internal; return 204;
    }
    location /once { mcp_tasks zone=z; mcp_tasks_owner \$request_id; }
    location /console/ { mcp_tasks_console zone=z; }
    location /if {
        mcp_tasks zone=z; mcp_tasks_owner \$http_x_user;
        if (\$http_x_if) { set \$x 1; }
    }
    location /logged {
        mcp_tasks zone=z; mcp_tasks_owner \$http_x_user;
        log_subrequest on; access_log logs/messages.log message;
    }
END

my $c = MCPClient->new($t);
my $ann = $c->user('ann');
my $json = JSON::PP->new->canonical->allow_nonref;
my $owners = 0;


# nobody has tasks yet
sub somebody {
    return $c->user('owner' . ++$owners);
}


sub rpc {
    my ($id, $method, $params) = @_;
    return MCPClient::rpc($method, $params, $json->encode($id));
}


sub batch_bytes {
    my ($who, $messages, %headers) = @_;
    my $body = ref $messages ? '[' . join(',', @$messages) . ']' : $messages;
    return MCPClient::bytes($who->{uri}, $body, %{ $who->{headers} },
                            %headers);
}


sub batch {
    my ($who, $messages, %headers) = @_;
    return $who->say_bytes(batch_bytes($who, $messages, %headers));
}


# the responses by their ids; the order is free
sub by_id {
    my (@answers) = @_;
    my %by;

    for (@answers) {
        push(@{ $by{defined $_->{id} ? $_->{id} : 'null'} }, $_);
    }

    return { map { $_ => @{ $by{$_} } == 1 ? $by{$_}[0] : $by{$_} }
             keys %by };
}


# an array, as it has to be
sub array {
    my ($res, $n, $name) = @_;
    is($res->{status}, 200, "$name: status") or diag($res->{body});
    is($res->{header}{'content-type'}, 'application/json', "$name: type");
    my @all = ref $res->{json} eq 'ARRAY' ? @{ $res->{json} } : ();
    is(scalar @all, $n, "$name: one response per request")
        or diag($res->{body});
    return by_id(@all);
}


# the messages of a stream, up to its end
sub rest_of {
    my ($stream) = @_;
    my @messages;

    while (my $event = $stream->event()) {
        next unless defined $event->{data} && $event->{data} ne '';
        push @messages, $event->{json};
    }

    return @messages;
}


sub refused {
    my ($got, $code, $message, $name) = @_;
    is($got->{error}{code}, $code, "$name: code")
        or diag($json->encode($got));
    is($got->{error}{message}, $message, "$name: message");
    ok(!exists $got->{result}, "$name: no result");
}


sub waiting {
    return $t->probe('op=waits')->{zone};
}


sub nobody_waits {
    my ($name) = @_;
    ok(wait_for(sub { waiting() == 0 }), "$name: nobody waits");
}


my $ping = rpc(1, 'ping');
my $note = '{"jsonrpc":"2.0","method":"notifications/initialized"}';


# --- who may send a batch

for my $version (undef, '2025-03-26') {
    my $name = defined $version ? $version : 'no version';
    my $got = array(batch($c, [$ping, $note, rpc('two', 'ping'),
                               rpc(3, 'no/method'), rpc(4, 'tools/list')],
                          'MCP-Protocol-Version' => $version), 4, $name);
    is_deeply($got->{1}, { jsonrpc => '2.0', id => 1, result => {} },
              "$name: a request");
    is_deeply($got->{two}, { jsonrpc => '2.0', id => 'two', result => {} },
              "$name: another");
    refused($got->{3}, -32601, 'Method not found', "$name: unknown");
    is(scalar @{ $got->{4}{result}{tools} }, 3, "$name: tools/list");
}

for my $version ('2025-06-18', '2025-11-25', '2026-07-28', 'x') {
    my $res = batch($c, [$ping], 'MCP-Protocol-Version' => $version);
    is($res->{status}, 400, "$version: a batch is refused");
    is($res->{body}, '{"jsonrpc":"2.0","error":{"code":-32600,"message":'
       . '"Invalid Request: batches are not supported, send one message per '
       . 'POST"}}', "$version: and why");
}

is(batch($c, [$ping])->{body}, '[{"jsonrpc":"2.0","id":1,"result":{}}]',
   'a batch of one is an array of one');
is(batch($c, " \r\n\t[ $ping\n, $ping ]\n")->{body},
   '[{"jsonrpc":"2.0","id":1,"result":{}},'
   . '{"jsonrpc":"2.0","id":1,"result":{}}]', 'space does not matter');

for my $uri ('/quick', '/if') {
    array(batch($c->as(uri => $uri), [$ping, $ping]), 2, $uri);
}

array(batch($c->as(uri => '/if'), [$ping], 'X-If' => 1), 1, 'in an if block');

# --- how many

{
    my $who = somebody();
    my $call = sub { rpc($_[0], 'tools/call', { name => 'slow',
                                                task => {} }) };
    my $res = batch($who, [map { $call->($_) } 1 .. 65]);
    is($res->{status}, 400, 'too many messages: status');
    refused($res->{json}, -32600, 'Invalid Request: a batch must not have more '
            . 'than 64 messages', 'too many messages');
    is_deeply($who->legacy('tasks/list')->{json}{result}{tasks}, [],
              'and nothing was done');

    $res = batch($who, '[]');
    is($res->{status}, 400, 'an empty batch: status');
    refused($res->{json}, -32600, 'Invalid Request: a batch must have at least '
            . 'one message', 'an empty batch');

    my $got = array(batch($who, [map { $call->($_) } 1 .. 64]), 64,
                    'as many as may be');
    my %ids = map { $_->{result}{task}{taskId} => 1 } values %$got;
    is(scalar keys %ids, 64, 'each is a task');

    my @ids = sort keys %ids;
    $got = array(batch($who, [map { rpc($_, 'tasks/get',
                                        { taskId => $ids[$_] }) } 0 .. 63]),
                 64, 'all of them');
    is_deeply([map { $got->{$_}{result}{taskId} } 0 .. 63], \@ids,
              'each answer has the id of its request');
    $got = array(batch($who, [map { rpc($_, 'tasks/cancel',
                                        { taskId => $ids[$_] }) } 0 .. 63]),
                 64, 'to the end');
    is(scalar(grep { $_->{result}{status} eq 'cancelled' } values %$got), 64,
       'all are cancelled');
}

# "If the input consists solely of (any number of) JSON-RPC responses or
# notifications: [...] the server MUST return HTTP status code 202 Accepted with
# no body." (basic/transports)

my $response = '{"jsonrpc":"2.0","id":"x","result":{}}';

for my $messages ([$note], [$note, $note], [$response, $response],
                  [$note, $response])
{
    my $res = batch($c, $messages);
    is($res->{status}, 202, 'no requests: accepted');
    is($res->{body}, '', 'no requests: no body');
}

# --- elements that are no messages

{
    my $object = 'Invalid Request: the message must be a JSON object';
    my $got = array(batch($c, ['1', "[$ping]", '{"jsonrpc":"2.0","id":5,'
                               . '"method":3}', '{"jsonrpc":"2.0","id":6,'
                               . '"method":"ping","params":[]}', '"x"',
                               '{"jsonrpc":"2.0","id":1.5,"method":"ping"}',
                               rpc(7, 'ping')]), 7, 'invalid elements');
    my @null = @{ $got->{null} };
    is(scalar @null, 4, 'without a valid id: null');
    refused($_, -32600, $object, 'no object') for @null[0 .. 2];
    refused($null[3], -32600,
            'Invalid Request: id must be a string or an integer', 'its id');
    refused($got->{5}, -32600, 'Invalid Request: method must be a string',
            'its method');
    refused($got->{6}, -32602, 'Invalid params: params must be an object',
            'its params');
    is_deeply($got->{7}{result}, {}, 'and the others are executed');

    my $res = batch($c, ['1', $note]);
    is($res->{status}, 400, 'no valid request: status');
    is($res->{body}, '[{"jsonrpc":"2.0","id":null,"error":{"code":-32600,'
       . "\"message\":\"$object\"}}]", 'no valid request: an array');

    $res = batch($c, "[$ping,");
    is($res->{status}, 400, 'no JSON: status');
    is($res->{json}{error}{code}, -32700, 'no JSON: one error');

    # an answer that is not valid
    my $id = $ann->create('slow');
    $res = batch($ann, ["{\"jsonrpc\":\"2.0\",\"id\":\"$id/k\",\"result\":"
                        . '{"a":1,"a":2}}']);
    is($res->{status}, 400, 'a response that is not accepted: status');
    is($res->{json}[0]{error}{code}, -32602, 'a response: error');
    ok(exists $res->{json}[0]{id} && !defined $res->{json}[0]{id},
       'a response: its id is not repeated');
    $ann->complete($ann->claim_id('slow', $id), { content => [] });
}

# "The initialize request MUST NOT be part of a JSON-RPC batch"
# (basic/lifecycle)

{
    my $init = rpc(9, 'initialize', { protocolVersion => '2025-03-26',
        capabilities => {}, clientInfo => { name => 'x', version => '1' } });
    my $res = batch($c, [$init, $ping]);
    my $got = array($res, 2, 'initialize');
    refused($got->{9}, -32600,
            'Invalid Request: initialize must not be part of a batch',
            'initialize');
    ok(!exists $res->{header}{'mcp-session-id'}, 'and no session');
    is(batch($c, [$init])->{status}, 400, 'initialize alone: status');

    $got = array(batch($c, [rpc(1, 'ping', '{"_meta":{"io.modelcontextprotocol/'
        . 'protocolVersion":"2026-07-28"}}'), rpc(2, 'server/discover'),
        rpc(3, 'ping', '{"_meta":{},"_meta":{}}'), rpc(4, 'ping')]), 4,
        'of the modern era');
    refused($got->{$_}, -32600, 'Invalid Request: a message of revision '
            . '2026-07-28 must not be part of a batch', "modern $_") for 1, 2;
    refused($got->{3}, -32602, 'Invalid params: duplicate _meta, or duplicate '
            . 'protocolVersion or progressToken in _meta', 'two of _meta');
}

# --- sessions

{
    my $in = $ann->in_session(version => '2025-03-26');
    my $got = array(batch($in, [$ping, rpc(2, 'tools/list'),
                                rpc(3, 'tasks/list')]), 3, 'in a session');
    ok($got->{2}{result}{tools}, 'of that revision');
    refused($got->{3}, -32601, 'Method not found', 'which has no tasks');
    is(batch($ann->in_session(version => $_), [$ping])->{status}, 400,
       "a session of $_")
        for '2025-06-18', '2025-11-25';

    my $res = batch($in, [$ping, $ping], 'Mcp-Session-Id' => 'x' x 64);
    is($res->{status}, 404, 'an unknown session: status');
    refused($res->{json}, -32001, 'Session not found', 'an unknown session');
    is(batch($in->user('bob'), [$ping],
             'Mcp-Session-Id' => $in->{session})->{status}, 404,
       'a session of another owner');
}

# --- the owner of a message is that of the batch

for (['/mcp', sub { ('X-User' => $_[0]) }],
     ['/basic', sub { (Authorization => 'Basic '
                       . encode_base64($_[0] . ':' . substr($_[0], 0, 1),
                                       '')) }],
     ['/asked', sub { ('X-User' => $_[0]) }])
{
    my ($uri, $headers) = @$_;
    my ($a, $b) = map { $c->as(uri => $uri, headers => { $headers->($_) }) }
                  'ann', 'bob';

    my $got = array(batch($a, [map { rpc($_, 'tools/call',
                                         { name => 'other', task => {} }) }
                               1 .. 3]), 3, "$uri: tasks");
    my @ids = map { $got->{$_}{result}{task}{taskId} } 1 .. 3;
    my @gets = map { rpc($_, 'tasks/get', { taskId => $ids[$_ - 1] }) } 1 .. 3;

    $got = array(batch($a, \@gets), 3, "$uri: seen by their owner");
    is(scalar(grep { $_->{result} } values %$got), 3, "$uri: all of them");
    is($a->get($ids[0])->{taskId}, $ids[0], "$uri: outside of a batch, too");

    $got = array(batch($b, \@gets), 3, "$uri: asked for by another");
    is(scalar(grep { $_->{error} && $_->{error}{data}{reason} eq 'task_not_found' }
              values %$got), 3, "$uri: none of them");

    array(batch($a, [map { rpc($_, 'tasks/cancel', { taskId => $ids[$_ - 1] }) }
                     1 .. 3]), 3, "$uri: cancelled");
}

{
    # a value of its own for every request: evaluated once for a batch
    my $once = $c->as(uri => '/once');
    my $got = array(batch($once, [map { rpc($_, 'tools/call',
        { name => 'other', task => {} }) } 1 .. 3]), 3, 'one value');
    my %owners;

    for (1 .. 3) {
        my $work = $c->claim('other');
        my $seen = $c->as(uri => '/console')->rest("api/tasks/$work->{taskId}");
        $owners{$seen->{json}{owner}}++;
        $c->complete($work, { content => [] });
    }

    is(scalar keys %owners, 1, 'all messages have the same owner')
        or diag(join ' ', %owners);

    is(batch($c->as(uri => '/basic'), [$ping])->{status}, 401,
       'without a password, nothing is executed');
}

# --- several messages for one task

{
    my $id = $ann->create('slow');
    my $got = array(batch($ann, [map { rpc($_, 'tasks/update', { taskId => $id,
        metadata => { "k$_" => $_ } }) } 1 .. 20]), 20, 'updates');
    is(scalar(grep { $_->{result} } values %$got), 20, 'all were accepted');
    $got = $ann->legacy('tasks/update', { taskId => $id,
                                          metadata => { last => 1 } });
    is(scalar keys %{ $got->{json}{result}{metadata} }, 21, 'none is lost');
    $ann->complete($ann->claim_id('slow', $id), { content => [] });
}

# --- calls that wait, without anything to report: one array

{
    my $id = $ann->create('other');
    my $s = $t->connect();
    MCPTasks::send_raw($s, batch_bytes($ann, [
        rpc(1, 'tools/call', { name => 'slow' }), $note,
        rpc(2, 'tasks/result', { taskId => $id }), rpc(3, 'ping')]));

    $c->complete($c->claim('slow'), '{"content":[],"n":1}');
    $c->complete($c->claim_id('other', $id), '{"content":[],"n":2}');

    my $got = array(MCPClient::answer($s), 3, 'waiting');
    is($got->{1}{result}{n}, 1, 'the result of a call');
    is($got->{2}{result}{n}, 2, 'tasks/result');
    is_deeply($got->{3}{result}, {}, 'and what did not wait');

    # the connection is kept
    is($c->as(via => $s)->legacy('ping')->{status}, 200, 'the next request');
    array(batch($c->as(via => $s), [$ping]), 1, 'the next batch');
    nobody_waits('after that');
}

# --- progress and questions: a stream, with one message per event

{
    my $in = $ann->in_session(version => '2025-03-26');
    my $stream = $in->stream(batch_bytes($in, [
        rpc(1, 'tools/call', { name => 'slow', arguments => { n => 1 },
                               _meta => { progressToken => 'p' } }),
        rpc(2, 'ping'),
        rpc(3, 'tools/call', { name => 'other',
                               _meta => { progressToken => 'q' } })]));

    my $work = $c->claim('slow');
    my $other = $c->claim('other');
    my %seen;
    $c->held('progress', $work, progress => 0.25);

    for (1 .. 2) {
        my $got = $stream->message();
        $seen{$got->{id} || $got->{params}{progressToken}} = $got;
    }

    like($stream->head(), qr{^content-type: text/event-stream}mi, 'a stream');
    is_deeply([sort keys %seen], [2, 'p'], 'progress, and what was answered');
    is($seen{p}{params}{progress}, 0.25, 'progress');

    $c->held('progress', $other, progress => 0.5);
    is($stream->message()->{params}{progressToken}, 'q', 'of the other call');

    $c->held('ask', $other, inputRequests => { k => {
        method => 'elicitation/create', params => { mode => 'form',
            message => 'm', requestedSchema => { type => 'object',
                                                 properties => {} } } } });
    my $question = $stream->message();
    is($question->{method}, 'elicitation/create', 'a question');

    my $answer = $json->encode({ jsonrpc => '2.0', id => $question->{id},
                                 result => { action => 'accept',
                                             content => {} } });
    is(batch($ann, [$answer, $note])->{status}, 202, 'its answer, in a batch');
    ok(wait_for(sub { my $got = $c->held('progress', $other);
                      return $got->{phase} eq 'running' }), 'goes to the task');

    $c->complete($other, '{"content":[],"n":3}');
    is($stream->message()->{result}{n}, 3, 'the first result');
    $c->complete($work, '{"content":[],"n":1}');
    my @rest = rest_of($stream);
    is(scalar @rest, 1, 'one more message');
    is($rest[0]{result}{n}, 1, 'the last result');
    ok($stream->{whole}, 'and the stream ends');
    nobody_waits('after the stream');
}

# what takes longer

{
    my $quick = $c->as(uri => '/quick');
    my $stream = $c->stream(batch_bytes($quick, [
        rpc(1, 'ping'), rpc(2, 'tools/call', { name => 'slow' }), $note]));
    my $event = $stream->event();
    is($event->{json}{id}, 1, 'what is answered is sent before the rest');
    $event = $stream->event();
    ok(exists $event->{comment}, 'and the connection is kept alive');
    $c->complete($c->claim('slow'), '{"content":[],"n":1}');
    is_deeply([map { $_->{id} } rest_of($stream)], [2], 'and the result');
    ok($stream->{whole}, 'the stream is whole');
    nobody_waits('after it was kept alive');
}

# --- clients go

for my $streams (0, 1) {
    my @tasks = map { $ann->create('other') } 1 .. 2;

    for (1 .. scale(10)) {
        my $s = $t->connect();
        MCPTasks::send_raw($s, batch_bytes($ann, [
            rpc(1, 'tools/call', { name => 'slow',
                                   _meta => { progressToken => 1 } }),
            (map { rpc($_, 'tasks/result', { taskId => $tasks[$_ % 2] }) }
                 2 .. 9), $ping]));

        my $work = $c->claim('slow', leaseMs => 600000);

        if ($streams) {
            my $stream = MCPClient::Stream->new($s);
            $c->held('progress', $work, progress => 1);
            $stream->message();
        }

        close($s);
        ok($c->complete($work, { content => [] })->{phase},
           'a call is not cancelled with its client');
    }

    nobody_waits('clients are gone');
    $ann->complete($ann->claim_id('other', $_), { content => [] })
        for @tasks;
}

# --- a client that does not read

{
    my $id = $ann->create('other');
    my $big = 'x' x 300_000;
    $ann->complete($ann->claim_id('other', $id),
                   "{\"content\":[],\"big\":\"$big\"}");

    my @pids = $t->worker_pids();
    my $before = memory_of(@pids);
    my $s = $t->connect_narrow();
    MCPTasks::send_raw($s, batch_bytes($ann, [
        map { rpc($_, 'tasks/result', { taskId => $id }) } 1 .. 40]));

    # the first bytes are there, and all that follows has to wait for them
    ok(IO::Select->new($s)->can_read(30), 'a large batch begins');
    $ann->legacy('ping') for 1 .. 20;
    my $grown = memory_of(@pids) - $before;

    # the sanitizers keep what was freed
    cmp_ok($grown, '<', 8_000_000, "memory does not grow: $grown")
        unless $ENV{MCP_TASKS_BUILD} =~ /asan/;

    my $stream = MCPClient::Stream->new($s);
    my %got;

    while (my $event = $stream->event()) {
        next unless defined $event->{data} && $event->{data} ne '';
        my ($n) = $event->{data} =~ /\A\{"jsonrpc":"2\.0","id":(\d+),/;
        $got{$n}++ if index($event->{data}, $big) > 0;
    }

    is_deeply([sort { $a <=> $b } keys %got], [1 .. 40],
              'all responses arrive, however slowly they are read');
    ok($stream->{whole}, 'and the stream ends');
    nobody_waits('a slow client');

    # one that never reads, and goes
    $s = $t->connect_narrow();
    MCPTasks::send_raw($s, batch_bytes($ann, [
        map { rpc($_, 'tasks/result', { taskId => $id }) } 1 .. 40]));
    ok(IO::Select->new($s)->can_read(30), 'another one');
    close($s);
    nobody_waits('a client that did not read');
}

# --- HTTP/2

{
    my $post = sub {
        my ($body) = @_;
        my $pid = open(my $curl, '-|', 'curl', '-sSN',
            '--http2-prior-knowledge', '-H', 'Content-Type: application/json',
            '-m', '30', '-d', $body, "http://127.0.0.1:$h2/mcp");
        return $curl;
    };

    my $curl = $post->("[$ping,$note," . rpc(2, 'ping') . ']');
    my $body = do { local $/; <$curl> };
    is($body, '[{"jsonrpc":"2.0","id":1,"result":{}},'
       . '{"jsonrpc":"2.0","id":2,"result":{}}]', 'HTTP/2');

    $curl = $post->("[$ping," . rpc(2, 'tools/call',
        { name => 'slow', _meta => { progressToken => 1 } }) . ']');
    my $work = $c->claim('slow');
    $c->held('progress', $work, progress => 1);
    my $line = <$curl>;
    like($line, qr/^data: \{/, 'HTTP/2: a stream');
    $c->complete($work, '{"content":[],"n":5}');
    $body = do { local $/; <$curl> };
    like($body, qr/"n":5\}\}\n\n\z/, 'HTTP/2: and its end');
    nobody_waits('HTTP/2');
}

# --- each message may have its line in the log

{
    my $logged = $ann->as(uri => '/logged');
    my $got = array(batch($logged, [rpc(1, 'ping'), rpc(2, 'no/method'), $note,
        rpc(3, 'tools/call', { name => 'slow', task => {} })],
        'X-Any' => 'all'), 3, 'logged');
    my $id = $got->{3}{result}{task}{taskId};
    $ann->complete($ann->claim_id('slow', $id), { content => [] });

    my @lines;
    wait_for { @lines = split(/\n/, slurp("$t->{dir}/logs/messages.log"));
               return @lines == 5 };
    s/\] \[\d+\] \[\d+\] \[of all\]\z/] of all/ for @lines;
    is_deeply([sort @lines], [sort
        '[ping] [-] [-] [-] [legacy] [200] of all',
        '[no/method] [-] [-] [-32601] [legacy] [200] of all',
        '[notifications/initialized] [-] [-] [-] [legacy] [202] of all',
        "[tools/call] [slow] [$id] [-] [legacy] [200] of all",
        '[-] [-] [-] [-] [legacy] [200] of all'],
        'a line for each message, and one for the batch');
}

# --- a reload ends a batch, well-formed

{
    my $in = somebody();
    my @array = map { my $s = $t->connect(); MCPTasks::send_raw($s,
        batch_bytes($in, [$ping, rpc(2, 'tools/call', { name => 'slow' }),
                          rpc(3, 'tools/call', { name => 'slow' })])); $s }
                1 .. 4;
    my @work = map { $c->claim('slow', leaseMs => 600000) } 1 .. 8;

    my @streams = map { $c->stream(batch_bytes($in,
        [$ping, rpc(2, 'tools/call', { name => 'other',
                                       _meta => { progressToken => 1 } }),
         rpc(3, 'tools/call', { name => 'other' }), $note])) } 1 .. 4;
    my %ids;

    for (1 .. 8) {
        my $work = $c->claim('other', leaseMs => 600000);
        $c->held('progress', $work, progress => 1);
        push @work, $work;
    }

    # the progress of one call, and the answer to the ping
    for my $stream (@streams) {
        $stream->message() for 1 .. 2;
    }

    ok($t->reload_all(), 'reloaded');

    for my $s (@array) {
        my $got = array(MCPClient::answer($s), 3, 'an array at the end');
        is_deeply($got->{1}{result}, {}, 'what was done');
        refused($got->{$_}, -31012,
                'The server is shutting down, the task continues', "call $_")
            for 2, 3;
    }

    for my $stream (@streams) {
        my $got = by_id(rest_of($stream));
        refused($got->{$_}, -31012,
                'The server is shutting down, the task continues',
                "call $_, stream") for 2, 3;
        ok($stream->{whole}, 'a stream ends as a whole');
    }

    ok($c->complete($_, { content => [] })->{phase}, 'the work continues')
        for @work;
}

ok($t->stop(), 'nginx exits');
is($t->faults('no user/password was provided'), '', 'no errors in the log');

done_testing();
