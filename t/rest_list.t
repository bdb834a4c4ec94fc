# GET tasks: an owner's tasks, in pages.

use warnings;
use strict;

use FindBin;
use lib "$FindBin::Bin/lib";

use Test::More;

use MCPClient;
use MCPRest qw/ detail ids page problem /;
use MCPTasks qw/ workers /;

my $t = MCPTasks->new(
    workers => workers(),
    http => 'mcp_tasks_zone zone=z:8m; mcp_tasks_zone zone=other:1m;',
    surfaces => [qw/ mcp worker probe /],
    server => 'mcp_tasks_owner $http_x_user;'
              . ' location /other { mcp_tasks zone=other; }');

my $c = MCPClient->new($t);
my $ann = $c->user('ann');
my $bob = $c->user('bob');
my $bad_cursor = 'cursor must be nextCursor of an earlier page';
my $bad_status = 'status must be working, input_required, completed, failed or '
                 . 'cancelled';


sub add {
    my ($who, $tool, $n) = @_;
    utf8::encode($tool);
    my @ids = map { $who->create_rest($tool) } 1 .. $n || 1;
    return wantarray ? @ids : $ids[0];
}


sub refused {
    my ($who, $query, $why) = @_;
    problem($who->rest("tasks?$query"), 400, 'invalid_argument',
            detail($why), substr($query, 0, 60));
}


# --- nobody, and who has none

problem($c->rest('tasks'), 403, 'owner_required', undef, 'nobody');
problem($c->rest('tasks?limit=x'), 403, 'owner_required', undef,
        'nobody, whatever is asked');

{
    my $res = $ann->rest('tasks');
    is($res->{status}, 200, 'who has none');
    is($res->{header}{'content-type'}, 'application/json', 'as JSON');
    is($res->{header}{'cache-control'}, 'no-store', 'not to be kept');
    ok(!exists $res->{header}{etag}, 'a list has no version');
    is($res->{body}, '{"tasks":[]}', 'none');
}

# --- all of them, the newest first

my @ids = add($ann, 'a', 25);
my @bobs = add($bob, 'a', 5);
add($c, 'a', 3);
@ids = reverse @ids;
@bobs = reverse @bobs;

is_deeply(ids($ann, ''), \@ids, 'all of them, the newest first');
is_deeply(ids($bob, ''), \@bobs, 'to each his own');
is_deeply(ids($ann->as(uri => '/other'), ''), [], 'other zones have others');

{
    my $res = $ann->rest('tasks?limit=1');
    my $one = $ann->rest("tasks/$ids[0]");
    like($res->{body}, qr/\A\{"tasks":\[\Q$one->{body}\E\],
                          "nextCursor":"([0-9a-f]{64})"\}\z/x,
         'each as it is read');
}

# each process has the same
{
    my $via = $t->connect_all();
    is_deeply(ids($ann->as(via => $via->{$_}), ''), \@ids, 'in all processes')
        for sort keys %$via;
}

# --- pages, to the end

for my $limit (1, 7, 12, 24, 25, 26, 100) {
    my (@got, $cursor, @sizes);

    for (1 .. 30) {
        my ($page, $next) = page($ann, "limit=$limit"
                                 . (defined $cursor ? "&cursor=$cursor" : ''));
        push @got, @$page;
        push @sizes, scalar @$page;
        $cursor = $next;
        last unless defined $cursor;
    }

    is_deeply(\@got, \@ids, "pages of $limit: each once, in order");
    is("@sizes", join(' ', ($limit) x int(25 / $limit), 25 % $limit || ()),
       'and full');
}

{
    my (undef, $cursor) = page($ann, 'limit=10');
    my $new = add($ann, 'late');
    is_deeply(ids($ann, "cursor=$cursor&limit=5"), [@ids[10 .. 14]],
              'what is new does not shift a page');
    $t->probe("op=delete&id=$new");
    $t->probe("op=delete&id=$ids[9]");
    $t->probe("op=delete&id=$ids[10]");
    is_deeply(ids($ann, "cursor=$cursor&limit=5"), [@ids[11 .. 15]],
              'nor does what is gone');
    splice(@ids, 9, 2);

    # by escapes, or twice: the first counts
    my $hex = join '', map { sprintf '%%%02x', ord } split //, $cursor;
    is_deeply(ids($ann, "limit=2&cursor=$hex&cursor=x&limit=x"),
              [@ids[9, 10]], 'escapes in a cursor');

    for my $bad ('x', '0', ' ', $cursor . '0', substr($cursor, 1),
                 substr($cursor, 0, 47) . ($cursor =~ /0$/ ? 1 : 0),
                 ($cursor =~ /^0/ ? 1 : 0) . substr($cursor, 1),
                 '0' x 48, 'f' x 48, '%00', "$cursor%00", '%ff' x 48,
                 'g' x 48, '%27%22%3c', 'z' x 3000)
    {
        refused($ann, "cursor=" . $bad =~ s/ /%20/gr, $bad_cursor);
    }

    refused($bob, "cursor=$cursor", $bad_cursor);
    refused($ann->as(uri => '/other'), "cursor=$cursor", $bad_cursor);
    problem($c->rest("tasks?cursor=$cursor"), 403, 'owner_required', undef,
            'nobody with a cursor');
    is(scalar @{ ids($ann, 'cursor=') }, 23, 'an empty one is none');
}

# --- how many

is(scalar @{ ids($ann, "limit=$_") }, $_ > 23 ? 23 : $_, "limit=$_")
    for 1, 2, 23, 100;
is(scalar @{ ids($ann, 'limit=007') }, 7, 'limit=007');
refused($ann, "limit=$_", 'limit must be an integer from 1 to 100')
    for '', 0, 101, -1, '+1', '1.5', 'x', '9' x 30, '%31';

add($ann, 'many', 60);
is(scalar @{ ids($ann, '') }, 50, 'fifty, if nothing is said');
is(scalar @{ ids($ann, 'limit=100') }, 83, 'or more');

# --- by tool

{
    my %made = map { $_ => add($ann, $_) }
               'b c', 'd+e', 'f&g=h', "\x{fc}", '%41', 'a/b', 'B', '"';

    for (['b%20c', 'b c'], ['b+c', 'b c'], ['d%2Be', 'd+e'], ['d%2be', 'd+e'],
         ['f%26g%3Dh', 'f&g=h'], ['%C3%BC', "\x{fc}"], ["\xc3\xbc", "\x{fc}"],
         ['%2541', '%41'], ['a/b', 'a/b'], ['B', 'B'], ['%42', 'B'],
         ['%22', '"'])
    {
        my ($text, $tool) = @$_;
        is_deeply(ids($ann, "tool=$text"), [$made{$tool}], "tool=$text");
        is_deeply(ids($bob, "tool=$text"), [], 'not for others');
    }

    is_deeply(ids($ann, "tool=$_"), [], "tool=$_: none")
        for 'b', 'd+e', 'f', 'no', '%00', 'a%00', 'x' x 2000;

    for my $name (qw/ tool status cursor /) {
        refused($ann, "$name=$_", 'invalid percent-encoding in the query')
            for '%', '%4', 'a%', '%zz', '%4g', 'a%%41', '%-1';
    }

    is_deeply(ids($bob, 'tool=a'), \@bobs, 'of a tool that others use');
    is(scalar @{ ids($ann, 'tool=&limit=100') }, 91, 'an empty one is any');
    is(scalar @{ ids($ann, 'Tool=B&limit=100&tool=a') }, 1,
       'names of arguments have no case, as in nginx');
}

# --- by status

{
    my $eve = $c->user('eve');
    my %at = map { $_ => add($eve, "s-$_") }
             qw/ working running completed isError failed cancelled asks /;
    my %held = map { $_ => $c->claim("s-$_") }
               qw/ running completed isError failed asks /;

    $c->complete($held{completed}, { content => [] });
    $c->complete($held{isError}, '{"content":[],"isError":true}');
    $c->held('fail', $held{failed}, error => { code => 1, message => 'm' });
    $c->held('ask', $held{asks}, inputRequests => {
        q => MCPClient::form() });
    $eve->rest_post("tasks/$at{cancelled}/cancel");

    my %by = (working => [qw/ running working /],
              input_required => [qw/ asks /],
              completed => [qw/ isError completed /],
              failed => [qw/ failed /], cancelled => [qw/ cancelled /]);

    for my $status (sort keys %by) {
        is_deeply(ids($eve, "status=$status"), [@at{@{ $by{$status} }}],
                  "status=$status");
        is_deeply(ids($bob, "status=$status"),
                  $status eq 'working' ? \@bobs : [], 'of others: theirs');
    }

    is_deeply(ids($eve, 'status=work%69ng&tool=s-running'), [$at{running}],
              'with a tool');
    is_deeply(ids($eve, 'status=failed&tool=s-running'), [], 'or none');
    is(scalar @{ ids($eve, 'status=') }, 7, 'an empty one is any');
    refused($eve, "status=$_", $bad_status)
        for 'x', 'Working', 'queued', 'running', 'working,failed', '%00',
            'working%20', 'x' x 3000;

    # in short
    for my $task (@{ $eve->rest('tasks')->{json}{tasks} }) {
        is(join(' ', grep { exists $task->{$_} }
                     qw/ result error inputRequests /), '',
           "$task->{tool}: in short");
    }

    # pages of what a filter leaves
    add($eve, 's-working', 9);
    my ($first, $cursor) = page($eve, 'tool=s-working&limit=6');
    my ($second, $end) = page($eve, "tool=s-working&limit=6&cursor=$cursor");
    is(@$first . ' ' . @$second, '6 4', 'pages of what a filter leaves');
    is($end, undef, 'and the end');
    is($second->[-1], $at{working}, 'the oldest last');
}

# what has expired is not there
$t->probe('op=create&owner=kim&tool=x&params={}&ttl=1');
{
    my $kim = $c->user('kim');
    ok(MCPTasks::wait_for(sub {
        $kim->rest('tasks')->{body} eq '{"tasks":[]}' }), 'expired');
}

# a filter that matches little ends a page early, but not the list
{
    my $zed = $c->user('zed');
    my $old = $t->probe('op=create&owner=zed&tool=rare&params={}');
    $t->probe('op=create&owner=zed&tool=common&params={}') for 1 .. 1500;
    my ($page, $cursor) = page($zed, 'tool=rare');
    is_deeply($page, [], 'a page of nothing');
    ($page, $cursor) = page($zed, "tool=rare&cursor=$cursor");
    is_deeply($page, [$old->{id}], 'and more on the next one');
    is($cursor, undef, 'which is the last');
}

ok($t->stop(), 'nginx stops');
is($t->faults(), '', 'nothing in the log that should not be');

done_testing();
