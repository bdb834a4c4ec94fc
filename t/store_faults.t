# What is wrong with the disk under a store: nothing is acknowledged that is
# not saved, reading goes on, and so does everything once the fault is gone.

use warnings;
use strict;

use FindBin;
use lib "$FindBin::Bin/lib";

use File::Copy qw/ copy /;
use Test::More;
use Time::HiRes qw/ sleep time /;

use MCPClient;
use MCPFile qw/ slurp write_file /;
use MCPStatus;
use MCPStore qw/ fault faulty hold /;
use MCPTasks qw/ wait_for /;

my $dir = "$ENV{MCP_TASKS_BUILD}/servroot-store_faults";
my $db = "$dir/tasks.db";

my $t = MCPTasks->new(
    workers => 2, listen => 'reuseport',
    tools => ['dig', 'slow'],
    http => "mcp_tasks_zone zone=z:8m store=sqlite:$db;",
    surfaces => [qw/ mcp worker status probe /],
    server => 'mcp_tasks_owner $http_x_user; mcp_tasks_tools tools.json;',
    env => faulty($db));

my $ann = MCPClient->new($t, headers => { 'X-User' => 'ann' });
my $s = MCPStatus->new($t);

# what was acknowledged, by id: the status
my %acked;

# somebody works on this one all the time
my $work = begin();


# --- what the tests are written with

sub begin {
    my $id = create();
    my $got = $ann->claim('dig', leaseMs => 3600000);
    return $got;
}


# the id if it was acknowledged; else nothing, and why not
sub create {
    my ($why) = @_;
    my $res = $ann->rest_post('tasks', { tool => 'dig' });

    if ($res->{status} == 201) {
        $acked{$res->{json}{taskId}} = 'working';
        return $res->{json}{taskId};
    }

    $$why = $res if $why;
    return;
}


sub complete {
    my ($claimed, $text) = @_;
    my $got = $ann->complete($claimed, { content => [ { text => $text } ] });

    return $got->{error} if $got->{error};
    $acked{$claimed->{taskId}} = "completed $text";
    return;
}


# what has changed for the worse since it was acknowledged
sub lost {
    my @lost;

    for my $id (sort keys %acked) {
        my ($status, $text) = split / /, $acked{$id};
        my $res = $ann->rest("tasks/$id");
        my $is = $res->{json}{status} || $res->{body};

        push @lost, "$id: $acked{$id}, is $is" if $is ne $status;
        next unless defined $text;

        $res = $ann->rest("tasks/$id/result");
        push @lost, "$id: another result"
            if $res->{body} ne qq({"content":[{"text":"$text"}]});
    }

    return join "\n", @lost;
}


sub listed {
    my ($query, $n) = ('limit=100', 0);

    while (defined $query) {
        my $page = $ann->rest("tasks?$query")->{json};
        $n += @{ $page->{tasks} };
        $query = defined $page->{nextCursor}
                 ? "limit=100&cursor=$page->{nextCursor}" : undef;
    }

    return $n;
}


sub up { return $s->json()->{store}{up} }


# Everything that holds for any fault that stops commits: begin is what brings
# it about, end is what ends it, and error is how it is called.
sub stops {
    my ($name, %how) = @_;
    my $seen = length slurp($t->{log});

    ok(create(), "$name: before it a task is created");
    ok(!complete(begin(), 'before'), "$name: and another completed");
    my $claimed = begin();

    $how{begin}->();

    # the first has to find out
    my ($why, $start) = (undef, time());
    ok(!create(\$why), "$name: then none is created");
    is($why->{status}, 503, "$name: 503");
    like($why->{json}{reason} || '', qr/^store_(failed|unavailable)$/,
         "$name: the store is the reason");
    ok($why->{header}{'retry-after'}, "$name: to be tried again");

    ok(wait_for { !up() }, "$name: the status says that it is down");
    like($s->json()->{store}{lastError} || '', $how{error}, "$name: and why");
    is($s->metrics()->{'nginx_mcp_tasks_store_up{zone="z"}'}, 0,
       "$name: so do metrics");
    cmp_ok($s->json()->{store}{failures}, '>', 0, "$name: it is counted");

    # from now on nobody waits
    $start = time();
    ok(!create(\$why), "$name: another one is refused") for 1 .. 5;
    is($why->{json}{reason}, 'store_unavailable', "$name: at once");
    cmp_ok(time() - $start, '<', 0.5, "$name: it takes no time");

    my $res = $ann->legacy('tools/call', { name => 'dig', task => {} });
    is($res->{json}{error}{data}{reason}, 'store_unavailable',
       "$name: over MCP as well");

    my $error = $ann->held('progress', $claimed, message => 'x')->{error};
    is($error->{data}{reason}, 'store_unavailable',
       "$name: a worker's progress is refused");
    $error = complete($claimed, 'during');
    is($error->{data}{reason}, 'store_unavailable',
       "$name: and what it has done");
    is_deeply($ann->worker('worker/claim', { tools => ['dig'] })->{error}{data}
                  {reason}, 'store_unavailable', "$name: and claims");

    $start = time();
    is(lost(), '', "$name: what there was is read");
    is(listed(), scalar keys %acked, "$name: and listed");
    is($ann->held('heartbeat', $_)->{phase}, 'running',
       "$name: heartbeats go on") for $work, $claimed;
    is($ann->modern('tasks/get', { taskId => $work->{taskId} })->{json}
           {result}{status}, 'working', "$name: over MCP as well");

    $how{during}->() if $how{during};
    $how{end}->();

    ok(wait_for { create() }, "$name: afterwards one is created again");
    ok(up(), "$name: the status says that it is up");
    is($s->metrics()->{'nginx_mcp_tasks_store_up{zone="z"}'}, 1,
       "$name: so do metrics");
    is($s->json()->{store}{lastError}, undef, "$name: without an error");
    ok(!complete($claimed, 'after'), "$name: the worker completes its task");
    is(lost(), '', "$name: nothing is lost");

    # who tries again may fail for another reason
    my $log = substr(slurp($t->{log}), $seen);
    my @said = $log =~ /\[(?:crit|error|alert)\] \S+ (.*)/g;
    my %said = map { $_ => 1 } @said;
    is(scalar @said, scalar keys %said, "$name: the log says it once")
        or diag(join "\n", @said);
    like($said[0] || '', $how{error}, "$name: and why");
    like($log, qr/\[notice\].*\btasks\.db\b/, "$name: and that it is over");

    restarted($name);
}


# all that was acknowledged is in the database, and nothing else
sub restarted {
    my ($name) = @_;

    ok($t->kill_all(), "$name: all processes are killed");
    ok($t->start(), "$name: nginx starts");
    is(lost(), '', "$name: what was acknowledged is there");
    is(listed(), scalar keys %acked, "$name: and nothing that was refused");
    is($t->probe('op=check')->{check}, 'ok', "$name: the table is in order");
    is($ann->held('heartbeat', $work)->{phase}, 'running',
       "$name: a lease still holds");
}


# --- calls that fail

sub sound { fault($db) }

my $fault = sub { my @lines = @_; sub { fault($db, @lines) } };

stops('disk full', begin => $fault->('write ENOSPC'), end => \&sound,
      error => qr/full/);

stops('nearly full', begin => $fault->('short ENOSPC'), end => \&sound,
      error => qr/full/);

stops('read-only', begin => $fault->('write EROFS', 'open EROFS',
                                     'truncate EROFS'),
      end => \&sound, error => qr/read-?only|disk I\/O error/i);

stops('write error', begin => $fault->('write EIO'), end => \&sound,
      error => qr/disk I\/O error/);

stops('sync error', begin => $fault->('sync EIO'), end => \&sound,
      error => qr/disk I\/O error/);

stops('dead disk', begin => $fault->('write EIO', 'sync EIO', 'read EIO',
                                     'truncate EIO', 'open EACCES'),
      end => \&sound, error => qr/disk I\/O error|unable to open/);

# --- others

{
    my $release;
    stops('locked', begin => sub { $release = hold($db, 'BEGIN EXCLUSIVE') },
          end => sub { $release->() }, error => qr/locked/);
}

# a reader does not matter, however long it reads
{
    my $release = hold($db, 'BEGIN');
    ok(create(), 'reader: a task is created') for 1 .. 3;
    $release->();
    ok(up(), 'reader: it is up');
}

stops('replaced', error => qr/replaced|another file/,
      begin => sub {
          rename($db, "$db.away") or die "$db: $!\n";
          copy("$db.away", $db) or die "$db: $!\n";
      },
      end => sub {
          rename("$db.away", $db) or die "$db: $!\n";
      });

stops('replaced by something else', error => qr/replaced|another file/,
      begin => sub {
          rename($db, "$db.away") or die "$db: $!\n";
          write_file($db, "not a database\n" x 1000);
      },
      end => sub {
          rename("$db.away", $db) or die "$db: $!\n";
      });

# --- deleted: what is in memory is written to a new one

for my $files ([''], ['', '-wal', '-shm']) {
    my $name = 'deleted' . join '', map { " tasks.db$_" } @$files;
    my $seen = length slurp($t->{log});

    ok(create(), "$name: before it a task is created");
    ok(!complete(begin(), 'before'), "$name: and another completed");

    unlink("$db$_") for @$files;

    my @made = map { create() } 1 .. 20;
    ok(wait_for { create() }, "$name: tasks are created again");
    ok(-e $db, "$name: there is a new database");
    is(lost(), '', "$name: nothing is lost");
    like(substr(slurp($t->{log}), $seen), qr/\[(crit|error|alert)\].*tasks\.db/,
         "$name: the log says it");
    restarted($name);
}

# --- slow

{
    my $name = 'slow sync';
    my $conn = $t->connect_all() or BAIL_OUT('processes cannot be reached');
    my $claimed = begin();

    fault($db, 'slow 1000');

    # several commit at once
    my $start = time();
    my @sockets = map { $t->connect() } 1 .. 10;

    MCPTasks::send_raw($_, $ann->rest_bytes(
        'tasks', method => 'POST', body => '{"tool":"slow"}',
        headers => { 'Content-Type' => 'application/json' }))
        for @sockets;

    # others are served meanwhile, by every process
    my ($worst, $n) = (0, 0);
    my $pending = IO::Select->new(@sockets);

    while (time() - $start < 0.8) {
        for my $pid (sort keys %$conn) {
            my $as = $ann->as(via => $conn->{$pid});
            my $from = time();

            is($as->rest("tasks/$work->{taskId}")->{status}, 200,
               "$name: a task is read") or last;
            is($ann->held('heartbeat', $claimed)->{phase}, 'running',
               "$name: a heartbeat is taken") or last;

            my $took = time() - $from;
            $worst = $took if $took > $worst;
            $n++;
        }

        sleep(0.05);
    }

    cmp_ok($n, '>', 5, "$name: others go on");
    cmp_ok($worst, '<', 0.5, "$name: and do not wait for it");
    ok(!$pending->can_read(0), "$name: nothing is acknowledged before it");

    for my $socket (@sockets) {
        my $res = MCPTasks::read_response($socket);
        is($res->{status}, 201, "$name: the task is created");
        my ($id) = $res->{body} =~ /"taskId":"([^"]+)"/;
        $acked{$id} = 'working';
    }

    my $took = time() - $start;
    cmp_ok($took, '>', 0.9, "$name: when it is saved");
    cmp_ok($took, '<', 6, "$name: and several with one sync");
    ok(up(), "$name: it is up");

    fault($db);
    ok(!complete($claimed, 'after'), "$name: a task is completed");
    restarted($name);
}

# --- corrupted: it does not start

{
    my $name = 'corrupted';

    ok($t->stop(), "$name: nginx stops");
    copy($db, "$db.good") or die "$db: $!\n";
    my $size = -s $db;

    for my $how (['its header', 0, 100], ['its schema', 100, 3000],
                 ['all but its header', 4096, $size - 4096])
    {
        my ($what, $at, $n) = @$how;

        copy("$db.good", $db) or die "$db: $!\n";
        open(my $fh, '+<', $db) or die "$db: $!\n";
        seek($fh, $at, 0);
        print $fh 'garbage!' x ($n / 8 + 1);
        close($fh);
        my $before = slurp($db);
        my $seen = length $t->log();

        ok(!eval { $t->start() }, "$name, $what: nginx does not start");
        like(substr($t->log(), $seen),
             qr/\[emerg\].*tasks\.db.*(corrupt|malformed|not an? .*database)/,
             "$name, $what: it says why");
        is(slurp($db), $before, "$name, $what: it is left as it is");
    }

    copy("$db.good", $db) or die "$db: $!\n";
    ok($t->start(), "$name: with the good one it starts");
    is(lost(), '', "$name: and everything is there");
}

ok($t->stop(), 'nginx stops');

# each fault is an error of its own, which the tests have seen
unlike($t->log(), qr/\[alert\](?!.*tasks\.db)|Sanitizer|runtime error/,
       'nothing else in the log that should not be');

done_testing();
