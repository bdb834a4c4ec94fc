
/*
 * Copyright (C) The nginx-mcp-tasks authors
 */


/*
 * Ordered lists of tasks, newest first: an owner's tasks by creation and by
 * last change, a session's by last change, and all tasks of the zone by last
 * change.
 *
 * A list is a skip list in which tasks are inserted only at the front.  Every
 * 64th task on average is also in a second level, and every 64th of these in
 * a third.  Insertion and removal need no search; the position of a cursor is
 * found in a few hundred steps among a million tasks, even if its task was
 * removed.  A task's level depends on the zone's secret: clients cannot
 * degrade a list on purpose.
 */


#ifndef _NGX_MCP_ORDER_H_INCLUDED_
#define _NGX_MCP_ORDER_H_INCLUDED_


#include "ngx_mcp_table.h"


/* a kind of list: offsets of its members in slots and names */

typedef struct {
    size_t      links;      /* in a slot: ngx_mcp_link_t per level */
    size_t      key;        /* in a slot: uint64_t */
    size_t      name;       /* in a slot: uint32_t, the list's name */
    size_t      front;      /* in a name: uint32_t per level */
    ngx_uint_t  levels;
    ngx_uint_t  zone;       /* 1: one list, its front is in the header */
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
