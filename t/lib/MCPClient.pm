package MCPClient;

# What clients and workers say to a server that a test has started:
#
#   my $c = MCPClient->new($t, headers => { 'X-User' => 'ann' });
#   my $res = $c->legacy('tools/call', { name => 'slow', task => {} });
#   my $work = $c->claim('slow');
#   $c->complete($work, { content => [] });
#   $res = $c->modern('tasks/get', { taskId => $work->{taskId} });
#
# Parameters are data, or a string that is sent as it is.  An answer has what
# MCPTasks::read_response() gives, and json: the decoded body.

use warnings;
use strict;

use IO::Select;
use JSON::PP;

use MCPJson;
use MCPTasks;

use Exporter qw/ import /;

our @EXPORT_OK = qw/ answer /;

my $json = JSON::PP->new->canonical->allow_nonref;

my $meta = 'io.modelcontextprotocol';

# unless told otherwise, clients can answer every question
my %can = (elicitation => { form => {}, url => {} },
           sampling => { tools => {} }, roots => {});


sub new {
    my ($class, $t, %opt) = @_;
    return bless { t => $t, uri => '/mcp', work => '/worker', headers => {},
                   extensions => ["$meta/tasks"], %opt }, $class;
}


# the same server seen by somebody else
sub as {
    my ($self, %opt) = @_;
    return bless { %$self, %opt }, ref $self;
}


# by the owner of that name
sub user {
    my ($self, $name) = @_;
    return $self->as(headers => { 'X-User' => $name });
}


# a question that every server may ask
sub form {
    my ($message) = @_;
    return { method => 'elicitation/create',
             params => { message => $message // '?',
                         requestedSchema => { type => 'object',
                                              properties => {} } } };
}


sub encode {
    my ($data) = @_;
    return ref $data ? $json->encode($data) : $data;
}


sub decode {
    my ($text) = @_;
    MCPJson::check($text);
    my $data = eval { JSON::PP->new->allow_nonref->decode($text) };
    return $data;
}


sub rpc {
    my ($method, $params, $id) = @_;
    return '{"jsonrpc":"2.0","id":' . (defined $id ? $id : 1)
           . ',"method":' . $json->encode($method)
           . (defined $params ? ',"params":' . encode($params) : '') . '}';
}


# A request as bytes: for a connection on which something is to happen before
# the answer comes.  Of the headers, undef leaves one out.
sub bytes {
    my ($uri, $body, %headers) = @_;
    return MCPTasks::message('POST', $uri,
                             { 'Content-Type' => 'application/json',
                               'Accept' => 'application/json, '
                                           . 'text/event-stream',
                               %headers }, $body);
}


sub legacy_bytes {
    my ($self, $method, $params, %opt) = @_;
    return bytes($self->{uri}, rpc($method, $params, $opt{id}),
                 'MCP-Protocol-Version' => '2025-11-25',
                 %{ $self->{headers} }, %{ $opt{headers} || {} });
}


# _meta goes first into the parameters; extensions says what is declared
sub modern_bytes {
    my ($self, $method, $params, %opt) = @_;
    my %extensions = map { $_ => {} }
                     @{ $opt{extensions} || $self->{extensions} };
    my %meta = ("$meta/protocolVersion" => '2026-07-28',
                "$meta/clientCapabilities"
                    => { %{ $opt{can} || $self->{can} || \%can },
                         %extensions ? (extensions => \%extensions) : () },
                %{ $opt{meta} || {} });

    my $text = encode(defined $params ? $params : {});
    $text =~ s/\A\{/'{"_meta":' . $json->encode(\%meta) . ','/e;
    $text =~ s/,\}\z/}/;

    my %headers = ('MCP-Protocol-Version' => '2026-07-28',
                   'Mcp-Method' => $method);

    if (ref $params && $method =~ m{^(tools/call|tasks/(get|update|cancel))$}) {
        my $name = $params->{$1 eq 'tools/call' ? 'name' : 'taskId'};
        $headers{'Mcp-Name'} = $name;
    }

    return bytes($self->{uri}, rpc($method, $text, $opt{id}), %headers,
                 %{ $self->{headers} }, %{ $opt{headers} || {} });
}


# over a connection of its own, unless "via" names one that is kept
sub say_bytes {
    my ($self, $bytes, $method) = @_;
    my $s = $self->{via} || $self->{t}->connect() or die "no connection\n";

    MCPTasks::send_raw($s, $bytes) or die "nothing was taken\n";
    return answer($s, $method);
}


# the answer to what was sent on a connection
sub answer {
    my ($s, $method) = @_;
    my $res = MCPTasks::read_response($s, $method)
              || { status => 0, body => 'no answer', header => {} };

    $res->{json} = decode($res->{body});
    return $res;
}


sub legacy {
    my ($self, @args) = @_;
    return $self->say_bytes($self->legacy_bytes(@args));
}


sub modern {
    my ($self, @args) = @_;
    return $self->say_bytes($self->modern_bytes(@args));
}


# a message of the legacy era that is no request
sub post {
    my ($self, $body, %headers) = @_;
    return $self->say_bytes(bytes($self->{uri}, encode($body),
                                  'MCP-Protocol-Version' => '2025-11-25',
                                  %{ $self->{headers} }, %headers));
}


# the result, or the error under that name
sub worker {
    my ($self, $method, $params) = @_;
    my $res = $self->say_bytes(bytes($self->{work}, rpc($method, $params)));
    my $got = $res->{json} || { error => { message => $res->{body} } };
    return $got->{result} || { error => $got->{error} };
}


# one task of a tool, within some seconds
sub claim {
    my ($self, $tool, %opt) = @_;
    my $got = $self->worker('worker/claim', { tools => [$tool], waitMs => 10000,
                                              %opt });
    return $got->{tasks}[0];
}


# the task with that id, which is the next one of the tool
sub claim_id {
    my ($self, $tool, $id) = @_;
    my $work = $self->claim($tool, leaseMs => 600000);
    die "another task is next\n" unless $work && $work->{taskId} eq $id;
    return $work;
}


sub held {
    my ($self, $what, $work, %params) = @_;
    return $self->worker("worker/$what", { taskId => $work->{taskId},
                                           lease => $work->{lease},
                                           %params });
}


sub complete {
    my ($self, $work, $result) = @_;
    return $self->worker('worker/complete',
                         '{"taskId":"' . $work->{taskId} . '","lease":"'
                         . $work->{lease} . '","result":' . encode($result)
                         . '}');
}


# The REST view: what lies below the endpoint, and a task's part of it.
sub rest_bytes {
    my ($self, $path, %opt) = @_;
    return MCPTasks::message($opt{method} || 'GET', "$self->{uri}/$path",
                             { %{ $self->{headers} },
                               %{ $opt{headers} || {} } }, $opt{body});
}


sub rest {
    my ($self, $path, %opt) = @_;
    return $self->say_bytes($self->rest_bytes($path, %opt), $opt{method});
}


# as JSON; without a body, nothing is sent
sub rest_post {
    my ($self, $path, $body, %headers) = @_;
    my %type = ('Content-Type' => 'application/json',
                defined $body ? () : ('Content-Length' => 0));

    return $self->rest($path, method => 'POST',
                       headers => { %type, %headers },
                       body => defined $body ? encode($body) : undef);
}


# with the id of the last event that was seen, if there is one
sub follow {
    my ($self, $path, $last, %opt) = @_;
    return $self->stream($self->rest_bytes($path, headers =>
        { Accept => 'text/event-stream', 'Last-Event-ID' => $last, %opt }));
}


# a task of the legacy era, of the modern one, or of the REST view: its id
sub create {
    my ($self, $tool, %params) = @_;
    my $res = $self->legacy('tools/call', { name => $tool, task => {},
                                            %params });
    my $id = $res->{json}{result}{task}{taskId} or die "$res->{body}\n";
    return $id;
}


sub create_modern {
    my ($self, $tool, %params) = @_;
    my $res = $self->modern('tools/call', { name => $tool, %params });
    my $id = $res->{json}{result}{taskId} or die "$res->{body}\n";
    return $id;
}


sub create_rest {
    my ($self, $tool, %params) = @_;
    my $res = $self->rest_post('tasks', { tool => $tool, %params });
    my $id = $res->{json}{taskId} or die "$res->{body}\n";
    return $id;
}


# a task as clients of both eras see it; empty, if they do not
sub get {
    my ($self, $id) = @_;
    return $self->legacy('tasks/get', { taskId => $id })->{json}{result} || {};
}


sub get_modern {
    my ($self, $id) = @_;
    return $self->modern('tasks/get', { taskId => $id })->{json}{result} || {};
}


# its status, or the reason why there is none
sub status {
    my ($self, $id) = @_;
    my $got = $self->legacy('tasks/get', { taskId => $id })->{json};
    return $got->{result} ? $got->{result}{status}
                          : $got->{error}{data}{reason};
}


# the same client in a session of its own, with these capabilities
sub in_session {
    my ($self, %with) = @_;
    my $res = $self->legacy('initialize',
                            { protocolVersion => $with{version} || '2025-11-25',
                              capabilities => $with{can} || \%can,
                              clientInfo => { name => 'x', version => '1' } });
    my $session = $res->{header}{'mcp-session-id'} or die "no session\n";

    return $self->as(session => $session,
                     headers => { %{ $self->{headers} },
                                  'Mcp-Session-Id' => $session });
}


# GET on the endpoint or on what lies below it, as bytes
sub get_bytes {
    my ($self, $path, %headers) = @_;
    return MCPTasks::message('GET', $self->{uri} . (defined $path ? $path : ''),
                             { 'Accept' => 'text/event-stream',
                               %{ $self->{headers} }, %headers });
}


# A stream of events, over a connection of its own unless one is given: the
# head is read, the events come one by one.
sub stream {
    my ($self, $bytes, $s) = @_;
    $s = $self->{t}->connect() unless $s;
    die "no connection\n" unless $s;
    MCPTasks::send_raw($s, $bytes) or die "nothing was taken\n";
    return MCPClient::Stream->new($s);
}


# the stream of the session; it is open when its first event has come
sub get_stream {
    my ($self, $s, %headers) = @_;
    my $stream = $self->stream($self->get_bytes('', %headers), $s);
    my $first = $stream->event() || {};

    # 2025-11-25: an event with an id and no data may come before
    $first = $stream->event() || {}
        if defined $first->{data} && $first->{data} eq '';
    die "no stream: $stream->{head}\n" unless $first->{retry};
    return $stream;
}


package MCPClient::Stream;

use Time::HiRes qw/ time /;

sub new {
    my ($class, $s) = @_;
    return bless { s => $s, raw => '', text => '', over => 0 }, $class;
}


# whether more came, in so many seconds
sub more {
    my ($self, $seconds) = @_;
    return 0 if $self->{over};

    $seconds = 0 if $seconds < 0;
    return 0 unless IO::Select->new($self->{s})->can_read($seconds);

    if (!sysread($self->{s}, $self->{raw}, 65536, length $self->{raw})) {
        $self->{over} = 1;
        $self->{cut} = 1 unless $self->{whole};
        return 0;
    }

    return 1;
}


sub head {
    my ($self, $seconds) = @_;
    my $end = time() + (defined $seconds ? $seconds : 30);

    while (!defined $self->{head}) {
        if ($self->{raw} =~ s/\A(.*?)\r\n\r\n//s) {
            $self->{head} = $1;
            last;
        }

        return '' unless $self->more($end - time());
    }

    return $self->{head};
}


# The next event: { data, event, id } or { comment }; nothing when the time is
# up or the stream has ended.
sub event {
    my ($self, $seconds) = @_;
    my $end = time() + (defined $seconds ? $seconds : 30);

    $self->head($seconds) or return;

    for (;;) {
        while ($self->{raw} =~ /\A([0-9a-f]+)\r\n/i) {
            my ($size, $line) = (hex $1, length($1) + 2);
            last if length $self->{raw} < $line + $size + 2;

            $self->{text} .= substr($self->{raw}, $line, $size);
            substr($self->{raw}, 0, $line + $size + 2, '');
            $self->{whole} = 1 if $size == 0;
        }

        if ($self->{text} =~ s/\A(.*?)\n\n//s) {
            my ($text, %event) = ($1);

            for (split /\n/, $text) {
                if (/^:\s?(.*)/) {
                    $event{comment} = $1;
                } elsif (/^(\w+): ?(.*)/) {
                    $event{$1} = defined $event{$1} ? "$event{$1}\n$2" : $2;
                }
            }

            $event{json} = MCPClient::decode($event{data})
                if defined $event{data};
            return \%event;
        }

        return if $self->{whole};
        $self->more($end - time()) or return;
    }
}


# The next one that is not a comment, or that has data; empty, if none comes.
# The id of the last one is kept as "last".
sub next_event {
    my ($self, $seconds) = @_;

    while (my $event = $self->event($seconds)) {
        next if exists $event->{comment};
        $self->{last} = $event->{id} if defined $event->{id};
        return $event;
    }

    return {};
}


# a first event with an id and no data is not a message
sub next_data {
    my ($self, $seconds) = @_;

    while (my $event = $self->event($seconds)) {
        return $event if length($event->{data} // '');
    }

    return {};
}


# the next message, decoded
sub message {
    my ($self, $seconds) = @_;
    return $self->next_data($seconds)->{json};
}


# The next message on any of several streams: the stream and the event.
sub any {
    my ($streams, $seconds) = @_;
    my $end = time() + $seconds;

    for (;;) {
        for my $stream (@$streams) {
            while (my $event = $stream->event(0)) {
                return ($stream, $event) if length($event->{data} // '');
            }
        }

        my @open = map { $_->{s} } grep { !$_->{over} && !$_->{whole} }
                   @$streams;
        my $left = $end - time();
        return if $left < 0 || !@open;
        IO::Select->new(@open)->can_read($left);
    }
}


sub close {
    my ($self) = @_;
    close($self->{s});
    $self->{over} = 1;
}


1;
