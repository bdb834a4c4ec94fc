# Requests end while the store is at work for them, as if their clients had gone:
# what was acknowledged is there, what was claimed for nobody is given back, and
# nothing is used that has been freed, which the sanitizers see.  What nobody
# waits for is submitted until the store takes it, though it refuses now and then.

use warnings;
use strict;

use FindBin;
use lib "$FindBin::Bin/lib";

use Test::More;

use MCPClient;
use MCPTasks qw/ wait_for scale /;

my $t = MCPTasks->new(
    tools => ['slow', 'other'],
    http => 'mcp_tasks_zone zone=z:8m store=late:3,drop,fail;
             mcp_tasks_tools tools.json;',
    surfaces => [qw/ mcp worker probe /],
    server => 'mcp_tasks_owner $http_x_user;');

my $c = MCPClient->new($t, headers => { 'X-User' => 'ann' });
my $rounds = scale(40);
my %sent;
my %lost;


# one request on a connection of its own: the answer, or nothing
sub try_one {
    my ($name, $bytes, $uri) = @_;
    my $s = $t->connect();
    MCPTasks::send_raw($s, $bytes);
    my $res = eval { MCPTasks::read_response($s) };
    close($s);

    $sent{$name}++;
    $lost{$name}++ unless $res && $res->{status};

    return $res && $res->{body} ? MCPClient::decode($res->{body}) : undef;
}


sub call {
    my ($name, $method, $params) = @_;
    return try_one($name, $c->legacy_bytes($method, $params));
}


sub worker {
    my ($method, $params) = @_;
    return try_one("worker/$method", MCPTasks::message('POST', '/worker',
        { 'Content-Type' => 'application/json' },
        MCPClient::rpc("worker/$method", $params)));
}


sub batch_bytes {
    my (@messages) = @_;
    my $body = join ',', map { MCPClient::rpc(@$_) } @messages;
    return MCPClient::bytes('/mcp', "[$body]", %{ $c->{headers} });
}


# --- acknowledged is there

my @ids = grep { defined } map {
    my $got = call('create', 'tools/call', { name => 'slow', task => {} });
    $got && $got->{result}{task}{taskId};
} 1 .. $rounds;

cmp_ok(scalar @ids, '>', 0, scalar(@ids) . " of $rounds were acknowledged");
cmp_ok($lost{create}, '>', 0, "and $lost{create} were not");

sub seen {
    my ($id) = @_;
    my $got;
    wait_for { $got = call('get', 'tasks/get', { taskId => $id }) };
    return $got->{result}{status} // '';
}

is(scalar(grep { seen($_) eq 'working' } @ids), scalar @ids, 'all are there');

# --- those who wait

for my $n (1 .. $rounds) {
    my $id = $ids[$n % @ids];

    try_one('poll', $c->rest_bytes("tasks/$id/poll?timeout=20&version=9"));
    try_one('events', $c->rest_bytes("tasks/$id/poll?timeout=1&version=0"));
    call('update', 'tasks/update', { taskId => $id,
                                     metadata => { n => $n } });
    call('list', 'tasks/list', {});

    # one message of a batch that is dropped ends all of them
    try_one('batch', batch_bytes(['tasks/get', { taskId => $id }],
        (map { ['tasks/update', { taskId => $id, metadata => { $_ => $n } }] }
             1 .. 3), ['tasks/list', {}], ['ping']));
}

# streams are cut from here, if the store has not done it before
for my $n (1 .. $rounds / 2) {
    my $id = $ids[$n % @ids];
    my @streams = map { my $s = $t->connect(); MCPTasks::send_raw($s, $_); $s }
        $c->rest_bytes("tasks/$id/events",
                       headers => { Accept => 'text/event-stream' }),
        $c->rest_bytes('tasks/events',
                       headers => { Accept => 'text/event-stream' }),
        $c->modern_bytes('subscriptions/listen',
                         { notifications => { taskIds => [@ids[0 .. 1]] } }),
        $c->legacy_bytes('tasks/result', { taskId => $id }),
        batch_bytes((map { ['tasks/result', { taskId => $_ }] } @ids[0 .. 3]),
                    ['tasks/get', { taskId => $id }]);
    select(undef, undef, undef, 0.01);
    close($_) for @streams;
}

ok(wait_for(sub { $t->probe('op=waits')->{zone} == 0 }), 'nobody waits');

# --- in the modern era a call ends with its client

{
    my @calls = map {
        my $s = $t->connect();
        MCPTasks::send_raw($s, $c->modern_bytes('tools/call',
                                                { name => 'other' },
                                                extensions => []));
        $s;
    } 1 .. $rounds;

    # beside those above, all of which were created, whoever knows of it
    ok(wait_for(sub { $t->probe('op=stats')->{queued} > $rounds }), 'calls');
    close($_) for @calls;
    ok(wait_for(sub { $t->probe('op=stats')->{queued} == $rounds }),
       'they are cancelled, sooner or later');
}

# --- claimed for nobody, and given back

my %work;

ok(wait_for(sub {
    my $got = worker('claim', { tools => ['slow'], max => 3, waitMs => 20 });
    $work{$_->{taskId}} = $_ for @{ $got->{result}{tasks} || [] };
    return scalar(grep { exists $work{$_} } @ids) == @ids;
}, 60), 'all of them are claimed in the end, long before a lease is over')
    or diag(scalar(keys %work) . ' of ' . scalar(@ids));

cmp_ok($lost{'worker/claim'}, '>', 0, 'though claims were lost');

# --- and done

for my $work (values %work) {
    wait_for {
        my $got = worker('complete', { taskId => $work->{taskId},
            lease => $work->{lease}, result => { content => [] } });
        $got && ($got->{result} || $got->{error});
    };
}

is(scalar(grep { seen($_) eq 'completed' } @ids), scalar @ids, 'all complete');

cmp_ok($lost{batch}, '>', 0, 'batches were lost');

note(join ', ', map { "$_ " . ($lost{$_} // 0) . "/$sent{$_}" } sort keys %sent);

is($t->probe('op=check')->{check}, 'ok', 'the table is consistent');
ok($t->stop(), 'nginx stops');
is($t->faults(), '', 'nothing in the log');

done_testing();
