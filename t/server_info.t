# Every result of the modern era says which server it is from.
#
# 2026-07-28, schema, serverInfo in ResultMetaObject: "Servers SHOULD include this
# field on every response unless specifically configured not to do so."

use warnings;
use strict;

use FindBin;
use lib "$FindBin::Bin/lib";

use Test::More;

use MCPClient qw/ answer /;
use MCPGateway;
use MCPTasks qw/ workers /;

my $meta = 'io.modelcontextprotocol';
my @extensions = ("$meta/tasks", 'io.github.nginx-mcp-tasks/extended');
my $file = '{"tools":[{"name":"slow","inputSchema":{"type":"object",'
           . '"properties":{"n":{"type":"integer"}}}},'
           . '{"name":"after","inputSchema":{"type":"object"},'
           . '"mcpTasks":{"after":"10s"}}]}';


sub is_from {
    my ($got, $type, $name) = @_;
    local $Test::Builder::Level = $Test::Builder::Level + 1;
    my $result = $got->{result} || {};
    is(($result->{_meta}{"$meta/serverInfo"} || {})->{name},
       'nginx-mcp-tasks', "$name: from this server")
        or diag(MCPClient::encode($got));
    is($result->{resultType}, $type, "$name: $type");
    return $result;
}


sub is_result {
    my ($c, $method, $params, $type, $name) = @_;
    local $Test::Builder::Level = $Test::Builder::Level + 1;
    return is_from($c->modern($method, $params)->{json}, $type,
                   $name || $method);
}


# a call that waits, and its work
sub waiting {
    my ($c, $tool) = @_;
    my $s = $c->{t}->connect();
    MCPTasks::send_raw($s, $c->modern_bytes('tools/call', { name => $tool }));
    return ($s, $c->claim($tool, leaseMs => 600000));
}


# --- tasks and calls, the same for all endpoints

sub tasks_of {
    my ($c) = @_;
    my %end = (
        working => sub { },
        input_required => sub { $c->held('ask', $_[0], inputRequests => {
                                         q => MCPClient::form() }) },
        completed => sub { $c->complete($_[0], '{}') },
        failed => sub { $c->held('fail', $_[0],
                                 error => { code => 1, message => 'x' }) },
        cancelled => sub { $c->modern('tasks/cancel',
                                      { taskId => $_[0]{taskId} }) });

    for my $status (sort keys %end) {
        my $id = is_result($c, 'tools/call', { name => 'slow' }, 'task')
                 ->{taskId};
        $end{$status}->($c->claim_id('slow', $id));
        is(is_result($c, 'tasks/get', { taskId => $id }, 'complete')->{status},
           $status, $status);
        is_result($c, 'tasks/update', { taskId => $id, inputResponses => {} },
                  'complete', "$status: tasks/update");
        is_result($c, 'tasks/cancel', { taskId => $id }, 'complete',
                  "$status: tasks/cancel");
    }

    my $id = is_result($c, 'tasks/create', { action => 'act' }, 'task')
             ->{taskId};
    is_result($c, 'tasks/send', { action => 'act', progressToken => 'p' },
              'task');
    is_result($c, 'tasks/list', {}, 'complete');
    is_result($c, 'tasks/update', { taskId => $id, metadata => { a => 1 } },
              'complete', 'tasks/update with metadata');
    $c->claim('act') for 1, 2;
    is_result($c, 'tasks/progress', { progressToken => 'p', progress => 1 },
              'complete');

    is_result($c, 'tools/call', { name => 'slow', arguments => { n => 'x' } },
              'complete', 'arguments that do not match');

    # calls that wait for a worker
    my $plain = $c->as(extensions => []);

    for my $case ([$plain, 'slow'], [$c, 'after']) {
        my ($who, $tool) = @$case;
        my ($s, $work) = waiting($who, $tool);
        $c->complete($work, '{"content":[]}');
        is_from(answer($s)->{json}, 'complete', "$tool: the result of a call");
    }

    my ($s, $work) = waiting($plain, 'slow');
    $c->held('ask', $work, inputRequests => { q => MCPClient::form() });
    is_from(answer($s)->{json}, 'input_required', 'a question of a call');

    my $stream = $c->stream($c->modern_bytes('subscriptions/listen',
        { notifications => { taskIds => [$id] } }));
    $stream->message(10) for 1, 2;
    return $stream;
}


{
    my $t = MCPTasks->new(
        workers => workers(), files => { 'tools.json' => $file },
        http => 'mcp_tasks_zone zone=z:4m; mcp_tasks_tools tools.json;',
        server => 'mcp_tasks_owner $http_x_user;',
        surfaces => [qw/ mcp worker /]);
    my $c = MCPClient->new($t, extensions => \@extensions)->user('ann');

    is_result($c, 'server/discover', {}, 'complete');
    is_result($c, 'tools/list', {}, 'complete');

    my $stream = tasks_of($c);
    $t->reload();
    is_from($stream->message(10), 'complete', 'the end of a subscription');
    ok($t->stop(), 'nginx stops');
    is($t->faults(), '', 'nothing bad in the log');
}


# --- a gateway: the module's own results; those of the upstream are its own

{
    my $g = MCPGateway->new(
        workers => workers(), file => $file,
        tool => ['far support=optional'], on => { far => [['sse'], ['hold']] });
    my $c = $g->{c}->as(extensions => \@extensions);

    tasks_of($c)->close();

    my $id = is_result($c, 'tools/call', { name => 'far' }, 'task',
                       'a background call')->{taskId};
    is_result($c, 'tasks/get', { taskId => $id }, 'complete', 'while it runs');
    $g->go('far', ['result', '{"content":[]}']);
    $g->ends($id);
    my $result = is_result($c, 'tasks/get', { taskId => $id }, 'complete',
                           'a background call that has ended');
    is_deeply($result->{result}, { resultType => 'complete', content => [] },
              'nothing is added to the result of the upstream');
    is_result($c, 'tasks/cancel', { taskId => $id }, 'complete',
              'a background call, cancelled');

    $g->done();
}

done_testing();
