# Calls that take too long: for the task, or for the location of upstream.

use warnings;
use strict;

use FindBin;
use lib "$FindBin::Bin/lib";

use Test::More;
use Time::HiRes qw/ sleep time /;

use MCPClient;
use MCPGateway;
use MCPTasks qw/ wait_for workers /;

my $question = ['event', '{"jsonrpc":"2.0","id":"q","method":"roots/list",'
                         . '"params":{}}'];

my $g = MCPGateway->new(
    workers => workers(), proxy => 'proxy_read_timeout 1s;',
    conf => 'mcp_tasks_retries 0;',
    tool => ['run timeout=1s', 'steady timeout=1h', 'long timeout=1h',
             'asks timeout=2s'],
    on => {
        run => [['sse'], ['flood', ": alive\n\n", 0.1]],
        steady => [['sse'], ['hold']],
        long => [['hold']],
        asks => [['sse'], $question, ['answered', 'q'], ['result', '{}']],
        alive => [['sse'], ['flood', ": alive\n\n", 0.2]],
    });
my ($up, $c) = @{$g}{qw/ up c /};


sub is_timeout {
    my ($got, $name) = @_;
    my $is = join ' ', map { $_ // '-' } $got->{status}, $got->{error}{code},
                                         $got->{error}{data}{reason};
    is($is, 'failed -31013 task_timeout', $name) or diag($got->{text});
}


# --- the task's own time, though upstream is alive

for my $era ('legacy', 'modern') {
    my $n = $up->count('run');
    my $start = time();
    my $id = $era eq 'legacy' ? $g->task('run') : $g->modern_task('run');
    my $call = $up->call('run', $n + 1);
    is_timeout($g->ends($id, 20), "$era: it ran for too long");
    cmp_ok(time() - $start, '>=', 0.95, "$era: not before its time");
    ok($up->left($call, 10), "$era: upstream is left");

    my $told = sub {
        return grep { $_->{body} =~ /"requestId":\s*\Q$call->{id}\E\s*[,}]/ }
               $up->said('notifications/cancelled');
    };

    if ($era eq 'legacy') {
        ok(wait_for { $told->() }, "$era: and told so");
    } else {
        is(@{[$told->()]}, 0, "$era: without a word");
    }

    is($up->count('run'), $n + 1, "$era: it is not tried again");
}

# --- the location's time: silence before and after the head

for my $tool ('long', 'steady') {
    my $start = time();
    my $id = $g->task($tool);
    $g->fails($id, 'upstream_timeout', "$tool: upstream is silent", 20);
    cmp_ok(time() - $start, '>=', 0.95, "$tool: not before its time");
    ok($up->left($up->call($tool), 10), "$tool: it is left");
    is($up->count($tool), 1, "$tool: and not tried again");
}

# comments are no silence
{
    my $id = $g->task('alive');
    my $call = $up->call('alive');
    sleep(1.5);
    is($g->get($id)->{status}, 'working', 'one that gives signs of life lives');
    $c->legacy('tasks/cancel', { taskId => $id });
    ok($up->left($call, 10), 'until it is cancelled');
}

# --- time that the client takes is not the tool's

SKIP: {
    my $res = $g->{t}->stop();
    $g->{t}->configure(%{ $g->config(proxy => 'proxy_read_timeout 1h;') });
    ok($g->{t}->start(), 'with more patience');

    my $id = $g->task('asks');
    my $got = $g->becomes($id, 'input_required');
    my ($key) = keys %{ $got->{inputRequests} || {} };
    skip('it does not ask', 2) unless defined $key;
    sleep(2.5);
    is($g->get($id)->{status}, 'input_required',
       'while it waits for an answer no time passes');
    $c->post({ jsonrpc => '2.0', id => "$id/$key", result => { roots => [] } });
    is($g->ends($id)->{status}, 'completed', 'and it completes');
}

$g->done('upstream timed out|background call failed: upstream_timeout');
done_testing();
