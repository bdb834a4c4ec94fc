
/*
 * Copyright (C) The nginx-mcp-tasks authors
 */


#include "ngx_mcp_arena.h"


/*
 * Does not fail: callers check that enough blocks are free before they change
 * anything.
 */

uint32_t
ngx_mcp_block_alloc_locked(ngx_mcp_table_t *t)
{
    uint32_t             n;
    ngx_mcp_freelist_t  *list;

    list = &t->sh->block;
    n = list->free;

    if (n) {
        list->free = ngx_mcp_block(t, n)->next;

    } else {
        n = list->fresh++;
    }

    list->used++;

    return n;
}


void
ngx_mcp_block_free_locked(ngx_mcp_table_t *t, uint32_t n)
{
    ngx_mcp_block(t, n)->next = t->sh->block.free;
    t->sh->block.free = n;
    t->sh->block.used--;
}


/* a new chain with the bytes of all parts; the old value is overwritten */

void
ngx_mcp_chain_write_locked(ngx_mcp_table_t *t, ngx_mcp_chain_t *chain,
    ngx_str_t *parts, ngx_uint_t n)
{
    u_char           *src, *dst;
    size_t            len, space, size, total;
    uint32_t          first, *link;
    ngx_uint_t        i;
    ngx_mcp_block_t  *block;

    for (total = 0, i = 0; i < n; i++) {
        total += parts[i].len;
    }

    chain->last = 0;
    chain->len = (uint32_t) total;

    if (total == 0) {
        return;
    }

    first = 0;
    link = &first;
    dst = NULL;
    space = 0;

    for (i = 0; i < n; i++) {
        src = parts[i].data;
        len = parts[i].len;

        while (len) {

            if (space == 0) {
                chain->last = ngx_mcp_block_alloc_locked(t);
                *link = chain->last;

                block = ngx_mcp_block(t, chain->last);
                link = &block->next;
                dst = block->data;
                space = NGX_MCP_BLOCK_DATA;

                ngx_mcp_failpoint("chain_write");
            }

            size = ngx_min(len, space);
            dst = ngx_cpymem(dst, src, size);
            src += size;
            len -= size;
            space -= size;
        }
    }

    *link = first;
}


/* copies the bytes to p and returns their end */

u_char *
ngx_mcp_chain_read_locked(ngx_mcp_table_t *t, ngx_mcp_chain_t *chain,
    u_char *p)
{
    size_t            len, size;
    uint32_t          n;
    ngx_mcp_block_t  *block;

    n = chain->last;

    for (len = chain->len; len; len -= size) {
        n = ngx_mcp_block(t, n)->next;
        block = ngx_mcp_block(t, n);

        size = ngx_min(len, NGX_MCP_BLOCK_DATA);
        p = ngx_cpymem(p, block->data, size);
    }

    return p;
}


/* whether a chain has exactly these bytes */

ngx_uint_t
ngx_mcp_chain_is_locked(ngx_mcp_table_t *t, ngx_mcp_chain_t *chain,
    ngx_str_t *bytes)
{
    u_char           *p;
    size_t            len, size;
    uint32_t          n;
    ngx_mcp_block_t  *block;

    if (chain->len != bytes->len) {
        return 0;
    }

    n = chain->last;
    p = bytes->data;

    for (len = chain->len; len; len -= size) {
        n = ngx_mcp_block(t, n)->next;
        block = ngx_mcp_block(t, n);

        size = ngx_min(len, NGX_MCP_BLOCK_DATA);

        if (ngx_memcmp(p, block->data, size) != 0) {
            return 0;
        }

        p += size;
    }

    return 1;
}


void
ngx_mcp_chain_free_locked(ngx_mcp_table_t *t, ngx_mcp_chain_t *chain)
{
    uint32_t          first;
    ngx_mcp_block_t  *last;

    if (chain->len == 0) {
        return;
    }

    last = ngx_mcp_block(t, chain->last);
    first = last->next;

    last->next = t->sh->block.free;
    ngx_mcp_failpoint("chain_free");
    t->sh->block.free = first;
    t->sh->block.used -= (uint32_t) ngx_mcp_blocks_for(chain->len);

    chain->last = 0;
    chain->len = 0;
}
