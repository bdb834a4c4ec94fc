# Limits of several gateways in one zone, reloads that fail, processes that exit,
# and messages that are to be passed as they are.

use warnings;
use strict;

use FindBin;
use lib "$FindBin::Bin/lib";

use Test::More;

use MCPClient;
use MCPGateway;
use MCPTasks qw/ wait_for workers /;

my @hold = (['sse'], ['hold']);


# --- other limits in one zone, and other tools

{
    my $g = MCPGateway->new(
        conf => 'mcp_tasks_max_running 1;',
        server => 'location /two { mcp_tasks zone=z; mcp_tasks_pass /upstream;'
                  . ' mcp_tasks_max_running 100; } location /tool { mcp_tasks '
                  . 'zone=z; mcp_tasks_pass /upstream; mcp_tasks_max_running '
                  . '100 tool=1; }',
        on => { map { $_ => [@hold] } qw/ x a b c d / });
    my ($up, $c) = @{$g}{qw/ up c /};
    my ($two, $tool) = map { $c->as(uri => $_) } '/two', '/tool';

    my @ids = $g->task('x');
    ok($up->call('x', 1, 10), 'one runs');
    push @ids, $g->task('a');
    push @ids, $g->task('b', who => $two);
    ok($up->call('b', 1, 5), 'one with a higher limit runs as well');
    push @ids, map { $g->task('c', who => $tool) } 1, 2;
    push @ids, $g->task('d', who => $tool);
    ok($up->call('c', 1, 5), 'and one of a tool');
    ok($up->call('d', 1, 5), 'and one of another, though the first is full');
    is_deeply([map { scalar(my @calls = $up->calls($_)) } qw/ a c /], [0, 1],
              'the others wait');
    $c->legacy('tasks/cancel', { taskId => $_ }) for @ids;
    $g->done();
}

# --- a reload that fails, then a process of the old configuration

{
    my $g = MCPGateway->new(tool => ['echo support=optional']);
    my ($up, $t) = @{$g}{qw/ up t /};
    is($g->ends($g->task('echo'), 10)->{status}, 'completed', 'a call');
    my $taken = IO::Socket::INET->new(LocalAddr => '127.0.0.1', Listen => 1);
    my ($pid) = $t->worker_pids();
    $t->reload(server => 'location /worker { mcp_tasks_worker zone=z; } '
                         . 'listen 127.0.0.1:' . $taken->sockport() . ';');
    ok((wait_for { $t->log() =~ /still could not bind/ } 20), 'a reload fails');
    is($g->ends($g->task('echo'), 10)->{status}, 'completed', 'and a call');
    kill('KILL', $pid);
    ok((wait_for { my @p = $t->worker_pids(); @p && $p[0] != $pid } 10),
       'the process is another one');
    is($g->ends($g->task('echo'), 10)->{status}, 'completed', 'and a call');
    like($g->{c}->legacy('tools/list')->{body}, qr/"taskSupport"/,
         'and lists are merged');
    $g->done('could not bind|bind\(\)|exited on signal 9');
}

# --- a process that exits begins nothing: others do

{
    my $g = MCPGateway->new(
        workers => workers(), tool => ['~. idempotent'],
        conf => 'mcp_tasks_retries 5 backoff=100ms;',
        proxy => 'proxy_set_header X-Pid $pid;',
        on => { map { $_ => [@hold] } qw/ stay same / });
    my ($up, $t, $c) = @{$g}{qw/ up t c /};
    my $nobody = $c->as(headers => {});
    my $conn = $t->connect_all() or BAIL_OUT('processes cannot be reached');
    my ($leaves, $dies) = sort keys %$conn;

    # one stays after a reload since it has a call, another one has and dies
    my $stay = $g->modern_task('stay', who => $nobody->as(
                                                 via => $conn->{$leaves}));
    my $same = $g->modern_task('same', who => $nobody->as(
                                                 via => $conn->{$dies}));
    ok($up->call('stay', 1, 10) && $up->call('same', 1, 10), 'two calls run');
    my @old = $t->worker_pids();
    $t->reload();
    ok((wait_for {
        my %now = map { $_ => 1 } $t->worker_pids();
        return $now{$leaves} && $now{$dies} && keys %now == workers() + 2;
    } 20), 'their processes are to exit, and there are new ones');
    kill('KILL', $dies);
    my $again = $up->call('same', 2, 10);
    ok($again, 'one dies: its call is sent again');
    my %old = map { $_ => 1 } @old;
    ok(!$old{ $again->{head}{'x-pid'} }, 'by a process that does not exit');
    $up->go($again, ['result', '{"resultType":"complete","n":1}']);
    $up->go($up->call('stay'), ['result', '{"resultType":"complete","n":2}']);
    is($g->until($same, sub { $_[0]{status} ne 'working' }, 10, $nobody)
       ->{result}{n}, 1, 'it completes');
    is($g->until($stay, sub { $_[0]{status} ne 'working' }, 10, $nobody)
       ->{result}{n}, 2, 'and so does that of the one that exits');
    ok((wait_for { my @p = $t->worker_pids(); @p == workers() } 20),
       'which then is gone');
    $g->done('exited on signal 9');
}

# --- messages

{
    my $g = MCPGateway->new(
        tool => ['echo support=optional'],
        on => { initialize => [['json', 'hello', 200,
                                { 'Content-Type' => 'text/plain' }]] });
    my ($up, $t, $c) = @{$g}{qw/ up t c /};

    # in the second part of nginx's list of headers, and in the first
    for my $n (0, 16 .. 22) {
        $up->clear();
        my %more = map { sprintf('A-%02d', $_) => 1 } 1 .. $n;
        my $res = $t->request('POST', '/mcp', { %more,
            'Content-Type' => 'application/json', 'Zz-Last' => 1,
            'X-Accept' => 'gzip', 'B-Accept-Encoding' => 'gzip',
            'Accept-Encoding' => 'gzip, br' },
            '{"jsonrpc":"2.0","id":1,"method":"tools/list"}');
        is($res->{status}, 200, "$n headers before: a list");
        my ($got) = $up->said('tools/list');
        unlike($got->{head}{'accept-encoding'} // '', qr/gzip|br/,
               "$n headers before: Accept-Encoding is not passed");
        is(join(' ', map { $got->{head}{$_} // '-' }
                     qw/ zz-last x-accept b-accept-encoding /), '1 gzip gzip',
           "$n headers before: all others are");
        is(scalar(grep { /^a-/ } keys %{ $got->{head} }), $n,
           "$n headers before: none is missing");
    }

    my $res = $c->legacy('initialize', {});
    is("$res->{status} " . ($res->{header}{'content-length'} // '-')
       . " $res->{body}", '200 5 hello', 'what is not merged has its length');

    # batches
    my $batch = '[{"jsonrpc":"2.0","id":1,"method":"ping"},'
                . '{"jsonrpc":"2.0","id":2,"method":"ping"}]';

    for my $case ([undef, 1], ['2025-03-26', 1], ['2025-06-18', 0],
                  ['2025-11-25', 0], ['2026-07-28', 0], ['2025-03-260', 0])
    {
        my ($version, $passed) = @$case;
        my $name = $version // 'no version';

        for my $text ($batch, " \t\r\n$batch") {
            $up->clear();
            $res = $c->post($text, 'MCP-Protocol-Version' => $version);
            is(scalar(my @got = $up->requests()), $passed,
               "a batch, $name: " . ($passed ? 'passed' : 'not passed'));
            is($res->{status}, $passed ? 200 : 400, "a batch, $name: answered");
        }
    }

    # zeros are no space
    for my $text ("\0$batch", " \0$batch", "\0", "\0\0[", "[\0]") {
        $up->clear();
        $res = $c->post($text, 'MCP-Protocol-Version' => '2025-11-25');
        is("$res->{status} " . ($res->{json}{error}{code} // '-'),
           '400 -32700', 'a zero byte: refused');
        is(scalar(my @got = $up->requests()), 0, 'a zero byte: not passed');
    }

    for my $text ("\0$batch", " \0$batch") {
        $up->clear();
        $res = $c->post($text, 'MCP-Protocol-Version' => undef);
        is($res->{status}, 400, 'a zero byte before a batch: refused');
        is(scalar(my @got = $up->requests()), 0, 'and not passed');
    }

    $g->done();
}

done_testing();
