
#include "ngx_mcp_op.h"
#include "ngx_mcp_zone.h"
#include "ngx_mcp_table.h"
#include "ngx_mcp_hash.h"


static uint64_t ngx_mcp_cursor_tag(ngx_mcp_zone_t *zone, ngx_str_t *owner,
    uint64_t a, uint64_t b);


ngx_int_t
ngx_mcp_submit(ngx_mcp_zone_t *zone, ngx_mcp_op_t *op)
{
    op->reason = NGX_MCP_OK;

    return zone->submit[op->type](zone, op);
}


/* to give back what was claimed, as if it had not been */

void
ngx_mcp_release(ngx_mcp_op_update_t *op, ngx_mcp_view_t *claimed)
{
    ngx_memzero(op, sizeof(ngx_mcp_op_update_t));
    op->op.type = NGX_MCP_OP_UPDATE;
    op->id = claimed->id;
    op->event.type = NGX_MCP_EV_RELEASE;
    op->event.lease = claimed->task.lease;
}


/*
 * A cursor is hidden, because its numbers would tell how many tasks others
 * create, and sealed for its owner, because what a client makes up must be
 * refused.  Three words, hexadecimal: a tag of the plain cursor, and the
 * cursor masked with what follows from that tag.
 */

u_char *
ngx_mcp_cursor_text(ngx_mcp_zone_t *zone, u_char *p, ngx_str_t *owner,
    ngx_mcp_cursor_t *cursor)
{
    uint64_t  word[3];

    word[0] = ngx_mcp_cursor_tag(zone, owner, cursor->seq, cursor->hint);
    word[1] = cursor->seq
              ^ ngx_mcp_cursor_tag(zone, owner, word[0], 1);
    word[2] = cursor->hint
              ^ ngx_mcp_cursor_tag(zone, owner, word[0], 2);

    return ngx_hex_dump(p, (u_char *) word, sizeof(word));
}


ngx_int_t
ngx_mcp_cursor_parse(ngx_mcp_zone_t *zone, ngx_str_t *text, ngx_str_t *owner,
    ngx_mcp_cursor_t *cursor)
{
    uint64_t  word[3];

    if (text->len != NGX_MCP_CURSOR_LEN
        || ngx_mcp_unhex((u_char *) word, text->data, sizeof(word))
           != NGX_OK)
    {
        return NGX_DECLINED;
    }

    cursor->seq = word[1]
                  ^ ngx_mcp_cursor_tag(zone, owner, word[0], 1);
    cursor->hint = word[2]
                   ^ ngx_mcp_cursor_tag(zone, owner, word[0], 2);

    if (cursor->seq == 0
        || word[0] != ngx_mcp_cursor_tag(zone, owner, cursor->seq,
                                         cursor->hint))
    {
        return NGX_DECLINED;
    }

    return NGX_OK;
}


static uint64_t
ngx_mcp_cursor_tag(ngx_mcp_zone_t *zone, ngx_str_t *owner, uint64_t a,
    uint64_t b)
{
    uint64_t           key[2], data[2];
    ngx_mcp_header_t  *sh;

    sh = zone->table->sh;

    /* a key of the owner's own, and with that the numbers */

    key[0] = ngx_mcp_siphash(sh->secret, owner->data, owner->len);
    key[1] = ~sh->secret[1];
    data[0] = a;
    data[1] = b;

    return ngx_mcp_siphash(key, (u_char *) data, sizeof(data));
}
