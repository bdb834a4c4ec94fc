package MCPUpstream;

# An MCP server that does what a test tells it to, in a process of its own:
#
#   my $up = MCPUpstream->new(on => { slow => [['sse'], ['hold'],
#                                             ['result', '{"content":[]}']] });
#   ... "proxy_pass http://127.0.0.1:$up->{port}/mcp;" ...
#   my $call = $up->call('slow');         # waits until it has come
#   $up->go($call, ['event', '{...}']);   # goes on after "hold"
#   is($up->get($call)->{closed}, ...);   # what became of it
#
# Scripts belong to a tool's name, to a JSON-RPC method or to an HTTP method.
# { rounds => [SCRIPT, ...] } has one for each time, the last of them for all
# times after that.  A script is a list of steps:
#
#   json TEXT [STATUS [HEADERS]]   a whole answer
#   sse [STATUS [HEADERS]]         the head of an event stream
#   head STATUS HEADERS            any head: without a length the body is
#                                  chunked, or for HTTP/1.0 ends with the
#                                  connection
#   event TEXT                     "data: TEXT" and an empty line
#   text BYTES                     a part of the body
#   bytewise BYTES                 the same, and each byte is written alone
#   raw BYTES                      past all framing
#   result TEXT, error TEXT        a JSON-RPC response with the call's id: as
#                                  the last event of a stream, if there is one
#   end                            the body is whole
#   close, reset                   the connection ends, politely or not
#   hold                           waits for go()
#   pause SECONDS
#   answered ID                    waits until a response with that id came
#   flood BYTES [SECONDS]          again and again, with that pause, until the
#                                  other side has had enough
#
# In texts %ID% is the id of the request and %TOKEN% its progress token, both
# as JSON.  What has no script is answered as a plain MCP server would.  At the
# end of a script whose answer is not whole, nothing more happens.

use warnings;
use strict;

use IO::Select;
use IO::Socket::INET;
use JSON::PP;
use POSIX qw/ EAGAIN EINTR EWOULDBLOCK WNOHANG /;
use Socket qw/ :DEFAULT IPPROTO_TCP TCP_NODELAY SO_LINGER /;
use Storable qw/ freeze thaw /;
use Time::HiRes qw/ sleep time /;

use MCPJson;
use MCPTasks;

my %running;
my $owner = $$;


# on: scripts; list: tools, as JSON; sessions: of the legacy era are demanded;
# host: no other is served; style: "sse" for answers as event streams
sub new {
    my ($class, %opt) = @_;
    my $self = bless { on => {}, list => [qw/ echo slow /], sessions => 0,
                       host => undef, style => 'json', %opt }, $class;

    # a test may have the port of an upstream that is not there yet
    my $listener;

    for (1 .. 5) {
        $self->{port} = $opt{port} || MCPTasks::free_port();
        $listener = listener($self->{port}) and last;
    }

    die "no port for the upstream\n" unless $listener;

    socketpair(my $here, my $there, AF_UNIX, SOCK_STREAM, PF_UNSPEC)
        or die "socketpair: $!\n";
    binmode($_) for $here, $there;

    my $pid = fork();
    die "fork: $!\n" unless defined $pid;

    if ($pid == 0) {
        close($here);
        $SIG{PIPE} = 'IGNORE';
        $SIG{INT} = $SIG{TERM} = 'DEFAULT';
        eval { MCPUpstream::Server->new($self, $listener, $there)->run(); 1 }
            or print STDERR "upstream: $@";
        POSIX::_exit(0);
    }

    close($there);
    close($listener);

    $self->{control} = $here;
    $self->{pid} = $pid;
    $running{$pid} = 1;

    return $self;
}


sub listener {
    my ($port) = @_;
    return IO::Socket::INET->new(LocalAddr => '127.0.0.1', LocalPort => $port,
                                 Listen => 512, ReuseAddr => 1);
}


# a message on the control connection: its length, then what was frozen
sub write_message {
    my ($s, $data) = @_;
    my $text = freeze($data);
    $text = pack('N', length $text) . $text;
    my $off = 0;

    while ($off < length $text) {
        my $n = syswrite($s, $text, length($text) - $off, $off);
        next if !defined $n && $! == EINTR;
        return 0 unless $n;
        $off += $n;
    }

    return 1;
}


sub read_message {
    my ($s) = @_;
    my ($text, $len) = ('', 4);

    for (;;) {
        while (length $text < $len) {
            my $n = sysread($s, $text, $len - length $text, length $text);
            next if !defined $n && $! == EINTR;
            return unless $n;
        }

        return thaw(substr($text, 4)) if $len > 4;
        $len = 4 + unpack('N', $text);
    }
}


sub ask {
    my ($self, @command) = @_;
    local $SIG{PIPE} = 'IGNORE';
    write_message($self->{control}, \@command) or die "no upstream\n";
    my $got = read_message($self->{control}) or die "the upstream is gone\n";
    return $got->[0];
}


# All requests so far, or those that the code is true for, each with: n, conn,
# method, path, headers (a list of pairs), head (by lower case name), body,
# json, rpc (the method, "response" or "batch"), tool, id (as JSON), time, done
# (when its answer was whole) and closed (when the other side left before that).
sub requests {
    my ($self, $code) = @_;
    my $from = @{ $self->{seen} ||= [] };

    # those whose answers are whole do not change any more
    my $got = $self->ask('requests', $self->{settled} || 0);
    splice @{ $self->{seen} }, $self->{settled} || 0;
    push @{ $self->{seen} }, @$got;

    # what nginx says to a server has no key twice, either
    $self->{checked}{$_->{n}}++ || MCPJson::check($_->{body}) for @$got;

    my $all = $self->{seen};
    $self->{settled} = 0 unless defined $self->{settled};
    $self->{settled}++ while $self->{settled} < @$all
                             && ($all->[$self->{settled}]{done}
                                 || $all->[$self->{settled}]{closed});

    return $code ? grep { $code->($_) } @$all : @$all;
}


# what became of a call; one that never came is not one that goes on well
sub get {
    my ($self, $call) = @_;
    my $n = $call ? $call->{n} : -1;
    my ($got) = $self->requests(sub { $_[0]{n} == $n });
    return $got || { done => 'no such call', closed => 'no such call' };
}


# the first request that the code is true for, as soon as it is there
sub wait_for {
    my ($self, $code, $seconds) = @_;
    return MCPTasks::wait_for(sub {
        return ($self->requests($code))[0];
    }, $seconds);
}


# the n-th call of a tool
sub call {
    my ($self, $tool, $n, $seconds) = @_;
    $n = 1 unless defined $n;

    return MCPTasks::wait_for(sub {
        my @calls = $self->calls($tool);
        return $calls[$n - 1];
    }, $seconds);
}


sub calls {
    my ($self, $tool) = @_;
    return $self->requests(sub { ($_[0]{tool} // '') eq $tool });
}


# how often a tool was called
sub count {
    my ($self, $tool) = @_;
    return scalar(my @calls = $self->calls($tool));
}


# calls that have no whole answer yet: of a tool, or of all
sub open_calls {
    my ($self, $tool) = @_;
    return $self->requests(sub {
        return defined $_[0]{tool} && !$_[0]{done} && !$_[0]{closed}
               && (!defined $tool || $_[0]{tool} eq $tool);
    });
}


# those that are no calls, by their method
sub said {
    my ($self, $rpc) = @_;
    return $self->requests(sub { ($_[0]{rpc} // '') eq $rpc });
}


# the next n requests are others: those before are forgotten
sub clear {
    my ($self) = @_;
    $self->{seen} = [];
    $self->{settled} = 0;
    return $self->ask('clear');
}


# whether the other side has left before the answer was whole
sub left {
    my ($self, $call, $seconds) = @_;
    return unless $call;
    return MCPTasks::wait_for(sub { $self->get($call)->{closed} }, $seconds);
}


sub script { my ($self, @args) = @_; return $self->ask('script', @args) }
sub set    { my ($self, @args) = @_; return $self->ask('set', @args) }


# more steps for a call, in place of what its script holds back
sub go {
    my ($self, $call, @steps) = @_;
    return 0 unless $call;
    return $self->ask('go', $call->{n}, \@steps);
}


# nobody listens on the port; connections that are there go on
sub shut { my ($self) = @_; return $self->ask('shut') }
sub open { my ($self) = @_; return $self->ask('open') }


# no session is known any more
sub forget { my ($self) = @_; return $self->ask('forget') }


# how many connections are open, and how many there were
sub connections {
    my ($self) = @_;
    return @{ $self->ask('connections') };
}


sub stop {
    my ($self) = @_;
    my $pid = delete $self->{pid} or return;
    close(delete $self->{control});

    # it leaves by itself when nobody controls it; but not if another child
    # of the test has inherited the connection
    kill('TERM', $pid);
    waitpid($pid, 0);
    delete $running{$pid};
}


sub DESTROY {
    my ($self) = @_;
    local ($?, $@, $!);
    $self->stop() if $$ == $owner;
}


END {
    if ($$ == $owner) {
        my $status = $?;

        for my $pid (keys %running) {
            kill('TERM', $pid);
            waitpid($pid, 0);
        }

        $? = $status;
    }
}


package MCPUpstream::Server;

use POSIX qw/ EAGAIN EINTR EWOULDBLOCK /;
use Socket qw/ :DEFAULT IPPROTO_TCP TCP_NODELAY SO_LINGER /;
use Time::HiRes qw/ time /;

my $json = JSON::PP->new->canonical->allow_nonref;


sub new {
    my ($class, $opt, $listener, $control) = @_;
    return bless { %$opt, listener => $listener, control => $control,
                   conns => {}, requests => [], opened => 0, times => {},
                   known => {}, responses => {}, calls => {}, base => 0 },
                 $class;
}


sub run {
    my ($self) = @_;

    for (;;) {
        my ($read, $write, $wait) = ('', '', delete $self->{again} ? 0 : 10);
        my $now = time();

        vec($read, fileno($self->{control}), 1) = 1;
        vec($read, fileno($self->{listener}), 1) = 1 if $self->{listener};

        for my $c (values %{ $self->{conns} }) {
            vec($read, $c->{fd}, 1) = 1 unless $c->{deaf};

            if (@{ $c->{out} }) {
                my $left = ($c->{not_before} || 0) - $now;
                if ($left > 0) {
                    $wait = $left if $left < $wait;
                } else {
                    vec($write, $c->{fd}, 1) = 1;
                }
            }

            if ($c->{until}) {
                my $left = $c->{until} - $now;
                $left = 0 if $left < 0;
                $wait = $left if $left < $wait;
            }
        }

        my $n = select($read, $write, undef, $wait);
        next if $n < 0;

        if (vec($read, fileno($self->{control}), 1)) {
            my $command = MCPUpstream::read_message($self->{control}) or return;
            my ($name, @args) = @$command;
            my $method = "do_$name";
            MCPUpstream::write_message($self->{control},
                                       [scalar $self->$method(@args)]);
        }

        for my $fd (keys %{ $self->{conns} }) {
            my $c = $self->{conns}{$fd} or next;
            $self->take($c) if vec($read, $fd, 1);
            $self->give($c) if !$c->{gone} && vec($write, $fd, 1);
            $self->advance($c) unless $c->{gone};
        }

        # last, so that no new connection is taken for one that was ready
        if ($self->{listener} && vec($read, fileno($self->{listener}), 1)) {
            $self->welcome();
        }
    }
}


sub welcome {
    my ($self) = @_;
    my $s = $self->{listener}->accept() or return;
    $s->blocking(0);
    binmode($s);
    setsockopt($s, IPPROTO_TCP, TCP_NODELAY, 1);
    $self->{conns}{fileno($s)} = { s => $s, fd => fileno($s), in => '',
                                   out => [], number => ++$self->{opened} };
}


sub drop {
    my ($self, $c) = @_;
    delete $self->{conns}{$c->{fd}};
    close($c->{s});
    $c->{gone} = 1;
}


# what has come; and whether the other side has left
sub take {
    my ($self, $c) = @_;
    my $n = sysread($c->{s}, $c->{in}, 65536, length $c->{in});

    return if !defined $n && ($! == EAGAIN || $! == EINTR
                              || $! == EWOULDBLOCK);

    if (!$n) {
        $c->{req}{closed} = time() if $c->{req};
        $self->drop($c);
    }
}


# One piece for each write.  A piece that is to go alone waits a little, so that
# it is not read together with the one before.
sub give {
    my ($self, $c) = @_;

    while (my $piece = $c->{out}[0]) {
        if (ref $piece->[0]) {
            $piece->[0]->();
            return if $c->{gone};
            shift @{ $c->{out} };
            next;
        }

        my $n = syswrite($c->{s}, $piece->[0]);

        if (!defined $n) {
            return if $! == EAGAIN || $! == EWOULDBLOCK || $! == EINTR;
            $c->{req}{closed} = time() if $c->{req};
            $self->drop($c);
            return;
        }

        substr($piece->[0], 0, $n, '');
        return if length $piece->[0];

        if ($piece->[1]) {
            $c->{not_before} = time() + $piece->[1];
            shift @{ $c->{out} };
            return;
        }

        shift @{ $c->{out} };
    }
}


sub put {
    my ($self, $c, $bytes, $pause) = @_;
    push @{ $c->{out} }, [$bytes, $pause || 0] if length $bytes;
}


# a request, if it is whole; what comes after it waits
sub advance {
    my ($self, $c) = @_;

    for (;;) {
        if ($c->{req}) {
            $self->steps($c);
            return if $c->{gone} || $c->{req};
            next;
        }

        my $req = $self->parse($c) or return;
        $self->begin($c, $req);
    }
}


sub parse {
    my ($self, $c) = @_;
    my $end = index($c->{in}, "\r\n\r\n");
    return if $end < 0;

    my ($line, @lines) = split /\r\n/, substr($c->{in}, 0, $end);
    my @headers = map { /^([^:]+):\s*(.*?)\s*$/ ? [$1, $2] : () } @lines;
    my %head;

    for (@headers) {
        my $name = lc $_->[0];
        $head{$name} = defined $head{$name} ? "$head{$name}, $_->[1]" : $_->[1];
    }

    my ($rest, $body) = ($end + 4, '');

    if (($head{'transfer-encoding'} // '') =~ /chunked/i) {
        for (;;) {
            my $nl = index($c->{in}, "\r\n", $rest);
            return if $nl < 0;
            my $size = hex substr($c->{in}, $rest, $nl - $rest);
            return if length $c->{in} < $nl + 2 + $size + 2;
            $body .= substr($c->{in}, $nl + 2, $size);
            $rest = $nl + 2 + $size + 2;
            last if $size == 0;
        }

    } elsif (my $len = $head{'content-length'}) {
        return if length $c->{in} < $rest + $len;
        $body = substr($c->{in}, $rest, $len);
        $rest += $len;
    }

    substr($c->{in}, 0, $rest, '');

    my ($method, $path, $version) = split / /, $line;

    return { method => $method, path => $path, version => $version // '',
             headers => \@headers, head => \%head, body => $body,
             time => time(), conn => $c->{number} };
}


sub begin {
    my ($self, $c, $req) = @_;
    my $data = eval { $json->decode($req->{body}) };

    $req->{n} = $self->{base} + @{ $self->{requests} };
    push @{ $self->{requests} }, $req;

    $req->{json} = $data;
    $self->{calls}{$req->{n}} = $c;
    $c->{req} = $req;
    $c->{keep} = $req->{version} eq 'HTTP/1.1'
                 && ($req->{head}{connection} // '') !~ /close/i;
    $c->{until} = undef;
    $c->{head} = $c->{chunked} = $c->{stream} = 0;

    if (ref $data eq 'ARRAY') {
        $req->{rpc} = 'batch';

    } elsif (ref $data eq 'HASH') {
        $req->{rpc} = defined $data->{method} ? $data->{method} : 'response';
        $req->{id} = $json->encode($data->{id}) if exists $data->{id};
        my $p = ref $data->{params} eq 'HASH' ? $data->{params} : {};
        $req->{tool} = $p->{name} if $req->{rpc} eq 'tools/call';
        $req->{token} = $json->encode($p->{_meta}{progressToken})
            if ref $p->{_meta} && exists $p->{_meta}{progressToken};

        # others may have waited for it, and are looked after at once
        if ($req->{rpc} eq 'response' && defined $req->{id}) {
            $self->{responses}{$req->{id}} = 1;
            $self->{again} = 1;
        }
    }

    $c->{steps} = [@{ $self->script_of($req) }];
}


# what is to be done with a request
sub script_of {
    my ($self, $req) = @_;

    my $refused = $self->refused($req);
    return $refused if $refused;

    for my $key (grep { defined } $req->{tool}, $req->{rpc}, $req->{method}) {
        my $script = $self->{on}{$key} or next;
        return $script if ref $script eq 'ARRAY';
        my $n = $self->{times}{$key}++;
        my $rounds = $script->{rounds};
        return $rounds->[$n < @$rounds ? $n : $#$rounds];
    }

    return $self->plain($req);
}


sub refused {
    my ($self, $req) = @_;
    my $error = '{"jsonrpc":"2.0","id":null,"error":{"code":-32000,'
                . '"message":"%s"}}';

    return [['json', sprintf($error, 'Invalid Host'), 403]]
        if defined $self->{host}
           && ($req->{head}{host} // '') ne $self->{host};

    return if !$self->{sessions} || ($req->{rpc} // '') eq 'initialize';

    my $session = $req->{head}{'mcp-session-id'};
    return [['json', sprintf($error, 'Session id required'), 400]]
        unless defined $session;
    return [['json', sprintf($error, 'Session not found'), 404]]
        unless $self->{known}{$session};
    return;
}


# as a plain MCP server
sub plain {
    my ($self, $req) = @_;
    my $rpc = $req->{rpc} // '';

    if ($req->{method} eq 'GET') {
        return [['sse'], ['text', ": open\n\n"]];
    }

    if ($req->{method} eq 'DELETE') {
        delete $self->{known}{$req->{head}{'mcp-session-id'} // ''};
        return [['head', 200, { 'Content-Length' => 0 }], ['end']];
    }

    if ($rpc eq 'batch') {
        return [['json', '[' . join(',', map {
            '{"jsonrpc":"2.0","id":' . $json->encode($_->{id})
            . ',"result":{}}'
        } grep { ref && exists $_->{id} && $_->{method} } @{ $req->{json} })
        . ']']];
    }

    if ($rpc eq '' ) {
        return [['json', '{"jsonrpc":"2.0","id":null,"error":{"code":-32700,'
                         . '"message":"Parse error"}}', 400]];
    }

    if ($rpc eq 'response' || !defined $req->{id}) {
        return [['head', 202, { 'Content-Length' => 0 }], ['end']];
    }

    my %headers;
    my $result = $self->result_of($req, \%headers);
    my $answer = defined $result ? ['result', $result]
        : ['error', '{"code":-32601,"message":"Method not found"}'];

    return [['sse', 200, \%headers], $answer] if $self->{style} eq 'sse';
    return [[@$answer, \%headers]];
}


sub result_of {
    my ($self, $req, $headers) = @_;
    my $p = ref $req->{json}{params} eq 'HASH' ? $req->{json}{params} : {};
    my $info = '"serverInfo":{"name":"upstream","version":"1.0"}';
    my $rpc = $req->{rpc};

    if ($rpc eq 'initialize') {
        my $version = $p->{protocolVersion} // '2025-11-25';

        if ($self->{sessions}) {
            my $id = sprintf('session-%d-%08x', $req->{n}, int rand 2**32);
            $self->{known}{$id} = 1;
            $headers->{'Mcp-Session-Id'} = $id;
        }

        return "{\"protocolVersion\":\"$version\",\"capabilities\":{\"tools\":"
               . "{\"listChanged\":true},\"logging\":{}},$info,"
               . '"instructions":"Ask me."}';
    }

    return '{"resultType":"complete","supportedVersions":["2026-07-28"],'
           . "\"capabilities\":{\"tools\":{}},$info,\"ttlMs\":0,"
           . '"cacheScope":"public"}'
        if $rpc eq 'server/discover';

    return '{}' if $rpc eq 'ping' || $rpc eq 'logging/setLevel';

    if ($rpc eq 'tools/list') {
        my $modern = ref $p->{_meta}
                     && $p->{_meta}{'io.modelcontextprotocol/protocolVersion'};
        return '{' . ($modern ? '"resultType":"complete",' : '') . '"tools":['
               . join(',', map { /^\{/ ? $_ : '{"name":' . $json->encode($_)
                                 . ',"description":"The tool ' . $_
                                 . '.","inputSchema":{"type":"object"}}' }
                           @{ $self->{list} })
               . ']' . ($modern ? ',"ttlMs":0,"cacheScope":"public"' : '')
               . '}';
    }

    return '{"content":[{"type":"text","text":' . $json->encode($req->{tool})
           . '}]}'
        if $rpc eq 'tools/call' && defined $req->{tool};

    return;
}


# as far as it goes
sub steps {
    my ($self, $c) = @_;

    while ($c->{req} && !$c->{gone}) {
        if ($c->{until}) {
            return if time() < $c->{until};
            $c->{until} = undef;
        }

        my $step = $c->{steps}[0];

        if (!$step) {
            $self->flood($c) if $c->{flood};
            return;
        }

        my ($name, @args) = @$step;

        return if $name eq 'hold';
        return if $name eq 'answered'
                  && !$self->{responses}{$json->encode($args[0])};

        shift @{ $c->{steps} };
        $_ = $self->fill_in($c, $_) for grep { defined && !ref } @args;

        my $method = "step_$name";
        $self->$method($c, @args) unless $name eq 'answered';
    }
}


sub fill_in {
    my ($self, $c, $text) = @_;
    return $text if index($text, '%') < 0;
    my $id = $c->{req}{id} // 'null';
    my $token = $c->{req}{token} // 'null';
    $text =~ s/%ID%/$id/g;
    $text =~ s/%TOKEN%/$token/g;
    return $text;
}


sub step_head {
    my ($self, $c, $status, $headers) = @_;
    my %headers = %{ $headers || {} };

    # a length, or another framing that the script takes care of
    my $framed = grep { /^(content-length|transfer-encoding)$/i } keys %headers;

    if (!$framed) {
        if ($c->{req}{version} eq 'HTTP/1.1') {
            $c->{chunked} = 1;
            $headers{'Transfer-Encoding'} = 'chunked';
        } else {
            $c->{keep} = 0;
        }
    }

    $headers{Connection} = 'close' unless $c->{keep};
    $c->{head} = 1;

    my $text = "HTTP/1.1 $status Some reason\r\n";

    for my $name (sort keys %headers) {
        my $value = $headers{$name};
        next unless defined $value;
        $text .= "$name: $_\r\n" for ref $value ? @$value : $value;
    }

    $self->put($c, "$text\r\n");
}


sub step_json {
    my ($self, $c, $text, $status, $headers) = @_;
    $self->step_head($c, $status || 200,
                     { 'Content-Type' => 'application/json',
                       'Content-Length' => length $text,
                       %{ $headers || {} } });
    $self->put($c, $text);
    $self->step_end($c);
}


sub step_sse {
    my ($self, $c, $status, $headers) = @_;
    $self->step_head($c, $status || 200,
                     { 'Content-Type' => 'text/event-stream',
                       'Cache-Control' => 'no-cache', %{ $headers || {} } });
    $c->{stream} = 1;
}


sub step_text {
    my ($self, $c, $text) = @_;
    $self->put($c, framed($c, $text));
}


sub framed {
    my ($c, $text) = @_;
    return $text unless $c->{chunked} && length $text;
    return sprintf("%x\r\n", length $text) . "$text\r\n";
}


sub step_bytewise {
    my ($self, $c, $text) = @_;
    $self->put($c, framed($c, $_), 0.0005) for split //, $text;
}


sub step_event {
    my ($self, $c, $text) = @_;
    $self->step_text($c, "data: $text\n\n");
}


sub step_raw {
    my ($self, $c, $text) = @_;
    $c->{head} = 1;
    $self->put($c, $text);
}


sub response {
    my ($self, $c, $member, $headers) = @_;
    my $text = '{"jsonrpc":"2.0","id":' . ($c->{req}{id} // 'null')
               . ",$member}";

    return $self->step_json($c, $text, 200, $headers) unless $c->{stream};

    $self->step_event($c, $text);
    $self->step_end($c);
}


sub step_result {
    my ($self, $c, $text, $headers) = @_;
    $self->response($c, "\"result\":$text", $headers);
}


sub step_error {
    my ($self, $c, $text, $headers) = @_;
    $self->response($c, "\"error\":$text", $headers);
}


# done is when all of it was written
sub step_end {
    my ($self, $c) = @_;
    my $req = $c->{req};

    $self->put($c, "0\r\n\r\n") if $c->{chunked};
    $c->{chunked} = $c->{stream} = 0;

    push @{ $c->{out} }, [sub {
        $req->{done} = time();
        $c->{req} = undef;
        $self->drop($c) unless $c->{keep};
    }];
    $self->give($c) unless ($c->{not_before} || 0) > time();
    $c->{until} = time() + 3600 if $c->{req} && !$c->{gone};
}


sub step_close {
    my ($self, $c) = @_;
    my $req = $c->{req};
    push @{ $c->{out} }, [sub { $req->{done} = time(); $self->drop($c) }];
}


sub step_reset {
    my ($self, $c) = @_;
    my $req = $c->{req};

    push @{ $c->{out} }, [sub {
        setsockopt($c->{s}, SOL_SOCKET, SO_LINGER, pack('ii', 1, 0));
        $req->{done} = time();
        $self->drop($c);
    }];
}


sub step_pause {
    my ($self, $c, $seconds) = @_;
    $c->{until} = time() + $seconds;
}


sub step_flood {
    my ($self, $c, $text, $seconds) = @_;
    $c->{flood} = [framed($c, $text), $seconds || 0];
}


sub flood {
    my ($self, $c) = @_;
    return if @{ $c->{out} };
    my ($text, $pause) = @{ $c->{flood} };

    # the larger the pieces, the fewer turns it takes
    my $n = $pause ? 1 : 1 + int(65536 / length $text);
    $self->put($c, $text x $n, $pause);
}


# --- what the test says

sub do_requests {
    my ($self, $from) = @_;
    my @all = @{ $self->{requests} };
    return [@all[$from .. $#all]];
}


# A request that is under way is kept by its connection, and can go on.
sub do_clear {
    my ($self) = @_;
    $self->{base} += @{ $self->{requests} };
    $self->{requests} = [];
    $self->{responses} = {};
    $self->{times} = {};
    return 1;
}


sub do_script {
    my ($self, $key, $script) = @_;
    $self->{on}{$key} = $script;
    delete $self->{times}{$key};
    return 1;
}


sub do_set {
    my ($self, $name, $value) = @_;
    $self->{$name} = $value;
    return 1;
}


# whether the call is still there
sub do_go {
    my ($self, $n, $steps) = @_;
    my $c = $self->{calls}{$n};
    return 0 unless $c && !$c->{gone} && $c->{req} && $c->{req}{n} == $n;

    shift @{ $c->{steps} } if @{ $c->{steps} } && $c->{steps}[0][0] eq 'hold';
    unshift @{ $c->{steps} }, @$steps;
    $self->{again} = 1;
    $self->steps($c);
    return 1;
}


sub do_shut {
    my ($self) = @_;
    close(delete $self->{listener}) if $self->{listener};
    return 1;
}


sub do_open {
    my ($self) = @_;
    $self->{listener} ||= MCPUpstream::listener($self->{port});
    return $self->{listener} ? 1 : 0;
}


sub do_forget {
    my ($self) = @_;
    $self->{known} = {};
    return 1;
}


sub do_connections {
    my ($self) = @_;
    return [scalar keys %{ $self->{conns} }, $self->{opened}];
}


1;
