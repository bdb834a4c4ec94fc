# One task over plain HTTP: read it, its result, cancel it, answer it.

use warnings;
use strict;

use FindBin;
use lib "$FindBin::Bin/lib";

use Test::More;

use MCPClient;
use MCPJson;
use MCPRest qw/ claimed detail problem question /;
use MCPTasks qw/ workers /;

my $t = MCPTasks->new(
    workers => workers(),
    http => 'mcp_tasks_zone zone=z:4m;',
    surfaces => [qw/ mcp worker probe /],
    server => <<'END');
    mcp_tasks_owner $http_x_user;
    location /tight { mcp_tasks zone=z; mcp_tasks_limit payload=1k; }
END

my $c = MCPClient->new($t);
my $ann = $c->as(headers => { 'X-User' => 'ann' });


# --- reading, and not again what is known

{
    my $work = claimed($ann);
    my $path = "tasks/$work->{taskId}";
    my $res = $ann->rest($path);
    my $etag = $res->{header}{etag};

    is($res->{status}, 200, 'a task');
    is($res->{header}{'content-type'}, 'application/json', 'as JSON');
    is($res->{header}{'cache-control'}, 'no-store', 'not to be kept');
    is($etag, "\"$res->{json}{version}\"", 'by its version');
    is($res->{body}, $ann->rest("$path/poll")->{body}, 'as a poll tells');

    my ($v) = $etag =~ /(\d+)/;

    for my $list ($etag, "W/$etag", '*', "\"x\", $etag", "\"1\",W/$etag",
                  "$etag, \"x\"", "\"\" ,\t$etag", "W/\"x\",W/\"y\" , $etag")
    {
        for my $method (qw/ GET HEAD /) {
            my $none = $ann->rest($path, method => $method, headers => {
                'If-None-Match' => $list });
            is($none->{status}, 304, "$method If-None-Match: $list");
            is($none->{header}{etag}, $etag, 'by its version');
            is($none->{body}, '', 'no body');
            ok(!exists $none->{header}{'content-type'}, 'nor its type');
        }
    }

    for my $list (undef, '', '""', $v, "\"$v", "'$v'", "\"0$v\"", "\"x$v\"",
                  "\"$v \"", '"*"', '**', '*, "x"', "w/$etag", '"' . ($v + 1)
                  . '"', '"' . ($v - 1) . '"', ',' x 1000, '"x" ' . 'y' x 1000)
    {
        my $got = $ann->rest($path, headers => { 'If-None-Match' => $list });
        is($got->{status}, 200, 'not known: '
                                . substr(defined $list ? $list : '', 0, 20));
        is($got->{body}, $res->{body}, 'told again');
    }

    is($ann->rest("$path/poll", headers => { 'If-None-Match' => $etag })
       ->{status}, 304, 'a poll that need not wait');
    is($ann->rest($path, headers => { 'If-Match' => '"x"',
       'If-Unmodified-Since' => 'Thu, 01 Jan 1970 00:00:00 GMT' })->{status},
       200, 'other conditions are none');

    $c->held('progress', $work, progress => 1, total => 4, message => 'go');
    my $new = $ann->rest($path, headers => { 'If-None-Match' => $etag });
    is($new->{status}, 200, 'after a change');
    isnt($new->{header}{etag}, $etag, 'another version');
    is_deeply([@{ $new->{json} }{qw/ progress total statusMessage /}],
              [1, 4, 'go'], 'what has changed');
}

# --- the result, byte for byte

{
    my $work = claimed($ann);
    my $path = "tasks/$work->{taskId}/result";
    problem($ann->rest($path), 409, 'result_not_ready', undef, 'too early');

    my $result = "{ \"content\":[ ],\r\n\t\"structuredContent\":{\"n\":"
                 . '123456789012345678901234567890,"s":"\u00e9\/"},"n":1,'
                 . '"n":2}';
    MCPJson::allow('n');
    $c->complete($work, $result);

    my $res = $ann->rest($path);
    is($res->{status}, 200, 'the result');
    is($res->{body}, $result, 'byte for byte');
    is($res->{header}{'content-type'}, 'application/json', 'as JSON');
    is($res->{header}{'cache-control'}, 'no-store', 'not to be kept');

    $work = claimed($ann);
    $c->complete($work, '{"content":[],"isError":true}');
    is($ann->rest("tasks/$work->{taskId}/result")->{body},
       '{"content":[],"isError":true}', 'of a tool that failed: its result');

    $work = claimed($ann);
    my $long = '{"content":[{"type":"text","text":"' . 'x' x 700000 . '"}]}';
    $c->complete($work, $long);
    is($ann->rest("tasks/$work->{taskId}/result")->{body}, $long, 'long');
    like($ann->rest("tasks/$work->{taskId}")->{body}, qr/x{60000}"\}\]\}\}\z/,
         'and in the task');

    $work = claimed($ann);
    my $error = '{"code":-7, "message":"no\n","data":[1 ,2]}';
    $c->worker('worker/fail', "{\"taskId\":\"$work->{taskId}\",\"lease\":"
               . "\"$work->{lease}\",\"error\":$error}");
    problem($ann->rest("tasks/$work->{taskId}/result"), 409, 'task_failed',
            ",\"error\":$error", 'failed');

    my $id = $ann->create_rest('q');
    $ann->rest_post("tasks/$id/cancel");
    problem($ann->rest("tasks/$id/result"), 409, 'task_cancelled',
            ',"error":{"code":-31013,"message":"The task was cancelled",'
            . '"data":{"reason":"task_cancelled"}}', 'cancelled');
}

# --- cancelling

{
    my $work = claimed($ann);
    my $path = "tasks/$work->{taskId}/cancel";
    my $res = $ann->rest_post($path, { reason => 'enough' });

    is($res->{status}, 200, 'cancelled');
    is($res->{json}{status}, 'cancelled', 'as it is now');
    is($res->{json}{statusMessage}, 'enough', 'and why');
    is($res->{header}{etag}, "\"$res->{json}{version}\"", 'by its version');
    is($res->{body}, $ann->rest("tasks/$work->{taskId}")->{body},
       'as it is read');
    is($c->held('heartbeat', $work)->{error}{data}{cancelled},
       JSON::PP::true, 'the worker learns it');
    problem($ann->rest_post($path), 409, 'task_terminal', undef, 'twice');

    for (['nothing', undef], ['{}', '{}'], ['other members', '{"x":1}']) {
        my ($name, $body) = @$_;
        my $id = $ann->create_rest('q');
        is($ann->rest_post("tasks/$id/cancel", $body)->{status}, 200, $name);
    }

    # what a page from elsewhere can send without being asked first
    for my $type (undef, 'text/plain', 'application/x-www-form-urlencoded',
                  'multipart/form-data; boundary=x')
    {
        my $id = $ann->create_rest('q');

        for my $body (undef, '{}') {
            problem($ann->rest_post("tasks/$id/cancel", $body,
                                    'Content-Type' => $type), 415,
                    'unsupported_media_type',
                    detail('Content-Type must be application/json'),
                    ($type // 'no type') . ', ' . ($body // 'no body'));
        }

        is($ann->rest("tasks/$id")->{json}{status}, 'working', 'it goes on');
    }

    # what pages show is up to them: the text comes back as it was
    for my $reason ("<script>\"\\/\x01\x7f</script>", "\r\nX: y\r\n\r\n",
                    "\x{1f600}\x{2028}", '', ' ')
    {
        my $text = JSON::PP->new->utf8->allow_nonref->encode($reason);
        my $id = $ann->create_rest('q');
        my $got = $ann->rest_post("tasks/$id/cancel", "{\"reason\":$text}");
        is($got->{status}, 200, 'a hostile reason');
        like($got->{body}, qr/"statusMessage":\Q$text\E,/, 'as it was');
        unlike($got->{head}, qr/^X:/m, 'in its place');
    }

    my $id = $ann->create_rest('q');
    is($ann->rest_post("tasks/$id/cancel", '{"reason":"' . 'x' x 1023 . '"}')
       ->{json}{detail}, 'reason must be a JSON string of at most 1024 bytes',
       'too long');

    for my $bad (qw/ 1 null true [] {} /) {
        problem($ann->rest_post("tasks/$id/cancel", "{\"reason\":$bad}"), 400,
                'invalid_argument',
                detail('reason must be a JSON string of at most 1024 bytes'),
                $bad);
    }

    problem($ann->rest_post("tasks/$id/cancel", '{"reason":"","reason":""}'),
            400, 'invalid_argument', detail('duplicate member in the body'),
            'both');
    problem($ann->rest_post("tasks/$id/cancel", '{'), 400, 'invalid_json',
            detail('unexpected end of input'), 'half');
    problem($ann->rest_post("tasks/$id/cancel", '{}',
                            'Content-Type' => 'text/plain'), 415,
            'unsupported_media_type',
            detail('Content-Type must be application/json'), 'text');
    is($ann->rest("tasks/$id")->{json}{status}, 'working',
       'none of that was taken');
}

# --- answers

{
    my $work = claimed($ann);
    my $path = "tasks/$work->{taskId}/input";
    problem($ann->rest_post($path, { inputResponses => { a => {} } }), 409,
            'task_state_invalid', undef, 'not asked');

    $c->held('ask', $work, inputRequests => {
        map { $_ => question($_) } qw/ a b c / });
    my $asked = $ann->rest("tasks/$work->{taskId}");
    is(join(' ', sort keys %{ $asked->{json}{inputRequests} }), 'a b c',
       'three questions');

    my $res = $ann->rest_post($path, { inputResponses => { x => {} } });
    is($res->{body}, $asked->{body}, 'nobody asked that: nothing changes');

    for (['{}', 'inputResponses must be an object'],
         ['{"inputResponses":[]}', 'inputResponses must be an object'],
         ['{"inputResponses":null}', 'inputResponses must be an object'],
         ['{"inputResponses":{"a":{},"a":{"action":"accept"}}}',
          'duplicate key in the answers'],
         ['{"inputResponses":{"x":{"action":"decline","action":"accept"}}}',
          'duplicate key in the answers'],
         ['{"inputResponses":{},"inputResponses":{}}',
          'duplicate member in the body'])
    {
        problem($ann->rest_post($path, $_->[0]), 400, 'invalid_argument',
                detail($_->[1]), $_->[0]);
    }

    $res = $ann->rest_post($path, '{"inputResponses":{"b":{ "action":'
                                  . '"decline" },"x":1}}');
    is($res->{status}, 200, 'one answer');
    is(join(' ', sort keys %{ $res->{json}{inputRequests} }), 'a c',
       'two are left');
    is($res->{json}{status}, 'input_required', 'so it waits');
    is($res->{header}{etag}, "\"$res->{json}{version}\"", 'by its version');

    $res = $ann->rest_post($path, { inputResponses => { b => {} } });
    is(join(' ', sort keys %{ $res->{json}{inputRequests} }), 'a c',
       'it was answered already');

    problem($ann->as(uri => '/tight')->rest_post($path, { inputResponses => {
                a => { action => 'x' x 2000 } } }), 413, 'payload_too_large',
            undef, 'too long');

    $res = $ann->rest_post($path, { inputResponses => { a => {}, c => 1 } });
    is($res->{json}{status}, 'working', 'the rest: it goes on');
    ok(!exists $res->{json}{inputRequests}, 'nothing is left');
    is($res->{body}, $ann->rest("tasks/$work->{taskId}")->{body},
       'as it is read');
    is_deeply($c->held('answers', $work)->{inputResponses},
              { a => {}, b => { action => 'decline' }, c => 1 },
              'the worker has them');

    problem($ann->rest_post($path, { inputResponses => { a => {} } }), 409,
            'task_state_invalid', undef, 'again');
    $c->complete($work, '{}');
    problem($ann->rest_post($path, { inputResponses => { a => {} } }), 409,
            'task_terminal', undef, 'too late');
}

ok($t->stop(), 'nginx stops');
is($t->faults(), '', 'nothing in the log that should not be');

done_testing();
