# The Debian package: what debian/ says is so, and, if MCP_TASKS_DEB names a
# package, it is installed beside the distribution's nginx, used as README.md
# says, removed and purged.  The latter only in a system that is thrown away,
# DEB_ROOT, which takes namespaces of one's own and some hundred megabytes to
# download: hence by "make deb-test", not by "make test".

use warnings;
use strict;

use FindBin;
use lib "$FindBin::Bin/lib";

use File::Find qw/ find /;
use JSON::PP;
use POSIX qw/ _exit /;
use Test::More;

use MCPFile qw/ slurp /;
use MCPTasks qw/ wait_for /;

my $top = "$FindBin::Bin/..";
my $package = 'libnginx-mod-http-mcp-tasks';
my $so = 'ngx_http_mcp_tasks_module.so';
my $readme = slurp("$top/README.md");

# one version
my ($version) = slurp("$top/src/core/ngx_mcp_version.h")
                    =~ /^#define NGX_MCP_VERSION\s+"(.*)"$/m;
like(slurp("$top/debian/changelog"), qr/\A\Q$package\E \(\Q$version\E-\d+\) /,
     'debian/changelog has the version of the module');

# one license
my ($license) = slurp("$top/debian/copyright") =~ /^License: .*?\n(.*)\z/ms;
$license =~ s/^ \.?//mg;
is($license, slurp("$top/LICENSE") =~ s/\A.*\n\n//r,
   'debian/copyright has the license');

# one example, for a whole configuration and for a part of one
my ($part) = slurp("$top/conf/nginx.conf") =~ /^(    # Shared memory.*)^\}\n\z/ms;
$part //= '';
$part =~ s/^    //mg;
is(slurp("$top/conf/mcp-tasks.conf") =~ s/\A.*?\n\n//sr, $part,
   'conf/mcp-tasks.conf is what conf/nginx.conf has within http');

# the commands and the name of the package in the documentation
my ($section) = $readme =~ /^## Debian package\n(.*?)^## /ms;
my ($install, $try) = ($section // '') =~ /^```sh\n(.*?)^```$/msg;
like($install // '', qr/\Q$package\E_/, 'README.md says what to install');
like($try // '', qr/\Q$package\E/, 'and how to try it');

my $deb = $ENV{MCP_TASKS_DEB};
my $root = $ENV{DEB_ROOT};

if (!$deb) {
    note('installing and using it is tested by "make deb-test"');
    done_testing();
    exit;
}

# never the machine's own
die "no system to install it in\n" unless $root && -e "$root/etc/nginx";

my $enabled = 'etc/nginx/modules-enabled/50-mod-http-mcp-tasks.conf';
my $said;
my $worker;


# the words of a command that runs in the throw-away system
sub there {
    my ($command) = @_;
    return ('chroot', $root, 'env', '-i', 'PATH=/usr/sbin:/usr/bin:/sbin:/bin',
            'HOME=/root', 'LC_ALL=C.UTF-8', 'DEBIAN_FRONTEND=noninteractive',
            'bash', '-euc', "cd /root; $command");
}


sub run {
    my ($command) = @_;
    system(there("exec > /run/said 2>&1; $command"));
    my $status = $?;
    $said = slurp("$root/run/said");
    return $status == 0;
}


sub runs {
    my ($command, $name) = @_;
    return ok(run($command), $name) || diag($said);
}


sub served {
    my ($name) = @_;
    runs('curl -sSf -o /dev/null http://127.0.0.1/', $name);
}


# what a running nginx has mapped: "loaded", "not loaded"
sub loaded {
    my $pid = slurp("$root/run/nginx.pid");
    chomp $pid;
    my $maps = slurp("$root/proc/$pid/maps");
    return 'not running' if $maps eq '';
    return index($maps, $so) >= 0 ? 'loaded' : 'not loaded';
}


# every path, but what is of the moment, or written by apt and dpkg themselves
sub paths {
    my @paths;

    find({ no_chdir => 1, wanted => sub {
        my $path = substr($_, length $root);
        if ($path =~ m{^/(dev|proc|run|tmp|var/cache|var/log|var/lib/apt)$}) {
            $File::Find::prune = 1;
            return;
        }
        push @paths, $path unless $path =~ m{^/var/lib/dpkg/(.*-old|lock.*)$};
    } }, $root);

    return [sort @paths];
}


END {
    my $status = $?;
    kill('KILL', $worker) if $worker;
    $? = $status;
}


# what it declares
my ($depends) = `dpkg-deb -f '$deb' Depends` =~ /(.*)/;
my ($nginx) = `chroot '$root' dpkg-query -W -f '\${Version}' nginx`
                  =~ /^(?:\d+:)?([\d.]+)/;
like($depends, qr/\bnginx-abi-\Q$nginx\E-\d+\b/, 'it depends on the ABI');
like($depends, qr/\blibjansson4\b/, 'and on jansson');
like(`dpkg-deb -f '$deb' Version`, qr/^\Q$version\E-\d+~deb\d+$/, 'version');

# before; packages may reload services only with leave, as there is no init
runs("printf '#!/bin/sh\nexit 104\n' > /usr/sbin/policy-rc.d"
     . ' && chmod 755 /usr/sbin/policy-rc.d', 'services are managed');
runs('service nginx start', 'nginx starts without it');
served('and serves');
is(loaded(), 'not loaded', 'the module is not there');
my $before = paths();

# installed
system('cp', $deb, "$root/run/package.deb");
runs('apt-get -y install /run/package.deb', 'it is installed');
is(readlink("$root/$enabled"),
   '/usr/share/nginx/modules-available/mod-http-mcp-tasks.conf',
   'it is enabled');
is(wait_for { loaded() eq 'loaded' }, 1, 'the nginx that runs has loaded it');

runs('nginx -t', 'its configuration is right');
run('nginx -T 2> /dev/null');
is_deeply([$said =~ /^\s*load_module\s+(.*);/mg], ["modules/$so"],
          'one line loads it');
served('nginx serves as before');

for my $file (qw{ README.md docs/directives.md changelog.gz copyright
                  changelog.Debian.gz examples/nginx.conf
                  examples/mcp-tasks.conf examples/tools.json
                  examples/worker.py })
{
    ok(-s "$root/usr/share/doc/$package/$file", "there is $file");
}

# used, as README.md says: all but the last command, which stays
(my $commands = $try) =~ s/\bsudo //g;
$commands =~ s/^(\S.*)\n\z//m;
my $last = $1;
runs($commands, 'README.md: how to try it');

$worker = fork();
die "fork: $!\n" unless defined $worker;

if ($worker == 0) {
    exec(there("cd /usr/share/doc/$package/examples; exec $last"
               . ' > /run/worker 2>&1')) or _exit(1);
}

# a reload takes its time
ok(wait_for { run('curl -sS http://127.0.0.1:8080/mcp') }, 'it is reloaded')
    or diag($said);

my ($mcp, $call) = $readme =~ /^```sh\n(mcp\(\) \{.*?^\}\n)\n(.*?)^```$/ms;
runs($mcp . $call, 'README.md: a call');
my $task = eval { decode_json($said)->{result}{task} };
is($task->{status}, 'working', 'is a task') or diag($said);

my ($result) = $readme =~ /^(mcp '[^']*"tasks\/result".*?)^```$/ms;
my ($documented) = $result =~ /"taskId":"([^"]+)"/;
$result =~ s/\Q$documented\E/$task->{taskId}/ if $task->{taskId};
runs($mcp . $result, 'README.md: its result');
is(eval { decode_json($said)->{result}{content}[0]{text} }, 'counted to 5',
   'the worker has done it') or diag($said);

# not enabled: that would have been noticed, and the choice is respected
unlink("$root/$enabled") or fail("unlink: $!");
ok(!run('nginx -t'), 'once disabled, the configuration is wrong');
like($said, qr/unknown directive "mcp_tasks_zone"/, 'for want of the module');
runs('apt-get -y --reinstall install /run/package.deb', 'installed once more');
ok(!-l "$root/$enabled", 'it stays disabled');
runs("ln -s ../../../usr/share/nginx/modules-available/mod-http-mcp-tasks.conf"
     . " /$enabled && nginx -t", 'and is enabled again');

# removed, and installed again
runs('rm /etc/nginx/conf.d/mcp-tasks.conf /etc/nginx/tools.json'
     . " && apt-get -y remove $package", 'it is removed');
ok(!-e "$root/usr/lib/nginx/modules/$so", 'the module is gone');
is(wait_for { loaded() eq 'not loaded' }, 1, 'the nginx that runs too');
runs('nginx -t', 'the configuration is right without it');
runs('service nginx restart', 'nginx starts');
served('and serves');
is(loaded(), 'not loaded', 'without it');

runs('apt-get -y install /run/package.deb', 'it is installed again');
ok(-l "$root/$enabled", 'and enabled');
is(wait_for { loaded() eq 'loaded' }, 1, 'the nginx that runs has loaded it');

# purged
runs("apt-get -y purge $package", 'it is purged');
is_deeply(paths(), $before, 'nothing is left');
is(wait_for { loaded() eq 'not loaded' }, 1, 'in the nginx that runs either');
runs('service nginx restart', 'nginx starts');
served('and serves');
is(loaded(), 'not loaded', 'without it');

runs('service nginx stop', 'nginx stops');
unlike(slurp("$root/var/log/nginx/error.log"), qr/\[(alert|crit)\]/,
       'nothing to complain about in the log');

done_testing();
