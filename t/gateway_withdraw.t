# A legacy server does not want an answer any more, or does not take it.

use warnings;
use strict;

use FindBin;
use lib "$FindBin::Bin/lib";

use Test::More;

use MCPClient;
use MCPGateway;
use MCPTasks qw/ wait_for workers /;

my $g = MCPGateway->new(
    workers => workers(), sessions => 1,
    tool => ['slow support=optional'],
    on => { slow => [['sse'], ['hold']] });
my ($up, $t) = @{$g}{qw/ up t /};
my $c = $g->{c} = $g->{c}->in_session();


sub question {
    my ($id) = @_;
    return ['event', "{\"jsonrpc\":\"2.0\",\"id\":$id,\"method\":\"roots/list"
                     . "\",\"params\":{\"id\":$id}}"];
}


sub withdrawn {
    my ($id) = @_;
    return ['event', '{"jsonrpc":"2.0","method":"notifications/cancelled",'
                     . "\"params\":{\"requestId\":$id,\"reason\":\"x\"}}"];
}


# which questions the task asks, by the ids that they have upstream
sub asks {
    my ($id, @want) = @_;
    my %key;
    my $got = $g->until($id, sub {
        %key = map { $_[0]{inputRequests}{$_}{params}{id} => $_ }
               keys %{ $_[0]{inputRequests} || {} };
        return $_[0]{status} eq (@want ? 'input_required' : 'working')
               && join(' ', sort keys %key) eq join(' ', sort @want);
    }, 15);
    is("$got->{status} " . join(' ', sort keys %key),
       (@want ? 'input_required ' : 'working ') . join(' ', sort @want),
       @want ? "it asks @want" : 'it asks nothing');
    return %key;
}


sub answer {
    my ($id, $key, $text) = @_;
    return $c->post("{\"jsonrpc\":\"2.0\",\"id\":\"$id/$key\",\"result\":"
                    . ($text // '{"roots":[]}') . '}')->{status};
}


sub responses {
    return map { $_->{id} } $up->said('response');
}


sub begin {
    $up->clear();
    my $id = $g->task('slow');
    return ($id, $up->call('slow'));
}


# --- the only one

{
    my ($id, $call) = begin();
    my $stream = $c->stream($c->legacy_bytes('tasks/result',
                                             { taskId => $id }));
    $up->go($call, question('1'));
    is($stream->message(15)->{method}, 'roots/list', 'a client is asked');
    my %key = asks($id, 1);
    $up->go($call, withdrawn('1'));
    asks($id);
    is(answer($id, $key{1}), 202, 'an answer is too late');
    is(answer($id, $key{1}), 202, 'and again');

    # it can ask again
    $up->go($call, question('2'));
    my %next = asks($id, 2);
    isnt($next{2}, $key{1}, 'the next one has another key');
    answer($id, $next{2});
    ok((wait_for { grep { $_ eq '2' } responses() } 15), 'and is answered');
    $g->finish($id, $call, 'the only one withdrawn');
    is_deeply([responses()], ['2'], 'nothing else is');
    my $last = $stream->message(15);
    $last = $stream->message(15) if $last && $last->{method};
    ok($last->{result}, 'who waited gets the result');
}

# --- one that is not asked yet

{
    my ($id, $call) = begin();
    $up->go($call, question('1'), question('2'), question('"3"'));
    my %key = asks($id, 1);
    $up->go($call, withdrawn('2'));
    asks($id, 1);
    answer($id, $key{1});
    %key = asks($id, 3);
    answer($id, $key{3});
    ok((wait_for { grep { $_ eq '"3"' } responses() } 15), 'the other ones');
    $g->finish($id, $call, 'one that was not asked');
    is_deeply([sort(responses())], ['"3"', '1'], 'are answered, and no more');
}

# --- one of two, the first or the last; then the last one

for my $which (2, 3) {
    my ($id, $call) = begin();
    my $other = 5 - $which;
    $up->go($call, question('1'), question('2'), question('3'));
    my %key = asks($id, 1);
    answer($id, $key{1});
    %key = asks($id, 2, 3);
    $up->go($call, withdrawn($which));
    asks($id, $other);
    answer($id, $key{$other});
    ok((wait_for { grep { $_ eq $other } responses() } 15),
       "$which of two is withdrawn, $other is answered");
    $g->finish($id, $call, "$which of two");
    is_deeply([sort(responses())], [1, $other], 'no other is');
}

{
    my ($id, $call) = begin();
    $up->go($call, question('1'), question('2'), question('3'));
    my %key = asks($id, 1);
    answer($id, $key{1});
    %key = asks($id, 2, 3);
    answer($id, $key{2}, '{"n":2}');
    asks($id, 3);
    $up->go($call, withdrawn('3'));
    asks($id);
    ok((wait_for { grep { $_ eq '2' } responses() } 15),
       'the last is withdrawn: the other is answered');
    $g->finish($id, $call, 'the last of two');
    is_deeply([sort(responses())], [1, 2], 'no other is');
}

# --- all of them, while more have come

{
    my ($id, $call) = begin();
    $up->go($call, question('1'), question('2'));
    asks($id, 1);
    $up->go($call, withdrawn('1'));
    my %key = asks($id, 2);
    $up->go($call, withdrawn('2'));
    asks($id);
    $up->go($call, question('1'));
    %key = asks($id, 1);
    answer($id, $key{1});
    ok((wait_for { grep { $_ eq '1' } responses() } 15), 'an id is used again');
    $g->finish($id, $call, 'all withdrawn');
    is_deeply([responses()], ['1'], 'it is answered once');
}

# --- what is no question of this call

{
    my ($id, $call) = begin();
    $up->go($call, question('1'), withdrawn('"1"'), withdrawn('2'),
            withdrawn('null'), withdrawn('{}'), withdrawn($call->{id}),
            ['event', '{"jsonrpc":"2.0","method":"notifications/cancelled"}'],
            ['event', '{"jsonrpc":"2.0","method":"notifications/cancelled",'
                      . '"params":{}}'],
            ['event', '{"jsonrpc":"2.0","id":"p","method":"ping"}']);
    ok((wait_for { grep { $_ eq '"p"' } responses() } 15), 'others, or none');
    my %key = asks($id, 1);
    answer($id, $key{1});
    ok((wait_for { grep { $_ eq '1' } responses() } 15), 'change nothing');
    $up->go($call, withdrawn('1'));
    $g->finish($id, $call, 'too late to be withdrawn');
}

# --- the server does not take the answer: it is the end of the call

{
    my ($id, $call) = begin();
    $up->script(response => [['json', '', 400]]);
    $up->go($call, question('1'));
    my %key = asks($id, 1);
    is(answer($id, $key{1}), 202, 'upstream refuses an answer');
    $g->fails($id, 'upstream_status', 'the call cannot go on', 15);
    is($g->get($id)->{error}{data}{status}, 400, 'for that reason');
    is(@{[responses()]}, 1, 'it was sent once');
    ok($up->left($call, 15), 'the call is ended');
    $up->script(response => undef);
}

# --- it is away for a moment, in whichever way: it gets the answer later

for my $case (['fails', ['json', 'x', 500]], ['closes', ['close']]) {
    my ($name, @steps) = @$case;
    my ($id, $call) = begin();
    $up->script(response => { rounds => [\@steps, [['json', '', 202]]] });
    $up->go($call, question('1'));
    my %key = asks($id, 1);
    is(answer($id, $key{1}), 202, "upstream $name");
    ok((wait_for { @{[responses()]} == 2 } 15), 'it is sent again');
    $g->finish($id, $call, "upstream $name");
    $up->script(response => undef);
}

# --- nobody is there to take it

{
    my ($id, $call) = begin();
    $up->go($call, question('1'));
    my %key = asks($id, 1);
    $up->shut();
    answer($id, $key{1});
    is($g->becomes($id, 'working', 15)->{status}, 'working',
       'nobody takes the answer: the call goes on');
    ok((wait_for { $t->log() =~ /Connection refused/ } 10), 'the log says so');
    $up->open();
    ok((wait_for { grep { $_ eq '1' } responses() } 15), 'and is sent again');
    $g->finish($id, $call, 'nobody listens');
}

$g->done('background call failed: upstream_status'
         . '|Connection refused|prematurely closed');

done_testing();
