
/*
 * Copyright (C) The nginx-mcp-tasks authors
 */


#include "ngx_mcp_names.h"
#include "ngx_mcp_arena.h"
#include "ngx_mcp_hash.h"
#include "ngx_mcp_stats.h"


/* a name must fit into a block */

typedef char  ngx_mcp_name_fits[
    sizeof(ngx_mcp_name_t) <= NGX_MCP_BLOCK_SIZE ? 1 : -1
];


/* needs no lock: the secret never changes */

uint32_t
ngx_mcp_name_hash(ngx_mcp_table_t *t, ngx_uint_t kind, ngx_str_t *text)
{
    uint64_t  key[2];

    key[0] = t->sh->secret[0] ^ kind;
    key[1] = t->sh->secret[1];

    return (uint32_t) ngx_mcp_siphash(key, text->data, text->len);
}


/* returns 0 if there is no such name */

uint32_t
ngx_mcp_name_find_locked(ngx_mcp_table_t *t, ngx_uint_t kind, ngx_str_t *text,
    uint32_t hash)
{
    uint32_t         n;
    ngx_mcp_name_t  *name;

    for (n = t->names[hash & t->sh->name_mask]; n; n = name->next) {
        name = ngx_mcp_name(t, n);

        if (name->hash == hash
            && name->kind == kind
            && ngx_mcp_name_is_locked(t, n, text))
        {
            return n;
        }
    }

    return 0;
}


/* the number of blocks that a new name takes */

ngx_uint_t
ngx_mcp_name_blocks(ngx_str_t *text)
{
    if (text->len <= NGX_MCP_NAME_INLINE) {
        return 1;
    }

    return 1 + ngx_mcp_blocks_for(text->len - NGX_MCP_NAME_INLINE);
}


/*
 * The caller has made sure that enough blocks are free.  The new name has no
 * reference yet: ngx_mcp_link_locked() counts the task.
 */

uint32_t
ngx_mcp_name_new_locked(ngx_mcp_table_t *t, ngx_uint_t kind, ngx_str_t *text,
    uint32_t hash)
{
    size_t            len;
    uint32_t          n;
    ngx_str_t         rest;
    ngx_mcp_name_t   *name;
    ngx_mcp_chain_t   chain;

    n = ngx_mcp_block_alloc_locked(t);
    name = ngx_mcp_name(t, n);

    ngx_memzero(name, sizeof(ngx_mcp_name_t));

    len = ngx_min(text->len, NGX_MCP_NAME_INLINE);

    name->hash = hash;
    name->kind = (uint8_t) kind;
    name->len = (uint16_t) text->len;

    if (len) {
        ngx_memcpy(name->data, text->data, len);
    }

    rest.data = text->data;
    rest.len = text->len - len;

    if (rest.len) {
        rest.data += len;
    }

    ngx_mcp_chain_write_locked(t, &chain, &rest, 1);
    name->rest = chain.last;

    if (kind == NGX_MCP_TOOL) {
        name->stat = (uint8_t) ngx_mcp_stats_tool_locked(t, text, hash);
    }

    ngx_mcp_failpoint("name_new");

    ngx_mcp_name_link_locked(t, n);

    return n;
}


void
ngx_mcp_name_link_locked(ngx_mcp_table_t *t, uint32_t n)
{
    uint32_t        *bucket;
    ngx_mcp_name_t  *name;

    name = ngx_mcp_name(t, n);
    bucket = &t->names[name->hash & t->sh->name_mask];

    name->next = *bucket;
    *bucket = n;

    t->sh->names[name->kind]++;

    if (name->stat) {
        t->tool_stats[name->stat].tool = n;
    }
}


/* frees the name with its last reference */

void
ngx_mcp_name_unref_locked(ngx_mcp_table_t *t, uint32_t n)
{
    uint32_t         *p;
    ngx_mcp_name_t   *name;
    ngx_mcp_chain_t   chain;

    name = ngx_mcp_name(t, n);

    if (--name->tasks) {
        return;
    }

    p = &t->names[name->hash & t->sh->name_mask];

    while (*p != n) {
        p = &ngx_mcp_name(t, *p)->next;
    }

    *p = name->next;

    t->sh->names[name->kind]--;

    if (name->stat) {
        t->tool_stats[name->stat].tool = 0;
    }

    ngx_mcp_failpoint("name_free");

    ngx_mcp_name_rest(name, &chain);
    ngx_mcp_chain_free_locked(t, &chain);
    ngx_mcp_block_free_locked(t, n);
}


ngx_uint_t
ngx_mcp_name_is_locked(ngx_mcp_table_t *t, uint32_t n, ngx_str_t *text)
{
    u_char            buf[NGX_MCP_MAX_NAME];
    ngx_mcp_name_t   *name;

    name = ngx_mcp_name(t, n);

    if (name->len != text->len) {
        return 0;
    }

    if (name->len == 0) {
        return 1;
    }

    if (name->len <= NGX_MCP_NAME_INLINE) {
        return ngx_memcmp(name->data, text->data, name->len) == 0;
    }

    (void) ngx_mcp_name_read_locked(t, n, buf);

    return ngx_memcmp(buf, text->data, name->len) == 0;
}


/* copies the text to p, without a terminating zero, and returns its end */

u_char *
ngx_mcp_name_read_locked(ngx_mcp_table_t *t, uint32_t n, u_char *p)
{
    ngx_mcp_name_t   *name;
    ngx_mcp_chain_t   chain;

    name = ngx_mcp_name(t, n);

    p = ngx_cpymem(p, name->data, ngx_min(name->len, NGX_MCP_NAME_INLINE));

    ngx_mcp_name_rest(name, &chain);

    return ngx_mcp_chain_read_locked(t, &chain, p);
}


/* the part of a name that is not inline */

void
ngx_mcp_name_rest(ngx_mcp_name_t *name, ngx_mcp_chain_t *chain)
{
    chain->last = name->rest;
    chain->len = (name->len > NGX_MCP_NAME_INLINE)
                 ? name->len - NGX_MCP_NAME_INLINE : 0;
}
