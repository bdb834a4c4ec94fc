# mcp_tasks_client_policy of a gateway: the run timeout that clients request for
# background calls.

use warnings;
use strict;

use FindBin;
use lib "$FindBin::Bin/lib";

use Test::More;

use MCPClient;
use MCPGateway;
use MCPStore qw/ sql /;
use MCPTasks qw/ workers /;

my $ours = 'io.github.nginx-mcp-tasks';

my $g = MCPGateway->new(
    workers => workers(), store => 'store=sqlite:tasks.db',
    conf => 'mcp_tasks_retries 0; mcp_tasks_client_policy timeout=2h;',
    tool => ['slow', 'long timeout=3h'],
    on => { map { $_ => [['sse'], ['flood', ": alive\n\n", 0.1]] }
            qw/ slow long / });
my ($up, $t, $c) = @{$g}{qw/ up t c /};
my $extended = $c->as(extensions => ['io.modelcontextprotocol/tasks',
                                     "$ours/extended"]);


sub begin {
    my ($modern, $tool, $timeout, $who) = @_;
    my %meta = ("$ours/timeout" => $timeout);
    return $g->begin($tool, modern => $modern, who => $who || $extended,
                     $modern ? (meta => \%meta)
                             : (params => { _meta => \%meta }));
}


# the run timeout of a task, which then ends
sub timeout_of {
    my ($id, $call) = @_;
    my $got = sql("$t->{dir}/tasks.db",
                  "SELECT run_timeout FROM task WHERE id = '$id'");
    $c->legacy('tasks/cancel', { taskId => $id });
    $up->left($call, 10);
    return $got;
}


for my $modern (0, 1) {
    my $era = $modern ? 'modern' : 'legacy';

    my ($id, $call) = begin($modern, 'slow', 500);
    my $got = $g->ends($id, 20);
    is($got->{error}{data}{reason}, 'task_timeout',
       "$era: it runs for as long as the client wants") or diag($got->{text});
    ok($up->left($call, 10), "$era: upstream is left");
    is($call->{json}{params}{_meta}{"$ours/timeout"}, 500,
       "$era: upstream gets what the client has sent");

    is(timeout_of(begin($modern, 'slow', 60000)), 60000, "$era: a minute");
    is(timeout_of(begin($modern, 'slow', 9000000)), 7200000,
       "$era: no more than is allowed");
    is(timeout_of(begin($modern, 'long', 9000000)), 9000000,
       "$era: but as much as the tool has itself");
}

is(timeout_of(begin(1, 'slow', 60000, $c)), 3600000,
   'modern: ignored without the extension');

$g->done();
done_testing();
