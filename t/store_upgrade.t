# A new binary takes over while the old one runs, and gives way again: two
# masters, two zones, one database.  Nothing that was acknowledged is lost, and
# at no time do both write.

use warnings;
use strict;

use FindBin;
use lib "$FindBin::Bin/lib";

use Test::More;

use MCPClient;
use MCPFile qw/ slurp write_file /;
use MCPProcess qw/ pids_of /;
use MCPTasks qw/ wait_for /;

my $t = MCPTasks->new(
    workers => 2,
    http => 'mcp_tasks_zone zone=z:4m store=sqlite:tasks.db;',
    tools => ['dig'],
    surfaces => [qw/ mcp worker /],
    server => 'mcp_tasks_owner $http_x_user; mcp_tasks_tools tools.json;');

my $c = MCPClient->new($t, headers => { 'X-User' => 'ann' });

# nginx has to be a daemon for this
{
    $t->stop() or die "nginx does not stop\n";
    my $conf = slurp("$t->{dir}/nginx.conf") =~ s/^daemon .*;$//mr;
    write_file("$t->{dir}/nginx.conf", $conf);
}

my (@masters, @ids, %refused);

END {
    my $status = $?;
    kill('KILL', pids_of($_), $_) for grep { kill(0, $_) } @masters;
    $? = $status;
}


# who is refused tries again
sub create {
    my $id = wait_for {
        my $res = $c->rest_post('tasks', { tool => 'dig' });
        $refused{$res->{json}{reason}}++ if $res->{status} == 503;
        return $res->{status} == 201 ? $res->{json}{taskId} : undef;
    };
    push @ids, $id if $id;
    return $id;
}


sub status_of {
    my ($id) = @_;
    return wait_for {
        my $res = $c->rest("tasks/$id");
        return $res->{status} == 503 ? undef
               : $res->{json}{status} || $res->{json}{reason};
    } || 'no answer';
}


sub all_there {
    my ($when) = @_;
    my %found;
    $found{status_of($_)}++ for @ids;
    is_deeply(\%found, { working => scalar @ids }, "$when: all tasks are there");
}


is(system($t->command()), 0, 'nginx starts');
my $old = wait_for { $t->pid_in('nginx.pid') } or die "no master\n";
push @masters, $old;

ok(create(), 'a task') for 1 .. 5;
my $work = $c->claim('dig', leaseMs => 600_000);
ok($work->{lease}, 'one is claimed');

# --- a new master beside the old

kill('USR2', $old);
my $new = wait_for {
    my $pid = $t->pid_in('nginx.pid');
    return $pid != $old && pids_of($pid) == $t->{workers} ? $pid : 0;
} or die "no new master\n";
push @masters, $new;

ok(create(), 'a task is created meanwhile') for 1 .. 20;
all_there('both');

# --- the old workers go

# what it has now is the new master
kill('WINCH', $old);
ok(wait_for { pids_of($old) == 1 }, 'the old workers go');
ok(create(), 'a task is created by the new ones') for 1 .. 5;
all_there('after the upgrade');

# --- and come back

kill('HUP', $old);
ok(wait_for { pids_of($old) == 1 + $t->{workers} }, 'they come back');
ok(create(), 'a task is created meanwhile') for 1 .. 20;
kill('QUIT', $new);
ok(wait_for { !kill(0, $new) }, 'the new ones go');
ok(create(), 'a task is created by the old ones') for 1 .. 5;
all_there('after the way back');

my $done = wait_for { $c->complete($work, { content => [] })->{phase} };
is($done, 'completed', 'what was claimed before all this can be completed');

is(join(' ', sort keys %refused) =~ s/^store_unavailable$//r, '',
   'refused, if at all, because another instance had the store');

kill('QUIT', $old);
ok(wait_for { !kill(0, $old) }, 'it ends');
is($t->faults('waits until other processes release'), '', 'nothing in the log');

done_testing();
