# Requests whose length is in doubt, through the gateway: each is refused, or is
# exactly one request to the server, with one length.  The server keeps its
# connections, so that what is left of one would be the begin of the next.

use warnings;
use strict;

use FindBin;
use lib "$FindBin::Bin/lib";

use IO::Select;
use IO::Socket::INET;
use JSON::PP;
use POSIX ();
use Test::More;

use MCPFile qw/ slurp /;
use MCPHttp2;
use MCPTasks qw/ free_port wait_for /;

my $json = JSON::PP->new->canonical;


# --- a server that believes in one framing, and writes down all that it gets

sub serve {
    my ($listener, $file) = @_;
    my $select = IO::Select->new($listener);
    my %raw;

    for (;;) {
        for my $s ($select->can_read()) {
            if ($s == $listener) {
                my $new = $listener->accept() or next;
                $select->add($new);
                $raw{$new} = '';
                next;
            }

            if (!sysread($s, $raw{$s}, 65536, length $raw{$s})) {
                note_down($file, { rest => $raw{$s} }) if length $raw{$s};
                $select->remove($s);
                delete $raw{$s};
                close($s);
                next;
            }

            while (my $req = request(\$raw{$s})) {
                note_down($file, $req);
                my ($id) = $req->{body} =~ /"id":("[^"]*"|\d+)/;
                my $text = '{"jsonrpc":"2.0","id":' . ($id // 'null')
                           . ',"result":{"a":1}}';
                syswrite($s, "HTTP/1.1 200 OK\r\nContent-Type: "
                             . "application/json\r\nContent-Length: "
                             . length($text) . "\r\n\r\n$text");
            }
        }
    }
}


sub request {
    my ($raw) = @_;
    $$raw =~ /\A(.*?)\r\n(.*?\r\n)\r\n/s or return;
    my ($line, $head, $start) = ($1, $2, $+[0]);
    my @lengths = $head =~ /^content-length: *(.*?)\r$/mgi;
    my $chunked = $head =~ /^transfer-encoding:/mi;
    my $len = @lengths ? $lengths[0] : 0;

    return if length $$raw < $start + $len;

    my $req = { line => $line, head => $head, lengths => \@lengths,
                chunked => $chunked ? 1 : 0,
                body => substr($$raw, $start, $len) };
    substr($$raw, 0, $start + $len, '');
    return $req;
}


sub note_down {
    my ($file, $what) = @_;
    open(my $out, '>>', $file) or return;
    print $out $json->encode($what), "\n";
    close($out);
}


my $listener = IO::Socket::INET->new(LocalAddr => '127.0.0.1', Listen => 64,
                                     ReuseAddr => 1) or die "no port: $!\n";
my $h2port = free_port();

my $t = MCPTasks->new(
    http => 'mcp_tasks_zone zone=z:2m; upstream behind { server 127.0.0.1:'
            . $listener->sockport() . '; keepalive 8; }',
    server => <<"END");
    listen 127.0.0.1:$h2port http2;
    keepalive_timeout 150ms;
    client_header_timeout 300ms;
    client_body_timeout 300ms;
    lingering_close off;

    location /mcp {
        mcp_tasks zone=z;
        mcp_tasks_pass /upstream;
        mcp_tasks_tool far support=optional;
    }

    location = /upstream {
        internal;
        proxy_pass http://behind/mcp;
        proxy_http_version 1.1;
        proxy_set_header Connection "";
    }
END

my $file = "$t->{dir}/seen.log";
my $pid = fork();
die "fork: $!\n" unless defined $pid;

if ($pid == 0) {
    $SIG{PIPE} = 'IGNORE';
    serve($listener, $file);
    POSIX::_exit(0);
}

close($listener);


sub seen {
    return () unless -e $file;
    return map { $json->decode($_) } split /\n/, slurp($file);
}


# --- the cases

my $body = '{"jsonrpc":"2.0","id":1,"method":"prompts/list"}';
my $task = '{"jsonrpc":"2.0","id":1,"method":"tools/call","params":'
           . '{"name":"far","arguments":{},"task":{}}}';
my $n = length $body;
my $evil = "POST /mcp HTTP/1.1\r\nHost: localhost\r\nX-Smuggled: 1\r\n"
           . "Content-Type: application/json\r\nContent-Length: $n\r\n\r\n"
           . $body;


sub chunk {
    my ($text) = @_;
    return sprintf("%x\r\n", length $text) . "$text\r\n";
}


sub post {
    my ($headers, $payload, $line) = @_;
    return ($line || 'POST /mcp HTTP/1.1') . "\r\nHost: localhost\r\n"
           . "Content-Type: application/json\r\n"
           . "Accept: application/json, text/event-stream\r\n"
           . "$headers\r\n$payload";
}


my $length = "Content-Length: $n\r\n";
my $te = "Transfer-Encoding: chunked\r\n";
my $chunks = chunk($body) . "0\r\n\r\n";
my $both = "0\r\n\r\n$evil";
my $all = length $both;

# how many requests the server gets; and a body, if it is not the usual one
my @cases = (
    ['a length', 1, post($length, $body)],
    ['chunks', 1, post($te, $chunks)],
    ['two requests', 2, post($length, $body) . post($te, $chunks)],

    ['length, then chunks', 0, post("Content-Length: $all\r\n$te", $both)],
    ['chunks, then length', 0, post("${te}Content-Length: $all\r\n", $both)],
    ['chunks and the length 0', 0, post("${te}Content-Length: 0\r\n", $both)],
    ['the same length twice', 0, post($length x 2, $body)],
    ['two lengths', 0, post("${length}Content-Length: 0\r\n", $body)],
    ['two lengths, the larger one last', 0,
     post($length . 'Content-Length: ' . ($n + length $evil) . "\r\n",
          $body . $evil)],
    ['a list of lengths', 0, post("Content-Length: $n, $n\r\n", $body)],
    ['a length with a plus', 0, post("Content-Length: +$n\r\n", $body)],
    ['a negative length', 0, post("Content-Length: -1\r\n", $body)],
    ['a hexadecimal length', 0, post("Content-Length: 0x30\r\n", $body)],
    ['a length with a space in it', 0, post("Content-Length: 4 8\r\n", $body)],
    ['a length without a number', 0, post("Content-Length:\r\n", $evil)],
    ['a length beyond 64 bits', 0,
     post("Content-Length: 18446744073709551664\r\n", $body)],
    ['space around the length', 1, post("Content-Length:   $n  \r\n", $body)],
    ['a vertical tab after the length', 0,
     post("Content-Length: $n\x0b\r\n", $body)],

    ['chunked twice', 0, post($te x 2, $chunks)],
    ['chunked, chunked', 0,
     post("Transfer-Encoding: chunked, chunked\r\n", $chunks)],
    ['identity', 0, post("Transfer-Encoding: identity\r\n$length", $body)],
    ['chunked, identity', 0,
     post("Transfer-Encoding: chunked, identity\r\n", $chunks)],
    ['xchunked', 0, post("Transfer-Encoding: xchunked\r\n$length", $body)],
    ['chunked after a tab', 0,
     post("Transfer-Encoding:\tchunked\r\n$length", $body)],
    ['CHUNKED', 1, post("Transfer-Encoding: CHUNKED\r\n", $chunks)],
    ['space before the colon', 0,
     post("Transfer-Encoding : chunked\r\n$length", $body)],
    ['space before the colon of the length', 0,
     post("Content-Length : $n\r\n", $evil)],
    ['an underscore', 1, post("Transfer_Encoding: chunked\r\n$length", $body)],
    ['chunks over HTTP/1.0', 0, post($te, $chunks, 'POST /mcp HTTP/1.0')],

    ['obs-fold: a header in a header', 0,
     post("X-A: b\r\n $te$length", $body)],
    ['obs-fold: with a tab', 0, post("X-A: b\r\n\t$te$length", $body)],
    ['obs-fold: the encoding', 0,
     post("Transfer-Encoding:\r\n chunked\r\n$length", $body)],
    ['obs-fold: the length', 0,
     post("Content-Length:\r\n $n\r\n", $body)],
    ['obs-fold: the first line', 0, post(" $te$length", $body)],
    ['a line feed alone', 0, post("X-A: b\n$te$length", $body)],
    ['a carriage return alone', 0, post("X-A: b\r$te$length", $body)],
    ['a zero in a header', 0, post("X-A: b\x00c\r\n$length", $body)],

    ['a chunk with 0x', 0, post($te, "0x30\r\n$body\r\n0\r\n\r\n")],
    ['a negative chunk', 0, post($te, "-30\r\n$body\r\n0\r\n\r\n")],
    ['a chunk beyond 64 bits', 0,
     post($te, "10000000000000030\r\n$body\r\n0\r\n\r\n")],
    ['a chunk that is longer than it says', 0,
     post($te, sprintf("%x\r\n%s\r\n0\r\n\r\n", $n - 1, $body))],
    ['an extension of a chunk', 1,
     post($te, sprintf("%x;a=\"b\r\n%s\r\n0\r\n\r\n", $n, $body))],
    ['trailers', 1, post($te, chunk($body) . "0\r\nContent-Length: 5\r\n"
                              . "X-Smuggled: 1\r\n\r\n")],
    ['a body that is shorter than its length', 0,
     post("Content-Length: 1000\r\n", $body)],

    ['the length as a hop', 1,
     post("Connection: Content-Length\r\n$length", $body)],
    ['HTTP/2 that is asked for', 1,
     post("Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\n"
          . "HTTP2-Settings: AAMAAABkAAQAAP__\r\n$length", $body)],
    ['two hosts', 0, post("Host: evil.example\r\n$length", $body)],
    ['a URI of another host', 0,
     post($length, $body, 'POST http://evil.example/mcp HTTP/1.1')],
    ['a GET with a body', 1,
     post('Content-Length: ' . length($evil) . "\r\n", $evil,
          'GET /mcp HTTP/1.1'), $evil],
    ['a GET with chunks', 1,
     post($te, chunk($evil) . "0\r\n\r\n", 'GET /mcp HTTP/1.1'), $evil],
);


# all that comes until nginx closes: what it says to each request
sub ask {
    my ($bytes) = @_;
    my $s = $t->connect() or die "no connection\n";
    MCPTasks::send_raw($s, $bytes);
    my $text = '';

    1 while IO::Select->new($s)->can_read(20)
            && sysread($s, $text, 65536, length $text);
    close($s);

    return $text =~ m{HTTP/1\.1 (?!100)(\d{3}) }g;
}


# those that came meanwhile are so many, and nobody doubts how long they are
sub came {
    my ($before, $want, $name, $expected) = @_;
    my @all = seen();
    my @new = @all[$before .. $#all];

    is(scalar(@new), $want, "$name: requests at the server");

    for (@new) {
        my $doubt = join ' ', grep { defined } $_->{rest} && 'a rest',
            ($_->{line} // '') =~ m{^(POST|GET) /mcp HTTP/1\.1$}
                ? undef : $_->{line},
            ($_->{head} // '') =~ /smuggled|evil/i ? 'another head' : undef,
            $_->{chunked} ? 'chunks' : undef,
            @{ $_->{lengths} || [] } == 1 ? undef : 'lengths',
            ($_->{body} // '') eq $expected ? undef : "body $_->{body}";
        is($doubt, '', "$name: one, and whole") or diag(explain($_));
    }

    return @new;
}


for my $case (@cases) {
    my ($name, $want, $bytes, $expected) = @$case;
    my $before = () = seen();
    my @status = ask($bytes);

    if ($want) {
        is(scalar(grep { $_ == 200 } @status), $want, "$name: answered");
    } else {
        cmp_ok($status[0] // 408, '>=', 400, "$name: refused");
        is(scalar(grep { $_ < 400 } @status), 0, "$name: nothing is answered");
    }

    came($before, $want, $name, $expected // $body);
}

# --- in the background: whatever the client's framing, the call has one length

for (['chunks', $te, chunk($task) . "0\r\nX-Smuggled: 1\r\n\r\n"],
     ['chunks, each of a byte', $te, join('', map { chunk($_) }
                                         split //, $task) . "0\r\n\r\n"],
     ['a length', 'Content-Length: ' . length($task) . "\r\n", $task],
     ['hops', "Connection: close, X-Hop\r\nTE: trailers\r\nTrailer: X-A\r\n"
              . 'Content-Length: ' . length($task) . "\r\n", $task])
{
    my ($name, $headers, $payload) = @$_;
    my $before = () = seen();
    is((ask(post($headers, $payload)))[0], 200, "background, $name: a task");
    ok((wait_for { my @all = seen(); @all > $before } 10),
       "background, $name: it is called");
    my ($call) = (seen())[$before];
    came($before, 1, "background, $name", $call->{body});
    like($call->{body}, qr/"method":"tools\/call"/, 'what was asked for');
    unlike($call->{head}, qr/^(te|trailer|transfer-encoding|connection):/mi,
           'without what was between others');
}

# --- HTTP/2, which has no such doubts, but is made HTTP/1.1

my %h2 = ('content-type' => 'application/json',
          accept => 'application/json, text/event-stream');

for (['a request', 1, {}],
     ['its length', 1, { 'content-length' => $n }],
     ['a length that is less', 0, { 'content-length' => $n - 1 }],
     ['a length that is more', 0, { 'content-length' => $n + 1 }],
     ['a length that is none', 0, { 'content-length' => 'x' }],
     ['chunked', 0, { 'transfer-encoding' => 'chunked' },
      { body => $both }],
     ['chunked, and a length', 0, { 'transfer-encoding' => 'chunked',
                                    'content-length' => $all },
      { body => $both }],
     ['trailers', 1, { te => 'trailers' }],
     ['a line in a value', 0, { 'x-a' => "b\r\nTransfer-Encoding: chunked" }],
     ['a line feed in a value', 0, { 'x-a' => "b\nContent-Length: 0" }],
     ['a zero in a value', 0, { 'x-a' => "b\x00c" }],
     ['a request in a value', 0, { 'x-a' => "b\r\n\r\n$evil" }],
     ['a line in a name', 0, { "x-a: b\r\ntransfer-encoding" => 'chunked' }],
     ['a colon in a name', 0, { 'transfer-encoding: chunked' => 'x' }],
     ['a name in upper case', 0, { 'Content-Length' => 0 }],
     ['a line in the path', 0, {},
      { path => "/mcp HTTP/1.1\r\nX-Smuggled: 1\r\nX: " }],
     ['a space in the path', 0, {}, { path => '/mcp HTTP/1.1 x' }],
     ['a line in the authority', 0, {},
      { authority => "localhost\r\nX-Smuggled: 1" }])
{
    my ($name, $want, $headers, $more) = @$_;
    my $before = () = seen();
    my $h2 = MCPHttp2->new($h2port);
    $h2->{authority} = $more->{authority} if $more->{authority};
    my $stream = $h2->post($more->{path} || '/mcp', $more->{body} || $body,
                           %h2, %$headers);
    $h2->until(sub { $h2->over($stream) || $h2->cut($stream)
                     || $h2->{goaway} }, 10);

    if ($want) {
        is($h2->status($stream), 200, "HTTP/2, $name: answered");
    } else {
        isnt($h2->status($stream), 200, "HTTP/2, $name: refused");
    }

    $h2->close();
    came($before, $want, "HTTP/2, $name", $body);
}

kill('TERM', $pid);
waitpid($pid, 0);

ok($t->stop(), 'nginx stops');
is($t->faults(qr/client sent invalid chunked body/), '',
   'nothing bad in the log');

done_testing();
