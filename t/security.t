# conf/hardened.conf does what docs/security.md says of it, and the tests that
# docs/security.md names as its proof are there.

use warnings;
use strict;

use FindBin;
use lib "$FindBin::Bin/lib";

use IO::Socket::INET;
use IO::Socket::UNIX;
use JSON::PP;
use POSIX ();
use Test::More;

use MCPClient;
use MCPExample qw/ blocks section /;
use MCPFile qw/ slurp write_file /;
use MCPTasks qw/ free_port wait_for /;
use MCPUpstream;

my $root = "$FindBin::Bin/..";

# somebody who knows tokens
my $checker = <<'END';

    map $http_authorization $known {
        default             "";
        "Bearer ann-s3cret" ann;
        "Bearer bob-s3cret" bob;
    }

    server {
        listen  127.0.0.1:9000;
        access_log  off;
        add_header  WWW-Authenticate  Bearer  always;
        if ($known = "") { return 401; }
        add_header  X-User  $known;
        return  204;
    }
END

my $up = MCPUpstream->new(style => 'sse', on => {
    far => [['sse'], ['result', '{"content":[]}']] });

my %port = map { $_ => free_port() } qw/ checker status /;

my $t = MCPExample->new(
    module => $ENV{MCP_TASKS_MODULE}, workers => 2,
    conf => slurp("$root/conf/hardened.conf"),
    files => { 'tools.json' => slurp("$root/conf/tools.json") },
    change => sub {
        my ($self) = @_;
        certificate("$self->{dir}/mcp.example.com");

        s/(\}\s*)\z/$checker$1/;
        s/(listen +)443/${1}127.0.0.1:$self->{port}/g;
        s/127\.0\.0\.1:9000/127.0.0.1:$port{checker}/g;
        s/127\.0\.0\.1:9145/127.0.0.1:$port{status}/g;
        s/127\.0\.0\.1:3000/127.0.0.1:$up->{port}/g;
        s{/run/mcp-tasks}{$self->{dir}}g;
    });


sub certificate {
    my ($path) = @_;
    return if -e "$path.crt";
    system('openssl req -x509 -newkey rsa:2048 -nodes -days 1'
           . ' -subj /CN=mcp.example.com'
           . ' -addext subjectAltName=DNS:mcp.example.com'
           . " -keyout $path.key -out $path.crt 2> /dev/null") == 0
        or die "no certificate\n";
}


my ($good, $said) = $t->check();
ok($good, 'nginx -t') or diag($said);
unlike($said, qr/\[warn\]/, 'has nothing to say');


# status and body of what curl gets; a name is resolved to this machine
sub curl {
    my ($path, @more) = @_;
    my $port = $t->{port};
    my @command = ('curl', '-sS', '-i', '-m', '20', '--cacert',
                   "$t->{dir}/mcp.example.com.crt",
                   '--connect-to', "::127.0.0.1:$port",
                   @more, $path =~ /^http/ ? $path
                                           : "https://mcp.example.com$path");

    my $pid = open(my $fh, '-|');
    die "fork: $!\n" unless defined $pid;

    if ($pid == 0) {
        open(STDERR, '>&', \*STDOUT);
        exec(@command) or POSIX::_exit(127);
    }

    local $/;
    my $got = <$fh>;
    close($fh);
    my ($head, $body) = split /\r\n\r\n/, $got, 2;
    my ($status) = $head =~ m{^HTTP/\S+ (\d+)};
    return { status => $status || 0, head => $head, body => $body // $head };
}


sub as {
    my ($who, $path, @more) = @_;
    return curl($path, '-H', "Authorization: Bearer $who-s3cret", @more);
}


sub json {
    my ($body) = @_;
    return ('-H', 'Content-Type: application/json', '-d', $body);
}


sub code {
    my ($res, $status, $name) = @_;
    return is($res->{status}, $status, $name) || diag($res->{head});
}


my $make = '{"tool":"count","arguments":{"to":1,"note":"pAyLoAd-77"}}';

# --- who is nobody gets nothing

code(curl('/mcp/tasks', json($make)), 401, 'without a token');
code(curl('/mcp/tasks', '-H', 'Authorization: Bearer x', json($make)), 401,
     'with a wrong one');
like(curl('/mcp')->{head}, qr/^WWW-Authenticate: Bearer\r?$/mi,
     'it is told what is missing');

for my $path (qw{ /upstream /token /worker /metrics /status /console/ / }) {
    code(as('ann', $path), 404, "nothing is there: $path");
}

# --- others are others

my $res = as('ann', '/mcp/tasks?t0ken=in-the-query', json($make));
code($res, 201, 'ann makes a task');
my $id = decode_json($res->{body})->{taskId};

code(as('ann', "/mcp/tasks/$id"), 200, 'and reads it');
like(as('ann', '/mcp/tasks')->{body}, qr/$id/, 'and lists it');
is(as('bob', '/mcp/tasks')->{body}, '{"tasks":[]}', 'bob has none');

(my $never = $id) =~ tr/0-9a-f/1-9a-f0/;
is(as('bob', "/mcp/tasks/$id")->{body}, as('bob', "/mcp/tasks/$never")->{body},
   'and cannot tell it from one that never was');
code(as('bob', "/mcp/tasks/$id/cancel", json('{}')), 404, 'nor cancel it');

# --- names and origins

for my $case (['Origin: https://evil.example', 403],
              ['Origin: null', 403],
              ['Origin: https://mcp.example.com', 200])
{
    code(as('ann', "/mcp/tasks/$id", '-H', $case->[0]), $case->[1], $case->[0]);
}

$res = as('ann', "/mcp/tasks/$id", '-H', 'Host: evil.example');
is($res->{status}, 0, 'another Host: no answer');
like($res->{head}, qr/Empty reply/, 'at all');
is(curl('https://evil.example/mcp', '-k')->{status}, 0,
   'another name: no handshake');
code(curl("http://mcp.example.com/mcp"), 400, 'without TLS');

# --- too much

open(my $large, '>', "$t->{dir}/large") or die "large: $!\n";
print $large '{"tool":"count","arguments":{"x":"', 'x' x 300_000, '"}}';
close($large);
code(as('ann', '/mcp/tasks', json("\@$t->{dir}/large")), 413,
     'a body that is too large');
is(join(' ', glob "$t->{dir}/client_body/*"), '', 'no body is in a file');

# --- workers come by the socket, which nginx makes for everybody

my $socket = "$t->{dir}/worker.sock";
is(sprintf('%o', (stat $socket)[2] & 0777), '666', 'everybody may use it');


sub worker {
    my ($method, $params) = @_;
    my $s = IO::Socket::UNIX->new(Peer => $socket) or die "$socket: $!\n";
    MCPTasks::send_raw($s, MCPClient::bytes('/', MCPClient::rpc(
        "worker/$method", $params)));
    return decode_json(MCPTasks::read_response($s)->{body})->{result};
}


my $work = worker('claim', { tools => ['count'], waitMs => 5000 })->{tasks}[0];
is($work->{taskId}, $id, 'a worker gets the task');
worker('complete', { taskId => $id, lease => $work->{lease},
                     result => { content => [], large => 'r' x 400_000 } });
is(decode_json(as('ann', "/mcp/tasks/$id")->{body})->{status}, 'completed',
   'and may say more than clients may');

# --- the server behind the gateway is not shown what the client showed to us

$res = as('ann', '/gateway', '-H', 'Cookie: crumb=s3cret-crumb',
          '-H', 'X-User: root',
          '-H', 'Accept: application/json, text/event-stream',
          json('{"jsonrpc":"2.0","id":1,"method":"tools/call","params":'
               . '{"name":"far","arguments":{},"task":{}}}'));
code($res, 200, 'a call becomes a task');
my $call = $up->call('far');
is($call->{head}{authorization}, undef, 'without Authorization');
is($call->{head}{cookie}, undef, 'without Cookie');
is($call->{head}{'x-user'}, 'ann', 'but with who it is');

# --- operators, on this machine, by its name

sub operator {
    my ($uri, %headers) = @_;
    my $s = IO::Socket::INET->new(PeerAddr => '127.0.0.1',
                                  PeerPort => $port{status});
    return $t->request('GET', $uri, \%headers, undef, $s);
}

{
    my $got = operator('/metrics');
    is($got->{status}, 200, 'metrics');
    like($got->{body}, qr/^nginx_mcp_tasks_created_total/m, 'of the zone');
    unlike($got->{body}, qr/\bann\b|pAyLoAd|$id/, 'no owner, payload, or id');
    is(operator('/status', Host => 'evil.example')->{status}, 403,
       'not by a name that was bound to this address');

    is(operator('/console/')->{status}, 200, 'the console');
    is(operator('/console/api/tasks', Host => 'evil.example')->{status}, 403,
       'not by such a name');
    is(operator('/console/api/tasks', Origin => 'https://evil.example')
       ->{status}, 403, 'not for a page of others');
    is(decode_json(operator('/console/api/zone')->{body})->{admin},
       JSON::PP::false,
       'nobody changes anything there');
}

# --- headers and logs

$res = as('ann', "/mcp/tasks/$id?t0ken=in-the-query");
like($res->{head}, qr/^$_/mi, $_)
    for 'Strict-Transport-Security: max-age', 'X-Content-Type-Options: nosniff',
        'Cache-Control: no-store', 'Server: nginx\r';

my $log = wait_for {
    my $text = slurp("$t->{dir}/access.log");
    return $text =~ /tools\/call far/ ? $text : undef;
} || '';
ok($log =~ m{"ann" \[\S+\] POST /mcp/tasks 201 - tools/call count $id working},
     'the log says who did what');

for my $word (qw/ s3cret in-the-query pAyLoAd crumb= rrrr /) {
    is(index($log . slurp("$t->{dir}/error.log"), $word), -1,
       "logs: no $word");
}

# --- too many requests, and too many that stay: each status that came

sub statuses {
    my ($path, $n) = @_;
    my $res = as('ann', "$path?n=[1-$n]", '-N', '--parallel',
                 '--parallel-immediate', '--parallel-max', $n);
    my %count;
    $count{$_}++ for "$res->{head}\r\n\r\n$res->{body}"
                     =~ m{^HTTP/\S+ (\d+)}mg;
    return \%count;
}

{
    # what went before may have used up all that is let in at once
    my $got = wait_for {
        my $got = statuses("/mcp/tasks/$never", 200);
        return $got->{404} ? $got : undef;
    } || {};
    cmp_ok($got->{429} || 0, '>', 20, 'too many requests');
    cmp_ok($got->{404} || 0, '>', 0, 'but some are taken');
    is(scalar keys %$got, 2, 'and nothing else happens');

    my $streams = sub {
        return decode_json(operator('/status')->{body})->{streams};
    };
    my @pids;

    # as many as are let in at once
    my $more = sub {
        my $pid = fork();
        die "fork: $!\n" unless defined $pid;

        # a group of its own, with curl
        setpgrp($pid, $pid || $$);

        if ($pid == 0) {
            statuses('/mcp/tasks/events', 10);
            POSIX::_exit(0);
        }

        push @pids, $pid;
    };

    # until there are as many as may stay
    my $full = wait_for {
        $more->();
        wait_for { $streams->() >= 50 } 1;
        return $streams->() >= 50;
    };
    ok($full, 'fifty streams are open');
    cmp_ok($streams->(), '<=', 50, 'and not more');

    # those who came so far may have been just as many
    my $told = wait_for {
        $more->();
        return wait_for { slurp("$t->{dir}/error.log")
                          =~ /limiting connections by zone "open"/ } 1;
    };
    ok($told, 'others are told so');
    cmp_ok($streams->(), '<=', 50, 'and do not stay');

    # requests that are still on their way must not meet nginx while it stops
    kill('KILL', map { -$_ } @pids);
    waitpid($_, 0) for @pids;
    ok(scalar(wait_for { $streams->() == 0 }), 'no stream is left');
}

# --- what may be instead

{
    my $doc = slurp("$root/docs/security.md");
    my @parts = blocks(section("$root/docs/security.md",
                               '## Client identification'), 'nginx');
    is(@parts, 2, 'other ways to tell clients');

    my $conf = slurp("$root/conf/hardened.conf");
    $conf =~ /^( +)auth_request .*?;\n +auth_request_set .*?;\n/m
        or fail('where they go');

    for my $part (@parts) {
        my $text = slurp("$t->{dir}/nginx.conf");
        $text =~ s/^ +auth_request .*?;\n +auth_request_set .*?;\n//m;
        $text =~ s/mcp_tasks_owner  \$agent;/$part/;
        $text =~ s/clients\.crt/mcp.example.com.crt/;

        # what belongs to the server
        if ($text =~ s/(ssl_client_certificate .*?;)\n(ssl_verify.*?;)//) {
            my ($ca, $verify) = ($1, $2);
            $text =~ s/(ssl_protocols )/$ca\n$verify\n$1/;
        }

        write_file("$t->{dir}/other.conf", $text);

        my @command = $t->command();
        $command[-1] = "$t->{dir}/other.conf";
        my $said = `@command -t 2>&1`;
        is($?, 0, 'nginx -t takes ' . ($part =~ /^(\S+)/)[0]) or diag($said);
    }

    # all surfaces that there are
    my $module = slurp("$root/src/ngx_http_mcp_tasks_module.c");

    for my $surface (qw/ mcp_tasks mcp_tasks_worker mcp_tasks_status
                         mcp_tasks_console /)
    {
        next unless $module =~ /\{ ngx_string\("$surface"\)/;
        like($conf, qr/^\s+$surface\s+zone=/m, "it has $surface");
    }

    # what the checklist promises is in the file
    my ($list) = $doc =~ /^## Hardening\n(.*?)(?=^## )/ms;
    my @names = ($list // '') =~ /^- \[ \] .*$/mg;
    cmp_ok(scalar @names, '>', 10, 'the checklist was read');

    my @proofs = $doc =~ /`(t\/[\w\/.]+)`/g;
    cmp_ok(scalar @proofs, '>', 15, 'the tests that prove it were read');
    ok(-e "$root/$_", "$_ is there") for @proofs;
}

ok($t->stop(), 'nginx exits');
is($t->faults('limiting |too large body'), '',
   'nothing to complain about in the log');
$up->stop();

done_testing();
