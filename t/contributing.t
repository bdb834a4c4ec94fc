# What CONTRIBUTING.md tells people to run, word for word.

use warnings;
use strict;

use FindBin;
use lib "$FindBin::Bin/lib";

use Test::More;

use MCPExample qw/ blocks run_command /;
use MCPFile qw/ slurp /;

my $root = "$FindBin::Bin/..";
my @blocks = blocks(slurp("$root/CONTRIBUTING.md"), 'sh');
my @commands = map { split /\n/ } @blocks;

cmp_ok(scalar @blocks, '>=', 3, 'the blocks were read');
cmp_ok(scalar @commands, '>=', 7, 'and the commands in them');

for my $command (@commands) {
    my $out = run_command($root, $command);
    is($?, 0, $command) or diag($out);
    like($out, qr/^Result: PASS$/m, "$command: says that it passed")
        if $command =~ /^make test /;
    like($out, qr/^1\.\.\d+$/m, "$command: runs its tests")
        if $command =~ m{^build/unit/};
}

ok(-e "$root/build/ngx_http_mcp_tasks_module.so", 'the module is there');

done_testing();
