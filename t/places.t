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

done_testing();
