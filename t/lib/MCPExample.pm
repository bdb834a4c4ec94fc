package MCPExample;

# nginx with a configuration that is shown somewhere, as it is but for ports and
# paths:
#
#   my $t = MCPExample->new(conf => slurp('conf/gateway.conf'),
#                           change => sub { s/:3000/:$up->{port}/g });
#
# 127.0.0.1:8080 becomes the port of the test.  change gets the text as $_, and
# the object.  What documents show, and what commands print:
#
#   my @commands = blocks($section, 'sh');
#   is(unsteady(shell($t, @commands)), unsteady($shown), 'the same');

use warnings;
use strict;

use Fcntl qw/ LOCK_EX /;
use FindBin;
use POSIX ();

use MCPFile qw/ slurp write_file /;
use MCPTasks;

use Exporter qw/ import /;

our @ISA = qw/ MCPTasks /;
our @EXPORT_OK = qw/ blocks run_command section shell unsteady /;


sub configure {
    my ($self) = @_;
    my $user = $> == 0 ? "user root;\n" : '';

    write_file("$self->{dir}/$_", $self->{files}{$_})
        for keys %{ $self->{files} };

    local $_ = $self->{conf};
    s/^load_module .*?;\n//m;
    s/127\.0\.0\.1:8080/127.0.0.1:$self->{port}/g;
    $self->{change}->($self) if $self->{change};

    write_file("$self->{dir}/nginx.conf",
               "load_module $self->{module};\ndaemon off;\n$user$_");
}


sub log {
    my ($self) = @_;
    return $self->SUPER::log() . slurp("$self->{dir}/error.log");
}


# what a command of a document prints, run where a user would; its status is in
# $?.  It must not know that make runs this test, nor what that was given; and
# there is one at a time, since two would build the same files.
sub run_command {
    my ($dir, $command) = @_;
    local %ENV = %ENV;

    open(my $lock, '>', "$FindBin::Bin/../build/commands.lock")
        or die "build/commands.lock: $!\n";
    flock($lock, LOCK_EX) or die "build/commands.lock: $!\n";

    delete @ENV{qw/ MAKEFLAGS MAKELEVEL MAKEOVERRIDES MFLAGS TESTS
                    PROVE_FLAGS /};
    delete @ENV{grep { /^(?:MCP_TASKS|TEST_NGINX)_/ } keys %ENV};

    return scalar qx(cd '$dir' && { $command
                     } 2>&1 < /dev/null);
}


# what stands below a heading, up to the next one that is not smaller
sub section {
    my ($file, $heading) = @_;
    my ($marks) = $heading =~ /^(#+)/;
    my $level = length $marks;
    my $text = slurp($file);
    my ($found) = $text =~ /^\Q$heading\E\n(.*?)(?=^#{1,$level} |\z)/ms;
    die "$file has no \"$heading\"\n" unless defined $found;
    return $found;
}


# what is shown there in a language
sub blocks {
    my ($text, $language) = @_;
    return $text =~ /^```\Q$language\E\n(.*?)^```$/msg;
}


# what commands print that are run in one shell
sub shell {
    my ($t, @commands) = @_;
    my $text = join "\n", @commands;
    $text =~ s/127\.0\.0\.1:8080/127.0.0.1:$t->{port}/g;

    my $pid = open(my $fh, '-|');
    die "fork: $!\n" unless defined $pid;

    if ($pid == 0) {
        open(STDERR, '>&', \*STDOUT);
        exec('bash', '-c', $text) or POSIX::_exit(127);
    }

    local $/;
    my $said = <$fh>;
    close($fh);
    $said =~ s/\A\s+|\s+\z//g;
    return $said;
}


# without what is different each time
sub unsteady {
    my ($text) = @_;
    $text =~ s/[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}/ID/g;
    $text =~ s/\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z/TIME/g;
    $text =~ s/\n+\z//;
    return $text;
}


1;
