package MCPBrowser;

# A server with a console for scripts of t/browser, and what they say of it:
#
#   my $t = MCPBrowser::start([qw/ render bulk /], 'mcpTasks of each by name');
#   MCPBrowser::browse($t, 'list');

use warnings;
use strict;

use FindBin;
use JSON::PP;
use Test::More;

use MCPTasks qw/ workers /;


# tools, and the policies of some of them
sub start {
    my ($tools, %policy) = @_;
    my @tools = map { +{ name => $_, inputSchema => { type => 'object' },
                         $policy{$_} ? (mcpTasks => $policy{$_}) : () } }
                @$tools;

    return MCPTasks->new(
        workers => workers(), listen => 'reuseport',
        files => { 'tools.json' => JSON::PP->new->encode({ tools => \@tools }) },
        http => 'mcp_tasks_zone zone=tasks:4m;',
        server => 'location /mcp { mcp_tasks zone=tasks;'
                  . ' mcp_tasks_tools tools.json;'
                  . ' mcp_tasks_owner $http_x_user; }'
                  . ' location /worker { mcp_tasks_worker zone=tasks; }'
                  . ' location /console/ { mcp_tasks_console zone=tasks'
                  . ' admin; }'
                  . ' location /watch/ { mcp_tasks_console zone=tasks; }');
}


# each of its results is one of this test
sub browse {
    my ($t, $script) = @_;
    my $done = 0;

    local $ENV{MCP_TASKS_URL} = "http://127.0.0.1:$t->{port}";
    local $ENV{MCP_TASKS_MASTER} = $t->{pid};
    local $ENV{MCP_TASKS_PICTURES} = "$ENV{MCP_TASKS_BUILD}/pictures";

    mkdir($ENV{MCP_TASKS_PICTURES});
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


# what must be so in the end
sub finish {
    my ($t) = @_;
    ok($t->stop(), 'nginx stops');
    is($t->faults(), '', 'nothing to complain about in the log');
}


1;
