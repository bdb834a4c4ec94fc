# Clients that read slowly, or not at all, while they wait: nothing is lost,
# nothing is sent twice, and nobody waits for them.

use warnings;
use strict;

use FindBin;
use lib "$FindBin::Bin/lib";

use JSON::PP;
use Test::More;
use Time::HiRes qw/ sleep time /;

use MCPClient;
use MCPTasks qw/ wait_for workers /;

my $h2 = MCPTasks::free_port();
my $t = MCPTasks->new(
    workers => workers(), listen => 'sndbuf=8k',
    tools => ['slow'],
    http => 'mcp_tasks_zone zone=z:16m; mcp_tasks_tools tools.json;',
    server => <<"END");
    listen 127.0.0.1:$h2 http2;
    client_max_body_size 4m;
    client_body_buffer_size 4m;
    mcp_tasks_limit payload=2m;
    location /mcp { mcp_tasks zone=z; }
    location /worker { mcp_tasks_worker zone=z; }
    location /limited { mcp_tasks zone=z; limit_rate 4000; }
    location /hasty { mcp_tasks zone=z; send_timeout 1s; }
    location /except { mcp_tasks zone=z; limit_except DELETE { allow all; } }
    location /if { mcp_tasks zone=z; if (\$http_x_if) { set \$x 1; } }
END

my $c = MCPClient->new($t);


# all that comes, with pauses
sub sip {
    my ($s, $until) = @_;
    my $text = '';

    for (1 .. 100_000) {
        sleep(0.001) if $_ % 4 == 0;
        sysread($s, $text, 8192, length $text) or last;
        last if $text =~ $until;
    }

    return $text;
}


# --- a large result of a plain call

my $big = 'x' x 700_000;
my $result = "{\"content\":[{\"type\":\"text\",\"text\":\"$big\"}]}";

{
    my $s = $t->connect_narrow();
    MCPTasks::send_raw($s, $c->legacy_bytes('tools/call', { name => 'slow' }));
    ok($c->complete($c->claim('slow'), $result)->{phase}, 'a large result');

    my $text = sip($s, qr/\}\}\z/);
    my ($head, $body) = split /\r\n\r\n/, $text, 2;
    is($body, "{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":$result}",
       'arrives whole, however slowly it is read');
}

# --- large arguments of a claim

{
    $c->legacy('tools/call', "{\"name\":\"slow\",\"task\":{},\"arguments\":"
                             . "{\"n\":$_,\"a\":\"$big\"}}") for 1 .. 3;

    my $s = $t->connect_narrow();
    MCPTasks::send_raw($s, MCPClient::bytes('/worker',
        '{"jsonrpc":"2.0","id":1,"method":"worker/claim","params":'
        . '{"tools":["slow"],"waitMs":1000}}'));
    my $text = sip($s, qr/"drain":false\}\}\z/);
    my ($head, $body) = split /\r\n\r\n/, $text, 2;
    my $tasks = JSON::PP->new->decode($body)->{result}{tasks};
    is(scalar @$tasks, 1, 'a claim that is read slowly has one task');
    is(length $tasks->[0]{arguments}{a}, 700_000, 'whole');

    my $rest = $c->worker('worker/claim', { tools => ['slow'], max => 32 });
    is_deeply([map { $_->{arguments}{n} } @{ $rest->{tasks} }], [2, 3],
              'and the others are still there');
}

# --- the same over HTTP/2, whose windows are smaller than that

{
    my $pid = open(my $curl, '-|', 'curl', '-sS', '--http2-prior-knowledge',
        '-H', 'Content-Type: application/json', '-m', '30', '--limit-rate',
        '2M', '-d', '{"jsonrpc":"2.0","id":1,"method":"tools/call","params":'
        . '{"name":"slow"}}', "http://127.0.0.1:$h2/mcp");
    $c->complete($c->claim('slow'), $result);
    my $body = do { local $/; <$curl> };
    close($curl);
    is($body, "{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":$result}",
       'a large result over HTTP/2');
}

# --- limit_rate: pauses, and then it goes on

my %form = (method => 'elicitation/create',
            params => { mode => 'form', message => 'm' x 3000,
                        requestedSchema => { type => 'object',
                                             properties => {} } });

{
    my $limited = $c->as(uri => '/limited')->in_session();
    my $stream = $limited->stream($limited->legacy_bytes('tools/call',
        { name => 'slow', _meta => { progressToken => 'p' } }));
    my $work = $c->claim('slow');

    $c->held('progress', $work, progress => 0.1, message => 'y' x 900);
    like($stream->next_data(10)->{data} || '', qr/"progress":0\.1/,
         'progress');

    $c->held('ask', $work, inputRequests => { a => \%form, b => \%form,
                                              c => \%form });
    my %asked;

    for (1 .. 3) {
        my $event = $stream->event(20);
        $asked{$1}++ if ($event->{data} || '') =~ m{"id":"[^"]*/(\w)"};
    }

    is_deeply(\%asked, { a => 1, b => 1, c => 1 }, 'three questions');

    # one is answered: the others are not asked again

    $c->post({ jsonrpc => '2.0', id => "$work->{taskId}/b",
               result => { action => 'decline' } });
    $c->held('progress', $work, message => 'still here');
    is($stream->event(1.5), undef, 'each of them once');

    $c->post({ jsonrpc => '2.0', id => "$work->{taskId}/$_",
               result => { action => 'decline' } }) for qw/ a c /;
    $c->complete($work, '{"content":[]}');
    like($stream->event(20)->{data} || '', qr/"result":\{"content":\[\]\}/,
         'and the answer comes');
}

# --- who stops reading is given up

{
    my $hasty = $c->as(uri => '/hasty')->in_session();
    my $s = $t->connect_narrow();
    MCPTasks::send_raw($s, $hasty->legacy_bytes('tools/call',
                                                { name => 'slow' }));
    my $work = $c->claim('slow');
    $form{params}{message} = 'z' x 600_000;
    $c->held('ask', $work, inputRequests => { q => \%form });

    ok((wait_for { $t->log() =~ /client timed out/ } 15),
       'a client that does not read is timed out');
    close($s);
}

# --- and does not keep an old worker process

{
    my $s = $t->connect_narrow();
    MCPTasks::send_raw($s, $c->legacy_bytes('tools/call', { name => 'slow' }));
    my $work = $c->claim('slow');
    $c->held('ask', $work, inputRequests => { q => \%form });
    sleep(0.5);

    my %old = map { $_ => 1 } $t->worker_pids();
    $t->reload();
    ok((wait_for { !grep { $old{$_} } $t->worker_pids() } 10),
       'nor does one that does not read keep an old process');
    close($s);
}

# --- blocks inside of a location

is($c->as(uri => '/except')->legacy('ping')->{status}, 200,
   'limit_except: the endpoint');
is($t->post('/if', MCPClient::rpc('ping'), { 'X-If' => 1 })->{status}, 200,
   'if: the endpoint');
is($t->post('/if/x', MCPClient::rpc('ping'), { 'X-If' => 1 })->{status}, 404,
   'if: not what lies below it');
is($t->post('/ifx', MCPClient::rpc('ping'), { 'X-If' => 1 })->{status}, 404,
   'if: nor beside it');

ok($t->stop(), 'nginx stops');
is($t->faults(), '', 'nothing else in the log');

done_testing();
