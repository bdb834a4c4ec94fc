# "retry_on" of a tool behind a gateway: which ends of a background call are
# followed by another one.

use warnings;
use strict;

use FindBin;
use lib "$FindBin::Bin/lib";

use Test::More;

use MCPClient;
use MCPGateway;
use MCPTasks qw/ wait_for workers /;

my @end = ['result', '{"a":1.0}'];
my @hangs = (['sse'], ['flood', ": alive\n\n", 0.1]);

my $g = MCPGateway->new(
    workers => workers(),
    conf => 'mcp_tasks_retries 2 backoff=50ms;',
    proxy => 'proxy_next_upstream off; proxy_set_header X-Pid $pid;',
    tool => ['again timeout=1s retries=200 idempotent retry_on=timeout',
             'twice timeout=1s retries=1 idempotent retry_on=error,timeout',
             'kept timeout=1s idempotent retry_on=lease,error',
             'asks timeout=4s retries=200 idempotent retry_on=timeout',
             'lost idempotent retry_on=error',
             'errs retries=1 idempotent retry_on=error',
             'off idempotent retry_on=off'],
    on => {});
my ($up, $t, $c) = @{$g}{qw/ up t c /};
my $nobody = $c->as(headers => {});


# the notifications of the legacy era that say that a call is cancelled
sub told {
    my ($call) = @_;
    return grep { $_->{body} =~ /"requestId":\s*\Q$call->{id}\E\s*[,}]/ }
           $up->said('notifications/cancelled');
}


sub is_timeout {
    my ($got, $name) = @_;
    my $is = join ' ', map { $_ // '-' } $got->{status}, $got->{error}{code},
                                         $got->{error}{data}{reason};
    is($is, 'failed -31013 task_timeout', $name) or diag($got->{text});
}


# --- a run timeout

for my $era ('legacy', 'modern') {
    my $n = $up->count('again');
    $up->script(again => { rounds => [\@hangs, \@end] });
    my $id = $era eq 'legacy' ? $g->task('again') : $g->modern_task('again');
    my $call = $up->call('again', $n + 1);
    ok($up->left($call, 15), "$era: a call that runs for too long is left");
    my $next = $up->call('again', $n + 2, 15);
    ok($next, "$era: and sent again");
    isnt($next->{id}, $call->{id}, "$era: as another request");

    if ($era eq 'legacy') {
        my ($note) = wait_for { (told($call))[0] };
        ok($note, "$era: upstream is told");
        like($note->{body}, qr/timed out/, "$era: and why");
    } else {
        is(@{[told($call)]}, 0, "$era: without a word");
    }

    $g->completes($id, "$era: the second call completes the task", 20);
}

{
    my $n = $up->count('twice');
    $up->script(twice => \@hangs);
    is_timeout($g->ends($g->task('twice'), 20), 'each time: it fails');
    is($up->count('twice') - $n, 2, 'after two calls');
    ok($up->left($up->call('twice', $n + 2), 10), 'both are left');
}

{
    my $n = $up->count('kept');
    $up->script(kept => \@hangs);
    is_timeout($g->ends($g->task('kept'), 20), 'not in the list: it fails');
    is($up->count('kept') - $n, 1, 'after one call');
}

# a stream that is to be resumed when the time is over
{
    my $n = $up->count('again');
    $up->script(again => { rounds => [
        [['sse'], ['text', "id: 5\nretry: 30000\ndata:\n\n"], ['end']],
        \@end] });
    my $id = $g->task('again');
    my $call = $up->call('again', $n + 1);
    ok($up->call('again', $n + 2, 15), 'between two requests: sent again');
    ok((wait_for { (told($call))[0] }), 'upstream is told');
    $g->completes($id, 'and it completes', 20);
}

# answers that came too late are not those of the next attempt
{
    my $n = $up->count('asks');
    my ($one, $two) = map {
        ['event', qq({"jsonrpc":"2.0","id":"$_","method":"roots/list",)
                  . '"params":{}}']
    } 'one', 'two';
    $up->script(asks => { rounds => [
        [['sse'], $one, ['answered', 'one'], @hangs[1 .. $#hangs]],
        [['sse'], $two, ['answered', 'two'], @end]] });
    my $id = $g->task('asks');

    for my $round (1, 2) {
        my $got = $g->until($id, sub {
            return ($_[0]{status} // '') eq 'input_required'
                   && $up->count('asks') == $n + $round;
        }, 20);
        my ($key) = keys %{ $got->{inputRequests} || {} };
        ok(defined $key, "attempt $round asks") or last;
        $c->post({ jsonrpc => '2.0', id => "$id/$key",
                   result => { roots => [] } });
    }

    $g->completes($id, 'the second attempt has its own answer', 20);
}


# --- errors

{
    my $n = $up->count('off');
    $up->script(off => [['reset']]);
    $g->fails($g->task('off'), 'upstream_closed', 'off: it fails', 30);
    is($up->count('off') - $n, 1, 'off: it is not sent again');
}

{
    my $n = $up->count('errs');
    $up->script(errs => { rounds => [[['reset']], \@end] });
    $g->completes($g->task('errs'), 'in the list: it is sent again', 20);
    is($up->count('errs') - $n, 2, 'and completes at the second call');
}


# --- the process that runs it dies

{
    my $n = $up->count('lost');
    $up->script(lost => [['sse'], ['hold']]);
    my $id = $g->modern_task('lost', who => $nobody);
    my $call = $up->call('lost', $n + 1);
    ok($t->kill_worker($call->{head}{'x-pid'}), 'a process is killed');
    my $got = $g->until($id, sub { ($_[0]{status} // '') eq 'failed' }, 10,
                        $nobody);
    is($got->{error}{data}{reason}, 'process_lost',
       'a lost call that is not in the list fails');
    is($up->count('lost') - $n, 1, 'and is not sent again');
}

$g->done('exited on signal 9|\[error\]');
done_testing();
