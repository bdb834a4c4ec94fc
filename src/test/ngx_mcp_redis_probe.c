
/*
 * Copyright (C) The nginx-mcp-tasks authors
 */


/*
 * Test build only: sends commands over the connections of a block
 * mcp_tasks_redis, and shows their state.  A response is sent when all commands
 * of its request have ended.
 */


#include <ngx_config.h>
#include <ngx_core.h>


#if (NGX_MCP_REDIS && NGX_MCP_TEST)


#include "ngx_mcp_http.h"
#include "ngx_mcp_redis_conn.h"


#define NGX_MCP_REDIS_PROBE_ARGS  16


/* a block, as this process uses it */

typedef struct {
    ngx_mcp_redis_conf_t       *conf;
    ngx_mcp_redis_t            *rd;
    ngx_uint_t                  up[NGX_MCP_REDIS_CONNS];
    ngx_uint_t                  first[NGX_MCP_REDIS_CONNS];
    ngx_uint_t                  down[NGX_MCP_REDIS_CONNS];
    ngx_uint_t                  messages;
    u_char                      message[128];
} ngx_mcp_redis_probe_t;


/* the commands of a request; its memory is freed after the last of them */

typedef struct {
    ngx_pool_t                 *pool;
    ngx_http_request_t         *r;         /* NULL: it is gone */
    ngx_pool_cleanup_t         *cln;       /* of the request */
    ngx_mcp_redis_probe_t      *probe;
    ngx_mcp_redis_cmd_t        *cmds;
    ngx_uint_t                  pending;
    ngx_uint_t                  replies;
    ngx_uint_t                  errors;
    ngx_uint_t                  failed;
    ngx_uint_t                  declined;
    ngx_uint_t                  close;     /* from the first handler */
    u_char                      text[1024];
} ngx_mcp_redis_batch_t;


static void *ngx_mcp_redis_probe_create_main_conf(ngx_conf_t *cf);
static void *ngx_mcp_redis_probe_create_loc_conf(ngx_conf_t *cf);
static char *ngx_mcp_redis_probe(ngx_conf_t *cf, ngx_command_t *cmd,
    void *conf);
static ngx_int_t ngx_mcp_redis_probe_init_process(ngx_cycle_t *cycle);
static void ngx_mcp_redis_probe_exit_process(ngx_cycle_t *cycle);
static ngx_int_t ngx_mcp_redis_probe_handler(ngx_http_request_t *r);
static ngx_int_t ngx_mcp_redis_probe_state(ngx_http_request_t *r,
    ngx_mcp_redis_probe_t *probe);
static ngx_int_t ngx_mcp_redis_probe_subscribe(ngx_http_request_t *r,
    ngx_mcp_redis_probe_t *probe);
static ngx_int_t ngx_mcp_redis_probe_send(ngx_http_request_t *r,
    ngx_mcp_redis_probe_t *probe);
static ngx_int_t ngx_mcp_redis_probe_format(ngx_mcp_redis_batch_t *batch,
    ngx_mcp_redis_cmd_t *cmd, ngx_str_t text, ngx_uint_t i, ngx_int_t script);
static void ngx_mcp_redis_probe_reply(ngx_mcp_redis_cmd_t *cmd,
    redisReply *reply);
static void ngx_mcp_redis_probe_twice(ngx_mcp_redis_cmd_t *cmd,
    redisReply *reply);
static ngx_int_t ngx_mcp_redis_probe_answer(ngx_mcp_redis_batch_t *batch);
static void ngx_mcp_redis_probe_gone(void *data);
static ngx_str_t ngx_mcp_redis_probe_arg(ngx_http_request_t *r,
    const char *name);
static ngx_int_t ngx_mcp_redis_probe_number(ngx_http_request_t *r,
    const char *name, ngx_int_t number);
static void ngx_mcp_redis_probe_up(void *data, ngx_uint_t conn,
    ngx_uint_t first);
static void ngx_mcp_redis_probe_down(void *data, ngx_uint_t conn);
static void ngx_mcp_redis_probe_message(void *data, ngx_str_t *channel,
    ngx_str_t *text);


extern ngx_module_t  ngx_http_mcp_tasks_redis_probe_module;


static ngx_mcp_redis_hooks_t  ngx_mcp_redis_probe_hooks = {
    ngx_mcp_redis_probe_up,
    ngx_mcp_redis_probe_down,
    ngx_mcp_redis_probe_message
};


static ngx_command_t  ngx_mcp_redis_probe_commands[] = {

    { ngx_string("mcp_tasks_redis_probe"),
      NGX_HTTP_LOC_CONF|NGX_CONF_TAKE1,
      ngx_mcp_redis_probe,
      NGX_HTTP_LOC_CONF_OFFSET,
      0,
      NULL },

      ngx_null_command
};


static ngx_http_module_t  ngx_mcp_redis_probe_module_ctx = {
    NULL,                                  /* preconfiguration */
    NULL,                                  /* postconfiguration */

    ngx_mcp_redis_probe_create_main_conf,  /* create main configuration */
    NULL,                                  /* init main configuration */

    NULL,                                  /* create server configuration */
    NULL,                                  /* merge server configuration */

    ngx_mcp_redis_probe_create_loc_conf,   /* create location configuration */
    NULL                                   /* merge location configuration */
};


ngx_module_t  ngx_http_mcp_tasks_redis_probe_module = {
    NGX_MODULE_V1,
    &ngx_mcp_redis_probe_module_ctx,       /* module context */
    ngx_mcp_redis_probe_commands,          /* module directives */
    NGX_HTTP_MODULE,                       /* module type */
    NULL,                                  /* init master */
    NULL,                                  /* init module */
    ngx_mcp_redis_probe_init_process,      /* init process */
    NULL,                                  /* init thread */
    NULL,                                  /* exit thread */
    ngx_mcp_redis_probe_exit_process,      /* exit process */
    NULL,                                  /* exit master */
    NGX_MODULE_V1_PADDING
};


static void *
ngx_mcp_redis_probe_create_main_conf(ngx_conf_t *cf)
{
    return ngx_array_create(cf->pool, 1, sizeof(ngx_mcp_redis_probe_t *));
}


static void *
ngx_mcp_redis_probe_create_loc_conf(ngx_conf_t *cf)
{
    return ngx_pcalloc(cf->pool, sizeof(ngx_mcp_redis_probe_t *));
}


static char *
ngx_mcp_redis_probe(ngx_conf_t *cf, ngx_command_t *cmd, void *conf)
{
    ngx_mcp_redis_probe_t  **own = conf;

    ngx_str_t                 *value;
    ngx_array_t               *probes;
    ngx_mcp_redis_probe_t     *probe, **slot;
    ngx_http_core_loc_conf_t  *clcf;

    value = cf->args->elts;
    probes = ngx_http_conf_get_module_main_conf(cf,
                                        ngx_http_mcp_tasks_redis_probe_module);

    probe = ngx_pcalloc(cf->pool, sizeof(ngx_mcp_redis_probe_t));
    slot = ngx_array_push(probes);

    if (probe == NULL || slot == NULL) {
        return NGX_CONF_ERROR;
    }

    probe->conf = ngx_mcp_redis_conf(cf, &value[1]);
    if (probe->conf == NULL) {
        return "has an unknown name";
    }

    *slot = probe;
    *own = probe;

    clcf = ngx_http_conf_get_module_loc_conf(cf, ngx_http_core_module);
    clcf->handler = ngx_mcp_redis_probe_handler;

    return NGX_CONF_OK;
}


static ngx_int_t
ngx_mcp_redis_probe_init_process(ngx_cycle_t *cycle)
{
    ngx_uint_t               i;
    ngx_array_t             *probes;
    ngx_mcp_redis_probe_t  **probe;

    if (ngx_process != NGX_PROCESS_WORKER && ngx_process != NGX_PROCESS_SINGLE)
    {
        return NGX_OK;
    }

    probes = ngx_http_cycle_get_module_main_conf(cycle,
                                        ngx_http_mcp_tasks_redis_probe_module);

    for (i = 0; probes && i < probes->nelts; i++) {
        probe = probes->elts;
        probe[i]->rd = ngx_mcp_redis_init(cycle, probe[i]->conf,
                                          &ngx_mcp_redis_probe_hooks,
                                          probe[i]);
        if (probe[i]->rd == NULL) {
            return NGX_ERROR;
        }
    }

    return NGX_OK;
}


static void
ngx_mcp_redis_probe_exit_process(ngx_cycle_t *cycle)
{
    ngx_uint_t               i;
    ngx_array_t             *probes;
    ngx_mcp_redis_probe_t  **probe;

    probes = ngx_http_cycle_get_module_main_conf(cycle,
                                        ngx_http_mcp_tasks_redis_probe_module);

    for (i = 0; probes && i < probes->nelts; i++) {
        probe = probes->elts;

        if (probe[i]->rd) {
            ngx_mcp_redis_close(probe[i]->rd);
        }
    }
}


static ngx_int_t
ngx_mcp_redis_probe_handler(ngx_http_request_t *r)
{
    ngx_str_t                op;
    ngx_mcp_redis_probe_t  **probe;

    probe = ngx_http_get_module_loc_conf(r,
                                        ngx_http_mcp_tasks_redis_probe_module);
    op = ngx_mcp_redis_probe_arg(r, "op");

    if (op.len == 4 && ngx_strncmp(op.data, "open", 4) == 0) {
        ngx_mcp_redis_open((*probe)->rd,
                           ngx_mcp_redis_probe_number(r, "conn", 0));

    } else if (op.len == 5 && ngx_strncmp(op.data, "close", 5) == 0) {
        ngx_mcp_redis_close((*probe)->rd);

    } else if (op.len == 4 && ngx_strncmp(op.data, "send", 4) == 0) {
        return ngx_mcp_redis_probe_send(r, *probe);

    } else if (op.len == 9 && ngx_strncmp(op.data, "subscribe", 9) == 0) {
        return ngx_mcp_redis_probe_subscribe(r, *probe);
    }

    return ngx_mcp_redis_probe_state(r, *probe);
}


static ngx_int_t
ngx_mcp_redis_probe_state(ngx_http_request_t *r, ngx_mcp_redis_probe_t *probe)
{
    u_char            text[2048], *p, *end;
    ngx_str_t         answer;
    ngx_uint_t        i;
    ngx_mcp_redis_t  *rd;

    rd = probe->rd;
    end = text + sizeof(text);

    p = ngx_slprintf(text, end,
                     "{\"pid\":%P,\"accepted\":%ui,\"resent\":%uL,"
                     "\"reconnects\":%uL,\"in_flight\":%ui,\"bytes\":%uz,"
                     "\"run_id\":\"%*s\",\"version\":\"%s\",\"valkey\":%ui,"
                     "\"appendonly\":%ui,\"memory\":%uL,\"max_memory\":%uL,"
                     "\"policy\":\"%s\",\"messages\":%ui,\"message\":\"%s\"",
                     ngx_pid, rd->accepted, rd->resent, rd->reconnects,
                     rd->in_flight, rd->in_flight_bytes,
                     rd->known ? sizeof(rd->server.run_id) : (size_t) 0,
                     rd->server.run_id, rd->server.version, rd->server.valkey,
                     rd->server.appendonly, rd->server.memory,
                     rd->server.max_memory, rd->server.policy, probe->messages,
                     probe->message);

    for (i = 0; i < NGX_MCP_REDIS_CONNS; i++) {
        p = ngx_slprintf(p, end, "%s{\"is_up\":%ui,\"up\":%ui,\"first\":%ui,"
                         "\"down\":%ui}", i ? "," : ",\"conns\":[",
                         ngx_mcp_redis_is_up(rd, i), probe->up[i],
                         probe->first[i], probe->down[i]);
    }

    p = ngx_slprintf(p, end, "],\"error\":\"");
    p = (u_char *) ngx_escape_json(p, rd->error, ngx_strlen(rd->error));
    p = ngx_slprintf(p, end, "\"}\n");

    answer.len = p - text;
    answer.data = ngx_pnalloc(r->pool, answer.len);
    if (answer.data == NULL) {
        return NGX_ERROR;
    }

    ngx_memcpy(answer.data, text, answer.len);

    return ngx_mcp_send(r, NGX_HTTP_OK, &answer, 1);
}


/* channels "NAME0" and so on */

static ngx_int_t
ngx_mcp_redis_probe_subscribe(ngx_http_request_t *r,
    ngx_mcp_redis_probe_t *probe)
{
    u_char      *p;
    ngx_int_t    n, i;
    ngx_str_t    name, *channels;

    n = ngx_mcp_redis_probe_number(r, "n", 1);
    name = ngx_mcp_redis_probe_arg(r, "name");

    channels = ngx_palloc(ngx_cycle->pool, n * sizeof(ngx_str_t));
    if (channels == NULL) {
        return NGX_ERROR;
    }

    for (i = 0; i < n; i++) {
        p = ngx_pnalloc(ngx_cycle->pool, name.len + NGX_INT_T_LEN);
        if (p == NULL) {
            return NGX_ERROR;
        }

        channels[i].data = p;
        channels[i].len = ngx_sprintf(p, "%V%i", &name, i) - p;
    }

    ngx_mcp_redis_subscribe(probe->rd, channels, n);
    ngx_mcp_redis_open(probe->rd, NGX_MCP_REDIS_MESSAGES);

    return ngx_mcp_redis_probe_state(r, probe);
}


/*
 * cmd: words of a command, in which "%" is its number; n: how many commands;
 * size: bytes added to the last word; script: its number, cmd has its arguments
 */

static ngx_int_t
ngx_mcp_redis_probe_send(ngx_http_request_t *r, ngx_mcp_redis_probe_t *probe)
{
    ngx_int_t               n, i, script, conn;
    ngx_str_t               text;
    ngx_pool_t             *pool;
    ngx_pool_cleanup_t     *cln;
    ngx_mcp_redis_batch_t  *batch;

    n = ngx_mcp_redis_probe_number(r, "n", 1);
    conn = ngx_mcp_redis_probe_number(r, "conn", NGX_MCP_REDIS_CHANGES);
    script = ngx_mcp_redis_probe_number(r, "script", -1);
    text = ngx_mcp_redis_probe_arg(r, "cmd");

    pool = ngx_create_pool(16384, ngx_cycle->log);
    cln = ngx_pool_cleanup_add(r->pool, 0);

    if (pool == NULL || cln == NULL) {
        return NGX_ERROR;
    }

    batch = ngx_pcalloc(pool, sizeof(ngx_mcp_redis_batch_t));
    if (batch == NULL) {
        return NGX_ERROR;
    }

    batch->pool = pool;
    batch->r = r;
    batch->cln = cln;
    batch->probe = probe;
    batch->pending = 1;
    batch->close = ngx_mcp_redis_probe_number(r, "close", 0);
    batch->cmds = ngx_pcalloc(pool, n * sizeof(ngx_mcp_redis_cmd_t));

    if (batch->cmds == NULL) {
        return NGX_ERROR;
    }

    for (i = 0; i < n; i++) {
        if (ngx_mcp_redis_probe_format(batch, &batch->cmds[i], text, i, script)
            != NGX_OK)
        {
            return NGX_ERROR;
        }

        if (ngx_mcp_redis_send(probe->rd, conn, &batch->cmds[i]) == NGX_OK) {
            batch->pending++;
        } else {
            batch->declined++;
        }
    }

    if (--batch->pending == 0) {
        return ngx_mcp_redis_probe_answer(batch);
    }

    cln->handler = ngx_mcp_redis_probe_gone;
    cln->data = batch;

    r->main->count++;

    return NGX_DONE;
}


static ngx_int_t
ngx_mcp_redis_probe_format(ngx_mcp_redis_batch_t *batch,
    ngx_mcp_redis_cmd_t *cmd, ngx_str_t text, ngx_uint_t i, ngx_int_t script)
{
    size_t       size;
    u_char      *p, *end, *q;
    ngx_str_t    argv[NGX_MCP_REDIS_PROBE_ARGS];
    ngx_uint_t   argc;

    size = ngx_mcp_redis_probe_number(batch->r, "size", 0);

    q = ngx_pnalloc(batch->pool, text.len * NGX_INT_T_LEN + size + 1);
    if (q == NULL) {
        return NGX_ERROR;
    }

    end = text.data + text.len;
    argc = 0;
    argv[0].data = q;

    for (p = text.data; p < end; p++) {

        if (*p == ' ' && argc + 1 < NGX_MCP_REDIS_PROBE_ARGS) {
            argv[argc].len = q - argv[argc].data;
            argv[++argc].data = q;

        } else if (*p == '%') {
            q = ngx_sprintf(q, "%ui", i);

        } else {
            *q++ = *p;
        }
    }

    ngx_memset(q, 'x', size);
    argv[argc].len = q + size - argv[argc].data;
    argc++;

    cmd->handler = ngx_mcp_redis_probe_reply;
    cmd->data = batch;

    if (script >= 0) {
        return ngx_mcp_redis_format_script(batch->pool, cmd, script, argv,
                                           argc);
    }

    return ngx_mcp_redis_format(batch->pool, cmd, argv, argc);
}


static void
ngx_mcp_redis_probe_reply(ngx_mcp_redis_cmd_t *cmd, redisReply *reply)
{
    u_char                 *p, *end;
    ngx_int_t               rc;
    ngx_connection_t       *c;
    ngx_http_request_t     *r;
    ngx_mcp_redis_batch_t  *batch;

    batch = cmd->data;

    cmd->handler = ngx_mcp_redis_probe_twice;

    p = batch->text;
    end = batch->text + sizeof(batch->text) - 1;

    if (reply == NULL) {
        batch->failed++;
        p = ngx_slprintf(p, end, cmd->sent ? "none, sent" : "none");

    } else if (reply->type == REDIS_REPLY_ERROR) {
        batch->errors++;
        p = ngx_slprintf(p, end, "%s", reply->str);

    } else if (reply->type == REDIS_REPLY_INTEGER) {
        batch->replies++;
        p = ngx_slprintf(p, end, "%L", (int64_t) reply->integer);

    } else {
        batch->replies++;
        p = ngx_slprintf(p, end, "%s", reply->str ? reply->str : "");
    }

    *p = '\0';

    if (batch->close) {
        batch->close = 0;
        ngx_mcp_redis_close(batch->probe->rd);

        /* which has called the other handlers, perhaps the last one */
    }

    if (--batch->pending) {
        return;
    }

    r = batch->r;

    if (r == NULL) {
        ngx_destroy_pool(batch->pool);
        return;
    }

    c = r->connection;
    rc = ngx_mcp_redis_probe_answer(batch);

    ngx_http_finalize_request(r, rc);
    ngx_http_run_posted_requests(c);
}


/* a handler must not be called again */

static void
ngx_mcp_redis_probe_twice(ngx_mcp_redis_cmd_t *cmd, redisReply *reply)
{
    ngx_log_error(NGX_LOG_ALERT, ngx_cycle->log, 0,
                  "a command has ended twice: \"%V\"", &cmd->text);
}


static ngx_int_t
ngx_mcp_redis_probe_answer(ngx_mcp_redis_batch_t *batch)
{
    u_char              *p;
    ngx_str_t            answer;
    ngx_http_request_t  *r;

    r = batch->r;
    batch->cln->handler = NULL;

    answer.data = ngx_pnalloc(r->pool, 8192);
    if (answer.data == NULL) {
        return NGX_ERROR;
    }

    p = ngx_sprintf(answer.data,
                    "{\"replies\":%ui,\"errors\":%ui,\"failed\":%ui,"
                    "\"declined\":%ui,\"last\":\"",
                    batch->replies, batch->errors, batch->failed,
                    batch->declined);
    p = (u_char *) ngx_escape_json(p, batch->text, ngx_strlen(batch->text));
    p = ngx_sprintf(p, "\"}\n");

    answer.len = p - answer.data;

    ngx_destroy_pool(batch->pool);

    return ngx_mcp_send(r, NGX_HTTP_OK, &answer, 1);
}


static void
ngx_mcp_redis_probe_gone(void *data)
{
    ngx_mcp_redis_batch_t  *batch = data;

    batch->r = NULL;
}


static ngx_str_t
ngx_mcp_redis_probe_arg(ngx_http_request_t *r, const char *name)
{
    u_char     *src, *dst;
    ngx_str_t   value;

    if (ngx_http_arg(r, (u_char *) name, ngx_strlen(name), &value) != NGX_OK) {
        ngx_str_null(&value);
        return value;
    }

    src = value.data;
    dst = ngx_pnalloc(r->pool, value.len);

    if (dst) {
        value.data = dst;
        ngx_unescape_uri(&dst, &src, value.len, 0);
        value.len = dst - value.data;
    }

    return value;
}


static ngx_int_t
ngx_mcp_redis_probe_number(ngx_http_request_t *r, const char *name,
    ngx_int_t number)
{
    ngx_str_t  value;

    value = ngx_mcp_redis_probe_arg(r, name);

    return value.len ? ngx_atoi(value.data, value.len) : number;
}


static void
ngx_mcp_redis_probe_up(void *data, ngx_uint_t conn, ngx_uint_t first)
{
    ngx_mcp_redis_probe_t  *probe = data;

    probe->up[conn]++;
    probe->first[conn] += first;
}


static void
ngx_mcp_redis_probe_down(void *data, ngx_uint_t conn)
{
    ngx_mcp_redis_probe_t  *probe = data;

    probe->down[conn]++;
}


static void
ngx_mcp_redis_probe_message(void *data, ngx_str_t *channel, ngx_str_t *text)
{
    ngx_mcp_redis_probe_t  *probe = data;

    probe->messages++;
    *ngx_slprintf(probe->message,
                  probe->message + sizeof(probe->message) - 1,
                  "%V %V", channel, text) = '\0';
}


#endif /* NGX_MCP_REDIS && NGX_MCP_TEST */
