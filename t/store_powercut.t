# The power is cut at any point of a run that was recorded: see t/lib/powercut.py.

use warnings;
use strict;

use FindBin;

my $build = $ENV{MCP_TASKS_BUILD};

exec('python3', "$FindBin::Bin/lib/powercut.py", $ENV{MCP_TASKS_NGINX},
     $ENV{MCP_TASKS_TEST_MODULE}, "$build/unit/lib/faults.so",
     "$build/servroot-store_powercut") or die "python3: $!\n";
