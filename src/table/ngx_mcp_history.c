
/*
 * Copyright (C) The nginx-mcp-tasks authors
 */


#include "ngx_mcp_history.h"


/*
 * The format: one byte for the length of all entries, one for the number of
 * dropped entries, and five for the time of the last dropped one, in ms since
 * the task was created.  The entries follow: the event and the state in one
 * byte, the worker if the event is a claim, and the ms since the previous
 * entry.  Numbers have seven bits per byte, the low ones first.
 */

#define NGX_MCP_HISTORY_LEN      0
#define NGX_MCP_HISTORY_DROPPED  1
#define NGX_MCP_HISTORY_BASE     2
#define NGX_MCP_HISTORY_ENTRIES  NGX_MCP_HISTORY_MIN

#define NGX_MCP_HISTORY_NUMBER   10    /* bytes at most */
#define NGX_MCP_HISTORY_ENTRY  (1 + 2 * NGX_MCP_HISTORY_NUMBER)

#define NGX_MCP_HISTORY_EVENT    0x1f
#define NGX_MCP_HISTORY_STATE    5


static u_char *ngx_mcp_history_put(u_char *p, uint64_t n);
static u_char *ngx_mcp_history_number(u_char *p, u_char *end, uint64_t *n);
static u_char *ngx_mcp_history_entry(u_char *p, u_char *end,
    ngx_mcp_history_entry_t *entry);
static uint64_t ngx_mcp_history_base(u_char *p);
static size_t ngx_mcp_history_drop(u_char *p, size_t len);
static uint64_t ngx_mcp_history_last(u_char *p, size_t len);


/* the space for the history, after the params in their last block */

size_t
ngx_mcp_history_bytes_locked(ngx_mcp_table_t *t, ngx_mcp_slot_t *s,
    u_char **bytes)
{
    size_t            last;
    ngx_mcp_chain_t  *chain;

    chain = &s->body.payload[NGX_MCP_PARAMS];

    last = (chain->len - 1) % NGX_MCP_BLOCK_DATA + 1;
    last -= ngx_min(last, NGX_MCP_HISTORY);

    *bytes = ngx_mcp_block(t, chain->last)->data + last;

    return NGX_MCP_BLOCK_DATA - last;
}


void
ngx_mcp_history_init_locked(ngx_mcp_table_t *t, ngx_mcp_slot_t *s)
{
    u_char  *p;

    (void) ngx_mcp_history_bytes_locked(t, s, &p);

    ngx_memzero(p, NGX_MCP_HISTORY_ENTRIES);
}


/* called after an event that has changed the state of the task */

void
ngx_mcp_history_add_locked(ngx_mcp_table_t *t, ngx_mcp_slot_t *s,
    ngx_mcp_event_t *ev)
{
    u_char          *p, all[NGX_MCP_BLOCK_DATA];
    size_t           size;
    ngx_mcp_task_t  *task;

    task = &s->body.task;

    size = ngx_mcp_history_bytes_locked(t, s, &p);
    ngx_memcpy(all, p, size);

    ngx_mcp_history_append(all, size, task->created, ev->wall, ev->type,
                           task->state, ev->worker);

    /* at every instruction the history is complete or empty */

    p[NGX_MCP_HISTORY_LEN] = 0;
    ngx_mcp_barrier();

    ngx_mcp_failpoint("history");

    ngx_memcpy(p + 1, all + 1,
               NGX_MCP_HISTORY_ENTRIES - 1 + all[NGX_MCP_HISTORY_LEN]);
    ngx_mcp_barrier();
    p[NGX_MCP_HISTORY_LEN] = all[NGX_MCP_HISTORY_LEN];
}


/*
 * Adds an entry to a history outside of a table, in size bytes, at least
 * NGX_MCP_HISTORY_MIN.  The oldest entries are dropped if there is no room.
 */

void
ngx_mcp_history_append(u_char *p, size_t size, uint64_t created,
    uint64_t wall, ngx_uint_t event, ngx_uint_t state, uint32_t worker)
{
    u_char    *e, entry[NGX_MCP_HISTORY_ENTRY];
    size_t     len, n;
    uint64_t   at, last;

    size -= NGX_MCP_HISTORY_ENTRIES;
    len = ngx_min(p[NGX_MCP_HISTORY_LEN], size);

    /* if the wall clock was set back, the difference is 0 */

    at = wall - ngx_min(created, wall);
    last = ngx_mcp_history_last(p, len);

    entry[0] = (u_char) (event | state << NGX_MCP_HISTORY_STATE);
    e = entry + 1;

    if (event == NGX_MCP_EV_CLAIM) {
        e = ngx_mcp_history_put(e, worker);
    }

    e = ngx_mcp_history_put(e, at - ngx_min(last, at));
    n = e - entry;

    while (len + n > size && len) {
        len = ngx_mcp_history_drop(p, len);
    }

    if (n <= size) {
        ngx_memcpy(p + NGX_MCP_HISTORY_ENTRIES + len, entry, n);
        len += n;
    }

    p[NGX_MCP_HISTORY_LEN] = (u_char) len;
}


ngx_int_t
ngx_mcp_history_valid(u_char *p, size_t len, uint64_t latest)
{
    u_char                  *q, *end;
    uint64_t                 at;
    ngx_mcp_history_entry_t  entry;

    if (len == 0) {
        return NGX_OK;
    }

    if (len < NGX_MCP_HISTORY_ENTRIES
        || p[NGX_MCP_HISTORY_LEN] > len - NGX_MCP_HISTORY_ENTRIES)
    {
        return NGX_ERROR;
    }

    at = ngx_mcp_history_base(p);
    q = p + NGX_MCP_HISTORY_ENTRIES;
    end = q + p[NGX_MCP_HISTORY_LEN];

    while (q < end) {
        q = ngx_mcp_history_entry(q, end, &entry);

        /* the high bit is clear only in the last byte of a number */

        if (q[-1] >= 0x80 || entry.event >= NGX_MCP_EVENTS
            || entry.state == NGX_MCP_FREE || entry.state >= NGX_MCP_STATES
            || entry.at > latest)
        {
            return NGX_ERROR;
        }

        at += entry.at;
    }

    return (at <= latest) ? NGX_OK : NGX_ERROR;
}


/*
 * Copies the history of a record into a slot.  Ids of workers are cleared: they
 * are valid only in the zone that wrote them.
 */

void
ngx_mcp_history_load_locked(ngx_mcp_table_t *t, ngx_mcp_slot_t *s,
    u_char *bytes, size_t len)
{
    u_char          *p, *e, *q, *end;
    u_char           all[NGX_MCP_HISTORY_ENTRIES + 255
                         + NGX_MCP_HISTORY_ENTRY];
    size_t                   size, n;
    ngx_mcp_history_entry_t  entry;

    ngx_mcp_history_init_locked(t, s);

    if (len < NGX_MCP_HISTORY_ENTRIES) {
        return;
    }

    ngx_mcp_barrier();

    ngx_memcpy(all, bytes, NGX_MCP_HISTORY_ENTRIES);

    q = bytes + NGX_MCP_HISTORY_ENTRIES;
    end = q + ngx_min(bytes[NGX_MCP_HISTORY_LEN],
                      len - NGX_MCP_HISTORY_ENTRIES);
    e = all + NGX_MCP_HISTORY_ENTRIES;

    /* no entry becomes longer, except a last one that was truncated */

    while (q < end) {
        q = ngx_mcp_history_entry(q, end, &entry);

        *e++ = (u_char) (entry.event | entry.state << NGX_MCP_HISTORY_STATE);

        if (entry.event == NGX_MCP_EV_CLAIM) {
            e = ngx_mcp_history_put(e, 0);
        }

        e = ngx_mcp_history_put(e, entry.at);
    }

    n = e - all - NGX_MCP_HISTORY_ENTRIES;
    size = ngx_mcp_history_bytes_locked(t, s, &p)
           - NGX_MCP_HISTORY_ENTRIES;

    while (n > size) {
        n = ngx_mcp_history_drop(all, n);
    }

    /* it was emptied above: at every instruction it is complete or empty */

    ngx_memcpy(p + 1, all + 1, NGX_MCP_HISTORY_ENTRIES - 1 + n);
    ngx_mcp_barrier();
    p[NGX_MCP_HISTORY_LEN] = (u_char) n;
}


/*
 * Reads at most NGX_MCP_HISTORY_MAX entries, oldest first, and returns their
 * number.  *dropped is the number of older entries that were dropped; 255 means
 * 255 or more.
 */

ngx_uint_t
ngx_mcp_history_read(u_char *p, size_t size, uint64_t created,
    ngx_mcp_history_entry_t *entry, ngx_uint_t *dropped)
{
    u_char      *q, *end;
    uint64_t     at;
    ngx_uint_t   n;

    *dropped = p[NGX_MCP_HISTORY_DROPPED];

    at = created + ngx_mcp_history_base(p);
    q = p + NGX_MCP_HISTORY_ENTRIES;
    end = q + ngx_min(p[NGX_MCP_HISTORY_LEN], size - NGX_MCP_HISTORY_ENTRIES);

    for (n = 0; q < end && n < NGX_MCP_HISTORY_MAX; n++) {
        q = ngx_mcp_history_entry(q, end, &entry[n]);
        at += entry[n].at;
        entry[n].at = at;
    }

    return n;
}


static u_char *
ngx_mcp_history_put(u_char *p, uint64_t n)
{
    while (n > 0x7f) {
        *p++ = (u_char) (n | 0x80);
        n >>= 7;
    }

    *p++ = (u_char) n;

    return p;
}


static u_char *
ngx_mcp_history_number(u_char *p, u_char *end, uint64_t *n)
{
    ngx_uint_t  shift;

    *n = 0;

    for (shift = 0; p < end && shift < 64; shift += 7) {
        *n |= (uint64_t) (*p & 0x7f) << shift;

        if (*p++ < 0x80) {
            break;
        }
    }

    return p;
}


/* entry->at becomes the time since the previous entry */

static u_char *
ngx_mcp_history_entry(u_char *p, u_char *end, ngx_mcp_history_entry_t *entry)
{
    uint64_t  n;

    entry->event = *p & NGX_MCP_HISTORY_EVENT;
    entry->state = *p++ >> NGX_MCP_HISTORY_STATE;
    entry->worker = 0;

    if (entry->event == NGX_MCP_EV_CLAIM) {
        p = ngx_mcp_history_number(p, end, &n);
        entry->worker = (uint32_t) n;
    }

    return ngx_mcp_history_number(p, end, &entry->at);
}


static uint64_t
ngx_mcp_history_base(u_char *p)
{
    uint64_t    base;
    ngx_uint_t  i;

    p += NGX_MCP_HISTORY_BASE;

    for (base = 0, i = 5; i-- > 0; /* void */) {
        base = base << 8 | p[i];
    }

    return base;
}


/* drops the oldest of the entries in len bytes; returns their new length */

static size_t
ngx_mcp_history_drop(u_char *p, size_t len)
{
    u_char                  *first, *next;
    uint64_t                 base;
    ngx_uint_t               i;
    ngx_mcp_history_entry_t  entry;

    first = p + NGX_MCP_HISTORY_ENTRIES;
    next = ngx_mcp_history_entry(first, first + len, &entry);

    base = ngx_mcp_history_base(p) + entry.at;

    for (i = 0; i < 5; i++) {
        p[NGX_MCP_HISTORY_BASE + i] = (u_char) (base >> 8 * i);
    }

    if (p[NGX_MCP_HISTORY_DROPPED] < 0xff) {
        p[NGX_MCP_HISTORY_DROPPED]++;
    }

    len -= next - first;
    ngx_memmove(first, next, len);

    return len;
}


/* the time of the last entry, in ms since the task was created */

static uint64_t
ngx_mcp_history_last(u_char *p, size_t len)
{
    u_char                  *q, *end;
    uint64_t                 last;
    ngx_mcp_history_entry_t  entry;

    last = ngx_mcp_history_base(p);
    q = p + NGX_MCP_HISTORY_ENTRIES;

    for (end = q + len; q < end; /* void */) {
        q = ngx_mcp_history_entry(q, end, &entry);
        last += entry.at;
    }

    return last;
}
