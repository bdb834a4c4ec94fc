
/*
 * Copyright (C) The nginx-mcp-tasks authors
 */


#include "ngx_mcp_question.h"
#include "ngx_mcp_capability.h"
#include "ngx_mcp_code.h"
#include "ngx_mcp_schema_types.h"


/*
 * What both revisions of the protocol have in common, or one of them allows.
 * A member that is not named here may have any value.  Where a member selects
 * the rest, "if" is used instead of "anyOf": a mismatch then names the value
 * that is wrong, and not the alternatives.
 */

#define NGX_MCP_TYPED(type)  "{\"type\":\"" type "\"}"
#define NGX_MCP_STRINGS                                                       \
    "{\"type\":\"array\",\"items\":{\"type\":\"string\"}}"
#define NGX_MCP_SHARE                                                         \
    "{\"type\":\"number\",\"minimum\":0,\"maximum\":1}"
#define NGX_MCP_DEF(name)  "{\"$ref\":\"#/$defs/" name "\"}"
#define NGX_MCP_WHEN(member, value, name)                                     \
    "{\"if\":{\"properties\":{\"" member "\":{\"const\":\"" value "\"}}},"    \
    "\"then\":" NGX_MCP_DEF(name) "}"

#define NGX_MCP_QUESTION_DEFS                                                 \
    "\"question\":{\"type\":\"object\",\"required\":[\"method\"],"            \
      "\"properties\":{\"method\":{\"enum\":[\"elicitation/create\","         \
          "\"sampling/createMessage\",\"roots/list\"]},"                      \
        "\"params\":{\"type\":\"object\","                                    \
          "\"properties\":{\"_meta\":" NGX_MCP_TYPED("object") "}}},"         \
      "\"allOf\":["                                                           \
        NGX_MCP_WHEN("method", "elicitation/create", "elicitation") ","       \
        NGX_MCP_WHEN("method", "sampling/createMessage", "sampling") "]},"    \
    "\"elicitation\":{\"required\":[\"params\"],\"properties\":{\"params\":{" \
      "\"if\":{\"required\":[\"mode\"],"                                      \
        "\"properties\":{\"mode\":{\"const\":\"url\"}}},"                     \
      "\"then\":" NGX_MCP_DEF("url") ",\"else\":" NGX_MCP_DEF("form") "}}},"  \
    "\"url\":{\"type\":\"object\",\"required\":[\"message\",\"url\"],"        \
      "\"properties\":{\"mode\":{\"const\":\"url\"},"                         \
        "\"message\":" NGX_MCP_TYPED("string") ","                            \
        "\"url\":" NGX_MCP_TYPED("string") ","                                \
        "\"elicitationId\":" NGX_MCP_TYPED("string") "}},"

/* forms: an object whose properties are primitive */

#define NGX_MCP_FORM_DEFS                                                     \
    "\"form\":{\"required\":[\"message\",\"requestedSchema\"],"               \
      "\"properties\":{\"mode\":{\"const\":\"form\"},"                        \
        "\"message\":" NGX_MCP_TYPED("string") ","                            \
        "\"requestedSchema\":{\"type\":\"object\","                           \
          "\"required\":[\"type\",\"properties\"],"                           \
          "\"properties\":{\"$schema\":" NGX_MCP_TYPED("string") ","          \
            "\"type\":{\"const\":\"object\"},"                                \
            "\"required\":" NGX_MCP_STRINGS ","                               \
            "\"properties\":{\"type\":\"object\","                            \
              "\"additionalProperties\":" NGX_MCP_DEF("field") "}}}}},"       \
    "\"field\":{\"type\":\"object\",\"required\":[\"type\"],\"properties\":{" \
        "\"type\":{\"enum\":[\"string\",\"number\",\"integer\",\"boolean\","  \
          "\"array\"]},"                                                      \
        "\"title\":" NGX_MCP_TYPED("string") ","                              \
        "\"description\":" NGX_MCP_TYPED("string") "},"                       \
      "\"allOf\":["                                                           \
        NGX_MCP_WHEN("type", "string", "string") ","                          \
        NGX_MCP_WHEN("type", "number", "number") ","                          \
        NGX_MCP_WHEN("type", "integer", "number") ","                         \
        NGX_MCP_WHEN("type", "boolean", "boolean") ","                        \
        NGX_MCP_WHEN("type", "array", "array") "]},"                          \
    "\"number\":{\"properties\":{\"minimum\":" NGX_MCP_TYPED("number") ","    \
      "\"maximum\":" NGX_MCP_TYPED("number") ","                              \
      "\"default\":" NGX_MCP_TYPED("number") "}},"                            \
    "\"boolean\":{\"properties\":{\"default\":"                               \
      NGX_MCP_TYPED("boolean") "}},"                                          \
    "\"string\":{\"properties\":{\"default\":" NGX_MCP_TYPED("string") "},"   \
      "\"anyOf\":[{\"properties\":{"                                          \
          "\"minLength\":" NGX_MCP_TYPED("integer") ","                       \
          "\"maxLength\":" NGX_MCP_TYPED("integer") ","                       \
          "\"format\":{\"enum\":[\"date\",\"date-time\",\"email\","           \
            "\"uri\"]}}},"                                                    \
        "{\"required\":[\"enum\"],\"properties\":{\"enum\":"                  \
          NGX_MCP_STRINGS "}},"                                               \
        "{\"required\":[\"oneOf\"],\"properties\":{\"oneOf\":"                \
          NGX_MCP_DEF("choices") "}}]},"                                      \
    "\"array\":{\"required\":[\"items\"],\"properties\":{"                    \
      "\"minItems\":" NGX_MCP_TYPED("integer") ","                            \
      "\"maxItems\":" NGX_MCP_TYPED("integer") ","                            \
      "\"default\":" NGX_MCP_STRINGS ","                                      \
      "\"items\":{\"type\":\"object\",\"anyOf\":["                            \
        "{\"required\":[\"type\",\"enum\"],\"properties\":{"                  \
          "\"type\":{\"const\":\"string\"},\"enum\":" NGX_MCP_STRINGS "}},"   \
        "{\"required\":[\"anyOf\"],\"properties\":{\"anyOf\":"                \
          NGX_MCP_DEF("choices") "}}]}}},"                                    \
    "\"choices\":{\"type\":\"array\",\"items\":{\"type\":\"object\","         \
      "\"required\":[\"const\",\"title\"],\"properties\":{"                   \
        "\"const\":" NGX_MCP_TYPED("string") ","                              \
        "\"title\":" NGX_MCP_TYPED("string") "}}},"

/* sampling */

#define NGX_MCP_SAMPLING_DEFS                                                 \
    "\"sampling\":{\"required\":[\"params\"],\"properties\":{\"params\":{"    \
      "\"required\":[\"messages\",\"maxTokens\"],\"properties\":{"            \
        "\"messages\":{\"type\":\"array\",\"items\":"                         \
          NGX_MCP_DEF("message") "},"                                         \
        "\"maxTokens\":" NGX_MCP_TYPED("integer") ","                         \
        "\"systemPrompt\":" NGX_MCP_TYPED("string") ","                       \
        "\"temperature\":" NGX_MCP_TYPED("number") ","                        \
        "\"stopSequences\":" NGX_MCP_STRINGS ","                              \
        "\"metadata\":" NGX_MCP_TYPED("object") ","                           \
        "\"includeContext\":{\"enum\":[\"none\",\"thisServer\","              \
          "\"allServers\"]},"                                                 \
        "\"modelPreferences\":{\"type\":\"object\",\"properties\":{"          \
          "\"costPriority\":" NGX_MCP_SHARE ","                               \
          "\"speedPriority\":" NGX_MCP_SHARE ","                              \
          "\"intelligencePriority\":" NGX_MCP_SHARE ","                       \
          "\"hints\":{\"type\":\"array\",\"items\":{\"type\":\"object\","     \
            "\"properties\":{\"name\":" NGX_MCP_TYPED("string") "}}}}},"      \
        "\"toolChoice\":{\"type\":\"object\",\"properties\":{\"mode\":"       \
          "{\"enum\":[\"auto\",\"none\",\"required\"]}}},"                    \
        "\"tools\":{\"type\":\"array\",\"items\":" NGX_MCP_DEF("tool")        \
          "}}}}},"                                                            \
    "\"message\":{\"type\":\"object\",\"required\":[\"role\",\"content\"],"   \
      "\"properties\":{\"_meta\":" NGX_MCP_TYPED("object") ","                \
        "\"role\":{\"enum\":[\"user\",\"assistant\"]},"                       \
        "\"content\":{\"if\":{\"type\":\"array\"},"                           \
          "\"then\":{\"items\":" NGX_MCP_DEF("block") "},"                    \
          "\"else\":" NGX_MCP_DEF("block") "}}},"                             \
    "\"block\":{\"type\":\"object\",\"required\":[\"type\"],\"properties\":{" \
        "\"_meta\":" NGX_MCP_TYPED("object") ","                              \
        "\"type\":{\"enum\":[\"text\",\"image\",\"audio\",\"tool_use\","      \
          "\"tool_result\"]}},"                                               \
      "\"allOf\":["                                                           \
        NGX_MCP_WHEN("type", "text", "text") ","                              \
        NGX_MCP_WHEN("type", "image", "data") ","                             \
        NGX_MCP_WHEN("type", "audio", "data") ","                             \
        NGX_MCP_WHEN("type", "tool_use", "use") ","                           \
        NGX_MCP_WHEN("type", "tool_result", "result") "]},"                   \
    "\"text\":{\"required\":[\"text\"],\"properties\":{"                      \
      "\"annotations\":" NGX_MCP_DEF("annotations") ","                       \
      "\"text\":" NGX_MCP_TYPED("string") "}},"                               \
    "\"data\":{\"required\":[\"data\",\"mimeType\"],\"properties\":{"         \
      "\"annotations\":" NGX_MCP_DEF("annotations") ","                       \
      "\"data\":" NGX_MCP_TYPED("string") ","                                 \
      "\"mimeType\":" NGX_MCP_TYPED("string") "}},"                           \
    "\"use\":{\"required\":[\"id\",\"name\",\"input\"],\"properties\":{"      \
      "\"id\":" NGX_MCP_TYPED("string") ","                                   \
      "\"name\":" NGX_MCP_TYPED("string") ","                                 \
      "\"input\":" NGX_MCP_TYPED("object") "}},"                              \
    "\"result\":{\"required\":[\"toolUseId\",\"content\"],\"properties\":{"   \
      "\"toolUseId\":" NGX_MCP_TYPED("string") ","                            \
      "\"isError\":" NGX_MCP_TYPED("boolean") ","                             \
      "\"content\":{\"type\":\"array\",\"items\":"                            \
        NGX_MCP_DEF("content") "}}},"                                         \
    "\"content\":{\"type\":\"object\",\"required\":[\"type\"],"               \
      "\"properties\":{\"_meta\":" NGX_MCP_TYPED("object") ","                \
        "\"type\":{\"enum\":[\"text\",\"image\",\"audio\","                   \
          "\"resource_link\",\"resource\"]}},"                                \
      "\"allOf\":["                                                           \
        NGX_MCP_WHEN("type", "text", "text") ","                              \
        NGX_MCP_WHEN("type", "image", "data") ","                             \
        NGX_MCP_WHEN("type", "audio", "data") ","                             \
        NGX_MCP_WHEN("type", "resource_link", "link") ","                     \
        NGX_MCP_WHEN("type", "resource", "resource") "]},"                    \
    "\"link\":{\"required\":[\"name\",\"uri\"],\"properties\":{"              \
      "\"annotations\":" NGX_MCP_DEF("annotations") ","                       \
      "\"name\":" NGX_MCP_TYPED("string") ","                                 \
      "\"title\":" NGX_MCP_TYPED("string") ","                                \
      "\"description\":" NGX_MCP_TYPED("string") ","                          \
      "\"mimeType\":" NGX_MCP_TYPED("string") ","                             \
      "\"size\":" NGX_MCP_TYPED("integer") ","                                \
      "\"icons\":" NGX_MCP_DEF("icons") ","                                   \
      "\"uri\":" NGX_MCP_TYPED("string") "}},"                                \
    "\"resource\":{\"required\":[\"resource\"],\"properties\":{"              \
      "\"annotations\":" NGX_MCP_DEF("annotations") ","                       \
      "\"resource\":{\"type\":\"object\",\"required\":[\"uri\"],"             \
        "\"properties\":{\"_meta\":" NGX_MCP_TYPED("object") ","              \
          "\"uri\":" NGX_MCP_TYPED("string") ","                              \
          "\"mimeType\":" NGX_MCP_TYPED("string") "},"                        \
        "\"anyOf\":[{\"required\":[\"text\"],\"properties\":{"                \
            "\"text\":" NGX_MCP_TYPED("string") "}},"                         \
          "{\"required\":[\"blob\"],\"properties\":{"                         \
            "\"blob\":" NGX_MCP_TYPED("string") "}}]}}},"                     \
    "\"annotations\":{\"type\":\"object\",\"properties\":{"                   \
      "\"audience\":{\"type\":\"array\",\"items\":{\"enum\":[\"user\","       \
        "\"assistant\"]}},"                                                   \
      "\"priority\":" NGX_MCP_SHARE ","                                       \
      "\"lastModified\":" NGX_MCP_TYPED("string") "}},"                       \
    "\"icons\":{\"type\":\"array\",\"items\":{\"type\":\"object\","           \
      "\"required\":[\"src\"],\"properties\":{"                               \
        "\"src\":" NGX_MCP_TYPED("string") ","                                \
        "\"mimeType\":" NGX_MCP_TYPED("string") ","                           \
        "\"sizes\":" NGX_MCP_STRINGS ","                                      \
        "\"theme\":{\"enum\":[\"dark\",\"light\"]}}}},"                       \
    "\"tool\":{\"type\":\"object\",\"required\":[\"name\",\"inputSchema\"],"  \
      "\"properties\":{\"name\":" NGX_MCP_TYPED("string") ","                 \
        "\"_meta\":" NGX_MCP_TYPED("object") ","                              \
        "\"title\":" NGX_MCP_TYPED("string") ","                              \
        "\"description\":" NGX_MCP_TYPED("string") ","                        \
        "\"icons\":" NGX_MCP_DEF("icons") ","                                 \
        "\"annotations\":{\"type\":\"object\",\"properties\":{"               \
          "\"title\":" NGX_MCP_TYPED("string") ","                            \
          "\"readOnlyHint\":" NGX_MCP_TYPED("boolean") ","                    \
          "\"destructiveHint\":" NGX_MCP_TYPED("boolean") ","                 \
          "\"idempotentHint\":" NGX_MCP_TYPED("boolean") ","                  \
          "\"openWorldHint\":" NGX_MCP_TYPED("boolean") "}},"                 \
        "\"outputSchema\":{\"type\":\"object\",\"properties\":{"              \
          "\"$schema\":" NGX_MCP_TYPED("string") "}},"                        \
        "\"inputSchema\":{\"type\":\"object\",\"required\":[\"type\"],"       \
          "\"properties\":{\"$schema\":" NGX_MCP_TYPED("string") ","          \
            "\"type\":{\"const\":\"object\"}}}}}"

#define NGX_MCP_QUESTION_SCHEMA(root)                                         \
    ngx_string("{" root ",\"$defs\":{" NGX_MCP_QUESTION_DEFS                  \
               NGX_MCP_FORM_DEFS NGX_MCP_SAMPLING_DEFS "}}")


static ngx_uint_t ngx_mcp_question_loopback(ngx_str_t *host);
static u_char *ngx_mcp_question_host(u_char *p, u_char *end, ngx_str_t *host);
static u_char *ngx_mcp_question_port(u_char *p, u_char *end);
static void ngx_mcp_question_iter(ngx_mcp_json_iter_t *it, ngx_uint_t kind,
    ngx_mcp_json_t *value);
static void ngx_mcp_question_links(ngx_mcp_json_t *error,
    ngx_mcp_json_t *links);
static ngx_int_t ngx_mcp_question_check_url(ngx_pool_t *pool,
    ngx_mcp_json_t *root, ngx_mcp_json_t *params, ngx_mcp_mismatch_t *mismatch);
static void ngx_mcp_question_without_id(ngx_mcp_out_t *out,
    ngx_mcp_json_t *params);


static ngx_str_t  ngx_mcp_question_texts[NGX_MCP_QUESTION_KINDS] = {
    NGX_MCP_QUESTION_SCHEMA("\"$ref\":\"#/$defs/question\""),
    NGX_MCP_QUESTION_SCHEMA("\"type\":\"object\","
                            "\"additionalProperties\":"
                            NGX_MCP_DEF("question")),
    NGX_MCP_QUESTION_SCHEMA("\"type\":\"object\",\"required\":[\"data\"],"
                            "\"properties\":{\"code\":true,"
                            "\"message\":true,\"data\":{"
                              "\"type\":\"object\","
                              "\"required\":[\"elicitations\"],"
                              "\"properties\":{\"elicitations\":{"
                                "\"type\":\"array\",\"minItems\":1,"
                                "\"maxItems\":64,\"items\":{"
                                  "\"required\":[\"mode\","
                                    "\"elicitationId\"],"
                                  "\"$ref\":\"#/$defs/url\"}}}}}")
};

static ngx_mcp_schema_t  *ngx_mcp_question_schemas[NGX_MCP_QUESTION_KINDS];

static ngx_str_t  ngx_mcp_question_id = ngx_string("elicitationId");


ngx_int_t
ngx_mcp_question_init(ngx_pool_t *pool)
{
    ngx_int_t        rc;
    ngx_str_t        err;
    ngx_uint_t       i;
    const char      *invalid;
    ngx_mcp_json_t   text;

    for (i = 0; i < NGX_MCP_QUESTION_KINDS; i++) {

        rc = ngx_mcp_json_parse(&ngx_mcp_question_texts[i], &text, &invalid);

        if (rc == NGX_OK) {
            rc = ngx_mcp_schema_compile(pool, &text, NULL,
                                        &ngx_mcp_question_schemas[i], &err);
        }

        if (rc != NGX_OK) {
            return NGX_ERROR;
        }
    }

    return NGX_OK;
}


ngx_int_t
ngx_mcp_question_check(ngx_pool_t *pool, ngx_uint_t kind,
    ngx_mcp_json_t *value, ngx_mcp_mismatch_t *mismatch)
{
    ngx_int_t            rc;
    ngx_mcp_json_t       key, question, params;
    ngx_mcp_json_iter_t  it;

    rc = ngx_mcp_schema_validate(ngx_mcp_question_schemas[kind], pool, value,
                                 mismatch);

    if (kind == NGX_MCP_QUESTION_ONE) {

        if (rc == NGX_OK && ngx_mcp_question_is_url(value, &params)) {
            rc = ngx_mcp_question_check_url(pool, value, &params, mismatch);
        }

        return rc;
    }

    if (rc != NGX_OK) {
        return rc;
    }

    ngx_mcp_question_iter(&it, kind, value);

    while (rc == NGX_OK
           && ngx_mcp_json_next(&it, &key, &question) == NGX_OK)
    {
        if (kind == NGX_MCP_QUESTION_ERROR) {
            rc = ngx_mcp_question_check_url(pool, value, &question, mismatch);

        } else if (ngx_mcp_question_is_url(&question, &params)) {
            rc = ngx_mcp_question_check_url(pool, value, &params, mismatch);
        }
    }

    return rc;
}


/* the questions of an object, or the URLs of an error */

static void
ngx_mcp_question_iter(ngx_mcp_json_iter_t *it, ngx_uint_t kind,
    ngx_mcp_json_t *value)
{
    ngx_mcp_json_t  links;

    if (kind == NGX_MCP_QUESTION_ERROR) {
        ngx_mcp_question_links(value, &links);
        value = &links;
    }

    ngx_mcp_json_iter(it, value);
}


static void
ngx_mcp_question_links(ngx_mcp_json_t *error, ngx_mcp_json_t *links)
{
    ngx_mcp_json_t    data;
    ngx_mcp_member_t  members[] = {
        { ngx_string("data"), &data }
    };
    ngx_mcp_member_t  members_of_data[] = {
        { ngx_string("elicitations"), links }
    };

    (void) ngx_mcp_json_members(error, members, 1);
    (void) ngx_mcp_json_members(&data, members_of_data, 1);
}


ngx_uint_t
ngx_mcp_question_is_error(ngx_mcp_json_t *error)
{
    int64_t           n;
    ngx_mcp_json_t    code;
    ngx_mcp_member_t  members[] = {
        { ngx_string("code"), &code }
    };

    return ngx_mcp_json_members(error, members, 1) == NGX_OK
           && ngx_mcp_json_integer(&code, &n) == NGX_OK
           && n == NGX_MCP_RPC_URL_REQUIRED;
}


void
ngx_mcp_question_of_error(ngx_mcp_out_t *out, ngx_mcp_json_t *error, uint64_t n)
{
    ngx_uint_t           i;
    ngx_mcp_json_t       links, params;
    ngx_mcp_json_iter_t  it;

    ngx_mcp_question_links(error, &links);

    ngx_mcp_out_lit(out, "{");
    ngx_mcp_json_iter(&it, &links);

    for (i = 1; ngx_mcp_json_next(&it, NULL, &params) == NGX_OK; i++) {

        if (i > 1) {
            ngx_mcp_out_lit(out, ",");
        }

        ngx_mcp_out_lit(out, "\"url-");
        ngx_mcp_out_number(out, n);
        ngx_mcp_out_lit(out, "-");
        ngx_mcp_out_number(out, i);
        ngx_mcp_out_lit(out, "\":{\"method\":\"elicitation/create\","
                             "\"params\":");
        ngx_mcp_out_str(out, &params.text);
        ngx_mcp_out_lit(out, "}");
    }

    ngx_mcp_out_lit(out, "}");
}


/* the params match the schema already */

static ngx_int_t
ngx_mcp_question_check_url(ngx_pool_t *pool, ngx_mcp_json_t *root,
    ngx_mcp_json_t *params, ngx_mcp_mismatch_t *mismatch)
{
    ngx_int_t         rc;
    ngx_str_t         text;
    ngx_mcp_json_t    url;
    ngx_mcp_member_t  members[] = {
        { ngx_string("url"), &url }
    };

    (void) ngx_mcp_json_members(params, members, 1);

    rc = ngx_mcp_json_string(pool, &url, &text);

    if (rc == NGX_OK && ngx_mcp_question_url(&text)) {
        return NGX_OK;
    }

    mismatch->keyword = NGX_MCP_QUESTION_URL;

    if (rc == NGX_ERROR
        || ngx_mcp_value_pointer(pool, root, url.text.data,
                                 &mismatch->pointer)
           != NGX_OK)
    {
        return NGX_ERROR;
    }

    return NGX_DECLINED;
}


ngx_uint_t
ngx_mcp_question_is_url(ngx_mcp_json_t *question, ngx_mcp_json_t *params)
{
    ngx_mcp_json_t    method, mode;
    ngx_mcp_member_t  members[] = {
        { ngx_string("method"), &method },
        { ngx_string("params"), params }
    };
    ngx_mcp_member_t  members_of_params[] = {
        { ngx_string("mode"), &mode }
    };
    static ngx_str_t  elicitation = ngx_string("elicitation/create");
    static ngx_str_t  url = ngx_string("url");

    (void) ngx_mcp_json_members(question, members, 2);

    if (method.type != NGX_MCP_JSON_STRING
        || !ngx_mcp_json_is(&method, &elicitation))
    {
        return 0;
    }

    (void) ngx_mcp_json_members(params, members_of_params, 1);

    return mode.type == NGX_MCP_JSON_STRING && ngx_mcp_json_is(&mode, &url);
}


/*
 * A URI of RFC 3986, and nothing that parsers of browsers read in another way:
 * no backslash, no characters that are not ASCII, a plain host.
 */

ngx_uint_t
ngx_mcp_question_url(ngx_str_t *url)
{
    u_char      *p, *end;
    ngx_str_t    host;
    ngx_uint_t   plain;

    p = url->data;
    end = p + url->len;

    if (url->len > 8 && ngx_strncasecmp(p, (u_char *) "https://", 8) == 0) {
        plain = 0;
        p += 8;

    } else if (url->len > 7
               && ngx_strncasecmp(p, (u_char *) "http://", 7) == 0)
    {
        plain = 1;
        p += 7;

    } else {
        return 0;
    }

    p = ngx_mcp_question_host(p, end, &host);

    if (p) {
        p = ngx_mcp_question_port(p, end);
    }

    if (p == NULL || (plain && !ngx_mcp_question_loopback(&host))) {
        return 0;
    }

    for ( /* void */ ; p < end; p++) {

        if (*p == '%') {
            if (end - p < 3 || ngx_hextoi(p + 1, 2) == NGX_ERROR) {
                return 0;
            }

            continue;
        }

        if (*p <= ' ' || *p >= 0x7f || ngx_strchr("\"<>\\^`{|}", *p)) {
            return 0;
        }
    }

    return 1;
}


/* the end of the host: of a name, an IPv4 address, or an IPv6 address */

static u_char *
ngx_mcp_question_host(u_char *p, u_char *end, ngx_str_t *host)
{
    u_char  ch;

    host->data = p;

    if (p < end && *p == '[') {

        for (p++; p < end; p++) {
            ch = (u_char) (*p | 0x20);

            if (!(*p >= '0' && *p <= '9') && !(ch >= 'a' && ch <= 'f')
                && *p != ':' && *p != '.')
            {
                break;
            }
        }

        if (p == end || *p != ']' || p - host->data < 3) {
            return NULL;
        }

        p++;

    } else {

        for ( /* void */ ; p < end; p++) {
            ch = (u_char) (*p | 0x20);

            if (!(*p >= '0' && *p <= '9') && !(ch >= 'a' && ch <= 'z')
                && *p != '.' && *p != '-' && *p != '_')
            {
                break;
            }
        }

        if (p == host->data || *host->data == '.') {
            return NULL;
        }
    }

    host->len = p - host->data;

    return p;
}


/* the end of the authority; what is not a port, such as "@", is an error */

static u_char *
ngx_mcp_question_port(u_char *p, u_char *end)
{
    u_char     *digits;
    ngx_int_t   port;

    if (p < end && *p == ':') {
        digits = ++p;

        while (p < end && *p >= '0' && *p <= '9') {
            p++;
        }

        port = (p - digits <= 5) ? ngx_atoi(digits, p - digits) : NGX_ERROR;

        if (port == NGX_ERROR || port == 0 || port > 65535) {
            return NULL;
        }
    }

    return (p == end || *p == '/' || *p == '?' || *p == '#') ? p : NULL;
}


static ngx_uint_t
ngx_mcp_question_loopback(ngx_str_t *host)
{
    u_char      *p, *end, *digits;
    ngx_int_t    n;
    ngx_uint_t   parts;

    if (host->len == 9
        && ngx_strncasecmp(host->data, (u_char *) "localhost", 9) == 0)
    {
        return 1;
    }

    if (host->len == 5 && ngx_strncmp(host->data, "[::1]", 5) == 0) {
        return 1;
    }

    p = host->data;
    end = p + host->len;

    if (host->len < 4 || ngx_strncmp(p, "127.", 4) != 0) {
        return 0;
    }

    for (parts = 0; p < end; parts++) {

        if (parts && *p++ != '.') {
            return 0;
        }

        digits = p;

        while (p < end && *p >= '0' && *p <= '9') {
            p++;
        }

        n = (p - digits <= 3) ? ngx_atoi(digits, p - digits) : NGX_ERROR;

        if (n == NGX_ERROR || n > 255) {
            return 0;
        }
    }

    return parts == 4;
}


void
ngx_mcp_question_modern(ngx_mcp_out_t *out, ngx_str_t *requests,
    ngx_uint_t can)
{
    u_char               *p;
    ngx_uint_t            n;
    ngx_mcp_json_t        all, key, question, params, id;
    ngx_mcp_json_iter_t   it;
    ngx_mcp_member_t      members[] = {
        { ngx_string("elicitationId"), &id }
    };

    all.type = NGX_MCP_JSON_OBJECT;
    all.text = *requests;

    n = 0;
    ngx_mcp_out_lit(out, "{");
    ngx_mcp_json_iter(&it, &all);

    while (ngx_mcp_json_next(&it, &key, &question) == NGX_OK) {

        if (!ngx_mcp_question_is_for(&question, can)) {
            continue;
        }

        if (n++) {
            ngx_mcp_out_lit(out, ",");
        }

        ngx_mcp_out_str(out, &key.text);
        ngx_mcp_out_lit(out, ":");

        if (!ngx_mcp_question_is_url(&question, &params)
            || (ngx_mcp_json_members(&params, members, 1) == NGX_OK
                && id.type == NGX_MCP_JSON_NONE))
        {
            ngx_mcp_out_str(out, &question.text);
            continue;
        }

        p = question.text.data;
        ngx_mcp_out_add(out, p, params.text.data - p);
        ngx_mcp_question_without_id(out, &params);
        p = params.text.data + params.text.len;
        ngx_mcp_out_add(out, p, question.text.data + question.text.len - p);
    }

    ngx_mcp_out_lit(out, "}");
}


static void
ngx_mcp_question_without_id(ngx_mcp_out_t *out, ngx_mcp_json_t *params)
{
    ngx_uint_t           n;
    ngx_mcp_json_t       key, value;
    ngx_mcp_json_iter_t  it;

    n = 0;

    ngx_mcp_out_lit(out, "{");
    ngx_mcp_json_iter(&it, params);

    while (ngx_mcp_json_next(&it, &key, &value) == NGX_OK) {

        if (ngx_mcp_json_is(&key, &ngx_mcp_question_id)) {
            continue;
        }

        if (n++) {
            ngx_mcp_out_lit(out, ",");
        }

        ngx_mcp_out_str(out, &key.text);
        ngx_mcp_out_lit(out, ":");
        ngx_mcp_out_str(out, &value.text);
    }

    ngx_mcp_out_lit(out, "}");
}
