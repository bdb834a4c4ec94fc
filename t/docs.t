# The documentation and the code say the same: directives, variables, reasons,
# links.

use strict;
use warnings;
use utf8;

use Test::More;

sub slurp {
    my ($file) = @_;
    open my $fh, '<:utf8', $file or die "$file: $!";
    local $/;
    return scalar <$fh>;
}

my $module = slurp('src/ngx_http_mcp_tasks_module.c');
my $doc = slurp('docs/directives.md');

# what follows #if is for the test build only
(my $production = $module) =~ s/#if \(NGX_HTTP_MCP_TASKS_TEST\).*?#endif//s;

my %context = (
    NGX_HTTP_MAIN_CONF => '`http`',
    NGX_HTTP_SRV_CONF  => '`server`',
    NGX_HTTP_LOC_CONF  => '`location`',
);
my %command;

while ($production =~ /\{ ngx_string\("(\w+)"\),\s*([A-Z0-9_|]+),/g) {
    my ($name, $flags) = ($1, $2);
    $command{$name} = join ', ',
        map { $context{$_} } grep { $context{$_} } split /\|/, $flags;
}

cmp_ok(scalar keys %command, '>', 10, 'the command table was read');

my %documented;

while ($doc =~ /^### (\w+)\n\n(.*?)(?=^### |\z)/msg) {
    $documented{$1} = $2;
}

is_deeply([sort keys %documented], [sort keys %command],
          'every directive is documented, and no other');

for my $name (sort keys %command) {
    my $text = $documented{$name} // '';
    like($text, qr/^Syntax: \*\*\Q$name\E\*\* .*;$/m, "$name: syntax");
    like($text, qr/^Default: (?:—|`\Q$name\E .*`)$/m, "$name: default");
    like($text, qr/^Context: \Q$command{$name}\E$/m, "$name: context");
    like($text, qr/^Since: \d+\.\d+\.\d+$/m, "$name: since");
}

my $source = slurp('src/ngx_http_mcp_tasks_variables.c');
my @variables = sort $source =~ /\{ ngx_string\("(mcp_\w+)"\)/g;
my $table = slurp('docs/variables.md');
my @in_docs = sort $table =~ /^\| `\$(mcp_\w+)` \|/mg;

is_deeply(\@in_docs, \@variables, 'every variable is documented');

my $errors = slurp('docs/errors.md');

for my $reason (slurp('src/ngx_http_mcp_tasks_reason.c')
                    =~ /ngx_string\("(\w+)"\)/g)
{
    # these never reach a client: a cursor is judged before, a conflict retried
    next if $reason =~ /^(ok|unknown|invalid_cursor|version_conflict)$/;
    like($errors, qr/`$reason`/, "reason $reason is documented");
}

my %reason;
my $openapi = slurp('docs/openapi.yaml');

while ($openapi =~ /reason: \{(?:const: (\w+)|enum: \[([\w, ]+)\])\}/g) {
    $reason{$_} = 1 for split /, /, defined $1 ? $1 : $2;
}

cmp_ok(scalar keys %reason, '>', 15, 'the reasons of OpenAPI were read');
like($errors, qr/^\| 4\d\d \|.*`$_`|^\| 503 \|.*`$_`/m,
     "REST: reason $_ is documented") for sort keys %reason;

for my $code (slurp('src/ngx_http_mcp_tasks_rpc.h') =~ /\s(-32\d+)$/mg) {
    next if $code == -32603;
    like($errors, qr/\| $code \|/, "code $code is documented");
}

for my $file ('README.md', glob 'docs/*.md') {
    (my $dir = $file) =~ s{[^/]*$}{};

    my $text = slurp($file);

    while ($text =~ /\]\(([^)#:]+)(#[^)]*)?\)/g) {
        ok(-e "$dir$1", "$file: $1 exists");
    }
}

done_testing();
