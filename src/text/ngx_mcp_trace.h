
/*
 * Copyright (C) The nginx-mcp-tasks authors
 */


/*
 * Trace context of W3C (traceparent, tracestate) and baggage: the values that
 * a request may have in headers, and in "_meta" of its params under the same
 * names.
 */


#ifndef _NGX_MCP_TRACE_H_INCLUDED_
#define _NGX_MCP_TRACE_H_INCLUDED_


#include <ngx_config.h>
#include <ngx_core.h>

#include "ngx_mcp_json.h"


typedef enum {
    NGX_MCP_TRACEPARENT = 0,
    NGX_MCP_TRACESTATE,
    NGX_MCP_BAGGAGE,

    NGX_MCP_TRACES
} ngx_mcp_trace_e;


typedef struct {
    ngx_str_t  value[NGX_MCP_TRACES];   /* valid; empty: none */
    unsigned   add:NGX_MCP_TRACES;      /* bits: not in "_meta" */
    unsigned   drop:1;                  /* "_meta" has invalid ones */
} ngx_mcp_trace_t;


extern ngx_str_t  ngx_mcp_trace_names[NGX_MCP_TRACES];

ngx_uint_t ngx_mcp_traceparent_valid(ngx_str_t *s);
ngx_uint_t ngx_mcp_tracestate_valid(ngx_str_t *s);
ngx_uint_t ngx_mcp_baggage_valid(ngx_str_t *s);

/*
 * Determines the trace context of a request from the members of "_meta", whose
 * type is NGX_MCP_JSON_NONE if they are missing, and from headers, which are
 * empty if they are missing or duplicate; headers may be NULL.  "_meta" has
 * precedence.  Invalid values are ignored, and so is a tracestate without the
 * traceparent that it belongs to.  NGX_ERROR: no memory.
 */
ngx_int_t ngx_mcp_trace_read(ngx_pool_t *pool, ngx_mcp_json_t *meta,
    ngx_str_t *headers, ngx_mcp_trace_t *trace);

/*
 * Writes the trace context into "_meta" of params, which must be an object.
 * "_meta" is a part of params, or of the type NGX_MCP_JSON_NONE.  Other members
 * are unchanged.  NGX_ERROR: no memory.
 */
ngx_int_t ngx_mcp_trace_write(ngx_pool_t *pool, ngx_mcp_trace_t *trace,
    ngx_mcp_json_t *params, ngx_mcp_json_t *meta, ngx_str_t *text);


#endif /* _NGX_MCP_TRACE_H_INCLUDED_ */
