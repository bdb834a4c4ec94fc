
/*
 * Copyright (C) The nginx-mcp-tasks authors
 */


/*
 * Pages of tasks: those of an owner by creation, or of all owners by their
 * last change.  An index gives the ids, then each task is read; criteria are
 * applied here.
 */


#include "ngx_mcp_redis.h"
#include "ngx_mcp_shm.h"


#if (NGX_MCP_REDIS)


typedef struct ngx_mcp_redis_page_s  ngx_mcp_redis_page_t;


/* one id of the index */

typedef struct {
    ngx_mcp_redis_call_t   one;        /* reads the task */
    ngx_mcp_redis_call_t  *page;
    uint64_t               score;
    ngx_int_t              rc;         /* NGX_OK: one.rr has the task */
} ngx_mcp_redis_entry_t;


struct ngx_mcp_redis_page_s {
    ngx_mcp_criteria_t      criteria;
    ngx_str_t               key;       /* of the index */
    ngx_uint_t              limit;
    ngx_uint_t              want;
    ngx_mcp_view_t         *views;
    ngx_uint_t              n;

    ngx_mcp_redis_entry_t  *entries;
    ngx_uint_t              nentries;
    ngx_uint_t              pending;
    ngx_uint_t              scanned;
    uint64_t                after;     /* the last one examined; 0: none */
    ngx_uint_t              last;      /* there are no more ids */
};


static ngx_mcp_redis_page_t *ngx_mcp_redis_page(ngx_mcp_redis_call_t *call,
    ngx_uint_t limit, ngx_uint_t want);
static ngx_int_t ngx_mcp_redis_page_next(ngx_mcp_redis_call_t *call);
static void ngx_mcp_redis_page_ids(ngx_mcp_redis_cmd_t *cmd,
    redisReply *reply);
static ngx_int_t ngx_mcp_redis_page_read(ngx_mcp_redis_call_t *call);
static void ngx_mcp_redis_page_task(ngx_mcp_redis_cmd_t *cmd,
    redisReply *reply);
static void ngx_mcp_redis_page_whole(ngx_mcp_redis_cmd_t *cmd,
    redisReply *reply);
static void ngx_mcp_redis_page_done(ngx_mcp_redis_entry_t *e);
static ngx_int_t ngx_mcp_redis_page_add(ngx_mcp_redis_call_t *call);
static ngx_uint_t ngx_mcp_redis_matches(ngx_mcp_redis_page_t *page,
    ngx_mcp_redis_call_t *one);
static ngx_int_t ngx_mcp_redis_page_end(ngx_mcp_redis_call_t *call,
    ngx_uint_t more);


ngx_int_t
ngx_mcp_redis_list(ngx_mcp_redis_call_t *call)
{
    u_char                 owner[16];
    ngx_mcp_op_list_t     *op;
    ngx_mcp_redis_page_t  *page;

    op = (ngx_mcp_op_list_t *) call->op;

    page = ngx_mcp_redis_page(call, op->limit, op->want);
    if (page == NULL) {
        return NGX_ERROR;
    }

    page->criteria.owner = &op->owner;
    page->criteria.tool = op->tool;
    page->criteria.states = op->states;
    page->after = op->after.seq;

    ngx_mcp_redis_owner(call->st, &op->owner, owner);
    call->partition = ngx_mcp_redis_home(call->st, &op->owner, &op->owner);
    page->key = ngx_mcp_redis_key(call->st, call->pool, call->partition, "i",
                                  owner, sizeof(owner));

    return ngx_mcp_redis_page_next(call);
}


/*
 * A page of the console.  Changes of different partitions have no order, so
 * pages show one partition after the other; the cursor has its number.
 */

ngx_int_t
ngx_mcp_redis_recent(ngx_mcp_redis_call_t *call)
{
    ngx_mcp_op_recent_t   *op;
    ngx_mcp_redis_page_t  *page;

    op = (ngx_mcp_op_recent_t *) call->op;

    if (op->changes) {
        return ngx_mcp_redis_lookup(call->st->zone, call->op);
    }

    page = ngx_mcp_redis_page(call, op->limit, op->want);
    if (page == NULL) {
        return NGX_ERROR;
    }

    page->criteria = op->criteria;

    if (op->after.seq) {
        page->after = op->after.seq;
        call->partition = op->after.hint % call->st->conf->partitions;
    }

    page->key = ngx_mcp_redis_key(call->st, call->pool, call->partition, "c",
                                  NULL, 0);

    return ngx_mcp_redis_page_next(call);
}


static ngx_mcp_redis_page_t *
ngx_mcp_redis_page(ngx_mcp_redis_call_t *call, ngx_uint_t limit,
    ngx_uint_t want)
{
    ngx_mcp_redis_page_t  *page;

    page = ngx_pcalloc(call->pool, sizeof(ngx_mcp_redis_page_t));
    if (page == NULL) {
        return NULL;
    }

    page->limit = ngx_max(1, ngx_min(limit, NGX_MCP_LIST_MAX));
    page->want = want;
    page->views = ngx_palloc(call->pool,
                             page->limit * sizeof(ngx_mcp_view_t));

    if (page->views == NULL) {
        return NULL;
    }

    call->data = page;

    return page;
}


/* reads the next ids: one more than the page has, to know if that is all */

static ngx_int_t
ngx_mcp_redis_page_next(ngx_mcp_redis_call_t *call)
{
    ngx_str_t              argv[8];
    ngx_mcp_redis_page_t  *page;

    page = call->data;

    ngx_str_set(&argv[0], "ZREVRANGEBYSCORE");
    argv[1] = page->key;
    ngx_str_set(&argv[2], "+inf");

    if (page->after) {
        argv[2].data = ngx_pnalloc(call->pool, NGX_INT64_LEN + 1);
        if (argv[2].data == NULL) {
            return NGX_ERROR;
        }

        argv[2].len = ngx_sprintf(argv[2].data, "(%uL", page->after)
                      - argv[2].data;
    }

    ngx_str_set(&argv[3], "-inf");
    ngx_str_set(&argv[4], "WITHSCORES");
    ngx_str_set(&argv[5], "LIMIT");
    ngx_str_set(&argv[6], "0");
    argv[7] = ngx_mcp_redis_number(call->pool, page->limit + 1);

    return ngx_mcp_redis_call(call, 0, NGX_MCP_REDIS_READS,
                              ngx_mcp_redis_page_ids, argv, 8);
}


static void
ngx_mcp_redis_page_ids(ngx_mcp_redis_cmd_t *cmd, redisReply *reply)
{
    size_t                   i, n;
    redisReply             **r;
    ngx_mcp_redis_call_t    *call;
    ngx_mcp_redis_page_t    *page;
    ngx_mcp_redis_entry_t   *e;

    call = cmd->data;
    page = call->data;

    if (reply == NULL || reply->type != REDIS_REPLY_ARRAY) {
        ngx_mcp_redis_finish(call, ngx_mcp_redis_over(call,
                                               NGX_MCP_STORE_UNAVAILABLE));
        return;
    }

    n = reply->elements / 2;
    page->last = (n <= page->limit);
    n = ngx_min(n, page->limit);

    page->nentries = 0;
    page->entries = ngx_pcalloc(call->pool,
                                (n + 1) * sizeof(ngx_mcp_redis_entry_t));
    if (page->entries == NULL) {
        ngx_mcp_redis_finish(call, NGX_ERROR);
        return;
    }

    for (i = 0; i < n; i++) {
        r = &reply->element[2 * i];

        if (r[0]->type != REDIS_REPLY_STRING
            || r[0]->len != sizeof(ngx_mcp_id_t)
            || r[1]->type != REDIS_REPLY_STRING)
        {
            continue;
        }

        e = &page->entries[page->nentries++];

        e->page = call;
        e->score = (uint64_t) strtod(r[1]->str, NULL);
        e->one.st = call->st;
        e->one.op = call->op;
        e->one.pool = call->pool;
        e->one.partition = call->partition;
        e->one.data = e;
        ngx_memcpy(&e->one.id, r[0]->str, sizeof(ngx_mcp_id_t));
    }

    ngx_mcp_redis_finish(call, ngx_mcp_redis_page_read(call));
}


/* replies cannot come before this function returns */

static ngx_int_t
ngx_mcp_redis_page_read(ngx_mcp_redis_call_t *call)
{
    ngx_str_t               argv[2];
    ngx_uint_t              i;
    ngx_mcp_redis_page_t   *page;
    ngx_mcp_redis_entry_t  *e;

    page = call->data;
    page->pending = 0;

    for (i = 0; i < page->nentries; i++) {
        e = &page->entries[i];

        ngx_str_set(&argv[0], "GET");
        argv[1] = ngx_mcp_redis_key(call->st, call->pool, call->partition,
                                    "t", &e->one.id, sizeof(ngx_mcp_id_t));

        if (ngx_mcp_redis_call(&e->one, 0, NGX_MCP_REDIS_READS,
                               ngx_mcp_redis_page_task, argv, 2)
            == NGX_AGAIN)
        {
            page->pending++;

        } else {
            e->rc = NGX_ERROR;
        }
    }

    return page->pending ? NGX_AGAIN : ngx_mcp_redis_page_add(call);
}


static void
ngx_mcp_redis_page_task(ngx_mcp_redis_cmd_t *cmd, redisReply *reply)
{
    ngx_mcp_redis_call_t   *one;
    ngx_mcp_redis_page_t   *page;
    ngx_mcp_redis_entry_t  *e;

    one = cmd->data;
    e = one->data;
    page = e->page->data;

    e->rc = (reply && reply->type != REDIS_REPLY_ERROR)
            ? ngx_mcp_redis_load(one, reply, NULL, NULL) : NGX_ERROR;

    if (e->rc == NGX_OK
        && ngx_mcp_redis_matches(page, one)
        && (ngx_mcp_redis_needs_others(&one->rr, page->want)
            || (page->want & NGX_MCP_WANT(NGX_MCP_RESULT)
                && one->rr.lengths[NGX_MCP_RESULT])))
    {
        if (ngx_mcp_redis_watch_read(one, NULL, 0, ngx_mcp_redis_page_whole)
            == NGX_AGAIN)
        {
            return;
        }

        e->rc = NGX_ERROR;
    }

    ngx_mcp_redis_page_done(e);
}


static void
ngx_mcp_redis_page_whole(ngx_mcp_redis_cmd_t *cmd, redisReply *reply)
{
    ngx_mcp_redis_call_t   *one;
    ngx_mcp_redis_entry_t  *e;

    one = cmd->data;
    e = one->data;

    if (reply == NULL || reply->type != REDIS_REPLY_ARRAY
        || reply->elements == 0
        || reply->element[0]->type != REDIS_REPLY_INTEGER
        || reply->element[0]->integer < 0)
    {
        e->rc = NGX_ERROR;

    } else if (reply->elements == 4) {
        e->rc = ngx_mcp_redis_load(one, reply->element[1], reply->element[2],
                                   reply->element[3]);

    } else {
        e->rc = NGX_DECLINED;
    }

    ngx_mcp_redis_page_done(e);
}


static void
ngx_mcp_redis_page_done(ngx_mcp_redis_entry_t *e)
{
    ngx_mcp_redis_call_t  *call;
    ngx_mcp_redis_page_t  *page;

    call = e->page;
    page = call->data;

    if (--page->pending == 0) {
        ngx_mcp_redis_finish(call, ngx_mcp_redis_page_add(call));
    }
}


/* adds what was read to the page; if it is not full, reads more */

static ngx_int_t
ngx_mcp_redis_page_add(ngx_mcp_redis_call_t *call)
{
    ngx_uint_t              i;
    ngx_mcp_redis_page_t   *page;
    ngx_mcp_redis_entry_t  *e;

    page = call->data;

    for (i = 0; i < page->nentries && page->n < page->limit; i++) {
        e = &page->entries[i];

        if (e->rc == NGX_ERROR) {
            return ngx_mcp_redis_over(call, NGX_MCP_STORE_UNAVAILABLE);
        }

        page->scanned++;
        page->after = e->score;

        if (e->rc == NGX_OK && ngx_mcp_redis_matches(page, &e->one)
            && ngx_mcp_redis_view(&e->one, page->want,
                                  &page->views[page->n++])
               != NGX_OK)
        {
            return NGX_ERROR;
        }
    }

    if (i < page->nentries || !page->last) {

        if (page->n < page->limit && page->scanned < NGX_MCP_LIST_SCAN) {
            return ngx_mcp_redis_page_next(call);
        }

        return ngx_mcp_redis_page_end(call, 1);
    }

    if (call->op->type == NGX_MCP_OP_RECENT
        && call->partition + 1 < call->st->conf->partitions)
    {
        call->partition++;
        page->after = 0;
        page->key = ngx_mcp_redis_key(call->st, call->pool, call->partition,
                                      "c", NULL, 0);

        if (page->n < page->limit && page->scanned < NGX_MCP_LIST_SCAN) {
            return ngx_mcp_redis_page_next(call);
        }

        /* a number that no change has: the beginning of the partition */
        page->after = NGX_MCP_RECORD_COUNT;

        return ngx_mcp_redis_page_end(call, 1);
    }

    return ngx_mcp_redis_page_end(call, 0);
}


static ngx_uint_t
ngx_mcp_redis_matches(ngx_mcp_redis_page_t *page, ngx_mcp_redis_call_t *one)
{
    ngx_mcp_record_t    *rec;
    ngx_mcp_criteria_t  *c;

    rec = &one->rr.rec;
    c = &page->criteria;

    return ngx_mcp_redis_visible(one, c->owner)
           && (c->tool.len == 0
               || (c->tool.len == rec->tool.len
                   && ngx_memcmp(c->tool.data, rec->tool.data, rec->tool.len)
                      == 0))
           && (c->states == 0 || c->states & ngx_mcp_list_bit(&rec->task))
           && rec->task.created >= c->from
           && (c->to == 0 || rec->task.created <= c->to);
}


static ngx_int_t
ngx_mcp_redis_page_end(ngx_mcp_redis_call_t *call, ngx_uint_t more)
{
    ngx_mcp_cursor_t       next;
    ngx_mcp_op_list_t     *list;
    ngx_mcp_op_recent_t   *recent;
    ngx_mcp_redis_page_t  *page;

    page = call->data;

    next.seq = more ? page->after : 0;
    next.hint = call->partition;

    if (call->op->type == NGX_MCP_OP_LIST) {
        list = (ngx_mcp_op_list_t *) call->op;
        list->views = page->views;
        list->n = page->n;
        list->next = next;

    } else {
        recent = (ngx_mcp_op_recent_t *) call->op;
        recent->views = page->views;
        recent->n = page->n;
        recent->next = next;
        recent->more = more;
        recent->lost = 0;
    }

    return ngx_mcp_redis_over(call, NGX_MCP_OK);
}


#endif /* NGX_MCP_REDIS */
