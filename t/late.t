# A store that does and answers everything later: every surface goes on where it
# was, and a client that has gone meanwhile harms nobody.  Every operation there
# is comes up here.

use warnings;
use strict;

use FindBin;
use lib "$FindBin::Bin/lib";

use Test::More;
use Time::HiRes qw/ time /;

use MCPClient;
use MCPGateway;
use MCPPattern qw/ $server /;
use MCPTasks qw/ wait_for /;
use MCPTools qw/ tools_json /;

my @ops = qw/ create get list claim update delete sweep stats wait leave news
              session run orphans recent pause drain pin unpin /;

my $g = MCPGateway->new(
    workers => 2,
    conf => 'mcp_tasks_retries 2 backoff=100ms;',
    on => { again => [['sse'], ['hold']] },
    tool => ['again idempotent'],
    store => 'store=late:10',
    file => tools_json('slow'),
    server => 'location /own { mcp_tasks zone=z; }
               location /status { mcp_tasks_status zone=z; }
               location /admin/ { mcp_tasks_console zone=z admin; }');
my $t = $g->{t};

my $c = MCPClient->new($t, headers => { 'X-User' => 'ann' });

my $start = time();
my $id = $c->legacy('tools/call', { name => 'slow', task => {} })
         ->{json}{result}{task}{taskId};
ok($id, 'a task is created');

cmp_ok(time() - $start, '>=', 0.001, 'later');

is($c->legacy('tasks/get', { taskId => $id })->{json}{result}{status},
   'working', 'tasks/get');
is(scalar @{ $c->legacy('tasks/list')->{json}{result}{tasks} }, 1,
   'tasks/list');

my $work = $c->claim('slow');
is($work->{taskId}, $id, 'claim');
is($c->held('heartbeat', $work)->{phase}, 'running', 'heartbeat');
is($c->held('progress', $work, progress => 0.5)->{phase}, 'running',
   'progress');
is($c->held('ask', $work, inputRequests => { q => MCPClient::form() })->{phase},
   'input_required', 'ask');

my $res = $c->modern('tasks/update', { taskId => $id,
                                       inputResponses => { q => 1 } });
is($res->{body}, '{"jsonrpc":"2.0","id":1,"result":{"resultType":"complete",'
                 . "$server}}", 'tasks/update');
is_deeply($c->held('answers', $work)->{inputResponses}, { q => 1 }, 'answers');
like($c->legacy('tasks/update', { taskId => $id, metadata => { a => 1 } })
     ->{body}, qr/"metadata":\{"a":1\}/, 'metadata');

is($c->complete($work, '{"content":[]}')->{phase}, 'completed', 'complete');
like($c->legacy('tasks/result', { taskId => $id })->{body},
     qr/"content":\[\]/, 'tasks/result');
like($c->legacy('tasks/cancel', { taskId => $id })->{body}, qr/task_terminal/,
     'refused later as well');
like($c->legacy('tasks/get', { taskId => 'none' })->{body}, qr/task_not_found/,
     'or at once');

# --- a plain call

my $stream = $c->stream($c->legacy_bytes('tools/call', { name => 'slow' }));
$c->complete($c->claim('slow'), '{"content":[1]}');
like($stream->head(10), qr/200 OK/, 'a plain call');
undef $stream;

# --- clients that do not wait for it

for (1 .. 20) {
    my $s = $t->connect();
    MCPTasks::send_raw($s, $c->legacy_bytes('tools/call',
                                            { name => 'slow', task => {} }));
    close($s);
}

is($c->legacy('ping')->{status}, 200, 'those who left harm nobody');
is(scalar(grep { $_->{tasks} && @{ $_->{tasks} } }
          map { $c->worker('worker/claim', { tools => ['slow'] }) } 1 .. 20),
   20, 'and their tasks are there');

# --- those who wait: they pin what they look at, and are counted

{
    my $one = $c->create('slow');
    my $poll = $c->stream($c->rest_bytes("tasks/$one/poll?timeout=20000"
                                         . '&version=1'));
    my $events = $c->follow("tasks/$one/events");
    my $all = $c->follow('tasks/events');
    my $listen = $c->stream($c->modern_bytes('subscriptions/listen',
        { notifications => { taskIds => [$one] } }));
    my $session = $c->as(uri => '/own')->in_session();
    my $told = $session->get_stream();
    my $waiting = $t->post_later('/worker', MCPClient::rpc('worker/claim',
        { tools => ['other'], waitMs => 20000 }));

    like($_->head(10), qr/200 OK/, 'a stream begins')
        for $events, $all, $listen, $told;

    my $mine = $session->create('slow');
    my %work = map { $_->{taskId} => $_ } map { $c->claim('slow') } 1 .. 2;
    is($c->complete($work{$_}, '{"content":[]}')->{phase}, 'completed',
       'a task ends') for $one, $mine;

    like($poll->head(10), qr/200 OK/, 'the poll is answered');
    ok(wait_for(sub { ($events->next_data(1)->{data} // '') =~ /"completed"/ }),
       'its stream tells of it');
    ok(wait_for(sub { ($all->next_data(1)->{data} // '') =~ /"$one".*"completed"/ }),
       'that of the owner');
    ok(wait_for(sub { ($listen->next_data(1)->{data} // '') =~ /"completed"/ }),
       'that of the subscription');
    ok(wait_for(sub { ($told->next_data(1)->{data} // '') =~ /"$mine"/ }),
       'and the session hears of its own');

    $t->probe('op=create&tool=other&owner=ann&params={}');
    my $got = MCPTasks::read_response($waiting);
    like($got->{body}, qr/"taskId"/, 'a claim that waits gets a task');
    $_->close() for $events, $all, $listen, $told;
}

# --- operators

{
    my $admin = $c->as(uri => '/admin', headers => {});
    like($t->request('GET', '/status', '')->{body}, qr/"tasks"/, 'status');
    is($admin->rest('api/tasks')->{status}, 200, 'the console');
    my $follow = $admin->stream($admin->rest_bytes('api/events',
        headers => { Accept => 'text/event-stream' }));
    like($follow->head(10), qr/200 OK/, 'its stream');
    is($admin->rest_post('api/tools/pause', { tool => 'slow' })->{status}, 200,
       'pause');
    is($admin->rest_post('api/tools/resume', { tool => 'slow' })->{status}, 200,
       'resume');
    is($admin->rest_post('api/workers/drain', { worker => '127.0.0.1' })
       ->{status}, 200, 'drain');
    is($admin->rest_post('api/workers/resume', { worker => '127.0.0.1' })
       ->{status}, 200, 'and back');
    $follow->close();
}

# --- a call in the background, whose process dies

{
    my $nobody = $c->as(headers => {});
    my $conn = $t->connect_all() or BAIL_OUT('processes cannot be reached');
    my ($pid, $other) = sort keys %$conn;
    my $id = $g->modern_task('again', who => $nobody->as(via => $conn->{$pid}));

    ok($g->{up}->call('again', 1, 10), 'a call');
    kill('KILL', $pid);
    my $again = $g->{up}->call('again', 2, 10);
    ok($again, 'another process makes it again');
    $g->{up}->go($again, ['result', '{"a":1}']);
    my $there = $nobody->as(via => $conn->{$other});
    is($g->until($id, sub { ($_[0]{status} // '') eq 'completed' }, 10,
                 $there)->{status}, 'completed', 'and it ends');
    ok($t->replaced($pid), 'there is another process');
}

# --- all of it

my $count = $t->probe('op=late')->{ops};
cmp_ok($count->[$_], '>', 0, "$ops[$_]: " . ($count->[$_] // 'none'))
    for 0 .. $#ops;
is(scalar @$count, scalar @ops, 'and there are no other operations');

is($t->probe('op=check')->{check}, 'ok', 'the table is consistent');
ok(wait_for(sub { $t->probe('op=waits')->{zone} == 0 }), 'nobody waits');
ok($t->stop(), 'nginx stops');
is($t->faults('exited on signal 9'), '', 'nothing in the log');

done_testing();
