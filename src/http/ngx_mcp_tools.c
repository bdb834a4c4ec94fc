
/*
 * Copyright (C) The nginx-mcp-tasks authors
 */


/*
 * Reads a file of tools, or of schemas of an upstream's tools.  It is parsed
 * twice: by jansson, for the values, and by the scanner, which knows the
 * position of each value in the text.
 */


#include "ngx_mcp_tools.h"
#include "ngx_mcp_params.h"
#include "ngx_mcp_json.h"
#include "ngx_mcp_task.h"

/* after the headers of nginx, which define the size of off_t */
#include <jansson.h>


#define NGX_MCP_POLICY       "mcpTasks"
#define NGX_MCP_TOOL_NAME    128


typedef struct {
    ngx_conf_t     *cf;
    ngx_str_t      *file;
    ngx_str_t       text;
    ngx_mcp_json_t  tool;       /* current tool, in the text */
    ngx_uint_t      schemas;    /* 1: only names and inputSchema count */
} ngx_mcp_tools_rd_t;


typedef struct {
    const char  *name;
    size_t       offset;
} ngx_mcp_time_t;


static char *ngx_mcp_tools_file(ngx_mcp_tools_rd_t *rd, ngx_array_t **tools);
static ngx_int_t ngx_mcp_tools_load(ngx_mcp_tools_rd_t *rd);
static ngx_int_t ngx_mcp_tools_numbers(ngx_mcp_tools_rd_t *rd,
    ngx_str_t *text);
static char *ngx_mcp_tools_parse(ngx_mcp_tools_rd_t *rd, json_t *root,
    ngx_array_t *tools);
static char *ngx_mcp_tool_parse(ngx_mcp_tools_rd_t *rd, json_t *json,
    ngx_array_t *tools);
static char *ngx_mcp_tool_settings(ngx_mcp_tools_rd_t *rd, json_t *json,
    ngx_mcp_tool_t *tool);
static char *ngx_mcp_tool_types(ngx_mcp_tools_rd_t *rd, json_t *json);
static char *ngx_mcp_tool_input(ngx_mcp_tools_rd_t *rd, json_t *json);
static char *ngx_mcp_tool_policy(ngx_mcp_tools_rd_t *rd, json_t *policy,
    ngx_mcp_tool_t *tool);
static char *ngx_mcp_tool_param(ngx_mcp_tools_rd_t *rd, const char *name,
    json_t *value, ngx_mcp_tool_t *tool);
static char *ngx_mcp_tool_retry(ngx_mcp_tools_rd_t *rd, const char *name,
    json_t *value, ngx_mcp_tool_t *tool);
static char *ngx_mcp_tool_time(ngx_mcp_tools_rd_t *rd, const char *name,
    json_t *json, ngx_msec_t *value);
static char *ngx_mcp_tool_schema(ngx_mcp_tools_rd_t *rd, const char *field,
    ngx_mcp_tool_t *tool, ngx_mcp_schema_t **schema);
static char *ngx_mcp_tool_definition(ngx_mcp_tools_rd_t *rd,
    ngx_mcp_tool_t *tool);
static char *ngx_mcp_tools_error(ngx_mcp_tools_rd_t *rd, const char *field,
    const char *message);
static ngx_uint_t ngx_mcp_tools_line(ngx_mcp_tools_rd_t *rd, const char *field);


static ngx_mcp_time_t  ngx_mcp_tool_times[] = {
    { "after", offsetof(ngx_mcp_tool_t, after) },
    { "lease", offsetof(ngx_mcp_tool_t, lease) },
    { "backoff", offsetof(ngx_mcp_tool_t, backoff) },
    { "queueTimeout", offsetof(ngx_mcp_tool_t, queue_timeout) },
    { "runTimeout", offsetof(ngx_mcp_tool_t, run_timeout) },
    { "ttl", offsetof(ngx_mcp_tool_t, ttl) },
    { NULL, 0 }
};


char *
ngx_mcp_tools_read(ngx_conf_t *cf, ngx_str_t *file, ngx_array_t **tools)
{
    ngx_mcp_tools_rd_t  rd;

    ngx_memzero(&rd, sizeof(ngx_mcp_tools_rd_t));
    rd.cf = cf;
    rd.file = file;

    return ngx_mcp_tools_file(&rd, tools);
}


char *
ngx_mcp_tools_read_schemas(ngx_conf_t *cf, ngx_str_t *file,
    ngx_array_t **tools)
{
    ngx_mcp_tools_rd_t  rd;

    ngx_memzero(&rd, sizeof(ngx_mcp_tools_rd_t));
    rd.cf = cf;
    rd.file = file;
    rd.schemas = 1;

    return ngx_mcp_tools_file(&rd, tools);
}


static char *
ngx_mcp_tools_file(ngx_mcp_tools_rd_t *rd, ngx_array_t **tools)
{
    char          *rv;
    json_t        *root;
    ngx_str_t      text;
    json_error_t   err;

    *tools = ngx_array_create(rd->cf->pool, 8, sizeof(ngx_mcp_tool_t));

    if (*tools == NULL || ngx_mcp_tools_load(rd) != NGX_OK
        || ngx_mcp_tools_numbers(rd, &text) != NGX_OK)
    {
        return NGX_CONF_ERROR;
    }

    root = json_loadb((char *) text.data, text.len,
                      JSON_REJECT_DUPLICATES, &err);

    if (root == NULL) {
        ngx_conf_log_error(NGX_LOG_EMERG, rd->cf, 0, "%s in %V:%d", err.text,
                           rd->file, err.line);
        return NGX_CONF_ERROR;
    }

    rv = ngx_mcp_tools_parse(rd, root, *tools);

    json_decref(root);

    return rv;
}


static ngx_int_t
ngx_mcp_tools_load(ngx_mcp_tools_rd_t *rd)
{
    ssize_t           n;
    ngx_fd_t          fd;
    ngx_int_t         rc;
    ngx_file_t        file;
    ngx_file_info_t   fi;

    rc = NGX_ERROR;

    fd = ngx_open_file(rd->file->data, NGX_FILE_RDONLY, NGX_FILE_OPEN, 0);

    if (fd == NGX_INVALID_FILE) {
        ngx_conf_log_error(NGX_LOG_EMERG, rd->cf, ngx_errno,
                           ngx_open_file_n " \"%V\" failed", rd->file);
        return NGX_ERROR;
    }

    if (ngx_fd_info(fd, &fi) == NGX_FILE_ERROR) {
        ngx_conf_log_error(NGX_LOG_EMERG, rd->cf, ngx_errno,
                           ngx_fd_info_n " \"%V\" failed", rd->file);
        goto done;
    }

    rd->text.len = ngx_file_size(&fi);
    rd->text.data = ngx_pnalloc(rd->cf->pool, rd->text.len + 1);

    if (rd->text.data == NULL) {
        goto done;
    }

    ngx_memzero(&file, sizeof(ngx_file_t));
    file.fd = fd;
    file.name = *rd->file;
    file.log = rd->cf->log;

    n = ngx_read_file(&file, rd->text.data, rd->text.len, 0);

    if (n != (ssize_t) rd->text.len) {
        ngx_conf_log_error(NGX_LOG_EMERG, rd->cf, 0,
                           "\"%V\" could not be read completely", rd->file);
        goto done;
    }

    rc = NGX_OK;

done:

    (void) ngx_close_file(fd);

    return rc;
}


/*
 * The text for jansson, which has no numbers beyond 64 bits.  Only schemas may
 * have them, and are compiled from the text itself; elsewhere -1 is an error,
 * as the number would be.
 */

static ngx_int_t
ngx_mcp_tools_numbers(ngx_mcp_tools_rd_t *rd, ngx_str_t *text)
{
    u_char      *p, *end, *start;
    ngx_uint_t   string;

    text->len = rd->text.len;
    text->data = ngx_pstrdup(rd->cf->pool, &rd->text);
    if (text->data == NULL) {
        return NGX_ERROR;
    }

    end = text->data + text->len;
    string = 0;

    for (p = text->data; p < end; /* void */ ) {

        if (*p == '"') {
            string = !string;

        } else if (*p == '\\' && string) {
            p++;

        } else if (!string && *p >= '0' && *p <= '9') {

            for (start = p;
                 p < end && ((*p >= '0' && *p <= '9') || *p == '.'
                             || *p == 'e' || *p == 'E' || *p == '+'
                             || *p == '-');
                 p++)
            { /* void */ }

            if (p - start > 18 || ngx_strlchr(start, p, 'e')
                || ngx_strlchr(start, p, 'E'))
            {
                start -= (start > text->data && start[-1] == '-');
                ngx_memset(start, ' ', p - start);
                start[0] = '-';
                start[1] = '1';
            }

            continue;
        }

        p++;
    }

    return NGX_OK;
}


static char *
ngx_mcp_tools_parse(ngx_mcp_tools_rd_t *rd, json_t *root, ngx_array_t *tools)
{
    char                 *rv;
    size_t                i;
    json_t               *list;
    const char           *err;
    ngx_mcp_json_t        text, array;
    ngx_mcp_json_iter_t   it;
    ngx_mcp_member_t      members[] = {
        { ngx_string("tools"), &array }
    };

    /* the scanner knows the positions in the text, jansson does not */

    if (ngx_mcp_json_parse(&rd->text, &text, &err) != NGX_OK) {
        return ngx_mcp_tools_error(rd, NULL, err);
    }

    (void) ngx_mcp_json_members(&text, members, 1);

    list = json_object_get(root, "tools");

    if (!json_is_array(list)) {
        return ngx_mcp_tools_error(rd, "tools", "must be an array");
    }

    ngx_mcp_json_iter(&it, &array);

    for (i = 0; i < json_array_size(list); i++) {

        (void) ngx_mcp_json_next(&it, NULL, &rd->tool);

        rv = ngx_mcp_tool_parse(rd, json_array_get(list, i), tools);

        if (rv != NGX_CONF_OK) {
            return rv;
        }
    }

    return NGX_CONF_OK;
}


static char *
ngx_mcp_tool_parse(ngx_mcp_tools_rd_t *rd, json_t *json, ngx_array_t *tools)
{
    char            *rv;
    json_t          *value;
    ngx_str_t        name;
    ngx_mcp_tool_t  *tool;

    if (!json_is_object(json)) {
        return ngx_mcp_tools_error(rd, NULL, "a tool must be an object");
    }

    value = json_object_get(json, "name");

    if (!json_is_string(value)
        || json_string_length(value) == 0
        || json_string_length(value) > NGX_MCP_TOOL_NAME)
    {
        return ngx_mcp_tools_error(rd, "name",
                                   "must be a string of 1 to 128 bytes");
    }

    name.data = (u_char *) json_string_value(value);
    name.len = json_string_length(value);

    if (ngx_mcp_tool_find(tools, &name)) {
        return ngx_mcp_tools_error(rd, "name", "is duplicate");
    }

    rv = rd->schemas ? NGX_CONF_OK : ngx_mcp_tool_types(rd, json);

    if (rv == NGX_CONF_OK) {
        rv = ngx_mcp_tool_input(rd, json);
    }

    if (rv != NGX_CONF_OK) {
        return rv;
    }

    tool = ngx_array_push(tools);
    if (tool == NULL) {
        return NGX_CONF_ERROR;
    }

    ngx_memzero(tool, sizeof(ngx_mcp_tool_t));

    tool->name.len = name.len;
    tool->name.data = ngx_pstrdup(rd->cf->pool, &name);
    if (tool->name.data == NULL) {
        return NGX_CONF_ERROR;
    }

    rv = ngx_mcp_tool_schema(rd, "inputSchema", tool, &tool->input);

    if (rv != NGX_CONF_OK || rd->schemas) {
        return rv;
    }

    return ngx_mcp_tool_settings(rd, json, tool);
}


/* all but the name and inputSchema */

static char *
ngx_mcp_tool_settings(ngx_mcp_tools_rd_t *rd, json_t *json,
    ngx_mcp_tool_t *tool)
{
    char        *rv;
    json_t      *value;
    const char  *err;

    err = ngx_mcp_params_read(rd->cf->pool,
                              json_object_get(json, "inputSchema"),
                              &tool->params);
    if (err) {
        return ngx_mcp_tools_error(rd, "inputSchema", err);
    }

    rv = ngx_mcp_tool_schema(rd, "outputSchema", tool, &tool->output);

    if (rv != NGX_CONF_OK) {
        return rv;
    }

    tool->support = NGX_MCP_OPTIONAL;
    tool->after = 0;
    tool->lease = NGX_CONF_UNSET_MSEC;
    tool->backoff = NGX_CONF_UNSET_MSEC;
    tool->queue_timeout = NGX_CONF_UNSET_MSEC;
    tool->run_timeout = NGX_CONF_UNSET_MSEC;
    tool->ttl = NGX_CONF_UNSET_MSEC;
    tool->attempts = NGX_CONF_UNSET;
    tool->priority = 1;
    tool->asks = NGX_MCP_INPUT_TASK;
    tool->retry = 0;

    value = json_object_get(json, NGX_MCP_POLICY);

    if (value) {
        rv = ngx_mcp_tool_policy(rd, value, tool);

        if (rv != NGX_CONF_OK) {
            return rv;
        }
    }

    return ngx_mcp_tool_definition(rd, tool);
}


/* checks the types of the members that MCP defines */

static char *
ngx_mcp_tool_types(ngx_mcp_tools_rd_t *rd, json_t *json)
{
    json_t      *value;
    ngx_uint_t   i;
    static struct {
        const char  *name;
        json_type    type;
        const char  *message;
    } members[] = {
        { "title", JSON_STRING, "must be a string" },
        { "description", JSON_STRING, "must be a string" },
        { "inputSchema", JSON_OBJECT, "must be an object" },
        { "outputSchema", JSON_OBJECT, "must be an object" },
        { "annotations", JSON_OBJECT, "must be an object" },
        { "icons", JSON_ARRAY, "must be an array" },
        { "_meta", JSON_OBJECT, "must be an object" },
        { NULL, JSON_NULL, NULL }
    };

    for (i = 0; members[i].name; i++) {
        value = json_object_get(json, members[i].name);

        if (value && json_typeof(value) != members[i].type) {
            return ngx_mcp_tools_error(rd, members[i].name, members[i].message);
        }
    }

    if (json_object_get(json, "execution")) {
        return ngx_mcp_tools_error(rd, "execution",
                                   "must not be set, it is generated from \""
                                   NGX_MCP_POLICY "\"");
    }

    return NGX_CONF_OK;
}


static char *
ngx_mcp_tool_input(ngx_mcp_tools_rd_t *rd, json_t *json)
{
    json_t  *type;

    type = json_object_get(json_object_get(json, "inputSchema"), "type");

    if (!json_is_string(type)
        || ngx_strcmp(json_string_value(type), "object") != 0)
    {
        return ngx_mcp_tools_error(rd, "inputSchema",
                             "must be a schema with the type \"object\"");
    }

    return NGX_CONF_OK;
}


static char *
ngx_mcp_tool_policy(ngx_mcp_tools_rd_t *rd, json_t *policy,
    ngx_mcp_tool_t *tool)
{
    char            *rv;
    json_t          *value;
    const char      *name;
    ngx_msec_t      *msec;
    ngx_mcp_time_t  *t;

    if (!json_is_object(policy)) {
        return ngx_mcp_tools_error(rd, NGX_MCP_POLICY, "must be an object");
    }

    json_object_foreach(policy, name, value) {

        for (t = ngx_mcp_tool_times; t->name; t++) {
            if (ngx_strcmp(t->name, name) == 0) {
                break;
            }
        }

        if (t->name) {
            msec = (ngx_msec_t *) ((u_char *) tool + t->offset);
            rv = ngx_mcp_tool_time(rd, name, value, msec);

        } else {
            rv = ngx_mcp_tool_param(rd, name, value, tool);
        }

        if (rv != NGX_CONF_OK) {
            return rv;
        }
    }

    return NGX_CONF_OK;
}


/* a parameter of the policy that is not a time */

static char *
ngx_mcp_tool_param(ngx_mcp_tools_rd_t *rd, const char *name, json_t *value,
    ngx_mcp_tool_t *tool)
{
    const char  *s;

    s = json_is_string(value) ? json_string_value(value) : "";

    if (ngx_strcmp(name, "taskSupport") == 0) {

        if (ngx_strcmp(s, "optional") == 0) {
            tool->support = NGX_MCP_OPTIONAL;

        } else if (ngx_strcmp(s, "required") == 0) {
            tool->support = NGX_MCP_REQUIRED;

        } else if (ngx_strcmp(s, "forbidden") == 0) {
            tool->support = NGX_MCP_FORBIDDEN;

        } else {
            return ngx_mcp_tools_error(rd, name,
                    "must be \"optional\", \"required\" or \"forbidden\"");
        }

        return NGX_CONF_OK;
    }

    if (ngx_strcmp(name, "attempts") == 0) {
        tool->attempts = json_integer_value(value);

        if (tool->attempts < 1 || tool->attempts > 255) {
            return ngx_mcp_tools_error(rd, name,
                                       "must be an integer from 1 to 255");
        }

        return NGX_CONF_OK;
    }

    if (ngx_strcmp(name, "input") == 0) {

        if (ngx_strcmp(s, "task") == 0) {
            tool->asks = NGX_MCP_INPUT_TASK;

        } else if (ngx_strcmp(s, "call") == 0) {
            tool->asks = NGX_MCP_INPUT_CALL;

        } else if (ngx_strcmp(s, "first") == 0) {
            tool->asks = NGX_MCP_INPUT_FIRST;

        } else {
            return ngx_mcp_tools_error(rd, name,
                             "must be \"task\", \"call\" or \"first\"");
        }

        return NGX_CONF_OK;
    }

    if (ngx_strcmp(name, "priority") == 0) {
        tool->priority = json_is_integer(value) ? json_integer_value(value)
                                                : -1;

        if (tool->priority < 0 || tool->priority > 3) {
            return ngx_mcp_tools_error(rd, name,
                                       "must be an integer from 0 to 3");
        }

        return NGX_CONF_OK;
    }

    if (ngx_strcmp(name, "retryOn") == 0) {
        return ngx_mcp_tool_retry(rd, name, value, tool);
    }

    return ngx_mcp_tools_error(rd, name, "is an unknown parameter of \""
                                         NGX_MCP_POLICY "\"");
}


/* ends of an attempt that another attempt may follow */

static char *
ngx_mcp_tool_retry(ngx_mcp_tools_rd_t *rd, const char *name, json_t *value,
    ngx_mcp_tool_t *tool)
{
    size_t       i;
    json_t      *word;
    ngx_str_t    s;
    ngx_uint_t   end;

    tool->retry = NGX_MCP_RETRY_DEFAULT;

    if (!json_is_array(value)) {
        goto invalid;
    }

    json_array_foreach(value, i, word) {

        s.data = (u_char *) json_string_value(word);
        s.len = json_string_length(word);
        end = ngx_mcp_retry_word(&s);

        /* a word that is used twice would have no effect */

        if (end == 0 || (tool->retry ^ NGX_MCP_RETRY_DEFAULT) & end) {
            goto invalid;
        }

        tool->retry ^= end;
    }

    return NGX_CONF_OK;

invalid:

    return ngx_mcp_tools_error(rd, name,
              "must be an array of \"timeout\", \"lease\" and \"error\", "
              "each at most once");
}


ngx_uint_t
ngx_mcp_retry_word(ngx_str_t *word)
{
    ngx_uint_t  i;
    static struct {
        ngx_str_t   word;
        ngx_uint_t  end;
    } words[] = {
        { ngx_string("timeout"), NGX_MCP_RETRY_TIMEOUT },
        { ngx_string("lease"), NGX_MCP_RETRY_LEASE },
        { ngx_string("error"), NGX_MCP_RETRY_ERROR }
    };

    for (i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
        if (words[i].word.len == word->len
            && ngx_memcmp(words[i].word.data, word->data, word->len) == 0)
        {
            return words[i].end;
        }
    }

    return 0;
}


/* a number of milliseconds, or a string as in the configuration of nginx */

static char *
ngx_mcp_tool_time(ngx_mcp_tools_rd_t *rd, const char *name, json_t *json,
    ngx_msec_t *value)
{
    int64_t    n;
    ngx_str_t  s;

    n = NGX_ERROR;

    if (json_is_integer(json)) {
        n = json_integer_value(json);

    } else if (json_is_string(json)) {
        s.data = (u_char *) json_string_value(json);
        s.len = json_string_length(json);
        n = ngx_parse_time(&s, 0);
    }

    if (n < 0 || n >= 0xffffffff) {
        return ngx_mcp_tools_error(rd, name,
                 "must be a time: milliseconds, or a string such as \"30s\"");
    }

    /* a lease or a task would expire at once */

    if (n == 0
        && (ngx_strcmp(name, "lease") == 0 || ngx_strcmp(name, "ttl") == 0))
    {
        return ngx_mcp_tools_error(rd, name, "must not be zero");
    }

    *value = n;

    return NGX_CONF_OK;
}


static char *
ngx_mcp_tool_schema(ngx_mcp_tools_rd_t *rd, const char *field,
    ngx_mcp_tool_t *tool, ngx_mcp_schema_t **schema)
{
    u_char            *what;
    ngx_int_t          rc;
    ngx_str_t          err;
    ngx_mcp_json_t     value;
    ngx_mcp_member_t   members[] = {
        { ngx_null_string, &value }
    };

    *schema = NULL;

    members[0].name.data = (u_char *) field;
    members[0].name.len = ngx_strlen(field);

    (void) ngx_mcp_json_members(&rd->tool, members, 1);

    if (value.type == NGX_MCP_JSON_NONE) {
        return NGX_CONF_OK;
    }

    rc = ngx_mcp_schema_compile(rd->cf->pool, &value, ngx_mcp_regex(), schema,
                                &err);

    if (rc == NGX_OK) {
        return NGX_CONF_OK;
    }

    if (rc == NGX_ERROR) {
        return NGX_CONF_ERROR;
    }

    what = ngx_pnalloc(rd->cf->pool,
                       tool->name.len + err.len + sizeof("of tool \"\": "));
    if (what == NULL) {
        return NGX_CONF_ERROR;
    }

    (void) ngx_sprintf(what, "of tool \"%V\": %V%Z", &tool->name, &err);

    return ngx_mcp_tools_error(rd, field, (char *) what);
}


/*
 * The definition as clients see it: the text of the file without the policy and
 * without the closing brace.
 */

static char *
ngx_mcp_tool_definition(ngx_mcp_tools_rd_t *rd, ngx_mcp_tool_t *tool)
{
    u_char               *p;
    ngx_mcp_json_t        key, value;
    ngx_mcp_json_iter_t   it;
    static ngx_str_t      policy = ngx_string(NGX_MCP_POLICY);

    p = ngx_pnalloc(rd->cf->pool, rd->tool.text.len);
    if (p == NULL) {
        return NGX_CONF_ERROR;
    }

    tool->definition.data = p;
    *p++ = '{';

    ngx_mcp_json_iter(&it, &rd->tool);

    while (ngx_mcp_json_next(&it, &key, &value) == NGX_OK) {

        if (ngx_mcp_json_is(&key, &policy)) {
            continue;
        }

        if (p[-1] != '{') {
            *p++ = ',';
        }

        p = ngx_cpymem(p, key.text.data, key.text.len);
        *p++ = ':';
        p = ngx_cpymem(p, value.text.data, value.text.len);
    }

    tool->definition.len = p - tool->definition.data;

    return NGX_CONF_OK;
}


ngx_str_t *
ngx_mcp_support_name(ngx_uint_t support)
{
    static ngx_str_t  names[] = {
        ngx_string("optional"),
        ngx_string("required"),
        ngx_string("forbidden")
    };

    return &names[support];
}


ngx_mcp_tool_t *
ngx_mcp_tool_find(ngx_array_t *tools, ngx_str_t *name)
{
    ngx_uint_t       i;
    ngx_mcp_tool_t  *tool;

    tool = tools->elts;

    for (i = 0; i < tools->nelts; i++) {
        if (tool[i].name.len == name->len
            && ngx_memcmp(tool[i].name.data, name->data, name->len) == 0)
        {
            return &tool[i];
        }
    }

    return NULL;
}


ngx_uint_t
ngx_mcp_tools_output(ngx_array_t *tools)
{
    ngx_uint_t       i;
    ngx_mcp_tool_t  *tool;

    tool = tools->elts;

    for (i = 0; i < tools->nelts; i++) {
        if (tool[i].output) {
            return 1;
        }
    }

    return 0;
}


static char *
ngx_mcp_tools_error(ngx_mcp_tools_rd_t *rd, const char *field,
    const char *message)
{
    if (field) {
        ngx_conf_log_error(NGX_LOG_EMERG, rd->cf, 0, "\"%s\" %s in %V:%ui",
                           field, message, rd->file,
                           ngx_mcp_tools_line(rd, field));

    } else {
        ngx_conf_log_error(NGX_LOG_EMERG, rd->cf, 0, "%s in %V:%ui", message,
                           rd->file, ngx_mcp_tools_line(rd, field));
    }

    return NGX_CONF_ERROR;
}


/* the line of a member of the current tool or of its policy */

static ngx_uint_t
ngx_mcp_tools_line(ngx_mcp_tools_rd_t *rd, const char *field)
{
    u_char            *p, *pos;
    ngx_uint_t         line;
    ngx_mcp_json_t     value, policy;
    ngx_mcp_member_t   members[] = {
        { ngx_null_string, &value },
        { ngx_string(NGX_MCP_POLICY), &policy }
    };

    pos = rd->tool.text.data;

    if (pos && field) {
        members[0].name.data = (u_char *) field;
        members[0].name.len = ngx_strlen(field);

        (void) ngx_mcp_json_members(&rd->tool, members, 2);

        if (value.type == NGX_MCP_JSON_NONE) {
            (void) ngx_mcp_json_members(&policy, members, 1);
        }

        if (value.type != NGX_MCP_JSON_NONE) {
            pos = value.text.data;
        }
    }

    line = 1;

    for (p = rd->text.data; p < pos; p++) {
        line += (*p == '\n');
    }

    return line;
}
