/* SPDX-License-Identifier: Apache-2.0 */
/* common/exec/layout.c - which values of a plan for GPUs have their channels last in memory
 * (common/graph/channels_last.h).
 *
 * Convolutions of narrow factors make such images, whatever the order of those that they read. What
 * is computed of images follows: normalisations, poolings and elementwise operations give the order
 * that they are given, and so do the gradients of all. A sum for each channel takes either, with
 * other axes: it is the gradient of a bias. Where any other node reads such an image, or
 * one of these nodes lacks it for one of its operands, a Transpose in front of it makes the twin in
 * the other order, once for all readers.
 *
 * A Relu that alone reads what a normalisation makes of such an image becomes a part of it, which
 * saves a pass over the image; the gradient of Relu reads its result, and so does not miss the
 * other.
 *
 * Only narrow images of 8 channels, or a multiple of it, are kept so: GPUs read 16 bytes at a time.
 * They have less than 2^31 elements, since kernels count them in 32 bits.
 * One of a single place (the mean of each channel) is the same in both orders, and keeps its axes.
 */
#include "common/exec/plan.h"
#include "common/graph/channels_last.h"
#include "common/graph/narrow.h"
#include "common/graph/op.h"

#include <string.h>

enum { RANK = 4, C = 1, H = 2, W = 3, H_LAST = 1, W_LAST = 2, C_LAST = 3, NO_LEADER = -1 };

typedef struct row {
    const char *op;
    bool convolves;  /* takes images of any order */
    int8_t leader;   /* the input whose order output 0 gets; convolutions have none */
    uint32_t images; /* inputs that are images */
    bool makes;      /* output 0 is an image */
} row;

#define INPUT(i) (1u << (i))

static const row rows[] = {
    {"Conv", true, NO_LEADER, INPUT(0), true},
    {"ConvDataGrad", true, NO_LEADER, INPUT(0) | INPUT(2), true},
    {"ConvWeightGrad", true, NO_LEADER, INPUT(0) | INPUT(1), false},
    {"BatchNormalization", false, 0, INPUT(0), true},
    {"BatchNormalizationTrain", false, 0, INPUT(0), true},
    {"BatchNormalizationGrad", false, 1, INPUT(0) | INPUT(1), true},
    {"AveragePool", false, 0, INPUT(0), true},
    {"AveragePoolGrad", false, 1, INPUT(0) | INPUT(1), true},
    {"GlobalAveragePool", false, 0, INPUT(0), true},
    {"MaxPool", false, 0, INPUT(0), true},
    {"MaxPoolGrad", false, 1, INPUT(0) | INPUT(1) | INPUT(2), true},
};

/* Each result is of the elements at its place, if no operand is broadcast. */
static const char *const elementwise[] = {
    "Add",           "Chain",       "Div",           "Gelu",  "GeluGrad", "HardSwish",
    "HardSwishGrad", "LeakyRelu",   "LeakyReluGrad", "Mul",   "Relu",     "ReluGrad",
    "Sigmoid",       "SigmoidGrad", "Sub",           "Swish", "SwishGrad"};

static const row *row_of(const wf_node *n)
{
    for (size_t i = 0; i < WF_COUNT(rows); i++)
        if (strcmp(rows[i].op, n->op->name) == 0)
            return &rows[i];
    return NULL;
}

static bool is_elementwise(const wf_node *n)
{
    for (size_t i = 0; i < WF_COUNT(elementwise); i++)
        if (strcmp(elementwise[i], n->op->name) == 0)
            return true;
    return false;
}

/* The pass in hand; by index of what was there before it. */
typedef struct layout {
    wf_plan *p;
    wf_graph *g;
    bool *last;       /* [n_values] */
    wf_value **twins; /* [n_values]: in the other order; NULL: not made */
    wf_node **order;  /* all nodes, as they run from now on */
    bool *keep;       /* [n_nodes + twins]: not a part of another by now */
    size_t n_order, n_values;
} layout;

static bool is_last(const layout *l, const wf_value *v)
{
    return v && v->index < l->n_values && l->last[v->index];
}

/* Whether v is a port, which is as the plan's maker has it. */
static bool is_port(const layout *l, const wf_value *v)
{
    for (size_t i = 0; i < l->g->n_outputs; i++)
        if (l->g->outputs[i] == v)
            return true;
    for (const wf_use *u = v->first_use; u; u = u->next)
        if (wf_plan_is_sink(u->node))
            return true;
    return false;
}

/* Of axes n, c, h, w: one place. */
static bool is_single(const wf_value *v)
{
    return v && v->rank == RANK && v->axes[H].size == 1 && v->axes[W].size == 1;
}

/* One that stands for an image in either order: poolings take it in float32 too. */
static bool is_mean(const wf_value *v)
{
    return is_single(v) && (v->dtype == WF_F32 || wf_dtype_is_narrow(v->dtype));
}

/* A narrow image in the order n, c, h, w. */
static bool is_image(const wf_value *v)
{
    return v && v->rank == RANK && wf_dtype_is_narrow(v->dtype);
}

static bool has_room(const wf_value *v)
{
    int64_t dims[WF_MAX_RANK], elems;

    return wf_value_dims(v, dims) && wf_dims_elems(RANK, dims, &elems) && elems > 0 &&
           elems <= INT32_MAX && v->axes[C].size % WF_CHANNELS_TOGETHER == 0;
}

/* Whether v, whose axes are n, c, h, w, may have its channels last. */
static bool may_be_last(const layout *l, const wf_value *v)
{
    return is_image(v) && !v->known && has_room(v) && !is_single(v) && !is_port(l, v);
}

/* From n, c, h, w, or back. */
static void set_axes(wf_value *to, const wf_value *from, bool last)
{
    const wf_axis of[RANK] = {from->axes[0], from->axes[1], from->axes[2], from->axes[3]};

    to->axes[0] = of[0];
    to->axes[last ? C_LAST : C] = of[last ? C : C_LAST];
    to->axes[last ? H_LAST : H] = of[last ? H : H_LAST];
    to->axes[last ? W_LAST : W] = of[last ? W : W_LAST];
}

static wf_status add_twin(layout *l, wf_node *reader, wf_value *v, wf_err *err)
{
    const bool last = !is_last(l, v);
    const wf_attr perm = {.name = "perm",
                          .kind = WF_ATTR_INTS,
                          .n = RANK,
                          .ints = last ? (const int64_t[]){0, H, W, C}
                                       : (const int64_t[]){0, C_LAST, H_LAST, W_LAST}};
    wf_value *twin;
    wf_node *n;

    WF_TRY(wf_graph_add_value_like(l->g, v->name, &twin, err));
    twin->dtype = v->dtype;
    twin->rank = v->rank;
    set_axes(twin, v, last);
    WF_TRY(wf_graph_add_node_like(l->g, wf_op_find("", "Transpose"), v->name, 1, &v, 1, &twin, &n,
                                  err));
    WF_TRY(wf_node_set_attr(l->g, n, &perm, err));
    n->device = reader->device;
    twin->index = (uint32_t)(l->g->n_values - 1);
    l->order[l->n_order++] = n;
    l->twins[v->index] = twin;
    return WF_OK;
}

/* Input i of n in the order that is asked for. */
static wf_status bring(layout *l, wf_node *n, uint32_t i, bool last, wf_err *err)
{
    wf_value *v = n->in[i];

    if (!v || is_last(l, v) == last)
        return WF_OK;
    if (!l->twins[v->index])
        WF_TRY(add_twin(l, n, v, err));
    wf_node_set_in(n, i, l->twins[v->index]);
    return WF_OK;
}

static void make_last(layout *l, wf_value *v)
{
    l->last[v->index] = true;
    set_axes(v, v, true);
}

/* Whether an operand can stand beside images with their channels last. */
static bool fits(const layout *l, const wf_value *v)
{
    return is_last(l, v) || is_mean(v) || (is_image(v) && has_room(v));
}

/* Whether a node of a row follows its leader: all its images have to be narrow. */
static bool follows(const layout *l, const wf_node *n, const row *r)
{
    if (!is_last(l, n->in[r->leader]))
        return false;
    for (uint32_t i = 0; i < n->n_in; i++)
        if ((r->images >> i & 1) && !fits(l, n->in[i]))
            return false;
    if (strcmp(n->op->name, "MaxPool") == 0 && wf_node_has_out(n, 1)) /* indices */
        return false;
    return may_be_last(l, n->out[0]) || is_mean(n->out[0]);
}

static wf_status mark(layout *l, wf_node *n, const row *r, wf_err *err)
{
    int64_t bits = 0;

    for (uint32_t i = 0; i < n->n_in; i++)
        if ((r->images >> i & 1) && n->in[i]) {
            const wf_value *v = n->in[i];
            /* A twin is there because the node wants its order. */
            const bool last = v->index < l->n_values ? is_last(l, v) : true;

            bits |= (int64_t)last << i;
        }
    if (r->makes && is_last(l, n->out[0]))
        bits |= (int64_t)1 << WF_CHANNELS_LAST_OUT;
    return wf_node_set_int(l->g, n, WF_CHANNELS_LAST, bits, err);
}

/* A convolution of narrow images over two axes, one of which has its channels last. */
static bool is_convolution(const layout *l, const wf_node *n, const row *r)
{
    const wf_value *w = r->makes ? n->in[1] : n->out[0];
    bool any = r->makes && may_be_last(l, n->out[0]);

    for (uint32_t i = 0; i < n->n_in; i++)
        any = any || ((r->images >> i & 1) && is_last(l, n->in[i]));
    return any && r->convolves && wf_node_narrow(n) != WF_NONE && w && w->rank == RANK &&
           wf_node_int(n, "group", 1) == 1;
}

/* An elementwise node all of whose operands have the extents of its result, if one is last. */
static bool joins(const layout *l, const wf_node *n)
{
    const wf_value *out = n->out[0];
    bool any = false;

    if (!is_elementwise(n) || !may_be_last(l, out))
        return false;
    for (uint32_t i = 0; i < n->n_in; i++) {
        const wf_value *v = n->in[i];
        const bool last = is_last(l, v);

        if (!v || v->rank != RANK || v->axes[0].size != out->axes[0].size ||
            v->axes[last ? C_LAST : C].size != out->axes[C].size ||
            v->axes[last ? H_LAST : H].size != out->axes[H].size ||
            v->axes[last ? W_LAST : W].size != out->axes[W].size)
            return false;
        any = any || last;
    }
    return any;
}

/* Whether n sums, or averages, each channel of an image with its channels last. */
static bool sums_channels(const layout *l, const wf_node *n)
{
    const wf_tensor *axes = wf_node_has_in(n, 1) ? n->in[1]->known : NULL;
    uint32_t set = 0;

    if ((strcmp(n->op->name, "ReduceSum") != 0 && strcmp(n->op->name, "ReduceMean") != 0) ||
        !is_last(l, n->in[0]) || wf_node_int(n, "keepdims", 1) != 0 || !axes ||
        axes->dtype != WF_I64 || wf_elems(axes) != RANK - 1)
        return false;
    for (int64_t i = 0; i < RANK - 1; i++) {
        const int64_t axis = ((const int64_t *)axes->data)[i];

        set |= 1u << (axis < 0 ? axis + RANK : axis);
    }
    return set == (1u << 0 | 1u << H | 1u << W);
}

/* Its axes, where the channels are last. */
static wf_status set_sum_axes(layout *l, wf_node *n, wf_err *err)
{
    const int64_t dims[] = {RANK - 1}, axes[] = {0, H_LAST, W_LAST};
    wf_tensor *t = NULL;
    wf_value *v = NULL;
    wf_status rc;

    WF_TRY(wf_tensor_new(WF_I64, 1, dims, &t, err));
    memcpy(t->data, axes, sizeof axes);
    rc = wf_graph_add_constant(l->g, n->name, &t, &v, err);
    wf_tensor_free(&t);
    if (rc != WF_OK)
        return rc;
    v->index = (uint32_t)(l->g->n_values - 1);
    wf_node_set_in(n, 1, v);
    l->order[l->n_order++] = n;
    return WF_OK;
}

/* The normalisation that n, a Relu, can be a part of; NULL: none. */
static wf_node *norm_before(const layout *l, const wf_node *n)
{
    wf_value *x = n->in[0];

    if (strcmp(n->op->name, "Relu") != 0 || !is_last(l, x) || !may_be_last(l, n->out[0]) ||
        n->out[0]->dtype != x->dtype || x->n_uses != 1 || !x->producer)
        return NULL;
    return strcmp(x->producer->op->name, "BatchNormalization") == 0 ||
                   strcmp(x->producer->op->name, "BatchNormalizationTrain") == 0
               ? x->producer
               : NULL;
}

static wf_status join_relu(layout *l, wf_node *norm, wf_node *n, wf_err *err)
{
    l->keep[n->index] = false;
    wf_graph_replace_uses(l->g, n->out[0], n->in[0]);
    return wf_node_set_int(l->g, norm, WF_THEN_RELU, 1, err);
}

static wf_status place(layout *l, wf_node *n, wf_err *err)
{
    const row *r = row_of(n);
    const bool convolves = r && is_convolution(l, n, r);
    const bool with = !r ? joins(l, n) : !convolves && !r->convolves && follows(l, n, r);
    wf_node *norm = norm_before(l, n);

    if (norm)
        return join_relu(l, norm, n, err);
    if (sums_channels(l, n))
        return set_sum_axes(l, n, err);
    for (uint32_t i = 0; i < n->n_in && !convolves; i++) {
        const bool image = with && (!r || (r->images >> i & 1));
        const bool same = image && r && !is_last(l, n->in[i]) && is_mean(n->in[i]);

        if (!same)
            WF_TRY(bring(l, n, i, image, err));
    }
    if ((convolves ? r->makes : with) && may_be_last(l, n->out[0]))
        make_last(l, n->out[0]);
    l->order[l->n_order++] = n;
    return r && (convolves || with) ? mark(l, n, r, err) : WF_OK;
}

wf_status wf_plan_layout(wf_plan *p, wf_err *err)
{
    layout l = {.p = p, .g = p->g, .n_values = p->g->n_values};
    const size_t n = p->g->n_nodes, most = n + 2 * p->g->n_values;

    l.last = wf_arena_array(p->arena, l.n_values, sizeof *l.last);
    l.twins = wf_arena_array(p->arena, l.n_values, sizeof *l.twins);
    l.order = wf_arena_array(p->arena, most, sizeof *l.order);
    l.keep = wf_arena_array(p->arena, most, sizeof *l.keep);
    if (!l.last || !l.twins || !l.order || !l.keep)
        return wf_fail_nomem(err, most * sizeof *l.order);
    memset(l.keep, true, most * sizeof *l.keep);
    for (size_t i = 0; i < l.n_values; i++)
        p->g->values[i]->index = (uint32_t)i;
    for (size_t i = 0; i < n; i++)
        WF_TRY(place(&l, p->g->nodes[i], err));
    wf_graph_keep_nodes(p->g, l.keep);
    wf_assert(l.n_order == p->g->n_nodes);
    for (size_t i = 0; i < l.n_order; i++) {
        p->g->nodes[i] = l.order[i];
        p->g->nodes[i]->index = (uint32_t)i;
    }
    return WF_OK;
}
