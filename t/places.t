# More worker processes after a reload than there were places for.

use warnings;
use strict;

use FindBin;
use lib "$FindBin::Bin/lib";

use Test::More;

use MCPClient;
use MCPTasks qw/ wait_for /;

my $t = MCPTasks->new(
    workers => 1,
    tools => ['slow'],
    http => 'mcp_tasks_zone zone=z:2m; mcp_tasks_tools tools.json;',
    server => 'location /mcp { mcp_tasks zone=z; }'
              . ' location /worker { mcp_tasks_worker zone=z; }');

# there are at least 64
$t->configure(workers => 70);
my ($old) = $t->worker_pids();
$t->reload();
ok((wait_for {
    my @pids = $t->worker_pids();
    return @pids == 70 && !grep { $_ == $old } @pids;
}), 'many more workers');

my $c = MCPClient->new($t);
my $id = $c->create('slow');
my $work = $c->claim('slow');
my @streams = map { $c->follow("tasks/$id/events") } 1 .. 20;
$_->message(30) for @streams;
$c->complete($work, { content => [] });
is(scalar(grep { ($_->message(30) || {})->{status} eq 'completed' } @streams),
   20, 'all who wait are told');

unlike($t->log(), qr/wake-up slots in use/, 'there was a place for each');
ok($t->stop(), 'nginx stops');
is($t->faults(), '', 'nothing to complain about in the log');


# --- processes without a place: their streams have numbers of their own

$t = MCPTasks->new(
    workers => 4, listen => 'reuseport', env => { MCP_TASKS_PLACES => 1 },
    tools => ['slow'],
    http => 'mcp_tasks_zone zone=z:2m; mcp_tasks_tools tools.json;',
    surfaces => [qw/ mcp worker probe /]);

like($t->log(), qr/all 1 wake-up slots in use/, 'one place for four processes');

my $conn = $t->connect_all() or BAIL_OUT('processes cannot be reached');
my %numbers;

for (1 .. 3) {
    $numbers{$t->probe('op=stream', $_)->{stream}}++ for values %$conn;
}

is(scalar keys %numbers, 12, 'no two streams have the same number')
    or diag(join ' ', sort keys %numbers);

$c = MCPClient->new($t);
$id = $c->create('slow');
$work = $c->claim('slow');
@streams = map { $c->follow("tasks/$id/events") } 1 .. 12;
$_->message(30) for @streams;
$c->complete($work, { content => [] });
is(scalar(grep { ($_->message(30) || {})->{status} eq 'completed' } @streams),
   12, 'all who wait are told');

ok($t->stop(), 'nginx stops');
is($t->faults('wake-up slots in use'), '', 'nothing else in the log');

done_testing();
