
/*
 * What the crash tests have in common: operations that may be cut short, and
 * the question whether a table is as it was before or as it is after one.
 */


#ifndef _LIBCRASH_H_INCLUDED_
#define _LIBCRASH_H_INCLUDED_


#include "libtest.h"


#define CRASH_ZONE  (128 * 1024)


typedef struct {
    const char  *name;
    void       (*prepare)(ngx_mcp_zone_t *zone);
    void       (*run)(ngx_mcp_zone_t *zone);
} crash_case_t;


/* everything that a table says about its tasks, in the order of creation */

typedef struct {
    uint64_t  seq;
    size_t    len;
    u_char    data[6000];
} crash_record_t;

typedef struct {
    size_t    len;
    u_char    name[NGX_MCP_NAME_INLINE];
    uint64_t  delivered;
} crash_session_t;

typedef struct {
    ngx_uint_t       n;
    crash_record_t   records[64];
    ngx_uint_t       nsessions;
    crash_session_t  sessions[8];
} crash_dump_t;


extern crash_case_t             crash_cases[];

/* the zone has a store on disk */
extern ngx_uint_t               crash_stored;

ngx_mcp_zone_t *crash_zone(void);
void crash_dump(ngx_mcp_zone_t *zone, crash_dump_t *dump);
const char *crash_judge(crash_dump_t *before, crash_dump_t *after,
    crash_dump_t *now);
void crash_mark(ngx_mcp_zone_t *zone);
const char *crash_signalled(ngx_mcp_zone_t *zone);
const char *crash_saved(ngx_mcp_zone_t *zone);
const char *crash_usable(ngx_mcp_zone_t *zone);


#endif /* _LIBCRASH_H_INCLUDED_ */
