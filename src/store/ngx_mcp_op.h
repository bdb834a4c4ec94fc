
/* Submitting operations, and what goes with them. */


#ifndef _NGX_MCP_OP_H_INCLUDED_
#define _NGX_MCP_OP_H_INCLUDED_


#include "ngx_mcp_op_types.h"


/* the clock on the wall, ms */

static ngx_inline uint64_t
ngx_mcp_wall(void)
{
    ngx_time_t  *tp;

    tp = ngx_timeofday();

    return (uint64_t) tp->sec * 1000 + tp->msec;
}


ngx_int_t ngx_mcp_submit(ngx_mcp_zone_t *zone, ngx_mcp_op_t *op);
ngx_int_t ngx_mcp_look(ngx_mcp_zone_t *zone, ngx_mcp_op_t *op);

void ngx_mcp_release(ngx_mcp_op_update_t *op, ngx_mcp_view_t *claimed);

u_char *ngx_mcp_cursor_text(ngx_mcp_zone_t *zone, u_char *p, ngx_str_t *owner,
    ngx_mcp_cursor_t *cursor);
ngx_int_t ngx_mcp_cursor_parse(ngx_mcp_zone_t *zone, ngx_str_t *text,
    ngx_str_t *owner, ngx_mcp_cursor_t *cursor);

/*
 * A task will be asked for: where it is to be found is fetched into the cache,
 * and then the task, while the request is looked at.
 */
void ngx_mcp_hint_place(ngx_mcp_zone_t *zone, ngx_mcp_id_t *id);
void ngx_mcp_hint_task(ngx_mcp_zone_t *zone, ngx_mcp_id_t *id);


#endif /* _NGX_MCP_OP_H_INCLUDED_ */
