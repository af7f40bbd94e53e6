/* SPDX-License-Identifier: Apache-2.0 */
/* common/compile/widen.c - a model in half precision is computed in float32. Part of import.
 *
 * Kernels move float16 and bfloat16 and do not reckon in them, and a weight that is trained needs
 * more digits than its steps would leave of it in a half. So variables, constants and all that
 * comes of them become float32. Inputs keep the type that the file says, and so do the outputs of a
 * graph that is no step of training; a file that is exported holds its weights as it did before.
 * Where a graph only moves halves it stays as it is.
 */
#include "common/compile/pass.h"
#include "common/graph/emit.h"
#include "common/kernels/kernel.h"

#include <string.h>

static bool is_half(wf_dtype dtype)
{
    return dtype == WF_F16 || dtype == WF_BF16;
}

static bool has_half(wf_value *const values[], uint32_t n)
{
    for (uint32_t i = 0; i < n; i++)
        if (values[i] && is_half(values[i]->dtype))
            return true;
    return false;
}

/* A half value of the graph, NULL when there is none or when halves are only moved. */
static const wf_value *find_reason(const wf_unit *u)
{
    const wf_value *half = NULL;

    for (size_t i = 0; i < u->graph->n_values && !half; i++)
        if (is_half(u->graph->values[i]->dtype))
            half = u->graph->values[i];
    if (!half || u->spec->mode != WF_COMPILE_RUN)
        return half;
    for (size_t i = 0; i < u->graph->n_nodes; i++) {
        const wf_node *n = u->graph->nodes[i];
        const wf_kernel *k;

        if ((has_half(n->in, n->n_in) || has_half(n->out, n->n_out)) &&
            wf_kernel_find(n, &wf_cpu, &k, NULL) != WF_OK)
            return half;
    }
    return NULL;
}

wf_status wf_widened(const wf_tensor *t, wf_tensor **out, wf_err *err)
{
    const uint16_t *from = t->data;
    float *to;

    WF_TRY(wf_tensor_new(WF_F32, t->rank, t->dims, out, err));
    to = (*out)->data;
    for (int64_t i = 0; i < wf_elems(t); i++)
        to[i] = t->dtype == WF_F16 ? wf_f16_to_f32(from[i]) : wf_bf16_to_f32(from[i]);
    return WF_OK;
}

wf_status wf_narrowed(const wf_tensor *t, wf_dtype half, wf_tensor **out, wf_err *err)
{
    const float *from = t->data;
    uint16_t *to;

    WF_TRY(wf_tensor_new(half, t->rank, t->dims, out, err));
    to = (*out)->data;
    for (int64_t i = 0; i < wf_elems(t); i++)
        to[i] = half == WF_F16 ? wf_f32_to_f16(from[i]) : wf_f32_to_bf16(from[i]);
    return WF_OK;
}

/* Attributes that say half. */
static wf_status widen_node(wf_graph *g, wf_node *n, wf_err *err)
{
    for (uint32_t i = 0; i < n->n_attrs; i++) {
        const wf_attr *a = &n->attrs[i];
        wf_attr wide = *a;
        wf_tensor *t = NULL;
        wf_status rc;

        if (a->kind == WF_ATTR_INT && is_half((wf_dtype)a->i) &&
            (!strcmp(a->name, "to") || !strcmp(a->name, "dtype")))
            WF_TRY(wf_node_set_int(g, n, a->name, WF_F32, err));
        if (a->kind != WF_ATTR_TENSOR || !is_half(a->t->dtype))
            continue;
        WF_TRY(wf_widened(a->t, &t, err));
        wide.t = t;
        rc = wf_node_set_attr(g, n, &wide, err);
        wf_tensor_free(&t);
        WF_TRY(rc);
    }
    return WF_OK;
}

/* Those who read v in the first `n_nodes` nodes read a float32 of it. */
static wf_status read_wide(wf_unit *u, wf_value *v, size_t n_nodes, wf_err *err)
{
    wf_emit e = wf_emit_begin(u->graph, v->name, err);
    wf_value *wide = wf_emit_cast(&e, v, WF_F32);

    WF_TRY(wf_emit_end(&e));
    for (size_t i = 0; i < n_nodes; i++) {
        wf_node *n = u->graph->nodes[i];

        for (uint32_t k = 0; k < n->n_in; k++)
            if (n->in[k] == v)
                wf_node_set_in(n, k, wide);
    }
    return WF_OK;
}

static wf_status widen_value(wf_unit *u, wf_value *v, size_t n_nodes, wf_err *err)
{
    wf_tensor *wide = NULL;

    if (v->producer || !is_half(v->dtype))
        return WF_OK;
    if (v->is_input || (u->spec->is_portable && v->variable != WF_VAR_NOT))
        return read_wide(u, v, n_nodes, err);
    if (!v->known)
        return WF_OK;
    WF_TRY(wf_widened(v->known, &wide, err));
    v->dtype = WF_F32;
    wf_value_set_known(v, &wide);
    return WF_OK;
}

/* Output i, now float32, gives way to a value of its name in the type that the file says. */
static wf_status narrow_output(wf_unit *u, size_t i, wf_dtype half, wf_err *err)
{
    wf_graph *g = u->graph;
    wf_value *wide = g->outputs[i], *narrow;
    const char *name = wide->name, *inner = wf_arena_printf(g->arena, "%s/float32", name);
    wf_attr to = wf_attr_int("to", half);
    wf_node *n;

    if (!inner)
        return wf_fail_nomem(err, strlen(name));
    if (wide->dtype != WF_F32 || !wide->producer)
        return WF_OK;
    if (wf_graph_value(g, inner))
        return wf_fail(err, WF_INVALID, "give it another name", "a value is called \"%.200s\"",
                       inner);
    WF_TRY(wf_graph_rename_value(g, wide, inner, err));
    WF_TRY(wf_graph_add_value(g, name, &narrow, err));
    WF_TRY(wf_graph_add_node_like(g, wf_op_find(WF_DOMAIN_ONNX, "Cast"), name, 1, &wide, 1, &narrow,
                                  &n, err));
    WF_TRY(wf_node_set_attr(g, n, &to, err));
    g->outputs[i] = narrow;
    return wf_infer_node(g, n, err);
}

static wf_status narrow_outputs(wf_unit *u, const wf_dtype was[], wf_err *err)
{
    bool literal = u->spec->mode == WF_COMPILE_RUN || u->spec->mode == WF_COMPILE_INFER;

    for (size_t i = 0; literal && i < u->graph->n_outputs; i++)
        if (is_half(was[i]))
            WF_TRY(narrow_output(u, i, was[i], err));
    return WF_OK;
}

wf_status wf_import_widen(wf_unit *u, wf_err *err)
{
    wf_graph *g = u->graph;
    const wf_value *reason = find_reason(u);
    size_t n_nodes = g->n_nodes, n_values = g->n_values;
    wf_dtype *was;

    if (!reason)
        return WF_OK;
    WF_TRY(wf_unit_warn(u, err, "\"%s\" is %s: what the model has in it is computed in float32",
                        reason->name, wf_dtype_name(reason->dtype)));
    was = wf_arena_array(u->arena, g->n_outputs + 1, sizeof was[0]);
    if (!was)
        return wf_fail_nomem(err, g->n_outputs);
    for (size_t i = 0; i < g->n_outputs; i++)
        was[i] = g->outputs[i]->dtype;
    for (size_t i = 0; i < n_nodes; i++)
        WF_TRY(widen_node(g, g->nodes[i], err));
    for (size_t i = 0; i < n_values; i++)
        WF_TRY(widen_value(u, g->values[i], n_nodes, err));
    WF_TRY(wf_graph_sort(g, err));
    WF_TRY(wf_infer(g, err));
    return narrow_outputs(u, was, err);
}
