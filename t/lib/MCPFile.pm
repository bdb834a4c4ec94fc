package MCPFile;

# Reads and writes whole files, as bytes.

use warnings;
use strict;

use Exporter qw/ import /;

our @EXPORT_OK = qw/ slurp write_file /;


# empty, if there is no such file
sub slurp {
    my ($path) = @_;
    open(my $fh, '<:raw', $path) or return '';
    local $/;
    my $text = <$fh>;
    return defined $text ? $text : '';
}


sub write_file {
    my ($path, @text) = @_;
    open(my $fh, '>:raw', $path) or die "$path: $!\n";
    print $fh @text;
    close($fh) or die "$path: $!\n";
}


1;
