# Streams of events for browsers: of a task, and of all tasks of an owner.

use warnings;
use strict;

use FindBin;
use lib "$FindBin::Bin/lib";

use Test::More;
use Time::HiRes qw/ sleep time /;

use MCPClient;
use MCPTasks qw/ wait_for workers /;

my $t = MCPTasks->new(
    workers => workers(),
    tools => ['slow'],
    http => 'mcp_tasks_zone zone=z:16m; mcp_tasks_tools tools.json;',
    surfaces => [qw/ mcp worker probe /],
    server => <<'END');
    mcp_tasks_owner $http_x_user;
    location /lively { mcp_tasks zone=z; mcp_tasks_keepalive 200ms; }
END

my $c = MCPClient->new($t);
my $ann = $c->as(headers => { 'X-User' => 'ann' });
my $bob = $c->as(headers => { 'X-User' => 'bob' });

use constant COMPLETE => 3;

# events that never come are waited for as long
use constant NEVER => 0.4;


sub waiting {
    return $t->probe('op=waits')->{zone};
}


# how long to wait before coming back, which every stream begins with
sub begins {
    my ($stream, $name) = @_;
    my $first = $stream->event();
    is_deeply($first, { retry => 1000 }, "$name: begins with retry");
}


# the stream is over, in an orderly way, and nothing came before that
sub ends {
    my ($stream, $name) = @_;
    my $event = $stream->event();
    ok(!$event && $stream->{whole}, "$name: ends")
        or diag(explain($event));
}


sub silent {
    my ($stream, $name) = @_;
    my $event = $stream->event(NEVER);
    ok(!$event && !$stream->{over}, $name) or diag(explain($event));
}


sub form {
    my ($message) = @_;
    return { method => 'elicitation/create',
             params => { mode => 'form', message => $message,
                         requestedSchema => { type => 'object',
                                              properties => {} } } };
}


# --- a task, from its beginning to its end

my $id = $c->create('slow');
my @seen;

{
    my $stream = $c->follow("tasks/$id/events");

    like($stream->head(), qr{\AHTTP/1\.1 200 }, 'a stream');
    like($stream->head(), qr{^Content-Type: text/event-stream\r?$}m,
         'of events');
    like($stream->head(), qr{^Cache-Control: no-store\r?$}m,
         'not to be kept');
    like($stream->head(), qr{^X-Accel-Buffering: no\r?$}m,
         'nor to be collected');
    begins($stream, 'a task');

    my $state = $stream->event();
    push @seen, $state;
    is($state->{json}{taskId}, $id, 'its state comes at once');
    is($state->{id}, $state->{json}{version}, 'by its version');
    is($state->{data}, $c->rest("tasks/$id/poll")->{body},
       'and is what a poll tells');
    ok(!exists $state->{event}, 'as a plain message');
    silent($stream, 'then nothing, as long as nothing happens');
    ok((wait_for { waiting() == 1 }), 'it waits');

    my $work = $c->claim('slow');

    for my $n (1 .. 5) {
        $c->held('progress', $work, progress => $n / 10, message => "at\n$n");
        my $event = $stream->next_event();

        # that it was claimed is a change, too
        $event = $stream->next_event() unless exists $event->{json}{progress};

        is($event->{json}{progress}, $n / 10, "progress $n");
        is($event->{json}{statusMessage}, "at\n$n", 'and its message');
        cmp_ok($event->{id}, '>', $seen[-1]{id}, 'a later version');
        push @seen, $event;
    }

    $c->held('ask', $work, inputRequests => { q => form('why?') });
    my $asked = $stream->next_event();
    is($asked->{json}{inputRequests}{q}{params}{message}, 'why?',
       'a question');
    push @seen, $asked;

    $c->modern('tasks/update', { taskId => $id, inputResponses => {
        q => { action => 'decline' } } });
    my $back = $stream->next_event();
    is($back->{json}{status}, 'working', 'it was answered');
    push @seen, $back;

    # bytes as the worker sent them: lines are told from each other
    $c->complete($work, "{\"content\":[\n{\"type\":\r\n\"text\",\r"
                        . '"text":"end"}]}');
    my $end = $stream->next_event();
    is($end->{json}{status}, 'completed', 'the end');
    is($end->{json}{result}{content}[0]{text}, 'end', 'with its result');
    push @seen, $end;

    ends($stream, 'after that it');
    is_deeply([map { $_->{id} } @seen],
              [sort { $a <=> $b } map { $_->{id} } @seen],
              'ids in order');
    ok((wait_for { waiting() == 0 }), 'nobody waits');
}

# --- coming back

{
    my $last = $seen[-1];

    # the last of these nobody can have seen
    for my $known (undef, '', 'x', '-5', $seen[0]{id}, $seen[-2]{id},
                   $last->{id} + 1000)
    {
        my $name = 'back with ' . (defined $known ? "'$known'" : 'no id');
        my $stream = $c->follow("tasks/$id/events", $known);
        begins($stream, $name);
        my $event = $stream->next_event();
        is($event->{data}, $last->{data}, "$name: the state");
        is($event->{id}, $last->{id}, "$name: by its version");
        ends($stream, $name);
    }

    my $res = $c->rest("tasks/$id/events", headers => {
        'Last-Event-ID' => $last->{id} });
    is($res->{status}, 204, 'back with the last: nothing more to come');
    is($res->{body}, '', 'and nothing is told');

    my $made = $c->create('slow');
    my $work = $c->claim('slow');
    my $now = $c->rest("tasks/$made/poll")->{json}{version};

    my $stream = $c->follow("tasks/$made/events", $now);
    begins($stream, 'nothing new');
    silent($stream, 'what is known is not told again');
    $c->held('progress', $work, progress => 0.1);
    my $event = $stream->next_event();
    is($event->{json}{progress}, 0.1, 'what is new, is');
    $stream->close();

    # what happens while nobody listens is told as it is in the end
    $c->held('progress', $work, progress => $_ / 10) for 2 .. 5;
    $stream = $c->follow("tasks/$made/events", $event->{id});
    begins($stream, 'back again');
    is($stream->next_event()->{json}{progress}, 0.5, 'the latest');
    silent($stream, 'and only that');

    $c->legacy('tasks/cancel', { taskId => $made });
    is($stream->next_event()->{json}{status}, 'cancelled', 'cancelled');
    ends($stream, 'a cancelled task');

    is($c->rest("tasks/$made/events", headers =>
       { 'Last-Event-ID' => [1, 2] })->{status}, 200,
       'several ids are none');
}

# --- who may not, and what is not there

{
    my $made = $t->probe('op=create&owner=ann&tool=t&params={}');
    my $unknown = $ann->rest('tasks/00000000-0000-4000-8000-000000000000'
                             . '/events');
    is($unknown->{status}, 404, 'an unknown task');
    is($unknown->{body}, '{"title":"Not Found","status":404,'
                         . '"reason":"task_not_found"}', 'says so');

    for (['foreign', $bob, $made->{id}], ['of nobody', $c, $made->{id}],
         ['no id', $ann, 'x'], ['expired', $ann,
          $t->probe('op=create&owner=ann&tool=t&params={}&ttl=1')->{id}])
    {
        my ($name, $who, $key) = @$_;
        wait_for { $who->rest("tasks/$key/poll?timeout=0")->{status} == 404 };

        for my $known (undef, 1, 1000) {
            my $res = $who->rest("tasks/$key/events", headers => {
                'Last-Event-ID' => $known });
            is($res->{head} =~ s/^Date:.*?\r\n//mr . $res->{body},
               $unknown->{head} =~ s/^Date:.*?\r\n//mr . $unknown->{body},
               "$name: the same bytes");
        }
    }

    my $stream = $ann->follow("tasks/$made->{id}/events");
    begins($stream, 'to be deleted');
    $stream->next_event();
    $t->probe("op=delete&id=$made->{id}");
    ends($stream, 'a task that is deleted');

    $made = $t->probe('op=create&owner=ann&tool=t&params={}&ttl=1500');
    $stream = $ann->follow("tasks/$made->{id}/events");
    begins($stream, 'to expire');
    $stream->next_event();
    ends($stream, 'a task that expires');
}

# --- what keeps a connection alive

{
    my $lively = $ann->as(uri => '/lively');
    my $made = $t->probe('op=create&owner=ann&tool=t&params={}');

    for my $path ("tasks/$made->{id}/events", 'tasks/events') {
        my $stream = $lively->follow($path);
        begins($stream, $path);
        my $events = 0;

        for (1 .. 100) {
            my $event = $stream->event();
            last if exists $event->{comment};
            $events++;
        }

        is($events, 1, "$path: the state");

        for my $n (1 .. 3) {
            is_deeply($stream->event(), { comment => '' }, "comment $n");
        }

        $stream->close();
    }

    my $stream = $ann->follow("tasks/$made->{id}/events");
    begins($stream, 'elsewhere');
    $stream->next_event();
    silent($stream, 'not so often elsewhere');
    $stream->close();
    $t->probe("op=delete&id=$made->{id}");
}

# over HTTP/1.0 the end of the connection is the end of the stream
{
    my $made = $t->probe('op=create&owner=ann&tool=old&params={}');
    my $held = $t->probe('op=claim&tool=old');
    my $s = $t->connect();
    MCPTasks::send_raw($s, $ann->rest_bytes("tasks/$made->{id}/events",
        headers => { version => 'HTTP/1.0' }));
    ok(IO::Select->new($s)->can_read(30), 'over HTTP/1.0: the first state');
    $t->probe("op=event&id=$made->{id}&lease=$held->{lease}&result=%7B%7D&event="
              . COMPLETE);
    my $res = MCPTasks::read_response($s);
    is(() = $res->{body} =~ /^data: .*"status":"(?:working|completed)"/mg, 2,
       'over HTTP/1.0: both states');
    $t->probe("op=delete&id=$made->{id}");
}

# --- all tasks of an owner

{
    my $res = $c->rest('tasks/events');
    is($res->{status}, 403, 'not for who has no name');
    is($res->{header}{'content-type'}, 'application/problem+json',
       'a problem');
    is($res->{body}, '{"title":"Forbidden","status":403,'
                     . '"reason":"owner_required"}', 'says so');
}

# %state: what the events said of each task, in the end
sub take {
    my ($stream, $n, $state) = @_;
    my @events;

    while (@events < $n) {
        my $event = $stream->next_event();
        last unless $event->{json};
        push @events, $event;
        $state->{$event->{json}{taskId}} = $event->{json} if $state;
    }

    is(scalar @events, $n, "$n events");
    return @events;
}


my $event_id = qr/\A[0-9a-f]{8}-(\d+)\z/;

{
    my $empty = $ann->follow('tasks/events');
    begins($empty, 'an owner without tasks');
    silent($empty, 'then nothing');

    my $foreign = $bob->follow('tasks/events');
    begins($foreign, 'another owner');

    my $first = $ann->create('slow');
    my $event = $empty->next_event();
    is($event->{json}{taskId}, $first, 'the first task is told of');
    like($event->{id}, $event_id, 'by its change');
    ok(!exists $event->{json}{result}, 'in short');
    is($event->{json}{tool}, 'slow', 'with its tool');

    my $work = $c->claim('slow');
    $c->held('progress', $work, progress => 0.5, message => 'half');
    $event = $empty->next_event();
    $event = $empty->next_event() unless exists $event->{json}{progress};
    is($event->{json}{progress}, 0.5, 'progress');
    is($event->{json}{statusMessage}, 'half', 'and its message');

    my $second = $ann->create('slow');
    is($empty->next_event()->{json}{taskId}, $second, 'the second task');

    $c->complete($work, '{"content":[]}');
    $event = $empty->next_event();
    is("$event->{json}{taskId} $event->{json}{status}", "$first completed",
       'the end of the first one');
    ok(!exists $event->{json}{result}, 'where its result is not told');
    silent($empty, 'and nothing else: it goes on');

    silent($foreign, 'others hear nothing of it');
    $foreign->close();

    # a second stream: as they are, the oldest change first
    my $late = $ann->follow('tasks/events');
    begins($late, 'a late one');
    my @events = take($late, 2);
    is_deeply([map { $_->{json}{taskId} } @events], [$second, $first],
              'the oldest change first');
    is($events[1]{id}, $event->{id}, 'by the same ids');
    silent($late, 'each once');

    # both are told
    $work = $c->claim('slow');
    my $id = 0;

    for my $stream ($empty, $late) {
        $event = $stream->next_event();
        is($event->{json}{taskId}, $second, 'a change is told to both');
        $id ||= $event->{id};
        is($event->{id}, $id, 'by the same id');
    }

    $c->complete($work, '{"content":[]}');
    $empty->close();
    $late->close();
    $t->probe("op=delete&id=$_") for $first, $second;
}

# resuming: exactly what has changed since

my $life;

{
    my @ids = map { $t->probe('op=create&owner=eve&tool=r&params={}')->{id} }
              1 .. 100;
    my %held = map { $_->{id} => $_ }
               map { $t->probe('op=claim&tool=r') } @ids;
    my $eve = $c->as(headers => { 'X-User' => 'eve' });

    my $stream = $eve->follow('tasks/events');
    begins($stream, 'many tasks');
    my @events = take($stream, 100);
    is_deeply([map { $_->{json}{taskId} } @events], \@ids,
              'many tasks: all of them, in order');
    silent($stream, 'each once');
    $stream->close();

    for my $n (0, 1, 50, 98, 99) {
        $stream = $eve->follow('tasks/events', $events[$n]{id});
        begins($stream, "resumed after $n");
        is_deeply([map { $_->{json}{taskId} } take($stream, 99 - $n)],
                  [@ids[$n + 1 .. 99]], 'what was missed');
        silent($stream, 'nothing else');
        $stream->close();
    }

    # some of them change, one of these twice, and one goes
    for my $n (10, 70, 20, 10) {
        $t->probe("op=event&id=$ids[$n]&lease=$held{$ids[$n]}{lease}&event=1");
    }

    my %done = map { $_ => 1 } 10, 70, 20;

    for my $n (sort { $a <=> $b } keys %done) {
        my $got = $t->probe("op=event&id=$ids[$n]&result=%7B%7D&event=" . COMPLETE
                            . "&lease=$held{$ids[$n]}{lease}");
        is($got->{reason}, 'ok', "task $n completes");
    }

    $t->probe("op=delete&id=$ids[50]");

    $stream = $eve->follow('tasks/events', $events[99]{id});
    begins($stream, 'resumed after changes');
    my @now = take($stream, 3);
    is_deeply([map { $_->{json}{taskId} } @now], [@ids[10, 20, 70]],
              'each that changed, once, in the order of changes');
    is(scalar(grep { $_->{json}{status} eq 'completed' } @now), 3,
       'as it is now');
    silent($stream, 'and no other');
    $stream->close();

    # the life of the zone in which an id was given
    ($life) = $events[99]{id} =~ /^([0-9a-f]+)/;
    my ($change) = $events[99]{id} =~ $event_id;
    my $other = sprintf('%08x', hex($life) ^ 1);

    for my $id ("$other-$change", $change, "-$change", "$life-", "$life-x",
                "${life}0-$change", "$life-" . '9' x 30, 'x', "$life")
    {
        $stream = $eve->follow('tasks/events', $id);
        begins($stream, "an id that is not ours ($id)");
        take($stream, 99);
        $stream->close();
    }

    $stream = $eve->follow('tasks/events', "$life-999999999");
    begins($stream, 'an id of the future');
    silent($stream, 'has all');
    $stream->close();
}

# --- each change of a busy owner: nothing is lost, nothing comes twice

{
    my $zoe = $c->as(headers => { 'X-User' => 'zoe' });
    my @streams = map { $zoe->follow('tasks/events') } 1 .. 4;
    begins($_, 'a busy owner') for @streams;

    my %final;

    for my $round (1 .. 50) {
        my $made = $t->probe('op=create&owner=zoe&tool=busy&params={}');
        my $held = $t->probe('op=claim&tool=busy');
        $t->probe("op=event&id=$made->{id}&lease=$held->{lease}&result=%7B%7D"
                  . '&event=' . COMPLETE);
        $final{$made->{id}} = 'completed';
    }

    for my $stream (@streams) {
        my (%state, %ids, $last);
        my ($twice, $back) = (0, 0);

        # several changes of a task may come as one
        while (grep { ($state{$_} || '') ne 'completed' } keys %final) {
            my $event = $stream->next_event();
            last unless $event->{json};

            my ($change) = $event->{id} =~ $event_id;
            $back++ if defined $last && $change <= $last;
            $twice++ if $ids{$event->{id}}++;
            $last = $change;
            $state{$event->{json}{taskId}} = $event->{json}{status};
        }

        is_deeply(\%state, \%final, 'a busy owner: all that happened');
        is($twice, 0, 'no event came twice');
        is($back, 0, 'nor before an earlier one');
        $stream->close();
    }
}

# --- the processes are exchanged

{
    my $made = $t->probe('op=create&owner=kim&tool=t&params={}');
    my $kim = $c->as(headers => { 'X-User' => 'kim' });
    my @streams = map { $kim->follow($_) }
                  ("tasks/$made->{id}/events", 'tasks/events') x 5;
    my @last;

    for my $stream (@streams) {
        begins($stream, 'before a reload');
        push @last, $stream->next_event()->{id};
    }

    my %old = map { $_ => 1 } $t->worker_pids();
    my $start = time();
    $t->reload();

    for my $stream (@streams) {
        my $event = $stream->event();
        like($event->{retry}, qr/^\d{2,3}$/, 'come back soon');
        is_deeply([keys %$event], ['retry'], 'and nothing else');
        ends($stream, 'a reload: a stream');
    }

    ok((wait_for { !grep { $old{$_} } $t->worker_pids() }),
       'the old processes go');
    cmp_ok(time() - $start, '<', 2, 'at once');

    # where they were, they go on
    my $held = $t->probe('op=claim&tool=t');

    for my $n (0, 1) {
        my $stream = $kim->follow($n ? 'tasks/events'
                                     : "tasks/$made->{id}/events", $last[$n]);
        begins($stream, 'after a reload');
        is($stream->next_event()->{json}{taskId}, $made->{id},
           'what was missed comes');
        silent($stream, 'only that');
        $stream->close();
    }
}

# --- another life of the zone

is($t->probe('op=check')->{check}, 'ok', 'the table is in order');

{
    my $kim = $c->as(headers => { 'X-User' => 'kim' });
    my $stream = $kim->follow('tasks/events');
    begins($stream, 'before a restart');
    my $last = $stream->next_event()->{id};
    my $start = time();
    ok($t->stop(), 'nginx stops');
    cmp_ok(time() - $start, '<', 2, 'at once');
    like($stream->event()->{retry}, qr/^\d+$/, 'come back soon');
    ends($stream, 'a restart: a stream');

    ok($t->start(), 'nginx starts');
    my $made = $t->probe('op=create&owner=kim&tool=t&params={}');
    $stream = $kim->follow('tasks/events', $last);
    begins($stream, 'after a restart');
    my $event = $stream->next_event();
    is($event->{json}{taskId}, $made->{id}, 'from the beginning');
    unlike($event->{id}, qr/^$life-/, 'in another life');
    $stream->close();
    ok($t->stop(), 'nginx stops');
}

is($t->faults(), '', 'nothing in the log that should not be');

done_testing();
