
/*
 * The codec of a task: every field comes back as it was, at its extremes too;
 * nothing of a task is forgotten; times are those of the store in between; and
 * what no field can have is refused.
 */


#include "libtest.h"
#include "ngx_mcp_record.h"

#include <math.h>


#define WALL   1700000000000ULL
#define NOW    5000000ULL
#define NEVER  NGX_MCP_NEVER


static ngx_mcp_field_t *
field(const char *name)
{
    ngx_uint_t  i;

    for (i = 0; i < ngx_mcp_nfields; i++) {
        if (ngx_strcmp(ngx_mcp_fields[i].name, name) == 0) {
            return &ngx_mcp_fields[i];
        }
    }

    printf("Bail out! no field %s\n", name);
    exit(2);
}


static void *
member(ngx_mcp_record_t *rec, ngx_mcp_field_t *f)
{
    return (u_char *) rec + f->offset;
}


static size_t
width(ngx_mcp_field_t *f)
{
    switch (f->type) {

    case NGX_MCP_FIELD_ID:
        return sizeof(ngx_mcp_id_t);

    case NGX_MCP_FIELD_NAME:
    case NGX_MCP_FIELD_TEXT:
    case NGX_MCP_FIELD_BYTES:
        return sizeof(ngx_str_t);

    case NGX_MCP_FIELD_STATE:
    case NGX_MCP_FIELD_U8:
        return sizeof(uint8_t);

    case NGX_MCP_FIELD_U32:
    case NGX_MCP_FIELD_SPAN32:
        return sizeof(uint32_t);

    default:
        return sizeof(uint64_t);
    }
}


static void
cover(u_char *covered, size_t offset, size_t len)
{
    memset(covered + offset, 1, len);
}


/* each byte of a record belongs to a field, or it is known why it does not */

static void
test_complete(void)
{
    u_char       covered[sizeof(ngx_mcp_record_t)];
    size_t       i, end;
    ngx_uint_t   n;

    ngx_memzero(covered, sizeof(covered));

    for (n = 0; n < ngx_mcp_nfields; n++) {
        cover(covered, ngx_mcp_fields[n].offset, width(&ngx_mcp_fields[n]));
    }

    /* of one zone's memory: a load begins without them */

    cover(covered, offsetof(ngx_mcp_record_t, task.holder), sizeof(uint64_t));
    cover(covered, offsetof(ngx_mcp_record_t, task.worker), sizeof(uint32_t));

    /* padding, behind the last member of the policy */

    i = offsetof(ngx_mcp_record_t, task.policy.calls) + sizeof(uint8_t);
    end = offsetof(ngx_mcp_record_t, task.policy) + sizeof(ngx_mcp_policy_t);
    ok(end - i < sizeof(uint32_t), "the policy ends with its flags");
    cover(covered, i, end - i);

    /* beside the fields */

    cover(covered, offsetof(ngx_mcp_record_t, mask), sizeof(ngx_uint_t));
    cover(covered, offsetof(ngx_mcp_record_t, payload),
          NGX_MCP_PAYLOADS * sizeof(ngx_str_t));

    for (i = 0; i < sizeof(covered) && covered[i]; i++) { /* void */ }

    is(i, sizeof(covered), "every byte of a record is known to the codec");

    for (n = 0; n < NGX_MCP_PAYLOADS; n++) {
        ok(ngx_mcp_payload_fields[n].name.len, "a payload has a name: %s",
           ngx_mcp_payload_fields[n].name.data);
        is(ngx_mcp_record_payload(ngx_mcp_payload_fields[n].number), n,
           "and a number of its own");
    }

    is(ngx_mcp_record_payload(NGX_MCP_PAYLOAD_NUMBERS - 1), NGX_MCP_PAYLOADS,
       "there is no payload of another number");

    ok(field("seq") == &ngx_mcp_fields[0], "the key comes first");
    ok(field("state") < field("phase_end_at"),
       "the state comes before what depends on it");
}


/* through values, into another record */

static ngx_int_t
copy(ngx_mcp_record_t *to, ngx_mcp_record_t *from)
{
    ngx_uint_t       i;
    ngx_mcp_value_t  value;

    ngx_memzero(to, sizeof(ngx_mcp_record_t));

    for (i = 0; i < ngx_mcp_nfields; i++) {
        ngx_mcp_record_get(from, &ngx_mcp_fields[i], &value);

        if (ngx_mcp_record_set(to, &ngx_mcp_fields[i], &value) != NGX_OK) {
            diag("%s is refused", ngx_mcp_fields[i].name);
            return NGX_ERROR;
        }
    }

    return NGX_OK;
}


/* the smallest or the largest that each field may have */

static void
fill(ngx_mcp_record_t *rec, ngx_uint_t state, ngx_uint_t most)
{
    void             *p;
    ngx_uint_t        i;
    ngx_mcp_field_t  *f;
    static u_char     text[NGX_MCP_MAX_NAME];

    ngx_memzero(rec, sizeof(ngx_mcp_record_t));
    memset(text, 0xff, sizeof(text));

    for (i = 0; i < ngx_mcp_nfields; i++) {
        f = &ngx_mcp_fields[i];
        p = member(rec, f);

        switch (f->type) {

        case NGX_MCP_FIELD_ID:
            memset(p, most ? 0xff : 0, sizeof(ngx_mcp_id_t));
            break;

        case NGX_MCP_FIELD_STATE:
            *(uint8_t *) p = (uint8_t) state;
            break;

        case NGX_MCP_FIELD_NAME:
        case NGX_MCP_FIELD_TEXT:
        case NGX_MCP_FIELD_BYTES:
            ((ngx_str_t *) p)->len = most ? f->max : 0;
            ((ngx_str_t *) p)->data = most ? text : NULL;
            break;

        case NGX_MCP_FIELD_BITS:
            *(uint64_t *) p = most ? (uint64_t) -1 : 0;
            break;

        case NGX_MCP_FIELD_U8:
            *(uint8_t *) p = most ? (uint8_t) f->max : 0;
            break;

        case NGX_MCP_FIELD_U32:
        case NGX_MCP_FIELD_SPAN32:
            *(uint32_t *) p = most ? (uint32_t) f->max : 0;
            break;

        case NGX_MCP_FIELD_REAL:
            *(double *) p = most ? 1.7976931348623157e308 : 0;
            break;

        case NGX_MCP_FIELD_U64:
            *(uint64_t *) p = most ? f->max : 0;
            break;

        default:
            *(uint64_t *) p = most ? NEVER : 0;
        }
    }
}


/* texts by what they are, all else by its bytes */

static ngx_uint_t
same(ngx_mcp_record_t *a, ngx_mcp_record_t *b)
{
    ngx_str_t        *s, *t;
    ngx_uint_t        i;
    ngx_mcp_field_t  *f;

    for (i = 0; i < ngx_mcp_nfields; i++) {
        f = &ngx_mcp_fields[i];
        s = member(a, f);
        t = member(b, f);

        if (f->type == NGX_MCP_FIELD_NAME || f->type == NGX_MCP_FIELD_TEXT
            || f->type == NGX_MCP_FIELD_BYTES)
        {
            if (s->len == t->len
                && (s->len == 0 || ngx_memcmp(s->data, t->data, s->len) == 0))
            {
                continue;
            }

        } else if (ngx_memcmp(s, t, width(f)) == 0) {
            continue;
        }

        diag("%s is another", f->name);
        return 0;
    }

    return 1;
}


static void
test_extremes(void)
{
    ngx_uint_t        state, most;
    ngx_mcp_value_t   value;
    ngx_mcp_record_t  a, b;

    for (state = NGX_MCP_QUEUED; state < NGX_MCP_STATES; state++) {
        for (most = 0; most < 2; most++) {
            fill(&a, state, most);
            ok(copy(&b, &a) == NGX_OK && same(&a, &b),
               "the %s of everything, %s", most ? "most" : "least",
               ngx_mcp_state_name(state)->data);
        }
    }

    fill(&a, NGX_MCP_QUEUED, 0);
    a.task.progress = -1;
    a.task.total = -1;
    a.peak = -1;
    a.task.ttl = NEVER;
    a.task.policy.lease = NGX_MCP_UNLIMITED;
    ok(copy(&b, &a) == NGX_OK && same(&a, &b), "what there is none of");

    ngx_mcp_record_get(&a, field("progress"), &value);
    is(value.type, NGX_MCP_VALUE_NONE, "no progress");
    ngx_mcp_record_get(&a, field("lease_time"), &value);
    is(value.type, NGX_MCP_VALUE_NONE, "no limit of a lease");
    ngx_mcp_record_get(&a, field("ttl"), &value);
    is(value.type, NGX_MCP_VALUE_NONE, "no TTL");
    ngx_mcp_record_get(&a, field("session"), &value);
    is(value.type, NGX_MCP_VALUE_NONE, "no session");
    ngx_mcp_record_get(&a, field("owner"), &value);
    is(value.type, NGX_MCP_VALUE_TEXT, "but an owner, whose name is empty");
}


/* a record goes to a store, and comes back on another machine */

static void
test_times(void)
{
    ngx_uint_t        state;
    ngx_mcp_value_t   value;
    ngx_mcp_record_t  a, b;

    for (state = NGX_MCP_QUEUED; state < NGX_MCP_STATES; state++) {
        fill(&a, state, 0);
        a.task.created = WALL - 20;
        a.task.updated = WALL - 10;
        a.task.expires = NOW + 1000;
        a.task.step_end = NEVER;
        a.task.phase_end = NOW + 2000;
        a.task.since = NOW - 3000;

        ngx_mcp_record_to_store(&a, NOW, WALL);
        (void) copy(&b, &a);
        ok(same(&a, &b) && a.task.expires == WALL + 1000
           && a.task.created == WALL - 20 && a.task.updated == WALL - 10,
           "in store time, %s", ngx_mcp_state_name(state)->data);

        ngx_mcp_record_from_store(&b, 60000, WALL + 500);
        is(b.task.expires, 60500, "it expires when it should");
        ok(b.task.step_end == NEVER, "never is never");

        if (state == NGX_MCP_INPUT_REQUIRED) {
            is(a.task.phase_end, NOW + 2000, "a duration is none of a clock");
            is(b.task.phase_end, NOW + 2000, "and comes back");
            is(b.task.since, NOW - 3000, "so does the other");

            ngx_mcp_record_get(&a, field("phase_end_at"), &value);
            is(value.type, NGX_MCP_VALUE_NONE, "there is no time");
            ngx_mcp_record_get(&a, field("phase_left"), &value);
            is(value.number, NOW + 2000, "but what is left");

        } else {
            is(b.task.phase_end, 61500, "it times out when it should");
            is(b.task.since, 56500, "and waits or runs for as long");

            ngx_mcp_record_get(&a, field("phase_left"), &value);
            is(value.type, NGX_MCP_VALUE_NONE, "there is no duration");
        }
    }

    /* far away, in both directions */

    fill(&a, NGX_MCP_RUNNING, 0);
    a.task.expires = NEVER - 1;
    a.task.step_end = NEVER;
    a.task.phase_end = NOW + (NGX_MCP_RECORD_MAX - WALL);
    a.task.since = 0;
    ngx_mcp_record_to_store(&a, NOW, WALL);
    ok(a.task.expires == NEVER, "what no store can say is never");
    ok(a.task.step_end == NEVER, "as never is");
    ok(a.task.phase_end == NGX_MCP_RECORD_MAX, "what it can say just so");
    is(a.task.since, WALL - NOW, "and when the machine was started");

    ngx_mcp_record_from_store(&a, 1000, WALL);
    is(a.task.since, 0, "which was before this one was");
    ok(a.task.phase_end == 1000 + (NGX_MCP_RECORD_MAX - WALL), "and so far");

    a.task.since = WALL;
    ngx_mcp_record_from_store(&a, 0, WALL);
    is(a.task.since, 0, "a machine that was started just now");
}


static ngx_int_t
set_number(const char *name, uint64_t number)
{
    ngx_mcp_value_t   value;
    ngx_mcp_record_t  rec;

    fill(&rec, NGX_MCP_RUNNING, 0);
    value.type = NGX_MCP_VALUE_NUMBER;
    value.number = number;

    return ngx_mcp_record_set(&rec, field(name), &value);
}


static ngx_int_t
set_text(const char *name, const char *text, size_t len)
{
    ngx_mcp_value_t   value;
    ngx_mcp_record_t  rec;

    fill(&rec, NGX_MCP_RUNNING, 0);
    value.type = NGX_MCP_VALUE_TEXT;
    value.text.data = (u_char *) text;
    value.text.len = len;

    return ngx_mcp_record_set(&rec, field(name), &value);
}


static ngx_int_t
set_other(const char *name, ngx_uint_t type, double real)
{
    ngx_mcp_value_t   value;
    ngx_mcp_record_t  rec;

    fill(&rec, NGX_MCP_RUNNING, 0);
    ngx_memzero(&value, sizeof(value));
    value.type = type;
    value.real = real;

    return ngx_mcp_record_set(&rec, field(name), &value);
}


static void
test_refused(void)
{
    ngx_uint_t         i;
    ngx_mcp_field_t   *f;
    static const char  text[NGX_MCP_MAX_NAME + 1];

    for (i = 0; i < ngx_mcp_nfields; i++) {
        f = &ngx_mcp_fields[i];

        if (f->type <= NGX_MCP_FIELD_STATE) {
            ok(set_text(f->name, "lazy", 4) == NGX_ERROR,
               "%s: not any text", f->name);
            ok(set_text(f->name, "", 0) == NGX_ERROR, "%s: not an empty one",
               f->name);
            continue;
        }

        if (f->type <= NGX_MCP_FIELD_BYTES) {
            ok(set_text(f->name, text, f->max) == NGX_OK
               && set_text(f->name, text, f->max + 1) == NGX_ERROR,
               "%s: not a longer one", f->name);
            ok(set_number(f->name, 1) == NGX_ERROR, "%s: not a number",
               f->name);
            continue;
        }

        ok(set_text(f->name, "1", 1) == NGX_ERROR, "%s: not a text", f->name);

        if (f->type != NGX_MCP_FIELD_BITS && f->type != NGX_MCP_FIELD_REAL) {
            ok(set_number(f->name, f->max) == NGX_OK
               && set_number(f->name, f->max + 1) == NGX_ERROR
               && set_number(f->name, (uint64_t) -1) == NGX_ERROR,
               "%s: not a larger one, nor a negative one", f->name);
            ok(set_other(f->name, NGX_MCP_VALUE_REAL, 1) == NGX_ERROR,
               "%s: not a real one", f->name);
        }

        if (f->type == NGX_MCP_FIELD_REAL) {
            ok(set_number(f->name, 7) == NGX_OK
               && set_other(f->name, NGX_MCP_VALUE_REAL, INFINITY) == NGX_ERROR
               && set_other(f->name, NGX_MCP_VALUE_REAL, NAN) == NGX_ERROR,
               "%s: what is a number", f->name);
        }

        if (f->type == NGX_MCP_FIELD_U64 || f->type == NGX_MCP_FIELD_U32
            || f->type == NGX_MCP_FIELD_U8 || f->type == NGX_MCP_FIELD_BITS)
        {
            ok(set_other(f->name, NGX_MCP_VALUE_NONE, 0) == NGX_ERROR,
               "%s: not none", f->name);

        } else {
            ok(set_other(f->name, NGX_MCP_VALUE_NONE, 0) == NGX_OK,
               "%s: or none", f->name);
        }
    }

    ok(set_other("owner", NGX_MCP_VALUE_NONE, 0) == NGX_ERROR,
       "a task has an owner");
    ok(set_other("session", NGX_MCP_VALUE_NONE, 0) == NGX_OK,
       "but need not have a session");
    ok(set_number("lease", (uint64_t) -1) == NGX_OK, "a lease is any number");
    ok(set_text("state", "free", 4) == NGX_ERROR, "no task is free");
}


int
main(void)
{
    test_complete();
    test_extremes();
    test_times();
    test_refused();

    return done_testing();
}
