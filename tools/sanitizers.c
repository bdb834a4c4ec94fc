
/*
 * Linked into what runs under the sanitizers: their options, and where they
 * write reports, REPORTS; LEAKS is 1 to look for leaks at exit.
 */


#include <dlfcn.h>
#include <stddef.h>


const char *__asan_default_options(void);
const char *__ubsan_default_options(void);


const char *
__asan_default_options(void)
{
    return "log_path='" REPORTS "/asan':detect_leaks=" LEAKS
           ":detect_stack_use_after_return=1:strict_string_checks=1"
           ":detect_odr_violation=0:allocator_may_return_null=1";
}


const char *
__ubsan_default_options(void)
{
    return "print_stacktrace=1:halt_on_error=1";
}


/*
 * Next to ASan, gcc's UBSan ignores log_path, and the function that sets the
 * same is found in ASan's library first; so it is taken by hand from UBSan's.
 */

__attribute__((constructor))
static void
set_report_path(void)
{
    void  *lib;
    void  (*set)(const char *path);

    lib = dlopen("libubsan.so.1", RTLD_LAZY|RTLD_NOLOAD);

    if (lib == NULL) {
        return;
    }

    set = (void (*)(const char *)) dlsym(lib, "__sanitizer_set_report_path");

    if (set != NULL) {
        set(REPORTS "/ubsan");
    }
}
