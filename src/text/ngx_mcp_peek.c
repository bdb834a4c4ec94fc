
/*
 * Copyright (C) The nginx-mcp-tasks authors
 */


#include "ngx_mcp_peek.h"


typedef enum {
    NGX_MCP_PEEK_START = 0,
    NGX_MCP_PEEK_BEFORE_NAME,
    NGX_MCP_PEEK_IN_NAME,
    NGX_MCP_PEEK_COLON,
    NGX_MCP_PEEK_VALUE,
    NGX_MCP_PEEK_IN_VALUE,
    NGX_MCP_PEEK_IN_STRING
} ngx_mcp_peek_state_e;


static ngx_uint_t ngx_mcp_peek_start(ngx_mcp_peek_t *peek, u_char ch);
static ngx_uint_t ngx_mcp_peek_in_name(ngx_mcp_peek_t *peek, u_char ch);
static ngx_uint_t ngx_mcp_peek_name(ngx_mcp_peek_t *peek);
static ngx_uint_t ngx_mcp_peek_value(ngx_mcp_peek_t *peek, u_char ch);
static void ngx_mcp_peek_in_string(ngx_mcp_peek_t *peek, u_char ch);
static ngx_uint_t ngx_mcp_peek_byte(ngx_mcp_peek_t *peek, u_char ch);


ngx_uint_t
ngx_mcp_peek(ngx_mcp_peek_t *peek, u_char *p, size_t n)
{
    u_char  *end;

    for (end = p + n;
         p < end && peek->verdict == NGX_MCP_PEEK_MORE;
         p++)
    {
        peek->verdict = ngx_mcp_peek_byte(peek, *p);
    }

    return peek->verdict;
}


/* Invalid text is not a message: it passes. */

static ngx_uint_t
ngx_mcp_peek_byte(ngx_mcp_peek_t *peek, u_char ch)
{
    switch (peek->state) {

    case NGX_MCP_PEEK_IN_NAME:
        return ngx_mcp_peek_in_name(peek, ch);

    case NGX_MCP_PEEK_IN_STRING:
        ngx_mcp_peek_in_string(peek, ch);
        return NGX_MCP_PEEK_MORE;

    default:
        break;
    }

    if (ch == ' ' || ch == '\t' || ch == CR || ch == LF) {
        return NGX_MCP_PEEK_MORE;
    }

    switch (peek->state) {

    case NGX_MCP_PEEK_START:
        return ngx_mcp_peek_start(peek, ch);

    case NGX_MCP_PEEK_BEFORE_NAME:
        peek->state = NGX_MCP_PEEK_IN_NAME;
        peek->len = 0;
        peek->escaped = 0;
        return (ch == '"') ? NGX_MCP_PEEK_MORE : NGX_MCP_PEEK_PASS;

    case NGX_MCP_PEEK_COLON:
        peek->state = NGX_MCP_PEEK_VALUE;
        return (ch == ':') ? NGX_MCP_PEEK_MORE : NGX_MCP_PEEK_PASS;

    case NGX_MCP_PEEK_VALUE:

        /*
         * Some servers send both members, as JSON-RPC 1.0 requires: one of
         * them is null.
         */

        if (peek->error && ch == '{') {
            return NGX_MCP_PEEK_HOLD;
        }

        if (peek->result && ch != 'n') {
            return NGX_MCP_PEEK_PASS;
        }

        peek->state = NGX_MCP_PEEK_IN_VALUE;
        /* fall through */

    default: /* NGX_MCP_PEEK_IN_VALUE */
        return ngx_mcp_peek_value(peek, ch);
    }
}


/* A byte order mark is not a part of the text, and decoders skip it. */

static ngx_uint_t
ngx_mcp_peek_start(ngx_mcp_peek_t *peek, u_char ch)
{
    switch (ch) {

    case '{':
        peek->state = NGX_MCP_PEEK_BEFORE_NAME;
        return NGX_MCP_PEEK_MORE;

    case 0xef:
    case 0xbb:
    case 0xbf:
        return NGX_MCP_PEEK_MORE;

    default:
        return NGX_MCP_PEEK_PASS;
    }
}


static ngx_uint_t
ngx_mcp_peek_in_name(ngx_mcp_peek_t *peek, u_char ch)
{
    if (peek->escape) {
        peek->escape = 0;
        return NGX_MCP_PEEK_MORE;
    }

    if (ch == '"') {
        return ngx_mcp_peek_name(peek);
    }

    if (ch == '\\') {
        peek->escape = 1;
        peek->escaped = 1;
        return NGX_MCP_PEEK_MORE;
    }

    if (peek->len < NGX_MCP_PEEK_NAME) {
        peek->name[peek->len] = ch;
    }

    /* a length that no name has is as good as the true one */

    if (peek->len <= NGX_MCP_PEEK_NAME) {
        peek->len++;
    }

    return NGX_MCP_PEEK_MORE;
}


/* Called when the name is complete; one with an escape may be any name. */

static ngx_uint_t
ngx_mcp_peek_name(ngx_mcp_peek_t *peek)
{
    peek->state = NGX_MCP_PEEK_COLON;
    peek->error = peek->escaped
                  || (peek->len == 5
                      && ngx_memcmp(peek->name, "error", 5) == 0);

    peek->result = !peek->escaped && peek->len == 6
                   && ngx_memcmp(peek->name, "result", 6) == 0;

    if (!peek->escaped && peek->len == 6
        && (ngx_memcmp(peek->name, "method", 6) == 0
            || ngx_memcmp(peek->name, "params", 6) == 0))
    {
        return NGX_MCP_PEEK_PASS;
    }

    return NGX_MCP_PEEK_MORE;
}


/* Skips a value; depth is 0 in the message itself. */

static ngx_uint_t
ngx_mcp_peek_value(ngx_mcp_peek_t *peek, u_char ch)
{
    switch (ch) {

    case '"':
        peek->state = NGX_MCP_PEEK_IN_STRING;
        break;

    case '{':
    case '[':
        peek->depth++;
        break;

    case '}':
    case ']':
        if (peek->depth == 0) {
            return NGX_MCP_PEEK_PASS;
        }

        peek->depth--;
        break;

    case ',':
        if (peek->depth == 0) {
            peek->state = NGX_MCP_PEEK_BEFORE_NAME;
        }

        break;

    default:
        break;
    }

    return NGX_MCP_PEEK_MORE;
}


static void
ngx_mcp_peek_in_string(ngx_mcp_peek_t *peek, u_char ch)
{
    if (peek->escape) {
        peek->escape = 0;

    } else if (ch == '\\') {
        peek->escape = 1;

    } else if (ch == '"') {
        peek->state = NGX_MCP_PEEK_IN_VALUE;
    }
}
