# Tools of one's own, as README.md shows them: the file, the configuration, the
# worker and the call.  What else is there is tried by t/run.t,
# t/gateway_example.t, t/browser.t and t/deb.t.

use warnings;
use strict;

use FindBin;
use lib "$FindBin::Bin/lib";

use POSIX qw/ WNOHANG /;
use Test::More;

use MCPExample qw/ blocks section shell unsteady /;
use MCPFile qw/ slurp write_file /;

my $root = "$FindBin::Bin/..";
my $section = section("$root/README.md", '### As an MCP server');
my ($demo, $own) = split /^\*\*Tools of your own\*\*/m, $section;

my ($mcp) = $demo =~ /^(mcp\(\) \{.*?^\}\n)/ms;
my ($tools, $answer) = blocks($own, 'json');
my ($conf) = blocks($own, 'nginx');
my ($python) = blocks($own, 'python');
my ($call) = blocks($own, 'sh');
ok($mcp && $tools && $answer && $conf && $python && $call, 'all was read');

cmp_ok(scalar(() = $python =~ /\S\n/g), '<=', 15, 'a worker is a few lines');

my $t = MCPExample->new(
    module => $ENV{MCP_TASKS_MODULE}, conf => $conf,
    files => { 'tools.json' => $tools },
    change => sub {
        my ($self) = @_;
        my $temp = join '', map { "${_}_temp_path $self->{dir}/$_;\n" }
                            qw/ client_body proxy fastcgi uwsgi scgi /;
        s/(http \{)/pid nginx.pid;\n$1 access_log off; $temp/;
    });

like(shell($t, $mcp, q(mcp '{"jsonrpc":"2.0","id":1,"method":"tools/list"}')),
     qr/"name": ?"shout"/, 'the tool is offered');

$python =~ s/127\.0\.0\.1:8080/127.0.0.1:$t->{port}/g;
write_file("$t->{dir}/worker.py", $python);

my $pid = fork();
die "fork: $!\n" unless defined $pid;

if ($pid == 0) {
    open(STDERR, '>', "$t->{dir}/logs/worker");
    exec('python3', "$t->{dir}/worker.py") or POSIX::_exit(127);
}

END {
    my $status = $?;
    if ($pid) { kill('KILL', $pid); waitpid($pid, 0) }
    $? = $status;
}

for my $time (1, 2) {
    is(unsteady(shell($t, $mcp, $call)), unsteady($answer),
       "the worker does it: $time");
}

is(waitpid($pid, WNOHANG), 0, 'and goes on');
is(slurp("$t->{dir}/logs/worker"), '', 'without a complaint');

kill('TERM', $pid);
waitpid($pid, 0);
undef $pid;

ok($t->stop(), 'nginx exits');
is($t->faults(), '', 'nothing to complain about in the log');

done_testing();
