# The console in a browser: t/browser/*.mjs, with nginx in several processes.

use warnings;
use strict;

use FindBin;
use lib "$FindBin::Bin/lib";

use JSON::PP;
use Test::More;

use MCPTasks qw/ workers /;

my $json = JSON::PP->new->canonical;
my $markup = '<img src=x onerror=pwned=1>';

my %policy = (short => { ttl => '3s' }, flaky => { attempts => 2 });
my @tools = map { +{ name => $_, inputSchema => { type => 'object' },
                     $policy{$_} ? (mcpTasks => $policy{$_}) : () } }
            qw/ render short held bulk asks flaky paused drained keys /,
            $markup;

my $t = MCPTasks->new(
    workers => workers(), listen => 'reuseport',
    files => { 'tools.json' => $json->encode({ tools => \@tools }) },
    http => 'mcp_tasks_zone zone=z:4m;',
    server => 'location /mcp { mcp_tasks zone=z; mcp_tasks_tools tools.json;'
              . ' mcp_tasks_owner $http_x_user; }'
              . ' location /worker { mcp_tasks_worker zone=z; }'
              . ' location /console/ { mcp_tasks_console zone=z admin; }'
              . ' location /watch/ { mcp_tasks_console zone=z; }');

$ENV{MCP_TASKS_URL} = "http://127.0.0.1:$t->{port}";
$ENV{MCP_TASKS_MASTER} = $t->{pid};
$ENV{MCP_TASKS_PICTURES} = $ENV{MCP_TASKS_BUILD};


sub browse {
    my ($script) = @_;
    my $done = 0;

    open(my $fh, '-|', 'node', "$FindBin::Bin/browser/$script.mjs")
        or die "node: $!\n";

    while (my $line = <$fh>) {
        chomp $line;

        if ($line =~ /^(not )?ok - (.*)/) {
            ok(!$1, "$script: $2");
        } elsif ($line eq 'done') {
            $done = 1;
        } else {
            diag($line);
        }
    }

    close($fh);
    ok($done && $? == 0, "$script: came to its end");
}


browse($_) for qw/ list task hostile look /;

ok($t->stop(), 'nginx stops');
is($t->faults(), '', 'nothing to complain about in the log');

done_testing();
