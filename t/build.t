# What goes into production: nothing of the test build, and nothing that other
# modules could see.

use warnings;
use strict;

use FindBin;
use lib "$FindBin::Bin/lib";

use Test::More;

use MCPTasks qw/ slurp /;

my %path = (production => $ENV{MCP_TASKS_MODULE},
            test => $ENV{MCP_TASKS_TEST_MODULE});

my %text = map { $_ => slurp($path{$_}) } keys %path;


sub exports {
    my ($path) = @_;

    # coverage and sanitizers bring symbols of their own
    return join ' ', sort grep { !/^(__|mangle_path$)/ }
                     map { /^[0-9a-f]+ [A-TV-Z] (\S+)$/ ? $1 : () }
                     split /\n/, `nm -D --defined-only '$path'`;
}


for my $build (sort keys %path) {
    ok(length $text{$build}, "there is a $build build");
    is(exports($path{$build}),
       'ngx_module_names ngx_module_order ngx_modules',
       "$build: only what nginx looks up is exported");
}

for my $word (qw/ mcp_tasks_probe mcp_tasks_stub failpoint new_published
                  change_decided remove_gone recover_slots /)
{
    cmp_ok(index($text{test}, $word), '>=', 0, "test: has $word");
    is(index($text{production}, $word), -1, "production: no $word");
}

# debug symbols too, where they were not stripped
my $symbols = `nm '$path{production}' 2> /dev/null`;
unlike($symbols, qr/failpoint|probe/, 'production: no such symbol');
like(`nm '$path{test}' 2> /dev/null`, qr/failpoint/,
     'test: which could be seen');

# the directive is unknown to it
my $t = MCPTasks->new();
ok($t->stop(), 'nginx stops');

$t->configure(http => 'mcp_tasks_zone zone=z:1m;',
              server => 'location /probe { mcp_tasks_probe zone=z; }');
my ($passed, $said) = $t->check();
ok($passed, 'the test build takes mcp_tasks_probe') or diag($said);

{
    local $ENV{MCP_TASKS_TEST_MODULE} = $path{production};
    $t->configure();
    ($passed, $said) = $t->check();
    ok(!$passed, 'production does not');
    like($said, qr/unknown directive "mcp_tasks_probe"/, 'and says so');

    $t->configure(server => 'location /mcp { mcp_tasks zone=z; }');
    ($passed, $said) = $t->check();
    ok($passed, 'it takes the directives that are documented') or diag($said);
}

done_testing();
