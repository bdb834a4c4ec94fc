# docs/openapi.yaml and the server say the same: all that the document lists is
# provoked, and all answers are held against it.

use warnings;
use strict;

use FindBin;
use lib "$FindBin::Bin/lib";

use JSON::PP;
use Test::More;

use MCPClient;
use MCPFile qw/ write_file /;
use MCPRest qw/ unknown /;
use MCPTasks qw/ wait_for workers /;

my $root = "$FindBin::Bin/..";

my $t = MCPTasks->new(
    workers => workers(),
    files => { 'tools.json' => '{"tools":[{"name":"t","inputSchema":'
                               . '{"type":"object","required":["a"]}}]}' },
    http => 'mcp_tasks_zone zone=z:4m;'
            . ' mcp_tasks_zone zone=full:256k max_tasks=100;',
    server => <<'END');
    mcp_tasks_owner $http_x_user;
    location /mcp { mcp_tasks zone=z; }
    location /typed { mcp_tasks zone=z; mcp_tasks_tools tools.json; }
    location /off { mcp_tasks zone=z; mcp_tasks_ttl off max=off; }
    location /one { mcp_tasks zone=z; mcp_tasks_max_waiters 1 zone=1; }
    location /tasks { mcp_tasks zone=z; mcp_tasks_limit tasks=1; }
    location /bytes { mcp_tasks zone=z; mcp_tasks_limit bytes=2k; }
    location /tight { mcp_tasks zone=z; mcp_tasks_limit payload=1k; }
    location /small { mcp_tasks zone=z; client_max_body_size 10; }
    location /full { mcp_tasks zone=full; }
    location /worker { mcp_tasks_worker zone=z; mcp_tasks_limit payload=8k; }
    location /worker/small {
        mcp_tasks_worker zone=z;
        client_max_body_size 10;
    }
    location /worker/full { mcp_tasks_worker zone=full; }
    location /probe { mcp_tasks_probe zone=z; }
END

my $c = MCPClient->new($t);
my $ann = $c->user('ann');
my $json = JSON::PP->new->canonical->latin1;
my (@seen, %task);


sub record {
    my ($path, $method, $res, %more) = @_;
    push @seen, { path => $path, method => $method, body => $res->{body},
                  status => $res->{status} + 0, headers => $res->{header},
                  %more };
    return $res;
}


# A request that the document should know: "at" is the location, "id" the
# task, "query" what follows the path.
sub ask {
    my ($who, $method, $path, %opt) = @_;
    my $at = $path;
    my $id = $opt{id} || '';
    my $body = defined $opt{body} ? MCPClient::encode($opt{body}) : undef;
    my %headers = %{ $opt{headers} || {} };

    $at =~ s/\{taskId\}/$id/;
    $at .= "?$opt{query}" if defined $opt{query};
    $body = '{}' if $method eq 'POST' && !defined $body;
    $headers{'Content-Type'} = 'application/json'
        if defined $body && !exists $headers{'Content-Type'};

    my $res = $who->as(uri => $opt{at} || '/mcp')->rest(substr($at, 1),
        method => $method, headers => \%headers, body => $body);

    return record($path, $method, $res, name => $opt{name},
                  $method eq 'POST' ? (request => $body) : ());
}


# the same, where the answer is a stream that does not end
sub follow {
    my ($who, $path, %opt) = @_;
    my $at = substr($path, 1) =~ s/\{taskId\}/$opt{id}/r;
    my $stream = $who->follow($at, $opt{last}, %{ $opt{headers} || {} });
    my $res = { body => '', header => {} };

    while (my $event = $stream->event()) {
        next unless defined $event->{data};
        $res->{body} = "data: $event->{data}\n\n";
        last;
    }

    my $head = $stream->head();
    ($res->{status}) = $head =~ m{^HTTP/1\.1 (\d+)};
    $res->{header}{lc $1} = $2 while $head =~ /^([\w-]+): (.*?)\r?$/mg;
    $stream->close();

    return record($path, 'GET', $res);
}


sub work {
    my ($method, $params, %opt) = @_;
    my $body = MCPClient::rpc("worker/$method", $params, $opt{rpc});
    $body = $opt{body} if exists $opt{body};
    my $res = $c->say_bytes(MCPClient::bytes('/worker' . ($opt{at} || ''),
                            $body, %{ $opt{headers} || {} }));
    record('/worker', 'POST', $res, request => $body, name => $method);
    return $res->{json}{result} || $res->{json}{error};
}


sub held {
    my ($method, $work, %params) = @_;
    return work($method, { taskId => $work->{taskId}, lease => $work->{lease},
                           %params });
}


sub claim {
    my ($tool, %opt) = @_;
    return work('claim', { tools => [$tool] }, %opt)->{tasks}[0];
}


my $tasks = '/tasks';
my $task = '/tasks/{taskId}';
my %of = map { $_ => "$task/$_" } qw/ result poll events cancel input /;
my $form = MCPClient::form();

# --- a task in each of its states

for my $state (qw/ working running asks completed failed cancelled /) {
    my $res = ask($ann, 'POST', $tasks, body => {
        tool => $state, arguments => { a => 1 }, ttlMs => 60000,
        metadata => { m => 1 } });
    $task{$state} = $res->{json}{taskId};
}

ask($ann, 'POST', $tasks, at => '/off', body => { tool => 'x', ttlMs => undef });

my %held = map { $_ => claim($_) } qw/ running asks completed failed /;

held('progress', $held{running}, progress => 1, total => 4, message => 'm');
held('ask', $held{asks}, inputRequests => { q => $form, r => $form });
held('complete', $held{completed}, result => { content => [] });
held('fail', $held{failed}, error => { code => 1, message => 'm' });
ask($ann, 'POST', $of{cancel}, id => $task{cancelled},
    body => { reason => 'r' });

for my $method (qw/ GET HEAD /) {
    for my $state (sort keys %task) {
        my $id = $task{$state};
        my $res = ask($ann, $method, $task, id => $id, name => $state);
        my $etag = $res->{header}{etag};
        ask($ann, $method, $of{result}, id => $id, name => $state);
        ask($ann, $method, $of{poll}, id => $id, name => $state);
        ask($ann, $method, $task, id => $id,
            headers => { 'If-None-Match' => $etag });
        ask($ann, $method, $of{poll}, id => $id,
            headers => { 'If-None-Match' => $etag });
    }

    ask($ann, $method, $of{poll}, id => $task{working},
        query => 'version=999&timeout=0');
    ask($ann, $method, $of{poll}, id => $task{working}, query => 'version=x');
    ask($ann, $method, $tasks);
    ask($ann, $method, $tasks, query => 'limit=1&status=working');
    ask($ann, $method, $tasks, query => 'limit=0');
    ask($c, $method, $tasks);
}

# --- events

ask($ann, 'GET', $of{events}, id => $task{$_}, name => $_)
    for qw/ completed failed cancelled /;
ask($ann, 'GET', $of{events}, id => $task{completed}, headers => {
    'Last-Event-ID' => $ann->rest("tasks/$task{completed}")->{json}{version}
});
follow($ann, $of{events}, id => $task{$_}) for qw/ working running asks /;
follow($ann, '/tasks/events', headers => { Origin => 'http://localhost' });
ask($c, 'GET', '/tasks/events');
ok((wait_for { $t->probe('op=waits')->{zone} == 0 }), 'nobody waits');

# --- too many wait: this one may, nobody else

{
    my $s = $t->connect();
    MCPTasks::send_raw($s, $ann->rest_bytes(
        "tasks/$task{working}/poll?version=999&timeout=60000"));
    ok((wait_for { $t->probe('op=waits')->{zone} == 1 }), 'one waits');

    ask($ann, $_, $of{poll}, at => '/one', id => $task{working},
        query => 'version=999') for qw/ GET HEAD /;
    ask($ann, 'GET', $of{events}, at => '/one', id => $task{working});
    ask($ann, 'GET', '/tasks/events', at => '/one');
    close($s);
}

# --- what is refused

my @read = ([$task, 'GET', 'HEAD'], [$of{result}, 'GET', 'HEAD'],
            [$of{poll}, 'GET', 'HEAD'], [$of{events}, 'GET'],
            [$of{cancel}, 'POST'], [$of{input}, 'POST']);

for (@read) {
    my ($path, @methods) = @$_;
    my $body = { inputResponses => {} };
    ask($ann, $_, $path, id => unknown, $_ eq 'POST' ? (body => $body) : ())
        for @methods;
}

for ([$tasks, 'GET', 'HEAD', 'POST'], ['/tasks/events', 'GET'], @read) {
    my ($path, @methods) = @$_;

    for my $method (@methods, 'OPTIONS', 'PUT', 'DELETE') {
        ask($ann, $method, $path, id => $task{working},
            headers => { Origin => 'http://evil.example' })
            unless $method =~ /PUT|DELETE/;
    }

    ask($ann, 'OPTIONS', $path, id => $task{working}, headers => {
        Origin => 'http://localhost' });

    for my $method (qw/ GET POST PUT PATCH DELETE /) {
        ask($ann, $method, $path, id => $task{working})
            unless grep { $_ eq $method } @methods;
    }
}

for my $path ($tasks, $of{cancel}, $of{input}) {
    my %id = (id => $task{asks});
    ask($ann, 'POST', $path, %id, body => '{');
    ask($ann, 'POST', $path, %id, body => '[]');
    ask($ann, 'POST', $path, %id, body => '{}',
        headers => { 'Content-Type' => 'text/plain' });
    ask($ann, 'POST', $path, %id, at => '/small', body => '{"a":12345678}');
}

ask($ann, 'POST', $tasks, body => '{"tool":""}');
ask($ann, 'POST', $tasks, at => '/typed', body => { tool => 't' });
ask($ann, 'POST', $tasks, at => '/tight', body => {
    tool => 'x', arguments => { a => 'b' x 2000 } });
ask($c->user('two'), 'POST', $tasks, at => '/tasks', body => { tool => 'x' })
    for 1 .. 2;
ask($c->user('two'), 'POST', $tasks, at => '/bytes', body => {
    tool => 'x', arguments => { a => 'b' x 3000 } });
ask($ann, 'POST', $of{cancel}, id => $task{cancelled});

# --- answers

my $long = { inputResponses => { r => { content => 'x' x 3000 } } };
my %asks = (id => $task{asks});

ask($ann, 'POST', $of{input}, %asks, body => { inputResponses => { q => {} } },
    headers => { Origin => 'http://localhost' });
ask($ann, 'POST', $of{input}, %asks, at => '/tight', body => $long);
ask($ann, 'POST', $of{input}, %asks, at => '/bytes', body => $long);
ask($ann, 'POST', $of{input}, %asks, body => { inputResponses => { r => {} } });
ask($ann, 'POST', $of{input}, id => $task{$_}, body => $long)
    for qw/ running completed /;

# --- workers

{
    my $work = $held{running};

    held('answers', $held{asks}, waitMs => 0);
    held('heartbeat', $work, leaseMs => 60000);
    held('progress', $work, progress => 0.5);
    held('ask', $work, inputRequests => { q => $form });
    held('ask', $work, inputRequests => { r => $form });
    held('complete', $work, result => { content => ['x' x 9000] });
    held('release', $held{asks});
    held('heartbeat', $held{asks});
    held('fail', claim('asks'), retryable => JSON::PP::true, delayMs => 1,
         error => { code => 1, message => 'm' });
    held('complete', $held{completed}, result => {});
    held('heartbeat', { taskId => unknown, lease => '0' x 16 });
    held('heartbeat', { taskId => 'x', lease => 'y' });
    held('heartbeat', { %$work, taskId => 1 });
    claim('none', rpc => '"text"');
    work('nothing', {});
    work('claim', { tools => [] });
    ask($ann, 'POST', $of{cancel}, id => $task{running});
    held('progress', $work);

    $ann->modern('tasks/create', { action => 'meta', params => {} },
                 extensions => ['io.modelcontextprotocol/tasks',
                                'io.github.nginx-mcp-tasks/extended']);
    claim('meta');

    work('x', {}, body => $_)
        for '{', '[]', '{"jsonrpc":"2.0","method":"worker/claim"}',
            '{"jsonrpc":"2.0","id":1,"method":"worker/claim","params":1}';
    work('x', {}, headers => { 'Content-Type' => 'text/plain' });
    work('x', {}, headers => { Host => 'evil.example' });
    work('x', {}, at => '/small');

    for my $method (qw/ GET PUT DELETE OPTIONS HEAD /) {
        record('/worker', $method, $t->request($method, '/worker'));
    }
}

# --- a zone that is full, to the last block

{
    my %full = (at => '/full');
    my $cancel = ask($ann, 'POST', $tasks, %full, body => { tool => 'x' });
    my $asks = ask($ann, 'POST', $tasks, %full, body => { tool => 'asks' });
    my $work = claim('asks', at => '/full');
    work('ask', { taskId => $work->{taskId}, lease => $work->{lease},
                  inputRequests => { r => $form } }, %full);
    ask($ann, 'POST', $tasks, %full, body => { tool => 'fill' }) for 1 .. 60;

    for (1 .. 30) {
        my $res = ask($ann, 'POST', $tasks, %full, body => {
            tool => 'x', arguments => { a => 'b' x 12000 } });
        last if $res->{status} == 503;
    }

    $work = undef;

    for (my $size = 8192; $size > 64; ) {
        $work ||= claim('fill', %full) or last;
        my $got = work('complete', { taskId => $work->{taskId},
                                     lease => $work->{lease},
                                     result => { a => 'b' x $size } }, %full);
        $got->{phase} ? $work = undef : ($size /= 2);
    }

    ask($ann, 'POST', $of{input}, %full, id => $asks->{json}{taskId},
        body => $long);
    ask($ann, 'POST', $of{cancel}, %full, id => $cancel->{json}{taskId},
        body => { reason => 'x' x 1000 });
}

ok($t->stop(), 'nginx stops');
is($t->faults(qr/too large body/), '',
   'nothing in the log that should not be');

# --- the verdict: Debian's packages are for Debian's Python

my ($python) = grep {
    system("$_ -c 'import jsonschema, yaml' > $t->{dir}/logs/python 2>&1") == 0
} 'python3', '/usr/bin/python3';

ok($python, 'a Python with jsonschema and yaml');

write_file("$t->{dir}/exchanges", map { $json->encode($_) . "\n" } @seen);

my $verdict = $python ? qx{$python $FindBin::Bin/lib/openapi.py \\
    $root/docs/openapi.yaml < $t->{dir}/exchanges} : '';

is($?, 0, 'a verdict');
like($verdict, qr/^ok the end$/m, 'and a whole one');

for my $line (split /\n/, $verdict) {
    $line =~ /^ok (.*)/ ? pass($1) : fail($line =~ s/^not ok //r);
}

done_testing();
