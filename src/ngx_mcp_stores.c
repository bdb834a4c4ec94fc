
/* The kinds of stores that were built in. */


#include "ngx_mcp_store.h"
#include "ngx_mcp_stored.h"


ngx_mcp_store_t  *ngx_mcp_stores[] = {
#if (NGX_MCP_STORED)
    &ngx_mcp_sqlite_store,
#endif
    NULL
};
