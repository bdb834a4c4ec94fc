# Bodies that come with GET and DELETE: whatever becomes of them, nobody else's
# request is taken for one on a connection that is kept to the upstream.

use warnings;
use strict;

use FindBin;
use lib "$FindBin::Bin/lib";

use IO::Socket::INET;
use Test::More;

use MCPClient;
use MCPFile qw/ slurp /;
use MCPTasks qw/ wait_for /;

my $ok = '{"jsonrpc":"2.0","id":1,"result":{}}';


# A server that answers as soon as it has a head, and reads the body after that.
# Each head and each body becomes a line of a file.
sub server {
    my ($path) = @_;
    my $l = IO::Socket::INET->new(LocalAddr => '127.0.0.1', Listen => 64,
                                  ReuseAddr => 1)
        or die "no port\n";
    my $pid = fork() // die "fork: $!\n";
    return ($pid, $l->sockport()) if $pid;

    $SIG{CHLD} = 'IGNORE';
    $SIG{TERM} = 'DEFAULT';
    open(my $out, '>>', $path) or POSIX::_exit(1);

    for (my $n = 1; my $s = $l->accept(); $n++) {
        my $child = fork();
        next if $child;
        serve($s, $out, $n);
        POSIX::_exit(0);
    }

    POSIX::_exit(0);
}


sub serve {
    my ($s, $out, $n) = @_;
    my $buf = '';
    my $more = sub {
        sysread($s, $buf, 65536, length $buf) or POSIX::_exit(0);
    };

    for (;;) {
        $more->() while $buf !~ /\r\n\r\n/;
        $buf =~ s/^(.*?)\r\n\r\n//s;
        my $head = $1;
        syswrite($out, "$n head " . ($head =~ s/\r\n/|/gr) . "\n");

        # as nobody should: while there still is a body to come
        syswrite($s, "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n"
                     . 'Content-Length: ' . length($ok) . "\r\n\r\n$ok");
        my $body = '';

        if ($head =~ /^transfer-encoding:/im) {
            for (my $size = 1; $size; ) {
                $more->() while $buf !~ s/^([0-9a-f]+)\r\n//i;
                $size = hex $1;
                $more->() while length $buf < $size + 2;
                $body .= substr($buf, 0, $size);
                substr($buf, 0, $size + 2, '');
            }

        } elsif ($head =~ /^content-length: (\d+)/im) {
            $more->() while length $buf < $1;
            $body = substr($buf, 0, $1, '');
        }

        syswrite($out, "$n body " . ($body =~ s/\r\n/|/gr) . "\n");
    }
}


my $path = "$ENV{MCP_TASKS_BUILD}/gateway_bodies.$$";
my ($pid, $port) = server($path);
my $t = MCPTasks->new(
    http => "mcp_tasks_zone zone=z:8m; upstream u { server 127.0.0.1:$port; "
            . 'keepalive 8; }',
    server => <<'END');
    location /mcp { mcp_tasks zone=z; mcp_tasks_pass /upstream; }

    location /open {
        mcp_tasks zone=z;
        mcp_tasks_pass /unbuffered;
    }

    location = /upstream {
        internal;
        proxy_pass http://u/mcp;
        proxy_http_version 1.1;
        proxy_set_header Connection "";
    }

    location = /unbuffered {
        internal;
        proxy_pass http://u/mcp;
        proxy_http_version 1.1;
        proxy_set_header Connection "";
        proxy_request_buffering off;
    }

    location /probe { mcp_tasks_probe zone=z; }
END

my $secret = 'Bearer-of-somebody';
my $c = MCPClient->new($t, headers => { Authorization => $secret });


# What somebody else gets, and that nothing was taken for a body of another's.
sub others {
    my ($name, $uri) = @_;
    my $n = () = slurp($path) =~ /^\d+ head POST/mg;

    for (1 .. 3) {
        my $res = $c->as(uri => $uri)->legacy('ping');
        is("$res->{status} $res->{body}", "200 $ok", "$name: others, $_");
    }

    ok((wait_for { (() = slurp($path) =~ /^\d+ head POST/mg) == $n + 3 } 10),
       "$name: each of them came to the server");
    unlike(slurp($path), qr/^\d+ body .*\Q$secret\E/m,
           "$name: none was taken for a body");
}


my $text = 'x' x 120;
my @lines = map { $_ x 40 } qw/ x y z /;
my $chunks = join('', map { "28\r\n$_\r\n" } @lines) . "0\r\n\r\n";
my %length = ('Content-Length' => 120);
my %chunked = ('Transfer-Encoding' => 'chunked');

for my $uri (qw{ /mcp /open }) {
    for my $method (qw/ GET DELETE /) {
        my %accept = (Accept => 'text/event-stream');

        # --- none of it comes, or not all

        for my $case (['nothing', { %length }, ''],
                      ['a part', { %length }, 'x' x 50],
                      ['no chunk', { %chunked }, ''],
                      ['a chunk', { %chunked }, "28\r\n$lines[0]\r\n"],
                      ['a part of one', { %chunked }, "28\r\nxx"])
        {
            my ($what, $headers, $body) = @$case;
            my $name = "$method $uri: $what";
            my $s = $t->connect();
            MCPTasks::send_raw($s, MCPTasks::message($method, $uri,
                                                     { %accept, %$headers })
                                   . $body);
            others($name, $uri);
            close($s);
            others("$name, then it is closed", $uri);
        }

        # --- all of it, at once or in pieces

        for my $case (['at once', { %length }, $text],
                      ['in pieces', { %length }, substr($text, 0, 50),
                       substr($text, 50)],
                      ['chunked', { %chunked }, $chunks],
                      ['in chunks', { %chunked }, "28\r\n$lines[0]\r\n",
                       "28\r\n$lines[1]\r\n", "28\r\n$lines[2]\r\n0\r\n\r\n"])
        {
            my ($what, $headers, @pieces) = @$case;
            my $name = "$method $uri: a body $what";
            my $s = $t->connect();
            MCPTasks::send_raw($s, MCPTasks::message($method, $uri,
                                                     { %accept, %$headers }),
                               @pieces);
            my $res = MCPTasks::read_response($s) || { status => 0 };
            is($res->{status}, 200, "$name: it is answered");
            others($name, $uri);
        }
    }
}

# --- what no endpoint has

for my $method (qw/ PUT PATCH HEAD /) {
    my $n = () = slurp($path) =~ / head $method/g;
    my $res = $t->request($method, '/mcp', { Origin => 'http://localhost' },
                          $method eq 'HEAD' ? undef : 'x')
              || { status => 0, header => {} };
    is("$res->{status} " . ($res->{header}{allow} // '-'),
       '405 GET, POST, DELETE, OPTIONS', "$method is not allowed");
    is(scalar(() = slurp($path) =~ / head $method/g), $n,
       "$method is not passed");
}

ok($t->stop(), 'nginx stops');
is($t->faults('while sending request to upstream|prematurely closed'), '',
   'nothing in the log that should not be');
kill('TERM', $pid);
waitpid($pid, 0);
unlink($path);
done_testing();
