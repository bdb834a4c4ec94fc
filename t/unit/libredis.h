
/* Random records, as they are in Redis. */


#ifndef _LIBREDIS_H_INCLUDED_
#define _LIBREDIS_H_INCLUDED_


#include "libtest.h"
#include "ngx_mcp_redis_record.h"


#define REDIS_NOW   1700000000000ULL
#define REDIS_REST  8192


uint64_t redis_random(uint64_t n);
ngx_uint_t redis_one_of(ngx_uint_t n);
void redis_record(ngx_mcp_redis_record_t *rr);


#endif /* _LIBREDIS_H_INCLUDED_ */
