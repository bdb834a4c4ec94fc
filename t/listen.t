# subscriptions/listen, in the modern era.

use warnings;
use strict;

use FindBin;
use lib "$FindBin::Bin/lib";

use JSON::PP;
use Test::More;
use Time::HiRes qw/ sleep time /;

use MCPClient;
use MCPPattern qw/ $server /;
use MCPTasks qw/ wait_for workers /;

# with a socket of its own for each worker, connections go to all of them
my $t = MCPTasks->new(
    workers => workers(), listen => 'reuseport sndbuf=8k',
    tools => ['slow'],
    http => 'mcp_tasks_zone zone=z:16m; mcp_tasks_tools tools.json;',
    surfaces => [qw/ mcp worker probe /],
    server => <<'END');
    mcp_tasks_owner $http_x_user;
    client_max_body_size 4m;
    client_body_buffer_size 4m;
    location /quick { mcp_tasks zone=z; mcp_tasks_keepalive 200ms; }
END

my $ann = MCPClient->new($t, headers => { 'X-User' => 'ann' });
my $bob = $ann->as(headers => { 'X-User' => 'bob' });

my $key = 'io.modelcontextprotocol/subscriptionId';
my $date = qr/\A\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z\z/;

use constant SOON => 8;


# a task that is claimed: what its worker needs to know of it
sub task {
    my ($who, %params) = @_;
    my $id = ($who || $ann)->create_modern('slow', %params);
    return $ann->claim_id('slow', $id);
}


sub listen_bytes {
    my ($who, $params, %opt) = @_;
    return $who->modern_bytes('subscriptions/listen', $params, %opt);
}


# of these tasks, from the beginning
sub listening {
    my ($who, $work, %opt) = @_;
    my $s = delete $opt{s};
    return $who->stream(listen_bytes($who, { notifications => {
               taskIds => [map { $_->{taskId} } @$work] } }, %opt), $s);
}


# what the task is, as tasks/get says it, and in the form of a notification
sub expected {
    my ($who, $work, $id) = @_;
    my $got = $who->modern('tasks/get', { taskId => $work->{taskId} })
              ->{json}{result};
    delete $got->{resultType};

    return { jsonrpc => '2.0', method => 'notifications/tasks',
             params => { %$got, _meta => { $key => defined $id ? $id : 1 } } };
}


sub acknowledged {
    my ($id, @ids) = @_;
    return { jsonrpc => '2.0',
             method => 'notifications/subscriptions/acknowledged',
             params => { _meta => { $key => $id },
                         notifications => { taskIds => \@ids } } };
}


# a message in short
sub brief {
    my ($got) = @_;
    return 'nothing' unless $got;
    return 'result' if $got->{result};
    my $p = $got->{params} || {};
    return join ' ', map { defined $_ ? $_ : '-' } $p->{taskId},
                     $p->{status}, $p->{statusMessage};
}


sub next_of {
    my ($stream, $seconds) = @_;
    return brief($stream->message(defined $seconds ? $seconds : SOON));
}


# --- a task, from its beginning to its end

{
    my $work = task();
    my $stream = listening($ann, [$work]);
    my $head = $stream->head();
    like($head, qr{\AHTTP/1\.1 200 }, 'a stream: status');
    like($head, qr{^content-type: text/event-stream\r?$}mi, 'its type');
    like($head, qr{^cache-control: no-store}mi, 'not to be stored');
    like($head, qr{^x-accel-buffering: no}mi, 'not to be buffered');

    my $event = $stream->event();
    is_deeply($event->{json}, acknowledged(1, $work->{taskId}),
              'first it is acknowledged');
    is_deeply([sort keys %$event], [qw/ data json /], 'as a message');

    my $message = $stream->message(SOON);
    is_deeply($message, expected($ann, $work), 'then the present state');
    my $p = $message->{params};
    is_deeply([sort keys %$p], [sort qw/ _meta taskId status createdAt
                                         lastUpdatedAt ttlMs pollIntervalMs /],
              'the members of a task');
    like($p->{$_}, $date, $_) for qw/ createdAt lastUpdatedAt /;
    is($p->{status}, 'working', 'it works');

    $ann->held('progress', $work, message => 'half', progress => 0.5);
    is_deeply($stream->message(SOON), expected($ann, $work), 'a message');

    my $requests = { q => MCPClient::form('which?'),
                     r => { method => 'roots/list', params => {} } };
    $ann->held('ask', $work, inputRequests => $requests);
    $message = $stream->message(SOON);
    is_deeply($message, expected($ann, $work), 'questions');
    is_deeply($message->{params}{inputRequests}, $requests, 'with all of it');

    $ann->modern('tasks/update', { taskId => $work->{taskId},
                                   inputResponses => { q => { a => 1 } } });
    $message = $stream->message(SOON);
    is_deeply($message->{params}{inputRequests}, { r => $requests->{r} },
              'what is still open');
    $ann->modern('tasks/update', { taskId => $work->{taskId},
                                   inputResponses => { r => { a => 1 } } });
    $message = $stream->message(SOON);
    is($message->{params}{status}, 'working', 'all is answered');
    ok(!exists $message->{params}{inputRequests}, 'nothing is open');

    $ann->complete($work, '{"content":[],"n":1.0,"_meta":{"k":1}}');
    $event = $stream->event(SOON);
    is_deeply($event->{json}, expected($ann, $work), 'the end');
    like($event->{data}, qr/"result":\{"resultType":"complete",
                         "content":\[\],"n":1\.0,
                            "_meta":\{"k":1\}\}\}\}\z/x,
         'with the result, byte for byte');

    # the subscription goes on, without anything to tell
    is(next_of($stream, 0.3), 'nothing', 'nothing more');
    ok(!$stream->{over} && !$stream->{whole}, 'and no end');
    $stream->close();

    # who comes late learns it at once
    $stream = listening($ann, [$work]);
    $stream->message(SOON);
    is_deeply($stream->message(SOON), expected($ann, $work),
              'who comes late');
    $stream->close();
}

{
    my @work = map { task() } 1 .. 3;
    my $stream = listening($ann, \@work);
    is(next_of($stream), '- - -', 'acknowledged');
    is_deeply([sort map { next_of($stream) } @work],
              [sort map { "$_->{taskId} working -" } @work], 'three tasks');

    $ann->held('fail', $work[0], error => { code => -5, message => 'no' });
    my $got = $stream->message(SOON);
    is_deeply($got, expected($ann, $work[0]), 'one fails');
    is_deeply($got->{params}{error}, { code => -5, message => 'no' },
              'with its error');

    $ann->modern('tasks/cancel', { taskId => $work[1]{taskId} });
    $got = $stream->message(SOON);
    is_deeply($got, expected($ann, $work[1]), 'one is cancelled');
    is($got->{params}{status}, 'cancelled', 'as such');

    $ann->complete($work[2], '{"isError":true}');
    is($stream->message(SOON)->{params}{status}, 'completed',
       'an error of the tool');
    $stream->close();
}


# --- progress is told by no notification of its own

{
    my $id = $ann->modern('tools/call', { name => 'slow' },
                          meta => { progressToken => 'p' })
             ->{json}{result}{taskId};
    my $work = $ann->claim('slow');
    my $stream = listening($ann, [$work]);
    $stream->message(SOON) for 1, 2;
    $ann->held('progress', $work, progress => $_ / 10) for 1 .. 9;
    $ann->complete($work, '{}');
    my (%methods, $got);

    do {
        $got = $stream->message(SOON) || { params => { status => 'none' } };
        $methods{$got->{method} || 'none'}++;
    } until $got->{params}{status} ne 'working';

    is(join(' ', keys %methods), 'notifications/tasks',
       'no notifications of progress');
    $stream->close();
}


# --- what is acknowledged

{
    my ($mine, $theirs) = (task(), task($bob));
    my @odd = ('00000000-0000-4000-8000-000000000000', $theirs->{taskId},
               'x', '', 'x' x 10000, "$mine->{taskId}x", uc $mine->{taskId},
               "$mine->{taskId}\0", "\xc3\xa9");

    my $stream = $ann->stream(listen_bytes($ann, { notifications => {
        taskIds => [@odd, $mine->{taskId}, @odd] } }));
    is_deeply($stream->message(SOON), acknowledged(1, $mine->{taskId}),
              'what is not known is left out');
    is(next_of($stream), "$mine->{taskId} working -", 'the other is told');
    $ann->complete($theirs, '{}');
    $ann->complete($mine, '{}');
    is(next_of($stream), "$mine->{taskId} completed -",
       'nothing of what is somebody else\'s');
    $stream->close();

    # nothing to tell is no reason to refuse
    for my $case ([{ taskIds => \@odd }, { taskIds => [] }],
                  [{ taskIds => [] }, { taskIds => [] }],
                  [{}, {}],
                  [{ toolsListChanged => JSON::PP::true,
                     promptsListChanged => JSON::PP::true,
                     resourcesListChanged => JSON::PP::true,
                     resourceSubscriptions => ['a:b'], nix => 1 }, {}])
    {
        my ($asked, $got) = @$case;
        my $stream = $ann->as(uri => '/quick')->stream(
            listen_bytes($ann->as(uri => '/quick'),
                         { notifications => $asked }));
        is_deeply($stream->message(SOON),
                  { jsonrpc => '2.0',
                    method => 'notifications/subscriptions/acknowledged',
                    params => { _meta => { $key => 1 },
                                notifications => $got } },
                  'acknowledged: ' . join(' ', sort keys %$asked));
        ok(defined(($stream->event(SOON) || {})->{comment}),
           'and it is kept alive');
        $stream->close();
    }

    $stream = $ann->stream(listen_bytes($ann, { notifications => {
        taskIds => [$mine->{taskId}],
        toolsListChanged => JSON::PP::true } }));
    is_deeply($stream->message(SOON), acknowledged(1, $mine->{taskId}),
              'a kind that is not supported is left out');
    $stream->close();

    # a task that is named twice is told once
    my $twice = task();
    $stream = $ann->stream(listen_bytes($ann, { notifications => {
        taskIds => [($twice->{taskId}) x 3] } }));
    is_deeply($stream->message(SOON), acknowledged(1, $twice->{taskId}),
              'a task that is named twice');
    is(next_of($stream), "$twice->{taskId} working -", 'is told of');
    $ann->complete($twice, '{}');
    is(next_of($stream), "$twice->{taskId} completed -", 'once');
    is(next_of($stream, 0.3), 'nothing', 'only');
    $stream->close();

    # an id with escapes is the same id
    my $other = task();
    (my $escaped = $other->{taskId}) =~ s/-/\\u002d/g;
    $stream = $ann->stream(listen_bytes($ann,
        "{\"notifications\":{\"taskIds\":[\"$escaped\"]}}"));
    is_deeply($stream->message(SOON), acknowledged(1, $other->{taskId}),
              'an id with escapes');
    $stream->close();
}


# --- refused

{
    my $plain = $ann->as(extensions => []);
    my $id = task()->{taskId};

    for my $ids ([$id], [], 'x') {
        my $res = $plain->modern('subscriptions/listen',
                                 { notifications => { taskIds => $ids } });
        is($res->{status}, 400, 'without the extension: status');
        is($res->{body}, '{"jsonrpc":"2.0","id":1,"error":{"code":-32021,'
                         . '"message":"Missing required client capability",'
                         . '"data":{"requiredCapabilities":{"extensions":'
                         . '{"io.modelcontextprotocol/tasks":{}}}}}}',
           'without the extension');
    }

    # without tasks there is nothing that needs it
    my $stream = $plain->stream(listen_bytes($plain, { notifications => {} }));
    is(($stream->message(SOON) || {})->{method},
       'notifications/subscriptions/acknowledged', 'without tasks: a stream');
    $stream->close();

    my @many = map { sprintf '00000000-0000-4000-8000-%012d', $_ } 1 .. 257;

    for my $bad ('{}', '{"notifications":null}', '{"notifications":[]}',
                 '{"notifications":"x"}', '{"notifications":7}',
                 '{"notifications":true}',
                 '{"notifications":{"taskIds":{}}}',
                 '{"notifications":{"taskIds":null}}',
                 '{"notifications":{"taskIds":7}}',
                 "{\"notifications\":{\"taskIds\":\"$id\"}}",
                 "{\"notifications\":{\"taskIds\":[\"$id\",7]}}",
                 "{\"notifications\":{\"taskIds\":[null]}}",
                 "{\"notifications\":{\"taskIds\":[[\"$id\"]]}}",
                 "{\"notifications\":{\"taskIds\":[],\"taskIds\":[]}}",
                 '{"notifications":{},"notifications":{}}',
                 MCPClient::encode({ notifications => { taskIds => \@many } }))
    {
        my $res = $ann->modern('subscriptions/listen', $bad);
        is($res->{json}{error}{code}, -32602,
           'refused: ' . substr($bad, 0, 60)) or diag($res->{status});
    }

    pop @many;
    $many[100] = $id;
    $stream = $ann->stream(listen_bytes($ann,
        { notifications => { taskIds => \@many } }));
    is_deeply($stream->message(SOON), acknowledged(1, $id),
              '256 are not too many');
    $stream->close();

    is($ann->legacy('subscriptions/listen', { notifications => {} })
       ->{json}{error}{code}, -32601, 'the legacy era has no such method');
}


# --- whose messages these are

{
    my $work = task();
    my @ids = ('7', '"x"', '"\u00e9\/\""', '-1', '12345678901234567890123',
               '""', '"' . 'y' x 3000 . '"');
    my @streams = map { listening($ann, [$work], id => $_) } @ids;
    my $first = 0;

    for my $i (0 .. $#ids) {
        my @data = map { ($streams[$i]->event(SOON) || { data => '' })->{data} }
                   1, 2;
        $first += grep { index($_, "\"_meta\":{\"$key\":$ids[$i]}") > 0 } @data;
    }

    is($first, 2 * @ids, 'each message has the id, byte for byte');

    $ann->held('progress', $work, message => 'to all');
    my $again = 0;

    for my $i (0 .. $#ids) {
        my $data = ($streams[$i]->event(SOON) || { data => '' })->{data};
        $again++ if index($data, "\"_meta\":{\"$key\":$ids[$i]}") > 0
                    && $data =~ /"to all"/;
    }

    is($again, scalar @ids, 'several subscriptions to one task: all are told');

    # one leaves, the others go on
    (shift @streams)->close();
    $ann->complete($work, '{}');
    is(scalar(grep { next_of($_) eq "$work->{taskId} completed to all" }
              @streams), $#ids, 'one leaves, and the others go on');
    $_->close() for @streams;
}


# --- each change in the order it was made, whichever process it is made in

{
    my @work = map { task() } 1 .. 10;
    my $conn = $t->connect_all() or BAIL_OUT('workers cannot be reached');
    my @streams = map {
        listening($ann, \@work, s => $t->connect_to($_))
    } sort keys %$conn;
    $_->message(SOON) for @streams;

    for my $n (1 .. 20) {
        $ann->held('progress', $_, message => "n$n") for @work;
    }

    $ann->complete($_, '{}') for @work;
    my ($ended, $bad) = (0, 0);

    for my $stream (@streams) {
        my (%last, %done);

        while (keys %done < @work) {
            my $got = $stream->message(SOON) or last;
            my $p = $got->{params};
            my ($n) = ($p->{statusMessage} || 'n0') =~ /(\d+)/;
            $n = 99 if $p->{status} eq 'completed';
            my $last = $last{$p->{taskId}};
            $bad++ if defined $last && $n <= $last;
            $last{$p->{taskId}} = $n;
            $done{$p->{taskId}} = 1 if $n == 99;
        }

        $ended += keys %done;
    }

    is($bad, 0, 'never backwards, and nothing twice');
    is($ended, @streams * @work, 'each of them sees each end');
    $_->close() for @streams;
}


# --- a reader that is slow: every task is told, at least as it is in the end

{
    my $big = 'x' x 30_000;
    my @work = map { task() } 1 .. 64;
    $ann->complete($_, "{\"text\":\"$big\"}") for @work;

    my $s = $t->connect_narrow();
    my $stream = listening($ann, \@work, s => $s);
    my %told;
    sleep(0.5);
    $stream->message(SOON);

    while (keys %told < 64) {
        my $got = $stream->message(3) or last;
        $told{$got->{params}{taskId}}++;
        fail('not whole')
            unless ($got->{params}{result}{text} || '') eq $big;
    }

    is(scalar(keys %told), 64, 'a slow reader is told of all its tasks');
    is(scalar(grep { $_ > 1 } values %told), 0, 'once');
    $stream->close();
}


# --- a task that expires: there is no word for it, and the stream goes on

{
    my $both = $ann->as(extensions => ['io.modelcontextprotocol/tasks',
                                       'io.github.nginx-mcp-tasks/extended']);
    my $id = $both->modern('tasks/create', { action => 'brief', ttl => 300 })
             ->{json}{result}{taskId};
    my $work = task();
    my $stream = listening($ann, [{ taskId => $id }, $work]);
    $stream->message(SOON) for 1 .. 3;
    ok((wait_for { $t->probe('op=stats')->{expired} >= 1 }), 'a task expires');
    $ann->complete($work, '{}');
    is(next_of($stream), "$work->{taskId} completed -", 'others are told of');
    $stream->close();
}


# --- the end: a reload, and a stop

for my $how ('reload', 'stop') {
    my @work = map { task() } 1 .. 3;
    my @streams = map { listening($ann, \@work, id => "\"s$_\"") } 1 .. 8;

    for my $stream (@streams) {
        $stream->message(SOON) for 0 .. 3;
    }

    # one that has nothing to wait for
    my $none = listening($ann, [], id => '"none"');
    $none->message(SOON);

    my %old = map { $_ => 1 } $t->worker_pids();
    my $stopped = 1;

    if ($how eq 'reload') {
        $t->reload();
    } else {
        $stopped = $t->stop();
    }

    my $good = 0;

    for my $i (1 .. 8) {
        my $stream = $streams[$i - 1];
        my $event = $stream->event(SOON);
        $good++, next if $event && $event->{data}
            eq "{\"jsonrpc\":\"2.0\",\"id\":\"s$i\",\"result\":{\"resultType\""
               . ":\"complete\"," . $server =~ s/\}\z/,"$key":"s$i"}/r . '}}'
            && !$stream->event(SOON) && $stream->{whole} && !$stream->{cut};
        diag($event ? $event->{data} : 'no event');
    }

    is($good, 8, "$how: each subscription ends with its answer");
    is(($none->message(SOON) || {})->{id}, 'none',
       "$how: so does one without tasks");
    ok($stopped, 'nginx stops') if $how eq 'stop';
    next if $how eq 'stop';

    ok((wait_for { !grep { $old{$_} } $t->worker_pids() } 10),
       'the old processes leave');

    # nothing is lost meanwhile
    $ann->complete($work[0], '{}');
    my $stream = listening($ann, \@work);
    $stream->message(SOON);
    is((sort map { next_of($stream) } 1 .. 3)[0] ? 1 : 0, 1, 'a new one');
    $stream->close();
    $ann->complete($_, '{}') for @work[1, 2];
}

is($t->faults(), '', 'nothing bad in the log');

done_testing();
