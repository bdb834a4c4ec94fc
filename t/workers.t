# Several workers see one table, and the sweep works without any request.

use warnings;
use strict;

use FindBin;
use lib "$FindBin::Bin/lib";

use Test::More;
use Time::HiRes qw/ sleep time /;

use MCPTasks qw/ scale wait_for workers /;

# with a socket of its own for each worker, connections go to all of them
my $t = MCPTasks->new(
    workers => workers(), listen => 'reuseport',
    http => 'mcp_tasks_zone zone=z:32m max_tasks=30000;'
            . ' mcp_tasks_zone zone=idle:1m;',
    server => 'location /probe { mcp_tasks_probe zone=z; }'
              . ' location /idle { mcp_tasks_probe zone=idle; }');

my $conn = $t->connect_all() or BAIL_OUT('workers cannot be reached');
my @pids = sort keys %$conn;

is(scalar @pids, workers(), 'each worker is reached');
is_deeply([sort $t->worker_pids()], \@pids, 'by its pid');


# an operation in the worker of that number
sub at {
    my ($n, $args, $uri) = @_;
    my $pid = $pids[$n % @pids];
    my $got = $t->probe($args, $conn->{$pid}, $uri);

    if (!$got || $got->{pid} != $pid) {
        fail("worker $n answers to $args");
        return {};
    }

    return $got;
}


# the answer as it is, but for the pid
sub raw {
    my ($n, $args) = @_;
    my $res = $t->request('GET', "/probe?$args", {}, undef,
                          $conn->{$pids[$n % @pids]});
    return $res ? $res->{body} =~ s/"pid":\d+//r : 'no answer';
}


use constant { COMPLETE => 3, FAIL => 4, RELEASE => 6, CANCEL => 10 };


# --- one table

for my $n (0 .. $#pids) {
    my $made = at($n, "op=create&owner=ann&tool=one$n&params={}");
    is($made->{reason}, 'ok', "worker $n creates a task");

    my $same = grep {
        my $got = at($_, "op=get&owner=ann&id=$made->{id}");
        $got->{reason} eq 'ok' && $got->{id} eq $made->{id}
        && $got->{state} eq 'queued' && $got->{version} == $made->{version}
    } 0 .. $#pids;

    is($same, scalar @pids, 'every worker reads it');
}


# --- owners

{
    my $made = at(0, 'op=create&owner=ann&tool=t&params={"secret":1}');
    my $never = '00000000-0000-4000-8000-000000000000';

    for my $n (0 .. $#pids) {
        my $unknown = raw($n, "op=get&owner=bob&id=$never");

        is($unknown, qq({,"reason":"task_not_found"}\n),
           "worker $n: an unknown id");

        for my $owner ('bob', 'an', 'annn', 'ANN', '') {
            is(raw($n, "op=get&owner=$owner&id=$made->{id}"), $unknown,
               "worker $n: the same answer to \"$owner\"");
        }

        is(at($n, 'op=list&owner=bob')->{n}, 0, 'nothing in the list of bob');
        is(at($n, 'op=list&owner=ann')->{n}, @pids + 1, 'all in that of ann');
    }

    my $page = at(0, 'op=list&owner=ann&limit=1');
    ok($page->{cursor}, 'a cursor');
    is(at(1, "op=list&owner=ann&cursor=$page->{cursor}")->{n}, scalar @pids,
       'is good in another worker');
    is(at(1, "op=list&owner=bob&cursor=$page->{cursor}")->{reason},
       'invalid_cursor', 'but not for another owner');
}


# --- a task goes through several workers

{
    my $made = at(0, 'op=create&owner=ann&tool=go&params={"abc":1}');
    my $claim = at(1, 'op=claim&tool=go');

    is($claim->{id}, $made->{id}, 'claimed in another worker');
    is($claim->{state}, 'running', 'it runs');
    is($claim->{params}, '{"abc":1}', 'with its params');

    for my $n (0 .. $#pids) {
        is(at($n, 'op=claim&tool=go')->{id}, undef,
           "worker $n: nothing more to claim");
        is(at($n, "op=get&owner=ann&id=$made->{id}")->{state}, 'running',
           "worker $n: it runs");
    }

    my $event = 'op=event&id=' . $made->{id} . '&event=' . COMPLETE;

    is(at(2, "$event&lease=1&result={}")->{reason}, 'lease_lost',
       'another lease cannot finish it');

    my $done = at(2, "$event&lease=$claim->{lease}&result={\"yes\":1}");
    is($done->{reason}, 'ok', 'finished in a third worker');

    for my $n (0 .. $#pids) {
        my $got = at($n, "op=get&owner=ann&id=$made->{id}");
        is("$got->{state} $got->{result} $got->{params}", 'completed {"yes":1} {"abc":1}',
           "worker $n: completed");
        is(at($n, "$event&lease=$claim->{lease}&result={}")->{reason},
           'task_terminal', "worker $n: and once only");
    }

    is(at(3, "op=delete&id=$made->{id}")->{reason}, 'ok', 'deleted');
    is(at(0, "op=get&owner=ann&id=$made->{id}")->{reason}, 'task_not_found',
       'for all');
}

# each task is claimed once, whoever claims
{
    my $n = scale(200);
    my %ids;

    at(0, "op=create&owner=ann&tool=many&params={}&n=$n");

    for (1 .. $n + 10) {
        my $claim = at($_, 'op=claim&tool=many');
        $ids{$claim->{id}}++ if $claim->{id};
    }

    is(scalar keys %ids, $n, 'every task is claimed');
    is(scalar(grep { $_ > 1 } values %ids), 0, 'and none twice');
}


# --- time

# an idle zone: nobody looks at what is not due
{
    my $before = at(0, 'op=stats', '/idle');
    at(0, 'op=create&owner=ann&tool=t&params={}', '/idle');
    sleep(2.5);
    my $after = at(0, 'op=stats', '/idle');

    cmp_ok($after->{sweeps} - $before->{sweeps}, '<', 10,
           'hardly a sweep while nothing is due');
    is($after->{queued}, 1, 'and the task is there');
}

# expiry, while nobody asks
{
    my $n = 100;
    my $before = at(0, 'op=stats');

    at(1, "op=create&owner=eve&tool=gone&params={}&ttl=300&n=$n");
    is(at(2, 'op=stats')->{queued}, $before->{queued} + $n, 'short-lived tasks');
    sleep(0.8);

    my $after = wait_for {
        my $stats = at(3, 'op=stats');
        $stats->{expired} == $before->{expired} + $n ? $stats : undef;
    };

    ok($after, 'are gone by themselves');
    is($after->{used}, $before->{used}, 'and so is what they took');
    cmp_ok($after->{sweeps} - $before->{sweeps}, '<', 30, 'in a few sweeps');
    is(at(0, 'op=list&owner=eve')->{n}, 0, 'nothing is listed');
}

# a lease that nobody prolongs
{
    my $made = at(0, 'op=create&owner=ann&tool=lost&params={}&lease=200');
    my ($lease, $before) = ('', at(0, 'op=stats'));

    for my $attempt (1 .. 3) {
        my $claim = wait_for {
            my $got = at($attempt, 'op=claim&tool=lost');
            $got->{id} ? $got : undef;
        };

        is($claim->{id}, $made->{id}, "attempt $attempt: claimed");
        is($claim->{attempt}, $attempt, 'and counted');
        isnt($claim->{lease}, $lease, 'with a lease of its own');

        my $state = $attempt < 3 ? 'queued' : 'failed';

        ok(wait_for {
            at(0, "op=get&owner=ann&id=$made->{id}")->{state} eq $state
        }, "the lease is lost: $state");

        is(at(1, "op=event&id=$made->{id}&lease=$claim->{lease}&result={}"
              . '&event=' . COMPLETE)->{reason},
           $attempt < 3 ? 'lease_lost' : 'task_terminal',
           'who had it is too late');

        $lease = $claim->{lease};
    }

    is(at(0, 'op=stats')->{leases_lost} - $before->{leases_lost}, 3,
       'three leases were lost');
}

# very many at once, while requests are served
{
    my $n = 20_000;
    my $before = at(0, 'op=stats');
    my $ids = 0;
    my ($served, $longest) = (0, 0);

    my $made = at(0, "op=create&owner=eve&tool=flood&params={}&ttl=1000&n=$n");
    is($made->{reason}, 'ok', "$n tasks");

    my $keep = at(1, 'op=create&owner=ann&tool=keep&params={}');

    my $after = wait_for {
        for my $i (0 .. $#pids) {
            my $start = time();
            my $new = at($i, 'op=create&owner=ann&tool=keep&params={}');
            my $got = at($i + 1, "op=get&owner=ann&id=$new->{id}");
            my $del = at($i + 2, "op=delete&id=$new->{id}");
            my $took = time() - $start;

            $longest = $took if $took > $longest;
            $served += 3 if $got->{reason} eq 'ok' && $del->{reason} eq 'ok';
            $ids += 3;
        }

        my $stats = at(0, 'op=stats');
        $stats->{expired} >= $before->{expired} + $n ? $stats : undef;
    };

    ok($after, 'are gone at their time');
    is($after->{expired} - $before->{expired}, $n, 'all of them, and no other');
    is($served, $ids, "requests were served meanwhile ($served)");
    cmp_ok($longest, '<', 1, 'none had to wait for all of it');
    cmp_ok($after->{sweeps} - $before->{sweeps}, '>', $n / 1000,
           'in batches');
    is(at(2, "op=get&owner=ann&id=$keep->{id}")->{reason}, 'ok',
       'what lives on is there');
}

is(at($_, 'op=check')->{check}, 'ok', "worker $_ finds the table in order")
    for 0 .. $#pids;
is(at(0, 'op=stats')->{recoveries}, 0, 'nothing had to be recovered');

is_deeply([sort $t->worker_pids()], \@pids, 'no worker has died');
ok($t->stop(), 'nginx stops');
is($t->faults(), '', 'nothing in the log that should not be');

done_testing();
