# A reload keeps every task, or is refused; a restart begins empty.

use warnings;
use strict;

use FindBin;
use lib "$FindBin::Bin/lib";

use Test::More;
use Time::HiRes qw/ sleep time /;

use MCPTasks qw/ scale wait_for workers /;

my $zone = 'mcp_tasks_zone zone=z:8m;';
my $server = 'location /probe { mcp_tasks_probe zone=z; }';

my $t = MCPTasks->new(workers => workers(), http => $zone,
                      server => $server);


# what a client may count on: the whole answer, without the pid
sub view {
    my ($id) = @_;
    my $res = $t->request('GET', "/probe?op=get&owner=ann&id=$id", {});
    return $res ? $res->{body} =~ s/"pid":\d+//r : 'no answer';
}


my %tasks;

sub is_all_there {
    my ($name) = @_;
    my @lost = grep { view($_) ne $tasks{$_} } sort keys %tasks;

    is(scalar @lost, 0, "$name: all tasks are as they were")
        or diag(view($lost[0]));
    is($t->probe('op=check')->{check}, 'ok', "$name: the table is in order");
}


# waits until the workers are others; how long the old ones stayed
sub reload {
    my (%conf) = @_;
    my $start = time();
    return $t->reload_all(%conf) ? time() - $start : undef;
}


# waits until the log says why not; the same workers go on
sub refused {
    my ($name, $why, %conf) = @_;
    my %before = map { $_ => $t->{$_} } keys %conf;
    my @pids = $t->worker_pids();

    $t->reload(%conf);
    ok(wait_for { $t->log() =~ $why }, "$name: refused, and it says why");

    is_all_there($name);
    is_deeply([$t->worker_pids()], \@pids, "$name: the same workers go on");

    $t->configure(%before);
}


# --- tasks in every state

for my $i (1 .. scale(300)) {
    my $made = $t->probe("op=create&owner=ann&tool=t&params={\"p\":$i}");
    $tasks{$made->{id}} = 1;
}

my $big = '{"b":"' . 'b' x 4000 . '"}';
my $made = $t->probe("op=create&owner=ann&tool=big&params=$big");
$tasks{$made->{id}} = 1;

my %lease;

for my $i (1 .. 30) {
    my $claim = $t->probe('op=claim&tool=t');
    $lease{$claim->{id}} = $claim->{lease};

    if ($i % 3) {
        my $event = $i % 3 == 1 ? 3 : 4;     # completed or failed
        $t->probe("op=event&id=$claim->{id}&lease=$claim->{lease}"
                  . "&event=$event&result={\"r\":$i}");
        delete $lease{$claim->{id}};
    }
}

$tasks{$_} = view($_) for keys %tasks;

like(join('', values %tasks), qr/"state":"$_"/, "there are tasks: $_")
    for qw/ queued running completed failed /;
is_all_there('before');

my $count = $t->probe('op=stats')->{used};
is($count, scalar keys %tasks, 'and no others');

# --- kept

for my $n (1 .. 3) {
    my $took = reload();
    ok(defined $took, "reload $n: new workers");
    cmp_ok($took, '<', 2, "reload $n: the old ones are gone")
        if defined $took;
    is_all_there("reload $n");
}

# without a pause between them
$t->reload() for 1 .. 3;
ok(defined reload(), 'reloads in a row: new workers');
is_all_there('reloads in a row');

# with a connection that is kept alive, and something that is due soon
{
    my $s = $t->connect();
    my $gone = $t->probe('op=create&owner=eve&tool=gone&params={}&ttl=400', $s);

    my $took = reload();
    cmp_ok($took, '<', 2, 'an idle connection: the old ones are gone')
        if ok(defined $took, 'an idle connection: new workers');

    ok(wait_for { $t->probe('op=stats')->{expired} == 1 },
       'what was due is handled by the new ones');
    # with a store it has its slot until its row is removed
    ok(wait_for { $t->probe('op=stats')->{used} == $count },
       'and nothing else');
}

# who claimed before a reload finishes after it
{
    my ($id) = sort keys %lease;
    my $done = $t->probe("op=event&id=$id&lease=$lease{$id}&event=3&result={}");

    is($done->{reason}, 'ok', 'a lease outlives reloads');
    is($done->{state}, 'completed', 'and finishes its task');
    $tasks{$id} = view($id);
}

# --- refused

# a store makes it possible
my $stored = ($ENV{MCP_TASKS_STORE} // '') eq 'sqlite';

if (!$stored) {
    refused('larger',
            'the size of zone "z" cannot be changed from 8388608 to 9437184 '
            . 'while it is in use: its tasks would be lost; restart nginx to '
            . 'change it', http => 'mcp_tasks_zone zone=z:9m;');
    refused('smaller',
            'the size of zone "z" cannot be changed from 8388608 to 7340032 '
            . 'while', http => 'mcp_tasks_zone zone=z:7m;');
}

refused('more tasks',
        'max_tasks of zone "z" cannot be changed from 0 to 1000 while it is '
        . 'in use; restart nginx to change it',
        http => 'mcp_tasks_zone zone=z:8m max_tasks=1000;');
refused('another error', qr/unknown directive "nonsense"/,
        http => "$zone nonsense;");
refused('another module takes the name',
        qr/(zone "z" is already declared|unknown zone "z")/,
        http => 'limit_req_zone $remote_addr zone=z:8m rate=1r/s;');

ok(defined reload(), 'after refusals: new workers');
is_all_there('after refusals');

# --- zones come and go

my $both = "$zone mcp_tasks_zone zone=y:1m;";
my $probes = "$server location /y { mcp_tasks_probe zone=y; }";

ok(defined reload(http => $both, server => $probes), 'a zone is added');
is_all_there('a zone is added');

# with a store it is loaded again, so its parameters have to be JSON
my $other = $t->probe('op=create&owner=ann&tool=t&params={}', undef, '/y');
is($other->{reason}, 'ok', 'which takes tasks');
is($t->probe('op=stats')->{used}, $count, 'of its own');

ok(defined reload(), 'and once more');
is($t->probe("op=get&owner=ann&id=$other->{id}", undef, '/y')->{params}, '{}',
   'they are kept as well');

ok(defined reload(http => $zone, server => $server), 'the zone is removed');
is_all_there('the zone is removed');
is($t->request('GET', '/y?op=stats', {})->{status}, 404, 'it is gone');

ok(defined reload(http => $both, server => $probes), 'it is added again');
is($t->probe('op=stats', undef, '/y')->{used}, $stored ? 1 : 0,
   'and begins empty, or as it was stored');
is_all_there('it is added again');

# one that is not in use may have another size than it had
ok(defined reload(http => $zone, server => $server), 'removed');
ok(defined reload(http => "$zone mcp_tasks_zone zone=y:2m;",
                  server => $probes), 'added, of another size');
is($t->probe('op=stats', undef, '/y')->{used}, $stored ? 1 : 0,
   'empty, or as it was stored');
is_all_there('of another size');

# fewer workers, and more
for my $n (1, workers()) {
    my %old = map { $_ => 1 } $t->worker_pids();
    $t->reload(workers => $n);

    ok(wait_for {
        my @pids = $t->worker_pids();
        @pids == $n && !grep { $old{$_} } @pids;
    }, "$n workers");
    is_all_there("$n workers");
}

is($t->probe('op=stats')->{recoveries}, 0, 'nothing had to be recovered');

# --- the end

{
    my $s = $t->connect();
    $t->probe('op=stats', $s);

    my $start = time();
    ok($t->stop(), 'nginx stops');
    cmp_ok(time() - $start, '<', 2, 'at once, though there are timers');
}

$t->configure(http => 'mcp_tasks_zone zone=z:9m max_tasks=1000;',
              server => $server);
ok($t->start(), 'nginx starts again, with what was refused before');
is($t->probe('op=stats')->{used}, 0, 'and begins empty');
is(scalar(grep { view($_) !~ /task_not_found/ } keys %tasks), 0,
   'no task is known');
ok($t->stop(), 'nginx stops');

is($t->faults('\[emerg\]|open\(\) ".*" failed'), '',
   'nothing in the log that should not be');

done_testing();
