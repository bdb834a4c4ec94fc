# EventSource in a browser, on pages of this and of other origins.

use warnings;
use strict;

use FindBin;
use lib "$FindBin::Bin/lib";

use File::Temp qw/ tempdir /;
use JSON::PP;
use POSIX qw/ WNOHANG setpgid /;
use Test::More;

use MCPClient;
use MCPExample qw/ blocks section /;
use MCPFile qw/ slurp /;
use MCPTasks qw/ free_port wait_for workers /;

my $json = JSON::PP->new->utf8->canonical;
my $pages = free_port();

# what the page hears it reports to where it came from
my $page = <<'END';
<!DOCTYPE html>
<title>events</title>
<link rel="icon" href="data:,">
<script>
const args = new URLSearchParams(location.search);
const say = (what) => fetch("/report?" + encodeURIComponent(
    JSON.stringify({ page: args.get("page"), ...what })));
const events = new EventSource(args.get("url"));
events.onopen = () => say({ heard: "open" });
events.onerror = () => say({ heard: "error", state: events.readyState });
events.onmessage = (e) => say({ heard: "message", id: e.lastEventId,
                                task: JSON.parse(e.data) });
</script>
END

# what README.md shows, and what it says
my ($snippet) = blocks(section("$FindBin::Bin/../README.md",
                               '### From a browser'), 'js');
my $readme = <<"END";
<!DOCTYPE html>
<title>README.md</title>
<link rel="icon" href="data:,">
<script type="module">
const console = { log: (...what) => fetch("/report?" + encodeURIComponent(
    JSON.stringify({ page: "readme", heard: "log", what }))) };
$snippet
</script>
END

my $t = MCPTasks->new(
    workers => workers(), listen => 'reuseport',
    tools => ['slow'],
    files => { 'page.html' => $page, 'readme.html' => $readme },
    http => 'mcp_tasks_zone zone=z:4m;'
            . ' log_format reports escape=none $args;'
            . " server { listen 127.0.0.1:$pages;"
            . ' location = /page.html { root .; }'
            . ' location = /report { access_log logs/reports reports;'
            . ' return 204; } }',
    server => 'location /mcp { mcp_tasks zone=z; mcp_tasks_tools tools.json;'
              . ' mcp_tasks_owner $arg_who;'
              . ' mcp_tasks_allow_origin http://good.example:' . $pages . '; }'
              . ' location = /page.html { root .; }'
              . ' location = /readme.html { root .; }'
              . ' location = /report { access_log logs/reports reports;'
              . ' return 204; }'
              . ' location /worker { mcp_tasks_worker zone=z; }');

my $ann = MCPClient->new($t, uri => '/mcp?who=ann');
my %browsers;


sub browse {
    my ($name, $origin, $url, $file) = @_;
    my $profile = tempdir(CLEANUP => 1);
    my $pid = fork();
    die "fork: $!\n" unless defined $pid;

    if ($pid == 0) {
        setpgid(0, 0);
        open(STDOUT, '>', "$t->{dir}/logs/browser-$name");
        open(STDERR, '>&', \*STDOUT);
        $url =~ s/([^A-Za-z0-9])/sprintf('%%%02X', ord $1)/ge;
        exec('chromium', qw/ --headless --no-sandbox --disable-gpu
             --disable-quic --no-first-run --disable-background-networking
             --disable-component-update --disable-sync
             --disable-dev-shm-usage /,
             '--host-resolver-rules=MAP *.example 127.0.0.1',
             '--remote-debugging-port=0', "--user-data-dir=$profile",
             $origin . '/' . ($file || 'page.html')
                 . "?page=$name&url=$url")
            or POSIX::_exit(127);
    }

    setpgid($pid, $pid);
    $browsers{$name} = $pid;
}


sub leave {
    my ($name) = @_;
    my $pid = delete $browsers{$name} or return;
    kill('KILL', -$pid);
    waitpid($pid, 0);
}

END {
    my $status = $?;
    leave($_) for keys %browsers;
    $? = $status;
}


sub reports {
    my ($name) = @_;
    my @reports;

    for my $line (split /\n/, slurp("$t->{dir}/logs/reports")) {
        $line =~ s/%([0-9A-Fa-f]{2})/chr hex $1/ge;
        my $report = eval { $json->decode($line) } or next;
        push @reports, $report if $report->{page} eq $name;
    }

    return @reports;
}


sub messages {
    return grep { $_->{heard} eq 'message' } reports(@_);
}


# reports of messages go out at the same time, and may come in any order
sub hears {
    my ($name, $what, $code) = @_;
    my $heard = wait_for {
        return scalar(grep { $code->($_) } messages($name));
    } 60;
    ok($heard, "$name: $what") or diag($json->encode([reports($name)]));
}


# for good: readyState is CLOSED
sub closes {
    my ($name) = @_;
    return wait_for {
        return scalar(grep { $_->{heard} eq 'error' && $_->{state} == 2 }
                      reports($name));
    } 60;
}


# --- a page of the same origin, of one that is allowed, and of another

{
    my $id = $ann->create('slow');
    my $own = "http://127.0.0.1:$t->{port}";
    my $url = "$own/mcp/tasks/$id/events?who=ann";

    browse('same', $own, $url);
    browse('good', "http://good.example:$pages", $url);
    browse('bad', "http://bad.example:$pages", $url);

    for my $name (qw/ same good /) {
        hears($name, 'the state at once', sub {
            $_[0]{task}{taskId} eq $id && $_[0]{task}{status} eq 'working'
            && $_[0]{id} eq $_[0]{task}{version} });
    }

    my $work = $ann->claim('slow');
    $ann->held('progress', $work, progress => 0.5, message => 'half');
    hears($_, 'progress', sub {
        ($_[0]{task}{progress} || 0) == 0.5
        && $_[0]{task}{statusMessage} eq 'half' }) for qw/ same good /;

    # the streams are cut, and come back where they were
    my @before = messages('same');
    ok($t->reload(), 'nginx is reloaded');
    $ann->held('progress', $work, progress => 0.75, message => 'more');
    hears($_, 'what is new after a cut', sub {
        ($_[0]{task}{statusMessage} || '') eq 'more' }) for qw/ same good /;

    $ann->complete($work, { content => [{ type => 'text', text => '<b>' }] });
    hears($_, 'the end', sub {
        $_[0]{task}{status} eq 'completed'
        && $_[0]{task}{result}{content}[0]{text} eq '<b>' })
        for qw/ same good /;

    # 204 tells it to leave it at that
    for my $name (qw/ same good /) {
        ok(closes($name), "$name: does not come back after the end");

        my %seen;
        $seen{$_->{id}}++ for messages($name);
        is_deeply([grep { $_ != 1 } values %seen], [], "$name: each once");
    }

    ok(closes('bad'), 'bad: is refused');
    is(scalar(messages('bad')), 0, 'bad: hears nothing');

    leave($_) for qw/ same good bad /;
}

# --- all tasks of the owner

{
    my @ids = map { $ann->create('slow') } 1 .. 3;

    browse('all', "http://good.example:$pages",
           "http://127.0.0.1:$t->{port}/mcp/tasks/events?who=ann");

    for my $id (@ids) {
        hears('all', 'of a task', sub { $_[0]{task}{taskId} eq $id });
    }

    my $work = $ann->claim('slow');
    $ann->complete($work, { content => [] });
    hears('all', 'how one ends', sub {
        $_[0]{task}{taskId} eq $work->{taskId}
        && $_[0]{task}{status} eq 'completed' });

    leave('all');
}

# --- the lines in README.md

{
    browse('readme', "http://127.0.0.1:$t->{port}", '', 'readme.html');
    my $work = $ann->claim('count', waitMs => 50000);
    is_deeply($work->{arguments}, { to => 5 }, 'readme: it calls');

    my $logged = sub {
        my ($name, @what) = @_;
        my $wanted = $json->encode(\@what);
        ok(wait_for {
            return scalar(grep { $json->encode($_->{what}) eq $wanted }
                          reports('readme'));
        }, "readme: $name") or diag($json->encode([reports('readme')]));
    };

    $logged->('the state at once', 'working', undef, undef, undef);
    $ann->held('progress', $work, progress => 2, total => 5);
    $logged->('progress', 'working', 2, 5, undef);
    $ann->complete($work, { content => [], resultType => 'complete' });
    $logged->('the end', 'completed', 2, 5,
              { content => [], resultType => 'complete' });

    leave('readme');
}

ok($t->stop(), 'nginx stops');
is($t->faults(), '', 'nothing to complain about in the log');

done_testing();
