package MCPScripts;

# The scripts of the store as they are embedded in the module, on a Redis server
# of their own.

use warnings;
use strict;

use File::Temp;
use FindBin;
use IO::Select;
use IO::Socket::UNIX;
use POSIX ();
use Time::HiRes qw/ sleep time /;

use MCPFile qw/ slurp /;
use MCPRedis;

my %started;


# Starts a server on a socket in a folder of its own; returns a connection.
sub start {
    my ($class, @options) = @_;

    my $dir = File::Temp->newdir();
    my $socket = "$dir/redis.sock";
    my $pid = fork() // die "fork: $!\n";

    if ($pid == 0) {
        open STDOUT, '>', "$dir/log";
        open STDERR, '>&', \*STDOUT;
        exec MCPRedis::program(), '--port', 0, '--unixsocket', $socket, '--dir', "$dir",
             '--save', '', @options
            or POSIX::_exit(1);
    }

    $started{$pid} = 1;

    my $self = bless { dir => $dir, socket => $socket, pid => $pid }, $class;

    for (1 .. 100) {
        last if -S $socket && $self->connect();
        sleep 0.05;
    }

    $self->{connection} or die "no server: ", slurp("$dir/log");
    ($self->{run}) = $self->command('INFO', 'server') =~ /run_id:(\w{40})/;
    $self->load();

    return $self;
}


sub connect {
    my ($self) = @_;

    $self->{ahead} = '';
    return $self->{connection} = IO::Socket::UNIX->new(Peer => $self->{socket});
}


# another connection to the same server
sub another {
    my ($self) = @_;
    my $other = bless { %$self }, ref $self;
    $other->connect() or die "no connection: $!\n";
    return $other;
}


sub stop {
    my ($self) = @_;
    kill 'KILL', $self->{pid};
    waitpid $self->{pid}, 0;
    delete $started{$self->{pid}};
}


END {
    my $status = $?;
    kill 'KILL', $_ for keys %started;
    waitpid $_, 0 for keys %started;
    $? = $status;
}


sub send {
    my ($self, @words) = @_;
    my $text = '*' . @words . "\r\n";
    $text .= '$' . length($_) . "\r\n$_\r\n" for @words;

    while (length $text) {
        my $n = syswrite $self->{connection}, $text;
        defined $n or die "write: $!\n";
        substr $text, 0, $n, '';
    }
}


# the next bytes: a line, or as many as given
sub bytes {
    my ($self, $n) = @_;

    while (1) {
        my $at = defined $n ? $n : index $self->{ahead}, "\r\n";

        return substr substr($self->{ahead}, 0, $at + 2, ''), 0, $at
            if $at >= 0 && length $self->{ahead} >= $at + 2;

        sysread $self->{connection}, $self->{ahead}, 65536,
                length $self->{ahead} or die "the connection is closed\n";
    }
}


# A reply: text, number, list or undef; an error is { error => its text }.
sub reply {
    my ($self) = @_;
    my $line = $self->bytes();
    my $type = substr $line, 0, 1, '';

    return $line if $type eq '+' || $type eq ':';
    return { error => $line } if $type eq '-';
    return undef if $line < 0;
    return [map { $self->reply() } 1 .. $line] if $type eq '*';
    return $self->bytes($line);
}


sub command {
    my ($self, @words) = @_;
    $self->send(@words);
    return $self->reply();
}


# the texts of all messages that have arrived
sub messages {
    my ($self, $timeout) = @_;
    my @texts;

    while ($self->{ahead} ne ''
           || IO::Select->new($self->{connection})
              ->can_read($timeout // 0.1)) {
        my $reply = $self->reply();
        push @texts, $reply->[2] if $reply->[0] eq 'smessage';
    }

    return @texts;
}


# The scripts by name, as the module has them.
sub scripts {
    my $root = "$FindBin::Bin/..";
    my $file = File::Temp->new(SUFFIX => '.c');

    system('sh', "$root/src/store/redis/embed.sh", "$file") == 0
        or die "the scripts cannot be embedded\n";

    my $source = slurp("$file");
    my %texts;

    while ($source =~ /ngx_mcp_redis_text_(\w+)\[\] = \{\n(.*?)\};/sg) {
        $texts{$1} = join '', map { chr hex } split /,\s*/, $2;
    }

    return %texts;
}


sub load {
    my ($self) = @_;
    my %texts = scripts();

    for my $name (keys %texts) {
        my $sha = $self->command('SCRIPT', 'LOAD', $texts{$name});
        die "$name: $sha->{error}\n" if ref $sha;
        $self->{sha}{$name} = $sha;
    }
}


sub script {
    my ($self, $name, $keys, @args) = @_;

    return $self->command('EVALSHA', $self->{sha}{$name}, scalar @$keys,
                          @$keys, @args);
}


1;
