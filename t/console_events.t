# The console's stream: what changes, in whichever process, paced, resumed, and
# begun anew where too much was missed.

use warnings;
use strict;

use FindBin;
use lib "$FindBin::Bin/lib";

use Socket qw/ SOL_SOCKET SO_RCVBUF /;
use Test::More;
use Time::HiRes qw/ sleep time /;

use MCPClient;
use MCPHttp2;
use MCPRest qw/ problem /;
use MCPStatus;
use MCPTasks qw/ free_port wait_for workers /;

my $h2port = free_port();
my $t = MCPTasks->new(
    workers => workers(), listen => 'reuseport sndbuf=16k',
    http => 'mcp_tasks_zone zone=z:32m; mcp_tasks_zone zone=two:1m;',
    surfaces => [qw/ mcp worker status probe /],
    server => <<"END");
    listen 127.0.0.1:$h2port http2;
    mcp_tasks_owner \$http_x_user;
    location /console/ { mcp_tasks_console zone=z; }
    location /lively/ { mcp_tasks_console zone=z; mcp_tasks_keepalive 200ms; }
    location /full/ {
        mcp_tasks_console zone=two;
        mcp_tasks_max_waiters 100 zone=1;
    }
END

my $c = MCPClient->new($t);
my $ann = $c->as(headers => { 'X-User' => 'ann' });
my $bob = $c->as(headers => { 'X-User' => 'bob' });
my $console = $c->as(uri => '/console');
my $status = MCPStatus->new($t);

# events that never come are waited for as long
use constant NEVER => 0.6;


# many tasks, or changes of one, quickly
sub many {
    my ($n, $args) = @_;
    my $s;

    for (1 .. $n) {
        $s = $t->connect() if $_ % 500 == 1;
        $t->probe($args, $s) or die "no answer\n";
    }
}


# a stream that has begun: the first id comes without an event
sub follow {
    my ($query, $last, $who, $s) = @_;
    my $of = $who || $console;
    my $stream = $of->stream($of->rest_bytes("api/events$query", headers =>
                                 { Accept => 'text/event-stream',
                                   'Last-Event-ID' => $last }), $s);
    is_deeply($stream->event(), { retry => 1000 }, "events$query: it begins");
    return $stream;
}


sub fresh {
    my ($query, $who, $s) = @_;
    my $stream = follow($query, undef, $who, $s);
    my $first = $stream->event();
    is_deeply([keys %$first], ['id'], 'with a place to resume from');
    $stream->{last} = $first->{id};
    return $stream;
}


sub silent {
    my ($stream, $name) = @_;
    my $event = $stream->next_event(NEVER);
    is_deeply($event, {}, $name);
}


# reads until the code is true for a row; all rows that came
sub until_row {
    my ($stream, $code, $seconds) = @_;
    my $end = time() + ($seconds || 30);
    my @rows;

    while (time() < $end) {
        my $event = $stream->next_event($end - time());
        last unless defined $event->{data};
        push @rows, $event;
        last if $code->($event->{json});
    }

    return @rows;
}


# --- what a stream is

{
    my $stream = fresh('');
    my $head = $stream->head();
    like($head, qr{^HTTP/1\.1 200 }, 'a stream');
    like($head, qr{^Content-Type: text/event-stream\r$}m, 'of events');
    like($head, qr{^Cache-Control: no-store\r$}m, 'that is not kept');
    like($head, qr{^X-Accel-Buffering: no\r?$}m, 'by nobody');
    like($head, qr{^X-Content-Type-Options: nosniff\r$}m, 'for our own page');
    unlike($head, qr{^Access-Control}mi, 'alone');

    my $id = $ann->create_rest('dig');
    my $event = $stream->next_event();
    is($event->{json}{taskId}, $id, 'a new task is told');
    is($event->{json}{owner}, 'ann', 'whosever it is');
    ok(!exists $event->{event}, 'as a message');
    like($event->{id}, qr/^[0-9a-f]{8}-\d+$/, 'with its change');

    my $row = $console->rest('api/tasks?tool=dig')->{json}{tasks}[0];
    $event->{json}{expiresAt} = $row->{expiresAt} =~ s/\.\d+Z//r
        if substr($event->{json}{expiresAt}, 0, 18)
           eq substr($row->{expiresAt}, 0, 18);
    $row->{expiresAt} =~ s/\.\d+Z//;
    is_deeply($event->{json}, $row, 'as the list has it');

    silent($stream, 'nothing else comes');
    is($status->json()->{streams}, 1, 'it counts as a stream');
    is($status->json()->{waitingRequests}, 1, 'and as one who waits');
    is($t->probe('op=waits')->{zone}, 1, 'for the limits, too');
    $stream->close();
    ok(wait_for { $t->probe('op=waits')->{zone} == 0 }, 'until it is closed');
    is($status->json()->{streams}, 0, 'then it does not');
}


# --- from process to process

{
    my $conn = $t->connect_all() or BAIL_OUT('processes cannot be reached');
    my @pids = sort keys %$conn;
    my $listener = $t->connect_to($pids[0]);
    my $stream = fresh('', undef, $listener);

    for my $pid (@pids) {
        my $id = $ann->as(via => $conn->{$pid})->create_rest('dig');
        is($stream->next_event()->{json}{taskId}, $id, 'of whichever process');
    }

    my %other = map { my $s = $t->connect_to($_);
                      ($_ => fresh('', undef, $s)) } @pids[1 .. $#pids];
    my $id = $bob->as(via => $conn->{ $pids[0] })->create_rest('dig');
    is($other{$_}->next_event()->{json}{taskId}, $id, 'to all of them')
        for sort keys %other;
    is($stream->next_event()->{json}{taskId}, $id, 'the same');
}


# --- filters

{
    my %stream = map { $_ => fresh($_) }
        '?tool=a', '?owner=bob', '?owner=', '?status=running', '?minAge=1000',
        '?tool=a&owner=ann&maxAge=1000';

    my $one = $ann->create_rest('a');
    my $two = $bob->create_rest('b');
    my $three = $c->create_rest('b');

    is($stream{'?tool=a'}->next_event()->{json}{taskId}, $one, 'of a tool');
    is($stream{'?owner=bob'}->next_event()->{json}{taskId}, $two,
       'of an owner');
    is($stream{'?owner='}->next_event()->{json}{taskId}, $three, 'of nobody');
    is($stream{'?tool=a&owner=ann&maxAge=1000'}->next_event()->{json}
           {taskId}, $one, 'of both');

    my $work = $c->claim('a');
    is($stream{'?status=running'}->next_event()->{json}{taskId}, $one,
       'running');
    is($stream{'?tool=a'}->next_event()->{json}{phase}, 'running',
       'what it does');
    silent($stream{$_}, "nothing else: $_") for '?minAge=1000', '?owner=bob';

    problem($console->rest("api/events?$_"), 400, 'invalid_argument',
            $_ =~ /status/ ? ',"detail":"status must be queued, running, '
                             . 'working, input_required, completed, failed '
                             . 'or cancelled"'
                           : ',"detail":"minAge and maxAge must be integers, '
                             . 'in seconds, not negative"', $_)
        for 'status=x', 'maxAge=x';
}


# --- bursts are merged

{
    my $task = $t->probe('op=create&owner=o&tool=busy&params={}');
    my $work = $c->claim('busy');
    my $stream = fresh('?tool=busy');
    my $before = $status->json()->{signals};
    my $began = time();
    my $s = $t->connect();

    for my $n (1 .. 200) {
        $c->as(via => $s)->held('progress', $work, progress => $n,
                                   total => 200);
    }

    my $took = time() - $began;
    my $signals = $status->json()->{signals} - $before;
    my @rows = until_row($stream, sub { ($_[0]{progress} // 0) == 200 });
    is($rows[-1]{json}{progress}, 200, 'the last state is told');
    cmp_ok(scalar @rows, '<=', 3 + ($took + 0.5) * 4,
           sprintf '200 changes in %.2f s are %d events', $took,
                   scalar @rows);
    cmp_ok($signals, '<=', 3 + ($took + 0.5) * 4,
           "and $signals signals: between these nobody waits");
    is_deeply([map { $_->{json}{taskId} } @rows], [($task->{id}) x @rows],
              'of that task');
    silent($stream, 'and that was it');
}


# --- batches

{
    my $stream = fresh('?tool=batch');
    many(350, 'op=create&owner=o&tool=batch&params={}');
    my %seen;
    my $began = time();
    my @rows = until_row($stream, sub { $seen{ $_[0]{taskId} }++;
                                        keys %seen == 350 });
    is(scalar keys %seen, 350, 'all of them are told');
    is(scalar(grep { $_ > 1 } values %seen), 0, 'each once');
    my @ids = map { ($_->{id} =~ /-(\d+)$/)[0] } @rows;
    is_deeply(\@ids, [sort { $a <=> $b } @ids], 'in their order');

    # 100 at a time, so that it takes a while
    my $late = fresh('?tool=batch');
    $began = time();
    my $resumed = follow('?tool=batch', $late->{last} =~ s/-.*/-$ids[0]/r);
    my $n = () = until_row($resumed, sub { $_[0]{taskId}
                                           eq $rows[-1]{json}{taskId} });
    is($n, 349, 'again, from a change on');
    cmp_ok(time() - $began, '>', 0.6, 'in batches');
}


# --- far behind

{
    # it does not read meanwhile, and a batch is more than the buffers take
    my $stream = fresh('', undef, $t->connect_narrow());
    many(4000, 'op=create&owner=o&tool=flood&params={}');
    my ($reset, $rows) = (0, 0);

    # it goes on after that
    my $id;
    my $end = time() + 30;

    while (time() < $end) {
        my $event = $stream->next_event(2);

        if (($event->{event} // '') eq 'reset') {
            is($event->{data}, '{}', 'begin anew') unless $reset++;
            like($event->{id}, qr/^[0-9a-f]{8}-\d+$/, 'from there')
                if $reset == 1;
            next;
        }

        if (defined $event->{data}) {
            $rows++;
            last if defined $id && $event->{json}{taskId} eq $id;
            next;
        }

        last if defined $id;
        $id = $ann->create_rest('after');
    }

    cmp_ok($reset, '>', 0, 'too much was missed');
    cmp_ok($rows, '<', 4000, 'so it was not told');
    ok(defined $id && time() < $end, 'what comes then is');

    # one that comes back after so much
    my ($life) = $stream->{last} =~ /^([0-9a-f]+)-/;
    my $far = follow('', "$life-1");
    my $event = $far->next_event();
    is($event->{event}, 'reset', 'resuming from long ago');
    $id = $ann->create_rest('after');
    is($far->next_event()->{json}{taskId}, $id, 'goes on from now');

    for my $last ('00000000-5', 'x', '', '99999999999999999999', "$life-x",
                  "$life-", "$life-999999999")
    {
        my $other = follow('', $last);
        is($other->next_event()->{event}, 'reset', "Last-Event-ID '$last'");
    }
}


# --- cut and resumed: nothing is lost, nothing comes twice

{
    my $stream = fresh('?owner=cut');
    my $one = $t->probe('op=create&owner=cut&tool=t&params={}')->{id};
    my $event = $stream->next_event();
    is($event->{json}{taskId}, $one, 'a task');
    $stream->close();

    my @ids = map { $t->probe('op=create&owner=cut&tool=t&params={}')->{id} }
              1 .. 3;
    $stream = follow('?owner=cut', $event->{id});
    my @got = map { $stream->next_event()->{json}{taskId} } 1 .. 3;
    is_deeply(\@got, \@ids, 'those that came meanwhile');
    silent($stream, 'and no others');

    # nothing was told yet: the first id is enough
    $stream->close();
    $stream = fresh('?owner=cut2');
    my $last = $stream->{last};
    $stream->close();
    my $id = $t->probe('op=create&owner=cut2&tool=t&params={}')->{id};
    $stream = follow('?owner=cut2', $last);
    is($stream->next_event()->{json}{taskId}, $id, 'nor is the first one lost');

    # a reload ends streams in an orderly way
    my $old = join ' ', $t->worker_pids();
    $t->reload();
    my $end = $stream->event();
    ok($end->{retry} && $end->{retry} < 1000, 'a reload: come back soon');
    ok(!$stream->event() && $stream->{whole}, 'it ends');
    $id = $t->probe('op=create&owner=cut2&tool=t&params={}')->{id};
    ok(wait_for { join(' ', $t->worker_pids()) ne $old }, 'new processes');
    $stream = follow('?owner=cut2', $stream->{last});
    is($stream->next_event()->{json}{taskId}, $id, 'have what came meanwhile');
}


# --- somebody who does not read

{
    my $s = $t->connect();
    setsockopt($s, SOL_SOCKET, SO_RCVBUF, 16384);
    my $stream = fresh('?owner=slow', undef, $s);
    my $long = 'x' x 900;
    my $kept = $t->connect();

    # more than any buffer takes
    for my $n (1 .. 9) {
        my $of = $c->as(via => $kept, headers => { 'X-User' => 'slow' });
        $of->create_rest("$n$long") for 1 .. 50;
        sleep(0.26) if $n % 3 == 0;
    }

    is($status->json()->{streams}, 1, 'it is still there');
    my $id = $c->user('slow')->create_rest('last');
    my ($reset, $last, $n) = (0, 0, 0);
    my $end = time() + 30;

    while (!$last && time() < $end) {
        my $event = $stream->next_event(10);
        last unless defined $event->{data};
        $reset++ if ($event->{event} // '') eq 'reset';
        $n++;
        $last = ($event->{json}{taskId} // '') eq $id;
    }

    ok($last, "it is up to date when it reads: $n events, $reset resets");
    $stream->close();
}


# --- HTTP/2

{
    my $h2 = MCPHttp2->new($h2port, authority => "localhost:$h2port");
    my %own = (origin => "https://localhost:$h2port");

    my $page = $h2->get('/console/', %own);
    my $stream = $h2->get('/console/api/events?tool=h2', %own);
    my $foreign = $h2->get('/console/api/events',
                           origin => 'https://localhost');
    ok($h2->until(sub { $h2->over($page) }), 'h2: the page');
    is($h2->status($page), 200, 'h2: is there');
    like($h2->text($page), qr{</html>\s*\z}, 'h2: all of it');
    ok($h2->until(sub { $h2->text($stream) =~ /^id: /m }), 'h2: a stream');
    ok($h2->until(sub { $h2->over($foreign) }), 'h2: another port');
    like($h2->text($foreign), qr/origin_not_allowed/, 'h2: is another origin');

    my $id = $ann->create_rest('h2');
    ok($h2->until(sub { $h2->text($stream) =~ /^data: .*"$id"/m }),
       'h2: an event');
    $h2->reset($stream);
    ok(wait_for { $t->probe('op=waits')->{zone} == 0 }, 'h2: it is reset');
    $h2->close();
}


# --- signs of life, and no room

{
    # of a tool that has no tasks: others may change by themselves
    my $stream = fresh('?tool=quiet', $c->as(uri => '/lively'));
    my $event = $stream->event(10);
    ok(exists $event->{comment}, 'a comment, now and then');
    $event = $stream->event(10);
    ok(exists $event->{comment}, 'and again');
    $stream->close();

    my $full = $c->as(uri => '/full');
    my $first = fresh('', $full);
    problem($full->rest('api/events'), 429, 'limit_waiters', undef,
            'as many as there may be');
    $first->close();
    ok(wait_for { my $next = $full->stream($full->rest_bytes('api/events'));
                  $next->head() =~ / 200 / }, 'one that has gone makes room');
}

is($t->probe('op=check')->{check}, 'ok', 'the table is in order');
ok($t->stop(), 'nginx stops');
is($t->faults(), '', 'nothing in the log that should not be');

done_testing();
