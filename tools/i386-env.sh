# shellcheck shell=bash
# Sourced: options for gcc and clang to compile and link for 32 bits with the
# packages that tools/dist-i386.sh unpacked, so that executables run on this
# machine.

I386_ROOT=$BUILD/dist/i386

I386_CC_OPT="-m32 --sysroot=$I386_ROOT"
I386_LD_OPT=$I386_CC_OPT
I386_LD_OPT+=" -Wl,--dynamic-linker=$I386_ROOT/lib/ld-linux.so.2"
I386_LD_OPT+=" -Wl,--disable-new-dtags"

for i386_dir in "$I386_ROOT"/lib/i386-linux-gnu \
                "$I386_ROOT"/usr/lib/i386-linux-gnu
do
    I386_LD_OPT+=" -Wl,-rpath,$i386_dir"
done

# where gcc's own files are
for i386_dir in "$I386_ROOT"/usr/lib/gcc/i686-linux-gnu/*/; do
    I386_LD_OPT+=" -B${i386_dir%/} -L${i386_dir%/}"
done

export I386_ROOT I386_CC_OPT I386_LD_OPT
