# docs/alerts.yml: Prometheus takes it, each alert comes when it should and only
# then, and docs/operations.md says what to do about it.

use warnings;
use strict;

use FindBin;
use lib "$FindBin::Bin/lib";

use File::Path qw/ make_path remove_tree /;
use JSON::PP;
use Test::More;

use MCPFile qw/ slurp write_file /;

my $root = "$FindBin::Bin/..";
my $file = "$root/docs/alerts.yml";
my $dir = "$ENV{MCP_TASKS_BUILD}/servroot-alerts";
my $json = JSON::PP->new->canonical->allow_nonref;

remove_tree($dir);
make_path($dir);

my $zone = 'zone="z",instance="i",job="mcp_tasks"';
my $tool = "$zone,tool=\"t\"";

# What is as it should be: a value each minute, for six hours.
my %healthy = (
    "up{$zone}" => '1x360',
    "nginx_mcp_tasks_workers{$zone}" => '3x360',
    "nginx_mcp_tasks_tasks{$zone,state=\"queued\"}" => '5x360',
    "nginx_mcp_tasks_tool_queue_oldest_seconds{$tool}" => '2x360',
    "nginx_mcp_tasks_slots{$zone}" => '1000x360',
    "nginx_mcp_tasks_slots_used{$zone}" => '500x360',
    "nginx_mcp_tasks_blocks{$zone}" => '10000x360',
    "nginx_mcp_tasks_blocks_used{$zone}" => '5000x360',
    "nginx_mcp_tasks_refused_total{$zone,reason=\"zone_full\"}" => '0x360',
    "nginx_mcp_tasks_refused_total{$zone,reason=\"lease_lost\"}" => '0+9x360',
    "nginx_mcp_tasks_tool_finished_total{$tool,outcome=\"failed\"}"
        => '0+1x360',
    "nginx_mcp_tasks_tool_finished_total{$tool,outcome=\"completed\"}"
        => '0+20x360',
    "nginx_mcp_tasks_tool_lost_leases_total{$tool}" => '0+1x360',
    "nginx_mcp_tasks_sweep_lag_seconds{$zone}" => '0.01x360',
    "nginx_mcp_tasks_sweeps_total{$zone}" => '0+60x360',
    "nginx_mcp_tasks_recoveries_total{$zone}" => '0x360',
    "nginx_mcp_tasks_lock_waits_total{$zone}" => '0x360',
);

# what has to go wrong for an alert to come, and perhaps others with it
my %wrong = (
    McpTasksDown => { "up{$zone}" => '1x200 0x160' },
    McpTasksNobodyWorks
        => { "nginx_mcp_tasks_tool_queue_oldest_seconds{$tool}"
             => '2x300 180+60x60' },
    McpTasksNoWorkers
        => { "nginx_mcp_tasks_workers{$zone}" => '3x300 0x60' },
    McpTasksZoneNearlyFull
        => { "nginx_mcp_tasks_slots_used{$zone}" => '850x360' },
    'McpTasksZoneNearlyFull, bytes'
        => { "nginx_mcp_tasks_blocks_used{$zone}" => '8500x360' },
    McpTasksZoneFillsUp
        => { "nginx_mcp_tasks_blocks_used{$zone}" => '0+20x360' },
    McpTasksRefused
        => { "nginx_mcp_tasks_refused_total{$zone,reason=\"zone_full\"}"
             => '0x300 0+1x60' },
    McpTasksFailing
        => { "nginx_mcp_tasks_tool_finished_total{$tool,outcome=\"failed\"}"
             => '0+10x360' },
    McpTasksLeasesLost
        => { "nginx_mcp_tasks_tool_lost_leases_total{$tool}" => '0+6x360' },
    McpTasksSweepLate
        => { "nginx_mcp_tasks_sweep_lag_seconds{$zone}" => '9x360' },
    McpTasksLocked
        => { "nginx_mcp_tasks_lock_waits_total{$zone}" => '0x350 1x10' },
    McpTasksRecovered
        => { "nginx_mcp_tasks_recoveries_total{$zone}" => '0x340 1x20' },
);

# what looks wrong and is not
my %fine = (
    'no worker, but no work' => {
        "nginx_mcp_tasks_workers{$zone}" => '0x360',
        "nginx_mcp_tasks_tasks{$zone,state=\"queued\"}" => '0x360' },
    'a sweep was late, and there was none since' => {
        "nginx_mcp_tasks_sweep_lag_seconds{$zone}" => '9x360',
        "nginx_mcp_tasks_sweeps_total{$zone}" => '500x360' },
    'locked long ago' => {
        "nginx_mcp_tasks_lock_waits_total{$zone}" => '0x60 1x300' },
    'recovered long ago' => {
        "nginx_mcp_tasks_recoveries_total{$zone}" => '0x60 1x300' },
);


# what promtool says; nothing, if it has nothing to say
sub promtool {
    my ($what, $path) = @_;
    my $said = `$ENV{MCP_TASKS_PROMTOOL} $what $path 2>&1`;
    return $? ? $said : '';
}


# what is wrong, if not exactly these alerts fire in the end
sub other_than {
    my ($series, @alerts) = @_;
    my %series = (%healthy, %$series);
    my $path = "$dir/test.yml";

    my $text = $json->encode({
        rule_files => [$file], evaluation_interval => '1m',
        tests => [{
            interval => '1m',
            input_series => [map { { series => $_, values => $series{$_} } }
                             sort keys %series],
            promql_expr_test => [{
                expr => 'count by (alertname) (ALERTS{alertstate="firing"})',
                eval_time => '6h',
                exp_samples => [map { { labels => "{alertname=\"$_\"}",
                                        value => 1 } } @alerts],
            }],
        }],
    });

    write_file($path, $text);

    return promtool('test rules', $path);
}


is(promtool('check rules', $file), '', 'Prometheus takes the file');

my $text = slurp($file);
my @alerts = $text =~ /^  - alert: (\w+)$/mg;
my %known = map { /(\w+)/; ($1 => 1) } keys %wrong;

cmp_ok(scalar @alerts, '>', 8, 'alerts were read');
is_deeply([sort @alerts], [sort keys %known], 'there is a case for each');

is(other_than({}), '', 'all is well: none comes');
is(other_than($wrong{$_}, /(\w+)/), '', $_) for sort keys %wrong;
is(other_than($fine{$_}), '', $_) for sort keys %fine;

isnt(other_than($wrong{McpTasksNoWorkers}), '', 'one too many is noticed');
isnt(other_than({}, 'McpTasksDown'), '', 'one that does not come as well');

# --- the configuration of Prometheus, as it is shown

{
    my @parts = slurp("$root/docs/monitoring.md") =~ /^```yaml\n(.*?)^```$/msg;
    is(@parts, 2, 'there are two parts of it');

    write_file("$dir/prometheus.yml", @parts);

    symlink($file, "$dir/alerts.yml") or die "alerts.yml: $!\n";
    is(promtool('check config', "$dir/prometheus.yml"), '', 'which it takes');
    like($parts[0], qr/job_name: mcp_tasks$/m, 'with the name of the job');
}

# --- what it asks for is there, and what is to be done is said

my %metric = map { $_ => 1 } slurp("$root/docs/monitoring.md")
                             =~ /^\| `(nginx_mcp_tasks_\w+)/mg;
my @unknown = grep { !$metric{$_} } $text =~ /(nginx_mcp_tasks_\w+)/g;
is_deeply(\@unknown, [], 'all metrics are documented');

my @told = slurp("$root/docs/operations.md") =~ /^\| `(McpTasks\w+)` \|/mg;
is_deeply([sort @told], [sort @alerts],
          'docs/operations.md says what to do about each');

done_testing();
