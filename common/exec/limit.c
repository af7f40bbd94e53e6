/* SPDX-License-Identifier: Apache-2.0 */
/* common/exec/limit.c - how much memory a plan may take, and the sentence when it would take more.
 *
 * A file of a few hundred bytes can name a tensor of any size (ConstantOfShape, Tile, Pad, Resize).
 * So every byte is counted against one limit before it is allocated: results of folding, tensors,
 * outputs, the tables of kernels, workspace. The sentence names the node that asks for most.
 */
#include "common/base/machine.h"
#include "common/base/size.h"
#include "common/exec/plan.h"
#include "common/graph/op.h"

enum { FAIR_BYTES = 1 << 30, FAIR_TIMES = 1024 };

size_t wf_plan_fair_limit(size_t given_bytes)
{
    size_t most = wf_machine_memory(), fair;

    if (!wf_mul_size(given_bytes, FAIR_TIMES, &fair) || !wf_add_size(fair, FAIR_BYTES, &fair))
        return most;
    return WF_MIN(fair, most);
}

static size_t result_bytes(const wf_value *v)
{
    int64_t dims[WF_MAX_RANK], elems;
    size_t bytes;

    if (!v || !wf_value_dims(v, dims) || !wf_dims_elems((uint32_t)v->rank, dims, &elems) ||
        !wf_mul_size((size_t)elems, wf_dtype_size(v->dtype), &bytes))
        return 0;
    return bytes;
}

/* The result of a run's nodes that takes most; NULL when there is none. */
static const wf_value *largest_result(const wf_plan *p)
{
    const wf_value *most = NULL;

    for (uint32_t i = 0; i < p->n_nodes; i++)
        for (uint32_t k = 0; k < p->nodes[i]->n_out; k++) {
            const wf_value *v = p->nodes[i]->out[k];

            if (v && (!most || result_bytes(v) > result_bytes(most)))
                most = v;
        }
    return most;
}

wf_status wf_plan_too_large(const wf_plan *p, size_t bytes, const wf_node *n, wf_err *err)
{
    const wf_value *v = n && n->n_out ? n->out[0] : largest_result(p);
    size_t total = SIZE_MAX;
    char text[160];

    n = v && v->producer ? v->producer : n;
    if (!wf_add_size(bytes, p->taken, &total))
        total = SIZE_MAX;
    if (!n || !v)
        return wf_fail(err, WF_NOMEM, p->limit_hint,
                       "a step needs at least %zu bytes; %zu may be used here", total,
                       p->limit_bytes);
    return wf_fail(
        err, WF_NOMEM, p->limit_hint,
        "%s \"%s\" makes %s: with it a step needs at least %zu bytes; %zu may be used here",
        n->op->name, n->name, wf_value_str(v, text, sizeof text), total, p->limit_bytes);
}

wf_status wf_plan_take(wf_plan *p, size_t bytes, const wf_node *n, wf_err *err)
{
    if (bytes > p->limit_bytes - p->taken)
        return wf_plan_too_large(p, bytes, n, err);
    p->taken += bytes;
    return WF_OK;
}

/* The memory of a device is used up, by this plan or by others on it. */
static wf_status no_room(const wf_plan *p, const wf_device *d, size_t bytes, const wf_node *n,
                         wf_err *err)
{
    static const char hint[] = "lower the batch, or use a device with more memory";
    const wf_value *v = n && n->n_out ? n->out[0] : largest_result(p);
    char text[160];

    if (!v || !v->producer)
        return wf_fail(err, WF_NOMEM, hint, "%s has no %zu bytes left, which a step needs", d->name,
                       bytes);
    return wf_fail(err, WF_NOMEM, hint,
                   "%s has no %zu bytes left, which a step needs; %s \"%s\" makes %s, the largest "
                   "tensor of it",
                   d->name, bytes, v->producer->op->name, v->producer->name,
                   wf_value_str(v, text, sizeof text));
}

wf_status wf_plan_reserve(wf_plan *p, const wf_device *d, size_t bytes, const wf_node *n,
                          wf_buf **out, wf_err *err)
{
    WF_TRY(wf_plan_take(p, bytes, n, err));
    if (p->measure_only)
        return WF_OK;
    *out = wf_buf_new_on(d, bytes);
    if (*out)
        return WF_OK;
    return d->is_host ? wf_fail_nomem(err, bytes) : no_room(p, d, bytes, n, err);
}
