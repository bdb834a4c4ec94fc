# The REST API as HTTP: paths, methods, and pages from elsewhere.

use warnings;
use strict;

use FindBin;
use lib "$FindBin::Bin/lib";

use Test::More;

use MCPClient;
use MCPTasks qw/ wait_for workers /;

my $t = MCPTasks->new(
    workers => workers(),
    tools => ['slow'],
    http => 'mcp_tasks_zone zone=z:2m; mcp_tasks_tools tools.json;',
    server => <<'END');
    mcp_tasks_owner $http_x_user;
    location /mcp {
        mcp_tasks zone=z;
        mcp_tasks_allow_origin app.example https://only.example:8443;
    }
    location / { mcp_tasks zone=z; }
    location /slash/ { mcp_tasks zone=z; }
    location /any { mcp_tasks zone=z; mcp_tasks_allow_origin any; }
    location = /exact { mcp_tasks zone=z; }
    location /worker { mcp_tasks_worker zone=z; }
    location /probe { mcp_tasks_probe zone=z; }
END

my $c = MCPClient->new($t);
my $ann = $c->as(headers => { 'X-User' => 'ann' });
my $id = $ann->create('slow');


sub problem {
    my ($res, $status, $title, $reason, $name) = @_;
    is($res->{status}, $status, "$name: $status");
    is($res->{header}{'content-type'}, 'application/problem+json',
       "$name: a problem");
    is($res->{body}, "{\"title\":\"$title\",\"status\":$status,"
                     . "\"reason\":\"$reason\"}", "$name: $reason");
}


# --- paths

for my $uri ('/mcp', '', '/slash', '/any') {
    is($ann->as(uri => $uri)->rest("tasks/$id/poll")->{json}{taskId}, $id,
       "location '$uri': a task");
}

for my $path ('tasks/', "tasks/$id/", "tasks/$id/nothing", "tasks/$id/poll/",
              "tasks/$id/poll/x", "tasks/$id/polls", "tasks/$id/pol",
              "tasks/$id/event", "tasks/$id/events/", "tasks/$id/result/",
              "tasks/$id/results", "tasks/$id/cancel/", "tasks/$id/inputs",
              'tasks/events/', 'tasks/poll/', 'tasksx', 'tasks%00')
{
    my $res = $ann->rest($path);
    isnt($res->{status}, 200, "$path: nothing there");
    next if $path =~ /%00/;
    problem($res, 404, 'Not Found', 'not_found', $path);
    is($ann->rest($path, method => 'OPTIONS')->{status}, 404,
       'nor anything to be done');
}

# what might be the id of a task
for my $path ('tasks/poll', 'tasks/eventsx', 'tasks/event', 'tasks/x') {
    problem($ann->rest($path), 404, 'Not Found', 'task_not_found', $path);
}

# slashes and dots are nginx's matter
is($ann->rest("tasks//$id/./poll")->{json}{taskId}, $id, 'a tidied path');
is($ann->rest("x/../tasks/$id/poll")->{json}{taskId}, $id, 'another one');

for my $path ('x', 'task', "x/tasks/$id/poll", "Tasks/$id/poll",
              'events', "$id/poll")
{
    is($ann->rest($path)->{status}, 404, "$path: nothing there");
}

is($ann->as(uri => '/exact')->rest("tasks/$id/poll")->{status}, 404,
   'an exact location has nothing below');
is($ann->as(uri => '/worker')->rest("tasks/$id/poll")->{status}, 405,
   'nor have those of workers');
is($ann->as(uri => '/mcpx')->rest("tasks/$id/poll")->{status}, 404,
   'nor what only begins like it');

# --- methods

my %allow = (
    'tasks'            => 'GET, HEAD, POST, OPTIONS',
    "tasks/$id"        => 'GET, HEAD, OPTIONS',
    "tasks/$id/result" => 'GET, HEAD, OPTIONS',
    "tasks/$id/poll"   => 'GET, HEAD, OPTIONS',
    "tasks/$id/events" => 'GET, OPTIONS',
    'tasks/events'     => 'GET, OPTIONS',
    "tasks/$id/cancel" => 'POST, OPTIONS',
    "tasks/$id/input"  => 'POST, OPTIONS',
);

for my $path (sort keys %allow) {
    for my $method (qw/ GET POST PUT PATCH DELETE TRACEX /) {
        next if $allow{$path} =~ /\b$method\b/;
        my $res = $ann->rest($path, method => $method, body => 'x' x 100);
        problem($res, 405, 'Method Not Allowed', 'method_not_allowed',
                "$method $path");
        is($res->{header}{allow}, $allow{$path}, 'and what is');
    }

    next if $allow{$path} =~ /HEAD/;
    my $res = $t->request('HEAD', "/mcp/$path", { 'X-User' => 'ann' });
    is($res->{status}, 405, "HEAD $path");
    is($res->{header}{allow}, $allow{$path}, 'and what is allowed');
}

is($ann->rest('tasks/x', method => 'OPTIONS')->{header}{allow},
   'GET, HEAD, OPTIONS', 'what may be done tells nothing of what there is');

is($t->probe('op=waits')->{zone}, 0, 'nobody waits because of that');

# --- what headers a page may send: those that it asks for, if they are names

for (['mcp-param-region, x-y', 'mcp-param-region, x-y'], ['<b>', undef],
     ["a;b", undef], ['', undef])
{
    my ($asked, $allowed) = @$_;
    my $res = $ann->rest('', method => 'OPTIONS', headers => {
        Origin => 'http://localhost',
        'Access-Control-Request-Headers' => $asked });
    my $got = $res->{header}{'access-control-allow-headers'};
    defined $allowed ? is($got, $allowed, "'$asked' may be sent")
                     : like($got, qr/^Accept, .*, Mcp-Session-Id$/,
                            "'$asked': the usual ones");
}

# --- pages from elsewhere

my $exposed = 'Mcp-Session-Id, ETag, Location, Retry-After';
$allow{''} = 'GET, POST, DELETE, OPTIONS';

for my $path (sort keys %allow) {
    for my $origin ('http://localhost', 'https://app.example',
                    'https://app.example:99', 'https://only.example:8443')
    {
        my %from = (Origin => $origin);

        my $res = $ann->rest($path, method => 'OPTIONS', headers => {
            %from, 'Access-Control-Request-Method' => 'GET',
            'Access-Control-Request-Headers' => 'last-event-id' });

        is($res->{status}, 204, "OPTIONS '$path' from $origin");
        is($res->{body}, '', 'no body');
        is($res->{header}{'access-control-allow-origin'}, $origin,
           'the page may');
        is($res->{header}{'access-control-allow-methods'}, $allow{$path},
           'do what there is to do');
        like($res->{header}{'access-control-allow-headers'},
             qr/\bLast-Event-ID\b/i, 'and go on where it was');
        ok($res->{header}{'access-control-max-age'}, 'for some time');
        is($res->{header}{vary}, 'Origin', 'another one may not');
        is($res->{header}{allow}, $allow{$path}, 'Allow');
        ok(!exists $res->{header}{'access-control-allow-credentials'},
           'credentials are not for pages');

        next if $path ne "tasks/$id/poll" && $path ne 'tasks';

        $res = $ann->rest($path, headers => \%from);
        is($res->{status}, 200, "GET from $origin");
        is($res->{header}{'access-control-allow-origin'}, $origin,
           'may be read');
        is($res->{header}{'access-control-expose-headers'}, $exposed,
           'with its headers');

        $res = $ann->rest('tasks/x/poll', headers => \%from);
        is($res->{status}, 404, 'a problem');
        is($res->{header}{'access-control-allow-origin'}, $origin,
           'may be read, too');
    }

    for my $origin ('https://evil.example', 'null', 'http://only.example',
                    'https://app.example.evil.example')
    {
        for my $method (qw/ GET OPTIONS POST /) {
            my $res = $ann->rest($path, method => $method,
                                 headers => { Origin => $origin });
            is($res->{status}, 403, "$method '$path' from $origin");
            is($res->{json}{reason}, 'origin_not_allowed', 'and why')
                if $path ne '';
            ok(!exists $res->{header}{'access-control-allow-origin'},
               'must not be read');
            unlike($res->{body}, qr/$id/, 'and tells nothing');
        }
    }

    is($ann->rest($path, headers => { Host => 'evil.example' })->{status},
       403, 'a foreign Host');
}

for my $path ("tasks/$id/events", 'tasks/events') {
    my $stream = $ann->follow($path, undef, Origin => 'https://app.example');
    like($stream->head(), qr{^Access-Control-Allow-Origin:
                             \ https://app\.example\r?$}mx,
         "$path: a stream may be read");
    $stream->close();
}

{
    my $any = $ann->as(uri => '/any');
    my $res = $any->rest("tasks/$id/poll", headers => {
        Origin => 'https://evil.example' });
    is($res->{status}, 200, 'any: from anywhere');
    is($res->{header}{'access-control-allow-origin'}, 'https://evil.example',
       'any: by name');

    $res = $any->rest("tasks/$id/poll");
    is($res->{status}, 200, 'any: from no page');
    ok(!exists $res->{header}{'access-control-allow-origin'},
       'any: needs nothing');
}

ok((wait_for { $t->probe('op=waits')->{zone} == 0 }), 'nobody waits');
ok($t->stop(), 'nginx stops');
is($t->faults(), '', 'nothing in the log that should not be');

done_testing();
