# X-Accel-... headers, by which a server behind nginx tells nginx what to do: an
# MCP server has no say in that, whether its answer is passed on or caught; and
# what nginx asks of itself is no request of this machine's.

use warnings;
use strict;

use FindBin;
use lib "$FindBin::Bin/lib";

use Test::More;
use Time::HiRes qw/ time /;

use MCPClient;
use MCPFile qw/ slurp /;
use MCPGateway;
use MCPTasks qw/ wait_for workers /;

my $workers = workers() > 1 ? workers() : 2;
my $stolen = '{"jsonrpc":"2.0","id":1,"result":{"stolen":1}}';

my $g = MCPGateway->new(
    workers => $workers,
    conf => 'mcp_tasks_retries 2 backoff=100ms;',
    proxy => 'proxy_set_header X-Addr $remote_addr;'
             . ' proxy_set_header X-Pid $pid;',
    tool => ['bad support=optional idempotent'],
    http => "log_format reached 'reached \$uri';",
    server => <<"END");
    location /inside {
        internal;
        access_log reached.log reached;
        default_type application/json;
        return 200 '$stolen';
    }

    location \@inside {
        access_log reached.log reached;
        default_type application/json;
        return 200 '$stolen';
    }

    location /status {
        access_log reached.log reached;
        mcp_tasks_status zone=z;
    }

    location /console/ {
        access_log reached.log reached;
        mcp_tasks_console zone=z admin;
    }

    location /itself {
        mcp_tasks zone=z;
        mcp_tasks_pass /worker;
        mcp_tasks_tool bad support=optional;
    }

    location /guarded {
        mcp_tasks zone=z;
        mcp_tasks_pass /rules;
        mcp_tasks_tool bad support=optional idempotent;
        mcp_tasks_retries 2 backoff=100ms;
    }

    location = /rules {
        internal;
        allow 127.0.0.0/8;
        allow unix:;
        deny all;
        proxy_pass http://127.0.0.1:\$http_x_port/mcp;
        proxy_pass_request_headers on;
    }
END
my ($up, $t, $c) = @{$g}{qw/ up t c /};
my $nobody = $c->as(headers => {});

# where it would go is known from the configuration only
my $config = $g->config(server => $g->{server}
    =~ s/\$http_x_port/$up->{port}/r . <<"END");
    location /plain { proxy_pass http://127.0.0.1:$up->{port}/mcp; }
END
$t->configure(%$config);
ok($t->reload(), 'a reload');


sub reached {
    my $file = "$t->{dir}/reached.log";
    return -e $file ? slurp($file) : '';
}


my $ok = '{"jsonrpc":"2.0","id":%ID%,"result":{"a":1}}';

# all at once, and what each of them could do
my %all = ('X-Accel-Redirect' => '/inside', 'X-Accel-Limit-Rate' => 1,
           'X-Accel-Buffering' => 'yes', 'X-Accel-Charset' => 'koi8-r',
           'X-Accel-Expires' => 1000);

my @cases = (
    ['a path', { 'X-Accel-Redirect' => '/inside' }],
    ['in other case', { 'x-aCCel-rediRect' => '/inside' }],
    ['a named location', { 'X-Accel-Redirect' => '@inside' }],
    ['the status', { 'X-Accel-Redirect' => '/status' }],
    ['the console', { 'X-Accel-Redirect' => '/console/api/tasks' }],
    ['twice', { 'X-Accel-Redirect' => ['/inside', '/inside?2'] }],
    ['no path', { 'X-Accel-Redirect' => '../../etc' }],
    ['empty', { 'X-Accel-Redirect' => '' }],
    ['a rate', { 'X-Accel-Limit-Rate' => 1 }],
    ['all of them', \%all]);


# --- passed on to the client

sub passed {
    my ($headers, $name) = @_;
    my $start = time();

    $up->script('prompts/list' => [['json', $ok, 200, $headers]]);
    my $res = $c->legacy('prompts/list', {});
    is($res->{body}, '{"jsonrpc":"2.0","id":1,"result":{"a":1}}',
       "passed: $name: what the server says");
    is($res->{header}{'content-type'}, 'application/json',
       "passed: $name: as it says it");

    # this one is changed on its way
    $up->script('tools/list' => [['json', '{"jsonrpc":"2.0","id":%ID%,'
        . '"result":{"tools":[]}}', 200, $headers]]);
    like($c->legacy('tools/list', {})->{body}, qr/"result":\{"tools":\[/,
         "passed: $name: and what is changed");

    $up->script('prompts/list' => [['sse', 200, $headers], ['event', $ok],
                                   ['end']]);
    like($c->legacy('prompts/list', {})->{body}, qr/data: .*"a":1/,
         "passed: $name: a stream");
    cmp_ok(time() - $start, '<', 20, "passed: $name: at once");
}

# --- caught, for a call in the background

sub background {
    my ($headers, $name) = @_;
    my $start = time();

    $up->script(bad => [['json', $ok, 200, $headers]]);
    $g->completes($g->task('bad'), "background: $name");

    $up->script(bad => [['sse', 200, $headers], ['event', $ok], ['end']]);
    $g->completes($g->task('bad'), "background: $name: a stream");
    cmp_ok(time() - $start, '<', 20, "background: $name: at once");
}

passed(reverse @$_) for @cases;
background(reverse @$_) for @cases;
is(reached(), '', 'nobody was sent elsewhere');

# what is not ours is as it was
{
    $up->script(GET => [['json', '{}', 200,
                         { 'X-Accel-Redirect' => '/inside' }]]);
    is($t->request('GET', '/plain', {})->{body}, $stolen,
       'a server that is no MCP server still has its say');
    $up->script(GET => [['json', 'x' x 3000, 200,
                         { 'X-Accel-Limit-Rate' => 1000 }]]);
    my $start = time();
    $t->request('GET', '/plain', {});
    cmp_ok(time() - $start, '>', 1, 'also on how fast its answer is sent');
    is(reached(), "reached /inside\n", 'which is seen');
}

# --- taken over by another process

# a call whose process is killed; it is answered with these headers then
sub adopted {
    my ($uri, $headers) = @_;
    my $conn = $t->connect_all() or BAIL_OUT('processes cannot be reached');
    my ($pid, $other) = sort keys %$conn;
    my $here = $nobody->as(via => $conn->{$pid}, uri => $uri);
    my $before = $up->count('bad');

    $up->script(bad => [['sse'], ['hold']]);
    my $id = $g->modern_task('bad', who => $here);
    ok($up->call('bad', $before + 1), 'it runs');
    $up->script(bad => [['json', $ok, 200, $headers]]);
    kill('KILL', $pid);
    my $got = $g->until($id, sub {
        return ($_[0]{status} // '') =~ /^(completed|failed)$/;
    }, 20, $nobody->as(via => $conn->{$other}, uri => $uri));
    ok($t->replaced($pid), 'there is another process');

    my $calls = $up->count('bad') - $before;

    return ($got, $calls, $calls > 1 ? $up->call('bad', $before + 2) : undef);
}

for my $case ($cases[0], $cases[2], $cases[-1]) {
    my ($name, $headers) = @$case;
    my ($got, $calls, $call) = adopted('/mcp', $headers);
    is($calls, 2, "adopted: $name: sent again");
    is("$got->{status} " . ($got->{result}{a} // '-'), 'completed 1',
       "adopted: $name: what the server says") or diag($got->{text});
    is($call->{head}{'x-addr'}, '0.0.0.0', 'from nobody');
}

is(reached(), "reached /inside\n", 'nobody was sent elsewhere');

# --- never a request of this machine's

{
    my ($got, $calls) = adopted('/guarded', {});
    is($calls, 1, 'a rule for this machine does not let it in');
    is_deeply($got->{error}{data}, { reason => 'upstream_status',
                                     status => 403 }, 'which is said')
        or diag($got->{text});

    my $me = $c->as(uri => '/itself');
    my $id = $g->task('bad', who => $me);
    my $failed = $g->until($id, sub { ($_[0]{status} // '') eq 'failed' }, 10,
                           $me);
    is($failed->{error}{message},
       'Invalid Request: only clients on the local machine are allowed',
       'what is asked of nginx itself is not from this machine')
        or diag($failed->{text});
}

$g->done(qr/exited on signal 9|access forbidden by rule|upstream_status, task/);

done_testing();
