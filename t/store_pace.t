# sync=everysec with a disk that is slow: no more than a second is at stake.

use warnings;
use strict;

use FindBin;
use lib "$FindBin::Bin/lib";

use Test::More;
use Time::HiRes qw/ sleep /;

use MCPClient;
use MCPTasks;

my $dir = "$ENV{MCP_TASKS_BUILD}/servroot-store_pace";
my $db = "$dir/tasks.db";

my $t = MCPTasks->new(
    files => { 'tools.json' => '{"tools":[{"name":"dig","inputSchema":'
                               . '{"type":"object"}}]}' },
    http => "mcp_tasks_zone zone=z:8m store=sqlite:$db sync=everysec;",
    server => <<'END',
        mcp_tasks_owner  $http_x_user;
        mcp_tasks_tools  tools.json;

        location /mcp { mcp_tasks zone=z; }
        location /status { mcp_tasks_status zone=z; }
END
    env => { LD_PRELOAD => "$ENV{MCP_TASKS_BUILD}/unit/lib/faults.so",
             ASAN_OPTIONS => 'verify_asan_link_order=0',
             MCP_TASKS_FAULTS => "$dir/faults",
             MCP_TASKS_FAULTS_FILES => $db });

my $c = MCPClient->new($t, headers => { 'X-User' => 'ann' });


sub rows {
    open(my $fh, '-|', 'sqlite3', $db, 'SELECT count(*) FROM tasks')
        or die "sqlite3: $!\n";
    my $n = <$fh>;
    close($fh);
    return $n + 0;
}


open(my $fh, '>', "$dir/faults") or die "faults: $!\n";
print $fh "slow 4000\n";
close($fh) or die "faults: $!\n";

ok($c->create('dig'), 'a task is created');
is(rows(), 0, 'and is not saved when that is said');

# time has to pass, and does not hurry
sleep(1.2);
ok($c->create('dig'), 'another one');
cmp_ok(rows(), '>=', 1, 'when that is said the first one is saved');

unlink("$dir/faults");
ok($t->stop(), 'nginx stops');
is(rows(), 2, 'both are saved');
is($t->faults(), '', 'nothing in the log');

done_testing();
