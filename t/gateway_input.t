# An upstream of the legacy era asks on the stream of a call: the task asks its
# client, and the answer goes to upstream as it came.

use warnings;
use strict;

use FindBin;
use lib "$FindBin::Bin/lib";

use JSON::PP;
use Test::More;

use MCPClient;
use MCPGateway;
use MCPTasks qw/ wait_for workers /;

my $g = MCPGateway->new(
    workers => workers(), sessions => 1,
    tool => ['slow support=optional'],
    on => { slow => [['sse'], ['hold']] });
my ($up, $t) = @{$g}{qw/ up t /};

my $conn = $t->connect_all() or BAIL_OUT('processes cannot be reached');
my @pids = sort keys %$conn;
my $c = $g->{c} = $g->{c}->in_session();
my @all = map { $c->as(via => $conn->{$_}) } @pids;

my $form = '{"message":"Who?","requestedSchema":{"type":"object","properties":'
           . '{"n":{"type":"number","minimum":1.0}}}}';
my %params = ('elicitation/create' => $form,
              'sampling/createMessage' => '{"messages":[],"maxTokens":10}',
              'roots/list' => '{}');


sub question {
    my ($id, $method, $params) = @_;
    return ['event', "{\"jsonrpc\":\"2.0\",\"id\":$id,\"method\":\"$method\""
                     . ',"params":' . ($params // $params{$method} // '{}')
                     . '}'];
}


# what the task asks, when it asks so much
sub asked {
    my ($id, $n) = @_;
    my $got = $g->until($id, sub {
        return keys %{ $_[0]{inputRequests} || {} } == ($n // 1);
    }, 15);
    return $got->{inputRequests} || {};
}


# an answer in the way of legacy clients, in the process of that number
sub answer {
    my ($id, $key, $member, $n) = @_;
    return $all[($n // 0) % @all]->post(
        "{\"jsonrpc\":\"2.0\",\"id\":\"$id/$key\",$member}")->{status};
}


# the response with that id that upstream got
sub response {
    my ($id, $n) = @_;
    return wait_for {
        my @got = grep { ($_->{id} // '') eq $id } $up->said('response');
        return $got[$n // 0];
    } 15;
}


# --- each kind of question

my $n = 0;

for my $method (sort keys %params) {
    $n++;
    my ($id, $call) = $g->begin('slow', headers => {
        Authorization => 'Bearer abc' });
    $up->go($call, question("\"e$n\"", $method));

    my $requests = asked($id);
    my ($key) = keys %$requests;
    is($requests->{$key}{method}, $method, "$method: is asked");
    is_deeply($requests->{$key}{params},
              MCPClient::decode($params{$method}), 'with its params');
    is($c->legacy('tasks/get', { taskId => $id })->{json}{result}{status},
       'input_required', 'in both eras');

    my $member = '"result":{"x":1.0,"s":"\u00e9"}';
    is(answer($id, $key, $member, $n), 202, 'an answer is taken');
    my $got = response("\"e$n\"");
    ok($got, 'upstream gets it') or next;
    is_deeply($got->{json}, { jsonrpc => '2.0', id => "e$n", result =>
              { x => 1, s => "\x{e9}" } }, 'with the id that it gave');
    like($got->{body}, qr/"result":\{"x":1\.0,"s":"\\u00e9"\}/, 'to the byte');
    is($got->{head}{'mcp-session-id'}, $c->{session}, 'in its session');
    is($got->{head}{'content-type'}, 'application/json', 'as JSON');
    is($got->{path}, '/mcp', 'where the call went');
    is($g->becomes($id, 'working', 15)->{status}, 'working', 'it goes on');
    $g->finish($id, $call, $method);
}

# --- on the stream of tasks/result

{
    my ($id, $call) = $g->begin('slow');
    my $stream = $c->stream($c->legacy_bytes('tasks/result',
                                             { taskId => $id }));
    $up->go($call, question('7', 'elicitation/create'));
    my $got = $stream->message(15);
    is($got->{method}, 'elicitation/create', 'a question on a stream');
    like($got->{id}, qr{^\Q$id\E/.}, 'with an id of ours');
    is($got->{params}{message}, 'Who?', 'what it is');
    is($c->post({ jsonrpc => '2.0', id => $got->{id},
                  result => { action => 'accept', content => { n => 1 } } })
       ->{status}, 202, 'answered');
    my $response = response('7');
    is_deeply($response->{json}{result},
              { action => 'accept', content => { n => 1 } }, 'at upstream');
    $up->go($call, ['result', '{"content":[]}']);
    $got = $stream->message(15);
    is_deeply($got->{result}{content}, [], 'then the result');
}

# --- a client that declines, and one that fails

{
    my ($id, $call) = $g->begin('slow');
    $up->go($call, question('"err"', 'sampling/createMessage'));
    my ($key) = keys %{ asked($id) };
    is(answer($id, $key, '"error":{"code":-1,"message":"no \u00e9"}'), 202,
       'an error as an answer');
    my $got = response('"err"') || {};
    is($got->{json}{error}{code}, -1, 'is handed on as one');
    ok(!exists $got->{json}{result}, 'and as nothing else');
    like($got->{body} // '', qr/"error":\{"code":-1,"message":"no \\u00e9"\}/,
         'to the byte');
    $g->finish($id, $call, 'after an error');
}

# --- two, whose ids differ only in type: one after the other

{
    my ($id, $call) = $g->begin('slow');
    $up->go($call, map {
        question($_->[0], 'elicitation/create',
                 MCPClient::encode(MCPClient::form($_->[1])->{params}))
    } ['1', 'number'], ['"1"', 'string']);
    my ($first) = my @keys = keys %{ asked($id) };
    is(scalar @keys, 1, 'of two questions one is asked');
    is($g->get($id)->{inputRequests}{$first}{params}{message}, 'number',
       'the first');

    answer($id, $first, '"result":{"is":"number"}', 1);
    is((response('1') || {})->{json}{result}{is}, 'number', 'it is answered');
    my $requests = $g->until($id, sub {
        return grep { $_ ne $first } keys %{ $_[0]{inputRequests} || {} };
    }, 15)->{inputRequests};
    my ($second) = keys %$requests;
    is_deeply([map { $_->{params}{message} } values %$requests], ['string'],
              'then the other is asked, and only that');
    answer($id, $second, '"result":{"is":"string"}', 2);
    is((response('"1"') || {})->{json}{result}{is}, 'string',
       'and is answered, elsewhere');

    # once is enough
    answer($id, $first, '"result":{"is":"late"}');
    $g->becomes($id, 'working', 15);

    # an id that was used before
    $up->go($call, question('1', 'roots/list'));
    $requests = asked($id);
    my ($again) = keys %$requests;
    ok($again ne $first && $again ne $second, 'an id comes again: another key');
    answer($id, $again, '"result":{"roots":[]}');
    is_deeply((response('1', 1) || {})->{json}{result}, { roots => [] },
              'and the answer has the id');
    is(scalar(grep { $_->{id} eq '1' } $up->said('response')), 2,
       'nothing was answered twice');
    $g->finish($id, $call, 'several questions');
}

# --- those that come while one is asked are asked together after it

{
    my ($id, $call) = $g->begin('slow');
    $up->go($call, question('"t1"', 'roots/list'));
    my ($first) = keys %{ asked($id) };
    $up->go($call, question('"t2"', 'roots/list'),
            question('"t3"', 'sampling/createMessage'),
            question('"p1"', 'ping'));
    ok(response('"p1"'), 'ping is answered meanwhile');
    is_deeply([keys %{ asked($id) }], [$first], 'more questions: not yet');
    answer($id, $first, '"result":{"roots":[]}');
    my $requests = asked($id, 2);
    is_deeply([sort map { $_->{method} } values %$requests],
              ['roots/list', 'sampling/createMessage'], 'then both at once');
    my %key = map { $requests->{$_}{method} => $_ } keys %$requests;
    answer($id, $key{'sampling/createMessage'}, '"result":{"n":3}', 1);
    is_deeply([keys %{ asked($id) }], [$key{'roots/list'}], 'one is left');
    answer($id, $key{'roots/list'}, '"result":{"n":2}', 2);
    is((response("\"t$_\"") || {})->{json}{result}{n}, $_,
       "the answer to $_") for 2, 3;
    $g->finish($id, $call, 'all are answered');
}

# --- modern clients answer in their way

{
    my ($id, $call) = $g->begin('slow');
    $up->go($call, question('"m"', 'elicitation/create'));
    my ($key) = keys %{ asked($id) };
    my $res = $c->modern('tasks/update', { taskId => $id,
        inputResponses => { $key => { action => 'decline' } } });
    is($res->{json}{result}{resultType}, 'complete', 'tasks/update');
    is_deeply((response('"m"') || {})->{json}{result},
              { action => 'decline' }, 'reaches upstream');
    $g->finish($id, $call, 'answered by an update');
}

# --- what no client is asked

{
    my ($id, $call) = $g->begin('slow');
    $up->go($call, question('"p"', 'ping'), question('"u"', 'some/thing'),
            question('5', 'tasks/get'));
    is_deeply((response('"p"') || {})->{json},
              { jsonrpc => '2.0', id => 'p', result => {} },
              'ping is answered');
    is((response('"u"') || {})->{json}{error}{code}, -32601,
       'an unknown request is refused');
    is((response('5') || {})->{json}{error}{code}, -32601, 'and any other');
    is((response('"p"') || {})->{head}{'mcp-session-id'}, $c->{session},
       'in the session');
    is($g->get($id)->{status}, 'working', 'the task does not ask');
    $g->finish($id, $call, 'nothing to ask');
}

# --- questions that are none: the server is told, the client is not asked

# 2025-11-25, client/elicitation: "The url parameter MUST contain a valid URL"
{
    my ($id, $call) = $g->begin('slow');
    my $n = 0;

    for (['elicitation/create', '{}', '/params: required is not satisfied, '
          . '"message" is missing'],
         ['elicitation/create', '{"mode":"url","message":"m","elicitationId":'
          . '"e","url":"javascript:alert(1)"}', '/params/url: format is not '
          . 'satisfied, a URL must be absolute and valid, use https, or http '
          . 'on a loopback host, and have no user information'],
         ['sampling/createMessage', '{"messages":[]}', '/params: required is '
          . 'not satisfied, "maxTokens" is missing'],
         ['roots/list', '{"_meta":[]}', '/params/_meta: type is not satisfied'])
    {
        my ($method, $params, $detail) = @$_;
        my $q = '"bad' . ++$n . '"';
        $up->go($call, question($q, $method, $params));
        is_deeply((response($q) || {})->{json}{error},
                  { code => -32602, message => 'Invalid params', data => {
                    reason => 'invalid_question', detail => $detail } },
                  "refused: $method $params");
    }

    is($g->get($id)->{status}, 'working', 'nothing is asked');
    $g->finish($id, $call, 'after invalid questions');
}

# --- an answer that comes too late

{
    my ($id, $call) = $g->begin('slow');
    $up->go($call, question('"late"', 'elicitation/create'));
    my ($key) = keys %{ asked($id) };
    $g->finish($id, $call, 'without an answer');
    answer($id, $key, '"result":{}');
    is($c->legacy('ping')->{status}, 200, 'an answer after the end');
    is(scalar(grep { ($_->{id} // '') eq '"late"' } $up->said('response')), 0,
       'does not reach upstream');
}

# --- a question byte by byte, in pieces

{
    my ($id, $call) = $g->begin('slow');
    $up->go($call, ['bytewise', "id: 1\r\ndata: {\"jsonrpc\":\"2.0\",\"id\":"
        . "\"b\",\r\ndata: \"method\":\"roots/list\"}\r\n\r\n"]);
    my $requests = asked($id);
    is_deeply([map { $_->{method} } values %$requests], ['roots/list'],
              'a question in pieces, without params');
    answer($id, keys %$requests, '"result":{"roots":[]}');
    ok(response('"b"'), 'is answered');
    $g->finish($id, $call, 'in pieces');
}

$g->done();
done_testing();
