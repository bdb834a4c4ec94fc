# A database that an earlier release made opens, and has all its tasks.

use warnings;
use strict;

use FindBin;
# what has a store here is said here
BEGIN { delete $ENV{MCP_TASKS_STORE} }

use lib "$FindBin::Bin/lib";

use JSON::PP;
use Test::More;

use MCPClient;
use MCPTasks qw/ workers /;

my %expected = (
    '4cab0ce1-1ed9-46ca-b40f-3d1829fa5eb4' => {
        status => 'cancelled', version => 2,
    },
    'b9d25525-e530-43ad-b136-e927991e5aaa' => {
        status => 'working', version => 1,
    },
    '9dae7471-c174-44aa-8f6e-e3968bfa4bc0' => {
        status => 'working', version => 3, statusMessage => 'first quarter',
        progress => 1, total => 4,
    },
    '92a390f1-e079-44ec-a86e-6e0d0b671331' => {
        status => 'input_required', version => 3,
        inputRequests => {
            color => {
                method => 'elicitation/create',
                params => {
                    message => 'Which?',
                    requestedSchema => {
                        type => 'object',
                        properties => { c => { type => 'string' } },
                    },
                },
            },
        },
    },
    '1c43d678-b4fc-483f-8b93-7ed34750e9f6' => {
        status => 'failed', version => 3,
        error => { code => -1, message => 'broken' },
    },
    '3805fa91-70d2-4a2d-a785-f95c46e18c40' => {
        status => 'completed', version => 3,
        result => {
            resultType => 'complete',
            content => [{ type => 'text', text => "\xfcn\xefcode" }],
        },
    },
);

my $t = MCPTasks->new(
    workers => workers(), tools => ['count'], surfaces => [qw/ mcp worker /],
    http => 'mcp_tasks_tools tools.json; '
            . 'mcp_tasks_zone zone=z:4m store=sqlite:tasks.db;',
    server => 'mcp_tasks_owner alice;');

ok($t->stop(), 'nginx stops');
unlink(glob "$t->{dir}/tasks.db*");
is(system("sqlite3 '$t->{dir}/tasks.db' < '$FindBin::Bin/data/tasks-2.sql'"),
   0, 'the old database is in place');
chmod(0666, "$t->{dir}/tasks.db");
ok($t->start(), 'nginx starts with it');

sub request {
    my ($path) = @_;
    my $r = $t->request('GET', $path);
    is($r->{status}, 200, $path);
    return decode_json($r->{body});
}

is(scalar @{ request('/mcp/tasks')->{tasks} }, keys %expected,
   'every task is there');

for my $id (sort keys %expected) {
    my $task = request("/mcp/tasks/$id");
    my %shown = map { $_ => $task->{$_} } keys %{ $expected{$id} };
    is_deeply(\%shown, $expected{$id}, "$expected{$id}{status} is as it was");
}

# rows of then do not say what is in a result
my $done = '3805fa91-70d2-4a2d-a785-f95c46e18c40';
my $c = MCPClient->new($t);
my $result = qq("content":[{"type":"text","text":"\xc3\xbcn\xc3\xafcode"}]);
like($c->modern('tasks/get', { taskId => $done })->{body},
     qr/"result":\{"resultType":"complete",\Q$result\E\}\}\}\z/,
     'a result, modern');
is($c->legacy('tasks/result', { taskId => $done })->{body},
   '{"jsonrpc":"2.0","id":1,"result":{"_meta":{"io.modelcontextprotocol/'
   . qq(related-task":{"taskId":"$done"}},$result}}), 'and legacy');

# the one that was queued can be claimed, with the exact bytes it came with
my $claimed = $t->post('/worker',
    '{"jsonrpc":"2.0","id":1,"method":"worker/claim",'
    . '"params":{"tools":["count"]}}')->{body};
like($claimed, qr/"taskId":"b9d25525-/, 'the queued one is claimed');
like($claimed, qr/"arguments":\{"to":12345678901234567890,"real":1\.0\}/,
     'with its arguments to the byte');

# what it was written with before does not count, this write does
my ($revision) = `sqlite3 '$t->{dir}/tasks.db' "SELECT revision FROM task
    WHERE id = 'b9d25525-e530-43ad-b136-e927991e5aaa'"` =~ /^(\d+)$/;
cmp_ok($revision, '>', 0, 'and has a revision now');
is(`sqlite3 '$t->{dir}/tasks.db' 'PRAGMA user_version'`, "4\n",
   'in a database of the present version');

ok($t->stop(), 'nginx stops');
is($t->faults(), '', 'nothing in the log');

done_testing();
