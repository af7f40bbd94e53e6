/* SPDX-License-Identifier: Apache-2.0 */
/* common/kernels/eval.c - one node by itself, for constant folding. */
#include "common/base/size.h"
#include "common/graph/op.h"
#include "common/kernels/kernel.h"

#include <stdlib.h>
#include <string.h>

/* The plain facts of a kernel, whatever the sizes of its tensors. */
enum { EVAL_BYTES = 1 << 16 };

/* dims[i] of output i, where inference knows them or the kernel does. */
static wf_status find_dims(const wf_kernel *k, const wf_node *node, uint32_t n_out,
                           const wf_tensor *const in[], int64_t (*dims)[WF_MAX_RANK], wf_err *err)
{
    bool open = false;

    for (uint32_t i = 0; i < n_out; i++) {
        const wf_value *v = node->out[i];

        if (!v)
            continue;
        if (v->rank < 0 || v->dtype == WF_NONE)
            return wf_fail(err, WF_UNSUPPORTED, NULL, "the shape of its result is not known");
        open = open || !wf_value_dims(v, dims[i]);
    }
    if (!open)
        return WF_OK;
    if (!k->extents)
        return wf_fail(err, WF_UNSUPPORTED, NULL, "the shape of its result is not known");
    wf_assert(n_out <= WF_KERNEL_PORTS);
    return k->extents(node, in, dims, err);
}

/* Takes the bytes of one more result from *room. */
static wf_status take(size_t *room, const wf_value *v, const int64_t dims[], wf_err *err)
{
    char text[128];
    int64_t elems;
    size_t bytes;

    if (!wf_dims_elems((uint32_t)v->rank, dims, &elems) ||
        !wf_mul_size((size_t)elems, wf_dtype_size(v->dtype), &bytes) || bytes > *room)
        return wf_fail(err, WF_NOMEM, NULL, "its result %s%s does not fit into %zu bytes",
                       wf_dtype_name(v->dtype),
                       wf_dims_str((uint32_t)v->rank, dims, text, sizeof text), *room);
    *room -= bytes;
    return WF_OK;
}

static wf_status make_outputs(const wf_kernel *k, const wf_node *node, uint32_t n_out,
                              const wf_tensor *const in[], wf_tensor *out[], size_t *room,
                              wf_err *err)
{
    int64_t(*dims)[WF_MAX_RANK] = calloc(WF_MAX(n_out, (uint32_t)WF_KERNEL_PORTS), sizeof *dims);
    wf_status rc;

    if (!dims)
        return wf_fail_nomem(err, n_out * sizeof *dims);
    rc = find_dims(k, node, n_out, in, dims, err);
    for (uint32_t i = 0; rc == WF_OK && i < n_out; i++)
        if (node->out[i])
            rc = take(room, node->out[i], dims[i], err);
    for (uint32_t i = 0; rc == WF_OK && i < n_out; i++)
        if (node->out[i])
            rc = wf_tensor_new(node->out[i]->dtype, (uint32_t)node->out[i]->rank, dims[i], &out[i],
                               err);
    free(dims);
    return rc;
}

/* The workspace of kernels that ask for none, or for none of an empty tensor. */
static _Alignas(WF_BUF_ALIGN) char nothing[WF_BUF_ALIGN];

/* in and out padded to WF_KERNEL_PORTS, as kernels read them. */
static wf_status run_one(const wf_kernel *k, const wf_node *node, const wf_tensor *const in[],
                         wf_tensor *const out[], size_t room, wf_err *err)
{
    wf_status rc;
    void *workspace = NULL;
    wf_prep prep = {.node = node,
                    .kernel = k,
                    .device = &wf_cpu,
                    .arena = wf_arena_new(room + EVAL_BYTES),
                    .threads = 1};
    wf_run run = {.node = node, .kernel = k, .device = &wf_cpu};

    if (!prep.arena)
        return wf_fail_nomem(err, 0);
    rc = wf_stream_new(&wf_cpu, &run.stream, err);
    if (rc == WF_OK && k->prepare)
        rc = k->prepare(&prep, in, (const wf_tensor *const *)out, err);
    if (rc != WF_OK)
        goto out;
    if (prep.workspace_bytes) {
        if (prep.workspace_bytes <= room - WF_MIN(room, wf_arena_used(prep.arena)))
            workspace =
                aligned_alloc(WF_BUF_ALIGN, wf_align_up(prep.workspace_bytes, WF_BUF_ALIGN));
        if (!workspace) {
            rc = wf_fail_nomem(err, prep.workspace_bytes);
            goto out;
        }
    }
    run.workspace = workspace ? workspace : nothing;
    run.state = prep.state;
    rc = k->run(&run, in, out, err);
out:
    wf_stream_free(&run.stream);
    free(workspace);
    if (prep.release)
        prep.release(prep.state);
    wf_arena_free(&prep.arena);
    return rc;
}

bool wf_kernel_counts(const wf_node *node)
{
    const wf_kernel *k;

    return wf_kernel_find(node, &wf_cpu, &k, NULL) == WF_OK && k->extents;
}

wf_status wf_kernel_eval(const wf_node *node, uint32_t n_in, const wf_tensor *const in[],
                         uint32_t n_out, wf_tensor *out[], size_t limit_bytes, wf_err *err)
{
    wf_status rc;
    const wf_kernel *k;
    size_t ports = (size_t)WF_MAX(n_in, n_out) + WF_KERNEL_PORTS;
    const wf_tensor **ins = calloc(ports, sizeof *ins);
    wf_tensor **outs = calloc(ports, sizeof *outs);

    wf_assert(n_in <= node->n_in && n_out == node->n_out);
    memset(out, 0, n_out * sizeof out[0]);
    if (!ins || !outs) {
        rc = wf_fail_nomem(err, ports * 2 * sizeof *ins);
        goto out;
    }
    memcpy(ins, in, n_in * sizeof in[0]);
    rc = wf_kernel_find(node, &wf_cpu, &k, err);
    if (rc != WF_OK)
        goto out;
    rc = make_outputs(k, node, n_out, ins, outs, &limit_bytes, err);
    if (rc == WF_OK)
        rc = run_one(k, node, ins, outs, limit_bytes, err);
    rc = wf_err_wrap(err, rc, "%s \"%s\"", node->op->name, node->name);
    if (rc == WF_OK) {
        memcpy(out, outs, n_out * sizeof out[0]);
        memset(outs, 0, n_out * sizeof outs[0]);
    }
out:
    for (uint32_t i = 0; outs && i < n_out; i++)
        wf_tensor_free(&outs[i]);
    free(ins);
    free(outs);
    return rc;
}
