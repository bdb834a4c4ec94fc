# Connections to Redis: opening them, losing them, and the commands meanwhile.

use warnings;
use strict;

use FindBin;
use lib "$FindBin::Bin/lib";

use File::Path qw/ make_path /;
use File::Temp qw/ tempdir /;
use IO::Socket::INET;
use JSON::PP;
use POSIX ();
use Test::More;
use Time::HiRes qw/ sleep time /;

use MCPFile qw/ slurp write_file /;
use MCPProcess qw/ descriptors_of /;
use MCPRedis;
use MCPTasks qw/ free_port scale wait_for /;

# short: it has the paths of sockets
my $dir = tempdir('mcp-redis-XXXXXX', TMPDIR => 1, CLEANUP => 1);

make_path("$dir/tls");

sub openssl {
    system("cd $dir/tls && openssl @_ > openssl.log 2>&1") == 0
        or die "openssl @_: " . slurp("$dir/tls/openssl.log");
}

write_file("$dir/tls/san",
           "subjectAltName = DNS:redis.example, IP:127.0.0.1\n");
openssl("req -x509 -newkey rsa:2048 -nodes -days 2 -subj /CN=$_"
        . " -keyout $_.key -out $_.crt") for qw/ ca other /;
openssl('req -newkey rsa:2048 -nodes -subj /CN=redis'
        . ' -keyout server.key -out server.csr');
openssl('x509 -req -in server.csr -CA ca.crt -CAkey ca.key -CAcreateserial'
        . ' -days 2 -extfile san -out server.crt');

write_file("$dir/good", "secret word\n");
write_file("$dir/bad", "wrong\n");

my $redis = MCPRedis->new(dir => "$dir/plain");
my $locked = MCPRedis->new(dir => "$dir/locked",
                           conf => { requirepass => '"secret word"' });
$locked->{auth} = ['secret word'];
$locked->cli(qw/ ACL SETUSER ann on /, '>secret word', '~*', '&*', '+@all');
my $tls = MCPRedis->new(dir => "$dir/secure", tls => "$dir/tls");
my $late = MCPRedis->new(dir => "$dir/late", start => 0);

# answers every question about an IPv4 address, with that of this machine
my $dns = IO::Socket::INET->new(LocalAddr => '127.0.0.1', Proto => 'udp')
    or die "no socket: $!\n";
my $dns_pid = fork() // die "fork: $!\n";

if ($dns_pid == 0) {
    while ($dns->recv(my $asked, 512)) {
        my $end = index($asked, "\0", 12) + 5;
        $dns->send(substr($asked, 0, 2) . pack('n5', 0x8180, 1, 1, 0, 0)
                   . substr($asked, 12, $end - 12)
                   . pack('n3Nn C4', 0xc00c, 1, 1, 1, 4, 127, 0, 0, 1));
    }

    POSIX::_exit(0);
}

END { kill('KILL', $dns_pid) if $dns_pid }

my $times = 'timeout 2s; retry 10ms max=100ms;';
my $secure = "server 127.0.0.1:$tls->{port}; tls on; $times";

my %blocks = (
    unix => "server unix:$redis->{socket}; $times",
    tcp => "server 127.0.0.1:$redis->{port}; database 3; $times",
    host => "server redis.test:$redis->{port}; $times",
    late => "server 127.0.0.1:$late->{port}; $times",
    auth => "server unix:$locked->{socket}; password_file $dir/good; $times",
    user => "server unix:$locked->{socket}; user ann;"
            . " password_file $dir/good; $times",
    wrong => "server unix:$locked->{socket}; password_file $dir/bad; $times",
    none => "server unix:$locked->{socket}; $times",
    tls => "$secure tls_trusted_certificate $dir/tls/ca.crt;",
    named => "$secure tls_trusted_certificate $dir/tls/ca.crt;"
             . ' tls_name redis.example;',
    misnamed => "$secure tls_trusted_certificate $dir/tls/ca.crt;"
                . ' tls_name other.example;',
    untrusted => "$secure tls_trusted_certificate $dir/tls/other.crt;",
    unverified => "$secure tls_verify off;",
    notls => "server 127.0.0.1:$redis->{port}; tls on; tls_verify off; $times",
);

my $t = MCPTasks->new(
    http => 'resolver 127.0.0.1:' . $dns->sockport() . ' valid=1s ipv6=off;'
            . "resolver_timeout 500ms;\n"
            . join('', map { "mcp_tasks_redis $_ { $blocks{$_} }\n" }
                     sort keys %blocks),
    server => join('', map { "location /$_ { mcp_tasks_redis_probe $_; }\n" }
                       sort keys %blocks));


# the probe of a block
sub probe {
    my ($name, $args, $s) = @_;
    $args =~ s/ /+/g;
    $args =~ s/\+/%20/g;
    return $t->probe($args, $s, "/$name");
}

sub sent {
    my ($name, $cmd, $more) = @_;
    $cmd =~ s/%/%25/g;
    return probe($name, "op=send&cmd=$cmd" . ($more ? "&$more" : ''));
}

# sends without waiting for the end
sub begin {
    my ($name, $cmd, $more) = @_;
    $cmd =~ s/%/%25/g;
    $cmd =~ s/ /%20/g;
    my $s = $t->connect();
    MCPTasks::send_raw($s, MCPTasks::message('GET',
        "/$name?op=send&cmd=$cmd" . ($more ? "&$more" : ''), {}));
    return $s;
}

sub ended {
    my ($s) = @_;
    my $res = MCPTasks::read_response($s, 'GET');
    return JSON::PP->new->decode($res->{body});
}

sub state { return probe($_[0], 'op=state') }

sub clients {
    my ($server) = @_;
    return scalar grep { /name=nginx-mcp-tasks/ }
           split /\n/, $server->cli('CLIENT', 'LIST');
}


# what connects, and what is refused

for my $name (qw/ unix tcp host auth user tls named unverified /) {
    is(sent($name, "SET $name yes")->{last}, 'OK', "$name: connected");
    my $state = state($name);
    is($state->{accepted}, 1, "$name: accepted");
    is($state->{error}, '', "$name: no error");
    is_deeply([@{ $state->{conns}[1] }{qw/ is_up up first down /}],
              [1, 1, 1, 0], "$name: up, for the first time");
}

is($redis->cli('GET', 'unix'), 'yes', 'the command was executed');
is($redis->cli('GET', 'tcp'), undef, 'in the database');

{
    my $state = state('unix');
    my ($run) = $redis->cli('INFO', 'server') =~ /^run_id:(\w+)/m;
    is($state->{run_id}, $run, 'run_id');
    like($state->{version}, qr/^\d+\.\d+/, 'version');
    is($state->{appendonly}, 1, 'AOF');
    is($state->{policy}, 'noeviction', 'policy');
    cmp_ok($state->{memory}, '>', 100_000, 'memory');
}

my %refused = (
    wrong => qr/WRONGPASS/, none => qr/NOAUTH/,
    misnamed => qr/does not match "other\.example"/,
    untrusted => qr/certificate is not trusted/);

for my $name (sort keys %refused) {
    my $got = sent($name, 'SET a b');
    is($got->{failed}, 1, "$name: not sent");
    is($got->{last}, 'none', "$name: and known not to be");
    my $state = state($name);
    is($state->{accepted}, 0, "$name: not accepted");
    like($state->{error}, $refused{$name}, "$name: error");
    is(sent($name, 'SET a b')->{declined}, 1, "$name: then declined at once");
}

is(sent('notls', 'SET a b')->{failed}, 1, 'TLS with a server that has none');
like(state('notls')->{error}, qr/TLS handshake|timed out/, 'error of it');

write_file("$dir/bad", "secret word\n");
ok((wait_for { state('wrong')->{accepted} } 5), 'the password is corrected');
is(sent('wrong', 'SET a b')->{last}, 'OK', 'and commands are executed');

{
    my @lines = grep { /redis "misnamed"/ } split /\n/, $t->log();
    is(scalar @lines, 1, 'an error is logged once');
}


# replies

is(sent('unix', 'INCR n')->{last}, 1, 'an integer');
like(sent('unix', 'INCR unix')->{last}, qr/^ERR value is not/, 'an error');
is(sent('unix', 'NOPE')->{errors}, 1, 'an unknown command');
is(sent('unix', 'SET big ', 'size=3000000')->{last}, 'OK', 'a large command');
is(sent('unix', 'STRLEN big')->{last}, 3_000_000, 'all of it');
is(sent('unix', 'GET big')->{replies}, 1, 'a large reply');
is(sent('tls', 'SET big ', 'size=3000000')->{last}, 'OK', 'large, with TLS');
is(sent('tls', 'GET big')->{replies}, 1, 'a large reply with TLS');

# the script "watch", for a server that nobody has opened: refused, but executed
my $script = '5 t r x w m run';
is(sent('unix', "$script ''", 'script=4')->{replies}, 1, 'a script');

$redis->cli('SCRIPT', 'FLUSH');
{
    my $got = sent('unix', "$script ''", 'script=4&n=100');
    is($got->{replies}, 100, 'scripts that the server has lost are loaded');
    is($got->{errors}, 0, 'and executed');
    is(state('unix')->{reconnects}, 0, 'on the same connection');
}


# limits

{
    my $got = sent('unix', 'SET lim% 1', 'n=1025');
    is($got->{replies}, 1024, '1,024 commands in flight');
    is($got->{declined}, 1, 'another one is declined');
    $got = sent('unix', 'SET lim ', 'n=5&size=3000000');
    is($got->{declined}, 3, 'as are more than 8 megabytes');
    is($got->{replies}, 2, 'up to that they are sent');
    is(sent('unix', 'SET lim ', 'size=9000000')->{last}, 'OK',
       'a single command may be longer');
    is(state('unix')->{in_flight}, 0, 'nothing is in flight');
    is(state('unix')->{bytes}, 0, 'no bytes either');
}


# a server that starts after nginx

{
    my $s = begin('late', 'SET a %', 'n=10');
    sleep(0.3);
    $late->start();
    is(ended($s)->{replies}, 10, 'commands wait for the server');

    my $run = state('late')->{run_id};
    my @many = map { begin('late', "SET k$_-% 1", 'n=100') } 1 .. 5;
    push @many, begin('late', 'DEBUG SLEEP 0.5');
    sleep(0.1);
    @many = (@many, map { begin('late', "SET k$_-% 1", 'n=100') } 6 .. 10);
    $late->kill_server();
    sleep(0.2);
    $late->start();

    my ($replies, $failed) = (0, 0);
    for my $got (map { ended($_) } @many) {
        $replies += $got->{replies};
        $failed += $got->{failed};
    }

    is($replies, 1001, 'all are answered after a restart');
    is($failed, 0, 'none failed');
    is($late->cli('DBSIZE'), 1001, 'and all executed');

    my $state = state('late');
    isnt($state->{run_id}, $run, 'another run_id');
    is($state->{conns}[1]{first}, 2, 'which is reported');
    is($state->{conns}[1]{down}, 1, 'as is the loss');
    is($state->{reconnects}, 1, 'and counted');
    cmp_ok($state->{resent}, '>', 0, 'commands were sent again');

    $late->kill_server();
    my $got = sent('late', 'SET a b');
    is($got->{failed}, 1, 'without a server a command fails in time');
    my $began = time();
    is(sent('late', 'SET a b')->{declined}, 1, 'then the next are declined');
    cmp_ok(time() - $began, '<', 0.5, 'at once');
    is(state('late')->{in_flight}, 0, 'nothing is in flight');

    $late->start();
    ok((wait_for { state('late')->{conns}[1]{is_up} } 5), 'it comes back');
    is(sent('late', 'SET a b')->{last}, 'OK', 'and is used again');
}


# a server that hangs

{
    my $began = time();
    my $slow = begin('tcp', 'DEBUG SLEEP 3');
    my $other = begin('unix', 'SET other %', 'n=10');
    is(ended($slow)->{last}, 'none, sent',
       'a command that takes longer may have been executed');
    cmp_ok(time() - $began, '<', 2.9, 'it fails in time');
    is(ended($other)->{failed}, 10, 'as do those of another connection');
    sleep(1.5);
    ok((wait_for { state('tcp')->{conns}[1]{is_up} } 10), 'it comes back');
    is(sent('tcp', 'PING')->{last}, 'PONG', 'and answers the right commands');
}


# a name whose resolver is away

{
    kill('KILL', $dns_pid);
    waitpid($dns_pid, 0);
    $dns_pid = 0;
    sleep(1.5);
    ok((wait_for { state('host')->{conns}[1]{is_up} } 10), 'up again');
    my $up = state('host')->{conns}[1]{up};
    $redis->cli(qw/ CLIENT KILL TYPE normal SKIPME yes /);
    ok((wait_for { state('host')->{conns}[1]{up} == $up + 1 } 10),
       'the last address of the name is used again');
    is(sent('host', 'PING')->{last}, 'PONG', 'for commands, too');
}


# connections that are killed all the time

{
    ok((wait_for { state('unix')->{conns}[1]{is_up} } 10), 'up again');
    my $down = state('unix')->{conns}[1]{down};
    my $n = scale(20);
    my ($replies, $failed) = (0, 0);

    for my $i (1 .. $n) {
        my $s = begin('unix', "SET kill$i-% 1", 'n=1000');
        $redis->cli(qw/ CLIENT KILL TYPE normal SKIPME yes /) for 1 .. 5;
        my $got = ended($s);
        $replies += $got->{replies};
        $failed += $got->{failed};
    }

    is($replies, $n * 1000, 'every command is answered');
    is($failed, 0, 'none fails');
    is(scalar(() = $redis->cli('KEYS', 'kill*')), $n * 1000,
       'every command is executed');
    cmp_ok(state('unix')->{conns}[1]{down}, '>', $down,
           'connections were lost');
}


# messages

{
    probe('unix', 'op=subscribe&name=ch&n=64');
    ok((wait_for { state('unix')->{conns}[2]{is_up} } 5), 'subscribed');
    is($redis->cli('SPUBLISH', 'ch63', 'hello'), 1, 'there is a receiver');
    ok((wait_for { state('unix')->{messages} == 1 } 5), 'a message');
    is(state('unix')->{message}, 'ch63 hello', 'its channel and text');

    $redis->cli(qw/ CLIENT KILL TYPE pubsub /);
    ok((wait_for { state('unix')->{conns}[2]{up} == 2 } 5), 'up again');
    is($redis->cli('SPUBLISH', 'ch0', 'again'), 1, 'subscribed again');
    ok((wait_for { state('unix')->{messages} == 2 } 5), 'another message');
    is(probe('unix', 'op=send&cmd=PING&conn=2')->{declined}, 1,
       'no commands there');
}


# servers that must not be used

{
    my %setting = ('allkeys-lru' => 0, 'noeviction' => 1,
                   'volatile-lru' => 1);

    for my $policy ('allkeys-lru', 'volatile-lru', 'noeviction') {
        $redis->cli('CONFIG', 'SET', 'maxmemory-policy', $policy);
        $redis->cli(qw/ CLIENT KILL TYPE normal SKIPME yes /);
        ok((wait_for { state('unix')->{accepted} == $setting{$policy}
                       && (!$setting{$policy}
                           || state('unix')->{policy} eq $policy) } 5),
           "$policy: " . ($setting{$policy} ? 'accepted' : 'refused'));
    }

    like($t->log(), qr/maxmemory-policy "allkeys-lru" evicts tasks/,
         'an error in the log');
    like($t->log(), qr/\[warn\].*maxmemory-policy is "volatile-lru"/,
         'a warning in the log');

    ok((wait_for { state('unix')->{conns}[1]{is_up} } 5), 'up');
    $redis->cli('REPLICAOF', '127.0.0.1', $locked->{port});
    my $s = begin('unix', 'SET a b');
    ok((wait_for { state('unix')->{error} =~ /replica|READONLY/ } 5),
       'a replica is refused');
    $redis->cli('REPLICAOF', 'NO', 'ONE');
    is(ended($s)->{last}, 'OK', 'a command waits for its promotion');
}


# a handler that closes everything

{
    my $got = sent('tcp', 'SET c% 1', 'n=100&close=1');
    is($got->{replies}, 1, 'one reply');
    is($got->{failed}, 99, 'the handlers of the others are called');
    is(sent('tcp', 'PING')->{declined}, 1, 'no more commands');
}


# reload and exit

{
    is(sent('auth', 'PING')->{last}, 'PONG', 'a connection before a reload');
    my $faults = qr/redis "(?:unix|tcp|wrong|none|misnamed|untrusted)" at /;
    my @old = $t->worker_pids();
    my $s = begin('late', 'DEBUG SLEEP 1');
    sleep(0.2);
    ok($t->reload_all(), 'a reload');
    is(ended($s)->{last}, 'OK', 'a pending command delays the exit');
    ok((wait_for { clients($redis) == 0 && clients($locked) == 0
                   && clients($late) == 0 } 5),
       'the connections of the old process are closed');

    is(sent('auth', 'PING')->{last}, 'PONG', 'a connection of the new one');
    my $began = time();
    ok($t->stop(), 'nginx exits');
    cmp_ok(time() - $began, '<', 2, 'without a delay');
    is(clients($locked), 0, 'and has closed its connections');
    is($t->faults($faults), '', 'no errors in the log');
}

done_testing();
