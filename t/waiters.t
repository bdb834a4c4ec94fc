# How many may wait: limits of a task and of a zone, and who is counted.

use warnings;
use strict;

use FindBin;
use lib "$FindBin::Bin/lib";

use IO::Select;
use Test::More;
use Time::HiRes qw/ sleep time /;

use MCPClient qw/ answer /;
use MCPTasks qw/ wait_for workers /;

my $t = MCPTasks->new(
    workers => workers(), listen => 'reuseport',
    tools => ['slow'],
    http => 'mcp_tasks_zone zone=z:4m; mcp_tasks_zone zone=y:1m;'
            . ' mcp_tasks_tools tools.json;',
    surfaces => [qw/ mcp worker probe /],
    server => <<'END');
    mcp_tasks_owner $http_x_user;
    mcp_tasks_max_waiters 4 zone=20;
    location /roomy { mcp_tasks zone=z; mcp_tasks_max_waiters 5 zone=1000; }
    location /free { mcp_tasks zone=z; mcp_tasks_max_waiters 0 zone=0; }
    location /other { mcp_tasks zone=y; }
END

my $c = MCPClient->new($t);
my $ann = $c->as(headers => { 'X-User' => 'ann' });
my $roomy = $ann->as(uri => '/roomy');
my $free = $ann->as(uri => '/free');

use constant COMPLETE => 3;


sub task {
    return $t->probe('op=create&owner=ann&tool=t&params={}')->{id};
}


# of the zone, and of a task: "20 4"
sub count {
    my ($id) = @_;
    my $got = $t->probe('op=waits&owner=ann&id=' . ($id || ''))
              || { zone => '?', task => '?' };
    return $id ? "$got->{zone} $got->{task}" : $got->{zone};
}


# counts follow: what has gone is noticed a little later
sub comes_to {
    my ($what, $id, $name) = @_;
    my $got = wait_for { count($id) eq $what };
    ok($got, "$name: $what") or diag('is ' . count($id));
}


my %bytes = (
    poll => sub { $_[0]->rest_bytes("tasks/$_[1]/poll?version=9999"
                                       . '&timeout=60000') },
    events => sub { $_[0]->rest_bytes("tasks/$_[1]/events") },
    result => sub { $_[0]->legacy_bytes('tasks/result',
                                        { taskId => $_[1] }) },
    owner => sub { $_[0]->rest_bytes('tasks/events') },
);


sub start {
    my ($kind, $who, $id, $s) = @_;
    $s ||= $t->connect();
    MCPTasks::send_raw($s, $bytes{$kind}->($who, $id));
    return $s;
}


# several of them, all of which wait
sub park {
    my ($kind, $who, $id, $n) = @_;
    my $before = count();
    my @s = map { start($kind, $who, $id) } 1 .. $n;
    wait_for { count() == $before + $n }
        or fail("$n wait: $kind, " . count() . " instead of $before + $n");
    return @s;
}


sub refused {
    my ($kind, $who, $id, $name) = @_;
    my $res = answer(start($kind, $who, $id));

    if ($kind eq 'result') {
        is($res->{status}, 200, "$name, $kind: status");
        is($res->{json}{error}{code}, -31010, "$name, $kind: code");
        is($res->{json}{error}{data}{reason}, 'limit_waiters',
           "$name, $kind: reason");
        return;
    }

    is($res->{status}, 429, "$name, $kind: 429");
    like($res->{header}{'retry-after'}, qr/^[1-9]\d*$/,
         "$name, $kind: when to come back");
    is($res->{header}{'content-type'}, 'application/problem+json',
       "$name, $kind: a problem");
    is($res->{body}, '{"title":"Too Many Requests","status":429,'
                     . '"reason":"limit_waiters"}', "$name, $kind: reason");
}


# --- of a task

{
    my $id = task();
    my @s = map { park($_, $ann, $id, 1) } qw/ poll events result poll /;
    is(count($id), '4 4', 'four wait, each in its way');

    refused($_, $ann, $id, 'a fifth') for qw/ poll events result /;
    is(count($id), '4 4', 'who was refused is not counted');

    my $other = task();
    push @s, park('poll', $ann, $other, 1);
    is(count($other), '5 1', 'another task has its own');
    push @s, park('owner', $ann, undef, 1);
    is(count($id), '6 4', 'who follows all tasks waits for none of them');

    push @s, park('poll', $roomy, $id, 1);
    refused('poll', $roomy, $id, 'a sixth, where five may');

    # a look that needs no waiting, too, once the place is full
    is($ann->rest("tasks/$id/poll?version=9999&timeout=0")->{status}, 429,
       'nor may one look');

    # what is not theirs is not told, even if it is full
    my $bob = $c->as(headers => { 'X-User' => 'bob' });
    is($bob->rest("tasks/$id/poll")->{status}, 404, 'others learn nothing');

    # room for one
    close(shift @s);
    comes_to('6 4', $id, 'one has gone');
    refused('poll', $ann, $id, 'still full there');
    close(shift @s);
    comes_to('5 3', $id, 'two have gone');
    push @s, park('events', $ann, $id, 1);
    refused('poll', $ann, $id, 'full again');

    # the others are answered, and the connections stay
    my $held;

    for (1 .. 2) {
        $held = $t->probe('op=claim&tool=t');
        last if $held->{id} eq $id;
    }

    # a poll that knows version 9999 is answered by the end only
    $t->probe("op=event&id=$id&lease=$held->{lease}&result={}&event="
              . COMPLETE);
    comes_to('2 0', $id, 'all of a task are answered');

    close($_) for @s;
    comes_to('0 0', $id, 'everybody has gone');
}

# who is answered does not wait any longer, though the connection lives
{
    my $id = task();
    my @s = map { $t->connect() } 1 .. 4;

    for my $round (1 .. 3) {
        MCPTasks::send_raw($_, $ann->rest_bytes("tasks/$id/poll?timeout=300"
                                                . '&version=9999')) for @s;
        is(scalar(grep { answer($_)->{status} == 204 } @s), 4,
           "round $round: all wait until their time is up");
    }

    comes_to('0 0', $id, 'nobody waits');
    is(scalar(grep { $t->request('GET', '/probe?op=pid', {}, undef, $_) } @s),
       4, 'the connections are good');
    is($ann->rest("tasks/$id/poll?timeout=100&version=9999")->{status}, 204,
       'there is room');
}

# --- a task that goes while it is waited for leaves its place as it was

{
    my @ids = map { task() } 1 .. 3;
    my @s = map { park('poll', $ann, $_, 4) } @ids;

    $t->probe("op=delete&id=$_") for @ids;
    is(scalar(grep { answer($_)->{status} == 404 } @s), 12,
       'deleted: all are told');
    comes_to('0', undef, 'nobody waits');

    # the same slots, most likely
    @ids = map { task() } 1 .. 3;
    @s = map { park('events', $ann, $_, 4) } @ids;
    is(count($_), '12 4', 'new tasks may be waited for') for @ids;
    refused('poll', $ann, $ids[0], 'as many, and no more');
    close($_) for @s;
    comes_to('0 0', $ids[0], 'everybody has gone');
}

# --- of a zone

{
    my @ids = map { task() } 1 .. 5;
    my @s = map { park('events', $ann, $_, 3) } @ids;
    push @s, park('owner', $ann, undef, 4);
    push @s, park('result', $ann, $ids[0], 1);
    is(count($ids[0]), '20 4', 'a zone is full');

    refused($_, $ann, $ids[1], 'a zone is full')
        for qw/ poll events owner result /;
    is(count($ids[1]), '20 3', 'who was refused is not counted');

    # not where more may, nor in another zone
    push @s, park('poll', $roomy, $ids[1], 1);
    push @s, park('poll', $free, $ids[1], 50);
    is(count($ids[1]), '71 54', 'without a limit');
    my $other = $ann->as(uri => '/other')->follow('tasks/events');
    like($other->head(), qr/ 200 /, 'another zone has its own');
    $other->close();

    refused('owner', $ann, undef, 'still full');

    close($_) for splice @s, 0, 52;
    comes_to('19', undef, 'some have gone');
    push @s, park('owner', $ann, undef, 1);
    refused('poll', $ann, $ids[1], 'full again');
    close($_) for @s;
    comes_to('0', undef, 'everybody has gone');
}

# --- many come and go at once: the count is right in the end

{
    my @ids = map { task() } 1 .. 4;
    my @kinds = qw/ poll events result owner /;
    my %open;

    for my $n (1 .. 400) {
        my $s = start($kinds[rand @kinds], $free, $ids[rand @ids]);
        $open{$s} = $s;
        my ($one) = keys %open;
        close(delete $open{$one}) if $n > 60;
    }

    comes_to('60', undef, 'in the end');
    close($_) for values %open;
    comes_to('0', undef, 'everybody has gone');
    is(count($_), '0 0', 'of each task') for @ids;
}

# --- processes that die

sub serving {
    my ($s) = @_;
    my $got = $t->probe('op=pid', $s);
    return $got ? $got->{pid} : 0;
}


# what it was sent before it died, but for the end
sub drained {
    my ($s) = @_;
    my $buf;

    while (IO::Select->new($s)->can_read(0.1)) {
        last unless sysread($s, $buf, 65536);
    }

    return 1;
}


# waiters in each process: two for the task, one for all tasks
sub spread {
    my ($id) = @_;
    my (%in, %n);

    wait_for {
        for (1 .. 20) {
            my $s = $t->connect();
            my $pid = serving($s) or next;
            my $n = $n{$pid}++;
            next if $n > 2;
            start($n == 0 ? 'poll' : $n == 1 ? 'events' : 'owner', $free, $id,
                  $s);
            push @{ $in{$pid} }, $s;
        }

        3 * workers() == map { @$_ } values %in;
    } or fail('waiters in each process');

    return \%in;
}


for my $signal ('KILL', 'TERM') {
    my $id = task();
    my $in = spread($id);
    my ($n, $all) = (2 * workers(), 3 * workers());
    comes_to("$all $n", $id, 'waiters in each process');

    # one after the other: the counts are of those who live
    my @pids = sort keys %$in;
    my $killed = 0;

    for my $pid (@pids[0 .. 1]) {
        kill($signal, $pid);
        wait_for { my @now = $t->worker_pids();
                   @now == workers() && !grep { $_ == $pid } @now }
            or fail("another process in its place");
        $n -= 2;
        $all -= 3;
        comes_to("$all $n", $id, "$signal: the others count");
        is(scalar(grep { MCPTasks::fill($_) ? 0 : 1 }
                  grep { drained($_) }
                  @{ $in->{$pid} }), 3, 'who waited there is cut off');
        delete $in->{$pid};
    }

    # the others still wait: they are told of changes, and leave orderly
    my $held = $t->probe('op=claim&tool=t');
    $held = $t->probe('op=claim&tool=t')
        while $held->{id} && $held->{id} ne $id;
    $t->probe("op=event&id=$id&lease=$held->{lease}&result={}&event="
              . COMPLETE);

    for my $pid (keys %$in) {
        is(answer($in->{$pid}[0])->{status}, 200, "$signal: a poll elsewhere");
        my $stream = MCPClient::Stream->new($in->{$pid}[1]);
        my $last;

        while (my $event = $stream->event()) {
            $last = $event;
        }

        is($last->{json}{status}, 'completed', "$signal: a stream elsewhere");
        ok($stream->{whole}, 'which ends');
    }

    $all = @{ [values %$in] };
    comes_to("$all 0", $id, "$signal: those of the task are answered");
    close($_->[2]) for values %$in;
    comes_to('0 0', $id, "$signal: everybody has gone");

    # the limits still hold
    my $next = task();
    my @s = park('poll', $ann, $next, 4);
    refused('poll', $ann, $next, "$signal: afterwards");
    close($_) for @s;
    comes_to('0 0', $next, "$signal: and nobody is left");
}


# several at once
{
    my $id = task();
    my $in = spread($id);
    my ($n, $all) = (2 * workers(), 3 * workers());
    comes_to("$all $n", $id, 'waiters in each process');

    my @pids = sort keys %$in;
    my @dead = splice @pids, 0, @pids - 1;
    kill('KILL', @dead);
    comes_to('3 2', $id, 'all but one process are killed');
    is(answer($in->{$_}[0])->{status}, 0, 'cut off') for @dead;

    kill('KILL', @pids);
    comes_to('0 0', $id, 'that one, too');
}

# What a stream has asked, another one asks when the process of the first is
# killed.  The process that follows it need not be where that one was, since
# the reload left places free.
{
    my %old = map { $_ => 1 } $t->worker_pids();
    $t->reload();
    ok((wait_for { my @now = $t->worker_pids();
                   @now == workers() && !grep { $old{$_} } @now }),
       'a reload');

    for my $round (1 .. 2) {
        my $id = $c->create('slow');
        my $work = $c->claim('slow');
        my $able = $c->in_session();
        my $s = $t->connect();
        my $pid = serving($s);

        start('result', $able, $id, $s);
        $c->held('ask', $work, inputRequests => { q => {
            method => 'elicitation/create',
            params => { mode => 'form', message => "why $round?",
                        requestedSchema => { type => 'object',
                                             properties => {} } } } });

        my $stream = MCPClient::Stream->new($s);
        is($stream->message()->{params}{message}, "why $round?",
           'a stream asks');

        kill('KILL', $pid);
        wait_for { my @now = $t->worker_pids();
                   @now == workers() && !grep { $_ == $pid } @now }
            or fail('another process in its place');

        $stream = $c->stream($bytes{result}->($able, $id));
        my $asked = $stream->message(10);
        is($asked->{params}{message}, "why $round?",
           'its process is killed: the next one asks');

        $c->post({ jsonrpc => '2.0', id => "$id/q",
                   result => { action => 'decline' } });
        $c->complete($work, '{"content":[]}');
        ok($stream->message()->{result}, 'and gets the result');
    }

    comes_to('0', undef, 'everybody has gone');
}

# a reload, with waiters that have to go and others that come
{
    my $id = task();
    my @s = (park('poll', $free, $id, 10), park('events', $free, $id, 10),
             park('owner', $free, undef, 10));
    my %old = map { $_ => 1 } $t->worker_pids();
    is(count($id), '30 20', 'before a reload');
    $t->reload();
    ok((wait_for { !grep { $old{$_} } $t->worker_pids() }), 'a reload');
    comes_to('0 0', $id, 'those of the old processes do not count');
    my @new = park('poll', $ann, $id, 4);
    refused('poll', $ann, $id, 'new ones do');
    close($_) for @new, @s;
    comes_to('0 0', $id, 'everybody has gone');
}

is($t->probe('op=check')->{check}, 'ok', 'the table is in order');
is($t->probe('op=stats')->{recoveries}, 0, 'nothing had to be recovered');
ok($t->stop(), 'nginx stops');

# the master says so when a process is killed
is($t->faults('exited on signal 9'), '',
   'nothing in the log that should not be');

done_testing();
