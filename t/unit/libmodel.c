
/* The state of the model, random choices from it, and lookups in it. */


#include "libmodel.h"
#include "ngx_mcp_arena.h"
#include "ngx_mcp_history.h"
#include "ngx_mcp_names.h"
#include "ngx_mcp_signal.h"


#define STREAMS  7


model_state_t    model;

static uint64_t  rnd_state;
static uint64_t  streams[STREAMS];
static uint32_t  stream_number;

const char  *model_owner_names[OWNERS] = {
    "", "alice", "bob",
    "an owner whose name is too long for the first block of a name, "
    "and then some",
    "C=DE, O=Example, OU=A department with a rather long name, CN=a client "
    "certificate, emailAddress=someone@example.org, serialNumber=0123456789"
};

const char  *model_tool_names[TOOLS] = {
    "dig", "x", "render_a_film", "t/\xc3\xa4"
};

const char  *model_worker_names[WORKERS] = {
    "ann", "127.0.0.1", "b/\xc3\xb6"
};

const char  *model_session_names[SESSIONS] = {
    "s", "another session",
    "a session with the longest name of all, which is 64 characters.."
};


void
model_seed(uint64_t seed)
{
    rnd_state = seed | 1;
}


uint64_t
model_rnd(uint64_t n)
{
    rnd_state ^= rnd_state << 13;
    rnd_state ^= rnd_state >> 7;
    rnd_state ^= rnd_state << 17;

    return n ? (rnd_state >> 11) % n : 0;
}


void
model_fill(u_char *p, uint64_t seed, size_t len)
{
    size_t  i;

    for (i = 0; i < len; i++) {
        p[i] = (u_char) (seed + i * (seed | 1) + i / 251);
    }
}


/* at times small, so that slots run out before blocks do */

size_t
model_random_len(void)
{
    if (model.ops / 20000 % 2) {
        return model_rnd(60);
    }

    switch (model_rnd(8)) {
    case 0:
        return 0;
    case 1:
        return 120 + model_rnd(10);
    case 2:
        return model_rnd(BYTES);
    default:
        return model_rnd(200);
    }
}


size_t
model_used_blocks(void)
{
    int        i, k, owner_seen[OWNERS], tool_seen[TOOLS];
    int        session_seen[SESSIONS];
    size_t     n;
    ngx_str_t  s;

    memset(session_seen, 0, sizeof(session_seen));
    memset(owner_seen, 0, sizeof(owner_seen));
    memset(tool_seen, 0, sizeof(tool_seen));

    for (n = 0, i = 0; i < MAX; i++) {
        if (!model.tasks[i].live) {
            continue;
        }

        for (k = 0; k < NGX_MCP_PAYLOADS; k++) {
            n += ngx_mcp_blocks_for(model.tasks[i].len[k]
                            + (k == NGX_MCP_PARAMS
                               ? 10 + NGX_MCP_HISTORY : 0));
        }

        if (!owner_seen[model.tasks[i].owner]++) {
            s = str(model_owner_names[model.tasks[i].owner]);
            n += ngx_mcp_name_blocks(&s);
        }

        if (!tool_seen[model.tasks[i].tool]++) {
            s = str(model_tool_names[model.tasks[i].tool]);
            n += ngx_mcp_name_blocks(&s);
        }

        if (model.tasks[i].session != -1
            && !session_seen[model.tasks[i].session]++)
        {
            s = str(model_session_names[model.tasks[i].session]);
            n += ngx_mcp_name_blocks(&s);
        }
    }

    return n;
}


int
model_live(void)
{
    int  i, n;

    for (n = 0, i = 0; i < MAX; i++) {
        n += model.tasks[i].live;
    }

    return n;
}


model_task_t *
model_pick(void)
{
    int  i, k;

    k = model_rnd(MAX);

    for (i = 0; i < MAX; i++) {
        if (model.tasks[(i + k) % MAX].live) {
            return &model.tasks[(i + k) % MAX];
        }
    }

    return NULL;
}


/* one with questions, if there is any */

model_task_t *
model_pick_asking(void)
{
    int  i, k;

    k = model_rnd(MAX);

    for (i = 0; i < MAX; i++) {
        if (model.tasks[(i + k) % MAX].live
            && model.tasks[(i + k) % MAX].state == NGX_MCP_INPUT_REQUIRED)
        {
            return &model.tasks[(i + k) % MAX];
        }
    }

    return model_pick();
}


model_task_t *
model_pick_held(void)
{
    int  i, k;

    k = model_rnd(MAX);

    for (i = 0; i < MAX; i++) {
        if (model.tasks[(i + k) % MAX].live
            && model.tasks[(i + k) % MAX].held)
        {
            return &model.tasks[(i + k) % MAX];
        }
    }

    return NULL;
}


model_task_t *
model_find(ngx_mcp_id_t *id)
{
    int  i;

    for (i = 0; i < MAX; i++) {
        if (model.tasks[i].live
            && memcmp(&model.tasks[i].id, id, sizeof(*id)) == 0)
        {
            return &model.tasks[i];
        }
    }

    return NULL;
}


int
model_alive(uint64_t stream)
{
    return stream
           && model.incarnations[stream >> 56] == (stream >> 32 & 0xffffff);
}


/* one of those that there are; a new one, if its process has died */

uint64_t
model_any_stream(void)
{
    int  i;

    i = model_rnd(STREAMS);

    if (!model_alive(streams[i])) {
        streams[i] = ngx_mcp_stream(i % PLACES, model.incarnations[i % PLACES],
                                    ++stream_number);
    }

    return streams[i];
}


/* a session lives as long as one of its tasks */

int
model_session_exists(int session)
{
    int  i;

    for (i = 0; i < MAX; i++) {
        if (model.tasks[i].live && model.tasks[i].session == session) {
            return 1;
        }
    }

    return 0;
}


void
model_end_sessions(void)
{
    int  i;

    for (i = 0; i < SESSIONS; i++) {
        if (!model_session_exists(i)) {
            ngx_memzero(&model.sessions[i], sizeof(model_session_t));
        }
    }
}
