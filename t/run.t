# "make run": what it prints works, and Ctrl-C leaves nothing behind.

use warnings;
use strict;

use FindBin;
use lib "$FindBin::Bin/lib";

use IO::Socket::INET;
use JSON::PP;
use POSIX qw/ WNOHANG setpgid /;
use Test::More;
use Time::HiRes qw/ sleep time /;

use File::Path qw/ make_path remove_tree /;
use MCPExample qw/ blocks section shell unsteady /;
use MCPFile qw/ slurp write_file /;
use MCPTasks qw/ free_port wait_for /;

my $root = "$FindBin::Bin/..";
my $dir = "$ENV{MCP_TASKS_BUILD}/servroot-run";
my $json = JSON::PP->new->utf8;
my $group;

remove_tree($dir);
make_path($dir);


# in a group of its own, as a shell starts it, so that Ctrl-C can be played
sub start {
    my ($port) = @_;
    my $pid = fork();
    die "fork: $!\n" unless defined $pid;

    if ($pid == 0) {
        setpgid(0, 0);
        $ENV{PORT} = $port;
        $ENV{RUN_DIR} = $dir;
        $ENV{RUN_NGINX} = $ENV{MCP_TASKS_NGINX};
        $ENV{RUN_MODULE} = $ENV{MCP_TASKS_MODULE};
        open(STDIN, '<', '/dev/null');
        open(STDOUT, '>', "$dir/said");
        open(STDERR, '>', "$dir/complained");
        exec("$root/tools/run.sh") or POSIX::_exit(127);
    }

    setpgid($pid, $pid);
    $group = $pid;
    return $pid;
}

END {
    my $status = $?;
    kill('KILL', -$group) if $group;
    $? = $status;
}


sub in_group {
    my ($pid) = @_;
    return grep {
        slurp($_) =~ /^\d+ \(.*\) (\S) \d+ (\d+)/s && $1 ne 'Z' && $2 == $pid
    } glob '/proc/[0-9]*/stat';
}


sub listens {
    my ($port) = @_;
    return IO::Socket::INET->new(PeerAddr => '127.0.0.1', PeerPort => $port);
}


my $port = free_port();
my $pid = start($port);

my $said = wait_for {
    return slurp("$dir/said") =~ /Mcp-Method: server\/discover'\n\n/;
};
ok($said, 'it starts, and says what to try') or diag(slurp("$dir/complained"));

$said = slurp("$dir/said");
like($said, qr/^nginx listens on 127\.0\.0\.1:$port, and/, 'where it listens');

# all of it but the introduction
my ($script) = $said =~ /try:\n\n(.*)\z/s;
write_file("$dir/script", $script);

my $out = `bash -eu $dir/script 2>&1`;
is($?, 0, 'all that it prints can be run') or diag($out);

# answers may be of several lines, as the tools are in their file
$out =~ s/^(event: message$|id: .*$|data: )//mg;

my @all = eval { $json->incr_parse($out) };
is($@, '', 'all answers are JSON') or diag($out);
my %by = map { $_->{id} => $_ } grep { defined $_->{id} } @all;

is($by{1}{result}{protocolVersion}, '2025-11-25', 'initialize');
is_deeply([map { $_->{name} } @{ $by{2}{result}{tools} }],
          [qw/ count greet fail /], 'tools/list');
is($by{4}{result}{status}, 'working', 'tasks/get');
is($by{5}{result}{content}[0]{text}, 'counted to 5', 'tasks/result');
is(scalar(grep { ($_->{method} || '') eq 'elicitation/create' } @all), 1,
   'the question');
is($by{7}{result}{content}[0]{text}, 'Hello, Ann!', 'and what the answer did');
is($by{9}{result}{status}, 'cancelled', 'tasks/cancel');
cmp_ok(scalar(grep { ($_->{method} || '') eq 'notifications/progress' } @all),
       '>=', 2, 'progress of a plain call');
is($by{10}{result}{content}[0]{text}, 'counted to 3', 'and its result');
ok($by{11}{result}{supportedVersions}, 'server/discover');
is_deeply([grep { $_->{error} } @all], [], 'no error');

# what README.md shows, up to the tools of one's own; each answer as soon as it
# is as shown
{
    my ($shown) = section("$root/README.md", '### As an MCP server')
                  =~ /(.*)^\*\*Tools of your own/ms;
    my @commands = blocks($shown, 'sh');
    my @answers = blocks($shown, 'json');
    is(@commands, 3, 'README.md: commands were read');
    is(@answers, 3, 'and as many answers');

    my ($mcp) = $commands[0] =~ /^(mcp\(\) \{.*?^\}\n)/ms;
    my ($old) = $answers[0] =~ /"taskId":"([^"]+)"/;
    my $id = $old;

    for my $n (0 .. $#commands) {
        (my $command = $commands[$n]) =~ s/\Q$old\E/$id/g;
        my $got;

        wait_for {
            $got = shell({ port => $port }, $mcp, $command);
            return $n == 0 || unsteady($got) eq unsteady($answers[$n]);
        };
        is(unsteady($got), unsteady($answers[$n]), "README.md: command $n");
        ($id) = $got =~ /"taskId":"([^"]+)"/ unless $n;
    }
}

# the port is taken
{
    my $again = `PORT=$port RUN_DIR=$dir/again $root/tools/run.sh 2>&1`;
    isnt($?, 0, 'not twice on one port');
    like($again, qr/is in use/, 'and why');
    $again = `PORT=x RUN_DIR=$dir/again $root/tools/run.sh 2>&1`;
    isnt($?, 0, 'a port is a number');
}

# Ctrl-C
cmp_ok(scalar(in_group($pid)), '>=', 4, 'nginx, its workers and the worker');
kill('INT', -$pid);

my $status;
ok(wait_for { waitpid($pid, WNOHANG) == $pid and $status = $?, 1 },
   'Ctrl-C stops it');
ok(wait_for { return !in_group($pid) }, 'with all that it started');
ok(!listens($port), 'nothing listens any more');
is($status, 0, 'it exits with 0');
unlike(slurp("$dir/complained"), qr/Traceback|alert|emerg/,
       'nothing to complain about');
diag(slurp("$dir/complained")) if $status;
$group = undef unless in_group($pid);

# and when only the script itself is told
$port = free_port();
$pid = start($port);
ok(wait_for { return slurp("$dir/said") =~ /discover'\n\n/ && listens($port) },
   'once more');
kill('TERM', $pid);
ok(wait_for { return waitpid($pid, WNOHANG) == $pid }, 'a signal stops it');
ok(wait_for { return !in_group($pid) }, 'with all that it started');
$group = undef unless in_group($pid);

done_testing();
