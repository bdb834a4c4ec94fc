# What a location has worked out is known to the upstream's location in the
# background as well; connections are counted as they should be; limits of
# payloads leave room for reasons; an answer is one before its request is over.

use warnings;
use strict;

use FindBin;
use lib "$FindBin::Bin/lib";

use IO::Socket::INET;
use Test::More;
use Time::HiRes qw/ time /;

use MCPClient;
use MCPGateway;
use MCPTasks qw/ wait_for /;

# takes connections and never answers
my $dead = IO::Socket::INET->new(LocalAddr => '127.0.0.1', Listen => 64)
    or die "no port\n";
my $deaf = 'http://127.0.0.1:' . $dead->sockport();


# --- variables

{
    my $port = MCPTasks::free_port();
    my $g = MCPGateway->new(
        tool => ['~. support=optional'],
        http => 'map $http_x_user $mapped { default none; ann "<$arg_k>"; } '
                . "server { listen 127.0.0.1:$port; add_header X-Sub sub-ann;"
                . ' return 200; }',
        server => "location = /auth { internal; proxy_pass http://127.0.0.1:"
                  . "$port; proxy_pass_request_body off; } "
                  . 'set $server_s "$arg_k s";',
        conf => 'set $who "$http_x_user of $uri"; set $m $mapped; set $none "";'
                . ' auth_request /auth;'
                . ' auth_request_set $sub $upstream_http_x_sub;'
                . ' auth_request_set $code $upstream_status;',
        proxy => join(' ', map { "proxy_set_header X-V-$_ \"[\$$_]\";" }
                           qw/ who m none sub server_s mapped uri args
                               request_method /));
    my ($up, $t, $c) = @{$g}{qw/ up t c /};
    my $at = $c->as(uri => '/mcp?k=v');
    $at->legacy('tools/call', { name => 'echo', arguments => {} });
    my ($id, @calls) = $g->task('echo', who => $at);
    is($g->ends($id, 10)->{status}, 'completed', 'a call in the background');
    is($up->call('echo', 2, 5) ? 1 : 0, 1, 'has come');

    for my $call ($up->calls('echo')) {
        my %seen = map { $_ => $call->{head}{$_} }
                   grep { /^x-v-/ } keys %{ $call->{head} };
        push @calls, \%seen;
    }

    is($calls[1]{'x-v-who'}, '[ann of /mcp]', 'set');
    is($calls[1]{'x-v-m'}, '[<v>]', 'a map');
    is($calls[1]{'x-v-none'}, '[]', 'an empty one');
    is($calls[1]{'x-v-sub'}, '[sub-ann]', 'auth_request_set');
    is($calls[1]{'x-v-server_s'}, '[v s]', 'set in the server');
    is_deeply($calls[1], $calls[0], 'all as in a call that is passed');
    $g->done();
}

# --- stub_status

for my $module ($ENV{MCP_TASKS_TEST_MODULE}, $ENV{MCP_TASKS_MODULE}) {
    my ($name) = $module =~ m{/(\w+)/[^/]+\z};
    my $up = MCPUpstream->new(on => { slow => [['sse'], ['hold']] });
    my $t = MCPTasks->new(module => $module,
        http => 'mcp_tasks_zone zone=z:8m;', server => <<"END");
    location /mcp { mcp_tasks zone=z; mcp_tasks_pass /upstream; }

    location = /upstream {
        internal;
        proxy_pass http://127.0.0.1:$up->{port}/mcp;
        proxy_http_version 1.1;
        proxy_set_header Connection "";
        proxy_buffering off;
    }

    location /stub { stub_status; }
END
    my $c = MCPClient->new($t);
    my $s = $t->connect();
    my $stub = sub {
        my $res = $t->request('GET', '/stub', {}, undef, $s);
        my ($active) = $res->{body} =~ /Active connections: (\d+)/;
        my ($reading, $writing, $waiting)
            = $res->{body} =~ /Reading: (\d+) Writing: (\d+) Waiting: (\d+)/;
        return "$active $reading $writing $waiting";
    };

    ok((wait_for { $stub->() eq '1 0 1 0' } 5), "$name: one connection")
        or diag($stub->());
    my @ids = map { $c->create('echo') } 1 .. 5;
    my $slow = $c->create('slow');
    my $call = $up->call('slow', 1, 10);

    for my $id (@ids) {
        wait_for { $c->legacy('tasks/get', { taskId => $id })
                   ->{json}{result}{status} eq 'completed' } 10;
    }

    ok((wait_for { $stub->() =~ /^2 / } 5),
       "$name: and that of a call in the background") or diag($stub->());
    $c->legacy('tasks/cancel', { taskId => $slow });
    ok($up->left($call, 10), "$name: it is cancelled");
    ok((wait_for { $stub->() eq '1 0 1 0' } 5), "$name: then it is as before")
        or diag($stub->());
    ok($t->stop(), "$name: nginx stops");
    is($t->faults(), '', "$name: nothing in the log that should not be");
    $up->stop();
}

# --- payloads

for my $case ([100, 'upstream_too_large'], [0, undef]) {
    my ($limit, $reason) = @$case;
    my $big = 'x' x ($limit ? 200 : 100_000);
    my $g = MCPGateway->new(
        http => "mcp_tasks_limit payload=$limit;",
        conf => 'mcp_tasks_retries 0;', tool => ['~. support=optional'],
        on => { big => [['result', "{\"a\":\"$big\"}"]],
                streamed => [['sse'], ['result', "{\"a\":\"$big\"}"]],
                error => [['error', "{\"code\":5,\"message\":\"$big\"}"]],
                bad => [['json', 'x', 500]], closed => [['reset']] });
    my $name = "payload=$limit";

    for my $tool (qw/ big streamed /) {
        my $id = $g->task($tool);

        if ($reason) {
            $g->fails($id, $reason, "$name: $tool", 10);

        } else {
            my $got = $g->ends($id, 10);
            is($got->{status}, 'completed', "$name: $tool");
            is($got->{result}{a}, $big, "$name: $tool, all of it");
        }
    }

    if ($reason) {
        $g->fails($g->task('error'), $reason, "$name: error", 10);

    } else {
        is($g->ends($g->task('error'), 10)->{error}{message}, $big,
           "$name: error");
    }

    $g->fails($g->task('bad'), 'upstream_status', "$name: bad", 10);
    $g->fails($g->task('closed'), 'upstream_closed', "$name: closed", 10);
    is($g->{t}->probe('op=stats')->{running} // 0, 0, "$name: nothing runs");
    $g->done('background call failed: upstream_|prematurely closed|'
             . 'reset by peer');
}

# --- requests that are not over when their answer is there

for my $case (['a mirror', 'mirror /never;'],
              ['lingering', 'lingering_close always; lingering_time 30s;'],
              ['a slow rate', 'limit_rate 10;'])
{
    my ($name, $proxy) = @$case;
    my $g = MCPGateway->new(
        tool => ['~. support=optional'], proxy => $proxy,
        server => "location = /never { internal; proxy_pass $deaf; "
                  . 'proxy_read_timeout 4s; }',
        on => { no => [['json', '{"jsonrpc":"2.0","id":%ID%,"error":{"code":7,'
                                . '"message":"no"}}', 400]] });
    my $start = time();
    is($g->ends($g->task('echo'), 20)->{status}, 'completed', "$name: a call");
    is($g->ends($g->task('no'), 20)->{error}{code}, 7, "$name: an error");
    is($g->ends($g->modern_task('echo'), 20)->{status}, 'completed',
       "$name: one of the modern era");
    cmp_ok(time() - $start, '<', 4, "$name: ends at once");
    $g->done('upstream timed out');
}

done_testing();
