# nginx is killed again and again: see tools/crash-restarts.py.

use warnings;
use strict;

use FindBin;
use lib "$FindBin::Bin/lib";

use Test::More;

use MCPTasks qw/ scale /;


# whether nothing was lost, and what was said
sub crash {
    my ($restarts, @args) = @_;
    my $pid = open(my $fh, '-|', 'python3',
                   "$FindBin::Bin/../tools/crash-restarts.py", '-n', $restarts,
                   @args, $ENV{MCP_TASKS_NGINX}, $ENV{MCP_TASKS_TEST_MODULE},
                   "$ENV{MCP_TASKS_BUILD}/servroot-store_crash")
        or die "python3: $!\n";

    my $said = join '', <$fh>;
    close($fh);
    return ($? == 0, $said);
}


# what is lost without a sync is lost with the power only
my $restarts = scale($ENV{MCP_TASKS_RESTARTS} || 200);
my $fewer = 1 + int($restarts / 15);

for (['always', $restarts], ['everysec', $fewer],
     ['off', $fewer, '--promise', 'everysec'])
{
    my ($sync, $restarts, @more) = @$_;
    my ($good, $said) = crash($restarts, '--sync', $sync, @more);

    ok($good, "$restarts restarts, sync=$sync");
    $good ? note($said) : diag($said);
}

# a loss would be seen
my ($good) = crash(3, '--lanes', 1, '--sync', 'off', '--promise', 'always');
ok(!$good, 'sync=off does not do what sync=always promises');

done_testing();
