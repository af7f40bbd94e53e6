/* SPDX-License-Identifier: Apache-2.0 */
/* common/exec/shapes.c - inference with the extents at hand, node by node; what follows from
 * constants alone is computed on the way, so that shapes which depend on it become known too. */
#include "common/base/size.h"
#include "common/exec/plan.h"
#include "common/graph/op.h"

#include <inttypes.h>
#include <string.h>

/* Results of folding stay as long as the plan: they get a part of its limit. */
enum { FOLD_ELEMS = 1 << 22, FOLD_SHARE = 4 };

static const wf_plan_shape *shape_for(const wf_plan_options *o, const char *name)
{
    for (size_t i = 0; i < o->n_shapes; i++)
        if (strcmp(o->shapes[i].name, name) == 0)
            return &o->shapes[i];
    return NULL;
}

static int64_t symbol_size(const wf_plan_options *o, const char *symbol)
{
    for (size_t i = 0; symbol && i < o->n_symbols; i++)
        if (strcmp(o->symbols[i].name, symbol) == 0)
            return o->symbols[i].size;
    return -1;
}

static wf_status use_shape(wf_value *v, const wf_plan_shape *s, wf_err *err)
{
    char text[160], wanted[192];

    if (v->rank >= 0 && (uint32_t)v->rank != s->rank)
        return wf_fail(err, WF_SHAPE, NULL, "input \"%s\" is %s, and was given %s", v->name,
                       wf_value_str(v, wanted, sizeof wanted),
                       wf_dims_str(s->rank, s->dims, text, sizeof text));
    for (uint32_t i = 0; i < s->rank; i++)
        if (s->dims[i] < 0 ||
            (v->rank >= 0 && v->axes[i].size >= 0 && v->axes[i].size != s->dims[i]))
            return wf_fail(err, WF_SHAPE, NULL, "input \"%s\" is %s, and was given %s", v->name,
                           wf_value_str(v, wanted, sizeof wanted),
                           wf_dims_str(s->rank, s->dims, text, sizeof text));
    wf_value_set_type(v, v->dtype, s->rank, s->dims);
    return WF_OK;
}

/* Makes an input concrete. */
static wf_status fix_input(wf_value *v, const wf_plan_options *o, wf_err *err)
{
    const wf_plan_shape *s = shape_for(o, v->name);
    int64_t dims[WF_MAX_RANK], size;

    if (s)
        return use_shape(v, s, err);
    if (v->rank < 0)
        return wf_fail(err, WF_SHAPE, "give its shape", "input \"%s\" has no known shape", v->name);
    for (int32_t i = 0; i < v->rank; i++) {
        const wf_axis *a = &v->axes[i];

        size = a->size >= 0 ? a->size : symbol_size(o, a->symbol);
        if (size < 0)
            return wf_fail(err, WF_SHAPE, "give its shape",
                           "input \"%s\": the extent of axis %d (%s) is not known", v->name, i,
                           a->symbol ? a->symbol : "without a name");
        if (a->size < 0 && a->bound >= 0 && size > a->bound)
            return wf_fail(err, WF_SHAPE, NULL,
                           "input \"%s\": axis %d may be %" PRId64
                           " at most, and was given %" PRId64,
                           v->name, i, a->bound, size);
        dims[i] = size;
    }
    wf_value_set_type(v, v->dtype, (uint32_t)v->rank, dims);
    return WF_OK;
}

/* A constant spread over a large shape is cheaper to make in each run, in shared memory, than to
 * keep; and a model may not have the compiler's memory by naming a shape. */
static bool is_small(const wf_value *v)
{
    int64_t dims[WF_MAX_RANK], elems;

    return wf_value_dims(v, dims) && wf_dims_elems((uint32_t)v->rank, dims, &elems) &&
           elems <= FOLD_ELEMS;
}

static bool folds(const wf_node *n)
{
    bool open = false;

    if (!(n->op->flags & WF_OP_FOLDABLE) || n->op->flags & (WF_OP_STATEFUL | WF_OP_RANDOM))
        return false;
    for (uint32_t i = 0; i < n->n_in; i++)
        if (n->in[i] && !wf_value_is_constant(n->in[i]))
            return false;
    for (uint32_t i = 0; i < n->n_out; i++)
        if (n->out[i]) {
            if (!is_small(n->out[i]) && (n->out[i]->rank < 0 || !wf_kernel_counts(n)))
                return false;
            open = open || !n->out[i]->known;
        }
    return open;
}

/* What folding n may make: a result whose extents are unknown cannot be made in a run instead. */
static size_t room_for(const wf_plan *p, const wf_node *n)
{
    int64_t dims[WF_MAX_RANK];

    for (uint32_t i = 0; i < n->n_out; i++)
        if (n->out[i] && !wf_value_dims(n->out[i], dims))
            return p->limit_bytes - p->taken;
    return WF_MIN(p->foldable, p->limit_bytes - p->taken);
}

/* Failing to compute it now is no error: if a run needs it, the run says what is wrong. */
static wf_status fold(wf_plan *p, wf_node *n, wf_err *err)
{
    const wf_tensor **in = wf_arena_array(p->arena, n->n_in, sizeof *in);
    wf_tensor **out = wf_arena_array(p->arena, n->n_out, sizeof *out);
    size_t bytes;

    if (!in || !out)
        return wf_fail_nomem(err, (n->n_in + n->n_out) * sizeof *in);
    for (uint32_t i = 0; i < n->n_in; i++)
        in[i] = n->in[i] ? n->in[i]->known : NULL;
    if (wf_kernel_eval(n, n->n_in, in, n->n_out, out, room_for(p, n), NULL) != WF_OK)
        return WF_OK;
    for (uint32_t i = 0; i < n->n_out; i++)
        if (n->out[i]) {
            bytes = wf_tensor_bytes(out[i]);
            p->foldable -= WF_MIN(bytes, p->foldable);
            p->taken += bytes;
            wf_value_set_type(n->out[i], out[i]->dtype, out[i]->rank, out[i]->dims);
            wf_value_set_known(n->out[i], &out[i]);
        }
    return WF_OK;
}

wf_status wf_plan_shapes(wf_plan *p, const wf_plan_options *o, wf_err *err)
{
    p->foldable = (p->limit_bytes - p->taken) / FOLD_SHARE;
    for (size_t i = 0; i < p->g->n_inputs; i++)
        WF_TRY(fix_input(p->g->inputs[i], o, err));
    for (size_t i = 0; i < p->g->n_nodes; i++) {
        WF_TRY(wf_infer_node(p->g, p->g->nodes[i], err));
        if (folds(p->g->nodes[i]))
            WF_TRY(fold(p, p->g->nodes[i], err));
    }
    return WF_OK;
}
