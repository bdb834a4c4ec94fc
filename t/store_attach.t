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
use MCPStatus;
use MCPTasks qw/ slurp wait_for /;

my $tools = '{"tools":[{"name":"dig","inputSchema":{"type":"object"}}]}';

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
        files => { 'tools.json' => $tools },
        server => <<'END', %conf);
        mcp_tasks_owner  $http_x_user;
        mcp_tasks_tools  tools.json;

        location /mcp { mcp_tasks zone=z; }
        location /worker { mcp_tasks_worker zone=z; }
        location /status { mcp_tasks_status zone=z; }
        location /probe { mcp_tasks_probe zone=z; }
END
    $c = MCPClient->new($t, headers => { 'X-User' => 'ann' });
    $db = "$t->{dir}/tasks.db";
}


sub create {
    my $res = $c->rest_post('tasks', { tool => 'dig' });
    return $res->{status} == 201 ? $res->{json}{taskId} : undef;
}


sub created {
    my ($n) = @_;
    return map { wait_for { create() } 10 } 1 .. $n;
}


# how many of them are there
sub have {
    return scalar grep { $c->rest("tasks/$_")->{status} == 200 } @_;
}


sub sql {
    my ($sql) = @_;
    open(my $fh, '-|', 'sqlite3', $db, $sql) or die "sqlite3: $!\n";
    my @got = <$fh>;
    close($fh);
    chomp @got;
    return join ' ', @got;
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
    ok(wait_for { have(@ids, @new) == @ids + @new } 5,
       "$name: all tasks are there");
    is($t->probe('op=check')->{check}, 'ok', "$name: the table is in order");

    ok(wait_for { my $s = MCPStatus->new($t)->json()->{store};
                  $s->{up} && !$s->{unsaved} }, "$name: all is saved");
    ok($t->kill_all(), "$name: all processes are killed");
    ok($t->check(), "$name: the configuration is good");
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

    is(sql("SELECT count(*) FROM meta WHERE key IN ('secret', 'instance')"), 2,
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
    is(sql('SELECT count(*) FROM task'), @ids + 2, 'tasks are saved');
    sql(".backup $db.backup");
    ok(wait_for { sql('SELECT count(*) FROM task') == @ids },
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
    is(sql('SELECT count(*) FROM task'), scalar @ids,
       'backup: what was removed is not in there again');

    ok($t->stop(), 'nginx stops');
}

done_testing();
