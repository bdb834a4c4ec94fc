
/*
 * Copyright (C) The nginx-mcp-tasks authors
 */


/* Functions of a job that its source files share. */


#ifndef _NGX_MCP_JOB_H_INCLUDED_
#define _NGX_MCP_JOB_H_INCLUDED_


#include "ngx_mcp_job_types.h"


/* ngx_mcp_job.c: events and timers */

ngx_int_t ngx_mcp_job_enter(ngx_mcp_job_t *job, ngx_uint_t event);
void ngx_mcp_job_post(ngx_mcp_job_t *job);
void ngx_mcp_job_over(ngx_mcp_job_t *job);
void ngx_mcp_job_wait(ngx_mcp_job_t *job, ngx_msec_t time);
void ngx_mcp_job_delay(ngx_mcp_job_t *job, ngx_msec_t time);
ngx_uint_t ngx_mcp_job_delayed(ngx_mcp_job_t *job);
void ngx_mcp_job_stay(ngx_mcp_job_t *job);

/* ngx_mcp_jobs.c: all jobs of a zone */

void ngx_mcp_jobs_line_up(ngx_mcp_job_t *job);
void ngx_mcp_jobs_tried(ngx_mcp_job_t *job, ngx_uint_t reason);

/* ngx_mcp_job_op.c: operations on the task, one at a time */

/* another operation is in progress, or has to be submitted first */
#define ngx_mcp_job_waits(job)  ((job)->busy || (job)->note)

ngx_int_t ngx_mcp_job_submit(ngx_mcp_job_t *job, ngx_mcp_op_t *op,
    ngx_mcp_job_pt answered);
void ngx_mcp_job_pending(ngx_mcp_job_t *job);
void ngx_mcp_job_pin(ngx_mcp_job_t *job);
ngx_int_t ngx_mcp_job_get(ngx_mcp_job_t *job, ngx_mcp_op_get_t *op,
    ngx_uint_t want, ngx_pool_t *pool);
ngx_mcp_op_update_t *ngx_mcp_job_change(ngx_mcp_job_t *job, ngx_uint_t event,
    ngx_pool_t *pool);
ngx_mcp_note_t *ngx_mcp_job_note_new(ngx_mcp_job_t *job, ngx_str_t *message);
void ngx_mcp_job_note(ngx_mcp_job_t *job, ngx_mcp_note_t *n);
void ngx_mcp_job_note_drop(ngx_mcp_job_t *job);

/* ngx_mcp_job_task.c: attempts and their results */

void ngx_mcp_job_attempt(ngx_mcp_job_t *job);
void ngx_mcp_job_complete(ngx_mcp_job_t *job, ngx_str_t *result,
    ngx_uint_t flags);
void ngx_mcp_job_error(ngx_mcp_job_t *job, ngx_str_t *error);
void ngx_mcp_job_failed(ngx_mcp_job_t *job);
void ngx_mcp_job_restart(ngx_mcp_job_t *job);
ngx_int_t ngx_mcp_job_orphaned(ngx_mcp_zone_t *zone, ngx_mcp_id_t *id);
ngx_uint_t ngx_mcp_job_unsaved(ngx_uint_t reason);
void ngx_mcp_job_end_submit(ngx_mcp_job_t *job);
void ngx_mcp_job_end_again(ngx_mcp_job_t *job);

/* ngx_mcp_job_send.c, ngx_mcp_job_notify.c: requests to the upstream */

ngx_int_t ngx_mcp_job_params(ngx_mcp_job_t *job, ngx_mcp_json_t *params);
void ngx_mcp_job_drop(ngx_mcp_job_t *job, ngx_pool_t *round_pool);
ngx_int_t ngx_mcp_job_send(ngx_mcp_job_t *job, ngx_str_t *responses);
ngx_int_t ngx_mcp_job_resume(ngx_mcp_job_t *job);
ngx_int_t ngx_mcp_job_notify(ngx_mcp_job_t *job, ngx_str_t *message,
    ngx_uint_t answer);
void ngx_mcp_job_notify_retry(ngx_mcp_job_t *job);
void ngx_mcp_job_notify_close(ngx_mcp_job_t *job);
void ngx_mcp_job_notify_free(ngx_mcp_job_t *job);
void ngx_mcp_job_cancel(ngx_mcp_job_t *job);
void ngx_mcp_job_repeat_attempt(ngx_mcp_job_t *job);

/* ngx_mcp_job_read.c: responses of the upstream */

extern ngx_mcp_reader_t  ngx_mcp_job_reader;
ngx_uint_t ngx_mcp_job_is_error(ngx_mcp_json_t *error);
void ngx_mcp_job_outcome(ngx_mcp_job_t *job, ngx_mcp_json_t *object);
ngx_uint_t ngx_mcp_job_connected(ngx_http_request_t *r);

/* ngx_mcp_job_follow.c: tasks of the upstream */

ngx_uint_t ngx_mcp_job_as_task(ngx_mcp_job_t *job, ngx_mcp_json_t *error);
ngx_uint_t ngx_mcp_job_follow(ngx_mcp_job_t *job, ngx_mcp_json_t *result);
void ngx_mcp_job_followed(ngx_mcp_job_t *job, ngx_mcp_json_t *result);
ngx_int_t ngx_mcp_job_follow_body(ngx_mcp_job_t *job, ngx_mcp_out_t *out,
    ngx_str_t *responses);
void ngx_mcp_job_follow_cancel(ngx_mcp_job_t *job);
void ngx_mcp_job_follow_clear(ngx_mcp_job_t *job);

/* ngx_mcp_job_ask.c: questions and answers */

void ngx_mcp_job_question(ngx_mcp_job_t *job, ngx_mcp_rpc_t *rpc);
void ngx_mcp_job_input_required(ngx_mcp_job_t *job, ngx_mcp_json_t *result);
void ngx_mcp_job_answer(ngx_mcp_job_t *job, ngx_str_t *id, const char *kind,
    ngx_str_t *value);
ngx_int_t ngx_mcp_job_questions(ngx_mcp_job_t *job, ngx_mcp_json_t *requests);
void ngx_mcp_job_round_ended(ngx_mcp_job_t *job);
void ngx_mcp_job_not_asked(ngx_mcp_job_t *job, ngx_uint_t failure);
void ngx_mcp_job_answered(ngx_mcp_job_t *job);
void ngx_mcp_job_withdrawn(ngx_mcp_job_t *job, ngx_mcp_json_t *params);
ngx_uint_t ngx_mcp_job_asks_pending(ngx_mcp_job_t *job);
void ngx_mcp_job_ask_pending(ngx_mcp_job_t *job);

/* ngx_mcp_job_check.c: checks of questions, and the error -32042 */

ngx_int_t ngx_mcp_job_check(ngx_mcp_job_t *job, ngx_uint_t kind,
    ngx_mcp_json_t *value);
ngx_uint_t ngx_mcp_job_refuses(ngx_mcp_job_t *job, ngx_str_t *id,
    ngx_str_t *request);
void ngx_mcp_job_refused(ngx_mcp_job_t *job, ngx_mcp_json_t *error);
ngx_uint_t ngx_mcp_job_accepted(ngx_mcp_json_t *answer);


#endif /* _NGX_MCP_JOB_H_INCLUDED_ */
