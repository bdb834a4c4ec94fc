# A store that answers later: a call in the background has one operation under
# way, and loses nothing that comes meanwhile.

use warnings;
use strict;

# before anything looks at it
BEGIN { $ENV{MCP_TASKS_STORE} = 'late' }

use FindBin;
use lib "$FindBin::Bin/lib";

use Test::More;

use MCPClient;
use MCPGateway;
use MCPTasks qw/ wait_for workers /;

my $g = MCPGateway->new(
    workers => workers(),
    conf => 'mcp_tasks_retries 2 backoff=300ms; mcp_tasks_max_running 3;',
    tool => ['slow support=optional', 'plain support=optional',
             'same idempotent'],
    on => { slow => [['sse'], ['hold']],
            plain => [['hold'], ['json', '{"jsonrpc":"2.0","id":%ID%,'
                                         . '"result":{"a":1}}']],
            same => [['sse'], ['hold']] });
my ($up, $t) = @{$g}{qw/ up t /};
my $c = $g->{c};
my $nobody = $c->as(headers => {});


sub version {
    my ($id) = @_;
    my $res = $t->request('GET', "/probe?op=get&owner=ann&id=$id");
    return $res->{body} =~ /"version":(\d+)/ ? $1 : undef;
}


sub progress {
    my ($n, $text) = @_;
    return '{"jsonrpc":"2.0","method":"notifications/progress","params":'
           . "{\"progressToken\":%TOKEN%,\"progress\":$n"
           . (defined $text ? ",\"message\":\"$text\"" : '') . '}}';
}


sub logged {
    return '{"jsonrpc":"2.0","method":"notifications/message","params":'
           . "{\"level\":\"info\",\"data\":\"$_[0]\"}}";
}


sub question {
    my ($id) = @_;
    return "{\"jsonrpc\":\"2.0\",\"id\":$id,\"method\":\"roots/list\","
           . "\"params\":{\"id\":$id}}";
}


sub withdrawn {
    return '{"jsonrpc":"2.0","method":"notifications/cancelled",'
           . "\"params\":{\"requestId\":$_[0]}}";
}


# all at once, so that they come while the first is under way
sub together {
    return ['text', join '', map { "data: $_\n\n" } @_];
}


sub keys_of {
    my ($task) = @_;
    return map { $task->{inputRequests}{$_}{params}{id} => $_ }
           keys %{ $task->{inputRequests} || {} };
}


sub answer {
    my ($id, $key) = @_;
    return $c->post("{\"jsonrpc\":\"2.0\",\"id\":\"$id/$key\",\"result\":"
                    . '{"roots":[]}}')->{status};
}


# submitted so far
sub attempts {
    return $t->probe('op=late')->{ops}[12];
}


sub responses {
    return scalar @{[ $up->said('response') ]};
}


# --- the whole life of a call

{
    my ($id, $call) = $g->begin('slow');
    $up->go($call, ['result', '{"a":1}']);
    $g->completes($id, 'a result on a stream');

    ($id, $call) = $g->begin('slow');
    my $large = 'x' x 20000;
    $up->go($call, ['text', "data: {\"jsonrpc\":\"2.0\",\"id\":%ID%,"
                            . "\"result\":{\"a\":\"$large\"}}\n\ndata: "
                            . ('y' x 30000) . "\n\n"]);
    is($g->ends($id)->{result}{a}, $large, 'a large one, with more after it');

    ($id, $call) = $g->begin('slow');
    $up->go($call, ['text', "data: {\"jsonrpc\":\"2.0\",\"id\":%ID%,"
                            . "\"result\":{\"a\":\"small\"}}\n\ndata: "
                            . ('y' x 3000) . "\n\n"]);
    is($g->ends($id)->{result}{a}, 'small', 'a small one, with more after it');

    ($id, $call) = $g->begin('plain');
    $up->go($call);
    $g->completes($id, 'a response of one message');

    ($id, $call) = $g->begin('slow');
    $up->go($call, ['error', '{"code":5,"message":"no"}']);
    like($g->ends($id)->{text}, qr/"code":5,"message":"no"/, 'an error');

    ($id, $call) = $g->begin('slow');
    $up->go($call, ['close']);
    $g->fails($id, 'upstream_closed', 'a failure, and its reason');

    ($id, $call) = $g->begin('slow');
    is($c->legacy('tasks/cancel', { taskId => $id })->{json}{result}{status},
       'cancelled', 'cancelled');
    ok($up->left($call, 10), 'the upstream sees it');
}


# --- a retry

{
    $up->clear();
    my $before = attempts();
    my $id = $g->modern_task('same', who => $nobody);
    $up->go($up->call('same'), ['close']);
    my $again = $up->call('same', 2);
    my $n = attempts() - $before;
    cmp_ok($n, '<=', 4, "the backoff is not spent on attempts: $n");
    ok($again, 'it is called again') or diag($g->get($id, $nobody)->{text});
    $up->go($again, ['result', '{"a":1}']);
    is($g->until($id, sub { ($_[0]{status} // '') eq 'completed' }, 10,
                 $nobody)->{status}, 'completed', 'and completes');
}


# --- progress: only the latest waits

{
    my ($id, $call) = $g->begin('slow');
    my $before = version($id);

    $up->go($call, together(map { progress($_, "at $_") } 1 .. 200), ['hold']);
    is($g->until($id, sub { ($_[0]{statusMessage} // '') eq 'at 200' })
       ->{statusMessage}, 'at 200', 'the last of many');
    cmp_ok(version($id) - $before, '<=', 20, 'few of them are submitted');

    # as if each had been submitted
    $up->go($call, together(progress(300, 'first'), progress(400, 'second'),
                            logged('third'), progress(350, 'backwards'),
                            progress(500)), ['hold']);
    my $got = $g->until($id, sub { ($_[0]{statusMessage} // '') eq 'third' });
    is($got->{statusMessage}, 'third', 'what goes backwards is ignored');

    $up->go($call, together(progress(501, 'a'), progress(502, 'last'),
                            '{"jsonrpc":"2.0","id":%ID%,"result":{"a":1}}'));
    $g->completes($id, 'and the end is not lost');
    is($g->get($id)->{statusMessage}, 'last', 'nor what came before it');
}


# --- questions

{
    my ($id, $call) = $g->begin('slow');

    $up->go($call, together(progress(1, 'a'), question(1), question(2),
                            progress(2, 'b')), ['hold']);
    my $got = $g->becomes($id, 'input_required');
    my %key = keys_of($got);
    ok($key{1}, 'a question after progress') or diag($got->{text});
    is($g->until($id, sub { ($_[0]{statusMessage} // '') eq 'b' })
       ->{statusMessage}, 'b', 'and progress after the question');

    my $n = responses();
    answer($id, $_) for values %key;

    unless ($key{2}) {
        $got = $g->until($id, sub { my %now = keys_of($_[0]); $now{2} });
        %key = keys_of($got);
        ok($key{2}, 'then the other one') or diag($got->{text});
        answer($id, $key{2});
    }

    ok((wait_for { responses() == $n + 2 }), 'both answers arrive');
    $up->go($call, ['result', '{"a":1}']);
    $g->completes($id, 'it goes on');
}

for my $more ('', progress(1, 'a')) {
    my ($id, $call) = $g->begin('slow');
    my $name = $more eq '' ? 'asked' : 'not asked yet';

    $up->go($call, together($more || (), question(1), withdrawn(1),
                            progress(2, 'after')), ['hold']);
    is($g->until($id, sub { ($_[0]{statusMessage} // '') eq 'after'
                            && $_[0]{status} eq 'working' })->{status},
       'working', "$name: a question that is withdrawn at once");

    $up->go($call, together(question(3)), ['hold']);
    my %key = keys_of($g->becomes($id, 'input_required'));
    is_deeply([keys %key], [3], "$name: another one");
    my $n = responses();
    is(answer($id, $key{3}), 202, "$name: is answered");
    ok((wait_for { responses() == $n + 1 }), "$name: the answer arrives");
    $up->go($call, ['result', '{"a":1}']);
    $g->completes($id, "$name: it goes on");
}

{
    my ($id, $call) = $g->begin('slow');
    $up->go($call, together(question(1), '{"jsonrpc":"2.0","id":%ID%,'
                                         . '"result":{"a":1}}'));
    $g->completes($id, 'a result right after a question');
}


# --- responses: to a question of ours, or to one of the upstream

{
    my $n = responses();
    my $id = '0' x 32;
    is($c->post("{\"jsonrpc\":\"2.0\",\"id\":\"$id/a\",\"result\":{}}")
       ->{status}, 202, 'a response that is not ours');
    ok((wait_for { responses() == $n + 1 }), 'goes to the upstream');
}


# --- turns

{
    $up->clear();
    my @id = map { $g->task('slow') } 1 .. 12;
    ok((wait_for { $up->open_calls('slow') == 3 }), 'as many as may run');

    for my $n (1 .. 12) {
        my $call = wait_for { ($up->open_calls('slow'))[0] } 10;
        ok($call, "call $n") or last;
        $up->go($call, ['result', '{"a":1}']);
    }

    $g->completes($_, 'it had its turn', 20) for @id;
}


# --- another process takes over

{
    $up->clear();
    my $conn = $t->connect_all() or BAIL_OUT('processes cannot be reached');
    my ($pid) = sort keys %$conn;
    my $here = $nobody->as(via => $conn->{$pid});
    my @id = map { $g->modern_task('same', who => $here) } 1 .. 3;
    ok((wait_for { $up->open_calls('same') == 3 }), 'calls of one process');

    kill('KILL', $pid);
    ok((wait_for { $up->count('same') == 6 }), 'others take them over');

    wait_for { $up->open_calls('same') == 3 };
    $up->go($_, ['result', '{"a":1}']) for $up->open_calls('same');

    for my $id (@id) {
        is($g->until($id, sub { ($_[0]{status} // '') eq 'completed' }, 15,
                     $nobody)->{status}, 'completed', 'and they complete');
    }
}

$g->done('background call failed|upstream prematurely|on signal 9|was killed');
done_testing();
