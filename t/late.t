# A store that answers later: every surface goes on where it was, and a client
# that has gone meanwhile harms nobody.

use warnings;
use strict;

use FindBin;
use lib "$FindBin::Bin/lib";

use Test::More;
use Time::HiRes qw/ time /;

use MCPClient;
use MCPTasks;

my $t = MCPTasks->new(
    tools => ['slow'],
    http => 'mcp_tasks_zone zone=z:2m; mcp_tasks_tools tools.json;',
    surfaces => [qw/ mcp worker probe /],
    server => 'mcp_tasks_owner $http_x_user;');
ok($t->probe('op=late'), 'from now on the store takes its time');

my $c = MCPClient->new($t, headers => { 'X-User' => 'ann' });

my $start = time();
my $id = $c->legacy('tools/call', { name => 'slow', task => {} })
         ->{json}{result}{task}{taskId};
ok($id, 'a task is created');

SKIP: {
    # what is not saved yet has another time
    skip('with a store', 1) if $ENV{MCP_TASKS_STORE};
    cmp_ok(time() - $start, '>=', 0.015, 'later');
}

is($c->legacy('tasks/get', { taskId => $id })->{json}{result}{status},
   'working', 'tasks/get');
is(scalar @{ $c->legacy('tasks/list')->{json}{result}{tasks} }, 1,
   'tasks/list');

my $work = $c->claim('slow');
is($work->{taskId}, $id, 'claim');
is($c->held('heartbeat', $work)->{phase}, 'running', 'heartbeat');
is($c->held('progress', $work, progress => 0.5)->{phase}, 'running',
   'progress');
is($c->held('ask', $work, inputRequests => { q => {
       method => 'elicitation/create', params => {} } })->{phase},
   'input_required', 'ask');

my $res = $c->modern('tasks/update', { taskId => $id,
                                       inputResponses => { q => 1 } });
is($res->{body}, '{"jsonrpc":"2.0","id":1,"result":{"resultType":"complete"}}',
   'tasks/update');
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

is($t->probe('op=check')->{check}, 'ok', 'the table is consistent');
ok($t->stop(), 'nginx stops');
is($t->faults(), '', 'nothing in the log');

done_testing();
