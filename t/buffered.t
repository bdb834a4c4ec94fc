# Bytes that are not in our buffers any more, and not with the client yet.

use warnings;
use strict;

use FindBin;
use lib "$FindBin::Bin/lib";

use Test::More;
use Time::HiRes qw/ sleep time /;

use MCPClient;
use MCPTasks qw/ free_port wait_for /;

my $tls = free_port();

# sockets that hold little; comments that would push out what is left behind
# come too late
my $t = MCPTasks->new(
    workers => 1, listen => 'sndbuf=16k',
    tools => ['slow'],
    http => 'mcp_tasks_zone zone=z:32m; mcp_tasks_tools tools.json;',
    server => <<'END');
    client_max_body_size 16m;
    mcp_tasks_limit payload=16m;
    location /mcp { mcp_tasks zone=z; mcp_tasks_keepalive 5m; }
    location /short { mcp_tasks zone=z; send_timeout 2s; }
    location /worker { mcp_tasks_worker zone=z; }
    location /probe { mcp_tasks_probe zone=z; }
END

is(system('openssl req -x509 -newkey rsa:2048 -nodes -days 2'
          . " -subj /CN=localhost -keyout $t->{dir}/key.pem"
          . " -out $t->{dir}/cert.pem > /dev/null 2>&1"), 0, 'a certificate');
$t->configure(server => $t->{server} . <<"END");
    listen 127.0.0.1:$tls ssl sndbuf=16k;
    ssl_certificate cert.pem;
    ssl_certificate_key key.pem;
END
ok($t->reload(), 'with TLS');

my $c = MCPClient->new($t);


# --- TLS: a reader that stood still gets the last event, too

{
    my $id = $c->create('slow');
    my $work = $c->claim('slow', leaseMs => 600000);

    pipe(my $their_in, my $in) or die "pipe: $!\n";
    pipe(my $out, my $their_out) or die "pipe: $!\n";
    my $pid = fork();
    die "fork: $!\n" unless defined $pid;

    if ($pid == 0) {
        open(STDIN, '<&', $their_in);
        open(STDOUT, '>&', $their_out);
        open(STDERR, '>', '/dev/null');
        exec('openssl', 's_client', '-quiet', '-connect', "127.0.0.1:$tls")
            or POSIX::_exit(127);
    }

    close($their_in);
    close($their_out);
    syswrite($in, $c->rest_bytes("tasks/$id/events"));
    ok((wait_for { $t->probe('op=waits')->{zone} == 1 }), 'a stream over TLS');

    # its pipe is full, then its socket, then what TLS buffers
    my $last = 'm' x 900;
    kill('STOP', $pid);
    $c->held('progress', $work, message => $last . $_) for 1 .. 1500;
    kill('CONT', $pid);

    my $text = '';
    my $end = time() + 60;
    my $vector = '';
    vec($vector, fileno($out), 1) = 1;

    while ($text !~ /${last}1500"/ && time() < $end) {
        my $ready = $vector;
        next unless select($ready, undef, undef, 1);
        sysread($out, $text, 65536, length $text) or last;
    }

    like($text, qr/${last}1500"/, 'the latest comes at last');
    kill('KILL', $pid);
    waitpid($pid, 0);
    ok((wait_for { $t->probe('op=waits')->{zone} == 0 }), 'it has gone');
    $c->complete($work, { content => [] });
}

# --- send_timeout is for the time between two writes

{
    my $short = $c->as(uri => '/short');
    my $id = $c->create('slow');
    my $work = $c->claim('slow', leaseMs => 600000);
    my $size = 4_000_000;
    $c->complete($work, '{"content":[{"type":"text","text":"'
                        . 'x' x $size . '"}]}');

    my $s = $t->connect_narrow();
    MCPTasks::send_raw($s, $short->modern_bytes('subscriptions/listen',
                       { notifications => { taskIds => [$id] } }));

    # in more than twice the time, but never at rest for as long
    my ($got, $began, $text) = (0, time(), '');

    while ($got < $size) {
        my $n = sysread($s, $text, 65536) or last;
        $got += $n;
        my $due = $began + 5 * $got / $size;
        sleep($due - time()) if $due > time();
    }

    cmp_ok($got, '>=', $size, 'a large event to a slow reader');
    close($s);
}

ok($t->stop(), 'nginx stops');
is($t->faults(), '', 'nothing to complain about in the log');

done_testing();
