# One of the worker processes is stopped: others answer what is new, unless it
# holds the lock of the zone, and then the status says so.

use warnings;
use strict;

use FindBin;
use lib "$FindBin::Bin/lib";

use IO::Select;
use JSON::PP;
use POSIX qw/ SIGSTOP /;
use Test::More;
use Time::HiRes qw/ sleep time /;

use MCPClient;
use MCPFile qw/ slurp /;
use MCPTasks qw/ wait_for workers /;

# what waits for the stopped process waits for longer
use constant SOON => 5;

# changes wait for the process that saves them
my $saved = ($ENV{MCP_TASKS_STORE} // '') eq 'sqlite';

# the kinds of sockets that all processes share
my %events = ('one at a time' => '', 'many at once' => 'multi_accept on;');


sub start {
    my ($events) = @_;
    return MCPTasks->new(
        workers => workers(), events => $events, tools => ['dig'],
        http => 'mcp_tasks_zone zone=z:16m; mcp_tasks_tools tools.json;',
        surfaces => [qw/ mcp worker status probe /]);
}


sub call {
    return MCPClient::rpc('tools/call', { name => 'dig', task => {} });
}


sub stopped {
    my ($pid) = @_;
    return slurp("/proc/$pid/stat") =~ /\) T /;
}


sub readable {
    my ($s, $seconds) = @_;
    return scalar IO::Select->new($s)->can_read($seconds);
}


# --- it does not hold the lock: each of them in turn

for my $name (sort keys %events) {
    my $t = start($events{$name});
    my $c = MCPClient->new($t);

    # a store may not be ready yet
    my $id = wait_for { eval { $c->create('dig') } };

    for my $pid ($t->worker_pids()) {
        my $late = 0;

        kill('STOP', $pid);
        wait_for { stopped($pid) };

        for my $n (1 .. 40) {
            my $s = $t->post_later('/mcp', $n % 2 && !$saved ? call()
                        : MCPClient::rpc('tasks/get', { taskId => $id }));
            $late++ unless readable($s, SOON);
        }

        kill('CONT', $pid);
        is($late, 0, "$name: new requests are answered by others");
    }

    ok($t->stop(), "$name: nginx stops");
}


# --- it does

my $t = start('');


sub lock_of {
    return decode_json($t->request('GET', '/status', {})->{body})->{lock};
}


is_deeply(lock_of(), { held => 0, waits => 0, maxWait => 0 },
          'nobody has the lock for long');

my $s = $t->connect();
my $pid = $t->probe('op=die&at=lock&signal=' . SIGSTOP, $s)->{pid};

MCPTasks::send_raw($s, MCPTasks::message('GET', '/probe?op=create&tool=dig',
                                         {}));
ok((wait_for { stopped($pid) }), 'a process is stopped with the lock');
sleep(1.2);

# a process that waits for the lock answers nobody: this one does without
cmp_ok(lock_of()->{held}, '>=', 1, 'the status does not wait for it');

my $waits = $t->post_later('/mcp', call());
ok(!readable($waits, 1.5), 'requests do');
ok((wait_for { $t->log() =~ /of zone "z" for \d+ ms, held by process $pid,/ }),
   'and the log says whose fault it is');

kill('CONT', $pid);

is(MCPTasks::read_response($waits)->{status}, 200, 'they are answered then');
is(MCPTasks::read_response($s)->{status}, 200, 'and so is the first');

my $lock = lock_of();
is($lock->{held}, 0, 'the lock is free');
cmp_ok($lock->{waits}, '>=', 1, 'that somebody waited for it is known');
cmp_ok($lock->{maxWait}, '>=', 1.4, 'and for how long');

is($t->faults(), '', 'nothing is wrong in the log');
ok($t->stop(), 'nginx stops');

done_testing();
