# Requests that are taken elsewhere while they wait or after their answer.

use warnings;
use strict;

use FindBin;
use lib "$FindBin::Bin/lib";

use Test::More;
use Time::HiRes qw/ sleep /;

use MCPClient;
use MCPTasks qw/ wait_for workers /;

my $t = MCPTasks->new(
    workers => workers(), listen => 'reuseport',
    tools => ['slow'],
    http => 'mcp_tasks_zone zone=z:2m; mcp_tasks_tools tools.json;',
    surfaces => [qw/ mcp worker probe /],
    server => <<'END');
    error_page 412 416 500 =200 /elsewhere;
    location = /elsewhere { return 200 "elsewhere\n"; }
    location @after { return 204; }
    location /post { mcp_tasks zone=z; post_action @after; }
END

my $c = MCPClient->new($t);
my $post = $c->as(uri => '/post');
my @pids = $t->worker_pids();

# --- conditions are not for answers to what has been done already

for my $condition (['If-Match', '"x"'], ['If-None-Match', '*'],
                   ['If-Unmodified-Since', 'Thu, 01 Jan 1970 00:00:00 GMT'])
{
    my ($name, $value) = @$condition;

    for my $who ($c->in_session(), $post->in_session()) {
        my $with = $who->as(headers => { %{ $who->{headers} },
                                         $name => $value });

        my $res = $with->legacy('tools/call', { name => 'slow', task => {} });
        my $id = $res->{json}{result}{task}{taskId};
        ok($id, "$who->{uri}, $name: a call") or diag($res->{body});

        $res = $with->rest("tasks/$id/poll");
        $name eq 'If-None-Match'
            ? is($res->{status}, 304, "$who->{uri}, $name: it is known")
            : is($res->{json}{taskId}, $id, "$who->{uri}, $name: a poll");

        my $stream = $with->follow("tasks/$id/events");
        is_deeply($stream->event(10), { retry => 1000 },
                  "$who->{uri}, $name: a stream");
        is($stream->event(10)->{json}{taskId}, $id, 'and what it tells');
        $stream->close();

        my $get = eval { $with->get_stream() };
        ok($get, "$who->{uri}, $name: the session's stream") or diag($@);
        $get->close() if $get;

        $who->legacy('tasks/cancel', { taskId => $id });
    }
}

# --- what comes after the answer, or after the client has gone

for my $gone (0, 1) {
    my $id = $post->create('slow');
    my $work = $c->claim('slow');
    my @s = map { my $s = $t->connect(); MCPTasks::send_raw($s, $_); $s }
            ($post->rest_bytes("tasks/$id/poll?version=1000"),
             $post->rest_bytes("tasks/$id/events"),
             $post->legacy_bytes('tasks/result', { taskId => $id }),
             $post->modern_bytes('subscriptions/listen',
                                 { notifications => { taskIds => [$id] } }));

    ok((wait_for { $t->probe('op=waits')->{zone} == 4 }), 'four wait');

    if ($gone) {
        close($_) for @s;
        sleep(0.2);
    }

    $c->complete($work, { content => [] });
    is($c->rest("tasks/$id/poll")->{json}{status}, 'completed', 'the end');
    close($_) for @s;
    ok((wait_for { $t->probe('op=waits')->{zone} == 0 }), 'nobody waits');
}

is_deeply([$t->worker_pids()], \@pids, 'no process has died');
ok($t->stop(), 'nginx stops');
is($t->faults(), '', 'nothing to complain about in the log');

done_testing();
