package MCPHttp2;

# As much of an HTTP/2 client as tests of waiting requests need: it decides
# when a stream is reset, and when the server may go on sending.
#
#   my $h2 = MCPHttp2->new($port, window => 65535);
#   my $n = $h2->get('/mcp/tasks/events', 'x-user' => 'ann');
#   $h2->until(sub { $h2->text($n) =~ /data: / });
#   $h2->reset($n);
#
# A window is what the server may send on each stream before it has to wait
# for more; without one, it gets more as it sends.

use warnings;
use strict;

use IO::Select;
use IO::Socket::INET;
use Time::HiRes qw/ time /;

use MCPTasks;

use constant { DATA => 0, HEADERS => 1, RST_STREAM => 3, SETTINGS => 4,
               PING => 6, GOAWAY => 7, WINDOW_UPDATE => 8 };
use constant { ACK => 1, END_STREAM => 1, END_HEADERS => 4 };
use constant CANCEL => 8;

# statuses that have a number in the static table
my %static = (0x88 => 200, 0x89 => 204, 0x8a => 206, 0x8b => 304,
              0x8c => 400, 0x8d => 404, 0x8e => 500);


sub new {
    my ($class, $port, %opt) = @_;
    my $s = IO::Socket::INET->new(PeerAddr => '127.0.0.1',
                                  PeerPort => $port) or die "no connection\n";
    binmode($s);

    my $self = bless { s => $s, raw => '', next => 1, streams => {}, %opt },
                     $class;

    # SETTINGS_INITIAL_WINDOW_SIZE
    my $settings = defined $opt{window} ? pack('nN', 4, $opt{window}) : '';

    $self->send_bytes("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
                      . frame(SETTINGS, 0, 0, $settings)
                      . frame(WINDOW_UPDATE, 0, 0, pack('N', 0x40000000)));
    return $self;
}


sub frame {
    my ($type, $flags, $stream, $payload) = @_;
    return substr(pack('N', length $payload), 1)
           . pack('CCN', $type, $flags, $stream) . $payload;
}


sub send_bytes {
    my ($self, $bytes) = @_;
    return MCPTasks::send_raw($self->{s}, $bytes);
}


# HPACK: a string as it is
sub text_of {
    my ($text) = @_;
    my $len = length $text;
    return chr($len) . $text if $len < 127;

    my $bytes = chr(127);

    for ($len -= 127; $len >= 128; $len >>= 7) {
        $bytes .= chr($len & 127 | 128);
    }

    return $bytes . chr($len) . $text;
}


# the number of the stream
sub get {
    my ($self, $path, %headers) = @_;
    return $self->begin("\x82", $path, undef, %headers);
}


sub post {
    my ($self, $path, $body, %headers) = @_;
    return $self->begin("\x83", $path, $body, %headers);
}


sub begin {
    my ($self, $method, $path, $body, %headers) = @_;
    my $n = $self->{next};
    $self->{next} += 2;

    # :method, :scheme http, :path, :authority, and all others by name
    my $block = "$method\x86\x04" . text_of($path) . "\x01"
                . text_of($self->{authority} || 'localhost');
    $block .= "\x00" . text_of($_) . text_of($headers{$_})
        for sort keys %headers;

    $self->{streams}{$n} = { text => '' };
    my $last = defined $body ? 0 : END_STREAM;
    $self->send_bytes(frame(HEADERS, $last | END_HEADERS, $n, $block));

    # what every server takes: frames of 16384 bytes, 65535 bytes in all
    if (defined $body) {
        my @parts = $body =~ /.{1,16384}/gs;
        $self->send_bytes(frame(DATA, $_ == $#parts ? END_STREAM : 0, $n,
                                $parts[$_])) for 0 .. $#parts;
    }

    return $n;
}


sub reset {
    my ($self, $n) = @_;
    return $self->send_bytes(frame(RST_STREAM, 0, $n, pack('N', CANCEL)));
}


sub goaway {
    my ($self) = @_;
    return $self->send_bytes(frame(GOAWAY, 0, 0, pack('NN', 0, 0)));
}


# the server may send so many bytes more
sub grow {
    my ($self, $n, $bytes) = @_;
    return $self->send_bytes(frame(WINDOW_UPDATE, 0, $n, pack('N', $bytes)));
}


sub status { return $_[0]{streams}{$_[1]}{status} || 0 }
sub text   { return $_[0]{streams}{$_[1]}{text} }
sub over   { return $_[0]{streams}{$_[1]}{over} }
sub cut    { return $_[0]{streams}{$_[1]}{cut} }


# as soon as that is true; false when the time is up or the connection ends
sub until {
    my ($self, $code, $seconds) = @_;
    my $end = time() + ($seconds || 30);

    for (;;) {
        return 1 if $code->();
        return 0 if $self->{closed} || time() > $end;
        $self->more($end - time());
    }
}


sub more {
    my ($self, $seconds) = @_;
    return unless IO::Select->new($self->{s})->can_read($seconds);

    if (!sysread($self->{s}, $self->{raw}, 65536, length $self->{raw})) {
        $self->{closed} = 1;
        return;
    }

    while (length $self->{raw} >= 9) {
        my ($high, $low, $type, $flags, $n) = unpack('CnCCN', $self->{raw});
        my $len = $high << 16 | $low;
        last if length $self->{raw} < 9 + $len;

        my $payload = substr($self->{raw}, 9, $len);
        substr($self->{raw}, 0, 9 + $len, '');
        $self->take($type, $flags, $n & 0x7fffffff, $payload);
    }
}


sub take {
    my ($self, $type, $flags, $n, $payload) = @_;
    my $stream = $self->{streams}{$n};

    if ($type == SETTINGS && !($flags & ACK)) {
        $self->send_bytes(frame(SETTINGS, ACK, 0, ''));

    } elsif ($type == PING && !($flags & ACK)) {
        $self->send_bytes(frame(PING, ACK, 0, $payload));

    } elsif ($type == GOAWAY) {
        $self->{goaway} = 1;

    } elsif (!$stream) {
        return;

    } elsif ($type == HEADERS) {
        $payload =~ s/\A[\x20-\x3f]//;
        $stream->{status} = $static{ord $payload}
                            || ($payload =~ /\A\x48\x03(\d{3})/ ? $1 : 0);

    } elsif ($type == DATA) {
        $stream->{text} .= $payload;
        $self->grow($n, length $payload)
            if length $payload && !defined $self->{window}
               && !($flags & END_STREAM);

    } elsif ($type == RST_STREAM) {
        $stream->{cut} = 1;
    }

    $stream->{over} = 1
        if $stream && ($type == DATA || $type == HEADERS)
           && $flags & END_STREAM;
}


sub close {
    my ($self) = @_;
    close($self->{s});
}


1;
