# Calls in the background, and a store on disk: after a restart they fail with
# a clear reason, or are run again where that does no harm.

use warnings;
use strict;

use FindBin;
use lib "$FindBin::Bin/lib";

use Test::More;

use MCPClient;
use MCPGateway;
use MCPStore qw/ rows /;
use MCPTasks qw/ wait_for workers /;

my $g = MCPGateway->new(
    workers => workers(), store => 'store=sqlite:tasks.db',
    conf => 'mcp_tasks_retries 2 backoff=100ms; mcp_tasks_max_running 3;',
    tool => ['plain support=optional', 'same idempotent'],
    on => { map { $_ => [['sse'], ['hold']] } qw/ plain same / });
my ($up, $t, $c) = @{$g}{qw/ up t c /};

# nothing of this client is needed to run its calls
my $nobody = $c->as(headers => {});


sub status {
    my ($id, $who) = @_;
    return $g->get($id, $who)->{status};
}


for my $end (qw/ KILL TERM /) {
    $up->clear();

    # these run
    my $plain = $g->task('plain');
    my $once = $g->modern_task('plain', who => $nobody);
    my $same = $g->modern_task('same', who => $nobody);
    ok((wait_for { $up->calls('plain') == 2 && $up->calls('same') == 1 }),
       "$end: three calls run");
    is(rows("$t->{dir}/tasks.db", "phase = 'running'"), 3,
       "$end: nothing is sent before it is known that it was");

    # this one has to wait for its turn
    my $later = $g->modern_task('plain', who => $nobody);
    is(status($later, $nobody), 'working', "$end: another one waits");

    ok($end eq 'KILL' ? $t->kill_all() : $t->stop($end), "$end: down");
    ok($t->start(), "$end: and up");

    for my $id ($plain, $once) {
        my $got = $g->until($id, sub { ($_[0]{status} // '') eq 'failed' },
                            10, $id eq $once ? $nobody : $c);
        is($got->{error}{data}{reason}, 'process_lost',
           "$end: what may have been done is not done again");
    }

    ok((wait_for { $up->calls('same') == 2 }),
       "$end: what may be done again is");
    ok((wait_for { $up->calls('plain') == 3 }),
       "$end: so is what had not begun");

    for my $tool (qw/ same plain /) {
        ok($g->go($tool, ['result', '{"content":[]}']), "$end: it goes on");
    }

    for my $id ($same, $later) {
        my $got = $g->until($id, sub { ($_[0]{status} // '') ne 'working' },
                            10, $nobody);
        is($got->{status}, 'completed', "$end: and completes");
    }

    is($up->calls('plain'), 3, "$end: no call was made twice");
}

$g->done('background call failed|upstream prematurely|on signal 9|was killed');
done_testing();
