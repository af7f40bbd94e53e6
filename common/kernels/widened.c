/* SPDX-License-Identifier: Apache-2.0 */
/* common/kernels/widened.c - the workspace holds the kernel's own, then each operand of float32. A
 * kernel that takes narrow tensors is asked first whether it takes these. */
#include "common/kernels/widened.h"
#include "common/base/size.h"
#include "common/graph/narrow.h"

enum { ALIGN = 64, PORTS = WF_NARROW_INPUTS + WF_KERNEL_PORTS, NOT = -1 };

typedef struct state {
    const wf_kernel *kernel; /* of float32 */
    void *own;               /* its state */
    void (*release)(void *own);
    int64_t in[PORTS], out[PORTS]; /* where in the workspace it lies widened; NOT: as it is */
    bool as_they_are;              /* the kernel takes the narrow tensors */
} state;

static void release(void *of)
{
    state *s = of;

    if (s->release)
        s->release(s->own);
}

/* The tensors as the kernel sees them, and a place behind *bytes for each that is narrow. `wide`
 * and `tensors` have PORTS places. */
static wf_status lay_out(uint32_t n, const wf_tensor *const given[], wf_tensor wide[],
                         const wf_tensor *tensors[], int64_t at[], size_t *bytes, wf_err *err)
{
    for (uint32_t i = 0; i < PORTS; i++) {
        const wf_tensor *t = i < n ? given[i] : NULL;
        size_t more;

        tensors[i] = t;
        at[i] = NOT;
        if (!t || !wf_dtype_is_narrow(t->dtype))
            continue;
        wide[i] = *t;
        wide[i].dtype = WF_F32;
        wide[i].data = NULL; /* content that is known is of the narrow type */
        wide[i].buf = NULL;
        tensors[i] = &wide[i];
        at[i] = (int64_t)*bytes;
        if (!wf_mul_size((size_t)wf_elems(t), sizeof(float), &more) || more > SIZE_MAX / 4 - *bytes)
            return wf_fail_nomem(err, SIZE_MAX);
        *bytes += wf_align_up(more, ALIGN);
    }
    return WF_OK;
}

/* Prepares the kernel for these tensors, and takes over its state. */
static wf_status prepare_own(wf_prep *prep, state *s, wf_prep *inner, const wf_tensor *const in[],
                             const wf_tensor *const out[], wf_err *err)
{
    wf_status rc = WF_OK;

    *inner = *prep;
    inner->kernel = s->kernel;
    inner->state = NULL;
    inner->release = NULL;
    inner->workspace_bytes = 0;
    if (wf_compute_kept(inner->compute) != wf_node_narrow(prep->node))
        inner->compute = WF_COMPUTE_F32; /* factors of one type are not rounded to another */
    if (s->kernel->prepare)
        rc = s->kernel->prepare(inner, in, out, err);
    s->own = inner->state;
    s->release = inner->release;
    prep->state = s;
    prep->release = release;
    return rc;
}

wf_status wf_widened_prepare(wf_prep *prep, const wf_device_rows *rows, const wf_tensor *const in[],
                             const wf_tensor *const out[], wf_err *err)
{
    state *s = wf_arena_alloc(prep->arena, sizeof *s);
    wf_tensor wide_in[PORTS], wide_out[PORTS];
    const wf_tensor *ins[PORTS], *outs[PORTS];
    size_t bytes = 0, own;
    wf_prep inner;

    if (!s)
        return wf_fail_nomem(err, sizeof *s);
    *s = (state){0};
    if (prep->node->n_in > WF_NARROW_INPUTS || prep->node->n_out > WF_NARROW_INPUTS)
        return wf_fail(err, WF_UNSUPPORTED, NULL, "a narrow node has at most %d inputs or outputs",
                       (int)WF_NARROW_INPUTS);
    WF_TRY(wf_kernel_in(rows, prep->node, &s->kernel, err));
    if (s->kernel->is_narrow && (rows->narrow & WF_TYPE(wf_node_narrow(prep->node)))) {
        WF_TRY(prepare_own(prep, s, &inner, in, out, err));
        s->as_they_are = !inner.widens;
        prep->workspace_bytes = inner.workspace_bytes;
        if (s->as_they_are)
            return WF_OK;
        release(s);
        s->release = NULL;
    }
    WF_TRY(lay_out(prep->node->n_in, in, wide_in, ins, s->in, &bytes, err));
    WF_TRY(lay_out(prep->node->n_out, out, wide_out, outs, s->out, &bytes, err));
    WF_TRY(prepare_own(prep, s, &inner, ins, outs, err));
    own = wf_align_up(inner.workspace_bytes, ALIGN);
    for (uint32_t i = 0; i < PORTS; i++) {
        s->in[i] += s->in[i] == NOT ? 0 : (int64_t)own;
        s->out[i] += s->out[i] == NOT ? 0 : (int64_t)own;
    }
    prep->workspace_bytes = bytes ? own + bytes : inner.workspace_bytes;
    return WF_OK;
}

wf_status wf_widened_run(const wf_run *run, wf_convert_fn *convert, const wf_tensor *const in[],
                         wf_tensor *const out[], wf_err *err)
{
    const state *s = run->state;
    wf_tensor wide_in[PORTS], wide_out[PORTS], *outs[PORTS] = {NULL};
    const wf_tensor *ins[PORTS] = {NULL};
    wf_run inner = *run;

    inner.kernel = s->kernel;
    inner.state = s->own;
    if (s->as_they_are)
        return s->kernel->run(&inner, in, out, err);
    for (uint32_t i = 0; i < run->node->n_in; i++) {
        ins[i] = in[i];
        if (s->in[i] == NOT)
            continue;
        wide_in[i] = *in[i];
        wide_in[i].dtype = WF_F32;
        wide_in[i].data = (char *)run->workspace + s->in[i];
        ins[i] = &wide_in[i];
        WF_TRY(
            convert(run, in[i]->dtype, in[i]->data, WF_F32, wide_in[i].data, wf_elems(in[i]), err));
    }
    for (uint32_t i = 0; i < run->node->n_out; i++) {
        outs[i] = out[i];
        if (s->out[i] == NOT)
            continue;
        wide_out[i] = *out[i];
        wide_out[i].dtype = WF_F32;
        wide_out[i].data = (char *)run->workspace + s->out[i];
        outs[i] = &wide_out[i];
    }
    WF_TRY(s->kernel->run(&inner, ins, outs, err));
    for (uint32_t i = 0; i < run->node->n_out; i++)
        if (s->out[i] != NOT)
            WF_TRY(convert(run, WF_F32, wide_out[i].data, out[i]->dtype, out[i]->data,
                           wf_elems(out[i]), err));
    return WF_OK;
}
