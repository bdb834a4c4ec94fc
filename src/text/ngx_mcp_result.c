
/*
 * Copyright (C) The nginx-mcp-tasks authors
 */


#include "ngx_mcp_result.h"


static ngx_int_t ngx_mcp_message(ngx_pool_t *pool, ngx_mcp_json_t *string,
    ngx_str_t *message);
static u_char *ngx_mcp_message_next(u_char *p, u_char *end);


/*
 * Called once for each result, when it is stored: a result may be sent many
 * times and must not be scanned each time.  ngx_mcp_json_members() is not used
 * since it stops at a duplicate member: the caller decides which duplicates
 * are errors.
 */

void
ngx_mcp_result_read(ngx_mcp_json_t *object, ngx_mcp_result_t *result)
{
    ngx_uint_t            i;
    ngx_mcp_json_t        key, value;
    ngx_mcp_json_iter_t   it;
    ngx_mcp_member_t      members[] = {
        { ngx_string("resultType"), &result->type },
        { ngx_string("isError"), &result->is_error },
        { ngx_string("_meta"), &result->meta }
    };

    ngx_memzero(result, sizeof(ngx_mcp_result_t));

    ngx_mcp_json_iter(&it, object);

    while (ngx_mcp_json_next(&it, &key, &value) == NGX_OK) {

        for (i = 0; i < sizeof(members) / sizeof(members[0]); i++) {

            if (!ngx_mcp_json_is(&key, &members[i].name)) {
                continue;
            }

            if (members[i].value->type == NGX_MCP_JSON_NONE) {
                *members[i].value = value;

            } else {
                members[i].value->type = NGX_MCP_JSON_DUPLICATE;
            }

            break;
        }
    }

    result->flags = NGX_MCP_RESULT_READ;

    if (result->type.type != NGX_MCP_JSON_NONE) {
        result->flags |= NGX_MCP_HAS_TYPE;
    }

    if (result->is_error.type == NGX_MCP_JSON_TRUE) {
        result->flags |= NGX_MCP_TOOL_ERROR;
    }

    if (result->meta.type != NGX_MCP_JSON_NONE) {
        result->flags |= NGX_MCP_HAS_META;
    }
}


/*
 * The status message of a task whose tool has reported an error: the first text
 * of its content.
 */

void
ngx_mcp_result_message(ngx_pool_t *pool, ngx_mcp_json_t *object,
    ngx_str_t *message)
{
    ngx_mcp_json_t       content, item, type, text;
    ngx_mcp_json_iter_t  it;
    ngx_mcp_member_t     members[] = {
        { ngx_string("content"), &content }
    };
    ngx_mcp_member_t     inner[] = {
        { ngx_string("type"), &type },
        { ngx_string("text"), &text }
    };
    static ngx_str_t     name = ngx_string("text");

    ngx_str_set(message, "\"The tool returned an error\"");

    if (ngx_mcp_json_members(object, members, 1) != NGX_OK
        || content.type != NGX_MCP_JSON_ARRAY)
    {
        return;
    }

    ngx_mcp_json_iter(&it, &content);

    while (ngx_mcp_json_next(&it, NULL, &item) == NGX_OK) {

        if (ngx_mcp_json_members(&item, inner, 2) == NGX_OK
            && type.type == NGX_MCP_JSON_STRING
            && ngx_mcp_json_is(&type, &name)
            && ngx_mcp_message(pool, &text, message) == NGX_OK)
        {
            return;
        }
    }
}


/* The status message of a task that has failed: the message of its error. */

void
ngx_mcp_error_message(ngx_pool_t *pool, ngx_str_t *error, ngx_str_t *message)
{
    ngx_mcp_json_t    object, text;
    ngx_mcp_member_t  members[] = {
        { ngx_string("message"), &text }
    };

    object.text = *error;
    object.type = NGX_MCP_JSON_OBJECT;

    ngx_str_set(message, "\"The task failed\"");

    if (ngx_mcp_json_members(&object, members, 1) == NGX_OK) {
        (void) ngx_mcp_message(pool, &text, message);
    }
}


/*
 * A string as a status message.  What is too long is cut between two
 * characters, never within an escape or within UTF-8.  NGX_DECLINED: not a
 * string, empty, or no memory; message is unchanged.
 */

static ngx_int_t
ngx_mcp_message(ngx_pool_t *pool, ngx_mcp_json_t *string, ngx_str_t *message)
{
    size_t   len;
    u_char  *p, *next, *end;

    if (string->type != NGX_MCP_JSON_STRING || string->text.len == 2) {
        return NGX_DECLINED;
    }

    if (string->text.len <= NGX_MCP_MAX_MESSAGE) {
        *message = string->text;
        return NGX_OK;
    }

    /* room for the end below */

    end = string->text.data + NGX_MCP_MAX_MESSAGE - (sizeof("...\"") - 1);

    p = string->text.data + 1;

    for ( ;; ) {
        next = ngx_mcp_message_next(p, string->text.data + string->text.len);

        if (next > end) {
            break;
        }

        p = next;
    }

    len = p - string->text.data;

    next = ngx_pnalloc(pool, len + sizeof("...\"") - 1);
    if (next == NULL) {
        return NGX_DECLINED;
    }

    message->data = next;
    next = ngx_cpymem(next, string->text.data, len);
    next = ngx_cpymem(next, "...\"", sizeof("...\"") - 1);
    message->len = next - message->data;

    return NGX_OK;
}


/* the end of the character at p; the parser has checked the string */

static u_char *
ngx_mcp_message_next(u_char *p, u_char *end)
{
    u_char    *next;
    uint32_t   code;

    if (*p == '\\') {
        next = ngx_mcp_json_code_point(p, end, &code);

        /* an unpaired surrogate is a character, too */

        return next ? next : p + sizeof("\\uXXXX") - 1;
    }

    next = (*p < 0x80) ? NULL : ngx_mcp_json_utf8(p, end);

    return next ? next : p + 1;
}
