# Directives: what is refused, and with which words.

use warnings;
use strict;

use POSIX ();
use Test::Nginx::Socket;

repeat_each(1);
no_shuffle();
plan('no_plan');

# page sizes differ: a size that is too small, and its message
our $Least = 8 * POSIX::sysconf(POSIX::_SC_PAGESIZE()) / 1024;
our $Less = $Least - 1;

no_long_string();

# a refusal is what is asked for: no need to show it on the terminal
add_block_preprocessor(sub {
    my ($block) = @_;
    my $words = $block->error_log;

    if (defined $block->must_die) {
        chomp $words unless ref $words;
        $block->set_value(error_log => [$words, '[emerg]']);
        $block->set_value(suppress_stderr => 1);
    }
});

run_tests();

__DATA__

=== TEST 1: a zone and an endpoint
--- http_config
mcp_tasks_zone zone=config_1:1m;
--- config
location /mcp {
    mcp_tasks zone=config_1;
}
--- request
POST /mcp
{"jsonrpc":"2.0","id":1,"method":"ping"}
--- more_headers
Content-Type: application/json
--- response_body chomp
{"jsonrpc":"2.0","id":1,"result":{}}



=== TEST 2: several zones, with and without max_tasks, in either order
--- http_config
mcp_tasks_zone zone=config_2a:1m;
mcp_tasks_zone zone=config_2b:1m max_tasks=8;
mcp_tasks_zone max_tasks=100 zone=config_2c:512k;
--- config
location /a {
    mcp_tasks zone=config_2a;
}

location /b {
    mcp_tasks zone=config_2b;
}

location /c {
    mcp_tasks zone=config_2c;
}

location /probe {
    mcp_tasks_probe zone=config_2b;
}
--- request eval
['GET /probe?op=stats',
 qq(POST /a\n{"jsonrpc":"2.0","id":1,"method":"ping"}),
 qq(POST /b\n{"jsonrpc":"2.0","id":2,"method":"ping"}),
 qq(POST /c\n{"jsonrpc":"2.0","id":3,"method":"ping"})]
--- more_headers
Content-Type: application/json
--- response_body_like eval
['"slots":8,', '"id":1,"result"', '"id":2,"result"', '"id":3,"result"']



=== TEST 3: no zone
--- http_config
mcp_tasks_zone max_tasks=100;
--- config
--- must_die
--- error_log
"mcp_tasks_zone" must have "zone" parameter



=== TEST 4: no arguments
--- http_config
mcp_tasks_zone;
--- config
--- must_die
--- error_log
invalid number of arguments in "mcp_tasks_zone" directive



=== TEST 5: too many arguments
--- http_config
mcp_tasks_zone zone=z:1m max_tasks=100 store=sqlite:x sync=off sync=off;
--- config
--- must_die
--- error_log
invalid number of arguments in "mcp_tasks_zone" directive



=== TEST 5a: max_tasks twice
--- http_config
mcp_tasks_zone zone=z:1m max_tasks=100 max_tasks=200;
--- config
--- must_die
--- error_log
invalid or duplicate parameter "max_tasks=200"



=== TEST 5b: a store that there is not
--- http_config
mcp_tasks_zone zone=z:1m store=oracle:x;
--- config
--- must_die
--- error_log
unknown store in "store=oracle:x", available stores: "sqlite"



=== TEST 5c: a store without a path
--- http_config
mcp_tasks_zone zone=z:1m store=sqlite:;
--- config
--- must_die
--- error_log
invalid parameter "store=sqlite:"



=== TEST 5d: two stores
--- http_config
mcp_tasks_zone zone=z:1m store=sqlite:x store=sqlite:y;
--- config
--- must_die
--- error_log
invalid or duplicate parameter "store=sqlite:y"



=== TEST 5e: sync that there is not
--- http_config
mcp_tasks_zone zone=z:1m store=sqlite:x sync=never;
--- config
--- must_die
--- error_log
invalid or duplicate parameter "sync=never"



=== TEST 5f: sync without a store
--- http_config
mcp_tasks_zone zone=z:1m sync=off;
--- config
--- must_die
--- error_log
"sync" requires the "store" parameter



=== TEST 5g: one store for two zones
--- http_config
mcp_tasks_zone zone=z:1m store=sqlite:x;
mcp_tasks_zone zone=y:1m store=sqlite:x;
--- config
--- must_die
--- error_log
is already used by zone "z"



=== TEST 5h: a directory that there is not
--- http_config
mcp_tasks_zone zone=z:1m store=sqlite:/nowhere/at/all.db;
--- config
--- must_die
--- error_log
the directory "/nowhere/at" of the store of zone "z" does not exist



=== TEST 6: no size
--- http_config
mcp_tasks_zone zone=z;
--- config
--- must_die
--- error_log
invalid zone "zone=z", must be "zone=name:size"



=== TEST 7: an empty size
--- http_config
mcp_tasks_zone zone=z:;
--- config
--- must_die
--- error_log
invalid zone size "zone=z:"



=== TEST 8: an empty name
--- http_config
mcp_tasks_zone zone=:1m;
--- config
--- must_die
--- error_log
invalid zone "zone=:1m", must be "zone=name:size"



=== TEST 9: nothing after zone=
--- http_config
mcp_tasks_zone zone=;
--- config
--- must_die
--- error_log
invalid zone "zone=", must be "zone=name:size"



=== TEST 10: not a size
--- http_config
mcp_tasks_zone zone=z:big;
--- config
--- must_die
--- error_log
invalid zone size "zone=z:big"



=== TEST 11: a negative size
--- http_config
mcp_tasks_zone zone=z:-1m;
--- config
--- must_die
--- error_log
invalid zone size "zone=z:-1m"



=== TEST 12: a size that does not fit into a number
--- http_config
mcp_tasks_zone zone=z:99999999999999999999m;
--- config
--- must_die
--- error_log
invalid zone size "zone=z:99999999999999999999m"



=== TEST 13: less than 8 pages
--- http_config eval
"mcp_tasks_zone zone=z:${main::Less}k;"
--- config
--- must_die
--- error_log eval
qq(zone "z" is too small, must be at least ${main::Least}k)



=== TEST 14: a size of nothing
--- http_config
mcp_tasks_zone zone=z:0;
--- config
--- must_die
--- error_log
zone "z" is too small, must be at least



=== TEST 15: too small for so many tasks
--- http_config
mcp_tasks_zone zone=z:1m max_tasks=100000;
--- config
--- must_die
--- error_log eval
qr/zone "z" is too small for max_tasks=100000, must be at least \d+k/



=== TEST 16: too small for the greatest number of tasks
--- http_config
mcp_tasks_zone zone=z:1m max_tasks=2147483646;
--- config
--- must_die
--- error_log eval
qr/zone "z" is too small for max_tasks=2147483646, must be at least \d+k/



=== TEST 17: no tasks
--- http_config
mcp_tasks_zone zone=z:1m max_tasks=0;
--- config
--- must_die
--- error_log
invalid number of tasks "max_tasks=0", must be between 8 and 2147483646



=== TEST 18: too few tasks
--- http_config
mcp_tasks_zone zone=z:1m max_tasks=7;
--- config
--- must_die
--- error_log
invalid number of tasks "max_tasks=7", must be between 8 and 2147483646



=== TEST 19: not a number of tasks
--- http_config
mcp_tasks_zone zone=z:1m max_tasks=abc;
--- config
--- must_die
--- error_log
invalid number of tasks "max_tasks=abc", must be between 8 and 2147483646



=== TEST 20: no number of tasks
--- http_config
mcp_tasks_zone zone=z:1m max_tasks=;
--- config
--- must_die
--- error_log
invalid number of tasks "max_tasks=", must be between 8 and 2147483646



=== TEST 21: a negative number of tasks
--- http_config
mcp_tasks_zone zone=z:1m max_tasks=-8;
--- config
--- must_die
--- error_log
invalid number of tasks "max_tasks=-8", must be between 8 and 2147483646



=== TEST 22: one task too many
--- http_config
mcp_tasks_zone zone=z:1m max_tasks=2147483647;
--- config
--- must_die
--- error_log
invalid number of tasks "max_tasks=2147483647", must be between



=== TEST 23: a number of tasks that does not fit into a number
--- http_config
mcp_tasks_zone zone=z:1m max_tasks=99999999999999999999999999;
--- config
--- must_die
--- error_log
invalid number of tasks "max_tasks=99999999999999999999999999", must be



=== TEST 24: an unknown parameter
--- http_config
mcp_tasks_zone zone=z:1m tasks=100;
--- config
--- must_die
--- error_log
invalid or duplicate parameter "tasks=100"



=== TEST 25: zone= twice
--- http_config
mcp_tasks_zone zone=z:1m zone=y:1m;
--- config
--- must_die
--- error_log
invalid or duplicate parameter "zone=y:1m"



=== TEST 26: max_tasks= twice
--- http_config
mcp_tasks_zone max_tasks=100 max_tasks=200;
--- config
--- must_die
--- error_log
invalid or duplicate parameter "max_tasks=200"



=== TEST 27: the same zone twice
--- http_config
mcp_tasks_zone zone=z:1m;
mcp_tasks_zone zone=z:1m;
--- config
--- must_die
--- error_log
mcp_tasks_zone "z" is duplicate



=== TEST 28: the same zone twice, of another size
--- http_config
mcp_tasks_zone zone=z:1m;
mcp_tasks_zone zone=z:2m;
--- config
--- must_die
--- error_log
the size 2097152 of shared memory zone "z" conflicts with already declared size



=== TEST 29: a zone of another module
--- http_config
limit_req_zone $binary_remote_addr zone=z:1m rate=1r/s;
mcp_tasks_zone zone=z:1m;
--- config
--- must_die
--- error_log
the shared memory zone "z" is already declared for a different use



=== TEST 30: another module takes the zone
--- http_config
mcp_tasks_zone zone=z:1m;
limit_req_zone $binary_remote_addr zone=z:1m rate=1r/s;
--- config
--- must_die
--- error_log
the shared memory zone "z" is already declared for a different use



=== TEST 31: a zone in a server
--- config
mcp_tasks_zone zone=z:1m;
--- must_die
--- error_log
"mcp_tasks_zone" directive is not allowed here



=== TEST 32: a zone in a location
--- config
location /mcp {
    mcp_tasks_zone zone=z:1m;
}
--- must_die
--- error_log
"mcp_tasks_zone" directive is not allowed here



=== TEST 33: a zone outside of http
--- main_config
mcp_tasks_zone zone=z:1m;
--- config
--- must_die
--- error_log
"mcp_tasks_zone" directive is not allowed here



=== TEST 34: an endpoint in http
--- http_config
mcp_tasks_zone zone=z:1m;
mcp_tasks zone=z;
--- config
--- must_die
--- error_log
"mcp_tasks" directive is not allowed here



=== TEST 35: an endpoint in a server
--- http_config
mcp_tasks_zone zone=z:1m;
--- config
mcp_tasks zone=z;
--- must_die
--- error_log
"mcp_tasks" directive is not allowed here



=== TEST 36: an endpoint in an if
--- http_config
mcp_tasks_zone zone=z:1m;
--- config
location /mcp {
    if ($args) {
        mcp_tasks zone=z;
    }
}
--- must_die
--- error_log
"mcp_tasks" directive is not allowed here



=== TEST 37: an unknown zone
--- http_config
mcp_tasks_zone zone=z:1m;
--- config
location /mcp {
    mcp_tasks zone=y;
}
--- must_die
--- error_log
unknown zone "y", must be defined by "mcp_tasks_zone" before it is used



=== TEST 38: a name that another one begins with
--- http_config
mcp_tasks_zone zone=zone:1m;
--- config
location /mcp {
    mcp_tasks zone=zon;
}
--- must_die
--- error_log
unknown zone "zon", must be defined by "mcp_tasks_zone" before it is used



=== TEST 39: a zone of another module for an endpoint
--- http_config
limit_req_zone $binary_remote_addr zone=z:1m rate=1r/s;
--- config
location /mcp {
    mcp_tasks zone=z;
}
--- must_die
--- error_log
unknown zone "z", must be defined by "mcp_tasks_zone" before it is used



=== TEST 40: an endpoint without a zone
--- config
location /mcp {
    mcp_tasks;
}
--- must_die
--- error_log
invalid number of arguments in "mcp_tasks" directive



=== TEST 41: an endpoint with an empty zone
--- config
location /mcp {
    mcp_tasks zone=;
}
--- must_die
--- error_log
invalid parameter "zone=", must be "zone=name"



=== TEST 42: an unknown parameter of an endpoint
--- http_config
mcp_tasks_zone zone=z:1m;
--- config
location /mcp {
    mcp_tasks queue=z;
}
--- must_die
--- error_log
invalid parameter "queue=z", must be "zone=name"



=== TEST 43: too many parameters of an endpoint
--- http_config
mcp_tasks_zone zone=z:1m;
--- config
location /mcp {
    mcp_tasks zone=z zone=z;
}
--- must_die
--- error_log
invalid number of arguments in "mcp_tasks" directive



=== TEST 44: an endpoint twice
--- http_config
mcp_tasks_zone zone=z:1m;
--- config
location /mcp {
    mcp_tasks zone=z;
    mcp_tasks zone=z;
}
--- must_die
--- error_log
"mcp_tasks" directive is duplicate



=== TEST 45: an unknown format of the status
--- http_config
mcp_tasks_zone zone=z:1m;
--- config
location /status {
    mcp_tasks_status zone=z format=xml;
}
--- must_die
--- error_log
invalid or duplicate parameter "format=xml"



=== TEST 46: no format of the status
--- http_config
mcp_tasks_zone zone=z:1m;
--- config
location /status {
    mcp_tasks_status zone=z format=;
}
--- must_die
--- error_log
invalid or duplicate parameter "format="



=== TEST 47: a format twice
--- http_config
mcp_tasks_zone zone=z:1m;
--- config
location /status {
    mcp_tasks_status zone=z format=json format=json;
}
--- must_die
--- error_log
invalid or duplicate parameter "format=json"



=== TEST 48: an unknown parameter of the status
--- http_config
mcp_tasks_zone zone=z:1m;
--- config
location /status {
    mcp_tasks_status zone=z private;
}
--- must_die
--- error_log
invalid or duplicate parameter "private"



=== TEST 49: public twice
--- http_config
mcp_tasks_zone zone=z:1m;
--- config
location /status {
    mcp_tasks_status zone=z public public;
}
--- must_die
--- error_log
invalid or duplicate parameter "public"



=== TEST 50: a status without a zone
--- http_config
mcp_tasks_zone zone=z:1m;
--- config
location /status {
    mcp_tasks_status format=json;
}
--- must_die
--- error_log
invalid parameter "format=json", must be "zone=name"



=== TEST 51: a status of a zone that there is not
--- http_config
mcp_tasks_zone zone=z:1m;
--- config
location /status {
    mcp_tasks_status zone=y;
}
--- must_die
--- error_log
unknown zone "y"



=== TEST 52: too many parameters of the status
--- http_config
mcp_tasks_zone zone=z:1m;
--- config
location /status {
    mcp_tasks_status zone=z public format=json x;
}
--- must_die
--- error_log
invalid number of arguments in "mcp_tasks_status" directive



=== TEST 53: an endpoint that is a status, too
--- http_config
mcp_tasks_zone zone=z:1m;
--- config
location /status {
    mcp_tasks zone=z;
    mcp_tasks_status zone=z;
}
--- must_die
--- error_log
"mcp_tasks_status" directive is duplicate



=== TEST 54: a status in an "if"
--- http_config
mcp_tasks_zone zone=config_status:1m;
--- config
location /status {
    mcp_tasks_status zone=config_status format=prometheus public;

    if ($arg_x) {
        set $y 1;
    }
}
--- request
GET /status?x=1
--- response_headers
Content-Type: text/plain; version=0.0.4; charset=utf-8
--- response_body_like
^# HELP nginx_mcp_tasks_tasks Tasks by state\.
