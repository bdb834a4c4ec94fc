# A process dies after it answered a call, and before it announced the task that
# the call created: the session's stream tells of the task all the same.

use warnings;
use strict;

use FindBin;
use lib "$FindBin::Bin/lib";

use Test::More;
use Time::HiRes qw/ time /;

use MCPClient;
use MCPTasks qw/ wait_for workers /;

my $t = MCPTasks->new(
    workers => workers(), listen => 'reuseport', tools => ['dig'],
    http => 'mcp_tasks_zone zone=z:16m; mcp_tasks_tools tools.json;',
    surfaces => [qw/ mcp worker probe /]);

my $c = MCPClient->new($t);

# half a second, if the machine has nothing else to do
use constant SOON => 4;


# whether the session's stream tells of this state of the task
sub told {
    my ($stream, $id, $status) = @_;
    my $from = time();

    while (my $got = $stream->message($from + SOON - time())) {
        my $task = $got->{params} || {};
        next unless ($task->{taskId} || '') eq $id
                    && ($task->{status} || '') eq $status;
        note(sprintf 'told after %.0f ms', 1000 * (time() - $from));
        return 1;
    }

    return 0;
}


sub connections {
    my $conn = $t->connect_all() or BAIL_OUT('workers cannot be reached');
    my ($dies, $lives) = sort keys %$conn;
    return ($dies, $lives, $conn->{$dies}, $conn->{$lives});
}


my %change = (
    completed => sub {
        my ($who, $work) = @_;
        return $who->complete($work, '{"content":[]}');
    },

    input_required => sub {
        my ($who, $work) = @_;
        my %where = (method => 'elicitation/create',
                     params => { message => 'Where?', requestedSchema => {
                                 type => 'object', properties => {} } });
        return $who->held('ask', $work, inputRequests => { where => \%where });
    },
);


# --- the task ends, or asks, after the death is known, or before

for my $known (1, 0) {
    for my $status (sort keys %change) {
        my $name = $status . ($known ? ' afterwards' : ' before that is known');
        my ($dies, $lives, $s, $other) = connections();
        my $session = $c->in_session();
        my $stream = $session->get_stream($t->connect_to($lives));
        my $worker = $c->as(via => $other);

        # it replaces nobody while it is stopped
        kill('STOP', $t->{pid}) unless $known;

        $t->probe('op=die&at=announce', $s);
        my $id = $session->as(via => $s)->create('dig');
        ok($id, "$name: the call is answered");
        ok(!$t->probe('op=pid', $s), "$name: and the process is dead");

        $t->replaced($dies) if $known;

        my $work = $worker->claim_id('dig', $id);
        ok(!$change{$status}->($worker, $work)->{error}, "$name: it happens");

        kill('CONT', $t->{pid});

        ok(told($stream, $id, $status), "$name: the stream tells of it");
        is($t->probe('op=check')->{check}, 'ok',
           "$name: the table is consistent");

        $c->complete($work, '{"content":[]}');
        $t->replaced($dies);
    }
}


# --- nobody takes the place of a process that dies while it exits

{
    my $name = 'in a process that exits';
    my ($dies, $lives, $s) = connections();
    my $session = $c->in_session();

    $t->probe('op=die&at=announce', $s);

    # half a request keeps it
    my $bytes = $session->legacy_bytes('tools/call',
                                       { name => 'dig', task => {} });
    MCPTasks::send_raw($s, substr($bytes, 0, 40));

    my %old = map { $_ => 1 } $t->worker_pids();
    $t->reload();
    ok((wait_for { !grep { $old{$_} && $_ != $dies } $t->worker_pids() }),
       "$name: all others are new");

    my $stream = $session->get_stream();

    MCPTasks::send_raw($s, substr($bytes, 40));
    my $id = MCPClient::answer($s)->{json}{result}{task}{taskId};
    ok($id, "$name: the call is answered");
    ok((wait_for { !kill(0, $dies) }), "$name: it is dead");

    $c->complete($c->claim_id('dig', $id), '{"content":[]}');
    ok(told($stream, $id, 'completed'), "$name: the end is told");
}


# --- those who live announce their tasks themselves, whoever dies

{
    my $name = 'another one dies';
    my ($dies, $lives, $s, $other) = connections();
    my $session = $c->in_session();
    my $stream = $session->get_stream($t->connect_to($lives));
    my $id = $session->as(via => $other)->create('dig');

    ok($t->kill_worker($dies), $name);
    $c->complete($c->claim_id('dig', $id), '{"content":[]}');
    ok(told($stream, $id, 'completed'), "$name: the end is told");
}

is($t->faults('exited on signal 9'), '', 'nothing is wrong in the log');
ok($t->stop(), 'nginx stops');

done_testing();
