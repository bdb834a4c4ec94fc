# Calls in the background while the store goes to another instance: a zone of
# another size, which has to wait until the old one lets go.

use warnings;
use strict;

# before anything looks at it
BEGIN { $ENV{MCP_TASKS_STORE} = 'sqlite' }

use FindBin;
use lib "$FindBin::Bin/lib";

use Test::More;

use MCPClient;
use MCPGateway;
use MCPTasks qw/ wait_for /;

my $g = MCPGateway->new(
    tool => ['slow support=optional', 'same idempotent'],
    on => { map { $_ => [['sse'], ['hold']] } qw/ slow same / });
my ($up, $t) = @{$g}{qw/ up t /};

# what others may call again has nothing of its client's
my $nobody = MCPClient->new($t);


# new processes are there, and serve or wait for the store
sub resize {
    my ($size) = @_;
    my %old = map { $_ => 1 } $t->worker_pids();
    my $conf = $g->config();

    $conf->{http} =~ s/zone=z:\w+/zone=z:$size/;
    $t->reload(%$conf);
    return wait_for { scalar grep { !$old{$_} } $t->worker_pids() };
}


# --- a call that ends soon

{
    my $id = $g->task('slow');
    my $call = $up->call('slow');

    ok(resize('16m'), 'resized while a call runs');
    is($g->until($id, sub { return 0 }, 1)->{status}, undef,
       'the new zone waits for it');
    is($up->get($call)->{closed}, undef, 'it goes on');
    $up->go($call, ['result', '{"a":1.0}']);

    like($g->becomes($id, 'completed')->{text}, qr/"a":1\.0/,
         'and completes, as the new zone knows');
    is(scalar @{[ $up->calls('slow') ]}, 1, 'it was called once');
    ok((wait_for { $t->worker_pids() == 1 }), 'the old process is gone');
}


# --- calls that do not

{
    my $id = $g->task('slow');
    my $again = $g->modern_task('same', who => $nobody);
    my $call = $up->call('slow', 2);
    my $first = $up->call('same');

    ok(resize('24m'), 'resized while others run');
    ok($up->left($call, 30), 'one is given up');
    ok($up->left($first, 30), 'so is the other');
    is($g->ends($id)->{status}, 'failed', 'the task fails');
    like($g->get($id)->{text}, qr/process_lost/, 'and says why');

    my $second = $up->call('same', 2);
    ok($second, 'where that does no harm it is called again');
    $up->go($second, ['result', '{}']);
    is($g->until($again, sub { ($_[0]{status} // '') eq 'completed' }, 30,
                 $nobody)->{status}, 'completed', 'that completes');
    is(scalar @{[ $up->calls('same') ]}, 2, 'after two calls');
}

is($t->probe('op=check')->{check}, 'ok', 'the table is in order');
ok($t->stop(), 'nginx stops');
is($t->faults('upstream prematurely closed|client prematurely'), '',
   'nothing in the log');

done_testing();
