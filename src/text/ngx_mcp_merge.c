
/*
 * Copyright (C) The nginx-mcp-tasks authors
 */


#include "ngx_mcp_merge.h"
#include "ngx_mcp_out.h"
#include "ngx_mcp_revision.h"


/* initial room for added members; the output grows if it needs more */
#define NGX_MCP_MERGE_EXTRA  256


typedef enum {
    NGX_MCP_EDIT_REMOVE = 0,
    NGX_MCP_EDIT_SET,         /* set to the text, which is JSON */
    NGX_MCP_EDIT_STRING,      /* set to the text, written as a JSON string */
    NGX_MCP_EDIT_DEFAULT,     /* as SET, if the member is missing */
    NGX_MCP_EDIT_INSIDE       /* edit members of this member, an object */
} ngx_mcp_edit_e;


/* an edit of one member of an object */

typedef struct ngx_mcp_edit_s  ngx_mcp_edit_t;

struct ngx_mcp_edit_s {
    ngx_str_t        name;
    ngx_uint_t       how;       /* ngx_mcp_edit_e */
    ngx_str_t        text;      /* for SET, STRING and DEFAULT */
    ngx_mcp_edit_t  *inside;    /* for INSIDE: n edits */
    ngx_uint_t       n;
};


/*
 * Copies the items of an object or array, each with the comma and the space
 * before it.  If the first items are removed, the first item that is kept gets
 * the space of the original first item, which has no comma.
 */

typedef struct {
    ngx_mcp_out_t  *out;
    u_char         *pos;        /* end of the input read so far */
    ngx_str_t       lead;       /* space before the original first item */
    ngx_uint_t      items;      /* items read */
    ngx_uint_t      kept;       /* items written */
} ngx_mcp_list_t;


static ngx_int_t ngx_mcp_merge_initialize(ngx_mcp_out_t *out,
    ngx_mcp_json_t *result, ngx_mcp_merge_by_t *m);
static ngx_int_t ngx_mcp_merge_discover(ngx_mcp_out_t *out,
    ngx_mcp_json_t *result, ngx_mcp_merge_by_t *m);
static ngx_int_t ngx_mcp_merge_tools(ngx_mcp_out_t *out,
    ngx_mcp_json_t *result, ngx_mcp_merge_by_t *m);
static u_char *ngx_mcp_merge_scope(ngx_mcp_out_t *out, u_char *start,
    ngx_mcp_json_t *scope);
static ngx_int_t ngx_mcp_merge_array(ngx_mcp_out_t *out, ngx_mcp_json_t *tools,
    ngx_mcp_merge_by_t *m);
static ngx_uint_t ngx_mcp_merge_requires(ngx_mcp_json_t *tool,
    ngx_str_t *support);
static ngx_int_t ngx_mcp_merge_name(ngx_pool_t *pool, ngx_mcp_json_t *tool,
    ngx_str_t *s);

static ngx_int_t ngx_mcp_edit(ngx_mcp_out_t *out, ngx_mcp_json_t *object,
    ngx_mcp_edit_t *edits, ngx_uint_t n);
static ngx_int_t ngx_mcp_edit_value(ngx_mcp_out_t *out, ngx_mcp_json_t *value,
    ngx_mcp_edit_t *edit);
static ngx_uint_t ngx_mcp_edit_adds(ngx_mcp_edit_t *edit);

static void ngx_mcp_list_begin(ngx_mcp_list_t *list, ngx_mcp_out_t *out,
    ngx_mcp_json_t *value);
static void ngx_mcp_list_item(ngx_mcp_list_t *list, u_char *start, u_char *end,
    ngx_uint_t keep);
static void ngx_mcp_list_more(ngx_mcp_list_t *list);
static void ngx_mcp_list_end(ngx_mcp_list_t *list, ngx_mcp_json_t *value);


static ngx_str_t  ngx_mcp_merge_cancel =
    ngx_string("{\"cancel\":{},\"requests\":{\"tools\":{\"call\":{}}}}");
static ngx_str_t  ngx_mcp_merge_list =
    ngx_string("{\"list\":{},\"cancel\":{},"
               "\"requests\":{\"tools\":{\"call\":{}}}}");


ngx_int_t
ngx_mcp_merge(ngx_pool_t *pool, ngx_mcp_json_t *result, ngx_mcp_merge_by_t *m,
    ngx_str_t *text)
{
    ngx_int_t      rc;
    ngx_mcp_out_t  out;

    if (result->type != NGX_MCP_JSON_OBJECT) {
        return NGX_DECLINED;
    }

    ngx_mcp_out_init(&out, pool, result->text.len + m->tools.len
                                 + NGX_MCP_MERGE_EXTRA);

    switch (m->kind) {

    case NGX_MCP_MERGE_INITIALIZE:
        rc = ngx_mcp_merge_initialize(&out, result, m);
        break;

    case NGX_MCP_MERGE_DISCOVER:
        rc = ngx_mcp_merge_discover(&out, result, m);
        break;

    default: /* NGX_MCP_MERGE_TOOLS */
        rc = ngx_mcp_merge_tools(&out, result, m);
        break;
    }

    if (rc != NGX_OK) {
        return rc;
    }

    return ngx_mcp_out_end(&out, text);
}


static ngx_int_t
ngx_mcp_merge_initialize(ngx_mcp_out_t *out, ngx_mcp_json_t *result,
    ngx_mcp_merge_by_t *m)
{
    ngx_mcp_json_t    version;
    ngx_mcp_member_t  members[] = {
        { ngx_string("protocolVersion"), &version }
    };
    ngx_mcp_edit_t    inside[] = {
        { ngx_string("tasks"), NGX_MCP_EDIT_REMOVE,
          ngx_null_string, NULL, 0 },
        { ngx_string("tools"), NGX_MCP_EDIT_DEFAULT,
          ngx_string("{}"), NULL, 0 }
    };
    ngx_mcp_edit_t    capabilities = {
        ngx_string("capabilities"), NGX_MCP_EDIT_INSIDE,
        ngx_null_string, inside, m->offers ? 2 : 1
    };

    if (ngx_mcp_json_members(result, members, 1) != NGX_OK
        || version.type != NGX_MCP_JSON_STRING)
    {
        return NGX_DECLINED;
    }

    /* only this revision of MCP defines a capability for tasks */

    if (ngx_mcp_json_is(&version, &ngx_mcp_legacy_latest->name)) {
        inside[0].how = NGX_MCP_EDIT_SET;
        inside[0].text = m->lists ? ngx_mcp_merge_list
                                  : ngx_mcp_merge_cancel;
    }

    return ngx_mcp_edit(out, result, &capabilities, 1);
}


static ngx_int_t
ngx_mcp_merge_discover(ngx_mcp_out_t *out, ngx_mcp_json_t *result,
    ngx_mcp_merge_by_t *m)
{
    ngx_mcp_edit_t  extensions[] = {
        { ngx_string("io.modelcontextprotocol/tasks"),
          NGX_MCP_EDIT_SET, ngx_string("{}"), NULL, 0 },
        { ngx_string(NGX_MCP_EXTENSION),
          NGX_MCP_EDIT_SET, ngx_string("{}"), NULL, 0 }
    };
    ngx_mcp_edit_t  inside[] = {
        { ngx_string("tasks"), NGX_MCP_EDIT_REMOVE,
          ngx_null_string, NULL, 0 },
        { ngx_string("extensions"), NGX_MCP_EDIT_INSIDE,
          ngx_null_string, extensions, 2 },
        { ngx_string("tools"), NGX_MCP_EDIT_DEFAULT,
          ngx_string("{}"), NULL, 0 }
    };
    ngx_mcp_edit_t  capabilities = {
        ngx_string("capabilities"), NGX_MCP_EDIT_INSIDE,
        ngx_null_string, inside, m->offers ? 3 : 2
    };

    return ngx_mcp_edit(out, result, &capabilities, 1);
}


static ngx_int_t
ngx_mcp_merge_tools(ngx_mcp_out_t *out, ngx_mcp_json_t *result,
    ngx_mcp_merge_by_t *m)
{
    u_char            *start, *end;
    ngx_int_t          rc;
    ngx_mcp_json_t     tools, scope;
    ngx_mcp_member_t   members[] = {
        { ngx_string("tools"), &tools },
        { ngx_string("cacheScope"), &scope }
    };

    scope.type = NGX_MCP_JSON_NONE;

    if (ngx_mcp_json_members(result, members, m->private ? 2 : 1) != NGX_OK
        || tools.type != NGX_MCP_JSON_ARRAY)
    {
        return NGX_DECLINED;
    }

    start = result->text.data;

    if (scope.type != NGX_MCP_JSON_NONE
        && scope.text.data < tools.text.data)
    {
        start = ngx_mcp_merge_scope(out, start, &scope);
    }

    ngx_mcp_out_add(out, start, tools.text.data - start);

    rc = ngx_mcp_merge_array(out, &tools, m);
    if (rc != NGX_OK) {
        return rc;
    }

    start = tools.text.data + tools.text.len;

    if (scope.type != NGX_MCP_JSON_NONE
        && scope.text.data > tools.text.data)
    {
        start = ngx_mcp_merge_scope(out, start, &scope);
    }

    end = result->text.data + result->text.len;
    ngx_mcp_out_add(out, start, end - start);

    return NGX_OK;
}


/* copies what precedes the scope, and replaces it; returns its end */

static u_char *
ngx_mcp_merge_scope(ngx_mcp_out_t *out, u_char *start, ngx_mcp_json_t *scope)
{
    ngx_mcp_out_add(out, start, scope->text.data - start);
    ngx_mcp_out_lit(out, "\"private\"");

    return scope->text.data + scope->text.len;
}


static ngx_int_t
ngx_mcp_merge_array(ngx_mcp_out_t *out, ngx_mcp_json_t *tools,
    ngx_mcp_merge_by_t *m)
{
    ngx_int_t            rc;
    ngx_str_t            name;
    ngx_uint_t           own;
    ngx_mcp_list_t       list;
    ngx_mcp_json_t       tool;
    ngx_mcp_json_iter_t  it;
    ngx_mcp_edit_t       support = {
        ngx_string("taskSupport"), NGX_MCP_EDIT_STRING,
        ngx_null_string, NULL, 0
    };
    ngx_mcp_edit_t       execution = {
        ngx_string("execution"), NGX_MCP_EDIT_INSIDE,
        ngx_null_string, &support, 1
    };

    ngx_mcp_list_begin(&list, out, tools);
    ngx_mcp_json_iter(&it, tools);

    while (ngx_mcp_json_next(&it, NULL, &tool) == NGX_OK) {

        rc = ngx_mcp_merge_name(out->pool, &tool, &name);
        if (rc != NGX_OK) {
            return rc;
        }

        own = m->own(m->data, &name);

        ngx_mcp_list_item(&list, tool.text.data,
                          tool.text.data + tool.text.len, !own);

        if (own) {
            continue;
        }

        if (!m->supports) {
            ngx_mcp_out_str(out, &tool.text);
            continue;
        }

        support.text = *m->support(m->data, &name);

        if (ngx_mcp_merge_requires(&tool, &support.text)) {
            ngx_str_set(&support.text, "required");
        }

        rc = ngx_mcp_edit(out, &tool, &execution, 1);
        if (rc != NGX_OK) {
            return rc;
        }
    }

    if (m->tools.len) {
        ngx_mcp_list_more(&list);
        ngx_mcp_out_str(out, &m->tools);
    }

    ngx_mcp_list_end(&list, tools);

    return NGX_OK;
}


/*
 * An upstream's tool that is only for tasks stays so: it refuses calls that
 * are passed to it.
 */

static ngx_uint_t
ngx_mcp_merge_requires(ngx_mcp_json_t *tool, ngx_str_t *support)
{
    ngx_mcp_json_t    execution, own;
    ngx_mcp_member_t  members[] = {
        { ngx_string("execution"), &execution }
    };
    ngx_mcp_member_t  inside[] = {
        { ngx_string("taskSupport"), &own }
    };
    static ngx_str_t  required = ngx_string("required");

    return support->len == sizeof("optional") - 1
           && ngx_strncmp(support->data, "optional", support->len) == 0
           && ngx_mcp_json_members(tool, members, 1) == NGX_OK
           && ngx_mcp_json_members(&execution, inside, 1) == NGX_OK
           && own.type == NGX_MCP_JSON_STRING
           && ngx_mcp_json_is(&own, &required);
}


static ngx_int_t
ngx_mcp_merge_name(ngx_pool_t *pool, ngx_mcp_json_t *tool, ngx_str_t *s)
{
    ngx_mcp_json_t    name;
    ngx_mcp_member_t  members[] = {
        { ngx_string("name"), &name }
    };

    /* if the tool is not an object, no name is found */

    if (ngx_mcp_json_members(tool, members, 1) != NGX_OK
        || name.type != NGX_MCP_JSON_STRING)
    {
        return NGX_DECLINED;
    }

    return ngx_mcp_json_string(pool, &name, s);
}


/*
 * Writes an object with some of its members replaced, removed or added.
 * NGX_DECLINED: a member to be edited is duplicate, or is not an object but
 * has edits inside.  The depth of the recursion is that of the edits, not of
 * the object.
 */

static ngx_int_t
ngx_mcp_edit(ngx_mcp_out_t *out, ngx_mcp_json_t *object, ngx_mcp_edit_t *edits,
    ngx_uint_t n)
{
    u_char               *start;
    ngx_int_t             rc;
    ngx_uint_t            i, seen, keep;
    ngx_mcp_list_t        list;
    ngx_mcp_json_t        key, value;
    ngx_mcp_json_iter_t   it;

    seen = 0;

    ngx_mcp_list_begin(&list, out, object);
    ngx_mcp_json_iter(&it, object);

    while (ngx_mcp_json_next(&it, &key, &value) == NGX_OK) {

        for (i = 0; i < n; i++) {
            if (ngx_mcp_json_is(&key, &edits[i].name)) {
                break;
            }
        }

        keep = 1;

        if (i < n) {
            if (seen & ((ngx_uint_t) 1 << i)) {
                return NGX_DECLINED;
            }

            seen |= (ngx_uint_t) 1 << i;
            keep = (edits[i].how != NGX_MCP_EDIT_REMOVE);
        }

        start = key.text.data;

        ngx_mcp_list_item(&list, start, value.text.data + value.text.len,
                          keep);

        if (!keep) {
            continue;
        }

        ngx_mcp_out_add(out, start, value.text.data - start);

        rc = ngx_mcp_edit_value(out, &value,
                                i < n ? &edits[i] : NULL);
        if (rc != NGX_OK) {
            return rc;
        }
    }

    value.type = NGX_MCP_JSON_NONE;

    for (i = 0; i < n; i++) {

        if ((seen & ((ngx_uint_t) 1 << i))
            || !ngx_mcp_edit_adds(&edits[i]))
        {
            continue;
        }

        ngx_mcp_list_more(&list);
        ngx_mcp_out_string(out, &edits[i].name);
        ngx_mcp_out_lit(out, ":");

        (void) ngx_mcp_edit_value(out, &value, &edits[i]);
    }

    ngx_mcp_list_end(&list, object);

    return NGX_OK;
}


/* A value of null is treated as a missing member. */

static ngx_int_t
ngx_mcp_edit_value(ngx_mcp_out_t *out, ngx_mcp_json_t *value,
    ngx_mcp_edit_t *edit)
{
    ngx_uint_t             missing;
    static ngx_mcp_json_t  empty = {
        ngx_string("{}"), NGX_MCP_JSON_OBJECT
    };

    missing = (value->type == NGX_MCP_JSON_NONE
               || value->type == NGX_MCP_JSON_NULL);

    if (edit == NULL
        || (missing && !ngx_mcp_edit_adds(edit))
        || (!missing && edit->how == NGX_MCP_EDIT_DEFAULT))
    {
        ngx_mcp_out_str(out, &value->text);
        return NGX_OK;
    }

    if (edit->how == NGX_MCP_EDIT_INSIDE) {

        if (!missing && value->type != NGX_MCP_JSON_OBJECT) {
            return NGX_DECLINED;
        }

        return ngx_mcp_edit(out, missing ? &empty : value,
                            edit->inside, edit->n);
    }

    if (edit->how == NGX_MCP_EDIT_STRING) {
        ngx_mcp_out_string(out, &edit->text);

    } else {
        ngx_mcp_out_str(out, &edit->text);
    }

    return NGX_OK;
}


/* Tells if the edit creates a missing member. */

static ngx_uint_t
ngx_mcp_edit_adds(ngx_mcp_edit_t *edit)
{
    ngx_uint_t  i;

    if (edit->how != NGX_MCP_EDIT_INSIDE) {
        return edit->how != NGX_MCP_EDIT_REMOVE;
    }

    for (i = 0; i < edit->n; i++) {
        if (ngx_mcp_edit_adds(&edit->inside[i])) {
            return 1;
        }
    }

    return 0;
}


/* Writes the opening brace or bracket. */

static void
ngx_mcp_list_begin(ngx_mcp_list_t *list, ngx_mcp_out_t *out,
    ngx_mcp_json_t *value)
{
    ngx_memzero(list, sizeof(ngx_mcp_list_t));

    list->out = out;
    list->pos = value->text.data + 1;

    ngx_mcp_out_add(out, value->text.data, 1);
}


/* Writes only the comma and the space before an item of the input. */

static void
ngx_mcp_list_item(ngx_mcp_list_t *list, u_char *start, u_char *end,
    ngx_uint_t keep)
{
    ngx_str_t  gap;

    gap.data = list->pos;
    gap.len = start - list->pos;
    list->pos = end;

    if (list->items++ == 0) {
        list->lead = gap;
    }

    if (!keep) {
        return;
    }

    if (list->kept++ == 0) {
        gap = list->lead;
    }

    ngx_mcp_out_str(list->out, &gap);
}


/* Writes the comma before a new item. */

static void
ngx_mcp_list_more(ngx_mcp_list_t *list)
{
    if (list->kept++ == 0) {
        ngx_mcp_out_str(list->out, &list->lead);
        return;
    }

    ngx_mcp_out_lit(list->out, ",");
}


static void
ngx_mcp_list_end(ngx_mcp_list_t *list, ngx_mcp_json_t *value)
{
    u_char  *end;

    end = value->text.data + value->text.len;

    ngx_mcp_out_add(list->out, list->pos, end - list->pos);
}
