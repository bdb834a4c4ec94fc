# Owners, their limits, and how long tasks are kept.

use warnings;
use strict;

use FindBin;
use lib "$FindBin::Bin/lib";

use Test::More;
use Time::HiRes qw/ sleep time /;

use MCPClient;
use MCPTasks qw/ wait_for workers /;

my $t = MCPTasks->new(
    workers => workers(),
    tools => ['slow', ['own', '"attempts":1,"lease":"5s","queueTimeout":"6s",'
                              . '"runTimeout":"7s","ttl":"8s"']],
    http => <<'END', server => <<'SERVER');
    mcp_tasks_zone zone=z:1m;
    mcp_tasks_zone zone=small:32k max_tasks=8;
    mcp_tasks_zone zone=bytes:64k max_tasks=64;
    mcp_tasks_tools tools.json;
    mcp_tasks_owner $http_x_user;
    mcp_tasks_poll_interval 2s;
    mcp_tasks_lease 44s;
    mcp_tasks_ttl 11s max=22s;
    mcp_tasks_timeout run=33s;
    mcp_tasks_retries 6;
END
    mcp_tasks_poll_interval 3s;

    location /mcp { mcp_tasks zone=z; }
    location /worker { mcp_tasks_worker zone=z; }
    location /inner {
        mcp_tasks zone=z;
        mcp_tasks_poll_interval 4s;
        mcp_tasks_lease 5500ms;
        mcp_tasks_ttl 7s;
        mcp_tasks_timeout run=off queue=1h;
        mcp_tasks_retries 0 backoff=1ms;
    }
    location /fixed { mcp_tasks zone=z; mcp_tasks_owner everybody; }
    location /none { mcp_tasks zone=z; mcp_tasks_owner ""; }
    location /tasks { mcp_tasks zone=z; mcp_tasks_limit tasks=3; }
    location /bytes { mcp_tasks zone=z; mcp_tasks_limit bytes=4k; }
    location /payload { mcp_tasks zone=z; mcp_tasks_limit payload=1k; }
    location /workload { mcp_tasks_worker zone=z; mcp_tasks_limit payload=1k; }
    location /short {
        mcp_tasks zone=z;
        mcp_tasks_ttl 1s;
        mcp_tasks_retention completed=0 failed=0 cancelled=0;
    }
    location /kept {
        mcp_tasks zone=z;
        mcp_tasks_ttl 1s;
        mcp_tasks_retention completed=4s failed=0s cancelled=0s;
    }
    location /queue {
        mcp_tasks zone=z;
        mcp_tasks_timeout queue=300ms run=300ms;
        mcp_tasks_retries 0;
    }
    location /again {
        mcp_tasks zone=z;
        mcp_tasks_lease 300ms;
        mcp_tasks_retries 1 backoff=1ms;
    }
    location /small { mcp_tasks zone=small; }
    location /full { mcp_tasks zone=bytes; }
SERVER

my $c = MCPClient->new($t);


sub at {
    my ($uri, $user) = @_;
    return $c->as(uri => $uri, headers => defined $user
                                          ? { 'X-User' => $user } : {});
}


sub create {
    my ($who, %params) = @_;
    my $res = $who->legacy('tools/call', { name => 'slow', task => {},
                                           %params });
    return $res->{json}{result}{task} || { error => $res->{json}{error},
                                           http => $res->{status} };
}


# so that what comes below finds its own work
sub drain {
    while (@{ $c->worker('worker/claim', { tools => ['slow', 'own'],
                                           max => 32 })->{tasks} }) { }
}


# Strangers: what is not yours does not exist

my $ann = at('/mcp', 'ann');
my $bob = at('/mcp', 'bob');
my $nobody = at('/mcp');

my $expired = create($ann, task => { ttl => 1 })->{taskId};
my $of_ann = create($ann)->{taskId};
my $of_nobody = create($nobody)->{taskId};
sleep(0.05);

my %ids = (
    'a foreign id' => $of_ann,
    'an id of nobody' => $of_nobody,
    'an expired id' => $expired,
    'an unknown id' => '12345678-1234-4234-8234-123456789012',
    'an id of zeros' => '00000000-0000-0000-0000-000000000000',
    'no id at all' => 'x',
    'an empty one' => '',
    'an id in upper case' => uc $of_ann,
    'an id with something after it' => "${of_ann}0",
    'an id without dashes' => $of_ann =~ s/-//gr,
    'a long text' => 'y' x 3000,
);

for my $era ('legacy', 'modern') {
    for my $method ('tasks/get', 'tasks/result', 'tasks/cancel',
                    'tasks/update')
    {
        next if "$era $method" eq 'modern tasks/result';

        my %answers;

        for my $name (sort keys %ids) {
            my $who = $name =~ /expired/ ? $ann : $bob;
            my $res = $who->$era($method, { taskId => $ids{$name},
                                            inputResponses => { q => {} } },
                                 headers => { 'Mcp-Name' => $ids{$name} });
            (my $head = $res->{head}) =~ s/^Date: .*?\r\n//m;
            push @{ $answers{"$head\n\n$res->{body}"} }, $name;
        }

        is(scalar(keys %answers), 1, "$era $method: one answer to all")
            or diag(explain(\%answers));
        like((keys %answers)[0], qr/\AHTTP\/1\.1[ ]200[ ].*"code":-32602,
             "message":"Task[ ]not[ ]found"/sx, "$era $method: that one");
    }
}

is($ann->status($of_ann), 'working', 'nothing has happened to it');
is($nobody->status($of_nobody), 'working', 'nor to the other');
is($ann->status($of_nobody), 'task_not_found', 'who is known is not nobody');
is(at('/fixed', 'x')->status(create(at('/fixed', 'y'))->{taskId}), 'working',
   'an owner that is a constant');
is(at('/none', 'x')->status(create(at('/none', 'y'))->{taskId}), 'working',
   'an owner that is empty');
is(at('/mcp', 'Ann')->status($of_ann), 'task_not_found', 'case matters');
is(at('/mcp', 'an')->status($of_ann), 'task_not_found', 'length matters');

is($ann->as(headers => { 'X-User' => 'o' x 1024 })->legacy('tasks/list')
   ->{status}, 200, 'a long name');
is($ann->as(headers => { 'X-User' => 'o' x 1025 })->legacy('tasks/list')
   ->{status}, 500, 'a name that is too long');


# Limits of an owner: the error says which, and nothing is changed

sub limited {
    my ($got, $code, $reason, $name) = @_;
    is($got->{error}{code}, $code, "$name: code") or diag(explain($got));
    is($got->{error}{data}{reason}, $reason, "$name: reason");
    is($got->{http}, 200, "$name: status");
}

my $few = at('/tasks', 'few');
my @few = map { create($few)->{taskId} } 1 .. 3;
is(scalar(grep { defined } @few), 3, 'as many as are allowed');
limited(create($few), -31010, 'limit_owner_tasks', 'one task more');
my $res = $few->modern('tools/call', { name => 'slow' });
limited({ error => $res->{json}{error}, http => $res->{status} }, -31010,
        'limit_owner_tasks', 'one task more, modern');
$res = $few->legacy('tools/call', { name => 'slow' });
limited({ error => $res->{json}{error}, http => $res->{status} }, -31010,
        'limit_owner_tasks', 'a plain call more');
is(scalar(@{ $few->legacy('tasks/list')->{json}{result}{tasks} }), 3,
   'nothing was created');
ok(create(at('/tasks', 'other'))->{taskId}, 'others are not concerned');
ok(create(at('/mcp', 'few'))->{taskId}, 'nor are places without the limit');

my $many = at('/bytes', 'many');
ok(create($many, arguments => { x => 'x' x 2000 })->{taskId}, 'some bytes');
limited(create($many, arguments => { x => 'x' x 3000 }), -31010,
        'limit_owner_bytes', 'more bytes');
is(scalar(@{ $many->legacy('tasks/list')->{json}{result}{tasks} }), 1,
   'nothing was created');
ok(create($many, arguments => { x => 'x' x 1000 })->{taskId}, 'fewer bytes');
my $note = $many->legacy('tasks/list')->{json}{result}{tasks}[0]{taskId};
$res = $many->legacy('tasks/update', { taskId => $note,
                                       metadata => { x => 'x' x 3000 } });
is($res->{json}{error}{data}{reason}, 'limit_owner_bytes', 'metadata as well');
$res = $many->legacy('tasks/update', { taskId => $note, metadata => {} });
is_deeply($res->{json}{result}, { metadata => {} }, 'which stays as it was')
    or diag($res->{body});

my $big = at('/payload', 'big');
limited(create($big, arguments => { x => 'x' x 1100 }), -32602,
        'payload_too_large', 'a payload that is too large');
is(scalar(@{ $big->legacy('tasks/list')->{json}{result}{tasks} }), 0,
   'nothing was created');

drain();
my $id = create($big, arguments => { x => 'x' x 700 })->{taskId};
ok($id, 'a smaller one');
my $boss = $c->as(work => '/workload');
my $work = $boss->claim('slow');
is($boss->complete($work, { x => 'x' x 1100 })->{error}{data}{reason},
   'payload_too_large', 'a result that is too large');
is($big->status($id), 'working', 'the task goes on');
is($boss->complete($work, { x => 'y' })->{phase}, 'completed', 'a smaller one');


# What directives say, and where they stand

# times are as long as they are when the answer is written
sub policy {
    my ($who, $tool) = @_;
    drain();
    my $task = create($who, name => $tool || 'slow');
    my $work = $c->claim($tool || 'slow');
    $c->complete($work, {});
    return join ' ', $task->{ttl}, $task->{pollInterval},
                     (map { defined $_ ? 100 * int(($_ + 99) / 100) : '-' }
                      @$work{qw/ leaseMs deadlineMs /}), $work->{attempts};
}

is(policy($ann), '11000 3000 44000 33000 7', 'from http and server');
is(policy(at('/inner', 'ann')), '7000 4000 5500 - 1', 'of the location');
is(policy($ann, 'own'), '8000 3000 5000 7000 1', 'of the tool');
is(create(at('/inner', 'ann'), task => { ttl => 99000 })->{ttl}, 22000,
   'the largest TTL from http');
is(create(at('/queue', 'ann'), task => { ttl => undef })->{ttl}, 22000,
   'null asks for it');


# How long a task is kept

sub until_gone {
    my ($who, $id, $begin) = @_;
    my $gone = wait_for { $who->status($id) eq 'task_not_found' } 15;
    return $gone ? time() - $begin : 99;
}

drain();

my $begin = time();
my $short = at('/short', 'ann');
my $kept = at('/kept', 'ann');
my %tasks;

for my $who ($short, $kept) {
    for my $end ('working', 'completed', 'failed', 'cancelled') {
        my $id = create($who)->{taskId};
        $tasks{"$who->{uri} $end"} = $id;
        my $work = $c->claim('slow', leaseMs => 60000);
        $c->complete($work, {}) if $end eq 'completed';
        $c->held('fail', $work, error => { code => 1, message => '' })
            if $end eq 'failed';
        $who->legacy('tasks/cancel', { taskId => $id }) if $end eq 'cancelled';
    }
}

my %when;
while (time() < $begin + 12 && keys %when < keys %tasks) {
    for my $name (grep { !$when{$_} } keys %tasks) {
        $when{$name} = time() - $begin
            if $ann->status($tasks{$name}) eq 'task_not_found';
    }
    sleep(0.05);
}

for my $name (sort keys %tasks) {
    my $least = $name eq '/kept completed' ? 4 : 1;
    my $took = $when{$name} || 99;
    ok($took >= $least - 0.01, "$name: never before its time") or diag($took);
    ok($took < $least + 2, "$name: not for ever") or diag($took);
}


# Time limits, and what becomes of a task that nobody ends

drain();

my $late = at('/queue', 'ann');
$id = create($late)->{taskId};
ok(wait_for(sub { $late->status($id) eq 'failed' }, 10), 'nobody took it');
is($late->legacy('tasks/result', { taskId => $id })->{body},
   '{"jsonrpc":"2.0","id":1,"error":{"code":-31013,"message":"No worker '
   . 'claimed the task in time","data":{"reason":"task_timeout"}}}', 'in time');

$id = create($late)->{taskId};
$work = $c->claim('slow');
ok(wait_for(sub { $late->status($id) eq 'failed' }, 10), 'it ran too long');
is($late->modern('tasks/get', { taskId => $id })->{json}{result}{error}{data}
   {reason}, 'task_timeout', 'says the error');
is($c->complete($work, {})->{error}{data}{reason}, 'task_terminal',
   'the worker is told');

my $again = at('/again', 'ann');
$id = create($again)->{taskId};
my $one = $c->claim('slow');
my $two = $c->claim('slow');
is($two->{taskId}, $id, 'a lost lease: another worker gets the task');
is($two->{attempt}, 2, 'in another attempt');
is($c->complete($one, {})->{error}{data}{reason}, 'lease_lost',
   'the first worker has lost it');
ok(wait_for(sub { $again->status($id) eq 'failed' }, 10),
   'no attempt is left');
is($again->legacy('tasks/result', { taskId => $id })->{json}{error}{data}
   {reason}, 'lease_lost', 'says the error');


# A full zone

my $small = at('/small', 'ann');
my @small = map { create($small)->{taskId} } 1 .. 8;
is(scalar(grep { defined } @small), 8, 'as many as there are slots');
limited(create($small), -31010, 'limit_tasks', 'no slot');
is($small->status($small[0]), 'working', 'nothing is thrown out');
$small->legacy('tasks/cancel', { taskId => $small[0] });
limited(create($small), -31010, 'limit_tasks', 'cancelled tasks are kept too');

my $full = at('/full', 'ann');
my ($n, $got) = (0);
while (($got = create($full, arguments => { x => 'x' x 5000 }))->{taskId}) {
    last if ++$n > 64;
}
ok($n > 0 && $n < 64, 'as many as there is room for');
limited($got, -31010, 'zone_full', 'no room');
ok(create($full)->{taskId}, 'a small one finds room');

ok($t->stop(), 'nginx stops');
is($t->faults('longer than|no memory|mcp_tasks_owner'), '',
   'nothing bad in the log');


# Every value that is none

sub refused {
    my ($conf, $want) = @_;
    $t->configure(http => 'mcp_tasks_zone zone=z:1m;',
                  server => "location /mcp { mcp_tasks zone=z; $conf }");
    my ($ok, $said) = $t->check();
    ok(!$ok, "refused: $conf");
    like($said, qr/\[emerg\] .*$want/, "says why: $conf");
}


sub allowed {
    my ($conf) = @_;
    $t->configure(http => 'mcp_tasks_zone zone=z:1m;',
                  server => "location /mcp { mcp_tasks zone=z; $conf }");
    my ($ok, $said) = $t->check();
    ok($ok, "allowed: $conf") or diag($said);
}

for my $value ('x', '-1', '1.5h', 'max=x', 'max=', '1h max=-1', '1h max=1x',
               '1h min=1', '1h 2h', 'max=2h 1h', '1h max=50d', '50d max=off',
               'OFF')
{
    refused("mcp_tasks_ttl $value;", 'invalid parameter');
}

refused('mcp_tasks_ttl;', 'invalid number of arguments');
refused('mcp_tasks_ttl 1h max=2h x;', 'invalid number of arguments');
refused("mcp_tasks_ttl $_;", '"mcp_tasks_ttl" must not be zero')
    for '0', 'max=0', '0s max=1h';
refused('mcp_tasks_ttl 2h max=1h;',
        '"mcp_tasks_ttl" must not exceed its "max" parameter, which is '
        . '3600000 ms');
refused('mcp_tasks_ttl off max=1h;', 'must not exceed its "max"');
refused('mcp_tasks_ttl 1h; mcp_tasks_ttl 1h;', 'is duplicate');
refused('mcp_tasks_ttl 1h max=2h; mcp_tasks_ttl max=2h;', 'is duplicate');

for my $value ('x', '1h', 'completed=', 'completed=x', 'failed=-1',
               'cancelled=1y1', 'kept=1h', 'completed=50d')
{
    refused("mcp_tasks_retention $value;", 'invalid parameter');
}

refused('mcp_tasks_retention failed=1h failed=1h;', 'is duplicate');
refused('mcp_tasks_retention completed=1 failed=1 cancelled=1 x=1;',
        'invalid number of arguments');

for my $value ('x', '1h', 'queue=', 'queue=x', 'run=-1', 'wait=1h') {
    refused("mcp_tasks_timeout $value;", 'invalid parameter');
}

refused('mcp_tasks_timeout run=1h run=1h;', 'is duplicate');

for my $value ('x', '5', 'tasks=', 'tasks=x', 'tasks=-1', 'tasks=1k',
               'bytes=x', 'bytes=-1', 'payload=', 'payload=1z', 'things=1',
               'tasks=4294967296')
{
    refused("mcp_tasks_limit $value;", 'invalid parameter');
}

refused('mcp_tasks_limit bytes=1k bytes=1k;', 'is duplicate');

for my $value ('x', '-1', '1.5', '1 backoff=', '1 backoff=x', '1 delay=1s',
               '1 2')
{
    refused("mcp_tasks_retries $value;", 'invalid parameter');
}

refused('mcp_tasks_retries 1 backoff=off;', 'invalid parameter');
refused('mcp_tasks_lease 4294967296ms;', 'must not exceed 49 days');
refused('mcp_tasks_poll_interval 4294967295ms;', 'must not exceed 49 days');
refused('mcp_tasks_retries 255;', '"mcp_tasks_retries" must not exceed 254');
refused('mcp_tasks_retries 1; mcp_tasks_retries 1;', 'is duplicate');

for my $name ('poll_interval', 'lease', 'keepalive') {
    refused("mcp_tasks_$name $_;", 'invalid value') for 'x', '-1', '1.5s';
    refused("mcp_tasks_$name;", 'invalid number of arguments');
    refused("mcp_tasks_$name 1s 1s;", 'invalid number of arguments');
    refused("mcp_tasks_$name 1s; mcp_tasks_$name 1s;", 'is duplicate');
    refused("mcp_tasks_$name 0;", "\"mcp_tasks_$name\" must not be zero");
}

refused('mcp_tasks_owner;', 'invalid number of arguments');
refused('mcp_tasks_owner a b;', 'invalid number of arguments');
refused('mcp_tasks_owner $nix;', 'unknown "nix" variable');
refused('mcp_tasks_owner a; mcp_tasks_owner b;', 'is duplicate');

allowed($_) for 'mcp_tasks_ttl off max=off;', 'mcp_tasks_ttl 49d max=off;',
    'mcp_tasks_ttl max=1h;', 'mcp_tasks_ttl 5;',
    'mcp_tasks_retention failed=off;',
    'mcp_tasks_timeout queue=off run=off;', 'mcp_tasks_retries 254;',
    'mcp_tasks_retries backoff=2s;', 'mcp_tasks_limit tasks=0;',
    'mcp_tasks_limit tasks=1 bytes=1m payload=1k;';

done_testing();
