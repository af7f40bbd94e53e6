/* SPDX-License-Identifier: Apache-2.0 */
/* common/kernels/cuda/dnn/way.c
 *
 * A handle is of one thread at a time, and is told the stream before each execution. So one lock
 * of a GPU is held while a choice is made and while an execution is queued. */
#include "common/kernels/cuda/dnn/way.h"
#include "common/base/clock.h"
#include "common/base/size.h"
#include "common/kernels/cuda/dnn/choose.h"
#include "common/log/log.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

/* Choices that are kept at least: of a job whose shapes are ever new, those that nothing uses any
 * more are dropped beyond that. */
enum { MOST_CHOICES = 256 };

/* What a case gets: the fastest of some engines; the one that the heuristics name first; that one
 * with workspace for any of some, for a plan that is measured and will be timed when it is run. */
typedef enum taking { FASTEST, FIRST, FIRST_WITH_ROOM } taking;

typedef struct choice choice;
struct choice {
    choice *next;
    const char *kind;
    unsigned char of[WF_DNN_CASE_BYTES]; /* the case */
    size_t bytes;
    taking taking;
    wf_dnn_graph graph;
    wf_dnn_plan plan; /* without one: cuDNN does not compute the case */
    unsigned users;
};

struct wf_dnn {
    const wf_cuda_gpu *gpu;
    pthread_mutex_t lock; /* of all below */
    bool tried;
    wf_cuda_dnn *handle; /* NULL: not tried, or there is no cuDNN */
    choice *choices;     /* the newest first */
    unsigned n_choices;
};

struct wf_dnn_way {
    wf_dnn *dnn;
    choice *chosen;
    /* The pack of the last execution: a plan's steps mostly have the same addresses. */
    wf_cuda_descriptor *pack;
    const void *tensors[WF_DNN_MOST_TENSORS], *workspace;
};

/* The error of a call, if none before it failed. */
#define NEXT(error, call)                                                                          \
    do {                                                                                           \
        if ((error) == 0)                                                                          \
            (error) = (call);                                                                      \
    } while (0)

wf_status wf_dnn_new(const wf_cuda_gpu *g, wf_dnn **out, wf_err *err)
{
    wf_dnn *d = calloc(1, sizeof *d);

    if (!d)
        return wf_fail_nomem(err, sizeof *d);
    d->gpu = g;
    pthread_mutex_init(&d->lock, NULL);
    *out = d;
    return WF_OK;
}

static void free_choice(choice *c)
{
    wf_dnn_plan_free(&c->plan);
    wf_dnn_graph_free(&c->graph);
    free(c);
}

void wf_dnn_free(wf_dnn **d)
{
    if (!*d)
        return;
    for (choice *c = (*d)->choices, *next; c; c = next) {
        next = c->next;
        wf_assert(c->users == 0);
        free_choice(c);
    }
    if ((*d)->handle)
        (void)(*d)->gpu->calls->dnn_free((*d)->handle);
    pthread_mutex_destroy(&(*d)->lock);
    free(*d);
    *d = NULL;
}

/* ---- choices; in the lock ---- */

/* Hosts without cuDNN are no mistake, but slow ones: one line of the process says it. */
static bool has_handle(wf_dnn *d)
{
    static atomic_flag is_said = ATOMIC_FLAG_INIT;
    int error;

    if (d->tried)
        return d->handle != NULL;
    d->tried = true;
    error = d->gpu->calls->dnn_new(&d->handle);
    if (error == 0)
        return true;
    d->handle = NULL;
    if (!atomic_flag_test_and_set(&is_said))
        WF_LOG_WARN("cuda.no_cudnn",
                    "device=%s error=%d why=\"%s\" instead=\"weft's own kernels, "
                    "which are slower, compute convolutions and attention\"",
                    d->gpu->name, error, d->gpu->calls->error_string(error));
    return false;
}

static choice *find(const wf_dnn *d, const wf_dnn_asked *a, taking how)
{
    choice *c = d->choices;

    while (c && (c->bytes != a->bytes || memcmp(c->of, a->of, a->bytes) != 0 || c->taking != how))
        c = c->next;
    return c;
}

static void drop_oldest_unused(wf_dnn *d)
{
    choice **oldest = NULL, *gone;

    for (choice **at = &d->choices; *at; at = &(*at)->next)
        if ((*at)->users == 0)
            oldest = at;
    if (!oldest)
        return;
    gone = *oldest;
    *oldest = gone->next;
    d->n_choices--;
    free_choice(gone);
}

/* Whether cuDNN failed, and did not only refuse. */
static bool is_failure(int error)
{
    return error != 0 && !(error >= WF_CUDA_DNN_REFUSES && error < WF_CUDA_DNN_REFUSES + 1000);
}

/* The addresses of a graph's tensors, and its scalars. */
static int new_pack(const wf_cuda_calls *calls, const wf_dnn_graph *g, const void *const tensors[],
                    const void *workspace, wf_cuda_descriptor **out)
{
    int64_t ids[WF_DNN_MOST_TENSORS + WF_DNN_MOST_SCALARS], n = 0;
    const void *at[WF_DNN_MOST_TENSORS + WF_DNN_MOST_SCALARS];
    wf_cuda_descriptor *pack = NULL;
    int error = calls->dnn_make(WF_DNN_PACK, &pack);

    for (unsigned i = 0; i < g->n_tensors; i++, n++) {
        ids[n] = wf_dnn_id(i);
        at[n] = tensors[i];
    }
    for (unsigned i = 0; i < g->n_scalars; i++, n++) {
        ids[n] = wf_dnn_id_of_scalar(i);
        at[n] = &g->scalars[i];
    }
    NEXT(error, calls->dnn_set(pack, WF_DNN_PACK_IDS, WF_DNN_IS_INT64, n, ids));
    NEXT(error, calls->dnn_set(pack, WF_DNN_PACK_POINTERS, WF_DNN_IS_POINTER, n, at));
    NEXT(error, calls->dnn_set(pack, WF_DNN_PACK_WORKSPACE, WF_DNN_IS_POINTER, 1, &workspace));
    NEXT(error, calls->dnn_finish(pack));
    if (error != 0 && pack) {
        (void)calls->dnn_unmake(pack);
        pack = NULL;
    }
    *out = pack;
    return error;
}

/* Plans to choose from. */
typedef struct choosing {
    wf_dnn *d;
    const wf_dnn_graph *graph;
    wf_dnn_plan plans[WF_TUNE_MOST];
    unsigned n;
    wf_cuda_descriptor *pack; /* of the tensors that they are measured with */
} choosing;

static int go(void *arg, unsigned i, const void *const tensors[], void *workspace,
              wf_cuda_stream *s)
{
    choosing *c = arg;
    const wf_cuda_calls *calls = c->d->gpu->calls;
    int error = c->pack ? 0 : new_pack(calls, c->graph, tensors, workspace, &c->pack);

    NEXT(error, calls->dnn_stream(c->d->handle, s));
    NEXT(error, calls->dnn_execute(c->d->handle, c->plans[i].plan, c->pack));
    return error;
}

static unsigned pick(choosing *c, const wf_tune_case *of)
{
    wf_tune_candidates candidates = {.n = c->n,
                                     .n_tensors = c->graph->n_tensors,
                                     .tensors = c->graph->bytes,
                                     .go = go,
                                     .arg = c};
    unsigned picked;

    for (unsigned i = 0; i < c->n; i++) {
        candidates.names[i] = c->plans[i].name;
        candidates.workspace = WF_MAX(candidates.workspace, c->plans[i].workspace);
    }
    picked = wf_tune_pick(c->d->gpu->tuned, of, &candidates);
    if (c->pack)
        (void)c->d->gpu->calls->dnn_unmake(c->pack);
    return picked;
}

/* What wf_dnn_choose gives; the time that it takes is noted. */
static int build_plans(wf_dnn *d, const wf_dnn_asked *a, const choice *c, const wf_dnn_wish *wish,
                       wf_dnn_plan plans[], unsigned *n)
{
    const int64_t began_ns = wf_now_ns();
    int error = wf_dnn_choose(d->gpu->calls, d->handle, &c->graph, a->rounding, wish, plans, n);

    wf_tune_note_built(d->gpu->tuned, *n, wf_now_ns() - began_ns);
    return error;
}

/* The engine that a file names, or what is taken of those that the heuristics name. Gives the error
 * of a call, or 0. */
static int choose_engine(wf_dnn *d, const wf_dnn_asked *a, choice *c)
{
    wf_tuned *tuned = d->gpu->tuned;
    const wf_tune_case of = {a->kind, d->gpu->calls->dnn_version(), a->of, a->bytes};
    wf_dnn_wish wish = {.most = 1};
    choosing from = {.d = d, .graph = &c->graph};
    wf_tune_name name;
    unsigned picked = 0;
    size_t room = 0;
    int error;

    if (c->taking == FASTEST && wf_tune_find(tuned, &of, &name)) {
        wish = (wf_dnn_wish){.most = 1, .named = true, .only = &name};
        error = build_plans(d, a, c, &wish, &c->plan, &from.n);
        if (from.n > 0) {
            wf_tune_note(tuned);
            return 0;
        }
    }
    wish = (wf_dnn_wish){.most = c->taking == FIRST_WITH_ROOM ? WF_TUNE_MOST : 1,
                         .most_compiled = a->most_compiled};
    if (c->taking == FASTEST && wf_tune_can(tuned)) {
        wish.most = WF_TUNE_MOST;
        wish.named = true;
    }
    error = build_plans(d, a, c, &wish, from.plans, &from.n);
    if (from.n > 1 && c->taking == FASTEST)
        picked = pick(&from, &of);
    for (unsigned i = 0; i < from.n; i++) {
        room = WF_MAX(room, from.plans[i].workspace);
        if (i == picked)
            c->plan = from.plans[i];
        else
            wf_dnn_plan_free(&from.plans[i]);
    }
    if (c->taking == FIRST_WITH_ROOM)
        c->plan.workspace = room;
    return error;
}

static choice *choose(wf_dnn *d, const wf_dnn_asked *a, taking how)
{
    const wf_cuda_calls *calls = d->gpu->calls;
    choice *c = calloc(1, sizeof *c);
    int error;

    if (!c)
        return NULL;
    wf_assert(a->bytes <= sizeof c->of);
    c->kind = a->kind;
    memcpy(c->of, a->of, a->bytes);
    c->bytes = a->bytes;
    c->taking = how;
    error = a->build(calls, d->handle, a->of, &c->graph);
    NEXT(error, choose_engine(d, a, c));
    if (is_failure(error))
        WF_LOG_WARN("cuda.cudnn_failed",
                    "device=%s error=%d why=\"%s\" instead=\"a kernel of "
                    "weft's own computes what was asked for\"",
                    d->gpu->name, error, calls->error_string(error));
    if (!c->plan.plan)
        wf_dnn_graph_free(&c->graph);
    if (d->n_choices >= MOST_CHOICES)
        drop_oldest_unused(d);
    c->next = d->choices;
    d->choices = c;
    d->n_choices++;
    return c;
}

/* The choice for a case, one user more; NULL: cuDNN does not compute it, or, with an error, there
 * is no memory. */
static wf_status take_choice(wf_dnn *d, const wf_dnn_asked *a, taking how, choice **out,
                             wf_err *err)
{
    choice *c;

    *out = NULL;
    if (!has_handle(d))
        return WF_OK;
    c = find(d, a, how);
    if (!c)
        c = choose(d, a, how);
    if (!c)
        return wf_fail_nomem(err, sizeof *c);
    if (c->plan.plan) {
        c->users++;
        *out = c;
    }
    return WF_OK;
}

/* ---- ways ---- */

static taking taken_by(const wf_prep *prep)
{
    if (!prep->untimed)
        return FASTEST;
    return prep->takes_any ? FIRST_WITH_ROOM : FIRST;
}

wf_status wf_dnn_way_new(wf_prep *prep, const wf_dnn_asked *a, wf_dnn_way **out, wf_err *err)
{
    const wf_cuda_gpu *g = wf_cuda_gpu_of(prep->device);
    wf_dnn_way *w = calloc(1, sizeof *w);
    int error = g->calls->use(g->index);
    wf_status rc;

    *out = NULL;
    if (!w)
        return wf_fail_nomem(err, sizeof *w);
    w->dnn = g->dnn;
    pthread_mutex_lock(&w->dnn->lock);
    rc = error == 0 ? take_choice(w->dnn, a, taken_by(prep), &w->chosen, err)
                    : wf_cuda_fail(g, error, err);
    pthread_mutex_unlock(&w->dnn->lock);
    if (!w->chosen) {
        free(w);
        return rc;
    }
    prep->workspace_bytes = w->chosen->plan.workspace;
    *out = w;
    return WF_OK;
}

static void drop_pack(wf_dnn_way *w)
{
    if (w->pack)
        (void)w->dnn->gpu->calls->dnn_unmake(w->pack);
    w->pack = NULL;
}

void wf_dnn_way_free(wf_dnn_way *w)
{
    if (!w)
        return;
    drop_pack(w);
    pthread_mutex_lock(&w->dnn->lock);
    w->chosen->users--;
    pthread_mutex_unlock(&w->dnn->lock);
    free(w);
}

/* A finished pack cannot be changed: other addresses are a new one. */
static int make_pack(wf_dnn_way *w, const void *const tensors[], const void *workspace)
{
    const wf_dnn_graph *g = &w->chosen->graph;
    const size_t bytes = g->n_tensors * sizeof tensors[0];
    int error;

    if (w->pack && memcmp(w->tensors, tensors, bytes) == 0 && w->workspace == workspace)
        return 0;
    drop_pack(w);
    error = new_pack(w->dnn->gpu->calls, g, tensors, workspace, &w->pack);
    if (error != 0)
        return error;
    memcpy(w->tensors, tensors, bytes);
    w->workspace = workspace;
    return 0;
}

wf_status wf_dnn_way_go(wf_dnn_way *w, const wf_run *run, const void *const tensors[], wf_err *err)
{
    wf_dnn *d = w->dnn;
    const wf_cuda_calls *calls = d->gpu->calls;
    int error = calls->use(d->gpu->index);

    wf_tune_say(d->gpu->tuned);
    NEXT(error, make_pack(w, tensors, run->workspace));
    pthread_mutex_lock(&d->lock);
    NEXT(error, calls->dnn_stream(d->handle, wf_cuda_stream_of(run->stream)));
    NEXT(error, calls->dnn_execute(d->handle, w->chosen->plan.plan, w->pack));
    pthread_mutex_unlock(&d->lock);
    return error == 0 ? WF_OK : wf_cuda_fail(d->gpu, error, err);
}
