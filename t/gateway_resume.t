# Streams of legacy servers that end before the answer: the rest is asked for
# with the id of the last event, when the server wants to be asked.

use warnings;
use strict;

use FindBin;
use lib "$FindBin::Bin/lib";

use Test::More;
use Time::HiRes qw/ time /;

use MCPClient;
use MCPGateway;
use MCPTasks qw/ wait_for workers /;

my $g = MCPGateway->new(
    workers => workers(), sessions => 1,
    conf => 'mcp_tasks_retries 1 backoff=100ms;',
    proxy => 'proxy_next_upstream off;',
    tool => ['slow support=optional', 'same idempotent']);
my ($up, $t) = @{$g}{qw/ up t /};
my $c = $g->{c} = $g->{c}->in_session();

# what has an id and no data, for clients to have something to come back with
my @primed = (['sse'], ['text', "id: e0\nretry: 1\ndata:\n\n"], ['end']);
my @held = (['sse'], ['hold']);


sub gets {
    return $up->requests(sub { $_[0]{method} eq 'GET' });
}


# the n-th time that the rest was asked for
sub get {
    my ($n) = @_;
    return wait_for { (gets())[$n - 1] } 15;
}


# a task, and its call, whose stream ends as the script says
sub begin {
    my ($call, $get, %opt) = @_;
    my $tool = $opt{tool} || 'slow';
    $up->clear();
    $up->script($tool => $call);
    $up->script(GET => $get);
    my $id = $g->task($tool, headers => { Authorization => 'Bearer abc' },
                      params => { arguments => { x => 1 } });
    return ($id, $up->call($tool));
}


# the answer to the call on another stream
sub result {
    my ($call, $text) = @_;
    return ['event', "{\"jsonrpc\":\"2.0\",\"id\":$call->{id},\"result\":"
                     . ($text // '{"a":1.0}') . '}'];
}


sub news {
    my ($call, $id, $text) = @_;
    return ['text', "id: $id\ndata: {\"jsonrpc\":\"2.0\",\"method\":"
            . "\"notifications/message\",\"params\":{\"level\":\"info\","
            . "\"data\":\"$text\"}}\n\n"];
}


# --- closed on purpose, several times

{
    my ($id, $call) = begin(\@primed, \@held);
    my $get = get(1);
    ok($get, 'a stream that ends after an event with an id is resumed');
    is($get->{head}{'last-event-id'}, 'e0', 'after that event');
    is($get->{head}{'mcp-session-id'}, $c->{session}, 'in the session');
    is($get->{head}{authorization}, 'Bearer abc', 'by the client');
    is($get->{head}{'mcp-protocol-version'}, '2025-11-25', 'in its revision');
    like($get->{head}{accept}, qr{text/event-stream}, 'as a stream');
    is($get->{head}{'content-length'}, undef, 'without a body');
    is("$get->{path} $get->{body}", '/mcp ', 'where the call went');
    is($g->get($id)->{status}, 'working', 'the task works');

    $up->go($get, news($call, 'e1', 'one'), ['end']);
    $get = get(2);
    is($get->{head}{'last-event-id'}, 'e1', 'again, after the next event');
    is($g->get($id)->{statusMessage}, 'one', 'which was read');

    $up->go($get, news($call, 'e2', 'two'), ['reset']);
    is(get(3)->{head}{'last-event-id'}, 'e2', 'after a reset as well');
    $up->go(get(3), result($call), ['end']);
    $g->completes($id, 'then the answer comes', 15);
    is($up->count('slow'), 1, 'the call was sent once');
    is(@{[gets()]}, 3, 'and resumed three times');
}

# --- a question before the end, the answer on the next stream

{
    my ($id, $call) = begin([['sse'], ['text', "id: q1\nretry: 1\ndata: "
        . "{\"jsonrpc\":\"2.0\",\"id\":\"q\",\"method\":\"roots/list\"}\n\n"],
        ['end']], \@held);
    is(get(1)->{head}{'last-event-id'}, 'q1', 'after a question');
    my ($key) = keys %{ $g->becomes($id, 'input_required')->{inputRequests} };
    $c->post({ jsonrpc => '2.0', id => "$id/$key", result => { roots => [] } });
    ok($up->wait_for(sub { ($_[0]{id} // '') eq '"q"' }, 15),
       'the answer goes its own way');
    $up->go(get(1), result($call), ['end']);
    $g->completes($id, 'and the result comes', 15);
}

# --- when the server says, and as long as it says

{
    my ($id, $call) = begin([['sse'], ['text', "id: a\nretry: 300\ndata:\n\n"],
                             ['end']],
                            { rounds => [[['sse'], ['end']], \@held] });
    my @when = map { get($_)->{time} } 1, 2;
    my $end = $up->get($call)->{done};
    cmp_ok($when[0] - $end, '>=', 0.29, 'not before the time is up');
    cmp_ok($when[1] - $when[0], '>=', 0.29, 'nor the next time');
    is(get(2)->{head}{'last-event-id'}, 'a', 'a stream without events');
    $up->go(get(2), result($call), ['end']);
    $g->completes($id, 'then it completes', 15);
}

{
    my ($id, $call) = begin([['sse'], ['text', "id: a\ndata:\n\n"], ['end']],
                            \@held);
    my $when = get(1)->{time};
    my $end = $up->get($call)->{done};
    cmp_ok($when - $end, '>=', 0.99, 'a second, if it says nothing');
    $up->go(get(1), result($call), ['end']);
    $g->completes($id, 'then it completes', 15);
}

# --- nobody asks for ever

{
    my ($id, $call) = begin(\@primed, [['sse'], ['end']]);
    $g->fails($id, 'upstream_closed', 'streams without events: it fails', 15);
    is(@{[gets()]}, 10, 'after ten of them');
    is($up->count('slow'), 1, 'and is not sent again');

    my @more = map { [['sse'], news($call, "n$_", $_), ['end']] } 1 .. 15;
    ($id, $call) = begin(\@primed, { rounds => [@more, \@held] });
    ok(get(16), 'those with news do not count');
    is(get(16)->{head}{'last-event-id'}, 'n15', 'after the last event');
    $up->go(get(16), result($call), ['end']);
    $g->completes($id, 'and it completes', 15);
}

# --- the server is away for a while

{
    my ($id, $call) = begin([['sse'], ['text', "id: a\nretry: 50\ndata:\n\n"],
                             ['hold']], \@held);
    $up->shut();
    $up->go($call, ['end']);
    ok((wait_for { $t->log() =~ /Connection refused.*"GET / } 15),
       'nobody listens');
    is($g->get($id)->{status}, 'working', 'it works');
    $up->open();
    ok(get(1), 'it is asked for when somebody does');
    $up->go(get(1), result($call), ['end']);
    $g->completes($id, 'and completes', 15);
}

# --- the server refuses

for my $body ('', '{"jsonrpc":"2.0","id":null,"error":{"code":-32000,'
                  . '"message":"Method not allowed"}}')
{
    my ($id, $call) = begin(\@primed, [['json', $body, 405]]);
    my $name = 'refused' . ($body ? ' with an error' : '');
    $g->fails($id, 'upstream_closed', "$name: it fails", 15);
    is(@{[gets()]}, 1, "$name: and is not asked for again");
}

{
    my ($id, $call) = begin({ rounds => [\@primed,
                                         [['result', '{"a":1.0}']]] },
                            [['json', '', 405]], tool => 'same');
    $g->completes($id, 'refused, idempotent: it completes', 15);
    is($up->count('same'), 2, 'when the call is sent again');
    my @calls = $up->calls('same');
    isnt($calls[0]{id}, $calls[1]{id}, 'which is another one');
}

{
    my ($id, $call) = begin(\@primed, { rounds => [[['json', '', 503]],
                                                   \@held] });
    ok(get(2), 'the server is busy: it is asked for again');
    $up->go(get(2), result($call), ['end']);
    $g->completes($id, 'and completes', 15);
}

# --- cancelled while it waits

{
    my ($id, $call) = begin([['sse'], ['text', "id: a\nretry: 60000\n"
                              . "data:\n\n"], ['end']], \@held);
    wait_for { $up->get($call)->{done} };
    my $res = $c->legacy('tasks/cancel', { taskId => $id });
    is($res->{json}{result}{status}, 'cancelled', 'cancelled while it waits');
    my $told = $up->wait_for(sub {
        return ($_[0]{rpc} // '') eq 'notifications/cancelled';
    }, 15);
    is_deeply($told->{json}{params}{requestId}, $call->{json}{id},
              'the server is told');
    is(@{[gets()]}, 0, 'and not asked any more');
}

# --- what is not resumed: no ids, or a modern server, or an answer that came

{
    my ($id) = begin([['sse'], ['text', "retry: 1\ndata:\n\n"], ['end']],
                     \@held);
    $g->fails($id, 'upstream_closed', 'without an id: it fails', 15);

    $up->script(slow => \@primed);
    $g->fails($g->modern_task('slow'), 'upstream_closed',
              'in the modern era: it fails', 15);
    is(@{[gets()]}, 0, 'and nothing is asked for');

    ($id) = begin([['sse'], ['text', "id: x\ndata:\n\n"],
                   ['result', '{"a":1.0}']], \@held);
    $g->completes($id, 'an answer is the end', 15);
    is(@{[gets()]}, 0, 'then nothing is asked for');
}

# an id that no header can carry
{
    my ($id) = begin([['sse'], ['text', "id: a\x01b\nretry: 1\ndata:\n\n"],
                      ['end']], \@held);
    $g->fails($id, 'upstream_closed', 'an id of another kind: it fails', 15);
    is(@{[gets()]}, 0, 'and nothing is asked for');
}

$g->done('background call failed: upstream_closed|Connection (refused|reset)');
done_testing();
