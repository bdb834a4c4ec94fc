# What README.md and docs/gateway.md show of the gateway is what
# conf/gateway.conf does, in front of a server that answers as theirs; and what
# else the documentation shows of its configuration is good.

use warnings;
use strict;

use FindBin;
use lib "$FindBin::Bin/lib";

use Test::More;

use MCPExample qw/ blocks section shell unsteady /;
use MCPFile qw/ slurp write_file /;
use MCPTasks qw/ wait_for /;
use MCPUpstream;

my $root = "$FindBin::Bin/..";

my $section = section("$root/docs/gateway.md", '## Step by step');
my @shell = blocks($section, 'sh');
my @answers = map { s/\n\z//r } blocks($section, 'json');
my $readme = section("$root/README.md", '### As a gateway');
my ($conf) = blocks($readme, 'nginx');

is(@shell, 6, 'all commands were read');
is(@answers, 5, 'and all answers');

my ($legacy_id) = $answers[0] =~ /"taskId":"([^"]+)"/;
my ($modern_id) = $answers[3] =~ /"taskId":"([^"]+)"/;
my ($legacy) = $answers[2] =~ /\}\},("content":.*)\}\}\z/;
my ($modern) = $answers[4] =~ /"pollIntervalMs":1000,"result":(\{.*\})\}\}\z/;
my ($message) = $answers[4] =~ /"statusMessage":("[^"]+")/;

my $progress = '{"jsonrpc":"2.0","method":"notifications/progress","params":'
               . '{"progressToken":%TOKEN%,"progress":';

my $up = MCPUpstream->new(style => 'sse', sessions => 1, on => {
    'trigger-long-running-operation' => [['sse'], ['event',
        $progress . '1,"total":5}}'], ['hold'], ['result', "{$legacy}"]],
    slow => [['sse'], ['event', $progress . "4,\"message\":$message}}"],
             ['result', $modern]],
});

my $t = MCPExample->new(
    module => $ENV{MCP_TASKS_MODULE}, workers => 2,
    conf => slurp("$root/conf/gateway.conf"),
    change => sub {
        my ($self) = @_;
        s/127\.0\.0\.1:3000/127.0.0.1:$up->{port}/g;
        s/(location \/mcp \{)/$1 $self->{endpoint}/ if $self->{endpoint};
        s/(server_name .*?;)/$1 $self->{server}/ if $self->{server};
    });


sub same {
    my ($got, $wanted, $name) = @_;
    return is(unsteady($got), unsteady($wanted), $name);
}


# --- the configuration

for my $line (grep { /\S/ } split /\n/, $conf) {
    my $words = join '\s+', map { quotemeta } split ' ', $line;
    like(slurp("$root/conf/gateway.conf"), qr/^\s*$words$/m,
         "conf/gateway.conf: $line");
}

my ($good, $said) = $t->check();
ok($good, 'nginx -t') or diag($said);
unlike($said, qr/\[warn\]/, 'has nothing to say');

# as README.md starts it, but for paths and ports, and no further than to see
# that it would
{
    my ($command) = grep { /load_module/ } blocks($readme, 'sh');
    my $copy = slurp("$t->{dir}/nginx.conf");
    $copy =~ s/^(load_module|daemon) .*;$//mg;
    write_file("$t->{dir}/copy.conf", $copy);

    $command =~ s/^make .*\n//;
    my $changed = ($command =~ s{\S+_module\.so}{$t->{module}})
        + ($command =~ s{^build/dist/nginx}{$ENV{MCP_TASKS_NGINX} -t}m)
        + ($command =~ s{ -p build/gateway/}{ -p $t->{dir}/gateway/})
        + ($command =~ s{-p build/gateway$}{-p $t->{dir}/gateway}m)
        + ($command =~ s{\$PWD/conf/gateway\.conf}{$t->{dir}/copy.conf});
    is($changed, 5, 'the command was read');
    like(shell($t, $command), qr/test is successful/, 'README.md starts it');
}

# with what stands there as a comment
{
    my $text = slurp("$root/conf/gateway.conf");
    my @more = $text =~ /^\s*# (mcp_tasks_\w+ .*;)$/mg;
    is(@more, 4, 'comments with directives');

    my $docs = slurp("$root/docs/gateway.md");
    my ($tool) = $docs =~ /^    (mcp_tasks_tool .*;)$/m;
    my ($tools) = slurp("$root/docs/directives.md")
                  =~ /^```nginx\n(mcp_tasks_tool .*?)^```$/ms;
    my ($server) = $docs =~ /^(location \/mcp .*?)^```$/ms;

    $server =~ s/location (= |)\//location $1\/docs\//g;
    $server =~ s/mcp_tasks_pass\s+\//$&docs\//;

    for my $case (["@more", 'comments of the example'],
                  [$tool, 'the tool of the documentation'],
                  [$tools, 'the tools of the directive'],
                  ['', 'the locations of the documentation', $server])
    {
        my ($lines, $name, $more) = @$case;
        @$t{qw/ endpoint server /} = ($lines, $more);
        $t->configure();
        ($good, $said) = $t->check();
        ok($good, $name) or diag($said);
    }
}

# --- a task of 2025-11-25

my $got = shell($t, $shell[0], 'echo "session: $session"', $shell[1]);
like($got, qr/^session: session-\d+-[0-9a-f]{8}$/m, 'a session is given');
$got =~ s/.*\n//s;
my ($id) = $got =~ /"taskId":"([^"]+)"/;
same($got, $answers[0], 'the call becomes a task') or BAIL_OUT('no task');

# the definitions are needed again, the session is not
(my $mcp = $shell[0]) =~ s/^session=.*//ms;
s/\Q$legacy_id\E/$id/g for @shell;

my $call = $up->call('trigger-long-running-operation');
is_deeply($call->{json}{params}{arguments}, { duration => 10, steps => 5 },
          'which reaches the server');
is($call->{json}{params}{task}, undef, 'not as one');
is($call->{head}{host}, "127.0.0.1:$up->{port}", 'under its own name');

same(shell($t, $mcp, $shell[2]), $answers[1], 'it works');
$up->go($call);
same(shell($t, $mcp, $shell[3]), $answers[2], 'its result, to the byte');
(my $completed = $answers[1]) =~ s/working/completed/;
same(shell($t, $mcp, $shell[2]), $completed, 'it is completed');

# --- one of 2026-07-28

$up->set(sessions => 0);
$got = shell($t, $mcp, $shell[4]);
same($got, $answers[3], 'modern: the call becomes a task');
($id) = $got =~ /"taskId":"([^"]+)"/;
s/\Q$modern_id\E/$id/g for @shell;
(my $functions = $shell[4]) =~ s/^modern tools.*//ms;

wait_for {
    $got = shell($t, $mcp, $functions, $shell[5]);
    return $got !~ /"working"/;
};
same($got, $answers[4], 'modern: until it is completed, with its result');

# --- the log, as the documentation shows it

my @lines = slurp("$root/docs/gateway.md") =~ /^(127\.0\.0\.1 \[.*)$/mg;
is(@lines, 2, 'lines of the log were read');

# it has a line for what was sent in the background when that is over
my $log = wait_for {
    my $text = slurp("$t->{dir}/access.log");
    return $text =~ m{/upstream .* trigger} ? $text : undef;
};
$log = '' unless defined $log;

for my $line (@lines) {
    (my $pattern = quotemeta $line) =~ s/\d+(?:\\-\d+)*T.*?\\\]/\\S+\\]/;
    $pattern =~ s/[0-9a-f]{8}(\\-[0-9a-f]{4}){3}\\-[0-9a-f]{12}/[0-9a-f-]{36}/;
    $pattern =~ s/\\:3000/:$up->{port}/;
    $pattern =~ s/\d+\\\.\d+\z/[\\d.]+/;
    like($log, qr/^$pattern$/m, "a line of the log: $line");
}

is($t->request('GET', '/upstream')->{status}, 404,
   'nobody gets to the server past the gateway');

ok($t->stop(), 'nginx exits');
is($t->faults(), '', 'nothing to complain about in the log');
$up->stop();

done_testing();
