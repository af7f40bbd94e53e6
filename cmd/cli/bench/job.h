/* SPDX-License-Identifier: Apache-2.0 */
/* cmd/cli/bench/job.h - the job of a stage: one float32 variable, dense or a table, in slices on
 * all ps, from zeroes. */
#ifndef WF_CMD_CLI_BENCH_JOB_H
#define WF_CMD_CLI_BENCH_JOB_H

#include "cmd/cli/bench/stage.h"

/* Bytes of a slice of a variable: half of a ps's share between the bounds that jobs have, as
 * common/compile/place.c cuts it. */
size_t wf_bench_slice_bytes(const wf_bench_case *of);
/* Rows of a slice of a table, as common/compile/place.c cuts it. */
uint64_t wf_bench_slice_rows(const wf_bench_case *of);
/* Fills in s->start, without the ps of its view: they are not known yet. Errors: WF_NOMEM. */
WF_MUST_USE wf_status wf_bench_job_make(wf_bench_stage *s, wf_err *err);
/* A ps of the view. Errors: WF_NOMEM. */
WF_MUST_USE wf_status wf_bench_job_add(wf_bench_stage *s, wf_task task, uint64_t incarnation,
                                       wf_err *err);
/* Writes the first values where the ps read them. Errors: WF_IO. */
WF_MUST_USE wf_status wf_bench_job_write(const wf_bench_stage *s, wf_err *err);

#endif
