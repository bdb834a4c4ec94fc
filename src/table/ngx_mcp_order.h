
/*
 * Copyright (C) The nginx-mcp-tasks authors
 */


/*
 * The tasks of a name, newest first: of an owner by their creation and by
 * their last change, of a session by their last change.  And all tasks of the
 * zone, by their last change.
 *
 * A list in which every 64th task, on average, is also on a fast lane, and
 * every 64th of these on a second one.  Tasks come in at the front and leave
 * anywhere without a search; a page is found again by its cursor in a few
 * hundred steps at a million tasks, even if the task there is gone.  Who is
 * on a lane depends on the zone's secret: nobody can thin a lane on purpose.
 */


#ifndef _NGX_MCP_ORDER_H_INCLUDED_
#define _NGX_MCP_ORDER_H_INCLUDED_


#include "ngx_mcp_table.h"


/* where slots and names keep what belongs to a list */

typedef struct {
    size_t      links;      /* of a slot: ..._link_t, one for each level */
    size_t      key;        /* of a slot: uint64_t */
    size_t      name;       /* of a slot: uint32_t, whose list it is */
    size_t      front;      /* of a name: uint32_t, one for each level */
    ngx_uint_t  levels;
    ngx_uint_t  zone;       /* not of a name, but of all: in the header */
} ngx_mcp_order_t;


#define ngx_mcp_order_link(order, s)                                          \
    ((ngx_mcp_link_t *) ((u_char *) (s) + (order)->links))
#define ngx_mcp_order_key(order, s)                                           \
    (*(uint64_t *) ((u_char *) (s) + (order)->key))
#define ngx_mcp_order_name(order, s)                                          \
    ((order)->zone ? 0 : *(uint32_t *) ((u_char *) (s) + (order)->name))
#define ngx_mcp_order_front(t, order, n)                                      \
    ((uint32_t *) (((order)->zone                                             \
                    ? (u_char *) (t)->sh                                      \
                    : (u_char *) ngx_mcp_name(t, n))                          \
                   + (order)->front))


ngx_uint_t ngx_mcp_order_level(ngx_mcp_table_t *t, ngx_mcp_order_t *order,
    ngx_mcp_slot_t *s);
void ngx_mcp_order_insert_locked(ngx_mcp_table_t *t, ngx_mcp_order_t *order,
    ngx_mcp_slot_t *s);
void ngx_mcp_order_remove_locked(ngx_mcp_table_t *t, ngx_mcp_order_t *order,
    ngx_mcp_slot_t *s);
uint32_t ngx_mcp_order_after_locked(ngx_mcp_table_t *t, uint32_t owner,
    uint64_t seq, uint64_t hint);
uint32_t ngx_mcp_order_since_locked(ngx_mcp_table_t *t, uint32_t owner,
    uint64_t changed, uint64_t hint);


extern ngx_mcp_order_t  ngx_mcp_by_seq;
extern ngx_mcp_order_t  ngx_mcp_by_change;
extern ngx_mcp_order_t  ngx_mcp_changes;
extern ngx_mcp_order_t  ngx_mcp_recent;


#endif /* _NGX_MCP_ORDER_H_INCLUDED_ */
