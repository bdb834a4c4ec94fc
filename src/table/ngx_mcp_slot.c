
/*
 * Copyright (C) The nginx-mcp-tasks authors
 */


#include "ngx_mcp_slot.h"
#include "ngx_mcp_arena.h"
#include "ngx_mcp_history.h"
#include "ngx_mcp_names.h"


static u_char *ngx_mcp_slot_name_locked(ngx_mcp_table_t *t, uint32_t name,
    ngx_str_t *text, u_char *p);
static uint32_t ngx_mcp_slot_named_locked(ngx_mcp_table_t *t, ngx_uint_t kind,
    ngx_str_t *text, ngx_uint_t create);


/* an upper bound of what ngx_mcp_slot_read_locked() writes, in bytes */

size_t
ngx_mcp_slot_size_locked(ngx_mcp_table_t *t, ngx_mcp_slot_t *s,
    ngx_uint_t mask)
{
    size_t      size;
    ngx_uint_t  i;

    size = ngx_mcp_name(t, s->owner)->len + ngx_mcp_name(t, s->tool)->len
           + (s->token ? ngx_mcp_name(t, s->token)->len : 0)
           + (s->session ? ngx_mcp_name(t, s->session)->len : 0)
           + NGX_MCP_BLOCK_DATA;

    for (i = 0; i < NGX_MCP_PAYLOADS; i++) {
        if (mask & (1u << i)) {
            size += s->body.payload[i].len;
        }
    }

    return size;
}


/*
 * Copies a task to a record, with the payloads in mask.  The text and bytes of
 * the record are at p; returns their end.  The method is read only if mask has
 * the params.
 */

u_char *
ngx_mcp_slot_read_locked(ngx_mcp_table_t *t, ngx_mcp_slot_t *s,
    ngx_uint_t mask, ngx_mcp_record_t *rec, u_char *p)
{
    u_char      *bytes;
    ngx_str_t   *str;
    ngx_uint_t   i;

    rec->id = s->id;
    rec->seq = s->seq;
    rec->revision = s->body.revision;
    rec->changed = s->body.changed;
    rec->turned = s->body.turned;
    rec->moved = s->body.moved;
    rec->queue_seq = s->body.queue_seq;
    rec->peak = s->body.peak;
    rec->task = s->body.task;
    rec->task.flags &= NGX_MCP_FLAGS_SAVED;
    rec->mask = mask;

    p = ngx_mcp_slot_name_locked(t, s->owner, &rec->owner, p);
    p = ngx_mcp_slot_name_locked(t, s->tool, &rec->tool, p);
    p = ngx_mcp_slot_name_locked(t, s->token, &rec->token, p);
    p = ngx_mcp_slot_name_locked(t, s->session, &rec->session, p);

    if (rec->token.len) {
        /* the text follows the index of its owner */
        rec->token.data += sizeof(uint32_t);
        rec->token.len -= sizeof(uint32_t);
    }

    rec->history.len = ngx_mcp_history_bytes_locked(t, s, &bytes);
    rec->history.data = p;
    p = ngx_cpymem(p, bytes, rec->history.len);

    ngx_str_null(&rec->method);

    for (i = 0; i < NGX_MCP_PAYLOADS; i++) {
        str = &rec->payload[i];
        ngx_str_null(str);

        if (!(mask & (1u << i))) {
            continue;
        }

        str->data = p;
        p = ngx_mcp_chain_read_locked(t, &s->body.payload[i], p);
        str->len = p - str->data;

        if (i == NGX_MCP_PARAMS) {
            rec->method.data = str->data;
            rec->method.len = s->method_len;
            str->data += s->method_len;
            str->len -= s->method_len + NGX_MCP_HISTORY;
        }
    }

    return p;
}


static u_char *
ngx_mcp_slot_name_locked(ngx_mcp_table_t *t, uint32_t name, ngx_str_t *text,
    u_char *p)
{
    ngx_str_null(text);

    if (name == 0) {
        return p;
    }

    text->data = p;
    p = ngx_mcp_name_read_locked(t, name, p);
    text->len = p - text->data;

    return p;
}


/* an upper bound of the blocks that ngx_mcp_slot_write_locked() allocates */

size_t
ngx_mcp_slot_blocks_locked(ngx_mcp_table_t *t, ngx_mcp_record_t *rec)
{
    size_t      blocks;
    ngx_uint_t  i;

    blocks = ngx_mcp_blocks_for(rec->method.len
                                + rec->payload[NGX_MCP_PARAMS].len
                                + NGX_MCP_HISTORY);

    for (i = NGX_MCP_PARAMS + 1; i < NGX_MCP_PAYLOADS; i++) {
        blocks += ngx_mcp_blocks_for(rec->payload[i].len);
    }

    if (ngx_mcp_slot_named_locked(t, NGX_MCP_OWNER, &rec->owner, 0) == 0) {
        blocks += ngx_mcp_name_blocks(&rec->owner);
    }

    if (ngx_mcp_slot_named_locked(t, NGX_MCP_TOOL, &rec->tool, 0) == 0) {
        blocks += ngx_mcp_name_blocks(&rec->tool);
    }

    return blocks
           + (rec->session.len ? ngx_mcp_name_blocks(&rec->session) : 0)
           + (rec->token.len ? 1 : 0);
}


/*
 * The caller has made sure that a slot and the blocks are free, and that the
 * record's times are monotonic.  The task is inserted into no list and not
 * counted: the caller does so, or rebuilds the table afterwards.  The payloads
 * in written are not saved.
 */

ngx_mcp_slot_t *
ngx_mcp_slot_write_locked(ngx_mcp_table_t *t, ngx_mcp_record_t *rec,
    ngx_uint_t written)
{
    ngx_str_t        parts[3];
    ngx_uint_t       i;
    ngx_mcp_slot_t  *s;
    ngx_mcp_body_t  *body;
    ngx_mcp_task_t   task;
    static u_char    history[NGX_MCP_HISTORY];

    s = ngx_mcp_slot(t, ngx_mcp_slot_alloc_locked(t));
    body = &s->body;

    ngx_memzero((u_char *) s + sizeof(ngx_mcp_id_t),
                sizeof(ngx_mcp_slot_t) - sizeof(ngx_mcp_id_t));

    s->id = rec->id;
    s->seq = rec->seq;
    s->owner = ngx_mcp_slot_named_locked(t, NGX_MCP_OWNER, &rec->owner, 1);
    s->tool = ngx_mcp_slot_named_locked(t, NGX_MCP_TOOL, &rec->tool, 1);

    if (rec->session.len) {
        s->session = ngx_mcp_slot_named_locked(t, NGX_MCP_SESSION,
                                               &rec->session, 1);
    }

    if (rec->token.len) {
        s->token = ngx_mcp_token_locked(t, s->owner, &rec->token, 1);
    }

    s->method_len = (uint8_t) rec->method.len;
    s->written = written & NGX_MCP_RECORD_ALL;
    s->epoch = t->sh->epoch;

    parts[0] = rec->method;
    parts[1] = rec->payload[NGX_MCP_PARAMS];
    parts[2].data = history;
    parts[2].len = sizeof(history);

    ngx_mcp_chain_write_locked(t, &body->payload[NGX_MCP_PARAMS], parts, 3);

    for (i = NGX_MCP_PARAMS + 1; i < NGX_MCP_PAYLOADS; i++) {
        ngx_mcp_chain_write_locked(t, &body->payload[i], &rec->payload[i], 1);
    }

    body->revision = rec->revision;
    body->queue_seq = rec->queue_seq;
    body->changed = rec->changed;

    task = rec->task;
    task.state = NGX_MCP_FREE;
    body->task = task;

    body->turned = rec->turned;
    body->moved = rec->moved;
    body->peak = rec->peak;

    ngx_mcp_history_load_locked(t, s, rec->history.data, rec->history.len);

    /* now the task exists */

    ngx_mcp_barrier();
    body->task.state = rec->task.state;
    ngx_mcp_barrier();

    return s;
}


static uint32_t
ngx_mcp_slot_named_locked(ngx_mcp_table_t *t, ngx_uint_t kind, ngx_str_t *text,
    ngx_uint_t create)
{
    uint32_t  n, hash;

    hash = ngx_mcp_name_hash(t, kind, text);
    n = ngx_mcp_name_find_locked(t, kind, text, hash);

    if (n == 0 && create) {
        n = ngx_mcp_name_new_locked(t, kind, text, hash);
    }

    return n;
}
