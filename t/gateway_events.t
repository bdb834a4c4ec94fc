# Calls in the background with each way of waiting for events: some of them want
# a descriptor for each request, some share one.

use warnings;
use strict;

use FindBin;
use lib "$FindBin::Bin/lib";

use Test::More;

use MCPClient;
use MCPGateway;
use MCPTasks qw/ wait_for /;

use constant CALLS => 20;

# how many descriptors a call may take: its connection, and one more
my %most = (epoll => 1, poll => 2, select => 2);


# the distribution's nginx has the first only, the one that asan builds has all
my $built = `$ENV{MCP_TASKS_NGINX} -V 2>&1`;
my @methods = ('epoll', grep { $built =~ /--with-${_}_module/ }
                        qw/ poll select /);


for my $method (@methods) {
    my $g = MCPGateway->new(
        events => "use $method;", tool => ['slow support=optional'],
        on => { slow => [['sse'], ['hold'], ['result', '{"n":1}']] });
    my ($up, $t, $c) = @{$g}{qw/ up t c /};
    my ($pid) = $t->worker_pids();

    my $descriptors = sub {
        my @fds = glob "/proc/$pid/fd/*";
        return scalar @fds;
    };

    # the client's own connections come and go
    my $via = $c->as(via => $t->connect());
    $via->legacy('ping');
    my $fds = $descriptors->();

    for my $round (1 .. 2) {
        my $name = "$method, round $round";
        $up->clear();

        my @ids = map { $g->task('slow', who => $via) } 1 .. CALLS;
        ok((wait_for { $up->calls('slow') == CALLS } 15),
           "$name: all are under way");
        cmp_ok($descriptors->(), '<=', $fds + $most{$method} * CALLS,
               "$name: descriptors");

        $via->legacy('tasks/cancel', { taskId => pop @ids });
        ok((wait_for { grep { $_->{closed} } $up->calls('slow') } 15),
           "$name: one is cancelled");

        $up->go($_) for grep { !$_->{closed} } $up->calls('slow');
        is(scalar(grep { ($g->ends($_)->{result}{n} || 0) == 1 } @ids),
           scalar @ids, "$name: the others have results");
        ok((wait_for { $descriptors->() <= $fds }),
           "$name: nothing is left")
            or diag("$fds before, " . $descriptors->() . ' now');
    }

    is_deeply([$t->worker_pids()], [$pid], "$method: it is the same process");
    $g->done();
}

done_testing();
