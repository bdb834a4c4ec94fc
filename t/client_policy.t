# mcp_tasks_client_policy: the run timeout and the priority that clients request
# for their tasks, within what the operator allows.

use warnings;
use strict;

use FindBin;
use lib "$FindBin::Bin/lib";

use JSON::PP;
use Test::More;

use MCPClient;
use MCPStore qw/ rows sql /;
use MCPTasks qw/ wait_for workers /;

my $ours = 'io.github.nginx-mcp-tasks';

my $t = MCPTasks->new(
    workers => workers(),
    tools => ['slow', 'order', 'times', ['own', '"runTimeout":"2h",'
                                                . '"priority":3']],
    http => 'mcp_tasks_zone zone=z:8m store=sqlite:tasks.db; '
            . 'mcp_tasks_tools tools.json;',
    surfaces => [qw/ worker probe /],
    server => <<'END');
    mcp_tasks_timeout run=10m;
    location /off { mcp_tasks zone=z; }
    location /hour { mcp_tasks zone=z;
                     mcp_tasks_client_policy timeout=1h priority=2; }
    location /timeout { mcp_tasks zone=z; mcp_tasks_client_policy timeout=1h; }
    location /low { mcp_tasks zone=z; mcp_tasks_client_policy priority=0; }
    location /outer {
        mcp_tasks_client_policy timeout=1h priority=2;
        location /outer/same { mcp_tasks zone=z; }
        location /outer/less { mcp_tasks zone=z;
                               mcp_tasks_client_policy priority=2; }
        location /outer/off { mcp_tasks zone=z; mcp_tasks_client_policy off; }
    }
END

my $c = MCPClient->new($t);
my $db = "$t->{dir}/tasks.db";
my @kinds = qw/ legacy modern create rest /;


# the answer to a call with this timeout and this priority, as JSON texts
sub call {
    my ($kind, $uri, $tool, $timeout, $priority, %opt) = @_;
    my $who = $c->as(uri => $uri);
    my %name = $kind eq 'create' ? (timeout => 'timeout')
             : $kind eq 'rest' ? (timeout => 'timeoutMs')
             : (timeout => "$ours/timeout", priority => "$ours/priority");
    my $members = join ',',
        defined $timeout ? "\"$name{timeout}\":$timeout" : (),
        defined $priority ? '"' . ($name{priority} // 'priority')
                            . "\":$priority" : ();
    my $more = $members eq '' ? '' : ",$members";

    if ($kind eq 'rest') {
        my $res = $t->post("$uri/tasks", "{\"tool\":\"$tool\"$more}");
        return { %$res, json => MCPClient::decode($res->{body}) };
    }

    return $who->legacy('tasks/create', "{\"action\":\"$tool\"$more}")
        if $kind eq 'create';

    return $who->legacy('tools/call', "{\"name\":\"$tool\",\"task\":{},"
                                      . "\"_meta\":{$members}}")
        if $kind eq 'legacy';

    # values as they are: numbers, and what is none
    my %meta = map { /^"([^"]+)":(.*)/s
                     ? ($1 => JSON::PP->new->allow_nonref->decode($2)) : () }
               split /,(?=")/, $members;
    return $who->modern('tools/call', { name => $tool }, meta => \%meta,
        extensions => $opt{plain} ? ['io.modelcontextprotocol/tasks']
                                  : ['io.modelcontextprotocol/tasks',
                                     "$ours/extended"]);
}


# the run timeout and the priority that the task has
sub policy {
    my ($res) = @_;
    my $result = $res->{json}{result} || $res->{json};
    my $id = $result->{taskId} || $result->{task}{taskId}
        or return "no task: $res->{body}";
    return sql($db, "SELECT run_timeout || ' ' || priority FROM task"
                    . " WHERE id = '$id'");
}


for my $kind (@kinds) {

    # [location, tool, timeout, priority, what the task has]
    for my $case (
        ['/off', 'slow', undef, undef, '600000 1'],
        ['/off', 'slow', 60000, 3, '600000 1'],
        ['/off', 'own', 60000, 0, '7200000 3'],
        ['/off', 'slow', '"x"', -1, '600000 1'],

        ['/hour', 'slow', undef, undef, '600000 1'],
        ['/hour', 'slow', 60000, undef, '60000 1'],
        ['/hour', 'slow', undef, 2, '600000 2'],
        ['/hour', 'slow', 3600000, 0, '3600000 0'],

        # no more than is allowed
        ['/hour', 'slow', 3600001, 3, '3600000 2'],
        ['/hour', 'slow', 999999999999999999, 2, '3600000 2'],

        # but as much as the tool has itself
        ['/hour', 'own', undef, undef, '7200000 3'],
        ['/hour', 'own', 7200000, 3, '7200000 3'],
        ['/hour', 'own', 7200001, 3, '7200000 3'],
        ['/hour', 'own', 20000, 1, '20000 1'],

        # one of them
        ['/timeout', 'slow', 60000, 3, '60000 1'],
        ['/low', 'slow', 60000, 3, '600000 1'],
        ['/low', 'slow', undef, 0, '600000 0'],

        # inherited as a whole
        ['/outer/same', 'slow', 60000, 2, '60000 2'],
        ['/outer/less', 'slow', 60000, 2, '600000 2'],
        ['/outer/off', 'slow', 60000, 2, '600000 1'],
    )
    {
        my ($uri, $tool, $timeout, $priority, $want) = @$case;
        is(policy(call($kind, $uri, $tool, $timeout, $priority)), $want,
           "$kind: $tool at $uri, timeout " . ($timeout // '-')
           . ', priority ' . ($priority // '-'));
    }

    my $name = $kind eq 'rest' ? 'timeoutMs' : 'timeout';
    my $tasks = rows($db);

    for my $case (
        (map { [$_, undef, "$name must be a positive integer"] }
         0, -1, 1.5, '"1s"', 'null', 'true', '[]'),
        (map { [undef, $_, 'priority must be an integer from 0 to 3'] }
         4, -1, 0.5, '"2"', 'null', 'false', '{}'))
    {
        my $res = call($kind, '/hour', 'slow', @$case[0, 1]);
        my $what = $kind eq 'rest' ? $res->{json}{detail}
                                   : $res->{json}{error}{message};
        like($what, qr/\Q$case->[2]\E$/, "$kind: $name "
             . ($case->[0] // '-') . ', priority ' . ($case->[1] // '-'));
        is($kind eq 'rest' ? $res->{status} : $res->{json}{error}{code},
           $kind eq 'rest' ? 400 : -32602, "$kind: refused");
    }

    is(rows($db), $tasks, "$kind: a refused call leaves no task");
}

# only clients that declare the extension
is(policy(call('modern', '/hour', 'slow', 60000, 2, plain => 1)),
   '600000 1', 'modern: ignored without the extension');
is(policy(call('modern', '/hour', 'slow', '"x"', undef, plain => 1)),
   '600000 1', 'modern: whatever it is');

# the higher priority is claimed first
{
    my @ids = map { call('legacy', '/hour', 'order', undef, $_)
                    ->{json}{result}{task}{taskId} } 0, 1, 2;
    my @order = map { $c->claim('order') } @ids;
    is_deeply([map { $_->{taskId} } @order], [reverse @ids],
              'tasks are claimed by their priority');
}

# the timeout is that of an attempt
{
    call('create', '/hour', 'times', 500);
    my $work = $c->claim('times');
    cmp_ok($work->{deadlineMs}, '<=', 500, 'the worker is told its deadline');
    my $id = $work->{taskId};
    my $got = {};
    wait_for {
        $got = $c->as(uri => '/hour')->modern('tasks/get', { taskId => $id })
               ->{json}{result};
        return $got->{status} eq 'failed';
    };
    is($got->{error}{data}{reason}, 'task_timeout', 'it times out');
}

is($t->probe('op=check')->{check}, 'ok', 'the table is in order');
ok($t->stop(), 'nginx stops');
is($t->faults(), '', 'nothing bad in the log');

# the directive itself
for my $case (
    ['mcp_tasks_client_policy off;'],
    ['mcp_tasks_client_policy timeout=1ms;'],
    ['mcp_tasks_client_policy priority=0;'],
    ['mcp_tasks_client_policy priority=3 timeout=40d;'],
    ['mcp_tasks_client_policy;', 'invalid number of arguments'],
    ['mcp_tasks_client_policy on;', 'invalid parameter "on"'],
    ['mcp_tasks_client_policy off off;', 'invalid parameter "off"'],
    ['mcp_tasks_client_policy timeout=1s off;', 'invalid parameter "off"'],
    ['mcp_tasks_client_policy timeout=off;', 'invalid parameter "timeout=off"'],
    ['mcp_tasks_client_policy timeout=;', 'invalid parameter "timeout="'],
    ['mcp_tasks_client_policy timeout=60d;', 'invalid parameter "timeout=60d"'],
    ['mcp_tasks_client_policy timeout=0;',
     '"mcp_tasks_client_policy timeout=" must not be zero'],
    ['mcp_tasks_client_policy priority=x;', 'invalid parameter "priority=x"'],
    ['mcp_tasks_client_policy priority=-1;', 'invalid parameter "priority=-1"'],
    ['mcp_tasks_client_policy priority=4;',
     '"mcp_tasks_client_policy priority=" must not exceed 3'],
    ['mcp_tasks_client_policy ttl=1h;', 'invalid parameter "ttl=1h"'],
    ['mcp_tasks_client_policy timeout=1s timeout=2s;', 'is duplicate'],
    ['mcp_tasks_client_policy off; mcp_tasks_client_policy priority=1;',
     'is duplicate'],
)
{
    my ($conf, $error) = @$case;
    $t->configure(server => "location /mcp { mcp_tasks zone=z; $conf }");
    my ($ok, $said) = $t->check();
    ok($error ? !$ok : $ok, $error ? "refused: $conf" : "taken: $conf")
        or diag($said);
    like($said, qr/\[emerg\] .*\Q$error\E/, 'and says why') if $error;
}

done_testing();
