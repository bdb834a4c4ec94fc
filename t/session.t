# Sessions of the legacy era.

use warnings;
use strict;

use FindBin;
use lib "$FindBin::Bin/lib";

use Test::More;

use MCPClient;
use MCPTasks qw/ wait_for workers /;

my $t = MCPTasks->new(
    workers => workers(),
    http => 'mcp_tasks_zone zone=z:1m; mcp_tasks_zone zone=y:1m;',
    server => <<'END');
    location /mcp { mcp_tasks zone=z; mcp_tasks_owner $http_x_user; }
    location /other { mcp_tasks zone=y; mcp_tasks_owner $http_x_user; }
END

my $ann = MCPClient->new($t, headers => { 'X-User' => 'ann' });
my $bob = $ann->as(headers => { 'X-User' => 'bob' });

my %init = (protocolVersion => '2025-11-25', capabilities => {},
            clientInfo => { name => 'x', version => '1' });

my $none = '{"jsonrpc":"2.0","id":1,"error":{"code":-32001,"message":'
           . '"Session not found"}}';


sub session {
    my ($c) = @_;
    return $c->legacy('initialize', \%init)->{header}{'mcp-session-id'};
}


sub ping {
    my ($c, $session) = @_;
    return $c->legacy('ping', undef,
                      headers => { 'Mcp-Session-Id' => $session });
}


sub lives {
    my ($c, $session, $name) = @_;
    my $res = ping($c, $session);
    is($res->{status}, 200, $name) or diag($res->{body});
}


sub unknown {
    my ($c, $session, $name) = @_;
    my $res = ping($c, $session);
    is($res->{status}, 404, "$name: status");
    is($res->{body}, $none, "$name: body");
}


sub finish {
    my ($c, $session) = @_;
    return $t->request('DELETE', $c->{uri},
                       { %{ $c->{headers} },
                         defined $session ? ('Mcp-Session-Id' => $session)
                                          : () });
}


# What an id looks like

my %seen;

for (1 .. 200) {
    my $id = session($ann);
    $seen{$id}++ if $id =~ /\A[\x21-\x7e]{32,}\z/;
}

is(scalar(keys %seen), 200, 'ids are visible ASCII, long, and never twice');

# of each place in the id, how many different characters stood there
my @ids = keys %seen;
my ($dull, $len) = (0, length $ids[0]);

for my $i (0 .. $len - 1) {
    my %at = map { substr($_, $i, 1) => 1 } @ids;
    $dull++ if keys %at < 8;
}

is($dull, 4, 'the revision and the capabilities, two bytes, can be foreseen');
is($len, 64, '112 random bits, these two bytes, and a seal of 128');

is($ann->legacy('ping')->{header}{'mcp-session-id'}, undef,
   'only initialize gives one');


# Good ones and others

my $id = session($ann);

lives($ann, $id, 'a session on every worker') for 1 .. 8;
lives($ann, uc $id, 'hexadecimal in upper case');
is($ann->legacy('ping')->{status}, 200, 'none is fine');
is($ann->legacy('initialize', \%init)->{status}, 200,
   'a client may begin anew');

unknown($bob, $id, 'of somebody else');
unknown($ann->as(headers => {}), $id, 'of somebody, for nobody');
unknown($ann->as(uri => '/other'), $id, 'of another zone');
unknown($ann, '0' x length $id, 'all zeros');
unknown($ann, substr($id, 1), 'too short');
unknown($ann, "${id}0", 'too long');
unknown($ann, '', 'empty');
unknown($ann, 'g' x length $id, 'not hexadecimal');
unknown($ann, '\'; DROP TABLE', 'something else');

for my $i (0, 15, 16, 31, 32, 47, 48, 63) {
    my $forged = $id;
    substr($forged, $i, 1) =~ tr/0-9a-f/1-9a-f0/;
    unknown($ann, $forged, "one character changed, at $i");
}

is($ann->post({ jsonrpc => '2.0', method => 'notifications/initialized' },
              'Mcp-Session-Id' => $id)->{status}, 202,
   'a notification in a session');
is($ann->post({ jsonrpc => '2.0', method => 'notifications/initialized' },
              'Mcp-Session-Id' => 'x')->{status}, 404,
   'a notification in none of ours');

is($ann->modern('server/discover', {},
                headers => { 'Mcp-Session-Id' => 'x' })->{status}, 200,
   'the modern era knows no sessions');


# The end

my $second = session($ann);

my $res = finish($bob, $id);
is($res->{status}, 404, 'nobody ends the session of somebody else');
lives($ann, $id, 'it goes on');

$res = finish($ann, $id);
is($res->{status}, 204, 'a session is ended');
is($res->{body}, '', 'nothing in the answer');

unknown($ann, $id, 'ended, on every worker') for 1 .. 8;
is(finish($ann, $id)->{status}, 404, 'it ends once');
lives($ann, $second, 'another goes on');

$res = finish($ann);
is($res->{status}, 400, 'which session is to be ended?');
is($res->{body}, '{"jsonrpc":"2.0","error":{"code":-32600,"message":'
                 . '"Invalid Request: the Mcp-Session-Id header is '
                 . 'missing"}}',
   'says what is missing');

# a DELETE with a body, and what comes after it
my $s = $t->connect();
$res = $t->request('DELETE', '/mcp', { 'X-User' => 'ann',
                                       'Mcp-Session-Id' => session($ann) },
                   'x' x 5000, $s);
is($res->{status}, 204, 'a DELETE with a body');
is($t->post('/mcp', '{"jsonrpc":"2.0","id":1,"method":"ping"}',
            { 'X-User' => 'ann' }, $s)->{status}, 200,
   'the connection goes on');


# many are remembered, whatever their place

{
    my @ended = map { session($ann) } 1 .. 24;
    is(finish($ann, $_)->{status}, 204, 'one of many') for @ended;
    my $known = grep { finish($ann, $_)->{status} != 404 } @ended;
    is($known, 0, 'all of many are known to have ended');
}


# A reload

my %old = map { $_ => 1 } $t->worker_pids();
$t->reload();
ok(wait_for {
    my @now = $t->worker_pids();
    return @now == $t->{workers} && !grep { $old{$_} } @now;
}, 'a reload');

lives($ann, $second, 'after a reload');
unknown($ann, $id, 'ended before the reload');

# another process is another secret
ok($t->stop() && $t->start(), 'a restart');
unknown($ann, $second, 'after a restart');

ok($t->stop(), 'nginx stops');
is($t->faults(), '', 'nothing bad in the log');

done_testing();
