# Tasks of the gateway belong to who made the call: to others they do not exist.

use warnings;
use strict;

use FindBin;
use lib "$FindBin::Bin/lib";

use Test::More;

use MCPClient;
use MCPGateway;
use MCPTasks qw/ wait_for workers /;

my $g = MCPGateway->new(
    workers => workers(), tool => ['slow support=optional'],
    on => { slow => [['sse'], ['hold']] });
my ($up, $t, $c) = @{$g}{qw/ up t c /};
my $eve = $c->as(headers => { 'X-User' => 'eve' });
my $nobody = $c->as(headers => {});

my $never = '01234567-89ab-4cde-8f01-23456789abcd';

my $id = $g->task('slow');
my $call = $up->call('slow');
$up->go($call, ['event', MCPClient::encode({
    jsonrpc => '2.0', id => 'q', %{ MCPClient::form('Secret?') } })]);
my $got = $g->becomes($id, 'input_required', 15);
my ($key) = keys %{ $got->{inputRequests} || {} };
ok(defined $key, 'a task that asks') or BAIL_OUT($got->{text});

# --- the same answer as for a task that never was, from each process

my %ask = (
    'legacy get' => sub { $_[0]->legacy('tasks/get', { taskId => $_[1] }) },
    'modern get' => sub { $_[0]->modern('tasks/get', { taskId => $_[1] }) },
    result => sub { $_[0]->legacy('tasks/result', { taskId => $_[1] }) },
    cancel => sub { $_[0]->legacy('tasks/cancel', { taskId => $_[1] }) },
    'modern cancel' => sub { $_[0]->modern('tasks/cancel',
                                           { taskId => $_[1] }) },
    update => sub { $_[0]->modern('tasks/update', { taskId => $_[1],
                    inputResponses => { $key => { hacked => 1 } } }) },
    poll => sub { $_[0]->rest("tasks/$_[1]/poll") },
    events => sub { $_[0]->rest("tasks/$_[1]/events") },
);

for my $who (['eve', $eve], ['nobody', $nobody]) {
    my ($name, $client) = @$who;

    for my $what (sort keys %ask) {
        my $hers = $ask{$what}->($client, $id);
        my $none = $ask{$what}->($client, $never);
        is("$hers->{status} $hers->{body}", "$none->{status} $none->{body}",
           "$name, $what: as if it never was");
        unlike($hers->{body}, qr/Secret/, "$name, $what: and nothing of it");
    }

    # what looks like the answer to a question
    $client->post({ jsonrpc => '2.0', id => "$id/$key",
                    result => { hacked => 1 } });
    is($g->get($id)->{status}, 'input_required', "$name: it still asks");
}

is(@{ $eve->legacy('tasks/list')->{json}{result}{tasks} || [1] }, 0,
   'and in no list of others');
is($up->get($call)->{closed}, undef, 'the call runs');
is(@{[grep { ($_->{id} // '') eq '"q"' } $up->said('response')]}, 0,
   'and nobody has answered for its owner');
is(@{[$up->said('notifications/cancelled')]}, 0, 'or cancelled it');

# --- its owner

is_deeply([map { $_->{taskId} } @{ $c->legacy('tasks/list')->{json}{result}
          {tasks} }], [$id], 'its owner has it in the list');
is($c->post({ jsonrpc => '2.0', id => "$id/$key", result => { ok => 1 } })
   ->{status}, 202, 'answers');
ok($up->wait_for(sub { ($_[0]{id} // '') eq '"q"' }, 15), 'is heard');
$up->go($call, ['result', '{"a":1.0}']);
is($g->ends($id)->{status}, 'completed', 'and gets the result');
unlike($eve->legacy('tasks/result', { taskId => $id })->{body}, qr/"a"/,
       'nobody else');

# --- progress: a token of one owner is not one of another

{
    my $ann = $g->task('slow',
                       params => { _meta => { progressToken => 't' } });
    my $first = $up->call('slow', 2);
    my $hers = $g->task('slow', who => $eve,
                        params => { _meta => { progressToken => 't' } });
    my $second = $up->call('slow', 3);
    $up->go($second, ['event', '{"jsonrpc":"2.0","method":"notifications/'
        . 'progress","params":{"progressToken":%TOKEN%,"progress":1,'
        . '"message":"of eve"}}'], ['hold']);
    $g->until($hers, sub { ($_[0]{statusMessage} // '') eq 'of eve' }, 15,
              $eve);
    is($g->get($hers, $eve)->{statusMessage}, 'of eve', 'the same token twice');
    is($g->get($ann)->{statusMessage}, undef, 'is not the same');
    $up->go($_, ['result', '{}']) for $first, $second;
    is($g->ends($ann)->{status}, 'completed', 'both');
    is($g->until($hers, sub { ($_[0]{status} // '') eq 'completed' }, 15, $eve)
       ->{status}, 'completed', 'complete');
}

# --- limits are for each

{
    $up->clear();
    my $conf = $g->config(conf => 'mcp_tasks_limit tasks=5;');
    my %old = map { $_ => 1 } $t->worker_pids();
    $t->reload(%$conf);
    ok((wait_for { my @pids = $t->worker_pids();
                   @pids == workers() && !grep { $old{$_} } @pids }),
       'with a limit');

    my $res;
    for (1 .. 6) {
        $res = $eve->legacy('tools/call', { name => 'slow', task => {} });
        last if $res->{json}{error};
    }
    is($res->{json}{error}{code}, -31010, 'too many tasks of one');
    is($res->{json}{error}{data}{reason}, 'limit_owner_tasks', 'says so');

    my $calls = 4;
    wait_for { $up->count('slow') == $calls } 10;
    is($up->count('slow'), $calls, 'what is refused is not sent');
    my $bob = $c->as(headers => { 'X-User' => 'bob' });
    ok($bob->legacy('tools/call', { name => 'slow', task => {} })
       ->{json}{result}{task}, 'another has room');
    wait_for { $up->count('slow') == $calls + 1 } 10;
    $up->go($_, ['result', '{}']) for $up->calls('slow');
}

$g->done();
done_testing();
