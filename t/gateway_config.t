# Directives of the gateway: what is taken, what is refused, and with which
# words.

use warnings;
use strict;

use FindBin;
use lib "$FindBin::Bin/lib";

use Test::More;

use MCPTasks;

my $t = MCPTasks->new();
$t->stop();


# a configuration with these lines in the location of the endpoint
sub check {
    my ($lines, %opt) = @_;
    my $outside = $opt{outside} // '';
    my $pass = $opt{pass} // 'mcp_tasks_pass /upstream;';

    $t->configure(http => 'mcp_tasks_zone zone=z:1m;', server => <<"END");
    $outside
    location /mcp {
        mcp_tasks zone=z;
        $pass
        $lines
    }
    location = /upstream {
        internal;
        proxy_pass http://127.0.0.1:1/mcp;
    }
END

    return $t->check();
}


sub taken {
    my ($lines, %opt) = @_;
    my ($ok, $said) = check($lines, %opt);
    my $name = $opt{name} // $lines;
    ok($ok, "taken: $name") or diag($said);
    unlike($said, qr/\[(warn|error|alert)\]/, 'without a complaint');
}


sub refused {
    my ($lines, $words, %opt) = @_;
    my ($ok, $said) = check($lines, %opt);
    my $name = $opt{name} // $lines;
    ok(!$ok, "refused: $name");
    like($said, qr/\[emerg\] .*\Q$words\E/, "and says: $words");
}


# --- what is good

taken($_) for (
    '',
    'mcp_tasks_tool slow;',
    'mcp_tasks_tool slow support=required after=2s timeout=10m ttl=1h '
        . 'retries=2 idempotent input=call;',
    'mcp_tasks_tool slow idempotent;',
    'mcp_tasks_tool ~^export_ support=forbidden;',
    'mcp_tasks_tool ~*^EXPORT_ support=optional;',
    'mcp_tasks_tool "with space" support=optional;',
    'mcp_tasks_tool a; mcp_tasks_tool b; mcp_tasks_tool ~a; mcp_tasks_tool ~b;',
    'mcp_tasks_tool a after=0;',
    'mcp_tasks_tool a after=500ms input=task;',
    'mcp_tasks_tool a after=500ms input=first;',
    'mcp_tasks_tool a input=task;',
    'mcp_tasks_tool a retries=0;',
    'mcp_tasks_tool a retry_on=error;',
    'mcp_tasks_tool a retry_on=error,lease;',
    'mcp_tasks_tool a retry_on=lease,timeout,error idempotent;',
    'mcp_tasks_tool a idempotent retry_on=timeout;',
    'mcp_tasks_tool a retry_on=off;',
    'mcp_tasks_max_running 256;',
    'mcp_tasks_max_running 256 tool=10;',
    'mcp_tasks_max_running 1 tool=1;',
);

taken('', pass => $_, name => $_) for (
    'mcp_tasks_pass off;',
    'mcp_tasks_pass /upstream era=legacy;',
    'mcp_tasks_pass /upstream era=modern;',
    'mcp_tasks_pass /not/there;',
);

# inherited, and switched off again
taken('mcp_tasks_pass off;', pass => '', outside => 'mcp_tasks_pass /upstream;',
      name => 'off where it was inherited');
taken('', pass => '', outside => 'mcp_tasks_pass /upstream; mcp_tasks_tool a;'
      . ' mcp_tasks_max_running 5;', name => 'in the server');

# --- what is not

for my $case (
    ['mcp_tasks_pass;', 'invalid number of arguments in "mcp_tasks_pass"'],
    ['mcp_tasks_pass /a /b;', 'invalid parameter "/b"'],
    ['mcp_tasks_pass upstream;',
     'invalid URI "upstream", must begin with "/" or be "off"'],
    ['mcp_tasks_pass http://127.0.0.1:1/mcp;', 'invalid URI "http://'],
    ['mcp_tasks_pass /upstream era=;', 'invalid parameter "era="'],
    ['mcp_tasks_pass /upstream era=future;',
     'invalid parameter "era=future"'],
    ['mcp_tasks_pass /upstream; mcp_tasks_pass /upstream;',
     '"mcp_tasks_pass" directive is duplicate'],
    ['mcp_tasks_pass off era=legacy;', 'invalid parameter "era=legacy"'],
)
{
    refused('', $case->[1], pass => $case->[0], name => $case->[0]);
}

for my $case (
    ['mcp_tasks_tool;', 'invalid number of arguments in "mcp_tasks_tool"'],
    ['mcp_tasks_tool a support=;', 'invalid parameter "support="'],
    ['mcp_tasks_tool a support=maybe;', 'invalid parameter "support=maybe"'],
    ['mcp_tasks_tool a after=soon;', 'invalid parameter "after=soon"'],
    ['mcp_tasks_tool a after=;', 'invalid parameter "after="'],
    ['mcp_tasks_tool a after=-1s;', 'invalid parameter "after=-1s"'],
    ['mcp_tasks_tool a timeout=x;', 'invalid parameter "timeout=x"'],
    ['mcp_tasks_tool a ttl=x;', 'invalid parameter "ttl=x"'],
    ['mcp_tasks_tool a ttl=0;', 'invalid parameter "ttl=0"'],
    ['mcp_tasks_tool a retries=-1;', 'invalid parameter "retries=-1"'],
    ['mcp_tasks_tool a retries=x;', 'invalid parameter "retries=x"'],
    ['mcp_tasks_tool a retries=255;', 'invalid parameter "retries=255"'],
    ['mcp_tasks_tool a retry_on=;', 'invalid parameter "retry_on="'],
    ['mcp_tasks_tool a retry_on=all;', 'invalid parameter "retry_on=all"'],
    ['mcp_tasks_tool a retry_on=error,;',
     'invalid parameter "retry_on=error,"'],
    ['mcp_tasks_tool a retry_on=,error;',
     'invalid parameter "retry_on=,error"'],
    ['mcp_tasks_tool a retry_on=error,off;',
     'invalid parameter "retry_on=error,off"'],
    ['mcp_tasks_tool a retry_on=error,error;',
     'invalid parameter "retry_on=error,error"'],
    ['mcp_tasks_tool a retry_on=error retry_on=lease;',
     'parameter "retry_on=lease" is duplicate'],
    ['mcp_tasks_tool a retry_on=timeout;',
     '"retry_on=timeout" of tool "a" requires the "idempotent" parameter'],
    ['mcp_tasks_tool a idempotent=1;', 'invalid parameter "idempotent=1"'],
    ['mcp_tasks_tool a input=maybe;', 'invalid parameter "input=maybe"'],
    ['mcp_tasks_tool a input=call;',
     '"input=call" of tool "a" requires the "after" parameter'],
    ['mcp_tasks_tool a input=first;',
     '"input=first" of tool "a" requires the "after" parameter'],
    ['mcp_tasks_tool a after=1s input=first input=call;',
     'parameter "input=call" is duplicate'],
    ['mcp_tasks_tool a nonsense;', 'invalid parameter "nonsense"'],
    ['mcp_tasks_tool a; mcp_tasks_tool a;', 'duplicate tool "a"'],
    ['mcp_tasks_tool "";', 'a tool must have 1 to 1024 bytes: ""'],
    ['mcp_tasks_tool ~;', 'empty regex'],
    ['mcp_tasks_tool ~[;', 'pcre'],
    ['mcp_tasks_tool ' . 'x' x 1025 . ';', '1 to 1024 bytes: "xxx'],
    ['mcp_tasks_max_running;',
     'invalid number of arguments in "mcp_tasks_max_running"'],
    ['mcp_tasks_max_running x;', 'invalid parameter "x"'],
    ['mcp_tasks_max_running -1;', 'invalid parameter "-1"'],
    ['mcp_tasks_max_running 5 tool=x;', 'invalid parameter "tool=x"'],
    ['mcp_tasks_max_running 5 task=1;', 'invalid parameter "task=1"'],
    ['mcp_tasks_max_running 5; mcp_tasks_max_running 5;',
     '"mcp_tasks_max_running" directive is duplicate'],
)
{
    refused($case->[0], $case->[1], name => substr($case->[0], 0, 60));
}

done_testing();
