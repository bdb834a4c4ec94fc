# nginx is killed again and again: see tools/crash-restarts.py.

use warnings;
use strict;

use FindBin;
use lib "$FindBin::Bin/lib";

use Test::More;

use MCPTasks qw/ scale /;

for (['always', scale(200)], ['everysec', scale(15)], ['off', scale(15)]) {
    my ($sync, $restarts) = @$_;

    my $status = system('python3', "$FindBin::Bin/../tools/crash-restarts.py",
                        '-n', $restarts, '--sync', $sync,
                        $ENV{MCP_TASKS_NGINX}, $ENV{MCP_TASKS_TEST_MODULE},
                        "$ENV{MCP_TASKS_BUILD}/servroot-store_crash-$sync");
    is($status, 0, "$restarts restarts with sync=$sync");
}

done_testing();
