
/*
 * Copyright (C) The nginx-mcp-tasks authors
 */


/* The stores that are built in. */


#include "ngx_mcp_store.h"
#include "ngx_mcp_sqlite.h"

#if (NGX_MCP_REDIS)
#include "ngx_mcp_redis.h"
#endif

#if (NGX_MCP_TEST)
#include "ngx_mcp_late.h"
#endif


ngx_mcp_store_t  *ngx_mcp_stores[] = {
#if (NGX_MCP_SQLITE_STORE)
    &ngx_mcp_sqlite_store,
#endif
#if (NGX_MCP_REDIS)
    &ngx_mcp_redis_store,
#endif
#if (NGX_MCP_TEST)
    &ngx_mcp_late_store,
#endif
    NULL
};
