# A task that is a call upstream is seen in all the ways in which others are:
# polled, followed, listened to and waited for; and so are its questions.

use warnings;
use strict;

use FindBin;
use lib "$FindBin::Bin/lib";

use Test::More;

use MCPClient;
use MCPGateway;
use MCPTasks qw/ wait_for workers /;

my $g = MCPGateway->new(
    workers => workers(), tool => ['slow support=optional'],
    on => { slow => [['sse'], ['hold']] });
my ($up, $t, $c) = @{$g}{qw/ up t c /};

my $conn = $t->connect_all() or BAIL_OUT('processes cannot be reached');
my @all = map { $c->as(via => $conn->{$_}) } sort keys %$conn;


sub begin {
    my (%opt) = @_;
    return $g->begin('slow', who => $all[0], %opt);
}


sub progress {
    my ($n, $message) = @_;
    return ['event', '{"jsonrpc":"2.0","method":"notifications/progress",'
                     . "\"params\":{\"progressToken\":%TOKEN%,\"progress\":$n,"
                     . "\"total\":10,\"message\":\"$message\"}}"];
}


sub says {
    my ($level, $data) = @_;
    return ['event', '{"jsonrpc":"2.0","method":"notifications/message",'
                     . "\"params\":{\"level\":$level,\"data\":$data}}"];
}


sub question {
    my ($id) = @_;
    return ['event', "{\"jsonrpc\":\"2.0\",\"id\":$id,\"method\":"
                     . '"elicitation/create","params":{"message":"Who?",'
                     . '"requestedSchema":{"type":"object","properties":{}}}}'];
}


sub response {
    my ($id) = @_;
    my $got = $up->wait_for(sub { ($_[0]{rpc} // '') eq 'response'
                                  && $_[0]{id} eq $id }, 15) || {};
    return $got->{json}{result};
}


# the next event of a stream that the code is true for
sub next_of {
    my ($stream, $code) = @_;

    while (my $got = $stream->message(15)) {
        return $got if $code->($got);
    }

    return {};
}


# --- REST, in another process than the call's

{
    my ($id, $call) = begin();
    my $poll = $all[1]->rest("tasks/$id/poll");
    is("$poll->{status} $poll->{json}{status} $poll->{json}{tool}",
       '200 working slow', 'a poll');
    my $version = $poll->{json}{version};

    my $stream = $c->follow("tasks/$id/events");
    my $got = next_of($stream, sub { 1 });
    is("$got->{status} $got->{version}", "working $version", 'events');

    my $s = $t->connect();
    MCPTasks::send_raw($s, $c->rest_bytes("tasks/$id/poll?version=$version"
                                          . '&wait=30'));
    $up->go($call, progress(4, 'four'));
    $got = next_of($stream, sub { ($_[0]{progress} // 0) == 4 });
    is("$got->{statusMessage} of $got->{total}", 'four of 10',
       'progress is an event');
    $poll = MCPTasks::read_response($s);
    is(MCPClient::decode($poll->{body})->{statusMessage}, 'four',
       'and ends a poll');

    $up->go($call, question('"rest"'));
    $got = next_of($stream, sub { $_[0]{status} eq 'input_required' });
    my ($key) = keys %{ $got->{inputRequests} || {} };
    is($got->{inputRequests}{$key}{params}{message}, 'Who?', 'a question');
    is($all[1]->rest("tasks/$id/poll")->{json}{inputRequests}{$key}{method},
       'elicitation/create', 'for polls, too');
    $all[1]->modern('tasks/update', { taskId => $id,
        inputResponses => { $key => { action => 'decline' } } });
    is_deeply(response('"rest"'), { action => 'decline' }, 'is answered');
    $got = next_of($stream, sub { $_[0]{status} eq 'working' });
    ok(!exists $got->{inputRequests}, 'then it works');

    $up->go($call, ['result', '{"content":[],"x":1.0}']);
    $got = next_of($stream, sub { $_[0]{status} eq 'completed' });
    is_deeply($got->{result}{x}, 1, 'the result');
    is($stream->event(15), undef, 'is the last event');
    ok($stream->{whole}, 'and the end');
}

# --- cancelled

{
    my ($id, $call) = begin();
    $c->legacy('tasks/cancel', { taskId => $id });
    ok($up->left($call, 15), 'a cancellation reaches upstream');
    is($c->rest("tasks/$id/poll")->{json}{status}, 'cancelled', 'a poll');
}

# --- subscriptions/listen

for my $modern (0, 1) {
    my $era = $modern ? 'modern' : 'legacy';
    my ($id, $call) = begin(modern => $modern);
    my $n = @{[$up->requests()]};
    my $stream = $c->stream($c->modern_bytes('subscriptions/listen',
        { notifications => { taskIds => [$id] } }, id => '"l"'));
    my $got = next_of($stream, sub { 1 });
    is($got->{method}, 'notifications/subscriptions/acknowledged',
       "$era: listen is ours");
    is(@{[$up->requests()]}, $n, 'and not passed');
    next_of($stream, sub { ($_[0]{params}{status} // '') eq 'working' });
    $up->go($call, progress(7, 'seven'));
    $got = next_of($stream, sub { ($_[0]{params}{statusMessage} // '')
                                  eq 'seven' });
    is($got->{params}{taskId}, $id, "$era: progress");

    if (!$modern) {
        $up->go($call, question('"listen"'));
        $got = next_of($stream, sub { $_[0]{params}{status}
                                      eq 'input_required' });
        my ($key) = keys %{ $got->{params}{inputRequests} };
        $c->modern('tasks/update', { taskId => $id,
            inputResponses => { $key => { action => 'cancel' } } });
        is_deeply(response('"listen"'), { action => 'cancel' },
                  "$era: a question");
    }

    $up->go($call, ['result', '{"content":[],"y":1}']);
    $got = next_of($stream, sub { ($_[0]{params}{status} // '')
                                  eq 'completed' });
    is($got->{params}{result}{y}, 1, "$era: the result");
    $stream->close();
}

# one that is not of tasks is upstream's
{
    my $n = @{[$up->requests()]};
    $c->modern('subscriptions/listen',
               { notifications => { toolsListChanged => JSON::PP::true } });
    is(($up->requests())[$n]{rpc}, 'subscriptions/listen',
       'others listen to upstream');
}

# --- tasks/result has the questions, of progress clients hear otherwise

{
    my ($id, $call) = begin(params => { _meta => { progressToken => 'mine' } });
    is($call->{token}, '"mine"', 'the client has a token');
    my $stream = $c->stream($c->legacy_bytes('tasks/result',
                                             { taskId => $id }));
    $up->go($call, progress(1, 'one'), question('"wait"'));
    my $got = $stream->message(15);
    is($got->{method}, 'elicitation/create', 'who waits is asked');
    is($c->legacy('tasks/get', { taskId => $id })->{json}{result}
       {statusMessage}, 'one', 'and may ask');
    $all[-1]->post({ jsonrpc => '2.0', id => $got->{id},
                     result => { action => 'accept', content => {} } });
    is_deeply(response('"wait"'), { action => 'accept', content => {} },
              'the answer reaches upstream');
    $up->go($call, ['result', '{"content":[],"z":1}']);
    is($stream->message(15)->{result}{z}, 1, 'then comes the result');
}

# --- messages that say what it does

{
    my ($id, $call) = begin();
    my $stream = $c->follow("tasks/$id/events");
    next_of($stream, sub { 1 });

    for my $level (qw/ info notice warning error critical alert emergency /) {
        $up->go($call, says("\"$level\"", "\"at $level\""));
        is(next_of($stream, sub { defined $_[0]{statusMessage} })
           ->{statusMessage}, "at $level", "a message: $level");
    }

    # what is not for people
    $up->go($call, says('"debug"', '"not this"'), says('"info"', '{"a":1}'),
            says('"info"', '7'), says('7', '"nor this"'), says('"info"', '[]'),
            says('"info"', '"' . 'x' x 1100 . '"'),
            ['event', '{"jsonrpc":"2.0","method":"notifications/message"}'],
            says('"info"', '"the last"'));
    is(next_of($stream, sub { 1 })->{statusMessage}, 'the last',
       'what is for programs is left out');
    $up->go($call, ['result', '{}']);
    is($g->ends($id)->{statusMessage}, 'the last', 'the last one stays');
}

$g->done();
done_testing();
