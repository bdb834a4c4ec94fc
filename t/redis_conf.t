# The block mcp_tasks_redis: what is refused, and with which words.

use warnings;
use strict;

use FindBin;
use lib "$FindBin::Bin/lib";

use Test::More;

use MCPFile qw/ write_file /;
use MCPTasks;

my $t = MCPTasks->new();
my $dir = $t->{dir};

write_file("$dir/password", "secret\nsecond line\n");
write_file("$dir/empty", "\nsecond line\n");
write_file("$dir/long", 'x' x 513 . "\n");
write_file("$dir/longest", 'x' x 512 . "\n");
write_file("$dir/ca.pem", "no certificate\n");


sub check {
    my ($http) = @_;
    $t->configure(http => $http);
    my ($ok, $said) = $t->check();
    return ($ok, $said);
}


sub accepts {
    my ($name, $lines, $around) = @_;
    my ($ok, $said) = check("mcp_tasks_redis db { $lines }" . ($around // ''));
    ok($ok, $name) or diag($said);
    unlike($said, qr/\[(?:warn|alert)\]/, "$name: no warning");
}


sub refuses {
    my ($name, $lines, $words) = @_;
    my ($ok, $said) = check("mcp_tasks_redis db { $lines }");
    ok(!$ok, $name);
    like($said, qr/\[emerg\].*\Q$words\E/, "$name: message")
        or diag($said);
    like($said, qr/nginx\.conf:\d+$/m, "$name: place");
}


accepts('a unix socket', 'server unix:/tmp/redis.sock;');
accepts('an address', 'server 127.0.0.1:6379;');
accepts('an address without a port', 'server 127.0.0.1;');
accepts('an IPv6 address', 'server [::1]:6379;');
accepts('a name', 'server redis.example:6379;', 'resolver 127.0.0.1;');
accepts('everything', <<'END', 'mcp_tasks_redis other { server 127.0.0.1; }');
    server 127.0.0.1; user nginx; password_file password; database 15;
    prefix tasks:1; partitions 16384; timeout 10s; connect_timeout 500ms;
    retry 100ms max=10s; tls off;
END
accepts('a long retry', 'server 127.0.0.1; retry 5s;');
accepts('the longest password', 'server 127.0.0.1; password_file longest;');
accepts('one partition', 'server 127.0.0.1; partitions 1;');
accepts('TLS without verification', 'server 127.0.0.1; tls on; tls_verify off;');

write_file("$dir/part.conf", "database 3;\n");
accepts('an included file', "server 127.0.0.1; include $dir/part.conf;");

refuses('no server', 'database 1;', 'mcp_tasks_redis "db" has no "server"');
refuses('two servers', 'server 127.0.0.1; server 127.0.0.2;',
        '"server" directive is duplicate: "127.0.0.2"');
refuses('an empty server', 'server "";',
        '"server" directive has an invalid value');
refuses('a port that is none', 'server 127.0.0.1:99999;',
        'invalid port in server "127.0.0.1:99999"');
refuses('a path', 'server 127.0.0.1:6379/0;',
        'invalid host in server "127.0.0.1:6379/0"');
refuses('no host', 'server :6379;', 'no host in server ":6379"');
refuses('a bad IPv6 address', 'server [::x]:6379;',
        'invalid IPv6 address in server "[::x]:6379"');
refuses('no path', 'server unix:;',
        'no path in the unix domain socket in server "unix:"');
refuses('a name without a resolver', 'server redis.example;',
        'no "resolver" is defined at the http level to resolve '
        . '"redis.example"');

refuses('no arguments', 'server;',
        'invalid number of arguments in "server" directive');
refuses('too many arguments', 'server 127.0.0.1 127.0.0.2;',
        'invalid number of arguments in "server" directive');
refuses('an unknown directive', 'server 127.0.0.1; color red;',
        'unknown directive "color" in mcp_tasks_redis');
refuses("$_, which is to come", "server 127.0.0.1; $_ x y;",
        qq(unknown directive "$_" in mcp_tasks_redis))
    for qw/ sentinel cluster ack /;
refuses('a block', 'server 127.0.0.1; tls { }', 'unexpected "{"');

my %value = (user => 'ann', password_file => 'password', database => 1,
             prefix => 'mt', partitions => 2, timeout => '1s',
             connect_timeout => '1s', retry => '1s', tls => 'off',
             tls_trusted_certificate => 'ca.pem', tls_name => 'x',
             tls_verify => 'on', tls_verify_depth => 2);

for my $name (sort keys %value) {
    refuses("$name twice", "server 127.0.0.1; $name $value{$name};"
                           . " $name $value{$name};",
            qq("$name" directive is duplicate: "$value{$name}"));
}

my %invalid = (database => [qw/ x -1 /], timeout => ['x'],
               connect_timeout => ['x'], retry => [qw/ x 0 /],
               tls => ['yes'], tls_verify => ['1'],
               tls_verify_depth => ['x']);

for my $name (sort keys %invalid) {
    refuses("$name $_", "server 127.0.0.1; $name $_;", $_)
        for @{ $invalid{$name} };
}

refuses("partitions $_", "server 127.0.0.1; partitions $_;",
        qq("partitions" directive needs a power of two up to 16384: "$_"))
    for qw/ 0 3 1000 32768 x -1 /;

refuses('a brace in the prefix', 'server 127.0.0.1; prefix "a{b";',
        '"prefix" directive has a brace in its value: "a{b"');
refuses('an empty prefix', 'server 127.0.0.1; prefix "";',
        '"prefix" directive has an empty value');
refuses('a long prefix', 'server 127.0.0.1; prefix ' . 'x' x 65 . ';',
        '"prefix" directive has a value of more than 64 bytes');

refuses('a timeout of zero', 'server 127.0.0.1; timeout 0;',
        'mcp_tasks_redis "db" has a "timeout" of zero');
refuses('a connect_timeout of zero', 'server 127.0.0.1; connect_timeout 0;',
        'mcp_tasks_redis "db" has a "connect_timeout" of zero');
refuses('another parameter of retry', 'server 127.0.0.1; retry 1s min=1s;',
        'invalid parameter "min=1s" of "retry"');
refuses('an invalid maximum', 'server 127.0.0.1; retry 1s max=x;',
        'invalid parameter "max=x" of "retry"');
refuses('a maximum below', 'server 127.0.0.1; retry 2s max=1s;',
        '"max=" of "retry" is less than its time');

refuses('a password file that is not there',
        'server 127.0.0.1; password_file none;',
        qq(password_file "$dir/none" cannot be opened));
refuses('a password file that is empty',
        'server 127.0.0.1; password_file empty;',
        qq(password_file "$dir/empty" has no password in its first line));
refuses('a password that is too long',
        'server 127.0.0.1; password_file long;',
        qq(password_file "$dir/long" has a password of more than 512 bytes));
refuses('a directory', 'server 127.0.0.1; password_file logs;',
        qq(password_file "$dir/logs" cannot be read));
refuses('a user without a password', 'server 127.0.0.1; user ann;',
        'mcp_tasks_redis "db" has a "user", but no "password_file"');

refuses('TLS parameters alone', 'server 127.0.0.1; tls_name x;',
        'mcp_tasks_redis "db" has TLS parameters, but not "tls on"');
refuses('no trusted certificate', 'server 127.0.0.1; tls on;',
        'mcp_tasks_redis "db" has no "tls_trusted_certificate"');
refuses('no name of a unix socket',
        'server unix:/x; tls on; tls_trusted_certificate ca.pem;',
        'mcp_tasks_redis "db" has no "tls_name"');

{
    my ($ok, $said) = check('mcp_tasks_redis db { server 127.0.0.1; tls on; '
                            . 'tls_trusted_certificate ca.pem; }');
    ok(!$ok, 'a file without a certificate');
    like($said, qr/\[emerg\].*ca\.pem/, 'its message');

    ($ok, $said) = check('mcp_tasks_redis db { server 127.0.0.1; }' x 2);
    ok(!$ok, 'two blocks of one name');
    like($said, qr/\[emerg\] .*mcp_tasks_redis "db" is duplicate/, 'message');

    ($ok, $said) = check('mcp_tasks_redis "" { server 127.0.0.1; }');
    ok(!$ok, 'an empty name');
    like($said, qr/\[emerg\] .*"mcp_tasks_redis" has an empty name/,
         'its message');

    ($ok, $said) = check('server { mcp_tasks_redis db { server 127.0.0.1; } }');
    ok(!$ok, 'not at the http level');
    like($said, qr/"mcp_tasks_redis" directive is not allowed here/,
         'its message');
}

$t->configure(http => '');
ok($t->stop(), 'nginx exits');

done_testing();
