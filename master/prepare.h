/* SPDX-License-Identifier: Apache-2.0 */
/* master/prepare.h - a job's text compiled into what set-ups and starts begin with. */
#ifndef WF_MASTER_PREPARE_H
#define WF_MASTER_PREPARE_H

#include "master/master.h"

/* Parses and compiles a job for n_ps parameter servers; the caller owns *out.
 * Errors: those of the job file, with its line; of the compiler; of the optimizer's options. */
WF_MUST_USE wf_status wf_master_prepare(const char *text, const char *path, uint32_t n_ps,
                                        wf_prepared **out, wf_err *err);

#endif
