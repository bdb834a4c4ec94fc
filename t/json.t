# Malformed messages of every kind: each is answered, with the reason.

use warnings;
use strict;

use FindBin;
use lib "$FindBin::Bin/lib";

use Test::More;
use Time::HiRes qw/ time /;

use MCPTasks qw/ scale /;

my $t = MCPTasks->new(
    http => 'mcp_tasks_zone zone=z:1m; client_max_body_size 32m;'
            . ' client_body_buffer_size 32k;',
    server => 'location /mcp { mcp_tasks zone=z; }');

# one worker, one connection: none of this may end it
my $s = $t->connect();


sub post {
    my ($body) = @_;
    my $res = $t->post('/mcp', $body, {}, $s);
    return $res if $res;

    $s = $t->connect();
    return { status => 0, body => 'no answer' };
}


sub printable {
    my ($text) = @_;
    $text = substr($text, 0, 60) . '...' if length $text > 63;
    $text =~ s/([^ -~])/sprintf '\\x%02x', ord $1/ge;
    return $text;
}


sub refused {
    my ($body, $code, $message, $id) = @_;
    my $res = post($body);

    is("$res->{status} $res->{body}",
       '400 {"jsonrpc":"2.0"' . (defined $id ? ",\"id\":$id" : '')
       . ",\"error\":{\"code\":$code,\"message\":\"$message\"}}",
       "text: " . printable($body));
}


sub malformed {
    my ($body, $why) = @_;
    refused($body, -32700, "Parse error: $why");
}


sub invalid {
    my ($body, $why, $id) = @_;
    refused($body, -32600, "Invalid Request: $why", $id);
}


# inside of an otherwise good message
sub params {
    my ($value) = @_;
    return '{"jsonrpc":"2.0","id":1,"method":"ping","params":{"x":' . $value
           . '}}';
}


sub fine {
    my ($body) = @_;
    my $res = post($body);

    is("$res->{status} $res->{body}",
       '200 {"jsonrpc":"2.0","id":1,"result":{}}', printable($body));
}


# --- the text as a whole

malformed('', 'unexpected end');
malformed(' ', 'unexpected end');
malformed(" \t\r\n" x 1000, 'unexpected end');
malformed("\x0b", 'not a value');
malformed("\xef\xbb\xbf" . params(1), 'not a value');
malformed("\xff\xfe{\x00}\x00", 'not a value');
malformed("\x00", 'not a value');
malformed(params(1) . "\x00", 'more than one value');
malformed(params(1) . 'x', 'more than one value');
malformed(params(1) . params(1), 'more than one value');
malformed(params(1) . "\n" . params(1), 'more than one value');
malformed(params(1) . '}', 'more than one value');
malformed(params(1) . ',', 'more than one value');
malformed('"a" "b"', 'more than one value');
malformed('1 2', 'more than one value');
malformed('undefined', 'not a value');
malformed('jsonrpc=2.0&method=ping', 'not a value');
malformed('<?xml version="1.0"?>', 'not a value');

fine(" \t\r\n" . params(1) . " \t\r\n");

# --- cut short at every byte

my $whole = ' {"jsonrpc" : "2.0", "id":-12.5e+3, "method":"p\u0069n\\\\g'
            . "\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80\", \"params\":{\"a\":[true,"
            . 'false,null,{},[],-0,"\ud83d\ude00"],"b":{"c":0.1E-2}} }';
my $wrong = 0;

for my $len (0 .. length($whole) - 1) {
    my $res = post(substr($whole, 0, $len));
    next if $res->{status} == 400
            && $res->{body} =~ /\A\{"jsonrpc":"2\.0","error":\{"code":-32700,
                                "message":"Parse\ error:\ [^"]+"\}\}\z/x;
    $wrong++;
    diag("cut at $len: $res->{status} $res->{body}");
}

is($wrong, 0, 'a message that is cut at any byte');
invalid($whole, 'id is neither a string nor an integer');

# the reason is the end, not what stood before it

malformed('[', 'unexpected end');
malformed('{', 'unexpected end');
malformed('[1', 'unexpected end');
malformed('[1,', 'unexpected end');
malformed('{"a"', 'unexpected end');
malformed('{"a\n"', 'unexpected end');
malformed('{"a":', 'unexpected end');
malformed('{"a":1', 'unexpected end');
malformed('{"a":1,', 'unexpected end');
malformed('{"a":"\n"', 'unexpected end');
malformed('[[]', 'unexpected end');
malformed('"', 'a string does not end');
malformed('"abc', 'a string does not end');
malformed('"abc\"', 'a string does not end');
malformed('{"abc', 'a string does not end');

# --- structure

for (['}', 'not a value'], [']', 'not a value'], [',', 'not a value'],
     [':', 'not a value'], ['[}', 'not a value'], ['[1}', 'a comma is missing'],
     ['{]', 'a key is missing'], ['{"a":1]', 'a comma is missing'],
     ['[,1]', 'not a value'], ['[1,,2]', 'not a value'],
     ['[1,]', 'not a value'], ['{"a":1,}', 'a key is missing'],
     ['{,}', 'a key is missing'], ['{"a"}', 'a colon is missing'],
     ['{"a" 1}', 'a colon is missing'], ['{"a":}', 'not a value'],
     ['{"a"::1}', 'not a value'], ['{"a",1}', 'a colon is missing'],
     ['{a:1}', 'a key is missing'], ['{1:1}', 'a key is missing'],
     ['{null:1}', 'a key is missing'], ["{'a':1}", 'a key is missing'],
     ['[1 2]', 'a comma is missing'], ['["a" "b"]', 'a comma is missing'],
     ['{"a":1 "b":2}', 'a comma is missing'],
     ['{"a":1;"b":2}', 'a comma is missing'], ["['a']", 'not a value'],
     ['/* a */ {}', 'not a value'], ['[1 /* a */]', 'a comma is missing'],
     ["[1, // a\n 2]", 'not a value'], ["# a\n{}", 'not a value'],
     ['(1)', 'not a value'])
{
    malformed($_->[0], $_->[1]);
}

# --- words

for (qw/ tru True TRUE fals False nul Null nil None yes on NaN nan Infinity
         infinity undefined x /)
{
    malformed(params($_), 'not a value');
}

for (qw/ truefalse true1 nullnull falsey truex /) {
    malformed(params($_), 'a comma is missing');
}

malformed(params('-Infinity'), 'an invalid number');
malformed(params('-NaN'), 'an invalid number');

# --- numbers

for (qw/ 00 01 -01 -00 1. -1. 1.e5 1e 1E 1e+ 1e- 1.5e - -- --1 -a 0123 1.x
         -.5 0.e1 /)
{
    malformed(params($_), 'an invalid number');
}

for (qw/ +1 .5 .e1 /) {
    malformed(params($_), 'not a value');
}

for (qw/ 0x10 1_000 1e5.5 1e5e5 1.5.5 0b1 1f 1-1 1+1 0e0x /) {
    malformed(params($_), 'a comma is missing');
}

fine(params($_)) for qw/ 0 -0 0.0 -0.0 1e5 1E5 1e+5 1e-5 -1.5E-10 1e999999 10
                         123456789012345678901234567890 0e0 /;

# --- strings

for my $c (0 .. 0x1f) {
    malformed(params('"a' . chr($c) . 'b"'), 'a control character in a string');
}

fine(params("\"\x7f\""));

for (qw/ \a \v \0 \x41 \' \U0041 \u \u1 \u12 \u123 \u123g \uG123 \u-123
         \u+123 /, '\ ', "\\\n", "\\\x80", '\u 123')
{
    malformed(params("\"$_\""), 'an invalid escape');
}

fine(params('"' . $_ . '"'))
    for '\"\\\\\/\b\f\n\r\t', '\u0000', '\uabcd\uABCD', '\ud800', '\udc00',
        '\ud800x', '\ud800\ud800', '\udc00\ud800', '\ud83d\ude00';

# --- UTF-8

for (['a continuation alone', "\x80"], ['a continuation alone', "\xbf"],
     ['2 bytes, overlong', "\xc0\x80"], ['2 bytes, overlong', "\xc0\xaf"],
     ['2 bytes, overlong', "\xc1\xbf"], ['3 bytes, overlong', "\xe0\x80\x80"],
     ['3 bytes, overlong', "\xe0\x9f\xbf"],
     ['4 bytes, overlong', "\xf0\x80\x80\x80"],
     ['4 bytes, overlong', "\xf0\x8f\xbf\xbf"],
     ['a surrogate', "\xed\xa0\x80"], ['a surrogate', "\xed\xaf\xbf"],
     ['a surrogate', "\xed\xb0\x80"], ['a surrogate', "\xed\xbf\xbf"],
     ['CESU-8', "\xed\xa0\xbd\xed\xb8\x80"],
     ['above U+10FFFF', "\xf4\x90\x80\x80"],
     ['above U+10FFFF', "\xf5\x80\x80\x80"],
     ['above U+10FFFF', "\xf7\xbf\xbf\xbf"],
     ['5 bytes', "\xf8\x88\x80\x80\x80"],
     ['6 bytes', "\xfc\x84\x80\x80\x80\x80"], ['no first byte', "\xfe"],
     ['no first byte', "\xff"], ['cut', "\xc3"], ['cut', "\xe2\x82"],
     ['cut', "\xe2"], ['cut', "\xf0\x9f\x98"], ['cut', "\xf0\x9f"],
     ['cut', "\xf0"], ['cut by another', "\xc3a"],
     ['cut by another', "\xe2\x82a"], ['cut by another', "\xe2a\x82"],
     ['cut by another', "\xf0\x9f\x98a"], ['cut by a first byte', "\xc3\xc3"],
     ['Latin-1', "caf\xe9"])
{
    my ($name, $bytes) = @$_;
    malformed(params("\"$bytes\""), 'invalid UTF-8');
    malformed("{\"$bytes\":1}", 'invalid UTF-8');
}

fine(params("\"$_\""))
    for "\xc2\x80", "\xdf\xbf", "\xe0\xa0\x80", "\xed\x9f\xbf", "\xee\x80\x80",
        "\xef\xbf\xbf", "\xf0\x90\x80\x80", "\xf4\x8f\xbf\xbf",
        "\xef\xbb\xbf";

# where a string may not be, no byte above 0x7f may be either
malformed("{\"a\":1,\xc2\xa0\"b\":1}", 'a key is missing');
malformed("\xc2\xa0{}", 'not a value');

# --- nesting: the message and params are two

fine(params('[' x 126 . ']' x 126));
fine(params('{"a":' x 126 . '1' . '}' x 126));
fine(params('[{"a":' x 63 . '1' . '}]' x 63));
malformed(params('[' x 127 . ']' x 127), 'nested too deeply');
malformed(params('{"a":' x 127 . '1' . '}' x 127), 'nested too deeply');
malformed(params('[' x 127), 'nested too deeply');
invalid('[' x 128 . ']' x 128, 'batches are not supported');
malformed('[' x 129 . ']' x 129, 'nested too deeply');
malformed('[' x 1000000, 'nested too deeply');
malformed('{"":' x 1000000, 'nested too deeply');
fine(params('[' . join(',', ('[[]]') x 1000) . ']'));

# --- JSON, but not a message

invalid($_, 'not an object')
    for qw/ 1 -1.5 "x" "" true false null /, '"{\"jsonrpc\":\"2.0\"}"';

my $ping = '{"jsonrpc":"2.0","id":1,"method":"ping"}';

invalid($_, 'batches are not supported')
    for '[]', '[1]', "[$ping]", "[$ping,$ping]", '[[]]';

for ('{}', '{"method":"ping"}', '{"jsonrpc":"1.0","method":"ping"}',
     '{"jsonrpc":2.0,"method":"ping"}', '{"jsonrpc":"2","method":"ping"}',
     '{"jsonrpc":"2.00","method":"ping"}', '{"jsonrpc":"","method":"ping"}',
     '{"jsonrpc":null,"method":"ping"}', '{"jsonrpc":["2.0"],"method":"ping"}',
     '{"JSONRPC":"2.0","method":"ping"}', '{"jsonrpc ":"2.0","method":"ping"}',
     '{"jsonrpc":"2.0\u0000","method":"ping"}')
{
    invalid($_, 'jsonrpc is not 2.0');
}

invalid('{"id":7,"method":"ping"}', 'jsonrpc is not 2.0', 7);
invalid('{"jsonrpc":"1.0","id":"x","method":"ping"}',
        'jsonrpc is not 2.0', '"x"');

invalid('{"jsonrpc":"2.0"}', 'method is missing');
invalid('{"jsonrpc":"2.0","id":1}', 'method is missing', 1);
invalid('{"jsonrpc":"2.0","id":1,"params":{}}', 'method is missing', 1);
invalid('{"jsonrpc":"2.0","result":{}}', 'method is missing');
invalid('{"jsonrpc":"2.0","error":{}}', 'method is missing');
invalid('{"jsonrpc":"2.0","id":1,"result":{},"error":{}}',
        'method is missing', 1);

invalid("{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":$_}",
        'method is not a string', 1)
    for qw/ 1 null true [] {} ["ping"] /;

# no such text: half a pair, or a NUL, which C would end it at

invalid("{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"$_\"}",
        'method is not text', 1)
    for '\ud800', '\udc00', 'ping\ud83d', '\ude00\ud83d', '\ud83dx',
        '\ud83d\u0041', 'ping\u0000', '\u0000', 'ping\u0000ping';

refused("{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\",\"params\":$_}",
        -32602, 'Invalid params: params is not an object', 1)
    for qw/ 1 null true "x" [] [1] [{}] /;

refused('{"jsonrpc":"2.0","method":"ping","params":[]}', -32602,
        'Invalid params: params is not an object');

# --- the same member twice

for my $name (qw/ jsonrpc id method params result error /) {
    my %value = (jsonrpc => '"2.0"', id => 1, method => '"ping"',
                 params => '{}', result => '{}', error => '{}');
    my $escaped = $name =~ s/^(.)/sprintf '\\u%04x', ord $1/er;

    for my $again ($name, $escaped) {
        for my $pair (["\"$name\"", "\"$again\""],
                      ["\"$again\"", "\"$name\""])
        {
            my %rest = %value;
            delete @rest{$name, qw/ result error /};

            invalid('{' . join(',', "$pair->[0]:$value{$name}",
                               (map { "\"$_\":$rest{$_}" } sort keys %rest),
                               "$pair->[1]:$value{$name}") . '}',
                    'a member stands twice');
        }
    }
}

# others are not ours to judge
fine('{"jsonrpc":"2.0","id":1,"method":"ping","x":1,"x":2}');
fine('{"jsonrpc":"2.0","id":1,"method":"ping","params":{"x":1,"x":2}}');

# --- much of it

my $megabytes = 20;
my $size = $megabytes << 20;

for (['garbage', 'x' x $size, 'not a value'],
     ['brackets', '[' x $size, 'nested too deeply'],
     ['space', ' ' x $size, 'unexpected end'],
     ['a string', '"' . 'x' x $size, 'a string does not end'],
     ['escapes', '"' . '\\\\' x ($size / 2), 'a string does not end'],
     ['elements', '[' . '1,' x ($size / 2), 'unexpected end'],
     ['members', '{' . '"":0,' x ($size / 5), 'unexpected end'],
     ['a number', '1' x $size . 'x', 'more than one value'],
     ['NULs', "\x00" x $size, 'not a value'])
{
    my ($name, $body, $why) = @$_;
    my $start = time();
    my $res = post($body);
    my $took = time() - $start;

    is("$res->{status} $res->{body}", '400 {"jsonrpc":"2.0","error":{"code":'
       . "-32700,\"message\":\"Parse error: $why\"}}",
       "$megabytes MB of $name");

    # a scanner that goes back would take minutes
    cmp_ok($took, '<', 10, "$megabytes MB of $name: in time");
}

fine('{"jsonrpc":"2.0","id":1,"method":"ping","params":{"x":"'
     . 'x' x $size . '"}}');

# --- noise: whatever comes, the answer is one of two

my $seed = $ENV{MCP_TASKS_SEED} || int rand 2 ** 31;
note("seed $seed (MCP_TASKS_SEED)");
srand($seed);

$wrong = 0;

for (1 .. scale(2000)) {
    my $body = params('{"a":["b",1.5e3,true,{"c":"\u00e9' . "\xc3\xa9"
                      . '"}]}');

    for (0 .. int rand 3) {
        my $at = int rand length $body;
        my $what = rand;

        if ($what < 0.4) {
            substr($body, $at, 1) = chr int rand 256;
        } elsif ($what < 0.7) {
            substr($body, $at, 1) = '';
        } else {
            substr($body, $at, 0) = substr($body, int rand length $body,
                                           1 + int rand 8);
        }
    }

    my $res = post($body);
    next if $res->{status} =~ /^(200|202|400|404)$/;
    $wrong++;
    diag("$res->{status} to " . printable($body));
}

is($wrong, 0, "messages with noise, seed $seed");

fine($ping);
ok($t->stop(), 'nginx stops');
is($t->faults(), '', 'nothing in the log that should not be');

done_testing();
