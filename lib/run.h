/* SPDX-License-Identifier: Apache-2.0 */
/* lib/run.h - one run of a file or a model, as the functions of weft.h say it. */
#ifndef WF_LIB_RUN_H
#define WF_LIB_RUN_H

#include "common/session/once.h"
#include "lib/lib.h"

extern const weft_run_options wf_lib_run_defaults;

typedef struct wf_lib_run {
    size_t n_feeds;
    const weft_feed *feeds;
    const weft_run_options *options; /* never NULL */
} wf_lib_run;
#define WF_LIB_RUN(n, feeds, options)                                                              \
    ((wf_lib_run){(n), (feeds), (options) ? (options) : &wf_lib_run_defaults})

/* Fills in what *o lacks, runs it and makes a list of the results. Errors: those of wf_once_run. */
WF_MUST_USE wf_status wf_lib_once(const wf_lib_run *run, wf_once *o, weft_list **out,
                                  char unfed[WF_UNFED_NAME], wf_err *err);
/* wf_lib_end, and the name of an input that was not fed. */
weft_code wf_lib_run_end(wf_status rc, const char *unfed, const wf_err *err, weft_error *error);

#endif
