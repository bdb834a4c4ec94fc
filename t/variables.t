# $mcp_... in a log.

use warnings;
use strict;
use utf8;

use FindBin;
use lib "$FindBin::Bin/lib";

use JSON::PP;
use Test::More;

use MCPClient;
use MCPFile qw/ slurp /;
use MCPTasks qw/ wait_for workers /;

my @names = qw/ method tool task_id client task_status era error traceparent /;

my $t = MCPTasks->new(
    workers => workers(),
    http => 'mcp_tasks_zone zone=z:1m; log_format mcp escape=json \'{'
            . join(',', map { "\"$_\":\"\$mcp_$_\"" } @names) . "}';\n",
    tools => ['slow', 'a\"b\\\\c\n\u001b[1m\u00e9{'],
    server => <<'END');
    access_log logs/mcp.log mcp;
    location /mcp { mcp_tasks zone=z; mcp_tasks_tools tools.json; }
    location /head { mcp_tasks zone=z; add_header X-Tool $mcp_tool; }
    location /worker { mcp_tasks_worker zone=z; }
    location /plain { return 200 "[$mcp_method$mcp_error$mcp_era]"; }
END

my $c = MCPClient->new($t);
my $lines = 0;


# The line that the last request wrote, which may come after its answer: so
# each request waits for its own, and none can be taken for that of another.
# What has no end yet is still being written.
sub last_line {
    my ($name) = @_;
    my @lines;

    wait_for {
        @lines = slurp("$t->{dir}/logs/mcp.log") =~ /(.*)\n/g;
        return @lines > $lines;
    } 10;

    is(scalar(@lines), ++$lines, "$name: one line") or $lines = @lines;

    return $lines[-1] // '';
}


sub logged {
    my ($want, $name) = @_;
    my $line = last_line($name);
    my $got = eval { JSON::PP->new->utf8->decode($line) };
    my %want = ((map { $_ => '' } @names), %$want);

    # a task whose id nobody knows yet
    if (ref $want{task_id}) {
        like($got->{task_id}, $want{task_id}, "$name: an id");
        $want{task_id} = $got->{task_id};
    }

    # no header breaks where such a value is used in one
    tr/\x00-\x1f\x7f/ / for values %want;

    is_deeply($got, \%want, $name) or diag($line);
}


$t->request('GET', '/plain');
logged({}, 'a request that is not for us');
is($t->request('GET', '/plain')->{body}, '[]', 'variables that are empty');
logged({}, 'and are so in the log');

$c->legacy('ping');
logged({ method => 'ping', era => 'legacy' }, 'ping');

$c->legacy('initialize', { protocolVersion => '2025-11-25', capabilities => {},
                           clientInfo => { name => 'Some client',
                                           version => '1.2' } });
logged({ method => 'initialize', era => 'legacy', client => 'Some client/1.2' },
       'initialize');

$c->legacy('initialize', '{"protocolVersion":"2025-11-25","capabilities":{},'
           . '"clientInfo":{"name":"\"},\n\u001b[31m\ud83d\ude00\\\\",'
           . '"version":"\u00e9\""}}');
logged({ method => 'initialize', era => 'legacy',
         client => "\"},\n\e[31m\x{1f600}\\/é\"" },
       'a client with a hostile name');

$c->legacy('initialize', '{"protocolVersion":"2025-11-25","capabilities":{},'
           . '"clientInfo":{"name":7}}');
logged({ method => 'initialize', era => 'legacy' }, 'a client without a name');

my $id = $c->legacy('tools/call', { name => 'slow', task => {} })
         ->{json}{result}{task}{taskId};
ok($id, 'a task');
logged({ method => 'tools/call', era => 'legacy', tool => 'slow',
         task_id => $id, task_status => 'working' }, 'tools/call');

$c->legacy('tasks/get', { taskId => $id });
logged({ method => 'tasks/get', era => 'legacy', task_id => $id,
         task_status => 'working' }, 'tasks/get');

$c->modern('tasks/get', { taskId => $id },
           meta => { 'io.modelcontextprotocol/clientInfo'
                     => { name => 'm', version => '0' } });
logged({ method => 'tasks/get', era => 'modern', task_id => $id,
         client => 'm/0', task_status => 'working' }, 'tasks/get, modern');

my $work = $c->claim('slow');
logged({ method => 'worker/claim', era => 'legacy', task_id => $id,
         task_status => 'working' }, 'worker/claim');

$c->complete($work, { content => [], isError => JSON::PP::true });
logged({ method => 'worker/complete', era => 'legacy', task_id => $id,
         task_status => 'failed' }, 'worker/complete');

$c->modern('tasks/get', { taskId => $id });
logged({ method => 'tasks/get', era => 'modern', task_id => $id,
         task_status => 'completed' }, 'an error of the tool, modern');

$c->modern('tasks/cancel', { taskId => $id });
logged({ method => 'tasks/cancel', era => 'modern', task_id => $id,
         task_status => 'completed' }, 'cancelled after its end, modern');

$c->legacy('tasks/cancel', { taskId => $id });
logged({ method => 'tasks/cancel', era => 'legacy', task_id => $id,
         error => '-32602' }, 'cancelled after its end');

# names that try to break out of the line
my $tool = '"a\"b\\\\c\n\u001b[1m\u00e9{"';
$c->legacy('tools/call', "{\"name\":$tool,\"task\":{}}");
logged({ method => 'tools/call', era => 'legacy',
         tool => "a\"b\\c\n\e[1mé{", task_id => qr/\A[0-9a-f-]{36}\z/,
         task_status => 'working' }, 'a tool with a hostile name');

$c->legacy('tools/call', '{"name":"no\u0001\u2028such\n\"}"}');
logged({ method => 'tools/call', era => 'legacy', error => '-32602',
         tool => "no\x01\x{2028}such\n\"}" }, 'a tool that is not there');

$c->legacy('tasks/get', { taskId => "\n\"x" });
logged({ method => 'tasks/get', era => 'legacy', error => '-32602' },
       'what is no id');

$c->legacy("no\n\"such\\");
my $last = last_line('a hostile method');
ok(eval { JSON::PP->new->utf8->decode($last) },
   'a hostile method leaves the line whole') or diag($last);

my $res = $c->as(uri => '/head')->legacy('tools/call',
                                         { name => "a\r\nX-Evil: 1" });
is($res->{header}{'x-tool'}, 'a  X-Evil: 1', 'a hostile tool in a header');
is($res->{header}{'x-evil'}, undef, 'makes no header of its own');
last_line('a hostile tool in a header');

$c->post('{');
logged({ era => 'legacy', error => '-32700' }, 'not JSON');

$c->modern('no/such');
logged({ method => 'no/such', era => 'modern', error => '-32601' },
       'no such method');

$c->post({ jsonrpc => '2.0', method => 'notifications/x' });
logged({ method => 'notifications/x', era => 'legacy' }, 'a notification');

$t->request('GET', '/mcp');
logged({ era => 'legacy', error => '-32600' }, 'GET');

ok($t->stop(), 'nginx stops');
is($t->faults(), '', 'nothing bad in the log');

done_testing();
