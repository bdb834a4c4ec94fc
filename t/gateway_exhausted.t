# No connection is left in a process: calls fail or are tried again, and say
# why; and when there is room again, all is as before.

use warnings;
use strict;

use FindBin;
use lib "$FindBin::Bin/lib";

use Test::More;

use MCPClient;
use MCPGateway;
use MCPProcess qw/ descriptors_of memory_of /;
use MCPTasks qw/ wait_for /;

# what a sanitizer keeps of freed memory is not what we look for
$ENV{ASAN_OPTIONS} = 'quarantine_size_mb=1:thread_local_quarantine_size_kb=64';

my $g = MCPGateway->new(
    connections => 48, conf => 'mcp_tasks_retries 100 backoff=100ms;',
    tool => ['once retries=0', 'again support=optional', 'ping retries=0'],
    on => { map { $_ => [['sse'], ['hold']] } qw/ once again ping / });
my ($up, $t, $c) = @{$g}{qw/ up t c /};
my ($pid) = $t->worker_pids();


my $fds = $t->idle_descriptors();

# --- until there is no room

my (@ids, $failed);

for (1 .. 30) {
    my $id = $g->task('once');
    my $n = @ids;
    my $got = $g->until($id, sub {
        return $_[0]{status} eq 'failed' || $up->open_calls('once') == $n + 1;
    }, 15);

    if ($got->{status} eq 'failed') {
        $failed = $got;
        last;
    }

    push @ids, $id;
}

cmp_ok(scalar @ids, '>', 10, 'calls, until there is no room');
is(join(' ', map { $_ // '-' } $failed->{error}{code},
                               $failed->{error}{data}{reason}),
   '-31014 upstream_unreachable', 'then one fails, and says why');
$g->fails($g->task('once'), 'upstream_unreachable', 'and another');
is(@{[$up->open_calls('once')]}, scalar @ids, 'those before go on');

# --- one that is tried again waits for room

my $waits = $g->task('again');
ok((wait_for { $t->log() =~ /upstream_unreachable, task \Q$waits\E/ } 15),
   'one that may be retried');
is($g->get($waits)->{status}, 'working', 'waits');
is($up->count('again'), 0, 'and is not sent');

# one is cancelled: there may be no room to say so, but it is closed
my $first = shift @ids;
$c->legacy('tasks/cancel', { taskId => $first });
my ($closed) = wait_for { (grep { $_->{closed} } $up->calls('once'))[0] };
ok($closed, 'one is cancelled');
ok($up->call('again', 1, 15), 'then there is room for the one that waits');
$up->go($up->call('again'), ['result', '{"a":1}']);
is($g->ends($waits)->{result}{a}, 1, 'which completes');

# --- all of them end well

$up->go($_, ['result', '{}']) for $up->open_calls('once');
is(@{[grep { $g->ends($_)->{status} eq 'completed' } @ids]}, scalar @ids,
   'all others complete');
ok((wait_for { ($up->connections())[0] == 0 }), 'no connection is left');
ok((wait_for { descriptors_of($pid) <= $fds }), 'nor a descriptor')
    or diag("$fds before, " . descriptors_of($pid) . ' now');

# --- a server that asks faster than it can be answered

{
    my $id = $g->task('ping');
    my $call = $up->call('ping');
    $up->go($call, ['flood', 'data: {"jsonrpc":"2.0","id":"p","method":"ping"}'
                             . "\n\n"]);
    ok((wait_for { $up->said('response') > 500 }), 'a server asks a lot');
    is(@{[grep { $c->legacy('tasks/get', { taskId => $id })->{status} == 200 }
          1 .. 20]}, 20, 'others are served');
    $c->legacy('tasks/cancel', { taskId => $id });
    ok($up->left($call, 20), 'and it can be cancelled');
    my $memory = memory_of($pid);
    cmp_ok($memory, '<', 64 * 1024 * 1024, "it takes little for it: $memory");
    ok((wait_for { descriptors_of($pid) <= $fds }), 'and nothing is left')
        or diag("$fds before, " . descriptors_of($pid) . ' now');
}

is_deeply([$t->worker_pids()], [$pid], 'it is the same process');
is($g->ends($g->task('other'))->{status}, 'completed', 'and works as before');

$g->done('worker_connections are not enough|'
         . 'background call failed: upstream_unreachable');
done_testing();
