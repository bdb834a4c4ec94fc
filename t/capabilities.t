# Clients are asked only what they have declared to answer.
#
# 2025-11-25 and 2026-07-28, client/elicitation: "Servers MUST NOT send
# elicitation requests with modes that are not supported by the client."
# 2026-07-28, basic/patterns/mrtr: "Servers MUST NOT send an inputRequests that
# the client has not declared support for in its capabilities."

use warnings;
use strict;

use FindBin;
use lib "$FindBin::Bin/lib";

use Test::More;

use MCPClient;
use MCPTasks qw/ wait_for workers /;

my $t = MCPTasks->new(
    workers => workers(), tools => ['slow'],
    http => 'mcp_tasks_zone zone=z:4m; mcp_tasks_tools tools.json;',
    server => 'mcp_tasks_owner $http_x_user;',
    surfaces => [qw/ mcp worker /]);

my $c = MCPClient->new($t)->user('ann');

my %questions = (
    form => { method => 'elicitation/create',
              params => { mode => 'form', message => 'form?',
                          requestedSchema => { type => 'object',
                                               properties => {} } } },
    url => { method => 'elicitation/create',
             params => { mode => 'url', message => 'url?',
                         elicitationId => 'e1',
                         url => 'https://example.com/' } },
    sampling => { method => 'sampling/createMessage',
                  params => { maxTokens => 5, messages => [] } },
    tools => { method => 'sampling/createMessage',
               params => { maxTokens => 5, messages => [], tools => [] } },
    roots => { method => 'roots/list', params => {} });

my @cases = (
    ['nothing', {}, []],
    ['elicitation: {}', { elicitation => {} }, ['form']],
    ['form', { elicitation => { form => {} } }, ['form']],
    ['url', { elicitation => { url => {} } }, ['url']],
    ['form and url', { elicitation => { form => {}, url => {} } },
     [qw/ form url /]],
    ['sampling', { sampling => {} }, ['sampling']],
    ['sampling with tools', { sampling => { tools => {} } },
     [qw/ sampling tools /]],
    ['roots', { roots => {} }, ['roots']]);


# a task of that client whose worker has asked all of them
sub asked {
    my ($who) = @_;
    my $id = $who->create('slow');
    my $work = $c->claim('slow', leaseMs => 600000);
    is($work->{taskId}, $id, 'claimed');
    is($c->held('ask', $work, inputRequests => \%questions)->{phase},
       'input_required', 'asked');
    return $work;
}


# the keys of the next questions on a stream
sub keys_of {
    my ($stream, $n) = @_;
    my @ids = map { my $got = $stream->message(10) || {};
                    $got->{id} && $got->{method} ? $got->{id} : 'none' }
              1 .. $n;
    return join ' ', sort map { s{.*/}{}r } @ids;
}


# tasks/result of a client that is sent nothing before the result
sub waiting {
    my ($who, $work) = @_;
    my $s = $t->connect();
    MCPTasks::send_raw($s, $who->legacy_bytes(
        'tasks/result', { taskId => $work->{taskId} }));
    return $s;
}


sub answer {
    my ($who, $work, @keys) = @_;
    $who->post({ jsonrpc => '2.0', id => "$work->{taskId}/$_", result => {} })
        for @keys;
}


# --- legacy: what initialize has declared is in the session id

for my $case (@cases) {
    my ($name, $can, $expected) = @$case;
    next unless @$expected;
    my $session = $c->in_session(can => $can);
    my $work = asked($session);
    my $result = $session->stream($session->legacy_bytes(
        'tasks/result', { taskId => $work->{taskId} }));

    is(keys_of($result, scalar @$expected), join(' ', @$expected),
       "$name: asked in tasks/result");

    # the others are not sent: the next message is the result
    $c->complete($work, '{"content":[]}');
    my $got = $result->message(10);
    ok($got->{result}, "$name: and nothing else")
        or diag(MCPClient::encode($got));
    $result->close();
}

# the stream of the session
{
    my $session = $c->in_session(can => { roots => {}, sampling => {} });
    my $stream = $session->get_stream();
    my $work = asked($session);
    my %seen;

    wait_for {
        my $got = $stream->message(5) || {};
        $seen{$got->{method} || ''}++;
        $seen{'roots/list'} && $seen{'sampling/createMessage'};
    };
    is($seen{'roots/list'}, 1, 'on the stream of the session: roots');
    is($seen{'sampling/createMessage'}, 1, 'and sampling without tools');
    is($seen{'elicitation/create'}, undef, 'and no elicitation');

    answer($session, $work, 'roots', 'sampling');
    is($c->status($work->{taskId}), 'input_required',
       'what the client cannot answer stays open');

    # somebody else can answer it, here by REST
    my $input = MCPClient::encode({ inputResponses => {
        map { $_ => {} } qw/ form url tools / } });
    my $res = $t->request('POST', "/mcp/tasks/$work->{taskId}/input",
                          { 'Content-Type' => 'application/json',
                            'X-User' => 'ann' }, $input);
    is($res->{status}, 200, 'REST answers the rest') or diag($res->{body});
    is($c->status($work->{taskId}), 'working', 'and the work goes on');
    $c->complete($work, '{}');
    $stream->close();
}

# a client that cannot be asked keeps no other from being asked
{
    my $mute = $c->in_session(can => {});
    my $work = asked($mute);
    my $silent = $mute->get_stream();
    my $first = waiting($mute, $work);
    my $half = $c->in_session(can => { elicitation => { url => {} } });
    my $second = $half->stream($half->legacy_bytes(
        'tasks/result', { taskId => $work->{taskId} }));

    is(keys_of($second, 1), 'url', 'another session of the owner is asked');
    $c->complete($work, '{"content":[]}');
    ok(MCPClient::answer($first)->{json}{result},
       'the first one gets the result only');
    $_->close() for $second, $silent;
}

# without a session nothing is declared
{
    my $work = asked($c);
    my $result = waiting($c, $work);
    my $able = $c->in_session();
    my $other = $able->stream($able->legacy_bytes(
        'tasks/result', { taskId => $work->{taskId} }));
    is(keys_of($other, 5), 'form roots sampling tools url', 'with a session');
    $c->complete($work, '{"content":[]}');
    ok(MCPClient::answer($result)->{json}{result},
       'without one: the result only');
    $other->close();
}

# a plain call
{
    my $session = $c->in_session(can => { elicitation => {} });
    my $call = $session->stream($session->legacy_bytes(
        'tools/call', { name => 'slow' }));
    my $work = wait_for { $c->claim('slow', leaseMs => 600000) };
    $c->held('ask', $work, inputRequests => \%questions);
    is(keys_of($call, 1), 'form', 'a plain call');
    $c->complete($work, '{"content":[]}');
    ok($call->message(10)->{result}, 'and its result');
    $call->close();
}

# revisions before the modes have forms only, and are known by their session
{
    my $old = $c->in_session(version => '2025-06-18',
                             can => { elicitation => { url => {} } });
    delete $old->{headers}{'MCP-Protocol-Version'};
    my $call = $old->stream($old->legacy_bytes('tools/call',
                                               { name => 'slow' }));
    my $work = wait_for { $c->claim('slow', leaseMs => 600000) };
    $c->held('ask', $work, inputRequests => \%questions);
    is(keys_of($call, 1), 'form', '2025-06-18: elicitation means forms');
    $c->complete($work, '{"content":[]}');
    ok($call->message(10)->{result}, 'and its result');
    $call->close();
}

# the revision of a session applies where the header is missing
{
    my %no = ('MCP-Protocol-Version' => undef);

    for my $case (['2025-11-25', undef], ['2025-06-18', -32601],
                  ['2025-03-26', -32601])
    {
        my ($version, $code) = @$case;
        my $session = $c->in_session(version => $version);
        my $body = '{"jsonrpc":"2.0","id":1,"method":"tasks/list"}';
        my $res = $t->request('POST', '/mcp',
                              { 'Content-Type' => 'application/json',
                                'Accept' => 'application/json, '
                                            . 'text/event-stream',
                                %{ $session->{headers} } }, $body);
        my $got = MCPClient::decode($res->{body});
        is($got->{error}{code}, $code, "$version: tasks/list");
    }
}

# nobody changes what was declared
{
    my $session = $c->in_session(can => {});
    my $id = $session->{session};

    for my $i (28 .. 31) {
        my $forged = $id;
        substr($forged, $i, 1) = substr($forged, $i, 1) eq '1' ? '3' : '1';
        is($c->legacy('ping', undef, headers => { 'Mcp-Session-Id' => $forged })
           ->{status}, 404, "forged at $i");
    }
}


# --- modern: what the request itself declares

# ext-tasks: "The inputRequests field MUST contain all outstanding requests from
# the server to the client"; those that it cannot answer are not requests to it

for my $case (@cases) {
    my ($name, $can, $expected) = @$case;
    my $who = $c->as(can => $can);
    my $id = $who->create_modern('slow');
    my $work = $c->claim('slow', leaseMs => 600000);
    $c->held('ask', $work, inputRequests => \%questions);

    my $got = $who->get_modern($id);
    is($got->{status}, 'input_required', "$name: the status is shown");
    is(join(' ', sort keys %{ $got->{inputRequests} || { none => 1 } }),
       join(' ', @$expected), "$name: and what the client can answer");

    my $stream = $who->stream($who->modern_bytes(
        'subscriptions/listen', { notifications => { taskIds => [$id] } }));
    my $params = wait_for { my $m = $stream->message(5) || {};
                            ($m->{method} || '') eq 'notifications/tasks'
                            && $m->{params} };
    is(join(' ', sort keys %{ $params->{inputRequests} || { none => 1 } }),
       join(' ', @$expected), "$name: in notifications, too");
    $stream->close();
    $c->complete($work, '{}');
}

# a plain call that nobody can go on with says what is missing
for my $case ([{ sampling => {} }, 'tools', { sampling => { tools => {} } }],
              [{}, 'roots', { roots => {} }],
              [{}, 'sampling', { sampling => {} }],
              [{ elicitation => {} }, 'url', { elicitation => { url => {} } }])
{
    my ($can, $key, $missing) = @$case;
    my $who = $c->as(can => $can, extensions => []);
    my $call = $t->connect();
    MCPTasks::send_raw($call, $who->modern_bytes('tools/call',
                                                 { name => 'slow' }));
    my $work = wait_for { $c->claim('slow', leaseMs => 600000) };
    $c->held('ask', $work, inputRequests => { $key => $questions{$key} });
    my $got = MCPClient::answer($call);
    is($got->{status}, 400, "$key: 400");
    is($got->{json}{error}{code}, -32021, "$key: -32021");
    is_deeply($got->{json}{error}{data}{requiredCapabilities}, $missing,
              "$key: names what is missing");
}

done_testing();
