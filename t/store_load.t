# What is read back is not quite what was saved: leases and versions.

use warnings;
use strict;

use FindBin;
use lib "$FindBin::Bin/lib";

use Test::More;
use Time::HiRes qw/ sleep /;

use MCPClient;
use MCPStatus;
use MCPStore qw/ hold /;
use MCPTasks qw/ wait_for /;

my $t = MCPTasks->new(
    tools => [['dig', '"lease":1000,"attempts":3'], 'long'],
    http => 'mcp_tasks_zone zone=z:8m store=sqlite:tasks.db sync=everysec;',
    surfaces => [qw/ mcp worker status probe /],
    server => 'mcp_tasks_owner $http_x_user; mcp_tasks_tools tools.json;');

my $c = MCPClient->new($t, headers => { 'X-User' => 'ann' });


sub saved {
    return wait_for { !MCPStatus->new($t)->json()->{store}{unsaved} };
}


# --- versions that were seen and lost are not used for something else

{
    my $id = $c->create('long');
    my $work = $c->claim('long', leaseMs => 60000);
    ok(saved(), 'a task is claimed and saved');

    # nothing is saved from now on
    my $release = hold("$t->{dir}/tasks.db", 'BEGIN IMMEDIATE');
    $c->held('progress', $work, progress => 1, message => 'half');
    my $seen = $c->rest("tasks/$id")->{json}{version};
    $t->kill_all();
    $release->();
    ok($t->start(), 'nginx is killed and started');

    cmp_ok($c->rest("tasks/$id")->{json}{version}, '<', $seen,
           'a version that was seen is lost');
    is($c->complete($work, '{"content":[]}')->{phase}, 'completed',
       'the task completes');
    is($c->rest("tasks/$id", headers => { 'If-None-Match' => "\"$seen\"" })
       ->{status}, 200, 'and is not taken for what was seen');
}


# --- a lease is as long as it was when it was given

{
    my $id = $c->create('dig');
    my $work = $c->claim('dig', leaseMs => 4000);

    # heartbeats are not saved: what is has nearly run out
    sleep(3);
    is($c->held('heartbeat', $work, leaseMs => 4000)->{phase}, 'running',
       'a task is claimed for longer than usual, and held');
    ok($t->stop(), 'nginx stops');
    ok($t->start(), 'and starts');
    is($c->claim('dig', waitMs => 3000), undef, 'nobody else gets it');
    is($c->complete($work, '{"content":[]}')->{phase}, 'completed',
       'who has it completes it');
}

is($t->probe('op=check')->{check}, 'ok', 'the table is in order');
ok($t->stop(), 'nginx stops');
is($t->faults(), '', 'nothing in the log');

done_testing();
