# Workers that wait for tasks: until one comes, or until nginx is reloaded.

use warnings;
use strict;

use FindBin;
use lib "$FindBin::Bin/lib";

use JSON::PP;
use Test::More;
use Time::HiRes qw/ sleep time /;

use MCPTasks qw/ wait_for /;
use MCPWorker qw/ $question body claim create decoded finish held modern
                  say_of taken work /;

my $t = MCPWorker::start();


# --- waiting for work

for my $round (1 .. 3) {
    my $s = $t->post_later('/worker', body('worker/claim',
                           '{"tools":["plain"],"waitMs":30000}'));
    sleep(0.5);

    my $began = time();
    my $id = create('plain');
    my $got = decoded(MCPTasks::read_response($s));
    my $took = time() - $began;

    is($got->{result}{tasks}[0]{taskId}, $id, 'a waiting worker gets the task');
    cmp_ok($took, '<', 1, 'within a second');
    finish($got->{result}{tasks}[0]);
}

{
    my $began = time();
    my $got = work('claim', '{"tools":["plain"],"waitMs":600}');
    my $took = time() - $began;

    is_deeply($got->{result}{tasks}, [], 'nothing came');
    cmp_ok($took, '>=', 0.55, 'and it waited');
    cmp_ok($took, '<', 3, 'but not for long');
}

# each task goes to one of those who wait
{
    my @s = map { $t->post_later('/worker', body('worker/claim',
                  '{"tools":["other"],"waitMs":3000,"max":4}')) } 1 .. 6;
    sleep(0.3);
    my %ids = map { create('other') => 0 } 1 .. 12;

    my @claims = map { @{ decoded(MCPTasks::read_response($_))
                          ->{result}{tasks} || [] } } @s;
    push @claims, @{ work('claim', '{"tools":["other"],"max":32}')
                     ->{result}{tasks} };
    $ids{$_->{taskId}}++ for @claims;
    is_deeply([sort { $a <=> $b } values %ids], [(1) x 12],
              'several wait: each task goes to one of them');
    finish($_) for @claims;
}

# one that went away takes nothing
{
    my $s = $t->post_later('/worker', body('worker/claim',
                           '{"tools":["plain"],"waitMs":30000}'));
    sleep(0.2);
    close($s);
    sleep(0.3);
    my $id = create('plain');
    sleep(0.4);
    my $claim = claim('plain');
    is($claim->{taskId}, $id, 'who hung up gets no task');
    finish($claim);
}

# a task that comes back later wakes, too
{
    my $claim = taken('plain');
    say_of($claim, 'fail', '"error":{"code":1,"message":"m"},'
                           . '"retryable":true,"delayMs":500');
    my $began = time();
    my $got = work('claim', '{"tools":["plain"],"waitMs":10000}');
    my $took = time() - $began;
    is($got->{result}{tasks}[0]{taskId}, $claim->{taskId},
       'a retry reaches who waits');
    cmp_ok($took, '>=', 0.3, 'after its delay');
    cmp_ok($took, '<', 2.5, 'and soon after it');
    finish($got->{result}{tasks}[0]);
}


# --- nginx is reloaded: those who wait receive an answer, and keep the task

{
    my $claim = taken('asks');
    say_of($claim, 'ask', qq("inputRequests":{"a":$question}));

    my $work = $t->post_later('/worker', body('worker/claim',
                              '{"tools":["plain"],"waitMs":30000}'));
    my $answers = $t->post_later('/worker', body('worker/answers',
                                 '{' . held($claim) . ',"waitMs":30000}'));
    sleep(0.3);
    my $began = time();
    $t->reload();

    my $got = decoded(MCPTasks::read_response($work));
    is_deeply($got->{result}{tasks}, [], 'a reload: no task');
    is($got->{result}{drain}, JSON::PP::true, 'and told why');
    $got = decoded(MCPTasks::read_response($answers));
    is_deeply($got->{result}{inputResponses}, {}, 'no answer');
    is($got->{result}{drain}, JSON::PP::true, 'and told why');
    cmp_ok(time() - $began, '<', 5, 'soon');

    my $s = wait_for {
        my $heart = say_of($claim, 'heartbeat');
        $heart->{result} && !$heart->{result}{drain};
    };
    ok($s, 'the new workers go on');

    modern('tasks/update', $claim->{taskId},
           '"inputResponses":{"a":{"action":"accept"}}');
    is_deeply(say_of($claim, 'answers')->{result}{inputResponses},
              { a => { action => 'accept' } }, 'with the same task');
    is(finish($claim)->{result}{phase}, 'completed', 'to its end');
}

MCPWorker::done();

done_testing();
