# The client's headers, all that nginx knows and some others, empty and filled:
# a call in the background has them as one that is passed.

use warnings;
use strict;

use FindBin;
use lib "$FindBin::Bin/lib";

use Test::More;

use MCPClient;
use MCPGateway;
use MCPTasks;

my $g = MCPGateway->new(
    server => 'set_real_ip_from 127.0.0.1; real_ip_header X-Forwarded-For; '
              . 'real_ip_recursive on;',
    tool => ['echo support=optional'],
    proxy => 'proxy_set_header X-Addr $remote_addr; '
             . 'proxy_set_header X-Agent "<$http_user_agent>"; '
             . 'proxy_set_header X-Name "<$remote_user>"; '
             . 'proxy_set_header X-C "<$cookie_c>"; ');
my ($up, $t, $c) = @{$g}{qw/ up t c /};
my ($pid) = $t->worker_pids();

# about the answer, which is not the client's: whole, and as it is
my @differ = qw/ content-length accept-encoding range if-range if-match
                 if-none-match if-modified-since if-unmodified-since /;

# what is left out here is nginx's to refuse, or not for upstream
my %filled = (
    'If-Modified-Since' => 'Thu, 01 Jan 1970 00:00:01 GMT',
    'If-Unmodified-Since' => 'Thu, 01 Jan 2037 00:00:01 GMT',
    'If-Match' => '"a"', 'If-None-Match' => '"b"', 'If-Range' => '"c"',
    'User-Agent' => 'Mozilla/4.0 (compatible; MSIE 5.0; Opera 9)',
    Referer => 'http://127.0.0.1/', 'Content-Range' => 'bytes 0-1/2',
    'Content-Encoding' => 'identity', 'Content-Language' => 'en',
    Range => 'bytes=0-0', TE => 'trailers', Expect => 'nothing',
    Upgrade => 'h2c', 'Accept-Encoding' => 'gzip', Via => '1.1 proxy',
    Authorization => 'Basic YW5uOnNlY3JldA==', 'Keep-Alive' => '5',
    'X-Forwarded-For' => '192.0.2.7, 127.0.0.1', 'X-Real-IP' => '192.0.2.8',
    'Accept-Language' => 'en', Depth => '1', Destination => '/x',
    Overwrite => 'T', Date => 'Thu, 01 Jan 1970 00:00:01 GMT',
    Cookie => 'a=1; c=2', Connection => 'keep-alive',
    'Proxy-Authorization' => 'Basic YQ==',
    Forwarded => 'for=192.0.2.9', 'X-Other' => 'y', 'Sec-Fetch-Mode' => 'cors',
    'Last-Event-ID' => '7', 'Mcp-Session-Id' => 's',
);


sub heads {
    my ($call) = @_;
    my %head = %{ $call->{head} || {} };
    delete @head{@differ};
    return \%head;
}


# the same call, passed and in the background, and what upstream has got
sub compare {
    my ($name, $headers) = @_;
    my $n = $up->count('echo');
    my $res = $c->legacy('tools/call', { name => 'echo', arguments => {} },
                         headers => $headers);
    my $passed = $up->call('echo', $n + 1);
    is($res->{status}, 200, "$name: a call that is passed");
    my $id = $g->task('echo', headers => $headers);
    is($g->ends($id, 5)->{status}, 'completed', "$name: a task");
    my $call = $up->call('echo', $n + 2, 5) || {};
    is_deeply(heads($call), heads($passed), "$name: with the same headers");
    return $call->{head};
}


# --- one by one

for my $name (sort keys %filled) {
    for my $value ('', $filled{$name}) {
        compare("$name: \"$value\"", { $name => $value });
    }
}

# --- all of them

{
    my %empty = map { $_ => '' } keys %filled;
    my $head = compare('all empty', \%empty);
    is("$head->{'x-addr'} $head->{'x-agent'} $head->{'x-name'} $head->{'x-c'}",
       '127.0.0.1 <> <> <>', 'all empty: what is made of them');

    $head = compare('all filled', \%filled);
    is("$head->{'x-addr'} $head->{'x-agent'} $head->{'x-name'} $head->{'x-c'}",
       "192.0.2.7 <$filled{'User-Agent'}> <ann> <2>",
       'all filled: what is made of them');

    is_deeply([map { $head->{lc $_} } qw/ User-Agent Authorization Cookie
                                          Via X-Forwarded-For /],
              [@filled{qw/ User-Agent Authorization Cookie Via
                           X-Forwarded-For /}], 'as they were sent');
}

# --- several of one name, and more than fit into one part of nginx's list

{
    my $head = compare('several', {
        Cookie => ['a=1', 'c=3', ''], 'X-Forwarded-For' => ['192.0.2.1', '',
                                                            '192.0.2.2'],
        'X-Other' => ['1', '', '2'], map { ("X-$_" => $_ % 3 ? $_ : '') }
                                     1 .. 60 });
    is("$head->{'x-addr'} $head->{'x-c'} $head->{'x-60'} $head->{'x-59'}",
       '192.0.2.2 <3>  59', 'several: what is made of them');
}

is_deeply([$t->worker_pids()], [$pid], 'it is the same process');
$g->done();
done_testing();
