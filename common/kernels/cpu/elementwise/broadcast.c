/* SPDX-License-Identifier: Apache-2.0 */
/* common/kernels/cpu/elementwise/broadcast.c */
#include "common/kernels/cpu/elementwise/broadcast.h"
#include "common/kernels/shape/walk.h"

typedef struct binary_job {
    const wf_walk *walk;
    const char *a, *b;
    char *out;
    wf_binary_span *span;
    size_t size, out_size;
} binary_job;

typedef struct unary_job {
    const char *in;
    char *out;
    wf_unary_span *span;
    size_t size, out_size;
} unary_job;

wf_status wf_binary_prepare(wf_prep *prep, const wf_tensor *const in[],
                            const wf_tensor *const out[], wf_err *err)
{
    wf_walk *walk = wf_arena_alloc(prep->arena, sizeof *walk);

    if (!walk)
        return wf_fail_nomem(err, sizeof *walk);
    wf_walk_broadcast(walk, out[0], 2, in);
    prep->state = walk;
    return WF_OK;
}

static void binary_step(void *arg, const wf_span *s)
{
    const binary_job *j = arg;

    j->span(j->a + (size_t)s->at[0] * j->size, s->step[0], j->b + (size_t)s->at[1] * j->size,
            s->step[1], j->out + (size_t)s->first * j->out_size, s->count);
}

static void binary_range(void *arg, int64_t begin, int64_t end)
{
    wf_walk_range(((binary_job *)arg)->walk, begin, end, binary_step, arg);
}

wf_status wf_binary_run(const wf_run *run, const wf_tensor *const in[], wf_tensor *const out[],
                        wf_binary_span *span, size_t size, size_t out_size)
{
    binary_job j = {run->state, in[0]->data, in[1]->data, out[0]->data, span, size, out_size};

    wf_pool_for(run->pool, j.walk->elems, WF_GRAIN, binary_range, &j);
    return WF_OK;
}

static void unary_range(void *arg, int64_t begin, int64_t end)
{
    const unary_job *j = arg;

    j->span(j->in + (size_t)begin * j->size, j->out + (size_t)begin * j->out_size, end - begin);
}

wf_status wf_unary_run(const wf_run *run, const wf_tensor *in, wf_tensor *out, wf_unary_span *span,
                       size_t size, size_t out_size)
{
    unary_job j = {in->data, out->data, span, size, out_size};

    wf_pool_for(run->pool, wf_elems(in), WF_GRAIN, unary_range, &j);
    return WF_OK;
}

/* Walk i broadcasts what is folded so far (at first input 0) and input i. */
wf_status wf_variadic_prepare(wf_prep *prep, const wf_tensor *const in[],
                              const wf_tensor *const out[], wf_err *err)
{
    wf_walk *walks = wf_arena_array(prep->arena, prep->node->n_in, sizeof *walks);

    if (!walks)
        return wf_fail_nomem(err, prep->node->n_in * sizeof *walks);
    for (uint32_t i = 1; i < prep->node->n_in; i++)
        wf_walk_broadcast(&walks[i], out[0], 2,
                          (const wf_tensor *[]){i == 1 ? in[0] : out[0], in[i]});
    prep->state = walks;
    return WF_OK;
}

wf_status wf_variadic_run(const wf_run *run, const wf_tensor *const in[], wf_tensor *const out[],
                          wf_run_fn *pair, wf_err *err)
{
    wf_run one = *run;

    if (run->node->n_in == 1)
        wf_copy(out[0]->data, in[0]->data, wf_tensor_bytes(in[0]));
    for (uint32_t i = 1; i < run->node->n_in; i++) {
        one.state = (const wf_walk *)run->state + i;
        WF_TRY(pair(&one, (const wf_tensor *[]){i == 1 ? in[0] : out[0], in[i]}, out, err));
    }
    return WF_OK;
}
