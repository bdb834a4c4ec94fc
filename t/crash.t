# Workers die while they hold the lock: what was acknowledged is there, and
# the others go on.

use warnings;
use strict;

use FindBin;
use lib "$FindBin::Bin/lib";

use POSIX ();
use Test::More;
use Time::HiRes qw/ sleep time /;

use MCPFile qw/ slurp /;
use MCPTasks qw/ scale wait_for workers /;

my $t = MCPTasks->new(
    workers => workers(), listen => 'reuseport',
    http => 'mcp_tasks_zone zone=z:16m;',
    server => 'location /probe { mcp_tasks_probe zone=z; }');

use constant { HEARTBEAT => 0, ASK => 2, COMPLETE => 3, RELEASE => 6 };

# what is known of each task: the answers that are allowed, without the pid
my %tasks;
my $serial = 0;


# over a connection of its own, to whichever worker
sub probe {
    my ($args) = @_;
    my $got = $t->probe($args);
    return $got || {};
}


sub view {
    my ($id) = @_;
    my $res = $t->request('GET', "/probe?op=get&owner=ann&id=$id", {});
    return $res ? $res->{body} =~ s/"pid":\d+,//r : 'no answer';
}


sub create {
    my ($tool) = @_;
    my $made = probe('op=create&owner=ann&params=' . 'p' x 300
                     . "&tool=$tool");
    $tasks{$made->{id}} = view($made->{id});
    return $made->{id};
}


sub claim {
    my ($tool) = @_;
    my $claim = probe("op=claim&tool=$tool");
    $tasks{$claim->{id}} = view($claim->{id});
    return $claim;
}


my $gone = qq({"reason":"task_not_found"}\n);


# Each kind of operation: it makes what it needs, and answers the request to
# die in, the task, and how the task may be found afterwards.

my %kinds = (
    create => sub {
        $serial++;
        return ("op=create&owner=new$serial&tool=new$serial" . 'x' x 100
                . '&params=' . 'q' x 300);
    },

    claim => sub {
        my $tool = 'claim' . ++$serial;
        my $id = create($tool);
        return ("op=claim&tool=$tool", $id, qr/"state":"(queued|running)"/);
    },

    update => sub {
        my $tool = 'update' . ++$serial;
        my $id = create($tool);
        my $claim = claim($tool);

        # the second time there are bytes to be replaced
        my $event = "op=event&id=$id&lease=$claim->{lease}&event="
                    . HEARTBEAT . '&result=';
        probe($event . 'a' x 200);
        $tasks{$id} = view($id);

        return ($event . 'b' x 200, $id, qr/"result":"(a{200}|b{200})"/);
    },

    complete => sub {
        my $tool = 'complete' . ++$serial;
        my $id = create($tool);
        my $claim = claim($tool);
        return ("op=event&id=$id&lease=$claim->{lease}&result=done&event="
                . COMPLETE, $id,
                qr/"state":"(running".*"result":""|completed".*:"done")/);
    },

    release => sub {
        my $tool = 'release' . ++$serial;
        my $id = create($tool);
        my $claim = claim($tool);
        return ("op=event&id=$id&lease=$claim->{lease}&event=" . RELEASE, $id,
                qr/"state":"(queued|running)"/);
    },

    delete => sub {
        my $tool = 'delete' . ++$serial;
        my $id = create($tool);
        return ("op=delete&id=$id", $id,
                qr/"state":"queued"|task_not_found/);
    },

    # the stream that asked the questions: another one has to
    leave => sub {
        my $tool = 'leave' . ++$serial;
        my $id = create($tool);
        my $claim = claim($tool);
        probe("op=event&id=$id&lease=$claim->{lease}&event=" . ASK);
        probe("op=get&owner=ann&id=$id&asker=7");
        $tasks{$id} = view($id);
        return ("op=leave&id=$id&asker=7", $id,
                qr/"state":"input_required"/);
    },
);

my @change = qw/ change_ready change_decided change_half change_copied
                 change_done reindex wheel_remove wheel_insert /;

# of those that change the state
my @turn = (@change, 'history');

my %labels = (
    create => [qw/ lock new_slot stat_new name_new chain_write new_filled
                   new_published link wheel_insert order_insert queue_insert
                   unlock unlocked /],
    claim => ['lock', @turn, qw/ queue_remove unlock unlocked /],
    update => ['lock', 'chain_write', @change, qw/ chain_free unlock
                                                   unlocked /],
    complete => ['lock', 'chain_write', @turn, qw/ unlock unlocked /],
    release => ['lock', @turn, qw/ queue_insert unlock unlocked /],
    delete => [qw/ lock remove remove_free order_remove wheel_remove
                   queue_remove chain_free name_free remove_slot unlock
                   unlocked /],
    leave => [qw/ lock order_remove touch order_insert unlock unlocked /],
);

# those that recovery passes; they get a test of their own
my @recover = qw/ recover_journal recover_slots /;

# those that need a client who is asked something: t/questions.t
my @asked = qw/ touch /;

# those of a store on disk: t/store.t
my @stored = qw/ save_removed saved_tasks saved_deletions saved_upto /;

# that of a request which has been answered: t/announce.t
my @answered = qw/ announce /;

{
    my %tested = map { $_ => 1 } @recover, @asked, @stored, @answered,
                                 map { @$_ } values %labels;
    my %there;

    for my $path (glob "$FindBin::Bin/../src/{,*/,*/*/}*.c") {
        my $text = slurp($path);
        $there{$1} = 1
            while $text =~ /ngx_mcp_failpoint\("(\w+)"\)/g;
    }

    is_deeply([sort keys %tested], [sort keys %there],
              'every place where a worker can be made to die is tested');
}


sub is_all_there {
    my ($name) = @_;
    my @lost = grep { view($_) ne $tasks{$_} } sort keys %tasks;

    is(scalar @lost, 0, "$name: what was acknowledged is there")
        or diag("$tasks{$lost[0]}is now\n" . view($lost[0]));
}


# --- at every place, in every operation that passes it

create("keep$_") for 1 .. 5;
claim("keep$_") for 1 .. 2;

my $deaths = 0;

for my $kind (sort keys %kinds) {
    for my $label (@{ $labels{$kind} }) {
        my $name = "$kind, $label";
        my ($request, $id, $allowed) = $kinds{$kind}->();

        my $used = probe('op=stats')->{used};
        my $recoveries = probe('op=stats')->{recoveries};

        # the same connection, so the same worker
        my $s = $t->connect();
        my $victim = $t->probe("op=die&at=$label", $s)->{pid};
        my $answer = $t->probe($request, $s);

        ok(!$answer, "$name: no answer");
        $deaths++;

        # the lock has been released, and whoever takes it next repairs
        my $check = probe('op=check');
        is($check->{check}, 'ok', "$name: the table is in order");
        isnt($check->{pid}, $victim, "$name: another worker");

        # nothing was half-changed once it was about to release the lock
        is(probe('op=stats')->{recoveries} - $recoveries,
           $label eq 'unlocked' ? 0 : 1, "$name: recovered, if it had to be");

        if ($id) {
            my $now = view($id);
            like($now, $allowed, "$name: as before, or as after");
            is($now, $tasks{$id}, "$name: as before") if $label eq 'lock';
            isnt($now, $tasks{$id}, "$name: as after")
                if $kind ne 'leave'
                   && $label =~ /unlock|change_(decided|half|copied|done)/;

            if ($now eq $gone) {
                delete $tasks{$id};
            } else {
                $tasks{$id} = $now;
            }

        } else {
            my $now = probe('op=stats')->{used};
            my $more = $label =~ /^(lock|new_slot|stat_new|name_new|chain_write
                                   |new_filled)$/x ? 0 : 1;
            is($now, $used + $more, "$name: it exists once it is published");
        }

        is_all_there($name);
        ok(wait_for { $t->worker_pids() == workers() },
           "$name: there is another worker instead");
    }
}

# --- in the recovery itself

for my $label (@recover) {
    my ($died, $name) = (0, "recovery, $label");

    # a sweep may be faster than we are: then once more
    for (1 .. 20) {
        my $conn = $t->connect_all();
        my ($first, $second) = sort keys %$conn;
        my ($request, $id, $allowed) = $kinds{complete}->();

        $t->probe("op=die&at=$label", $conn->{$second});
        $t->probe('op=die&at=change_half', $conn->{$first});

        ok(!$t->probe($request, $conn->{$first}), "$name: one dies");
        $died = !$t->probe('op=stats', $conn->{$second});

        is(probe('op=check')->{check}, 'ok', "$name: the table is in order");
        $tasks{$id} = view($id);
        like($tasks{$id}, qr/"state":"completed".*"result":"done"/,
             "$name: what was decided has happened");

        is_all_there($name);
        wait_for { $t->worker_pids() == workers() };
        last if $died;
    }

    ok($died, "$name: the one that recovers dies too");
}

my $recovered = 'zone "z" was recovered after a process died while '
                . 'changing it';

ok(wait_for { $t->log() =~ /\[warn\] \S+ \Q$recovered\E/ },
   'the log says so');

# nginx's own words: it found the lock held by one that is dead
my $held = () = $t->log() =~ /shared memory zone "z" was locked by/g;
cmp_ok($held, '>=', $deaths, 'each of them died holding the lock');

# --- any time, under load

# Each client has tools of its own, and notes what was acknowledged.
sub client {
    my ($n, $file) = @_;
    my $i = 0;

    open(my $fh, '>', $file) or POSIX::_exit(1);
    $fh->autoflush(1);

    until (-e "$t->{dir}/stop") {
        my $s = $t->connect() or next;

        for (1 .. 20) {
            $i++;

            my $made = $t->probe("op=create&owner=load$n&tool=load$n&params="
                                 . "$n-$i-" . 'x' x ($i % 400), $s) or last;
            next unless $made->{reason} eq 'ok';
            print $fh "$made->{id} queued $n-$i-\n";

            next if $i % 2;
            my $claim = $t->probe("op=claim&tool=load$n", $s) or last;
            next unless $claim->{id};
            print $fh "$claim->{id} running $claim->{lease}\n";

            next if $i % 4;
            my $done = $t->probe("op=event&id=$claim->{id}&lease="
                                 . "$claim->{lease}&event=" . COMPLETE
                                 . "&result=r$claim->{lease}", $s) or last;
            print $fh "$claim->{id} completed r$claim->{lease}\n"
                if $done->{reason} eq 'ok';
        }
    }

    close($fh);
    POSIX::_exit(0);
}

{
    my $clients = 3;
    my @clients;

    for my $n (1 .. $clients) {
        my $pid = fork();
        die "fork: $!\n" unless defined $pid;
        client($n, "$t->{dir}/client-$n") if $pid == 0;
        push @clients, $pid;
    }

    my $kills = scale(50);
    my $killed = 0;

    while ($killed < $kills) {
        my $pids = wait_for {
            my @now = $t->worker_pids();
            @now == workers() ? \@now : undef;
        } or last;

        sleep(0.01 + rand 0.05);

        my $victim = $pids->[int rand @$pids];
        $killed += kill('KILL', $victim);
        wait_for { !grep { $_ == $victim } $t->worker_pids() };
    }

    is($killed, $kills, "$kills workers killed under load");

    # some time for those that are on their way
    sleep(0.2);
    open(my $stop, '>', "$t->{dir}/stop") or die "stop: $!\n";

    my @status = map { waitpid($_, 0); $? } @clients;
    is("@status", join(' ', (0) x $clients), 'the clients end');

    my %acked;
    my %rank = (queued => 0, running => 1, completed => 2);

    for my $n (1 .. $clients) {
        for (split /\n/, slurp("$t->{dir}/client-$n")) {
            my ($id, $state, $what) = split / /;
            my $a = $acked{$id} ||= { n => $n, state => 'queued' };
            $a->{$state} = $what;
            $a->{state} = $state if $rank{$state} > $rank{$a->{state}};
        }
    }

    my ($checked, $lost, $behind) = (0, 0, 0);
    my $s = $t->connect();

    for my $id (sort keys %acked) {
        my $a = $acked{$id};
        my $now = $t->probe("op=get&owner=load$a->{n}&id=$id", $s) || {};
        my $state = $now->{state} || 'gone';

        $checked++;

        if (!exists $rank{$state}) {
            $lost++;
            diag("$id: $a->{state} was acknowledged, is $state");
            next;
        }

        # a create that was not acknowledged may have been claimed since
        next if $rank{$state} >= $rank{$a->{state}}
                && (!defined $a->{queued}
                    || index($now->{params}, $a->{queued}) == 0)
                && ($state ne 'running' || !defined $a->{running}
                    || $now->{lease} eq $a->{running})
                && (!defined $a->{completed}
                    || $now->{result} eq $a->{completed});
        $behind++;
        diag("$id: $a->{state} was acknowledged, is $state");
    }

    cmp_ok($checked, '>', $kills, "$checked tasks were acknowledged");
    is($lost, 0, 'none is lost');
    is($behind, 0, 'each is at least where it was said to be');
    is(probe('op=check')->{check}, 'ok', 'the table is in order');
    is_all_there('the others');
}

ok($t->stop(), 'nginx stops');
is($t->faults('exited on signal 9|was locked by'), '',
   'nothing else in the log that should not be');

done_testing();
