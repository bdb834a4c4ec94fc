# Long-poll: a task as soon as it is newer than what the client knows.

use warnings;
use strict;

use FindBin;
use lib "$FindBin::Bin/lib";

use IO::Select;
use Test::More;
use Time::HiRes qw/ sleep time /;

use MCPClient qw/ answer /;
use MCPTasks qw/ wait_for workers /;

my $t = MCPTasks->new(
    workers => workers(),
    tools => ['slow'],
    http => 'mcp_tasks_zone zone=z:4m; mcp_tasks_tools tools.json;',
    surfaces => [qw/ mcp worker probe /],
    server => <<'END');
    mcp_tasks_owner $http_x_user;
    location /quick { mcp_tasks zone=z; mcp_tasks_poll_timeout 300ms max=1s; }
END

my $c = MCPClient->new($t);
my $ann = $c->as(headers => { 'X-User' => 'ann' });
my $bob = $c->as(headers => { 'X-User' => 'bob' });

use constant COMPLETE => 3;


sub poll {
    my ($who, $id, $args) = @_;
    return $who->rest("tasks/$id/poll" . (defined $args ? "?$args" : ''));
}


# a poll that is answered later, once it is known to wait
sub park {
    my ($who, $id, $args) = @_;
    my $before = waiting();
    my $s = $t->connect();
    MCPTasks::send_raw($s, $who->rest_bytes("tasks/$id/poll?$args"));
    wait_for { waiting() == $before + 1 } or fail("a poll waits: $args");
    return $s;
}


# Who has its answer may still be counted for a moment: until the process that
# gave it is done with the request.
sub waiting {
    my $last = -1;

    my $count = wait_for {
        my $now = $t->probe('op=waits')->{zone};
        my $same = ($now == $last);
        $last = $now;
        return $same ? [$now] : undef;
    };

    return $count->[0];
}


sub quiet {
    my (@s) = @_;
    my @ready = IO::Select->new(@s)->can_read(0.3);
    return !@ready;
}


# all of an answer, but for what differs between any two
sub bytes_of {
    my ($res) = @_;
    return $res->{head} =~ s/^Date:.*?\r\n//mr . "\n\n$res->{body}";
}


# --- a task as it is

my $id = $c->create('slow', arguments => { n => 1 });
my $res = poll($c, $id);

is($res->{status}, 200, 'a task');
is($res->{header}{'content-type'}, 'application/json', 'as JSON');
is($res->{header}{'cache-control'}, 'no-store', 'not to be kept');
like($res->{body}, qr/\A\{"taskId":"$id","status":"working",.*
                      "tool":"slow","version":\d+\}\z/x, 'with its version');

my $version = $res->{json}{version};
is($res->{header}{etag}, "\"$version\"", 'which is the ETag');
is(poll($c, $id, "timeout=0&version=0")->{body}, $res->{body},
   'version 0: the same');
is(poll($c, $id, 'version=' . ($version - 1))->{body}, $res->{body},
   'newer than what is known: at once');
is(poll($c, $id, "a=b&version=@{[ $version - 1 ]}&timeout=60000&c")->{body},
   $res->{body}, 'other arguments do not matter');

# --- nothing new

{
    my $start = time();
    my $none = poll($c, $id, "timeout=400&version=$version");
    my $took = time() - $start;

    is($none->{status}, 204, 'nothing new when the time is up');
    is($none->{body}, '', 'and no body');
    ok(!exists $none->{header}{etag}, 'nor a version');
    cmp_ok($took, '>', 0.35, 'not before');
    cmp_ok($took, '<', 10, 'nor much later');

    $none = poll($c, $id, "timeout=0&version=$version");
    is($none->{status}, 204, 'a time of zero: only a look');

    my $quick = $c->as(uri => '/quick');
    $start = time();
    is(poll($quick, $id, "version=$version")->{status}, 204,
       'without a time of its own');
    $took = time() - $start;
    cmp_ok($took, '>', 0.25, 'the configured one holds');
    cmp_ok($took, '<', 10, 'the configured one is short');

    $start = time();
    is(poll($quick, $id, "version=$version&timeout=86400000")->{status}, 204,
       'a very long time');
    $took = time() - $start;
    cmp_ok($took, '>', 0.9, 'is cut');
    cmp_ok($took, '<', 15, 'to what is allowed');

    is(poll($quick, $id, "version=$version&timeout=" . '9' x 18)->{status},
       204, 'as is one of many years');
    is(waiting(), 0, 'nobody waits any more');
}

# --- every change ends it

my $work = $c->claim('slow');
$version = poll($c, $id)->{json}{version};

{
    my @parked = map { park($c, $id, "timeout=30000&version=$version") } 1 .. 3;
    my $later = park($c, $id, 'timeout=30000&version=' . ($version + 1));
    ok(quiet(@parked, $later), 'polls wait');

    $c->held('progress', $work, progress => 0.5, message => 'half');

    my @got = map { answer($_) } @parked;
    is(scalar(grep { $_->{status} == 200 } @got), 3, 'progress: all are told');
    is($got[0]{json}{progress}, 0.5, 'progress');
    is($got[0]{json}{statusMessage}, 'half', 'and its message');
    is($got[0]{json}{version}, $version + 1, 'the version grew');
    is($got[0]{header}{etag}, '"' . ($version + 1) . '"', 'so did the ETag');
    is($got[1]{body}, $got[0]{body}, 'the same for the second');
    is($got[2]{body}, $got[0]{body}, 'and the third');

    ok(quiet($later), 'but not who knows it already');
    is(waiting(), 1, 'who still waits');

    $c->held('ask', $work, inputRequests => { q => {
        method => 'elicitation/create',
        params => { mode => 'form', message => 'why?',
                    requestedSchema => { type => 'object',
                                         properties => {} } } } });

    my $asked = answer($later);
    is($asked->{json}{status}, 'input_required', 'a question');
    is($asked->{json}{inputRequests}{q}{params}{message}, 'why?', 'is told');
    $version = $asked->{json}{version};

    $later = park($c, $id, "version=$version");
    $c->modern('tasks/update', { taskId => $id, inputResponses => {
        q => { action => 'decline' } } });
    my $back = answer($later);
    is($back->{json}{status}, 'working', 'it was answered');
    ok(!exists $back->{json}{inputRequests}, 'and is gone');
    $version = $back->{json}{version};

    $later = park($c, $id, "version=$version");
    $c->complete($work, '{"content":[{"type":"text","text":"x\u00e9"}]}');
    my $done = answer($later);
    is($done->{json}{status}, 'completed', 'the end');
    like($done->{body}, qr/,"result":\{"resultType":"complete",
                       "content":\[\{"type":"text",
                           "text":"x\\u00e9"\}\]\}\}\z/x, 'with its result');

    for my $known (0, $done->{json}{version}, $version + 1000) {
        is(poll($c, $id, "timeout=60000&version=$known")->{body},
           $done->{body}, "what has ended is told at once: $known");
    }
}

{
    my $failed = $c->create('slow');
    my $held = $c->claim('slow');
    my $s = park($c, $failed, 'version='
                              . poll($c, $failed)->{json}{version});
    $c->held('fail', $held, error => { code => -5, message => 'no' },
             retry => JSON::PP::false);
    my $got = answer($s);
    is($got->{json}{status}, 'failed', 'failed');
    is_deeply($got->{json}{error}, { code => -5, message => 'no' },
              'with the error');

    my $gone = $c->create('slow');
    $s = park($c, $gone, 'version=' . poll($c, $gone)->{json}{version});
    $c->legacy('tasks/cancel', { taskId => $gone });
    is(answer($s)->{json}{status}, 'cancelled', 'cancelled');
}

# --- arguments

for my $arg (qw/ timeout version /) {
    for my $bad ('', 'x', '-1', '+1', '1.5', '1e3', '0x10', '1%20', '%31',
                 '9' x 30)
    {
        $res = poll($c, $id, "$arg=$bad");
        is($res->{status}, 400, "$arg=$bad") or diag($res->{body});
        is($res->{header}{'content-type'}, 'application/problem+json',
           'a problem');
        is($res->{body}, '{"title":"Bad Request","status":400,'
                         . '"reason":"invalid_argument","detail":'
                         . '"timeout and version must be integers, not '
                         . 'negative"}',
           'says so');
    }
}

# --- what is not there, is not yours, was, or is none: all the same

my $unknown = poll($ann, '00000000-0000-4000-8000-000000000000', 'timeout=0');
is($unknown->{status}, 404, 'an unknown id');
is($unknown->{header}{'content-type'}, 'application/problem+json',
   'a problem');
is($unknown->{body}, '{"title":"Not Found","status":404,'
                     . '"reason":"task_not_found"}', 'says so');

{
    my $own = $t->probe('op=create&owner=ann&tool=t&params={}')->{id};
    is(poll($ann, $own)->{status}, 200, 'the owner gets it');

    my $dead = $t->probe('op=create&owner=ann&tool=t&params={}&ttl=200')->{id};
    my $deleted = $t->probe('op=create&owner=ann&tool=t&params={}')->{id};
    $t->probe("op=delete&id=$deleted");
    wait_for { poll($ann, $dead)->{status} == 404 };

    for (['foreign', $bob, $own], ['of nobody', $c, $own],
         ['expired', $ann, $dead], ['deleted', $ann, $deleted],
         ['no id', $ann, 'x'], ['too short', $ann, substr($own, 1)],
         ['too long', $ann, "${own}0"], ['upper case', $ann, uc $id],
         ['braces', $ann, "%7B$own%7D"], ['a zero byte', $ann, "$own%01"],
         ['very long', $ann, 'a' x 3000])
    {
        my ($name, $who, $key) = @$_;

        for my $args ('', '?timeout=0', '?version=7&timeout=50') {
            is(bytes_of($who->rest("tasks/$key/poll$args")),
               bytes_of($unknown), "$name$args: the same bytes");
        }
    }

    # while somebody waits for it

    my $made = $t->probe('op=create&owner=ann&tool=t&params={}');
    my $s = park($ann, $made->{id}, "version=$made->{version}");
    $t->probe("op=delete&id=$made->{id}");
    is(bytes_of(answer($s)), bytes_of($unknown), 'deleted meanwhile');

    $made = $t->probe('op=create&owner=ann&tool=t&params={}&ttl=1500');
    $s = park($ann, $made->{id}, "version=$made->{version}");
    my $start = time();
    is(bytes_of(answer($s)), bytes_of($unknown), 'expired meanwhile');
    cmp_ok(time() - $start, '<', 10, 'at its time');
    is(waiting(), 0, 'nobody waits any more');

    # what is refused is nothing to wait for
    poll($bob, $own, "version=1000&timeout=100");
    is(waiting(), 0, 'nor did who was refused');
}

# --- over one connection

{
    my $busy = $c->create('slow');
    my $held = $c->claim('slow');
    my $known = poll($c, $busy)->{json}{version};
    my $s = park($c, $busy, "version=$known");

    # the next request is sent while the first one waits
    MCPTasks::send_raw($s, $c->rest_bytes("tasks/$busy/poll?timeout=30000"
                                          . '&version=' . ($known + 1)));
    ok(quiet($s), 'two requests on one connection wait');

    $c->held('progress', $held, progress => 0.1);
    is(answer($s)->{json}{progress}, 0.1, 'the first one is answered');
    ok((wait_for { waiting() == 1 }), 'then the second one waits');
    $c->held('progress', $held, progress => 0.2);
    is(answer($s)->{json}{progress}, 0.2, 'and is answered');
    is($t->request('GET', '/probe?op=pid', {}, undef, $s)->{status}, 200,
       'the connection is still good');

    # a body that nobody wants, which comes while the request waits
    $known += 2;
    my $slow = $t->connect();
    MCPTasks::send_raw($slow, $c->rest_bytes("tasks/$busy/poll?version=$known",
        headers => { 'Content-Length' => 10000 }) . 'x' x 10);
    wait_for { waiting() == 1 } or fail('a poll with half a body waits');
    MCPTasks::send_raw($slow, 'x' x 9990);
    ok(quiet($slow), 'a body is no reason to answer');
    $c->held('progress', $held, progress => 0.3);
    is(answer($slow)->{json}{progress}, 0.3, 'a poll with a body');
    is($t->request('GET', '/probe?op=pid', {}, undef, $slow)->{status}, 200,
       'and that connection is good, too');

    # a client of old
    my $old = $t->connect();
    MCPTasks::send_raw($old, $c->rest_bytes("tasks/$busy/poll",
        headers => { version => 'HTTP/1.0' }));
    is(answer($old)->{json}{progress}, 0.3, 'over HTTP/1.0');
    ok(MCPTasks::closed($old), 'which is closed then');

    $c->complete($held, '{"content":[]}');
}

# --- many tasks: a change wakes who waits for that task only

{
    my @ids = map { $t->probe('op=create&owner=ann&tool=m&params={}')->{id} }
              1 .. 40;
    my %lease = map { $_->{id} => $_ }
                map { $t->probe('op=claim&tool=m') } @ids;
    my @s = map { park($ann, $_, "version=$lease{$_}{version}") } @ids;

    for my $n (7, 31, 0, 39) {
        my $held = $lease{$ids[$n]};
        $t->probe("op=event&id=$ids[$n]&lease=$held->{lease}&result=%7B%7D"
                  . '&event=' . COMPLETE);
        is(answer($s[$n])->{json}{taskId}, $ids[$n], "task $n: told");
        close($s[$n]);
        $s[$n] = undef;
    }

    my @rest = grep { defined } @s;
    ok(quiet(@rest), 'all others wait on');
    is(waiting(), 36, 'and are counted');

    close($_) for @rest;
    ok((wait_for { waiting() == 0 }), 'until they go');
}

# --- the processes are exchanged

{
    my $made = $t->probe('op=create&owner=ann&tool=t&params={}');
    my @s = map { park($ann, $made->{id}, "version=$made->{version}") } 1 .. 8;
    my %old = map { $_ => 1 } $t->worker_pids();
    my $start = time();
    $t->reload();

    is(scalar(grep { answer($_)->{status} == 204 } @s), 8,
       'a reload: nothing new for those who wait');
    is(scalar(grep { MCPTasks::closed($_) } @s), 8, 'and they have to go');
    ok((wait_for { !grep { $old{$_} } $t->worker_pids() }),
       'the old processes go');
    cmp_ok(time() - $start, '<', 2, 'at once');
    is(waiting(), 0, 'nobody is counted');

    my $s = park($ann, $made->{id}, "version=$made->{version}");
    $t->probe("op=delete&id=$made->{id}");
    is(answer($s)->{status}, 404, 'the new ones wait as well');
}

is($t->probe('op=check')->{check}, 'ok', 'the table is in order');

{
    my $made = $t->probe('op=create&owner=ann&tool=t&params={}');
    my $s = park($ann, $made->{id}, "version=$made->{version}");
    my $start = time();
    ok($t->stop(), 'nginx stops');
    cmp_ok(time() - $start, '<', 2, 'at once');
    is(answer($s)->{status}, 204, 'and who waited was told');
}

is($t->faults(), '', 'nothing in the log that should not be');

done_testing();
