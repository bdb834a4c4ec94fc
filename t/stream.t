# The stream of a session, in the legacy era: GET on the endpoint.

use warnings;
use strict;

use FindBin;
use lib "$FindBin::Bin/lib";

use JSON::PP;
use Test::More;

use MCPClient;
use MCPTasks qw/ wait_for workers /;

# with a socket of its own for each worker, connections go to all of them
my $t = MCPTasks->new(
    workers => workers(), listen => 'reuseport',
    tools => ['slow'],
    http => 'mcp_tasks_zone zone=z:8m; mcp_tasks_tools tools.json;',
    surfaces => [qw/ mcp worker probe /],
    server => <<'END');
    mcp_tasks_owner $http_x_user;
    mcp_tasks_retries 2 backoff=1ms;
    location /quick { mcp_tasks zone=z; mcp_tasks_keepalive 200ms; }
END

my $ann = MCPClient->new($t, headers => { 'X-User' => 'ann' });
my $bob = $ann->as(headers => { 'X-User' => 'bob' });

my $related = 'io.modelcontextprotocol/related-task';


# a task that is claimed: what its worker needs to know of it
sub task {
    my ($who, %params) = @_;
    return $ann->claim_id('slow', $who->create('slow', %params));
}


sub says {
    my ($work, $message, %params) = @_;
    my $got = $ann->held('progress', $work, message => $message, %params);
    diag("progress: " . MCPClient::encode($got)) unless $got->{phase};
}


# what the next message says of which task: one word for each
sub next_of {
    my ($stream, $seconds) = @_;
    my $got = $stream->message(defined $seconds ? $seconds : 8)
              or return 'nothing';
    return brief($got);
}


sub brief {
    my ($got) = @_;
    my $p = $got->{params} || {};
    return join ' ', $got->{method} || 'none',
                map { defined $_ ? $_ : '-' }
                $p->{taskId} || $p->{_meta}{$related}{taskId},
                defined $p->{status} ? ($p->{status}, $p->{statusMessage})
                                     : ($p->{progress}, $p->{message});
}


sub status {
    my ($work, $status, $message) = @_;
    return join ' ', 'notifications/tasks/status', $work->{taskId}, $status,
                     defined $message ? $message : '-';
}


sub progress {
    my ($work, $progress, $message) = @_;
    return join ' ', 'notifications/progress', $work->{taskId}, $progress,
                     defined $message ? $message : '-';
}


sub finish_session {
    my ($who) = @_;
    return $t->request('DELETE', '/mcp', $who->{headers})->{status};
}


# --- how it begins

my $c = $ann->in_session();

{
    my $stream = $c->stream($c->get_bytes());
    my $head = $stream->head();
    like($head, qr{\AHTTP/1\.1 200 }, 'a stream: status');
    like($head, qr{^content-type: text/event-stream\r?$}mi, 'its type');
    like($head, qr{^cache-control: no-store}mi, 'not to be stored');
    like($head, qr{^x-accel-buffering: no}mi, 'not to be buffered');
    my $first = $stream->event();
    is($first->{data}, '', 'an event without data');
    ok(length $first->{id}, 'but with an id');
    is_deeply($stream->event(), { retry => 1000 }, 'when to come back');
    $stream->close();
}

{
    my $none = '{"jsonrpc":"2.0","error":{"code":-32001,"message":'
               . '"Session not found"}}';
    my $ended = $ann->in_session();
    is(finish_session($ended), 204, 'a session ends');

    for my $case (['unknown', $ann, '0' x 48], ['no hexadecimal', $ann, 'x'],
                  ['empty', $ann, ''],
                  ['of somebody else', $bob, $c->{session}],
                  ['of nobody', $ann->as(headers => {}), $c->{session}],
                  ['ended', $ann, $ended->{session}])
    {
        my ($name, $who, $session) = @$case;

        for (1 .. 3) {
            my $res = $who->say_bytes($who->get_bytes('',
                          'Mcp-Session-Id' => $session));
            is($res->{status}, 404, "a session that is $name: status");
            is($res->{body}, $none, "a session that is $name: body");
        }
    }

    my $res = $ann->say_bytes($ann->get_bytes());
    is($res->{status}, 400, 'no session: status');
    is($res->{body}, '{"jsonrpc":"2.0","error":{"code":-32600,"message":'
                     . '"Invalid Request: the Mcp-Session-Id header is '
                     . 'missing"}}',
       'no session: body');

    $res = $c->say_bytes($c->get_bytes('',
               'MCP-Protocol-Version' => '2026-07-28'));
    is($res->{status}, 405, 'the modern era has no such stream');
    like($res->{header}{allow}, qr/\bPOST\b/, 'but something else');

    $res = $c->say_bytes($c->get_bytes('', 'Accept' => 'application/json'));
    is($res->{status}, 406, 'a client that cannot read streams');

    for my $accept (undef, '*/*', 'text/*', 'text/event-stream;q=0.9, x/y') {
        my $stream = $c->stream($c->get_bytes('', 'Accept' => $accept));
        like($stream->head(), qr/ 200 /, 'Accept: ' . ($accept || 'none'));
        $stream->close();
    }
}


# --- what it tells

{
    my $stream = $c->get_stream();
    my $work = task($c);

    says($work, 'begun');
    my $event = $stream->event();
    is_deeply([sort keys %$event], [qw/ data id json /], 'an event');
    my $message = $event->{json};
    is_deeply($message, { jsonrpc => '2.0',
                          method => 'notifications/tasks/status',
                          params => $c->get($work->{taskId}) },
              'the task as tasks/get shows it');
    is($message->{params}{statusMessage}, 'begun', 'with its message');

    # a claim changes nothing that clients see, nor does a heartbeat
    $ann->held('heartbeat', $work);
    says($work, 'begun', progress => 0.5);

    # each is read before the next is said: a slow reader gets the last only
    is(next_of($stream), status($work, 'working', 'begun'),
       'a message once more');
    $ann->legacy('tasks/update', { taskId => $work->{taskId},
                                   metadata => { a => 1 } });
    $ann->held('heartbeat', $work);
    says($work, 'more');
    is(next_of($stream), status($work, 'working', 'more'),
       'and nothing of what does not show');

    $ann->complete($work, '{"content":[]}');
    is_deeply($stream->message()->{params}, $c->get($work->{taskId}),
              'the end');
    is($c->get($work->{taskId})->{status}, 'completed', 'completed');

    my %ends = (
        failed => sub { $ann->held('fail', $_[0],
                                   error => { code => 1, message => 'x' }) },
        cancelled => sub { $c->legacy('tasks/cancel',
                                      { taskId => $_[0]{taskId} }) },
    );

    for my $end (sort keys %ends) {
        $work = task($c);
        $ends{$end}->($work);
        is(next_of($stream),
           status($work, $end, $end eq 'failed' ? 'x' : undef), $end);
    }

    $work = task($c);
    $ann->complete($work, '{"isError":true}');
    is(next_of($stream),
       status($work, 'failed', 'The tool returned an error'),
       'a tool that failed');

    # by time, without anybody's doing
    $work = task($c, task => { ttl => 600000 });
    $ann->held('heartbeat', $work, leaseMs => 1);
    $work = $ann->claim('slow');
    $ann->held('heartbeat', $work, leaseMs => 1);
    $work = $ann->claim('slow');
    $ann->held('heartbeat', $work, leaseMs => 1);
    is(next_of($stream),
       status($work, 'failed',
              'The lease expired, and the task is not tried again'),
       'a worker that was lost');

    # tasks of ours
    my $id = $c->legacy('tasks/create', { action => 'act' })
             ->{json}{result}{task}{taskId};
    my $act = $ann->claim('act');
    $ann->complete($act, '{}');
    is(next_of($stream), status({ taskId => $id }, 'completed'),
       'a task made by tasks/create');
    $stream->close();
}


# --- progress

for my $token ('p\u00f6', 7) {
    my $stream = $c->get_stream();
    my $sent = $token eq '7' ? $token : "\"$token\"";
    my $res = $c->legacy('tools/call', '{"name":"slow","task":{},"_meta":'
                                       . "{\"progressToken\":$sent}}");
    my $work = $ann->claim('slow', leaseMs => 60000);

    says($work, 'half', progress => 0.5);
    my $event = $stream->event();
    $sent = "\"p\xc3\xb6\"" if $token ne '7';
    like($event->{data}, qr/\A\{"jsonrpc":"2\.0","method":"notifications
         \/progress","params":\{"progressToken":(\Q$sent\E|"p\\u00f6"),
         "progress":0\.5,"message":"half","_meta":\{"\Q$related\E":
         \{"taskId":"\Q$work->{taskId}\E"\}\}\}\}\z/x,
         "progress for the token $token");
    ok($event->{id}, 'with an id');

    says($work, 'more', progress => 3, total => 4);
    is(next_of($stream), progress($work, 3, 'more'), 'with a total');

    # what is no more than before is not told; what is said without it, is
    says($work, 'still', progress => 3, total => 4);
    is(next_of($stream), status($work, 'working', 'still'),
       'a message without progress');
    $ann->held('progress', $work, progress => 4, total => 4);
    is(next_of($stream), progress($work, 4, 'still'),
       'progress without a message');

    # the next attempt begins from the start, and clients see no way back
    $ann->held('fail', $work, error => { code => 1, message => 'x' },
               retryable => JSON::PP::true);
    $work = $ann->claim('slow', leaseMs => 60000);
    is($work->{attempt}, 2, 'another attempt');
    $ann->held('progress', $work, progress => 0.2);
    $ann->held('progress', $work, progress => 5, total => 6);
    is(next_of($stream), progress($work, 5, 'still'), 'never backwards');

    $ann->complete($work, '{}');
    is(next_of($stream), status($work, 'completed', 'still'), 'the end');

    # of a plain call, progress goes to who called
    my $call = $c->stream($c->legacy_bytes('tools/call',
                   { name => 'slow', _meta => { progressToken => 'plain' } }));
    my $plain = $ann->claim('slow');
    $ann->held('progress', $plain, progress => 0.5);
    is($call->message()->{params}{progressToken}, 'plain',
       'a plain call has its own stream');
    $ann->complete($plain, '{}');
    $call->message();

    $work = task($c);
    $ann->complete($work, '{}');
    is(next_of($stream), status($work, 'completed'), 'and only there');
    $stream->close();
}


# --- whose tasks

{
    my $other = $ann->in_session();
    my ($mine, $theirs) = ($c->get_stream(), $other->get_stream());
    my @work = (task($c), task($other), task($ann), task($bob->in_session()));

    $ann->complete($_, '{}') for @work;

    # each of them is the first and the last that is told
    is(next_of($mine), status($work[0], 'completed'), 'of this session');
    is(next_of($theirs), status($work[1], 'completed'), 'of another one');

    my $last = task($c);
    $ann->complete($last, '{}');
    is(next_of($mine), status($last, 'completed'), 'nothing of others');
    $last = task($other);
    $ann->complete($last, '{}');
    is(next_of($theirs), status($last, 'completed'), 'nothing of others');
    $_->close() for $mine, $theirs;

    # an id means the same session, whichever way it is written
    my $upper = $c->as(headers => { %{ $c->{headers} },
                                    'Mcp-Session-Id' => uc $c->{session} });
    my $stream = $upper->get_stream();
    my $work = task($c);
    $ann->complete($work, '{}');
    is(next_of($stream, 5), status($work, 'completed'),
       'an id in upper case is the same session');
    $stream->close();
}


# --- the end of the session

for my $tasks (0, 1) {
    my $c = $ann->in_session();
    task($c) if $tasks;
    my @streams = map { $c->get_stream() } 1 .. 6;
    my $kept = $ann->in_session();
    my $other = $kept->get_stream();

    is(finish_session($c), 204, 'DELETE');
    is(scalar(grep { !defined $_->event(10) && $_->{whole} && !$_->{cut} }
              @streams), 6, 'ends all its streams, as streams end')
        or diag("with $tasks tasks");

    my $work = task($kept);
    $ann->complete($work, '{}');
    is(next_of($other), status($work, 'completed'), 'and no others');
    $_->close() for $other, @streams;
}


# --- ids, and coming back

{
    my $c = $ann->in_session();
    my $stream = $c->get_stream();
    my ($a, $b) = (task($c, _meta => { progressToken => 'a' }), task($c));
    my (@ids, @told);

    # each is read before the next is made: a stream that is late tells the
    # last state only
    for my $change (sub { says($a, 'a1') }, sub { says($b, 'b1') },
                    sub { $ann->held('progress', $a, progress => 0.1) },
                    sub { says($b, 'b2') }, sub { says($a, 'a2') },
                    sub { $ann->complete($b, '{}') })
    {
        $change->();
        my $event = $stream->event(10) || {};
        push @ids, $event->{id} || 'none';
        push @told, brief($event->{json} || {});
    }

    is_deeply(\@told, [status($a, 'working', 'a1'),
                       status($b, 'working', 'b1'), progress($a, 0.1, 'a1'),
                       status($b, 'working', 'b2'),
                       status($a, 'working', 'a2'),
                       status($b, 'completed', 'b2')], 'six changes');
    is(scalar(grep { /\A[0-9a-f]{8}-\d+\z/ } @ids), 6, 'their ids');

    my @numbers = map { /-(\d+)\z/ } @ids;
    is(scalar(grep { $numbers[$_ - 1] < $numbers[$_] } 1 .. $#numbers), 5,
       'go up') or diag("@ids");
    $stream->close();

    # after each of them: the latest state of what came after, and no more
    my ($a2, $b3) = (status($a, 'working', 'a2'),
                     status($b, 'completed', 'b2'));
    my @after = ([$a2, progress($a, 0.1, 'a2'), $b3],
                 [$a2, progress($a, 0.1, 'a2'), $b3], [$a2, $b3], [$a2, $b3],
                 [$b3], []);

    for my $i (0 .. 5) {
        my $again = $c->get_stream(undef, 'Last-Event-ID' => $ids[$i]);
        my @got;

        # something that is told last
        my $end = task($c);
        $ann->complete($end, '{}');

        while ((my $got = next_of($again)) ne status($end, 'completed')) {
            push @got, $got;
            last if $got eq 'nothing';
        }

        is_deeply([grep { /$a->{taskId}|$b->{taskId}/ } @got], $after[$i],
                  "after the id of change $i");
        is(scalar(@got), $i + @{ $after[$i] },
           'and what was told to who came before');
        $again->close();
    }
}

# what a client says it knows may be anything
{
    my $c = $ann->in_session();
    my $stream = $c->get_stream();
    my $work = task($c);
    says($work, 'one');
    my $id = $stream->event()->{id};
    $stream->close();

    my ($life) = $id =~ /\A(\w+)-/;
    my $other = $life =~ tr/0-9a-f/1-9a-f0/r;

    for my $last ("$other-1", 'x', '', $life, "$life-", "$life-x", '-1', '1',
                  "$life--1", "$life-99999999999999999999", 'x' x 5000)
    {
        my $again = $c->get_stream(undef, 'Last-Event-ID' => $last);
        says($work, 'for ' . substr($last, 0, 40));
        is(next_of($again), status($work, 'working',
                                   'for ' . substr($last, 0, 40)),
           'none of ours: as if there was none: ' . substr($last, 0, 40));
        $again->close();
    }

    for my $number ('0', '1') {
        my $again = $c->get_stream(undef, 'Last-Event-ID' => "$life-$number");
        isnt(next_of($again), 'nothing', "from the beginning: $number")
            if $number;
        $again->close();
    }

    # nobody can know what has not happened
    my $again = $c->get_stream(undef, 'Last-Event-ID' => "$life-9000000000000");
    says($work, 'later');
    is(next_of($again, 5), status($work, 'working', 'later'),
       'a change from the future does not hide those to come');
    $again->close();
}


# --- nobody listens

{
    my $c = $ann->in_session();
    my @work = map { task($c) } 1 .. 4;

    says($work[$_], "first $_") for 0 .. 3;
    says($work[$_], "second $_") for 2, 0;
    $ann->complete($work[1], '{}');

    my $stream = $c->get_stream();
    is_deeply([map { next_of($stream) } 1 .. 4],
              [status($work[3], 'working', 'first 3'),
               status($work[2], 'working', 'second 2'),
               status($work[0], 'working', 'second 0'),
               status($work[1], 'completed', 'first 1')],
              'the latest of each, in the order of change');
    $stream->close();

    # told once is told
    for my $round (1, 2) {
        my $again = $c->get_stream();
        says($work[3], "round $round");
        is(next_of($again), status($work[3], 'working', "round $round"),
           'nothing is told again');
        $again->close();
    }
}

# too far behind
{
    my $c = $ann->in_session();
    my $before = $t->probe('op=stats')->{changes_dropped};
    my @work = map { task($c) } 1 .. 300;
    says($work[$_], "n$_") for 0 .. 299;

    is($t->probe('op=stats')->{changes_dropped} - $before, 0,
       'nothing is lost while nobody asks');

    my $stream = $c->get_stream();
    my @told = map { next_of($stream) } 1 .. 256;
    is_deeply(\@told, [map { status($work[$_], 'working', "n$_") } 44 .. 299],
              'the newest 256, in order');
    is($t->probe('op=stats')->{changes_dropped} - $before, 44,
       'the others are counted');

    says($work[0], 'again');
    is(next_of($stream), status($work[0], 'working', 'again'),
       'what changes later is told');
    $stream->close();

    is($t->probe('op=stats')->{changes_dropped} - $before, 44, 'counted once');
    is($t->probe('op=check')->{check}, 'ok', 'the table is in order');

    # all at once are no trouble for who is there
    $stream = $c->get_stream();
    $ann->complete($_, '{}') for @work;
    is_deeply([map { next_of($stream) } 1 .. 300],
              [map { status($work[$_], 'completed',
                            $_ ? "n$_" : 'again') } 0 .. 299],
              'who listens misses nothing');
    $stream->close();
}


# --- several streams: the newest speaks

{
    my $conn = $t->connect_all() or BAIL_OUT('workers cannot be reached');
    my @pids = sort keys %$conn;

    for my $tasks (1, 0) {
        for my $round (1 .. 8) {
            my $c = $ann->in_session();
            task($c) if $tasks;
            my @streams = map {
                my $pid = $pids[($round + $_) % @pids];
                $c->get_stream($t->connect_to($pid));
            } 0 .. 3;
            my $work = task($c);
            my $bad = 0;

            while (@streams) {

                # An older one may be quicker until the newest has looked: after
                # the first task of the session, and after a stream has gone.
                $t->settle($conn);

                for my $n (1 .. 2) {
                    my $said = @streams . ", $n";
                    says($work, $said);
                    my ($s, $event) = MCPClient::Stream::any(\@streams, 10);
                    my $got = $s ? brief($event->{json}) : 'nothing';

                    if (!$s || $s != $streams[-1]
                        || $got ne status($work, 'working', $said))
                    {
                        my ($i) = grep { $s && $streams[$_] == $s }
                                  0 .. $#streams;
                        diag("$said: $got, by stream "
                             . (defined $i ? $i : 'none'));
                        $bad++;
                    }
                }

                # and once it is told, nobody else tells it
                $bad++, diag('told twice')
                    if MCPClient::Stream::any(\@streams,
                                              $round > 1 ? 0 : 0.1);

                (pop @streams)->close();
            }

            is($bad, 0, "the newest speaks, then another ($tasks, $round)")
                or last;
        }
    }

    # the process of the newest has not looked yet: another one speaks; not the
    # process that saves changes, for which all would have to wait
    my $writer = $t->probe('op=waits')->{writer};
    my ($late, $quick) = sort { ($a == $writer) <=> ($b == $writer) } @pids;
    my $c = $ann->as(via => $conn->{$quick})->in_session();
    my $older = $c->get_stream($t->connect_to($quick));
    my $newest = $c->get_stream($t->connect_to($late));
    $t->settle($conn);
    kill('STOP', $late);
    my $id = $c->create('slow');
    my $work = $c->claim_id('slow', $id);
    $c->held('progress', $work, message => 'one');
    is(next_of($older), status($work, 'working', 'one'),
       'the newest has not looked yet: an older one speaks');
    kill('CONT', $late);
    $t->settle($conn);
    $c->held('progress', $work, message => 'two');
    is(next_of($newest), status($work, 'working', 'two'),
       'once it has looked, the newest speaks');
    is(next_of($older, 0), 'nothing', 'and the older one is silent');
    $_->close() for $older, $newest;
}

# streams come and go: each change is told once, by one
{
    my $c = $ann->in_session();
    my $work = task($c);
    my $conn = $t->connect_all() or BAIL_OUT('workers cannot be reached');
    my (@streams, %told);
    my $lost = 0;
    srand(7);

    for my $n (1 .. 40) {
        if (@streams > 1 && rand() < 0.5) {
            (splice @streams, int rand @streams, 1)->close();

            # its process has to learn that, or it speaks to the dead
            $t->settle($conn);
        } else {
            push @streams, $c->get_stream();
        }

        says($work, "n$n");
        my ($s, $event) = MCPClient::Stream::any(\@streams, 10);
        $lost++ unless $s;
        $told{$event->{json}{params}{statusMessage}}++ if $s;
    }

    $told{$_->{json}{params}{statusMessage}}++
        while (undef, $_) = MCPClient::Stream::any(\@streams, 0.3);

    is($lost, 0, 'streams come and go: every change is told');
    is_deeply(\%told, { map { ("n$_" => 1) } 1 .. 40 }, 'and none twice');
    $_->close() for @streams;
}

# the silent ones are kept alive
{
    my $c = $ann->as(uri => '/quick')->in_session();
    task($c);
    my @streams = map { $c->get_stream() } 1 .. 2;
    my $comments = 0;

    for (1 .. 3) {
        $comments += defined(($_->event(10) || {})->{comment}) for @streams;
    }

    is($comments, 6, 'comments for who speaks and for who does not');
    $_->close() for @streams;
}


# --- a reader that takes its time misses states, but not the last

{
    my $c = $ann->in_session();
    my $stream = $c->get_stream();
    my @work = map { task($c) } 1 .. 20;

    for my $n (1 .. 60) {
        says($_, "$n " . 'x' x 900) for @work;
    }

    my %last;
    while (my $got = $stream->message(8)) {
        my $p = $got->{params};
        my ($n) = $p->{statusMessage} =~ /\A(\d+)/;
        fail('backwards') if $n <= ($last{$p->{taskId}} || 0);
        $last{$p->{taskId}} = $n;
        last if 20 == grep { $_ == 60 } values %last;
    }

    is_deeply(\%last, { map { $_->{taskId} => 60 } @work },
              'a slow reader learns how things are');
    $stream->close();
}


# --- a process dies

for my $round ('at first', 'after a reload') {
    if ($round eq 'after a reload') {
        my %old = map { $_ => 1 } $t->worker_pids();
        $t->reload();
        ok((wait_for {
            my @pids = $t->worker_pids();
            @pids == workers() && !grep { $old{$_} } @pids;
        }), 'a reload');
    }

    my $c = $ann->in_session();
    my $work = task($c);
    my $conn = $t->connect_all();
    my ($first, $second) = sort keys %$conn;
    my $silent = $c->get_stream($t->connect_to($first));
    my $speaks = $c->get_stream($t->connect_to($second));

    says($work, 'to the newest');
    is(next_of($speaks), status($work, 'working', 'to the newest'),
       "$round: the newest speaks");

    ok($t->kill_worker($second), "$round: its process dies");
    says($work, 'to the other');
    is(next_of($silent, 10), status($work, 'working', 'to the other'),
       "$round: the other one goes on");

    my $again = $c->get_stream();
    says($work, 'once more');
    is(next_of($again), status($work, 'working', 'once more'),
       "$round: who comes back goes on");
    $_->close() for $silent, $again;
}


is($t->probe('op=check')->{check}, 'ok', 'the table is in order');
ok($t->stop(), 'nginx stops');
is($t->faults('exited on signal 9'), '', 'nothing bad in the log');

done_testing();
