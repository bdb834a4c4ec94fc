# Stores: what every one of them does, and what those on disk keep.

use warnings;
use strict;

use FindBin;
# what has a store here is said here
BEGIN { delete $ENV{MCP_TASKS_STORE} }

use lib "$FindBin::Bin/lib";

use JSON::PP;
use Test::More;
use Time::HiRes qw/ sleep time /;

use MCPClient;
use MCPFile qw/ slurp write_file /;
use MCPProcess qw/ pids_of /;
use MCPStatus;
use MCPStore qw/ rows sql /;
use MCPTasks qw/ wait_for workers /;

my $server = <<'END';
    mcp_tasks_owner $http_x_user;
    mcp_tasks_lease 5s;
    location /mcp { mcp_tasks zone=z; }
    location /worker { mcp_tasks_worker zone=z; }
    location /status { mcp_tasks_status zone=z; }
    location /probe { mcp_tasks_probe zone=z; }
    location /console { mcp_tasks_console zone=z; }
END

my ($t, $c, $db, $second);

# another nginx, that a test which died would leave behind
END {
    local $?;
    kill('KILL', pids_of($second), $second) if $second;
}


sub zone {
    my ($store, $size) = @_;
    return 'mcp_tasks_tools tools.json; mcp_tasks_zone zone=z:'
           . ($size || '4m') . " $store;";
}


sub up {
    my ($store, %conf) = @_;
    $t = MCPTasks->new(workers => workers(), http => zone($store),
                       listen => 'reuseport', server => $server,
                       tools => ['slow', 'other'], %conf);
    $c = MCPClient->new($t, headers => { 'X-User' => 'ann' });
    $db = "$t->{dir}/tasks.db";
}


sub status { return MCPStatus->new($t)->json() }


sub saved {
    return wait_for { my $s = status()->{store}; $s->{up} && !$s->{unsaved} };
}


# --- every store, to those who use it

for my $store ('', 'store=sqlite:tasks.db', 'store=sqlite:tasks.db sync=always',
               'store=sqlite:tasks.db sync=everysec',
               'store=sqlite:tasks.db sync=off')
{
    my $name = !$store ? 'memory' : $store =~ /sync=(\w+)/ ? $1 : 'default';
    up($store);

    my $id = $c->create('slow', arguments => { a => 1 });
    is($c->get($id)->{status}, 'working', "$name: a task is created");

    my $work = $c->claim('slow');
    is($work->{taskId}, $id, "$name: claimed");
    is($c->held('heartbeat', $work)->{phase}, 'running', "$name: held");
    is($c->held('progress', $work, progress => 0.5, message => 'half')
       ->{phase}, 'running', "$name: makes progress");
    is($c->held('ask', $work, inputRequests => { q => MCPClient::form() })
         ->{phase},
       'input_required', "$name: asks");
    is($c->modern('tasks/update', { taskId => $id,
                                    inputResponses => { q => 1 } })
       ->{json}{result}{resultType}, 'complete', "$name: is answered");
    is_deeply($c->held('answers', $work)->{inputResponses}, { q => 1 },
              "$name: learns that");
    is($c->complete($work, '{"content":[]}')->{phase}, 'completed',
       "$name: completes");
    like($c->legacy('tasks/result', { taskId => $id })->{body},
         qr/"content":\[\]/, "$name: has a result");

    my $late = $c->complete($work, '{"content":[]}');
    is($late->{error}{data}{reason}, 'task_terminal', "$name: only once");

    my @ids = map { $c->create('other') } 1 .. 5;
    is(scalar @{ $c->worker('worker/claim', { tools => ['other'], max => 4 })
                 ->{tasks} }, 4, "$name: several are claimed at once");
    is($c->legacy('tasks/cancel', { taskId => $ids[4] })
       ->{json}{result}{status}, 'cancelled', "$name: one is cancelled");
    is(scalar @{ $c->legacy('tasks/list')->{json}{result}{tasks} }, 6,
       "$name: all are listed");

    my $s = status()->{store};

    if ($store) {
        is($s->{type}, 'sqlite', "$name: the status names it");
        ok(saved(), "$name: all is saved");
        is(rows($db), 6, "$name: in the database");
    } else {
        is($s, undef, 'no store, no figures of one');
    }

    is(MCPStatus->new($t)->differs(), '', "$name: in both formats");
    is($t->probe('op=check')->{check}, 'ok', "$name: the table is in order");
    ok($t->stop(), "$name: nginx stops");
    is($t->faults(), '', "$name: nothing in the log");
}


my $sign_in = { code => -32042, message => 'Sign in', data => {
    elicitations => [{ mode => 'url', elicitationId => '1', message => 'm',
                       url => 'https://example.com/' }] } };

# --- what it keeps, whichever way nginx ends

for my $sync (qw/ always everysec off /) {
    up("store=sqlite:tasks.db sync=$sync");

    for my $end (qw/ QUIT TERM KILL /) {
        my $name = "$sync, $end";
        my $who = $c->in_session();

        my $queued = $c->create('slow', arguments => { end => $end });
        my $running = $c->create('other');
        my $work = $c->claim('other');
        my $asks = $c->create('other');
        my $asking = $c->claim('other');
        $c->held('progress', $work, progress => 1, total => 4,
                 message => "a \"quarter\" \x{e9}");
        $c->held('ask', $asking, inputRequests => { q => MCPClient::form() });
        my ($let_go, $later) = map { $c->create_modern('other') } 1, 2;
        my ($first, $second) = map { $c->claim('other') } 1, 2;
        $c->held('fail', $first, error => $sign_in);
        my $done = $c->create('other');
        my $result = '{"content":[],"n":12345678901234567890.50}';
        $c->complete($c->claim('other'), $result);
        my $brief = $c->create('slow', task => { ttl => 1000 });

        my %was = map { $_ => $c->get($_) } $queued, $running, $asks, $done,
                                            $let_go, $later;
        my $page = $c->legacy('tasks/list', {})->{json}{result};

        # all of them survive a crash; these two only what was saved by then
        saved() if $end eq 'KILL' && $sync ne 'always';

        ok($end eq 'KILL' ? $t->kill_all() : $t->stop($end), "$name: down");
        my $down = time();
        is(sql($db, 'PRAGMA integrity_check'), 'ok', "$name: it is whole");

        # what is short expires meanwhile
        sleep(1.2 - (time() - $down)) if time() - $down < 1.2;
        ok($t->start(), "$name: and up");

        is_deeply({ map { $_ => $c->get($_) } keys %was }, \%was,
                  "$name: tasks are as they were");
        is($c->get($brief)->{status}, undef,
           "$name: what expired is not there");
        is($t->probe('op=check')->{check}, 'ok',
           "$name: the table is in order");

        like($c->legacy('tasks/result', { taskId => $done })->{body},
             qr/\Q$result\E|"n":12345678901234567890.50/,
             "$name: results are what they were, to the byte");
        is($c->held('heartbeat', $work)->{phase}, 'running',
           "$name: a lease holds");
        is($c->complete($work, '{"content":[]}')->{phase}, 'completed',
           "$name: and is good for its result");
        is($c->modern('tasks/update', { taskId => $asks,
                                        inputResponses => { q => 2 } })
           ->{json}{result}{resultType}, 'complete',
           "$name: questions may be answered");
        is_deeply($c->held('answers', $asking)->{inputResponses}, { q => 2 },
                  "$name: for those who asked them");
        is($c->claim('slow')->{taskId}, $queued,
           "$name: what was queued is claimed");

        # asked for by who has let go of it: the answers are for the next one
        my ($key) = keys %{ $c->get_modern($let_go)->{inputRequests} };
        $c->modern('tasks/update', { taskId => $let_go, inputResponses => {
            $key => { action => 'accept' } } });
        my $next = $c->claim('other');
        is($next->{taskId}, $let_go, "$name: answered, it is claimed again");
        is_deeply($next->{inputResponses}, { $key => { action => 'accept' } },
                  "$name: with the answer");
        is($c->held('fail', $second, error => $sign_in)->{phase},
           'input_required', "$name: whom to ask is still known");
        $c->complete($next, '{"content":[]}');
        is($who->legacy('ping')->{status}, 200, "$name: sessions go on");

        $c->complete($asking, '{"content":[]}');
    }

    ok($t->stop(), "$sync: nginx stops");
    is($t->faults('was killed|on signal 9'), '', "$sync: nothing in the log");
}


# --- a lease that nobody prolongs

up('store=sqlite:tasks.db', server => $server =~ s/lease 5s/lease 1s/r);

{
    my $id = $c->create('slow');
    my $work = $c->claim('slow');
    $t->kill_all();
    sleep(1.1);
    $t->start();
    is($c->get($id)->{status}, 'working', 'lost: the worker is not to blame');
    is($c->held('heartbeat', $work)->{phase}, 'running',
       'it has a whole lease from the start on');
    my $again = wait_for { $c->claim('slow', waitMs => 3000) };
    is($again->{taskId}, $id, 'and if it does not come back, others do');
    is($again->{attempt}, 2, 'for another attempt');
}

# --- cursors and events are good after a restart

{
    my @ids = map { $c->create('other') } 1 .. 5;
    my $first = $c->rest('tasks?limit=2')->{json};
    my $events = $c->follow('tasks/events');
    my $last;

    while (my $event = $events->event(1)) {
        $last = $event->{id} if $event->{id};
    }

    ok($last, 'the last event has an id');

    $t->kill_all();
    $t->start();

    my $second = $c->rest("tasks?limit=2&cursor=$first->{nextCursor}")
                 ->{json};
    is(scalar @{ $second->{tasks} || [] }, 2, 'a list goes on');
    my %seen = map { $_->{taskId} => 1 } @{ $first->{tasks} },
                                         @{ $second->{tasks} };
    is(scalar keys %seen, 4, 'where it was');

    my $new = $c->create('other');
    my $stream = $c->follow('tasks/events', $last);
    my $event = $stream->message(5) || {};
    is($event->{taskId}, $new, 'so does a stream of events');
}

ok($t->stop(), 'nginx stops');


# --- the writer dies

up('store=sqlite:tasks.db');

for my $label (qw/ saved_tasks saved_deletions saved_upto save_removed /) {
    my $conns = $t->connect_all();
    my %old = map { $_ => 1 } keys %$conns;

    # whoever it is
    $t->probe("op=die&at=$label", $_) for values %$conns;
    undef $conns;

    my @ids;
    my $died = wait_for {
        my $id = eval { $c->create('slow') };
        push @ids, $id if $id;
        my $made = $t->probe('op=create&owner=x&tool=x');
        $t->probe("op=delete&id=$made->{id}") if $made && $made->{id};
        grep { my $pid = $_; !grep { $_ == $pid } $t->worker_pids() } keys %old;
    };

    ok($died, "$label: somebody died");
    wait_for { $t->worker_pids() == workers() };

    # those who are left die with the next
    for (1 .. 20) {
        my $id = eval { $c->create('slow') };
        push @ids, $id if $id;
    }

    ok((wait_for { my $id = eval { $c->create('slow') }; push @ids, $id if $id;
                   $id }), "$label: another one writes");
    is($t->probe('op=check')->{check}, 'ok', "$label: the table is in order");
    is(scalar(grep { !$c->get($_)->{status} } @ids), 0,
       "$label: nothing is lost");

    $t->kill_all();
    $t->start();
    is(scalar(grep { !$c->get($_)->{status} } @ids), 0,
       "$label: nor after that");
    is(rows($db, "owner = 'x'"),
       $t->probe('op=list&owner=x&limit=100')->{n},
       "$label: rows are those of tasks");
}

ok($t->stop(), 'nginx stops');


# --- another size

up('store=sqlite:tasks.db');

{
    my @ids = map { $c->create('slow') } 1 .. 50;
    my %was = map { $_ => $c->get($_) } @ids;
    my $slots = status()->{slots}{total};

    my %old = map { $_ => 1 } $t->worker_pids();
    $t->reload(http => zone('store=sqlite:tasks.db', '8m'));
    ok((wait_for { status()->{slots} && status()->{slots}{total} > $slots }),
       'resized: the zone is larger');
    ok((wait_for { (status()->{slots}{used} || 0) == 50 }),
       'and has all tasks');
    wait_for { !grep { $old{$_} } $t->worker_pids() };

    # whichever process they come to
    wait_for { !grep { $c->legacy('ping')->{status} != 200 } 1 .. 20 };
    is_deeply({ map { $_ => $c->get($_) } @ids }, \%was, 'as they were');
    ok($c->create('slow'), 'and takes new ones');

    $t->reload(http => zone('store=sqlite:tasks.db', '40k'));
    ok((wait_for { $t->log() =~ /tasks of zone "z" do not fit/ }),
       'one that is too small is refused');
    is(scalar @{ $c->legacy('tasks/list')->{json}{result}{tasks} }, 50,
       'all goes on');

    $t->reload(http => zone('store=sqlite:other.db', '8m'));
    ok((wait_for { $t->log() =~ /store of zone "z" cannot be changed/ }),
       'so is another store');
    $t->reload(http => zone('', '8m'));
    ok((wait_for { 2 == (() = $t->log()
                         =~ /store of zone "z" cannot be changed/g) }),
       'or none');

    $t->reload(http => zone('store=sqlite:tasks.db sync=everysec', '8m'));
    ok((wait_for { (status()->{store}{sync} || '') eq 'everysec' }),
       'how it saves may change');
    ok($t->stop(), 'nginx stops');

    $t->configure(http => zone('store=sqlite:tasks.db', '40k'));
    ok(!eval { $t->start() }, 'a zone that is too small is not started with');
    like($t->log(), qr/has 51 tasks, which require a zone of at least \d+m/,
         'and it is said what it takes');
}


# --- one database, two who want it

up('store=sqlite:tasks.db');

{
    my $id = $c->create('slow');
    my $first = $t;
    my $port = MCPTasks::free_port();
    my $conf = slurp("$t->{dir}/nginx.conf");
    $conf =~ s/127.0.0.1:$t->{port}/127.0.0.1:$port/;
    $conf =~ s/nginx\.pid/second.pid/;
    write_file("$t->{dir}/second.conf", $conf);

    my $pid = $second = fork();

    if ($pid == 0) {
        exec($ENV{MCP_TASKS_NGINX}, '-p', $t->{dir}, '-e', $t->{log},
             '-c', "$t->{dir}/second.conf") or POSIX::_exit(127);
    }

    my $other = bless { %$t, port => $port, pid => $pid }, 'MCPTasks';
    my $d = $c->as(t => $other);
    ok((wait_for { IO::Socket::INET->new(PeerAddr => '127.0.0.1',
                                         PeerPort => $port) }),
       'two: another nginx starts');

    my $res = $d->legacy('tasks/get', { taskId => $id });
    is($res->{status}, 503, 'it has to wait');
    is($res->{json}{error}{data}{reason}, 'store_unavailable', 'and says so');
    is($res->{json}{error}{code}, -31015, 'with a code of its own');
    is($res->{header}{'retry-after'}, 1, 'and when to come back');
    is($d->rest("tasks/$id")->{status}, 503, 'in plain HTTP, too');
    is($d->worker('worker/claim', { tools => ['slow'] })
       ->{error}{data}{reason}, 'store_unavailable', 'and to workers');
    is($d->as(uri => '/console')->rest('api/tasks')->{json}{reason},
       'store_unavailable', 'the console does not show an empty list');
    is($c->legacy('tasks/get', { taskId => $id })->{status}, 200,
       'the first one goes on');
    is(MCPStatus->new($other)->json()->{slots}{used}, 0,
       'there is a status, of nothing');

    ok($first->stop(), 'until it stops');
    ok((wait_for { $d->legacy('tasks/get', { taskId => $id })->{status}
                   == 200 }), 'then the other one has it');

    # whichever process they come to
    wait_for { !grep { $d->legacy('ping')->{status} != 200 } 1 .. 20 };
    is($d->claim('slow')->{taskId}, $id, 'and goes on');

    kill('QUIT', $pid);
    waitpid($pid, 0);
    delete $other->{pid};
    undef $second;
}


# --- what can be known before it starts

up('');

{
    my $new = "$t->{dir}/new";
    mkdir($new) or die "$new: $!\n";
    $t->configure(http => zone("store=sqlite:$new/t.db"));
    my ($passed, $said) = $t->check();
    ok($passed, 'a new store passes the test') or diag($said);
    is_deeply([glob "$new/*"], [], 'which makes nothing');

    write_file("$new/t.db", 'x' x 1000);
    ($passed, $said) = $t->check();
    ok(!$passed && $said =~ /is not an SQLite database/,
       'what is none does not pass');
    unlink("$new/t.db");

    sql("$new/t.db", 'CREATE TABLE a (b)');
    ($passed, $said) = $t->check();
    ok(!$passed && $said =~ /is not a database of the mcp_tasks module/,
       'nor does somebody else\'s');
    unlink("$new/t.db");

    sql("$new/t.db", 'PRAGMA application_id = 1296257108;'
                     . ' PRAGMA user_version = 99; CREATE TABLE a (b)');
    ($passed, $said) = $t->check();
    ok(!$passed && $said =~ /has schema version 99/, 'nor a later one');

    ok($t->stop(), 'nginx stops');
}


# --- a schema of an earlier version

up('store=sqlite:tasks.db');

{
    # what takes away what each version has added
    my @added = (undef, 'ALTER TABLE task DROP COLUMN history',
                 'ALTER TABLE task DROP COLUMN revision',
                 'DROP INDEX task_id');

    my $id = $c->create('slow');
    $c->claim('slow');
    my $was = $c->get($id);
    ok($t->stop(), 'nginx stops');

    for my $version (1 .. $#added) {
        sql($db, join('; ', reverse(@added[$version .. $#added]),
                      "PRAGMA user_version = $version"));
        ok($t->start(), "migrated from version $version: nginx starts");
        is(sql($db, 'PRAGMA user_version'), scalar(@added),
           'with what is the latest version now');
        is_deeply($c->get($id), $was, 'and all that there was');
        ok($c->create('slow'), 'and goes on');
        ok($t->stop(), 'nginx stops');
    }

    is($t->faults(), '', 'nothing in the log');
}


# --- another program has it

up('store=sqlite:tasks.db');

{
    my $id = $c->create('slow');
    my $other = open(my $fh, '|-', 'sqlite3', $db) or die "sqlite3: $!\n";
    $fh->autoflush(1);
    print $fh "BEGIN IMMEDIATE;\n.system touch $t->{dir}/locked\n";
    wait_for { -e "$t->{dir}/locked" };

    my $res = $c->legacy('tools/call', { name => 'slow', task => {} });
    is($res->{status}, 503, 'locked: a call is refused');
    is($res->{json}{error}{data}{reason}, 'store_failed', 'after a while');
    $res = $c->legacy('tools/call', { name => 'slow', task => {} });
    is($res->{json}{error}{data}{reason}, 'store_unavailable',
       'and then at once');
    is($c->get($id)->{status}, 'working', 'reads go on');
    is($c->worker('worker/claim', { tools => ['slow'] })
       ->{error}{data}{reason}, 'store_unavailable', 'nothing is claimed');

    my $store = status()->{store};
    is($store->{up}, 0, 'the status says that it fails');
    like($store->{lastError}, qr/locked/, 'and why');
    like($t->log(), qr/\[crit\].*the store of zone "z" failed.*locked/,
         'so does the log');

    close($fh);
    ok((wait_for { status()->{store}{up} }), 'until the other one lets go');
    is(status()->{store}{lastError}, undef, 'then all is well');
    ok($c->create('slow'), 'again');
    is(scalar @{ $c->legacy('tasks/list')->{json}{result}{tasks} }, 2,
       'what was refused is not there');
    is(rows($db), 2, 'nor in the database');
    ok($t->stop(), 'nginx stops');
    is($t->faults('the store of zone "z" failed'), '', 'nothing in the log');
}


# --- backup while it runs

up('store=sqlite:tasks.db');

{
    my @ids = map { $c->create('slow') } 1 .. 20;
    sql($db, ".backup $t->{dir}/copy.db");
    is(rows("$t->{dir}/copy.db"), 20, 'a copy has all tasks');
    sql($db, "VACUUM INTO '$t->{dir}/small.db'");
    is(sql("$t->{dir}/small.db",
           'PRAGMA integrity_check; SELECT count(*) FROM tasks'), "ok\n20",
       'so has another');
    ok($c->create('slow'), 'all goes on');
    ok($t->stop(), 'nginx stops');

    $t->configure(http => zone('store=sqlite:small.db'));
    ok($t->start(), 'it can be used in its place');
    is(scalar(grep { $c->get($_)->{status} } @ids), 20, 'with all that it has');
    ok($t->stop(), 'nginx stops');
    is($t->faults(), '', 'nothing in the log');
}

done_testing();
