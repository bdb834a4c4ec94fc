package MCPPattern;

# Patterns of what the server writes, byte for byte.

use warnings;
use strict;

use Exporter qw/ import /;

use File::Basename qw/ dirname /;

use MCPFile qw/ slurp /;

our @EXPORT_OK = qw/ $date $server $uuid result_like task_pattern /;

our $uuid = qr/[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}/;
our $date = qr/"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z"/;

# how the server identifies itself in every result of the modern era, as bytes
my ($version) = slurp(dirname(__FILE__) . '/../../src/core/ngx_mcp_version.h')
                =~ /NGX_MCP_VERSION\s+"([^"]+)"/;

our $server = '"_meta":{"io.modelcontextprotocol/serverInfo":'
              . '{"name":"nginx-mcp-tasks","version":"' . $version . '"}}';


# a response with that result, to a request with the id 1
sub result_like {
    my ($pattern) = @_;
    return qr/\A\{"jsonrpc":"2\.0","id":1,"result":$pattern\}\z/;
}


# the members of a task; in the modern era names of times end with "Ms"
sub task_pattern {
    my ($ms, $status, $ttl, $message) = @_;
    return qr/"taskId":"$uuid","status":"$status"/
           . (defined $message ? qr/,"statusMessage":\Q$message\E/ : '')
           . qr/,"createdAt":$date,"lastUpdatedAt":$date,"ttl$ms":$ttl/
           . qr/,"pollInterval$ms":1000/;
}


1;
