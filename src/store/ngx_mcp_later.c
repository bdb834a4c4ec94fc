
/*
 * Copyright (C) The nginx-mcp-tasks authors
 */


/* Operations that are submitted until the store accepts them. */


#include "ngx_mcp_later.h"
#include "ngx_mcp_op.h"
#include "ngx_mcp_zone.h"

#include <ngx_event.h>


/* pools kept for reuse, since most operations are done at once */
#define NGX_MCP_LATER_KEPT   64

/* delay between attempts, ms */
#define NGX_MCP_LATER_FIRST  50
#define NGX_MCP_LATER_LAST   2000

/* an exiting process gives up after so many ms */
#define NGX_MCP_LATER_EXIT   5000


typedef struct ngx_mcp_later_s  ngx_mcp_later_t;

struct ngx_mcp_later_s {
    ngx_pool_t       *pool;
    ngx_mcp_zone_t   *zone;
    ngx_uint_t        kind;
    ngx_msec_t        delay;
    ngx_msec_t        exiting;     /* ms waited while exiting */

    /* debug logs read an fd, as of a connection */
    ngx_event_t       event;
    struct {
        ngx_mcp_later_t  *data;
        ngx_event_t      *read;
        ngx_event_t      *write;
        ngx_socket_t      fd;
    } ident;

    ngx_mcp_op_t     *op;
};


/* a waiting request needs one of the first, small kind */

typedef struct {
    size_t       op;          /* size of an operation */
    size_t       zero;        /* bytes of it that are cleared */
    size_t       pool;        /* size of its pool */
    ngx_uint_t   n;           /* pools in free */
    ngx_pool_t  *free[NGX_MCP_LATER_KEPT];
} ngx_mcp_later_kind_t;


typedef char  ngx_mcp_later_ident_fits[
    offsetof(ngx_mcp_later_t, ident.fd) - offsetof(ngx_mcp_later_t, ident)
    == offsetof(ngx_connection_t, fd) ? 1 : -1
];


static void ngx_mcp_later_submit(ngx_mcp_later_t *l);
static void ngx_mcp_later_handler(ngx_mcp_op_t *op);
static void ngx_mcp_later_done(ngx_mcp_later_t *l, ngx_int_t rc);
static void ngx_mcp_later_again(ngx_event_t *ev);


#define ngx_mcp_larger(a, b)  (sizeof(a) > sizeof(b) ? sizeof(a) : sizeof(b))

static ngx_mcp_later_kind_t  ngx_mcp_later_kinds[] = {
    { ngx_mcp_larger(ngx_mcp_op_wait_t, ngx_mcp_op_pin_t),
      ngx_mcp_larger(ngx_mcp_op_wait_t, ngx_mcp_op_pin_t),
      640, 0, { NULL } },

    { ngx_mcp_larger(ngx_mcp_op_update_t, ngx_mcp_op_delete_t),
      offsetof(ngx_mcp_op_update_t, view),
      2048, 0, { NULL } }
};


typedef char  ngx_mcp_later_zero_fits[
    sizeof(ngx_mcp_op_delete_t) <= offsetof(ngx_mcp_op_update_t, view) ? 1 : -1
];


void *
ngx_mcp_later_op(ngx_mcp_zone_t *zone, ngx_uint_t type)
{
    ngx_uint_t             n;
    ngx_pool_t            *pool;
    ngx_mcp_later_t       *l;
    ngx_mcp_later_kind_t  *kind;

    n = (type == NGX_MCP_OP_UPDATE || type == NGX_MCP_OP_DELETE);
    kind = &ngx_mcp_later_kinds[n];

    if (kind->n) {
        pool = kind->free[--kind->n];

    } else {
        pool = ngx_create_pool(kind->pool, ngx_cycle->log);
        if (pool == NULL) {
            return NULL;
        }
    }

    /* the event is initialized when the first attempt fails */

    l = ngx_palloc(pool, sizeof(ngx_mcp_later_t) + kind->op);
    if (l == NULL) {
        ngx_destroy_pool(pool);
        return NULL;
    }

    l->pool = pool;
    l->zone = zone;
    l->kind = n;
    l->delay = 0;
    l->op = (ngx_mcp_op_t *) (l + 1);

    ngx_memzero(l->op, kind->zero);

    l->op->type = type;
    l->op->pool = pool;
    l->op->detached = 1;
    l->op->handler = ngx_mcp_later_handler;
    l->op->data = l;

    if (type == NGX_MCP_OP_UPDATE) {
        ((ngx_mcp_op_update_t *) l->op)->want = NGX_MCP_WANT_NOTHING;
    }

    return l->op;
}


ngx_int_t
ngx_mcp_later_str(ngx_mcp_op_t *op, ngx_str_t *dst, ngx_str_t *src)
{
    if (src->len == 0) {
        ngx_str_null(dst);
        return NGX_OK;
    }

    dst->len = src->len;
    dst->data = ngx_pstrdup(op->pool, src);

    return dst->data ? NGX_OK : NGX_ERROR;
}


ngx_mcp_op_t *
ngx_mcp_unpin_op(ngx_mcp_zone_t *zone, ngx_mcp_op_pin_t *pin)
{
    size_t             size;
    ngx_mcp_op_pin_t  *op;

    op = ngx_mcp_later_op(zone, NGX_MCP_OP_UNPIN);
    if (op == NULL) {
        return NULL;
    }

    op->kind = pin->kind;

    if (ngx_mcp_later_str(&op->op, &op->name, &pin->name) != NGX_OK) {
        ngx_mcp_later_free(&op->op);
        return NULL;
    }

    if (pin->n) {
        size = pin->n * sizeof(ngx_mcp_id_t);

        op->ids = ngx_palloc(op->op.pool, size);
        if (op->ids == NULL) {
            ngx_mcp_later_free(&op->op);
            return NULL;
        }

        ngx_memcpy(op->ids, pin->ids, size);
        op->n = pin->n;
    }

    return &op->op;
}


void
ngx_mcp_later_free(ngx_mcp_op_t *op)
{
    ngx_pool_t            *pool;
    ngx_mcp_later_t       *l;
    ngx_mcp_later_kind_t  *kind;

    l = op->data;
    pool = l->pool;
    kind = &ngx_mcp_later_kinds[l->kind];

    if (kind->n == NGX_MCP_LATER_KEPT) {
        ngx_destroy_pool(pool);
        return;
    }

    ngx_reset_pool(pool);
    kind->free[kind->n++] = pool;
}


void
ngx_mcp_later(ngx_mcp_op_t *op)
{
    ngx_mcp_later_submit(op->data);
}


static void
ngx_mcp_later_submit(ngx_mcp_later_t *l)
{
    ngx_int_t  rc;

    rc = ngx_mcp_submit(l->zone, l->op);

    if (rc != NGX_AGAIN) {
        ngx_mcp_later_done(l, rc);
    }
}


static void
ngx_mcp_later_handler(ngx_mcp_op_t *op)
{
    ngx_mcp_later_done(op->data, NGX_OK);
}


static void
ngx_mcp_later_done(ngx_mcp_later_t *l, ngx_int_t rc)
{
    if (rc == NGX_OK
        && l->op->reason != NGX_MCP_STORE_UNAVAILABLE
        && l->op->reason != NGX_MCP_STORE_FAILED)
    {
        ngx_mcp_later_free(l->op);
        return;
    }

    if (l->delay == 0) {
        l->delay = NGX_MCP_LATER_FIRST;
        l->exiting = 0;

        ngx_memzero(&l->event, sizeof(ngx_event_t));
        l->ident.fd = (ngx_socket_t) -1;
        l->ident.data = l;
        l->event.data = &l->ident;
        l->event.handler = ngx_mcp_later_again;
        l->event.log = ngx_cycle->log;
    }

    if (ngx_exiting) {
        if (l->exiting >= NGX_MCP_LATER_EXIT) {
            ngx_log_error(NGX_LOG_WARN, ngx_cycle->log, 0,
                          "operation %ui was dropped, because the store was "
                          "unavailable until the process exited",
                          l->op->type);
            ngx_mcp_later_free(l->op);
            return;
        }

        l->exiting += l->delay;
    }

    ngx_add_timer(&l->event, l->delay);

    l->delay = ngx_min(2 * l->delay, NGX_MCP_LATER_LAST);
}


static void
ngx_mcp_later_again(ngx_event_t *ev)
{
    ngx_connection_t  *c;

    c = ev->data;

    ngx_mcp_later_submit(c->data);
}
