package MCPWorker;

# The worker protocol as tests of it use it: parameters are JSON text, so that
# they can be sent as they are, and answers keep their bytes.
#
#   my $t = MCPWorker::start();
#   my $id = create('plain', '{"a":1}');          # as a client
#   my $claim = claim('plain', '"leaseMs":5000'); # as a worker
#   is(say_of($claim, 'progress', '"progress":0.5')->{result}{phase}, ...);
#   finish($claim);
#   MCPWorker::done();
#
# An answer is the decoded response; "raw" has its bytes.

use warnings;
use strict;

use JSON::PP;
use Test::More;

use MCPTasks qw/ wait_for workers /;

use Exporter qw/ import /;

our @EXPORT_OK = qw/ $question body claim create decoded fails finish held
                     is_refused legacy modern reclaimed say_of taken task
                     work /;

our $question = '{"method":"elicitation/create","params":{"mode":"form",'
    . '"message":"Name?","requestedSchema":{"type":"object",'
    . '"properties":{"n":{"type":"number","maximum":1.0}}}}}';

my %policy = (
    plain => '"backoff":50',
    other => '"backoff":50',
    slow => '"priority":0',
    normal => '"priority":1',
    urgent => '"priority":3',
    quick => '"lease":400,"backoff":100,"attempts":3',
    once => '"lease":300,"attempts":1',
    patient => '"lease":400,"backoff":2000',
    queue => '"queueTimeout":300',
    run => '"runTimeout":500,"lease":"1m"',
    asks => '"taskSupport":"required"',
);

my $json = JSON::PP->new->allow_nonref->canonical->allow_bignum;
my $meta = '"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28",'
    . '"io.modelcontextprotocol/clientCapabilities":{"elicitation":{},'
    . '"extensions":{"io.modelcontextprotocol/tasks":{}}}}';

my $t;


# nginx with an endpoint for clients and one for workers; "server" adds to it
sub start {
    my (%opt) = @_;
    my $server = delete $opt{server} || '';

    $t = MCPTasks->new(
        workers => workers(), module => $ENV{MCP_TASKS_MODULE},
        listen => 'reuseport',
        tools => [map { [$_, $policy{$_}] } sort keys %policy],
        http => 'mcp_tasks_zone zone=z:8m;', server => <<"END", %opt);
        location /mcp {
            mcp_tasks        zone=z;
            mcp_tasks_tools  tools.json;
        }

        location /worker {
            mcp_tasks_worker  zone=z;
        }

        $server
END

    return $t;
}


sub done {
    my ($expected) = @_;
    ok($t->stop(), 'nginx exits');
    is($t->faults($expected), '', 'no errors in the log');
}


sub body {
    my ($method, $params) = @_;
    return qq({"jsonrpc":"2.0","id":7,"method":"$method")
           . (defined $params ? qq(,"params":$params}) : '}');
}


sub decoded {
    my ($res) = @_;
    return { error => { code => 0 }, raw => '' }
        unless $res && $res->{status} == 200;

    my $got = $json->decode($res->{body});
    $got->{raw} = $res->{body};
    return $got;
}


# a request of a worker
sub work {
    my ($method, $params, $uri) = @_;
    return decoded($t->post($uri || '/worker', body("worker/$method", $params),
                            { Accept => undef }));
}


# requests of clients of both eras
sub legacy {
    my ($method, $params) = @_;
    return decoded($t->post('/mcp', body($method, $params),
                            { 'MCP-Protocol-Version' => '2025-11-25' }));
}


sub modern {
    my ($method, $id, $more) = @_;
    my $params = qq({"taskId":"$id",) . ($more ? "$more," : '') . "$meta}";
    return decoded($t->post('/mcp', body($method, $params),
                            { 'MCP-Protocol-Version' => '2026-07-28',
                              'Mcp-Method' => $method, 'Mcp-Name' => $id }));
}


sub task {
    my ($id) = @_;
    return modern('tasks/get', $id)->{result};
}


# a task that clients see: its id
sub create {
    my ($tool, $arguments, $more) = @_;
    $arguments = '{}' unless defined $arguments;
    $more = $more ? ",$more" : '';
    my $got = legacy('tools/call', qq({"name":"$tool","arguments":$arguments,)
                                   . qq("task":{}$more}));
    return $got->{result}{task}{taskId};
}


# what a worker receives that claims one task; nothing if there is none
sub claim {
    my ($tool, $more) = @_;
    $more = defined $more ? ",$more" : '';
    my $got = work('claim', qq({"tools":["$tool"]$more}));
    return $got->{result}{tasks}[0];
}


# the members that name the task and prove the claim
sub held {
    my ($claim) = @_;
    return qq("taskId":"$claim->{taskId}","lease":"$claim->{lease}");
}


sub say_of {
    my ($claim, $method, $more) = @_;
    return work($method, '{' . held($claim) . ($more ? ",$more}" : '}'));
}


# a new task, claimed by a worker
sub taken {
    my ($tool, $more) = @_;
    my $id = create($tool);
    my $claim = claim($tool, $more);
    BAIL_OUT("no task of \"$tool\"") unless $id && $claim;
    is($claim->{taskId}, $id, "a task of \"$tool\" is claimed");
    return $claim;
}


sub finish {
    my ($claim) = @_;
    return say_of($claim, 'complete', '"result":{"content":[]}');
}


# a task whose lease is lost can be claimed again, after its backoff
sub reclaimed {
    my ($tool) = @_;
    return wait_for { return claim($tool) };
}


sub fails {
    my ($id) = @_;
    return wait_for { return task($id)->{status} eq 'failed' };
}


sub is_refused {
    my ($got, $code, $reason, $what) = @_;
    is($got->{error}{code}, $code, "$what: $code");
    is($got->{error}{data}{reason}, $reason, "$what: the reason")
        if defined $reason;
}


1;
