# The figures of calls that run in the background.

use warnings;
use strict;

use FindBin;
use lib "$FindBin::Bin/lib";

use Test::More;
use Time::HiRes qw/ sleep /;

use MCPClient;
use MCPGateway;
use MCPStatus;
use MCPTasks qw/ wait_for workers /;

my $g = MCPGateway->new(
    workers => workers(),
    conf => 'mcp_tasks_max_running 1;',
    server => 'location /status { mcp_tasks_status zone=z; }',
    on => { map { $_ => [['sse'], ['hold']] } qw/ a b / });
my $s = MCPStatus->new($g->{t});


# of the zone, or of a tool; as soon as it is so
sub becomes {
    my ($path, $want, $name, $tool) = @_;
    my $got;
    wait_for {
        $got = MCPStatus::at($tool ? $s->tool($tool) : $s->json(), $path);
        return defined $got && $got == $want;
    } 10;
    is($got, $want, $name);
}


my $first = $g->task('a');
becomes('runningCalls', 1, 'a call runs');
becomes('runningCalls', 1, 'of its tool', 'a');
becomes('tasks.running', 1, 'and is so many tasks', 'a');

my @more = map { $g->task('b') } 1 .. 2;
sleep(0.2);
becomes('runningCalls', 1, 'others have to wait');
becomes('runningCalls', 0, 'which are of another tool', 'b');
becomes('tasks.queued', 2, 'two of them', 'b');
cmp_ok($s->json()->{oldestQueued}, '>=', 0.2, 'the oldest of them');
cmp_ok($s->tool('b')->{oldestQueued}, '>=', 0.2, 'is of that tool');
is($s->tool('a')->{oldestQueued}, 0, 'and not of the one that runs');
is($s->differs(), '', 'both formats agree');

ok($g->go('a', ['result', '{"content":[]}']), 'the first ends');
is($g->ends($first)->{status}, 'completed', 'it is completed');
becomes('runningCalls', 0, 'its tool has none', 'a');
becomes('runningCalls', 1, 'now it is the turn of another', 'b');
becomes('claims', 2, 'which was begun');
becomes('wait.count', 1, 'after some time', 'b');
cmp_ok($s->tool('b')->{wait}{sum}, '>=', 0.2, 'that is known');
becomes('run.count', 1, 'the first has run', 'a');

# whoever dies with a call leaves none behind
my ($call) = $g->{up}->calls('b');
ok($call, 'a call is at upstream');
kill('KILL', $g->{t}->worker_pids());
ok((wait_for {
    my $now = $s->json();
    return 0 if ($now->{runningCalls} // 9) > 1;
    my $states = 0;
    $states += $_ for values %{ $now->{tasks} };
    return $states == 3;
}), 'all processes die, and no call is counted twice');
is(scalar @{ $s->json()->{byWorker} }, 0, 'calls are no workers');
is($s->differs(), '', 'both formats agree');

$g->done('exited on signal 9|was locked by');
done_testing();
