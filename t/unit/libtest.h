
/* TAP, and a zone to test with. */


#ifndef _LIBTEST_H_INCLUDED_
#define _LIBTEST_H_INCLUDED_


#include <ngx_config.h>
#include <ngx_core.h>

#include "ngx_mcp_json.h"
#include "ngx_mcp_shm.h"


#define ok(cond, ...)  test_ok((cond) != 0, __FILE__, __LINE__, __VA_ARGS__)
#define is(got, want, ...)                                                    \
    test_is((uint64_t) (got), (uint64_t) (want), __FILE__, __LINE__,          \
            __VA_ARGS__)


int test_ok(int pass, const char *file, int line, const char *fmt, ...)
    __attribute__((format(printf, 4, 5)));
int test_is(uint64_t got, uint64_t want, const char *file, int line,
    const char *fmt, ...) __attribute__((format(printf, 5, 6)));
void diag(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
int done_testing(void);

ngx_str_t str(const char *s);
ngx_mcp_json_t test_json(const char *text);

ngx_slab_pool_t *test_slab(size_t size);
ngx_mcp_zone_t *test_zone(size_t size, uint64_t max_tasks);
void test_policy(ngx_mcp_policy_t *policy);
const char *test_check(ngx_mcp_zone_t *zone);

ngx_uint_t test_submit(ngx_mcp_zone_t *zone, ngx_mcp_op_t *op);
ngx_uint_t test_create(ngx_mcp_zone_t *zone, const char *owner,
    const char *tool, const char *params, ngx_mcp_id_t *id);
ngx_uint_t test_get(ngx_mcp_zone_t *zone, ngx_mcp_id_t *id,
    ngx_mcp_view_t *view);
ngx_uint_t test_claim(ngx_mcp_zone_t *zone, const char *tool,
    ngx_mcp_view_t *view);
ngx_uint_t test_event(ngx_mcp_zone_t *zone, ngx_mcp_id_t *id, ngx_uint_t type,
    uint64_t lease, ngx_uint_t payload, const char *bytes);
ngx_uint_t test_move(ngx_mcp_zone_t *zone, ngx_mcp_id_t *id, uint64_t lease,
    double progress, const char *message);
ngx_uint_t test_delete(ngx_mcp_zone_t *zone, ngx_mcp_id_t *id);
ngx_uint_t test_sweep(ngx_mcp_zone_t *zone, ngx_uint_t limit);

ngx_uint_t test_run(ngx_mcp_zone_t *zone, ngx_mcp_id_t *id, uint64_t holder,
    uint32_t max_zone, uint32_t max_tool, ngx_mcp_view_t *view);
ngx_uint_t test_orphans(ngx_mcp_zone_t *zone, uint64_t holder);

ngx_uint_t test_control(ngx_mcp_zone_t *zone, ngx_uint_t type,
    const char *name, ngx_uint_t on);

ngx_uint_t test_read_changes(ngx_mcp_zone_t *zone, ngx_mcp_op_changes_t *op,
    const char *owner);
ngx_uint_t test_read_session(ngx_mcp_zone_t *zone, ngx_mcp_op_session_t *op,
    const char *session, uint64_t stream);

extern ngx_pool_t  *test_pool;

/* a progress token and a session for the tasks to come */
extern const char  *test_token;
extern const char  *test_session;

/* who holds the calls to come, and their flags; 0: workers claim them */
extern uint64_t     test_holder;
extern uint64_t     test_announcer;
extern ngx_uint_t   test_calls;


#endif /* _LIBTEST_H_INCLUDED_ */
