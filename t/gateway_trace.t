# W3C trace context of background calls: in the header and in _meta, also after
# another process has taken the call over, and after a restart.

use warnings;
use strict;

use FindBin;
use lib "$FindBin::Bin/lib";

use Test::More;

use MCPClient;
use MCPFile qw/ slurp /;
use MCPGateway;
use MCPTasks qw/ wait_for workers /;

my $parent = '00-0af7651916cd43dd8448eb211c80319c-00f067aa0ba902b7-01';
my $other = '00-11111111111111111111111111111111-2222222222222222-00';

my $g = MCPGateway->new(
    workers => workers(), store => 'store=sqlite:tasks.db',
    http => "log_format trace '\$uri [\$mcp_traceparent]';",
    server => 'access_log logs/trace.log trace;',
    proxy => 'proxy_set_header X-Pid $pid;',
    conf => 'mcp_tasks_retries 5 backoff=50ms;',
    tool => ['slow idempotent'],
    on => { slow => [['sse'], ['hold']] });
my ($up, $t, $c) = @{$g}{qw/ up t c /};
my $nobody = $c->as(headers => {});


# header and _meta as upstream has got them
sub got {
    my ($call) = @_;
    my $meta = $call->{json}{params}{_meta} || {};
    my @names = qw/ traceparent tracestate baggage /;
    return join ' ', (map { $call->{head}{$_} // '-' } @names), '|',
                     map { $meta->{$_} // '-' } @names;
}


for my $modern (0, 1) {
    my $era = $modern ? 'modern' : 'legacy';

    for my $case (
        ['none', {}, {}, '- - - | - - -'],
        ['headers', { Traceparent => $parent, tracestate => 'a=b',
                      baggage => 'k=v' }, {},
         "$parent a=b k=v | $parent a=b k=v"],
        ['_meta', {}, { traceparent => $other, tracestate => 'a=b' },
         "$other a=b - | $other a=b -"],
        ['both', { traceparent => $parent, tracestate => 'a=b' },
         { traceparent => $other }, "$other - - | $other - -"],
        ['an invalid header', { traceparent => 'evil', tracestate => 'a=b',
                                baggage => '"' }, {}, '- - - | - - -'],
        ['an invalid _meta', { traceparent => $parent },
         { traceparent => 'evil' }, "$parent - - | $parent - -"],
    )
    {
        my ($name, $headers, $meta, $want) = @$case;
        my ($id, $call) = $g->begin('slow', modern => $modern,
            headers => $headers, $modern ? (meta => $meta)
                                         : (params => { _meta => $meta }));
        is(got($call), $want, "$era, $name: what upstream gets");
        $g->finish($id, $call, "$era, $name");
    }
}

# the log of the background request
{
    my $n = () = slurp("$t->{dir}/logs/trace.log") =~ m{^/upstream}mg;
    my ($id, $call) = $g->begin('slow', headers => { traceparent => $parent });
    $g->finish($id, $call, 'logged');
    my @lines;
    wait_for {
        @lines = slurp("$t->{dir}/logs/trace.log") =~ m{^(/upstream.*)\n}mg;
        return @lines > $n;
    };
    is($lines[-1], "/upstream [$parent]", 'the log of the call has it');
}

# another process takes the call over: the headers of this client do not bind
# the call to its process
{
    my ($id, $call) = $g->begin('slow', modern => 1, who => $nobody,
        headers => { traceparent => $parent, tracestate => 'a=b' });
    ok($t->kill_worker($call->{head}{'x-pid'}), 'its process is killed');
    my $again = wait_for {
        (grep { $_->{id} ne $call->{id} } $up->open_calls('slow'))[0];
    } 15;
    ok($again, 'another one sends it again');
    is(got($again), "$parent a=b - | $parent a=b -", 'in the same trace');

    # and after a restart
    ok($t->kill_all(), 'nginx is killed');
    ok($t->start(), 'and starts');
    my $last = wait_for {
        (grep { $_->{id} ne $call->{id} && $_->{id} ne $again->{id} }
         $up->open_calls('slow'))[0];
    } 15;
    ok($last, 'it is sent again');
    is(got($last), "$parent a=b - | $parent a=b -", 'in the same trace');
    $up->go($last, ['result', '{"a":1.0}']);
    my $got = $g->until($id, sub { ($_[0]{status} // '') eq 'completed' }, 15,
                        $nobody);
    is($got->{status}, 'completed', 'it completes');
}

$g->done('exited on signal 9|\[error\]');
done_testing();
