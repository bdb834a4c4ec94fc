package MCPProcess;

# What the kernel says of processes.

use warnings;
use strict;

use MCPFile qw/ slurp /;

use Exporter qw/ import /;

our @EXPORT_OK = qw/ descriptors_of memory_of pids_of /;


# the children of a process
sub pids_of {
    my ($parent) = @_;
    my @pids;

    for my $path (glob '/proc/[0-9]*/stat') {
        my ($pid, $state, $ppid) = slurp($path) =~ /^(\d+) \(.*\) (\S) (\d+)/s
            or next;
        push @pids, $pid if $ppid == $parent && $state ne 'Z';
    }

    @pids = sort { $a <=> $b } @pids;
    return @pids;
}


# Memory that processes do not share, in bytes.  Pages of a zone do not count:
# they are resident as soon as they are touched.
sub memory_of {
    my (@pids) = @_;
    my $sum = 0;

    for my $pid (@pids) {
        my ($size, $resident, $shared) = split ' ', slurp("/proc/$pid/statm");
        $sum += ($resident - $shared) * 4096;
    }

    return $sum;
}


# how many descriptors they have open
sub descriptors_of {
    my (@pids) = @_;
    my $sum = 0;
    $sum += () = glob "/proc/$_/fd/*" for @pids;
    return $sum;
}


1;
