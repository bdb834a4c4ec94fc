# Who waits for a commit waits for the one with his change, also if that is not
# the next one: a task that changes again goes to the end of the line.

use warnings;
use strict;

use FindBin;
use lib "$FindBin::Bin/lib";

use Test::More;

use MCPClient qw/ answer /;
use MCPStatus;
use MCPStore qw/ fault faulty rows /;
use MCPTasks qw/ wait_for /;

my $db = "$ENV{MCP_TASKS_BUILD}/servroot-store_order/tasks.db";

my $t = MCPTasks->new(
    tools => ['dig', 'fill'],
    http => "mcp_tasks_zone zone=z:16m store=sqlite:$db;",
    surfaces => [qw/ mcp worker status /],
    server => <<'END',
        mcp_tasks_owner       $http_x_user;
        mcp_tasks_tools       tools.json;
        client_max_body_size  2m;
END
    env => faulty($db));

my $c = MCPClient->new($t, headers => { 'X-User' => 'ann' });
my $s = MCPStatus->new($t);


# what was sent has been done, and waits with so many tasks
sub sent {
    my ($n, $bytes) = @_;
    my $socket = $t->connect();
    MCPTasks::send_raw($socket, $bytes) or die "nothing was taken\n";
    wait_for { $s->json()->{store}{unsaved} >= $n };
    return $socket;
}


sub call {
    my ($tool, $size) = @_;
    return $c->legacy_bytes('tools/call',
                            { name => $tool, task => {},
                              arguments => { fill => 'x' x $size } });
}


ok($c->create('fill'), 'a task, so that the database is open');
fault($db, 'slow 4000');

# while that is written the others gather
my $first = sent(1, call('fill', 1));
my $dig = sent(2, call('dig', 1));

# no two of them go into one commit
my @large = map { sent(2 + $_, call('fill', 600000)) } 1 .. 3;

# and the one in front of them goes behind them
my $claim = sent(5, MCPClient::bytes('/worker',
    MCPClient::rpc('worker/claim', { tools => ['dig'], leaseMs => 60000 })));
wait_for { $s->json()->{tasks}{running} };
is($s->json()->{store}{unsaved}, 5, 'all of them wait');
is(rows($db), 1, 'and are not there yet');

fault($db, 'slow 1000');

ok(answer($dig)->{json}{result}{task}{taskId}, 'the task that was claimed');
is(rows($db, "tool = 'dig'"), 1, 'is there when that is said');
is(answer($claim)->{json}{result}{tasks}[0]{tool}, 'dig', 'its claim');
is(rows($db, "phase = 'running'"), 1, 'is there, too');

ok(answer($_)->{json}{result}{task}{taskId}, 'another one') for $first, @large;
is(rows($db), 6, 'all are there');

fault($db);
ok($t->stop(), 'nginx stops');
is($t->faults(), '', 'nothing in the log');

done_testing();
