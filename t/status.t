# The status surface: every figure after a sequence of operations that is
# known, in both formats, over all worker processes.

use warnings;
use strict;
use utf8;

use FindBin;
use lib "$FindBin::Bin/lib";

use Test::More;
use Time::HiRes qw/ sleep time /;

use MCPClient;
use MCPStatus;
use MCPTasks qw/ wait_for workers /;

binmode(Test::More->builder->$_, ':utf8') for qw/ output failure_output /;

my $hostile = qq(we"ird\\ to\\nol}\n,le="5"# HELP \t\x{1f}\x{e4}\x{1f600});

my $tools = MCPClient::encode({ tools => [
    map { { name => $_, inputSchema => { type => 'object' },
            mcpTasks => { backoff => 300, lease => 60000 } } }
        qw/ dig fly other /, $hostile ] });
utf8::encode($tools);

my $server = <<'END';
    mcp_tasks_owner  $http_x_user;

    set_real_ip_from  127.0.0.1;
    real_ip_header    X-Forwarded-For;

    location /mcp { mcp_tasks zone=z; }
    location /worker { mcp_tasks_worker zone=z; }
    location /remote { mcp_tasks_worker zone=z public; }
    location /status { mcp_tasks_status zone=z; }
    location /as_json { mcp_tasks_status zone=z format=json; }
    location /metrics { mcp_tasks_status zone=z format=prometheus; }
    location /public { mcp_tasks_status zone=z public format=json; }
    location /idle { mcp_tasks_status zone=idle; }
    location /probe { mcp_tasks_probe zone=z; }
    location /many { mcp_tasks_probe zone=many; }
    location /many_status { mcp_tasks_status zone=many; }
    location /small { mcp_tasks_probe zone=small; }
    location /small_status { mcp_tasks_status zone=small; }
END

my $t = MCPTasks->new(
    workers => workers(), listen => 'reuseport',
    files => { 'tools.json' => $tools },
    http => 'mcp_tasks_zone zone=z:4m; mcp_tasks_zone zone=idle:1m;'
            . ' mcp_tasks_zone zone=many:4m; mcp_tasks_zone zone=small:64k;'
            . ' mcp_tasks_tools tools.json;',
    server => $server);

my $conn = $t->connect_all() or BAIL_OUT('processes cannot be reached');
my @pids = sort keys %$conn;
my $s = MCPStatus->new($t);
my $c = MCPClient->new($t, headers => { 'X-User' => 'ann' });
my $turn = 0;

use constant { COMPLETE => 3, RELEASE => 6 };


# the same client, each time in another process
sub any {
    return $c->as(via => $conn->{$pids[$turn++ % @pids]});
}


sub create { return any()->create(@_) }


sub claim {
    my ($tool, %opt) = @_;
    my $work = any()->claim($tool, %opt);
    BAIL_OUT("no task of \"$tool\"") unless $work;
    return $work;
}


# those of the zone, or of what is given, that are not as expected
sub figures {
    my ($want, $what, $of) = @_;
    $of ||= $s->json();
    is_deeply({ map { $_ => MCPStatus::at($of, $_) } keys %$want }, $want,
              $what);
}


# --- what is asked for, and who may ask

{
    my $res = $t->request('GET', '/status', {});
    is($res->{status}, 200, 'a status');
    is($res->{header}{'content-type'}, 'application/json', 'is JSON');
    is($res->{header}{'cache-control'}, 'no-store', 'and not to be kept');

    my $length = $res->{header}{'content-length'};
    $res = $t->request('HEAD', '/status', {});
    is($res->{status}, 200, 'HEAD');
    cmp_ok(abs($res->{header}{'content-length'} - $length), '<', 20,
           'has the length');
    is($res->{body}, '', 'and no body');

    my $plain = 'text/plain; version=0.0.4; charset=utf-8';
    my $scraper = 'application/openmetrics-text;version=1.0.0,'
                  . 'text/plain;version=0.0.4;q=0.5,*/*;q=0.1';

    for (['/status?format=prometheus', undef, $plain],
         ['/status?format=json', $scraper, 'application/json'],
         ['/status', $scraper, $plain],
         ['/status', 'text/plain', $plain],
         ['/status', 'TEXT/PLAIN', $plain],
         ['/status', 'application/openmetrics-text', $plain],
         ['/status', 'text/html,*/*;q=0.8', 'application/json'],
         ['/status', 'application/json, text/plain, */*', 'application/json'],
         ['/as_json', 'text/plain', 'application/json'],
         ['/as_json?format=prometheus', undef, $plain],
         ['/metrics', undef, $plain],
         ['/metrics', 'application/json', $plain],
         ['/metrics?format=json', undef, 'application/json'],
         ['/public?format=prometheus', 'text/plain', $plain])
    {
        my ($uri, $accept, $type) = @$_;
        $res = $t->request('GET', $uri, { Accept => $accept });
        is($res->{header}{'content-type'}, $type,
           "$uri, " . ($accept || 'no Accept'));
    }

    $res = $t->request('GET', '/status?format=xml', {});
    is($res->{status}, 400, 'an unknown format');
    like($res->{body}, qr/"reason":"invalid_argument"/, 'why');

    for my $method (qw/ POST PUT DELETE OPTIONS /) {
        $res = $t->request($method, '/status', {}, 'x');
        is($res->{status}, 405, "$method: 405");
        is($res->{header}{allow}, 'GET, HEAD', "$method: what is allowed");
        like($res->{body}, qr/"reason":"method_not_allowed"/, "$method: why");
    }

    my %far = ('X-Forwarded-For' => '192.0.2.1');
    $res = $t->request('GET', '/status', \%far);
    is($res->{status}, 403, 'not for other machines');
    like($res->{body}, qr/"reason":"not_local"/, 'why');
    is($t->request('GET', '/public', \%far)->{status}, 200, 'but if public');

    for ('/status', '/public') {
        $res = $t->request('GET', $_, { Host => 'evil.example' });
        is($res->{status}, 403, "$_: not by another name");
        like($res->{body}, qr/"reason":"origin_not_allowed"/, 'why');

        for my $origin ('http://localhost:4711', 'http://evil.example',
                        'http://127.0.0.1', 'null', 'ftp://localhost')
        {
            $res = $t->request('GET', $_, { Origin => $origin,
                                            Host => 'localhost' });
            is($res->{status}, 403, "$_: not for the Origin $origin");
            like($res->{body}, qr/"reason":"origin_not_allowed"/, 'why');
            is($res->{header}{'access-control-allow-origin'}, undef,
               'nothing is allowed to it');
        }

        is($t->request('GET', $_, { Origin => 'http://localhost:4711',
                                    Host => 'localhost:4711' })->{status}, 200,
           "$_: its own");
    }
}

# --- nothing yet

{
    my $json = $s->json();
    my @not = grep { my $v = MCPStatus::at($json, $_->[0]);
                     !ref $v && $v != 0
                     && $_->[0] !~ /^(slots|blocks)\.total$|^sweep\.runs$/ }
              @MCPStatus::zone;
    is_deeply([map { $_->[0] } @not], [], 'all figures are 0');
    is_deeply([$json->{byTool}, $json->{byWorker}], [[], []],
              'and nobody is there');
    is($json->{zone}, 'z', 'the zone');
    is($s->differs(), '', 'both formats agree');
}

# --- a sequence of operations

my ($first, $again, $asked, @dig);

{
    @dig = map { create('dig') } 1 .. 6;
    my $fly = create('fly');

    figures({ created => 7, 'tasks.queued' => 7, owners => 1, tools => 2,
              'slots.used' => 7, claims => 0, sessions => 0 },
            'tasks are created');

    sleep(0.3);
    cmp_ok($s->json()->{oldestQueued}, '>=', 0.3, 'the oldest one waits');
    cmp_ok($s->tool('fly')->{oldestQueued}, '>=', 0.3, 'by tool as well');

    $first = claim('dig', worker => 'w1');
    any()->held('complete', $first, result => { content => [] });

    my $work = claim('dig', worker => 'w2');
    any()->held('fail', $work, error => { code => -1, message => 'no' });

    $again = claim('dig', worker => 'w1');
    any()->held('fail', $again, error => { code => -1, message => 'later' },
                retryable => JSON::PP::true);

    $work = claim('dig', worker => 'w1');
    any()->legacy('tasks/cancel', { taskId => $work->{taskId} });
    my $got = any()->held('complete', $work, result => {});
    is($got->{error}{code}, -31011, 'a cancelled task is not completed');

    $asked = claim('dig', worker => 'w2');
    $got = any()->held('ask', $asked, inputRequests => {
        q => { method => 'elicitation/create',
               params => { message => 'What?', requestedSchema =>
                           { type => 'object', properties => {} } } } });
    is($got->{phase}, 'input_required', 'a question');

    $work = claim('dig');
    $got = any()->held('release', $work);
    is($got->{phase}, 'queued', 'released');

    $got = any()->held('heartbeat', $work);
    is($got->{error}{code}, -31011, 'which has not its lease any more');

    figures({
        created => 7, claims => 6, retries => 2, staleTokens => 1,
        lostLeases => 0, recoveries => 0, newsDropped => 0,
        'tasks.queued' => 3, 'tasks.running' => 0,
        'tasks.input_required' => 1, 'tasks.completed' => 1,
        'tasks.failed' => 1, 'tasks.cancelled' => 1,
        'finished.completed' => 1, 'finished.failed' => 1,
        'finished.cancelled' => 1, 'finished.expired' => 0,
        'finished.deleted' => 0, 'removed.expired' => 0,
        'refused.lease_lost' => 1, 'refused.task_terminal' => 1,
        'refused.task_not_found' => 0, workers => 3,
        'wait.count' => 6, 'run.count' => 5,
    }, 'what became of them');

    my $tool = $s->tool('dig');
    figures({
        created => 6, claims => 6, retries => 2, 'tasks.queued' => 2,
        'tasks.input_required' => 1, 'tasks.completed' => 1,
        'finished.completed' => 1, 'finished.failed' => 1,
        'finished.cancelled' => 1, 'wait.count' => 6, 'run.count' => 5,
    }, 'the same by tool', $tool);
    figures({ created => 1, claims => 0, 'tasks.queued' => 1,
              'wait.count' => 0, 'run.count' => 0 }, 'another one',
            $s->tool('fly'));

    # all of them waited for 0.3 s at least, but the one that was retried
    is($tool->{wait}{buckets}{'0.1'}, 0, 'none was claimed at once');
    is($tool->{wait}{buckets}{'+Inf'}, 6, 'all of them were');
    cmp_ok($tool->{wait}{sum}, '>', 6 * 0.3, 'the time they waited');
    cmp_ok($tool->{run}{sum}, '<', 5, 'the time they ran');

    figures({ claims => 3, completed => 1, failed => 1 }, 'a worker',
            $s->worker('w1'));
    figures({ claims => 2, completed => 0, failed => 1 }, 'another one',
            $s->worker('w2'));
    figures({ claims => 1, completed => 0, failed => 0 }, 'one by its address',
            $s->worker('127.0.0.1'));
    cmp_ok(abs($s->worker('w1')->{lastSeen} - time()), '<', 20,
           'when it was seen');
    is($s->differs(), '', 'both formats agree');

    # to the end
    $fly = claim('fly', worker => 'w1');
    any()->held('complete', $fly, result => { content => [] });
    figures({ 'tasks.queued' => 0, 'tasks.completed' => 1, created => 1 },
            'a tool whose task has ended', $s->tool('fly'));

    # the retry waits until its time has come, and does not age before
    ok((wait_for { $s->tool('dig')->{tasks}{queued} == 2 }), 'two are queued');
    my @left = map { claim('dig', worker => 'w2') } 1 .. 2;
    any()->held('complete', $_, result => { content => [] }) for @left;
    is($s->tool('dig')->{oldestQueued}, 0, 'nothing is left in the queue');
    figures({ claims => 9, 'wait.count' => 9, 'run.count' => 8,
              'finished.completed' => 4 }, 'all are done');
}

# --- who waits, in all processes

{
    my $id = create('fly');
    my @polls = map {
        my $p = $t->connect();
        MCPTasks::send_raw($p, $c->rest_bytes(
            "tasks/$id/poll?timeout=60000&version=1"));
        $p;
    } 1 .. 5;
    my @streams = map { $c->follow("tasks/$id/events") } 1 .. 4;
    $_->message(30) for @streams;

    my $claim = $t->connect();
    MCPTasks::send_raw($claim, MCPClient::bytes('/worker', MCPClient::rpc(
        'worker/claim', { tools => ['none'], waitMs => 60000,
                          worker => 'idle' })));

    ok((wait_for { $s->json()->{waitingRequests} == 10 }),
       'polls, streams and a worker wait');
    is($s->json()->{streams}, 4, 'four of them are streams');
    is($s->worker('idle')->{claims}, 0, 'who found nothing is seen');
    is($s->differs(), '', 'both formats agree');

    close($claim);
    close($_) for @polls[0, 1];
    $streams[0]->close();
    ok((wait_for { my $now = $s->json();
                   $now->{waitingRequests} == 6 && $now->{streams} == 3 }),
       'some leave');

    # a process that is killed leaves no ghosts
    my $via = $t->connect_to($pids[0]);
    my $more = $c->stream($c->rest_bytes("tasks/$id/events"), $via);
    $more->message(30);
    ok((wait_for { $s->json()->{streams} == 4 }), 'a stream of one process');

    kill('KILL', $pids[0]);
    ok((wait_for { !grep { $_ == $pids[0] } $t->worker_pids() }),
       'which is killed');
    ok(!$more->message(10), 'the stream is cut');

    # those that are left are known by asking their sockets
    ok((wait_for {
        my $polls = grep { !IO::Select->new($_)->can_read(0) } @polls[2 .. 4];
        my $open = grep { $_->more(0); !$_->{over} } @streams[1 .. 3];
        my $now = $s->json();
        return $now->{waitingRequests} == $polls + $open
               && $now->{streams} == $open;
    }), 'those that it had are not counted any more');

    ok((wait_for { $t->worker_pids() == workers() }), 'another one comes');
    $conn = $t->connect_all();
    @pids = sort keys %$conn;

    my $work = claim('fly', worker => 'w1');
    any()->held('complete', $work, result => { content => [] });
    ok((wait_for { my $now = $s->json();
                   $now->{waitingRequests} == 0 && $now->{streams} == 0 }),
       'when all is told, nobody waits');
    cmp_ok($s->json()->{signals}, '>', 0, 'processes were told');
}

# --- limits, expiry, removal, sweeps, sessions

{
    my $before = $s->json();
    my $got = $t->probe('op=create&owner=ann&tool=brief&ttl=100');
    is($got->{reason}, 'ok', 'a task with little time');
    ok((wait_for { $s->json()->{finished}{expired} == 1 }), 'it expires');

    my $now = $s->json();
    is($now->{removed}{expired}, 1, 'and is removed');
    cmp_ok($now->{sweep}{runs}, '>', $before->{sweep}{runs}, 'by a sweep');
    cmp_ok($now->{sweep}{tasks}, '>', $before->{sweep}{tasks}, 'with tasks');
    cmp_ok($now->{sweep}{maxLag}, '>=', $now->{sweep}{lag}, 'not too late');
    cmp_ok($now->{sweep}{maxLag}, '<', 10, 'really not');
    figures({ created => 1, 'finished.expired' => 1, 'tasks.queued' => 0 },
            'by tool', $s->tool('brief'));

    my $id = $t->probe('op=create&owner=ann&tool=brief')->{id};
    $t->probe("op=delete&id=$id");
    $t->probe("op=delete&id=$first->{taskId}");
    $t->probe("op=delete&id=$id");
    figures({ 'finished.deleted' => 1, 'removed.deleted' => 2,
              'finished.completed' => 5, 'refused.task_not_found' => 1 },
            'one that had not ended is deleted, and one that had');

    my $lost = $t->probe('op=create&owner=ann&tool=brief&lease=100')->{id};
    $t->probe('op=claim&tool=brief');
    ok((wait_for { $s->json()->{lostLeases} == 1 }), 'a lease is lost');
    figures({ lostLeases => 1, retries => 1, claims => 1 }, 'by tool',
            $s->tool('brief'));
    $t->probe("op=delete&id=$lost");

    my $session = $c->in_session();
    $session->create('fly');
    figures({ sessions => 1 }, 'a session');

    my $work = claim('fly');
    my $big = any()->held('complete', $work, result => { x => 'y' x 900_000 });
    ok(!$big->{error}, 'many bytes');
    cmp_ok($s->json()->{payloadBytes}, '>', 900_000, 'are counted');
    cmp_ok($s->json()->{blocks}{used}, '>', 900_000 / 128, 'so are blocks');

    $got = $t->probe('op=create&owner=o&tool=t&params=' . 'x' x 400 . '&n=60',
                     undef, '/small');
    isnt($got->{reason}, 'ok', 'a small zone is full');
    my $small = MCPStatus->new($t, uri => '/small_status', zone => 'small');
    cmp_ok($small->json()->{refused}{$got->{reason}}, '>', 0, 'counted');
    is($small->differs(), '', 'both formats agree');
    is(MCPStatus->new($t, uri => '/idle', zone => 'idle')->differs(), '',
       'also of an empty zone');
}

# --- names that mean harm

{
    my $ascii = JSON::PP->new->ascii;
    my $name = qq(wo"rk\\er{}\n\t\x{1f}\x{e4});
    my $made = any()->legacy('tools/call', $ascii->encode(
        { name => $hostile, task => {} }));
    my $work = any()->worker('worker/claim', $ascii->encode(
        { tools => [$hostile], worker => $name }))->{tasks}[0];
    is($work->{taskId}, $made->{json}{result}{task}{taskId},
       'a tool with a strange name');
    any()->held('complete', $work, result => { content => [] });

    figures({ created => 1, 'finished.completed' => 1 }, 'is counted',
            $s->tool($hostile));
    figures({ claims => 1, completed => 1 }, 'and so is a worker',
            $s->worker($name));
    is($s->differs(), '', 'both formats agree');

    # a tool with the name of what others share is one of these
    create('other');
    is($s->tool('other')->{created}, 1, 'a tool called "other"');
    $t->probe('op=create&owner=ann&tool=%ff%fe');
    $t->probe('op=create&owner=ann&tool=' . 'x' x 129);
    is($s->tool('other')->{created}, 3, 'with those that cannot be shown');
    is(scalar(grep { $_->{name} eq 'other' } @{ $s->json()->{byTool} }), 1,
       'which is there once');
    is($s->differs(), '', 'both formats agree');

    for (['""', 'empty'], ['"' . 'x' x 65 . '"', 'too long'], [7, 'a number'],
         ['"\ud800"', 'no text'])
    {
        my ($value, $what) = @$_;
        my $got = $c->worker('worker/claim',
                             qq({"tools":["none"],"worker":$value}));
        is($got->{error}{code}, -32602, "a worker's name that is $what");
    }

    my $got = $c->worker('worker/claim', { tools => ['none'],
                                           worker => 'x' x 64 });
    is_deeply($got->{tasks}, [], 'of 64 bytes it may be');

    # another one's address, as nginx knows it
    $c->as(work => '/remote', headers => {})->say_bytes(MCPClient::bytes(
        '/remote', MCPClient::rpc('worker/claim', { tools => ['none'] }),
        'X-Forwarded-For' => '192.0.2.7'));
    is($s->worker('192.0.2.7')->{claims}, 0, 'without a name, the address');
}

# --- more tools and workers than there are entries

{
    my $many = MCPStatus->new($t, uri => '/many_status', zone => 'many');

    for my $n (1 .. 200) {
        $t->probe("op=create&owner=ann&tool=tool$n", undef, '/many');
    }

    my $json = $many->json();
    my %by = map { $_->{name} => $_ } @{ $json->{byTool} };
    is(scalar keys %by, 128, '200 tools have 128 entries');
    is($by{tool1}{created}, 1, 'the first has its own');
    is($by{other}{created}, 73, 'the others share one');
    is($by{other}{tasks}{queued}, 73, 'with all their tasks');
    is($json->{created}, 200, 'in all');
    is($json->{tools}, 200, 'of so many tools');
    cmp_ok($by{other}{oldestQueued}, '>', 0, 'and the oldest of these');
    is($many->differs(), '', 'both formats agree');

    # whichever has an entry goes on with it
    $t->probe('op=claim&tool=tool1', undef, '/many');
    $t->probe('op=claim&tool=tool200', undef, '/many');
    figures({ claims => 1, 'tasks.running' => 1 }, 'a claim',
            $many->tool('tool1'));
    figures({ claims => 1, 'tasks.running' => 1 }, 'a claim of the others',
            $many->tool('other'));
    is($t->probe('op=check', undef, '/many')->{check}, 'ok',
       'the table is in order');

    for my $n (1 .. 70) {
        any()->worker('worker/claim', { tools => ['none'], worker => "w-$n" });
    }

    $json = $s->json();
    my %seen = map { $_->{name} => 1 } @{ $json->{byWorker} };
    is(scalar keys %seen, 64, '64 workers are remembered');
    ok(!$seen{w1} && !$seen{'w-1'} && $seen{'w-70'} && $seen{'w-10'},
       'those that were seen last');
    is($json->{workers}, 64, 'and were seen lately');
    is($s->differs(), '', 'both formats agree');

    # what a forgotten one had claimed is nobody's
    any()->held('answers', $asked);
    any()->legacy('tasks/cancel', { taskId => $asked->{taskId} });
    is(scalar(grep { $_->{completed} } @{ $s->json()->{byWorker} }), 0,
       'nobody gets the credit of another');
}

# --- a store that answers later

{
    my $via = $t->connect();
    $t->probe('op=late', $via);
    my $late = MCPStatus->new($t, via => $via)->json();
    is($late->{created}, $s->json()->{created}, 'answered later');
    is($t->request('HEAD', '/status', {}, undef, $via)->{status}, 200,
       'HEAD as well');
    $t->probe('op=late&on=0', $via);
}

# --- a reload, and crashes

sub counters {
    my ($json) = @_;
    my %all = map { $_->[0] => MCPStatus::at($json, $_->[0]) } @MCPStatus::zone;
    delete @all{ grep { /^sweep|^signals|oldest|waiting|^streams|^workers/ }
                 keys %all };
    return \%all;
}

{
    my $before = counters($s->json());
    my $tool = $s->tool('dig');

    $t->reload();
    ok((wait_for {
        my @now = $t->worker_pids();
        my %old = map { $_ => 1 } @pids;
        return @now == workers() && !grep { $old{$_} } @now;
    }), 'nginx is reloaded');

    is_deeply(counters($s->json()), $before, 'nothing is forgotten');
    is_deeply($s->tool('dig'), $tool, 'nor of a tool');

    # a worker process dies while it changes a task
    my $id = $t->probe('op=create&owner=ann&tool=crash')->{id};
    my $work = $t->probe('op=claim&tool=crash');
    $before = counters($s->json());

    for my $label (qw/ change_decided change_done /) {
        my $v = $t->connect();
        $t->probe("op=die&at=$label", $v);
        ok(!$t->probe("op=event&id=$id&lease=$work->{lease}&event="
                      . ($label eq 'change_done' ? COMPLETE : RELEASE), $v),
           "$label: a process dies");
        is($t->probe('op=check')->{check}, 'ok', "$label: in order");
        $work = $t->probe('op=claim&tool=crash') if $label ne 'change_done';
        ok((wait_for { $t->worker_pids() == workers() }), 'another comes');
    }

    my $after = counters($s->json());
    is($after->{recoveries}, $before->{recoveries} + 2, 'two recoveries');
    is($after->{'tasks.completed'}, $before->{'tasks.completed'} + 1,
       'the task is completed');
    is($after->{'tasks.running'}, $before->{'tasks.running'} - 1,
       'and does not run');
    is($s->tool('crash')->{tasks}{completed}, 1, 'by tool as well');
    is($after->{created}, $before->{created}, 'counters are kept');
    cmp_ok($after->{'finished.completed'}, '>=',
           $before->{'finished.completed'}, 'all of them');

    # a new tool, and the process dies before it is known
    for my $label (qw/ stat_new name_new new_published /) {
        my $v = $t->connect();
        $t->probe("op=die&at=$label", $v);
        ok(!$t->probe("op=create&owner=ann&tool=late_$label", $v),
           "$label: a process dies");
        is($t->probe('op=check')->{check}, 'ok', "$label: in order");
        is($t->probe("op=create&owner=ann&tool=late_$label")->{reason}, 'ok',
           "$label: again");
        is($s->tool("late_$label")->{tasks}{queued},
           $label eq 'new_published' ? 2 : 1, "$label: it has its entry");
        ok((wait_for { $t->worker_pids() == workers() }), 'another comes');
    }

    is($s->differs(), '', 'both formats agree');
}

ok($t->stop(), 'nginx stops');
is($t->faults('exited on signal 9|was locked by'), '',
   'nothing else in the log that should not be');

done_testing();
