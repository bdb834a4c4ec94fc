# Codes of errors: those of the specifications, and the module's own.
#
# 2026-07-28, basic, of -32000 to -32019: "New codes MUST NOT be allocated in this
# sub-range"; of -32020 to -32099: "Implementations MUST NOT emit any code from
# this sub-range that is not defined by this specification"

use warnings;
use strict;

use FindBin;
use lib "$FindBin::Bin/lib";

use Test::More;

use MCPClient;
use MCPFile qw/ slurp /;
use MCPTasks qw/ workers /;

my $src = "$FindBin::Bin/../src";
my %defined = slurp("$src/core/ngx_mcp_code.h")
              =~ /^#define\s+NGX_MCP_RPC_(\w+)\s+(-\d+)$/mg;

# of JSON-RPC and of 2026-07-28
my %standard = (PARSE => -32700, INVALID_REQUEST => -32600,
                NO_METHOD => -32601, INVALID_PARAMS => -32602,
                INTERNAL => -32603, HEADER_MISMATCH => -32020,
                CAPABILITY => -32021, VERSION => -32022);

# sent to clients of the legacy era only
my %legacy = (NO_SESSION => -32001, URL_REQUIRED => -32042);

for my $name (sort keys %defined) {
    my $code = $defined{$name};
    my $expected = $standard{$name} // $legacy{$name};

    if (defined $expected) {
        is($code, $expected, "$name: the code of the specification");
    } else {
        ok($code < -32768 || $code > -32000,
           "$name: $code is not in a reserved range");
    }
}

is(scalar(grep { !exists $defined{$_} } keys %standard, keys %legacy), 0,
   'all are defined');

# in texts of errors, too
my %allowed = reverse %standard;

for my $file (glob "$src/{,*/,*/*/}*.c") {
    for my $code (slurp($file) =~ /\\"code\\":(-\d+)/g) {
        ok($allowed{$code}, ($file =~ s{.*/}{}r) . ": $code");
    }
}


# --- a modern client never sees that it has no session

# 2026-07-28, Streamable HTTP: "An Mcp-Session-Id header on a request: ignore it"

my $t = MCPTasks->new(
    workers => workers(), tools => ['slow'],
    http => 'mcp_tasks_zone zone=z:2m; mcp_tasks_tools tools.json;',
    server => 'mcp_tasks_owner $http_x_user;',
    surfaces => [qw/ mcp worker /]);
my $c = MCPClient->new($t, headers => { 'Mcp-Session-Id' => 'x' });

for my $case (['server/discover'], ['tools/list'],
              ['tools/call', { name => 'slow' }])
{
    my $res = $c->modern(@$case);
    is($res->{status}, 200, "$case->[0]: 200");
    ok($res->{json}{result}, "$case->[0]: a result");
    ok(!exists $res->{header}{'mcp-session-id'}, "$case->[0]: no session");
}

is($c->legacy('ping')->{json}{error}{code}, $legacy{NO_SESSION},
   'a legacy client does');

done_testing();
