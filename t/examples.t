# Each of the workers in examples/ does what its tools promise.

use warnings;
use strict;

use FindBin;
use lib "$FindBin::Bin/lib";

use JSON::PP;
use POSIX qw/ WNOHANG setpgid /;
use Test::More;
use Time::HiRes qw/ sleep time /;

use MCPFile qw/ slurp /;
use MCPTasks qw/ wait_for workers /;

my $root = "$FindBin::Bin/..";

my @examples = (['worker.py', 'python3'], ['worker.mjs', 'node'],
                ['worker.sh', 'bash', 'jq']);

my $t = MCPTasks->new(
    workers => workers(), listen => 'reuseport',
    module => $ENV{MCP_TASKS_MODULE},
    files => { 'tools.json' => slurp("$root/conf/tools.json") },
    http => 'mcp_tasks_zone zone=z:4m;',
    server => 'location /mcp { mcp_tasks zone=z; mcp_tasks_tools tools.json; }'
              . ' location /worker { mcp_tasks_worker zone=z; }');

my $json = JSON::PP->new->utf8->canonical;
my $modern = '"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28",'
    . '"io.modelcontextprotocol/clientCapabilities":{"extensions":'
    . '{"io.modelcontextprotocol/tasks":{}}}}';

my %running;


sub body {
    my ($method, $params) = @_;
    return qq({"jsonrpc":"2.0","id":7,"method":"$method","params":{$params}});
}


sub decoded {
    my ($res) = @_;
    return {} unless $res && $res->{body};
    return $json->decode($res->{body});
}


sub legacy {
    my ($method, $params) = @_;
    return decoded($t->post('/mcp', body($method, $params),
                            { 'MCP-Protocol-Version' => '2025-11-25' }));
}


sub modern {
    my ($method, $name, $params) = @_;
    return decoded($t->post('/mcp', body($method, "$params,$modern"),
                            { 'MCP-Protocol-Version' => '2026-07-28',
                              'Mcp-Method' => $method, 'Mcp-Name' => $name }));
}


# the task of a call, in the legacy era
sub create {
    my ($tool, $arguments) = @_;
    my $got = legacy('tools/call', qq("name":"$tool","arguments":$arguments,)
                                   . '"task":{"ttl":60000}');
    return $got->{result}{task}{taskId};
}


sub task {
    my ($id) = @_;
    return modern('tasks/get', $id, qq("taskId":"$id"))->{result};
}


# the next message of a stream, decoded
sub event {
    my ($s) = @_;
    my $buf = \ ${*$s}{mcp_tasks};
    my $text = \ ${*$s}{text};
    $$text = '' unless defined $$text;

    for (;;) {
        if (defined $$buf) {
            $$buf =~ s/\AHTTP.*?\r\n\r\n//s;

            while ($$buf =~ /\A([0-9a-f]+)\r\n/i
                   && length $$buf >= length($1) + 4 + hex $1)
            {
                $$text .= substr($$buf, length($1) + 2, hex $1);
                substr($$buf, 0, length($1) + 4 + hex $1, '');
            }
        }

        while ($$text =~ s/\A(.*?)\n\n//s) {
            my $event = $1;
            return $json->decode($1) if $event =~ /^data: (.*)$/m;
        }

        MCPTasks::fill($s) or return;
    }
}


# in a group of its own: what it has started ends with it
sub start {
    my (@command) = @_;
    my $pid = fork();
    die "fork: $!\n" unless defined $pid;

    if ($pid == 0) {
        setpgid(0, 0);
        open(STDOUT, '>>', "$t->{dir}/logs/worker");
        open(STDERR, '>>', "$t->{dir}/logs/worker");
        exec(@command) or POSIX::_exit(127);
    }

    setpgid($pid, $pid);
    $running{$pid} = 1;
    return $pid;
}


# whether it ended by itself when it was told to
sub stop {
    my ($pid) = @_;
    kill('TERM', -$pid);
    my $ended = wait_for { waitpid($pid, WNOHANG) == $pid } 15;

    if (!$ended) {
        kill('KILL', -$pid);
        waitpid($pid, 0);
    }

    delete $running{$pid};
    return $ended;
}

END {
    my $status = $?;
    kill('KILL', map { -$_ } keys %running) if %running;
    $? = $status;
}


for my $example (@examples) {
    my ($name, @needed) = @$example;
    my @missing = grep { system("command -v $_ > /dev/null") != 0 } @needed;

    if (@missing) {
        fail("$name needs @missing");
        next;
    }

    ok(-x "$root/examples/$name", "$name can be started");
    cmp_ok(scalar(() = slurp("$root/examples/$name") =~ /\n/g), '<=', 120,
           "$name fits on a page");

    my $pid = start($needed[0], "$root/examples/$name",
                    "http://127.0.0.1:$t->{port}/worker");

    # count
    my $id = create('count', '{"to":4,"delay":0.3}');
    my $seen = wait_for {
        my $task = task($id);
        ($task->{statusMessage} || '') =~ /^at \d$/ ? $task : undef;
    };
    is($seen->{status}, 'working', "$name: count tells how far it got");

    my $got = legacy('tasks/result', qq("taskId":"$id"));
    is($got->{result}{content}[0]{text}, 'counted to 4', "$name: count");
    is(task($id)->{status}, 'completed', "$name: count is completed");

    # count as a plain call, with progress
    my $s = $t->post_later('/mcp', body('tools/call',
        '"name":"count","arguments":{"to":2,"delay":0.6},'
        . '"_meta":{"progressToken":5}'));
    my @events;

    while (my $event = event($s)) {
        push @events, $event;
        last if $event->{result} || $event->{error};
    }

    is_deeply($events[0]{params}, { progressToken => 5, progress => 1,
                                    total => 2, message => 'at 1' },
              "$name: progress of a plain call");
    is($events[-1]{result}{content}[0]{text}, 'counted to 2',
       "$name: its result");

    # greet, legacy: the question comes on the stream of tasks/result
    $id = create('greet', '{}');
    $s = $t->post_later('/mcp', body('tasks/result', qq("taskId":"$id")));
    my $question = event($s);
    is($question->{method}, 'elicitation/create', "$name: greet asks");
    is($question->{params}{message}, 'What is your name?', "$name: the name");
    is($question->{params}{_meta}{'io.modelcontextprotocol/related-task'}
       {taskId}, $id, "$name: for its task");

    my $res = $t->post('/mcp', $json->encode({
        jsonrpc => '2.0', id => $question->{id},
        result => { action => 'accept',
                    content => { name => "Ann \"\x{e9}\"" } } }));
    is($res->{status}, 202, "$name: the answer is taken");

    my $answer = event($s);
    is($answer->{result}{content}[0]{text}, "Hello, Ann \"\x{e9}\"!",
       "$name: greet, legacy");

    # greet, modern
    for my $case (['{"action":"accept","content":{"name":"Bob"}}',
                   'Hello, Bob!', 0],
                  ['{"action":"decline"}', 'no name, no greeting', 1])
    {
        my ($response, $text, $is_error) = @$case;

        $got = modern('tools/call', 'greet', '"name":"greet","arguments":{}');
        is($got->{result}{resultType}, 'task', "$name: greet is a task");
        $id = $got->{result}{taskId};

        $seen = wait_for {
            my $task = task($id);
            $task->{status} eq 'input_required' ? $task : undef;
        };
        is($seen->{inputRequests}{name}{method}, 'elicitation/create',
           "$name: greet asks");
        modern('tasks/update', $id,
               qq("taskId":"$id","inputResponses":{"name":$response}));

        $seen = wait_for {
            my $task = task($id);
            $task->{status} eq 'completed' ? $task : undef;
        };
        is($seen->{result}{content}[0]{text}, $text, "$name: greet, modern");
        is($seen->{result}{isError} ? 1 : 0, $is_error, "$name: isError");
    }

    # fail
    $id = create('fail', '{"how":"tool"}');
    $got = legacy('tasks/result', qq("taskId":"$id"));
    ok($got->{result}{isError}, "$name: fail with a result");
    is(legacy('tasks/get', qq("taskId":"$id"))->{result}{status}, 'failed',
       "$name: failed, legacy");
    is(task($id)->{status}, 'completed', "$name: completed, modern");

    $id = create('fail', '{"how":"protocol"}');
    $got = legacy('tasks/result', qq("taskId":"$id"));
    is_deeply($got->{error}, { code => -32050, message => 'broken' },
              "$name: fail with an error");
    is(task($id)->{status}, 'failed', "$name: failed in both eras");

    # cancelled while it counts: the worker goes on with something else
    $id = create('count', '{"to":1000,"delay":0.1}');
    wait_for { (task($id)->{statusMessage} || '') =~ /^at/ };
    $got = legacy('tasks/cancel', qq("taskId":"$id"));
    is($got->{result}{status}, 'cancelled', "$name: cancelled");

    my $began = time();
    my $next = create('count', '{"to":1,"delay":0}');
    $got = legacy('tasks/result', qq("taskId":"$next"));
    is($got->{result}{content}[0]{text}, 'counted to 1',
       "$name: goes on with the next task");
    cmp_ok(time() - $began, '<', 10, "$name: soon");
    is(task($id)->{status}, 'cancelled', "$name: the other stays cancelled");

    # stopped while it counts: the task is given back
    $id = create('count', '{"to":1000,"delay":0.1}');
    wait_for { (task($id)->{statusMessage} || '') =~ /^at/ };
    ok(stop($pid), "$name ends when it is told to");
    $got = decoded($t->post('/worker', body('worker/claim',
                                            '"tools":["count"]')));
    is($got->{result}{tasks}[0]{taskId}, $id, "$name: gives its task back");
    is($got->{result}{tasks}[0]{attempt}, 1, "$name: no attempt was lost");
    legacy('tasks/cancel', qq("taskId":"$id"));
}

# told twice, by Ctrl-C and by whoever started it: the second signal comes while
# the interpreter is on its way out
{
    my $log = "$t->{dir}/logs/worker";
    my $before = length slurp($log);
    my $pid = start('python3', '-c', 'import atexit, os, runpy, signal, sys;'
        . ' atexit.register(os.kill, os.getpid(), signal.SIGTERM);'
        . ' sys.argv[:1] = []; runpy.run_path(sys.argv[0])',
        "$root/examples/worker.py", "http://127.0.0.1:$t->{port}/worker");
    my $id = create('count', '{"to":1,"delay":0}');
    wait_for { task($id)->{status} eq 'completed' };
    ok(stop($pid), 'told twice, it ends');
    is(substr(slurp($log), $before), '', 'without a word');
}

# nginx may come and go
{
    my $pid = start('python3', "$root/examples/worker.py",
                    "http://127.0.0.1:$t->{port}/worker");
    my $id = create('count', '{"to":6,"delay":0.3}');
    wait_for { (task($id)->{statusMessage} || '') =~ /^at/ };
    $t->reload();

    # whom an old process tells that it goes down asks again
    my $got = wait_for {
        legacy('tasks/result', qq("taskId":"$id"))->{result};
    };
    is($got->{content}[0]{text}, 'counted to 6', 'work goes on over a reload');
    ok(stop($pid), 'then it ends');
}

ok($t->stop(), 'nginx exits');
is($t->faults(), '', 'nothing to complain about in the log');

done_testing();
