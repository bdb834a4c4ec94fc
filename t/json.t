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
    my ($body, %headers) = @_;
    my $res = $t->post('/mcp', $body, \%headers, $s);
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
    my ($body, $code, $message, $id, %headers) = @_;
    my $res = post($body, %headers);

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


# t/batch.t has those that may send batches
sub no_batch {
    my ($body) = @_;
    refused($body, -32600, 'Invalid Request: batches are not supported, send '
            . 'one message per POST', undef,
            'MCP-Protocol-Version' => '2025-11-25');
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


# --- what is wrong with a text

my $end = 'unexpected end of input';
my $no_value = 'invalid or missing value';
my $no_comma = 'expected a comma or a closing bracket';
my $no_colon = 'expected a colon after an object key';
my $no_key = 'expected an object key in double quotes';
my $more = 'unexpected characters after the value';
my $escape = 'invalid escape sequence in a string';
my $deep = 'nested deeper than 128 levels';
my $no_method = 'the message has no method and is not a valid response';

# --- the text as a whole

malformed('', $end);
malformed(' ', $end);
malformed(" \t\r\n" x 1000, $end);
malformed("\x0b", $no_value);
malformed("\xef\xbb\xbf" . params(1), $no_value);
malformed("\xff\xfe{\x00}\x00", $no_value);
malformed("\x00", $no_value);
malformed(params(1) . "\x00", $more);
malformed(params(1) . 'x', $more);
malformed(params(1) . params(1), $more);
malformed(params(1) . "\n" . params(1), $more);
malformed(params(1) . '}', $more);
malformed(params(1) . ',', $more);
malformed('"a" "b"', $more);
malformed('1 2', $more);
malformed('undefined', $no_value);
malformed('jsonrpc=2.0&method=ping', $no_value);
malformed('<?xml version="1.0"?>', $no_value);

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
invalid($whole, 'id must be a string or an integer');

# the reason is the end, not what stood before it

malformed('[', $end);
malformed('{', $end);
malformed('[1', $end);
malformed('[1,', $end);
malformed('{"a"', $end);
malformed('{"a\n"', $end);
malformed('{"a":', $end);
malformed('{"a":1', $end);
malformed('{"a":1,', $end);
malformed('{"a":"\n"', $end);
malformed('[[]', $end);
malformed('"', 'unterminated string');
malformed('"abc', 'unterminated string');
malformed('"abc\"', 'unterminated string');
malformed('{"abc', 'unterminated string');

# --- structure

for (['}', $no_value], [']', $no_value], [',', $no_value],
     [':', $no_value], ['[}', $no_value], ['[1}', $no_comma],
     ['{]', $no_key], ['{"a":1]', $no_comma],
     ['[,1]', $no_value], ['[1,,2]', $no_value],
     ['[1,]', $no_value], ['{"a":1,}', $no_key],
     ['{,}', $no_key], ['{"a"}', $no_colon],
     ['{"a" 1}', $no_colon], ['{"a":}', $no_value],
     ['{"a"::1}', $no_value], ['{"a",1}', $no_colon],
     ['{a:1}', $no_key], ['{1:1}', $no_key],
     ['{null:1}', $no_key], ["{'a':1}", $no_key],
     ['[1 2]', $no_comma], ['["a" "b"]', $no_comma],
     ['{"a":1 "b":2}', $no_comma],
     ['{"a":1;"b":2}', $no_comma], ["['a']", $no_value],
     ['/* a */ {}', $no_value], ['[1 /* a */]', $no_comma],
     ["[1, // a\n 2]", $no_value], ["# a\n{}", $no_value],
     ['(1)', $no_value])
{
    malformed($_->[0], $_->[1]);
}

# --- words

for (qw/ tru True TRUE fals False nul Null nil None yes on NaN nan Infinity
         infinity undefined x /)
{
    malformed(params($_), $no_value);
}

for (qw/ truefalse true1 nullnull falsey truex /) {
    malformed(params($_), $no_comma);
}

malformed(params('-Infinity'), 'invalid number');
malformed(params('-NaN'), 'invalid number');

# --- numbers

for (qw/ 00 01 -01 -00 1. -1. 1.e5 1e 1E 1e+ 1e- 1.5e - -- --1 -a 0123 1.x
         -.5 0.e1 /)
{
    malformed(params($_), 'invalid number');
}

for (qw/ +1 .5 .e1 /) {
    malformed(params($_), $no_value);
}

for (qw/ 0x10 1_000 1e5.5 1e5e5 1.5.5 0b1 1f 1-1 1+1 0e0x /) {
    malformed(params($_), $no_comma);
}

fine(params($_)) for qw/ 0 -0 0.0 -0.0 1e5 1E5 1e+5 1e-5 -1.5E-10 1e999999 10
                         123456789012345678901234567890 0e0 /;

# --- strings

for my $c (0 .. 0x1f) {
    malformed(params('"a' . chr($c) . 'b"'),
              'unescaped control character in a string');
}

fine(params("\"\x7f\""));

for (qw/ \a \v \0 \x41 \' \U0041 \u \u1 \u12 \u123 \u123g \uG123 \u-123
         \u+123 /, '\ ', "\\\n", "\\\x80", '\u 123')
{
    malformed(params("\"$_\""), $escape);
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
    malformed(params("\"$bytes\""), 'invalid UTF-8 in a string');
    malformed("{\"$bytes\":1}", 'invalid UTF-8 in a string');
}

fine(params("\"$_\""))
    for "\xc2\x80", "\xdf\xbf", "\xe0\xa0\x80", "\xed\x9f\xbf", "\xee\x80\x80",
        "\xef\xbf\xbf", "\xf0\x90\x80\x80", "\xf4\x8f\xbf\xbf",
        "\xef\xbb\xbf";

# where a string may not be, no byte above 0x7f may be either
malformed("{\"a\":1,\xc2\xa0\"b\":1}", $no_key);
malformed("\xc2\xa0{}", $no_value);

# --- nesting: the message and params are two

fine(params('[' x 126 . ']' x 126));
fine(params('{"a":' x 126 . '1' . '}' x 126));
fine(params('[{"a":' x 63 . '1' . '}]' x 63));
malformed(params('[' x 127 . ']' x 127), $deep);
malformed(params('{"a":' x 127 . '1' . '}' x 127), $deep);
malformed(params('[' x 127), $deep);
no_batch('[' x 128 . ']' x 128);
malformed('[' x 129 . ']' x 129, $deep);
malformed('[' x 1000000, $deep);
malformed('{"":' x 1000000, $deep);
fine(params('[' . join(',', ('[[]]') x 1000) . ']'));

# --- JSON, but not a message

invalid($_, 'the message must be a JSON object')
    for qw/ 1 -1.5 "x" "" true false null /, '"{\"jsonrpc\":\"2.0\"}"';

my $ping = '{"jsonrpc":"2.0","id":1,"method":"ping"}';

no_batch($_)
    for '[]', '[1]', "[$ping]", "[$ping,$ping]", '[[]]';

for ('{}', '{"method":"ping"}', '{"jsonrpc":"1.0","method":"ping"}',
     '{"jsonrpc":2.0,"method":"ping"}', '{"jsonrpc":"2","method":"ping"}',
     '{"jsonrpc":"2.00","method":"ping"}', '{"jsonrpc":"","method":"ping"}',
     '{"jsonrpc":null,"method":"ping"}', '{"jsonrpc":["2.0"],"method":"ping"}',
     '{"JSONRPC":"2.0","method":"ping"}', '{"jsonrpc ":"2.0","method":"ping"}',
     '{"jsonrpc":"2.0\u0000","method":"ping"}')
{
    invalid($_, 'jsonrpc must be the string 2.0');
}

invalid('{"id":7,"method":"ping"}', 'jsonrpc must be the string 2.0', 7);
invalid('{"jsonrpc":"1.0","id":"x","method":"ping"}',
        'jsonrpc must be the string 2.0', '"x"');

invalid('{"jsonrpc":"2.0"}', $no_method);
invalid('{"jsonrpc":"2.0","id":1}', $no_method, 1);
invalid('{"jsonrpc":"2.0","id":1,"params":{}}', $no_method, 1);
invalid('{"jsonrpc":"2.0","result":{}}', $no_method);
invalid('{"jsonrpc":"2.0","error":{}}', $no_method);
invalid('{"jsonrpc":"2.0","id":1,"result":{},"error":{}}',
        $no_method, 1);

invalid("{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":$_}",
        'method must be a string', 1)
    for qw/ 1 null true [] {} ["ping"] /;

# no such text: half a pair, or a NUL, which C would end it at

invalid("{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"$_\"}",
        'method must not contain NUL or a lone surrogate', 1)
    for '\ud800', '\udc00', 'ping\ud83d', '\ude00\ud83d', '\ud83dx',
        '\ud83d\u0041', 'ping\u0000', '\u0000', 'ping\u0000ping';

refused("{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\",\"params\":$_}",
        -32602, 'Invalid params: params must be an object', 1)
    for qw/ 1 null true "x" [] [1] [{}] /;

refused('{"jsonrpc":"2.0","method":"ping","params":[]}', -32602,
        'Invalid params: params must be an object');

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
                    'duplicate member');
        }
    }
}

# others are not ours to judge
fine('{"jsonrpc":"2.0","id":1,"method":"ping","x":1,"x":2}');
fine('{"jsonrpc":"2.0","id":1,"method":"ping","params":{"x":1,"x":2}}');

# --- much of it

my $megabytes = 20;
my $size = $megabytes << 20;

for (['garbage', 'x' x $size, $no_value],
     ['brackets', '[' x $size, $deep],
     ['space', ' ' x $size, $end],
     ['a string', '"' . 'x' x $size, 'unterminated string'],
     ['escapes', '"' . '\\\\' x ($size / 2), 'unterminated string'],
     ['elements', '[' . '1,' x ($size / 2), $end],
     ['members', '{' . '"":0,' x ($size / 5), $end],
     ['a number', '1' x $size . 'x', $more],
     ['NULs', "\x00" x $size, $no_value])
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
