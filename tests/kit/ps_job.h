/* SPDX-License-Identifier: Apache-2.0 */
/* tests/kit/ps_job.h - a job for tests of a ps alone: one variable "w" in slices of equal size, all
 * of them on ps 0, with first values on a disk in memory.
 *
 * What fails here is a mistake of the test or the end of memory, and ends the program. */
#ifndef WF_TESTS_KIT_PS_JOB_H
#define WF_TESTS_KIT_PS_JOB_H

#include "common/base/disk.h"
#include "common/wire/control.pb-c.h"
#include <stdint.h>

enum { WF_PS_JOB_SLICES = 64 };

typedef struct wf_ps_job {
    Weft__Setup setup; /* of job "job" below /ckpt; points into this struct */
    Weft__Variable variable, *variables[1];
    Weft__Slice rows[WF_PS_JOB_SLICES], *slices[WF_PS_JOB_SLICES];
    int64_t dims[1];
} wf_ps_job;

/* Fills a job of `slices` slices (at most WF_PS_JOB_SLICES) of `each` elements, with a rule's
 * default options. It must not move afterwards. */
void wf_ps_job_init(wf_ps_job *j, uint32_t slices, uint32_t each, const char *rule);
/* Writes its first values, [slices * each]; NULL: zeroes. */
void wf_ps_job_write(const wf_ps_job *j, wf_disk *disk, const float values[]);

#endif
