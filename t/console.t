# The operator console: its page, and all that is read below it, over several
# processes.

use warnings;
use strict;

use FindBin;
use lib "$FindBin::Bin/lib";

use Test::More;

use MCPClient;
use MCPRest qw/ problem unknown /;
use MCPTasks qw/ wait_for workers /;

my $t = MCPTasks->new(
    workers => workers(), listen => 'reuseport',
    http => 'mcp_tasks_zone zone=z:8m; mcp_tasks_zone zone=many:16m;',
    server => <<'END');
    mcp_tasks_owner $http_x_user;

    set_real_ip_from  127.0.0.1;
    real_ip_header    X-Forwarded-For;

    location /mcp { mcp_tasks zone=z; }
    location /hasty { mcp_tasks zone=z; mcp_tasks_timeout queue=1ms; }
    location /worker { mcp_tasks_worker zone=z; }
    location /console/ { mcp_tasks_console zone=z; }
    location /admin/ { mcp_tasks_console zone=z admin; }
    location /bare { mcp_tasks_console zone=z; }
    location /public/ { mcp_tasks_console zone=z public admin; }
    location /any/ {
        mcp_tasks_console zone=z admin;
        mcp_tasks_allow_origin any;
    }
    location /listed/ {
        mcp_tasks_console zone=z admin;
        mcp_tasks_allow_origin console.example http://app.example;
    }
    location /inside/ {
        mcp_tasks_console zone=z admin;
        if ($http_x_if) { set $x 1; }
        limit_except GET { deny 192.0.2.9; }
    }
    location /many/ { mcp_tasks_console zone=many; }
    location /status { mcp_tasks_status zone=z; }
    location /probe { mcp_tasks_probe zone=z; }
    location /manyprobe { mcp_tasks_probe zone=many; }
END

my $c = MCPClient->new($t);
my $ann = $c->as(headers => { 'X-User' => 'ann' });
my $bob = $c->as(headers => { 'X-User' => 'bob' });
my $console = $c->as(uri => '/console');
my $admin = $c->as(uri => '/admin');

# every answer has these
my %headers = (
    'x-content-type-options' => 'nosniff',
    'x-frame-options' => 'DENY',
    'referrer-policy' => 'no-referrer',
    'cross-origin-opener-policy' => 'same-origin',
    'cross-origin-resource-policy' => 'same-origin',
);


sub hardened {
    my ($res, $name) = @_;
    my %got = map { $_ => $res->{header}{$_} } keys %headers;
    is_deeply(\%got, \%headers, "$name: headers");
    is_deeply([grep { /^access-control/ } keys %{ $res->{header} }], [],
              "$name: no other page may read it");
}


# over connections that are kept for as long as nginx does
sub make_many {
    my ($n) = @_;
    my $s;

    for (1 .. $n) {
        $s = $t->connect() if $_ % 500 == 1;
        $t->probe('op=create&owner=o&tool=t&params={}', $s, '/manyprobe')
            or die "no task\n";
    }
}


sub page {
    my ($query, $who) = @_;
    return MCPRest::page($who || $console, $query, 'api/tasks');
}


sub ids { return (page(@_))[0] }


sub task {
    my ($id, %opt) = @_;
    my $res = $console->rest("api/tasks/$id", %opt);
    return wantarray ? ($res->{json}, $res) : $res->{json};
}


# --- the page

{
    my $res = $t->request('GET', '/console/');
    is($res->{status}, 200, 'the page');
    is($res->{header}{'content-type'}, 'text/html; charset=utf-8', 'its type');
    like($res->{body}, qr/\A<!DOCTYPE html>/, 'is one');
    is($res->{header}{'cache-control'}, 'no-cache', 'may be kept, if asked');
    hardened($res, 'page');

    my $csp = $res->{header}{'content-security-policy'};
    like($csp, qr/default-src 'none'/, 'nothing from elsewhere');
    like($csp, qr/script-src 'sha256-[^']+'/, 'its own script');
    unlike($csp, qr/unsafe/, 'and no other');

    my $etag = $res->{header}{etag};
    like($etag, qr/^"[0-9a-f]{16}"$/, 'a tag');

    my $head = $t->request('HEAD', '/console/');
    is($head->{status}, 200, 'HEAD');
    is($head->{header}{'content-length'}, length $res->{body}, 'its length');

    my $conn = $t->connect_all() or BAIL_OUT('processes cannot be reached');

    for my $pid (sort keys %$conn) {
        $head = $t->request('GET', '/console/', { 'If-None-Match' => $etag },
                            undef, $conn->{$pid});
        is($head->{status}, 304, 'not sent again, by whichever process');
        is($head->{body}, '', 'nothing');
    }

    is($t->request('GET', '/console/',
                   { 'If-None-Match' => '"0"' })->{status}, 200, 'another tag');
    is($t->request('GET', '/console/?x=1#y')->{status}, 200, 'with arguments');
}


# --- where it is

{
    my $res = $t->request('GET', '/console');
    is($res->{status}, 301, 'without the slash: moved');
    like($res->{header}{location}, qr{^http://localhost(:\d+)?/console/$},
         'to there');

    $res = $t->request('GET', '/bare');
    is($res->{status}, 301, 'the same of a location without a slash');
    like($res->{header}{location}, qr{^http://localhost(:\d+)?/bare/$},
         'to there');
    is($t->request('GET', '/bare/')->{status}, 200, 'where it is');
    is($t->request('GET', '/bare/api/zone')->{status}, 200,
       'and what is below');
    is($t->request('GET', '/barefoot')->{status}, 404,
       'not what begins the same way');
    is($t->request('GET', '/bare%0d%0aX:%20y')->{status}, 404, 'however');

    for my $path (qw{ x api api/ api/zone/ api/tasks/ index.html api/tools
                      api/tasks/x/y api/zone/../../../mcp/tasks/x })
    {
        my $got = $console->rest($path);
        is($got->{status}, 404, "$path: nothing there");
    }

    problem($console->rest('api/nothing'), 404, 'not_found', undef, 'nothing');
    hardened($console->rest('api/nothing'), 'a problem');
}


# --- who gets in

{
    my %far = ('X-Forwarded-For' => '192.0.2.1');

    for my $path ('', 'api/zone', 'api/tasks', 'api/events') {
        my $res = $console->rest($path, headers => \%far);
        problem($res, 403, 'not_local', undef, "from afar: '$path'");
        hardened($res, "from afar: '$path'");
    }

    problem($admin->rest_post('api/tools/pause', { tool => 'x' }, %far), 403,
            'not_local', undef, 'no POST from afar');
    is($c->as(uri => '/public')->rest('api/zone', headers => \%far)->{status},
       200, 'but if public');

    # no page but its own; "any" is for others
    for my $case (
        ['/console', {}, 1],
        ['/console', { Origin => 'http://localhost' }, 1],
        ['/console', { Origin => 'https://LOCALHOST' }, 1],
        ['/console', { Origin => 'http://localhost:8080',
                       Host => 'localhost:8080' }, 1],
        ['/console', { Origin => 'http://[::1]:80', Host => '[::1]:80' }, 1],
        ['/console', { Origin => 'http://localhost:8080' }, 0],
        ['/console', { Origin => 'http://127.0.0.1' }, 0],
        ['/console', { Origin => 'http://evil.example' }, 0],
        ['/console', { Origin => 'http://localhost.evil.example' }, 0],
        ['/console', { Origin => 'null' }, 0],
        ['/console', { Origin => '' }, 0],
        ['/console', { Origin => 'localhost' }, 0],
        ['/console', { Origin => ['http://localhost', 'http://localhost'] },
         0],
        ['/console', { Host => 'evil.example' }, 0],
        ['/console', { Host => 'evil.example',
                       Origin => 'http://evil.example' }, 0],
        ['/any', { Origin => 'http://evil.example' }, 0],
        ['/any', { Host => 'evil.example' }, 0],
        ['/any', { Host => 'evil.example',
                   Origin => 'http://evil.example' }, 0],
        ['/listed', { Host => 'console.example',
                      Origin => 'https://console.example' }, 1],
        ['/listed', { Origin => 'http://app.example' }, 0],
        ['/listed', { Origin => 'https://console.example' }, 0])
    {
        my ($uri, $sent, $may) = @$case;
        my $name = join ' ', $uri,
                   map { my $v = $sent->{$_};
                         "$_: " . (ref $v ? "@$v" : $v) } sort keys %$sent;

        for my $path ('', 'api/zone', 'api/tasks') {
            my $res = $t->request('GET', "$uri/$path", $sent);
            is($res->{status}, $may ? 200 : 403, "$name, '$path'");
            like($res->{body}, qr/"reason":"origin_not_allowed"/, 'why')
                unless $may;
            hardened($res, $name);
        }
    }

    my $res = $t->request('OPTIONS', '/admin/api/tools/pause',
                          { Origin => 'http://localhost' });
    is($res->{status}, 405, 'no preflight succeeds');
    hardened($res, 'preflight');
}


# --- what may be done with what

{
    my %allow = (
        '' => 'GET, HEAD', 'api/zone' => 'GET, HEAD',
        'api/tasks' => 'GET, HEAD', 'api/events' => 'GET',
        'api/tools/pause' => 'POST', 'api/tools/resume' => 'POST',
        'api/workers/drain' => 'POST', 'api/workers/resume' => 'POST',
        'api/tasks/' . unknown => 'GET, HEAD, DELETE',
        (map { ('api/tasks/' . unknown . "/$_" => 'POST') }
         qw/ cancel retry input /),
    );

    for my $path (sort keys %allow) {
        my %may = map { $_ => 1 } split /, /, $allow{$path};

        for my $method (qw/ GET HEAD POST PUT PATCH DELETE OPTIONS /) {
            next if $may{$method};
            my $res = $admin->rest($path, method => $method, headers =>
                                   { 'Content-Type' => 'application/json' });
            is($res->{status}, 405, "$method '$path'");
            is($res->{header}{allow}, $allow{$path}, 'what may be');
        }

        for my $method (grep { /POST|DELETE/ } sort keys %may) {
            problem($console->rest($path, method => $method, headers =>
                        { 'Content-Type' => 'application/json' }),
                    403, 'read_only', undef, "$method '$path' without admin");
        }

        next unless $may{POST};

        for my $type ('text/plain', 'application/x-www-form-urlencoded',
                      'multipart/form-data', undef)
        {
            my $res = $admin->rest($path, method => 'POST', body => '{}',
                                   headers => { 'Content-Type' => $type });
            is($res->{status}, 415, "'$path' as " . ($type // 'nothing'));
        }

        is($admin->rest($path, method => 'POST',
                        headers => { 'Content-Length' => 0 })->{status},
           415, 'even of nothing');
    }

    # also where blocks within the location apply
    my $inside = $c->as(uri => '/inside');
    is($inside->rest('api/zone', headers => { 'X-If' => 1 })
              ->{json}{admin}, JSON::PP::true, 'in an if block');
    is($inside->rest_post('api/tools/pause', { tool => 'nix' })->{status}, 404,
       'in a limit_except block');
}


# --- the zone

{
    my $zone = $console->rest('api/zone');
    is($zone->{header}{'content-type'}, 'application/json', 'the zone');
    is($zone->{header}{'cache-control'}, 'no-store', 'as it is now');
    is($zone->{json}{zone}, 'z', 'its name');
    is($zone->{json}{admin}, JSON::PP::false, 'what may be done');
    is($admin->rest('api/zone')->{json}{admin}, JSON::PP::true, 'with admin');
    like($zone->{json}{now}, qr/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/,
         'the time');
    like($zone->{json}{version}, qr/^\d+\.\d+\.\d+$/, 'the version');

    my $status = $t->request('GET', '/status');
    my $json = MCPClient::decode($status->{body});
    is_deeply([sort keys %{ $zone->{json}{status} }], [sort keys %$json],
              'the status, all of it');
    is($console->rest('api/zone', method => 'HEAD')->{status}, 200, 'HEAD');
}


# --- one task, from its beginning to its end

my ($dig, $walk);

{
    my $args = '{"depth" : 12345678901234567890,"a":"<script>"}';
    $dig = $ann->rest_post('tasks', "{\"tool\":\"dig\",\"arguments\":$args,"
                           . '"metadata":{"m":1.50}}')->{json}{taskId};
    $walk = $bob->create_rest('walk');

    my ($got, $res) = task($dig);
    is($res->{status}, 200, 'a task');
    is($res->{header}{etag}, '"1"', 'its version is the tag');
    like($res->{body}, qr/"params":\{"name":"dig","arguments":\Q$args\E\}/,
         'params as they were sent');
    like($res->{body}, qr/"metadata":\{"m":1\.50\}/, 'so is metadata');
    is($got->{method}, 'tools/call', 'the method');
    is($got->{owner}, 'ann', 'whose it is');
    is($got->{phase}, 'queued', 'what it does');
    is($got->{status}, 'working', 'as clients see it');
    is("$got->{attempt}/$got->{attempts}", '0/3', 'attempts');
    is($got->{kind}, 'queue', 'workers do it');
    ok(!exists $got->{worker}, 'none has it');
    is($got->{retryable}, JSON::PP::false, 'not yet');
    is($got->{historyDropped}, 0, 'nothing is forgotten');
    is_deeply($got->{history}, [{ at => $got->{createdAt}, event => 'created',
                                  phase => 'queued' }], 'its history');
    like($got->{expiresAt}, qr/^\d{4}-.*Z$/, 'when it will be gone');
    ok($got->{expiresAt} gt $got->{createdAt}, 'later than now');

    is(task($dig, headers => { 'If-None-Match' => '"1"' }), undef, 'known');
    ($got, $res) = task($dig, headers => { 'If-None-Match' => '"1"' });
    is($res->{status}, 304, 'so it is not sent');

    my $work = $c->claim('dig', worker => 'w<1>"');
    $got = task($dig);
    is($got->{phase}, 'running', 'claimed');
    is($got->{worker}, 'w<1>"', 'by whom');
    $c->held('progress', $work, progress => 1, total => 4,
             message => "\xe2\x80\xaeat <b>1</b>");
    $got = task($dig);
    is("$got->{progress}/$got->{total}", '1/4', 'how far');
    is($got->{statusMessage}, "\xe2\x80\xaeat <b>1</b>", 'what it says');

    $c->held('ask', $work, inputRequests => { q => MCPClient::form('hm') });
    $got = task($dig);
    is($got->{phase}, 'input_required', 'it asks');
    is($got->{inputRequests}{q}{params}{message}, 'hm', 'what');
    ok(!exists $got->{inputResponses}, 'nobody has answered');

    $ann->rest_post("tasks/$dig/input",
                    { inputResponses => { q => { action => 'accept',
                                                 content => { x => 1 } } } });
    $got = task($dig);
    is($got->{phase}, 'running', 'answered');
    is_deeply($got->{inputResponses}, { q => { action => 'accept',
                                               content => { x => 1 } } },
              'with this');
    ok(!exists $got->{inputRequests}, 'it asks no more');

    $c->held('fail', $work, error => { code => 1, message => 'no' },
             retryable => JSON::PP::true, delayMs => 1);
    $got = task($dig);
    is($got->{phase}, 'queued', 'once more');
    ok(!exists $got->{worker}, 'by nobody yet');

    $work = $c->claim('dig', worker => 'w2');
    $c->held('release', $work);
    $work = $c->claim('dig', worker => 'w2');
    $c->complete($work, '{"content":[ ],"isError":true}');

    ($got, $res) = task($dig);
    is($got->{status}, 'completed', 'it ends');
    is($got->{isError}, JSON::PP::true, 'badly');
    is($got->{retryable}, JSON::PP::true, 'so it may be tried again');
    is($got->{worker}, 'w2', 'whose work it was');
    like($res->{body}, qr/"result":\{"content":\[ \],"isError":true\}/,
         'the result as it came');

    my @history = map { join ' ', $_->{event}, $_->{phase},
                        $_->{attempt} // '-', $_->{worker} // '-' }
                  @{ $got->{history} };
    is_deeply(\@history, [
        'created queued - -', 'claimed running 1 w<1>"',
        'asked input_required 1 -', 'answered running 1 -',
        'retried queued 1 -', 'claimed running 2 w2', 'released queued 1 -',
        'claimed running 2 w2', 'completed completed 2 -'],
        'all that happened');
    my @times = map { $_->{at} } @{ $got->{history} };
    is_deeply(\@times, [sort @times], 'in its order');

    problem($console->rest('api/tasks/' . unknown), 404, 'task_not_found',
            undef, 'an unknown task');
    problem($console->rest('api/tasks/x'), 404, 'task_not_found', undef,
            'no id at all');
    is($console->rest("api/tasks/$dig", method => 'HEAD')->{status}, 200,
       'HEAD');
}


# --- how tasks fail

{
    my $id = $ann->create_rest('fail');
    my $work = $c->claim('fail');
    $c->held('fail', $work, error => { code => -5, message => 'broken' });
    my $got = task($id);
    is_deeply($got->{error}, { code => -5, message => 'broken' }, 'an error');
    ok(!exists $got->{result}, 'no result');
    is($got->{retryable}, JSON::PP::true, 'may be tried again');
    is($got->{history}[-1]{event}, 'failed', 'its end');

    $id = $ann->create_rest('fail');
    $ann->rest_post("tasks/$id/cancel", { reason => 'enough' });
    $got = task($id);
    is($got->{status}, 'cancelled', 'cancelled');
    is($got->{statusMessage}, 'enough', 'why');
    is($got->{retryable}, JSON::PP::true, 'may be tried again');
    ok(!exists $got->{error}, 'that is no error');

    $id = $ann->as(uri => '/hasty')->create_rest('slow');
    wait_for { task($id)->{phase} eq 'failed' };
    $got = task($id);
    is($got->{history}[-1]{event}, 'queue_timeout', 'nobody took it');
    is($got->{error}{data}{reason}, 'task_timeout', 'why');

    # a long life: the last things that happened are kept
    my $new = $t->probe('op=create&owner=&tool=often&params={}');
    for (1 .. 80) {
        my $often = $c->claim('often');
        $c->held('release', $often);
    }
    $got = task($new->{id});
    cmp_ok($got->{historyDropped}, '>', 100, 'much was forgotten');
    is($got->{history}[-1]{event}, 'released', 'not the last');
    cmp_ok(scalar @{ $got->{history} }, '>', 5, 'nor those before');
    isnt($got->{history}[0]{event}, 'created', 'but how it began');
    is($got->{historyDropped} >= 255
       || $got->{historyDropped} + @{ $got->{history} } == 161, 1,
       'and how many it were');
}


# --- lists

{
    is_deeply([@{ ids('limit=2') }], [@{ ids('') }[0, 1]], 'the first two');

    my $all = ids('limit=100');
    is($all->[-1], $walk, 'what changed first is last');
    is(scalar @$all, scalar @{ ids('') }, 'all of them');

    my (@pages, $cursor);
    do {
        my ($ids, $next) = page('limit=1' . ($cursor ? "&cursor=$cursor" : ''));
        push @pages, @$ids;
        $cursor = $next;
    } while ($cursor);
    is_deeply(\@pages, $all, 'page by page');

    is_deeply(ids('tool=walk'), [$walk], 'of a tool');
    is_deeply(ids('owner=bob'), [$walk], 'of an owner');
    is(scalar @{ ids('owner=') }, 1, 'of nobody');
    is_deeply(ids('owner=eve'), [], 'of somebody who has none');
    is_deeply(ids('tool=nix'), [], 'of a tool that has none');
    is_deeply(ids('status=queued&tool=walk'), [$walk], 'queued');
    is_deeply(ids('status=working&owner=bob'), [$walk], 'working');
    is_deeply(ids('status=running'), [], 'none runs');
    is_deeply(ids('status=completed'), [$dig], 'completed, with isError');
    is(scalar @{ ids('status=failed') }, 2, 'failed');
    is(scalar @{ ids('status=cancelled') }, 1, 'cancelled');
    is_deeply(ids('status=input_required'), [], 'none asks');
    is_deeply(ids('minAge=100'), [], 'none is old');
    is_deeply(ids('maxAge=100'), $all, 'all are young');
    is_deeply(ids('minAge=0'), $all, 'any age');
    is_deeply(ids('maxAge=0&minAge=1000000000000'), [], 'ages beyond all');
    is_deeply(ids('tool=w%61lk&owner=b%6fb'), [$walk], 'escapes');

    for my $query ('limit=0', 'limit=101', 'limit=x', 'status=nix', 'tool=%x',
                   'owner=%', 'minAge=-1', 'maxAge=x', 'minAge=1.5',
                   'cursor=%')
    {
        my $res = $console->rest("api/tasks?$query");
        is($res->{status}, 400, "refused: $query");
        is($res->{json}{reason}, 'invalid_argument', 'why');
    }

    for my $made ('x', '0' x 48,
                  $ann->rest('tasks?limit=1')->{json}{nextCursor})
    {
        problem($console->rest("api/tasks?cursor=$made"), 410, 'cursor_gone',
                undef, "cursor $made");
    }

    my ($ids, $next) = page('limit=1');
    is($ann->rest("tasks?cursor=$next")->{status}, 400,
       'its cursors are good for nothing else');

    my $row = $console->rest('api/tasks?tool=walk')->{json}{tasks}[0];
    is_deeply([sort keys %$row],
              [sort qw/ taskId status createdAt lastUpdatedAt ttlMs
                        pollIntervalMs tool version owner phase attempt attempts
                        kind expiresAt /], 'a row, in short');
}


# --- while everything changes

{
    my $many = $c->as(uri => '/many');
    my @ids = map { $t->probe('op=create&owner=o&tool=t&params={}', undef,
                              '/manyprobe')->{id} } 1 .. 5;

    my ($ids, $next) = page('limit=2', $many);
    is_deeply($ids, [@ids[4, 3]], 'the last two');

    # the task where the page ended is gone: its place is looked for
    $t->probe("op=delete&id=$ids[3]", undef, '/manyprobe');
    is_deeply(ids("cursor=$next", $many), [@ids[2, 1, 0]],
              'the next page begins where that was');

    # so it is, if it has changed
    ($ids, $next) = page('limit=1', $many);
    $t->probe("op=event&id=$ids[4]&event=10", undef, '/manyprobe');
    is_deeply(ids("cursor=$next", $many), [@ids[2, 1, 0]],
              'also if that task has changed');

    # but not for ever
    ($ids, $next) = page('limit=1', $many);
    $t->probe("op=delete&id=$ids->[0]", undef, '/manyprobe');
    make_many(1100);
    problem($many->rest("api/tasks?cursor=$next"), 410, 'cursor_gone', undef,
            'too much has changed');

    # a filter that matches little ends a page early
    ($ids, $next) = page('owner=o&limit=5&tool=none', $many);
    is_deeply($ids, [], 'no task');
    my $old = $t->probe('op=create&owner=rare&tool=r&params={}', undef,
                        '/manyprobe');
    make_many(1100);
    ($ids, $next) = page('owner=rare', $many);
    is_deeply($ids, [], 'a page of nothing');
    ok($next, 'that is not the last');
    is_deeply(ids("owner=rare&cursor=$next", $many), [$old->{id}],
              'the next one has it');
}


# --- names that somebody made up

{
    my $bad = "we\"ird\\\n</script><img src=x onerror=alert(1)>\x1f\xc3\xa4"
              . "\xf0\x9f\x98\x80\xe2\x80\xa8";
    my $id = $ann->create_rest($bad);
    my ($got, $res) = task($id);
    is($got->{tool}, $bad, 'a hostile name');
    unlike($res->{body}, qr/[\x00-\x1f]/, 'has no control characters');

    (my $escaped = $bad) =~ s/([^a-z])/sprintf '%%%02x', ord $1/ge;
    is_deeply(ids("tool=$escaped"), [$id], 'is found by it');

    # an owner is what nginx made of a request: any bytes
    my $new = $t->probe('op=create&owner=%ff%3Cb%3Ea%c3%a4%c3&tool=x'
                        . '&params={}');
    $res = $console->rest("api/tasks/$new->{id}");
    is($res->{json}{owner}, "\xef\xbf\xbd<b>a\xc3\xa4\xef\xbf\xbd",
       'bytes are no text');
    is_deeply(ids('owner=%ff%3Cb%3Ea%c3%a4%c3'), [$new->{id}],
              'and it is found by them');

    my $work = $t->post('/worker', '{"jsonrpc":"2.0","id":1,"method":'
        . '"worker/claim","params":{"tools":["x"],'
        . '"worker":"</script>\u2028"}}');
    is(task($new->{id})->{worker}, "</script>\xe2\x80\xa8", 'a worker, too');
    is($console->rest('api/zone')->{status}, 200, 'the zone shows them');
}


is($t->probe('op=check')->{check}, 'ok', 'the table is in order');
ok($t->stop(), 'nginx stops');
is($t->faults(), '', 'nothing in the log that should not be');


# --- mistakes in the configuration

{
    my %said = (
        'location /c/ { mcp_tasks_console zone=z admin admin; }'
            => qr/invalid or duplicate parameter "admin"/,
        'location /c/ { mcp_tasks_console zone=z public public; }'
            => qr/invalid or duplicate parameter "public"/,
        'location /c/ { mcp_tasks_console zone=z root; }'
            => qr/invalid or duplicate parameter "root"/,
        'location /c/ { mcp_tasks_console; }'
            => qr/invalid number of arguments/,
        'location /c/ { mcp_tasks_console admin; }'
            => qr/invalid parameter "admin", must be "zone=name"/,
        'location /c/ { mcp_tasks_console zone=nix; }' => qr/unknown zone/,
        'location = /c/ { mcp_tasks_console zone=z; }'
            => qr/only in a prefix location/,
        'location ~ ^/c { mcp_tasks_console zone=z; }'
            => qr/only in a prefix location/,
        'location @c { mcp_tasks_console zone=z; }'
            => qr/only in a prefix location/,
        'location /c/ { mcp_tasks zone=z; mcp_tasks_console zone=z; }'
            => qr/is duplicate/,
    );

    for my $conf (sort keys %said) {
        $t->configure(server => $conf);
        my ($ok, $said) = $t->check();
        ok(!$ok, "refused: $conf");
        like($said, $said{$conf}, 'says why');
    }
}

done_testing();
