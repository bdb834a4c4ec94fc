# The pictures of the console in docs/images are made like this, see
# "make screenshots".

use warnings;
use strict;

use FindBin;
use lib "$FindBin::Bin/lib";

use Test::More;

use MCPBrowser;

my $t = MCPBrowser::start(
    [qw/ summarize_report resize_images index_repository transcribe_audio
         book_travel render_video train_model /],
    index_repository => { attempts => 3 });

MCPBrowser::browse($t, 'pictures');
MCPBrowser::finish($t);

done_testing();
