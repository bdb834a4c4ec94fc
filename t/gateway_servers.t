# Two servers with the same location in one zone, each with an upstream of its
# own: when all processes are dead, no call comes to the other's.

use warnings;
use strict;

use FindBin;
use lib "$FindBin::Bin/lib";

use Test::More;

use MCPClient;
use MCPTasks qw/ free_port wait_for workers /;
use MCPUpstream;

my %on = (same => [['sse'], ['hold']]);
my ($first, $second, $third) = map { MCPUpstream->new(on => { %on }) } 1 .. 3;
my @all = ($first, $second, $third);
my $port = free_port();


# a server's locations
sub locations {
    my ($up) = @_;
    return <<"END";
    location /mcp {
        mcp_tasks zone=z;
        mcp_tasks_pass /upstream;
        mcp_tasks_tool same idempotent;
        mcp_tasks_retries 5 backoff=100ms;
    }

    location = /upstream {
        internal;
        proxy_pass http://127.0.0.1:$up->{port}/mcp;
        proxy_http_version 1.1;
        proxy_set_header Connection "";
        proxy_buffering off;
    }
END
}


# two that cannot be told from each other, and one with a name of its own
my $t = MCPTasks->new(
    workers => workers(), listen => 'reuseport',
    http => 'mcp_tasks_zone zone=z:8m;',
    server => 'server_name localhost;' . locations($first)
              . 'location /probe { mcp_tasks_probe zone=z; } } server {'
              . " listen 127.0.0.1:$port reuseport; server_name localhost;"
              . locations($second) . "} server { listen 127.0.0.1:$port;"
              . ' server_name c.example d.example;' . locations($third));
my $c = MCPClient->new($t);


sub via {
    my ($to) = @_;
    my $s = IO::Socket::INET->new(PeerAddr => '127.0.0.1', PeerPort => $to)
        or die "no connection\n";
    return $s;
}


# how many calls each of them has got
sub counts {
    return join ' ', map { scalar(my @calls = $_->requests()) } @all;
}


# all processes die at once, so that none takes over from another, and are back
sub kill_all {
    my @pids = $t->worker_pids();
    kill('STOP', @pids);
    kill('KILL', @pids);
    return wait_for {
        my %now = map { $_ => 1 } $t->worker_pids();
        return keys %now == @pids && !grep { $now{$_} } @pids;
    };
}


for my $case (['the first server', $first, $t->{port}, 'localhost'],
              ['the second', $second, $port, 'localhost'],
              ['another name than the first', $third, $port, 'd.example'],
              ['a name of its own', $third, $port, 'c.example', 1])
{
    my ($name, $up, $to, $host, $again) = @$case;
    $_->clear() for @all;
    my $res = $c->as(via => via($to))->modern(
        'tools/call', { name => 'same', arguments => { secret => $name } },
        headers => { Host => $host });
    my $id = $res->{json}{result}{taskId} // 'none';
    ok($up->call('same', 1, 10), "$name: it runs")
        or diag("$res->{status} $res->{body}");
    my $before = counts();
    ok(kill_all(), "$name: all processes die");

    if ($again) {
        my $call = $up->call('same', 2, 10);
        is_deeply($call->{json}{params}{arguments}, { secret => $name },
                  "$name: it is sent again");
        is(counts(), '0 0 2', "$name: to its own upstream");
        $up->go($call, ['result', '{"resultType":"complete","n":8}']);
        ok((wait_for { ($c->get_modern($id)->{result}{n} // 0) == 8 } 10),
           "$name: and it completes");
        next;
    }

    wait_for { ($c->get_modern($id)->{status} // '') ne 'working' } 10;
    my $got = $c->get_modern($id);
    is(join(' ', map { $_ // '-' } $got->{status}, $got->{error}{code},
                                   $got->{error}{data}{reason}),
       'failed -31013 process_lost', "$name: it fails, and says why");
    is(counts(), $before, "$name: and is sent to nobody");
    $c->modern('tasks/cancel', { taskId => $id });
}

is($t->probe('op=check')->{check}, 'ok', 'the table is in order');
ok($t->stop(), 'nginx stops');
is($t->faults('exited on signal 9|background call failed|'
              . 'zone z: a dead process'),
   '', 'nothing in the log that should not be');
$_->stop() for @all;
done_testing();
