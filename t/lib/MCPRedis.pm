package MCPRedis;

# A Redis server for a test:
#
#   my $redis = MCPRedis->new(dir => $dir, conf => { requirepass => 'x' });
#   $redis->cli('SET', 'a', 1);
#   $redis->kill_server(); $redis->start();
#
# It listens on the unix socket $redis->{socket} and the port $redis->{port};
# with "tls", a directory with certificates, the port is for TLS.

use warnings;
use strict;

use File::Path qw/ make_path /;
use IO::Socket::UNIX;
use POSIX qw/ WNOHANG /;

use MCPFile qw/ slurp write_file /;
use MCPTasks qw/ free_port wait_for /;

my %started;
my $owner = $$;


sub program {
    my $private = ($ENV{MCP_TASKS_REDIS} // '');
    return -x $private ? $private : 'redis-server';
}


sub new {
    my ($class, %conf) = @_;
    my $self = bless { conf => {}, start => 1, %conf }, $class;

    make_path($self->{dir});
    $self->{socket} = "$self->{dir}/redis.sock";
    $self->{port} ||= free_port();
    $self->start() if $self->{start};

    return $self;
}


sub start {
    my ($self, %conf) = @_;
    $self->{conf} = { %{ $self->{conf} }, %conf };

    my %all = (
        bind => '127.0.0.1', unixsocket => $self->{socket},
        dir => $self->{dir}, logfile => "$self->{dir}/redis.log",
        appendonly => 'yes', appendfsync => 'no', save => '""',
        'enable-debug-command' => 'yes', daemonize => 'no',
        $self->{tls}
            ? (port => 0, 'tls-port' => $self->{port},
               'tls-cert-file' => "$self->{tls}/server.crt",
               'tls-key-file' => "$self->{tls}/server.key",
               'tls-ca-cert-file' => "$self->{tls}/ca.crt",
               'tls-auth-clients' => 'no')
            : (port => $self->{port}),
        %{ $self->{conf} });

    write_file("$self->{dir}/redis.conf",
               join '', map { "$_ $all{$_}\n" } sort keys %all);
    unlink $self->{socket};

    my $pid = fork();
    die "fork: $!\n" unless defined $pid;

    if ($pid == 0) {
        open(STDOUT, '>>', "$self->{dir}/stdout");
        open(STDERR, '>>', "$self->{dir}/stdout");
        exec(program(), "$self->{dir}/redis.conf") or POSIX::_exit(127);
    }

    $self->{pid} = $pid;
    $started{$pid} = 1;

    (wait_for {
        die "redis-server exited:\n" . slurp("$self->{dir}/stdout")
            . slurp("$self->{dir}/redis.log")
            if waitpid($pid, WNOHANG) == $pid;
        return IO::Socket::UNIX->new(Peer => $self->{socket});
    }) or die "redis-server did not start\n";
}


# at once, as when it crashes; its data is what it has written so far
sub kill_server {
    my ($self) = @_;
    my $pid = delete $self->{pid} or return;
    kill('KILL', $pid);
    waitpid($pid, 0);
    delete $started{$pid};
}


# a command over a connection of its own; a list for an array
sub cli {
    my ($self, @args) = @_;
    my $s = IO::Socket::UNIX->new(Peer => $self->{socket})
        or die "no connection to redis-server: $!\n";

    for my $words (@{ $self->{auth} ? [['AUTH', @{ $self->{auth} }]] : [] },
                   \@args)
    {
        print $s '*' . @$words . "\r\n",
                 map { '$' . length($_) . "\r\n$_\r\n" } @$words;
        $s->flush();
        my @got = reply($s);
        return wantarray ? @got : $got[0] if $words == \@args;
    }
}


sub reply {
    my ($s) = @_;
    my $line = <$s> // die "no reply of redis-server\n";
    $line =~ s/\r\n\z//;
    my ($type, $rest) = $line =~ /^(.)(.*)$/;

    return "-$rest" if $type eq '-';
    return $rest if $type eq '+' || $type eq ':';

    if ($type eq '$') {
        return undef if $rest < 0;
        read($s, my $data, $rest + 2);
        return substr($data, 0, $rest);
    }

    return map { reply($s) } 1 .. $rest;
}


sub DESTROY {
    my ($self) = @_;
    local ($?, $@, $!);
    $self->kill_server() if $$ == $owner;
}


END {
    if ($$ == $owner) {
        my $status = $?;

        for my $pid (keys %started) {
            kill('KILL', $pid);
            waitpid($pid, 0);
        }

        $? = $status;
    }
}


1;
