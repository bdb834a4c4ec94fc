
/*
 * A kind of store: where the tasks of a zone are kept, beside its memory.
 *
 * "store=NAME:ARGUMENT" of mcp_tasks_zone chooses one.  Which kinds there are
 * is known to ngx_mcp_stores.c alone.
 */


#ifndef _NGX_MCP_STORE_H_INCLUDED_
#define _NGX_MCP_STORE_H_INCLUDED_


#include "ngx_mcp_zone.h"


typedef struct ngx_mcp_store_s  ngx_mcp_store_t;

struct ngx_mcp_store_s {
    ngx_str_t     name;

    /* the names of its parameters; ends without one */
    ngx_str_t    *params;

    /* makes zone->stored, with what follows the name */
    ngx_int_t   (*create)(ngx_conf_t *cf, ngx_mcp_zone_t *zone,
                          ngx_str_t *argument);

    /* another parameter; NGX_DECLINED: it is not valid */
    ngx_int_t   (*param)(ngx_mcp_zone_t *zone, ngx_str_t *arg);

    /* all were read; zones are those before this one */
    ngx_int_t   (*conf)(ngx_conf_t *cf, ngx_mcp_zone_t *zone,
                        ngx_array_t *zones);

    /* whether two zones with this kind of store have the same one */
    ngx_uint_t  (*same)(ngx_mcp_zone_t *zone, ngx_mcp_zone_t *other);

    /* the zone has its memory, which may be kept from an earlier cycle */
    ngx_int_t   (*init_zone)(ngx_mcp_zone_t *zone, ngx_uint_t kept);

    void        (*init_process)(ngx_cycle_t *cycle, ngx_mcp_zone_t *zone);
    void        (*exit_process)(ngx_mcp_zone_t *zone);

    /* any operation, and looks: see ngx_mcp_op_types.h */
    ngx_int_t   (*submit)(ngx_mcp_zone_t *zone, ngx_mcp_op_t *op);
    ngx_int_t   (*look)(ngx_mcp_zone_t *zone, ngx_mcp_op_t *op);

    /* whether tasks have to be pinned, before they are looked at */
    ngx_uint_t    pins;

    /* whether it has the tasks of a zone whose memory is gone */
    ngx_uint_t    keeps;

    /* its part of what operators see; NULL: it has none */
    void        (*status)(ngx_mcp_zone_t *zone, ngx_mcp_op_stats_t *stats);
};


/* those that were built in; ends with NULL */
extern ngx_mcp_store_t  *ngx_mcp_stores[];


#endif /* _NGX_MCP_STORE_H_INCLUDED_ */
