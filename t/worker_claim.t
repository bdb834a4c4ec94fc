# What a worker receives that claims tasks.

use warnings;
use strict;

use FindBin;
use lib "$FindBin::Bin/lib";

use Test::More;

use MCPWorker qw/ claim create finish is_refused legacy task work /;

MCPWorker::start();


{
    my $got = work('claim', '{"tools":["plain"]}');
    is($got->{raw}, '{"jsonrpc":"2.0","id":7,"result":'
                    . '{"tasks":[],"cancelled":false,"drain":false}}',
       'nothing to do');

    my $id = create('plain', '{"a":1}');
    my $claim = claim('plain');

    is($claim->{taskId}, $id, 'a task');
    is($claim->{tool}, 'plain', 'of the tool');
    is_deeply($claim->{arguments}, { a => 1 }, 'with its arguments');
    like($claim->{lease}, qr/^[0-9a-f]{16}$/, 'with a token');
    is($claim->{attempt}, 1, 'the first attempt');
    is($claim->{attempts}, 3, 'of three');
    cmp_ok($claim->{leaseMs}, '>', 29000, 'for a time');
    cmp_ok($claim->{leaseMs}, '<=', 30000, 'that is the default');
    cmp_ok($claim->{deadlineMs}, '>', 3590000, 'before a deadline');
    cmp_ok($claim->{deadlineMs}, '<=', 3600000, 'that is the default');
    ok(!exists $claim->{_meta}, 'no _meta if the call had none');
    ok(!exists $claim->{metadata}, 'nor metadata');
    ok(!exists $claim->{inputResponses}, 'nor answers');
    is(claim('plain'), undef, 'and nobody else gets it');
    is(task($id)->{status}, 'working', 'clients see that it is worked on');
    is(finish($claim)->{result}{phase}, 'completed', 'it is done');
}

{
    my $claim = (create('plain'), claim('plain', '"leaseMs":5000'))[1];
    cmp_ok($claim->{leaseMs}, '<=', 5000, 'a lease of its own');
    cmp_ok($claim->{leaseMs}, '>', 4000, 'as long as asked for');
    finish($claim);

    create('plain');
    $claim = claim('plain', '"leaseMs":0');
    cmp_ok($claim->{leaseMs}, '>', 29000, 'a lease of 0 is the default');
    finish($claim);
}

# no arguments at all
{
    legacy('tools/call', '{"name":"plain","task":{}}');
    my $got = work('claim', '{"tools":["plain"]}');
    like($got->{raw}, qr/"arguments":\{\}/, 'no arguments are an empty object');
    finish($got->{result}{tasks}[0]);
}

# several
{
    my @ids = map { create('plain', qq({"n":$_})) } 1 .. 5;
    my $got = work('claim', '{"tools":["plain"],"max":3}');
    is_deeply([map { $_->{taskId} } @{ $got->{result}{tasks} }],
              [@ids[0 .. 2]], 'three at most, the oldest first');

    my $more = work('claim', '{"tools":["plain"],"max":32}');
    is_deeply([map { $_->{taskId} } @{ $more->{result}{tasks} }],
              [@ids[3, 4]], 'then what is left');

    my %leases = map { $_->{lease} => 1 } @{ $got->{result}{tasks} },
                                          @{ $more->{result}{tasks} };
    is(scalar keys %leases, 5, 'each with a token of its own');
    finish($_) for @{ $got->{result}{tasks} }, @{ $more->{result}{tasks} };
}

# by tool
{
    my $plain = create('plain');
    my $other = create('other');

    is(claim('asks'), undef, 'nothing for another tool');
    is(claim('no such tool'), undef, 'nor for one that nobody knows');

    my $claim = claim('other');
    is($claim->{taskId}, $other, 'the task of the tool');
    finish($claim);

    $claim = work('claim', '{"tools":["unknown","other","pl\u0061in"]}');
    is($claim->{result}{tasks}[0]{taskId}, $plain,
       'of any of several tools, however they are written');
    finish($claim->{result}{tasks}[0]);

    my $many = join ',', map { qq("tool$_") } 1 .. 63;
    is_deeply(work('claim', qq({"tools":[$many,"plain"]}))->{result}{tasks},
              [], '64 tools');
    is_refused(work('claim', qq({"tools":[$many,"a","b"]})), -32602, undef,
               '65 tools');
}

# priorities
{
    my @slow = map { create('slow') } 1, 2;
    my @normal = map { create('normal') } 1, 2;
    my @urgent = map { create('urgent') } 1, 2;

    my $got = work('claim', '{"tools":["slow","normal","urgent"],"max":6}');
    is_deeply([map { $_->{taskId} } @{ $got->{result}{tasks} }],
              [@urgent, @normal, @slow],
              'urgent ones first, in the order of creation');
    finish($_) for @{ $got->{result}{tasks} };
}

# byte for byte
{
    my $arguments = '{"z":12345678901234567890,"y":1.0,"x":1e+5, "a" : "\u00e9'
                    . '\/\"é","x2":[ ],"nested":{"b":-0,"a":{}}}';
    my $meta = '{"progressToken":"t1","x.y/z":{"n":10000000000000000000000,'
               . '"r":2.50}}';
    my $metadata = '{"k":1.10,"j":"\ud83d\ude00"}';

    legacy('tools/call', qq({"name":"plain","task":{},"arguments":$arguments,)
                         . qq("_meta":$meta}));
    my $got = work('claim', '{"tools":["plain"]}');
    ok(index($got->{raw}, qq(,"arguments":$arguments,)) > 0,
       'arguments byte for byte');
    ok(index($got->{raw}, qq(,"_meta":$meta)) > 0, '_meta byte for byte');
    finish($got->{result}{tasks}[0]);

    legacy('tasks/create', qq({"action":"act","params":$arguments,)
                           . qq("metadata":$metadata}));
    $got = work('claim', '{"tools":["act"]}');
    is($got->{result}{tasks}[0]{tool}, 'act', 'a task without a tool');
    ok(index($got->{raw}, qq("arguments":$arguments)) > 0,
       'its params byte for byte');
    ok(index($got->{raw}, qq("metadata":$metadata)) > 0,
       'its metadata byte for byte');

    # arguments of an action are under "params", whatever else is there
    finish($got->{result}{tasks}[0]);
    legacy('tasks/create', '{"action":"act","arguments":{"a":1}}');
    $got = claim('act');
    is_deeply($got->{arguments}, {}, 'only params are arguments of an action');
    finish($got);
}

MCPWorker::done();

done_testing();
