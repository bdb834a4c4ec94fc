
/*
 * Copyright (C) The nginx-mcp-tasks authors
 */


#include "ngx_mcp_input.h"
#include "ngx_mcp_equal.h"
#include "ngx_mcp_out.h"


static void ngx_mcp_input_object(ngx_str_t *text, ngx_mcp_json_t *object);
static ngx_uint_t ngx_mcp_input_find(ngx_mcp_json_t *object,
    ngx_mcp_json_t *key, ngx_mcp_json_t *value);
static void ngx_mcp_input_member(ngx_mcp_out_t *out, ngx_mcp_json_t *key,
    ngx_mcp_json_t *value);


const char *
ngx_mcp_input_check(ngx_mcp_json_t *requests, ngx_str_t *responses)
{
    ngx_uint_t            i, n;
    ngx_mcp_json_t        keys[NGX_MCP_MAX_QUESTIONS];
    ngx_mcp_json_t        key, value, answered, ignored, method;
    ngx_mcp_json_t        params;
    ngx_mcp_json_iter_t   it;
    ngx_mcp_member_t      members[] = {
        { ngx_string("method"), &method },
        { ngx_string("params"), &params }
    };

    if (requests->type != NGX_MCP_JSON_OBJECT) {
        return "inputRequests must be an object";
    }

    ngx_mcp_input_object(responses, &answered);
    ngx_mcp_json_iter(&it, requests);

    for (n = 0;
         ngx_mcp_json_next(&it, &key, &value) == NGX_OK;
         n++)
    {
        if (n == NGX_MCP_MAX_QUESTIONS) {
            return "inputRequests must not have more than 64 members";
        }

        if (ngx_mcp_json_members(&value, members, 2) != NGX_OK
            || method.type != NGX_MCP_JSON_STRING
            || (params.type != NGX_MCP_JSON_OBJECT
                && params.type != NGX_MCP_JSON_NONE))
        {
            return "each member of inputRequests must have method, a string, "
                   "and params, an object";
        }

        /* a key identifies one question for the lifetime of the task */

        if (ngx_mcp_input_find(&answered, &key, &ignored)) {
            return "a key of inputRequests was already answered in this task, "
                   "use a new key";
        }

        for (i = 0; i < n; i++) {
            if (ngx_mcp_json_same(&keys[i], &key)) {
                return "duplicate key in inputRequests";
            }
        }

        keys[n] = key;
    }

    return n ? NULL : "inputRequests must not be empty";
}


ngx_int_t
ngx_mcp_input_add_answers(ngx_pool_t *pool, ngx_str_t *requests,
    ngx_str_t *responses, ngx_mcp_json_t *answers,
    ngx_mcp_input_change_t *input)
{
    ngx_mcp_out_t         left, answered;
    ngx_mcp_json_t        open, done, key, value, answer;
    ngx_mcp_json_iter_t   it;

    input->taken = 0;
    input->left = 0;

    ngx_mcp_input_object(requests, &open);
    ngx_mcp_input_object(responses, &done);

    ngx_mcp_out_init(&left, pool, requests->len + 2);
    ngx_mcp_out_init(&answered, pool, responses->len + answers->text.len + 2);

    ngx_mcp_out_lit(&left, "{");
    ngx_mcp_out_lit(&answered, "{");

    ngx_mcp_json_iter(&it, &done);

    while (ngx_mcp_json_next(&it, &key, &value) == NGX_OK) {
        ngx_mcp_input_member(&answered, &key, &value);
    }

    ngx_mcp_json_iter(&it, &open);

    while (ngx_mcp_json_next(&it, &key, &value) == NGX_OK) {

        if (ngx_mcp_input_find(answers, &key, &answer)) {
            ngx_mcp_input_member(&answered, &key, &answer);
            input->taken++;

        } else {
            ngx_mcp_input_member(&left, &key, &value);
            input->left++;
        }
    }

    ngx_mcp_out_lit(&left, "}");
    ngx_mcp_out_lit(&answered, "}");

    if (ngx_mcp_out_end(&left, &input->requests) != NGX_OK
        || ngx_mcp_out_end(&answered, &input->responses) != NGX_OK)
    {
        return NGX_ERROR;
    }

    if (input->left == 0) {
        input->requests.len = 0;
    }

    return NGX_OK;
}


ngx_int_t
ngx_mcp_input_drop(ngx_pool_t *pool, ngx_str_t *requests, ngx_mcp_json_t *key,
    ngx_mcp_input_change_t *input)
{
    ngx_mcp_out_t         left;
    ngx_mcp_json_t        open, k, value;
    ngx_mcp_json_iter_t   it;

    input->taken = 0;
    input->left = 0;

    ngx_mcp_input_object(requests, &open);
    ngx_mcp_out_init(&left, pool, requests->len + 2);
    ngx_mcp_out_lit(&left, "{");
    ngx_mcp_json_iter(&it, &open);

    while (ngx_mcp_json_next(&it, &k, &value) == NGX_OK) {

        if (ngx_mcp_json_same(&k, key)) {
            input->taken++;

        } else {
            ngx_mcp_input_member(&left, &k, &value);
            input->left++;
        }
    }

    ngx_mcp_out_lit(&left, "}");

    if (ngx_mcp_out_end(&left, &input->requests) != NGX_OK) {
        return NGX_ERROR;
    }

    if (input->left == 0) {
        input->requests.len = 0;
    }

    return NGX_OK;
}


ngx_uint_t
ngx_mcp_input_answer(ngx_str_t *responses, ngx_str_t *key,
    ngx_mcp_json_t *answer)
{
    ngx_mcp_json_t  done, k;

    ngx_mcp_input_object(responses, &done);

    k.type = NGX_MCP_JSON_STRING;
    k.text = *key;

    return ngx_mcp_input_find(&done, &k, answer);
}


/*
 * Duplicate keys are rejected: the worker's parser might choose another of
 * the values than nginx does.
 */

const char *
ngx_mcp_input_answers(ngx_pool_t *pool, ngx_mcp_json_t *answers)
{
    switch (ngx_mcp_json_unique(pool, answers)) {

    case NGX_OK:
        return NULL;

    case NGX_DECLINED:
        return "duplicate key in the answers";

    default:
        return "the answers could not be checked";
    }
}


const char *
ngx_mcp_input_metadata(ngx_pool_t *pool, ngx_mcp_json_t *metadata)
{
    const char  *err;

    if (metadata->type == NGX_MCP_JSON_NONE) {
        return NULL;
    }

    if (metadata->type != NGX_MCP_JSON_OBJECT) {
        return "metadata must be an object";
    }

    err = ngx_mcp_input_size(metadata);

    if (err) {
        return err;
    }

    switch (ngx_mcp_json_unique(pool, metadata)) {

    case NGX_OK:
        return NULL;

    case NGX_DECLINED:
        return "duplicate key in metadata";

    default:
        return "metadata could not be checked";
    }
}


const char *
ngx_mcp_input_size(ngx_mcp_json_t *metadata)
{
    ngx_uint_t           n;
    ngx_mcp_json_t       key, value;
    ngx_mcp_json_iter_t  it;

    if (metadata->text.len > NGX_MCP_MAX_METADATA) {
        return "metadata must not be larger than 65536 bytes";
    }

    ngx_mcp_json_iter(&it, metadata);

    for (n = 0;
         ngx_mcp_json_next(&it, &key, &value) == NGX_OK;
         n++)
    {
        if (n == NGX_MCP_MAX_MEMBERS) {
            return "metadata must not have more than 64 members";
        }
    }

    return NULL;
}


ngx_int_t
ngx_mcp_input_patch(ngx_pool_t *pool, ngx_str_t *old, ngx_mcp_json_t *patch,
    ngx_str_t *result)
{
    ngx_mcp_out_t         out;
    ngx_mcp_json_t        was, key, value, other;
    ngx_mcp_json_iter_t   it;

    ngx_mcp_input_object(old, &was);
    ngx_mcp_out_init(&out, pool, old->len + patch->text.len + 2);
    ngx_mcp_out_lit(&out, "{");

    ngx_mcp_json_iter(&it, &was);

    while (ngx_mcp_json_next(&it, &key, &value) == NGX_OK) {
        if (!ngx_mcp_input_find(patch, &key, &other)) {
            ngx_mcp_input_member(&out, &key, &value);
        }
    }

    ngx_mcp_json_iter(&it, patch);

    while (ngx_mcp_json_next(&it, &key, &value) == NGX_OK) {
        if (value.type != NGX_MCP_JSON_NULL) {
            ngx_mcp_input_member(&out, &key, &value);
        }
    }

    ngx_mcp_out_lit(&out, "}");

    if (ngx_mcp_out_end(&out, result) != NGX_OK) {
        return NGX_ERROR;
    }

    value.type = NGX_MCP_JSON_OBJECT;
    value.text = *result;

    return ngx_mcp_input_size(&value) ? NGX_DECLINED : NGX_OK;
}


/*
 * Makes an object from the stored text of a task, which was parsed when it
 * was received.  An empty text is an empty object.
 */

static void
ngx_mcp_input_object(ngx_str_t *text, ngx_mcp_json_t *object)
{
    object->type = NGX_MCP_JSON_OBJECT;
    object->text = *text;

    if (text->len == 0) {
        ngx_str_set(&object->text, "{}");
    }
}


static ngx_uint_t
ngx_mcp_input_find(ngx_mcp_json_t *object, ngx_mcp_json_t *key,
    ngx_mcp_json_t *value)
{
    ngx_mcp_json_t       k;
    ngx_mcp_json_iter_t  it;

    ngx_mcp_json_iter(&it, object);

    while (ngx_mcp_json_next(&it, &k, value) == NGX_OK) {
        if (ngx_mcp_json_same(&k, key)) {
            return 1;
        }
    }

    return 0;
}


/* No value ends with "{", so that this byte is always the opening brace. */

static void
ngx_mcp_input_member(ngx_mcp_out_t *out, ngx_mcp_json_t *key,
    ngx_mcp_json_t *value)
{
    if (out->pos && out->pos[-1] != '{') {
        ngx_mcp_out_lit(out, ",");
    }

    ngx_mcp_out_str(out, &key->text);
    ngx_mcp_out_lit(out, ":");
    ngx_mcp_out_str(out, &value->text);
}
