
/* What tests of a database share: a zone, its way there and back. */


#ifndef _LIBSTORE_H_INCLUDED_
#define _LIBSTORE_H_INCLUDED_


#include "libtest.h"
#include "ngx_mcp_db.h"
#include "ngx_mcp_load.h"
#include "ngx_mcp_recover.h"


/* the wall clock stands still */
#define STORE_WALL  1700000000000ULL

#define STORE_SAVE(zone)  ngx_mcp_save_of((zone)->table)


typedef struct {
    ngx_mcp_zone_t  *zone;
    ngx_mcp_load_t   load;
} store_load_t;


extern ngx_mcp_db_t     store_db;
extern ngx_mcp_batch_t  store_batch;
extern char             store_path[128];


ngx_int_t store_begin(void);
void store_end(void);

void store_init(void);
void store_remove(void);
ngx_mcp_zone_t *store_zone(size_t size);
void store_tasks(ngx_mcp_zone_t *zone, ngx_mcp_id_t *id);

void store_collect(ngx_mcp_zone_t *zone);
ngx_uint_t store_save(ngx_mcp_zone_t *zone);
ngx_int_t store_load(store_load_t *l, size_t size);
ngx_int_t store_fill(store_load_t *l);

/* what another program reads and does */
int64_t store_number(const char *sql);
void store_execute(const char *sql);


#endif /* _LIBSTORE_H_INCLUDED_ */
