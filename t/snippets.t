# Every configuration that the documentation shows is taken by nginx -t, in the
# place where it belongs.

use warnings;
use strict;

use FindBin;
use lib "$FindBin::Bin/lib";

use Test::More;

use MCPExample qw/ blocks /;
use MCPFile qw/ slurp /;
use MCPTasks qw/ free_port /;

my $root = "$FindBin::Bin/..";

# by the first word; all else is for a location
my %place = (
    main => qr/^(load_module|worker_shutdown_timeout)\b/,
    whole => qr/^http\b/,
    http => qr/^(mcp_tasks_zone|mcp_tasks_redis|log_format|server)\b/,
    server => qr/^(location|ssl_\w+)\b/,
);

my $t = MCPTasks->new(
    module => $ENV{MCP_TASKS_MODULE},
    files => { 'tools.json' => slurp("$root/conf/tools.json"),
               'schemas.json' => slurp("$root/conf/tools.json"),
               'redis.password' => "secret\n",
               users => "ann:{PLAIN}secret\n" });
ok($t->stop(), 'nginx stops');

system('openssl req -x509 -newkey rsa:2048 -nodes -days 1 -subj /CN=x'
       . " -keyout $t->{dir}/x.key -out $t->{dir}/clients.crt 2> /dev/null");
system("cp $t->{dir}/clients.crt $t->{dir}/redis-ca.pem");


# where it goes, and what it needs around it
sub place {
    my ($text) = @_;

    # directives of ngx_otel_module, which this nginx does not have
    $text =~ s/^\s*otel_\w+\b.*\n//mg;
    $text =~ s/\A\n+//;

    my ($where) = grep { $text =~ $place{$_} } sort keys %place;
    my %in = (main => '', http => '', server => '', location => '');

    $where = 'location' unless $where;

    if ($where eq 'main' && $text =~ s/^(load_module .*?;)\s*//) {
        $text =~ s/^events \{ \}\s*//;
        $where = $text =~ /^http\b/ ? 'whole' : $where;
    }

    if ($where eq 'whole') {
        $text =~ s/^http \{\n(.*)^\}\n\z/$1/ms;
        $where = 'http';
    }

    # directives that stand beside others of a higher level
    if ($text =~ /^ssl_/) {
        $text .= "ssl_certificate $t->{dir}/clients.crt;\n"
                 . "ssl_certificate_key $t->{dir}/x.key;\n";
    }

    $in{$where} = $text;
    $in{http} = "mcp_tasks_zone zone=tasks:1m;\n$in{http}"
        unless $text =~ /zone=tasks:/;
    $in{http} .= "upstream backends { server 127.0.0.1:1; }\n"
        if $text =~ /backends/;

    return \%in;
}


sub taken {
    my ($text) = @_;
    my $in = place($text);
    my $port = free_port();
    s/127\.0\.0\.1:(8080|9145)/127.0.0.1:$port/g for values %$in;

    # a store's directory has to be there
    s{sqlite:/var/lib/nginx/}{sqlite:$t->{dir}/}g for values %$in;

    $t->configure(main => $in->{main}, http => $in->{http},
                  server => "$in->{server}\nlocation /snippet {\n"
                            . "$in->{location}}\n");
    return $t->check();
}


my $n = 0;

for my $file ("$root/README.md", glob "$root/docs/*.md") {
    my ($name) = $file =~ m{([^/]+/?[^/]+)\z};

    for my $block (blocks(slurp($file), 'nginx')) {
        my ($good, $said) = taken($block);
        my ($first) = $block =~ /(\S.*?)\s*$/m;
        ok($good, "$name: $first") or diag($said, $block);
        unlike($said, qr/\[warn\]/, 'without a warning');
        $n++;
    }
}

cmp_ok($n, '>', 20, "$n of them");

my ($good) = taken("mcp_tasks_owner;\n");
ok(!$good, 'what is wrong would be noticed');

done_testing();
