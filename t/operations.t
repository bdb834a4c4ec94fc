# docs/operations.md: its arithmetic is right, the upgrade does what it says,
# and all that it quotes is said, by the module or by nginx.

use warnings;
use strict;
use utf8;

use FindBin;
use lib "$FindBin::Bin/lib";

use Encode qw/ decode_utf8 /;
use JSON::PP;
use Test::More;

use MCPClient;
use MCPFile qw/ slurp write_file /;
use MCPProcess qw/ pids_of /;
use MCPTasks qw/ wait_for /;

my $root = "$FindBin::Bin/..";
my $doc = decode_utf8(slurp("$root/docs/operations.md"));
my $directives = decode_utf8(slurp("$root/docs/directives.md"));


sub section {
    my ($name) = @_;
    my ($text) = $doc =~ /^## \Q$name\E\n(.*?)(?=^## |\z)/ms;
    ok($text, "section: $name");
    return $text // '';
}


# --- sizes: of slots, of the table of the directive, of the formula

my $sizing = section('Sizing a zone');
my ($slot, $block, $fixed)
    = $sizing =~ /tasks × \((\d+) \+ (\d+) × blocks\) \+ (\d+) kilobytes/;
my ($example) = $sizing =~ /^mcp_tasks_zone  zone=tasks:(.*);$/m;
my $line = $sizing =~ s/\s+/ /gr;
my ($tasks, $params) = $line =~ /example: (\S+) tasks with parameters of (\d+)/;
my ($result) = $line =~ / results of (\d[\d,]*)/;
my ($message) = $line =~ / status message of (\d+)/;

ok($slot && $block && $fixed, 'the formula was read');
ok($message, 'and the example');
tr/,//d for $tasks, $result;

my $blocks = 0;
$blocks += int(($_ + 123) / 124) for $params, $result, $message;
like($line, qr/ = $blocks blocks each/, "$blocks blocks: the sum is right");

my $row = qr/^\| `(\d+m(?: max_tasks=\d+)?)` \| ([\d,]+) \| ([\d.]+) ([MG])B/m;
my @rows = $directives =~ /$row/g;
cmp_ok(scalar @rows, '>=', 16, 'the table of mcp_tasks_zone was read');

my %zones = (less => '64m max_tasks=40000', more => '64m max_tasks=60000',
             example => $example, small => '1m');

for (my $n = 0; $n < @rows; $n += 4) {
    $zones{"row$n"} = $rows[$n];
}

my @cases = ([1000, 3], [10_000, 10], [$tasks, $blocks], [200_000, 4],
             [100, 100], [5000, 1]);

for my $n (0 .. $#cases) {
    my ($t, $b) = @{ $cases[$n] };
    my $size = $t * ($slot + $block * $b) + $fixed * 1024;
    $zones{"case$n"} = int(($size + 1023) / 1024) . "k max_tasks=$t";
}

my $http = join '', map { "mcp_tasks_zone zone=$_:$zones{$_};\n" } keys %zones;
my $server = join '', map {
    "location /$_ { mcp_tasks_status zone=$_; }\n"
} keys %zones;

my $t = MCPTasks->new(
    http => $http,
    server => "$server location /mcp { mcp_tasks zone=small; }"
              . ' location /worker { mcp_tasks_worker zone=small; }');


sub status {
    my ($zone) = @_;
    return decode_json($t->request('GET', "/$zone", {})->{body});
}


{
    my ($less, $more) = (status('less'), status('more'));
    my $bytes = ($less->{blocks}{total} - $more->{blocks}{total})
                * (128 + 1 / 8) / 20_000;
    my ($said) = $directives =~ /A slot takes (\d+) bytes/;
    cmp_ok(abs($bytes - $said), '<', 1, "a slot takes $said bytes")
        or diag("it takes $bytes");
}

for (my $n = 0; $n < @rows; $n += 4) {
    my ($zone, $said, $bytes, $unit) = @rows[$n .. $n + 3];
    my $got = status("row$n");
    my $mb = $got->{blocks}{total} * 124 / 1e6;

    $said =~ tr/,//d;
    $bytes *= 1000 if $unit eq 'G';
    cmp_ok(abs($got->{slots}{total} / $said - 1), '<', 0.001, "$zone: tasks")
        or diag($got->{slots}{total});
    cmp_ok(abs($mb / $bytes - 1), '<', 0.05, "$zone: bytes") or diag($mb);
}

for my $n (0 .. $#cases) {
    my ($of, $each) = @{ $cases[$n] };
    my $got = status("case$n");
    my $need = $of * $each;
    my $room = int($got->{blocks}{total} * 15 / 16);

    is($got->{slots}{total}, $of, "$of tasks of $each blocks: slots");
    cmp_ok($room, '>=', $need, "$of tasks of $each blocks: room");
    cmp_ok($room, '<', $need * 1.5 + 1000, 'and not far too much');
}

is(status('example')->{slots}{total}, $tasks, 'the example: slots');
cmp_ok(status('example')->{blocks}{total} * 15 / 16, '>=', $tasks * $blocks,
       'the example: room');

{
    my $c = MCPClient->new($t);
    my $before = status('small')->{blocks}{used};

    # a part is what is between the braces that it stands in
    my $id = $c->rest_post('tasks', '{"tool":"t","arguments":{}}')
               ->{json}{taskId};
    my $empty = status('small')->{blocks}{used};
    my $work = $c->claim('t');
    $c->held('progress', $work, message => 'x' x ($message - 2));
    $c->complete($work, '{"x":"' . 'x' x ($result - 8) . '"}');

    my $after = status('small')->{blocks}{used};
    is($after - $empty, int(($result + 123) / 124) + 1,
       'a result and a message take what the formula says');
    cmp_ok($empty - $before, '<=', 3, 'parameters, and a tool');
}

# sizes as nginx knows them
{
    my ($good, $said) = do {
        my $http = $t->{http};
        $t->configure(http => 'mcp_tasks_zone zone=z:2g;', server => '');
        my @got = $t->check();
        $t->{http} = $http;
        @got;
    };
    ok(!$good, 'there is no "g"');
    like($said, qr/invalid zone size/, 'it is told');
}

ok($t->stop(), 'nginx stops');

# --- an upgrade while it runs: nginx has to be a daemon for that

my $upgrade = section('Reload, restart, upgrade');
my @signals = $upgrade =~ /^kill -(\w+) \$\(cat \S+nginx\.pid(\.oldbin)?\)/mg;
is("@signals[0, 2, 4]", 'USR2 WINCH QUIT', 'the signals were read');

my @masters;

END {
    my $status = $?;
    kill('KILL', pids_of($_), $_) for grep { kill(0, $_) } @masters;
    $? = $status;
}

{
    $t->configure(http => 'mcp_tasks_zone zone=z:1m;',
                  server => 'location /mcp { mcp_tasks zone=z; }');
    my $conf = slurp("$t->{dir}/nginx.conf") =~ s/^daemon .*;$//mr;
    write_file("$t->{dir}/nginx.conf", $conf);

    is(system($t->command()), 0, 'nginx starts');
    my $old = wait_for { $t->pid_in('nginx.pid') } or die "no master\n";
    push @masters, $old;

    my $c = MCPClient->new($t);
    my $id = $c->legacy('tasks/create', { action => 'a' })
               ->{json}{result}{task}{taskId};
    my $known = sub {
        my $res = $c->legacy('tasks/get', { taskId => $id });
        return $res->{body} !~ /task_not_found/;
    };
    ok($known->(), 'there is a task');

    kill($signals[0], $old);
    my $new = wait_for {
        my $pid = $t->pid_in('nginx.pid');
        return $pid != $old && pids_of($pid) == $t->{workers} ? $pid : 0;
    } or die "no new master\n";
    push @masters, $new;
    is($t->pid_in('nginx.pid.oldbin'), $old, 'a new master, beside the old');

    kill($signals[2], $old);
    ok(wait_for { pids_of($old) == 1 }, 'the old workers go');
    ok($ENV{MCP_TASKS_STORE} || !$known->(),
       'the new ones do not know the task');

    kill('HUP', $old);
    ok(wait_for { pids_of($old) == 1 + $t->{workers} }, 'they come back');
    kill('QUIT', $new);
    ok(wait_for { !kill(0, $new) }, 'the new ones go');
    ok($known->(), 'and the task is there again');

    kill($signals[4], $old);
    ok(wait_for { !kill(0, $old) }, 'it ends');
}

# --- what is quoted

# strings as the compiler joins them; sources of nginx, for its own words
my $ours = join "\n", map { decode_utf8(slurp($_)) }
           grep { !m{/src/test/} } glob "$root/src/{,*/,*/*/}*.[ch]";
my $nginx = join "\n", map { slurp($_) }
            glob "$root/build/dist/orig/src/{core,event,http,http/modules,"
                 . 'os/unix}/*.[ch]';
s/"\s*\n\s*"//g for $ours, $nginx;

cmp_ok(length $nginx, '>', 1_000_000, 'the sources of nginx are there');

# with what is filled in; those that are hardly more than that match anything
my @literals = grep { s/%\w+//gr =~ /\w.{10}/ } $ours =~ /"((?:[^"\\]|\\.)*)"/g;
my @patterns = map {
    my $text = s/\\"/"/gr;
    join '.+', map { quotemeta } split /%(?:\.\d)?u?[a-zA-Z]/, $text, -1;
} @literals;
my $pattern = join '|', @patterns;
$pattern = qr/\A(?:$pattern)\z/;

unlike('a line that nobody writes', $pattern, 'not all is found');
like('zone "x" is too small, must be at least 32k', $pattern, 'but this is');


sub is_said {
    my ($span) = @_;
    my $escaped = $span =~ s/"/\\"/gr;
    return index($ours, $escaped) >= 0 || $span =~ $pattern;
}


my %metric = map { $_ => 1 } slurp("$root/docs/monitoring.md")
                             =~ /^\| `(nginx_mcp_tasks_\w+)/mg;

# of neither: options of programs, files, values of our own documents
my %other = map { $_ => 1 } ('nginx -T', 'nginx -V', 'ps', 'error.log',
                             '[emerg]', 'data.status', 'load_module',
                             'unknown directive "mcp_tasks_zone"');

for my $span (section('Troubleshooting') =~ /`([^`]+)`/g) {
    ok($metric{$span} || $other{$span} || is_said($span)
       || index($nginx, $span =~ s/"/\\"/gr) >= 0, "it is said: $span");
}

# --- the log: every message of the sources is documented, and no other

my $log = section('Log lines');


# the text between a parenthesis and the one that closes it, strings included
sub arguments {
    my ($rest) = @_;
    my ($depth, $text) = (1, '');

    while ($rest =~ /\G((?:"(?:[^"\\]|\\.)*")|'(?:[^'\\]|\\.)'|.)/gs) {
        my $token = $1;
        $depth += ($token eq '(') - ($token eq ')');
        return $text if $depth == 0;
        $text .= $token;
    }

    die "no end: $rest\n";
}


# separated by commas that are not within strings or parentheses
sub split_arguments {
    my ($text) = @_;
    my ($depth, @list) = (0, '');

    while ($text =~ /\G((?:"(?:[^"\\]|\\.)*")|'(?:[^'\\]|\\.)'|.)/gs) {
        my $token = $1;
        $depth += ($token eq '(') - ($token eq ')');
        ($depth == 0 && $token eq ',') ? push @list, '' : ($list[-1] .= $token);
    }

    return @list;
}


# formats of an argument: both of "a ? b : c"; a macro may be any text
sub formats {
    my ($argument) = @_;
    my ($alternatives) = $argument =~ /\?(.*)\z/s;

    return map { formats($_) }
           $alternatives =~ /((?:\w+\s+)*(?:"(?:[^"\\]|\\.)*"\s*)+)/g
        if defined $alternatives && $argument !~ /\A\s*"/;

    my $format = '';

    while ($argument =~ /\G\s*(?:"((?:[^"\\]|\\.)*)"|(\w+))/gc) {
        $format .= defined $1 ? $1 =~ s/\\"/"/gr : '%macro';
    }

    return $format;
}


sub pattern {
    my ($format) = @_;
    my $text = join '.*', map { quotemeta }
               split /%(?:macro|\*s|u?(?:z|L|D|i)|l*d|[a-zA-Z])/, $format, -1;
    return qr/\A$text\z/;
}


my %level = (EMERG => 'emerg', ALERT => 'alert', CRIT => 'crit', ERR => 'error',
             WARN => 'warn', NOTICE => 'notice', INFO => 'info');
my $call = qr/\bngx_(?:conf_)?log_(error|debug\d)\((?=NGX_LOG_(\w+),)/;
my @written;

while ($ours =~ /$call/g) {
    my ($kind, $level) = ($1, $2);
    my @arguments = split_arguments(arguments(substr($ours, $+[0])));
    push @written, map {
        [$kind eq 'error' ? $level{$level} : 'debug', $_, pattern($_)]
    } formats($arguments[3]);
}

# what a directive returns, nginx puts after its name
push @written, map { ['emerg', $_, pattern($_)] } map { "\"%s\" directive $_" }
               $ours =~ /return "(is (?:duplicate|allowed)[^"]*)";/g;

my $calls = () = $ours =~ /\bngx_(?:conf_)?log_(?:error|debug\d)\(/g;
cmp_ok(scalar @written, '>=', $calls, "$calls calls were read");

is(scalar(grep { !$_->[0] || $_->[1] !~ /\w|%/ } @written), 0,
   'each has a level and a text');

my @lines = map { [/^\| `(\w+)` \| `([^`]+)` \|/] }
            grep { /^\| `(?:emerg|alert|crit|error|warn|notice|info|debug)` /  }
            split /\n/, $log;
cmp_ok(scalar @lines, '>', 60, 'messages of the document were read');

sub documented {
    my ($level, $format, $pattern) = @{ $_[0] };
    return grep { $_->[0] eq $level && $_->[1] =~ $pattern } @lines;
}

for my $message (@written) {
    ok(documented($message), "it is documented: $message->[0]: $message->[1]");
}

for my $line (@lines) {
    my ($level, $text) = @$line;
    # a text that a library returns matches everything
    my @of = grep { $_->[0] eq $level && $text =~ $_->[2] && $_->[1] ne '%V' }
             @written;
    ok(@of || $text =~ /^pcre/, "it is written: $text");
}

ok(!documented(['error', 'x %V', pattern('this is not written: %V')]),
   'what is not there is not found');

# --- parts of messages: errors of a store, and of the tools file

sub files {
    return join "\n", map { decode_utf8(slurp($_)) =~ s/"\s*\n\s*"//gr }
           map { glob "$root/src/$_" } @_;
}


my $sqlite = files('store/sqlite/*.c');
my $strings = qr/"((?:[^"\\]|\\.)*)"/;
my $error = qr/(?:sqlite3_snprintf\(sizeof\(db->error\),\s*db->error,
                | ngx_slprintf\(\(u_char\s\*\)\s*db->error,[^"]*
                | ngx_cpystrn\(\(u_char\s\*\)\s*st->db\.error,[^"]*
                | ngx_memcpy\([^"]*db\.error,)\s*/x;
my @errors = grep { $_ ne '%s: %s' } $sqlite =~ /$error$strings/g;
push @errors, map { "$_: %s" } $sqlite =~ /ngx_mcp_db_fail\(db,\s*$strings/g;

while ($sqlite =~ /\bngx_mcp_db_exec\(/g) {
    my @arguments = split_arguments(arguments(substr($sqlite, $+[0])));
    push @errors, "$1: %s" if $arguments[2] =~ /$strings/;
}

cmp_ok(scalar @errors, '>', 30, 'errors of a store were read');

my ($part) = $log =~ /^### Errors of a store\n(.*?)(?=^### |\z)/ms;
my @told = $part =~ /^\| `([^`]+)` \|/mg;

for my $text (sort keys %{ { map { s/\\"/"/gr => 1 } @errors } }) {
    my $pattern = pattern($text);
    ok(scalar(grep { /$pattern/ } @told), "an error of a store: $text");
}

for my $text (@told) {
    ok(scalar(grep { my $p = pattern(s/\\"/"/gr); $text =~ $p } @errors),
       "it is written: $text");
}

my $why = qr/(?:\*why =|[?:])[^;"]*/;
like($log, qr/`\Q$_\E`|: \Q$_\E`/, "a reason: $_")
    for files('process/ngx_mcp_subprocess.c') =~ /$why$strings/g;

my %member = map { s/"\s+NGX_MCP_\w+\s+"/%s/gr =~ s/\\"/"/gr => 1 }
             (files('http/ngx_mcp_tools.c') . files('text/ngx_mcp_params.c'))
             =~ /(?:ngx_mcp_tools_error\(rd,\s*[^",]*(?:"\w+")?,\s*
                  | JSON_\w+,\s* | return\s)
                 "((?:[^"\\]|\\.|"\s+NGX_MCP_\w+\s+")*)"/gx;
delete $member{'a tool must be an object'};
cmp_ok(scalar keys %member, '>', 18, 'errors of the tools file were read');

my ($table) = $log =~ /^### Errors of the tools file\n(.*)/ms;
my @tools = $table =~ /^\| `\w+` \| `([^`]+)` \|/mg;

for my $text (sort keys %member) {
    my $pattern = pattern($text);
    ok(scalar(grep { /$pattern/ } @tools), "an error of the tools file: $text");
}

for my $text (@tools) {
    ok(scalar(grep { my $p = pattern($_); $text =~ $p } keys %member),
       "it is written: $text");
}

# other documents quote the same texts
{
    my $storage = decode_utf8(slurp("$root/docs/storage.md"));
    my ($checks) = $storage =~ /^### Startup checks\n(.*?)(?=^##)/ms;

    for my $text ($checks =~ /^\| `([^`]+)` \|/mg) {
        ok(scalar(grep { my $p = pattern(s/\\"/"/gr); $text =~ $p } @errors),
           "storage.md: $text");
    }

    my @quoted = ($storage . decode_utf8(slurp("$root/docs/gateway.md")))
                 =~ /^((?:\S+ \S+ )?\[\w+\] .*)$/mg;
    cmp_ok(scalar @quoted, '>=', 3, 'quoted lines were read');

    for my $quoted (@quoted) {
        my ($level, $text) = $quoted =~ /\[(\w+)\] (?:\d+#\d+: )?(.*)/;
        ok(scalar(grep { $_->[0] eq $level && $text =~ $_->[2] } @written),
           "it is written: $text");
    }
}

# --- what is not there yet is marked so, and what is there is not

my $store = $directives =~ /`store=sqlite:`/ ? 1 : 0;
is(section('Durability') =~ /not part of this version/ ? 0 : 1, $store,
   'the store is ' . ($store ? '' : 'not ') . 'part of this version');

is($t->faults('invalid zone size'), '',
   'nothing in the log that should not be');

done_testing();
