# The documentation and the code say the same: directives, variables, methods,
# reasons, files, links.

use strict;
use warnings;
use utf8;

use Test::More;

use File::Copy qw/ copy /;
use File::Temp qw/ tempdir /;
use JSON::PP;

sub slurp {
    my ($file) = @_;
    open my $fh, '<:utf8', $file or die "$file: $!";
    local $/;
    return scalar <$fh>;
}

# of the module, wherever below src/ it lies
sub source {
    my ($name) = @_;
    my ($file) = grep { -e } glob "src/{,*/,*/*/}ngx_mcp_$name"
        or die "no $name";
    return slurp($file);
}

my @sources = glob 'src/{,*/,*/*/}*.c';
my $module = slurp('src/ngx_http_mcp_tasks_module.c')
    . source('redis_conf.c') =~ s/^static ngx_mcp_redis_line_t.*?^\};//msr;
my $doc = slurp('docs/directives.md');

# what follows #if is for the test build only
(my $production = $module) =~ s/#if \(NGX_MCP_TEST\).*?#endif//s;

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

# the page begins with a table of contents
{
    my ($contents) = $doc =~ /\A# Directives\n\n((?:[^#\n].*\n)+)\n/;
    my @headings = $doc =~ /^### (\w+)$/mg;
    is($contents, join('', map { "- [$_](#$_)\n" } @headings),
       'the table of contents lists every directive, in order, and no other');
}

for my $name (sort keys %command) {
    my $text = $documented{$name} // '';
    like($text, qr/^- Syntax: \*\*\Q$name\E\*\* .*;$/m, "$name: syntax");
    like($text, qr/^- Default: (?:—|`\Q$name\E .*`)$/m, "$name: default");
    like($text, qr/^- Context: \Q$command{$name}\E$/m, "$name: context");
    like($text, qr/^- Since: \d+\.\d+\.\d+$/m, "$name: since");
}

my $source = source('variables.c');
my @variables = sort $source =~ /\{ ngx_string\("(mcp_\w+)"\)/g;
my $table = slurp('docs/variables.md');
my @in_docs = sort $table =~ /^\| `\$(mcp_\w+)` \|/mg;

is_deeply(\@in_docs, \@variables, 'every variable is documented');

my $errors = slurp('docs/errors.md');

for my $reason (source('reason.c')
                    =~ /ngx_string\("(\w+)"\)/g)
{
    # these never reach a client: a cursor is judged before, a conflict retried,
    # a call that may not run yet waits
    next if $reason =~ /^(ok|unknown|invalid_cursor|version_conflict
                          |limit_running)$/x;
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

for my $code (source('code.h') =~ /\s(-3\d+)$/mg) {
    next if $code == -32603;
    like($errors, qr/\| $code \|/, "code $code is documented");
}

# every reason that stands in the code, and no other
{
    my @reasons = qw/ payload_too_large /;

    for my $file (grep { !/_probe\.c$/ } @sources) {
        my $text = slurp($file);
        push @reasons, $text =~ /\\"reason\\":\\"(\w+[a-z])\\"/g;
        push @reasons, $text =~ /= ngx_string\("([a-z]+(?:_[a-z]+)+)"\);/g
            if $text =~ /ngx_mcp_problem\(/;
    }

    cmp_ok(scalar @reasons, '>', 12, 'the reasons of the code were read');
    like($errors, qr/`$_`/, "reason $_ is documented") for @reasons;

    my $code = join "\n", map { slurp($_) } @sources;
    my @told;

    for my $row ($errors =~ /^\| [-\d]\d+ \| (`\w+`(?:, `\w+`)*) \|/mg) {
        push @told, $row =~ /`(\w+)`/g;
    }

    cmp_ok(scalar @told, '>', 40, 'the reasons of the documentation were read');
    like($code, qr/"(?:[^"]*")?\Q$_\E\\?"/, "reason $_ is in the code")
        for @told;
}

# every message that a client receives, word for word
{
    my $string = qr/"(?:[^"\\]|\\.)*"/;
    my $strings = qr/(?:$string\s*)+/;
    my $function = qr/error|invalid|mismatch|refuse|rpc_invalid
                      |problem|problem_invalid|failure|schema_error/x;
    my $listed = $errors =~ s/\s+/ /gr;
    my $for_operators = slurp('docs/operations.md') =~ s/\s+/ /gr;
    my (%message, %schema);

    for my $file (grep { !m{^src/(?:ngx_|process|store|table|test)}
                         && !/_(?:tools|params|route)\.c$/ } @sources)
    {
        my $text = slurp($file) =~ s{/\*.*?\*/}{}sgr;
        my @found = $text =~ /\b(?:return|err =|\?|:)\s+($strings);/g;

        push @found, $1 =~ /($strings)/g
            while $text =~ /\bngx_mcp_$function\(([^;{]*)\)/g;
        push @found, $text =~ /,\s+($strings)\}/g
            if $file =~ /_(?:reason|job_task)\.c$/;

        for (@found) {
            my $message = join '', /"((?:[^"\\]|\\.)*)"/g;
            next if $message !~ / /;

            # nginx -t tells of schemas
            $file =~ /_(?:schema\w*|pattern)\.c$/
                ? $schema{$message} = 1 : $message{$message} = 1;
        }
    }

    cmp_ok(scalar keys %schema, '>', 15, 'the errors of schemas were read');
    ok(index($for_operators, s/\\(.)/$1/gr) >= 0,
       "error of a schema \"$_\" is documented") for sort keys %schema;

    # no call fails without a reason
    delete $message{'The call failed'};

    cmp_ok(scalar keys %message, '>', 120, 'the messages were read');
    ok(index($listed, $_) >= 0, "message \"$_\" is documented")
        for sort keys %message;
}

# methods of both eras, and of workers
{
    my $mcp = slurp('docs/mcp.md');
    my ($rows) = $mcp =~ /^\| method \|.*?\n\| --- .*?\n(.*?)\n\n/ms;
    my @eras = qw/ legacy modern /;
    my (%told, %served);

    for my $row (split /\n/, $rows) {
        my ($method, @cells) = $row =~ /^\| `(\S+)` \| (.*?) \| (.*?) \|$/
            or fail("a row with one method: $row");
        $told{$_}{$method} = shift(@cells) ne '–' for @eras;
    }

    my $names = qr/\{ ngx_string\("([^"]+)"\), \w+,/;
    my @rows = source('methods.c')
               =~ /$names\s+NGX_MCP_(\w+), NGX_MCP_(\w+),/g;

    while (my ($method, @callers) = splice @rows, 0, 3) {
        for my $era (@eras) {
            $served{$era}{$method} = 1 if shift(@callers) ne 'CALLERS_NONE';
        }
    }

    for my $era (@eras) {
        cmp_ok(scalar keys %{ $served{$era} }, '>', 9,
               "$era: the methods of the code were read");
        is_deeply([sort grep { $told{$era}{$_} } keys %{ $told{$era} }],
                  [sort keys %{ $served{$era} }],
                  "$era: docs/mcp.md has every method, and no other");
    }

    # what is sent to clients without being asked for
    my %sent = map { $_ => 1 } map {
        source("$_.c")
            =~ /\\"(notifications\/[\w\/]+)\\"/g
    } qw/ render stream listen /;
    my %shown = map { $_ => 1 } grep { $_ ne 'notifications/cancelled' }
                $mcp =~ /`(notifications\/[\w\/]+)`/g;
    is_deeply([sort keys %shown], [sort keys %sent],
              'docs/mcp.md has every notification, and no other');

    my @methods = source('worker.c')
                  =~ /^    \{ ngx_string\("(worker\/\w+)"\)/mg;
    my @sections = slurp('docs/worker-protocol.md') =~ /^### (worker\/\w+)$/mg;
    is_deeply([sort @sections], [sort @methods],
              'docs/worker-protocol.md has every method, and no other');
}

# paths of the REST API
{
    my %path = map { /^tasks/ ? ($_ => 1) : ("tasks/ID$_" => 1) }
               source('rest.c')
                   =~ /^    \{ ngx_string\("([^"]*)"\), NGX_(?:HTTP|MCP)_/mg;
    my %shown = map { $_ => 1 }
                slurp('docs/rest.md') =~ /`(?:GET|POST) (tasks[\w\/]*)`/g;
    is_deeply([sort keys %shown], [sort keys %path],
              'docs/rest.md has every path, and no other');
}

# why calls of a gateway and other tasks fail
my $gateway = slurp('docs/gateway.md');
my @reasons = (source('job_task.c')
                   =~ /\{ "(\w+)", "/g,
               source('render.c') =~ /"(\w+_lost)"/g);

# the first stands for a call that has not failed
@reasons = grep { $_ ne 'failed' } @reasons;
cmp_ok(scalar @reasons, '>', 7, 'the reasons of failures were read');

for my $reason (@reasons) {
    like($errors, qr/^\| -3101[34] \| `$reason` \|/m, "$reason: in the errors");
    like($gateway, qr/^\| `$reason` \|/m, "$reason: in the gateway's failures")
        if $reason ne 'lease_lost';
}

# what may be said of a tool
my $route = source('route.c');
my %parameter = map { $_ => 1 }
    $route =~ /(?:\{|arg->data,) "(\w+=?)\w*"/g;
my @described = $documented{mcp_tasks_tool} =~ /^\| `(\w+=?)`/mg;

is_deeply([sort @described], [sort keys %parameter],
          'every parameter of mcp_tasks_tool is documented');

# and of an upstream
{
    my %words = map { $_ => 1 } $route =~ /\(value->data, "(\w+=\w*)"/g;
    my ($syntax) = $documented{mcp_tasks_pass} =~ /^- Syntax: (.*)$/m;
    my %shown = map { $_ => 1 } $syntax =~ /`(\w+=\w*)`/g;
    is_deeply(\%shown, \%words,
              'every parameter of mcp_tasks_pass is documented');
}

# headers that background calls do not forward, and those that are generic
{
    my $sender = source('sender.c');
    my ($without) = $gateway =~ /^(nginx forwards the client's .*?)\n\n/ms;
    my ($generic) = $gateway =~ /^(- the request has no headers .*?)\n\n/ms;
    my %text = (not_sent => lc $without, generic => lc $generic);

    for my $list (sort keys %text) {
        my ($table) = $sender =~ /ngx_mcp_${list}\[\] = \{(.*?)^\};/ms;
        my @names = $table =~ /ngx_string\("([\w-]+)"\)/g;
        cmp_ok(scalar @names, '>', 10, "$list: headers were read");
        like($text{$list}, qr/`\Q$_\E`/, "$list: $_") for @names;
    }
}

# every package that is installed has its reason
{
    my $dependencies = slurp('docs/dependencies.md');
    my @packages = map { split }
                   slurp('tools/deps.sh') =~ /packages\+=\(([^)]+)\)/g;
    cmp_ok(scalar @packages, '>', 15, 'the packages were read');
    like($dependencies, qr/`\Q$_\E`/, "dependencies: $_") for @packages;
}

# what README.md says of building is what CI does
{
    my $readme = slurp('README.md');
    my ($section) = $readme =~ /^## Installing\n(.*?)^## /ms;
    my @blocks = grep { /--add-dynamic-module/ }
                 $section =~ /^```sh\n(.*?)^```$/msg;
    is(scalar @blocks, 1, 'README.md: how to build');

    my $run = `tools/build-as-users.sh -c`;
    is($run, $blocks[0], 'the same is run');

    my ($version) = $blocks[0] =~ /^cd nginx-([\d.]+)$/m;
    local $ENV{VERSION} = '1.22.1';
    my @builds = split /\n/, `tools/builds.sh -l`;
    is($?, 0, 'the list of builds has every pair of values');
    is_deeply([grep { /^readme/ } @builds],
              ['readme 1.22.1', "readme $version"], 'with two versions');

    my $ci = slurp('.ci/run');
    my $makefile = slurp('Makefile');
    like($ci, qr/^make builds$/m, 'CI builds them');
    like($makefile, qr/^builds:.*?^\t\@exec tools\/builds\.sh$/ms, 'all');

    my ($combinations) = $makefile =~ /^builds:.* (\d+) combinations/m;
    is($combinations, @builds - 2, 'make help has their number');
    like($readme, qr/^\| `make builds` \|.* \Q$combinations\E combinations/m,
         'README.md too');

    my ($table) = $readme =~ /^## Developing\n(.*?)^## /ms;
    like($makefile, qr/^\Q$_\E:.*  ## /m, "make $_")
        for $table =~ /^\| `make ([a-z-]+)` \|/mg;
}

# every file of the source has its job, in the row of its folder
{
    my ($rows) = slurp('docs/architecture.md')
                 =~ /^\| folder \|.*?\n\| --- .*?\n(.*?)\n\n/ms;
    my ($folder, %listed);

    for my $row (split /\n/, $rows) {
        my ($first, $names) = $row =~ /^\| (?:`(\S+)` )?\| ([^|]+) \|/
            or fail("a row of the files: $row");
        $folder = $first if defined $first;
        $listed{"$folder$_"} = 1 for $names =~ /`(\w+)`/g;
    }

    my @there = map { s/ngx_(?:http_mcp_tasks|mcp)_(\w+)\.c$/$1/r } @sources;

    cmp_ok(scalar @there, '>', 80, 'the sources were found');
    is_deeply([sort keys %listed], [sort @there],
              'docs/architecture.md has every file in its folder, no other');

    # and one list is what is built
    is_deeply([sort map { "src/$_" }
               slurp('src/sources') =~ /^[a-z-]+ +(\S+\.c)$/mg],
              [sort @sources], 'src/sources has every file, and no other');
}

# a heading as the name that links have for it
sub anchors {
    my ($text) = @_;
    my %anchor;

    $text =~ s/^```.*?^```$//msg;

    for ($text =~ /^#+ (.*)$/mg) {
        (my $name = lc) =~ s/[^\w\- ]//g;
        $name =~ tr/ /-/;
        $anchor{"#$name"} = 1;
    }

    return \%anchor;
}

my @pages = ('README.md', 'CONTRIBUTING.md', glob 'docs/*.md');

# files, functions and targets of make that are named somewhere
{
    my $code = join "\n", map { slurp($_) } glob 'src/{,*/,*/*/}*.[ch]';
    (my $makefile = slurp('Makefile')) =~ s/\\\n//g;
    my %target = map { $_ => 1 } map { split }
                 $makefile =~ /^\.PHONY: (.*)$/mg;

    for my $file (@pages) {
        my $text = slurp($file);

        ok(-e $_, "$file: $_ exists")
            for grep { !/NAME|FILE|compat/ }
                $text =~ /`((?:src|t|docs|conf|bench)\/[\w\/.-]+
                            |tools\/[\w-]+\.\w+)`/gx;
        like($code, qr/\b$_\(/, "$file: $_() exists")
            for $text =~ /`(ngx_mcp_\w+)\(\)`/g;

        # "modules" is nginx's own
        my $commands = join '', $text =~ /^```sh\n(.*?)^```/msg;
        ok($target{$_}, "$file: make $_ exists")
            for grep { $_ ne 'modules' }
                $commands =~ /\bmake ([a-z][a-z-]*)/g,
                $text =~ /`make ([a-z-]+)/g;
    }
}

# the list of all documents
{
    my $index = slurp('docs/README.md');
    my @listed = $index =~ /^- \[[^\]]+\]\(([\w.-]+)\): \S/mg;
    my @there = grep { $_ ne 'README.md' } map { s{^docs/}{}r }
                grep { -f } glob 'docs/*';
    is_deeply([sort @listed], [sort @there],
              'docs/README.md lists every document, and no other');

    my %images = map { $_ => 1 } map { s{.*/}{}r }
                 map { slurp($_) =~ m{\]\(([\w./-]*images/[\w.-]+)\)}g }
                 @pages;
    my @images = map { s{.*/}{}r } glob 'docs/images/*';
    is_deeply([grep { !$images{$_} } @images], [], 'every image is shown');
}

for my $file (@pages) {
    (my $dir = $file) =~ s{[^/]*$}{};

    my $text = slurp($file);

    while ($text =~ /\]\(([^)#:]*)(#[^)]*)?\)/g) {
        my ($to, $anchor) = ($1, $2);
        my $path = $to eq '' ? $file : "$dir$to";

        ok(-e $path, "$file: $path exists") or next;
        ok(anchors(slurp($path))->{$anchor}, "$file: $path has $anchor")
            if defined $anchor;
    }
}

# figures of benchmarks
{
    my $dir = tempdir(CLEANUP => 1);
    my %file = (record => 'bench/performance.json',
                plot   => 'docs/images/performance.svg',
                doc    => 'docs/performance.md');
    copy($file{$_}, "$dir/$_") or die "$file{$_}: $!" for keys %file;

    my $report = sub {
        is(system('python3', '-B', 'bench/report.py', "$dir/record",
                  "$dir/plot", "$dir/doc", @_), 0, 'bench/report.py runs');
    };

    $report->();
    is(slurp("$dir/$_"), slurp($file{$_}),
       "$file{$_} shows what is recorded in $file{record}")
        for 'plot', 'doc';

    my $record = decode_json(slurp("$dir/record"));
    my ($names) = slurp('docs/benchmarks.md')
                  =~ /^measurements are (.*?)\./ms or die;
    is_deeply([$names =~ /`(\w+)`/g], $record->{order},
              'docs/benchmarks.md lists the measurements in their order');

    # a run with ONLY
    my $line = {measure => 'a new line', beside => undef, unit => 'ms',
                ours => 1.5, its => undef, ratio => 1.5, sense => '<=',
                limit => 5, holds => JSON::PP::true};
    open my $fh, '>', "$dir/results" or die;
    print $fh encode_json({order => $record->{order}, measures => {lock => {
        lines => [$line], notes => ['a new note'], run => ['a new run']}}});
    close $fh;
    $report->("$dir/results");

    my ($before, $after) = map { [grep { !/lock|a new| round/ }
                                  slurp($_) =~ /^(?:\||- ).*/mg] }
                           $file{doc}, "$dir/doc";
    is_deeply($after, $before, 'all other measurements are kept');

    my $doc = slurp("$dir/doc");
    like($doc, qr/^\Q| a new line | 1.50 ms |  |  | at most 5 | met |\E$/m,
         'the new figure is shown');
    unlike($doc, qr/^\| lock/m, 'in place of the old ones');
    like($doc, qr/^- a new note\n(?:- .*\n)+- lock: a new run$/m,
         'and so are its note and its run');
}

done_testing();
