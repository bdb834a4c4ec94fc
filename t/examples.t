# Each of the workers in examples/ does what its tools promise.

use warnings;
use strict;

use FindBin;
use lib "$FindBin::Bin/lib";

use POSIX qw/ WNOHANG setpgid /;
use Test::More;
use Time::HiRes qw/ sleep time /;

use MCPClient;
use MCPFile qw/ slurp write_file /;
use MCPStatus;
use MCPTasks qw/ wait_for workers /;

my $root = "$FindBin::Bin/..";

my @examples = (['worker.py', 'python3'], ['worker.mjs', 'node'],
                ['worker.sh', 'bash', 'jq']);

my $t = MCPTasks->new(
    workers => workers(), listen => 'reuseport',
    module => $ENV{MCP_TASKS_MODULE},
    files => { 'tools.json' => slurp("$root/conf/tools.json") },
    http => 'mcp_tasks_zone zone=z:4m;',
    surfaces => ['worker', 'status'], server => <<'END');
        location /mcp { mcp_tasks zone=z; mcp_tasks_tools tools.json; }

        # the worker endpoint, as long as there is none of these files
        location /troubled {
            root          logs;
            access_log    logs/troubled;
            default_type  application/json;

            if (-f $document_root/page) { return 503; }
            if (-f $document_root/error) {
                return 503 '{"jsonrpc":"2.0","id":1,"error":{"code":-31015,
                    "message":"The store is unavailable, retry later",
                    "data":{"reason":"store_unavailable"}}}';
            }
            if (-f $document_root/lost) { rewrite ^ /lost last; }

            rewrite ^ /worker last;
        }

        # the request arrives, and its response is lost
        location /lost {
            access_log  logs/troubled;
            mirror      /copy;
            proxy_pass  http://127.0.0.1:$server_port/nothing;
        }

        location = /copy { proxy_pass http://127.0.0.1:$server_port/worker; }
        location = /nothing { return 502; }
END

my $c = MCPClient->new($t);
my $status = MCPStatus->new($t);
my %running;


# the task of a call, in the legacy era
sub create {
    my ($tool, %arguments) = @_;
    return $c->create($tool, arguments => \%arguments,
                      task => { ttl => 60000 });
}


# the answer to a request of the legacy era about a task
sub about {
    my ($method, $id) = @_;
    return $c->legacy($method, { taskId => $id })->{json} || {};
}


# the task of a modern client, as soon as it is like that
sub until_task {
    my ($id, $member, $pattern) = @_;
    return wait_for {
        my $task = $c->get_modern($id);
        return ($task->{$member} || '') =~ $pattern ? $task : undef;
    };
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


# whether it ended by itself when it, or all of its group, was told to
sub stop {
    my ($pid, $alone) = @_;
    kill('TERM', $alone ? $pid : -$pid);
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
    my $id = create('count', to => 4, delay => 0.3);
    my $seen = until_task($id, 'statusMessage', qr/^at \d$/);
    is($seen->{status}, 'working', "$name: count tells how far it got");

    my $got = about('tasks/result', $id);
    is($got->{result}{content}[0]{text}, 'counted to 4', "$name: count");
    is($c->get_modern($id)->{status}, 'completed', "$name: count is completed");

    # count as a plain call, with progress
    my $s = $c->stream($c->legacy_bytes('tools/call', { name => 'count',
        arguments => { to => 2, delay => 0.6 },
        _meta => { progressToken => 5 } }));
    my @events;

    while (my $event = $s->message()) {
        push @events, $event;
        last if $event->{result} || $event->{error};
    }

    is_deeply($events[0]{params}, { progressToken => 5, progress => 1,
                                    total => 2, message => 'at 1' },
              "$name: progress of a plain call");
    is($events[-1]{result}{content}[0]{text}, 'counted to 2',
       "$name: its result");

    # greet, legacy: the question comes on the stream of tasks/result
    $id = create('greet');
    $s = $c->stream($c->in_session()->legacy_bytes('tasks/result',
                                                   { taskId => $id }));
    my $question = $s->message();
    is($question->{method}, 'elicitation/create', "$name: greet asks");
    is($question->{params}{message}, 'What is your name?', "$name: the name");
    is($question->{params}{_meta}{'io.modelcontextprotocol/related-task'}
       {taskId}, $id, "$name: for its task");

    my $res = $c->post(qq({"jsonrpc":"2.0","id":"$question->{id}",)
        . '"result":{"action":"accept","content":{"name":"Ann \"\u00e9\""}}}');
    is($res->{status}, 202, "$name: the answer is taken");

    # as it is, or escaped
    my $text = $s->message()->{result}{content}[0]{text};
    utf8::decode($text);
    is($text, "Hello, Ann \"\x{e9}\"!", "$name: greet, legacy");

    # greet, modern
    for my $case ([{ action => 'accept', content => { name => 'Bob' } },
                   'Hello, Bob!', 0],
                  [{ action => 'decline' }, 'no name, no greeting', 1])
    {
        my ($response, $text, $is_error) = @$case;

        $got = $c->modern('tools/call', { name => 'greet', arguments => {} })
               ->{json};
        is($got->{result}{resultType}, 'task', "$name: greet is a task");
        $id = $got->{result}{taskId};

        $seen = until_task($id, 'status', qr/^input_required$/);
        is($seen->{inputRequests}{name}{method}, 'elicitation/create',
           "$name: greet asks");
        $c->modern('tasks/update', { taskId => $id,
                                     inputResponses => { name => $response } });

        $seen = until_task($id, 'status', qr/^completed$/);
        is($seen->{result}{content}[0]{text}, $text, "$name: greet, modern");
        is($seen->{result}{isError} ? 1 : 0, $is_error, "$name: isError");
    }

    # fail
    $id = create('fail', how => 'tool');
    $got = about('tasks/result', $id);
    ok($got->{result}{isError}, "$name: fail with a result");
    is($c->status($id), 'failed', "$name: failed, legacy");
    is($c->get_modern($id)->{status}, 'completed', "$name: completed, modern");

    $id = create('fail', how => 'protocol');
    $got = about('tasks/result', $id);
    is_deeply($got->{error}, { code => -32050, message => 'broken' },
              "$name: fail with an error");
    is($c->get_modern($id)->{status}, 'failed', "$name: failed in both eras");

    # cancelled while it counts: the worker goes on with something else
    $id = create('count', to => 1000, delay => 0.1);
    until_task($id, 'statusMessage', qr/^at/);
    $got = about('tasks/cancel', $id);
    is($got->{result}{status}, 'cancelled', "$name: cancelled");

    my $began = time();
    my $next = create('count', to => 1, delay => 0);
    $got = about('tasks/result', $next);
    is($got->{result}{content}[0]{text}, 'counted to 1',
       "$name: goes on with the next task");
    cmp_ok(time() - $began, '<', 10, "$name: soon");
    is($c->get_modern($id)->{status}, 'cancelled',
       "$name: the other stays cancelled");

    # stopped while it counts: the task is given back
    $id = create('count', to => 1000, delay => 0.1);
    until_task($id, 'statusMessage', qr/^at/);
    ok(stop($pid), "$name ends when it is told to");
    my $work = $c->worker('worker/claim', { tools => ['count'] })->{tasks}[0];
    is($work->{taskId}, $id, "$name: gives its task back");
    is($work->{attempt}, 1, "$name: no attempt was lost");
    about('tasks/cancel', $id);

    # answered in an attempt that another worker has given up
    $id = create('greet');
    $work = $c->worker('worker/claim', { tools => ['greet'] })->{tasks}[0];
    my %held = map { $_ => $work->{$_} } qw/ taskId lease /;
    $c->worker('worker/ask', { %held,
                               inputRequests => { name => MCPClient::form() } });
    $c->modern('tasks/update', { taskId => $id, inputResponses => {
        name => { action => 'accept', content => { name => 'Eve' } } } });
    $c->worker('worker/fail', { %held, retryable => \1,
                                error => { code => 1, message => 'x' } });
    $pid = start($needed[0], "$root/examples/$name",
                 "http://127.0.0.1:$t->{port}/worker");
    $seen = until_task($id, 'status', qr/^(completed|failed)$/);
    is($seen->{result}{content}[0]{text}, 'Hello, Eve!',
       "$name: greet does not ask again") or diag(explain($seen));
    ok(stop($pid), "$name ends");
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
    my $id = create('count', to => 1, delay => 0);
    until_task($id, 'status', qr/^completed$/);
    ok(stop($pid), 'told twice, it ends');
    is(substr(slurp($log), $before), '', 'without a word');
}

# the answer that a task was given back takes its time: what is given back is
# not claimed again meanwhile
{
    my $slow = "$t->{dir}/slow.cjs";
    write_file($slow, <<'END');
const real = globalThis.fetch;
globalThis.fetch = async (url, options) => {
    const response = await real(url, options);
    if (/"worker\/release"/.test(options.body)) {
        await new Promise((resolve) => setTimeout(resolve, 1000));
    }
    return response;
};
END
    my $pid = start('node', '-r', $slow, "$root/examples/worker.mjs",
                    "http://127.0.0.1:$t->{port}/worker");
    my $id = create('count', to => 1000, delay => 0.1);
    until_task($id, 'statusMessage', qr/^at/);
    ok(stop($pid), 'it ends after a slow answer');
    is(($c->worker('worker/claim', { tools => ['count'] })->{tasks}[0] || {})
       ->{taskId}, $id, 'and its task is there for others');
    about('tasks/cancel', $id);
}

# nginx may come and go
{
    my $pid = start('python3', "$root/examples/worker.py",
                    "http://127.0.0.1:$t->{port}/worker");
    my $id = create('count', to => 6, delay => 0.3);
    until_task($id, 'statusMessage', qr/^at/);
    $t->reload();

    # whom an old process tells that it goes down asks again
    my $got = wait_for {
        about('tasks/result', $id)->{result};
    };
    is($got->{content}[0]{text}, 'counted to 6', 'work goes on over a reload');
    ok(stop($pid), 'then it ends');
}

# "503: repeat the request after one second", docs/worker-protocol.md: whatever
# the request is, and though the first one may have been received
for my $example (@examples) {
    my ($name, $command) = @$example;
    my $claims = $status->json()->{claims};
    my $pid;

    # how often a worker was told so
    my $refused = sub { scalar(() = slurp("$t->{dir}/logs/troubled")
                                    =~ /" 50[23] /g) };

    # a file is there until a request of the worker has been refused
    my $trouble = sub {
        my ($file, $code) = @_;
        my $before = $refused->();
        write_file("$t->{dir}/logs/$file", '');
        my $got = $code->();
        ok((wait_for { $refused->() > $before }), "$name: $file: refused");
        unlink "$t->{dir}/logs/$file";
        return $got;
    };

    my $waits = sub {
        my ($n) = @_;
        return wait_for { $status->json()->{waitingRequests} == $n };
    };

    ok($waits->(0), "$name: nobody waits");
    $trouble->('page', sub {
        $pid = start($command, "$root/examples/$name",
                     "http://127.0.0.1:$t->{port}/troubled");
    });

    ok($waits->(1), "$name: it claims again");
    my $id = $trouble->('error', sub { create('count', to => 1, delay => 0) });
    is(about('tasks/result', $id)->{result}{content}[0]{text}, 'counted to 1',
       "$name: it goes on with its task");

    ok($waits->(1), "$name: and claims the next");
    $id = $trouble->('lost', sub {
        my $id = create('greet');
        ok(until_task($id, 'status', qr/^input_required$/),
           "$name: a question arrives, and the worker does not know");
        return $id;
    });

    ok($waits->(1), "$name: it waits for the answer");
    $c->modern('tasks/update', { taskId => $id, inputResponses => {
        name => { action => 'accept', content => { name => 'Ann' } } } });
    is((until_task($id, 'status', qr/^completed$/) || {})->{result}{content}[0]
       {text}, 'Hello, Ann!', "$name: and goes on with it");

    is($status->json()->{claims}, $claims + 2, "$name: no attempt was lost");
    ok(stop($pid), "$name: then it ends");
}

# nginx is gone, or does not answer: a worker that is told to stop does not
# wait for it, whatever it is doing, and though nobody signals its children
for my $example (@examples) {
    my ($name, $command) = @$example;

    for my $case (['nginx is gone, nothing to give back', 0, 'KILL'],
                  ['nginx is gone, a task to give back', 1, 'KILL'],
                  ['nginx does not answer', 1, 'STOP'])
    {
        my ($what, $holds, $signal) = @$case;
        my $log = "$t->{dir}/logs/worker";
        my $before = length slurp($log);
        my @stopped;
        my $pid = start($command, "$root/examples/$name",
                        "http://127.0.0.1:$t->{port}/worker");

        my $id = create('count', to => $holds ? 1000 : 1, delay => 0.1);
        until_task($id, 'statusMessage', qr/^at/);
        until_task($id, 'status', qr/^completed$/) unless $holds;

        if ($signal eq 'KILL') {
            $t->kill_all();
            ok((wait_for { substr(slurp($log), $before)
                           =~ /refused|connect|closed|reset|ECONN|Empty/i }),
               "$name: $what, which it has noticed");
        } else {
            @stopped = $t->worker_pids();
            kill('STOP', @stopped);
        }

        my $began = time();
        ok(stop($pid, 1), "$name: $what: it ends");
        cmp_ok(time() - $began, '<', $signal eq 'KILL' ? 3 : 6,
               "$name: $what: soon");

        if ($signal eq 'KILL') {
            $t->start();
        } else {
            kill('CONT', @stopped);
            about('tasks/cancel', $id);
        }
    }
}

ok($t->stop(), 'nginx exits');
is($t->faults(), '', 'nothing to complain about in the log');

done_testing();
