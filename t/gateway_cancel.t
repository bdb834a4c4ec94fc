# A task that is cancelled or expires takes the call at upstream with it,
# whichever process it is cancelled in.

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
    file => '{"tools":[{"name":"queued","inputSchema":{"type":"object"}}]}',
    conf => 'mcp_tasks_retention cancelled=1h;',
    tool => ['slow support=optional', 'dumb support=optional',
             'quick after=30s', 'brief ttl=1s'],
    on => { slow => [['sse'], ['hold']], quick => [['sse'], ['hold']],
            brief => [['sse'], ['hold']], dumb => [['hold']] });
my ($up, $t) = @{$g}{qw/ up t /};

my $conn = $t->connect_all() or BAIL_OUT('processes cannot be reached');
my @pids = sort keys %$conn;
my $c = $g->{c} = $g->{c}->in_session();
my @all = map { $c->as(via => $conn->{$_}) } @pids;


# the n-th call of the tool from now on
sub begin {
    my ($tool, $era, $who) = @_;
    my $n = $up->count($tool);
    my $id = $era eq 'legacy'
             ? $g->task($tool, who => $who, id => "\"$tool-$n\"",
                        headers => { Authorization => 'Bearer abc' })
             : $g->modern_task($tool, who => $who);
    return ($id, $up->call($tool, $n + 1));
}


# what upstream was told of that call
sub cancelled {
    my ($call) = @_;
    return grep { $_->{body} =~ /"requestId":\s*\Q$call->{id}\E\s*[,}]/ }
           $up->said('notifications/cancelled');
}


sub cancel {
    my ($id, $era, $who) = @_;
    return $who->$era('tasks/cancel', { taskId => $id })->{json};
}


# --- in each era, by each process

for my $era ('legacy', 'modern') {
    for my $by (0 .. $#all) {
        for my $tool ('slow', 'dumb') {
            my $name = "$era $tool, $by";
            my ($id, $call) = begin($tool, $era, $all[0]);
            my $told = @{[$up->said('notifications/cancelled')]};
            my $start = time();
            my $got = cancel($id, $era, $all[$by]);
            ok($got->{result}, "$name: cancelled") or diag(explain($got));
            is($g->get($id)->{status}, 'cancelled', "$name: for the client");
            ok($up->left($call, 10), "$name: upstream is left");
            cmp_ok(time() - $start, '<', 5, "$name: soon");

            if ($era eq 'modern') {
                is(@{[$up->said('notifications/cancelled')]}, $told,
                   "$name: no more is said");
                next;
            }

            ok(wait_for { cancelled($call) }, "$name: and told so");
            my ($note) = cancelled($call);
            is_deeply($note->{json}{params}{requestId}, $call->{json}{id},
                      "$name: with the id of the call") or next;
            is($note->{head}{'mcp-session-id'}, $c->{session},
               "$name: in its session");
            is($note->{head}{authorization}, 'Bearer abc',
               "$name: by the one who called");
            is(@{[cancelled($call)]}, 1, "$name: once");
        }
    }
}

# --- who waits for it is told

{
    my ($id, $call) = begin('slow', 'legacy', $all[0]);
    my $s = $t->connect();
    MCPTasks::send_raw($s, $c->legacy_bytes('tasks/result',
                                            { taskId => $id }));
    cancel($id, 'legacy', $all[1]);
    is(MCPClient::decode(MCPTasks::read_response($s)->{body})
       ->{error}{data}{reason}, 'task_cancelled', 'who waits is told');
    ok($up->left($call, 10), 'and upstream is left');
}

# --- while it asks

{
    my ($id, $call) = begin('slow', 'legacy', $all[0]);
    $up->go($call, ['event', '{"jsonrpc":"2.0","id":"q","method":"roots/list"'
                             . ',"params":{}}']);
    is($g->becomes($id, 'input_required')->{status}, 'input_required',
       'a task that asks');
    cancel($id, 'legacy', $all[1]);
    ok($up->left($call, 10), 'is cancelled, and upstream is left');
    ok(wait_for { cancelled($call) }, 'and told so');
}

# --- too late

{
    my ($id, $call) = begin('slow', 'legacy', $all[0]);
    my $told = @{[$up->said('notifications/cancelled')]};
    $up->go($call, ['result', '{"content":[]}']);
    is($g->ends($id)->{status}, 'completed', 'a task that has ended');
    is(cancel($id, 'legacy', $all[1])->{error}{data}{reason}, 'task_terminal',
       'cannot be cancelled');
    is($c->legacy('ping')->{status}, 200, 'and upstream');
    is(@{[$up->said('notifications/cancelled')]}, $told, 'hears nothing of it');
}

# --- both at once: one of them, and nothing else

{
    my %seen;

    for my $n (1 .. 20) {
        my ($id, $call) = begin('slow', 'legacy', $all[$n % @all]);
        my $s = $conn->{$pids[($n + 1) % @pids]};
        MCPTasks::send_raw($s, $c->legacy_bytes('tasks/cancel',
                                                { taskId => $id }));
        $up->go($call, ['result', '{"content":[]}']);
        MCPTasks::read_response($s);
        $seen{$g->ends($id)->{status}}++;
    }

    is(($seen{completed} // 0) + ($seen{cancelled} // 0), 20,
       'cancelled while the answer comes: one or the other');
}

# --- what upstream still sends is of no use to anybody

{
    my ($id, $call) = begin('slow', 'legacy', $all[0]);
    $up->go($call, ['flood', "data: {\"jsonrpc\":\"2.0\",\"method\":"
        . "\"notifications/progress\",\"params\":{\"progressToken\":%TOKEN%,"
        . "\"progress\":1}}\n\n", 0.001]);
    cancel($id, 'legacy', $all[1]);
    ok($up->left($call, 10), 'one that goes on sending is left');
    is($g->get($id)->{status}, 'cancelled', 'and the task stays cancelled');
}

# --- expiry

{
    my ($id, $call) = begin('brief', 'legacy', $all[0]);
    ok($up->left($call, 20), 'a task that expires: upstream is left');
    ok(wait_for { cancelled($call) }, 'and told so');
    is($c->legacy('tasks/get', { taskId => $id })->{json}{error}{data}{reason},
       'task_not_found', 'the task is gone');
}

# --- clients' own word for it is upstream's business

{
    my $stream = $c->stream($c->legacy_bytes('tools/call', { name => 'slow' },
                                             id => 77));
    $stream->head(10);
    is($c->post({ jsonrpc => '2.0', method => 'notifications/cancelled',
                  params => { requestId => 77 } })->{status}, 202,
       'a plain call is cancelled by its client');
    is(($up->said('notifications/cancelled'))[-1]{json}{params}{requestId}, 77,
       'which is passed');
    $stream->close();
}

# --- calls of the queue's tools

# 2025-11-25, basic/utilities/cancellation: "Receivers of cancellation
# notifications SHOULD: Stop processing the cancelled request"

sub notify {
    my ($who, $id) = @_;
    return $who->post({ jsonrpc => '2.0', method => 'notifications/cancelled',
                        params => { requestId => $id } })->{status};
}

for my $i (0 .. $#all) {
    my $s = $t->connect();
    my $told = @{[$up->said('notifications/cancelled')]};
    MCPTasks::send_raw($s, $c->legacy_bytes('tools/call', { name => 'queued' },
                                            id => 90 + $i));
    my $work = $c->claim('queued', leaseMs => 600000);

    my @others = ($all[$i]->as(headers => { 'X-User' => 'ann' }),
                  $all[$i]->as(headers => { %{ $c->{headers} },
                                            'X-User' => 'bob' }),
                  $all[$i]->as(headers => { %{ $c->{headers} },
                                            'Mcp-Session-Id' => 'other' }));
    notify($_, 90 + $i) for @others;
    notify($all[$i], 89);
    is($c->held('heartbeat', $work)->{phase}, 'running',
       'a call of the queue: others do not cancel it');
    is(@{[$up->said('notifications/cancelled')]} - $told, 4,
       'which is passed');

    is(notify($all[$i], 90 + $i), 202, 'its client does');
    ok($c->held('heartbeat', $work)->{error}{data}{cancelled},
       'the worker learns it');
    my $res = MCPTasks::read_response($s);
    is($res->{header}{'content-type'}, 'text/event-stream', 'the call ends');
    unlike($res->{body}, qr/jsonrpc/, 'without a response');
    is(@{[$up->said('notifications/cancelled')]} - $told, 4,
       'and the upstream is not told');
}

# once it has ended, and in the modern era, there is nothing to stop
{
    my $told = @{[$up->said('notifications/cancelled')]};
    is(notify($c, 90), 202, 'once more');
    is(@{[$up->said('notifications/cancelled')]} - $told, 1, 'is passed');

    my $s = $t->connect();
    MCPTasks::send_raw($s, $c->as(extensions => [])->modern_bytes('tools/call',
                               { name => 'queued' }, id => 95));
    my $work = $c->claim('queued', leaseMs => 600000);
    notify($c, 95);
    is($c->held('heartbeat', $work)->{phase}, 'running',
       'a modern call is cancelled by closing it');
    $c->complete($work, '{}');
    ok(MCPClient::answer($s)->{json}{result}, 'and answered');
}

is(@{[$t->worker_pids()]}, workers(), 'all processes are there');
is_deeply([$t->worker_pids()], [sort { $a <=> $b } @pids], 'the same');

$g->done();
done_testing();
