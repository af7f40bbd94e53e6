/* SPDX-License-Identifier: Apache-2.0 */
/* common/kernels/cuda/dnn/name.c */
#include "common/kernels/cuda/dnn/name.h"
#include "common/base/size.h"

#include <string.h>
#include <xxhash.h>

enum { MOST_KNOBS = 64 /* cuDNN 9 has 44 kinds */ };

/* The error of a call, if none before it failed. */
#define NEXT(error, call)                                                                          \
    do {                                                                                           \
        if ((error) == 0)                                                                          \
            (error) = (call);                                                                      \
    } while (0)

/* int64_t alone: without gaps. */
typedef struct settings {
    int64_t engine, n, knobs[MOST_KNOBS][2]; /* kind, value */
} settings;

static int read_engine(const wf_cuda_calls *calls, wf_cuda_descriptor *config, settings *s)
{
    wf_cuda_descriptor *engine = NULL;
    int64_t n = 0;
    int error = calls->dnn_make(WF_DNN_ENGINE, &engine);

    NEXT(error, calls->dnn_get(config, WF_DNN_CONFIG_ENGINE, WF_DNN_IS_DESCRIPTOR, 1, &n, &engine));
    NEXT(error, calls->dnn_get(engine, WF_DNN_ENGINE_INDEX, WF_DNN_IS_INT64, 1, &n, &s->engine));
    if (engine)
        (void)calls->dnn_unmake(engine);
    return error;
}

static int read_knob(const wf_cuda_calls *calls, wf_cuda_descriptor *knob, int64_t of[2])
{
    int32_t kind = 0;
    int64_t n = 0;
    int error = calls->dnn_get(knob, WF_DNN_KNOB_KIND, WF_DNN_IS_KNOB_KIND, 1, &n, &kind);

    NEXT(error, calls->dnn_get(knob, WF_DNN_KNOB_VALUE, WF_DNN_IS_INT64, 1, &n, &of[1]));
    of[0] = kind;
    return error;
}

static int read_knobs(const wf_cuda_calls *calls, wf_cuda_descriptor *config, settings *s)
{
    wf_cuda_descriptor *knobs[MOST_KNOBS] = {NULL};
    int error = 0;

    /* cuDNN does not say beforehand how many there are. */
    for (int64_t i = 0; i < MOST_KNOBS; i++)
        NEXT(error, calls->dnn_make(WF_DNN_KNOB, &knobs[i]));
    NEXT(error, calls->dnn_get(config, WF_DNN_CONFIG_KNOBS, WF_DNN_IS_DESCRIPTOR, MOST_KNOBS, &s->n,
                               knobs));
    s->n = error == 0 ? WF_MIN(s->n, (int64_t)MOST_KNOBS) : 0;
    for (int64_t i = 0; i < s->n; i++)
        NEXT(error, read_knob(calls, knobs[i], s->knobs[i]));
    for (int64_t i = 0; i < MOST_KNOBS; i++)
        if (knobs[i])
            (void)calls->dnn_unmake(knobs[i]);
    return error;
}

int wf_dnn_name(const wf_cuda_calls *calls, wf_cuda_descriptor *config, wf_tune_name *out)
{
    settings s = {0};
    int error = read_engine(calls, config, &s);
    XXH128_hash_t h;

    NEXT(error, read_knobs(calls, config, &s));
    h = XXH3_128bits(&s, sizeof s);
    *out = (wf_tune_name){{0}};
    memcpy(out->of, &h, sizeof h);
    return error;
}
