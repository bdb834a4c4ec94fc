# The wall clock is set while nginx is down: deadlines are where they were.

use warnings;
use strict;

use FindBin;
use lib "$FindBin::Bin/lib";

use Test::More;

use MCPClient;
use MCPStore qw/ clocked sql /;
use MCPTasks;

my $t = MCPTasks->new(
    tools => [['slow', '"ttl":600000,"lease":600000']],
    http => 'mcp_tasks_zone zone=z:8m store=sqlite:tasks.db;',
    surfaces => [qw/ mcp worker probe /], env => clocked(0),
    server => 'mcp_tasks_owner $http_x_user; mcp_tasks_tools tools.json;');

my $c = MCPClient->new($t, headers => { 'X-User' => 'ann' });
my $db = "$t->{dir}/tasks.db";
my $id = $c->create('slow');
my $work = $c->claim('slow');


# when it expires, in the store's time, written anew
sub expires {
    $c->held('progress', $work, message => 'it goes on');
    return sql($db, 'SELECT expires_at FROM task');
}


sub restart {
    my ($ahead, $name) = @_;
    ok($t->stop(), 'nginx stops');
    $t->configure(env => clocked($ahead));
    ok($t->start(), "and starts $name");
}


my $expires = expires();
ok($expires, 'a task expires in ten minutes');

# --- on the same boot

for ([3600, 'an hour later'], [-3600, 'two hours earlier'], [0, 'as it was'],
     [86400 * 400, 'a year later'])
{
    restart(@$_);
    is($c->rest("tasks/$id")->{status}, 200, 'the task is there');
    cmp_ok(abs(expires() - $expires), '<', 1000,
           'and will be for as long as before');
}

# --- killed, and not told to stop

{
    $t->configure(env => clocked(3600));
    $t->kill_all();
    ok($t->start(), 'it is killed, and starts an hour later');
    cmp_ok(abs(expires() - $expires), '<', 1000, 'with the same deadline');
}

# --- on another boot nobody knows better than the wall clock

# the store's time, as of the last commit
sub clock {
    my $value = sql($db, q{SELECT value FROM meta WHERE key = 'clock'});
    my (undef, $offset, $now) = unpack('Q>*', pack('H*', $value));
    return $offset + $now;
}


sub boot {
    sql($db, q{UPDATE meta SET value = 'feedfeedfeedfeed' || substr(value, 17)}
             . q{ WHERE key = 'clock'});
}

{
    $t->stop();
    boot();
    $t->configure(env => clocked(3600 + 120));
    ok($t->start(), 'another boot, two minutes later');

    my $left = $expires - clock();
    cmp_ok($left, '<', 480000, 'two minutes are gone');
    cmp_ok($left, '>', 300000, 'and some seconds');
    cmp_ok(abs(expires() - $expires), '<', 1000, 'but it expires as before');

    $t->stop();
    boot();
    $t->configure(env => clocked(-3600));
    ok($t->start(), 'another boot, with a clock that was not set yet');
    is($c->rest("tasks/$id")->{status}, 200, 'no time has passed');

    $t->stop();
    boot();
    $t->configure(env => clocked(3600));
    ok($t->start(), 'another boot, two hours later');
    is($c->rest("tasks/$id")->{status}, 404, 'the task has expired');
}

# --- what nobody could have written

{
    $t->stop();
    sql($db, q{UPDATE meta SET value = replace(hex(zeroblob(32)), '0', 'f')}
             . q{ WHERE key = 'clock'});
    $t->configure();
    my $started = eval { $t->start() };
    ok(!$started, 'with a time that cannot be nginx does not start');
    like($t->log(), qr/cannot be loaded: .*column "clock"/, 'and says so');
    delete $t->{pid};
}

is($t->faults('cannot be loaded'), '', 'nothing else in the log');

done_testing();
