# Workers that lose a task: by a lost lease, by cancellation or by a timeout.

use warnings;
use strict;

use FindBin;
use lib "$FindBin::Bin/lib";

use JSON::PP;
use Test::More;
use Time::HiRes qw/ sleep time /;

use MCPTasks;
use MCPWorker qw/ $question body claim create decoded fails finish held
                  is_refused legacy modern reclaimed say_of taken task /;

my $t = MCPWorker::start();


# --- lost leases

{
    my $claim = taken('quick');
    my $id = $claim->{taskId};
    my @lost = $claim;

    for my $attempt (2, 3) {
        my $next = reclaimed('quick');
        is($next->{taskId}, $id, 'a lost lease: the task comes back');
        is($next->{attempt}, $attempt, "attempt $attempt");
        push @lost, $next;
    }

    # the third worker is at work: the others have no say
    my $before = task($id);

    for my $stale (@lost[0, 1],
                   { taskId => $id, lease => '0000000000000000' },
                   { taskId => $id, lease => '' },
                   { taskId => $id, lease => 'nonsense' },
                   { taskId => $id, lease => uc $lost[2]{lease} . '0' },
                   { taskId => $id, lease => ('0' x 15) . '1' })
    {
        for my $say (['heartbeat'], ['progress', '"progress":1'],
                     ['progress', '"message":"x"'],
                     ['ask', qq("inputRequests":{"a":$question})],
                     ['answers', '"waitMs":1000'],
                     ['complete', '"result":{}'],
                     ['fail', '"error":{"code":1,"message":"m"}'],
                     ['fail', '"error":{"code":1,"message":"m"},'
                              . '"retryable":true'],
                     ['release'])
        {
            is_refused(say_of($stale, @$say), -31011, 'lease_lost',
                       "$say->[0] with a stale token");
        }

        say_of($lost[2], 'heartbeat');
    }

    is_deeply(task($id), $before, 'and nothing has changed');
    is(say_of($lost[2], 'heartbeat')->{result}{phase}, 'running',
       'the one who has it goes on');

    ok(fails($id),
       'the last lease is lost: failed');
    is(task($id)->{error}{data}{reason}, 'lease_lost', 'for that reason');
    is(task($id)->{error}{code}, -31013, 'with our code');
    is(legacy('tasks/result', qq({"taskId":"$id"}))->{error}{data}{reason},
       'lease_lost', 'in both eras');
    is_refused(say_of($lost[2], 'heartbeat'), -31011, 'task_terminal',
               'the last worker learns that it ended');
    is_refused(say_of($lost[0], 'heartbeat'), -31011, 'lease_lost',
               'the first one that it is not theirs');
}

{
    my $claim = taken('once');
    ok(fails($claim->{taskId}),
       'one attempt only');
    is(claim('once'), undef, 'is not repeated');
}

# backoff
{
    my $claim = taken('patient');
    sleep(1.2);
    is(claim('patient'), undef, 'a lost lease waits for the backoff');
    is_refused(say_of($claim, 'heartbeat'), -31011, 'lease_lost',
               'meanwhile nobody has it');
    my $next = reclaimed('patient');
    is($next->{attempt}, 2, 'then it may be claimed');
    finish($next);
}

# ids
for my $id ('00000000-0000-4000-8000-000000000000', 'nonsense', '') {
    my $claim = { taskId => $id, lease => '0123456789abcdef' };

    for my $say (['heartbeat'], ['complete', '"result":{}'], ['answers'],
                 ['ask', qq("inputRequests":{"a":$question})])
    {
        my $got = say_of($claim, @$say);
        is_refused($got, -31011, 'task_not_found', "$say->[0]: \"$id\"");
        is($got->{error}{data}{cancelled}, JSON::PP::false, 'not cancelled');
    }
}


# --- cancelled

{
    my $claim = taken('plain');
    my $id = $claim->{taskId};
    modern('tasks/cancel', $id);
    my $before = task($id);
    is($before->{status}, 'cancelled', 'cancelled');

    for my $say (['heartbeat'], ['progress', '"progress":0.5'],
                 ['ask', qq("inputRequests":{"a":$question})], ['answers'],
                 ['complete', '"result":{}'], ['release'],
                 ['fail', '"error":{"code":1,"message":"m"}'])
    {
        my $got = say_of($claim, @$say);
        is_refused($got, -31011, 'task_terminal', "$say->[0] when cancelled");
        is($got->{error}{data}{cancelled}, JSON::PP::true, 'told so');
        is($got->{error}{data}{phase}, 'cancelled', 'twice');
    }

    is_deeply(task($id), $before, 'it stays cancelled');
}

# while a worker waits for answers
{
    my $claim = taken('asks');
    say_of($claim, 'ask', qq("inputRequests":{"a":$question}));
    my $s = $t->post_later('/worker', body('worker/answers',
                           '{' . held($claim) . ',"waitMs":30000}'));
    sleep(0.3);
    my $began = time();
    modern('tasks/cancel', $claim->{taskId});
    my $got = decoded(MCPTasks::read_response($s));
    cmp_ok(time() - $began, '<', 1, 'cancelling wakes who waits for answers');
    is_refused($got, -31011, 'task_terminal', 'answers when cancelled');
    is($got->{error}{data}{cancelled}, JSON::PP::true, 'told so');
}

# while it is queued
{
    my $id = create('plain');
    modern('tasks/cancel', $id);
    is(claim('plain'), undef, 'what was cancelled is not handed out');
}


# --- timeouts

{
    my $id = create('queue');
    ok(fails($id), 'nobody took it');
    is(task($id)->{error}{data}{reason}, 'task_timeout', 'for that reason');
    is(claim('queue'), undef, 'and nobody will');
    is(legacy('tasks/result', qq({"taskId":"$id"}))->{error}{code}, -31013,
       'legacy clients are told');
}

{
    my $claim = taken('run');
    cmp_ok($claim->{deadlineMs}, '<=', 500, 'the worker is told its deadline');
    say_of($claim, 'heartbeat', '"leaseMs":60000');
    ok(fails($claim->{taskId}),
       'it ran for too long');
    is(task($claim->{taskId})->{error}{data}{reason}, 'task_timeout',
       'for that reason');
    my $got = finish($claim);
    is_refused($got, -31011, 'task_terminal', 'the result comes too late');
    is($got->{error}{data}{cancelled}, JSON::PP::false, 'not cancelled');
    is($got->{error}{data}{phase}, 'failed', 'but failed');
}

MCPWorker::done();

done_testing();
