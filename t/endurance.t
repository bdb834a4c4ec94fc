# Waiters of all kinds while processes are killed and nginx is reloaded: short
# forms of "make endurance", see tools/endurance.py.

use warnings;
use strict;

use FindBin;
use lib "$FindBin::Bin/lib";

use Test::More;


# it runs beside this test until it is asked how it went
sub endure {
    my ($name, @args) = @_;
    open(my $fh, '-|', 'python3', "$FindBin::Bin/../tools/endurance.py", @args,
         '--life', 1, 2, $ENV{MCP_TASKS_NGINX}, $ENV{MCP_TASKS_TEST_MODULE},
         "$ENV{MCP_TASKS_BUILD}/servroot-endurance-$name")
        or die "python3: $!\n";
    return $fh;
}


# whether nothing was wrong, and what was said
sub ended {
    my ($fh) = @_;
    my $said = join '', <$fh>;
    close($fh);
    return ($? == 0, $said);
}


# of clients that do not come back, and processes that had no time to go
my $deaf = endure('deaf', 'storm', '--waiters', 40, '--seconds', 4,
                  '--kills', 4, '--limit', 3, '--deaf', 20);
my $slow = endure('slow', 'reloads', '--waiters', 20, '--reloads', 2,
                  '--load', 0, '--limit', 3, '--old', 0);

my ($good, $said) = ended(endure('storm', 'storm', '--waiters', 300,
                                 '--seconds', 10, '--kills', 1,
                                 '--reload-every', 4, '--limit', 6));
ok($good, 'processes die: nobody misses an end');
$good ? note($said) : diag($said);

($good, $said) = ended($deaf);
ok(!$good, 'who does not come back misses one');
like($said, qr/^missed: [1-9]/m, 'which is seen');
like($said, qr/^FAILED: missed:$/m, 'and is all that is wrong');

($good, $said) = ended($slow);
ok(!$good, 'processes are not gone at once');
like($said, qr/later than 0 s: [1-9]\d*, overdue: [1-9]/, 'which is seen, too');

($good, $said) = ended(endure('reloads', 'reloads', '--waiters', 200,
                              '--reloads', 10, '--load', 4, '--limit', 6));
ok($good, 'reloads: old processes go, and no connection is cut');
$good ? note($said) : diag($said);

done_testing();
