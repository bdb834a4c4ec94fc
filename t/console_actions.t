# What an operator does in the console: with tasks of workers and with calls of
# a gateway, with tools, and with workers.

use warnings;
use strict;

use FindBin;
use lib "$FindBin::Bin/lib";

use Test::More;
use Time::HiRes qw/ time /;

use MCPClient;
use MCPGateway;
use MCPRest qw/ problem unknown /;
use MCPStatus;
use MCPTasks qw/ wait_for workers /;
use MCPTools qw/ tools_json /;

my @many = map { "many$_" } 1 .. 20;

my $g = MCPGateway->new(
    workers => workers(),
    conf => 'mcp_tasks_retries 0;',
    tool => ['plain support=optional', 'other support=optional',
             map { "$_ support=optional" } @many],
    file => tools_json(qw/ dig walk sing /),
    on => { map { $_ => [['sse'], ['hold']] } qw/ plain other /, @many },
    server => <<'END');
    location /admin/ { mcp_tasks_console zone=z admin; }
    location /limited/ {
        mcp_tasks_console zone=z admin;
        mcp_tasks_limit tasks=1;
    }
    location /status { mcp_tasks_status zone=z; }
END
my ($up, $t, $c) = @{$g}{qw/ up t c /};

my $nobody = $c->as(headers => {});
my $admin = $c->as(uri => '/admin', headers => {});
my $status = MCPStatus->new($t);

# what never comes is waited for as long
use constant NEVER => 0.4;


sub act {
    my ($path, $body, %headers) = @_;
    return $admin->rest_post("api/$path", defined $body ? $body : {},
                             %headers);
}


sub task {
    my ($id) = @_;
    return $admin->rest("api/tasks/$id")->{json};
}


# a claim that waits, on a connection of its own
sub claiming {
    my ($tools, $worker, $s) = @_;
    return $t->post_later('/worker', MCPClient::rpc('worker/claim',
        { tools => $tools, waitMs => 30000, worker => $worker }), {}, $s);
}


sub claimed {
    my ($s) = @_;
    my $res = MCPTasks::read_response($s);
    return MCPClient::decode($res->{body})->{result};
}


# nothing has come for it
sub waits {
    my ($s, $name) = @_;
    ok(!IO::Select->new($s)->can_read(NEVER), $name);
}


sub parked {
    my ($n) = @_;
    return wait_for { $status->json()->{waitingRequests} == $n };
}


sub call {
    my ($tool, $n, $who) = @_;
    return $g->modern_task($tool, who => $who || $nobody,
                           params => { arguments => { n => $n } });
}


# --- cancel

{
    my $id = $c->create_rest('dig');
    my $res = act("tasks/$id/cancel", { reason => 'no <b>more</b>' });
    is($res->{status}, 200, 'cancelled');
    is($res->{json}{phase}, 'cancelled', 'it says so');
    is($res->{json}{statusMessage}, 'no <b>more</b>', 'and why');
    is($res->{json}{history}[-1]{event}, 'cancelled', 'as the last thing');
    is($c->rest("tasks/$id")->{json}{status}, 'cancelled',
       'so its owner sees it');
    problem(act("tasks/$id/cancel"), 409, 'task_terminal', undef, 'twice');
    problem(act('tasks/' . unknown . '/cancel'), 404, 'task_not_found', undef,
            'one that is not there');

    $id = $c->create_rest('dig');
    my $work = $c->claim('dig');
    is(act("tasks/$id/cancel", {})->{status}, 200, 'one that runs');
    is($c->held('heartbeat', $work)->{error}{data}{cancelled},
       JSON::PP::true, 'its worker learns it');

    problem(act("tasks/$id/cancel", '{"reason":1}'), 400, 'invalid_argument',
            ',"detail":"reason must be a JSON string of at most 1024 bytes"',
            'a reason that is none');
    problem(act("tasks/$id/cancel", '{'), 400, 'invalid_json',
            ',"detail":"unexpected end of input"', 'no JSON');
    problem(act("tasks/$id/cancel", '[]'), 400, 'invalid_argument',
            ',"detail":"the body must be a JSON object"', 'no object');
    is($t->request('POST', "/admin/api/tasks/$id/cancel",
                   { 'Content-Type' => 'application/json',
                     'Content-Length' => 2_000_000 }, '')->{status}, 413,
       'too much');
}


# --- retry

{
    my $args = '{"n":1.50,"deep":{"x":[ ]}}';
    my $res = $c->rest_post('tasks', "{\"tool\":\"walk\",\"arguments\":$args,"
                            . '"metadata":{"m":"x"},"ttlMs":123456}');
    my $id = $res->{json}{taskId};

    problem(act("tasks/$id/retry"), 409, 'not_retryable', undef, 'queued');
    my $work = $c->claim('walk');
    problem(act("tasks/$id/retry"), 409, 'not_retryable', undef, 'running');
    $c->held('fail', $work, error => { code => 1, message => 'no' });
    my $before = $admin->rest("api/tasks/$id")->{body}
                 =~ s/"expiresAt":"[^"]+"//r;

    $res = act("tasks/$id/retry");
    is($res->{status}, 201, 'one that failed');
    my $new = $res->{json}{taskId};
    isnt($new, $id, 'is another one');
    is($res->{header}{location}, "../$new", 'which is there');
    is($res->{header}{etag}, '"1"', 'and new');
    is($res->{json}{phase}, 'queued', 'it waits');
    is($res->{json}{$_}, task($id)->{$_}, "the same $_")
        for qw/ owner tool ttlMs attempts method kind pollIntervalMs /;
    like($res->{body}, qr/"params":\{"name":"walk","arguments":\Q$args\E\}/,
         'the same arguments, to the byte');
    is_deeply($res->{json}{metadata}, { m => 'x' }, 'the same metadata');
    is($admin->rest("api/tasks/$id")->{body} =~ s/"expiresAt":"[^"]+"//r,
       $before, 'the old one is as it was');

    $work = $c->claim('walk');
    is($work->{taskId}, $new, 'a worker gets it');
    is("$work->{attempt}/$work->{attempts}", '1/1', 'as the first attempt');
    ok((grep { $_->{taskId} eq $new } @{ $c->rest('tasks')->{json}{tasks} }),
       'its owner has it');

    $c->complete($work, '{"content":[]}');
    problem(act("tasks/$new/retry"), 409, 'not_retryable', undef,
            'one that succeeded');

    $id = $c->create_rest('walk');
    $c->complete($c->claim('walk'), '{"content":[],"isError":true}');
    is(act("tasks/$id/retry")->{status}, 201, 'one that says isError');
    $c->complete($c->claim('walk'), '{"content":[]}');

    $id = $c->create_rest('walk');
    act("tasks/$id/cancel");
    problem($c->as(uri => '/limited', headers => {})
              ->rest_post("api/tasks/$id/retry", {}), 429, 'limit_owner_tasks',
            undef, 'its owner has enough');
    $new = act("tasks/$id/retry")->{json}{taskId};
    is(task($new)->{phase}, 'queued', 'one that was cancelled');
    is($admin->rest("api/tasks/$new", method => 'DELETE')->{status}, 204,
       'and is removed');

    problem(act('tasks/' . unknown . '/retry'), 404, 'task_not_found', undef,
            'one that is not there');
}


# --- input

{
    my $id = $c->create_rest('sing');
    my $work = $c->claim('sing');
    my %question = %{ MCPClient::form() };
    problem(act("tasks/$id/input", { inputResponses => { a => {} } }), 409,
            'task_state_invalid', undef, 'nothing was asked');

    $c->held('ask', $work, inputRequests => { a => \%question,
                                              b => \%question });
    problem(act("tasks/$id/input", '{"inputResponses":{"a":{"action":'
                . '"decline"},"a":{"action":"accept"}}}'), 400,
            'invalid_argument', ',"detail":"duplicate key in the answers"',
            'two answers to one question');
    my $res = act("tasks/$id/input",
                  '{"inputResponses":{"a":{"action":"accept","content":'
                  . '{"n":1.0}},"x":{}}}');
    is($res->{status}, 200, 'an answer');
    is($res->{json}{phase}, 'input_required', 'another one is missing');
    is_deeply([keys %{ $res->{json}{inputRequests} }], ['b'], 'this one');
    like($res->{body}, qr/"content":\{"n":1\.0\}/, 'kept as it came');

    $res = act("tasks/$id/input",
               { inputResponses => { b => { action => 'decline' } } });
    is($res->{json}{phase}, 'running', 'then it goes on');
    is($c->held('answers', $work)->{inputResponses}{b}{action}, 'decline',
       'and its worker has the answers');
    is($res->{json}{history}[-1]{event}, 'answered', 'that is on record');

    problem(act("tasks/$id/input", {}), 400, 'invalid_argument',
            ',"detail":"inputResponses must be an object"', 'no answers');
    $c->complete($work, '{}');
    problem(act("tasks/$id/input", { inputResponses => {} }), 409,
            'task_terminal', undef, 'too late');
}


# --- delete

{
    my $id = $c->create_rest('dig');
    my $poll = $t->connect();
    MCPTasks::send_raw($poll, $c->rest_bytes("tasks/$id/poll?version=1"));
    ok(parked(1), 'its owner waits for it');
    my $res = $admin->rest("api/tasks/$id", method => 'DELETE');
    is($res->{status}, 204, 'deleted');
    is($res->{body}, '', 'nothing is left');
    is(MCPTasks::read_response($poll)->{status}, 404, 'who waited is told');
    is($c->rest("tasks/$id")->{status}, 404, 'its owner has it no more');
    problem($admin->rest("api/tasks/$id"), 404, 'task_not_found', undef,
            'nor is it here');
    problem($admin->rest("api/tasks/$id", method => 'DELETE'), 404,
            'task_not_found', undef, 'twice');

    $id = $c->create_rest('dig');
    my $work = $c->claim('dig');
    is($work->{taskId}, $id, 'a worker has one');
    is($admin->rest("api/tasks/$id", method => 'DELETE', body => 'x')
             ->{status}, 204, 'deleted');
    is($c->complete($work, '{}')->{error}{data}{reason}, 'task_not_found',
       'it finds nothing left to do');

    my $stream = $c->follow('tasks/' . $c->create_rest('dig') . '/events');
    my $told = $stream->event() && $stream->event();
    is($told->{json}{status}, 'working', 'somebody follows one');
    is($admin->rest("api/tasks/$told->{json}{taskId}", method => 'DELETE')
             ->{status}, 204, 'deleted');
    ok(!$stream->event() && $stream->{whole}, 'the stream is over');
}


# --- pause

{
    for my $what (qw/ pause resume /) {
        problem(act("tools/$what", { tool => 'nix' }), 404, 'tool_not_found',
                undef, "$what an unknown tool");
        problem(act("tools/$what", $_), 400, 'invalid_argument',
                ',"detail":"tool or worker must be a string"', "$what $_")
            for '{}', '{"tool":1}', '{"worker":"dig"}';
        problem(act("tools/$what", '{"tool":"a","tool":"b"}'), 400,
                'invalid_argument', ',"detail":"duplicate member in the body"',
                "$what twice");
    }

    my $conn = $t->connect_all() or BAIL_OUT('processes cannot be reached');
    my @pids = sort keys %$conn;

    my $res = act('tools/pause', { tool => 'dig' });
    is($res->{status}, 200, 'paused');
    is($res->{body}, '{"tool":"dig","paused":true}', 'it says so');
    is(act('tools/pause', { tool => 'dig' })->{body},
       '{"tool":"dig","paused":true}', 'again');
    is($status->tool('dig')->{paused}, 1, 'so does the status');
    is($status->tool('walk')->{paused}, 0, 'of this one');
    is($status->metrics()->{'nginx_mcp_tasks_tool_paused'
                            . '{zone="z",tool="dig"}'}, 1, 'in both formats');
    is($status->differs(), '', 'which are the same');

    # in all processes
    my %waiting = map { my $s = $t->connect_to($_);
                        ($_ => claiming(['dig'], "p$_", $s)) } @pids;
    ok(parked(scalar @pids), 'workers wait in all processes');
    my @ids = map { $c->create_rest('dig') } @pids;
    waits($waiting{$_}, 'nothing for them') for @pids;

    my $song = $c->create_rest('sing');
    is($c->worker('worker/claim', { tools => ['dig', 'sing'] })
         ->{tasks}[0]{taskId}, $song, 'who wants others, too, gets these');

    # what lives in the zone
    $t->reload();
    my @told = map { claimed($waiting{$_}) } @pids;
    is(scalar(grep { $_->{drain} && !@{ $_->{tasks} } } @told), scalar @pids,
       'a reload sends them away');
    is($status->tool('dig')->{paused}, 1, 'and leaves the tool paused');
    wait_for { !grep { my $p = $_; grep { $_ == $p } @pids }
               $t->worker_pids() };

    my @waiting = map { claiming(['dig'], "again$_") } 1 .. @pids;
    ok(parked(scalar @pids), 'they come back');
    waits($waiting[0], 'and wait');
    my $began = time();
    is(act('tools/resume', { tool => 'dig' })->{body},
       '{"tool":"dig","paused":false}', 'it goes on');
    my @got = map { claimed($_)->{tasks}[0]{taskId} } @waiting;
    is_deeply([sort @got], [sort @ids], 'now they get them');
    cmp_ok(time() - $began, '<', 10, 'at once');
    is($status->tool('dig')->{paused}, 0, 'so says the status');

    # time in the queue goes on
    is($status->tool('dig')->{tasks}{queued}, 0, 'the queue is empty');
}


# --- drain

{
    for my $what (qw/ drain resume /) {
        problem(act("workers/$what", { worker => 'nix' }), 404,
                'worker_not_found', undef, "$what an unknown worker");
        problem(act("workers/$what", '{"tool":"nix"}'), 400,
                'invalid_argument',
                ',"detail":"tool or worker must be a string"',
                "$what nothing");
    }

    my $id = $c->create_rest('dig');
    my $work = $c->claim('dig', worker => 'w1');
    is($c->held('heartbeat', $work)->{drain}, JSON::PP::false, 'w1 works');

    # two that wait for the same in the same process: one of them is meant
    my ($pid) = $t->worker_pids();
    my $meant = claiming(['dig', 'walk'], 'w1', $t->connect_to($pid));
    my $other = claiming(['dig', 'walk'], 'w2', $t->connect_to($pid));
    my $far = claiming(['dig', 'walk'], 'w1', $t->connect_to($pid, 1));
    ok(parked(3), 'workers wait');

    is(act('workers/drain', { worker => 'w1' })->{body},
       '{"worker":"w1","draining":true}', 'drained');
    is_deeply(claimed($_), { tasks => [], cancelled => JSON::PP::false,
                             drain => JSON::PP::true }, 'it is told at once')
        for $meant, $far;
    waits($other, 'the other one is not');

    is($c->held('heartbeat', $work)->{drain}, JSON::PP::true,
       'heartbeats say it');
    is($c->held('progress', $work)->{drain}, JSON::PP::true, 'progress, too');
    my $began = time();
    is_deeply($c->worker('worker/claim', { tools => ['dig'], worker => 'w1',
                                           waitMs => 20000 }),
              { tasks => [], cancelled => JSON::PP::false,
                drain => JSON::PP::true }, 'it gets no more');
    cmp_ok(time() - $began, '<', 5, 'and need not wait for that');

    is($status->worker('w1')->{draining}, 1, 'the status shows it');
    is($status->worker('w2')->{draining}, 0, 'and who does not');
    is($status->differs(), '', 'in both formats');

    my $next = $c->create_rest('dig');
    is(claimed($other)->{tasks}[0]{taskId}, $next, 'the other one works');
    is($c->complete($work, '{}')->{drain}, JSON::PP::true,
       'what it has it finishes');

    is(act('workers/resume', { worker => 'w1' })->{body},
       '{"worker":"w1","draining":false}', 'it goes on');
    $id = $c->create_rest('dig');
    $work = $c->claim('dig', worker => 'w1');
    is($work->{taskId}, $id, 'and gets tasks');
    is($c->held('release', $work)->{drain}, JSON::PP::false, 'and no more');
    act("tasks/$id/cancel");
}


# --- calls of a gateway: cancelled, deleted

{
    my $id = call('plain', 'c1');
    $g->runs('c1', 'a call runs');
    my $got = task($id);
    is($got->{kind}, 'gateway', 'as a call');
    is($got->{phase}, 'running', 'it does');
    is(act("tasks/$id/cancel")->{json}{phase}, 'cancelled', 'cancelled');
    $g->runs('', 'it is not at upstream any more');
    is(task($id)->{retryable}, JSON::PP::true, 'it may be retried');

    my $deleted = call('plain', 'd1');
    $g->runs('d1', 'another one');
    is($admin->rest("api/tasks/$deleted", method => 'DELETE')->{status}, 204,
       'deleted');
    $g->runs('', 'it is stopped as well');
    is($status->json()->{runningCalls}, 0, 'nothing runs');

    # --- retried

    my $res = act("tasks/$id/retry");
    is($res->{status}, 201, 'retried');
    is($res->{json}{kind}, 'gateway', 'a call again');
    $g->runs('c1', 'upstream gets it again');
    my $new = $res->{json}{taskId};
    $g->go('plain', ['result', '{"content":[],"structuredContent":{"a":1.0}}']);
    wait_for { task($new)->{phase} eq 'completed' };
    is(task($new)->{result}{structuredContent}{a}, 1, 'and answers');
    problem(act("tasks/$new/retry"), 409, 'not_retryable', undef,
            'it succeeded');

    # with what only its client has
    for my $case (['headers that matter', sub { call('plain', 'b1', $c) }],
                  ['the legacy era', sub { $g->task('plain', who => $nobody,
                       params => { arguments => { n => 'b1' } }) }])
    {
        my $name = $case->[0];
        my $bound = $case->[1]->();
        $g->runs('b1', "$name: it runs");
        act("tasks/$bound/cancel");
        $g->runs('', "$name: cancelled");
        is(task($bound)->{retryable}, JSON::PP::false, "$name: bound");
        problem(act("tasks/$bound/retry"), 409, 'not_retryable', undef, $name);
    }

    # --- paused

    my @first = map { call($_, "f$_") } @many;
    $g->runs(join(' ', sort map { "f$_" } @many), 'calls of many tools');
    $admin->rest("api/tasks/$_", method => 'DELETE') for @first;
    $g->runs('', 'that are removed');

    act('tools/pause', { tool => $_ }) for 'plain', @many;
    my @waiting = map { call($_, "w$_") } 'plain', @many;
    my $other = call('other', 'o1');
    $g->runs('o1', 'calls of paused tools wait, and others do not for them');
    is(task($waiting[0])->{phase}, 'queued', 'it is in the queue');
    is($admin->rest("api/tasks/$waiting[1]", method => 'DELETE')->{status},
       204, 'one of them is removed');
    $g->runs('o1', 'which begins none');

    act('tools/resume', { tool => 'plain' });
    $g->runs('o1 wplain', 'one goes on');
    act('tools/resume', { tool => $_ }) for @many;
    $g->runs(join(' ', sort 'o1', 'wplain', map { "w$_" } @many[1 .. $#many]),
         'all of them do');

    $admin->rest("api/tasks/$_", method => 'DELETE') for $other, @waiting;
    $g->runs('', 'and are gone');
}


# --- the gateway is not there any more

{
    my $id = call('plain', 'g1');
    $g->runs('g1', 'a call');
    act("tasks/$id/cancel");
    $g->runs('', 'is cancelled');
    is(task($id)->{retryable}, JSON::PP::true, 'may be retried');

    my $old = join ' ', $t->worker_pids();
    $t->configure(server => <<'END');
    location /admin/ { mcp_tasks_console zone=z admin; }
    location /status { mcp_tasks_status zone=z; }
    location /probe { mcp_tasks_probe zone=z; }
END
    $t->reload();
    wait_for { !grep { $old =~ /\b$_\b/ } $t->worker_pids() };
    is(task($id)->{retryable}, JSON::PP::false,
       'not without the gateway that it came through');
    problem(act("tasks/$id/retry"), 409, 'not_retryable', undef, 'gone');
}

$g->done('too large body');
done_testing();
