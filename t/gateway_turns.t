# A process is killed that has calls which wait for their turn: they have not
# begun, so another process runs them, if it can.

use warnings;
use strict;

use FindBin;
use lib "$FindBin::Bin/lib";

use Test::More;

use MCPClient;
use MCPGateway;
use MCPTasks qw/ wait_for workers /;

my $g = MCPGateway->new(
    workers => workers(),
    conf => 'mcp_tasks_max_running 2; mcp_tasks_retries 1 backoff=100ms;',
    proxy => 'proxy_set_header X-Pid $pid;',
    tool => ['plain support=optional', 'same idempotent'],
    on => { map { $_ => [['sse'], ['hold']] } qw/ plain same / });
my ($up, $t, $c) = @{$g}{qw/ up t c /};
my $nobody = $c->as(headers => {});


sub start {
    my ($n, $who, $tool, $legacy) = @_;
    my %params = (arguments => { n => $n });
    return $legacy ? $g->task($tool // 'plain', who => $who,
                              params => \%params)
                   : $g->modern_task($tool // 'plain', who => $who,
                                     params => \%params);
}


# the call that is running with that argument
sub running {
    my ($n) = @_;
    return (grep { $_->{json}{params}{arguments}{n} eq $n }
            $up->open_calls())[0];
}


sub finish {
    my ($n) = @_;
    my $call = running($n);
    return $call && $up->go($call, ['result', '{"a":1.0}']);
}


sub reason {
    my ($id, $who) = @_;
    my $got = $g->until($id, sub {
        return ($_[0]{status} // '') =~ /^(failed|completed)$/;
    }, 15, $who);
    return $got->{error} ? "$got->{error}{code} $got->{error}{data}{reason}"
                         : $got->{status};
}


# --- in a process that runs nothing

{
    my $conn = $t->connect_all() or BAIL_OUT('processes cannot be reached');
    my ($pid, $other) = sort keys %$conn;
    my $here = $conn->{$pid};
    my $there = $conn->{$other};

    my @ran = map { start($_, $c->as(via => $there)) } 'r1', 'r2';
    $g->runs('r1 r2', 'two calls run');

    my $free = start('free', $nobody->as(via => $here));
    my $bound = start('bound', $c->as(via => $here));
    my $legacy = start('legacy', $nobody->as(via => $here), 'plain', 1);
    my $last = start('last', $c->as(via => $there));
    is($g->get($free, $nobody->as(via => $there))->{status}, 'working',
       'more calls wait');
    $g->runs('r1 r2', 'and do not run');

    kill('KILL', $pid);
    is(reason($bound, $c->as(via => $there)), '-31013 process_lost',
       'their process is killed: one that is bound to its client fails');
    is(reason($legacy, $nobody->as(via => $there)), '-31013 process_lost',
       'so does one of the legacy era');
    ok($t->replaced($pid), 'there is another process');
    $g->runs('r1 r2', 'the others wait');
    is($g->get($free, $nobody->as(via => $there))->{status}, 'working',
       'and seem to work');

    ok(finish('r1'), 'one ends');
    $g->runs('free r2',
             'the one that waited longest runs, though its tool minds');
    isnt(running('free')->{head}{'x-pid'}, $pid, 'in another process');
    ok(finish('r2'), 'another ends');
    $g->runs('free last', 'then the next one');
    ok(finish($_), "$_ ends") for 'free', 'last';
    is(reason($free, $nobody), 'completed', 'it completes');
    is(reason($last, $c), 'completed', 'and so does the other');
    is(reason($_, $c), 'completed', 'and those before') for @ran;
}

# --- calls that run die, too: there is room for those that wait, and whoever
# takes them over has others that came later

{
    my $conn = $t->connect_all() or BAIL_OUT('processes cannot be reached');
    my ($pid, @others) = sort keys %$conn;
    my $here = $conn->{$pid};
    my $there = $conn->{$others[0]};
    $up->clear();

    my @ids = map { start($_, $nobody->as(via => $here)) } 1 .. 5;
    my $same = start('same', $nobody->as(via => $here), 'same');
    my @late = map { start("z$_", $c->as(via => $conn->{$others[$_]})) }
               0 .. $#others;
    $g->runs('1 2', 'two of one process run, others wait');
    kill('KILL', $pid);
    is(reason($_, $nobody->as(via => $there)), '-31013 process_lost',
       'those that ran fail') for @ids[0, 1];
    $g->runs('3 4', 'those that waited run in their turn');
    ok($t->replaced($pid), 'there is another process');
    finish(3);
    $g->runs('4 5', 'the next');
    finish(4);
    $g->runs('5 same', 'the next');
    finish(5);
    $g->runs('same z0', 'then those that came later');
    finish('same');
    finish("z$_") || wait_for { finish("z$_") } for 0 .. $#late;
    is(reason($_, $nobody), 'completed', 'all complete') for @ids[2 .. 4],
                                                             $same;
    is(reason($_, $c), 'completed', 'and those of other processes') for @late;
    is(@{[grep { defined $_->{tool} } $up->requests()]}, 6 + @late,
       'nothing was sent twice');
}

# --- all at once

{
    my $conn = $t->connect_all() or BAIL_OUT('processes cannot be reached');
    my @pids = sort keys %$conn;
    $up->clear();
    my @ids = map { start($_, $nobody->as(via => $conn->{$pids[$_ % @pids]})) }
              1 .. 8;
    $g->runs('1 2', 'two run, and more wait in all processes');

    # none of them has the time to take over what another one leaves
    kill('STOP', @pids);
    kill('KILL', @pids);
    wait_for {
        my %old = map { $_ => 1 } @pids;
        my @now = $t->worker_pids();
        return @now == workers() && !grep { $old{$_} } @now;
    };
    is(reason($_, $nobody), '-31013 process_lost', 'all are killed: it fails')
        for @ids[0, 1];

    for my $n (1 .. 3) {
        my @now;
        wait_for { (@now = $up->open_calls()) == 2 } 15;
        is(scalar @now, 2, 'two at a time');
        $up->go($_, ['result', '{"a":1.0}']) for @now;
        wait_for { my %n = map { $_->{n} => 1 } $up->open_calls();
                   !grep { $n{$_->{n}} } @now };
    }

    is(reason($_, $nobody), 'completed', 'the others complete')
        for @ids[2 .. 7];
    is($up->count('plain'), 8, 'each was sent once');
}

$g->done('exited on signal 9');
done_testing();
