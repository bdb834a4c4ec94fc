# The location of upstream is an ordinary one: what nginx's proxy can do, it
# does for calls that run in the background too.

use warnings;
use strict;

use FindBin;
use lib "$FindBin::Bin/lib";

use Test::More;

use MCPClient;
use MCPFile qw/ slurp /;
use MCPGateway;
use MCPTasks qw/ wait_for /;

# a port that nobody listens on, and one with TLS
my $closed = MCPTasks::free_port();
my $tls = MCPTasks::free_port();
my $held = [['sse'], ['hold']];

my $g = MCPGateway->new(
    conf => 'mcp_tasks_retries 0;', tool => ['slow support=optional'],
    on => { slow => $held });
my ($up, $t, $c) = @{$g}{qw/ up t c /};

is(system('openssl req -x509 -newkey rsa:2048 -nodes -days 2 -subj /CN=up.test'
          . ' -addext subjectAltName=DNS:up.test'
          . " -keyout $t->{dir}/key.pem -out $t->{dir}/cert.pem"
          . ' > /dev/null 2>&1'), 0, 'a certificate');


sub reload {
    my ($conf) = @_;
    $t->reload_all(%$conf)
        or BAIL_OUT('nginx does not reload: ' . $t->log());
    $up->clear();
}


# another upstream, and what else its location says
sub configure {
    my ($to, $proxy, $http) = @_;
    reload($g->config(to => $to, proxy => $proxy || '', http => $http || ''));
}


sub completes {
    my ($id, $name) = @_;
    my $got = $g->ends($id, 20);
    is($got->{status}, 'completed', $name) or diag($got->{text});
}


# --- several servers, of which one is down

configure('http://both/mcp', 'proxy_next_upstream error timeout;'
          . ' access_log logs/up.log up;',
          "upstream both { server 127.0.0.1:$closed max_fails=0; server "
          . "127.0.0.1:$up->{port}; } log_format up '\$request_method "
          . "\$upstream_addr|\$upstream_status|\$mcp_task_id|\$mcp_tool';");

for my $n (1 .. 4) {
    my $id = $g->task("tool$n");
    completes($id, "two servers, one is down: call $n");
    ok((wait_for { slurp("$t->{dir}/logs/up.log") =~ /$id/ } 10),
       'it is in the log');
    my ($line) = grep { /$id/ } split /\n/, slurp("$t->{dir}/logs/up.log");
    my $down = qr/127\.0\.0\.1:$closed, /;
    like($line // '', qr/\APOST\ (?:$down)?127\.0\.0\.1:$up->{port}\|
                         (?:502,\ )?200\|$id\|tool$n\z/x,
         'with addresses, status and task');
}

is(@{[$up->requests()]}, 4, 'each was sent once');

# --- connections are kept

configure('http://kept/mcp', '',
          "upstream kept { server 127.0.0.1:$up->{port}; keepalive 4; }");
my $before = ($up->connections())[1];

for my $n (1 .. 5) {
    completes($g->task('tool'), "a kept connection: call $n");
}

is(($up->connections())[1] - $before, 1, 'five calls over one');

$up->script(slow => [['sse'], ['result', '{}']]);
completes($g->task('slow'), 'a stream') for 1 .. 3;
is(($up->connections())[1] - $before, 1, 'streams as well');
$up->script(slow => $held);

# one that is cancelled is not used again
{
    my $id = $g->task('slow');
    my $call = $up->call('slow', 4);
    $c->legacy('tasks/cancel', { taskId => $id });
    ok($up->left($call, 10), 'a call that is cancelled');
    completes($g->task('tool'), 'the next has a connection of its own');
}

# --- TLS

configure("https://127.0.0.1:$tls/mcp", 'proxy_ssl_verify on;'
          . ' proxy_ssl_trusted_certificate cert.pem; proxy_ssl_name up.test;'
          . ' proxy_ssl_server_name on;',
          "server { listen 127.0.0.1:$tls ssl; ssl_certificate cert.pem;"
          . ' ssl_certificate_key key.pem; location / { proxy_pass'
          . " http://127.0.0.1:$up->{port}; proxy_http_version 1.1;"
          . ' proxy_set_header Connection ""; proxy_buffering off;'
          . ' proxy_set_header X-TLS $ssl_server_name; } }');

{
    my $id = $g->task('slow');
    my $call = $up->call('slow');
    is($call->{head}{'x-tls'}, 'up.test', 'TLS, with a name');
    $up->go($call, ['event', '{"jsonrpc":"2.0","method":"notifications/'
        . 'message","params":{"level":"info","data":"over TLS"}}'], ['hold']);
    is($g->until($id, sub { ($_[0]{statusMessage} // '') eq 'over TLS' }, 15)
       ->{statusMessage}, 'over TLS', 'events come as they are sent');
    $up->go($call, ['result', '{"a":1.0}']);
    completes($id, 'and the end');

    $id = $g->task('slow');
    $call = $up->call('slow', 2);
    $c->legacy('tasks/cancel', { taskId => $id });
    ok($up->left($call, 15), 'cancelled over TLS');
    is($c->legacy('ping')->{json}{id}, 1, 'what is passed goes there too');
}

configure("https://127.0.0.1:$tls/mcp", 'proxy_ssl_verify on;'
          . ' proxy_ssl_trusted_certificate cert.pem; proxy_ssl_name not.it;');
$g->fails($g->task('slow'), 'upstream_unreachable',
          'a certificate of somebody else', 15);
is($up->count('slow'), 0, 'upstream gets nothing');

# --- variables, headers

configure('http://$target/mcp?x=1', 'set $target 127.0.0.1:' . $up->{port}
          . '; proxy_set_header X-Tool $mcp_tool;'
          . ' proxy_set_header X-User $http_x_user;'
          . ' proxy_set_header Cookie "";'
          . ' proxy_set_header X-From $remote_addr;');

{
    completes($g->task('tool', headers => { Cookie => 'a=b' }),
              'a proxy_pass with variables');
    my $call = $up->call('tool');
    is($call->{path}, '/mcp?x=1', 'the path');
    is($call->{head}{'x-tool'}, 'tool', 'a variable of ours in a header');
    is($call->{head}{'x-user'}, 'ann', 'one of the client');
    is($call->{head}{'x-from'}, '127.0.0.1', 'where it came from');
    is($call->{head}{cookie}, undef, 'what is removed is removed');
}

# one that is particular about names
configure("http://127.0.0.1:$up->{port}/mcp",
          'proxy_set_header Host mcp.example.com;');
$up->set(host => 'mcp.example.com');
completes($g->task('tool'), 'an upstream that checks Host');
$up->set(host => 'another.example.com');
is($g->ends($g->task('tool'), 15)->{error}{code}, -32000,
   'and refuses others, which it says with an error');
$up->set(host => undef);

# --- as in the documentation: nothing is said about buffering

my $conf = $g->config(to => "http://127.0.0.1:$up->{port}/mcp", proxy => '');
$conf->{server} =~ s/proxy_buffering off;//;
{
    reload($conf);
    my $id = $g->task('slow');
    my $call = $up->call('slow');
    $up->go($call, ['event', '{"jsonrpc":"2.0","method":"notifications/'
        . 'message","params":{"level":"info","data":"at once"}}'], ['hold']);
    is($g->until($id, sub { ($_[0]{statusMessage} // '') eq 'at once' }, 10)
       ->{statusMessage}, 'at once', 'events of a task come at once');
    $up->go($call, ['result', '{}']);
    completes($id, 'and the end');

    my $stream = $c->stream($c->legacy_bytes('tools/call', { name => 'slow' }));
    $call = $up->call('slow', 2);
    $up->go($call, ['event', '{"n":1}'], ['hold']);
    is(($stream->message(10) || {})->{n}, 1, 'and so do those of a plain call');
    $stream->close();
}

# HTTP/1.0 without chunks
$conf->{server} =~ s/proxy_http_version 1\.1;/proxy_http_version 1.0;/;
{
    reload($conf);
    my $id = $g->task('slow');
    ok($g->go('slow', ['result', '{"a":1.0}']), 'a call over HTTP/1.0');
    completes($id, 'completes');
}

$g->done('\[error\]');
done_testing();
