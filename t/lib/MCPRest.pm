package MCPRest;

# What tests of the REST view ask for, and what they expect of an answer.

use warnings;
use strict;

use Test::More;

use Exporter qw/ import /;

our @EXPORT_OK = qw/ bytes_of claimed detail ids page problem question
                     unknown /;

my $serial = 0;

# an id that was never given out
use constant unknown => '00000000-0000-4000-8000-000000000000';

my %title = (
    400 => 'Bad Request', 403 => 'Forbidden', 404 => 'Not Found',
    405 => 'Method Not Allowed', 409 => 'Conflict', 410 => 'Gone',
    413 => 'Content Too Large', 415 => 'Unsupported Media Type',
    429 => 'Too Many Requests', 503 => 'Service Unavailable',
);


# all of a problem; "more" is what follows the reason, as bytes
sub problem {
    my ($res, $status, $reason, $more, $name) = @_;
    local $Test::Builder::Level = $Test::Builder::Level + 1;

    is($res->{status}, $status, "$name: $status");
    is($res->{header}{'content-type'}, 'application/problem+json',
       "$name: a problem");
    is($res->{header}{'cache-control'}, 'no-store', "$name: not to be kept");
    is($res->{header}{'retry-after'}, $status =~ /^(429|503)$/ ? 1 : undef,
       "$name: whether to try again");
    is($res->{body}, "{\"title\":\"$title{$status}\",\"status\":$status,"
                     . "\"reason\":\"$reason\"" . (defined $more ? $more : '')
                     . '}', "$name: $reason");
}


# what follows the reason, where it is explained
sub detail {
    my ($text) = @_;
    return ",\"detail\":\"$text\"";
}


# a task that a worker has claimed
sub claimed {
    my ($who) = @_;
    my $tool = 't' . ++$serial;
    $who->create_rest($tool);
    return $who->claim($tool);
}


# a question of a worker
sub question {
    my ($message) = @_;
    return { method => 'elicitation/create',
             params => { mode => 'form', message => "$message",
                         requestedSchema => { type => 'object',
                                              properties => {} } } };
}


# the ids of a page, and where the next one begins
sub page {
    my ($who, $query, $path) = @_;
    my $res = $who->rest(($path || 'tasks') . "?$query");
    is($res->{status}, 200, "page '$query'") or diag($res->{body});
    return ([map { $_->{taskId} } @{ $res->{json}{tasks} }],
            $res->{json}{nextCursor});
}


sub ids {
    my ($who, $query) = @_;
    my ($ids) = page($who, $query);
    return $ids;
}


# all of an answer, but for what differs between any two
sub bytes_of {
    my ($res) = @_;
    return $res->{head} =~ s/^Date:.*?\r\n//mr . "\n\n$res->{body}";
}


1;
