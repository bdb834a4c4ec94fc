package MCPGateway;

# A gateway, the upstream behind it, and a client of it:
#
#   my $g = MCPGateway->new(on => { slow => [['sse'], ['hold'], ...] },
#                           tool => ['slow support=required']);
#   my $id = $g->task('slow');
#   $g->go('slow', ['result', '{}']);
#   is($g->ends($id)->{status}, 'completed', 'it ends');
#   $g->done();
#
# tool: lines of mcp_tasks_tool; conf, proxy: more for the endpoint's location
# and for the upstream's; file: the tools of the queue.  Other options are
# those of MCPTasks and MCPUpstream.

use warnings;
use strict;

use Test::More;

use MCPClient;
use MCPTasks qw/ wait_for /;
use MCPUpstream;

use constant FAILED => -31014;


sub new {
    my ($class, %opt) = @_;
    my $self = bless { tool => [], conf => '', proxy => '', pass => '/upstream',
                       server => '', http => '', store => '', more => {},
                       %opt }, $class;

    $self->{up} = MCPUpstream->new(map { exists $opt{$_} ? ($_ => $opt{$_})
                                                         : () }
                                   qw/ on list sessions host style port /);
    $self->{to} = "http://127.0.0.1:$self->{up}{port}/mcp"
        unless defined $self->{to};

    # with a socket of its own for each worker, connections go to all of them
    $self->{t} = MCPTasks->new(
        workers => $opt{workers} || 1, listen => 'reuseport',
        connections => $opt{connections} || 256,
        events => $opt{events} || '',
        files => { defined $opt{file} ? ('tools.json' => $opt{file}) : (),
                   %{ $opt{files} || {} } },
        %{ $self->config() });

    $self->{c} = MCPClient->new($self->{t}, headers => { 'X-User' => 'ann' });
    return $self;
}


# for MCPTasks; what is given replaces what was before
sub config {
    my ($self, %opt) = @_;
    $self->{$_} = $opt{$_} for keys %opt;

    my $tools = join "\n        ", map { "mcp_tasks_tool $_;" }
                                   @{ $self->{tool} };
    my $file = defined $self->{file} ? 'mcp_tasks_tools tools.json;' : '';

    return {
        http => "mcp_tasks_zone zone=z:8m $self->{store}; $file "
                . $self->{http},
        server => <<"END" };
    mcp_tasks_owner \$http_x_user;
    $self->{server}

    location /mcp {
        mcp_tasks zone=z;
        mcp_tasks_pass $self->{pass};
        $tools
        $self->{conf}
    }

    location = /upstream {
        internal;
        proxy_pass $self->{to};
        proxy_http_version 1.1;
        proxy_set_header Connection "";
        proxy_set_header Origin "";
        proxy_buffering off;
        $self->{proxy}
    }

    location /worker { mcp_tasks_worker zone=z; }
    location /probe { mcp_tasks_probe zone=z; }
END
}


# a task of the legacy era, by anybody who is given
sub task {
    my ($self, $tool, %opt) = @_;
    my $who = $opt{who} || $self->{c};
    my $res = $who->legacy('tools/call',
        { name => $tool, task => {}, arguments => {}, %{ $opt{params} || {} } },
        id => $opt{id}, headers => $opt{headers});
    my $id = $res->{json}{result}{task}{taskId};
    diag("no task: $res->{status} $res->{body}") unless $id;
    return $id // 'none';
}


# and of the modern one
sub modern_task {
    my ($self, $tool, %opt) = @_;
    my $who = $opt{who} || $self->{c};
    my $res = $who->modern('tools/call',
        { name => $tool, arguments => {}, %{ $opt{params} || {} } },
        id => $opt{id}, headers => $opt{headers}, meta => $opt{meta});
    my $id = $res->{json}{result}{taskId};
    diag("no task: $res->{status} $res->{body}") unless $id;
    return $id // 'none';
}


# a task whose call has begun: its id, and the call
sub begin {
    my ($self, $tool, %opt) = @_;
    my $n = $self->{up}->count($tool);
    my $id = $opt{modern} ? $self->modern_task($tool, %opt)
                          : $self->task($tool, %opt);
    return ($id, $self->{up}->call($tool, $n + 1));
}


# the task as modern clients see it, decoded and as text
sub get {
    my ($self, $id, $who) = @_;
    my $res = ($who || $self->{c})->modern('tasks/get', { taskId => $id });
    return { %{ $res->{json}{result} || {} }, text => $res->{body} };
}


# the task, as soon as the code is true for it; or how it was at last
sub until {
    my ($self, $id, $code, $seconds, $who) = @_;
    my $last = {};

    wait_for {
        $last = $self->get($id, $who);
        return $code->($last);
    } $seconds;

    return $last;
}


sub becomes {
    my ($self, $id, $status, $seconds) = @_;
    my $got = $self->until($id, sub { ($_[0]{status} // '') eq $status },
                           $seconds);
    diag("not $status: $got->{text}") if ($got->{status} // '') ne $status;
    return $got;
}


# the task when it has ended
sub ends {
    my ($self, $id, $seconds) = @_;
    return $self->until($id, sub {
        return ($_[0]{status} // '') =~ /^(completed|failed|cancelled)$/;
    }, $seconds);
}


# that it completes, with a result whose "a" is 1
sub completes {
    my ($self, $id, $name, $seconds) = @_;
    my $got = $self->ends($id, $seconds);
    is($got->{status} . ' ' . ($got->{result}{a} // '-'), 'completed 1', $name)
        or diag($got->{text});
}


# that it completes when its call is answered
sub finish {
    my ($self, $id, $call, $name) = @_;
    $self->{up}->go($call, ['result', '{"content":[]}']);
    is($self->ends($id, 15)->{status}, 'completed', "$name: it completes");
}


# that these calls are running, by their argument "n"
sub runs {
    my ($self, $want, $name) = @_;
    my $got = '';

    wait_for {
        $got = join ' ', sort map { $_->{json}{params}{arguments}{n} }
                              $self->{up}->open_calls();
        return $got eq $want;
    } 15;

    is($got, $want, $name);
}


# that it fails for this reason
sub fails {
    my ($self, $id, $reason, $name, $seconds) = @_;
    my $got = $self->ends($id, $seconds);
    my $is = join ' ', map { $_ // '-' } $got->{status}, $got->{error}{code},
                                         $got->{error}{data}{reason};
    is($is, 'failed ' . FAILED . " $reason", $name) or diag($got->{text});
    return $got;
}


# what tasks/result of the legacy era answers, to the byte
sub result {
    my ($self, $id, $who) = @_;
    return ($who || $self->{c})->legacy('tasks/result',
                                        { taskId => $id })->{body};
}


# that answer for a result without _meta
sub with_related {
    my ($id, $rest) = @_;
    return '{"jsonrpc":"2.0","id":1,"result":{"_meta":{'
           . '"io.modelcontextprotocol/related-task":{"taskId":"' . $id . '"}}'
           . ($rest eq '' ? '' : ",$rest") . '}}';
}


# the latest call of a tool that upstream has and has not answered goes on
sub go {
    my ($self, $tool, @steps) = @_;
    my $call = wait_for { ($self->{up}->open_calls($tool))[-1] };

    return $call && $self->{up}->go($call, @steps) ? $call : undef;
}


sub done {
    my ($self, $expected) = @_;
    my $t = $self->{t};

    is($t->probe('op=check')->{check}, 'ok', 'the table is in order');
    ok($t->stop(), 'nginx stops');
    is($t->faults($expected), '', 'nothing in the log that should not be');
    $self->{up}->stop();
}


1;
