# W3C trace context of the call that creates a task.
#
# 2026-07-28, basic: "the keys traceparent, tracestate, and baggage are reserved
# for OpenTelemetry trace context propagation.  When present, their values MUST
# follow W3C Trace Context and W3C Baggage formats respectively."

use warnings;
use strict;

use FindBin;
use lib "$FindBin::Bin/lib";

use Test::More;

use MCPClient;
use MCPFile qw/ slurp /;
use MCPTasks qw/ wait_for workers /;

my $parent = '00-0af7651916cd43dd8448eb211c80319c-00f067aa0ba902b7-01';
my $other = '00-11111111111111111111111111111111-2222222222222222-00';

my $t = MCPTasks->new(
    workers => workers(), tools => ['slow'],
    http => "mcp_tasks_zone zone=z:8m; log_format trace '[\$mcp_traceparent]"
            . "\$mcp_method \$uri';",
    server => <<'END');
    access_log logs/trace.log trace;
    location /mcp { mcp_tasks zone=z; mcp_tasks_tools tools.json; }
    location /worker { mcp_tasks_worker zone=z; access_log off; }
END

my $c = MCPClient->new($t);


# a task of each kind, created with these headers and this _meta
my %create = (
    legacy => sub {
        my ($headers, $meta) = @_;
        return $c->legacy('tools/call', {
            name => 'slow', task => {}, $meta ? (_meta => $meta) : () },
            headers => $headers)->{json}{result}{task}{taskId};
    },
    modern => sub {
        my ($headers, $meta) = @_;
        return $c->modern('tools/call', { name => 'slow' },
                          headers => $headers, meta => $meta)
               ->{json}{result}{taskId};
    },
    create => sub {
        my ($headers, $meta) = @_;
        return $c->legacy('tasks/create', {
            action => 'slow', params => { a => 1 },
            $meta ? (_meta => $meta) : () },
            headers => $headers)->{json}{result}{task}{taskId};
    },
    rest => sub {
        my ($headers) = @_;
        my $res = $t->post('/mcp/tasks', '{"tool":"slow"}', $headers || {});
        return MCPClient::decode($res->{body})->{taskId};
    },
);

# the trace context that the worker gets, in the order of the names
sub claimed {
    my ($id) = @_;
    my $work = $c->claim('slow') or return 'no task';
    my $meta = $work->{_meta} || {};
    $c->complete($work, { content => [] });
    return $work->{taskId} ne ($id // '') ? 'another task'
        : join ' ', map { $meta->{$_} // '-' } qw/ traceparent tracestate
                                                  baggage /;
}

my $lines = 0;

# what the log has of the last request
sub logged {
    my @lines;

    wait_for {
        @lines = slurp("$t->{dir}/logs/trace.log") =~ /(.*)\n/g;
        return @lines > $lines;
    };

    $lines++;
    return $lines[-1] =~ /^\[(.*)\]/ ? $1 : 'no line';
}


for my $kind (sort keys %create) {
    my $create = $create{$kind};

    my $id = $create->({});
    is(logged(), '-', "$kind: no context");
    is(claimed($id), '- - -', "$kind: the worker gets none");

    $id = $create->({ Traceparent => $parent, Tracestate => 'a=b,c="d"',
                      Baggage => 'user=ann' });
    is(logged(), $parent, "$kind: a header is in the log");
    is(claimed($id), "$parent a=b,c=\"d\" user=ann",
       "$kind: the worker gets what the headers have");

    # never logged or passed on
    for my $bad ('', 'evil', uc $parent, "$parent-00",
                 'ff' . substr($parent, 2),
                 '00-' . '0' x 32 . '-00f067aa0ba902b7-01', "$parent, $other",
                 [$parent, $other])
    {
        $id = $create->({ traceparent => $bad, tracestate => 'a=b' });
        is(logged(), '-', "$kind: an invalid header is not logged");
        is(claimed($id), '- - -', "$kind: nor does the worker get it");
    }

    $id = $create->({ traceparent => $parent, tracestate => 'A=b',
                      baggage => 'x="y"' });
    is(logged(), $parent, "$kind: the others are invalid");
    is(claimed($id), "$parent - -", "$kind: the worker gets the valid one");

    next if $kind eq 'rest';

    $id = $create->({ traceparent => $parent, tracestate => 'a=b' },
                    { traceparent => $other, x => 1 });
    is(logged(), $other, "$kind: _meta has precedence");
    is(claimed($id), "$other - -", "$kind: the worker gets that of _meta");

    $id = $create->({}, { traceparent => $other, tracestate => 'c=d',
                          baggage => 'k=v' });
    is(logged(), $other, "$kind: only in _meta");
    is(claimed($id), "$other c=d k=v", "$kind: the worker gets it");

    for my $bad ('evil', '', 7, undef, uc $parent, [$parent], "a\n$parent") {
        $id = $create->({ traceparent => $parent }, { traceparent => $bad });
        is(logged(), $parent, "$kind: an invalid one in _meta does not count");
        is(claimed($id), "$parent - -", "$kind: the header does");

        $id = $create->({}, { traceparent => $bad, tracestate => 'a=b' });
        is(logged(), '-', "$kind: nor does it without a header");
        is(claimed($id), '- - -', "$kind: and is not passed on");
    }
}

# the rest of _meta, and of the params, is what it was, byte for byte
{
    my $meta = '{ "progressToken" : 1.0e1 , "x/y":[ 1.50, "\u00e9" ] }';
    my $text = '{"name":"slow","task":{},"_meta":' . $meta
               . ', "arguments" : { "n" : 1.0 } }';

    for my $case (['{}', $meta], [qq({"traceparent":"$parent"}), undef]) {
        my %headers = %{ MCPClient::decode($case->[0]) };
        $t->post('/mcp', '{"jsonrpc":"2.0","id":1,"method":"tools/call",'
                 . '"params":' . ($text =~ s/1\.0e1/"p"/r) . '}',
                 { 'MCP-Protocol-Version' => '2025-11-25', %headers });
        my $raw = $c->say_bytes(MCPClient::bytes('/worker',
            '{"jsonrpc":"2.0","id":1,"method":"worker/claim","params":'
            . '{"tools":["slow"],"waitMs":10000}}'))->{body};
        my $want = $meta =~ s/1\.0e1/"p"/r;
        $want =~ s/\{/{"traceparent":"$parent",/ if %headers;
        like($raw, qr/\Q"arguments":{ "n" : 1.0 },"_meta":$want\E/,
             'the worker gets the same bytes');
    }
}

# a plain call, for which the client waits
{
    my $s = $t->connect();
    MCPTasks::send_raw($s, $c->legacy_bytes('tools/call', { name => 'slow' },
                                            headers => { traceparent
                                                         => $parent }));
    my $work = $c->claim('slow');
    is($work->{_meta}{traceparent}, $parent, 'a plain call has one, too');
    $c->complete($work, { content => [] });
    is(MCPTasks::read_response($s)->{status}, 200, 'it is answered');
}

ok($t->stop(), 'nginx stops');
is($t->faults(), '', 'nothing bad in the log');

done_testing();
