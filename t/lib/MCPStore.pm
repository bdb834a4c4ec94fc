package MCPStore;

# What tests of stores on disk have in common.

use warnings;
use strict;

use IPC::Open2;

use Exporter qw/ import /;

our @EXPORT_OK = qw/ hold /;


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


1;
