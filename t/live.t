# Who waits learns of it at once, in whichever process it happens; and nobody
# else is woken.  Clients go at every stage.

use warnings;
use strict;

use FindBin;
use lib "$FindBin::Bin/lib";

use IO::Select;
use Socket qw/ :DEFAULT SO_LINGER /;
use Test::More;
use Time::HiRes qw/ sleep time /;

use MCPClient;
use MCPFile qw/ slurp /;
use MCPHttp2;
use MCPTasks qw/ scale wait_for workers /;

my $h2port = MCPTasks::free_port();

# a connection goes to one process and stays there, and it holds little
my $t = MCPTasks->new(
    workers => workers(), listen => 'reuseport sndbuf=8k',
    connections => 4096,
    tools => ['slow'],
    http => 'mcp_tasks_zone zone=z:32m; mcp_tasks_tools tools.json;',
    surfaces => [qw/ mcp worker probe /],
    server => <<"END");
    listen 127.0.0.1:$h2port http2 sndbuf=8k;
    client_body_buffer_size 1m;
    keepalive_timeout 600s;
    mcp_tasks_owner \$http_x_user;
    mcp_tasks_max_waiters 0 zone=0;
END

my $c = MCPClient->new($t);
my $ann = $c->as(headers => { 'X-User' => 'ann' });
my $conn = $t->connect_all() or BAIL_OUT('processes cannot be reached');
my @pids = sort keys %$conn;

use constant { PROGRESS => 1, COMPLETE => 3, CANCEL => 10 };


# an operation in a certain process
sub at {
    my ($pid, $args) = @_;
    my $got = $t->probe($args, $conn->{$pid});

    if (!$got || $got->{pid} != $pid) {
        fail("process $pid answers to $args");
        return {};
    }

    return $got;
}


# a message to a certain process, and its answer
sub say_to {
    my ($pid, $bytes) = @_;
    return $c->as(via => $conn->{$pid})->say_bytes($bytes)->{json};
}


# a connection to a certain process
sub reach {
    my ($pid) = @_;
    return $t->connect_to($pid) || BAIL_OUT("process $pid cannot be reached");
}


sub waiting {
    return at($pids[0], 'op=waits')->{zone};
}


sub come {
    my ($n, $name) = @_;
    my $got = wait_for { waiting() == $n };
    ok($got, "$name: $n wait") or diag('is ' . waiting());
}


sub event {
    my ($pid, $held, $type, $result) = @_;
    return at($pid, "op=event&id=$held->{id}&lease=$held->{lease}"
                    . "&event=$type&result=" . ($result || ''));
}


sub drop {
    my ($held) = @_;
    at($pids[0], "op=delete&id=$held->{id}");
}


# a task that is claimed
sub task {
    my ($tool) = @_;
    at($pids[0], "op=create&owner=ann&tool=$tool&params={}");
    return at($pids[1], "op=claim&tool=$tool");
}


# --- creator, worker and waiter in three processes, or two if there are no more

my %wait = (
    poll => sub { $ann->rest_bytes("tasks/$_[0]/poll?version=$_[1]") },
    events => sub { $ann->rest_bytes("tasks/$_[0]/events", headers =>
                                     { 'Last-Event-ID' => $_[1] }) },
    owner => sub { $ann->rest_bytes('tasks/events') },
    result => sub { $ann->legacy_bytes('tasks/result',
                                       { taskId => $_[0] }) },
);

my ($rounds, $took) = (0, 0);

for my $kind (sort keys %wait) {
    for my $shift (0 .. $#pids) {
        my ($creator, $worker, $waiter)
            = map { $pids[($_ + $shift) % @pids] } 0, 1, 2;
        my $name = "$kind $shift";

        # with two processes, who waits is at least not where the work is
        $waiter = $creator if $waiter == $worker;

        my $made = say_to($creator, $ann->legacy_bytes('tools/call',
            { name => 'slow', task => {} }));
        my $id = $made->{result}{task}{taskId};
        my $work = say_to($worker, MCPClient::bytes('/worker', MCPClient::rpc(
            'worker/claim', { tools => ['slow'] })))->{result}{tasks}[0];
        is($work->{taskId}, $id, "$name: made here, claimed there");
        my $now = say_to($creator,
                         $ann->rest_bytes("tasks/$id/poll"))->{version};

        my $s = reach($waiter);
        MCPTasks::send_raw($s, $wait{$kind}->($id, $now));
        come(1, $name);

        my $start = time();
        say_to($worker, MCPClient::bytes('/worker', MCPClient::rpc(
            'worker/complete', "{\"taskId\":\"$id\",\"lease\":"
            . "\"$work->{lease}\",\"result\":{\"content\":[]}}")));

        my $text = '';

        until ($text =~ /"(?:status":"completed|content":\[\])/) {
            IO::Select->new($s)->can_read(30) or last;
            sysread($s, $text, 65536, length $text) or last;
        }

        $took += time() - $start;
        $rounds++;
        like($text, qr/"(?:status":"completed|content":\[\])/,
             "$name: told in a third one");
        close($s);
        come(0, $name);
        at($creator, "op=delete&id=$id");
    }
}

# a look twice a second would take a quarter of a second on average
cmp_ok($took, '<', $rounds * 0.2, "at once, without looking ($took s)");

# --- nobody else is woken

# waking up leaves a trace in the kernel, whoever caused it
sub switches {
    my ($pid) = @_;
    my ($n) = slurp("/proc/$pid/status") =~ /^voluntary_ctxt_switches:\s+(\d+)/m;
    return $n;
}


{
    my ($busy, $waiter, @idle) = @pids;
    my $n = 500;

    my $counts = sub {
        return map { $_ => at($_, 'op=waits')->{wakeups} } @pids;
    };

    # who saves changes has something to do with each of them
    my $asleep = sub {
        my ($woken, @who) = @_;
        my $writer = at($busy, 'op=waits')->{writer};
        cmp_ok($woken->{$_}, '<', $n / 4, "process $_ sleeps")
            for grep { $_ != $writer } @who;
    };

    # changes of a task without waiters
    my $held = task('w');
    my %before = $counts->();
    my %slept = map { $_ => switches($_) } @pids;
    event($busy, $held, PROGRESS) for 1 .. $n;
    my %woken = map { $_ => switches($_) - $slept{$_} } @pids;
    my %after = $counts->();

    is_deeply(\%after, \%before, 'nobody waits: nobody is woken');

    $asleep->(\%woken, $waiter, @idle);

    # one waits for it, in another process; all others are none of its business
    for my $kind ('events', 'owner') {
        my $other = task('w');
        my $s = reach($waiter);
        MCPTasks::send_raw($s, $wait{$kind}->($held->{id}, 0));
        my $stream = MCPClient::Stream->new($s);

        # how things are: of one task, or of both
        $stream->next_data() for 1 .. ($kind eq 'owner' ? 2 : 1);
        come(1, 'a waiter');

        %before = $counts->();
        %slept = map { $_ => switches($_) } @pids;

        for (1 .. $n) {
            event($busy, $held, PROGRESS);
            $stream->next_data()->{json} or fail('an event');
        }

        %woken = map { $_ => switches($_) - $slept{$_} } @pids;
        %after = $counts->();

        cmp_ok($after{$waiter} - $before{$waiter}, '>=', $n,
               "$kind: who waits is woken");

        for my $pid ($busy, @idle) {
            is($after{$pid} - $before{$pid}, 0, "$kind: others are not");
        }

        $asleep->(\%woken, @idle);

        # another task changes: the waiter for this one goes on sleeping
        if ($kind eq 'events') {
            %before = $counts->();
            event($busy, $other, PROGRESS) for 1 .. $n;
            %after = $counts->();
            is_deeply(\%after, \%before, 'another task changes: nobody');
        }

        close($s);
        come(0, 'the waiter has gone');

        # what it left behind wakes it once, at most
        %before = $counts->();
        event($busy, $held, PROGRESS) for 1 .. $n;
        %after = $counts->();
        cmp_ok($after{$waiter} - $before{$waiter}, '<=', 1,
               "$kind: it has gone, and is not woken any more");
        drop($other);
    }

    # several in one process: they are woken together
    my @streams = map {
        my $s = reach($waiter);
        MCPTasks::send_raw($s, $wait{events}->($held->{id}, 0));
        MCPClient::Stream->new($s);
    } 1 .. 10;
    $_->next_data() for @streams;
    %before = $counts->();
    event($busy, $held, PROGRESS);
    is(scalar(grep { $_->next_data()->{json} } @streams), 10, 'ten are told');
    %after = $counts->();
    cmp_ok($after{$waiter} - $before{$waiter}, '<=', 2,
           'and their process was woken once');
    $_->close() for @streams;
    drop($held);
    come(0, 'all have gone');
}

# --- a thousand streams over a thousand tasks

{
    my $n = scale(1000);
    my (@held, %served);

    at($pids[0], "op=create&owner=ann&tool=k&params={}&n=$n");
    push @held, at($pids[$_ % @pids], 'op=claim&tool=k') for 1 .. $n;

    my @streams = map {
        my $s = $t->connect();
        $served{$t->probe('op=pid', $s)->{pid}}++;
        MCPTasks::send_raw($s, $ann->rest_bytes("tasks/$_->{id}/events"));
        MCPClient::Stream->new($s);
    } @held;

    is(scalar keys %served, scalar @pids, "$n streams: in every process");
    is(scalar(grep { ($streams[$_]->next_data()->{json}{taskId} || '')
                     eq $held[$_]{id} } 0 .. $#held), $n, 'each has its task');
    come($n, "$n streams");

    my $start = time();
    event($pids[$_ % @pids], $held[$_], PROGRESS) for 0 .. $#held;

    my ($told, $wrong) = (0, 0);

    for my $i (0 .. $#held) {
        my $event = $streams[$i]->next_data();
        $told++ if ($event->{json}{taskId} || '') eq $held[$i]{id};
        $wrong++ unless $event->{id} == $held[$i]{version} + 1;
    }

    is($told, $n, 'each is told of its change');
    is($wrong, 0, 'and of no other version');

    event($pids[($_ + 1) % @pids], $held[$_], COMPLETE, '{}') for 0 .. $#held;
    $told = 0;

    for my $i (0 .. $#held) {
        my $event = $streams[$i]->next_data();
        $told++ if ($event->{json}{status} || '') eq 'completed'
                   && $event->{json}{taskId} eq $held[$i]{id}
                   && !$streams[$i]->event(5) && $streams[$i]{whole};
    }

    is($told, $n, 'and of its end, which ends the stream');
    cmp_ok(time() - $start, '<', 60, 'soon');
    come(0, 'all are over');
    $_->close() for @streams;
    drop($_) for @held;
}

# --- a thousand streams on one task

{
    my $n = scale(1000);
    my $held = task('one');
    my %served;

    my @streams = map {
        my $s = $t->connect();
        $served{$t->probe('op=pid', $s)->{pid}}++;
        MCPTasks::send_raw($s, $ann->rest_bytes("tasks/$held->{id}/events"));
        MCPClient::Stream->new($s);
    } 1 .. $n;

    is(scalar(grep { $_->next_data()->{json} } @streams), $n,
       "$n streams on one task");
    is(scalar keys %served, scalar @pids, 'in every process');

    my $last = 0;

    for my $round (1 .. 3) {
        my $got = event($pids[$round % @pids], $held, PROGRESS);
        is(scalar(grep { ($_->next_data()->{id} || 0) == $got->{version} }
                  @streams), $n, "change $round is told to all");
        $last = $got->{version};
    }

    # several changes at once: the last one comes, none comes twice
    $last = event($pids[$_ % @pids], $held, PROGRESS)->{version} for 1 .. 20;
    my ($complete, $disorder) = (0, 0);

    for my $stream (@streams) {
        my $seen = 0;

        while ($seen < $last) {
            my $id = $stream->next_data()->{id} or last;
            $disorder++ if $id <= $seen;
            $seen = $id;
        }

        $complete++ if $seen == $last;
    }

    is($complete, $n, 'many changes: all have the last one');
    is($disorder, 0, 'in order, and none twice');

    # half of them go in the moment when the others are told of the end
    my @gone = splice @streams, 0, $n / 2;
    my $half = int @gone / 2;
    $_->close() for @gone[0 .. $half - 1];
    event($pids[1], $held, COMPLETE, '{}');
    $_->close() for @gone[$half .. $#gone];

    is(scalar(grep { ($_->next_data()->{json}{status} || '') eq 'completed'
                     && !$_->event(5) && $_->{whole} } @streams),
       scalar @streams, 'the others are told of the end');
    come(0, 'all are over');
    drop($held);
}

# --- clients that go

# closed in an orderly way, half, or with a reset
my %leave = (
    closed => sub { close($_[0]) },
    half => sub { shutdown($_[0], 1) },
    reset => sub { setsockopt($_[0], SOL_SOCKET, SO_LINGER, pack('ii', 1, 0));
                   close($_[0]) },
);

for my $how (sort keys %leave) {
    for my $kind (sort keys %wait) {
        my $held = task('go');

        # before anything was sent
        my @early = map { my $s = $t->connect();
                          MCPTasks::send_raw($s,
                              $wait{$kind}->($held->{id}, 9999)); $s }
                    1 .. 20;
        $leave{$how}->($_) for @early;
        come(0, "$kind, $how before it began");

        # while it waits
        my @parked = map { my $s = $t->connect();
                           MCPTasks::send_raw($s,
                               $wait{$kind}->($held->{id}, 9999)); $s }
                     1 .. 20;
        come(20, "$kind parked");
        $leave{$how}->($_) for @parked;
        come(0, "$kind, $how while it waited");

        # in the moment when it ends
        @parked = map { my $s = $t->connect();
                        MCPTasks::send_raw($s,
                            $wait{$kind}->($held->{id}, 9999)); $s } 1 .. 20;
        come(20, "$kind parked");
        $leave{$how}->($_) for splice @parked, 0, 7;
        event($pids[0], $held, COMPLETE, '{}');
        $leave{$how}->($_) for @parked;
        come(0, "$kind, $how at the end");
        drop($held);
    }
}

# while what it was sent is still on the way
for my $how (sort keys %leave) {
    my $id = $ann->create('slow');
    my $work = $c->claim('slow');
    my $held = { id => $id, lease => $work->{lease} };
    my @s = map { my $s = $t->connect_narrow();
                  MCPTasks::send_raw($s,
                      $ann->rest_bytes("tasks/$id/events"));
                  $s } 1 .. 8;
    come(8, 'who does not read');

    $c->held('progress', $work, message => $_ x 300_000) for 'a' .. 'c';

    # some read a little, so that what is left is somewhere in the middle
    sysread($s[$_], my $buf, 5000) for 0 .. 3;
    $leave{$how}->($_) for splice @s, 0, 2;
    come(6, "$how while there is something to send");

    $c->held('progress', $work, message => 'd' x 300_000);
    $leave{$how}->($_) for splice @s, 0, 2;
    come(4, "$how, and more to come");

    $c->complete($work, '{"content":[]}');
    $leave{$how}->($_) for splice @s, 0, 2;

    # the others get what they were sent, then the end
    for my $s (@s) {
        my $stream = MCPClient::Stream->new($s);
        my ($last, $n) = ({}, 0);

        while (my $event = $stream->event(30)) {
            $last = $event;
            $n++;
        }

        is($last->{json}{status}, 'completed', "$how: the others see the end");
        ok($stream->{whole}, 'which is the end of the stream');
        cmp_ok($n, '<=', 4, 'and no backlog');
    }

    come(0, "$how: all are over");
    drop($held);
}

# --- HTTP/2

{
    my $held = task('h2');
    my $base = "/mcp/tasks/$held->{id}";
    my %ann = ('x-user' => 'ann');
    my $h2 = MCPHttp2->new($h2port);

    my $poll = $h2->get("$base/poll?version=$held->{version}", %ann);
    my $stream = $h2->get("$base/events", %ann);
    my $owner = $h2->get('/mcp/tasks/events', %ann);
    ok($h2->until(sub { $h2->text($stream) =~ /data: / }), 'h2: a state');
    ok($h2->until(sub { $h2->text($owner) =~ /data: / }), 'h2: all tasks');
    is($h2->status($stream), 200, 'h2: a stream');
    come(3, 'h2: streams of a connection');

    event($pids[2 % @pids], $held, PROGRESS);
    ok($h2->until(sub { $h2->over($poll) }), 'h2: a poll is answered');
    is($h2->status($poll), 200, 'h2: with the task');
    my $id = $held->{version} + 1;
    ok($h2->until(sub { $h2->text($stream) =~ /^id: $id$/m }),
       'h2: an event');
    ok($h2->until(sub { 2 <= (() = $h2->text($owner) =~ /^data: /mg) }),
       'h2: one of all tasks');
    come(2, 'h2: the streams wait on');

    # one stream is reset, the other one goes on
    $h2->reset($stream);
    come(1, 'h2: one is reset');
    my $again = $h2->get("$base/events", %ann, 'last-event-id' => $id);
    come(2, 'h2: and comes back');
    ok($h2->until(sub { $h2->text($again) =~ /retry: / }), 'h2: from there');
    unlike($h2->text($again), qr/data:/, 'h2: nothing new');
    event($pids[0], $held, PROGRESS);
    $id++;
    ok($h2->until(sub { $h2->text($again) =~ /^id: $id$/m }),
       'h2: then an event');

    # before the first byte
    $h2->reset($h2->get("$base/events", %ann)) for 1 .. 20;
    $h2->reset($h2->get("$base/poll?version=9999", %ann)) for 1 .. 20;
    come(2, 'h2: reset before it began');

    # many on one connection
    my @many = map { $h2->get("$base/poll?version=$id", %ann) } 1 .. 60;
    come(62, 'h2: many polls');
    $h2->reset($_) for splice @many, 0, 30;
    come(32, 'h2: half of them are reset');
    event($pids[1], $held, PROGRESS);
    $id++;
    ok($h2->until(sub { 30 == grep { $h2->over($_) } @many }),
       'h2: the others are answered');
    is(scalar(grep { $h2->text($_) =~ /"version":$id\}/ } @many), 30,
       'h2: all of them');
    come(2, 'h2: two wait on');

    # the connection goes
    @many = map { $h2->get("$base/poll?version=9999", %ann) } 1 .. 30;
    come(32, 'h2: some more');
    $h2->close();
    come(0, 'h2: the connection goes');

    # a small window: what is sent has to wait
    my $work = { taskId => $held->{id}, lease => $held->{lease} };
    $h2 = MCPHttp2->new($h2port, window => 40);
    my @slow = map { $h2->get("$base/events", %ann) } 1 .. 4;
    ok($h2->until(sub { 4 == grep { length $h2->text($_) == 40 } @slow }),
       'h2: windows are full');
    event($pids[$_ % @pids], $held, PROGRESS) for 1 .. 50;
    come(4, 'h2: they wait');
    $h2->reset($slow[0]);
    come(3, 'h2: one that is busy is reset');
    event($pids[2 % @pids], $held, PROGRESS);
    $h2->reset($slow[1]);
    come(2, 'h2: another one');

    my $end = event($pids[0], $held, COMPLETE, '{}')->{version};
    $h2->grow($_, 1_000_000) for @slow[2, 3];
    ok($h2->until(sub { $h2->over($slow[2]) && $h2->over($slow[3]) }),
       'h2: with larger windows it goes on');

    for my $n (@slow[2, 3]) {
        my @ids = $h2->text($n) =~ /^id: (\d+)$/mg;
        is($ids[-1], $end, 'h2: up to the end');
        cmp_ok(scalar @ids, '<=', 3, 'h2: without a backlog');
    }

    come(0, 'h2: all are over');
    is($h2->get("$base/events", %ann, 'last-event-id' => $end) && 1, 1,
       'h2: back again');
    my $last = $h2->{next} - 2;
    ok($h2->until(sub { $h2->over($last) }), 'h2: an answer');
    is($h2->status($last), 204, 'h2: nothing more to come');
    $last = $h2->get('/mcp/tasks/x/poll', %ann);
    $h2->grow($last, 1000);
    ok($h2->until(sub { $h2->over($last) }), 'h2: an answer');
    is($h2->status($last), 404, 'h2: no such task');
    $h2->close();
    drop($held);
}

# --- all processes go, with everything that waits

{
    my $held = task('reload');
    my %ann = ('x-user' => 'ann');
    my $base = "tasks/$held->{id}";
    my $n = 40;

    my @polls = map { $ann->stream($ann->rest_bytes("$base/poll?version=9999"))
                    } 1 .. $n;
    my @streams = map { $ann->follow($_) }
                  ("$base/events", 'tasks/events') x ($n / 2);
    my $h2 = MCPHttp2->new($h2port);
    my @h2 = map { $h2->get("/mcp/$base/$_", %ann) }
             ('poll?version=9999', 'events') x 5;

    # who does not read cannot be told
    my $id = $ann->create('slow');
    my $work = $c->claim('slow');
    $c->held('progress', $work, message => 'x' x 500_000);
    my $stuck = $t->connect_narrow();
    MCPTasks::send_raw($stuck, $ann->rest_bytes("tasks/$id/events"));
    my $full = MCPHttp2->new($h2port, window => 10);
    my $blocked = $full->get("/mcp/$base/events", %ann);

    come(2 * $n + 12, 'everything');
    ok($full->until(sub { length $full->text($blocked) == 10 }),
       'h2: a window is full');

    my $start = time();
    $t->reload();

    # nginx leaves it to clients of HTTP/2 to close, for some seconds
    ok($h2->until(sub { $h2->{goaway} && 10 == grep { $h2->over($_) } @h2 }),
       'a reload: h2: all are answered');
    ok($full->until(sub { $full->{goaway} && $full->cut($blocked) }),
       'h2: but who does not take it is cut');
    $_->close() for $h2, $full;

    ok((wait_for { my %now = map { $_ => 1 } $t->worker_pids();
                   !grep { $now{$_} } @pids }), 'the processes go');
    cmp_ok(time() - $start, '<', 2, 'at once');

    is(scalar(grep { $_->head() =~ m{\AHTTP/1\.1 204 } } @polls), $n,
       'polls are answered');

    my $retry = 0;

    for my $stream (@streams) {
        my $last;

        while (my $event = $stream->event(5)) {
            $last = $event;
        }

        $retry++ if $stream->{whole} && ($last->{retry} || 1000) < 1000;
    }

    is($retry, $n, 'streams are told to come back');
    is(scalar(grep { $h2->status($_) == 204 } @h2), 5, 'h2: polls');
    is(scalar(grep { $h2->text($_) =~ /retry: \d{2,3}\n\n\z/ } @h2), 5,
       'h2: streams');

    $conn = $t->connect_all() or BAIL_OUT('processes cannot be reached');
    @pids = sort keys %$conn;
    come(0, 'after a reload');
}

is(at($_, 'op=check')->{check}, 'ok', 'a process finds the table in order')
    for @pids;
is(at($pids[0], 'op=stats')->{recoveries}, 0, 'nothing had to be recovered');
ok($t->stop(), 'nginx stops');
is($t->faults(), '', 'nothing in the log that should not be');

done_testing();
