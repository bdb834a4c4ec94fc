# A database that somebody else has changed: what it says is not done, and what
# reads it may do no more than worker processes may.

use warnings;
use strict;

use FindBin;
use lib "$FindBin::Bin/lib";

use File::Temp qw/ tempdir /;
use Test::More;
use Time::HiRes qw/ time /;

use MCPClient;
use MCPFile qw/ slurp write_file /;
use MCPStore qw/ faulty sql /;
use MCPTasks qw/ wait_for /;

# worker processes of another user, if there can be one, and its directory
my $user = $> == 0 ? 'nobody' : scalar getpwuid($>);
my $store = tempdir('mcp_tasks_XXXXXX', TMPDIR => 1, CLEANUP => 1);
my ($uid, $gid) = (getpwnam($user))[2, 3];
chown($uid, $gid, $store) if $> == 0;
chmod(0755, $store);

my $db = "$store/tasks.db";
my $trace = "$store/trace";

my $t = MCPTasks->new(
    tools => ['slow'], user => "$user " . getgrgid($gid),
    http => "mcp_tasks_zone zone=z:8m store=sqlite:$db;",
    surfaces => [qw/ mcp worker probe /],
    server => 'mcp_tasks_owner $http_x_user; mcp_tasks_tools tools.json;');

my $c = MCPClient->new($t, headers => { 'X-User' => 'ann' });
my $id = $c->create('slow');
ok($t->stop(), 'there is a database with a task');


# that nginx does not start, and says so
sub refused {
    my ($name, $why) = @_;
    my $begun = time();
    ok(!eval { $t->start() }, "$name: nginx does not start");
    like($t->log(), $why, 'and says why');
    write_file($t->{log}, '');
    delete $t->{pid};
    return time() - $begun;
}


sub accepted {
    my ($name) = @_;
    ok($t->start(), "$name: nginx starts");
    is($c->get($id)->{status}, 'working', 'with the task');
    ok($t->stop(), 'nginx stops');
}


# as another program would, with the rights of a worker
sub spoil {
    my ($sql) = @_;
    sql($db, $sql);
    chown($uid, $gid, glob("$db*")) if $> == 0;
}


# --- whoever opens it is no more than a worker process

{
    my ($passed) = system("strace -o $trace true 2> $trace.err") == 0;
    ok($passed, 'strace works') or diag(slurp("$trace.err"));

    $t->configure(wrap => ['strace', '-D', '-f', '-qq', '-o', $trace, '-e',
                           'trace=open,openat,unlink,unlinkat,rename,renameat,'
                           . 'renameat2,ftruncate,truncate,chown,fchown,'
                           . 'fchownat,clone,clone3,fork,vfork,setuid,'
                           . 'setresuid,setreuid'],
                  env => { ASAN_OPTIONS => 'detect_leaks=0' });
    ok($t->start(), 'nginx starts, and is watched');
    ok($c->create('slow'), 'it writes');
    ok($t->stop(), 'nginx stops');
    $t->configure(wrap => [], env => {});

    my (@lines, %parent, %became);

    for (split /\n/, slurp($trace)) {
        my ($pid, $call) = /^(\d+)\s+(.*)/ or next;
        my $at = push @lines, [$pid, $call];

        $parent{$1} = [$pid, $at]
            if $call =~ /(?:clone3?|v?fork).*= (\d+)$/ && $1 > 1;
        push @{ $became{$pid} }, [$at, $1]
            if $call =~ /^set(?:re|res)?uid\((\d+).*= 0$/;
    }

    my $rights;
    $rights = sub {
        my ($pid, $at) = @_;
        my @before = grep { $_->[0] < $at } @{ $became{$pid} || [] };
        return $before[-1][1] if @before;
        return $parent{$pid} ? $rights->(@{ $parent{$pid} }) : $>;
    };

    my (%who, $n);

    for (@lines) {
        my ($pid, $call) = @$_;
        $n++;
        next unless $call =~ /"\Q$db\E/;
        $who{$rights->($pid, $n)}{$pid}++;
    }

    is_deeply([keys %who], [$uid], "files are opened as $user, and nobody else")
        or diag(join "\n", map { "@$_" } @lines);
    cmp_ok(scalar keys %{ $who{$uid} || {} }, '>', 1,
           'by the one that reads them first, and by those that write');
}

# --- a journal that names a file, which SQLite would remove

# what SQLite takes for the journal of several databases at once
sub journal {
    my ($file) = @_;
    my $magic = "\xd9\xd5\x05\xf9\x20\xa1\x63\xd7";
    my $sum = 0;
    $sum += $_ for unpack('c*', $file);

    return pack('a512', $magic . pack('N*', 0, 0, 1, 512, 4096))
           . pack('N', 0x40000000 / 4096 + 1) . $file
           . pack('NN', length($file), $sum & 0xffffffff) . $magic;
}

{
    my $victim = "$t->{dir}/victim";
    my $copy = "$t->{dir}/copy.db";

    for ([$copy, 'sqlite3'], [$db, 'nginx']) {
        my ($path, $program) = @$_;
        write_file($victim, "precious\n");
        write_file($copy, slurp($db)) if $path eq $copy;
        write_file("$path-journal", journal($victim));
        chown($uid, $gid, "$path-journal") if $> == 0;

        if ($program eq 'sqlite3') {
            sql($path, 'SELECT count(*) FROM task');
            ok(!-e $victim, 'the plant is real: another program removes it');
            next;
        }

        my ($passed, $said) = $t->check();
        ok(!$passed && $said =~ /has a "-journal" file/,
           'a planted journal does not pass the test');
        refused('a planted journal', qr/has a "-journal" file/);
        ok(-e $victim, 'the file that it names is there');
    }

    unlink("$db-journal");
    accepted('without it');

    write_file("$db-journal", '');
    chown($uid, $gid, "$db-journal") if $> == 0;
    accepted('with an empty one');
    unlink("$db-journal");
}

# --- rows

my $saved = slurp($db);

sub restore {
    unlink(glob("$db-*"));
    write_file($db, $saved);
    chown($uid, $gid, $db) if $> == 0;
}

for (["token = '" . ('x' x 4096) . "'", 'token'], ['priority = 200', 'priority'],
     ["method = '" . ('x' x 300) . "'", 'method'], ['progress = 9e999', 'progress'],
     ["tool = ''", 'tool'], ['seq = -seq', 'seq'], ['calls = 128', 'calls'])
{
    spoil("UPDATE task SET $_->[0]");
    refused("a $_->[1] that cannot be",
            qr/\Q$db\E" has an invalid task: row -?\d+, column "$_->[1]"/);
    restore();
}

spoil("UPDATE payload SET data = '{\"a\":'");
refused('bytes that are no JSON', qr/row \d+, column "params"/);
restore();
accepted('as it was');

# --- what would run

for (['CREATE TRIGGER x AFTER INSERT ON meta BEGIN DELETE FROM task; END',
      'a trigger'],
     ['DROP VIEW tasks; CREATE VIEW tasks AS SELECT randomblob(1000000000)',
      'another view'],
     ['DROP TABLE payload; CREATE VIEW payload AS WITH RECURSIVE c(key) AS'
      . ' (SELECT 1 UNION ALL SELECT key + 1 FROM c) SELECT key, 1 AS data'
      . ' FROM c', 'a table without end'])
{
    spoil($_->[0]);
    cmp_ok(refused($_->[1], qr/schema that was changed by another/), '<', 30,
           'in time');
    restore();
}

spoil('PRAGMA user_version = -5');
refused('a negative version', qr/has schema version -5/);
restore();

spoil('INSERT INTO payload SELECT seq * 8 + 6, zeroblob(20000000) FROM task');
refused('a value that is larger than the zone', qr/too big/);
restore();

# --- whatever becomes of the one that reads it

$t->configure(wrap => ['strace', '-D', '-f', '-qq', '-o', $trace, '-e',
                       'inject=fsync,fdatasync:signal=KILL:when=1']);
refused('a process that dies', qr/could not be read: the helper process died/);
$t->configure(wrap => []);

{
    $t->configure(env => faulty($db));
    write_file("$store/faults", "slow 90000\n");
    my $begun = time();
    my $started = eval { $t->start() };
    ok(!$started, 'a process that stands still: nginx does not start');
    ok((wait_for { $t->log() =~ /could not be read: the helper .* timed out/ }),
       'and says why');
    cmp_ok(time() - $begun, '<', 60, 'in the end');
    unlink("$store/faults");
    $t->configure(env => {});
    $t->stop();
    write_file($t->{log}, '');
}

accepted('after all that');

is($t->faults('cannot be (?:used|loaded)|could not be read'), '',
   'nothing else in the log');

done_testing();
