
/*
 * Copyright (C) The nginx-mcp-tasks authors
 */


/*
 * A zone, as seen by one process with one configuration; its shared memory
 * outlives both.  Stores access the table, other layers use the functions
 * below.
 */


#ifndef _NGX_MCP_ZONE_H_INCLUDED_
#define _NGX_MCP_ZONE_H_INCLUDED_


#include "ngx_mcp_op_types.h"


struct ngx_mcp_zone_s {
    ngx_str_t                 name;
    ngx_mcp_submit_pt         submit;
    ngx_mcp_submit_pt         lookup;
    ngx_uint_t                pins;       /* lookups need pins */
    struct ngx_mcp_table_s   *table;
    uint64_t                 *secret;     /* two words, for keyed hashes */
    ngx_uint_t                ready;      /* requests may be served */

    /* configuration */
    ngx_shm_zone_t           *shm_zone;
    uint64_t                  max_tasks;   /* 0: as many as fit */
    struct ngx_mcp_store_s   *store;       /* NULL: memory only */
    void                     *store_data;  /* of the store */
    ngx_array_t               gateways;    /* locations that are gateways */

    /* of this process */
    struct ngx_mcp_local_s   *local;      /* watches, wake-ups */
    struct ngx_mcp_jobs_s    *jobs;       /* background calls */
    ngx_queue_t               waits;      /* parked requests */
    ngx_connection_t          dummy;      /* debug logs read its fd */

    ngx_mcp_op_sweep_t        sweep;
    ngx_uint_t                sweeping;   /* an operation is pending */

    /* called when a deadline precedes the next sweep; may be NULL */
    void                    (*sweep_at)(struct ngx_mcp_local_s *local,
                                        uint64_t time);

    /* whether an exiting process may leave the store; may be NULL */
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
