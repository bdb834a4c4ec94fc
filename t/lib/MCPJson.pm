package MCPJson;

# JSON that a server has sent must not have a key twice: of two members with
# the same key JSON::PP keeps the last one without a word, and other parsers
# the first.  The helpers that read from a server call this for all of it:
#
#   MCPJson::check($body);                      # of one JSON text
#   MCPJson::check_events($body);               # of an event stream
#
# Both die if a key is duplicate.  The process then also exits with a failure,
# in case that the test has caught that.  Results, arguments and errors are
# returned byte for byte: a test that has sent a duplicate key as a part of
# them names it before.
#
#   MCPJson::allow('a');

use warnings;
use strict;

use JSON::PP;

my %allowed;
my $found;
my $owner = $$;


sub allow {
    my (@keys) = @_;
    @allowed{@keys} = ();
}


# The first key that an object of the text has twice; nothing if there is none
# or the text is no JSON.
sub duplicate {
    my ($text) = @_;
    my @open;                            # the keys of an object, or undef

    return if !defined $text || $text !~ /\A\s*[\[{]/;

    while ($text =~ /\G[^"{}\[\]]*([{}\[\]"])/gc) {
        my $c = $1;

        if ($c eq '{') {
            push @open, {};

        } elsif ($c eq '[') {
            push @open, undef;

        } elsif ($c ne '"') {
            pop @open;

        } else {
            my $begin = pos $text;
            1 while $text =~ /\G[^"\\]*\\./gcs;
            $text =~ /\G[^"\\]*"/gc or return;

            next unless $open[-1] && $text =~ /\G\s*:/;

            my $key = substr($text, $begin, pos($text) - 1 - $begin);
            $key = unescaped($key) if $key =~ /[\\\x80-\xff]/;
            return $key if $open[-1]{$key}++ && !exists $allowed{$key};
        }
    }

    return;
}


sub unescaped {
    my ($key) = @_;
    my $text = eval { JSON::PP->new->utf8->allow_nonref->decode("\"$key\"") };
    return defined $text ? $text : $key;
}


sub check {
    my ($text) = @_;
    my $key = duplicate($text);

    if (defined $key) {
        $found = "duplicate key \"$key\" in $text\n";
        die $found;
    }

    return;
}


sub check_events {
    my ($text) = @_;
    check(join "\n", /^data: ?(.*)$/mg) for split /\n\n/, $text;
    return;
}


# what was found, which no longer counts: for the test of this check
sub forget {
    my $text = $found;
    undef $found;
    return $text;
}


END {
    if (defined $found && $$ == $owner) {
        print STDERR $found;
        $? = 1 unless $?;
    }
}


1;
