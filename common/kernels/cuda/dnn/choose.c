/* SPDX-License-Identifier: Apache-2.0 */
/* common/kernels/cuda/dnn/choose.c */
#include "common/kernels/cuda/dnn/choose.h"
#include "common/base/size.h"
#include "common/kernels/cuda/dnn/name.h"

#include <stdlib.h>
#include <string.h>

enum { MOST_CONFIGS = 64 /* of one mode; heuristics name up to 40, best first */ };

/* The error of a call, if none before it failed. */
#define NEXT(error, call)                                                                          \
    do {                                                                                           \
        if ((error) == 0)                                                                          \
            (error) = (call);                                                                      \
    } while (0)

/* What one mode of the heuristics names. */
typedef struct found {
    wf_cuda_descriptor *configs[MOST_CONFIGS];
    int64_t n, filled; /* the first of n; cuDNN counts some that it then leaves out */
} found;

static void unmake(const wf_cuda_calls *calls, wf_cuda_descriptor *d)
{
    if (d)
        (void)calls->dnn_unmake(d);
}

/* Whether an engine with that note computes f32 as is allowed. Without a note it rounds nothing;
 * tensor cores take f32 factors as TF32, which has as many bits as float16 and more than bfloat16.
 * Others may convert them to bfloat16. */
static bool may_round(wf_dnn_rounding may, int32_t note)
{
    if (note == WF_DNN_NOTE_TENSOR_CORE)
        return may.compute != WF_COMPUTE_F32;
    return may.compute == WF_COMPUTE_BF16 && note != WF_DNN_NOTE_REDUCED_SUMS;
}

static bool may_take(wf_dnn_rounding may, const int32_t notes[], int64_t n)
{
    for (int64_t i = 0; i < n; i++)
        switch (notes[i]) {
        case WF_DNN_NOTE_NONDETERMINISTIC:
            return false;
        case WF_DNN_NOTE_TENSOR_CORE:
        case WF_DNN_NOTE_DOWN_CONVERTS:
        case WF_DNN_NOTE_REDUCED_SUMS:
            /* Tensor cores multiply f64 as it is. */
            if (may.f32 && !may_round(may, notes[i]))
                return false;
            break;
        default:
            break;
        }
    return true;
}

/* Whether the notes of a configuration's engine let it be taken; *compiles: its plan is compiled.
 */
static bool is_allowed(const wf_cuda_calls *calls, wf_dnn_rounding may, wf_cuda_descriptor *config,
                       bool *compiles)
{
    wf_cuda_descriptor *engine = NULL;
    int32_t notes[WF_DNN_NOTES], behaviours[WF_DNN_NOTES];
    int64_t n = 0, n_behaviours = 0;
    int error = calls->dnn_make(WF_DNN_ENGINE, &engine);

    NEXT(error, calls->dnn_get(config, WF_DNN_CONFIG_ENGINE, WF_DNN_IS_DESCRIPTOR, 1, &n, &engine));
    NEXT(error,
         calls->dnn_get(engine, WF_DNN_ENGINE_NOTES, WF_DNN_IS_NOTE, WF_DNN_NOTES, &n, notes));
    NEXT(error, calls->dnn_get(engine, WF_DNN_ENGINE_BEHAVIOURS, WF_DNN_IS_BEHAVIOUR, WF_DNN_NOTES,
                               &n_behaviours, behaviours));
    unmake(calls, engine);
    *compiles = false;
    for (int64_t i = 0; error == 0 && i < WF_MIN(n_behaviours, (int64_t)WF_DNN_NOTES); i++)
        *compiles = *compiles || behaviours[i] == WF_DNN_BEHAVIOUR_COMPILES;
    return error == 0 && may_take(may, notes, WF_MIN(n, (int64_t)WF_DNN_NOTES));
}

/* A plan of one configuration; false: it cannot be prepared, or takes more memory than it may. */
static bool prepare(wf_cuda_dnn *dnn, wf_cuda_descriptor *config, wf_dnn_plan *p)
{
    const wf_cuda_calls *calls = p->calls;
    int64_t n = 0, bytes = 0;
    int error = calls->dnn_make(WF_DNN_PLAN, &p->plan);

    NEXT(error, calls->dnn_set(p->plan, WF_DNN_PLAN_HANDLE, WF_DNN_IS_HANDLE, 1, &dnn));
    NEXT(error, calls->dnn_set(p->plan, WF_DNN_PLAN_CONFIG, WF_DNN_IS_DESCRIPTOR, 1, &config));
    NEXT(error, calls->dnn_finish(p->plan));
    NEXT(error, calls->dnn_get(p->plan, WF_DNN_PLAN_WORKSPACE, WF_DNN_IS_INT64, 1, &n, &bytes));
    if (error == 0 && bytes >= 0 && bytes <= WF_DNN_MOST_WORKSPACE) {
        p->workspace = (size_t)bytes;
        return true;
    }
    unmake(calls, p->plan);
    p->plan = NULL;
    return false;
}

/* What all modes are asked for, and what came of it. */
typedef struct asking {
    const wf_cuda_calls *calls;
    wf_cuda_dnn *dnn;
    const wf_dnn_graph *g;
    wf_dnn_rounding may;
    const wf_dnn_wish *wish;
    wf_dnn_plan *out; /* [n] */
    unsigned n, n_compiled;
} asking;

static bool is_wished(const asking *a, wf_cuda_descriptor *config, wf_tune_name *name)
{
    if (!a->wish->named)
        return true;
    return wf_dnn_name(a->calls, config, name) == 0 &&
           (!a->wish->only || memcmp(name, a->wish->only, sizeof *name) == 0);
}

/* Compiling one more takes as long as a first plan's other choices together. */
static bool is_one_too_many(const asking *a, bool compiles)
{
    return compiles && a->wish->most_compiled && a->n_compiled == a->wish->most_compiled;
}

/* Takes configurations that will do out of *f, and puts their plans behind those that are there. */
static void take(asking *a, found *f)
{
    for (int64_t i = 0; i < f->filled && a->n < a->wish->most; i++) {
        wf_dnn_plan *p = &a->out[a->n];
        bool compiles;

        *p = (wf_dnn_plan){.calls = a->calls};
        if (!is_allowed(a->calls, a->may, f->configs[i], &compiles) ||
            is_one_too_many(a, compiles) || !is_wished(a, f->configs[i], &p->name) ||
            !prepare(a->dnn, f->configs[i], p))
            continue;
        p->config = f->configs[i];
        f->configs[i] = NULL;
        a->n++;
        a->n_compiled += compiles;
    }
}

static int ask(const wf_cuda_calls *calls, wf_cuda_descriptor *heuristic, const wf_dnn_graph *g,
               int32_t mode, found *f)
{
    int64_t n = 0;
    int error =
        calls->dnn_set(heuristic, WF_DNN_HEURISTIC_GRAPH, WF_DNN_IS_DESCRIPTOR, 1, &g->graph);

    NEXT(error, calls->dnn_set(heuristic, WF_DNN_HEURISTIC_MODE, WF_DNN_IS_HEUR_MODE, 1, &mode));
    NEXT(error, calls->dnn_finish(heuristic));
    NEXT(error,
         calls->dnn_get(heuristic, WF_DNN_HEURISTIC_RESULTS, WF_DNN_IS_DESCRIPTOR, 0, &n, NULL));
    n = WF_MIN(n, (int64_t)MOST_CONFIGS);
    while (error == 0 && f->n < n) {
        error = calls->dnn_make(WF_DNN_CONFIG, &f->configs[f->n]);
        f->n += error == 0;
    }
    if (n > 0)
        NEXT(error, calls->dnn_get(heuristic, WF_DNN_HEURISTIC_RESULTS, WF_DNN_IS_DESCRIPTOR, n, &n,
                                   f->configs));
    f->filled = WF_MIN(n, f->n);
    return error;
}

static int try_mode(asking *a, int32_t mode)
{
    const wf_cuda_calls *calls = a->calls;
    wf_cuda_descriptor *heuristic = NULL;
    found f = {.n = 0};
    int error = calls->dnn_make(WF_DNN_HEURISTIC, &heuristic);

    NEXT(error, ask(calls, heuristic, a->g, mode, &f));
    if (error == 0)
        take(a, &f);
    for (int64_t i = 0; i < f.n; i++)
        unmake(calls, f.configs[i]);
    unmake(calls, heuristic);
    return error;
}

static bool is_refusal(int error)
{
    return error >= WF_CUDA_DNN_REFUSES && error < WF_CUDA_DNN_REFUSES + 1000;
}

int wf_dnn_choose(const wf_cuda_calls *calls, wf_cuda_dnn *dnn, const wf_dnn_graph *g,
                  wf_dnn_rounding may, const wf_dnn_wish *wish, wf_dnn_plan out[], unsigned *n)
{
    static const int32_t modes[] = {WF_DNN_MODE_A, WF_DNN_MODE_FALLBACK};
    asking a = {.calls = calls, .dnn = dnn, .g = g, .may = may, .wish = wish, .out = out};
    int error = 0;

    for (size_t i = 0; i < sizeof modes / sizeof modes[0] && a.n == 0; i++) {
        error = try_mode(&a, modes[i]);
        if (error != 0 && !is_refusal(error))
            break;
    }
    *n = a.n;
    return a.n ? 0 : error;
}

void wf_dnn_plan_free(wf_dnn_plan *p)
{
    if (p->plan)
        (void)p->calls->dnn_unmake(p->plan);
    if (p->config)
        (void)p->calls->dnn_unmake(p->config);
    p->plan = p->config = NULL;
}
