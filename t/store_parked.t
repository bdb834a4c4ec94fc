# Requests that end while they wait for the store to save what they did.

use warnings;
use strict;

use FindBin;
use lib "$FindBin::Bin/lib";

use IO::Socket::INET;
use Test::More;

use MCPClient;
use MCPStatus;
use MCPStore qw/ hold /;
use MCPTasks qw/ wait_for /;

# takes connections and never answers
my $mute = IO::Socket::INET->new(LocalAddr => '127.0.0.1', Listen => 16)
           or die "no socket: $!\n";

my $t = MCPTasks->new(
    tools => ['dig'],
    main => 'worker_shutdown_timeout 200ms;',
    http => 'mcp_tasks_zone zone=z:8m store=sqlite:tasks.db;',
    surfaces => [qw/ mcp worker status probe /],
    server => <<"END");
        mcp_tasks_owner  \$http_x_user;
        mcp_tasks_tools  tools.json;

        location /both/ {
            mirror      /mcp/tasks;
            proxy_pass  http://127.0.0.1:@{[ $mute->sockport() ]};
        }

        location /call {
            mirror      /mcp;
            proxy_pass  http://127.0.0.1:@{[ $mute->sockport() ]};
        }
END

my $db = "$t->{dir}/tasks.db";
my $c = MCPClient->new($t, headers => { 'X-User' => 'ann' });
my $s = MCPStatus->new($t);


sub unsaved { return $s->json()->{store}{unsaved} }


sub listed {
    return scalar @{ $c->rest('tasks?limit=100')->{json}{tasks} };
}


# what was sent has been done, and waits
sub parked {
    my ($bytes) = @_;
    my $socket = $t->connect();
    MCPTasks::send_raw($socket, $bytes);
    ok((wait_for { unsaved() }), 'a change waits for its commit');
    return $socket;
}


# nginx has closed the connection to the upstream
sub over {
    my ($peer) = @_;
    while (MCPTasks::fill($peer)) { }
    return 1;
}


my @workers = $t->worker_pids();

# --- a subrequest, whose main request ends with the client

{
    ok($c->create('dig'), 'a task');

    my $release = hold($db, 'BEGIN IMMEDIATE');
    my $before = listed();
    my $socket = parked($c->as(uri => '/both')->rest_bytes('tasks',
        method => 'POST', headers => { 'Content-Type' => 'application/json' },
        body => '{"tool":"dig"}'));
    my $peer = $mute->accept();

    close($socket);
    ok(over($peer), 'the client has gone');

    $release->();
    ok((wait_for { !unsaved() }), 'saved');
    is(listed(), $before + 1, 'the task stays');
}

# the same, for one that would go on to wait for something else
{
    my $release = hold($db, 'BEGIN IMMEDIATE');
    my $socket = parked($c->as(uri => '/call')->legacy_bytes('tools/call',
                                                          { name => 'dig' }));
    my $peer = $mute->accept();

    close($socket);
    ok(over($peer), 'this one, too');

    $release->();
    ok((wait_for { !unsaved() }), 'saved');
    is($t->probe('op=waits')->{zone}, 0, 'nobody waits for its outcome');
}

# the same, and it cannot be saved
{
    my $release = hold($db, 'BEGIN IMMEDIATE');
    my $before = listed();
    my $socket = parked($c->as(uri => '/both')->rest_bytes('tasks',
        method => 'POST', headers => { 'Content-Type' => 'application/json' },
        body => '{"tool":"dig"}'));
    my $peer = $mute->accept();

    close($socket);
    ok((wait_for { !$s->json()->{store}{up} }), 'the store fails');
    ok((wait_for { listed() == $before }), 'the task is not there');

    $release->();
    ok((wait_for { $s->json()->{store}{up} }), 'the store works again');
}

is_deeply([ $t->worker_pids() ], \@workers, 'no process has died');
is($t->probe('op=check')->{check}, 'ok', 'the table is in order');


# --- a process that has to exit

{
    my $release = hold($db, 'BEGIN IMMEDIATE');
    my $socket = parked($c->rest_bytes('tasks', method => 'POST',
        headers => { 'Content-Type' => 'application/json' },
        body => '{"tool":"dig"}'));

    ok($t->stop(), 'nginx stops');
    ok(MCPTasks::closed($socket), 'the connection is closed');
    $release->();
}

is($t->faults('the store of zone "z" failed|prematurely closed'
               . '|were not saved before the process exited'), '',
   'nothing in the log');

done_testing();
