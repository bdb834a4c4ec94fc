package MCPTools;

# The text of a tools.json for mcp_tasks_tools:
#
#   my $text = tools_json('slow', ['own', '"ttl":"90s"']);
#
# A tool is its name, or its name and the members of its mcpTasks; both are
# JSON text, without quotes and braces.

use warnings;
use strict;

use Exporter qw/ import /;

our @EXPORT_OK = qw/ tools_json /;


sub tools_json {
    my (@tools) = @_;

    return '{"tools":[' . join(',', map {
        my ($name, $policy) = ref $_ ? @$_ : $_;
        qq({"name":"$name","inputSchema":{"type":"object"})
        . (defined $policy ? qq(,"mcpTasks":{$policy}) : '') . '}'
    } @tools) . ']}';
}


1;
