
/* What clients declare to answer, and what questions need. */


#include "libtest.h"
#include "ngx_mcp_capability.h"


#define FORM      NGX_MCP_CAN_FORM
#define URL       NGX_MCP_CAN_URL
#define SAMPLING  NGX_MCP_CAN_SAMPLING
#define TOOLS     NGX_MCP_CAN_TOOLS
#define ROOTS     NGX_MCP_CAN_ROOTS


static ngx_uint_t
can(const char *elicitation, const char *sampling, const char *roots,
    ngx_uint_t modes)
{
    ngx_mcp_json_t  e, s, r;

    e.type = NGX_MCP_JSON_NONE;
    s.type = NGX_MCP_JSON_NONE;
    r.type = NGX_MCP_JSON_NONE;

    if (elicitation) {
        e = test_json(elicitation);
    }

    if (sampling) {
        s = test_json(sampling);
    }

    if (roots) {
        r = test_json(roots);
    }

    return ngx_mcp_can(&e, &s, &r, modes);
}


static void
test_declared(void)
{
    is(can(NULL, NULL, NULL, 1), 0, "nothing");
    is(can("null", "true", "[]", 1), 0, "nothing that is an object");
    is(can("{}", NULL, NULL, 1), FORM, "an empty object means forms");
    is(can("{\"form\":{}}", NULL, NULL, 1), FORM, "form");
    is(can("{\"url\":{}}", NULL, NULL, 1), URL, "url alone");
    is(can("{\"url\":{},\"form\":{}}", NULL, NULL, 1), FORM | URL, "both");
    is(can("{\"url\":null}", NULL, NULL, 1), FORM, "url is not an object");
    is(can("{\"url\":{}}", NULL, NULL, 0), FORM,
       "a revision without modes has forms");
    is(can(NULL, "{}", NULL, 1), SAMPLING, "sampling");
    is(can(NULL, "{\"tools\":{}}", NULL, 1), SAMPLING | TOOLS, "with tools");
    is(can(NULL, "{\"tools\":{}}", NULL, 0), SAMPLING,
       "a revision without tools in sampling");
    is(can(NULL, NULL, "{\"listChanged\":true}", 1), ROOTS, "roots");
    is(can("{\"form\":{},\"url\":{}}", "{\"tools\":{}}", "{}", 1),
       NGX_MCP_CAN_ALL, "everything");
}


static ngx_uint_t
needs(const char *question)
{
    ngx_mcp_json_t  v;

    v = test_json(question);

    return ngx_mcp_question_needs(&v);
}


static void
test_needed(void)
{
    ngx_str_t  all, form;

    is(needs("{\"method\":\"elicitation/create\",\"params\":{}}"), FORM,
       "a question without a mode is a form");
    is(needs("{\"method\":\"elicitation/create\","
             "\"params\":{\"mode\":\"form\"}}"), FORM, "form");
    is(needs("{\"method\":\"elicitation/create\","
             "\"params\":{\"mode\":\"\\u0075rl\"}}"), URL, "url, escaped");
    is(needs("{\"method\":\"sampling/createMessage\",\"params\":{}}"),
       SAMPLING, "sampling");
    is(needs("{\"method\":\"sampling/createMessage\","
             "\"params\":{\"tools\":[]}}"), SAMPLING | TOOLS, "with tools");
    is(needs("{\"method\":\"sampling/createMessage\","
             "\"params\":{\"toolChoice\":{}}}"), SAMPLING | TOOLS,
       "with a choice of tools");
    is(needs("{\"method\":\"roots/list\"}"), ROOTS, "roots");
    is(needs("{\"method\":\"other\",\"params\":{}}"), 0,
       "of an old database: an unknown method");
    is(needs("{}"), 0, "no method");

    all = str("{\"a\":{\"method\":\"roots/list\"},"
              "\"b\":{\"method\":\"elicitation/create\",\"params\":{}}}");
    form = str("{\"b\":{\"method\":\"elicitation/create\",\"params\":{}}}");

    is(ngx_mcp_questions_need(&all), ROOTS | FORM, "what two questions need");
    is(ngx_mcp_questions_any(&all, FORM), 1, "one of them can be answered");
    is(ngx_mcp_questions_any(&all, URL | SAMPLING), 0, "none of them");
    is(ngx_mcp_questions_any(&form, ROOTS), 0, "not the only one");
}


static void
test_text(void)
{
    ok(ngx_mcp_can_text(0) == NULL, "nothing is missing");
    ok(ngx_strcmp(ngx_mcp_can_text(FORM), "\"elicitation\":{\"form\":{}}") == 0,
       "a form is missing");
    ok(ngx_strcmp(ngx_mcp_can_text(URL), "\"elicitation\":{\"url\":{}}") == 0,
       "a mode is missing");
    ok(ngx_strcmp(ngx_mcp_can_text(SAMPLING | TOOLS),
                  "\"sampling\":{\"tools\":{}}") == 0, "tools are missing");
    ok(ngx_strcmp(ngx_mcp_can_text(SAMPLING), "\"sampling\":{}") == 0,
       "sampling is missing");
    ok(ngx_strcmp(ngx_mcp_can_text(ROOTS), "\"roots\":{}") == 0,
       "roots are missing");
}


int
main(void)
{
    test_pool = ngx_create_pool(65536, ngx_cycle->log);

    test_declared();
    test_needed();
    test_text();

    return done_testing();
}
