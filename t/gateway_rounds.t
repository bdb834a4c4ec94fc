# An upstream of the modern era asks by its answer: the task asks its client,
# and the call is sent again with the answers.

use warnings;
use strict;

use FindBin;
use lib "$FindBin::Bin/lib";

use JSON::PP;
use Test::More;

use MCPClient;
use MCPGateway;
use MCPTasks qw/ wait_for workers /;

my $meta = 'io.modelcontextprotocol';
my $state = 'st/\u00e9+"=='  =~ s/"/\\"/r;
my $name = '{"method":"elicitation/create","params":{"message":"Who?",'
           . '"requestedSchema":{"type":"object","properties":{}}}}';
my $poem = '{"method":"sampling/createMessage","params":{"messages":[],'
           . '"maxTokens":10}}';


# a result that asks
sub asks {
    my ($requests, $state) = @_;
    return '{"resultType":"input_required"'
           . (defined $requests ? ",\"inputRequests\":$requests" : '')
           . (defined $state ? ",\"requestState\":\"$state\"" : '') . '}';
}


my @end = (['result', '{"resultType":"complete","content":[],"x":1.0}']);
my $once = { rounds => [[['result', asks("{\"name\":$name}", $state)]],
                        [@end]] };

my $g = MCPGateway->new(
    workers => workers(),
    tool => ['slow support=optional', 'early after=30s input=call',
             'later after=30s input=task',
             'first after=30s input=first', 'again after=30s input=first',
             'twice support=optional',
             'two support=optional', 'bare support=optional'],
    on => {
        slow => $once, early => $once, later => $once, first => $once,
        twice => { rounds => [
            [['sse'], ['result', asks("{\"name\":$name}", 's1')]],
            [['result', asks("{\"name\":$poem}", 's2')]], [@end]] },
        two => { rounds => [
            [['result', asks("{\"a\":$name,\"b\":$poem}", 's')]], [@end]] },
        bare => { rounds => [[['result', asks("{\"a\":$name}")]], [@end]] },
    });
my ($up, $t, $c) = @{$g}{qw/ up t c /};

my %can = (elicitation => {}, sampling => {}, roots => {},
           extensions => { "$meta/tasks" => {} });
my %meta = ("$meta/clientCapabilities" => \%can);


sub call {
    my ($tool, $params, %opt) = @_;
    return $c->modern('tools/call', { name => $tool, %{ $params || {} } },
                      meta => \%meta, %opt);
}


sub task {
    my ($tool) = @_;
    return $g->modern_task($tool, meta => \%meta,
                           params => { arguments => { n => 5 } });
}


sub update {
    my ($id, $responses) = @_;
    return $c->modern('tasks/update', "{\"taskId\":\"$id\",\"inputResponses\":"
                      . "$responses}", headers => { 'Mcp-Name' => $id })
           ->{json}{result}{resultType};
}


sub asked {
    my ($id) = @_;
    return $g->becomes($id, 'input_required', 15)->{inputRequests} || {};
}


# --- one round

{
    my $id = task('slow');
    my $requests = asked($id);
    is_deeply($requests, { name => MCPClient::decode($name) },
              'the task asks what upstream asks, by the same key');
    my $first = $up->call('slow');
    is($first->{json}{params}{inputResponses}, undef, 'nothing was answered');

    is(update($id, '{"name":{"action":"accept","content":{"x":1.0}}}'),
       'complete', 'an answer');
    my $second = $up->call('slow', 2);
    ok($second, 'the call is sent again');
    is_deeply($second->{json}{params}{arguments}, { n => 5 },
              'with its arguments');
    like($second->{body}, qr/"requestState":"\Q$state\E"/, 'with the state');
    like($second->{body}, qr/"inputResponses":\{"name":\{"action":"accept",
                             "content":\{"x":1\.0\}\}\}/x,
         'and the answer, to the byte');
    is($second->{json}{params}{_meta}{"$meta/clientCapabilities"}{extensions}
       {"$meta/tasks"}, undef, 'still without tasks');
    is($second->{head}{'mcp-method'}, 'tools/call', 'header Mcp-Method');
    is($second->{head}{'mcp-name'}, 'slow', 'header Mcp-Name');
    like($g->becomes($id, 'completed')->{text},
         qr/"result":\{"resultType":"complete","content":\[\],"x":1\.0\}/,
         'and it completes');
    is(scalar(my @calls = $up->calls('slow')), 2, 'after two calls');
}

# --- the same key twice

{
    my $id = task('twice');
    my ($first) = keys %{ asked($id) };
    is($first, 'name', 'the first question keeps its key');
    update($id, '{"name":{"round":1}}');

    my $got = $g->until($id, sub {
        return grep { $_ ne 'name' } keys %{ $_[0]{inputRequests} || {} };
    }, 15);
    my ($second) = keys %{ $got->{inputRequests} };
    like($second, qr/^name.+/, 'the second has a suffix');
    is($got->{inputRequests}{$second}{method}, 'sampling/createMessage',
       'and is another question');
    my $call = $up->call('twice', 2);
    is($call->{json}{params}{requestState}, 's1', 'the state of round one');

    update($id, "{\"$second\":{\"round\":2}}");
    $call = $up->call('twice', 3);
    is_deeply($call->{json}{params}{inputResponses}, { name => { round => 2 } },
              'upstream gets it by its own key, and no other');
    is($call->{json}{params}{requestState}, 's2', 'the state of round two');
    is($g->ends($id)->{status}, 'completed', 'and it completes');
}

# --- several questions: all have to be answered

{
    my $id = task('two');
    is_deeply([sort keys %{ asked($id) }], ['a', 'b'], 'two questions');
    update($id, '{"b":{"n":2}}');
    is_deeply([keys %{ $g->get($id)->{inputRequests} }], ['a'], 'one is left');
    is(scalar(my @one = $up->calls('two')), 1, 'nothing is sent yet');
    update($id, '{"a":{"n":1}}');
    my $call = $up->call('two', 2);
    is_deeply($call->{json}{params}{inputResponses},
              { a => { n => 1 }, b => { n => 2 } }, 'then both');
    is($g->ends($id)->{status}, 'completed', 'and it completes');
}

# --- no state

{
    my $id = task('bare');
    asked($id);
    update($id, '{"a":{}}');
    my $call = $up->call('bare', 2);
    ok(!exists $call->{json}{params}{requestState}, 'no state: none is sent');
    is($g->ends($id)->{status}, 'completed', 'and it completes');
}

# --- nothing to ask: only to be called again

{
    my $before = $up->count('slow');
    $up->script(slow => { rounds => [[['result', asks(undef, 's1')]],
                                     [['sse'], ['result', asks('{}', 's2')]],
                                     [@end]] });
    my $id = task('slow');
    is($g->ends($id, 15)->{status}, 'completed', 'nothing to ask');
    my @calls = @{[$up->calls('slow')]}[$before .. $before + 2];
    is($up->count('slow'), $before + 3, 'it was called again, twice');
    is_deeply([map { $_->{json}{params}{requestState} } @calls],
              [undef, 's1', 's2'], 'each time with the state');
    is_deeply([map { $_->{json}{params}{arguments}{n} } @calls], [5, 5, 5],
              'and its arguments');
    my %ids = map { $_->{id} => 1 } @calls;
    is(scalar keys %ids, 3, 'and an id of its own');
}

# --- params that a method does not need

{
    my $n = $up->count('slow');
    $up->script(slow => { rounds => [
        [['result', asks('{"r":{"method":"roots/list"}}')]], [@end]] });
    my $id = task('slow');
    is_deeply(asked($id), { r => { method => 'roots/list', params => {} } },
              'a question without params');
    my $stream = $c->stream($c->legacy_bytes('tasks/result',
                                             { taskId => $id }));
    my $got = $stream->message(15);
    is("$got->{method} " . join(' ', keys %{ $got->{params} }),
       'roots/list _meta', 'is asked in the legacy era as well');
    update($id, '{"r":{"roots":[]}}');
    is_deeply($up->call('slow', $n + 2)->{json}{params}{inputResponses},
              { r => { roots => [] } }, 'and is answered');
    is($g->ends($id)->{status}, 'completed', 'and it completes');
    $stream->close();
}

# --- cancelled between the rounds

{
    $up->script(slow => $once);
    my $n = $up->count('slow');
    my $id = task('slow');
    asked($id);
    $c->modern('tasks/cancel', { taskId => $id });
    is($g->ends($id)->{status}, 'cancelled', 'cancelled while it asks');
    update($id, '{"name":{}}');
    is($c->legacy('ping')->{status}, 200, 'an answer after that');
    is(scalar(my @calls = $up->calls('slow')), $n + 1, 'sends nothing');
}

# --- a legacy client, whose upstream is asked in its own way

{
    $up->script(slow => $once);
    my $n = $up->count('slow');
    my $id = task('slow');
    asked($id);
    is($c->post({ jsonrpc => '2.0', id => "$id/name",
                  result => { action => 'decline' } })->{status}, 202,
       'an answer of the legacy era');
    my $call = $up->call('slow', $n + 2);
    is_deeply($call->{json}{params}{inputResponses},
              { name => { action => 'decline' } }, 'is one as well');
    is($g->ends($id)->{status}, 'completed', 'and it completes');
}

# --- with after=: what the client is told while it waits

{
    my $res = call('early');
    my $result = $res->{json}{result};
    is($result->{resultType}, 'input_required', 'input=call: the question');
    is_deeply($result->{inputRequests}, { name => MCPClient::decode($name) },
              'as it is');
    like($res->{body}, qr/"requestState":"\Q$state\E"/, 'with its state');

    $res = $c->modern('tools/call', "{\"name\":\"early\",\"requestState\":"
        . "\"$state\",\"inputResponses\":{\"name\":{\"ok\":1}}}",
        meta => \%meta, headers => { 'Mcp-Name' => 'early' });
    is($res->{json}{result}{resultType}, 'complete', 'called again: the end');
    my $second = $up->call('early', 2);
    is_deeply($second->{json}{params}{inputResponses}, { name => { ok => 1 } },
              'upstream got the answer');
    is($second->{json}{params}{requestState}, $result->{requestState},
       'and its own state');

    $res = call('later');
    is($res->{json}{result}{resultType}, 'task', 'input=task: a task');
    my $id = $res->{json}{result}{taskId};
    is_deeply([keys %{ asked($id) }], ['name'], 'which asks');
    update($id, '{"name":{}}');
    is($g->ends($id)->{status}, 'completed', 'and completes');
}

# --- input=first: the first question as it is, then a task at once
#
# Tasks extension, "Task Creation": multi round-trip requests "in conjunction
# with task creation ... SHOULD" be resolved "synchronously before responding
# with a CreateTaskResult"

{
    my $res = call('first');
    is($res->{json}{result}{resultType}, 'input_required',
       'input=first: the question');
    like($res->{body}, qr/"requestState":"\Q$state\E"/, 'with its state');
    ok(!exists $res->{json}{result}{taskId}, 'and no task');

    $res = $c->modern('tools/call', "{\"name\":\"first\",\"requestState\":"
        . "\"$state\",\"inputResponses\":{\"name\":{\"ok\":1}}}",
        meta => \%meta, headers => { 'Mcp-Name' => 'first' });
    my $got = $res->{json}{result};
    is($got->{resultType}, 'task', 'called again: a task, though it is quick');
    ok(!exists $got->{$_}, "without $_")
        for qw/ requestState inputRequests result /;
    my $second = $up->call('first', 2);
    is_deeply($second->{json}{params}{inputResponses}, { name => { ok => 1 } },
              'upstream got the answer');
    like($second->{body}, qr/"requestState":"\Q$state\E"/,
         'and its own state');
    like($g->becomes($got->{taskId}, 'completed')->{text},
         qr/"result":\{"resultType":"complete","content":\[\],"x":1\.0\}/,
         'and the task has the result');
}

# an upstream without a state, which asks again: the task does
{
    $up->script(again => { rounds => [
        [['result', asks("{\"name\":$name}")]],
        [['result', asks("{\"poem\":$poem}")]], [@end]] });
    is(call('again')->{json}{result}{resultType}, 'input_required',
       'a question without a state');

    my $got = call('again', { inputResponses => { name => { ok => 1 } } })
              ->{json}{result};
    is($got->{resultType}, 'task', 'called again: a task');
    is_deeply([keys %{ asked($got->{taskId}) }], ['poem'],
              'the next question is one of the task');
    update($got->{taskId}, '{"poem":{"p":1}}');
    is_deeply($up->call('again', 3)->{json}{params}{inputResponses},
              { poem => { p => 1 } }, 'whose answer upstream gets');
    is($g->ends($got->{taskId})->{status}, 'completed', 'and it completes');

    $up->script(again => [@end]);
    is(call('again')->{json}{result}{resultType}, 'complete',
       'no question: the result');
}

# --- who knows no tasks is asked by upstream itself

{
    $up->script(slow => $once);
    my $plain = $c->as(extensions => []);
    my $res = $plain->modern('tools/call', { name => 'slow' });
    is($res->{json}{result}{resultType}, 'input_required', 'passed');
    like($res->{body}, qr/"requestState":"\Q$state\E"/, 'as it is');
}

# --- requests that are none

for my $bad ('7', '[]', '{"a":7}', '{"a":{"params":{}}}', '{"a":{"method":1}}',
             '{"a":{"method":"m","params":[]}}')
{
    $up->script(slow => [['result', asks($bad, 's')]]);
    $g->fails(task('slow'), 'upstream_invalid', "inputRequests: $bad", 15);
}

for my $bad ('{"method":"foo/bar","params":{}}',
             '{"method":"elicitation/create","params":{}}',
             '{"method":"elicitation/create","params":{"mode":"url",'
             . '"message":"m","url":"http://example.com/"}}')
{
    my $script = [['result', asks("{\"a\":$name,\"b\":$bad}", 's')]];
    $up->script(slow => $script);
    $up->script(early => $script);
    $g->fails(task('slow'), 'upstream_question', "question: $bad", 15);
    is(call('early')->{json}{error}{data}{reason}, 'upstream_question',
       'input=call: likewise');
}

# an id that only the legacy era has
{
    my $link = '{"method":"elicitation/create","params":{"mode":"url",'
               . '"message":"m", "elicitationId":"e","url":"https://a.example/"}}';
    $up->script(early => [['result', asks("{\"a\":$link}", $state)]]);
    my $res = call('early');
    like($res->{body}, qr/"inputRequests":\{"a":\{[^{]*"params":\{"mode":"url",
                          "message":"m","url":"https:\/\/a\.example\/"\}\}\}
                          ,"requestState":"\Q$state\E"/x,
         'input=call: a URL without an id');
}

for my $bad (asks(), asks('{}'),
             '{"resultType":"input_required","requestState":7}')
{
    $up->script(slow => [['result', $bad]]);
    $g->fails(task('slow'), 'upstream_invalid', $bad, 15);
}

# for ever
{
    my $n = $up->count('slow');
    $up->script(slow => [['result', asks(undef, 's')]]);
    $g->fails(task('slow'), 'upstream_invalid', 'again and again', 15);
    is($up->count('slow'), $n + 17, 'is given up');
}

$g->done('background call failed: upstream_(?:invalid|question)');
done_testing();
