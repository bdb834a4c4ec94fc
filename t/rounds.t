# Calls of several rounds: what a tool asks before its call is a task.

use warnings;
use strict;

use FindBin;
use lib "$FindBin::Bin/lib";

use JSON::PP;
use Test::More;
use Time::HiRes qw/ sleep /;

use MCPClient qw/ answer /;
use MCPFile qw/ slurp /;
use MCPPattern qw/ $server /;
use MCPTasks qw/ wait_for workers /;

my $t = MCPTasks->new(
    workers => workers(), listen => 'reuseport',
    tools => [['slow', ''], ['other', ''],
              ['call', '"after":"30s","input":"call"'],
              ['soon', '"after":"300ms","input":"call"'],
              ['task', '"after":"30s","input":"task"'],
              ['first', '"after":"30s","input":"first"']],
    http => 'mcp_tasks_zone zone=z:2m; mcp_tasks_tools tools.json;'
            . ' log_format task "$mcp_method $mcp_task_id $mcp_task_status";',
    server => 'access_log logs/task.log task; mcp_tasks_owner $http_x_user;'
              . ' location /mcp { mcp_tasks zone=z; }'
              . ' location /worker { mcp_tasks_worker zone=z; }');

my $meta = 'io.modelcontextprotocol';
my $all = { elicitation => {}, sampling => {}, roots => {} };
my $c = MCPClient->new($t, headers => { 'X-User' => 'ann' });
my $eve = MCPClient->new($t, headers => { 'X-User' => 'eve' });

my %question = (
    name => { method => 'elicitation/create',
              params => { message => 'Who?',
                          requestedSchema => { type => 'object',
                                               properties => {} } } },
    link => { method => 'elicitation/create',
              params => { mode => 'url', message => 'Sign in',
                          url => 'https://example.com/sign-in' } },
    poem => { method => 'sampling/createMessage',
              params => { messages => [], maxTokens => 10 } },
    roots => { method => 'roots/list', params => {} },
);


# by default one that knows no tasks, but can answer all
sub call_bytes {
    my ($who, $tool, $params, %opt) = @_;
    my $can = $opt{can} || $all;
    $can = { %$can, extensions => { "$meta/tasks" => {} } } if $opt{tasks};
    return $who->modern_bytes('tools/call', { name => $tool, %$params },
                              meta => { "$meta/clientCapabilities" => $can });
}


sub call {
    my ($who, $tool, $params, %opt) = @_;
    return $who->say_bytes(call_bytes($who, $tool, $params, %opt))->{json};
}


# the call waits
sub begin {
    my (@args) = @_;
    my $s = $t->connect();
    MCPTasks::send_raw($s, call_bytes(@args));
    return $s;
}


sub ask {
    my ($work, @keys) = @_;
    return $c->held('ask', $work,
                    inputRequests => { map { $_ => $question{$_} } @keys });
}


# a call of the tool that has asked, and who works for it
sub asked {
    my ($tool, %opt) = @_;
    my $s = begin($c, $tool, {}, %opt);
    my $work = $c->claim($tool);
    ask($work, @{ $opt{keys} || ['name'] });
    return (answer($s)->{json}, $work);
}


sub is_invalid {
    my ($got, $name) = @_;
    is_deeply($got->{error}, { code => -32602, message =>
        'Invalid params: requestState is unknown, was already used, or is '
        . 'for another owner or tool',
        data => { reason => 'invalid_request_state' } }, $name)
        or diag(MCPClient::encode($got));
}


my %yes = (action => 'accept', content => { name => 'Ann' });
my $state = qr/\A[0-9a-f]{80}\z/;

# --- one round

{
    my ($got, $work) = asked('slow');
    is($got->{result}{resultType}, 'input_required', 'a call that asks');
    is_deeply($got->{result}{inputRequests}, { name => $question{name} },
              'what it asks');
    like($got->{result}{requestState}, $state, 'and a state');
    is_deeply([sort keys %{ $got->{result} }],
              [qw/ _meta inputRequests requestState resultType /],
              'nothing else');

    my $s = begin($c, 'slow', { inputResponses => { name => \%yes },
                                requestState => $got->{result}{requestState} });
    my $given = $c->held('answers', $work, waitMs => 10000);
    is_deeply($given->{inputResponses}, { name => \%yes }, 'the answer');
    $c->complete($work, '{"content":[],"n":1.0}');
    is(MCPTasks::read_response($s)->{body},
       '{"jsonrpc":"2.0","id":1,"result":{"resultType":"complete",'
       . $server . ',"content":[],"n":1.0}}', 'the result of the second call');

    is_invalid(call($c, 'slow', { inputResponses => { name => \%yes },
                    requestState => $got->{result}{requestState} }),
               'the state cannot be used again');
}

# --- several, and several questions

{
    my ($got, $work) = asked('slow', keys => [qw/ name poem /]);
    is_deeply([sort keys %{ $got->{result}{inputRequests} }],
              [qw/ name poem /], 'two questions');
    my $first = $got->{result}{requestState};

    # what is missing is asked for again, what nobody asked is ignored
    $got = call($c, 'slow', { requestState => $first,
                              inputResponses => { name => \%yes, x => {} } });
    is_deeply($got->{result}{inputRequests}, { poem => $question{poem} },
              'one of them is answered');
    my $second = $got->{result}{requestState};
    isnt($second, $first, 'there is another state');
    is_invalid(call($c, 'slow', { requestState => $first,
                                  inputResponses => { poem => {} } }),
               'the first one is void');

    $got = call($c, 'slow', { requestState => $second });
    is_deeply($got->{result}{inputRequests}, { poem => $question{poem} },
              'no answer: asked again');

    my $s = begin($c, 'slow', { requestState => $second,
                                inputResponses => { poem => { p => 1 } } });
    my $given = $c->held('answers', $work, waitMs => 10000);
    is_deeply($given->{inputResponses}, { name => \%yes, poem => { p => 1 } },
              'both answers');

    ask($work, 'roots');
    $got = answer($s)->{json};
    is_deeply($got->{result}{inputRequests}, { roots => $question{roots} },
              'and yet another round');

    $s = begin($c, 'slow', { requestState => $got->{result}{requestState},
                             inputResponses => { roots => { roots => [] } } });
    $c->held('answers', $work, waitMs => 10000);
    $c->complete($work, { content => [] });
    is(answer($s)->{json}{result}{resultType}, 'complete', 'the end');
}

# --- states that are not what they should be

{
    my ($got, $work) = asked('slow');
    my $good = $got->{result}{requestState};
    my $answers = { name => \%yes };
    my $flipped = $good;
    substr($flipped, 40, 1) =~ tr/0-9a-f/1-9a-f0/;
    my $end = $good;
    substr($end, -1) =~ tr/0-9a-f/1-9a-f0/;

    for my $case (['tampered with', $flipped], ['sealed otherwise', $end],
                  ['longer', "$good-TAMPERED"],
                  ['shorter', substr($good, 0, 78)], ['empty', ''],
                  ['not hexadecimal', 'x' x 80], ['made up', '0' x 80],
                  ['a number', 7], ['null', undef], ['an object', {}])
    {
        is_invalid(call($c, 'slow', { requestState => $case->[1],
                                      inputResponses => $answers }),
                   "a state that is $case->[0]");
    }

    is_invalid(call($eve, 'slow', { requestState => $good,
                                    inputResponses => $answers }),
               'a state of somebody else');
    is_invalid(call($c, 'other', { requestState => $good,
                                   inputResponses => $answers }),
               'a state of another tool');

    # nothing of this has done anything
    my $s = begin($c, 'slow', { requestState => $good,
                                inputResponses => $answers });
    $c->held('answers', $work, waitMs => 10000);
    $c->complete($work, { content => [] });
    is(answer($s)->{json}{result}{resultType}, 'complete',
       'the good one works');
}

# --- answers that are none

for my $case (['a number', 7], ['null', undef], ['an array', []],
              ['a member that is a number', { name => 12345 }],
              ['a member that is null', { name => undef }])
{
    my $got = call($c, 'slow', { inputResponses => $case->[1] });
    is($got->{error}{code}, -32602, "inputResponses with $case->[0]");
}

for my $bad ('{"name":{"a":1},"name":{"a":2}}', '{"name":{"a":1,"a":2}}') {
    my $got = $c->say_bytes($c->modern_bytes('tools/call',
        "{\"name\":\"slow\",\"inputResponses\":$bad}",
        headers => { 'Mcp-Name' => 'slow' },
        meta => { "$meta/clientCapabilities" => $all }))->{json};
    is($got->{error}{message}, 'Invalid params: duplicate key in the answers',
       "inputResponses: $bad");
}

is_deeply($c->worker('worker/claim', { tools => ['slow'] })->{tasks}, [],
          'none of these has become a task');

# --- answers that come with the first call

{
    my $s = begin($c, 'slow', { inputResponses => { name => \%yes, x => {} } });
    my $work = $c->claim('slow');
    is_deeply($work->{inputResponses}, { name => \%yes, x => {} },
              'the worker has them at once');
    is($work->{arguments} && scalar keys %{ $work->{arguments} }, 0,
       'beside the arguments');
    like(ask($work, 'name')->{error}{message}, qr/./,
         'what is answered is not asked again');
    $c->complete($work, { content => [] });
    is(answer($s)->{json}{result}{resultType}, 'complete', 'and needs not ask');
}

# --- what the client cannot answer

for my $case (['name', 'elicitation', undef, { form => {} }],
              ['poem', 'sampling', undef, {}], ['roots', 'roots', undef, {}],
              ['name', 'elicitation', { url => {} }, { form => {} }],
              ['link', 'elicitation', undef, { url => {} }],
              ['link', 'elicitation', {}, { url => {} }],
              ['link', 'elicitation', { form => {} }, { url => {} }],
              ['link', 'elicitation', { url => 1 }, { url => {} }])
{
    # 2026-07-28, Elicitation: "MUST NOT send elicitation requests with modes
    # that are not supported by the client"
    my ($key, $capability, $declared, $needed) = @$case;
    my %can = (%$all, $capability => $declared);
    delete $can{$capability} unless $declared;

    my ($got, $work) = asked('slow', can => \%can, keys => [$key]);
    is_deeply($got->{error}, { code => -32021, message =>
        'Missing required client capability',
        data => { requiredCapabilities => { $capability => $needed } } },
        "$key: a client without $capability, or with "
        . MCPClient::encode($declared // {}));

    # the client's answer does not wait for the cancellation
    ok(scalar(wait_for {
        return $c->held('heartbeat', $work)->{error}{data}{cancelled};
    }), 'the call is cancelled');
}

# --- and what it can: {} means forms

for my $case (['name', {}], ['name', { form => {} }],
              ['name', { form => {}, url => {} }], ['name', { other => {} }],
              ['link', { url => {} }], ['link', { form => {}, url => {} }])
{
    my ($key, $declared) = @$case;
    my ($got, $work) = asked('slow', can => { elicitation => $declared },
                             keys => [$key]);
    is_deeply($got->{result}{inputRequests}, { $key => $question{$key} },
              "$key: a client with " . MCPClient::encode($declared));
    $c->complete($work, { content => [] });
}

# --- clients that know tasks: a task from the start, or when it takes longer

{
    my ($got) = asked('task', tasks => 1);
    is($got->{result}{resultType}, 'task', 'who asks becomes a task');

    ($got, my $work) = asked('call', tasks => 1);
    is($got->{result}{resultType}, 'input_required',
       'or asks first, if the tool is made so');

    my $s = begin($c, 'call', { requestState => $got->{result}{requestState},
                                inputResponses => { name => \%yes } },
                  tasks => 1);
    $c->held('answers', $work, waitMs => 10000);
    $c->complete($work, { content => [] });
    is(answer($s)->{json}{result}{resultType}, 'complete', 'quick: a result');

    ($got, $work) = asked('soon', tasks => 1);
    is($got->{result}{resultType}, 'input_required', 'one that is slow');
    $s = begin($c, 'soon', { requestState => $got->{result}{requestState},
                             inputResponses => { name => \%yes } },
               tasks => 1);
    $c->held('answers', $work, waitMs => 10000);
    $got = answer($s)->{json};
    is($got->{result}{resultType}, 'task', 'becomes a task in a later round');
    is($got->{result}{taskId}, $work->{taskId}, 'the same');
    ask($work, 'poem');
    my $task = $c->modern('tasks/get', { taskId => $work->{taskId} })->{json};
    is($task->{result}{status}, 'input_required', 'and asks as a task then');
    $c->complete($work, { content => [] });
    $task = $c->modern('tasks/get', { taskId => $work->{taskId} })->{json};
    is($task->{result}{status}, 'completed', 'to the end');
}

# --- or asks first, and is a task then, however quick it is
#
# Tasks extension, "Task Creation": multi round-trip requests "in conjunction
# with task creation ... SHOULD" be resolved "synchronously before responding
# with a CreateTaskResult"

sub get {
    my ($id) = @_;
    return $c->modern('tasks/get', { taskId => $id })->{json}{result};
}

{
    my ($got, $work) = asked('first', tasks => 1);
    is_deeply([sort keys %{ $got->{result} }],
              [qw/ _meta inputRequests requestState resultType /],
              'input=first: the first round is a question, not a task');

    $got = call($c, 'first', { requestState => $got->{result}{requestState},
                               inputResponses => { name => \%yes } },
                tasks => 1)->{result};
    is($got->{resultType}, 'task', 'the second is a task at once');
    is($got->{taskId}, $work->{taskId}, 'that of the first round');
    is($got->{status}, 'working', 'which works');
    ok(!exists $got->{$_}, "without $_")
        for qw/ requestState inputRequests result /;

    my $given = $c->held('answers', $work, waitMs => 10000);
    is_deeply($given->{inputResponses}, { name => \%yes },
              'the worker has the answer');
    ask($work, 'poem');
    is_deeply(get($got->{taskId})->{inputRequests}, { poem => $question{poem} },
              'what it asks now is asked by the task');
    $c->complete($work, { content => [], n => 1 });
    is(get($got->{taskId})->{result}{n}, 1, 'and the task has the result');

    # what is not answered is left to the task, too
    ($got, $work) = asked('first', tasks => 1, keys => [qw/ name poem /]);
    $got = call($c, 'first', { requestState => $got->{result}{requestState},
                               inputResponses => { name => \%yes } },
                tasks => 1)->{result};
    is("$got->{resultType} $got->{status}", 'task input_required',
       'one of two answers: a task that waits for the other');
    is_deeply(get($got->{taskId})->{inputRequests}, { poem => $question{poem} },
              'and asks for it');
    $c->complete($work, { content => [] });

    ($got, $work) = asked('first', tasks => 1);
    $got = call($c, 'first', { requestState => $got->{result}{requestState} },
                tasks => 1)->{result};
    is("$got->{resultType} $got->{status}", 'task input_required',
       'no answer: a task that waits for it');
    $c->complete($work, { content => [] });

    # answers that come with the first call
    $got = call($c, 'first', { inputResponses => { name => \%yes } },
                tasks => 1)->{result};
    is($got->{resultType}, 'task', 'answers without a state: a task');
    $work = $c->claim('first');
    is_deeply($work->{inputResponses}, { name => \%yes }, 'which has them');
    $c->complete($work, { content => [] });

    # who is quick and does not ask
    my $s = begin($c, 'first', {}, tasks => 1);
    $c->complete($c->claim('first'), { content => [] });
    is(answer($s)->{json}{result}{resultType}, 'complete',
       'no question: the result');

    # who knows no tasks
    ($got, $work) = asked('first');
    $s = begin($c, 'first', { requestState => $got->{result}{requestState},
                              inputResponses => { name => \%yes } });
    $c->held('answers', $work, waitMs => 10000);
    $c->complete($work, { content => [] });
    is(answer($s)->{json}{result}{resultType}, 'complete',
       'a client without tasks gets the result');

    is_invalid(call($c, 'first', { requestState => '0' x 80 }, tasks => 1),
               'a state that is made up');
}

# --- the log knows the task of every round, with answers or without

{
    my ($got, $work) = asked('slow');
    call($c, 'slow', { requestState => $got->{result}{requestState} });
    $c->complete($work, { content => [] });
    my $line = qr{^tools/call \Q$work->{taskId}\E input_required$};
    ok(scalar(wait_for {
        return 2 == grep { /$line/ }
                    split(/\n/, slurp("$t->{dir}/logs/task.log"));
    }), 'two rounds of one task');
}

# --- going away: between the rounds it matters to nobody

{
    my ($got, $work) = asked('slow');
    sleep(0.3);
    is($c->held('heartbeat', $work)->{cancelled}, JSON::PP::false,
       'the work waits for the next round');

    my $s = begin($c, 'slow', { requestState => $got->{result}{requestState},
                                inputResponses => { name => \%yes } });
    $c->held('answers', $work, waitMs => 10000);
    close($s);
    ok(scalar(wait_for {
        return $c->held('heartbeat', $work)->{error};
    }), 'who leaves during a round cancels the call');
}

# --- reload: the state lives in the zone

{
    my ($got, $work) = asked('slow');
    ok($t->reload(), 'nginx is reloaded');
    my $s = begin($c, 'slow', { requestState => $got->{result}{requestState},
                                inputResponses => { name => \%yes } });
    $c->held('answers', $work, waitMs => 10000);
    $c->complete($work, { content => [] });
    is(answer($s)->{json}{result}{resultType}, 'complete',
       'rounds go on over it');
}

ok($t->stop(), 'nginx stops');
is($t->faults(), '', 'nothing to complain about in the log');

done_testing();
