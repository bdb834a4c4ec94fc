
#include "ngx_mcp_save.h"
#include "ngx_mcp_arena.h"
#include "ngx_mcp_history.h"
#include "ngx_mcp_names.h"
#include "ngx_mcp_signal.h"


/* each payload has a bit in the slot */

typedef char  ngx_mcp_unsaved_fits[
    NGX_MCP_PAYLOADS <= 7 ? 1 : -1
];


static ngx_uint_t ngx_mcp_save_tombs_locked(ngx_mcp_table_t *t,
    ngx_mcp_batch_t *batch, uint64_t *left);
static size_t ngx_mcp_record_size_locked(ngx_mcp_table_t *t,
    ngx_mcp_slot_t *s);
static u_char *ngx_mcp_record_locked(ngx_mcp_table_t *t, ngx_mcp_slot_t *s,
    ngx_mcp_record_t *rec, u_char *p);
static u_char *ngx_mcp_record_name_locked(ngx_mcp_table_t *t, uint32_t name,
    ngx_str_t *text, u_char *p);


/* a task has changed and is at the front */

void
ngx_mcp_save_put_locked(ngx_mcp_table_t *t, ngx_mcp_slot_t *s)
{
    ngx_mcp_save_since_locked(t);

    if (t->sh->oldest == 0) {
        t->sh->oldest = ngx_mcp_index(t, s);
    }

    t->sh->unsaved++;
}


/* one that was not saved leaves its place in the list */

void
ngx_mcp_save_take_locked(ngx_mcp_table_t *t, ngx_mcp_slot_t *s)
{
    t->sh->mixed++;

    if (t->sh->oldest == ngx_mcp_index(t, s)) {
        t->sh->oldest = s->recent.prev;
    }

    t->sh->unsaved--;
}


/* a removed task: its slot waits until its row has been removed, too */

void
ngx_mcp_save_gone_locked(ngx_mcp_table_t *t, ngx_mcp_slot_t *s)
{
    uint32_t          n;
    ngx_mcp_queue_t  *gone;

    n = ngx_mcp_index(t, s);
    gone = &t->sh->gone;

    ngx_mcp_save_since_locked(t);

    s->body.changed = ++t->sh->seq;
    s->hash_next = 0;

    ngx_mcp_failpoint("save_gone");

    if (gone->tail) {
        ngx_mcp_slot(t, gone->tail)->hash_next = n;

    } else {
        gone->head = n;
    }

    gone->tail = n;
    t->sh->ngone++;
}


/* something is not saved; zero is no time */

void
ngx_mcp_save_since_locked(ngx_mcp_table_t *t)
{
    if (t->sh->since == 0) {
        t->sh->since = ngx_current_msec | 1;
    }

    if (t->sh->since_next == 0) {
        t->sh->since_next = ngx_current_msec | 1;
    }
}


/* after changes: the writer is told, and tells us when it has done it */

void
ngx_mcp_unsaved_locked(ngx_mcp_table_t *t)
{
    if (t->sh->durable && ngx_mcp_has_unsaved(t)) {
        ngx_mcp_await_key_locked(t, NGX_MCP_SAVED);
        ngx_mcp_signal_key_locked(t, NGX_MCP_UNSAVED);
    }
}


ngx_int_t
ngx_mcp_batch_init(ngx_mcp_batch_t *batch, ngx_log_t *log)
{
    if (batch->records) {
        return NGX_OK;
    }

    batch->records = ngx_alloc(NGX_MCP_SAVE_TASKS
                               * sizeof(ngx_mcp_record_t), log);
    batch->gone = ngx_alloc(NGX_MCP_SAVE_GONE * sizeof(uint64_t), log);
    batch->need = 65536;

    if (batch->records == NULL || batch->gone == NULL) {
        ngx_mcp_batch_free(batch);
        return NGX_ERROR;
    }

    return ngx_mcp_batch_grow(batch, log);
}


/* outside of the lock */

ngx_int_t
ngx_mcp_batch_grow(ngx_mcp_batch_t *batch, ngx_log_t *log)
{
    u_char  *data;

    data = ngx_alloc(batch->need, log);
    if (data == NULL) {
        return NGX_ERROR;
    }

    if (batch->data) {
        ngx_free(batch->data);
    }

    batch->data = data;
    batch->size = batch->need;

    return NGX_OK;
}


void
ngx_mcp_batch_free(ngx_mcp_batch_t *batch)
{
    if (batch->records) {
        ngx_free(batch->records);
    }

    if (batch->gone) {
        ngx_free(batch->gone);
    }

    if (batch->data) {
        ngx_free(batch->data);
    }

    ngx_memzero(batch, sizeof(ngx_mcp_batch_t));
}


/*
 * Copies what is to be saved next.  NGX_AGAIN: the batch has to grow first,
 * since there is more than fits, or one task that does not.
 */

ngx_int_t
ngx_mcp_save_locked(ngx_mcp_table_t *t, ngx_mcp_batch_t *batch)
{
    u_char          *p;
    size_t           size;
    uint32_t         n;
    uint64_t         left;
    ngx_mcp_slot_t  *s;

    batch->n = 0;
    batch->need = 0;
    batch->instance = t->sh->instance;
    batch->upto = t->sh->seq;
    batch->more = ngx_mcp_save_tombs_locked(t, batch, &left);
    p = batch->data;

    for (n = t->sh->oldest; n; n = s->recent.prev) {
        s = ngx_mcp_slot(t, n);
        ngx_mcp_prefetch(t, s->recent.prev);

        size = ngx_mcp_record_size_locked(t, s);

        if (size > (size_t) (batch->data + batch->size - p)) {

            batch->need = (p - batch->data) + size;

            if (batch->n == 0
                || batch->need <= NGX_MCP_SAVE_BYTES)
            {
                batch->need = ngx_max(batch->need,
                                      ngx_min(batch->size * 2,
                                              NGX_MCP_SAVE_BYTES));
                return NGX_AGAIN;
            }

            break;
        }

        if (batch->n == NGX_MCP_SAVE_TASKS) {
            break;
        }

        p = ngx_mcp_record_locked(t, s, &batch->records[batch->n], p);
        batch->n++;
    }

    if (n) {
        batch->upto = batch->records[batch->n - 1].body.changed;
        batch->more = 1;
    }

    /* a row that has to go yet was decided on after this */

    batch->upto = ngx_min(batch->upto, left);
    batch->mixed = t->sh->mixed;
    t->sh->since_next = 0;

    return NGX_OK;
}


static ngx_uint_t
ngx_mcp_save_tombs_locked(ngx_mcp_table_t *t, ngx_mcp_batch_t *batch,
    uint64_t *left)
{
    uint32_t         n;
    ngx_mcp_slot_t  *s;

    batch->ngone = 0;
    *left = NGX_MCP_NEVER;

    for (n = t->sh->gone.head; n; n = s->hash_next) {
        s = ngx_mcp_slot(t, n);

        if (batch->ngone == NGX_MCP_SAVE_GONE) {
            *left = s->body.changed - 1;
            return 1;
        }

        batch->gone[batch->ngone++] = s->seq;
    }

    return 0;
}


static size_t
ngx_mcp_record_size_locked(ngx_mcp_table_t *t, ngx_mcp_slot_t *s)
{
    size_t      size;
    ngx_uint_t  i;

    size = ngx_mcp_name(t, s->owner)->len
           + ngx_mcp_name(t, s->tool)->len
           + (s->token ? ngx_mcp_name(t, s->token)->len : 0)
           + (s->session ? ngx_mcp_name(t, s->session)->len : 0)
           + NGX_MCP_BLOCK_DATA;

    for (i = 0; i < NGX_MCP_PAYLOADS; i++) {
        if (s->unsaved & (1u << i)) {
            size += s->body.payload[i].len;
        }
    }

    return size;
}


static u_char *
ngx_mcp_record_locked(ngx_mcp_table_t *t, ngx_mcp_slot_t *s,
    ngx_mcp_record_t *rec, u_char *p)
{
    u_char      *bytes;
    ngx_str_t   *str;
    ngx_uint_t   i;

    rec->id = s->id;
    rec->seq = s->seq;
    rec->body = s->body;
    rec->slot = ngx_mcp_index(t, s);
    rec->mask = s->unsaved;

    p = ngx_mcp_record_name_locked(t, s->owner, &rec->owner, p);
    p = ngx_mcp_record_name_locked(t, s->tool, &rec->tool, p);
    p = ngx_mcp_record_name_locked(t, s->token, &rec->token, p);
    p = ngx_mcp_record_name_locked(t, s->session, &rec->session, p);

    if (rec->token.len) {
        /* it comes after the number of its owner */
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

        if (!(rec->mask & (1u << i))) {
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
ngx_mcp_record_name_locked(ngx_mcp_table_t *t, uint32_t name, ngx_str_t *text,
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


/* a batch is on disk */

void
ngx_mcp_saved_locked(ngx_mcp_table_t *t, ngx_mcp_batch_t *batch)
{
    uint32_t           n;
    ngx_uint_t         i;
    ngx_mcp_slot_t    *s;
    ngx_mcp_record_t  *rec;
    ngx_mcp_header_t  *sh;

    sh = t->sh;

    for (i = 0; i < batch->n; i++) {
        rec = &batch->records[i];
        s = ngx_mcp_slot(t, rec->slot);

        if (s->seq == rec->seq && s->body.changed == rec->body.changed) {
            s->unsaved = 0;
        }
    }

    ngx_mcp_failpoint("saved_tasks");

    while (sh->oldest) {
        s = ngx_mcp_slot(t, sh->oldest);

        if (s->body.changed > batch->upto) {
            break;
        }

        sh->oldest = s->recent.prev;
        sh->unsaved--;
    }

    for (i = 0; i < batch->ngone && sh->gone.head; i++) {
        n = sh->gone.head;
        s = ngx_mcp_slot(t, n);

        if (s->seq != batch->gone[i]) {
            break;
        }

        sh->gone.head = s->hash_next;

        if (sh->gone.head == 0) {
            sh->gone.tail = 0;
        }

        sh->ngone--;

        ngx_mcp_failpoint("saved_gone");

        s->body.task.flags = 0;
        s->hash_next = sh->slot.free;
        sh->slot.free = n;
        sh->slot.used--;
    }

    ngx_mcp_failpoint("saved_upto");

    sh->saved = ngx_max(sh->saved, batch->upto);

    if (!batch->more) {
        sh->settled = batch->mixed;
        sh->since = sh->since_next;
    }

    if (batch->mixed == sh->settled) {
        sh->safe = sh->saved;
    }
}


/* as if nothing had ever been saved */

void
ngx_mcp_save_all_locked(ngx_mcp_table_t *t)
{
    uint32_t         n;
    ngx_mcp_slot_t  *s;

    ngx_mcp_save_since_locked(t);

    t->sh->safe = 0;
    t->sh->saved = 0;
    t->sh->unsaved = 0;
    t->sh->oldest = 0;

    for (n = t->sh->recent; n; n = s->recent.next) {
        s = ngx_mcp_slot(t, n);
        s->unsaved = NGX_MCP_UNSAVED_ALL;
        t->sh->oldest = n;
        t->sh->unsaved++;
    }
}


/* times of the monotonic clock, which ends with the machine's life */

uint64_t
ngx_mcp_to_wall(uint64_t time, uint64_t now, uint64_t wall)
{
    return (time == NGX_MCP_NEVER) ? time : time - now + wall;
}


uint64_t
ngx_mcp_from_wall(uint64_t time, uint64_t now, uint64_t wall)
{
    if (time == NGX_MCP_NEVER) {
        return time;
    }

    return (time + now > wall) ? time + now - wall : 0;
}
