/* SPDX-License-Identifier: Apache-2.0 */
/* tests/cuda/host_graph.c - graphs: work that is recorded, and queued again. */
#include "common/base/cc.h"
#include "tests/cuda/host_work.h"

#include <stdio.h>
#include <stdlib.h>

enum { NOT_CAPTURING = 401, NOT_IN_A_CAPTURE = 900, CAPTURE_FAILED = 901, ANOTHER_THREAD = 908 };

int host_outside_captures(int error)
{
    if (error == 0 && host_capturing) {
        host_capturing->failed = true;
        return NOT_IN_A_CAPTURE;
    }
    return error;
}

int host_capture_begin(wf_cuda_stream *s)
{
    int error = host_begin("capture_begin");

    if (error == 0 && (s->capture || host_capturing))
        error = NOT_CAPTURING;
    if (error != 0)
        return host_end(error);
    host_capturing = calloc(1, sizeof *host_capturing);
    wf_assert(host_capturing);
    host_counts.objects++;
    *host_capturing = (struct CUgraph_st){s->device, NULL, &host_capturing->first, false, s};
    s->capture = host_capturing;
    return host_end(0);
}

static void free_works(work *w)
{
    for (work *next; w; w = next) {
        next = w->next;
        host_free_work(w);
    }
}

int host_graph_free(wf_cuda_graph *g)
{
    (void)host_begin("graph_free");
    free_works(g->first);
    free(g);
    host_counts.objects--;
    return host_end(0);
}

int host_capture_end(wf_cuda_stream *s, wf_cuda_graph **out)
{
    int error = host_begin("capture_end");
    struct CUgraph_st *g = s->capture;

    *out = NULL;
    if (!g)
        return host_end(NOT_CAPTURING);
    if (g != host_capturing)
        return host_end(ANOTHER_THREAD);
    s->capture = host_capturing = NULL;
    error = error ? error : g->failed ? CAPTURE_FAILED : 0;
    if (error == 0)
        *out = g;
    else
        (void)host_graph_free(g);
    return host_end(error);
}

/* It takes the work out of the graph, which weft makes one of and frees. */
int host_replay_new(wf_cuda_replayed **out, wf_cuda_graph *g)
{
    int error = host_outside_captures(host_begin("replay_new"));

    *out = error ? NULL : calloc(1, sizeof **out);
    if (*out) {
        **out = (struct CUgraphExec_st){g->device, g->first, 0};
        g->first = NULL;
        host_counts.objects++;
    }
    return host_end(error ? error : *out ? 0 : WF_CUDA_NO_MEMORY);
}

int host_replay_free(wf_cuda_replayed *r)
{
    (void)host_begin("replay_free");
    while (r->queued)
        wf_assert(host_run_some());
    free_works(r->first);
    free(r);
    host_counts.objects--;
    return host_end(0);
}

/* Its parts are queued one by one, so that other streams run in between. */
int host_replay(wf_cuda_replayed *r, wf_cuda_stream *s)
{
    int error = host_outside_captures(host_begin("replay"));

    if (error == 0 && r->device != s->device) {
        fprintf(stderr, "a graph of GPU %d is launched on a stream of GPU %d\n", r->device,
                s->device);
        abort();
    }
    host_counts.replays += error == 0;
    for (work *w = r->first; w && error == 0; w = w->next) {
        error = host_enqueue(
            s, &(work){.act = w->act, .name = w->name, .recorded = w, .replayed = r}, 0, 0);
        r->queued += error == 0;
    }
    return host_end(error);
}
