# Prometheus takes what the status surface says, with names that mean harm,
# and the documentation and the dashboard speak of what is there.

use warnings;
use strict;

use FindBin;
use lib "$FindBin::Bin/lib";

use Encode ();
use JSON::PP;
use Test::More;

use MCPClient;
use MCPFile qw/ slurp write_file /;
use MCPStatus;
use MCPTasks qw/ workers /;

my $t = MCPTasks->new(
    workers => workers(),
    http => 'mcp_tasks_zone zone=z:4m store=sqlite:z.db;
             mcp_tasks_zone zone=idle:1m;'
            . ' mcp_tasks_zone "zone=strange\"\\\\:1m";',
    server => <<'END');
    location /worker { mcp_tasks_worker zone=z; }
    location /status { mcp_tasks_status zone=z; }
    location /idle { mcp_tasks_status zone=idle; }
    location /strange { mcp_tasks_status "zone=strange\"\\"; }
    location /probe { mcp_tasks_probe zone=z; }
END

my $s = MCPStatus->new($t);
my $c = MCPClient->new($t);
my $dir = "$FindBin::Bin/..";


# what promtool says of the text; nothing, if it has nothing to say
sub promtool {
    my ($text) = @_;
    my $file = "$t->{dir}/metrics";

    write_file($file, $text);

    my $said = `$ENV{MCP_TASKS_PROMTOOL} check metrics < $file 2>&1`;
    return $said . ($? ? "exit status $?" : '');
}


# --- it would say so

isnt(promtool("x_total{y=\"z} 1\n"), '', 'promtool sees a broken label');
isnt(promtool("# HELP x x\n# TYPE x counter\nx 1\n"), '',
     'promtool sees a name that is not as it should be');

# --- with nothing in the zone, with all kinds of tasks, with bad names

is(promtool(MCPStatus->new($t, uri => '/idle')->text()), '',
   'an empty zone is fine');

use constant { ASK => 2, COMPLETE => 3, FAIL => 4, RELEASE => 6, CANCEL => 10 };

for my $event (COMPLETE, FAIL, RELEASE, CANCEL, ASK) {
    $t->probe('op=create&owner=o&tool=life');
    my $work = $t->probe('op=claim&tool=life');
    $t->probe("op=event&id=$work->{id}&lease=$work->{lease}&event=$event");
}

my @names = ('%22', '%5C', '%0A', '%5Cn', '%7D', '%22%7D%201%0A%23%20HELP%20x',
             '%22,le=%22', '%09', '%0D%0A', '%01', '%7F', '%C3%A4',
             '%F0%9F%98%80', '%E2%80%A8', '%20', 'x%20', '%25', '{}',
             'zone', 'other', '%FF', '%C3', '%ED%A0%80', 'x' x 128, 'x' x 129,
             '%C3%A4' x 64, '%5C' x 128);

for my $name (@names) {
    is($t->probe("op=create&owner=o&tool=$name")->{reason}, 'ok',
       'a tool called ' . substr($name, 0, 40));
}

for my $name (grep { !/%FF|%C3$|%ED/ } @names) {
    (my $text = $name) =~ s/%(..)/chr hex $1/ge;
    utf8::decode($text);
    next if length(Encode::encode_utf8($text)) > 64;
    my $got = $c->worker('worker/claim', JSON::PP->new->ascii->encode(
        { tools => ['none'], worker => $text }));
    ok($got->{tasks}, 'a worker of that name') or diag(explain($got));
}

is(promtool($s->text()), '', 'all this is fine');
is($s->differs(), '', 'and the same as in JSON');
is(promtool(MCPStatus->new($t, uri => '/strange')->text()), '',
   'a zone with a strange name, too');
like(MCPStatus->new($t, uri => '/strange')->text(),
     qr/^nginx_mcp_tasks_slots\{zone="strange\\"\\\\"\} \d+$/m,
     'which is shown as it is');

# --- as many series as there can be

for my $n (1 .. 200) {
    $t->probe("op=create&owner=o&tool=t$n" . 'x' x 100);
    $c->worker('worker/claim', { tools => ['none'],
                                 worker => "w$n" . 'y' x 50 });
}

{
    my $text = $s->text();
    is(promtool($text), '', 'with all entries taken');

    my $series = keys %{ MCPStatus::parse($text) };
    cmp_ok($series, '<', 8000, "$series series at most");
    cmp_ok(length $text, '<', 2_000_000, length($text) . ' bytes');
}

# --- what is written about it

my %there;

{
    my $text = $s->text();
    my %type = $text =~ /^# TYPE (\S+) (\S+)$/mg;

    for my $name (keys %type) {
        $there{$name} = $type{$name};
        next if $type{$name} ne 'histogram';
        $there{$name . $_} = $type{$name} for qw/ _bucket _sum _count /;
    }

    my $doc = slurp("$dir/docs/monitoring.md");
    my %documented = map { $_ => 1 } $doc =~ /^\| `(nginx_mcp_tasks_\w+)/mg;
    is_deeply([sort keys %documented], [sort keys %type],
              'docs/monitoring.md has every metric, and no other');

    my @used = $doc =~ /(nginx_mcp_tasks_\w+)/g;
    is_deeply([grep { !$there{$_} } @used], [], 'nor does it name another');
}

{
    my $board = eval {
        JSON::PP->new->utf8->decode(slurp("$dir/docs/grafana-dashboard.json"))
    };
    ok($board, 'the dashboard is JSON') or diag($@);

    my (@exprs, @unnamed, %ids);

    for my $panel (@{ $board->{panels} || [] }) {
        push @unnamed, $panel->{id} unless $panel->{title};
        ok(!$ids{$panel->{id}}++, "panel $panel->{id}: its own id");
        ok($panel->{gridPos}{x} + $panel->{gridPos}{w} <= 24,
           "panel $panel->{id}: has its place");
        next if $panel->{type} eq 'row';
        ok(@{ $panel->{targets} || [] } > 0, "panel $panel->{id}: has queries");
        push @exprs, map { $_->{expr} } @{ $panel->{targets} };
    }

    is_deeply(\@unnamed, [], 'all panels have a title');
    cmp_ok(scalar @exprs, '>', 10, 'it queries');

    push @exprs, map { ref $_->{query} ? $_->{query}{query} : $_->{query} }
                 grep { $_->{type} eq 'query' } @{ $board->{templating}{list} };

    my %unknown;

    for my $expr (@exprs) {
        my @metrics = $expr =~ /(nginx_mcp_tasks_\w+)/g;
        ok(@metrics > 0, "of ours: $expr");
        $unknown{$_} = 1 for grep { !$there{$_} } @metrics;
    }

    is_deeply([sort keys %unknown], [], 'what it queries is there');

    # queries as Prometheus reads them
    my $rules = "groups:\n- name: dashboard\n  rules:\n";
    my $n = 0;

    for my $expr (grep { !/label_values/ } @exprs) {
        (my $plain = $expr) =~ s/\$__rate_interval/5m/g;
        $plain =~ s/\$(zone|tool)/x/g;
        $rules .= "  - record: q:$n\n    expr: "
                  . JSON::PP->new->allow_nonref->encode($plain) . "\n";
        $n++;
    }

    is(rules($rules), '', "$n queries of the dashboard");
}


sub rules {
    my ($text) = @_;
    my $file = "$t->{dir}/rules.yml";

    write_file($file, $text);

    my $said = `$ENV{MCP_TASKS_PROMTOOL} check rules $file 2>&1`;
    return $? ? $said : '';
}


ok($t->stop(), 'nginx stops');
is($t->faults(), '', 'nothing in the log that should not be');

done_testing();
