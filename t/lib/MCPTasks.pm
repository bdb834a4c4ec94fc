package MCPTasks;

# nginx for a test that wants to start, reload, kill and restart it itself:
#
#   my $t = MCPTasks->new(http => 'mcp_tasks_zone zone=z:1m;',
#                         server => 'location /mcp { mcp_tasks zone=z; }');
#   my $res = $t->post('/mcp', '{"jsonrpc":"2.0","id":1,"method":"ping"}');
#   $t->stop();
#
# tools/test.sh sets the variables that say which nginx and which module: the
# test build, unless "module" names another.  "files" are written next to the
# configuration, "tools" to tools.json there (MCPTools.pm); "env" is nginx's
# environment in addition to ours.  Each of "surfaces" has a location of that
# name for the zone "z": mcp is the endpoint, worker, status and probe are those
# of the directives mcp_tasks_worker, mcp_tasks_status and mcp_tasks_probe.
#
# With MCP_TASKS_STORE=sqlite in the environment every zone that has no store
# gets one, and MCP_TASKS_SYNC says how; it is a new one whenever nginx is
# started, as zones are.  MCP_TASKS_STORE=late is the store of the test build
# that does and answers everything later.  MCP_TASKS_STORE=redis is a Redis
# server of the test, in MCP_TASKS_PARTITIONS partitions.

use warnings;
use strict;

use File::Basename qw/ basename /;
use File::Path qw/ make_path remove_tree /;
use File::Temp qw/ tempdir /;
use IO::Select;
use IO::Socket::INET;
use JSON::PP;
use POSIX qw/ WNOHANG /;
use Socket qw/ :DEFAULT IPPROTO_TCP SO_RCVBUF TCP_NODELAY /;
use Time::HiRes qw/ sleep time /;

use MCPFile qw/ slurp write_file /;
use MCPJson;
use MCPProcess qw/ descriptors_of pids_of /;
use MCPTools qw/ tools_json /;

use Exporter qw/ import /;

our @EXPORT_OK = qw/ free_port scale wait_for workers /;

# an answer that takes longer will not come
use constant TIMEOUT => 60;

my %started;
my $owner = $$;


# several workers, where a test is about that: at least two
sub workers {
    my $n = $ENV{MCP_TASKS_WORKERS} || 4;
    return $n < 2 ? 2 : $n;
}


# fewer rounds where everything is slow
sub scale {
    my ($n) = @_;
    my $scale = $ENV{MCP_TASKS_SCALE} || 1;
    my $scaled = int($n * $scale);
    return $scaled < 1 ? 1 : $scaled;
}


# what the code answers, as soon as that is true; nothing when time is up
sub wait_for(&;$) {
    my ($code, $seconds) = @_;
    my $end = time() + ($seconds || 30);

    for (;;) {
        my $got = $code->();
        return $got if $got;
        return if time() > $end;
        sleep(0.02);
    }
}


# Below the range that the kernel takes ports of outgoing connections from.
sub free_port {
    for (1 .. 1000) {
        my $port = 20000 + int rand 12000;
        return $port if IO::Socket::INET->new(LocalAddr => '127.0.0.1',
                                              LocalPort => $port, Listen => 1);
    }

    die "no free port\n";
}


sub new {
    my ($class, %conf) = @_;
    my $name = basename($0, '.t');

    my $self = bless {
        workers => 1, connections => 256, events => '', listen => '',
        main => '', http => '', server => '', surfaces => [], module => '',
        env => {}, user => 'root', wrap => [], %conf, dir => "$ENV{MCP_TASKS_BUILD}/servroot-$name",
    }, $class;

    $self->{files} = { %{ $conf{files} || {} } };
    $self->{files}{'tools.json'} = tools_json(@{ $conf{tools} })
        if $conf{tools};

    # of this test, or what an earlier run left
    remove_tree($self->{dir});
    make_path("$self->{dir}/logs");
    $self->{log} = "$self->{dir}/logs/error.log";

    for (1 .. 5) {
        $self->{port} = free_port();
        return $self if $self->start();
        last if $self->log() !~ /Address already in use/;
    }

    die "nginx did not start:\n" . $self->log();
}


# writes the configuration anew, with what changed
sub configure {
    my ($self, %conf) = @_;
    $self->{$_} = $conf{$_} for keys %conf;

    write_file("$self->{dir}/$_", $self->{files}{$_})
        for keys %{ $self->{files} };

    my $http = $self->stored($self->{http});
    my $module = $self->{module} || $ENV{MCP_TASKS_TEST_MODULE};

    # only the test build has that store
    $module = $ENV{MCP_TASKS_TEST_MODULE}
        if ($ENV{MCP_TASKS_STORE} // '') eq 'late';

    my $user = $> == 0 ? "user  $self->{user};\n" : '';
    my $surfaces = join "\n        ", map {
        "location /$_ { mcp_tasks" . ($_ eq 'mcp' ? '' : "_$_") . ' zone=z; }'
    } @{ $self->{surfaces} };
    my $temp = join '', map { "    ${_}_temp_path  $self->{dir}/$_;\n" }
                        qw/ client_body proxy fastcgi uwsgi scgi /;

    write_file("$self->{dir}/nginx.conf", <<"END");
load_module  $module;

daemon  off;
$user
worker_processes  $self->{workers};
$self->{main}

pid        $self->{dir}/nginx.pid;
error_log  $self->{log}  info;

events {
    worker_connections  $self->{connections};
    $self->{events}
}

http {
    access_log  off;

$temp
    keepalive_requests  1000000;
    keepalive_timeout   300s;

    $http

    server {
        listen  127.0.0.1:$self->{port} $self->{listen};

        $self->{server}
        $surfaces
    }
}
END
}


# the same configuration, but with a store for each zone
sub stored {
    my ($self, $http) = @_;
    my $type = $ENV{MCP_TASKS_STORE} or return $http;
    my $sync = $ENV{MCP_TASKS_SYNC} ? " sync=$ENV{MCP_TASKS_SYNC}" : '';

    my %store = (
        sqlite => sub { "sqlite:$self->{dir}/store/$_[0].db$sync" },
        late => sub { 'late:2' },
        redis => sub { 'redis:test' });

    my $store = $store{$type}
        or die "MCP_TASKS_STORE is not one of ", join(', ', keys %store), "\n";

    make_path("$self->{dir}/store");

    $http =~ s{(mcp_tasks_zone\s+(?![^;]*store=)[^;]*zone=(\w+):[^;]*);}
              {"$1 store=" . $store->($2) . ';'}ge;

    return $type eq 'redis' ? $self->redis_block() . $http : $http;
}


# the server is started with the first configuration, and keeps its data until
# nginx is started again
sub redis_block {
    my ($self) = @_;
    my $partitions = $ENV{MCP_TASKS_PARTITIONS} || 1;

    require MCPRedis;
    $self->{redis} ||= MCPRedis->new(
        dir => tempdir('mcp-redis-XXXXXX', TMPDIR => 1, CLEANUP => 1));

    return "mcp_tasks_redis  test {\n"
           . "        server  unix:$self->{redis}{socket};\n"
           . "        partitions  $partitions;\n    }\n\n    ";
}


# whether all processes use Redis; they log it for each zone
sub attached {
    my ($self) = @_;
    my $zones = () = slurp("$self->{dir}/nginx.conf") =~ /store=redis:test/g;
    my $log = substr($self->log(), $self->{log_at});
    my $lines = () = $log =~ /redis: zone "\w+" is ready/g;

    return $lines >= $zones * $self->{workers};
}


sub command {
    my ($self) = @_;
    return (@{ $self->{wrap} }, $ENV{MCP_TASKS_NGINX}, '-p', $self->{dir},
            '-e', $self->{log}, '-c', "$self->{dir}/nginx.conf");
}


# "nginx -t": whether it passed, and what it said
sub check {
    my ($self) = @_;
    my $pid = open(my $fh, '-|');
    die "fork: $!\n" unless defined $pid;

    if ($pid == 0) {
        open(STDERR, '>&', \*STDOUT);
        @ENV{keys %{ $self->{env} }} = values %{ $self->{env} };
        exec($self->command(), '-t') or POSIX::_exit(127);
    }

    local $/;
    my $said = <$fh>;
    close($fh);

    return ($? == 0, $said);
}


# whether it serves
sub start {
    my ($self) = @_;

    remove_tree("$self->{dir}/store");
    $self->configure();
    $self->{redis}->cli('FLUSHALL') if $self->{redis};
    $self->{log_at} = length $self->log();

    my $pid = fork();
    die "fork: $!\n" unless defined $pid;

    if ($pid == 0) {
        open(STDOUT, '>>', "$self->{dir}/logs/stdout");
        open(STDERR, '>>', "$self->{dir}/logs/stdout");
        @ENV{keys %{ $self->{env} }} = values %{ $self->{env} };
        exec($self->command()) or POSIX::_exit(127);
    }

    $self->{pid} = $pid;
    $started{$pid} = 1;

    return wait_for {
        if (waitpid($pid, WNOHANG) == $pid) {
            delete $started{$pid};
            die "nginx exited\n" unless $self->log() =~ /already in use/;
            return;
        }

        return -s "$self->{dir}/nginx.pid"
               && pids_of($pid) == $self->{workers}
               && IO::Socket::INET->new(PeerAddr => '127.0.0.1',
                                        PeerPort => $self->{port})
               && (!$self->{redis} || $self->attached());
    };
}


# gracefully; whether it exited with 0
sub stop {
    my ($self, $signal) = @_;
    my $pid = delete $self->{pid};
    return 1 unless $pid && $started{$pid};

    kill($signal || 'QUIT', $pid);

    my $done = wait_for { waitpid($pid, WNOHANG) == $pid } TIMEOUT;
    my $status = $?;

    if (!$done) {
        kill('KILL', pids_of($pid), $pid);
        waitpid($pid, 0);
    }

    delete $started{$pid};

    return $done && $status == 0;
}


# all processes at once, as when the power fails
sub kill_all {
    my ($self) = @_;
    my $pid = delete $self->{pid} or return;
    my @workers = pids_of($pid);

    # the master first, so that it cannot replace anybody
    kill('STOP', $pid);
    push @workers, grep { my $p = $_; !grep { $_ == $p } @workers }
                   pids_of($pid);
    kill('KILL', $pid, @workers);
    waitpid($pid, 0);
    delete $started{$pid};

    return wait_for { !grep { kill(0, $_) } @workers };
}


sub log {
    my ($self) = @_;
    return slurp($self->{log}) . slurp("$self->{dir}/logs/stdout");
}


# lines of the log that no test may cause, but for those that are expected
sub faults {
    my ($self, $expected) = @_;
    my @lines = grep { /\[(alert|emerg|crit|error)\]|Sanitizer|runtime error/ }
                split /\n/, $self->log();

    return join "\n", grep { !defined $expected || !/$expected/ } @lines;
}


sub worker_pids {
    my ($self) = @_;
    return pids_of($self->{pid});
}


sub reload {
    my ($self, %conf) = @_;
    $self->configure(%conf);
    kill('HUP', $self->{pid});
}


# waits until none of these workers is there, and others are instead
sub replaced {
    my ($self, @old) = @_;
    my %old = map { $_ => 1 } @old;

    return wait_for {
        my @pids = $self->worker_pids();
        @pids == $self->{workers} && !grep { $old{$_} } @pids;
    };
}


# kills a worker, and waits until there is another one
sub kill_worker {
    my ($self, $pid) = @_;
    kill('KILL', $pid);
    return $self->replaced($pid);
}


# reloads, and waits until all workers are new
sub reload_all {
    my ($self, %conf) = @_;
    my @old = $self->worker_pids();
    $self->reload(%conf);
    return $self->replaced(@old);
}


# the pid in a file next to the configuration, if such a process is there
sub pid_in {
    my ($self, $name) = @_;
    my ($pid) = slurp("$self->{dir}/$name") =~ /^(\d+)$/m;
    return $pid && kill(0, $pid) ? $pid : 0;
}


sub connect {
    my ($self) = @_;
    my $s = IO::Socket::INET->new(PeerAddr => '127.0.0.1',
                                  PeerPort => $self->{port})
            or return;
    setsockopt($s, IPPROTO_TCP, TCP_NODELAY, 1);
    binmode($s);
    return $s;
}


# one whose receive buffer is small
sub connect_narrow {
    my ($self) = @_;
    socket(my $s, PF_INET, SOCK_STREAM, 0) or die "socket: $!\n";
    setsockopt($s, SOL_SOCKET, SO_RCVBUF, 4096);
    CORE::connect($s, sockaddr_in($self->{port}, inet_aton('127.0.0.1')))
        or die "connect: $!\n";
    binmode($s);
    return $s;
}


sub DESTROY {
    my ($self) = @_;
    local ($?, $@, $!);
    $self->stop() if $$ == $owner;
}


# a test that died leaves nothing behind
END {
    if ($$ == $owner) {
        my $status = $?;

        for my $pid (keys %started) {
            kill('KILL', pids_of($pid), $pid);
            waitpid($pid, 0);
        }

        %started = ();
        $? = $status;
    }
}


# All of it at once; a list of pieces with a pause between them, if there are
# several.  Whether it was taken.
sub send_raw {
    my ($s, @pieces) = @_;
    local $SIG{PIPE} = 'IGNORE';

    for my $i (0 .. $#pieces) {
        sleep(0.05) if $i;
        my $off = 0;

        while ($off < length $pieces[$i]) {
            my $n = syswrite($s, $pieces[$i], length($pieces[$i]) - $off,
                             $off);
            return 0 unless defined $n;
            $off += $n;
        }
    }

    return 1;
}


# What there is of bytes is kept with the socket: the next answer may have
# begun.  False at the end, and when nothing comes.
sub fill {
    my ($s) = @_;
    my $buf = \ ${*$s}{mcp_tasks};
    $$buf = '' unless defined $$buf;

    return 0 unless IO::Select->new($s)->can_read(TIMEOUT);

    my $n = sysread($s, $$buf, 65536, length $$buf);
    return $n ? 1 : 0;
}


# One answer: { status, head, header => { lower case }, body }, or nothing if
# the connection ended before it was whole.
sub read_response {
    my ($s, $method) = @_;
    my $buf = \ ${*$s}{mcp_tasks};
    $$buf = '' unless defined $$buf;

    while ($$buf !~ /\r\n\r\n/) {
        fill($s) or return;
    }

    $$buf =~ s/\A(.*?)\r\n\r\n//s;
    my $res = { head => $1 };

    ($res->{status}) = $res->{head} =~ m{\AHTTP/1\.[01] (\d{3})} or return;

    for (split /\r\n/, $res->{head}) {
        $res->{header}{lc $1} = $2 if /^([^:\s]+):\s*(.*?)\s*$/;
    }

    my $len = $res->{header}{'content-length'};
    $len = 0 if ($method || '') eq 'HEAD' || $res->{status} =~ /^(1|204|304)/;

    if (defined $len) {
        while (length $$buf < $len) {
            fill($s) or return;
        }

        $res->{body} = substr($$buf, 0, $len, '');

    } elsif (($res->{header}{'transfer-encoding'} || '') eq 'chunked') {
        $res->{body} = '';

        for (;;) {
            my $hex;

            until (($hex) = $$buf =~ /\A([0-9a-f]+)\r\n/i) {
                fill($s) or return;
            }

            my $size = hex $hex;
            my $line = length($hex) + 2;

            while (length $$buf < $line + $size + 2) {
                fill($s) or return;
            }

            $res->{body} .= substr($$buf, $line, $size);
            substr($$buf, 0, $line + $size + 2, '');
            last if $size == 0;
        }

    } else {
        while (fill($s)) { }
        $res->{body} = $$buf;
        $$buf = '';
    }

    my $type = $res->{header}{'content-type'} || '';
    MCPJson::check($res->{body}) if $type =~ m{\Aapplication/(\w+\+)?json\b};
    MCPJson::check_events($res->{body}) if $type =~ m{\Atext/event-stream\b};

    return $res;
}


# whether the peer closed, and sent nothing more
sub closed {
    my ($s) = @_;
    my $buf = \ ${*$s}{mcp_tasks};
    return !fill($s) && (!defined $$buf || $$buf eq '');
}


# The headers that every request has unless they are given: undef leaves one
# out, a list reference repeats it.
sub message {
    my ($method, $uri, $headers, $body) = @_;
    my %headers = (Host => 'localhost', %{ $headers || {} });

    $headers{'Content-Length'} = length $body
        if defined $body && !exists $headers{'Content-Length'}
           && !exists $headers{'Transfer-Encoding'};

    my $version = delete $headers{version} || 'HTTP/1.1';
    my $text = "$method $uri $version\r\n";

    for my $name (sort keys %headers) {
        my $value = $headers{$name};
        next unless defined $value;
        $text .= "$name: $_\r\n" for ref $value ? @$value : $value;
    }

    return "$text\r\n" . (defined $body ? $body : '');
}


# over a connection of its own, unless one is given
sub request {
    my ($self, $method, $uri, $headers, $body, $s) = @_;

    $s = $self->connect() unless $s;
    return unless $s;

    send_raw($s, message($method, $uri, $headers, $body)) or return;
    return read_response($s, $method);
}


sub post {
    my ($self, $uri, $body, $headers, $s) = @_;
    my %headers = ('Content-Type' => 'application/json',
                   'Accept' => 'application/json, text/event-stream',
                   %{ $headers || {} });

    return $self->request('POST', $uri, \%headers, $body, $s);
}


# sends, and leaves it to the caller when to read the answer
sub post_later {
    my ($self, $uri, $body, $headers, $s) = @_;
    my %headers = ('Content-Type' => 'application/json',
                   'Accept' => 'application/json, text/event-stream',
                   %{ $headers || {} });

    $s = $self->connect() unless $s;
    return unless $s;

    send_raw($s, message('POST', $uri, \%headers, $body)) or return;
    return $s;
}


# an operation of the probe surface, decoded; nothing if there was no answer
sub probe {
    my ($self, $args, $s, $uri) = @_;
    my $res = $self->request('GET', ($uri || '/probe') . "?$args", {}, undef,
                             $s);
    return unless $res && $res->{status} == 200;
    return JSON::PP->new->decode($res->{body});
}


# a connection to the worker with that pid, or to any other than that one
sub connect_to {
    my ($self, $pid, $not) = @_;
    my @more;

    return wait_for {
        for (1 .. 50) {
            my $s = $self->connect() or next;
            my $got = $self->probe('op=pid', $s) or next;
            return $s if ($got->{pid} == $pid) != ($not || 0);
            push @more, $s;
        }

        return;
    };
}


# a connection to every worker that is there now, by pid
sub connect_all {
    my ($self) = @_;
    my (%conn, @more);

    return wait_for {
        my %alive = map { $_ => 1 } $self->worker_pids();

        for (1 .. 50) {
            last if keys %conn == $self->{workers};

            my $s = $self->connect() or next;
            my $got = $self->probe('op=pid', $s) or next;
            push @more, $s;
            $conn{$got->{pid}} = $s if $alive{$got->{pid}};
        }

        delete $conn{$_} for grep { !$alive{$_} } keys %conn;

        return keys %conn == $self->{workers} ? \%conn : undef;
    };
}


# Until the processes have dealt with what reached them before, and with what
# they woke each other for: connect_all() has the connections.  A process
# answers the second of two requests when it has finished the round of events
# that the first was in; twice, since what it does may wake others.
sub settle {
    my ($self, $conn) = @_;

    for (1 .. 4) {
        for my $pid (sort keys %$conn) {
            $self->probe('op=pid', $conn->{$pid})
                or die "process $pid does not answer\n";
            next if ($ENV{MCP_TASKS_STORE} // '') ne 'late';

            # and has got all answers of the store
            wait_for { !$self->probe('op=late', $conn->{$pid})->{pending} };
        }
    }
}


# How many descriptors the processes have open when they have nothing to do.
# One that was started a moment ago may not have opened all that it needs.
sub idle_descriptors {
    my ($self) = @_;
    my $conn = $self->connect_all() or die "workers cannot be reached\n";
    $self->settle($conn);
    return descriptors_of(keys %$conn) - keys %$conn;
}


1;
