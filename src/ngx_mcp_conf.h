
/*
 * Copyright (C) The nginx-mcp-tasks authors
 */


/*
 * The configuration of the module: zones, surfaces and settings of locations.
 */


#ifndef _NGX_MCP_CONF_H_INCLUDED_
#define _NGX_MCP_CONF_H_INCLUDED_


#include "ngx_mcp_http_types.h"


typedef struct {
    ngx_array_t  zones;     /* of ngx_mcp_zone_t * */
    ngx_array_t  locals;    /* of ngx_mcp_local_t *, one for each zone */
} ngx_mcp_main_conf_t;


/* settings of a location; ngx_mcp_conf.c */

void *ngx_mcp_create_loc_conf(ngx_conf_t *cf);
char *ngx_mcp_merge_loc_conf(ngx_conf_t *cf, void *parent, void *child);
char *ngx_mcp_set_owner(ngx_conf_t *cf, ngx_command_t *cmd, void *conf);
char *ngx_mcp_set_tools(ngx_conf_t *cf, ngx_command_t *cmd, void *conf);
char *ngx_mcp_set_origin(ngx_conf_t *cf, ngx_command_t *cmd, void *conf);
char *ngx_mcp_set_client_policy(ngx_conf_t *cf, ngx_command_t *cmd,
    void *conf);
char *ngx_mcp_set_args(ngx_conf_t *cf, ngx_command_t *cmd, void *conf);

/* the directives that make a location a surface; ngx_mcp_surfaces.c */

char *ngx_mcp_set_endpoint(ngx_conf_t *cf, ngx_command_t *cmd, void *conf);
char *ngx_mcp_set_worker(ngx_conf_t *cf, ngx_command_t *cmd, void *conf);
char *ngx_mcp_set_status(ngx_conf_t *cf, ngx_command_t *cmd, void *conf);
char *ngx_mcp_set_console(ngx_conf_t *cf, ngx_command_t *cmd, void *conf);
ngx_int_t ngx_mcp_conf_merge_surface(ngx_conf_t *cf, ngx_mcp_loc_conf_t *prev,
    ngx_mcp_loc_conf_t *conf);

/* mcp_tasks_zone, and the "zone=NAME" of a surface; ngx_mcp_zone_conf.c */

char *ngx_mcp_set_zone(ngx_conf_t *cf, ngx_command_t *cmd, void *conf);
ngx_mcp_zone_t *ngx_mcp_zone_arg(ngx_conf_t *cf, ngx_str_t *value);


#endif /* _NGX_MCP_CONF_H_INCLUDED_ */
