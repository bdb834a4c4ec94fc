# The error -32042, URLElicitationRequired: clients of 2025-11-25 open the URLs
# and call again; all others are asked.

use warnings;
use strict;

use FindBin;
use lib "$FindBin::Bin/lib";

use JSON::PP;
use Test::More;

use MCPClient qw/ answer /;
use MCPTasks qw/ workers /;

my $t = MCPTasks->new(
    workers => workers(), listen => 'reuseport',
    tools => [['slow', '"attempts":2'], ['once', '"attempts":1']],
    http => 'mcp_tasks_zone zone=z:2m; mcp_tasks_tools tools.json;',
    server => 'mcp_tasks_owner $http_x_user;'
              . ' location /mcp { mcp_tasks zone=z; }'
              . ' location /console/ { mcp_tasks_console zone=z; }'
              . ' location /worker { mcp_tasks_worker zone=z; }');

my $meta = 'io.modelcontextprotocol';
my $c = MCPClient->new($t, headers => { 'X-User' => 'ann' });
my %url = ("$meta/clientCapabilities" => { elicitation => { url => {} } });


sub link_to {
    my ($n, %more) = @_;
    return { mode => 'url', elicitationId => "e$n", message => "Sign in $n",
             url => "https://example.com/$n", %more };
}


sub required {
    my (@links) = @_;
    return { code => -32042, message => 'Sign in first',
             data => { elicitations => \@links } };
}


sub asked_for {
    my ($n) = @_;
    my $params = link_to($n);
    delete $params->{elicitationId};
    return { method => 'elicitation/create', params => $params };
}


# the questions, without their keys
sub by_url {
    my ($requests) = @_;
    return { map { $_->{params}{url} => $_ } values %$requests };
}


sub both {
    return { map { ("https://example.com/$_" => asked_for($_)) } 1, 2 };
}


# --- a task of a modern client: questions, and the next claim has the answers

my ($id, %answered);

{
    $id = $c->create_modern('once');
    my $work = $c->claim('once');
    my $got = $c->held('fail', $work, error => required(link_to(1),
                                                        link_to(2)));
    is($got->{phase}, 'input_required', 'the task asks');

    my $task = $c->get_modern($id);
    is($task->{status}, 'input_required', 'its client sees that');
    is_deeply(by_url($task->{inputRequests}), both(), 'the URLs, without ids');
    is($task->{statusMessage}, 'Sign in first', 'and the message');
    ok(!exists $task->{error}, 'no error');

    # the worker no longer holds it
    for my $say (['heartbeat'], ['complete', result => {}], ['release'],
                 ['answers'], ['fail', error => required(link_to(3))])
    {
        is($c->held(@$say[0], $work, @$say[1 .. $#$say])->{error}{data}{reason},
           'lease_lost', "$say->[0]: the lease is over");
    }

    my ($one, $two) = sort keys %{ $task->{inputRequests} };
    %answered = ($one => { action => 'accept' }, $two => { action => 'accept' });
    $c->modern('tasks/update', { taskId => $id, inputResponses => {
        $one => { action => 'accept' } } });
    is($c->get_modern($id)->{status}, 'input_required', 'one is open');
    is_deeply($c->worker('worker/claim', { tools => ['once'] })->{tasks}, [],
              'nobody gets it');
    $c->modern('tasks/update', { taskId => $id, inputResponses => {
        $two => { action => 'accept' } } });
    is($c->get_modern($id)->{status}, 'working', 'all are answered');
}

# the only attempt has not been used; the same again has other keys
{
    my $work = $c->claim('once');
    is($work->{taskId}, $id, 'it is claimed again');
    is($work->{attempt}, 1, 'the first attempt');
    is_deeply($work->{inputResponses}, \%answered, 'with the answers');
    is($c->held('fail', $work, error => required(link_to(1), link_to(2)))
       ->{phase}, 'input_required', 'it asks once more');
    my $requests = $c->get_modern($id)->{inputRequests};
    is_deeply(by_url($requests), both(), 'the same URLs');
    is(scalar(grep { $answered{$_} } keys %$requests), 0, 'under other keys');

    my %more = map { $_ => { action => 'decline' } } keys %$requests;
    $c->modern('tasks/update', { taskId => $id, inputResponses => \%more });
    $work = $c->claim('once');
    is_deeply($work->{inputResponses}, { %answered, %more }, 'all answers');
    $c->complete($work, '{"content":[]}');
    is($c->get_modern($id)->{status}, 'completed', 'and it completes');

    my $res = $c->as(uri => '/console')->rest("api/tasks/$id");
    is_deeply([map { join ' ', @{$_}{qw/ event phase /}, $_->{attempt} // 0 }
               @{ $res->{json}{history} }],
              ['created queued 0', 'claimed running 1',
               'asked input_required 1', 'answered queued 0',
               'claimed running 1', 'asked input_required 1',
               'answered queued 0', 'claimed running 1',
               'completed completed 1'], 'its history')
        or diag($res->{body});
}

# a worker that waits for work gets it with the last answer
{
    my $id = $c->create_modern('once');
    $c->held('fail', $c->claim('once'), error => required(link_to(1)));
    my ($key) = keys %{ $c->get_modern($id)->{inputRequests} };

    my $s = $t->connect();
    MCPTasks::send_raw($s, MCPClient::bytes('/worker', MCPClient::rpc(
        'worker/claim', { tools => ['once'], waitMs => 60000 })));
    $c->modern('tasks/update', { taskId => $id, inputResponses => {
        $key => { action => 'accept' } } });
    my $work = answer($s)->{json}{result}{tasks}[0];
    is($work->{taskId}, $id, 'it gets the task that was answered');
    is_deeply($work->{inputResponses}, { $key => { action => 'accept' } },
              'with the answer');
    $c->complete($work, '{}');
}

# over REST, and by a legacy client: both may answer
{
    my $id = $c->create_rest('slow');
    my $work = $c->claim('slow');
    $c->held('fail', $work, error => required(link_to(1)),
             retryable => JSON::PP::true);
    my $got = $c->rest("tasks/$id")->{json};
    is($got->{status}, 'input_required', 'REST: a task that asks');
    is_deeply(by_url($got->{inputRequests}),
              { 'https://example.com/1' => asked_for(1) }, 'the URL');

    my $legacy = $c->in_session();
    my $stream = $legacy->stream($legacy->legacy_bytes('tasks/result',
                                                       { taskId => $id }));
    my $question = $stream->message(10);
    is($question->{params}{elicitationId}, 'e1', 'legacy: with its id');
    $stream->close();

    my ($key) = keys %{ $got->{inputRequests} };
    is($c->rest_post("tasks/$id/input", { inputResponses => {
       $key => { action => 'accept' } } })->{json}{status}, 'working',
       'answered');
    $work = $c->claim('slow');
    is($work->{taskId}, $id, 'claimed again');
    is($c->rest_post("tasks/$id/cancel", {})->{status}, 200, 'cancelled');
}

# --- a plain call of a modern client

# 2026-07-28, basic: "Implementations of this protocol version MUST NOT emit these
# codes: ... -32042 - URL elicitation required (2025-11-25 only)"
{
    my $s = $t->connect();
    MCPTasks::send_raw($s, $c->modern_bytes('tools/call', { name => 'slow' },
                                            meta => \%url));
    my $work = $c->claim('slow');
    $c->held('fail', $work, error => required(link_to(1)));
    my $result = answer($s)->{json}{result};
    is($result->{resultType}, 'input_required', 'a call: the questions');
    is_deeply(by_url($result->{inputRequests}),
              { 'https://example.com/1' => asked_for(1) }, 'without an id');
    my ($key) = keys %{ $result->{inputRequests} };

    $s = $t->connect();
    MCPTasks::send_raw($s, $c->modern_bytes('tools/call', { name => 'slow',
        requestState => $result->{requestState}, inputResponses => {
            $key => { action => 'accept' } } }, meta => \%url));
    $work = $c->claim('slow');
    is_deeply($work->{inputResponses}, { $key => { action => 'accept' } },
              'the next round is claimed with the answer');
    $c->complete($work, '{"content":[],"n":1}');
    is(answer($s)->{json}{result}{n}, 1, 'and has a result');

    # a client that cannot open URLs
    $s = $t->connect();
    MCPTasks::send_raw($s, $c->modern_bytes('tools/call', { name => 'slow' },
        meta => { "$meta/clientCapabilities" => { elicitation => {} } }));
    $work = $c->claim('slow');
    $c->held('fail', $work, error => required(link_to(1)));
    is_deeply(answer($s)->{json}{error},
              { code => -32021, message => 'Missing required client capability',
                data => { requiredCapabilities => { elicitation => {
                          url => {} } } } }, 'which cannot: another error');
}

# --- a task of a legacy client fails as it is; nobody else sees the code

# 2025-11-25, client/elicitation: "Any elicitations returned in the error MUST be
# URL mode elicitations and have an elicitationId property"
{
    my $error = required(link_to(1), link_to(2));
    my $id = $c->create('slow');
    my $work = $c->claim('slow');
    is($c->held('fail', $work, error => $error)->{phase}, 'failed',
       'legacy: the task fails');
    is_deeply($c->legacy('tasks/result', { taskId => $id })->{json}{error},
              $error, 'as it is');

    my $other = { code => -31013, message => 'Sign in first',
                  data => { reason => 'url_elicitation_required' } };
    my $task = $c->get_modern($id);
    is($task->{status}, 'failed', 'read by another client');
    is_deeply($task->{error}, $other, 'tasks/get: another code');
    is_deeply($c->rest("tasks/$id")->{json}{error}, $other, 'REST: likewise');
    is_deeply($c->rest("tasks/$id/result")->{json}{error}, $other,
              'the result: likewise');
    is($c->as(uri => '/console')->rest("api/tasks/$id")->{json}{error}{code},
       -32042, 'operators see what was reported');

    my $stream = $c->stream($c->modern_bytes('subscriptions/listen', {
        notifications => { taskIds => [$id] } }));
    $stream->message(10);
    is_deeply($stream->message(10)->{params}{error}, $other,
              'subscriptions/listen: likewise');
    $stream->close();

    # a plain call
    my $s = $t->connect();
    MCPTasks::send_raw($s, $c->legacy_bytes('tools/call', { name => 'slow' }));
    $work = $c->claim('slow');
    $c->held('fail', $work, error => $error);
    is_deeply(answer($s)->{json}{error}, $error, 'a plain call: as it is');
}

# --- an error without valid URLs is refused, and nothing changes

for my $who ('create', 'create_modern') {
    my $id = $c->$who('slow');
    my $work = $c->claim('slow', leaseMs => 60000);
    my $before = $c->modern('tasks/get', { taskId => $id })->{body};

    for (['{"code":-32042,"message":"m"}', '', 'required'],
         ['{"code":-32042,"message":"m","data":{}}', '/data', 'required'],
         [required(), '/data/elicitations', 'minItems'],
         [required(map { link_to($_) } 1 .. 65), '/data/elicitations',
          'maxItems'],
         [required({ %{ asked_for(1)->{params} } }), '/data/elicitations/0',
          'required'],
         [required(link_to(1), link_to(2, mode => 'form')),
          '/data/elicitations/1/mode', 'const'],
         [required(link_to(1), link_to(2, url => 'javascript:alert(1)')),
          '/data/elicitations/1/url', 'format'],
         [required(link_to(1, url => 'https://ann:x@example.com/')),
          '/data/elicitations/0/url', 'format'])
    {
        my ($error, $pointer, $keyword) = @$_;
        $error = MCPClient::decode($error) unless ref $error;
        my $got = $c->held('fail', $work, error => $error)->{error};
        is($got->{code}, -32602, "$who: refused at $pointer");
        is_deeply($got->{data}, { reason => 'invalid_question',
                  pointer => $pointer, keyword => $keyword }, 'why');
        like($got->{message}, qr/^Invalid params: error: \Q$pointer\E/, 'where');
    }

    is($c->modern('tasks/get', { taskId => $id })->{body}, $before,
       'nothing has changed');
    $c->complete($work, '{}');
}

# while questions are open, no others can be asked
{
    my $id = $c->create_modern('slow');
    my $work = $c->claim('slow', leaseMs => 60000);
    $c->held('ask', $work, inputRequests => { q => MCPClient::form() });
    is($c->held('fail', $work, error => required(link_to(1)))
       ->{error}{data}{reason}, 'task_state_invalid', 'while a question is open');
    $c->complete($work, '{}');
}

done_testing();
