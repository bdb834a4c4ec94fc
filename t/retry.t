# "retryOn" of a tool: which ends of an attempt another one follows.

use warnings;
use strict;

use FindBin;
use lib "$FindBin::Bin/lib";

use Test::More;

use MCPTasks qw/ wait_for /;
use MCPTools qw/ tools_json /;
use MCPWorker qw/ claim fails finish is_refused reclaimed say_of taken task /;

my %policy = (
    timeout => '"retryOn":["timeout","lease","error"],"runTimeout":500,'
               . '"lease":"1m","attempts":255,"backoff":50',
    twice => '"retryOn":["timeout"],"runTimeout":300,"lease":"1m",'
             . '"attempts":2,"backoff":50',
    lease => '"retryOn":["lease"],"lease":300,"attempts":3,"backoff":50',
    error => '"retryOn":["error"],"lease":"1m","attempts":3,"backoff":50',
    held => '"retryOn":["error","timeout"],"lease":300,"attempts":3',
    none => '"retryOn":[],"lease":"1m","attempts":3,"backoff":50',
    plain => '"lease":"1m","runTimeout":300,"attempts":3,"backoff":50',
);

sub tools { return [map { [$_, $_[0]{$_}] } sort keys %{ $_[0] }] }

my $t = MCPWorker::start(
    tools => tools(\%policy),
    http => 'mcp_tasks_zone zone=z:8m store=sqlite:tasks.db;');

my $retry = '"error":{"code":-7,"message":"later"},"retryable":true';


# --- a run timeout

# however slow this machine is: the worker that is fast enough completes it
sub completes {
    my ($tool, $id) = @_;

    return wait_for {
        my $next = reclaimed($tool) or return;
        return $next->{taskId} eq $id
               && (finish($next)->{result}{phase} // '') eq 'completed';
    };
}

{
    my $first = taken('timeout');
    say_of($first, 'progress', '"progress":0.5');
    my $next = reclaimed('timeout');
    is($next->{taskId}, $first->{taskId}, 'a run timeout: the task comes back');
    cmp_ok($next->{attempt}, '>=', 2, 'in another attempt');
    is(task($first->{taskId})->{status}, 'working', 'clients see no change');

    for my $say (['heartbeat'], ['progress', '"progress":1'],
                 ['complete', '"result":{"content":[]}'],
                 ['fail', $retry], ['release'])
    {
        is_refused(say_of($first, @$say), -31011, 'lease_lost',
                   "$say->[0] of the worker that was too slow");
    }

    ok(completes('timeout', $first->{taskId}), 'another worker completes it');
    is(task($first->{taskId})->{status}, 'completed', 'and clients see it');
}

{
    my $first = taken('twice');
    my $next = reclaimed('twice');
    is($next->{attempt}, 2, 'the second and last attempt');
    ok(fails($first->{taskId}), 'it times out, too');
    is(task($first->{taskId})->{error}{data}{reason}, 'task_timeout',
       'for that reason');
    is_refused(finish($next), -31011, 'task_terminal', 'it has ended');
    is(claim('twice'), undef, 'and is not repeated');
}

# the default
{
    my $first = taken('plain');
    ok(fails($first->{taskId}), 'a run timeout is not retried by default');
    is(task($first->{taskId})->{error}{data}{reason}, 'task_timeout',
       'for that reason');
}


# --- a lost lease

{
    my $first = taken('lease');
    my $next = reclaimed('lease');
    is($next->{attempt}, 2, 'a lost lease is retried');
    say_of($next, 'heartbeat', '"leaseMs":60000');

    my $got = say_of($next, 'fail', $retry);
    my $phase = $got->{result}{phase} // 'lost';

    # a machine that is slower than the lease has lost it again
    SKIP: {
        skip('too slow', 2) if $phase eq 'lost';
        is($phase, 'failed', 'an error is not');
        is(task($first->{taskId})->{error}{code}, -7, 'the error is kept');
    }
}

for my $tool (qw/ held none /) {
    my $first = taken($tool, '"leaseMs":300');
    ok(fails($first->{taskId}), "$tool: a lost lease is not retried");
    is(task($first->{taskId})->{error}{data}{reason}, 'lease_lost',
       "$tool: for that reason");
    is(claim($tool), undef, "$tool: nobody gets it again");
}


# --- an error

{
    my $first = taken('error');
    is(say_of($first, 'fail', $retry)->{result}{phase}, 'queued',
       'an error is retried');
    my $next = reclaimed('error');
    is($next->{attempt}, 2, 'in another attempt');
    is(finish($next)->{result}{phase}, 'completed', 'which completes');
}

{
    my $first = taken('none');
    is(say_of($first, 'release')->{result}{phase}, 'queued',
       'a released task is no failure');
    my $next = reclaimed('none');
    is(say_of($next, 'fail', $retry)->{result}{phase}, 'failed',
       'an error is not retried');
    is(task($first->{taskId})->{error}{code}, -7, 'the error is kept');
}


# --- the task keeps its policy: after a restart, and with another tools file

{
    my $first = taken('timeout');
    my $other = taken('none');
    $t->{files}{'tools.json'} = tools_json(@{ tools({
        %policy, timeout => '"attempts":1', none => '"attempts":3' }) });
    ok($t->kill_all(), 'nginx is killed');
    ok($t->start(), 'and starts with other policies');
    ok(completes('timeout', $first->{taskId}),
       'the run timeout is retried as when the task was created');
    is(say_of($other, 'fail', $retry)->{result}{phase}, 'failed',
       'and an error is not');
}

MCPWorker::done();

done_testing();
