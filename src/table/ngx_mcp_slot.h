
/*
 * Copyright (C) The nginx-mcp-tasks authors
 */


/*
 * Conversion between slots and records: copies a task out of its slot, or
 * fills a slot with a record.
 */


#ifndef _NGX_MCP_SLOT_H_INCLUDED_
#define _NGX_MCP_SLOT_H_INCLUDED_


#include "ngx_mcp_table.h"
#include "ngx_mcp_record.h"


size_t ngx_mcp_slot_size_locked(ngx_mcp_table_t *t, ngx_mcp_slot_t *s,
    ngx_uint_t mask);
u_char *ngx_mcp_slot_read_locked(ngx_mcp_table_t *t, ngx_mcp_slot_t *s,
    ngx_uint_t mask, ngx_mcp_record_t *rec, u_char *p);

size_t ngx_mcp_slot_blocks_locked(ngx_mcp_table_t *t, ngx_mcp_record_t *rec);
ngx_mcp_slot_t *ngx_mcp_slot_write_locked(ngx_mcp_table_t *t,
    ngx_mcp_record_t *rec, ngx_uint_t written);


#endif /* _NGX_MCP_SLOT_H_INCLUDED_ */
