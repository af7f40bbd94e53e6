/* SPDX-License-Identifier: Apache-2.0 */
/* common/kernels/cpu/elementwise/broadcast.c */
#include "common/kernels/cpu/elementwise/broadcast.h"
#include "common/kernels/cpu/narrow.h"
#include "common/kernels/shape/walk.h"

typedef struct binary_job {
    const wf_walk *walk;
    const char *a, *b;
    char *out;
    wf_binary_span *span;
    size_t size, out_size;
    bool a_is_bf16, b_is_bf16, out_is_bf16;
} binary_job;

typedef struct unary_job {
    const char *in;
    char *out;
    wf_unary_span *span;
    size_t size, out_size;
    bool in_is_bf16, out_is_bf16;
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

/* A tile at a time, of operands or results of which some are of bfloat16. */
static void narrow_binary_step(void *arg, const wf_span *s)
{
    const binary_job *j = arg;
    float rooms[3][WF_NARROW_TILE];

    for (int64_t i = 0; i < s->count; i += WF_NARROW_TILE) {
        int64_t n = WF_MIN(s->count - i, (int64_t)WF_NARROW_TILE);
        float *out = wf_wide_room(j->out, j->out_is_bf16, s->first + i, rooms[2]);

        j->span(
            wf_wide(j->a, j->a_is_bf16, s->at[0] + i * s->step[0], s->step[0] ? n : 1, rooms[0]),
            s->step[0],
            wf_wide(j->b, j->b_is_bf16, s->at[1] + i * s->step[1], s->step[1] ? n : 1, rooms[1]),
            s->step[1], out, n);
        wf_narrow(j->out, j->out_is_bf16, s->first + i, n, out);
    }
}

static void binary_range(void *arg, int64_t begin, int64_t end)
{
    const binary_job *j = arg;
    bool is_narrow = j->a_is_bf16 || j->b_is_bf16 || j->out_is_bf16;

    wf_walk_range(j->walk, begin, end, is_narrow ? narrow_binary_step : binary_step, arg);
}

wf_status wf_binary_run(const wf_run *run, const wf_tensor *const in[], wf_tensor *const out[],
                        wf_binary_span *span, size_t size, size_t out_size)
{
    binary_job j = {run->state, in[0]->data,       in[1]->data,       out[0]->data,      span, size,
                    out_size,   wf_is_bf16(in[0]), wf_is_bf16(in[1]), wf_is_bf16(out[0])};

    wf_pool_for(run->pool, j.walk->elems, WF_GRAIN, binary_range, &j);
    return WF_OK;
}

static void unary_range(void *arg, int64_t begin, int64_t end)
{
    const unary_job *j = arg;
    float from[WF_NARROW_TILE], to[WF_NARROW_TILE];

    for (; begin < end && (j->in_is_bf16 || j->out_is_bf16); begin += WF_NARROW_TILE) {
        int64_t n = WF_MIN(end - begin, (int64_t)WF_NARROW_TILE);
        float *y = wf_wide_room(j->out, j->out_is_bf16, begin, to);

        j->span(wf_wide(j->in, j->in_is_bf16, begin, n, from), y, n);
        wf_narrow(j->out, j->out_is_bf16, begin, n, y);
    }
    if (begin < end)
        j->span(j->in + (size_t)begin * j->size, j->out + (size_t)begin * j->out_size, end - begin);
}

wf_status wf_unary_run(const wf_run *run, const wf_tensor *in, wf_tensor *out, wf_unary_span *span,
                       size_t size, size_t out_size)
{
    unary_job j = {in->data, out->data, span, size, out_size, wf_is_bf16(in), wf_is_bf16(out)};

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
