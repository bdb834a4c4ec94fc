# Upstreams that speak only one era, several gateways in one zone, and places
# where there is none.

use warnings;
use strict;

use FindBin;
use lib "$FindBin::Bin/lib";

use Test::More;

use MCPClient;
use MCPGateway;
use MCPTasks qw/ wait_for workers /;
use MCPTools qw/ tools_json /;
use MCPUpstream;

my @held = (['sse'], ['hold']);
my $second = MCPUpstream->new(on => { slow => \@held }, list => ['other']);

my $g = MCPGateway->new(
    workers => workers(),
    file => tools_json('queued'),
    on => { slow => \@held },
    conf => 'mcp_tasks_max_running 2;',
    server => <<"END");
    location /old {
        mcp_tasks zone=z;
        mcp_tasks_pass /upstream era=legacy;
    }

    location /new {
        mcp_tasks zone=z;
        mcp_tasks_pass /upstream era=modern;
    }

    location /second {
        mcp_tasks zone=z;
        mcp_tasks_pass /upstream2;
        mcp_tasks_max_running 2;
        mcp_tasks_tool slow idempotent;
        mcp_tasks_retries 1 backoff=100ms;

        location /second/none {
            mcp_tasks zone=z;
            mcp_tasks_pass off;
        }

        location /second/same {
            mcp_tasks zone=z;
        }
    }

    location = /upstream2 {
        internal;
        proxy_pass http://127.0.0.1:$second->{port}/two;
        proxy_http_version 1.1;
        proxy_set_header Connection "";
        proxy_set_header X-Pid \$pid;
    }
END
my ($up, $t, $c) = @{$g}{qw/ up t c /};


sub seen {
    my ($which) = @_;
    return scalar(my @all = ($which || $up)->requests());
}


# --- an upstream of the legacy era

# 2026-07-28, versioning: "a recognized modern JSON-RPC error (such as
# UnsupportedProtocolVersionError) identifies a modern server: the client
# retries with a supported version rather than falling back.  Anything else
# identifies a legacy server."

{
    my $old = $c->as(uri => '/old');

    for my $case (['server/discover'], ['tools/list'], ['prompts/list'],
                  ['tools/call', { name => 'slow' }])
    {
        my ($method, $params) = @$case;
        my $before = seen();
        my $res = $old->modern($method, $params);
        is("$res->{status} $res->{json}{error}{code}", '400 -32602',
           "era=legacy: a modern $method is refused");
        is_deeply($res->{json}{error}{data}, { requested => '2026-07-28',
                  supported => ['2025-11-25', '2025-06-18', '2025-03-26'] },
                  'with what is supported');
        is(seen() - $before, 0, 'and not passed');
    }

    is($old->legacy('ping')->{status}, 200, 'a legacy one is passed');
    is(seen(), 1, 'as it was');
    my $id = $g->task('slow', who => $old);
    ok($g->go('slow', ['result', '{}']), 'a legacy call is a task');
    is($g->ends($id)->{status}, 'completed',
       'about which modern clients may ask');
    is($old->modern('tasks/get', { taskId => $id })->{json}{result}{status},
       'completed', 'there as well');
    my $res = $old->modern('tools/call', { name => 'queued' });
    is($res->{json}{result}{resultType}, 'task',
       'tools of the queue know both eras');
}

# --- an upstream of the modern era

{
    my $new = $c->as(uri => '/new');
    $up->clear();

    for my $case (['initialize', { protocolVersion => '2025-11-25',
                   capabilities => {}, clientInfo => { name => 'x',
                                                       version => '1' } }],
                  ['ping'], ['tools/list'], ['tools/call', { name => 'slow' }],
                  ['tools/call', { name => 'slow', task => {} }])
    {
        my ($method, $params) = @$case;
        my $res = $new->legacy($method, $params);
        is("$res->{status} $res->{json}{error}{code}", '400 -32602',
           "era=modern: a legacy $method is refused");
        is_deeply($res->{json}{error}{data}, { supported => ['2026-07-28'] },
                  'with what is supported');
        is(seen(), 0, 'and not passed');
    }

    is($new->post({ jsonrpc => '2.0', method => 'notifications/initialized' })
       ->{status}, 202, 'a notification is taken');
    is(seen(), 0, 'and not passed');

    is($new->modern('prompts/list')->{status}, 200, 'a modern one is passed');
    is(seen(), 1, 'as it was');
    my $id = $g->modern_task('slow', who => $new);
    ok($g->go('slow', ['result', '{}']), 'a modern call is a task');
    is($g->ends($id)->{status}, 'completed', 'and completes');
}

# --- two upstreams in one zone

{
    my $other = $c->as(uri => '/second');
    $up->clear();
    my @ids = ($g->task('slow'), $g->task('slow', who => $other));
    is($up->call('slow')->{path}, '/mcp', 'a call goes to its upstream');
    is($second->call('slow')->{path}, '/two', 'and another to the other');
    my $third = $g->task('slow', who => $other);
    is($c->legacy('ping')->{status}, 200, 'a third one');
    is($second->count('slow'), 1, 'waits: they are counted together');
    $up->go($up->call('slow'), ['result', '{"a":1}']);
    is($g->ends($ids[0])->{result}{a}, 1, 'the first ends');
    ok($second->call('slow', 2), 'then it runs, at its own upstream');
    is($up->count('slow'), 1, 'and at no other');
    $second->go($_, ['result', '{"a":2}']) for $second->calls('slow');
    is($g->ends($_)->{result}{a}, 2, 'they end') for $ids[1], $third;

    my @names = map { $_->{name} }
                @{ $other->legacy('tools/list')->{json}{result}{tools} };
    is_deeply([sort @names], ['other', 'queued'], 'each has its own tools');
}

# a call that is run again goes where it went before
{
    my $nobody = $c->as(uri => '/second', headers => {});
    $second->clear();
    my $before = @{[$up->requests()]};
    my $id = $g->modern_task('slow', who => $nobody);
    my $call = $second->call('slow');
    kill('KILL', $call->{head}{'x-pid'});
    my $again = $second->call('slow', 2, 15);
    ok($again, 'its process dies: it is sent again');
    is($again->{path}, '/two', 'to the same upstream');
    $second->go($again, ['result', '{"a":3}']);
    is($g->until($id, sub { ($_[0]{status} // '') eq 'completed' }, 15,
                 $c->as(headers => {}))->{result}{a}, 3, 'and completes');
    is(@{[$up->requests()]}, $before, 'the other hears nothing');
    wait_for { $t->worker_pids() == workers() };
}

# --- where it is switched off, or inherited

{
    $second->clear();
    my $none = $c->as(uri => '/second/none');
    my $res = $none->legacy('tools/list');
    is_deeply([map { $_->{name} } @{ $res->{json}{result}{tools} }],
              ['queued'], 'off: only the tools of the queue');
    is($none->legacy('prompts/list')->{json}{error}{code}, -32601,
       'no other method');
    is($none->legacy('tools/call', { name => 'slow', task => {} })
       ->{json}{error}{code}, -32602, 'no other tool');
    is(seen($second), 0, 'nothing is passed');

    my $same = $c->as(uri => '/second/same');
    is($same->legacy('prompts/list')->{status}, 200, 'inherited: all is');
    my $id = $g->task('slow', who => $same);
    ok($second->call('slow'), 'as a task as well');
    $second->go($second->call('slow'), ['result', '{}']);
    is($g->ends($id)->{status}, 'completed', 'which completes');
}

$second->stop();
$g->done('exited on signal 9');
done_testing();
