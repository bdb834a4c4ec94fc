# What upstream says of itself is told with what the gateway adds: that there
# are tasks, which tools may be called so, and its own tools.

use warnings;
use strict;

use FindBin;
use lib "$FindBin::Bin/lib";

use JSON::PP;
use Test::More;

use MCPClient;
use MCPGateway;
use MCPTasks qw/ wait_for /;

my $meta = 'io.modelcontextprotocol';
my $up_slow = '{"name":"slow","description":"Slow \u00e9","inputSchema":'
              . '{"type":"object","properties":{"n":{"minimum":1.0}}}}';
my $up_plain = '{"name":"plain","inputSchema":{"type":"object"}}';
my $up_never = '{"name":"never","inputSchema":{"type":"object"},"execution":'
               . '{"taskSupport":"optional"}}';
my $up_dup = '{"name":"own","description":"of upstream","inputSchema":'
             . '{"type":"object"}}';
my $up_export = '{"name":"export_all","inputSchema":{"type":"object"}}';

my $g = MCPGateway->new(
    file => '{"tools":[{"name":"own","description":"of the file",'
            . '"inputSchema":{"type":"object"}},{"name":"must","inputSchema":'
            . '{"type":"object"},"mcpTasks":{"taskSupport":"required"}}]}',
    tool => ['slow support=required', 'never support=forbidden',
             '~^export_ support=forbidden', '~^ex support=required',
             'plain support=optional'],
    list => [$up_slow, $up_plain, $up_never, $up_dup, $up_export]);
my ($up, $c) = @{$g}{qw/ up c /};


# the message in an answer, be it JSON or a stream
sub message {
    my ($res) = @_;
    return $res->{json} if $res->{json};
    my @data = $res->{body} =~ /^data: ?(.*)$/mg;
    return MCPClient::decode($data[-1]) || {};
}


sub initialize {
    my ($version) = @_;
    return message($c->legacy('initialize', { protocolVersion => $version,
        capabilities => {}, clientInfo => { name => 'x', version => '1' } },
        headers => { 'MCP-Protocol-Version' => undef }))->{result};
}


sub tools {
    my ($got) = @_;
    return map { $_->{name} => $_ } @{ $got->{result}{tools} || [] };
}


my %tasks = (cancel => {}, list => {}, requests => { tools => { call => {} } });

for my $style ('json', 'sse') {
    $up->set(style => $style);

    # --- initialize

    my $got = initialize('2025-11-25');
    is_deeply($got->{capabilities}{tasks}, \%tasks, "$style: tasks are added");
    is_deeply($got->{capabilities}{tools}, { listChanged => JSON::PP::true },
              'beside what upstream can');
    is_deeply($got->{capabilities}{logging}, {}, 'all of it');
    is($got->{serverInfo}{name}, 'upstream', 'which says who it is');
    is($got->{instructions}, 'Ask me.', 'and what to do');

    for my $version ('2025-06-18', '2025-03-26') {
        $got = initialize($version);
        is($got->{protocolVersion}, $version, "$style: $version");
        is($got->{capabilities}{tasks}, undef, 'knows no tasks');
        is_deeply($got->{capabilities}{logging}, {}, 'but all else');
    }

    # --- server/discover

    $got = message($c->modern('server/discover'))->{result};
    is_deeply($got->{capabilities}{extensions}{"$meta/tasks"}, {},
              "$style: the extension is added");
    is_deeply($got->{capabilities}{tools}, {}, 'beside what upstream can');
    is_deeply($got->{supportedVersions}, ['2026-07-28'],
              'the versions are those of upstream');

    # --- tools/list

    my $res = $c->legacy('tools/list');
    my %tools = tools(message($res));
    is_deeply([sort keys %tools],
              [qw/ export_all must never own plain slow /],
              "$style: the tools of both");
    is($tools{own}{description}, 'of the file', 'ours shadow');

    my %support = map { $_ => $tools{$_}{execution}{taskSupport} // 'none' }
                  keys %tools;
    is_deeply(\%support, { slow => 'required', plain => 'optional',
                           never => 'forbidden', export_all => 'forbidden',
                           own => 'optional', must => 'required' },
              'each with how it may be called');
    like($res->{body}, qr/"description":"Slow \\u00e9"/,
         'what upstream wrote stays as it is');
    like($res->{body}, qr/"minimum":1\.0/, 'to the digit');
    is(scalar(() = $res->{body} =~ /"name":"own"/g), 1, 'and none is twice');

    $res = $c->modern('tools/list');
    %tools = tools(message($res));
    is_deeply([sort keys %tools],
              [qw/ export_all must never own plain slow /],
              "$style: the tools of both, in the modern era");
    is(scalar(grep { $tools{$_}{execution} } qw/ slow plain own must /), 0,
       'which has no word on tasks there');

    # 2026-07-28, Caching: "should ensure that the cacheScope correctly reflects
    # the intended visibility of the primitive"; upstream says public
    is(message($res)->{result}{cacheScope}, 'private',
       'not to be shared where clients are known');

    # the revisions before know neither
    $res = $c->legacy('tools/list', undef,
                      headers => { 'MCP-Protocol-Version' => '2025-06-18' });
    %tools = tools(message($res));
    is(scalar(grep { $tools{$_}{execution} } qw/ slow plain own must /), 0,
       "$style: 2025-06-18 has none either");
}

$up->set(style => 'json');

# --- pages: ours come with the first, and shadow on all

{
    my $page = '{"jsonrpc":"2.0","id":%ID%,"result":{"tools":['
               . "$up_slow],\"nextCursor\":\"p2\"}}";
    my $second = '{"jsonrpc":"2.0","id":%ID%,"result":{"tools":['
                 . "$up_dup,$up_plain]}}";
    $up->script('tools/list', { rounds => [[['json', $page]],
                                           [['json', $second]]] });

    my $got = $c->legacy('tools/list')->{json};
    my %tools = tools($got);
    is_deeply([sort keys %tools], [qw/ must own slow /], 'the first page');
    is($got->{result}{nextCursor}, 'p2', 'goes on');

    $got = $c->legacy('tools/list', { cursor => 'p2' })->{json};
    is(($up->said('tools/list'))[-1]{json}{params}{cursor}, 'p2',
       'the cursor is upstream\'s');
    %tools = tools($got);
    is_deeply([sort keys %tools], ['plain'], 'ours are not on the second');
    is($tools{plain}{execution}{taskSupport}, 'optional',
       'but what can be said of a tool is');
}

# "Servers MUST apply the same cacheScope to all response pages for a given list
# request."
{
    my @pages = map { "{\"jsonrpc\":\"2.0\",\"id\":%ID%,\"result\":{$_}}" }
        '"cacheScope" : "public","tools":[],"nextCursor":"p2","ttlMs":0',
        '"tools":[],"ttlMs":0,"cacheScope":"public"';
    $up->script('tools/list', { rounds => [map { [['json', $_]] } @pages] });

    is($c->modern('tools/list', $_ ? { cursor => 'p2' } : {})
       ->{json}{result}{cacheScope}, 'private', "page $_: private") for 0, 1;
}

# --- a stream with other things before the answer

$up->script('tools/list', [['sse'],
    ['bytewise', "\xef\xbb\xbf: hello\r\nretry: 10\r\n\r\nid: 7\r\n"
     . "event: message\r\ndata: {\"jsonrpc\":\"2.0\",\"method\":"
     . "\"notifications/message\",\"params\":{}}\r\n\r\n"
     . "id: 8\r\ndata: {\"jsonrpc\":\"2.0\",\r\ndata: \"id\":%ID%,"
     . "\r\ndata: \"result\":{\"tools\":[$up_plain]}}\r\n\r\n"], ['end']]);

{
    # how lines end is not what this is about
    my $text = $c->legacy('tools/list', undef, id => 6)->{body};
    $text =~ s/\A\xef\xbb\xbf//;
    $text =~ s/\r\n?/\n/g;
    my @got = map { MCPClient::decode(join "\n", /^data: ?(.*)$/mg) || {} }
              grep { /^data:/m } split /\n\n/, $text;

    is($got[0]{method}, 'notifications/message', 'a notification goes through');
    my %tools = tools($got[1]);
    is_deeply([sort keys %tools], [qw/ must own plain /],
              'then the answer, though it came in pieces');
    is($got[1]{id}, 6, 'with its id');
}

# --- what cannot be changed is passed as it is

for my $case (
    ['an error', '{"jsonrpc":"2.0","id":1,"error":{"code":-5,"message":"x"}}'],
    ['tools that are no list', '{"jsonrpc":"2.0","id":1,"result":'
                               . '{"tools":{}}}'],
    ['a result that is none', '{"jsonrpc":"2.0","id":1,"result":7}'],
    ['another id', '{"jsonrpc":"2.0","id":99,"result":{"tools":[]}}'],
    ['no JSON', '{"jsonrpc":"2.0","id":1,"result":{"tools":[}'],
)
{
    my ($name, $body) = @$case;
    $up->script('tools/list', [['json', $body]]);
    my $res = $c->legacy('tools/list');
    is("$res->{status} $res->{body}", "200 $body", "$name: as it is");
}

for my $status (400, 404, 500) {
    $up->script('tools/list', [['json', '<p>no</p>', $status,
                                { 'Content-Type' => 'text/html' }]]);
    my $res = $c->legacy('tools/list');
    is("$res->{status} $res->{body}", "$status <p>no</p>",
       "$status: as it is");
}

# many tools: more than one buffer
{
    my @many = map { "{\"name\":\"t$_\",\"description\":\"" . 'd' x 300
                     . '","inputSchema":{"type":"object"}}' } 1 .. 1000;
    $up->script('tools/list', [['json',
        '{"jsonrpc":"2.0","id":%ID%,"result":{"tools":['
        . join(',', @many) . ']}}']]);
    my $res = $c->legacy('tools/list');
    my %tools = tools($res->{json});
    is(scalar keys %tools, 1002, 'a thousand tools, and ours');
    is($res->{header}{'content-length'} // length $res->{body},
       length $res->{body}, 'the length is right');
}

# --- compressed: not by upstream, which is not asked to; by nginx, if it should

{
    my %gzip = ('Accept-Encoding' => 'gzip, br');
    $up->script('tools/list', undef);

    for my $method ('tools/list', 'initialize', 'server/discover') {
        $c->legacy($method, {}, headers => \%gzip);
        is(($up->said($method))[-1]{head}{'accept-encoding'}, 'identity',
           "$method: what is changed is not to be compressed");
    }

    $c->legacy('prompts/list', {}, headers => \%gzip);
    is(($up->said('prompts/list'))[-1]{head}{'accept-encoding'}, 'gzip, br',
       'what is passed as it is may be');

    # nobody asked for it
    my $bytes = "\x1f\x8b\x08\0\0\0\0\0\0\x03\x03\0\0\0\0\0\0\0\0\0";
    $up->script('tools/list', [['json', $bytes, 200,
                                { 'Content-Encoding' => 'gzip' }]]);
    my $res = $c->legacy('tools/list');
    is("$res->{status} $res->{header}{'content-encoding'}", '200 gzip',
       'what comes compressed all the same');
    is($res->{body}, $bytes, 'is passed as it is');
}

$g->done('\[error\]');
done_testing();
