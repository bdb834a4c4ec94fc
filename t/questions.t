# Questions of tasks in the legacy era: who is asked, where, and how often.

use warnings;
use strict;

use FindBin;
use lib "$FindBin::Bin/lib";

use IO::Select;
use JSON::PP;
use Test::More;
use Time::HiRes qw/ sleep time /;

use MCPClient;
use MCPTasks qw/ wait_for workers /;

# with a socket of its own for each worker, connections go to all of them
my $t = MCPTasks->new(
    workers => workers(), listen => 'reuseport sndbuf=8k',
    tools => ['slow'],
    http => 'mcp_tasks_zone zone=z:16m; mcp_tasks_tools tools.json;',
    surfaces => [qw/ mcp worker probe /],
    server => 'client_max_body_size 4m; client_body_buffer_size 4m;');

my $plain = MCPClient->new($t);
my $related = 'io.modelcontextprotocol/related-task';

use constant SOON => 8;


# a task of the session that is claimed: what its worker needs to know of it
sub task {
    my ($who) = @_;
    my $id = $who->create('slow');

    # what an earlier check left may be in the way
    for (1 .. 200) {
        my $work = $plain->claim('slow', leaseMs => 600000) or last;
        return $work if $work->{taskId} eq $id;
    }

    die "no work\n";
}


sub ask {
    my ($work, @keys) = @_;
    my $got = $plain->held('ask', $work, inputRequests => { map {
        $_ => { method => 'elicitation/create',
                params => { mode => 'form', message => "$_?",
                            requestedSchema => { type => 'object',
                                                 properties => {} } } }
    } @keys });
    diag('ask: ' . MCPClient::encode($got))
        unless ($got->{phase} || '') eq 'input_required';
}


# answers a question of the task, the way that clients do
sub answer {
    my ($who, $work, $key) = @_;
    return $who->post({ jsonrpc => '2.0', id => "$work->{taskId}/$key",
                        result => { action => 'accept',
                                    content => { key => $key } } })->{status};
}


sub result_stream {
    my ($who, $work, $s) = @_;
    return $who->stream($who->legacy_bytes('tasks/result',
                            { taskId => $work->{taskId} }), $s);
}


# who came waits, who left is forgotten
sub settled {
    $t->settle($t->connect_all() || die "workers cannot be reached\n");
}


# a message in short: which question, or what else
sub brief {
    my ($got) = @_;
    return 'nothing' unless $got;
    return $1 if ($got->{id} || '') =~ m{/(.*)} && $got->{method};
    return 'result' if $got->{result};
    return "error $got->{error}{code}" if $got->{error};
    my $p = $got->{params};
    return $p->{statusMessage} if defined $p->{statusMessage};
    return $p->{status} || $got->{method};
}


sub next_of {
    my ($stream, $seconds) = @_;
    return brief($stream->message(defined $seconds ? $seconds : SOON));
}


# the next question, whatever else is told before it
sub asked {
    my ($stream, $seconds) = @_;
    my $end = time() + (defined $seconds ? $seconds : SOON);

    while (my $got = $stream->message($end - time())) {
        return brief($got) if defined $got->{id} && $got->{method};
    }

    return 'nothing';
}


# nothing but what it is told now comes on the stream of a session
sub quiet {
    my ($who, $stream, $name) = @_;
    my $mark = task($who);
    $plain->held('progress', $mark, message => 'mark');
    my $got = next_of($stream);
    $plain->complete($mark, '{}');
    is($got, 'mark', $name);
    is(next_of($stream), 'mark', "$name, then") if $got eq 'mark';
}


# --- a client that only listens

{
    my $c = $plain->in_session();
    my $stream = $c->get_stream();
    my $work = task($c);
    ask($work, 'name');

    my $event = $stream->event(SOON);
    is($event->{json}{params}{status}, 'input_required', 'the status');
    $event = $stream->event(SOON);
    is_deeply($event->{json},
              { jsonrpc => '2.0', id => "$work->{taskId}/name",
                method => 'elicitation/create',
                params => { mode => 'form', message => 'name?',
                            requestedSchema => { type => 'object',
                                                 properties => {} },
                            _meta => { $related => { taskId
                                                     => $work->{taskId} } } } },
              'and the question');

    is(answer($c, $work, 'name'), 202, 'answered by POST');
    is(next_of($stream), 'working', 'it goes on');
    is_deeply($plain->held('answers', $work)->{inputResponses},
              { name => { action => 'accept', content => { key => 'name' } } },
              'the worker has the answer');
    $plain->complete($work, '{"content":[],"n":1}');
    is(next_of($stream), 'completed', 'it ends');
    is($c->legacy('tasks/result', { taskId => $work->{taskId} })
       ->{json}{result}{n}, 1, 'and there is the result');
    $stream->close();
}

# --- one that polls, and comes for the result when something is asked

{
    my $c = $plain->in_session();
    my $work = task($c);
    ask($work, 'name');
    is($c->status($work->{taskId}), 'input_required', 'seen by tasks/get');
    my $stream = result_stream($c, $work);
    is(next_of($stream), 'name', 'asked in tasks/result');
    answer($c, $work, 'name');
    $plain->complete($work, '{}');
    is(next_of($stream), 'result', 'and the result on the same stream');
}

# --- one that does both: it is asked once

{
    my $c = $plain->in_session();
    my $get = $c->get_stream();
    my $work = task($c);
    my $result = result_stream($c, $work);
    settled();

    ask($work, 'one');
    is(next_of($result), 'one', 'tasks/result is open: asked there');
    is(next_of($get), 'input_required', 'the other stream has the status');
    quiet($c, $get, 'and not the question');

    # another stream of either kind does not change that
    my $second = result_stream($c, $work);
    my $newer = $c->get_stream();
    quiet($c, $newer, 'nor a newer one');
    is(next_of($second, 0.3), 'nothing', 'nor another tasks/result');

    answer($c, $work, 'one');
    is(next_of($newer), 'working', 'answered');

    # two at once, and one that comes later
    ask($work, 'two', 'three');
    my @got = sort map {
        my (undef, $event) = MCPClient::Stream::any([$result, $second], SOON);
        brief($event && $event->{json});
    } 1 .. 2;
    is_deeply(\@got, ['three', 'two'], 'two questions at once');
    is(next_of($newer), 'input_required', 'the status');
    answer($c, $work, 'two');
    quiet($c, $newer, 'a part of the answers is no news');
    is((MCPClient::Stream::any([$result, $second], 0.3))[1], undef,
       'what is open is not asked again');
    answer($c, $work, 'three');
    is(next_of($newer), 'working', 'all are answered');

    $plain->complete($work, '{}');
    # the one that was not asked need not be a stream
    for my $s ($result, $second) {
        my ($len) = $s->head(SOON) =~ /^content-length: (\d+)/mi;
        1 while $len && length $s->{raw} < $len && $s->more(SOON);
        is(brief($len ? MCPClient::decode($s->{raw}) : $s->message(SOON)),
           'result', 'both get the result');
    }
    $_->close() for $get, $newer;
}

# --- first on the one, then on the other

{
    my $c = $plain->in_session();
    my $get = $c->get_stream();
    my $work = task($c);

    ask($work, 'one');
    is(asked($get), 'one', 'the first on the stream of the session');
    my $result = result_stream($c, $work);
    settled();
    is(next_of($result, 0.3), 'nothing', 'who comes later is not asked');
    answer($c, $work, 'one');

    # before the next change: a stream that is late tells the last one only
    is(next_of($get), 'working', 'meanwhile the session');
    ask($work, 'two');
    is(next_of($result), 'two', 'the second in tasks/result');
    is(next_of($get), 'input_required', 'hears how it is');
    quiet($c, $get, 'but is not asked');
    answer($c, $work, 'two');
    is(next_of($get), 'working', 'answered');

    $result->close();
    settled();
    ask($work, 'three');
    is(asked($get), 'three', 'the third on the stream of the session again');
    $get->close();
}


# --- a stream breaks before there was an answer

{
    my $c = $plain->in_session();
    my $work = task($c);
    my $get = $c->get_stream();
    my $result = result_stream($c, $work);
    settled();
    ask($work, 'a', 'b');
    is_deeply([sort map { next_of($result) } 1, 2], ['a', 'b'],
              'asked in tasks/result');
    answer($c, $work, 'a');
    is(next_of($get), 'input_required', 'the session knows');

    $result->close();
    is(asked($get), 'b', 'which breaks: what is open is asked on the other');

    my $second = result_stream($c, $work);
    settled();
    $get->close();
    is(asked($second), 'b', 'that breaks as well: asked in tasks/result');

    $second->close();
    settled();
    is($c->status($work->{taskId}), 'input_required', 'nobody is there');
    $get = $c->get_stream();
    is(asked($get), 'b', 'the next one that is opened is asked');
    $get->close();
    settled();
    $result = result_stream($c, $work);
    is(asked($result), 'b', 'of either kind');
    $result->close();

    # of several that wait for the result, another one
    my @results = map { result_stream($c, $work) } 1 .. 4;

    while (@results) {
        my ($s, $event) = MCPClient::Stream::any(\@results, SOON);
        is($s && brief($event->{json}), 'b', 'one of ' . @results) or last;
        is((MCPClient::Stream::any(\@results, 0.2))[0], undef, 'no other');
        $s->close();
        @results = grep { $_ != $s } @results;
    }

    # the newest stream of the session, and then an older one
    my $older = $c->get_stream();
    is(asked($older), 'b', 'an only stream');
    my $newer = $c->get_stream();
    is(asked($newer), 'b', 'a newer one: the older may be dead');
    $newer->close();
    is(asked($older), 'b', 'it was not, and is asked again');

    # the session ends, the task does not
    is($t->request('DELETE', '/mcp', $c->{headers})->{status}, 204, 'DELETE');
    is($older->message(SOON), undef, 'the stream ends');
    $result = result_stream($plain->in_session(), $work);
    is(asked($result), 'b', 'asked in tasks/result');
    answer($plain, $work, 'b');
    $plain->complete($work, '{}');
    is(next_of($result), 'result', 'answered at last');
}

# many tasks ask on one stream
{
    my $c = $plain->in_session();
    my $get = $c->get_stream();
    my @work = map { task($c) } 1 .. 100;
    ask($work[$_], "q$_") for 0 .. 99;
    my %asked;
    $asked{asked($get)}++ for 0 .. 99;
    is_deeply(\%asked, { map { ("q$_" => 1) } 0 .. 99 }, 'many questions');
    $get->close();
    settled();

    $get = $c->get_stream();
    %asked = ();
    for (0 .. 99) {
        my $key = asked($get, 3);
        last if $key eq 'nothing';
        $asked{$key}++;
    }
    is(scalar(keys %asked), 100, 'the stream breaks: all are asked again');
    is(asked($get, 0.2), 'nothing', 'once');

    # those who leave before they have read anything take nothing with them
    for my $round (1 .. 10) {
        $get->close();
        settled() if $round == 1;
        my $s = $t->connect();
        MCPTasks::send_raw($s, $c->get_bytes());
        sleep(0.002) if $round % 2;
        close($s);
    }

    settled();
    $get = $c->get_stream();
    my %again;
    for (0 .. 99) {
        my $key = asked($get, 3);
        last if $key eq 'nothing';
        $again{$key}++;
    }
    is(scalar(keys %again), 100, 'nor do those who leave at once');
    $plain->complete($_, '{}') for @work;
    $get->close();
}

# one that was not answered for long, while others were
{
    my $c = $plain->in_session();
    my $get = $c->get_stream();
    my ($old, $busy) = (task($c), task($c));
    ask($old, 'old');
    is(asked($get), 'old', 'a question that stays open');

    for my $n (1 .. 70) {
        ask($busy, "n$n");
        asked($get) eq "n$n" or fail("n$n was not asked");
        answer($c, $busy, "n$n");
    }

    $get->close();
    settled();
    $get = $c->get_stream();
    is(asked($get, 4), 'old', 'is asked again, though many came after it');
    $get->close();
}

# --- never before the client knows the task

# the answer carries the id of the request, so it can be made large
for my $how ('reads', 'leaves') {
    my $c = $plain->in_session();
    my $get = $c->get_stream();
    my $s = $t->connect_narrow();
    my $long = '"' . 'i' x 700_000 . '"';
    MCPTasks::send_raw($s, $c->legacy_bytes('tools/call',
                           { name => 'slow', task => {} }, id => $long));
    my $work = $plain->claim('slow', leaseMs => 600000);
    ok($work, 'a task whose client has not read of it');
    ask($work, 'early');
    $plain->held('progress', $work, message => 'busy');
    quiet($c, $get, 'nothing is told or asked');

    if ($how eq 'reads') {
        my $res = MCPTasks::read_response($s);
        is(length $res->{body} > 700_000 && $res->{body} =~ /"taskId":"(.*?)"/
           && $1, $work->{taskId}, 'it reads the answer');
    } else {
        close($s);
    }

    is(next_of($get), 'busy', "a client that $how: it is told now");
    is(next_of($get), 'early', 'and asked');
    $plain->complete($work, '{}');
    is(next_of($get), 'busy', 'the end');
    $get->close();
}

# the answer is on its way before the question is, however quick the worker
{
    my $c = $plain->in_session();
    my $get = $c->get_stream();
    my ($early, $unasked) = (0, 0);

    for my $n (1 .. 60) {
        my $s = $t->connect();
        my $claim = $t->connect();
        MCPTasks::send_raw($claim, MCPClient::bytes('/worker', MCPClient::rpc(
            'worker/claim', { tools => ['slow'], waitMs => 10000 })));
        MCPTasks::send_raw($s, $c->legacy_bytes('tools/call',
                               { name => 'slow', task => {} }));
        my $work = MCPClient::decode(MCPTasks::read_response($claim)->{body})
                   ->{result}{tasks}[0];
        ask($work, "q$n");

        if (asked($get) ne "q$n") {
            $unasked++;
            last;
        }

        # by now it must be there, without any waiting
        $early++ unless IO::Select->new($s)->can_read(0);
        $plain->complete($work, '{}');
    }

    is($unasked, 0, 'each task asks');
    is($early, 0, 'and none before the client could know it');
    $get->close();
}


# --- the process that has asked dies

for my $round ('at first', 'after a reload') {
    ok($t->reload_all(), 'a reload') if $round eq 'after a reload';

    for my $case ([qw/ get next-get /], [qw/ get older-get /],
                  [qw/ get result /], [qw/ get next-result /],
                  [qw/ result get /], [qw/ result result /],
                  [qw/ result next-get /])
    {
        my ($from, $to) = @$case;
        my $name = "$round, from $from to $to";
        my $c = $plain->in_session();
        my $work = task($c);
        my $conn = $t->connect_all() or die "workers cannot be reached\n";
        my ($dies, $lives) = sort keys %$conn;

        my ($asker, $other);
        my ($s1, $s2) = ($t->connect_to($dies), $t->connect_to($lives));

        $other = $c->get_stream($s2) if $to eq 'older-get';

        $asker = $from eq 'get' ? $c->get_stream($s1)
                                  : result_stream($c, $work, $s1);
        settled() if $from eq 'result';

        if ($from eq 'result' && $to eq 'get') {
            $other = $c->get_stream($s2);
        }

        ask($work, 'q');
        is(asked($asker), 'q', "$name: asked") or next;

        if ($to eq 'result') {
            $other = result_stream($c, $work, $s2);
            settled();
        }

        ok($t->kill_worker($dies), "$name: the process dies");

        $other = $c->get_stream() if $to eq 'next-get';
        $other = result_stream($c, $work) if $to eq 'next-result';

        is(asked($other), 'q', "$name: asked again");
        is(asked($other, 0.2), 'nothing', "$name: once");
        answer($c, $work, 'q');
        is($c->status($work->{taskId}), 'working', "$name: answered");
        $plain->complete($work, '{}');
        $other->close();
    }
}

# another process dies: nothing is asked again by a stream that lives on
{
    my $c = $plain->in_session();
    my $work = task($c);
    my $conn = $t->connect_all() or die "workers cannot be reached\n";
    my ($dies, $lives) = sort keys %$conn;
    my $get = $c->get_stream($t->connect_to($lives));

    ask($work, 'q');
    is(asked($get), 'q', 'a stream asks');
    ok($t->kill_worker($dies), 'another process dies');

    # each process looks every second whether another has died
    is(asked($get, 2), 'nothing', 'the stream does not ask again');
    answer($c, $work, 'q');
    is($c->status($work->{taskId}), 'working', 'and its question is answered');
    $plain->complete($work, '{}');
    $get->close();
}

# after a reload the same
{
    my $c = $plain->in_session();
    my ($one, $two) = (task($c), task($c));
    my $get = $c->get_stream();
    my $result = result_stream($c, $two);
    settled();
    ask($one, 'one');
    ask($two, 'two');
    is(asked($get), 'one', 'before a reload: the session');
    is(asked($result), 'two', 'before a reload: tasks/result');
    ok($t->reload_all(), 'a reload');
    is(asked($result, 2), 'nothing', 'the streams end') for 1;
    $get->close();

    $get = $c->get_stream();
    is_deeply([sort map { asked($get) } 1, 2], ['one', 'two'],
              'both are asked again');
    $get->close();
}

# one that hangs: it was to ask, and never did
{
    my $c = $plain->in_session();
    my $work = task($c);
    my $conn = $t->connect_all() or die "workers cannot be reached\n";
    my ($hangs, $lives) = sort keys %$conn;
    my $result = result_stream($c, $work, $t->connect_to($hangs));
    my $get = $c->get_stream($t->connect_to($lives));

    # all that is said goes to a process that does not hang
    my $via = $plain->as(via => $t->connect_to($lives));
    settled();
    kill('STOP', $hangs);
    $via->held('ask', $work, inputRequests => { q => MCPClient::form() });
    is(next_of($get), 'input_required', 'a process hangs: the session knows');
    is(next_of($get, 0.3), 'nothing', 'but another stream is to ask');
    ok($t->kill_worker($hangs), 'the process is killed');
    is(asked($get), 'q', 'the question is asked all the same');
    $_->close() for $get, $result;

    # the same, but the client leaves and the process wakes up
    $work = task($c);
    $conn = $t->connect_all() or die "workers cannot be reached\n";
    ($hangs, $lives) = sort keys %$conn;
    $result = result_stream($c, $work, $t->connect_to($hangs));
    $get = $c->get_stream($t->connect_to($lives));
    $via = $plain->as(via => $t->connect_to($lives));
    settled();
    kill('STOP', $hangs);
    $via->held('ask', $work, inputRequests => { r => MCPClient::form() });
    my $told = next_of($get);
    $told = next_of($get) if $told ne 'input_required';
    $result->close();
    kill('CONT', $hangs);
    is(asked($get), 'r', 'who was to be asked leaves before: the other is');
    $get->close();
}

# it dies in the middle of giving the question back
{
    my $c = $plain->in_session();
    my $work = task($c);
    my $conn = $t->connect_all() or die "workers cannot be reached\n";
    my ($dies, $lives) = sort keys %$conn;
    my $result = result_stream($c, $work, $t->connect_to($dies));
    my $get = $c->get_stream($t->connect_to($lives));
    settled();
    ask($work, 'q');
    is(next_of($result), 'q', 'asked, by a process');
    $t->probe('op=die&at=touch', $conn->{$dies});
    $result->close();
    ok((wait_for { !grep { $_ == $dies } $t->worker_pids() }),
       'that dies in the middle of giving it back');
    is(asked($get), 'q', 'asked on the other');
    ok((wait_for { $t->worker_pids() == workers() }), 'another process');
    is($t->probe('op=check')->{check}, 'ok', 'the table is in order');
    $get->close();
}


# --- any order of coming and going: at most one of those who are there was
# asked, and when all is quiet, exactly one

{
    my $c = $plain->in_session();
    my $work = task($c);
    my (@streams, $bad);
    my $n = 0;
    srand(3);

    for my $round (1 .. 6) {
        my $key = 'k' . ++$n;
        ask($work, $key);

        for my $step (1 .. 8) {
            if (@streams > 1 && rand() < 0.5) {
                my ($gone) = splice @streams, int rand @streams, 1;
                $gone->{stream}->close();

            } elsif (rand() < 0.5) {
                # a newer one: what the older asked, it may ask again
                delete $_->{asked} for grep { $_->{get} } @streams;
                push @streams, { get => 1, stream => $c->get_stream() };

            } else {
                push @streams, { stream => result_stream($c, $work) };
            }

            # until one of them was asked, and nothing more comes
            my $end = time() + SOON;
            my $quiet = 0;

            while (time() < $end && !$quiet) {
                my ($s, $event) = MCPClient::Stream::any(
                    [map { $_->{stream} } @streams], 0.15);

                if ($s && $event->{json}{method} =~ /^elicitation/) {
                    $_->{asked}++ for grep { $_->{stream} == $s } @streams;
                }

                $quiet = !$s && grep { $_->{asked} } @streams;
            }

            my @asked = map { $_->{asked} || 0 } @streams;
            my $sum = 0;
            $sum += $_ for @asked;
            if ($sum != 1) {
                $bad = "round $round, step $step: asked @asked";
                last;
            }
        }

        last if $bad;
        answer($c, $work, $key);
        delete $_->{asked} for @streams;
        MCPClient::Stream::any([map { $_->{stream} } @streams], 0.1);
    }

    is($bad, undef, 'streams come and go: exactly one is asked');
    $_->{stream}->close() for @streams;
}


is($t->probe('op=check')->{check}, 'ok', 'the table is in order');
ok($t->stop(), 'nginx stops');
is($t->faults('exited on signal 9|was locked by'), '',
   'nothing bad in the log');

done_testing();
