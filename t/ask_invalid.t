# Questions are checked when they are asked: one of the three methods of the
# specification, with params that fit its schema, and with URLs that a user may
# be sent to.  What the other era does not know is not told to it.

use warnings;
use strict;

use FindBin;
use lib "$FindBin::Bin/lib";

use JSON::PP;
use Test::More;

use MCPClient qw/ answer /;
use MCPTasks qw/ workers /;

my $t = MCPTasks->new(
    workers => workers(), listen => 'reuseport',
    tools => [['slow', '']],
    http => 'mcp_tasks_zone zone=z:2m; mcp_tasks_tools tools.json;',
    server => 'mcp_tasks_owner $http_x_user;'
              . ' location /mcp { mcp_tasks zone=z; }'
              . ' location /worker { mcp_tasks_worker zone=z; }');

my $meta = 'io.modelcontextprotocol';
my $c = MCPClient->new($t, headers => { 'X-User' => 'ann' });

my $form = { type => 'object', properties => {} };
my $url = ', a URL must be absolute and valid, use https, or http on a '
          . 'loopback host, and have no user information';


sub elicit {
    my (%params) = @_;
    return { method => 'elicitation/create', params => \%params };
}


sub link_to {
    my ($url, %more) = @_;
    return elicit(mode => 'url', message => 'Sign in', url => $url, %more);
}


sub field {
    my (%schema) = @_;
    return elicit(message => 'm', requestedSchema => {
        type => 'object', properties => { f => \%schema } });
}


# --- what is not asked: where it is wrong, and the keyword

# 2026-07-28, basic/patterns/mrtr: "inputRequests values are request objects that
# MUST be one of ElicitRequest, CreateMessageRequest, or ListRootsRequest";
# client/elicitation: "form mode elicitation schemas are limited to flat objects
# with primitive properties only", "The url parameter MUST contain a valid URL"
my @invalid = (
    [{ method => 'foo/bar', params => {} }, '/method', 'enum'],
    [{ method => 'tools/call', params => {} }, '/method', 'enum'],
    [{ method => 'elicitation/create' }, '', 'required', 'params'],
    [{ method => 'sampling/createMessage' }, '', 'required', 'params'],
    [elicit(), '/params', 'required', 'message'],
    [elicit(message => 'm'), '/params', 'required', 'requestedSchema'],
    [elicit(message => 1, requestedSchema => $form), '/params/message', 'type'],
    [elicit(mode => 'x', message => 'm', requestedSchema => $form),
     '/params/mode', 'const'],
    [elicit(message => 'm', requestedSchema => { type => 'object' }),
     '/params/requestedSchema', 'required', 'properties'],
    [field(type => 'object', properties => {}),
     '/params/requestedSchema/properties/f/type', 'enum'],
    [field(type => 'integer', minimum => '1'),
     '/params/requestedSchema/properties/f/minimum', 'type'],
    [field(type => 'array', items => { type => 'number' }),
     '/params/requestedSchema/properties/f/items', 'anyOf'],
    [elicit(mode => 'url', message => 'm'), '/params', 'required', 'url'],
    [{ method => 'sampling/createMessage', params => { messages => [] } },
     '/params', 'required', 'maxTokens'],
    [{ method => 'sampling/createMessage', params => { maxTokens => 1,
       messages => [{ role => 'user', content => { type => 'text' } }] } },
     '/params/messages/0/content', 'required', 'text'],
    [{ method => 'roots/list', params => { _meta => 1 } }, '/params/_meta',
     'type'],
    (map { [link_to($_), '/params/url', 'format'] }
         'javascript:alert(1)', 'data:text/html,x', '/relative', 'https://',
         'https://user@example.com/', 'https://user:secret@example.com/',
         'http://example.com/', 'http://127.0.0.1.example.com/',
         'https://example.com/ x', "https://example.com/\n",
         'https://example.com\\@other.example/'),
);

my $id = $c->create_modern('slow');
my $work = $c->claim('slow', leaseMs => 60000);
my $before = $c->modern('tasks/get', { taskId => $id })->{body};

for (@invalid) {
    my ($question, $pointer, $keyword, $missing) = @$_;
    my $name = MCPClient::encode($question);
    $pointer = "/q$pointer";
    my $error = {
        code => -32602, message => "Invalid params: inputRequests: $pointer: "
            . "$keyword is not satisfied"
            . ($missing ? ", \"$missing\" is missing" : '')
            . ($keyword eq 'format' ? $url : ''),
        data => { reason => 'invalid_question', pointer => $pointer,
                  keyword => $keyword } };

    is_deeply($c->held('ask', $work, inputRequests => {
        a => MCPClient::form(), q => $question })->{error}, $error,
        "refused: $name");
    is_deeply($c->legacy('tasks/update', {
        taskId => $id, status => 'input_required', lease => $work->{lease},
        inputRequests => { q => $question } })->{json}{error}, $error,
        'over tasks/update, too');
}

is($c->modern('tasks/get', { taskId => $id })->{body}, $before,
   'nothing has changed');

# a value that the schema has to read twice
is($c->worker('worker/ask', "{\"taskId\":\"$id\",\"lease\":\"$work->{lease}\","
   . '"inputRequests":{"q":{"method":"elicitation/create","params":{"mode":'
   . '"url","message":"m","url":"https://a","url":"javascript:x"}}}}')
   ->{error}{data}{reason}, 'invalid_question', 'two URLs');

# --- what is asked

for my $question (
    MCPClient::form(), field(type => 'string', format => 'email'),
    field(type => 'string', enum => ['a'], enumNames => ['A']),
    field(type => 'array', items => { anyOf => [{ const => 'a',
                                                  title => 'A' }] }),
    link_to('https://example.com/a?b=c#d'), link_to('http://localhost:8080/'),
    link_to('http://127.0.0.1/'), link_to('http://[::1]:3000/x'),
    { method => 'roots/list' }, { method => 'roots/list', params => {} },
    { method => 'sampling/createMessage', params => { maxTokens => 1,
      messages => [{ role => 'user', content => { type => 'text',
                                                  text => 't' } }] } })
{
    my $id = $c->create_modern('slow');
    my $work = $c->claim('slow');
    is($c->held('ask', $work, inputRequests => { q => $question })->{phase},
       'input_required', 'asked: ' . MCPClient::encode($question));
    is_deeply($c->get_modern($id)->{inputRequests}, { q => $question },
              'as it is');
    $c->complete($work, '{}');
}

# as many as there may be, each with many fields
{
    my %fields = map { ("f$_" => { type => 'string', title => "t" }) } 1 .. 50;
    my %many = map { ("q$_" => elicit(message => 'm', requestedSchema => {
        type => 'object', properties => \%fields })) } 1 .. 64;
    my $id = $c->create_modern('slow');
    my $work = $c->claim('slow');
    is($c->held('ask', $work, inputRequests => \%many)->{phase},
       'input_required', '64 questions with 50 fields each');
    $c->complete($work, '{}');
}

# --- a URL has an id in the legacy era only

# 2025-11-25, client/elicitation: "URL mode elicitation requests MUST ... include
# these additional parameters": url, elicitationId; 2026-07-28, changelog:
# "Remove ... the elicitationId field of URL mode elicitation requests"
{
    my $legacy = $c->in_session();
    my $id = $c->create_modern('slow');
    my $work = $c->claim('slow', leaseMs => 60000);
    my $asked = '{"with":{"method":"elicitation/create","params":{"mode":"url",'
        . '"elicitationId":"e-1","message":"m","url":"https://a.example/"}},'
        . '"without":{"method":"elicitation/create","params":{"message":"m",'
        . '"mode":"url","url":"https://b.example/"}},'
        . '"roots":{"method":"roots/list"}}';
    (my $modern = $asked) =~ s/"elicitationId":"e-1",//;
    $c->worker('worker/ask', "{\"taskId\":\"$id\",\"lease\":\"$work->{lease}\","
                             . "\"inputRequests\":$asked}");

    like($c->modern('tasks/get', { taskId => $id })->{body},
         qr/"inputRequests":\Q$modern\E/, 'tasks/get: without');
    like($c->rest("tasks/$id")->{body}, qr/"inputRequests":\Q$modern\E/,
         'REST: without');

    my $stream = $c->stream($c->modern_bytes('subscriptions/listen', {
        notifications => { taskIds => [$id] } }));
    $stream->message(10);
    is_deeply($stream->message(10)->{params}{inputRequests},
              MCPClient::decode($modern), 'subscriptions/listen: without');
    $stream->close();

    $stream = $legacy->stream($legacy->legacy_bytes('tasks/result',
                                                    { taskId => $id }));
    my %got = map { $_->{id} => $_ } map { $stream->message(10) } 1 .. 3;
    my %has = (_meta => { "$meta/related-task" => { taskId => $id } });
    is_deeply($got{"$id/with"}{params},
              { mode => 'url', elicitationId => 'e-1', message => 'm',
                url => 'https://a.example/', %has }, 'legacy: its own id');
    is_deeply($got{"$id/without"}{params},
              { mode => 'url', elicitationId => "$id/without", message => 'm',
                url => 'https://b.example/', %has }, 'legacy: an id');
    is_deeply($got{"$id/roots"}{params}, \%has, 'legacy: params');
    is($got{"$id/roots"}{method}, 'roots/list', 'of this method');
    $stream->close();
    $c->complete($work, '{}');
}

# in the result of a call
{
    my $s = $t->connect();
    MCPTasks::send_raw($s, $c->modern_bytes('tools/call', { name => 'slow' },
        meta => { "$meta/clientCapabilities" => { elicitation => {
                  url => {} } } }));
    my $work = $c->claim('slow');
    $c->held('ask', $work, inputRequests => {
        q => link_to('https://a.example/', elicitationId => 'e') });
    my $result = answer($s)->{json}{result};
    is($result->{resultType}, 'input_required', 'a call that asks');
    is_deeply($result->{inputRequests}, { q => link_to('https://a.example/') },
              'without the id');
}

done_testing();
