
/*
 * Copyright (C) The nginx-mcp-tasks authors
 */


/*
 * Test build only: the baseline of benchmarks.  It reads the body of a
 * request, and always sends the same response, which is given in the
 * configuration: this is the least that nginx has to do for any endpoint.  If
 * the response is given in two parts, the id of the request is sent between
 * them, like an MCP server behind a gateway.
 */


#include "ngx_mcp_http.h"
#include "ngx_mcp_probe.h"


#if (NGX_MCP_TEST)


static ngx_int_t ngx_mcp_stub_handler(ngx_http_request_t *r);
static void ngx_mcp_stub_answer(ngx_http_request_t *r);
static ngx_int_t ngx_mcp_stub_echo(ngx_http_request_t *r, ngx_str_t *answer);


char *
ngx_mcp_stub(ngx_conf_t *cf, ngx_command_t *cmd, void *conf)
{
    ngx_mcp_loc_conf_t *lcf = conf;

    ngx_str_t                 *value;
    ngx_http_core_loc_conf_t  *clcf;

    value = cf->args->elts;
    lcf->stub[0] = value[1];

    if (cf->args->nelts == 3) {
        lcf->stub[1] = value[2];
    }

    clcf = ngx_http_conf_get_module_loc_conf(cf, ngx_http_core_module);
    clcf->handler = ngx_mcp_stub_handler;

    return NGX_CONF_OK;
}


static ngx_int_t
ngx_mcp_stub_handler(ngx_http_request_t *r)
{
    ngx_int_t  rc;

    rc = ngx_http_read_client_request_body(r, ngx_mcp_stub_answer);

    return (rc >= NGX_HTTP_SPECIAL_RESPONSE) ? rc : NGX_DONE;
}


static void
ngx_mcp_stub_answer(ngx_http_request_t *r)
{
    ngx_buf_t           *b;
    ngx_int_t            rc;
    ngx_str_t            answer;
    ngx_chain_t          out;
    ngx_mcp_loc_conf_t  *lcf;

    lcf = ngx_http_get_module_loc_conf(r, ngx_http_mcp_tasks_module);

    answer = lcf->stub[0];
    b = ngx_calloc_buf(r->pool);

    if (b == NULL
        || (lcf->stub[1].len
            && ngx_mcp_stub_echo(r, &answer) != NGX_OK))
    {
        ngx_http_finalize_request(r, NGX_HTTP_INTERNAL_SERVER_ERROR);
        return;
    }

    b->pos = answer.data;
    b->last = answer.data + answer.len;
    b->memory = 1;
    b->last_buf = 1;
    b->last_in_chain = 1;

    out.buf = b;
    out.next = NULL;

    ngx_str_set(&r->headers_out.content_type, "application/json");
    r->headers_out.content_type_len = r->headers_out.content_type.len;
    r->headers_out.content_length_n = answer.len;
    r->headers_out.status = NGX_HTTP_OK;

    rc = ngx_http_send_header(r);

    if (rc == NGX_OK && !r->header_only) {
        rc = ngx_http_output_filter(r, &out);
    }

    ngx_http_finalize_request(r, rc);
}


static ngx_int_t
ngx_mcp_stub_echo(ngx_http_request_t *r, ngx_str_t *answer)
{
    u_char               *p;
    ngx_str_t             body, *id;
    ngx_mcp_rpc_t         rpc;
    ngx_mcp_loc_conf_t   *lcf;
    ngx_mcp_rpc_error_t   err;

    lcf = ngx_http_get_module_loc_conf(r, ngx_http_mcp_tasks_module);

    if (ngx_mcp_body(r, &body) != NGX_OK
        || ngx_mcp_rpc_parse(r->pool, &body, NULL, &rpc, &err)
           != NGX_OK)
    {
        return NGX_ERROR;
    }

    id = &rpc.id.text;
    answer->len = lcf->stub[0].len + id->len + lcf->stub[1].len;

    answer->data = ngx_pnalloc(r->pool, answer->len);
    if (answer->data == NULL) {
        return NGX_ERROR;
    }

    p = ngx_cpymem(answer->data, lcf->stub[0].data, lcf->stub[0].len);
    p = ngx_cpymem(p, id->data, id->len);
    ngx_memcpy(p, lcf->stub[1].data, lcf->stub[1].len);

    return NGX_OK;
}


#endif /* NGX_MCP_TEST */
