# Why a task failed, in its status message.
#
# 2025-11-25, basic/utilities/tasks, and ext-tasks: "The tasks/get response SHOULD
# include a statusMessage field with diagnostic information about the failure"

use warnings;
use strict;

use FindBin;
use lib "$FindBin::Bin/lib";

use Test::More;

use MCPClient;
use MCPGateway;
use MCPJson;
use MCPTasks qw/ wait_for workers /;

my $t = MCPTasks->new(
    workers => workers(), listen => 'reuseport',
    tools => [['plain', '"attempts":2,"backoff":1'],
              ['lost', '"lease":100,"attempts":1'],
              ['queue', '"queueTimeout":100'],
              ['run', '"runTimeout":100,"lease":"1m"']],
    http => 'mcp_tasks_zone zone=z:8m; mcp_tasks_tools tools.json;',
    surfaces => [qw/ mcp worker /],
    server => 'mcp_tasks_owner $http_x_user;
               location /console { mcp_tasks_console zone=z; }');

my $c = MCPClient->new($t, headers => { 'X-User' => 'ann' });
my $console = MCPClient->new($t, uri => '/console');


# a task of which a worker has reported something
sub begun {
    my ($tool, $who) = @_;
    my $work = $c->claim_id($tool, ($who || $c)->create($tool));
    $c->held('progress', $work, progress => 3, total => 5,
             message => 'at 3 of 5');
    return $work;
}


sub give_up {
    my ($work, $message, %params) = @_;
    return $c->held('fail', $work, error => { code => 7, message => $message },
                    %params);
}


sub in_list {
    my ($id, $list) = @_;
    my ($task) = grep { $_->{taskId} eq $id } @$list;
    return $task->{statusMessage};
}


# the message, wherever the task is shown
sub says {
    my ($id, $message, $name) = @_;
    local $Test::Builder::Level = $Test::Builder::Level + 1;

    is_deeply(
        { 'tasks/get' => $c->get($id)->{statusMessage},
          'tasks/list' => in_list($id, $c->legacy('tasks/list', {})
                                       ->{json}{result}{tasks}),
          modern => $c->get_modern($id)->{statusMessage},
          REST => $c->rest("tasks/$id")->{json}{statusMessage},
          'REST list' => in_list($id, $c->rest('tasks')->{json}{tasks}),
          console => $console->rest("api/tasks/$id")->{json}{statusMessage},
          'console list' => in_list($id, $console->rest('api/tasks')
                                         ->{json}{tasks}) },
        { map { $_ => $message } 'tasks/get', 'tasks/list', 'modern', 'REST',
                                 'REST list', 'console', 'console list' },
        $name);
}


sub is_failed {
    my ($id, $message, $name) = @_;
    local $Test::Builder::Level = $Test::Builder::Level + 1;
    ok(wait_for { $c->status($id) eq 'failed' }, "$name: failed");
    says($id, $message, "$name: the message");
}


# --- an error of a worker

{
    my $work = begun('plain');
    says($work->{taskId}, 'at 3 of 5', 'while it runs: progress');
    is(give_up($work, 'disk "d" is full')->{phase}, 'failed', 'an error');
    is_failed($work->{taskId}, 'disk "d" is full', 'an error');

    # the message of an attempt that was not the last is not a diagnosis
    $work = begun('plain');
    my $id = $work->{taskId};
    is(give_up($work, 'first', retryable => \1)->{phase}, 'queued', 'a retry');
    says($id, 'at 3 of 5', 'a retry: the message stays');
    $work = $c->claim_id('plain', $id);
    is(give_up($work, 'second', retryable => \1)->{phase}, 'failed',
       'the last');
    is_failed($id, 'second', 'no attempt is left');

    $work = begun('plain');
    give_up($work, '');
    is_failed($work->{taskId}, 'The task failed', 'an empty message');
}


# --- an error of the tool: "failed" in the legacy era only

for my $case (
    ['{"content":[{"type":"text","text":"no \u00e9t\u00e9"}],"isError":true}',
     "no \xe9t\xe9", 'a text'],
    ['{"isError":true,"content":[{"type":"image","text":"no"},7,{"type":"text",'
     . '"text":""},{"type":"te\u0078t","text":"the first"},{"type":"text",'
     . '"text":"the second"}]}', 'the first', 'the first of several texts'],
    ['{"isError":true,"content":[{"type":"text","text":"a","text":"b"}]}',
     'The tool returned an error', 'a duplicate text'],
    ['{"isError":true,"content":[]}', 'The tool returned an error', 'no text'],
    ['{"isError":true,"content":{}}', 'The tool returned an error', 'no list'],
    ['{"isError":true}', 'The tool returned an error', 'no content'])
{
    my ($result, $message, $name) = @$case;
    MCPJson::allow('text') if $name eq 'a duplicate text';

    my $work = begun('plain');
    is($c->complete($work, $result)->{phase}, 'completed', $name);
    is_failed($work->{taskId}, $message, $name);
    is($c->get_modern($work->{taskId})->{status}, 'completed',
       "$name: completed in the modern era");
}

{
    my $work = begun('plain');
    $c->complete($work, '{"content":[{"type":"text","text":"fine"}],'
                        . '"isError":false}');
    says($work->{taskId}, 'at 3 of 5', 'a result that is no error');
}


# --- the clock

for my $case (['lost', 'The lease expired, and the task is not tried again'],
              ['run', 'The task exceeded its run time'])
{
    my ($tool, $message) = @$case;
    my $id = $c->create($tool);
    my $work = $c->claim($tool);
    $c->held('progress', $work, message => 'at 3 of 5');
    is_failed($id, $message, $tool);
}

is_failed($c->create('queue'), 'No worker claimed the task in time', 'queue');


# --- what is too long is cut between two characters, and stays JSON

for my $char ('x', "\xc3\xa9", "\xf0\x9f\x98\x80", '\u00e9', '\ud83d\ude00',
              '\n', '\ud83d')
{
    for my $begin ('', 'a', 'ab', 'abc', 'abcd', 'abcde') {
        my $text = $begin . $char x 1100;
        my $work = $c->claim_id('plain', $c->create('plain'));
        my $got = $c->worker('worker/fail', qq({"taskId":"$work->{taskId}",)
            . qq("lease":"$work->{lease}","error":{"code":1,"message":"$text"}})
        );
        is($got->{phase}, 'failed', "$begin$char: failed");

        my ($shown) = $c->legacy('tasks/get', { taskId => $work->{taskId} })
                      ->{body} =~ /"statusMessage":("(?:[^"\\]|\\.)*")/;
        my ($kept) = $shown =~ /\A"\Q$begin\E((?:\Q$char\E)*)\.\.\."\z/;
        ok(defined $kept, 'whole characters, and an end') or diag($shown);
        cmp_ok(length $shown, '<=', 1024, 'no longer than allowed');
        cmp_ok(length($shown) + length $char, '>', 1024, 'nor shorter');
        like($c->modern('tasks/get', { taskId => $work->{taskId} })->{body},
             qr/"error":\{"code":1,"message":"\Q$text\E"\}/,
             'the error is as it was');
    }
}


# --- on streams

{
    my $session = $c->in_session();
    my $stream = $session->get_stream();
    my $work = begun('plain', $session);
    give_up($work, 'told');

    my $got = $stream->message()->{params};
    $got = $stream->message()->{params} while $got->{status} ne 'failed';
    is($got->{statusMessage}, 'told', 'notifications/tasks/status');
    $stream->close();

    # both at once: progress has no message of its own any more
    $session = $c->in_session();
    $work = $c->claim_id('plain', $session->create('plain',
                         _meta => { progressToken => 'p' }));
    $c->held('progress', $work, progress => 3, message => 'at 3', total => 4);
    give_up($work, 'told later');
    $stream = $session->get_stream();
    is($stream->message()->{params}{statusMessage}, 'told later', 'later');
    $got = $stream->message();
    is($got->{method}, 'notifications/progress', 'and its progress');
    ok(!exists $got->{params}{message}, 'without the diagnosis');
    $stream->close();

    $work = begun('plain');
    $stream = $c->stream($c->modern_bytes('subscriptions/listen',
        { notifications => { taskIds => [$work->{taskId}] } }));
    $stream->message();
    is($stream->message()->{params}{statusMessage}, 'at 3 of 5',
       'notifications/tasks: progress');
    give_up($work, 'listened');
    is($stream->message()->{params}{statusMessage}, 'listened',
       'notifications/tasks: why it failed');
    $stream->close();
}

ok($t->stop(), 'nginx stops');
is($t->faults(), '', 'nothing bad in the log');


# --- a server behind the gateway

my $g = MCPGateway->new(
    workers => workers(), tool => ['far support=optional'],
    on => { far => [['sse'], ['hold']] });
my $up = $g->{up};
($t, $c) = @{$g}{qw/ t c /};

for my $case (
    ['an error', 'it is "raining"',
     ['error', '{"code":5,"message":"it is \"raining\"","data":[1]}']],
    ['an empty error', 'The task failed',
     ['error', '{"code":5,"message":""}']],
    ['isError', 'no such city',
     ['result', '{"content":[{"type":"text","text":"no such city"}],'
                . '"isError":true}']],
    ['a result that is not valid', 'The upstream response is not valid',
     ['result', '{"isError":true,"isError":true}']],
    ['no result', 'The upstream response is incomplete', ['close']])
{
    my ($name, $message, $step) = @$case;
    my ($id, $call) = $g->begin('far');
    $up->go($call, ['event', '{"jsonrpc":"2.0","method":'
        . '"notifications/message","params":{"level":"info","data":"so far"}}'],
        ['hold']);
    $g->until($id, sub { ($_[0]{statusMessage} // '') eq 'so far' });
    $up->go($call, $step);
    ok(wait_for { $c->status($id) eq 'failed' }, "$name: failed");
    is($c->get($id)->{statusMessage}, $message, "$name: the message");
    is($c->get_modern($id)->{statusMessage}, $message, "$name: modern, too");
}

{
    my ($id) = $g->begin('far');
    $t->kill_worker($_) for $t->worker_pids();
    ok(wait_for { $c->status($id) eq 'failed' }, 'the process is lost: failed');
    is($c->get($id)->{statusMessage}, 'The nginx process that ran the call '
       . 'exited', 'the process is lost: the message');
}

$g->done('background call failed|exited on signal 9|prematurely closed');

done_testing();
