# What docs/rest.md shows: its commands have the output that it says, and its
# page does what it promises.

use warnings;
use strict;
use utf8;

use FindBin;
use lib "$FindBin::Bin/lib";

use Test::More;

use MCPClient;
use MCPExample qw/ unsteady /;
use MCPFile qw/ slurp write_file /;
use MCPTasks qw/ workers /;

my $t = MCPTasks->new(
    workers => workers(),
    files => { users => "ann:{PLAIN}secret\nbob:{PLAIN}secret\n" },
    http => 'mcp_tasks_zone zone=z:4m;',
    server => <<'END');
    location /mcp {
        mcp_tasks zone=z;
        auth_basic            "tasks";
        auth_basic_user_file  users;
        mcp_tasks_owner       $remote_user;
    }
    location /open { mcp_tasks zone=z; }
    location /worker { mcp_tasks_worker zone=z; }
END

my $c = MCPClient->new($t);
my $work;

# what happens before a command
my @before = (
    undef, undef,
    sub {
        $work = $c->claim('greet');
        $c->held('ask', $work, inputRequests => { name => {
            method => 'elicitation/create', params => {
                mode => 'form', message => 'What is your name?',
                requestedSchema => { type => 'object', properties => {
                    name => { type => 'string' } } } } } });
    },
    undef, undef,
    sub {
        $c->complete($work, '{"content":[{"type":"text",'
                            . '"text":"Good day, Ann."}]}');
    },
);


my $doc = slurp("$FindBin::Bin/../docs/rest.md");
my ($id, @commands);

while ($doc =~ /^```console\n(.*?)^```$/msg) {
    push @commands, grep { length } split /^\$ /m, $1;
}

cmp_ok(scalar @commands, '>', 8, 'there are commands');

for my $n (0 .. $#commands) {
    # a command goes on in lines that are indented
    my ($command, $output) = $commands[$n] =~ /\A([^\n]*\n(?:[ ]{4}[^\n]*\n)*)
                                              (.*)\z/sx;

    $before[$n]->() if $before[$n];

    local $ENV{url} = "http://127.0.0.1:$t->{port}/mcp";
    local $ENV{id} = $id;
    my $got = qx{$command};

    ($id) = $got =~ /"taskId":"([^"]+)"/ unless $id;
    is(unsteady($got), unsteady($output), "command $n")
        or diag($command);
}

# --- the page's function, where there is a fetch; a few lines stand in for
# EventSource, which t/browser.t tries with a browser

my ($page) = $doc =~ /^```js\n(.*?)^```$/ms;
my $script = "$t->{dir}/page.mjs";

$page =~ s{/mcp/}{http://127.0.0.1:$t->{port}/open/}g;
write_file($script, $page, <<'END');

globalThis.EventSource = class {
    constructor(url) { this.read(url); }

    async read(url) {
        let text = "";
        const bytes = new TextDecoder();

        for await (const part of (await fetch(url)).body) {
            text += bytes.decode(part, { stream: true });
            const events = text.split("\n\n");
            text = events.pop();

            for (const event of events) {
                const data = event.match(/^data: (.*)$/m);
                if (data) this.onmessage({ data: data[1] });
            }
        }
    }
};

const seen = [];
const result = await run("page", { n: 1 }, (task) => seen.push(task.status));
console.log(seen.at(-1), JSON.stringify(result.content));
const failed = await run("page", { n: 2 }, () => {}).catch((e) => e.message);
console.log(failed);
const refused = await run("", {}, () => {}).catch((e) => e.message);
console.log(refused);
END

SKIP: {
    skip 'this node has no fetch', 1
        if system(q{node -e 'process.exit(globalThis.fetch ? 0 : 1)'}) != 0;

    my $pid = open(my $out, '-|', 'node', $script) or die "node: $!\n";

    $work = $c->claim('page');
    $c->held('progress', $work, progress => 0.5);
    $c->complete($work, '{"content":[1]}');
    $c->held('fail', $c->claim('page'),
             error => { code => 1, message => 'no' });

    is(join('', <$out>), "completed [1]\nno\ninvalid_name\n",
       'the page gets the result, the error, and why not');
}

ok($t->stop(), 'nginx stops');
is($t->faults(), '', 'nothing in the log that should not be');

done_testing();
