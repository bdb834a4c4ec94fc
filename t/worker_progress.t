# Heartbeats and progress of a worker.

use warnings;
use strict;

use FindBin;
use lib "$FindBin::Bin/lib";

use Test::More;
use Time::HiRes qw/ sleep /;

use MCPClient;
use MCPTasks;
use MCPWorker qw/ body claim finish is_refused reclaimed say_of taken task /;

my $t = MCPWorker::start();


# --- heartbeat

{
    my $claim = taken('quick');

    for (1 .. 8) {
        sleep(0.15);
        my $got = say_of($claim, 'heartbeat');
        is($got->{raw}, '{"jsonrpc":"2.0","id":7,"result":{"phase":"running",'
                        . '"cancelled":false,"drain":false}}',
           'the lease is prolonged');
    }

    my $version = task($claim->{taskId});
    say_of($claim, 'heartbeat');
    is_deeply(task($claim->{taskId}), $version,
              'a heartbeat changes nothing that clients see');

    # a longer one
    say_of($claim, 'heartbeat', '"leaseMs":1500');
    sleep(0.9);
    is(say_of($claim, 'progress', '"message":"alive"')->{result}{phase},
       'running', 'a lease of another length');
    is(finish($claim)->{result}{phase}, 'completed', 'it ends in time');

    # what was asked for is not cut by a sign of life
    $claim = taken('quick', '"leaseMs":2000');
    is(say_of($claim, 'progress', '"progress":0.5')->{result}{phase},
       'running', 'progress within a long lease');
    sleep(0.9);
    is(say_of($claim, 'heartbeat')->{result}{phase}, 'running',
       'progress does not shorten a lease');
    sleep(0.6);
    is(finish($claim)->{result}{phase}, 'completed',
       'nor does a heartbeat without a length');

    # but the worker itself may
    $claim = taken('quick', '"leaseMs":60000');
    say_of($claim, 'heartbeat', '"leaseMs":200');
    say_of($claim, 'heartbeat', '"leaseMs":100');
    sleep(0.1);
    my $again = reclaimed('quick');
    is($again->{attempt}, 2, 'a lease may be made shorter');
    finish($again);
}


# --- progress

{
    my $claim = taken('plain');

    for my $p ('0', '0.25', '0.25', '0.5', '1', '1.0') {
        is(say_of($claim, 'progress', qq("progress":$p))->{result}{phase},
           'running', "progress $p");
    }

    is_refused(say_of($claim, 'progress', '"progress":0.9'), -32602,
               'progress_backwards', 'backwards');
    is(say_of($claim, 'progress', '"message":"still here"')->{result}{phase},
       'running', 'a message alone');
    is(task($claim->{taskId})->{statusMessage}, 'still here',
       'clients see the message');
    is(say_of($claim, 'progress')->{result}{phase}, 'running',
       'nothing at all is a sign of life');
    is(task($claim->{taskId})->{statusMessage}, 'still here',
       'and the message stays');

    my $long = 'x' x 1022;
    is(say_of($claim, 'progress', qq("message":"$long"))->{result}{phase},
       'running', 'a message of 1024 bytes with its quotes');

    my $before = task($claim->{taskId});

    for my $bad ('"progress":"1"', '"progress":-0.1', '"progress":null',
                 '"progress":true', '"progress":{}', '"progress":1.5',
                 '"progress":[]', '"progress":1e999', '"progress":2',
                 '"progress":5,"total":4', '"progress":1,"total":"4"',
                 '"progress":1,"total":null', '"progress":1,"total":{}',
                 '"progress":1,"total":-1', '"total":-1', '"total":"x"',
                 '"message":1', '"message":null', '"message":{}',
                 '"message":["m"]', qq("message":"x$long"),
                 '"progress":1,"progress":1')
    {
        my $name = length $bad > 60 ? 'a message of 1025 bytes' : $bad;
        is_refused(say_of($claim, 'progress', $bad), -32602, undef, $name);
    }

    is_deeply(task($claim->{taskId}), $before, 'bad progress changes nothing');
    finish($claim);

    $claim = taken('plain');

    for my $p ('0,"total":7', '3,"total":7', '3.5,"total":7', '7,"total":7',
               '8,"total":10')
    {
        is(say_of($claim, 'progress', qq("progress":$p))->{result}{phase},
           'running', "progress $p");
    }

    is_refused(say_of($claim, 'progress', '"progress":7,"total":7'), -32602,
               'progress_backwards', 'backwards with a total');
    finish($claim);
}

# progress starts again with the next attempt
{
    my $claim = taken('plain');
    say_of($claim, 'progress', '"progress":0.9');
    say_of($claim, 'release');
    $claim = claim('plain');
    is(say_of($claim, 'progress', '"progress":0.1')->{result}{phase},
       'running', 'the next attempt begins at the beginning');
    finish($claim);
}

# a plain call gets it as notifications
{
    my $s = $t->post_later('/mcp', body('tools/call',
                           '{"name":"plain","_meta":{"progressToken":"p"}}'));
    my $claim = reclaimed('plain');

    for my $n (1 .. 3) {
        say_of($claim, 'progress',
               qq("progress":$n,"total":3,"message":"m\\u0041$n"));
        sleep(0.4);
    }

    say_of($claim, 'complete', '"result":{"content":[],"x":1.0}');
    my $res = MCPTasks::read_response($s);
    my @events = $res->{body} =~ /^data: (.*)$/mg;
    my $first = '"progressToken":"p","progress":1,"total":3,'
                . '"message":"m\u00411"';

    is_deeply([map { MCPClient::decode($_)->{params}{progress} || 0 } @events],
              [1, 2, 3, 0], 'progress, then the result');
    like($events[0], qr/\Q$first\E/,
         'with token, total and message as they came');
    is($events[3],
       '{"jsonrpc":"2.0","id":7,"result":{"content":[],"x":1.0}}',
       'and the result');
}

MCPWorker::done();

done_testing();
