# Servers that are not what they should be: old ones, other ones, broken ones.

use warnings;
use strict;

use FindBin;
use lib "$FindBin::Bin/lib";

use File::Temp qw/ tempdir /;
use IO::Socket::UNIX;
use POSIX ();
use Test::More;

use MCPTasks qw/ wait_for /;

# short: it has the paths of sockets
my $dir = tempdir('mcp-redis-XXXXXX', TMPDIR => 1, CLEANUP => 1);
my $run = 'run_id:' . 'a' x 40 . "\r\n";


sub bulk { return '$' . length($_[0]) . "\r\n$_[0]\r\n" }

sub info {
    my ($text) = @_;
    return sub { $_[0] =~ /^INFO/ ? bulk($text) : "+OK\r\n" };
}


# what it answers to a command; nothing: it closes the connection
my $good = info("${run}redis_version:7.0.15\r\nrole:master\r\n");

my %servers = (
    redis => $good,
    valkey => info("${run}redis_version:7.2.4\r\nvalkey_version:8.0.1\r\n"
                   . "role:master\r\nused_memory:12\r\nmaxmemory:34\r\n"),
    old => info("${run}redis_version:6.2.14\r\nrole:master\r\n"),
    odd => info("${run}redis_version:latest\r\n"),
    silent => info(''),
    lines => info("\r\n:\r\n:::\r\nrun_id\r\nrun_id:short\r\nrole:\r\n"
                  . 'maxmemory_policy:' . 'x' x 1000 . "\r\nused_memory:-x"),
    loading => info("${run}redis_version:7.0.15\r\nloading:1\r\n"),
    policy => info("${run}redis_version:7.0.15\r\nrole:master\r\n"
                   . "maxmemory_policy:allkeys-random\r\n"),
    noperm => sub { $_[0] =~ /^INFO/ ? "-NOPERM no permissions\r\n"
                                     : $good->($_[0]) },
    noname => sub { $_[0] =~ /^CLIENT/ ? "-NOPERM no permissions\r\n"
                                       : $good->($_[0]) },
    garbage => sub { "hello\r\n" },
    http => sub { "HTTP/1.1 400 Bad Request\r\n\r\n" },
    huge => sub { "\$99999999999999999999\r\n" },
    deep => sub { "*1\r\n" x 100 },
    wrong => sub { $_[0] =~ /^INFO/ ? ":1\r\n" : "*0\r\n" },
    closes => sub { undef },
    chatty => sub { ($_[0] =~ /^SET/ ? "+OK\r\n" : '') . $good->($_[0]) },
    full => sub { "-ERR max number of clients reached\r\n" },
    binary => sub { "-ERR \x01\x1b[31m\x7f\r\n" },
);

my %expected = (
    old => qr/version "6\.2\.14" of the server is not supported/,
    odd => qr/version "latest" of the server is not supported/,
    silent => qr/INFO has no run_id/,
    lines => qr/INFO has no run_id/,
    loading => qr/the server is loading its data/,
    policy => qr/maxmemory-policy "allkeys-random" evicts tasks/,
    noperm => qr/NOPERM no permissions/,
    garbage => qr/Protocol error/, http => qr/Protocol error/,
    huge => qr/./, deep => qr/./,
    wrong => qr/INFO has no run_id/,
    closes => qr/the server closed the connection|reset by peer/,
    full => qr/max number of clients reached/,
    binary => qr/^ERR  +\[31m $/,
);

my @pids;

for my $name (sort keys %servers) {
    my $listen = IO::Socket::UNIX->new(Local => "$dir/$name", Listen => 16)
        or die "no socket: $!\n";
    my $pid = fork() // die "fork: $!\n";

    if ($pid) {
        push @pids, $pid;
        next;
    }

    local $SIG{PIPE} = 'IGNORE';

    while (my $s = $listen->accept()) {
        while (defined(my $line = <$s>)) {
            my @words;

            for (1 .. ($line =~ /^\*(\d+)/)[0]) {
                my ($length) = <$s> =~ /^\$(\d+)/;
                read($s, my $word, $length + 2);
                push @words, substr($word, 0, $length);
            }

            my $answer = $servers{$name}->("@words") // last;
            print $s $answer;
            $s->flush();
        }

        close($s);
    }

    POSIX::_exit(0);
}

END { kill('KILL', @pids) }

my $t = MCPTasks->new(
    http => join('', map { "mcp_tasks_redis $_ { server unix:$dir/$_;"
                           . " timeout 1s; retry 10ms max=50ms; }\n" }
                     sort keys %servers),
    server => join('', map { "location /$_ { mcp_tasks_redis_probe $_; }\n" }
                       sort keys %servers));

sub state { return $t->probe('op=state', undef, "/$_[0]") }

sub sent {
    my ($name, $n) = @_;
    return $t->probe("op=send&cmd=SET%20a%20b&n=" . ($n || 1), undef,
                     "/$name");
}

for my $name (sort keys %expected) {
    is(sent($name)->{failed}, 1, "$name: not executed");
    my $state = state($name);
    is($state->{accepted}, 0, "$name: not accepted");
    like($state->{error}, $expected{$name}, "$name: error");
    is($state->{in_flight}, 0, "$name: nothing is in flight");
}

is(sent($_)->{last}, 'OK', "$_: accepted") for qw/ redis valkey noname /;

{
    my $state = state('valkey');
    is($state->{valkey}, 1, 'Valkey is recognized');
    is($state->{version}, '8.0.1', 'by its own version');
    is($state->{memory}, 12, 'memory used');
    is($state->{max_memory}, 34, 'memory limit');
    is(state('redis')->{valkey}, 0, 'Redis is not');
    like($t->log(), qr/\[warn\].*"redis": appendonly is off/,
         'a warning if there is no AOF');
}

# every reply is followed by one that nobody asked for
{
    my $got = sent('chatty', 100);
    is($got->{replies} + $got->{failed}, 100, 'every command ends once');
}

my ($worker) = $t->worker_pids();
ok($t->stop(), 'nginx exits');
is($t->faults(qr/redis "\w+" at /), '', 'no other errors in the log');
unlike($t->log(), qr/exited on signal/, 'no worker process crashed');

done_testing();
