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

# --- the log: every line of ours is there, and each is one of ours

my %level = (EMERG => 'emerg', ALERT => 'alert', CRIT => 'crit', ERR => 'error',
             WARN => 'warn');
my %lines = reverse section('Log lines') =~ /^\| `(\w+)` \| `([^`]+)` \|/mg;
cmp_ok(scalar keys %lines, '>', 10, 'lines of the log were read');

for my $line (sort keys %lines) {
    ok(is_said($line), "it is written: $line");
}

my $written = 0;

while ($ours =~ /\bngx_log_error\(NGX_LOG_(\w+),[^;"]*?"((?:[^"\\]|\\.)*)"/g) {
    my ($level, $text) = ($level{$1}, $2 =~ s/\\"/"/gr);

    # " failed" after the name of a call
    next if !$level || $text =~ /^ failed/;

    my $line = join '.+', map { quotemeta } split /%u?[a-zA-Z]/, $text, -1;
    my ($found) = grep { /\A$line\z/ } keys %lines;
    ok($found, "it is documented: $text") or next;
    is($lines{$found}, $level, 'with its level');
    $written++;
}

cmp_ok($written, '>=', keys %lines, 'all were found');

# --- what is not there yet is marked so, and what is there is not

my $store = $directives =~ /`store=sqlite:`/ ? 1 : 0;
is(section('Durability') =~ /not part of this version/ ? 0 : 1, $store,
   'the store is ' . ($store ? '' : 'not ') . 'part of this version');

is($t->faults('invalid zone size'), '',
   'nothing in the log that should not be');

done_testing();
