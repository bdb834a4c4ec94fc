# Requests of workers that are invalid.

use warnings;
use strict;

use FindBin;
use lib "$FindBin::Bin/lib";

use Test::More;

use MCPClient;
use MCPWorker qw/ body decoded finish held is_refused say_of taken task
                  work /;

my $t = MCPWorker::start();


is(work('claim', '{"tools":["plain"],"x":1,"y":{"z":[]}}')->{error}, undef,
   'unknown members are ignored');

for my $bad ('{}', '{"tools":null}', '{"tools":"plain"}', '{"tools":{}}',
             '{"tools":1}', '{"tools":[]}', '{"tools":[1]}',
             '{"tools":["a",null]}', '{"tools":[["a"]]}',
             '{"tools":["a"],"tools":["b"]}',
             (map { qq({"tools":["a"],"max":$_}) } qw/ 0 -1 33 1.0 1e0 "1"
              null true [] {} 99999999999999999999 /),
             (map { my $name = $_;
                    map { qq({"tools":["a"],"$name":$_}) }
                    qw/ -1 1.5 "1" null true [] {} 99999999999999999999 / }
              qw/ waitMs leaseMs /),
             '{"tools":["a"],"waitMs":3600001}',
             '{"tools":["a"],"leaseMs":86400001}',
             '{"tools":["a"],"max":1,"max":1}')
{
    is_refused(work('claim', $bad), -32602, undef, "claim $bad");
}

is_refused(work('claim'), -32602, undef, 'claim without params');

{
    my $claim = taken('plain');
    my $before = task($claim->{taskId});

    for my $method (qw/ heartbeat progress ask answers complete fail
                        release /)
    {
        is_refused(work($method), -32602, undef, "$method without params");
        is_refused(work($method, '{}'), -32602, undef, "$method of nothing");

        for my $bad (qw/ 1 null true [] {} /) {
            is_refused(work($method, qq({"taskId":$bad,)
                                     . qq("lease":"$claim->{lease}"})),
                       -32602, undef, "$method: taskId $bad");
            is_refused(work($method, qq({"taskId":"$claim->{taskId}",)
                                     . qq("lease":$bad})),
                       -32602, undef, "$method: lease $bad");
        }

        is_refused(work($method, qq({"taskId":"$claim->{taskId}"})), -32602,
                   undef, "$method without a lease");
        is_refused(say_of($claim, $method, held($claim)), -32602, undef,
                   "$method with both twice");
    }

    for my $bad (qw/ -1 1.5 "1" null true [] {} 86400001 /) {
        is_refused(say_of($claim, 'heartbeat', qq("leaseMs":$bad)), -32602,
                   undef, "heartbeat: leaseMs $bad");
    }

    is_refused(say_of($claim, 'heartbeat', '"leaseMs":1,"leaseMs":1'), -32602,
               undef, 'heartbeat: leaseMs twice');

    is_deeply(task($claim->{taskId}), $before, 'changes nothing');
    finish($claim);
}

for my $method ('worker/nothing', 'worker/', 'claim', 'tools/call',
                'tasks/get', 'worker/claimx', '')
{
    is(decoded($t->post('/worker', body($method, '{}')))->{error}{code},
       -32601, "no method \"$method\"");
}

is(decoded($t->post('/mcp', body('worker/claim', '{"tools":["plain"]}')))
   ->{error}{code}, -32601, 'no worker method at the endpoint of clients');

{
    my $claim = body('worker/claim', '{"tools":["plain"]}');

    for my $case ([{ 'Content-Type' => 'text/plain' }, $claim, 415, -32600],
                  [{ 'Content-Type' => undef }, $claim, 415, -32600],
                  [{}, '{', 400, -32700],
                  [{}, '', 400, -32700],
                  [{}, '[]', 400, -32600],
                  [{}, "[$claim]", 400, -32600],
                  [{}, '{"jsonrpc":"2.0","method":"worker/claim",'
                       . '"params":{"tools":["plain"]}}', 400, -32600],
                  [{}, '{"jsonrpc":"2.0","id":1,"result":{}}', 400, -32600],
                  [{}, '{"jsonrpc":"2.0","id":1,"method":"worker/claim",'
                       . '"params":[]}', 400, -32602],
                  [{ Origin => 'http://example.com' }, $claim, 403, -32600],
                  [{ Host => 'example.com' }, $claim, 403, -32600])
    {
        my ($headers, $text, $status, $code) = @$case;
        my $res = $t->post('/worker', $text, $headers);
        my $what = join ' ', (map { "$_ " . ($headers->{$_} || 'none') }
                              keys %$headers), $text;
        is($res->{status}, $status, "$status: $what");
        is(MCPClient::decode($res->{body})->{error}{code}, $code,
           "$code: $what");
    }

    for my $method (qw/ GET HEAD PUT DELETE OPTIONS /) {
        my $res = $t->request($method, '/worker', {});
        is($res->{status}, 405, "405: $method");
        is($res->{header}{allow}, 'POST', 'and what is allowed');
    }
}

MCPWorker::done();

done_testing();
