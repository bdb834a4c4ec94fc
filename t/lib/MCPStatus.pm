package MCPStatus;

# The status surface as tests see it:
#
#   my $s = MCPStatus->new($t);                 # at /status
#   my $json = $s->json();                      # decoded
#   my $metrics = $s->metrics();                # "name{labels}" => value
#   is($s->differs(), '', 'both say the same');
#
# The table below says which figure of one is which of the other.

use warnings;
use strict;

use JSON::PP;

use MCPTasks qw/ wait_for /;

use constant PREFIX => 'nginx_mcp_tasks_';

my @states = qw/ queued running input_required completed failed cancelled /;
my @outcomes = qw/ completed failed cancelled expired deleted /;
my @reasons = qw/ task_not_found task_terminal task_state_invalid lease_lost
                  progress_backwards version_conflict limit_tasks
                  limit_owner_tasks limit_owner_bytes payload_too_large
                  zone_full limit_waiters store_unavailable store_failed /;

# path in JSON, metric, and a label whose value is the last part of the path
our @zone = (
    (map { ["tasks.$_", 'tasks', 'state'] } @states),
    ['oldestQueued', 'queue_oldest_seconds'],
    ['waitingRequests', 'waiting_requests'],
    ['streams', 'streams'],
    ['runningCalls', 'running_calls'],
    ['slots.used', 'slots_used'],
    ['slots.total', 'slots'],
    ['blocks.used', 'blocks_used'],
    ['blocks.total', 'blocks'],
    ['payloadBytes', 'payload_bytes'],
    ['owners', 'owners'],
    ['tools', 'tools'],
    ['sessions', 'sessions'],
    ['workers', 'workers'],
    ['created', 'created_total'],
    (map { ["finished.$_", 'finished_total', 'outcome'] } @outcomes),
    (map { ["removed.$_", 'removed_total', 'reason'] } qw/ expired deleted /),
    ['claims', 'claims_total'],
    ['retries', 'retries_total'],
    ['lostLeases', 'lost_leases_total'],
    ['staleTokens', 'stale_tokens_total'],
    (map { ["refused.$_", 'refused_total', 'reason'] } @reasons),
    ['newsDropped', 'dropped_news_total'],
    ['signals', 'signals_total'],
    ['recoveries', 'recoveries_total'],
    ['sweep.runs', 'sweeps_total'],
    ['sweep.tasks', 'swept_tasks_total'],
    ['sweep.batch', 'sweep_batch_tasks'],
    ['sweep.lag', 'sweep_lag_seconds'],
    ['sweep.maxLag', 'sweep_lag_max_seconds'],
    ['lock.held', 'lock_held_seconds'],
    ['lock.waits', 'lock_waits_total'],
    ['lock.maxWait', 'lock_wait_max_seconds'],
    ['wait', 'wait_seconds'],
    ['run', 'run_seconds'],
);

our @tool = (
    (map { ["tasks.$_", 'tool_tasks', 'state'] } @states),
    ['oldestQueued', 'tool_queue_oldest_seconds'],
    ['runningCalls', 'tool_running_calls'],
    ['paused', 'tool_paused'],
    ['created', 'tool_created_total'],
    (map { ["finished.$_", 'tool_finished_total', 'outcome'] } @outcomes),
    ['claims', 'tool_claims_total'],
    ['retries', 'tool_retries_total'],
    ['lostLeases', 'tool_lost_leases_total'],
    ['wait', 'tool_wait_seconds'],
    ['run', 'tool_run_seconds'],
);

our @worker = (
    ['claims', 'worker_claims_total'],
    ['completed', 'worker_completed_total'],
    ['failed', 'worker_failed_total'],
    ['lastSeen', 'worker_last_seen_timestamp_seconds'],
    ['draining', 'worker_draining'],
);

# of zones that have one
our @store = (
    ['up', 'store_up'],
    ['unsaved', 'store_unsaved_tasks'],
    ['commits', 'store_commits_total'],
    ['rows', 'store_rows_total'],
    ['failures', 'store_failures_total'],
    ['lastCommit', 'store_last_commit_timestamp_seconds'],
    ['commitTime', 'store_commit_seconds'],
);


sub new {
    my ($class, $t, %opt) = @_;
    return bless { t => $t, uri => '/status', zone => 'z', %opt }, $class;
}


sub get {
    my ($self, $format) = @_;
    return $self->{t}->request('GET', "$self->{uri}?format=$format", {},
                               undef, $self->{via});
}


sub json {
    my ($self) = @_;
    my $res = $self->get('json') or return {};
    return JSON::PP->new->utf8->decode($res->{body});
}


sub text {
    my ($self) = @_;
    my $res = $self->get('prometheus') or return '';
    return $res->{body};
}


# by name
sub tool {
    my ($self, $name) = @_;
    my ($tool) = grep { $_->{name} eq $name } @{ $self->json()->{byTool} };
    return $tool || {};
}


sub worker {
    my ($self, $name) = @_;
    my ($worker) = grep { $_->{name} eq $name } @{ $self->json()->{byWorker} };
    return $worker || {};
}


# all samples; what is not well-formed, or stands there twice, ends the test
sub metrics {
    my ($self) = @_;
    return parse($self->text());
}


sub parse {
    my ($text) = @_;
    my (%metric, %type);
    my $last = '';

    for my $line (split /\n/, $text) {
        if ($line =~ /^# TYPE (\S+) (counter|gauge|histogram)$/) {
            die "twice: $line\n" if $type{$1};
            $type{$1} = $2;
            $last = $1;
            next;
        }

        next if $line =~ /^# HELP \S+ \S.*$/;

        my ($name, $labels, $value) = $line =~ /
            ^ (\w+) \{ ( (?: \w+ = " (?: [^"\\] | \\ [\\"n] )* ",? )* ) \}
            [ ] (\S+) $ /x
            or die "not a sample: $line\n";

        (my $family = $name) =~ s/_(bucket|sum|count)$//;
        $family = $name unless ($type{$family} || '') eq 'histogram';
        die "not with its family: $line\n" if $family ne $last;
        die "twice: $line\n" if exists $metric{"$name\{$labels}"};

        $metric{"$name\{$labels}"} = $value;
    }

    return \%metric;
}


sub escape {
    my ($value) = @_;
    $value =~ s/([\\"])/\\$1/g;
    $value =~ s/\n/\\n/g;
    utf8::encode($value);
    return $value;
}


sub at {
    my ($data, $path) = @_;
    $data = $data->{$_} for split /\./, $path;
    return $data;
}


# what the samples have to be, if this is the status
sub samples {
    my ($self, $json) = @_;
    my %want;

    my $add = sub {
        my ($of, $figures, $label) = @_;
        my $labels = 'zone="' . escape($self->{zone}) . '"';
        $labels .= ",$label=\"" . escape($of->{name}) . '"' if $label;

        for (@$figures) {
            my ($path, $metric, $by) = @$_;
            my $value = at($of, $path);
            my $name = PREFIX . $metric;

            if (ref $value) {
                $want{"${name}_bucket{$labels,le=\"$_\"}"}
                    = $value->{buckets}{$_} for keys %{ $value->{buckets} };
                $want{"${name}_sum{$labels}"} = $value->{sum};
                $want{"${name}_count{$labels}"} = $value->{count};
                next;
            }

            my $more = $by ? ",$by=\"" . ($path =~ /(\w+)$/)[0] . '"' : '';
            $want{"$name\{$labels$more}"} = $value;
        }
    };

    $add->($json, \@zone);
    $add->($_, \@tool, 'tool') for @{ $json->{byTool} };
    $add->($_, \@worker, 'worker') for @{ $json->{byWorker} };
    $add->($json->{store}, \@store) if $json->{store};

    return \%want;
}


# what is not the same in both formats; time goes on, so it may take some tries
sub differs {
    my ($self) = @_;
    my $found = 'nothing was compared';

    wait_for {
        my $want = $self->samples($self->json());
        my $got = $self->metrics();
        my %all = (%$want, %$got);

        $found = join "\n", map {
            my ($w, $g) = map { defined $_ ? $_ : 'none' }
                          $want->{$_}, $got->{$_};
            my $far = $w ne $g;
            $far = abs($w - $g) > 2 if $far && /oldest/ && "$w$g" !~ /none/;
            $far ? "$_: $w, but $g" : ();
        } sort keys %all;

        return $found eq '';
    } 5;

    return $found;
}


1;
