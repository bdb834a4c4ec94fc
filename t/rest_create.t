# POST tasks: tasks made over plain HTTP.

use warnings;
use strict;

use FindBin;
use lib "$FindBin::Bin/lib";

use Test::More;

use MCPClient;
use MCPRest qw/ detail problem /;
use MCPTasks qw/ wait_for workers /;

my $t = MCPTasks->new(
    workers => workers(),
    tools => ['slow',
              ['own', '"ttl":"1h","lease":7000,"attempts":1,'
                      . '"runTimeout":"90s"'],
              ['must', '"taskSupport":"required"'],
              ['plain', '"taskSupport":"forbidden"']],
    http => 'mcp_tasks_zone zone=z:8m; mcp_tasks_zone zone=few:1m max_tasks=8;'
            . ' mcp_tasks_zone zone=full:256k max_tasks=64;'
            . ' mcp_tasks_tools tools.json;',
    surfaces => [qw/ mcp worker probe /],
    server => <<'END');
    mcp_tasks_owner $http_x_user;
    location / { mcp_tasks zone=z; }
    location /slash/ { mcp_tasks zone=z; }
    location "/a b%" { mcp_tasks zone=z; }
    location /short { mcp_tasks zone=z; mcp_tasks_ttl 10s max=60s; }
    location /off { mcp_tasks zone=z; mcp_tasks_ttl off max=off; }
    location /two { mcp_tasks zone=z; mcp_tasks_limit tasks=2; }
    location /bytes { mcp_tasks zone=z; mcp_tasks_limit bytes=4k; }
    location /tight { mcp_tasks zone=z; mcp_tasks_limit payload=1k; }
    location /body { mcp_tasks zone=z; client_max_body_size 2k; }
    location /few { mcp_tasks zone=few; }
    location /gate { mcp_tasks zone=z; mcp_tasks_pass /not/there; }
    location /full { mcp_tasks zone=full; }
END

my $c = MCPClient->new($t);
my $ann = $c->as(headers => { 'X-User' => 'ann' });
my $json = 'application/json';


# the id, after a look at everything
sub made {
    my ($who, $body, $name) = @_;
    my $res = $who->rest_post('tasks', $body);
    is($res->{status}, 201, "$name: created") or diag($res->{body});
    return $res->{json}{taskId};
}


# --- what is created is there

{
    my $res = $ann->rest_post('tasks', '{"tool":"slow","arguments":'
        . '{ "n" : 12345678901234567890 },"metadata":{"k":[1, 2]}}');
    my $id = $res->{json}{taskId};
    my $time = qr/"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z"/;

    is($res->{status}, 201, 'created');
    is($res->{header}{'content-type'}, $json, 'as JSON');
    is($res->{header}{'cache-control'}, 'no-store', 'not to be kept');
    is($res->{header}{location}, "/mcp/tasks/$id", 'and where it is');
    is($res->{header}{etag}, "\"$res->{json}{version}\"", 'by its version');
    like($res->{body}, qr/\A\{"taskId":"$id","status":"working",
         "createdAt":$time,"lastUpdatedAt":$time,"ttlMs":86400000,
         "pollIntervalMs":1000,"tool":"slow","version":\d+\}\z/x,
         'as it is');

    my $got = $ann->as(uri => '')->rest(substr $res->{header}{location}, 1);
    is($got->{body}, $res->{body}, 'the same is read there');
    is($got->{header}{etag}, $res->{header}{etag}, 'by the same version');
    is($ann->legacy('tasks/get', { taskId => $id })->{json}{result}{taskId},
       $id, 'and by MCP');

    $res = $c->say_bytes(MCPClient::bytes('/worker', MCPClient::rpc(
        'worker/claim', { tools => ['slow'] })));
    like($res->{body}, qr/"tool":"slow",
         "arguments":\{\ "n"\ :\ 12345678901234567890\ \},
         "metadata":\{"k":\[1,\ 2\]\}\}/x, 'its bytes reach the worker');
    is($res->{json}{result}{tasks}[0]{taskId}, $id, 'by its id');
}

# wherever it lies
for (['', ''], ['/slash', '/slash'], ['/a%20b%25', '/a%20b%25'],
     ['/mcp/../slash/.', '/slash'])
{
    my ($uri, $at) = @$_;
    my $res = $ann->as(uri => $uri)->rest_post('tasks', { tool => 'x' });
    is($res->{header}{location}, "$at/tasks/$res->{json}{taskId}",
       "'$uri': the Location");
    is($ann->as(uri => '')->rest(substr $res->{header}{location}, 1)->{body},
       $res->{body}, 'works');
}

# in whichever process
{
    my $via = $t->connect_all();
    my ($first, @rest) = sort keys %$via;
    my $id = $ann->as(via => $via->{$first})
                 ->rest_post('tasks', { tool => 'x' })->{json}{taskId};
    is($ann->as(via => $via->{$_})->rest("tasks/$id")->{json}{taskId}, $id,
       'seen by all processes') for @rest;
}

# nobody's tasks are found by their ids alone
{
    my $id = made($c, { tool => 'nobodys' }, 'by nobody');
    is($c->rest("tasks/$id")->{json}{taskId}, $id, 'for nobody');
    problem($ann->rest("tasks/$id"), 404, 'task_not_found', undef,
            'for somebody');
    is($c->claim('nobodys')->{taskId}, $id, 'for workers');
}

# --- tools of the file and their policies, and any other name

{
    my $id = made($ann, { tool => 'own', arguments => {} }, 'a tool');
    is($ann->rest("tasks/$id")->{json}{ttlMs}, 3600000, 'its TTL');
    my $work = $c->claim('own');
    # times are as long as they are when the answer is written
    is_deeply([@$work{qw/ taskId attempts /},
               map { 100 * int(($_ + 99) / 100) } @$work{qw/ leaseMs
                                                             deadlineMs /}],
              [$id, 1, 7000, 90000], 'its policy');
    ok(!exists $work->{metadata} && !exists $work->{_meta}, 'nothing more');

    $id = made($ann, '{"tool":"\u006fwn","ttlMs":5000}', 'escapes');
    is($ann->rest("tasks/$id")->{json}{tool}, 'own', 'escapes: that tool');
    is($ann->rest("tasks/$id")->{json}{ttlMs}, 5000, 'a TTL of its own');

    $id = made($ann, { tool => 'must' }, 'a tool that must be a task');
    problem($ann->rest_post('tasks', { tool => 'plain' }), 400,
            'invalid_argument', detail('the tool cannot be called as a task'),
            'a tool that must not');

    # what a gateway passes is called by MCP, and what it has by anything
    my $gate = $ann->as(uri => '/gate');
    problem($gate->rest_post('tasks', { tool => 'x' }), 400,
            'invalid_argument', detail('unknown tool, only tools of the '
            . 'mcp_tasks_tools file can be used here'), 'passed');
    $id = made($gate, { tool => 'must' }, 'not passed');
    is($gate->rest("tasks/$id")->{json}{tool}, 'must', 'read in a gateway');

    for my $name ("\x{fc}\"\\/ \n", 'x' x 1024, 'a/../b') {
        my $text = JSON::PP->new->utf8->encode({ tool => $name });
        my $res = $ann->rest_post('tasks', $text);
        is($res->{status}, 201, 'any name');
        is(JSON::PP->new->utf8->decode($res->{body})->{tool}, $name,
           'comes back');
    }

    problem($ann->rest_post('tasks', { tool => $_ }), 400, 'invalid_name',
            undef, 'a name of ' . length) for '', 'x' x 1025;

    my @twice = map { made($ann, { tool => 'slow', metadata => {} }, 'again') }
                1 .. 2;
    isnt($twice[0], $twice[1], 'two requests, two tasks');
}

# --- how long it is kept

for (['/mcp', '1', 1], ['/mcp', 'null', 604800000],
     ['/mcp', '999999999999999999', 604800000], ['/short', '60001', 60000],
     ['/short', undef, 10000], ['/short', 'null', 60000],
     ['/off', undef, undef], ['/off', 'null', undef], ['/off', '7', 7])
{
    my ($uri, $ttl, $got) = @$_;
    my $res = $ann->as(uri => $uri)->rest_post('tasks', '{"tool":"x"'
        . (defined $ttl ? ",\"ttlMs\":$ttl" : '') . '}');
    is($res->{status}, 201, 'ttlMs ' . (defined $ttl ? $ttl : 'missing'));
    is($res->{json}{ttlMs}, $got, 'what comes of it');
}

problem($ann->rest_post('tasks', "{\"tool\":\"x\",\"ttlMs\":$_}"), 400,
        'invalid_argument', detail('ttlMs must be a positive integer or null'),
        "ttlMs $_") for qw/ 0 -1 1.5 "5" true [] {} 1e300 /;

# --- what is wrong with a body

for (['', 'tool must be a string'], ['{}', 'tool must be a string'],
     ['{"tool":null}', 'tool must be a string'],
     ['{"tool":["x"]}', 'tool must be a string'],
     ['{"tool":"a\u0000b"}', 'tool must be a string'],
     ['{"tool":"x","arguments":[]}', 'arguments must be an object'],
     ['{"tool":"x","arguments":null}', 'arguments must be an object'],
     ['{"tool":"x","metadata":"m"}', 'metadata must be an object'],
     ['{"tool":"x","tool":"x"}', 'duplicate member in the body'],
     ['{"tool":"x","ttlMs":1,"ttlMs":1}', 'duplicate member in the body'],
     ['{"tool":"x","t\u006fol":"x"}', 'duplicate member in the body'],
     ['[]', 'the body must be a JSON object'],
     ['"x"', 'the body must be a JSON object'],
     ['1', 'the body must be a JSON object'],
     ['null', 'the body must be a JSON object'],
     ['{"tool":"x","metadata":{"a":1,"b":2,"a":1}}',
      'duplicate key in metadata'],
     ['{"tool":"x","metadata":{"a":1,"\u0061":null}}',
      'duplicate key in metadata'],
     ['{"tool":"x","metadata":{"a":[{"b":1,"b":2}]}}',
      'duplicate key in metadata'],
     [MCPClient::encode({ tool => 'x', metadata => { map { $_ => 1 } 1 .. 65 }
      }), 'metadata must not have more than 64 members'],
     [MCPClient::encode({ tool => 'x', metadata => { m => 'm' x 65536 } }),
      'metadata must not be larger than 65536 bytes'])
{
    my ($body, $why) = @$_;
    problem($ann->rest_post('tasks', $body), 400, 'invalid_argument',
            detail($why), substr $body, 0, 40);
}

for ([' ', 'unexpected end of input'], ['{"tool":', 'unexpected end of input'],
     ['{"tool" "x"}', 'expected a colon after an object key'],
     ['{"tool":"x" "y"}', 'expected a comma or a closing bracket'],
     ['{tool:1}', 'expected an object key in double quotes'],
     ["{\"tool\":\"\xff\"}", 'invalid UTF-8 in a string'],
     ['{"tool":x}', 'invalid or missing value'],
     ["{\"tool\":\"\n\"}", 'unescaped control character in a string'],
     ['{"tool":"\q"}', 'invalid escape sequence in a string'],
     ['{"a":01}', 'invalid number'], ['{"tool":"x', 'unterminated string'],
     ['{} {}', 'unexpected characters after the value'],
     ['[' x 200, 'nested deeper than 128 levels'])
{
    my ($body, $why) = @$_;
    problem($ann->rest_post('tasks', $body), 400, 'invalid_json',
            detail($why), substr $body, 0, 40);
}

made($ann, '{"tool":"x","extra":1,"extra":2,"Tool":3}', 'other members');

for my $type (undef, '', 'text/plain', 'application/jsonx', 'text/json',
              'application/x-www-form-urlencoded')
{
    problem($ann->rest_post('tasks', '{"tool":"x"}', 'Content-Type' => $type),
            415, 'unsupported_media_type',
            detail('Content-Type must be application/json'),
            defined $type ? "'$type'" : 'no type');
}

for my $type ('application/json; charset=utf-8', 'Application/JSON') {
    is($ann->rest_post('tasks', '{"tool":"x"}',
                       'Content-Type' => $type)->{status}, 201, $type);
}

# --- how a body comes

{
    my $body = '{"tool":"x","arguments":{"a":"' . 'b' x 3000 . '"}}';
    my $chunks = join '', map { sprintf("%x\r\n%s\r\n", length, $_) }
                 $body =~ /.{1,700}/g;
    my %chunked = ('Content-Length' => undef,
                   'Transfer-Encoding' => 'chunked');

    is($ann->rest_post('tasks', "${chunks}0\r\n\r\n", %chunked)->{status},
       201, 'in chunks');
    problem($ann->rest_post('tasks', "0\r\n\r\n", %chunked), 400,
            'invalid_argument', detail('tool must be a string'),
            'no chunks');

    my $s = $t->connect();
    MCPTasks::send_raw($s, $ann->rest_bytes('tasks', method => 'POST',
        headers => { 'Content-Type' => $json }, body => $body)
        =~ /(.{1,1000})/gs);
    is(MCPTasks::read_response($s)->{status}, 201, 'in pieces');

    my $huge = '{"tool":"huge","arguments":{"a":"' . 'b' x 900000 . '"}}';
    made($ann, $huge, 'huge');
    is(length $c->claim('huge')->{arguments}{a}, 900000, 'huge, and whole');

    is($ann->as(uri => '/body')->rest_post('tasks', $body)->{status}, 413,
       'larger than nginx takes');
    is($ann->as(uri => '/body')->rest_post('tasks', "${chunks}0\r\n\r\n",
       %chunked)->{status}, 413, 'in chunks, too');
    problem($ann->as(uri => '/tight')->rest_post('tasks', $body), 413,
            'payload_too_large', undef, 'larger than a task may be');
}

# --- limits

{
    my $two = $c->user('two')->as(uri => '/two');
    my @ids = map { made($two, { tool => 'x' }, "task $_ of 2") } 1 .. 2;
    problem($two->rest_post('tasks', { tool => 'x' }), 429,
            'limit_owner_tasks', undef, 'one more');
    is($c->user('three')->as(uri => '/two')->rest_post('tasks', { tool => 'x' })
       ->{status}, 201, 'others are not concerned');

    problem($c->user('big')->as(uri => '/bytes')->rest_post('tasks',
            { tool => 'x', arguments => { a => 'b' x 5000 } }), 429,
            'limit_owner_bytes', undef, 'too many bytes');

    my $few = $ann->as(uri => '/few');
    made($few, { tool => 'x' }, "slot $_") for 1 .. 8;
    problem($few->rest_post('tasks', { tool => 'x' }), 503, 'limit_tasks',
            undef, 'no slot left');

    my $res;
    my $n = 0;

    do {
        $res = $ann->as(uri => '/full')->rest_post('tasks',
            { tool => 'x', arguments => { a => 'b' x 20000 } });
    } while ($res->{status} == 201 && ++$n < 64);

    problem($res, 503, 'zone_full', undef, "no room after $n tasks");
}

ok($t->stop(), 'nginx stops');
is($t->faults(qr/client intended to send too large (chunked )?body/), '',
   'nothing in the log that should not be');

done_testing();
