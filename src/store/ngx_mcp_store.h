
/*
 * Copyright (C) The nginx-mcp-tasks authors
 */


/*
 * The interface of a store, which keeps the tasks of a zone in addition to
 * shared memory.
 *
 * "store=NAME:ARGUMENT" of mcp_tasks_zone selects one.  Only ngx_mcp_stores.c
 * knows which stores are built in.
 */


#ifndef _NGX_MCP_STORE_H_INCLUDED_
#define _NGX_MCP_STORE_H_INCLUDED_


#include "ngx_mcp_zone.h"


typedef struct ngx_mcp_store_s  ngx_mcp_store_t;

struct ngx_mcp_store_s {
    ngx_str_t     name;

    /* names of its parameters; the list ends with an empty name */
    ngx_str_t    *params;

    /* sets zone->store_data; the argument follows the name and a colon */
    ngx_int_t   (*create)(ngx_conf_t *cf, ngx_mcp_zone_t *zone,
                          ngx_str_t *argument);

    /* any other parameter; NGX_DECLINED: it is invalid */
    ngx_int_t   (*param)(ngx_mcp_zone_t *zone, ngx_str_t *arg);

    /* called after all parameters; zones has the zones defined before */
    ngx_int_t   (*conf)(ngx_conf_t *cf, ngx_mcp_zone_t *zone,
                        ngx_array_t *zones);

    /* whether two zones with this kind of store use the same one */
    ngx_uint_t  (*same)(ngx_mcp_zone_t *zone, ngx_mcp_zone_t *other);

    /* called when the zone has its memory; kept: with its contents */
    ngx_int_t   (*init_zone)(ngx_mcp_zone_t *zone, ngx_uint_t kept);

    void        (*init_process)(ngx_cycle_t *cycle, ngx_mcp_zone_t *zone);
    void        (*exit_process)(ngx_mcp_zone_t *zone);

    /* submits any operation; answers a lookup; see ngx_mcp_op_types.h */
    ngx_int_t   (*submit)(ngx_mcp_zone_t *zone, ngx_mcp_op_t *op);
    ngx_int_t   (*lookup)(ngx_mcp_zone_t *zone, ngx_mcp_op_t *op);

    /* whether a lookup needs a pin */
    ngx_uint_t    pins;

    /* whether it restores the tasks of a zone whose memory is lost */
    ngx_uint_t    keeps;

    /* its part of the statistics; NULL: none */
    void        (*status)(ngx_mcp_zone_t *zone, ngx_mcp_op_stats_t *stats);
};


/* the stores that are built in; ends with NULL */
extern ngx_mcp_store_t  *ngx_mcp_stores[];


#endif /* _NGX_MCP_STORE_H_INCLUDED_ */
