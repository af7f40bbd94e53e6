/* SPDX-License-Identifier: Apache-2.0 */
/* lib/lib.h - what the files of libweft share: its handles, and the way from weft's errors and
 * tensors to those of weft.h. Nothing here leaves the library. */
#ifndef WF_LIB_LIB_H
#define WF_LIB_LIB_H

#include "common/base/status.h"
#include "common/conf/conf.h"
#include "common/data/learnt.h"
#include "common/data/memory.h"
#include "common/kernels/pool.h"
#include "common/session/predict.h"
#include "common/tensor/named.h"
#include "lib/weft.h"

/* ---- errors ---- */

/* Ends a call: hands its error over, or clears the caller's. */
weft_code wf_lib_end(wf_status rc, const wf_err *err, weft_error *error);
/* The same for an argument that is NULL and may not be. */
weft_code wf_lib_null(const char *function, const char *argument, weft_error *error);
#define WF_LIB_NEED(argument)                                                                      \
    do {                                                                                           \
        if (!(argument))                                                                           \
            return wf_lib_null(__func__, #argument, error);                                        \
    } while (0)

/* ---- tensors ---- */

/* A header over a tensor's memory, or a dense copy when it has strides; the caller owns *out.
 * `what` names it in messages. Errors: WF_INVALID, WF_SHAPE, WF_NOMEM. */
WF_MUST_USE wf_status wf_lib_take(const weft_tensor *t, const char *what, wf_tensor **out,
                                  wf_err *err);
/* Makes *t the caller's of weft.h; it is NULL then, after a failure too. Errors: WF_NOMEM. */
WF_MUST_USE wf_status wf_lib_give(wf_tensor **t, weft_tensor **out, wf_err *err);

struct weft_list {
    wf_named_list named;
    weft_tensor *tensors;  /* [named.n]: as weft.h has them */
    wf_learnt_list learnt; /* of a checkpoint: by map steps */
    char origin[64];
};

/* Makes a list of *named, which is empty then, after a failure too. Errors: WF_NOMEM. */
WF_MUST_USE wf_status wf_lib_list(wf_named_list *named, const char *origin, weft_list **out,
                                  wf_err *err);

/* ---- runs ---- */

struct weft_job {
    wf_job_conf *conf;
    char *text; /* as it was read */
    size_t size;
    char *full;   /* the path that relative ones in the text go by, wherever the process goes */
    uint32_t run; /* whose checkpoints are meant; 0: the newest */
    wf_memory memory;
};

struct weft_model {
    char *name; /* for messages */
    wf_graph *graph;
    wf_predictor *predictor; /* NULL: not compiled since the weights changed */
    wf_pool *pool;           /* of `threads`; NULL: there was no run */
    uint32_t threads;
    const wf_device *device; /* of the predictor's plans; NULL: the cpu */
};

/* The number of threads that an option means. */
uint32_t wf_lib_threads(uint32_t wanted);

/* Feeds as the rooms below have them. {0} is empty; close it after an error as well. */
typedef struct wf_lib_feeds {
    size_t n;
    wf_feed *feeds;
    wf_tensor **tensors;
} wf_lib_feeds;
WF_MUST_USE wf_status wf_lib_feeds_take(size_t n, const weft_feed feeds[], wf_lib_feeds *out,
                                        wf_err *err);
void wf_lib_feeds_close(wf_lib_feeds *f);

/* What to do about a limit on memory. */
extern const char wf_lib_limit_hint[];

#endif
