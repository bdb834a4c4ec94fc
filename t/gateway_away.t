# A store that is away for a while, or has no memory, or fails after it has made
# the change: a background call loses neither its questions nor its end, and
# does not fail as too large.

use warnings;
use strict;

# before anything looks at it
BEGIN { $ENV{MCP_TASKS_STORE} = 'late' }

use FindBin;
use lib "$FindBin::Bin/lib";

use Test::More;
use Time::HiRes qw/ sleep /;

use MCPClient;
use MCPGateway;
use MCPTasks qw/ wait_for /;

# of ngx_mcp_op_e
use constant { UPDATE => 4, ATTEMPT => 12, PIN => 17 };

# of ngx_mcp_late_away_e
my %modes = (away => 1, unsure => 2, memory => 3);

my $form = '{"method":"elicitation/create","params":{"message":"Who?",'
           . '"requestedSchema":{"type":"object","properties":{}}}}';

my $g = MCPGateway->new(
    conf => 'mcp_tasks_retries 2 backoff=300ms;',
    tool => ['slow support=optional', 'same idempotent', 'round'],
    on => { slow => [['sse'], ['hold']], same => [['sse'], ['hold']],
            round => { rounds => [
                [['sse'], ['hold'],
                 ['result', '{"resultType":"input_required","inputRequests":'
                            . "{\"who\":$form},\"requestState\":\"s\"}"]],
                [['result', '{"resultType":"complete","content":[],"a":1}']]
            ] } });
my ($up, $t, $c) = @{$g}{qw/ up t c /};
my $nobody = $c->as(headers => {});
my $io = 'io.modelcontextprotocol';
my %meta = ("$io/clientCapabilities" => { elicitation => {},
                                          extensions => { "$io/tasks" => {} }
                                        });


# what is submitted to the store from now on, by the operation
my @before;

sub store {
    my ($mode) = @_;
    @before = @{ $t->probe('op=late&away=' . ($modes{$mode} // 0))->{ops} };
}


# that a few operations are submitted, but not one after the other
sub patient {
    my ($op, $name) = @_;
    wait_for { $t->probe('op=late')->{ops}[$op] > $before[$op] } 10;
    sleep(0.3);
    my $n = $t->probe('op=late')->{ops}[$op] - $before[$op];
    ok($n > 0 && $n <= 3, "$name: tried now and then: $n");
}


sub question {
    return ['event', "{\"jsonrpc\":\"2.0\",\"id\":$_[0],\"method\":"
                     . "\"roots/list\",\"params\":{\"id\":$_[0]}}"];
}


sub withdrawn {
    return ['event', '{"jsonrpc":"2.0","method":"notifications/cancelled",'
                     . "\"params\":{\"requestId\":$_[0]}}"];
}


sub answer {
    my ($id, $key) = @_;
    return $c->post("{\"jsonrpc\":\"2.0\",\"id\":\"$id/$key\",\"result\":"
                    . '{"roots":[]}}')->{status};
}


sub responses {
    return scalar @{[ $up->said('response') ]};
}


for my $mode (sort keys %modes) {

    # --- a question

    {
        my ($id, $call) = $g->begin('slow');
        store($mode);
        $up->go($call, question(1), ['hold']);
        patient(UPDATE, "$mode, question");
        store('here');

        my $got = $g->becomes($id, 'input_required');
        my @keys = keys %{ $got->{inputRequests} || {} };
        is(scalar @keys, 1, "$mode: the question is asked") or diag($got->{text});
        my $n = responses();
        is(answer($id, $keys[0]), 202, "$mode: and answered");
        ok((wait_for { responses() == $n + 1 }), "$mode: the answer arrives");
        $up->go($call, ['result', '{"a":1}']);
        $g->completes($id, "$mode: the call goes on");
        is(responses(), $n + 1, "$mode: nothing was asked twice");
    }

    # answered before the store says that it has saved it
    if ($mode eq 'unsure') {
        my ($id, $call) = $g->begin('slow');
        store($mode);
        $up->go($call, question(1), ['hold']);
        my ($key) = keys %{ $g->becomes($id, 'input_required')
                            ->{inputRequests} || {} };
        my $n = responses();
        answer($id, $key // '-');
        store('here');
        ok((wait_for { responses() == $n + 1 }), "$mode: answered at once");
        $up->go($call, ['result', '{"a":1}']);
        $g->completes($id, "$mode: and the call goes on");
    }

    # --- a question that ends the round trip

    {
        $up->clear();
        my ($id, $call) = $g->begin('round', modern => 1, meta => \%meta);
        store($mode);
        $up->go($call);
        patient(UPDATE, "$mode, round");
        is($up->count('round'), 1, "$mode: it is not sent without answers");
        store('here');

        my $got = $g->becomes($id, 'input_required');
        is(join(' ', keys %{ $got->{inputRequests} || {} }), 'who',
           "$mode: the question is asked");
        $c->modern('tasks/update', { taskId => $id, inputResponses =>
                   { who => { action => 'decline' } } });
        $g->completes($id, "$mode: the next round completes it");
    }

    # --- a question that is withdrawn

    {
        my ($id, $call) = $g->begin('slow');
        $up->go($call, question(1), question(2), ['hold']);
        $g->becomes($id, 'input_required');
        store($mode);
        $up->go($call, withdrawn(1), ['hold']);
        patient(UPDATE, "$mode, withdrawal");
        store('here');

        my @left;
        $g->until($id, sub {
            @left = map { $_->{params}{id} }
                    values %{ $_[0]{inputRequests} || {} };
            return "@left" eq '2';
        });
        is("@left", '2', "$mode: it is withdrawn");
        $up->go($call, withdrawn(2), ['hold']);
        $g->becomes($id, 'working');
        $up->go($call, ['result', '{"a":1}']);
        $g->completes($id, "$mode: and the call goes on");
    }

    # --- the end: a result, an error, a failure, another attempt

    {
        my ($id, $call) = $g->begin('slow');
        store($mode);
        $up->go($call, ['result', '{"a":1}']);
        patient(UPDATE, "$mode, result");
        store('here');
        $g->completes($id, "$mode: the result is kept");

        # while a question is submitted
        ($id, $call) = $g->begin('slow');
        store($mode);
        $up->go($call, ['text', join '', map { "data: $_\n\n" }
                                question(1)->[1], '{"jsonrpc":"2.0",'
                                . '"id":%ID%,"result":{"a":1}}']);
        patient(UPDATE, "$mode, question and result");
        store('here');
        $g->completes($id, "$mode: so it is after a question");

        ($id, $call) = $g->begin('slow');
        store($mode);
        $up->go($call, ['error', '{"code":5,"message":"no"}']);
        sleep(0.1);
        store('here');
        like($g->ends($id)->{text}, qr/"code":5,"message":"no"/,
             "$mode: an error");

        ($id, $call) = $g->begin('slow');
        store($mode);
        $up->go($call, ['close']);
        patient(UPDATE, "$mode, failure");
        store('here');
        $g->fails($id, 'upstream_closed', "$mode: a failure");

        $up->clear();
        $id = $g->modern_task('same', who => $nobody);
        $call = $up->call('same');
        $up->go($call, ['close']);
        wait_for {
            $t->request('GET', "/probe?op=get&owner=&id=$id")->{body}
                =~ /"state":"queued"/;
        } 5;
        store($mode);
        patient(ATTEMPT, "$mode, attempt");
        store('here');
        $call = $up->call('same', 2);
        ok($call, "$mode: another attempt");
        $up->go($call, ['result', '{"a":1}']);
        is($g->until($id, sub { ($_[0]{status} // '') eq 'completed' }, 15,
                     $nobody)->{status}, 'completed', "$mode: completes");
    }

    # --- the beginning

    {
        $up->clear();
        store($mode);
        my $id = $g->task('slow');
        patient(PIN, "$mode, pin");
        store('here');
        my $call = $up->call('slow');
        ok($call, "$mode: a call begins");
        $up->go($call, ['result', '{"a":1}']);
        $g->completes($id, "$mode: and ends");
    }
}


$g->done('background call failed: upstream_closed|upstream prematurely');
done_testing();
