# The size of a zone: what is told to be enough is enough, and full is told.

use warnings;
use strict;

use FindBin;
use lib "$FindBin::Bin/lib";

use Test::More;

use MCPTasks qw/ wait_for /;

my $t = MCPTasks->new();
ok($t->stop(), 'nginx stops');

my $server = 'location /probe { mcp_tasks_probe zone=z; }';


sub check {
    my ($size, $max) = @_;
    $t->configure(http => "mcp_tasks_zone zone=z:$size max_tasks=$max;",
                  server => $server);
    return $t->check();
}


# --- the size that the refusal tells

for my $max (1000, 12_345, 100_000, 1_000_000) {
    my ($passed, $said) = check('64k', $max);
    ok(!$passed, "max_tasks=$max does not fit into 64k");

    my $words = "zone \"z\" is too small for max_tasks=$max, must be at "
                . 'least';
    my ($need) = $said =~ /\Q$words\E (\d+)k/;
    ok($need, "max_tasks=$max: it says what does") or next;

    ($passed, $said) = check("${need}k", $max);
    ok($passed, "max_tasks=$max: ${need}k does") or diag($said);

    ($passed) = check(int($need * 0.9) . 'k', $max);
    ok(!$passed, "max_tasks=$max: and not far less");
}

# --- as many as were asked for, each with some bytes

{
    my ($passed, $said) = check('64k', 1000);
    my ($need) = $said =~ /least (\d+)k/;

    $t->configure(http => "mcp_tasks_zone zone=z:${need}k max_tasks=1000;");
    ok($t->start(), 'nginx starts with just that');

    my $last = $t->probe('op=create&owner=ann&tool=t&params=abcdef&n=1000');
    is($last->{reason}, 'ok', '1000 tasks fit');

    my $stats = $t->probe('op=stats');
    is($stats->{slots}, 1000, 'of 1000');
    is($stats->{used}, 1000, 'which are all taken');

    my $more = $t->probe('op=create&owner=ann&tool=t&params={}');
    is($more->{reason}, 'limit_tasks', 'one more is refused');
    is($t->probe("op=get&owner=ann&id=$last->{id}")->{params}, 'abcdef',
       'and takes nothing away');

    is($t->probe("op=delete&id=$last->{id}")->{reason}, 'ok', 'one is deleted');

    # at once, or as soon as a store knows of it
    ok((wait_for { $t->probe('op=create&owner=ann&tool=t&params={}')->{reason}
                   eq 'ok' }), 'there is room for another');
    is($t->probe('op=check')->{check}, 'ok', 'the table is in order');
    ok($t->stop(), 'nginx stops');
}

# --- bytes run out before tasks do

{
    $t->configure(http => 'mcp_tasks_zone zone=z:1m;');
    ok($t->start(), 'nginx starts with 1m');

    my $params = 'x' x 4000;
    my ($n, $got) = (0);

    while ($n < 10_000) {
        $got = $t->probe("op=create&owner=ann&tool=t&params=$params");
        last if $got->{reason} ne 'ok';
        $n++;
    }

    is($got->{reason}, 'zone_full', 'large tasks, until it is full');
    cmp_ok($n, '>', 50, "there was room for $n");
    is($t->probe('op=stats')->{used}, $n, 'which are all there');
    is($t->probe('op=check')->{check}, 'ok', 'the table is in order');
    ok($t->stop(), 'nginx stops');
}

# --- the smallest there is

{
    my ($passed, $said) = check('1k', 8);
    my ($least) = $said =~ /zone "z" is too small, must be at least (\d+)k/;
    ok($least, 'the smallest size is told');

    $t->configure(http => "mcp_tasks_zone zone=z:${least}k;");
    ok($t->start(), "nginx starts with ${least}k");
    is($t->probe('op=create&owner=ann&tool=t&params={}')->{reason}, 'ok',
       'a task');
    is($t->probe('op=check')->{check}, 'ok', 'the table is in order');
    ok($t->stop(), 'nginx stops');

    ($passed, $said) = check("${least}k", 8);
    ok($passed, 'also for the fewest tasks that can be asked for')
        or diag($said);
}

is($t->faults('too small'), '', 'nothing in the log that should not be');

done_testing();
