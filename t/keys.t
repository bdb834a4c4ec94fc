# The check that nothing a server sends has a key twice: that it can fail, and
# that all helpers of the tests use it.

use warnings;
use strict;

use FindBin;
use lib "$FindBin::Bin/lib";

use Socket;
use Test::More;

use MCPClient;
use MCPJson;
use MCPTasks;

for my $case (
    ['{"a":1,"a":2}', 'a'],
    ['{"a":1,"b":{"c":[{},{"d":1,"e":"\"","d":2}]}}', 'd'],
    ['{"a\u0062":1,"ab":2}', 'ab'],
    ["{\"\xc3\xa9\":1,\"\\u00e9\":2}", "\xe9"],
    ['[{"a":1},{"a":1, "b" : 2, "b"	:3}]', 'b'],
    ["{\n\"a\": [\"x\", \"x\"],\n\"a\": null}", 'a'],
    ['{"a":{"a":1},"b":"{\"a\":1,\"a\":2}","c":["d","d",":"]}', undef],
    ['{"a":"\\\\","b":"\\"a\\":","c":"]}"}', undef],
    ['[{"a":1},{"a":1},[{"a":1}]]', undef],
    ['"a"', undef], ['a:1,a:2', undef], ['', undef], [undef, undef],
    ['{"' . 'x' x 100000 . '":1,"b":"' . '\\n' x 100000 . '","b":2}', 'b'])
{
    my ($text, $key) = @$case;
    my $name = defined $text ? substr($text, 0, 40) : 'nothing';
    is(MCPJson::duplicate($text), $key, "in $name");
}


# what the other side of a connection has said, read by a helper
sub dies {
    my ($bytes, $read, $name) = @_;
    socketpair(my $here, my $there, AF_UNIX, SOCK_STREAM, PF_UNSPEC)
        or die "socketpair: $!\n";
    syswrite($there, $bytes);
    close($there);

    my $died = !eval { $read->($here); 1 };
    like($died ? $@ : 'nothing', qr/\Aduplicate key "a" in /, $name);
    like(MCPJson::forget() || '', qr/^duplicate key "a"/, 'and is remembered');
}

my $bad = '{"a":1,"a":2}';
my $body = "Content-Length: 13\r\n\r\n$bad";
my $event = "event: x\ndata: {\"a\":1,\ndata: \"a\":2}\n\n";
my $chunk = sprintf "%x\r\n%s\r\n0\r\n\r\n", length $event, $event;
my $stream = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n"
             . "Transfer-Encoding: chunked\r\n\r\n$chunk";

for my $type ('application/json', 'application/problem+json; charset=utf-8') {
    dies("HTTP/1.1 200 OK\r\nContent-Type: $type\r\n$body",
         sub { MCPTasks::read_response($_[0]) }, "a response, $type");
}

dies("HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n$body",
     sub { MCPClient::answer($_[0]) }, 'an answer to a client');
dies($stream, sub { MCPTasks::read_response($_[0]) }, 'a stream as a whole');
dies($stream, sub { MCPClient::Stream->new($_[0])->event() }, 'its events');
dies('', sub { MCPClient::decode($bad) }, 'what is decoded');

# a test that names a key has sent it so
MCPJson::allow('a');
is(MCPJson::duplicate($bad), undef, 'a key that is allowed');
is(MCPJson::duplicate('{"a":1,"b":1,"a":2,"b":2}'), 'b', 'but no other');

done_testing();
