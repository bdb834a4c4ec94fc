# An upstream's error -32042: for legacy clients as it is, if its URLs are valid;
# modern clients are asked, and the call is sent again.

use warnings;
use strict;

use FindBin;
use lib "$FindBin::Bin/lib";

use Test::More;

use MCPClient;
use MCPGateway;
use MCPTasks qw/ workers /;

my $meta = 'io.modelcontextprotocol';
my @end = (['result', '{"content":[],"a":1}']);


sub link_to {
    my ($n, $url) = @_;
    $url //= "https://example.com/$n";
    return "{\"mode\":\"url\",\"elicitationId\":\"e$n\",\"url\":\"$url\","
           . "\"message\":\"Sign in $n\"}";
}


sub required {
    my (@links) = @_;
    return '{"code":-32042,"message":"Sign in","data":{"elicitations":['
           . join(',', @links) . ']}}';
}

my $error = required(link_to(1), link_to(2));
my $round = '{"resultType":"input_required","requestState":"s","inputRequests":'
            . '{"name":' . MCPClient::encode(MCPClient::form()) . '}}';

my $g = MCPGateway->new(
    workers => workers(),
    tool => ['slow support=optional', 'again support=optional',
             'stream support=optional', 'status support=optional',
             'both support=optional', 'early after=30s input=call',
             'later after=30s input=task', 'old support=optional',
             'no support=optional'],
    on => {
        slow => { rounds => [[['error', $error]], [@end]] },
        again => { rounds => [[['error', $error]], [['error', $error]],
                              [@end]] },
        stream => { rounds => [[['sse'], ['error', $error]], [@end]] },
        status => { rounds => [[['json', '{"jsonrpc":"2.0","id":%ID%,"error":'
                                 . "$error}", 400]], [@end]] },
        both => { rounds => [[['result', $round]], [['error', $error]],
                             [@end]] },
        early => { rounds => [[['error', $error]], [@end]] },
        later => { rounds => [[['error', $error]], [@end]] },
        old => [['error', $error]], no => [['error', $error]],
    });
my ($up, $c) = @{$g}{qw/ up c /};
my %meta = ("$meta/clientCapabilities" => {
    elicitation => { form => {}, url => {} },
    extensions => { "$meta/tasks" => {} } });


sub task {
    my ($tool) = @_;
    return $g->modern_task($tool, meta => \%meta,
                           params => { arguments => { n => 5 } });
}


# the questions of a task, when it asks others than before
sub asked {
    my ($id, %before) = @_;
    return $g->until($id, sub {
        my $requests = $_[0]{inputRequests} || {};
        return %$requests && !grep { $before{$_} } keys %$requests;
    }, 15)->{inputRequests} || {};
}


sub update {
    my ($id, $requests, $action) = @_;
    return $c->modern('tasks/update', { taskId => $id, inputResponses => {
        map { $_ => { action => $action // 'accept' } } keys %$requests } })
        ->{json}{result}{resultType};
}


# the URLs, and that they are asked for without an id
sub urls {
    my ($requests) = @_;
    return join ' ', sort map {
        join ',', $_->{method}, $_->{params}{mode}, $_->{params}{url},
                  $_->{params}{elicitationId} // 'none'
    } values %$requests;
}

my $urls = join ' ', map {
    "elicitation/create,url,https://example.com/$_,none" } 1, 2;

# --- a task of a modern client

# 2026-07-28, basic: "Implementations of this protocol version MUST NOT emit these
# codes: ... -32042 - URL elicitation required (2025-11-25 only)"
for my $tool ('slow', 'stream', 'status') {
    my $id = task($tool);
    my $requests = asked($id);
    is(urls($requests), $urls, "$tool: the URLs are asked for");
    is($g->get($id)->{status}, 'input_required', 'the task waits');
    is(scalar(my @one = $up->calls($tool)), 1, 'nothing is sent yet');
    is(update($id, $requests), 'complete', 'answered');
    is($g->ends($id, 15)->{status}, 'completed', 'the call is sent again');
    my @calls = $up->calls($tool);
    is(scalar @calls, 2, 'once');
    is_deeply($calls[1]{json}{params}{arguments}, { n => 5 },
              'with its arguments');
    is_deeply($calls[1]{json}{params}{inputResponses}, {},
              'and without answers that it did not ask for');
    isnt($calls[1]{json}{id}, $calls[0]{json}{id}, 'under another id');
}

# the same twice: no key is used again
{
    my $id = task('again');
    my $requests = asked($id);
    update($id, $requests);
    my $second = asked($id, %$requests);
    is(urls($second), $urls, 'again: asked once more');
    is(scalar(grep { $requests->{$_} } keys %$second), 0, 'with other keys');
    update($id, $second);
    is($g->ends($id, 15)->{status}, 'completed', 'then it completes');
}

# after a question of its own
{
    my $id = task('both');
    my $requests = asked($id);
    is(join(' ', keys %$requests), 'name', 'both: a question');
    update($id, $requests);
    my $second = asked($id, %$requests);
    is(urls($second), $urls, 'then the URLs');
    update($id, $second);
    is($g->ends($id, 15)->{status}, 'completed', 'then it completes');
}

# --- while a modern client waits

{
    my $res = $c->modern('tools/call', { name => 'early' }, meta => \%meta);
    my $result = $res->{json}{result};
    is($result->{resultType}, 'input_required', 'input=call: the questions');
    is(urls($result->{inputRequests}), $urls, 'in the result of the call');
    $res = $c->modern('tools/call', { name => 'early', inputResponses => {
        map { $_ => { action => 'accept' } } keys %{ $result->{inputRequests} }
    } }, meta => \%meta);
    is($res->{json}{result}{a}, 1, 'called again: its result');

    $res = $c->modern('tools/call', { name => 'later' }, meta => \%meta);
    is($res->{json}{result}{resultType}, 'task', 'input=task: a task');
    my $id = $res->{json}{result}{taskId};
    my $requests = asked($id);
    is(urls($requests), $urls, 'which asks');
    update($id, $requests);
    is($g->ends($id, 15)->{status}, 'completed', 'and completes');
}

# --- a user who declines: the call is not sent again

{
    my $id = task('no');
    update($id, asked($id), 'decline');
    $g->fails($id, 'url_declined', 'declined', 15);
    is(scalar(my @one = $up->calls('no')), 1, 'no further call');
}

# --- a legacy client: the error as it is

# 2025-11-25, client/elicitation: "The error MUST include a list of elicitations
# that are required to complete before the original can be retried"
{
    my $id = $g->task('old');
    my $got = $g->ends($id, 15);
    is($got->{status}, 'failed', 'legacy: the task fails');
    is_deeply($got->{error}, { code => -31013, message => 'Sign in',
              data => { reason => 'url_elicitation_required' } },
              'in the modern era with another code');
    like($g->result($id), qr/"error":\Q$error\E/, 'for its client to the byte');
}

# --- URLs that nobody is sent to

for my $bad (required(), required(link_to(1), link_to(2, 'javascript:x')),
             required('{"mode":"url","url":"https://example.com/"}'),
             '{"code":-32042,"message":"m"}')
{
    $up->script(old => [['error', $bad]]);
    $g->fails(task('old'), 'upstream_question', "modern: $bad", 15);
    $g->fails($g->task('old'), 'upstream_question', 'legacy: likewise', 15);
}

$g->done('background call failed: (?:upstream_question|url_declined)');
done_testing();
