# The scripts that Redis runs: what they answer, what they change, and whom they
# wake; sent twice they change nothing the second time.

use warnings;
use strict;

use FindBin;
use lib "$FindBin::Bin/lib";

use Test::More;

use MCPScripts;

use constant NEVER => ~0;
use constant NOW => 1_700_000_000_000;
use constant {
    QUEUED => 1, RUNNING => 2, COMPLETED => 4,
    CHANGED => 1, TURNED => 2, MOVED => 4, REQUEUED => 8, RECENT => 16,
    ANNOUNCE => 32, ALL => 64,
};

my $build = $ENV{MCP_TASKS_BUILD} // "$FindBin::Bin/../build";
my $fsck = "$FindBin::Bin/../tools/redis-fsck.py";
my $p = 'mt:z:{0}';

my $r = MCPScripts->start();
my $run = $r->{run};
my $last = 0;


sub be { return pack 'Q>', $_[0] }
sub id { return sprintf '%016d', $_[0] // ++$last }
sub o { return sprintf '%-16s', $_[0] }
sub op { return sprintf 'op%04d', $_[0] }
sub field { return $r->command('HGET', "$p$_[0]", $_[1]) }
sub members { return $r->command('ZRANGE', "$p$_[0]", 0, -1) }
sub score { return $r->command('ZSCORE', "$p$_[0]", $_[1]) }
sub record { return $r->command('GET', $p . 't' . $_[0]) }


sub fsck_ok {
    my ($name, @options) = @_;
    my $said = `python3 $fsck @options $r->{socket} mt z 2>&1`;
    is($?, 0, "$name: no differences") or diag($said);
}


# A head; by default of a new task that can be claimed.
sub head {
    my (%with) = @_;
    my %h = (revision => 1, version => 1, state => QUEUED, priority => 1,
             expires => NOW + 1e6, step_end => NEVER, phase_end => NEVER,
             lease => 30000, run_timeout => 60000, tokens => '', flags => 0,
             params => 2, result => 0, %with);

    return pack 'Q>7 C8 Q>9 L>2 d>3 L>9 L> L>6 a48 a40',
        $h{revision}, $h{version}, $h{changed} // 0, $h{turned} // 0,
        $h{moved} // 0, $h{queue_seq} // 0, $h{seq} // 0,
        $h{state}, $h{attempt} // 0, $h{flags}, 0, 3, $h{priority}, 0, 0,
        NOW, NOW, $h{expires}, $h{step_end}, $h{phase_end}, NOW, 1e6,
        $h{lease_token} // 0, 0, 0, $h{worker} // 0, -1, -1, -1,
        $h{lease}, 0xffffffff, $h{run_timeout}, (0) x 6, 0,
        $h{params}, 0, $h{message} // 0, $h{result}, 0, 0, $h{tokens}, '';
}


# what a head has, as far as the tests look at it
sub fields {
    my ($head) = @_;
    my %h;
    @h{qw/ revision version changed turned moved queue_seq seq state attempt /}
        = unpack 'Q>7 C2', $head;
    $h{pending} = ord substr $head, 63, 1;
    $h{worker} = unpack 'L>', substr $head, 140, 4;
    return \%h;
}


# Creates a task; options change the arguments.
sub create {
    my ($id, %with) = @_;
    my %c = (owner => 'ann', tool => 'dig', token => '', session => '',
             op => op(0), max => [0, 0, 0], recent => 0, x => [], run => $run,
             base => 2 * 2**46, head => {}, %with);

    my $o = o($c{owner});
    my $t = $p . 't' . $id;
    my %x = @{$c{x}};
    my $message = $x{2} // '';
    my $method = 'tools/call';
    my $rest = $o . pack('S>2 C4', length $c{owner}, length $c{tool},
                         length $c{token}, length $c{session}, length $method,
                         0)
               . "$c{owner}$c{tool}$c{token}$c{session}$method\{}";

    return $r->script('create',
        [$t, $p . 'x' . $id, $p . 'i' . $o, $p . 'd', $p . 'q' . $c{tool},
         $p . 'c', $p . 'm', $p . 'w',
         $c{token} ne '' ? $p . 'k' . $o . $c{token} : $t],
        $c{run}, $id, $c{op}, $o, @{$c{max}}, 12 + length $message,
        head(tokens => $c{op}, message => length $message, %{$c{head}}),
        $rest, $c{deadline} // NOW + 1e6, $c{base}, $c{tool},
        ($c{token} ne '' ? 1 : 0) + ($c{recent} ? 2 : 0), @{$c{x}});
}


# Changes a task: the head that it has, with other bytes at some places.
sub commit {
    my ($id, %with) = @_;
    my %c = (owner => 'ann', tool => 'dig', session => '', op => op(1),
             flags => CHANGED, base => '', deadline => NOW + 1e6, growth => 0,
             max => 0, x => [], to => undef, run => $run, bytes => {}, %with);

    my $head = substr record($id) // head(), 0, 320;
    my $from = ord substr $head, 56, 1;
    my $revision = $c{revision} // substr $head, 0, 8;
    my $to = $c{to} // $from;

    substr $head, 0, 8, be(1 + unpack 'Q>', $head);
    substr $head, 56, 1, chr $to;
    substr $head, 232, 48, $c{op} . substr $head, 232, 42;
    substr $head, $_, length $c{bytes}{$_}, $c{bytes}{$_}
        for keys %{$c{bytes}};

    my $t = $p . 't' . $id;

    return $r->script('commit',
        [$t, $p . 'r' . $id, $p . 'x' . $id, $p . 'd', $p . 'q' . $c{tool},
         $p . 'c', $p . 'm', $p . 'w',
         $c{session} ne '' ? $p . 'z' . $c{session} : $t],
        $c{run}, $id, $c{op}, $revision, o($c{owner}), $head, $c{flags},
        $c{deadline}, $c{base}, $from, $to, $c{growth}, $c{max}, $c{tool},
        $c{session}, defined $c{result} ? (1, $c{result}) : (0, ''),
        @{$c{x}});
}


sub complete {
    my ($id, $result, %with) = @_;

    return commit($id, to => COMPLETED, result => $result,
                  growth => length $result, flags => CHANGED | TURNED,
                  bytes => { 88 => be(NEVER), 96 => be(NEVER),
                             220 => pack 'L>', length $result }, %with);
}


sub remove {
    my ($id, %with) = @_;
    my $head = record($id) // head();
    my %c = (owner => 'ann', tool => 'dig', token => '', session => '',
             run => $run, recent => 0, flags => 0,
             revision => substr($head, 0, 8), %with);

    my $o = o($c{owner});
    my $t = $p . 't' . $id;
    my $bytes = 10;
    $bytes += $_ for unpack 'L>6', substr $head, 208, 24;

    return $r->script('remove',
        [$t, $p . 'r' . $id, $p . 'x' . $id, $p . 'i' . $o, $p . 'd',
         $p . 'q' . $c{tool}, $c{recent} ? $p . 'c' : $t, $p . 'm', $p . 'w',
         $c{token} ne '' ? $p . 'k' . $o . $c{token} : $t,
         $c{session} ne '' ? $p . 'z' . $c{session} : $t],
        $c{run}, $id, $c{revision}, $o, ord substr($head, 56, 1), $bytes,
        $c{session}, $c{flags} | ($c{token} ne '' ? 1 : 0));
}


sub claim {
    my ($lease, %with) = @_;
    my %c = (ring => 0, worker => '', seat => '', tools => ['dig'],
             recent => 0, run => $run, now => NOW + 5, %with);

    return $r->script('claim',
        [$p . 'd', $p . 'c', $p . 'm', $p . 'w', $p . 's1',
         map { $p . 'q' . $_ } @{$c{tools}}],
        $c{run}, $lease, $c{ring}, $c{now}, $c{now}, 0, $c{worker}, $c{seat},
        $c{recent}, @{$c{tools}});
}


sub watch {
    my ($id, $seat, @fields) = @_;

    return $r->script('watch',
        [$p . 't' . $id, $p . 'r' . $id, $p . 'x' . $id, $p . 'w', $p . 'm'],
        $run, $seat, @fields);
}


sub await {
    my ($seat, $sign, @fields) = @_;
    return $r->script('await', [$p . 'w', $p . 'm'], $run, $seat, $sign,
                      @fields);
}


# a connection with the messages of a seat
sub seat {
    my ($number, @more) = @_;
    my $c = $r->another();
    $c->command('SSUBSCRIBE', $p . 'n' . $number);
    $c->command('SSUBSCRIBE', $_) for @more;
    return $c;
}


# all keys and values
sub dump_all {
    my %read = (string => ['GET'], hash => ['HGETALL'],
                zset => ['ZRANGE', 0, -1, 'WITHSCORES']);
    my $all = '';

    for my $key (sort @{$r->command('KEYS', '*')}) {
        my $type = $r->command('TYPE', $key);
        my ($command, @args) = @{$read{$type}};
        my $value = $r->command($command, $key, @args);

        if ($type eq 'hash') {
            my %hash = @$value;
            $value = [map { ($_, $hash{$_}) } sort keys %hash];
        }

        $all .= "$key=" . (ref $value ? join ',', @$value : $value) . "\n";
    }

    return $all;
}


sub fresh {
    $r->command('FLUSHALL');
    $r->script('open', [$p . 'm', $p . 'w'], $run);
}


subtest 'claim.lua and ngx_mcp_task.c' => sub {
    my $said = `$build/unit/redis_claim $r->{socket}`;
    is($?, 0, 'agree') or diag($said);
};


subtest 'attach' => sub {
    my $attach = sub {
        return $r->script('attach', ["$p" . 'meta'], @_);
    };

    $r->command('FLUSHALL');
    is_deeply($attach->(1, 4, 'secret of sixteen', 1),
              [1, 4, 'secret of sixteen', 1], 'the first decides');
    is_deeply($attach->(1, 4, 'another secret', 1),
              [1, 4, 'secret of sixteen', 2], 'others get a seat of their own');
    is_deeply($attach->(1, 4, 'another secret', 0),
              [1, 4, 'secret of sixteen', 0], 'or none');
    is_deeply($attach->(1, 8, 'another secret', 1),
              [1, 4, 'secret of sixteen', 0], 'other partitions');
    is_deeply($attach->(2, 4, 'another secret', 1),
              [1, 4, 'secret of sixteen', 0], 'another schema');
    is_deeply($attach->(1, 4, 'x', 1), [1, 4, 'secret of sixteen', 3],
              'no seat was wasted');
};


subtest 'open' => sub {
    my $open = sub { $r->script('open', [$p . 'm', $p . 'w'], @_) };

    $r->command('FLUSHALL');
    is_deeply(create(id()), [-9], 'nothing is done before');
    is_deeply($open->($run), [1], 'the first epoch');
    is_deeply($open->($run), [1], 'the same server');
    is_deeply(await(1, '+', 'a'), [1], 'somebody waits');
    is_deeply($open->('f' x 40), [-9], 'meant for another server');
    is(field('m', 'run'), $run, 'changes nothing');

    $r->command('HSET', $p . 'm', 'run', 'f' x 40);
    is_deeply(create(id()), [-9], 'refused after a failover');
    is_deeply($open->($run), [2], 'a new epoch');
    is($r->command('EXISTS', $p . 'w'), 0, 'nobody waits');
    is($r->command('OBJECT', 'ENCODING', $p . 'm'), 'hashtable',
       'counters are found at once');
};


subtest 'another run_id' => sub {
    fresh();
    my $id = id();
    create($id);
    my $before = dump_all();
    my $old = 'e' x 40;

    is_deeply(create(id(), run => $old), [-9], 'create');
    is_deeply(commit($id, run => $old), [-9], 'commit');
    is_deeply(remove($id, run => $old), [-9], 'remove');
    is_deeply(claim('leaseAAA', run => $old), [-9], 'claim');

    is_deeply($r->script('await', [$p . 'w', $p . 'm'], $old, 1, '+', 'a'),
              [-9], 'await');
    is_deeply($r->script('watch', [($p . 't' . $id) x 3, $p . 'w', $p . 'm'],
                         $old, 1, 'a'), [-9], 'watch');
    ok(dump_all() eq $before, 'nothing has changed');
};


subtest 'create' => sub {
    fresh();
    my ($a, $b) = (id(), id());

    is_deeply(create($a, token => '"t1"', recent => 1, x => [2, '"hello"']),
              [1, 1], 'a task');
    my $before = dump_all();
    is_deeply(create($a, token => '"t1"', recent => 1, x => [2, '"hello"']),
              [2, 1], 'sent twice');
    is_deeply(create($a, op => op(9)), [0], 'the id is in use');
    ok(dump_all() eq $before, 'nothing has changed');

    my $h = fields(record($a));
    is($h->{$_}, 1, "$_ is set") for qw/ seq changed queue_seq revision /;
    is($h->{$_}, 0, "$_ is not") for qw/ turned moved pending /;

    is_deeply(create($b, base => 3 * 2**46, head => { priority => 0 },
                     deadline => '', recent => 1), [1, 2], 'another');
    is_deeply(members('i' . o('ann')), [$a, $b], 'of the owner');
    is_deeply(members('d'), [$a], 'deadlines');
    is_deeply(members('qdig'), [$a, $b], 'the queue');
    is(score('qdig', $b), 3 * 2**46 + 2, 'its score');
    is_deeply(members('c'), [$a, $b], 'recent');
    is($r->command('GET', $p . 'k' . o('ann') . '"t1"'), $a, 'by token');
    is_deeply($r->command('HGETALL', $p . 'x' . $a), [2, '"hello"'],
              'payloads');
    is_deeply([map { field('m', $_) } 'n', 'b', 's1', 'n' . o('ann'),
               'b' . o('ann')], [2, 31, 2, 2, 31], 'counters');

    my $c = id();
    is_deeply(create($c, base => '', head => { step_end => NOW + 1000 },
                     deadline => NOW + 1000), [1, 3], 'not claimable yet');
    is(score('qdig', $c), undef, 'not in the queue');

    remove($c);
    $r->command('ZREM', $p . 'd', $b);
    is_deeply(commit($b), [1, 5, 0], 'the deadline is set later');
    remove($a, token => '"t1"', recent => 1);
    remove($b, recent => 1);
    fsck_ok('in the end', '--empty', '--recent');
};


subtest 'limits' => sub {
    fresh();
    create(id()) for 1 .. 3;
    create(id(), owner => 'bob');
    my $before = dump_all();

    is_deeply(create(id(), max => [4, 0, 0]), [-1], 'tasks');
    is_deeply(create(id(), max => [0, 3, 0]), [-2], 'tasks of the owner');
    is_deeply(create(id(), max => [0, 0, 47]), [-3], 'bytes of the owner');
    ok(dump_all() eq $before, 'nothing has changed');
    is(create(id(), max => [5, 4, 48])->[0], 1, 'up to the limits');
    fsck_ok('limits');
};


subtest 'commit' => sub {
    fresh();
    my $id = id();
    create($id);
    my $old = substr record($id), 0, 8;

    is_deeply(commit(id()), [0], 'no such task');

    is_deeply(commit($id, x => [2, '"half"'], growth => 6, op => op(1),
                     bytes => { 216 => pack 'L>', 6 }), [1, 2, 0],
              'a message');
    my $h = fields(record($id));
    is($h->{revision}, 2, 'the revision');
    is($h->{changed}, 2, 'changed');
    is($h->{queue_seq}, 1, 'the place in the queue stays');
    is($h->{turned} + $h->{moved}, 0, 'neither turned nor moved');
    is(score('qdig', $id), undef, 'not claimable');
    is(field('x' . $id, 2), '"half"', 'the payload');

    my $before = dump_all();
    my $head = substr record($id), 0, 320;
    is_deeply(commit($id, revision => $old, op => op(1)), [2, $head],
              'sent twice');
    is_deeply(commit($id, revision => $old, op => op(7)), [0, $head],
              'another revision');
    is_deeply(commit($id, growth => 10, max => 20), [-3],
              'bytes of the owner');
    ok(dump_all() eq $before, 'nothing has changed');

    is_deeply(commit($id, flags => CHANGED | TURNED | MOVED, op => op(2)),
              [1, 3, 0], 'turned and moved');
    $h = fields(record($id));
    is($h->{$_}, 3, $_) for qw/ changed turned moved /;

    # its numbers are taken back at the end
    my $other = id();
    create($other, base => '', head => { step_end => NOW + 9 },
           deadline => NOW + 9);
    is_deeply(commit($other, flags => CHANGED | TURNED), [1, 5, 0], 'turned');
    is_deeply([@{fields(record($other))}{qw/ turned moved /}], [5, 0],
              'and not moved');
    is_deeply(commit($other, flags => CHANGED | MOVED, op => op(2)),
              [1, 6, 0], 'moved');
    is_deeply([@{fields(record($other))}{qw/ turned moved /}], [5, 6],
              'and not turned');
    is_deeply(commit($other, flags => 0, base => 2 * 2**46, op => op(3),
                     bytes => { 88 => be(NEVER) }), [1, 0, 0], 'claimable');
    is(score('qdig', $other), 2 * 2**46 + 4, 'in the queue, by its old place');
    remove($other);
    $r->command('HSET', $p . 'm', 'seq', 3);

    is_deeply(commit($id, flags => REQUEUED, base => 2 * 2**46, op => op(3)),
              [1, 0, 4], 'requeued');
    $h = fields(record($id));
    is($h->{changed}, 3, 'not a change');
    is($h->{queue_seq}, 4, 'a new place');
    is(score('qdig', $id), 2 * 2**46 + 4, 'in the queue');

    is_deeply(commit($id, flags => 0, base => 2 * 2**46, op => op(4)),
              [1, 0, 0], 'no numbers');
    is(score('qdig', $id), 2 * 2**46 + 4, 'the place stays');
    fsck_ok('queued');

    is_deeply(commit($id, flags => CHANGED, x => [2, ''], growth => -6,
                     base => 2 * 2**46, op => op(5),
                     bytes => { 216 => pack 'L>', 0 }), [1, 5, 0],
              'without the message');
    is($r->command('EXISTS', $p . 'x' . $id), 0, 'the hash is gone');
    fsck_ok('without');

    my $lease = 'leaseBBB';
    is(claim($lease)->[0], 1, 'claimed');
    is_deeply(complete($id, '{"a":1}', op => op(6)), [1, 7, 0], 'completed');
    is($r->command('GET', $p . 'r' . $id), '{"a":1}', 'its result');
    is_deeply([map { field('m', "s$_") } 1, 2, 4], [0, 0, 1], 'counted');
    is(score('d', $id), NOW + 1e6, 'its end');

    is_deeply(commit($id, revision => $old, op => op(2))->[0], 2,
              'an older operation is still known');
    is(commit($id, op => "op1$_" . 'xx')->[0], 1, "change $_") for 1 .. 4;
    is_deeply(commit($id, revision => $old, op => op(2))->[0], 0,
              'one before the last 8 is not');

    is_deeply(remove($id), [1], 'removed');
    fsck_ok('removed', '--empty');
};


subtest 'remove' => sub {
    fresh();
    my ($a, $b) = (id(), id());
    my %with = (token => '7', session => 'S', recent => 1);
    create($a, %with, op => op(1));
    create($b, %with, op => op(2));

    is_deeply(commit($a, session => 'S', flags => CHANGED | RECENT | ANNOUNCE,
                     base => 2 * 2**46, bytes => { 58 => "\4" }),
              [1, 3, 0], 'announced');
    is_deeply(members('zS'), [$a], 'in the session');
    fsck_ok('before', '--recent');

    my $head = substr record($a), 0, 320;
    is_deeply(remove($a, %with, revision => be(7)), [0, $head],
              'another revision');
    is_deeply(remove($a, %with), [1], 'removed');
    is_deeply(remove($a, %with), [0], 'sent twice');
    is($r->command('GET', $p . 'k' . o('ann') . '7'), $b,
       'the token belongs to the newer task');
    fsck_ok('one left', '--recent');
    is_deeply(remove($b, %with), [1], 'the other');
    is(field('m', 'n' . o('ann')), undef, 'the owner is gone');
    fsck_ok('none left', '--recent', '--empty');
};


subtest 'claim' => sub {
    fresh();
    my ($a, $b, $c) = (id(), id(), id());
    create($a, head => { priority => 0 }, base => 3 * 2**46);
    create($b, tool => 'fill', x => [1, '{}', 2, '"m"'], base => 0,
           head => { priority => 3, message => 3 });
    create($c);

    my $got = claim('leaseCCC', tools => ['dig', 'fill'], ring => 5,
                    worker => 'w1', recent => 1);
    is_deeply([@$got[0, 1]], [1, $b], 'the highest priority');
    is($got->[2], record($b), 'the record as it is now');
    is_deeply({ @{$got->[3]} }, { 1 => '{}', 2 => '"m"', w => 'w1' },
              'with payloads and worker');
    my $h = fields($got->[2]);
    is_deeply([@$h{qw/ state attempt pending changed worker revision /}],
              [RUNNING, 1, 1, 4, 2, 2], 'running');
    is(substr($got->[2], 120, 8), 'leaseCCC', 'the lease token');
    is(score('d', $b), NOW + 5 + 30000, 'the deadline');
    is_deeply(members('qfill'), [], 'no longer queued');

    my $before = dump_all();
    my $again = claim('leaseCCC', tools => ['dig', 'fill'], ring => 5);
    is_deeply([@$again[0 .. 2]], [2, $b, $got->[2]], 'sent twice');
    is_deeply({ @{$again->[3]} }, { @{$got->[3]} }, 'the same payloads');
    ok(dump_all() eq $before, 'nothing has changed');

    is_deeply([@{claim('leaseDDD', ring => 6)}[0, 1]], [1, $c], 'the next');
    is(claim('leaseEEE', tools => ['none'])->[0], 0, 'another tool');
    is(claim('leaseFFF', now => NOW + 1e6)->[0], 0, 'expired');

    remove($b, tool => 'fill');
    is_deeply([@{claim('leaseCCC', ring => 5, worker => 'w')}[0, 1]], [1, $a],
              'if it is gone, another');
    is(claim('leaseGGG')->[0], 0, 'none is left');
    is($r->command('EXISTS', $p . 'w'), 0, 'and nobody waits');
    is($r->command('HLEN', $p . 's1'), 2, 'claims are remembered in a ring');
};


subtest 'watch and await' => sub {
    fresh();
    my $id = id();
    create($id, x => [2, '"m"']);

    my $got = watch($id, '');
    is_deeply($got, [1, record($id), '', [2, '"m"']], 'only read');
    is($r->command('EXISTS', $p . 'w'), 0, 'nothing registered');

    is(watch($id, 3, "t$id", 'a')->[0], 1, 'registered');
    is(watch($id, 3, "t$id", 'a')->[0], 1, 'sent twice');
    is(watch($id, 17, "t$id")->[0], 1, 'another seat');
    is(field('w', "t$id"), ',3,17,', 'both wait for the task');
    is(field('w', 'a'), ',3,', 'one for any');

    my $none = id();
    is_deeply(watch($none, 3, "t$none", 'oX'), [0], 'no such task');
    is(field('w', "t$none"), undef, 'not registered');
    is(field('w', 'oX'), ',3,', 'the others are');

    complete($id, '{}');
    await($_, '+', "t$id", 'a') for 3, 17, 1;
    is(watch($id, '')->[2], '{}', 'with the result');

    is_deeply(await(3, '-', "t$id", 'a', 'oX', 'none'), [1], 'taken out');
    is_deeply(await(3, '-', "t$id", 'a', 'oX', 'none'), [1], 'sent twice');
    is(field('w', "t$id"), ',17,1,', 'the others stay');
    is(field('w', 'oX'), undef, 'nobody left');
    await($_, '-', "t$id", 'a') for 17, 1;
    is($r->command('EXISTS', $p . 'w'), 0, 'nobody waits');
};


subtest 'messages' => sub {
    fresh();
    my ($one, $two) = (seat(1), seat(2, $p . 'all'));
    my ($a, $b) = (id(), id());

    await(1, '+', 'o' . o('ann'), 'a');
    await(2, '+', 'a');
    await(9, '+', 'a', 'o' . o('ann'));

    create($a);
    is_deeply([$one->messages()], ["t$a" . be(1)], 'once to each seat');
    is_deeply([$two->messages()], ["t$a" . be(1)], 'and to the other');
    is(field('w', 'a'), ',1,2,', 'a seat without a receiver is taken out');
    is(field('w', 'o' . o('ann')), ',1,', 'everywhere');

    await(1, '-', 'o' . o('ann'), 'a');
    await(2, '-', 'a');
    await(1, '+', "t$a");
    commit($a, base => 2 * 2**46);
    is_deeply([$one->messages()], ["t$a" . be(2)], 'who waits for the task');
    commit($a, base => 2 * 2**46, flags => 0);
    is_deeply([$one->messages()], [], 'not a change');
    commit($a, base => 2 * 2**46, flags => CHANGED | ALL);
    is_deeply([$one->messages()], ["t$a" . be(3)], 'registered still');
    is_deeply([$two->messages()], ["t$a" . be(3)], 'to all');

    await(2, '+', 'sS');
    commit($a, base => 2 * 2**46, flags => ANNOUNCE, session => 'S');
    is_deeply([$two->messages()], ["t$a" . be(3)], 'announced to a session');
    is_deeply([$one->messages()], [], 'to nobody else');
    is(score('zS', $a), 3, 'by its change');

    claim('leaseHHH');
    is_deeply([$one->messages()], ["t$a" . be(4)], 'claimed');
    remove($a, session => 'S', flags => 2);
    is_deeply([$one->messages()], ["t$a" . be(5)], 'removed');
    is_deeply([$two->messages()], ["t$a" . be(5), "t$a" . be(5)],
              'to the session, and to all');
    is(field('w', "t$a"), undef, 'nobody waits for it any longer');
};


subtest 'many seats' => sub {
    fresh();
    my $two = seat(2, $p . 'all');
    await($_, '+', 'a') for 1 .. 65;
    my $id = id();
    create($id);
    is_deeply([$two->messages()], ["t$id" . be(1)], 'one message to all');
    await(65, '-', 'a');
    commit($id, base => 2 * 2**46);
    is_deeply([$two->messages()], ["t$id" . be(2)], 'one to each');
    is(field('w', 'a'), ',2,', 'those without a receiver are taken out');
};


subtest 'waiting claims' => sub {
    fresh();
    my ($one, $two) = (seat(1), seat(2));

    is_deeply(claim('leaseIII', seat => $_, tools => ['dig', 'fill']), [0],
              "seat $_ waits") for 8, 1, 1, 2;
    is(field('w', 'qdig'), ',8,1,2,', 'for each tool');
    is(field('w', 'qfill'), ',8,1,2,', 'once');

    my $a = id();
    create($a);
    is_deeply([$one->messages()], ['qdig'], 'the first with a receiver');
    is_deeply([$two->messages()], [], 'only that one');
    is(field('w', 'qdig'), ',2,', 'those tried are taken out');
    is(field('w', 'qfill'), ',8,1,2,', 'for this tool only');

    commit($a, base => 2 * 2**46, op => op(2));
    is_deeply([$two->messages()], [], 'was claimable before');
    create(id(), base => '', head => { step_end => NOW + 9 });
    is_deeply([$two->messages()], [], 'not claimable');

    claim('leaseJJJ');
    commit($a, to => QUEUED, flags => CHANGED | REQUEUED, base => 2 * 2**46,
           bytes => { 88 => be(NEVER), 120 => be(0) }, op => op(3));
    is_deeply([$two->messages()], ['qdig'], 'claimable again');
    is(field('w', 'qdig'), undef, 'nobody waits');
};


subtest 'replication' => sub {
    # what is not replicated is not in the append-only file either
    fresh();
    $r->command('CONFIG', 'SET', 'appendonly', 'yes');

    for (1 .. 100) {
        last if $r->command('INFO', 'persistence')
                =~ /aof_rewrite_in_progress:0\r\naof_rewrite_scheduled:0/;
        select undef, undef, undef, 0.05;
    }

    await(1, '+', 'a');
    create(my $id = id());
    claim('leaseKKK', seat => 1, tools => ['other']);
    $r->command('CONFIG', 'SET', 'appendonly', 'no');

    my $text = join '', map { MCPFile::slurp($_) }
        glob "$r->{dir}/appendonlydir/*.incr.aof";
    like($text, qr/\Q$p\Et\Q$id/, 'the task is replicated');
    unlike($text, qr/\Q$p\Ew\r/, 'who waits is not');
};


subtest 'no memory' => sub {
    fresh();
    my ($a, $b, $c) = (id(), id(), id());
    create($_) for $a, $b;
    $r->command('CONFIG', 'SET', 'maxmemory', '1mb');
    $r->command('CONFIG', 'SET', 'maxmemory-policy', 'noeviction');
    my $before = dump_all();

    my $refused = create($c);
    like(ref $refused eq 'HASH' ? $refused->{error} : 'done', qr/^OOM /,
         'a new task is refused');
    ok(dump_all() eq $before, 'nothing has changed');

    is(claim('leaseLLL', seat => 1)->[0], 1, 'a claim works');
    is(complete($a, '{"r":' . 'x' x 5000 . '}', op => op(3))->[0], 1,
       'a result is stored');
    is(watch($b, 1, "t$b")->[0], 1, 'watching works');
    is(remove($_)->[0], 1, 'a removal works') for $a, $b;
    $r->command('CONFIG', 'SET', 'maxmemory', 0);
    is(create($c)->[0], 1, 'then there is room');
};


subtest 'fsck' => sub {
    my %damage = (
        'a counter' => ['HINCRBY', $p . 'm', 'b', 1],
        'the counter of a state' => ['HINCRBY', $p . 'm', 's2', 1],
        'the counter of an owner' => ['HINCRBY', $p . 'm', 'n' . o('ann'), 1],
        'the sequence' => ['HSET', $p . 'm', 'seq', 1],
        'an owner without tasks' => ['HSET', $p . 'm', 'n' . o('x'), 0],
        'a deadline' => ['ZADD', $p . 'd', 1, '0' x 16],
        'a missing deadline' => ['DEL', $p . 'd'],
        'the list of an owner' => ['DEL', $p . 'i' . o('ann')],
        'the queue' => ['ZADD', $p . 'qdig', 1, '0' x 16],
        'an empty queue' => ['DEL', $p . 'qdig'],
        'recent' => ['DEL', $p . 'c'],
        'a session' => ['ZADD', $p . 'zS', 1, '0' x 16],
        'a token' => ['SET', $p . 'k' . o('ann') . '1', '0' x 16],
        'a result' => ['SET', $p . 'r' . '0' x 16, 'x'],
        'a payload' => ['HSET', $p . 'x' . '0' x 16, 1, 'x'],
        'a truncated record' => ['SET', $p . 't' . '0' x 16, 'x' x 100],
        'an unknown key' => ['SET', $p . 'y', 1],
    );

    for my $what (sort keys %damage) {
        fresh();
        create(id(), recent => 1) for 1 .. 2;
        is(`python3 $fsck --recent $r->{socket} mt z`,
           "2 tasks, 0 differences\n", 'valid');
        $r->command(@{$damage{$what}});
        my $said = `python3 $fsck --recent $r->{socket} mt z`;
        is($? >> 8, 1, "$what: found") or diag($said);
    }

    fresh();
    create(id());
    `python3 $fsck --empty $r->{socket} mt z`;
    is($? >> 8, 1, 'not empty');
};


$r->stop();

done_testing();
