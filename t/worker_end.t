# How a worker ends a task: completed, failed or released.

use warnings;
use strict;

use FindBin;
use lib "$FindBin::Bin/lib";

use JSON::PP;
use Test::More;
use Time::HiRes qw/ sleep time /;

use MCPWorker qw/ $question claim finish held is_refused legacy modern
                  reclaimed say_of taken task work /;

MCPWorker::start(server => <<'END');
        location /small {
            mcp_tasks_worker  zone=z;
            mcp_tasks_limit   payload=64;
        }
END


# --- complete

{
    my $result = '{"z":12345678901234567890, "content":[{"type":"text",'
                 . '"text":"\u00e9\/é"}],"structuredContent":{"r":1.0,'
                 . '"e":1E5,"a":[ ]}}';
    my $inline = '"result":{"resultType":"complete",' . substr($result, 1)
                 . '}}';
    my $claim = taken('plain');
    my $got = say_of($claim, 'complete', qq("result":$result));
    is($got->{raw}, '{"jsonrpc":"2.0","id":7,"result":'
       . '{"phase":"completed","cancelled":false,"drain":false}}',
       'completed');

    $got = modern('tasks/get', $claim->{taskId});
    is($got->{result}{status}, 'completed', 'completed for modern clients');
    ok(index($got->{raw}, $inline) > 0, 'byte for byte');
    is(legacy('tasks/get', qq({"taskId":"$claim->{taskId}"}))
       ->{result}{status}, 'completed', 'completed for legacy clients');

    $got = legacy('tasks/result', qq({"taskId":"$claim->{taskId}"}));
    ok(index($got->{raw}, substr($result, 1)) > 0,
       'byte for byte for legacy clients');

    is_refused(finish($claim), -31011, 'task_terminal', 'once more');
    ok(index(modern('tasks/get', $claim->{taskId})->{raw}, $inline) > 0,
       'which changes nothing');
}

{
    my $claim = taken('plain');
    my $id = $claim->{taskId};
    say_of($claim, 'complete', '"result":{"content":[],"isError":true}');

    is(task($id)->{status}, 'completed', 'an error of the tool: completed');
    is(task($id)->{result}{isError}, JSON::PP::true, 'with the flag');
    is(legacy('tasks/get', qq({"taskId":"$id"}))->{result}{status}, 'failed',
       'but failed for legacy clients');
    is(legacy('tasks/result', qq({"taskId":"$id"}))->{result}{isError},
       JSON::PP::true, 'with the same result');

    $claim = taken('plain');
    $id = $claim->{taskId};
    say_of($claim, 'complete', '"result":{"content":[],"isError":false}');
    is(legacy('tasks/get', qq({"taskId":"$id"}))->{result}{status},
       'completed', 'isError that is false');
}

# while a question is open
{
    my $claim = taken('asks');
    say_of($claim, 'ask', qq("inputRequests":{"a":$question}));
    is(finish($claim)->{result}{phase}, 'completed',
       'a task may end while a question is open');
    ok(!exists task($claim->{taskId})->{inputRequests}, 'which then is gone');
}

{
    my $claim = taken('plain');
    my $before = task($claim->{taskId});

    for my $bad ('"x":1', '"result":null', '"result":[]', '"result":"x"',
                 '"result":1', '"result":true', '"result":{},"result":{}',
                 '"result":{"isError":1}', '"result":{"isError":"true"}',
                 '"result":{"isError":true,"isError":false}')
    {
        is_refused(say_of($claim, 'complete', $bad), -32602, undef, $bad);
    }

    is_deeply(task($claim->{taskId}), $before, 'changes nothing');

    my $got = work('complete', '{' . held($claim) . ',"result":{"x":"'
                               . 'x' x 100 . '"}}', '/small');
    is_refused($got, -32602, 'payload_too_large', 'a result that is too large');
    is_deeply(task($claim->{taskId}), $before, 'changes nothing either');
    finish($claim);
}


# --- fail

{
    my $error = '{"code":-32050,"message":"b\u00e9","data":{"n":1.0}}';
    my $claim = taken('plain');
    my $got = say_of($claim, 'fail', qq("error":$error));

    is($got->{raw}, '{"jsonrpc":"2.0","id":7,"result":'
       . '{"phase":"failed","cancelled":false,"drain":false}}', 'failed');
    $got = modern('tasks/get', $claim->{taskId});
    is($got->{result}{status}, 'failed', 'for modern clients');
    ok(index($got->{raw}, qq("error":$error}})) > 0, 'byte for byte');
    $got = legacy('tasks/result', qq({"taskId":"$claim->{taskId}"}));
    ok(index($got->{raw}, qq("error":$error})) > 0, 'for legacy clients, too');

    # false: the same
    $claim = taken('plain');
    say_of($claim, 'fail', qq("error":$error,"retryable":false,"delayMs":1));
    is(task($claim->{taskId})->{status}, 'failed', 'not retryable');
    is(claim('plain'), undef, 'nor retried');
}

{
    my $claim = taken('plain');
    my $id = $claim->{taskId};

    for my $attempt (1 .. 2) {
        my $got = say_of($claim, 'fail', qq("error":{"code":$attempt,)
                         . qq("message":"m$attempt"},"retryable":true,)
                         . '"delayMs":300');
        is($got->{result}{phase}, 'queued', "failed $attempt: queued again");
        is(task($id)->{status}, 'working', 'clients do not notice');
        is(claim('plain'), undef, 'not at once');
        is_refused(say_of($claim, 'heartbeat'), -31011, 'lease_lost',
                   'and it is not ours any more');

        my $began = time();
        my $next = reclaimed('plain');
        cmp_ok(time() - $began, '>', 0.1, 'after a delay');
        is($next->{attempt}, $attempt + 1, 'the next attempt');
        isnt($next->{lease}, $claim->{lease}, 'with another token');
        $claim = $next;
    }

    my $got = say_of($claim, 'fail', '"error":{"code":3,"message":"m3"},'
                                     . '"retryable":true');
    is($got->{result}{phase}, 'failed', 'no attempt is left');
    is_deeply(task($id)->{error}, { code => 3, message => 'm3' },
              'failed with the error of the last one');
}

# without a delay the backoff counts
{
    my $claim = taken('patient');
    say_of($claim, 'fail', '"error":{"code":1,"message":""},"retryable":true');
    sleep(0.5);
    is(claim('patient'), undef, 'the backoff of the tool');
    legacy('tasks/cancel', qq({"taskId":"$claim->{taskId}"}));
}

{
    my $claim = taken('plain');
    my $before = task($claim->{taskId});
    my $error = '"error":{"code":1,"message":"m"}';

    for my $bad ('"x":1', '"error":null', '"error":"x"', '"error":[]',
                 '"error":{}', '"error":{"code":1}', '"error":{"message":"m"}',
                 '"error":{"code":"1","message":"m"}',
                 '"error":{"code":1.5,"message":"m"}',
                 '"error":{"code":1,"message":2}',
                 '"error":{"code":1,"code":1,"message":"m"}',
                 "$error,\"retryable\":1", "$error,\"retryable\":\"true\"",
                 "$error,\"retryable\":null", "$error,\"retryable\":{}",
                 "$error,\"delayMs\":\"1\"", "$error,\"delayMs\":-1",
                 "$error,\"delayMs\":1.5", "$error,\"delayMs\":null",
                 "$error,\"delayMs\":86400001",
                 "$error,\"delayMs\":99999999999999999999",
                 "$error,$error")
    {
        is_refused(say_of($claim, 'fail', $bad), -32602, undef, $bad);
    }

    is_deeply(task($claim->{taskId}), $before, 'changes nothing');
    finish($claim);
}


# --- release

{
    my $claim = taken('once');
    my $id = $claim->{taskId};

    for (1 .. 3) {
        is($claim->{attempt}, 1, 'the first attempt');
        my $got = say_of($claim, 'release');
        is($got->{result}{phase}, 'queued', 'given back');
        is_refused(say_of($claim, 'complete', '"result":{}'), -31011,
                   'lease_lost', 'what was given back');
        $claim = claim('once');
        is($claim->{taskId}, $id, 'at once it may be claimed again');
    }

    finish($claim);
}

MCPWorker::done();

done_testing();
