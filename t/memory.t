# Streams need no more memory the longer they live, whether they are read or
# not; and who did not read gets the latest, not all that was.

use warnings;
use strict;

use FindBin;
use lib "$FindBin::Bin/lib";

use IO::Select;
use Test::More;
use Time::HiRes qw/ sleep time /;

use MCPClient;
use MCPHttp2;
use MCPProcess qw/ memory_of /;
use MCPTasks qw/ wait_for /;

# what a sanitizer keeps of freed memory is not what we look for
$ENV{ASAN_OPTIONS} = 'quarantine_size_mb=1:thread_local_quarantine_size_kb=64';

my $h2port = MCPTasks::free_port();

# one process, so that all of it happens there; its sockets hold little
my $t = MCPTasks->new(
    workers => 1, listen => 'sndbuf=8k',
    tools => ['slow'],
    http => 'mcp_tasks_zone zone=z:4m; mcp_tasks_tools tools.json;',
    surfaces => [qw/ mcp worker probe /],
    server => <<"END");
    listen 127.0.0.1:$h2port http2;
    mcp_tasks_owner \$http_x_user;
END

my $c = MCPClient->new($t);
my $ann = $c->as(headers => { 'X-User' => 'ann' });
my ($pid) = $t->worker_pids();

# What a stream could lose with each event is at least a link of a chain, 16
# bytes: it is the slope that tells, bytes for an event, over many of them.  Some
# pages come and go by chance, with sanitizers more of them; over the fewest
# events that are tried here even such a link would come to more.
use constant SLOPE => 8;
use constant CHANCE => 256 * 1024;

# a store that takes its time for each change takes minutes for so many
use constant FEWER => { late => 20, sqlite => 4 }
                      ->{ $ENV{MCP_TASKS_STORE} // '' } || 1;


sub flat {
    my ($from, $to, $events, $name) = @_;
    my $slope = ($to - $from) / $events;
    my $chance = CHANCE / $events;
    cmp_ok($slope, '<', $chance > SLOPE ? $chance : SLOPE, sprintf '%s: %.2f bytes for each of %d changes',
                                       $name, $slope, $events);
}


# one that is claimed
sub task {
    $ann->create('slow');
    my $work = $c->claim('slow', leaseMs => 600000);
    return { %$work, id => $work->{taskId} };
}


sub version {
    my ($held) = @_;
    return $ann->rest("tasks/$held->{id}/poll")->{json}{version};
}


# and its last version
sub complete {
    my ($held) = @_;
    $c->complete($held, '{"content":[]}');
    return version($held);
}


# so many changes of a task, as fast as they are taken
sub change {
    my ($n, @held) = @_;
    my $batch = 100;
    my $s;

    # no message is like the one before, nor of the same length
    for (my $done = 0; $done < $n; $done += $batch) {
        my $text = '';

        # nginx itself needs more memory with each request of a connection
        $s = $t->connect() if $done % 1000 == 0;

        for my $i (1 .. $batch) {
            my $held = $held[$i % @held];
            $text .= MCPClient::bytes('/worker', MCPClient::rpc(
                'worker/progress', "{\"taskId\":\"$held->{id}\",\"lease\":"
                . "\"$held->{lease}\",\"message\":\"" . 'm' x ($i % 50)
                . ($done + $i) . '"}'));
        }

        MCPTasks::send_raw($s, $text) or return 0;

        for (1 .. $batch) {
            my $res = MCPTasks::read_response($s) or return 0;

            if ($res->{body} !~ /"result"/) {
                diag($res->{body});
                return 0;
            }
        }
    }

    return 1;
}


# the same beside this process
sub change_beside {
    my (@args) = @_;
    my $child = fork();
    die "fork: $!\n" unless defined $child;

    if ($child == 0) {
        change(@args);
        POSIX::_exit(0);
    }

    return $child;
}


# --- read all the time

# $more gives what has come, or nothing at the end
sub reads {
    my ($name, $first, $last, $more, @held) = @_;

    ($first, $last) = ($first / FEWER, $last / FEWER);

    # changes that come while one is sent may be told together
    my $child = change_beside(10 * $last, @held);
    my ($n, $line, $from, $start) = (0, '', undef, time());

    # comments keep it alive, whatever has gone wrong
    while ($n < $last && time() < $start + 120) {
        my $text = $more->();
        last unless defined $text;

        $line .= $text;
        my $end = rindex($line, "\n") + 1;
        $n += () = substr($line, 0, $end, '') =~ /^id: /mg;
        $from = memory_of($pid) if !defined $from && $n >= $first;
    }

    my $to = memory_of($pid);
    kill('KILL', $child);
    waitpid($child, 0);

    cmp_ok($n, '>=', $last, sprintf '%s: %d events', $name, $n);
    note(sprintf '%.1f s', time() - $start);
    flat($from || 0, $to, $last - $first, $name);
}


# each task may have that many changes: no lease is lost meanwhile
{
    my $held = task();
    my $s = $t->connect();
    MCPTasks::send_raw($s, $ann->rest_bytes("tasks/$held->{id}/events"));

    reads('a stream', 20_000, 100_000, sub {
        my $text;
        return IO::Select->new($s)->can_read(30)
               && sysread($s, $text, 262144) ? $text : undef;
    }, $held);

    # it is still the same stream, up to the end
    my $last = complete($held);
    my $text = '';

    while (IO::Select->new($s)->can_read(30)) {
        sysread($s, $text, 65536, length $text) or last;
        last if $text =~ /\r\n0\r\n\r\n\z/;
    }

    like($text, qr/^id: $last\ndata: .*"status":"completed".*\n\n\r\n0\r\n/m,
         'then the end');
}

{
    my @held = map { task() } 1 .. 40;
    my $s = $t->connect();
    MCPTasks::send_raw($s, $ann->rest_bytes('tasks/events'));

    reads('a stream of all tasks', 10_000, 30_000, sub {
        my $text;
        return IO::Select->new($s)->can_read(30)
               && sysread($s, $text, 262144) ? $text : undef;
    }, @held);

    close($s);
    complete($_) for @held;
}

{
    my $held = task();
    my $h2 = MCPHttp2->new($h2port);
    my $n = $h2->get("/mcp/tasks/$held->{id}/events", 'x-user' => 'ann');

    reads('a stream over HTTP/2', 10_000, 30_000, sub {
        $h2->until(sub { length $h2->text($n) }) or return;
        my $text = $h2->text($n);
        $h2->{streams}{$n}{text} = '';
        return $text;
    }, $held);

    $h2->close();
    complete($held);
}

# --- not read at all

{
    my $n = 20_000 / FEWER;
    my $held = task();
    my @s = map { my $s = $t->connect_narrow();
                  MCPTasks::send_raw($s,
                      $ann->rest_bytes("tasks/$held->{id}/events"));
                  $s } 1 .. 3;
    push @s, $t->connect_narrow();
    MCPTasks::send_raw($s[3], $ann->rest_bytes('tasks/events'));
    ok((wait_for { $t->probe('op=waits')->{zone} == 4 }), 'four do not read');

    # until nothing more fits into the sockets
    ok(change(1000, $held), 'changes');
    my $from = memory_of($pid);
    ok(change($n, $held), 'many changes');
    flat($from, memory_of($pid), $n, 'nobody reads');

    # they read again
    my @streams = map { MCPClient::Stream->new($_) } @s;
    my $now = version($held);

    for my $i (0, 1, 3) {
        my ($last, $events) = ({ id => 0 }, 0);
        my $want = $i == 3 ? qr/-\d+\z/ : qr/\A$now\z/;

        while (my $event = $streams[$i]->event(30)) {
            next unless defined $event->{data}
                        && $event->{json}{taskId} eq $held->{id};
            $events++;
            $last = $event;
            last if $event->{json}{version} == $now;
        }

        is($last->{json}{version}, $now, "reader $i: the latest comes");
        like($last->{id}, $want, 'by its id');
        cmp_ok($events, '<', 500, "without all that was ($events events)");
    }

    # the end is not missed, neither by who reads nor by who does not yet
    my $end = complete($held);

    for my $i (0 .. 2) {
        my ($last, $events) = ({ id => 0 }, 0);

        while (my $event = $streams[$i]->event(30)) {
            next unless defined $event->{data};
            $events++;
            $last = $event;
        }

        is($last->{id}, $end, "reader $i: the end");
        is($last->{json}{status}, 'completed', 'as it is');
        ok($streams[$i]{whole}, 'and that of the stream');
        cmp_ok($events, '<', 500, "without all that was ($events events)");
    }

    my $event;

    while ($event = $streams[3]->event(30)) {
        last if defined $event->{data}
                && $event->{json}{taskId} eq $held->{id}
                && $event->{json}{version} == $end;
    }

    is($event && $event->{json}{status}, 'completed',
       'who follows all tasks sees it');
    $_->close() for @streams;
    ok((wait_for { $t->probe('op=waits')->{zone} == 0 }), 'all are over');
}

# --- streams that come and go

{
    my $held = task();
    my @waits = map { $ann->rest_bytes("tasks/$held->{id}/$_") }
                'events', 'poll?timeout=0&version=999999';
    my ($from, $rounds) = (0, 2000 / FEWER);

    # a connection for each stream: they end with it
    for my $i (1 .. 2 * $rounds) {
        $from = memory_of($pid) if $i == $rounds;
        my $s = $t->connect();
        MCPTasks::send_raw($s, $waits[$i % 2]);
        IO::Select->new($s)->can_read(30);
        close($s);
    }

    ok((wait_for { $t->probe('op=waits')->{zone} == 0 }), 'all have gone');

    # a request takes kilobytes: that of one in fifty would show
    cmp_ok((memory_of($pid) - $from) / $rounds, '<', 100,
           'nothing is left of them');
}

is($t->probe('op=check')->{check}, 'ok', 'the table is in order');
is_deeply([$t->worker_pids()], [$pid], 'the process is the same');
ok($t->stop(), 'nginx stops');
is($t->faults(), '', 'nothing in the log that should not be');

done_testing();
