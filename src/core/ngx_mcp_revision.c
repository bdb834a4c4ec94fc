
/*
 * Copyright (C) The nginx-mcp-tasks authors
 */


#include "ngx_mcp_revision.h"


ngx_mcp_revision_t  ngx_mcp_revisions[] = {
    { ngx_string("2026-07-28"), 4, 1, 0, 1, 0 },
    { ngx_string("2025-11-25"), 3, 0, 1, 1, 0 },
    { ngx_string("2025-06-18"), 2, 0, 0, 0, 0 },
    { ngx_string("2025-03-26"), 1, 0, 0, 0, 1 },
    { ngx_null_string, 0, 0, 0, 0, 0 }
};


/* NULL: the revision is not supported */

ngx_mcp_revision_t *
ngx_mcp_revision(ngx_str_t *name)
{
    ngx_mcp_revision_t  *rev;

    for (rev = ngx_mcp_revisions; rev->name.len; rev++) {
        if (rev->name.len == name->len
            && ngx_memcmp(rev->name.data, name->data, name->len) == 0)
        {
            return rev;
        }
    }

    return NULL;
}


/* NULL: the revision is not supported */

ngx_mcp_revision_t *
ngx_mcp_revision_of(ngx_uint_t number)
{
    ngx_mcp_revision_t  *rev;

    for (rev = ngx_mcp_revisions; rev->name.len; rev++) {
        if (rev->number == number) {
            return rev;
        }
    }

    return NULL;
}
