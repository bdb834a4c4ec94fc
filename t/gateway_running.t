# How many calls run at a time: those beyond wait their turn.

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
    conf => 'mcp_tasks_max_running 3 tool=2;',
    on => { map { $_ => [['sse'], ['hold']] } qw/ a b c / });
my ($up, $t, $c) = @{$g}{qw/ up t c /};

my $conn = $t->connect_all() or BAIL_OUT('processes cannot be reached');
my @all = map { $c->as(via => $conn->{$_}) } sort keys %$conn;


# the numbers of the calls that are at upstream now, in the order they came
sub running {
    return map { $_->{tool} . $_->{json}{params}{arguments}{n} }
           $up->open_calls();
}


sub runs {
    my ($want, $name) = @_;
    my $got = '';
    wait_for { $got = join(' ', sort(running())); $got eq $want } 15;
    is($got, $want, $name);
}


# a request to nginx and one to upstream later: had there been more, they would
# have come
sub settled {
    $_->legacy('ping') for @all;
}


sub start {
    my ($tool, $n, $by) = @_;
    return $g->task($tool, who => $all[($by // 0) % @all],
                    params => { arguments => { n => $n } });
}


sub finish {
    my ($what) = @_;
    my ($call) = grep {
        $_->{tool} . $_->{json}{params}{arguments}{n} eq $what
    } $up->open_calls();
    return $call && $up->go($call, ['result', '{}']);
}


# --- of one tool, in one process and in several

for my $spread (0, 1) {
    my $name = $spread ? 'several processes' : 'one process';
    $up->clear();

    my @ids = map { start('a', $_, $spread * $_) } 1 .. 5;
    runs('a1 a2', "$name: two run");
    settled();
    runs('a1 a2', "$name: and no more");
    is(@{[grep { $g->get($_)->{status} eq 'working' } @ids]}, 5,
       "$name: to their client they all work");

    # in the order they came, whichever ends first
    ok(finish('a2'), "$name: the second ends");
    runs('a1 a3', "$name: the third begins");
    is($g->ends($ids[1])->{status}, 'completed', "$name: it is completed");
    ok(finish('a1'), "$name: the first ends");
    runs('a3 a4', "$name: the fourth begins");

    # one that waits is cancelled: upstream never hears of it
    my $id = start('a', 6, $spread);
    my $last = start('a', 7, $spread);
    is($all[1 % @all]->legacy('tasks/cancel', { taskId => $id })
       ->{json}{result}{status}, 'cancelled', "$name: cancelled in the queue");

    finish('a3');
    runs('a4 a5', "$name: the fifth");
    finish('a4');
    runs('a5 a7', "$name: then the last");

    # one that runs is cancelled: it makes room
    my $eighth = start('a', 8, $spread * 3);
    settled();
    $all[-1]->legacy('tasks/cancel', { taskId => $ids[4] });
    runs('a7 a8', "$name: one that is cancelled makes room");
    finish($_) for 'a7', 'a8';
    is($g->ends($_)->{status}, 'completed', "$name: all end") for @ids[0 .. 3],
                                                                $last, $eighth;
    is(@{[grep { ($_->{json}{params}{arguments}{n} // 0) == 6 }
          $up->calls('a')]}, 0, "$name: what was cancelled was never sent");
}

# --- of all tools

{
    $up->clear();
    my @ids = (start('a', 1), start('a', 2), start('b', 1, 1), start('b', 2, 2),
               start('c', 1, 1), start('a', 3));
    runs('a1 a2 b1', 'three in all');
    settled();
    runs('a1 a2 b1', 'and no more');

    # b2 was first, then c1; a3 after both
    finish('b1');
    runs('a1 a2 b2', 'the next');
    finish('b2');
    runs('a1 a2 c1', 'and the next');
    finish('c1');
    settled();
    runs('a1 a2', 'a tool that has its share waits, though there is room');

    # others need not wait for it
    push @ids, start('b', 3);
    runs('a1 a2 b3', 'another overtakes it');
    finish('a1');
    runs('a2 a3 b3', 'until it is its turn');
    finish($_) for 'a2', 'a3', 'b3';
    is($g->ends($_)->{status}, 'completed', 'all end') for @ids;
}

# --- calls that fail make room as well

{
    $up->clear();
    $up->script(b => [['pause', 0.1], ['json', 'no', 500]]);
    my @ids = map { start('b', $_, $_) } 1 .. 20;
    is(@{[grep { $g->ends($_, 30)->{status} eq 'failed' } @ids]}, 20,
       'twenty that fail, two at a time');
    is($up->count('b'), 20, 'each was sent once');

    my @calls = sort { $a->{time} <=> $b->{time} } $up->calls('b');
    my $most = 0;

    for my $call (@calls) {
        my $now = grep { $_->{time} <= $call->{time}
                         && $_->{done} > $call->{time} } @calls;
        $most = $now if $now > $most;
    }

    is($most, 2, 'never more than two at once');
}

# --- plain calls are not counted

{
    $up->clear();
    my @ids = map { start('a', $_) } 1, 2;
    runs('a1 a2', 'two tasks');
    my @streams = map { $c->stream($c->legacy_bytes('tools/call',
        { name => 'a', arguments => { n => $_ } })) } 3, 4;
    runs('a1 a2 a3 a4', 'plain calls are not counted');
    finish("a$_") for 1 .. 4;
    is($g->ends($_)->{status}, 'completed', 'all end') for @ids;
    $_->close() for @streams;
}

$g->done('background call failed: upstream_status');
done_testing();
