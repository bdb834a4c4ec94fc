# Calls that become tasks in the modern era, and those that are quick enough to
# be answered at once.

use warnings;
use strict;

use FindBin;
use lib "$FindBin::Bin/lib";

use Test::More;
use Time::HiRes qw/ time /;

use MCPClient qw/ answer /;
use MCPGateway;
use MCPTasks qw/ wait_for workers /;

my $meta = 'io.modelcontextprotocol';
my @held = (['sse'], ['hold']);

my $g = MCPGateway->new(
    workers => workers(),
    tool => ['slow support=optional', 'must support=required',
             'never support=forbidden', 'quick after=30s',
             'late after=150ms', 'both after=30s support=required'],
    on => { map { $_ => \@held } qw/ slow must quick late both / });
my ($up, $t, $c) = @{$g}{qw/ up t c /};
my $plain = $c->as(extensions => [], can => {});

my $conn = $t->connect_all() or BAIL_OUT('processes cannot be reached');
my @all = map { $c->as(via => $conn->{$_}) } sort keys %$conn;


sub call_later {
    my ($who, $tool, %opt) = @_;
    my $s = $t->connect();
    MCPTasks::send_raw($s, $who->modern_bytes('tools/call', { name => $tool },
                                              %opt));
    return $s;
}


# --- who declares the extension gets a task

my $res = $c->modern('tools/call',
    '{"name":"slow","arguments":{"n":1.0,"s":"\u00e9"}}', id => '"m1"',
    headers => { 'Mcp-Name' => 'slow', Authorization => 'Bearer abc',
                 'Accept-Encoding' => 'gzip' },
    meta => { "$meta/clientCapabilities" => { elicitation => {}, extensions =>
              { "$meta/tasks" => {}, 'other/one' => { a => 1 } } } });
is($res->{json}{result}{resultType}, 'task', 'a task');
is($res->{json}{id}, 'm1', 'for this call');
my $id = $res->{json}{result}{taskId};

my $call = $up->call('slow');
like($call->{body}, qr/"arguments":\s*\{"n":1\.0,"s":"\\u00e9"\}/,
     'upstream gets the arguments as they were');
my $can = $call->{json}{params}{_meta}{"$meta/clientCapabilities"};
is_deeply($can, { elicitation => {}, extensions => { 'other/one' =>
                  { a => 1 } } }, 'and the capabilities, but no tasks');
is($call->{json}{params}{_meta}{"$meta/protocolVersion"}, '2026-07-28',
   'and the version');
ok(defined $call->{token}, 'and a progress token');
is($call->{head}{'mcp-method'}, 'tools/call', 'header Mcp-Method');
is($call->{head}{'mcp-name'}, 'slow', 'header Mcp-Name');
is($call->{head}{authorization}, 'Bearer abc', 'Authorization');
is($call->{head}{'accept-encoding'}, undef, 'nothing of encodings');

is($g->get($id, $_)->{status}, 'working', 'all processes know it') for @all;

$up->go($call, ['event', '{"jsonrpc":"2.0","method":"notifications/progress",'
                . '"params":{"progressToken":%TOKEN%,"progress":1,'
                . '"message":"one"}}']);
is($g->until($id, sub { ($_[0]{statusMessage} // '') eq 'one' }, 10)
   ->{statusMessage}, 'one', 'progress');

# nobody has to be there: it is no call of a client any more
$up->go($call, ['result', '{"resultType":"complete","content":[],"x":1.0}']);
like($g->becomes($id, 'completed')->{text},
     qr/"result":\{"resultType":"complete","content":\[\],"x":1\.0\}/,
     'the result, to the byte');

# without a word on its type, it gets one
$id = $g->modern_task('slow');
$g->go('slow', ['result', '{"content":[],"x":1.0}']);
like($g->becomes($id, 'completed')->{text},
     qr/"result":\{"resultType":"complete","content":\[\],"x":1\.0\}/,
     'a result without a type');

$id = $g->modern_task('slow');
$g->go('slow', ['error', '{"code":-32050,"message":"\u00e9","data":1.0}']);
like($g->becomes($id, 'failed')->{text},
     qr/"error":\{"code":-32050,"message":"\\u00e9","data":1\.0\}/,
     'an error, to the byte');

# the other era reads it too
is($c->legacy('tasks/result', { taskId => $id })->{json}{error}{code}, -32050,
   'a client of the other era');

# --- who does not

my $s = call_later($plain, 'slow');
$call = wait_for { ($up->calls('slow'))[3] };
ok($call, 'without the extension: passed');
is_deeply($call->{json}{params}{_meta}{"$meta/clientCapabilities"}, {},
          'as it is');
is($call->{token}, undef, 'and nothing was added');
$up->go($call, ['result', '{"resultType":"complete","content":[1]}']);
like(answer($s)->{body}, qr/"content":\[1\]/, 'and answered');

$s = call_later($plain, 'slow');
$call = wait_for { ($up->calls('slow'))[4] };
close($s);
ok($up->left($call, 10), 'who leaves ends the call');

$res = $plain->modern('tools/call', { name => 'must' });
is("$res->{status} $res->{body}", '400 {"jsonrpc":"2.0","id":1,"error":{'
   . '"code":-32021,"message":"Missing required client capability","data":'
   . '{"requiredCapabilities":{"extensions":{"io.modelcontextprotocol/tasks":'
   . '{}}}}}}', 'required: refused');
is(scalar(my @must = $up->calls('must')), 0, 'upstream is not asked');

# forbidden: as if there were no tasks
$res = $c->modern('tools/call', { name => 'never' });
like($res->{body}, qr/"content":\[\{"type":"text","text":"never"\}\]/,
     'forbidden: passed');
like($up->call('never')->{body}, qr{io\.modelcontextprotocol/tasks},
     'as it is');

# --- after: quick enough

$s = call_later($c, 'quick', id => 7);
$call = $up->call('quick');
ok($call, 'with after= the client waits');
$up->go($call, ['result', '{"resultType":"complete","content":[],"x":1.0}']);
$res = answer($s);
is("$res->{status} " . ($res->{body} =~ s/\Adata: (.*)\n\n\z/$1/sr),
   '200 {"jsonrpc":"2.0","id":7,"result":{"resultType":"complete",'
   . '"content":[],"x":1.0}}', 'quick: the result');

$s = call_later($c, 'quick', id => 8);
ok($g->go('quick', ['error', '{"code":-5,"message":"x","data":1.0}']),
   'another');
is(answer($s)->{body}, '{"jsonrpc":"2.0","id":8,"error":{"code":-5,'
   . '"message":"x","data":1.0}}', 'an error as well');

$s = call_later($c, 'both', id => 9);
ok($g->go('both', ['result', '{"content":[]}']), 'a required one');
like(answer($s)->{body}, qr/"content":\[\]/, 'may be answered directly too');

# --- too slow

my $start = time();
$res = $c->modern('tools/call', { name => 'late' });
cmp_ok(time() - $start, '>=', 0.14, 'it was waited for');
is($res->{json}{result}{resultType}, 'task', 'then there is a task');
$id = $res->{json}{result}{taskId};
is(scalar(my @late = $up->calls('late')), 1, 'of the one call');
$g->go('late', ['result', '{"content":[1.0]}']);
like($g->becomes($id, 'completed')->{text}, qr/"content":\[1\.0\]/,
     'which goes on');

# the other era does not wait
$start = time();
$id = $g->task('quick');
cmp_ok(time() - $start, '<', 15, 'legacy clients get their task at once');
$g->go('quick', ['result', '{}']);
is($g->ends($id)->{status}, 'completed', 'and it completes');

# --- a client that leaves while it waits has no task to come back to

$s = call_later($c, 'quick');
$call = wait_for { (grep { !$_->{done} } $up->calls('quick'))[-1] };
close($s);
ok($up->left($call, 10), 'who leaves before there is a task ends the call');

# and one that leaves after it does not
$res = $c->modern('tools/call', { name => 'late' });
$call = wait_for { (grep { !$_->{done} } $up->calls('late'))[-1] };
is($c->legacy('ping')->{status}, 200, 'something else');
is($up->get($call)->{closed}, undef, 'after it: the call goes on');
$up->go($call, ['result', '{}']);
is($g->ends($res->{json}{result}{taskId})->{status}, 'completed', 'and ends');

# --- it ends in the moment when the time is up

{
    $up->script(late => [['pause', 0.15], ['result', '{"resultType":"complete",'
                                          . '"content":[]}']]);
    my %seen;

    for (1 .. 12) {
        my $got = $c->modern('tools/call', { name => 'late' })->{json};
        my $type = $got->{result}{resultType} // 'none';
        $seen{$type}++;
        next if $type ne 'task';
        is($g->ends($got->{result}{taskId}, 10)->{status}, 'completed',
           'a task that was about to end');
    }

    is($seen{none}, undef, 'each call was answered');
    is(($seen{task} // 0) + ($seen{complete} // 0), 12,
       'by its result or by a task');
}

$g->done();
done_testing();
