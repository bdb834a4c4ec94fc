# sync=everysec with a disk that is slow: no more than a second is at stake.

use warnings;
use strict;

use FindBin;
use lib "$FindBin::Bin/lib";

use Test::More;
use Time::HiRes qw/ sleep time /;

use MCPClient;
use MCPStore qw/ fault faulty rows /;
use MCPTasks qw/ wait_for /;

my $db = "$ENV{MCP_TASKS_BUILD}/servroot-store_pace/tasks.db";

my $t = MCPTasks->new(
    tools => ['dig'],
    http => "mcp_tasks_zone zone=z:8m store=sqlite:$db sync=everysec;",
    surfaces => [qw/ mcp worker status /],
    server => 'mcp_tasks_owner $http_x_user; mcp_tasks_tools tools.json;',
    env => faulty($db));

my $c = MCPClient->new($t, headers => { 'X-User' => 'ann' });


fault($db, 'slow 4000');

ok($c->create('dig'), 'a task is created');
is(rows($db), 0, 'and is not saved when that is said');

# time has to pass, and does not hurry
sleep(1.2);
ok($c->create('dig'), 'another one');
cmp_ok(rows($db), '>=', 1, 'when that is said the first one is saved');

# the first of many changes counts, also if they are all of one task
fault($db);
my $work = $c->claim('dig', leaseMs => 60000);
ok((wait_for { rows($db, "phase = 'running'") }), 'one is claimed');
fault($db, 'slow 4000');

my $begun = time;
my $n = 0;

while (time - $begun < 1.5) {
    $c->held('progress', $work, message => 'n' . ++$n);
    sleep(0.05);
}

cmp_ok($n, '>', 2, 'changes do not wait at first');
is(rows($db, "message LIKE '_n%'"), 1, 'after a second they have');

fault($db);
ok($t->stop(), 'nginx stops');
is(rows($db), 2, 'both are saved');
is($t->faults(), '', 'nothing in the log');

done_testing();
