
/*
 * Copyright (C) The nginx-mcp-tasks authors
 */


#include "ngx_mcp_capability.h"


static ngx_uint_t ngx_mcp_can_elicit(ngx_mcp_json_t *elicitation,
    ngx_uint_t modes);


ngx_uint_t
ngx_mcp_can(ngx_mcp_json_t *elicitation, ngx_mcp_json_t *sampling,
    ngx_mcp_json_t *roots, ngx_uint_t modes)
{
    ngx_uint_t        can;
    ngx_mcp_json_t    tools;
    ngx_mcp_member_t  members[] = {
        { ngx_string("tools"), &tools }
    };

    can = ngx_mcp_can_elicit(elicitation, modes);

    if (sampling->type == NGX_MCP_JSON_OBJECT) {
        can |= NGX_MCP_CAN_SAMPLING;

        (void) ngx_mcp_json_members(sampling, members, 1);

        if (modes && tools.type == NGX_MCP_JSON_OBJECT) {
            can |= NGX_MCP_CAN_TOOLS;
        }
    }

    if (roots->type == NGX_MCP_JSON_OBJECT) {
        can |= NGX_MCP_CAN_ROOTS;
    }

    return can;
}


/* an object without "url" means forms, as revisions before the modes had it */

static ngx_uint_t
ngx_mcp_can_elicit(ngx_mcp_json_t *elicitation, ngx_uint_t modes)
{
    ngx_uint_t        can;
    ngx_mcp_json_t    form, url;
    ngx_mcp_member_t  members[] = {
        { ngx_string("form"), &form },
        { ngx_string("url"), &url }
    };

    if (elicitation->type != NGX_MCP_JSON_OBJECT) {
        return 0;
    }

    if (!modes) {
        return NGX_MCP_CAN_FORM;
    }

    (void) ngx_mcp_json_members(elicitation, members, 2);

    can = (url.type == NGX_MCP_JSON_OBJECT) ? NGX_MCP_CAN_URL : 0;

    if (form.type == NGX_MCP_JSON_OBJECT || can == 0) {
        can |= NGX_MCP_CAN_FORM;
    }

    return can;
}


ngx_uint_t
ngx_mcp_question_needs(ngx_mcp_json_t *question)
{
    ngx_mcp_json_t    method, params, mode, tools, choice;
    ngx_mcp_member_t  members[] = {
        { ngx_string("method"), &method },
        { ngx_string("params"), &params }
    };
    ngx_mcp_member_t  members_of_params[] = {
        { ngx_string("mode"), &mode },
        { ngx_string("tools"), &tools },
        { ngx_string("toolChoice"), &choice }
    };
    static ngx_str_t  elicitation = ngx_string("elicitation/create");
    static ngx_str_t  sampling = ngx_string("sampling/createMessage");
    static ngx_str_t  roots = ngx_string("roots/list");
    static ngx_str_t  url = ngx_string("url");

    (void) ngx_mcp_json_members(question, members, 2);

    if (method.type != NGX_MCP_JSON_STRING) {
        return 0;
    }

    if (ngx_mcp_json_is(&method, &roots)) {
        return NGX_MCP_CAN_ROOTS;
    }

    (void) ngx_mcp_json_members(&params, members_of_params, 3);

    if (ngx_mcp_json_is(&method, &sampling)) {
        return (tools.type == NGX_MCP_JSON_NONE
                && choice.type == NGX_MCP_JSON_NONE)
               ? NGX_MCP_CAN_SAMPLING
               : NGX_MCP_CAN_SAMPLING | NGX_MCP_CAN_TOOLS;
    }

    if (!ngx_mcp_json_is(&method, &elicitation)) {
        return 0;
    }

    return (mode.type == NGX_MCP_JSON_STRING && ngx_mcp_json_is(&mode, &url))
           ? NGX_MCP_CAN_URL : NGX_MCP_CAN_FORM;
}


ngx_uint_t
ngx_mcp_questions_need(ngx_str_t *requests)
{
    ngx_uint_t           bits;
    ngx_mcp_json_t       object, key, value;
    ngx_mcp_json_iter_t  it;

    object.type = NGX_MCP_JSON_OBJECT;
    object.text = *requests;

    bits = 0;
    ngx_mcp_json_iter(&it, &object);

    while (ngx_mcp_json_next(&it, &key, &value) == NGX_OK) {
        bits |= ngx_mcp_question_needs(&value);
    }

    return bits;
}


ngx_uint_t
ngx_mcp_questions_any(ngx_str_t *requests, ngx_uint_t can)
{
    ngx_mcp_json_t       object, key, value;
    ngx_mcp_json_iter_t  it;

    object.type = NGX_MCP_JSON_OBJECT;
    object.text = *requests;

    ngx_mcp_json_iter(&it, &object);

    while (ngx_mcp_json_next(&it, &key, &value) == NGX_OK) {
        if (ngx_mcp_question_is_for(&value, can)) {
            return 1;
        }
    }

    return 0;
}


const char *
ngx_mcp_can_text(ngx_uint_t bits)
{
    if (bits & NGX_MCP_CAN_TOOLS) {
        return "\"sampling\":{\"tools\":{}}";
    }

    if (bits & NGX_MCP_CAN_SAMPLING) {
        return "\"sampling\":{}";
    }

    if (bits & NGX_MCP_CAN_ROOTS) {
        return "\"roots\":{}";
    }

    if (bits & NGX_MCP_CAN_URL) {
        return "\"elicitation\":{\"url\":{}}";
    }

    return (bits & NGX_MCP_CAN_FORM) ? "\"elicitation\":{\"form\":{}}" : NULL;
}
