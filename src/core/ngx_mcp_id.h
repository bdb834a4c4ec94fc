
/*
 * Copyright (C) The nginx-mcp-tasks authors
 */


/* Task ids and lease tokens, from the system's CSPRNG. */


#ifndef _NGX_MCP_ID_H_INCLUDED_
#define _NGX_MCP_ID_H_INCLUDED_


#include <ngx_config.h>
#include <ngx_core.h>


#define NGX_MCP_ID_LEN    16
#define NGX_MCP_ID_TEXT   36


typedef struct {
    u_char  data[NGX_MCP_ID_LEN];
} ngx_mcp_id_t;


ngx_int_t ngx_mcp_random(void *buf, size_t len);
u_char *ngx_mcp_hex(u_char *dst, const void *data, size_t n);
ngx_int_t ngx_mcp_unhex(u_char *dst, u_char *src, size_t n);

ngx_int_t ngx_mcp_id_new(ngx_mcp_id_t *id);
void ngx_mcp_id_form(ngx_mcp_id_t *id);
ngx_int_t ngx_mcp_id_parse(ngx_mcp_id_t *id, ngx_str_t *text);
u_char *ngx_mcp_id_text(u_char *p, const ngx_mcp_id_t *id);


/*
 * ids are random or keyed hashes, and not chosen by clients: any part of one is
 * a hash
 */

static ngx_inline uint32_t
ngx_mcp_id_hash(const ngx_mcp_id_t *id)
{
    uint32_t  hash;

    ngx_memcpy(&hash, id->data, sizeof(uint32_t));

    return hash;
}


#endif /* _NGX_MCP_ID_H_INCLUDED_ */
