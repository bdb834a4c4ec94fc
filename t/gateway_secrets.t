# What a client has to show to upstream is for upstream alone: it is not in the
# zone, not in logs, and in no task.

use warnings;
use strict;

use FindBin;
use lib "$FindBin::Bin/lib";

use Test::More;

use MCPClient;
use MCPFile qw/ slurp /;
use MCPGateway;
use MCPTasks qw/ wait_for workers /;

my $format = q(log_format all '$remote_addr $request $status $mcp_method )
             . q($mcp_tool $mcp_task_id $mcp_error';);

my $g = MCPGateway->new(
    workers => workers(), http => $format,
    conf => 'access_log logs/access.log all; mcp_tasks_max_running 2;',
    proxy => 'access_log logs/access.log all;',
    tool => ['slow support=optional', 'same idempotent retries=2'],
    on => { slow => [['sse'], ['hold']], same => [['sse'], ['hold']],
            bad => [['reset']], html => [['json', 'no', 500]] });
my ($up, $t, $c) = @{$g}{qw/ up t c /};

my $token = 'sEcReT-tOkEn-0123456789';
my $cookie = 'cRuMbLe-9876543210';
my $seen = 'vIsIbLe-argument-5555';
my %headers = (Authorization => "Bearer $token", Cookie => "id=$cookie",
               'Proxy-Authorization' => "Basic $token");


# The zone is in a mapping that processes share.  Which of these strings are
# there, and whether something is there at all that has to be.
sub in_zone {
    my (@words) = @_;
    my ($pid) = $t->worker_pids();
    my %found;

    open(my $mem, '<:raw', "/proc/$pid/mem") or return 'unreadable';

    for my $line (split /\n/, slurp("/proc/$pid/maps")) {
        my ($from, $to, $mode) = $line =~ /^([0-9a-f]+)-([0-9a-f]+) (\S{4})/;
        next unless $mode && $mode =~ /^rw.s/;
        no warnings 'portable';
        ($from, $to) = (hex $from, hex $to);

        # with what is left of the block before, for words on the border
        my ($tail, $step) = ('', 1 << 20);

        for (my $at = $from; $at < $to; $at += $step) {
            my $len = $to - $at < $step ? $to - $at : $step;
            sysseek($mem, $at, 0) or last;
            sysread($mem, my $block, $len) or last;

            for my $word (@words) {
                $found{$word} = 1 if index($tail . $block, $word) >= 0;
            }

            $tail = substr($block, -100);
        }
    }

    return join ' ', sort keys %found;
}


sub clean {
    my ($name) = @_;

    SKIP: {
        my $found = in_zone($token, $cookie, $seen);
        skip("the memory of a process cannot be read", 1)
            if $found eq 'unreadable';
        is($found, $seen, "$name: no secret is in the zone");
    }

    my $logs = join '', map { slurp($_) } glob "$t->{dir}/logs/*";
    is(index($logs, $token), -1, "$name: nor the token in a log");
    is(index($logs, $cookie), -1, "$name: nor the cookie");
}


my %with = (params => { arguments => { text => $seen } },
            headers => \%headers);

# --- calls that run, and that wait

my @ids = $g->task('slow', %with);
my $call = $up->call('slow');
push @ids, $g->modern_task('slow', %with);
is($call->{head}{authorization}, "Bearer $token", 'upstream gets the token');
is($call->{head}{cookie}, "id=$cookie", 'and the cookie');

push @ids, $g->task('same', %with), $g->task('same', %with);
clean('while calls run and wait');

# --- in tasks, for anybody

my $all = join '', map { $_->{body} } $c->legacy('tasks/list'),
    map({ ($c->legacy('tasks/get', { taskId => $_ }),
           $c->modern('tasks/get', { taskId => $_ }),
           $c->rest("tasks/$_/poll")) } @ids);
is(index($all, $token), -1, 'the token is in no task');
is(index($all, $cookie), -1, 'nor is the cookie');

# a question, answered with credentials
$up->go($call, ['event', '{"jsonrpc":"2.0","id":"q","method":"roots/list",'
                         . '"params":{}}']);
my $asks = $g->becomes($ids[0], 'input_required', 15);
my ($key) = keys %{ $asks->{inputRequests} || {} };
$c->post({ jsonrpc => '2.0', id => "$ids[0]/" . ($key // ''),
           result => { roots => [] } }, %headers);
my $answer = $up->wait_for(sub { ($_[0]{id} // '') eq '"q"' }, 15);
is($answer && $answer->{head}{authorization}, "Bearer $token",
   'an answer goes with the token');
clean('after an answer');

# --- a reload, and the end

$t->reload();
$up->go($_, ['result', '{"content":[]}']) for $up->calls('slow');
is($g->ends($_)->{status}, 'completed', 'a call completes') for @ids[0, 1];
ok($g->go('same', ['result', '{}']), 'the next runs');
ok($g->go('same', ['result', '{}']), 'and the next');
is($g->ends($_)->{status}, 'completed', 'and completes') for @ids[2, 3];
is($_->{head}{authorization}, "Bearer $token", 'with the token')
    for $up->calls('same');
clean('after calls that waited');

# --- failures are written down, but not with that

for my $tool ('bad', 'html') {
    is($g->ends($g->task($tool, %with), 15)->{status}, 'failed',
       "$tool: a call fails");
}

clean('after calls that failed');

# --- each call with its own

{
    my @users = map { "user-$_-secret" } 1 .. 6;
    $up->script(slow => [['pause', 0.05], ['result', '{}']]);
    $up->clear();
    my @own = map { $g->task('slow', params => { arguments => { u => $_ } },
                             headers => { Authorization => "Bearer $_" }) }
              @users;
    is($g->ends($_)->{status}, 'completed', 'a call of many') for @own;
    my @calls = $up->calls('slow');
    is(scalar @calls, 6, 'six calls');
    is($_->{head}{authorization},
       "Bearer $_->{json}{params}{arguments}{u}", 'each with its own token')
        for @calls;
}

$g->done('\[error\]');
done_testing();
