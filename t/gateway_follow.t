# Tools of the upstream that require a task of its own: the call is sent again
# as a task, and the upstream's task is followed until it ends.

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
my $tasks = "$meta/tasks";

# 2025-11-25, tasks: "If execution.taskSupport is "required", clients MUST
# invoke the tool as a task.  Servers MUST return a -32601 (Method not found)
# error if a client does not attempt to do so."
my $no_method = ['error', '{"code":-32601,"message":"a task is required"}'];

# ext-tasks: a request without the extension that needs it gets -32021
my $no_capability = ['json', '{"jsonrpc":"2.0","id":%ID%,"error":{'
    . '"code":-32021,"message":"Missing required client capability",'
    . '"data":{"requiredCapabilities":{"extensions":{"' . $tasks . '":{}}}}}}',
    400];

my $form = '{"message":"Who?","requestedSchema":{"type":"object",'
           . '"properties":{}}}';
my $name = '{"method":"elicitation/create","params":' . $form . '}';
my $times = '"createdAt":"2026-11-18T00:00:00Z",'
            . '"lastUpdatedAt":"2026-11-18T00:00:00Z"';


# the upstream's task as the legacy era creates it, and as the modern one shows
sub created {
    my ($id) = @_;
    return ['result', '{"task":{"taskId":"' . $id . '","status":"working",'
                      . $times . ',"ttl":null}}'];
}

sub shown {
    my ($id, $status, $more, $type) = @_;
    return ['result', '{"resultType":"' . ($type || 'complete') . '",'
                      . '"taskId":"' . $id . '","status":"' . $status . '",'
                      . $times . ',"ttlMs":null,"pollIntervalMs":200'
                      . (defined $more ? ",$more" : '') . '}'];
}

my $rounds = sub { return { rounds => [@_] } };
my $legacy = $rounds->([$no_method], [created('up-1')]);
my $modern = $rounds->([$no_capability],
                       [shown('up-1', 'working', undef, 'task')]);

my $g = MCPGateway->new(workers => workers(),
    tool => ['again retries=1 idempotent', 'waits after=30s input=call'],
    list => ['plain', '{"name":"must","inputSchema":{"type":"object"},'
             . '"execution":{"taskSupport":"required"}}']);
my ($up, $t, $c) = @{$g}{qw/ up t c /};

my %can = (elicitation => {}, extensions => { $tasks => {} });
my %meta = ("$meta/clientCapabilities" => \%can);


# scripts, and an upstream that has seen nothing
sub on {
    my (%on) = @_;
    $up->clear();
    $up->script($_, $on{$_}) for sort keys %on;
}


sub legacy_task { return $g->task('must', params => { arguments => { n => 5 },
                                  task => { ttl => 60000 } }) }
sub modern_task {
    return $g->modern_task($_[0] || 'must', meta => \%meta,
                           params => { arguments => { n => 5 } });
}

# the request with this method that is the n-th
sub said {
    my ($rpc, $n) = @_;
    return wait_for { ($up->said($rpc))[($n || 1) - 1] } 15;
}


# --- what the gateway lists

{
    my %support = map { $_->{name} => $_->{execution}{taskSupport} }
                  @{ $c->legacy('tools/list')->{json}{result}{tools} };
    is_deeply(\%support, { plain => 'optional', must => 'required' },
              'a tool of the upstream that requires a task still does');
}

# --- legacy: tasks/result

{
    on(must => $legacy, 'tasks/result' => [['hold']]);
    my $id = legacy_task();
    my $asked = said('tasks/result');
    ok($asked, 'the result of the upstream\'s task is waited for');
    is($asked->{json}{params}{taskId}, 'up-1', 'by its id');
    my ($first, $second, @more) = $up->calls('must');
    is(scalar @more, 0, 'after two calls');
    is($first->{json}{params}{task}, undef, 'the first without a task');
    is_deeply($second->{json}{params}{task}, {}, 'the second with one');
    is_deeply($second->{json}{params}{arguments}, { n => 5 },
              'and its arguments');
    isnt($first->{id}, $second->{id}, 'each has an id of its own');

    $up->go($asked, ['sse'], ['event', '{"jsonrpc":"2.0","method":'
        . '"notifications/progress","params":{"progressToken":'
        . $second->{token} . ',"progress":1,"message":"half"}}'], ['hold']);
    is($g->until($id, sub { ($_[0]{statusMessage} // '') eq 'half' }, 15)
       ->{statusMessage}, 'half', 'its progress is seen');
    $up->go($asked, ['event', '{"jsonrpc":"2.0","id":"q","method":'
        . '"elicitation/create","params":' . $form . '}'], ['hold']);
    my ($key) = keys %{ $g->becomes($id, 'input_required', 15)
                        ->{inputRequests} };
    $c->modern('tasks/update', { taskId => $id, inputResponses =>
               { $key => { action => 'decline' } } });
    my $answer = said('response');
    is($answer->{json}{id}, 'q', 'its questions are answered');

    $up->go($asked, ['result', '{"a":1,"_meta":{"x":2}}']);
    $g->completes($id, 'and its result is the result', 15);
}

{
    on(must => $legacy, 'tasks/result' => [['error', '{"code":-5,'
       . '"message":"broken"}']]);
    my $got = $g->ends(legacy_task(), 15);
    is("$got->{status} $got->{error}{code}", 'failed -5',
       'its error is the error');
}

{
    on(must => [$no_method]);
    my $got = $g->ends(legacy_task(), 15);
    is("$got->{status} $got->{error}{code}", 'failed -32601',
       'an upstream without tasks refuses again');
    is($up->count('must'), 2, 'and is not asked more than twice');
}

{
    on(must => $rounds->([$no_method], [['result', '{"a":1}']]));
    $g->completes(legacy_task(), 'an upstream that ignores "task"', 15);
}

# --- legacy: a stream that ends early is asked for again; the end

{
    on(must => $legacy, 'tasks/result' => $rounds->(
       [['json', 'no', 502]], [['sse'], ['text', ": x\n\n"], ['close']],
       [['result', '{"a":1}']]));
    $g->completes(legacy_task(), 'the result is asked for again', 30);
    is(scalar(my @asked = $up->said('tasks/result')), 3, 'twice');
    is($up->count('must'), 2, 'but the call is not repeated');
}

{
    on(must => $legacy, 'tasks/result' => [['hold']]);
    my $id = legacy_task();
    my $asked = said('tasks/result');
    $c->legacy('tasks/cancel', { taskId => $id });
    is((said('tasks/cancel') || {})->{json}{params}{taskId}, 'up-1',
       'the upstream\'s task is cancelled with the task');
    ok($up->left($asked), 'and nobody waits for its result');
}

# --- legacy: a call that has asked has run, and is not sent again

for my $end ($no_method, created('up-1')) {
    on(must => $rounds->([$no_method], [['sse'], ['event',
       '{"jsonrpc":"2.0","id":"q","method":"elicitation/create",'
       . '"params":' . $form . '}'], ['hold']]));
    my $id = legacy_task();
    $g->becomes($id, 'input_required', 15);
    $g->go('must', $end);
    my $got = $g->ends($id, 15);
    is($got->{status}, 'failed', "asked, then $end->[0]");
    is($up->count('must'), 2, 'not again');
    is(scalar(my @asked = $up->said('tasks/result')), 0, 'not followed');
}

{
    on(must => [['sse'], ['event', '{"jsonrpc":"2.0","id":"q","method":'
       . '"elicitation/create","params":' . $form . '}'], ['hold']]);
    my $id = legacy_task();
    $g->becomes($id, 'input_required', 15);
    $g->go('must', $no_method);
    my $got = $g->ends($id, 15);
    is("$got->{status} $got->{error}{code}", 'failed -32601',
       'asked, then refused');
    is($up->count('must'), 1, 'not again');
}

# --- modern: tasks/get

{
    on(must => $modern, 'tasks/get' => $rounds->(
        [shown('up-1', 'working', '"statusMessage":"one"')],
        [shown('up-1', 'working', '"statusMessage":"one"')],
        [['hold']]));
    my $id = modern_task();
    my $third = said('tasks/get', 3);
    my ($get) = $up->said('tasks/get');
    is($get->{json}{params}{taskId}, 'up-1', 'its task is asked for');
    is($get->{head}{'mcp-method'}, 'tasks/get', 'header Mcp-Method');
    is($get->{head}{'mcp-name'}, 'up-1', 'header Mcp-Name');
    my ($first, $second) = $up->calls('must');
    my @has = map { exists $_->{json}{params}{_meta}
                    {"$meta/clientCapabilities"}{extensions}{$tasks} ? 1 : 0 }
              $first, $second, $get;
    is("@has", '0 1 1', 'with the extension, except in the first call');
    is_deeply($second->{json}{params}{arguments}, { n => 5 },
              'the call has its arguments');
    is($second->{head}{'mcp-name'}, 'must', 'and its name');

    my $got = $g->until($id, sub { $_[0]{statusMessage} }, 15);
    is($got->{statusMessage}, 'one', 'its message is the message');
    $up->go($third, shown('up-1', 'completed',
                          '"result":{"resultType":"complete","a":1}'));
    $g->completes($id, 'and its result is the result', 15);
}

for my $case (['"error":{"code":-5,"message":"broken"}', 'failed', '-5 -'],
              ['"x":1', 'cancelled', '-31014 upstream_cancelled'],
              ['"x":1', 'completed', '-31014 upstream_invalid'],
              ['"x":1', 'failed', '-31014 upstream_invalid'],
              ['"x":1', 'strange', '-31014 upstream_invalid'])
{
    my ($more, $status, $want) = @$case;
    on(must => $modern, 'tasks/get' => [shown('up-1', $status, $more)]);
    my $got = $g->ends(modern_task(), 15);
    is(join(' ', $got->{status}, $got->{error}{code},
            $got->{error}{data}{reason} // '-'), "failed $want",
       "$status with $more");
}

for my $id ('a b', '\u00e9', '', '=?base64?eA==?=', 'x' x 300) {
    on(must => $rounds->([$no_capability],
                         [shown($id, 'working', undef, 'task')]));
    $g->fails(modern_task(), 'upstream_invalid',
              'an id that no header can have: ' . substr($id, 0, 20), 15);
}

# --- modern: questions

# ext-tasks: the acknowledgement of tasks/update "is eventually consistent",
# and a key is never used again
for my $tool ('must', 'waits') {
    on($tool => $modern, 'tasks/update' => [['result',
                                             '{"resultType":"complete"}']],
       'tasks/get' => $rounds->(
        [shown('up-1', 'input_required', "\"inputRequests\":{\"k\":$name}")],
        [shown('up-1', 'input_required', "\"inputRequests\":{\"k\":$name}")],
        [shown('up-1', 'input_required',
               "\"inputRequests\":{\"k\":$name,\"l\":$name}")],
        [shown('up-1', 'completed', '"result":{"a":1}')]));
    my $id;

    if ($tool eq 'waits') {
        # "input=call" is for questions in place of the call's result
        my $res = $c->modern('tools/call', { name => $tool, arguments => {} },
                             meta => \%meta);
        $id = $res->{json}{result}{taskId};
        is($res->{json}{result}{resultType}, 'task',
           'who waits gets the task, because it asks') or diag($res->{body});

    } else {
        $id = modern_task($tool);
    }

    for my $key (qw/ k l /) {
        my $got = $g->until($id, sub { $_[0]{inputRequests}{$key} }, 15);
        is(join(' ', keys %{ $got->{inputRequests} || {} }), $key,
           "$tool: $key is asked once");
        $c->modern('tasks/update', { taskId => $id, inputResponses =>
                   { $key => { action => 'accept', content => {} } } });
    }

    my $update = said('tasks/update', 2);
    is($update->{head}{'mcp-method'}, 'tasks/update', 'header Mcp-Method');
    is_deeply($update->{json}{params}{inputResponses},
              { l => { action => 'accept', content => {} } },
              'its answer goes to the upstream');
    $g->completes($id, "$tool: and it completes", 15);
}

{
    on(must => $modern, 'tasks/get' => [shown('up-1', 'input_required',
                        "\"inputRequests\":{\"k\":$name}")]);
    my $id = modern_task();
    $g->becomes($id, 'input_required', 15);
    $c->modern('tasks/cancel', { taskId => $id });
    my $cancel = said('tasks/cancel') || {};
    is($cancel->{json}{params}{taskId}, 'up-1',
       'cancelled while it asks: so is the upstream\'s task');
    is($cancel->{head}{'mcp-method'}, 'tasks/cancel', 'header Mcp-Method');
    is($cancel->{head}{'mcp-name'}, 'up-1', 'header Mcp-Name');
}

# --- modern: failures

{
    on(must => $modern, 'tasks/get' => $rounds->([['close']],
       [['json', 'no', 503]], [shown('up-1', 'completed',
                                     '"result":{"a":1}')]));
    $g->completes(modern_task(), 'a request that failed is repeated', 30);
    is($up->count('must'), 2, 'but the call is not');
}

{
    on(again => $rounds->([$no_capability],
                          [shown('up-1', 'working', undef, 'task')],
                          [shown('up-2', 'working', undef, 'task')]),
       'tasks/update' => [['reset']],
       'tasks/get' => $rounds->([shown('up-1', 'input_required',
                                       "\"inputRequests\":{\"k\":$name}")],
                                [shown('up-2', 'completed',
                                       '"result":{"a":1}')]));
    my $id = modern_task('again');
    $g->becomes($id, 'input_required', 15);
    $c->modern('tasks/update', { taskId => $id, inputResponses =>
               { k => { action => 'decline' } } });
    $g->completes($id, 'another attempt is another call', 30);
    my @calls = $up->calls('again');
    is(scalar @calls, 3, 'as a task at once');
    is($calls[2]{head}{'mcp-name'}, 'again', 'with the name of the tool');
    is($calls[2]{head}{'mcp-method'}, 'tools/call', 'and the method');
    is((said('tasks/cancel') || {})->{json}{params}{taskId}, 'up-1',
       'the first task of the upstream is cancelled');
}

{
    on(must => $modern, 'tasks/get' => [['json',
       '{"jsonrpc":"2.0","id":%ID%,"error":{"code":-32602,"message":"gone"}}',
       404]]);
    my $got = $g->ends(modern_task(), 15);
    is("$got->{status} $got->{error}{code}", 'failed -32602',
       'a task that the upstream does not know any more');
}

# --- a process that has to exit does not poll for ever

{
    ok($t->reload_all(main => 'worker_shutdown_timeout 1s;'), 'reloaded');
    on(must => $modern, 'tasks/get' => [shown('up-1', 'working')]);
    my $id = modern_task();
    ok(said('tasks/get'), 'the upstream\'s task is polled');
    ok($t->reload_all(), 'reloaded again');
    $g->fails($id, 'shutdown', 'it is polled until the time is up', 30);
    is((said('tasks/cancel') || {})->{json}{params}{taskId}, 'up-1',
       'and cancelled');
}

$g->done(qr/background\ call\ failed:\ (upstream_(invalid|cancelled|closed)
                                         |shutdown)
            |upstream\ prematurely\ closed|Connection\ reset\ by\ peer/x);
done_testing();
