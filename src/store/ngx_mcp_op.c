
/*
 * Copyright (C) The nginx-mcp-tasks authors
 */


/* Submitting operations; cursors of lists. */


#include "ngx_mcp_op.h"
#include "ngx_mcp_zone.h"
#include "ngx_mcp_table.h"
#include "ngx_mcp_hash.h"


typedef struct {
    ngx_mcp_seal_t  seal;
    uint64_t        masked[2];
} ngx_mcp_sealed_cursor_t;


static void ngx_mcp_cursor_seal(ngx_mcp_zone_t *zone, ngx_mcp_seal_e purpose,
    ngx_str_t *owner, uint64_t a, uint64_t b, ngx_mcp_seal_t *seal);


ngx_int_t
ngx_mcp_submit(ngx_mcp_zone_t *zone, ngx_mcp_op_t *op)
{
    op->reason = NGX_MCP_OK;

    return zone->submit(zone, op);
}


/* only what is pinned; NGX_OK or NGX_ERROR, never NGX_AGAIN */

ngx_int_t
ngx_mcp_lookup(ngx_mcp_zone_t *zone, ngx_mcp_op_t *op)
{
    op->reason = NGX_MCP_OK;

    return zone->lookup(zone, op);
}


/* prepares an update that returns a claimed task, as if it were not claimed */

void
ngx_mcp_release(ngx_mcp_op_update_t *op, ngx_mcp_view_t *claimed)
{
    op->id = claimed->id;
    op->event.type = NGX_MCP_EV_RELEASE;
    op->event.lease_token = claimed->task.lease_token;
}


/*
 * A cursor is encrypted, because its numbers would reveal how many tasks
 * others create, and sealed for its owner, because a forged cursor must be
 * refused.  Its text is hexadecimal: a seal of the plain cursor, and the
 * cursor XORed with a mask that is derived from the seal.
 */

u_char *
ngx_mcp_cursor_text(ngx_mcp_zone_t *zone, u_char *p, ngx_str_t *owner,
    ngx_mcp_cursor_t *cursor)
{
    ngx_mcp_seal_t           mask;
    ngx_mcp_sealed_cursor_t  sealed;

    ngx_mcp_cursor_seal(zone, NGX_MCP_SEAL_CURSOR, owner, cursor->seq,
                        cursor->hint, &sealed.seal);
    ngx_mcp_cursor_seal(zone, NGX_MCP_SEAL_CURSOR_MASK, owner,
                        sealed.seal.word[0], sealed.seal.word[1], &mask);

    sealed.masked[0] = cursor->seq ^ mask.word[0];
    sealed.masked[1] = cursor->hint ^ mask.word[1];

    return ngx_mcp_hex(p, &sealed, sizeof(sealed));
}


/* NGX_DECLINED: it is not a cursor of this owner */

ngx_int_t
ngx_mcp_cursor_parse(ngx_mcp_zone_t *zone, ngx_str_t *text, ngx_str_t *owner,
    ngx_mcp_cursor_t *cursor)
{
    ngx_mcp_seal_t           mask, seal;
    ngx_mcp_sealed_cursor_t  sealed;

    if (text->len != NGX_MCP_CURSOR_LEN
        || ngx_mcp_unhex((u_char *) &sealed, text->data, sizeof(sealed))
           != NGX_OK)
    {
        return NGX_DECLINED;
    }

    ngx_mcp_cursor_seal(zone, NGX_MCP_SEAL_CURSOR_MASK, owner,
                        sealed.seal.word[0], sealed.seal.word[1], &mask);

    cursor->seq = sealed.masked[0] ^ mask.word[0];
    cursor->hint = sealed.masked[1] ^ mask.word[1];

    ngx_mcp_cursor_seal(zone, NGX_MCP_SEAL_CURSOR, owner, cursor->seq,
                        cursor->hint, &seal);

    if (!ngx_mcp_seal_equal(&seal, &sealed.seal) || cursor->seq == 0) {
        return NGX_DECLINED;
    }

    return NGX_OK;
}


static void
ngx_mcp_cursor_seal(ngx_mcp_zone_t *zone, ngx_mcp_seal_e purpose,
    ngx_str_t *owner, uint64_t a, uint64_t b, ngx_mcp_seal_t *seal)
{
    uint64_t  data[2];

    data[0] = a;
    data[1] = b;

    ngx_mcp_seal(seal, zone->table->sh->secret, purpose, owner, data,
                 sizeof(data));
}
