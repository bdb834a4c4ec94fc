# Whose a database is: locks, instances and files that somebody has removed,
# replaced or put where they do not belong.  What is in memory stays there, and
# comes back to the disk.

use warnings;
use strict;

use FindBin;
use lib "$FindBin::Bin/lib";

use Test::More;
use Time::HiRes qw/ sleep time /;

use MCPClient;
use MCPFile qw/ slurp write_file /;
use MCPStatus;
use MCPStore qw/ sql /;
use MCPTasks qw/ wait_for /;
use MCPTools qw/ tools_json /;

my ($t, $c, $db);


sub zone {
    my ($store, $size) = @_;
    return 'mcp_tasks_zone zone=z:' . ($size || '4m') . " $store;";
}


sub up {
    my (%conf) = @_;
    $t = MCPTasks->new(
        workers => 2, listen => 'reuseport',
        http => zone('store=sqlite:tasks.db'),
        tools => ['dig'],
        surfaces => [qw/ mcp worker status probe /],
        server => 'mcp_tasks_owner $http_x_user; mcp_tasks_tools tools.json;',
        %conf);
    $c = MCPClient->new($t, headers => { 'X-User' => 'ann' });
    $db = "$t->{dir}/tasks.db";
}


sub create {
    my $res = $c->rest_post('tasks', { tool => 'dig' });
    return $res->{status} == 201 ? $res->{json}{taskId} : undef;
}


sub created {
    my ($n) = @_;
    return map { scalar wait_for { create() } 10 } 1 .. $n;
}


# how many of them are there
sub have {
    return scalar grep { $c->rest("tasks/$_")->{status} == 200 } @_;
}


sub remove { unlink("$db$_") for @_ }


# a process that has come instead of one that was killed
sub replaced {
    my @pids = @_;
    my %old = map { $_ => 1 } @pids;
    kill 'KILL', @pids;
    return wait_for {
        my @new = grep { !$old{$_} } $t->worker_pids();
        my %is = map { $_ => 1 } $t->worker_pids();
        @new >= @pids && !grep { $is{$_} } @pids;
    };
}


# what there is, is there for all processes, and after a restart
sub kept {
    my ($name, @ids) = @_;

    my @new = created(6);
    is(scalar(grep { defined } @new), 6, "$name: tasks are created again");
    ok((wait_for { have(@ids, @new) == @ids + @new } 5),
       "$name: all tasks are there");
    is($t->probe('op=check')->{check}, 'ok', "$name: the table is in order");

    ok(wait_for { my $s = MCPStatus->new($t)->json()->{store};
                  $s->{up} && !$s->{unsaved} }, "$name: all is saved");
    ok($t->kill_all(), "$name: all processes are killed");
    ok(($t->check())[0], "$name: the configuration is good");
    ok($t->start(), "$name: nginx starts");
    is(have(@ids, @new), @ids + @new, "$name: all tasks are there again");
    return (@ids, @new);
}


# --- the lock, or all of it, is removed

{
    up();
    my @ids = created(20);
    my $who = $c->in_session();

    for my $files (['-lock'], ['', '-wal', '-shm', '-lock'],
                   ['', '-wal', '-shm'])
    {
        my $what = join ' ', map { "tasks.db$_" } @$files;

        remove(@$files);
        $t->reload();
        @ids = kept("no $what, reload", @ids);

        remove(@$files);
        ok(replaced(($t->worker_pids())[0]), "no $what: a process is killed");
        @ids = kept("no $what, one process", @ids);

        remove(@$files);
        ok(replaced($t->worker_pids()), "no $what: all are killed");
        @ids = kept("no $what, all processes", @ids);

        remove(@$files);
        @ids = kept("no $what", @ids);
        is($who->legacy('ping')->{status}, 200, "no $what: sessions go on");
    }

    is(sql($db, 'SELECT count(*) FROM meta WHERE key IN'
                . " ('secret', 'instance')"), 2,
       'a database that was made anew has all it needs');
    ok($t->stop(), 'nginx stops');
}

# --- the database is not what it was

{
    up(workers => 1);
    my @ids = created(20);

    # the log, and the process that would have written what was in it
    remove('-wal');
    ok(replaced($t->worker_pids()), 'no log: the process is killed');
    @ids = kept('no log', @ids);

    # two will be removed after the backup
    is($c->rest_post('tasks', { tool => 'dig', ttlMs => 2000 })->{status}, 201,
       'a brief task is created') for 1 .. 2;
    is(sql($db, 'SELECT count(*) FROM task'), @ids + 2, 'tasks are saved');
    sql($db, ".backup $db.backup");
    ok(wait_for { sql($db, 'SELECT count(*) FROM task') == @ids },
       'those that have expired are removed');
    push @ids, created(5);

    # the same file, but older
    open(my $fh, '+<', $db) or die "$db: $!\n";
    truncate($fh, 0);
    print $fh slurp("$db.backup");
    close($fh);
    remove('-wal');
    ok(replaced($t->worker_pids()), 'backup: the process is killed');
    @ids = kept('backup', @ids);
    is(sql($db, 'SELECT count(*) FROM task'), scalar @ids,
       'backup: what was removed is not in there again');

    ok($t->stop(), 'nginx stops');
}

# --- the lock is a link, which a worker process may have made

SKIP: {
    skip 'only root has something to give away', 10 if $> != 0;

    up();
    ok($t->stop(), 'nginx stops');
    my $nobody = getpwnam('nobody');
    my $dir = "$t->{dir}/data";
    my $target = "$t->{dir}/target";
    my $http = $t->{http};

    mkdir($dir) or die "$dir: $!\n";
    chown($nobody, -1, $dir) or die "$dir: $!\n";
    $db = "$dir/tasks.db";
    symlink($target, "$db-lock") or die "$db-lock: $!\n";

    $t->configure(http => zone("store=sqlite:$db"));
    ok(!eval { $t->start() }, 'a lock that is a link: nginx does not start');
    ok(!-e $target, 'nothing was made where it leads to');
    like($t->log(), qr/lock file "\Q$db\E-lock" cannot be opened/,
         'and it says so');

    unlink("$db-lock");
    link("$t->{dir}/tools.json", "$db-lock") or die "$db-lock: $!\n";
    ok(!eval { $t->start() }, 'nor with one that has another name');
    like(slurp("$t->{dir}/tools.json"), qr/^\Q${\ tools_json('dig')}\E$/,
         'which is left as it was');
    unlink("$db-lock");

    # the user changes, and could not use it
    $t->configure(http => $http);
    $db = "$t->{dir}/tasks.db";
    ok($t->start(), 'nginx starts');
    my ($id) = created(1);
    my $conf = slurp("$t->{dir}/nginx.conf");
    my $group = getgrgid((getpwnam('nobody'))[3]);
    $conf =~ s/user  root;/user  nobody $group;/;
    write_file("$t->{dir}/nginx.conf", $conf);
    kill('HUP', $t->{pid});
    ok(wait_for { $t->log() =~ /is not writable by worker processes/ },
       'a user who cannot write it is refused');
    is(have($id), 1, 'and the old one goes on');
    ok($t->stop(), 'nginx stops');
}

# --- the database is a link, or has two names

{
    up();
    my ($id) = created(1);
    ok($t->stop(), 'nginx stops');

    mkdir("$t->{dir}/real");
    rename($db, "$t->{dir}/real/x.db") or die "$db: $!\n";
    symlink("$t->{dir}/real/x.db", $db) or die "$db: $!\n";
    my ($passed, $said) = $t->check();
    ok(!$passed, 'a database that is a link is refused');
    like($said, qr/tasks\.db" is a symbolic link/, 'and why');
    unlink("$t->{dir}/real/x.db");
    ok(!($t->check())[0], 'also if it leads nowhere');
    unlink($db);

    symlink("$t->{dir}/real", "$t->{dir}/other") or die "other: $!\n";
    my $two = sub {
        zone('store=sqlite:real/a.db')
        . "mcp_tasks_zone zone=y:1m store=sqlite:$_[0]/a.db;"
    };

    for my $name ('real/../real', './real', 'other') {
        $t->configure(http => $two->($name));
        ($passed, $said) = $t->check();
        ok(!$passed, "$name is no other directory");
        like($said, qr/is already used by zone "z"/, "$name: it says so");
    }

    $t->configure(http => zone('store=sqlite:other/a.db'));
    ok($t->start(), 'a directory may be a link');
    is(have(created(3)), 3, 'and is used');
    ok($t->stop(), 'nginx stops');
}

# --- what has expired is not there, but its row is for a day

{
    up();
    my @ids = created(3);
    ok($t->stop(), 'nginx stops');

    my $now = int(time() * 1000);
    sql($db, 'UPDATE task SET expires_at = ' . ($now - 3600000)
        . " WHERE id = '$ids[0]'");
    sql($db, 'UPDATE task SET expires_at = ' . ($now - 2 * 86400000)
        . " WHERE id = '$ids[1]'");
    ok($t->start(), 'nginx starts');
    is(have(@ids), 1, 'what has expired is not there');
    like($t->log(), qr/1 tasks loaded from .*, 2 expired/, 'it says so');
    is(sql($db, 'SELECT count(*) FROM task'), 2,
       'but a row may be there for a day');
    ok($t->stop(), 'nginx stops');

    # the clock was wrong
    sql($db, 'UPDATE task SET expires_at = ' . ($now + 3600000)
        . " WHERE id = '$ids[0]'");
    ok($t->start(), 'nginx starts');
    is(have(@ids), 2, 'which comes back if the clock was wrong');
    ok($t->stop(), 'nginx stops');
}

done_testing();
