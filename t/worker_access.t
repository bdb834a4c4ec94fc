# Which workers may connect: by address and by name.

use warnings;
use strict;

use FindBin;
use lib "$FindBin::Bin/lib";

use IO::Socket::UNIX;
use Test::More;

use MCPWorker qw/ body create decoded finish /;

my $dir = "$ENV{MCP_TASKS_BUILD}/servroot-worker_access";

my $t = MCPWorker::start(
    listen => "reuseport;\n        listen  unix:$dir/sock",
    server => <<'END');
        server_name  one.example *.two.example .three.example ~^re\d\.example$;

        set_real_ip_from  127.0.0.1;
        real_ip_header    X-Forwarded-For;

        location /public {
            mcp_tasks_worker  zone=z public;
        }

        location /denied {
            mcp_tasks_worker  zone=z public;
            deny              all;
        }
END


# --- by address

{
    my $text = body('worker/claim', '{"tools":["plain"]}');
    my $id = create('plain');

    for my $from ('192.0.2.1', '10.0.0.1', '126.255.255.255', '128.0.0.1',
                  '2001:db8::1', '::2', '::ffff:192.0.2.1', 'fe80::1')
    {
        my $res = $t->post('/worker', $text, { 'X-Forwarded-For' => $from });
        is($res->{status}, 403, "no worker from $from");
        unlike($res->{body}, qr/$id/, 'gets a task');
    }

    for my $from ('127.0.0.1', '127.255.0.9', '::1', '::ffff:127.0.0.1') {
        my $res = $t->post('/worker', body('worker/claim', '{"tools":["x"]}'),
                           { 'X-Forwarded-For' => $from });
        is($res->{status}, 200, "a worker from $from");
    }

    for my $headers ({}, { 'X-Forwarded-For' => '192.0.2.1' }) {
        is($t->post('/denied', $text, $headers)->{status}, 403,
           'nginx itself denies');
    }

    my $got = decoded($t->post('/public', $text,
                                  { 'X-Forwarded-For' => '192.0.2.1' }));
    is($got->{result}{tasks}[0]{taskId}, $id, 'from anywhere if public');
    finish($got->{result}{tasks}[0]);

    $id = create('plain');
    my $s = IO::Socket::UNIX->new(Peer => "$dir/sock");
    ok($s, 'a unix socket');
    $got = decoded($t->post('/worker', $text, {}, $s));
    is($got->{result}{tasks}[0]{taskId}, $id, 'is of this machine');
    finish($got->{result}{tasks}[0]);
}


# --- by name

{
    my $text = body('worker/claim', '{"tools":["plain"]}');

    for my $name (qw/ localhost 127.0.0.1 [::1] one.example ONE.Example
                      a.two.example a.b.two.example three.example
                      a.three.example re1.example localhost:1234
                      one.example:80 /)
    {
        is($t->post('/worker', $text, { Host => $name })->{status}, 200,
           "Host: $name");
        is($t->post('/worker', $text, { Host => $name,
                                        Origin => "http://$name" })->{status},
           200, "and the Origin http://$name");
        is($t->post('/worker', $text, { Host => $name,
                                        Origin => "http://$name:4711" })
           ->{status}, 403, "not for the Origin http://$name:4711");
        is($t->post('/worker', $text, { Host => 'localhost:4711',
                                        Origin => "http://$name" })->{status},
           403, "nor with another Host");
    }

    for my $name (qw/ example two.example xone.example one.example.org
                      re.example re11.example xthree.example 127.0.0.2
                      localhost.example /)
    {
        is($t->post('/worker', $text, { Host => $name })->{status}, 403,
           "not for Host: $name");
        is($t->post('/worker', $text, { Origin => "http://$name" })->{status},
           403, "not for Origin: http://$name");
    }

    for my $origin ('null', '', 'http://', 'one.example', 'file://',
                    'vscode-webview://localhost', 'ftp://localhost',
                    'http:localhost', 'http://localhost/', 'http://localhost.',
                    'http://localhost@evil.example')
    {
        is($t->post('/worker', $text, { Origin => $origin })->{status}, 403,
           "not for Origin: $origin");
    }
}

MCPWorker::done(qr/access forbidden by rule/);

done_testing();
