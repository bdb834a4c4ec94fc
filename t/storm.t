# Reloads and deaths of worker processes while clients of all kinds wait:
# everybody is answered, comes back, and misses no end of a task.

use warnings;
use strict;

use FindBin;
use lib "$FindBin::Bin/lib";

use IO::Handle;
use JSON::PP;
use POSIX ();
use Test::More;
use Time::HiRes qw/ sleep time /;

use MCPClient;
use MCPFile qw/ slurp write_file /;
use MCPTasks qw/ wait_for workers /;

# with a socket of its own for each worker, connections go to all of them
my $t = MCPTasks->new(
    workers => workers(), listen => 'reuseport',
    tools => ['slow', 'work'],
    http => 'mcp_tasks_zone zone=z:16m; mcp_tasks_tools tools.json;',
    surfaces => [qw/ mcp worker probe /],
    server => 'mcp_tasks_lease 3s; mcp_tasks_retries 9 backoff=100ms;');

my $c = MCPClient->new($t);

use constant SOON => 10;


sub replaced {
    my ($pid) = @_;
    return wait_for {
        my @pids = $t->worker_pids();
        @pids == workers() && !grep { $_ == $pid } @pids;
    };
}


# --- a process dies, with streams on all of them: the others go on

# Streams of all kinds on the process that a connection leads to; each says
# by itself what the latest message is that it knows.
sub open_streams {
    my ($session, $id, $pid) = @_;

    return (
        { kind => 'events', pid => $pid, stream => $c->stream(
              $c->get_bytes("/tasks/$id/events"), $t->connect_to($pid)) },
        { kind => 'listen', pid => $pid, stream => $c->stream(
              $c->modern_bytes('subscriptions/listen',
                               { notifications => { taskIds => [$id] } }),
              $t->connect_to($pid)) },
        { kind => 'session', pid => $pid, stream => $session->get_stream(
              $t->connect_to($pid)) },
    );
}


# whether all of them come to know that message
sub all_know {
    my ($message, @all) = @_;
    my @late;

    for my $one (@all) {
        my $end = time() + SOON;
        my $known = '';

        while ($known ne $message && time() < $end) {
            my $got = $one->{stream}->message($end - time()) or last;
            my $task = $got->{params} || $got;
            $known = $task->{statusMessage} if defined $task->{statusMessage};
        }

        push @late, "$one->{kind} of $one->{pid} knows $known"
            if $known ne $message;
    }

    diag(join "\n", @late) if @late;
    return !@late;
}


for my $round (1 .. 4) {
    my $locked = $round > 2;

    # those who come after a reload are others, in other places
    if ($round == 2) {
        my %old = map { $_ => 1 } $t->worker_pids();
        $t->reload();
        ok((wait_for { !grep { $old{$_} } $t->worker_pids() }), 'a reload');
    }

    my $name = ($locked ? 'holding the lock' : 'at any time') . ", $round";
    my $conn = $t->connect_all() or BAIL_OUT('workers cannot be reached');
    my @pids = sort keys %$conn;
    my $dies = $pids[$round % @pids];

    # of a session one stream speaks, so each process has its own session
    my (@all, @sessions, %work);

    for my $pid (@pids) {
        my $session = $c->in_session();
        my $id = $session->legacy('tools/call', { name => 'slow', task => {} })
                 ->{json}{result}{task}{taskId};
        $work{$pid} = $c->claim('slow', leaseMs => 600000);
        push @all, map { +{ %$_, session => $session } }
                   map { open_streams($session, $id, $_) } $pid;
    }

    my $say = sub {
        my ($message, $streams) = @_;
        $c->held('progress', $work{$_}, message => $message) for @pids;
        return all_know($message, @$streams);
    };

    ok($say->("before $round", \@all), "$name: all are told");

    if ($locked) {
        $t->probe('op=die&at=change_half', $conn->{$dies});
        my $via = $c->as(via => $conn->{$dies});
        my $got = eval { $via->held('progress', $work{$dies},
                                    message => 'half') };
        ok(!$got || $got->{error}, "$name: it dies in the middle of a change");
    } else {
        ok(kill('KILL', $dies), "$name: it is killed");
    }

    # at once, while the process is missing
    my @others = grep { $_->{pid} != $dies } @all;
    ok($say->("without $round", \@others), "$name: the others go on");
    ok(replaced($dies), "$name: there is another process");
    ok($say->("after $round", \@others), "$name: and after that");

    # those of the dead see that it is over, and learn the truth elsewhere
    my $cut = 0;

    for my $one (grep { $_->{pid} == $dies } @all) {
        1 while $one->{stream}->event(SOON);
        $cut++ if $one->{stream}{over};
    }

    is($cut, 3, "$name: the streams of the dead are cut");

    my $session = (grep { $_->{pid} == $dies } @all)[0]{session};
    my @new = open_streams($session, $work{$dies}{taskId},
                           ($t->worker_pids())[-1]);
    is(($new[0]{stream}->event(SOON) || {})->{retry}, 1000, "$name: back");
    $c->held('progress', $work{$_}, message => "at last $round") for @pids;
    ok(all_know("at last $round", @others, @new),
       "$name: newcomers and all others are told");

    $c->complete($work{$_}, '{}') for @pids;
    is($t->probe('op=check')->{check}, 'ok', "$name: the table is in order");
    $_->{stream}->close() for @all, @new;
}


# --- clients of all kinds, while nginx is reloaded and processes die

my $files = "$t->{dir}/storm";
mkdir $files or die "$files: $!\n";


sub touch {
    my ($name) = @_;
    write_file("$files/$name", '');
}


sub over {
    return -e "$files/stop";
}


# connections may break while processes are killed, never by a reload
sub may_break {
    return -e "$files/killing";
}


# what a client notes: one line for each thing that happened
my $notes;

sub noted {
    my ($what) = @_;
    print $notes "$what\n";
}


sub bad {
    my ($what) = @_;
    noted(may_break() ? "broken $what" : 'BAD ' . substr($what, 0, 300));
    return;
}


# a request, as often as it takes; the answer to it has to be one of ours
sub insist {
    my ($who, @args) = @_;

    for (1 .. 200) {
        my $res = eval { $who->legacy(@args) }
                  || { status => 0, body => "no connection: $@" };
        return $res->{json} if $res->{status} == 200 && $res->{json};
        bad("$args[0]: $res->{status} $res->{body}");
        return if over();
        sleep(0.05);
    }

    return;
}


# a new task in one of the eras: its id
sub create {
    my ($who, $era, %arguments) = @_;

    for (1 .. 200) {
        my %params = (name => 'work', arguments => \%arguments);
        my $res = eval { $era eq 'modern'
                         ? $who->modern('tools/call', \%params)
                         : $who->legacy('tools/call', { %params, task => {} })
                       } || { status => 0, body => "no connection: $@" };
        my $result = $res->{json} && $res->{json}{result};
        my $id = $result && ($result->{taskId} || $result->{task}{taskId});
        return $id if $id;
        bad("tools/call: $res->{status} $res->{body}");
        return if over();
        sleep(0.05);
    }

    return;
}


# Does the work, and says in the result which it was; until all clients have
# ended.
sub worker {
    while (!-e "$files/end") {
        my $res = eval { $c->say_bytes(MCPClient::bytes('/worker',
                      MCPClient::rpc('worker/claim', { tools => ['work'],
                                                       waitMs => 3000 }))) }
                  || { status => 0, body => "no connection: $@" };

        if ($res->{status} != 200 || !$res->{json}{result}) {
            bad("claim: $res->{status} $res->{body}");
            sleep(0.05);
            next;
        }

        my $work = $res->{json}{result}{tasks}[0] or next;
        my $n = $work->{arguments}{n};

        my $held = sub {
            my ($what, %params) = @_;

            for (1 .. 100) {
                my $got = eval { $c->held($what, $work, %params) }
                          || { error => { message => "no connection: $@" } };
                my $code = $got->{error} && $got->{error}{code};
                return $got if !$got->{error} || ($code || 0) == -31011;

                # the first time it may have been taken
                return $got if $code && $what eq 'ask';
                bad("$what: $got->{error}{message}");
                sleep(0.05);
            }
        };

        if ($work->{arguments}{ask}) {
            $held->('ask', inputRequests => { q => MCPClient::form("$n?") });

            for (1 .. 100) {
                my $got = $held->('answers', waitMs => 3000);
                last if !$got || $got->{error} || $got->{inputResponses}{q}
                        || -e "$files/end";
            }
        }

        $held->('progress', message => "m$_") for 1, 2;
        sleep(rand 0.05);
        $held->('complete', result => { n => $n });
        noted("worked $n");
    }
}


sub answer_questions {
    my ($who, $got) = @_;
    return unless defined $got->{id} && ($got->{method} || '') =~ /^elicit/;

    for (1 .. 100) {
        my $res = eval { $who->post({ jsonrpc => '2.0', id => $got->{id},
                                      result => { action => 'accept' } }) }
                  || { status => 0, body => "no connection: $@" };
        return 1 if $res->{status} == 202;
        bad("answer: $res->{status} $res->{body}");
        sleep(0.05);
    }

    return 1;
}


# how each kind of client gets to the end of a task

my %kinds = (

    plain => sub {
        my ($n) = @_;
        my $got = insist($c, 'tools/call', { name => 'work',
                                             arguments => { n => $n } })
                  or return;

        while (($got->{error}{code} || 0) == -31012) {
            my $id = $got->{error}{data}{taskId};
            $got = insist($c, 'tasks/result', { taskId => $id }) or return;
        }

        return $got->{result}{n};
    },

    result => sub {
        my ($n) = @_;
        my $id = create($c, 'legacy', n => $n, ask => 1) or return;
        my $who;

        for (1 .. 200) {
            my $stream = eval {
                $who ||= $c->in_session();
                $c->stream($who->legacy_bytes('tasks/result',
                                              { taskId => $id }));
            } or next;
            my $head = $stream->head(60);
            my ($got, $retry);

            if (my ($len) = $head =~ /^content-length: (\d+)/mi) {
                1 while length $stream->{raw} < $len && $stream->more(60);
                $got = MCPClient::decode($stream->{raw});
            } else {
                while (my $event = $stream->event(60)) {
                    $retry ||= defined $event->{retry};
                    next unless $event->{json};
                    $got = $event->{json};
                    last unless answer_questions($c, $got);
                    undef $got;
                }
            }

            if (!$got && $retry) {
                # a reload: the stream asks to come back
                noted('came-back');
            } elsif (!$got) {
                bad("tasks/result: no answer, $head");
            } elsif ($got->{result}) {
                return $got->{result}{n};
            } elsif (($got->{error}{code} || 0) != -31012) {
                bad('tasks/result: ' . MCPClient::encode($got));
            } else {
                noted('came-back');
            }

            $stream->close();
            return if over();
        }
    },

    poll => sub {
        my ($n) = @_;
        my $id = create($c, 'legacy', n => $n) or return;
        my $version = 0;

        for (1 .. 500) {
            my $res = $t->request('GET', "/mcp/tasks/$id/poll?timeout=5000&"
                                         . "version=$version", {})
                      || { status => 0, body => 'no answer' };

            if ($res->{status} == 204) {
                noted('came-back');
            } elsif ($res->{status} != 200) {
                bad("poll: $res->{status} $res->{body}");
            } else {
                ($version) = $res->{header}{etag} =~ /"(\d+)"/;
                my $task = MCPClient::decode($res->{body});
                return $task->{result}{n} if $task->{status} eq 'completed';
            }

            return if over();
        }
    },

    events => sub {
        my ($n) = @_;
        my $id = create($c, 'legacy', n => $n) or return;
        my $last;

        for (1 .. 200) {
            my $stream = eval { $c->stream($c->get_bytes("/tasks/$id/events",
                defined $last ? ('Last-Event-ID' => $last) : ())) } or next;
            my $final;

            while (my $event = $stream->event(60)) {
                $final = $event;
                $last = $event->{id} if defined $event->{id};
                next unless $event->{json};
                return $event->{json}{result}{n}
                    if $event->{json}{status} eq 'completed';
            }

            if ($stream->{cut} || !$stream->{whole} || !$final
                || !$final->{retry} || keys %$final > 1)
            {
                bad('events: an end without retry');
            } else {
                noted('came-back');
            }

            $stream->close();
            return if over();
        }
    },

    listen => sub {
        my ($n) = @_;
        my $id = create($c, 'modern', n => $n) or return;

        for (1 .. 200) {
            my $stream = eval { $c->stream($c->modern_bytes(
                'subscriptions/listen', { notifications =>
                                          { taskIds => [$id] } })) } or next;
            my $final;

            while (my $got = $stream->message(60)) {
                $final = $got;
                my $p = $got->{params} or next;
                return $p->{result}{n} if ($p->{status} || '') eq 'completed';
            }

            if ($stream->{cut} || !$stream->{whole} || !$final
                || ($final->{result}{resultType} || '') ne 'complete')
            {
                bad('listen: an end without an answer');
            } else {
                noted('came-back');
            }

            $stream->close();
            return if over();
        }
    },
);


# one stream for all tasks of the session, which is opened again and again
sub session_client {
    my ($kind) = @_;
    my $session = $c->in_session();
    my ($stream, $last, $final, %open, %ended);
    my ($n, $look) = (0, 0);

    while (!over() || %open) {
        if (!over() && keys %open < 3) {
            my $name = "$kind-" . ++$n;
            my $id = create($session, 'legacy', n => $name,
                            $n % 3 ? () : (ask => 1));
            $open{$id} = $name if $id;
        }

        if (!$stream) {
            $stream = eval { $session->get_stream(undef,
                defined $last ? ('Last-Event-ID' => $last) : ()) };
            bad("session: $@") unless $stream;
            $final = undef;
            next unless $stream;
        }

        while (my $event = $stream->event(%open && keys %open < 3 ? 0.05
                                                                  : 0.5))
        {
            $final = $event;
            $last = $event->{id} if defined $event->{id};
            my $got = $event->{json} or next;
            next if answer_questions($session, $got);
            my $p = $got->{params};
            next unless ($p->{status} || '') eq 'completed';

            noted('done') if delete $open{$p->{taskId}};
        }

        if ($stream->{over} || $stream->{whole}) {
            if ($stream->{cut} || !$stream->{whole} || !$final
                || !$final->{retry})
            {
                bad('session: an end without retry');
            } else {
                noted('came-back');
            }

            $stream->close();
            undef $stream;
        }

        # An end may take long, since a claim can die with its process: then
        # the lease has to lapse.  But who was not told of it at the next look
        # will not be.
        if (over() && %open && time() > $look) {
            $look = time() + 2;
            my @untold = grep { $ended{$_} } keys %open;

            if (@untold) {
                print $notes 'BAD session: nobody told of '
                             . scalar(@untold) . " tasks that have ended\n";
                last;
            }

            for my $id (keys %open) {
                my $got = insist($session, 'tasks/get', { taskId => $id });
                $ended{$id} = 1 if $got && $got->{result}
                                   && $got->{result}{status} eq 'completed';
            }
        }
    }
}


sub run_client {
    my ($kind, $number) = @_;
    my $file = "$files/$kind-$number";

    my $pid = fork();
    die "fork: $!\n" unless defined $pid;
    return $pid if $pid;

    open($notes, '>', $file) or POSIX::_exit(1);
    $notes->autoflush(1);
    srand($$);

    my $ok = eval {
        if ($kind eq 'worker') {
            worker();
        } elsif ($kind eq 'session') {
            session_client("$kind-$number");
        } else {
            for (my $n = 1; !over(); $n++) {
                my $name = "$kind-$number-$n";
                my $got = $kinds{$kind}->($name);
                next if over() && !defined $got;
                defined $got && $got eq $name
                    ? noted('done')
                    : bad("$name: the result is "
                          . (defined $got ? $got : 'missing'));
            }
        }

        1;
    };

    print $notes "BAD died: $@" unless $ok;
    close($notes);
    POSIX::_exit(0);
}


my @clients = map { run_client($_, 1), run_client($_, 2) }
              sort(keys %kinds), 'session';
my @workers = map { run_client('worker', $_) } 1 .. 3;


# what all have noted: how often by kind of note, and what was bad
sub notes {
    my (%count, @bad);

    for my $path (glob "$files/*-*") {
        my ($kind) = $path =~ m{/(\w+)-\d+\z} or next;

        for (split /\n/, slurp($path)) {
            push @bad, "$kind: $_" if /^BAD/;
            $count{$kind}{(split / /)[0]}++;
        }
    }

    return (\%count, \@bad);
}

ok((wait_for {
    my ($count) = notes();
    !grep { !$count->{$_}{done} } keys %kinds, 'session';
} 20), 'all kinds of clients are at work');

# Besides, some who wait for what does not happen: a reload is all that makes
# an end of it.  Each is a connection, and how its answer has to look.

my $idle = $c->in_session();
my $idle_id = $idle->legacy('tools/call', { name => 'slow', task => {} })
              ->{json}{result}{task}{taskId};
my $idle_work = $c->claim('slow', leaseMs => 600000);
$c->held('ask', $idle_work, inputRequests => { q => MCPClient::form() });

# it is asked once, and neither the task nor its version changes after that
my $asked = $c->stream($idle->legacy_bytes('tasks/result',
                                           { taskId => $idle_id }));
$asked->message(SOON);
my ($version) = ($t->request('GET', "/mcp/tasks/$idle_id/poll?timeout=0", {})
                 ->{header}{etag} || '') =~ /"(\d+)"/;

my $drained = qr/"drain":true\}\}\z/;
my $retry = qr/\n\nretry: \d+\n\n\z/;
my $not_ready = qr/"error":\{"code":-31012,/;

my %idle = (
    'a plain call' => [$c->legacy_bytes('tools/call', { name => 'slow' }), 200,
                       $not_ready],
    'tasks/result' => [$c->legacy_bytes('tasks/result',
                                        { taskId => $idle_id }), 200,
                       $not_ready],
    'a claim' => [MCPClient::bytes('/worker', MCPClient::rpc('worker/claim',
                      { tools => ['nix'], waitMs => 60000 })), 200, $drained],
    'answers' => [MCPClient::bytes('/worker', MCPClient::rpc('worker/answers',
                      { taskId => $idle_id, lease => $idle_work->{lease},
                        waitMs => 60000 })), 200, $drained],
    'a long-poll' => [$c->get_bytes("/tasks/$idle_id/poll?timeout=60000&"
                                    . "version=$version"), 204, qr/\A\z/],
    'events' => [$c->get_bytes("/tasks/$idle_id/events"), 200, $retry],
    'a session' => [$idle->get_bytes(), 200, $retry],
    'listen' => [$c->modern_bytes('subscriptions/listen',
                     { notifications => { taskIds => [$idle_id] } }), 200,
                 qr/\n\ndata: \{"jsonrpc":"2\.0","id":1,"result":.*\n\n\z/],
);


my ($late, $ill) = (0, 0);

for my $n (1 .. 12) {
    my %waiting = map {
        my $s = $t->connect();
        MCPTasks::send_raw($s, $idle{$_}[0]);
        ($_ => $s);
    } keys %idle;

    # time to arrive; who comes later finds a new process
    sleep(0.3);

    my %old = map { $_ => 1 } $t->worker_pids();
    $t->reload();

    wait_for {
        workers() == grep { !$old{$_} } $t->worker_pids();
    };

    my $start = time();
    my $gone = wait_for { !grep { $old{$_} } $t->worker_pids() } 20;

    if (!$gone || time() - $start > 2) {
        $late++;
        diag(sprintf 'reload %d: the old processes left after %.1f s', $n,
             time() - $start);
        last;
    }

    for my $name (sort keys %idle) {
        my (undef, $status, $body) = @{ $idle{$name} };
        my $res = MCPTasks::read_response($waiting{$name})
                  || { status => 0, body => 'none' };
        next if $res->{status} == $status && $res->{body} =~ $body;
        $ill++;
        diag("$name is answered: $res->{status} $res->{body}");
    }
}

is($late, 0, 'twelve reloads: the old processes leave at once');

is($ill, 0, 'and all who wait for nothing are answered');

my ($count, $bad) = notes();
is(scalar @$bad, 0, 'nothing went wrong for any client')
    or diag(join "\n", @$bad > 12 ? @$bad[0 .. 11] : @$bad);

for my $kind (sort(keys %kinds), 'session') {
    cmp_ok($count->{$kind}{done} || 0, '>', 8, "tasks have ended: $kind");
}

# tasks are short here, and who waits for them may be lucky
my $back = 0;
$back += $_->{'came-back'} || 0 for values %$count;
cmp_ok($back, '>', 8, 'clients came back');

# from now on connections may break, too
touch('killing');

for my $n (1 .. 8) {
    my @pids = $t->worker_pids();
    my $dies = $pids[$n % @pids];
    kill('KILL', $dies);
    replaced($dies);
    sleep(0.2);
}

my ($before) = notes();
my $goes_on = wait_for {
    my ($now) = notes();
    !grep { $now->{$_}{done} < $before->{$_}{done} + 3 } keys %kinds,
                                                         'session';
} 20;
ok($goes_on, 'processes die: all kinds of clients go on');

unlink "$files/killing" or die "killing: $!\n";

my %alive = map { $_ => 1 } @clients;
touch('stop');

ok((wait_for {
    for my $pid (keys %alive) {
        delete $alive{$pid} if waitpid($pid, POSIX::WNOHANG()) == $pid;
    }
    !%alive;
} 30), 'all clients end');
kill('KILL', keys %alive);

touch('end');
waitpid($_, 0) for @workers;

(undef, $bad) = notes();
is(scalar @$bad, 0, 'and nothing went wrong')
    or diag(join "\n", @$bad > 12 ? @$bad[0 .. 11] : @$bad);

is($t->probe('op=check')->{check}, 'ok', 'the table is in order');
ok($t->stop(), 'nginx stops');
is($t->faults('exited on signal 9|was locked by'), '',
   'nothing bad in the log');

done_testing();
