# Building and installing with make, as README.md shows it.  The commands for
# nginx's sources, without make, are run by "make builds".

use warnings;
use strict;

use FindBin;
use lib "$FindBin::Bin/lib";

use File::Temp qw/ tempdir /;
use Test::More;

use MCPExample qw/ blocks run_command section /;

my $root = "$FindBin::Bin/..";
my $section = section("$root/README.md", '## Installing');
my ($install) = blocks($section, 'sh');
my ($own) = $section =~ /`(make NGINX_SRC=\S+)`/;
my $so = 'ngx_http_mcp_tasks_module.so';

is($install, "make deps && make && make install\n", 'the command was read');
ok($own, 'and the one for other sources');


sub run {
    my ($dir, $command) = @_;
    my $out = run_command($dir, $command);
    is($?, 0, $command =~ s/\n//r) or diag($out);
    return $out;
}


# into nginx's modules directory, here below another root
{
    local $ENV{DESTDIR} = tempdir(CLEANUP => 1);
    my $out = run($root, $install);
    my ($file) = $out =~ /^installed (\S+)$/m;

    ok(defined $file && index($file, "$ENV{DESTDIR}/usr/") == 0,
       'installed where nginx looks for modules');
    ok(-s "$file" && system('cmp', '-s', $file, "$root/build/$so") == 0,
       'the module that was built');
}

# in a copy, since it puts another module into build/
{
    my $copy = tempdir(CLEANUP => 1);
    my ($tree) = glob "$root/build/dist/orig/";
    my $before = join ' ', sort glob "$tree*";

    run($root, "git ls-files -z | tar -cf - --null -T - | tar -xf - -C '$copy'");
    $own =~ s{/path/to/nginx-[\d.]+}{$tree};
    run($copy, $own);

    ok(-s "$copy/build/$so", 'built for the sources that were named');
    is(join(' ', sort glob "$tree*"), $before, 'which are as they were');
}

done_testing();
