# nginx is killed twice in a row: see tools/double-crashes.py.

use warnings;
use strict;

use FindBin;
use lib "$FindBin::Bin/lib";

use Test::More;

use MCPTasks qw/ scale /;

for my $sync (qw/ always everysec off /) {
    open(my $fh, '-|', 'python3',
         "$FindBin::Bin/../tools/double-crashes.py",
         '-n', scale($ENV{MCP_TASKS_CRASHES} || 10), '--sync', $sync,
         $ENV{MCP_TASKS_NGINX}, $ENV{MCP_TASKS_TEST_MODULE},
         "$ENV{MCP_TASKS_BUILD}/servroot-store_twice") or die "python3: $!\n";

    my $said = join '', <$fh>;
    ok(close($fh), "sync=$sync: no version is used twice") or diag($said);
    like($said, qr/[1-9]\d* reads/, 'and some were seen');
}

done_testing();
