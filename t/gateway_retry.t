# A call is sent again only if upstream cannot have seen it, or if the tool does
# not mind.

use warnings;
use strict;

use FindBin;
use lib "$FindBin::Bin/lib";

use Test::More;
use Time::HiRes qw/ sleep /;

use MCPClient;
use MCPGateway;
use MCPTasks qw/ workers /;

my @end = ['result', '{"a":1.0}'];

my $g = MCPGateway->new(
    workers => workers(),
    conf => 'mcp_tasks_retries 3 backoff=50ms;',
    proxy => 'proxy_next_upstream off; proxy_read_timeout 1s;',
    tool => ['once retries=0', 'plain retries=2', 'same retries=2 idempotent',
             'default idempotent', 'never retries=0 idempotent'],
    on => {});
my ($up, $c) = @{$g}{qw/ up c /};


# --- nobody listens, then somebody does

for my $tool ('plain', 'same', 'default') {
    my $before = $up->count($tool);
    $up->script($tool => \@end);
    $up->shut();
    my $id = $g->task($tool);
    sleep(0.05);
    is($g->get($id)->{status}, 'working', "$tool: nobody listens, it waits");
    $up->open();
    $g->completes($id, "$tool: somebody does, it completes");
    is($up->count($tool) - $before, 1, "$tool: after one call");
}

# nobody ever does
$up->shut();
$g->fails($g->task('once'), 'upstream_unreachable', 'no retries: it fails', 30);
$g->fails($g->task('plain'), 'upstream_unreachable',
          'retries are used up: it fails', 30);
$g->fails($g->task('same'), 'upstream_unreachable', 'so it does if idempotent',
          30);
$up->open();

# --- the connection breaks: who knows what upstream has done

my @breaks = (
    ['before the head', [['reset']]],
    ['after the head', [['sse'], ['pause', 0.05], ['reset']]],
    ['after an event', [['sse'], ['event', '{"jsonrpc":"2.0","method":'
     . '"notifications/progress","params":{"progressToken":%TOKEN%,'
     . '"progress":5,"message":"five"}}'], ['pause', 0.05], ['close']]],
);

for my $break (@breaks) {
    my ($name, $steps) = @$break;
    my $before = $up->count('plain');
    $up->script(plain => $steps);
    $g->fails($g->task('plain'), 'upstream_closed',
              "cut $name: it fails", 30);
    is($up->count('plain') - $before, 1, "cut $name: it is not sent again");

    $before = $up->count('same');
    $up->script(same => { rounds => [$steps, \@end] });
    $g->completes($g->task('same'), "cut $name, idempotent: it completes");
    is($up->count('same') - $before, 2, "cut $name: when it is sent again");

    my @calls = ($up->calls('same'))[-2, -1];
    is_deeply($calls[1]{json}{params}{arguments},
              $calls[0]{json}{params}{arguments}, 'the same call');

    $before = $up->count('same');
    $up->script(same => { rounds => [$steps, $steps, \@end] });
    $g->completes($g->task('same'), "cut $name twice: it completes");
    is($up->count('same') - $before, 3, 'at the last attempt');

    $before = $up->count('same');
    $up->script(same => $steps);
    $g->fails($g->task('same'), 'upstream_closed',
              "cut $name each time: it fails", 30);
    is($up->count('same') - $before, 3, 'after three attempts');

    $before = $up->count('never');
    $up->script(never => $steps);
    $g->fails($g->task('never'), 'upstream_closed',
              "cut $name, no retries: it fails", 30);
    is($up->count('never') - $before, 1, 'after one attempt');
}

# as many as the directive says, where the tool says nothing
{
    my $before = $up->count('default');
    $up->script(default => [['reset']]);
    $g->fails($g->task('default'), 'upstream_closed', 'by default', 30);
    is($up->count('default') - $before, 4, 'after four attempts');
}

# silence is a failure of transport as well
{
    my $before = $up->count('same');
    $up->script(same => { rounds => [[['hold']], \@end] });
    $g->completes($g->task('same'), 'silence, idempotent: it completes');
    is($up->count('same') - $before, 2, 'at the second attempt');
}

# --- what upstream has said is not asked again

for my $case (
    ['an error', ['error', '{"code":-5,"message":"x"}'], '-5'],
    ['a status', ['json', 'no', 500, { 'Content-Type' => 'text/html' }],
     'upstream_status'],
    ['nonsense', ['json', '{"jsonrpc":'], 'upstream_invalid'],
)
{
    my ($name, $step, $want) = @$case;
    my $before = $up->count('same');
    $up->script(same => [$step]);
    my $got = $g->ends($g->task('same'), 30);
    is($got->{status} . ' ' . ($got->{error}{data}{reason}
                               // $got->{error}{code} // '-'),
       "failed $want", "$name: it fails");
    is($up->count('same') - $before, 1, "$name: after one attempt");
}

# --- cancelled between two attempts

{
    $up->shut();
    my $before = $up->count('plain');
    $up->script(plain => \@end);
    my $id = $g->task('plain');
    $c->legacy('tasks/cancel', { taskId => $id });
    $up->open();
    is($g->ends($id)->{status}, 'cancelled', 'cancelled while it waits');

    # by now the next attempt would have been made
    sleep(0.3);
    is($up->count('plain') - $before, 0, 'it is not sent any more');
}

# --- in the modern era

{
    $up->script(same => { rounds => [[['reset']], \@end] });
    my $before = $up->count('same');
    $g->completes($g->modern_task('same'), 'modern: it completes');
    is($up->count('same') - $before, 2, 'modern: at the second attempt');
}

$g->done('\[error\]');
done_testing();
