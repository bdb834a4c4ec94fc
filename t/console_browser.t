# The console in a browser: t/browser/*.mjs, with nginx in several processes.

use warnings;
use strict;

use FindBin;
use lib "$FindBin::Bin/lib";

use Test::More;

use MCPBrowser;

my $t = MCPBrowser::start(
    [qw/ render short held bulk asks flaky paused drained keys /,
     '<img src=x onerror=pwned=1>'],
    short => { ttl => '3s' }, flaky => { attempts => 2 });

MCPBrowser::browse($t, $_) for qw/ list task hostile look /;
MCPBrowser::finish($t);

done_testing();
