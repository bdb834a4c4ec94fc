# Questions of a worker, and the answers it receives.

use warnings;
use strict;

use FindBin;
use lib "$FindBin::Bin/lib";

use Test::More;
use Time::HiRes qw/ sleep time /;

use MCPTasks;
use MCPWorker qw/ $question body claim decoded finish held is_refused modern
                  reclaimed say_of taken task /;

my $t = MCPWorker::start();


{
    my $claim = taken('asks');
    my $id = $claim->{taskId};

    is(say_of($claim, 'answers')->{raw}, '{"jsonrpc":"2.0","id":7,"result":'
       . '{"inputResponses":{},"cancelled":false,"drain":false}}',
       'no questions, no answers, no waiting');

    my $both = qq("inputRequests":{"a":$question,"b\\u00e9":$question});
    my $got = say_of($claim, 'ask', qq("message":"two questions",$both));
    is($got->{raw}, '{"jsonrpc":"2.0","id":7,"result":'
       . '{"phase":"input_required","cancelled":false,"drain":false}}',
       'questions are taken');

    my $seen = modern('tasks/get', $id);
    is($seen->{result}{status}, 'input_required', 'clients see the status');
    is($seen->{result}{statusMessage}, 'two questions', 'and the message');
    ok(index($seen->{raw}, $both) > 0, 'and the questions byte for byte');

    is_refused(say_of($claim, 'ask', qq("inputRequests":{"c":$question})),
               -32602, 'task_state_invalid', 'to ask while questions are open');

    my $began = time();
    $got = say_of($claim, 'answers', '"waitMs":500');
    is_deeply($got->{result}{inputResponses}, {}, 'no answer yet');
    cmp_ok(time() - $began, '>=', 0.45, 'after a while');

    is(say_of($claim, 'heartbeat')->{result}{phase}, 'input_required',
       'a heartbeat while waiting');
    is(say_of($claim, 'progress', '"progress":0.5')->{result}{phase},
       'input_required', 'progress while waiting');

    # one of two, and one that was never asked for
    modern('tasks/update', $id, '"inputResponses":{"a":{"action":"accept",'
           . '"content":{"n":1.0}},"zz":{"action":"accept"}}');
    $seen = modern('tasks/get', $id);
    is($seen->{result}{status}, 'input_required', 'one question is left');
    ok(index($seen->{raw}, qq("inputRequests":{"b\\u00e9":$question})) > 0,
       'the other one');

    $got = say_of($claim, 'answers', '"waitMs":200');
    ok(index($got->{raw}, '"inputResponses":{"a":{"action":"accept",'
                          . '"content":{"n":1.0}}},') > 0,
       'one answer, byte for byte, and nothing that was not asked for');

    # answered before: the first answer counts
    modern('tasks/update', $id, '"inputResponses":{"a":{"action":"decline"}}');

    my $s = $t->post_later('/worker', body('worker/answers',
                           '{' . held($claim) . ',"waitMs":30000}'));
    sleep(0.4);
    $began = time();
    modern('tasks/update', $id,
           '"inputResponses":{"b\u00E9":{"action":"cancel"}}');
    $got = decoded(MCPTasks::read_response($s));
    cmp_ok(time() - $began, '<', 1, 'the last answer wakes who waits');
    is_deeply($got->{result}{inputResponses}, {
        a => { action => 'accept', content => { n => 1 } },
        "b\xe9" => { action => 'cancel' } }, 'with all answers');
    is(task($id)->{status}, 'working', 'it goes on');

    # a key means one question
    for my $key ('a', '\u0061', "b\xc3\xa9") {
        is_refused(say_of($claim, 'ask',
                          qq("inputRequests":{"$key":$question})),
                   -32602, undef, "the key $key once more");
    }

    is_refused(say_of($claim, 'ask',
                      qq("inputRequests":{"d":$question,"\\u0064":$question})),
               -32602, undef, 'a key twice in one');
    is(task($id)->{status}, 'working', 'nothing was asked');

    is(say_of($claim, 'ask', qq("inputRequests":{"c":$question}))
       ->{result}{phase}, 'input_required', 'another key is fine');
    modern('tasks/update', $id, '"inputResponses":{"c":{"action":"accept"}}');
    $got = say_of($claim, 'answers');
    is(join(' ', sort keys %{ $got->{result}{inputResponses} }),
       "a b\xe9 c", 'all answers that there ever were');

    # the next attempt knows them
    say_of($claim, 'release');
    $claim = claim('asks');
    is(join(' ', sort keys %{ $claim->{inputResponses} }), "a b\xe9 c",
       'answers are there for the next worker');
    finish($claim);
}

# the lease does not run while a question is open, and is new afterwards
{
    my $claim = taken('quick');
    say_of($claim, 'ask', qq("inputRequests":{"a":$question}));
    sleep(1.2);
    is(task($claim->{taskId})->{status}, 'input_required',
       'no lease is lost while a question is open');
    modern('tasks/update', $claim->{taskId},
           '"inputResponses":{"a":{"action":"accept"}}');
    is(say_of($claim, 'heartbeat')->{result}{phase}, 'running',
       'and the worker still has it');
    my $again = reclaimed('quick');
    is($again->{attempt}, 2, 'but then it runs again');
    finish($again);
}

# bad questions
{
    my $claim = taken('asks');
    my $before = task($claim->{taskId});

    for my $bad ('"x":1', '"inputRequests":{}', '"inputRequests":[]',
                 '"inputRequests":null', '"inputRequests":"x"',
                 '"inputRequests":1', '"inputRequests":{"a":1}',
                 '"inputRequests":{"a":{}}', '"inputRequests":{"a":[]}',
                 '"inputRequests":{"a":{"method":"m"}}',
                 '"inputRequests":{"a":{"method":1,"params":{}}}',
                 '"inputRequests":{"a":{"method":"m","params":[]}}',
                 '"inputRequests":{"a":{"params":{}}}',
                 qq("message":1,"inputRequests":{"a":$question}),
                 qq("message":{},"inputRequests":{"a":$question}),
                 qq("inputRequests":{"a":$question},)
                 . qq("inputRequests":{"b":$question}))
    {
        is_refused(say_of($claim, 'ask', $bad), -32602, undef, $bad);
    }

    for my $bad ('"waitMs":"1"', '"waitMs":-1', '"waitMs":1.5',
                 '"waitMs":null', '"waitMs":[]', '"waitMs":3600001',
                 '"waitMs":1,"waitMs":1')
    {
        is_refused(say_of($claim, 'answers', $bad), -32602, undef,
                   "answers: $bad");
    }

    is_deeply(task($claim->{taskId}), $before, 'changes nothing');
    finish($claim);
}

MCPWorker::done();

done_testing();
