package MCPStore;

# What tests of stores on disk have in common.

use warnings;
use strict;

use File::Basename qw/ dirname /;
use IPC::Open2;

use Exporter qw/ import /;

our @EXPORT_OK = qw/ clocked faulty fault hold rows sql /;


# another program, that holds the database until it is told to let go
sub hold {
    my ($db, $sql) = @_;
    my $pid = open2(my $out, my $in, 'python3', '-c', <<'END', $db, $sql);
import sqlite3, sys
db = sqlite3.connect(sys.argv[1], isolation_level=None, timeout=10)
db.execute(sys.argv[2])
print("held", flush=True)
sys.stdin.readline()
db.close()
END
    my $line = <$out>;
    die "the database could not be held\n" unless ($line || '') eq "held\n";

    return sub {
        close($in);
        waitpid($pid, 0);
    };
}


# the environment of an nginx whose calls on the database can be made to fail
sub faulty {
    my ($db) = @_;
    return { LD_PRELOAD => "$ENV{MCP_TASKS_BUILD}/unit/lib/faults.so",
             ASAN_OPTIONS => 'verify_asan_link_order=0',
             MCP_TASKS_FAULTS => dirname($db) . '/faults',
             MCP_TASKS_FAULTS_FILES => $db };
}


# the environment of an nginx whose wall clock is so many seconds ahead
sub clocked {
    my ($ahead) = @_;
    return { LD_PRELOAD => "$ENV{MCP_TASKS_BUILD}/unit/lib/clock.so",
             ASAN_OPTIONS => 'verify_asan_link_order=0',
             MCP_TASKS_CLOCK => $ahead };
}


# lines of t/lib/faults.c; without any, all is well
sub fault {
    my ($db, @lines) = @_;
    my $control = dirname($db) . '/faults';
    return unlink($control) unless @lines;

    # at once: it may be read at any time
    open(my $fh, '>', "$control.new") or die "$control: $!\n";
    print $fh map { "$_\n" } @lines;
    close($fh) && rename("$control.new", $control) or die "$control: $!\n";
}


# what the database answers to another program
sub sql {
    my ($db, $sql) = @_;
    open(my $fh, '-|', 'sqlite3', $db, $sql) or die "sqlite3: $!\n";
    local $/;
    my $got = <$fh>;
    close($fh);
    return ($got // '') =~ s/\s+\z//r;
}


# how many tasks there are, as another program sees it
sub rows {
    my ($db, $where) = @_;
    return sql($db, 'SELECT count(*) FROM tasks'
                    . ($where ? " WHERE $where" : '')) + 0;
}


1;
