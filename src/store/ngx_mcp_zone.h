
/*
 * A zone, as one process with one configuration sees it; what is in shared
 * memory outlives both.  Stores see its table, others ask the functions here.
 */


#ifndef _NGX_MCP_ZONE_H_INCLUDED_
#define _NGX_MCP_ZONE_H_INCLUDED_


#include "ngx_mcp_op_types.h"


struct ngx_mcp_zone_s {
    ngx_str_t                 name;
    ngx_mcp_submit_pt         submit;
    ngx_mcp_submit_pt         look;
    ngx_uint_t                pins;       /* looks need them */
    struct ngx_mcp_table_s   *table;
    uint64_t                 *secret;     /* two words, for keyed hashes */
    ngx_uint_t                ready;      /* requests may be served */

    /* of the configuration */
    ngx_shm_zone_t           *shm_zone;
    uint64_t                  max_tasks;   /* 0: as many as there is room for */
    struct ngx_mcp_store_s   *store;       /* NULL: there is but memory */
    void                     *store_data;  /* what the store keeps of it */
    ngx_array_t               gateways;    /* of locations */

    /* of the process */
    struct ngx_mcp_local_s   *local;      /* who waits here for what */
    struct ngx_mcp_jobs_s    *jobs;       /* calls in the background */
    ngx_queue_t               waits;      /* parked requests */
    ngx_connection_t          dummy;      /* debug logs want an fd of it */

    ngx_mcp_op_sweep_t        sweep;
    ngx_uint_t                sweeping;   /* it is under way */

    /* something is due at that time; may be NULL */
    void                    (*sweep_at)(struct ngx_mcp_local_s *local,
                                        uint64_t time);

    /* whether a process that exits may let go of the store; may be NULL */
    ngx_uint_t              (*leaves)(ngx_mcp_zone_t *zone);
};


uint64_t ngx_mcp_zone_changes(ngx_mcp_zone_t *zone);
uint32_t ngx_mcp_zone_drains(ngx_mcp_zone_t *zone);
ngx_uint_t ngx_mcp_zone_held(ngx_mcp_zone_t *zone);
ngx_uint_t ngx_mcp_zone_session_ended(ngx_mcp_zone_t *zone, uint64_t seal);
uint32_t ngx_mcp_zone_hash(ngx_mcp_zone_t *zone, ngx_uint_t kind,
    ngx_str_t *name);
ngx_int_t ngx_mcp_zone_sweep(void *data);


#endif /* _NGX_MCP_ZONE_H_INCLUDED_ */
