# From where requests may come: Origin and Host.

use warnings;
use strict;

use FindBin;
use lib "$FindBin::Bin/lib";

use Test::More;

use MCPTasks qw/ free_port workers /;

my $t = MCPTasks->new(
    workers => workers(),
    http => 'mcp_tasks_zone zone=z:1m;',
    server => <<'END');
    server_name api.example.com *.wild.example .dot.example tail.* ~^re\d+\.x$;

    location /mcp { mcp_tasks zone=z; }
    location /worker { mcp_tasks_worker zone=z; }
    location /names {
        mcp_tasks zone=z;
        mcp_tasks_allow_origin APP.example.net *.apps.example
                               https://only.example:8443;
    }
    location /any { mcp_tasks zone=z; mcp_tasks_allow_origin any; }
    location /outer {
        mcp_tasks_allow_origin outer.example;
        location /outer/same { mcp_tasks zone=z; }
        location /outer/other {
            mcp_tasks zone=z;
            mcp_tasks_allow_origin other.example;
        }
    }
END

my $ping = '{"jsonrpc":"2.0","id":1,"method":"ping"}';

my $forbidden = '{"jsonrpc":"2.0","error":{"code":-32600,"message":'
                . '"Invalid Request: Origin or Host is not allowed"}}';


sub may {
    my ($uri, $headers, $yes, $name) = @_;
    my $body = $uri eq '/worker'
               ? '{"jsonrpc":"2.0","id":1,"method":"worker/claim","params":'
                 . '{"tools":["x"]}}'
               : $ping;
    my $res = $t->post($uri, $body, $headers);

    if ($yes) {
        is($res->{status}, 200, "$name: allowed") or diag($res->{body});

    } else {
        is($res->{status}, 403, "$name: forbidden");
        is($res->{body}, $forbidden, "$name: says so");
    }
}


# Host: names of the server, and of the machine to itself

for my $host ('localhost', 'localhost:8080', '127.0.0.1', '127.0.0.1:1',
              '[::1]', '[::1]:80', 'LOCALHOST', 'api.example.com',
              'API.Example.com:443', 'a.wild.example', 'a.b.wild.example',
              'dot.example', 'a.dot.example', 'tail.net', 'tail.example.org',
              're7.x')
{
    may('/mcp', { Host => $host }, 1, "Host $host");
    may('/worker', { Host => $host }, 1, "Host $host for workers");
    may('/mcp', { Origin => "http://$host" }, 1, "Origin http://$host");
}

for my $host ('evil.example', 'localhost.evil.example', 'evillocalhost',
              'api.example.com.evil.example', 'wild.example',
              'evilwild.example', 'evildot.example', 'tail', 'tailevil.net',
              'x.tail.net', 're.x', '127.0.0.2', '10.0.0.1', '[::2]', '_')
{
    may('/mcp', { Host => $host }, 0, "Host $host");
    may('/worker', { Host => $host }, 0, "Host $host for workers");
    may('/mcp', { Origin => "http://$host" }, 0, "Origin http://$host");
}

may('/mcp', { Host => undef, version => 'HTTP/1.0' }, 1, 'no Host at all');


# Origin

for my $origin ('https://api.example.com', 'https://localhost:3000',
                'http://[::1]:3000', 'vscode-webview://localhost')
{
    may('/mcp', { Origin => $origin }, 1, "Origin $origin");
}

for my $origin ('null', '', 'localhost', 'http:localhost', 'http:/localhost',
                'http://', 'http://localhost@evil.example',
                'http://evil.example/localhost', 'http://[::1', '://localhos',
                'file://', 'http://evil.example:80')
{
    may('/mcp', { Origin => $origin }, 0, "Origin '$origin'");
}

may('/mcp', { Origin => ['http://localhost', 'http://evil.example'] }, 0,
    'two Origins');
may('/mcp', { Origin => ['http://localhost', 'http://localhost'] }, 0,
    'an Origin twice');

for my $method ('GET', 'DELETE', 'OPTIONS') {
    is($t->request($method, '/mcp', { Origin => 'http://evil.example' })
       ->{status}, 403, "$method from elsewhere");
}


# mcp_tasks_allow_origin

for my $origin ('http://app.example.net', 'https://app.example.net:8443',
                'https://a.apps.example', 'https://only.example:8443',
                'https://localhost')
{
    may('/names', { Origin => $origin }, 1, "listed: $origin");
}

for my $origin ('https://example.net', 'https://apps.example',
                'https://only.example', 'http://only.example:8443',
                'https://evilapps.example', 'null')
{
    may('/names', { Origin => $origin }, 0, "not listed: $origin");
}

may('/names', { Host => 'app.example.net' }, 1, 'Host is listed');
may('/names', { Host => 'x.apps.example' }, 1, 'Host fits a pattern');
may('/names', { Host => 'other.example' }, 0, 'Host is not listed');

for my $origin ('http://evil.example', 'null', 'x', '') {
    may('/any', { Origin => $origin, Host => 'evil.example' }, 1,
        "any: '$origin'");
}

may('/outer/same', { Origin => 'http://outer.example' }, 1, 'inherited');
may('/outer/other', { Origin => 'http://other.example' }, 1, 'its own');
may('/outer/other', { Origin => 'http://outer.example' }, 0, 'and only that');


# Names are kept when the configuration is read anew

$t->reload();
ok(MCPTasks::wait_for { $t->log() =~ /gracefully shutting down/ }, 'a reload');

may('/mcp', { Host => 'api.example.com' }, 1, 'after a reload');
may('/mcp', { Host => 'evil.example' }, 0, 'after a reload');


# With TLS, a page that came without it is one of another origin: on surfaces
# that take none but their own

my $tls = free_port();
is(system('openssl req -x509 -newkey rsa:2048 -nodes -days 2'
          . " -subj /CN=localhost -keyout $t->{dir}/key.pem"
          . " -out $t->{dir}/cert.pem > /dev/null 2>&1"), 0, 'a certificate');
$t->configure(server => $t->{server} . <<"END");
    listen 127.0.0.1:$tls ssl;
    ssl_certificate cert.pem;
    ssl_certificate_key key.pem;
    location /status { mcp_tasks_status zone=z; }
    location /console/ { mcp_tasks_console zone=z; }
END
$t->reload();

for my $case (["https://localhost:$tls", 200], ["http://localhost:$tls", 403],
              ['https://localhost', 403], ["https://127.0.0.1:$tls", 403])
{
    my ($origin, $status) = @$case;

    for (['/status'], ['/console/api/zone'],
         ['/worker', '-H', 'Content-Type: application/json', '-d',
          '{"jsonrpc":"2.0","id":1,"method":"worker/claim","params":'
          . '{"tools":["x"]}}'])
    {
        my ($uri, @more) = @$_;
        my $got;

        ok(MCPTasks::wait_for {
            open(my $curl, '-|', 'curl', '-sk', '-o', '/dev/null', '-w',
                 '%{http_code}', '-H', "Origin: $origin", @more,
                 "https://localhost:$tls$uri") or die "curl: $!\n";
            $got = <$curl>;
            return $got ne '000';
        }, 'an answer');
        is($got, $status, "$uri over TLS, Origin $origin");
    }
}

ok($t->stop(), 'nginx stops');
is($t->faults(), '', 'nothing bad in the log');


for my $conf ('mcp_tasks_allow_origin;',
              'mcp_tasks_allow_origin a; mcp_tasks_allow_origin b;')
{
    $t->configure(server => "location /mcp { mcp_tasks zone=z; $conf }");
    my ($ok, $said) = $t->check();
    ok(!$ok, "refused: $conf");
    like($said, qr/\[emerg\] .*"mcp_tasks_allow_origin"/, 'says why');
}

done_testing();
