# What goes into production: nothing of the test build, nothing that other
# modules could see, and the console's page.

use warnings;
use strict;

# production has no such store
BEGIN { delete $ENV{MCP_TASKS_STORE} if ($ENV{MCP_TASKS_STORE} // '') eq 'late' }

use FindBin;
use lib "$FindBin::Bin/lib";

use Digest::SHA qw/ sha256_base64 /;
use File::Temp qw/ tempdir /;
use Test::More;

use MCPFile qw/ slurp /;
use MCPTasks;

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
                  change_decided remove_free recover_slots /)
{
    cmp_ok(index($text{test}, $word), '>=', 0, "test: has $word");
    is(index($text{production}, $word), -1, "production: no $word");
}

# debug symbols too, where they were not stripped
my $symbols = `nm '$path{production}' 2> /dev/null`;
unlike($symbols, qr/failpoint|probe/, 'production: no such symbol');
like(`nm '$path{test}' 2> /dev/null`, qr/failpoint/,
     'test: which could be seen');

# the page is whole, of one piece, and its policy lets only its own script run
{
    my ($page) = $text{production} =~ m{(<!DOCTYPE html>.*?</html>\n)}s;
    $page = '' unless defined $page;
    my $console = "$FindBin::Bin/../console";

    for my $part (['style', qr{<style>(.*?)</style>}s],
                  ['script', qr{<script type="module">(.*?)</script>}s])
    {
        my ($name, $inside) = @$part;
        my @texts = $page =~ /$inside/g;
        is(scalar @texts, 1, "$name: there is one");
        my $hash = sha256_base64($texts[0]);
        cmp_ok(index($text{production}, "$name-src 'sha256-$hash=';"), '>', 0,
               "$name: allowed by its hash");
    }

    is(join("\n", $page =~ /\b(?:src|href)="(?!#|data:,")([^"]*)"/g), '',
       'it loads nothing');
    cmp_ok(index($page, slurp($_)), '>', 0, "$_ is in it")
        for glob "$console/*.js $console/*.css";

    my $dir = tempdir(CLEANUP => 1);
    system("cp -r '$console' '$dir/'") == 0 or die "cp: $?\n";
    is(system("sh $dir/console/embed.sh $dir/page.c"), 0, 'it can be made');
    ok(-s "$dir/page.c", 'here as well');

    unlink("$dir/page.c");
    open(my $fh, '>>', "$dir/console/main.js") or die "main.js: $!\n";
    print $fh "// </script>\n";
    close($fh);
    isnt(system("sh $dir/console/embed.sh $dir/page.c > $dir/said 2>&1"), 0,
         'not of a script that ends itself');
    like(slurp("$dir/said"), qr/would end/, 'it says so');
    ok(!-e "$dir/page.c", 'and leaves nothing');
}

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
