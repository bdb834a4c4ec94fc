
/*
 * Copyright (C) The nginx-mcp-tasks authors
 */


/*
 * JSON Schema: keywords, numbers, limits, errors; and the official test suite
 * of 2020-12, which tools/fetch-schema-suite.sh puts into build/dist.
 */


#define PCRE2_CODE_UNIT_WIDTH  8

#include "libtest.h"
#include "ngx_mcp_schema.h"
#include "ngx_mcp_pattern.h"

#include <dirent.h>
#include <stdio.h>
#include <pcre2.h>


/* of 1257 cases; docs/dependencies.md says which 53 do not apply */
#define SUITE        "build/dist/schema-suite"
#define SUITE_RUN    1204


static void
regex_free(void *data)
{
    pcre2_code_free(data);
}


static ngx_int_t
regex_compile(ngx_pool_t *pool, ngx_str_t *pattern, void **re, ngx_str_t *err)
{
    int                  code;
    size_t               offset;
    ngx_str_t            pcre;
    const char          *what;
    ngx_pool_cleanup_t  *cln;

    what = ngx_mcp_pattern_pcre(pool, pattern, &pcre);

    if (what) {
        *err = str(what);
        return NGX_ERROR;
    }

    *re = pcre2_compile(pcre.data, pcre.len, 0, &code, &offset, NULL);

    if (*re == NULL) {
        err->data = ngx_palloc(pool, 256);
        err->len = pcre2_get_error_message(code, err->data, 256);
        return NGX_ERROR;
    }

    cln = ngx_pool_cleanup_add(pool, 0);

    if (cln == NULL) {
        pcre2_code_free(*re);
        return NGX_ERROR;
    }

    cln->handler = regex_free;
    cln->data = *re;

    return NGX_OK;
}


static ngx_int_t
regex_match(void *regex, ngx_str_t *s)
{
    int                rc;
    pcre2_match_data  *data;

    data = pcre2_match_data_create(1, NULL);
    rc = pcre2_match(regex, s->data, s->len, 0, 0, data, NULL);
    pcre2_match_data_free(data);

    return (rc >= 0) ? NGX_OK
                     : (rc == PCRE2_ERROR_NOMATCH) ? NGX_DECLINED : NGX_ABORT;
}


static ngx_mcp_schema_regex_t  regex = { regex_compile, regex_match };


static ngx_mcp_schema_t *
compile(const char *text)
{
    ngx_str_t          err;
    ngx_mcp_json_t     json;
    ngx_mcp_schema_t  *schema;

    json = test_json(text);

    if (ngx_mcp_schema_compile(test_pool, &json, &regex, &schema, &err)
        != NGX_OK)
    {
        diag("%s: %.*s", text, (int) err.len, err.data);
        return NULL;
    }

    return schema;
}


/* "" if it matches, else where and why not */

static const char *
mismatch(ngx_mcp_schema_t *schema, const char *text)
{
    u_char              *p;
    ngx_mcp_json_t       json;
    ngx_mcp_mismatch_t   m;

    if (schema == NULL) {
        return "no schema";
    }

    json = test_json(text);

    switch (ngx_mcp_schema_validate(schema, test_pool, &json, &m)) {

    case NGX_OK:
        return "";

    case NGX_DECLINED:
        p = ngx_pnalloc(test_pool, 1024);
        (void) ngx_snprintf(p, 1024, "%V: %s%s%V%Z", &m.pointer, m.keyword,
                            m.name.len ? " " : "", &m.name);
        return (char *) p;

    case NGX_ABORT:
        return "too complex";

    default:
        return "no memory";
    }
}


static void
test_mismatches(void)
{
    ngx_uint_t   i;
    const char  *got;
    static struct {
        const char  *schema;
        const char  *value;
        const char  *want;
    } cases[] = {
        { "true", "1", "" },
        { "false", "1", ": " },
        { "{}", "{\"a\":1}", "" },
        { "{\"type\":\"object\"}", "[]", ": type" },
        { "{\"required\":[\"a\",\"b\"]}", "{\"a\":1}", ": required b" },
        { "{\"properties\":{\"a\":{\"type\":\"string\"}}}",
          " { \"a\" : 1 } ", "/a: type" },
        { "{\"properties\":{\"a~/b\":{\"items\":{\"const\":1}}}}",
          "{\"x\":[2],\"a~/b\":[1,1,2]}", "/a~0~1b/2: const" },
        { "{\"properties\":{\"\\u00e9\":false}}", "{\"\\u00E9\":1}",
          "/\xc3\xa9: properties" },
        { "{\"additionalProperties\":false}", "{\"a\\u0000\\ud800\":1}",
          "/a" },
        { "{\"propertyNames\":{\"maxLength\":2}}", "{\"ab\":1,\"abc\":2}",
          "/abc: maxLength" },
        { "{\"properties\":{\"a\":{}}}", "{\"a\":1,\"\\u0061\":2}",
          "/a: properties" },
        { "{\"dependentRequired\":{\"a\":[\"b\"]}}", "{\"a\":1}",
          ": dependentRequired b" },
        { "{\"anyOf\":[{\"type\":\"string\"},{\"required\":[\"x\"]}]}", "{}",
          ": anyOf" },
        { "{\"allOf\":[{\"type\":\"object\"},{\"required\":[\"x\"]}]}", "{}",
          ": required x" },
        { "{\"not\":{\"required\":[\"x\"]}}", "{\"x\":1}", ": not" },
        { "{\"if\":{\"required\":[\"x\"]},\"then\":{\"required\":[\"y\"]}}",
          "{\"x\":1}", ": required y" },
        { "{\"items\":{\"$ref\":\"#/$defs/s\"},"
          "\"$defs\":{\"s\":{\"type\":\"string\"}}}",
          "[\"a\",[{\"a\":[]}]]", "/1: type" },
        { "{\"items\":{\"uniqueItems\":true}}",
          "[[1,2],[1,[],\"1\",{\"a\":[1.0]},{\"\\u0061\":[1]}]]",
          "/1: uniqueItems" },
        { "{\"unevaluatedProperties\":false,\"properties\":{\"a\":true}}",
          "{\"a\":1,\"b\":2}", "/b: unevaluatedProperties" },
        { "{\"prefixItems\":[{}],\"unevaluatedItems\":{\"type\":\"null\"}}",
          "[1,null,{}]", "/2: type" },
        { "{\"minLength\":2,\"maxLength\":2}", "\"\\ud83d\\ude00\"",
          ": minLength" },
        { "{\"minLength\":2,\"maxLength\":2}", "\"\\ud83d\\n\"", "" },
        { "{\"maxLength\":2}", "\"\xf0\x9f\x98\x80\xf0\x9f\x98\x80\"", "" },
        { "{\"maxLength\":1e99}", "\"a\"", "" },
        { "{\"enum\":[\"a\\/b\",{\"x\":[1e2],\"y\":null}]}", "\"\\u0061/b\"",
          "" },
        { "{\"enum\":[\"a\",{\"x\":[1e2],\"y\":null}]}",
          "{\"y\":null,\"x\":[100]}", "" },
        { "{\"pattern\":\"^a.c$\"}", "\"a\\u00e9c\"", "" },
        { "{\"pattern\":\"^a.c$\"}", "\"abc\\n\"", ": pattern" },
        { "{\"pattern\":\"^\\\\u{1f600}\\\\ud83d\\\\ude00[^]$\"}",
          "\"\\ud83d\\ude00\\ud83d\\ude00\\n\"", "" },
        { "{\"pattern\":\"^\\\\S\\\\s[\\\\s]\\\\v$\"}",
          "\"a\\u00a0\\u3000\\u000b\"", "" }
    };

    for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        got = mismatch(compile(cases[i].schema), cases[i].value);

        ok(ngx_strncmp(got, cases[i].want, ngx_strlen(cases[i].want)) == 0
           && (cases[i].want[0] || got[0] == '\0'),
           "%s, %s: \"%s\"", cases[i].schema, cases[i].value, got);
    }
}


static void
test_numbers(void)
{
    u_char       schema[256];
    ngx_uint_t   i;
    static struct {
        const char  *keyword;
        const char  *number;
        const char  *value;
        ngx_uint_t   valid;
    } cases[] = {
        { "minimum", "1e400", "1e400", 1 },
        { "minimum", "1e400", "9.99e399", 0 },
        { "minimum", "-1e1000000000", "-1e1000000001", 0 },
        { "minimum", "-1e1000000000", "1e-1000000001", 1 },
        { "maximum", "9007199254740993", "9007199254740993.0", 1 },
        { "maximum", "9007199254740993", "9007199254740993.00001", 0 },
        { "maximum", "9007199254740993", "9007199254740992.9", 1 },
        { "maximum", "0", "-0.0", 1 },
        { "maximum", "0", "1e-9999999999999999999999", 0 },
        { "minimum", "0", "-1e-9999999999999999999999", 0 },
        { "maximum", "1e999999999999999", "1e1000000000000000", 0 },
        { "maximum", "1e999999999999999", "1e-1000000000000000", 1 },
        { "exclusiveMaximum", "0.1", "0.1", 0 },
        { "exclusiveMaximum", "0.1", "0.09999999999999999999999", 1 },
        { "exclusiveMinimum", "-1.5", "-15e-1", 0 },
        { "exclusiveMinimum", "-1.5", "-1.4999999999999999999999", 1 },
        { "exclusiveMinimum", "100", "100.00000000000000000000001", 1 },
        { "multipleOf", "0.1", "0.3", 1 },
        { "multipleOf", "0.1", "123456789012345678901234567890.7", 1 },
        { "multipleOf", "0.01", "4.35", 1 },
        { "multipleOf", "0.01", "4.355", 0 },
        { "multipleOf", "3", "1e1000000000", 0 },
        { "multipleOf", "8", "1e1000000000", 1 },
        { "multipleOf", "3", "123456789012345678901234567890", 1 },
        { "multipleOf", "3", "123456789012345678901234567891", 0 },
        { "multipleOf", "999999999999999999", "1999999999999999998", 1 },
        { "multipleOf", "999999999999999999", "1999999999999999997", 0 },
        { "multipleOf", "1e10", "1e9", 0 },
        { "multipleOf", "1e-400", "1", 1 },
        { "multipleOf", "7", "0e5", 1 },
        { "multipleOf", "7", "-49", 1 },
        { "const", "1e400", "10e399", 1 },
        { "const", "12345678901234567890", "12345678901234567891", 0 }
    };

    for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        (void) ngx_sprintf(schema, "{\"%s\":%s}%Z", cases[i].keyword,
                           cases[i].number);
        is(mismatch(compile((char *) schema), cases[i].value)[0] == '\0',
           cases[i].valid, "%s, %s", schema, cases[i].value);
    }

    ok(mismatch(compile("{\"type\":\"integer\"}"), "1e1000000000")[0] == '\0',
       "1e1000000000 is an integer");
    ok(mismatch(compile("{\"type\":\"integer\"}"), "1.50e1")[0] == '\0',
       "1.50e1 is an integer");
    ok(mismatch(compile("{\"type\":\"integer\"}"), "1.55e1")[0] != '\0',
       "1.55e1 is not");
    ok(mismatch(compile("{\"type\":\"integer\"}"), "1e-99999999999999999")[0]
       != '\0', "nor is 1e-99999999999999999");
}


static void
test_errors(void)
{
    ngx_str_t          err;
    ngx_uint_t         i;
    ngx_mcp_json_t     json;
    ngx_mcp_schema_t  *schema;
    static struct {
        const char  *schema;
        const char  *err;
    } cases[] = {
        { "1", "\"#\" must be a schema: an object or a boolean" },
        { "{\"type\":\"int\"}", "\"#/type\" must be the name of a type" },
        { "{\"type\":[\"null\",1]}", "\"#/type/1\" must be the name" },
        { "{\"properties\":{\"a/b\":{\"minLength\":-1}}}",
          "\"#/properties/a~1b/minLength\" must be a non-negative integer" },
        { "{\"maxItems\":1.5}", "\"#/maxItems\" must be a non-negative" },
        { "{\"minimum\":\"1\"}", "\"#/minimum\" must be a number" },
        { "{\"minimum\":1e1234567890123456}", "\"#/minimum\" must be a" },
        { "{\"multipleOf\":0}", "\"#/multipleOf\" must be a number greater" },
        { "{\"multipleOf\":1234567890123456789}", "\"#/multipleOf\" must be" },
        { "{\"required\":\"a\"}", "\"#/required\" must be an array" },
        { "{\"required\":[1]}", "\"#/required/0\" must be a string" },
        { "{\"allOf\":[]}", "\"#/allOf\" must be a non-empty array" },
        { "{\"items\":[{}]}", "\"#/items\" must be a schema" },
        { "{\"enum\":1}", "\"#/enum\" must be an array" },
        { "{\"pattern\":\"(\"}", "\"#/pattern\" is not a valid pattern: " },
        { "{\"pattern\":\"(*LIMIT_MATCH=1)\"}",
          "\"#/pattern\" is not a valid pattern: a group that" },
        { "{\"pattern\":\"\\\\Aa\"}",
          "\"#/pattern\" is not a valid pattern: an escape that" },
        { "{\"patternProperties\":{\"[\":{}}}",
          "\"#/patternProperties/[\" is not a valid pattern: " },
        { "{\"$ref\":\"https://example.com/a\"}",
          "\"#/$ref\" refers to another document" },
        { "{\"items\":{\"$ref\":\"other.json#/a\"}}",
          "\"#/items/$ref\" refers to another document" },
        { "{\"$ref\":\"#/$defs/a\"}",
          "\"#/$ref\" refers to a missing location" },
        { "{\"$ref\":\"#a\"}", "\"#/$ref\" refers to a missing anchor" },
        { "{\"$ref\":\"#\"}", "\"#\" applies itself to the same value" },
        { "{\"$defs\":{\"a\":{\"$ref\":\"#/$defs/b\"},"
          "\"b\":{\"anyOf\":[{\"$ref\":\"#/$defs/a\"}]}}}",
          "\"#/$defs/a\" applies itself to the same value" },
        { "{\"$schema\":\"http://json-schema.org/draft-07/schema#\"}",
          "\"#/$schema\" must be " },
        { "{\"$anchor\":\"a\",\"items\":{\"$anchor\":\"a\"}}",
          "\"#/items/$anchor\" is duplicate" },
        { "{\"$id\":\"a#b\"}", "\"#/$id\" must be a URI without a fragment" }
    };

    for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        json = test_json(cases[i].schema);

        is(ngx_mcp_schema_compile(test_pool, &json, &regex, &schema, &err),
           NGX_DECLINED, "%s", cases[i].schema);
        ok(err.len >= ngx_strlen(cases[i].err)
           && ngx_strncmp(err.data, cases[i].err, ngx_strlen(cases[i].err))
              == 0, "%.*s", (int) err.len, err.data);
    }

    json = test_json("{\"items\":{\"pattern\":\"a\"}}");
    is(ngx_mcp_schema_compile(test_pool, &json, NULL, &schema, &err),
       NGX_DECLINED, "a pattern without PCRE");
    ok(err.len && ngx_strstrn(err.data, "#/items/pattern", 14) != NULL,
       "%.*s", (int) err.len, err.data);
}


/* an array of first, and of so many numbers down to 0 */

static char *
numbers(const char *first, ngx_uint_t count)
{
    char  *s, *p;

    s = ngx_palloc(test_pool, ngx_strlen(first) + 2 + count * 8);
    p = s + sprintf(s, "[%s", first);

    while (count--) {
        p += sprintf(p, ",%d", (int) count);
    }

    sprintf(p, "]");

    return s;
}


static void
test_limits(void)
{
    char  *a;

    /* a schema that doubles its work with each level */

    ok(ngx_strcmp(mismatch(compile("{\"$defs\":{"
          "\"a\":{\"oneOf\":[{\"$ref\":\"#/$defs/b\"},"
          "{\"$ref\":\"#/$defs/b\"}]},"
          "\"b\":{\"items\":{\"oneOf\":[{\"$ref\":\"#/$defs/a\"},"
          "{\"$ref\":\"#/$defs/a\"},{\"$ref\":\"#/$defs/a\"}]},"
          "\"not\":{\"$ref\":\"#/$defs/c\"}},"
          "\"c\":{\"items\":{\"anyOf\":[{\"$ref\":\"#/$defs/b\"},"
          "{\"$ref\":\"#/$defs/a\"}]}}},\"$ref\":\"#/$defs/a\"}"),
          "[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]"),
       "too complex") == 0, "an exponential schema is stopped");

    /* catastrophic backtracking */

    ok(ngx_strcmp(mismatch(compile("{\"pattern\":\"^(a+)+$\"}"),
                           "\"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaab\""),
       "too complex") == 0, "so is an exponential pattern");

    a = numbers("-1", 100000);
    ok(mismatch(compile("{\"uniqueItems\":true}"), a)[0] == '\0',
       "100000 items are unique");
    a = numbers("0.0", 100000);
    ok(ngx_strcmp(mismatch(compile("{\"uniqueItems\":true}"), a),
                  ": uniqueItems") == 0, "or not");
}


/* cases of the suite that do not apply: all of a file, or of a group */

static struct {
    const char  *file;
    const char  *group;     /* NULL: all */
    const char  *why;
} others[] = {
    { "refRemote.json", NULL, "remote references are errors" },
    { "vocabulary.json", NULL, "metaschemas of their own are not supported" },
    { "defs.json", NULL, "refers to the metaschema" },
    { "ref.json", "remote ref, containing refs itself",
      "refers to the metaschema" },
    { "dynamicRef.json",
      "strict-tree schema, guards against misspelled properties",
      "remote references are errors" },
    { "dynamicRef.json",
      "tests for implementation dynamic anchor and reference link",
      "remote references are errors" },
    { "dynamicRef.json",
      "$ref and $dynamicAnchor are independent of order - $defs first",
      "remote references are errors" },
    { "dynamicRef.json",
      "$ref and $dynamicAnchor are independent of order - $ref first",
      "remote references are errors" },
    { "dynamicRef.json",
      "$ref to $dynamicRef finds detached $dynamicAnchor",
      "remote references are errors" },
    { NULL, NULL, NULL }
};


static const char *
not_applicable(const char *file, ngx_str_t *group)
{
    ngx_uint_t  i;

    for (i = 0; others[i].file; i++) {
        if (ngx_strcmp(others[i].file, file) == 0
            && (others[i].group == NULL
                || (group->len == ngx_strlen(others[i].group)
                    && ngx_strncmp(group->data, others[i].group, group->len)
                       == 0)))
        {
            return others[i].why;
        }
    }

    return NULL;
}


static ngx_str_t
read_file(const char *name)
{
    char       path[512];
    FILE      *f;
    ngx_str_t  s;

    sprintf(path, "%s/%s", SUITE, name);
    s.data = ngx_palloc(test_pool, 1024 * 1024);
    s.len = 0;

    f = fopen(path, "r");

    if (f) {
        s.len = fread(s.data, 1, 1024 * 1024, f);
        fclose(f);
    }

    return s;
}


/* one schema, and the values to try it with; returns how many */

static ngx_uint_t
suite_group(const char *file, ngx_mcp_json_t *group)
{
    ngx_int_t             rc;
    ngx_str_t             name, err;
    ngx_uint_t            n;
    const char           *why;
    ngx_mcp_json_t        text, title, tests, test, about, data, valid;
    ngx_mcp_schema_t     *schema;
    ngx_mcp_mismatch_t    m;
    ngx_mcp_json_iter_t   it;
    ngx_mcp_member_t      members[] = {
        { ngx_string("schema"), &text },
        { ngx_string("description"), &title },
        { ngx_string("tests"), &tests }
    };
    ngx_mcp_member_t      inner[] = {
        { ngx_string("description"), &about },
        { ngx_string("data"), &data },
        { ngx_string("valid"), &valid }
    };

    ngx_mcp_json_members(group, members, 3);
    ngx_mcp_json_string(test_pool, &title, &name);

    why = not_applicable(file, &name);

    if (why) {
        diag("not applicable: %s, %.*s: %s", file, (int) name.len, name.data,
             why);
        return 0;
    }

    n = 0;
    rc = ngx_mcp_schema_compile(test_pool, &text, &regex, &schema, &err);
    ok(rc == NGX_OK, "%s: %.*s %.*s", file, (int) name.len, name.data,
       (int) err.len, err.data);

    if (rc != NGX_OK) {
        return 0;
    }

    ngx_mcp_json_iter(&it, &tests);

    while (ngx_mcp_json_next(&it, NULL, &test) == NGX_OK) {
        ngx_mcp_json_members(&test, inner, 3);

        rc = ngx_mcp_schema_validate(schema, test_pool, &data, &m);
        is(rc, valid.type == NGX_MCP_JSON_TRUE ? NGX_OK : NGX_DECLINED,
           "%s: %.*s: %.*s", file, (int) name.len, name.data,
           (int) about.text.len, about.text.data);
        n++;
    }

    return n;
}


static void
test_suite(void)
{
    DIR                  *dir;
    ngx_str_t             text;
    ngx_uint_t            n;
    const char           *err;
    struct dirent        *entry;
    ngx_mcp_json_t        groups, group;
    ngx_mcp_json_iter_t   it;

    dir = opendir(SUITE);
    n = 0;

    while (dir && (entry = readdir(dir)) != NULL) {

        if (strstr(entry->d_name, ".json") == NULL) {
            continue;
        }

        text = read_file(entry->d_name);

        if (ngx_mcp_json_parse(&text, &groups, &err) != NGX_OK) {
            ok(0, "%s is not JSON: %s", entry->d_name, err);
            continue;
        }

        ngx_mcp_json_iter(&it, &groups);

        while (ngx_mcp_json_next(&it, NULL, &group) == NGX_OK) {
            n += suite_group(entry->d_name, &group);
        }
    }

    if (dir) {
        closedir(dir);
    }

    ok(n >= SUITE_RUN, "%d cases of the official suite in " SUITE, (int) n);
}


int
main(void)
{
    test_pool = ngx_create_pool(65536, ngx_cycle->log);

    test_mismatches();
    test_numbers();
    test_errors();
    test_limits();
    test_suite();

    ngx_destroy_pool(test_pool);

    return done_testing();
}
