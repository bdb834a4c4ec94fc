# The REST API by HEAD, for others, in each process, and over HTTP/2.

use warnings;
use strict;

use FindBin;
use lib "$FindBin::Bin/lib";

use Test::More;

use MCPClient;
use MCPHttp2;
use MCPRest qw/ bytes_of claimed problem question unknown /;
use MCPTasks qw/ workers /;

my $t = MCPTasks->new(
    workers => workers(), listen => 'reuseport',
    http => 'mcp_tasks_zone zone=z:4m;',
    surfaces => [qw/ mcp worker probe /],
    server => 'mcp_tasks_owner $http_x_user;');

my $c = MCPClient->new($t);
my $ann = $c->as(headers => { 'X-User' => 'ann' });
my $bob = $c->as(headers => { 'X-User' => 'bob' });


# --- HEAD: the same, without the body

{
    my $done = claimed($ann);
    $c->complete($done, '{"content":[1,2,3]}');
    my $id = $ann->create_rest('q');

    for my $path ('tasks', 'tasks?limit=1', 'tasks?limit=x', "tasks/$id",
                  "tasks/$done->{taskId}", "tasks/$done->{taskId}/result",
                  "tasks/$id/result", "tasks/$id/poll", 'tasks/' . unknown,
                  'tasks/x/y', "tasks/$id/poll?version=x",
                  "tasks/$id/poll?version=99&timeout=0")
    {
        my $s = $t->connect();
        my $get = $ann->as(via => $s)->rest($path);
        my $head = $ann->as(via => $s)->rest($path, method => 'HEAD');

        is($head->{head} =~ s/^Date:.*?\r\n//mr,
           $get->{head} =~ s/^Date:.*?\r\n//mr, "HEAD $path");
        is($ann->as(via => $s)->rest("tasks/$id")->{json}{taskId}, $id,
           'and nothing else came');
    }
}

# --- whose it is not, it does not exist for

{
    my $work = claimed($ann);
    my $id = $work->{taskId};
    $c->held('ask', $work, inputRequests => { a => question('a') });
    my $before = $ann->rest("tasks/$id")->{body};
    my $answer = { inputResponses => { a => {} } };

    for (['GET', ''], ['HEAD', ''], ['GET', '/result'], ['HEAD', '/result'],
         ['GET', '/poll'], ['GET', '/poll?version=99999&timeout=0'],
         ['GET', '/events'], ['POST', '/cancel', {}], ['POST', '/cancel'],
         ['POST', '/cancel', { reason => 'r' }], ['POST', '/cancel', '['],
         ['POST', '/cancel', { reason => 1 }], ['POST', '/input', $answer],
         ['POST', '/input', {}], ['POST', ''], ['OPTIONS', ''])
    {
        my ($method, $rest, $body) = @$_;
        my %opt = (method => $method, headers => {
            'Content-Type' => 'application/json', 'If-None-Match' => '*',
            Origin => 'http://localhost', 'Content-Length' => 0 });

        if (defined $body) {
            $opt{body} = MCPClient::encode($body);
            $opt{headers}{'Content-Length'} = length $opt{body};
        }

        my $none = $ann->rest('tasks/' . unknown . $rest, %opt);

        for (['another', $bob], ['nobody', $c]) {
            my ($name, $who) = @$_;
            is(bytes_of($who->rest("tasks/$id$rest", %opt)), bytes_of($none),
               "$method tasks/ID$rest for $name: the same bytes");
        }
    }

    is($ann->rest("tasks/$id")->{body}, $before, 'and nothing has changed');
}

# --- every process does all of it

{
    my $via = $t->connect_all();
    my @who = map { $ann->as(via => $via->{$_}) } sort keys %$via;
    my $tool = 'p';
    my $id = $who[0]->rest_post('tasks', { tool => $tool })->{json}{taskId};
    my $work = $c->claim($tool);
    $c->held('ask', $work, inputRequests => {
        map { $_ => question($_) } 0 .. $#who });

    for my $n (0 .. $#who) {
        my $res = $who[$n]->rest_post("tasks/$id/input",
                                      { inputResponses => { $n => {} } });
        is($res->{status}, 200, "process $n takes an answer");
        is($_->rest("tasks/$id", headers => {
           'If-None-Match' => $res->{header}{etag} })->{status}, 304,
           'and all know') for @who;
    }

    is($who[-1]->rest_post("tasks/$id/cancel")->{json}{status}, 'cancelled',
       'one cancels');
    problem($_->rest_post("tasks/$id/cancel"), 409, 'task_terminal', undef,
            'all know') for @who;
}

ok($t->stop(), 'nginx stops');
is($t->faults(), '', 'nothing in the log that should not be');

# --- over HTTP/2

$t = MCPTasks->new(
    workers => workers(), listen => 'http2',
    http => 'mcp_tasks_zone zone=z:4m;', server => <<'END');
    mcp_tasks_owner $http_x_user;
    location /mcp { mcp_tasks zone=z; }
END

{
    my $h2 = MCPHttp2->new($t->{port});
    my %ann = ('x-user' => 'ann');
    my %json = (%ann, 'content-type' => 'application/json');

    my $ask = sub {
        my ($n) = @_;
        $h2->until(sub { $h2->over($n) });
        return { status => $h2->status($n), body => $h2->text($n),
                 json => MCPClient::decode($h2->text($n)) };
    };

    my $made = $ask->($h2->post('/mcp/tasks', '{"tool":"x","arguments":{"a":"'
                                . 'b' x 50000 . '"}}', %json));
    is($made->{status}, 201, 'HTTP/2: created');
    my $at = "/mcp/tasks/$made->{json}{taskId}";
    is($ask->($h2->get($at, %ann))->{body}, $made->{body}, 'HTTP/2: read');
    is($ask->($h2->get($at, %ann, 'if-none-match' =>
       "\"$made->{json}{version}\""))->{status}, 304, 'HTTP/2: known');
    is($ask->($h2->get('/mcp/tasks', %ann))->{body},
       "{\"tasks\":[$made->{body}]}", 'HTTP/2: listed');
    is($ask->($h2->get("$at/result", %ann))->{json}{reason},
       'result_not_ready', 'HTTP/2: no result');
    is($ask->($h2->post("$at/input", '{"inputResponses":{}}', %json))
       ->{status}, 409, 'HTTP/2: not asked');
    is($ask->($h2->post("$at/cancel", '{"reason":"h2"}', %json))
       ->{json}{statusMessage}, 'h2', 'HTTP/2: cancelled');
    is($ask->($h2->post("$at/cancel", '{}', %json))->{status}, 409,
       'HTTP/2: only once');
    is($ask->($h2->post('/mcp/tasks', '{', %json))->{json}{detail},
       'unexpected end of input', 'HTTP/2: half a body');
    is($ask->($h2->post('/mcp/tasks', 'x', %ann))->{status}, 415,
       'HTTP/2: not JSON');

    for my $type ('', 'text/plain') {
        is($ask->($h2->post('/mcp/tasks', '{"tool":"q"}', %ann,
                            $type ? ('content-type' => $type) : ()))->{status},
           415, "HTTP/2: a body of the type '$type'");
    }

    is($ask->($h2->get($at, 'x-user' => 'bob'))->{body},
       $ask->($h2->get('/mcp/tasks/' . unknown, %ann))->{body},
       'HTTP/2: for others there is nothing');
    $h2->close();
}

ok($t->stop(), 'nginx stops');
is($t->faults(), '', 'nothing in the log that should not be');

done_testing();
