
/*
 * Test build only: what benchmarks compare with.  The body of a request is
 * read, and the answer is always the same, given in the configuration: that
 * is the least which nginx has to do for any endpoint.
 */


#include "ngx_http_mcp_tasks_module.h"


#if (NGX_HTTP_MCP_TASKS_TEST)


static ngx_int_t ngx_http_mcp_tasks_stub_handler(ngx_http_request_t *r);
static void ngx_http_mcp_tasks_stub_answer(ngx_http_request_t *r);


char *
ngx_http_mcp_tasks_stub(ngx_conf_t *cf, ngx_command_t *cmd, void *conf)
{
    ngx_http_mcp_tasks_loc_conf_t *lcf = conf;

    ngx_str_t                 *value;
    ngx_http_core_loc_conf_t  *clcf;

    value = cf->args->elts;
    lcf->stub = value[1];

    clcf = ngx_http_conf_get_module_loc_conf(cf, ngx_http_core_module);
    clcf->handler = ngx_http_mcp_tasks_stub_handler;

    return NGX_CONF_OK;
}


static ngx_int_t
ngx_http_mcp_tasks_stub_handler(ngx_http_request_t *r)
{
    ngx_int_t  rc;

    rc = ngx_http_read_client_request_body(r, ngx_http_mcp_tasks_stub_answer);

    return (rc >= NGX_HTTP_SPECIAL_RESPONSE) ? rc : NGX_DONE;
}


static void
ngx_http_mcp_tasks_stub_answer(ngx_http_request_t *r)
{
    ngx_buf_t                      *b;
    ngx_int_t                       rc;
    ngx_chain_t                     out;
    ngx_http_mcp_tasks_loc_conf_t  *lcf;

    lcf = ngx_http_get_module_loc_conf(r, ngx_http_mcp_tasks_module);

    b = ngx_calloc_buf(r->pool);
    if (b == NULL) {
        ngx_http_finalize_request(r, NGX_HTTP_INTERNAL_SERVER_ERROR);
        return;
    }

    b->pos = lcf->stub.data;
    b->last = lcf->stub.data + lcf->stub.len;
    b->memory = 1;
    b->last_buf = 1;
    b->last_in_chain = 1;

    out.buf = b;
    out.next = NULL;

    ngx_str_set(&r->headers_out.content_type, "application/json");
    r->headers_out.content_type_len = r->headers_out.content_type.len;
    r->headers_out.content_length_n = lcf->stub.len;
    r->headers_out.status = NGX_HTTP_OK;

    rc = ngx_http_send_header(r);

    if (rc == NGX_OK && !r->header_only) {
        rc = ngx_http_output_filter(r, &out);
    }

    ngx_http_finalize_request(r, rc);
}


#endif /* NGX_HTTP_MCP_TASKS_TEST */
