# shellcheck shell=bash
# Sourced: adds the modules from tools/fetch-test-nginx.sh to PERL5LIB.

for perl_inc in "$BUILD"/perl/usr/share/perl5 \
                "$BUILD"/perl/usr/lib/*/perl5/5.*
do
    if [ -d "$perl_inc" ]; then
        PERL5LIB=$perl_inc${PERL5LIB:+:$PERL5LIB}
    fi
done

export PERL5LIB
