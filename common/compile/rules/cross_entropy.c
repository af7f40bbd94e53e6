/* SPDX-License-Identifier: Apache-2.0 */
/* common/compile/rules/cross_entropy.c - crossentropies that are written out, in the form that no
 * logit can overflow:
 *
 *     Log(Softmax(x))                                     LogSoftmax(x)
 *     NegativeLogLikelihoodLoss(LogSoftmax(x), labels)    SoftmaxCrossEntropyLoss(x, labels)
 *     GatherElements(LogSoftmax(x), labels)               -SoftmaxCrossEntropyLoss(x, labels)
 *     ReduceSum(OneHot(labels) LogSoftmax(x))             the same
 *     y log s + (1 - y) log(1 - s), s = Sigmoid(x)        -SigmoidCrossEntropy(x, y)
 *     (1 - y) x - log s                                   SigmoidCrossEntropy(x, y)
 *
 * This runs before differentiate, after log_sigmoid.c. What GatherElements and OneHot do with
 * labels that are no class stays: the one counts negative ones from the end, the other gives zeros.
 */
#include "common/compile/rules/rules.h"

static wf_status log_softmax(wf_rewrite *r)
{
    const wf_node *softmax = wf_rewrite_made_by(r->n, 0, "Softmax");
    wf_emit e = wf_emit_begin(r->u->graph, r->n->name, r->err);

    if (softmax)
        r->instead = wf_emit_op(&e, "LogSoftmax", 1, softmax->in, softmax->n_attrs, softmax->attrs);
    return wf_emit_end(&e);
}

/* The axis that a node of `rank` axes goes along; -1: none that there is. */
static int64_t axis_of(const wf_node *n, int32_t rank, int64_t otherwise)
{
    int64_t axis = wf_node_int(n, "axis", otherwise);

    axis = axis < 0 ? axis + rank : axis;
    return axis < rank ? axis : -1;
}

/* The LogSoftmax that makes v, along the axis where SoftmaxCrossEntropyLoss has its classes. */
static const wf_node *log_probabilities(const wf_value *v)
{
    const wf_node *n = wf_rewrite_maker(v, "LogSoftmax");

    return n && v->rank >= 2 && axis_of(n, v->rank, -1) == 1 && v->axes[1].size > 0 ? n : NULL;
}

static wf_status likelihood(wf_rewrite *r)
{
    const wf_node *logs = log_probabilities(r->n->in[0]);
    wf_emit e = wf_emit_begin(r->u->graph, r->n->name, r->err);
    wf_value *in[3];

    if (!logs)
        return WF_OK;
    in[0] = logs->in[0];
    in[1] = r->n->in[1];
    in[2] = wf_node_has_in(r->n, 2) ? r->n->in[2] : NULL;
    r->instead =
        wf_emit_op(&e, "SoftmaxCrossEntropyLoss", in[2] ? 3 : 2, in, r->n->n_attrs, r->n->attrs);
    return wf_emit_end(&e);
}

/* -log of the labels' probabilities. Labels below 0 count from the last class. */
static wf_value *emit_loss(wf_emit *e, const wf_node *logs, wf_value *labels, uint32_t n_attrs,
                           const wf_attr attrs[])
{
    wf_value *zero = wf_emit_scalar(e, labels->dtype, 0.0);
    wf_value *classes = wf_emit_scalar(e, labels->dtype, (double)logs->in[0]->axes[1].size);
    wf_value *wrapped = wf_emit_where(e, wf_emit_binary(e, "Less", labels, zero),
                                      wf_emit_add(e, labels, classes), labels);

    return wf_emit_op(e, "SoftmaxCrossEntropyLoss", 2, (wf_value *[]){logs->in[0], wrapped},
                      n_attrs, attrs);
}

/* Whether the labels have the axes of x but for the classes, of which they have one: as an axis of
 * 1, or none. */
static bool are_labels(const wf_value *labels, const wf_value *x, bool has_axis)
{
    wf_value rest = *x;

    rest.rank--;
    for (int32_t i = 1; i < rest.rank; i++)
        rest.axes[i] = x->axes[i + 1];
    if (!has_axis)
        return wf_same_shape(labels, &rest);
    rest = *x;
    rest.axes[1] = (wf_axis){.size = 1, .bound = 1};
    return wf_same_shape(labels, &rest);
}

static wf_status gathered(wf_rewrite *r)
{
    const wf_node *logs = log_probabilities(r->n->in[0]);
    wf_emit e = wf_emit_begin(r->u->graph, r->n->name, r->err);
    wf_attr none = wf_attr_string("reduction", "none");
    wf_value *labels = r->n->in[1], *axis;

    if (!logs || axis_of(r->n, logs->in[0]->rank, 0) != 1 ||
        !are_labels(labels, logs->in[0], true) || !wf_rewrite_sole(r, r->n->in[0]))
        return WF_OK;
    axis = wf_emit_ints(&e, 1, (const int64_t[]){1});
    labels = wf_emit_binary(&e, "Squeeze", labels, axis);
    if (!labels)
        return wf_emit_end(&e);
    r->instead = wf_emit_neg(&e, emit_loss(&e, logs, labels, 1, &none));
    r->instead = wf_emit_unsqueeze(&e, r->instead, 1, (const int64_t[]){1});
    return wf_emit_end(&e);
}

/* Whether a ReduceSum goes over axis 1 alone. */
static bool sums_classes(const wf_node *n)
{
    wf_elem axes[WF_MAX_CARRIED];
    uint32_t count;

    return wf_node_has_in(n, 1) && wf_value_elems(n->in[1], axes, &count) && count == 1 &&
           axes[0].is_known &&
           (axes[0].value < 0 ? axes[0].value + n->in[0]->rank : axes[0].value) == 1;
}

/* Labels of a OneHot of zeros and a one, as deep as there are classes along axis 1; else NULL. */
static wf_value *one_hot_labels(const wf_value *v, const wf_value *x)
{
    const wf_node *cast = wf_rewrite_maker(v, "Cast");
    const wf_node *n = wf_rewrite_maker(cast ? cast->in[0] : v, "OneHot");
    const wf_tensor *values = n ? n->in[2]->known : NULL;
    double depth;

    if (!n || !wf_scalar_of(n->in[1], &depth) || depth != (double)x->axes[1].size ||
        axis_of(n, x->rank, -1) != 1 || !wf_value_is_constant(n->in[2]) || wf_elems(values) != 2 ||
        !wf_dtype_is_int(n->in[0]->dtype) || !are_labels(n->in[0], x, false))
        return NULL;
    switch (values->dtype) {
    case WF_F32:
        return wf_f32(values)[0] == 0 && wf_f32(values)[1] == 1 ? n->in[0] : NULL;
    case WF_F64:
        return ((const double *)values->data)[0] == 0 && ((const double *)values->data)[1] == 1
                   ? n->in[0]
                   : NULL;
    case WF_I64:
        return ((const int64_t *)values->data)[0] == 0 && ((const int64_t *)values->data)[1] == 1
                   ? n->in[0]
                   : NULL;
    default:
        return NULL;
    }
}

/* Labels that are no class have a row of zeros in OneHot: they are ignored. */
static wf_value *emit_hot_loss(wf_emit *e, const wf_node *logs, wf_value *labels)
{
    double classes = (double)logs->in[0]->axes[1].size;
    wf_value *low = wf_emit_scalar(e, labels->dtype, -classes);
    wf_value *high = wf_emit_scalar(e, labels->dtype, classes);
    wf_value *outside = wf_emit_binary(e, "Or", wf_emit_binary(e, "Less", labels, low),
                                       wf_emit_binary(e, "GreaterOrEqual", labels, high));
    /* -1 - classes becomes -1, which is ignored. */
    wf_value *no_class = wf_emit_scalar(e, labels->dtype, -1.0 - classes);
    wf_attr attrs[] = {wf_attr_string("reduction", "none"), wf_attr_int("ignore_index", -1)};

    labels = wf_emit_where(e, outside, no_class, labels);
    return labels ? emit_loss(e, logs, labels, 2, attrs) : NULL;
}

static wf_status hot(wf_rewrite *r)
{
    const wf_node *mul = wf_rewrite_made_by(r->n, 0, "Mul");
    wf_emit e = wf_emit_begin(r->u->graph, r->n->name, r->err);

    if (!mul || !sums_classes(r->n) || !wf_rewrite_sole(r, mul->out[0]))
        return WF_OK;
    for (uint32_t i = 0; i < 2 && !r->instead; i++) {
        const wf_node *logs = log_probabilities(mul->in[i]);
        wf_value *labels = logs ? one_hot_labels(mul->in[1 - i], logs->in[0]) : NULL;

        if (!labels)
            continue;
        r->instead = wf_emit_neg(&e, emit_hot_loss(&e, logs, labels));
        if (wf_node_int(r->n, "keepdims", 1))
            r->instead = wf_emit_unsqueeze(&e, r->instead, 1, (const int64_t[]){1});
    }
    return wf_emit_end(&e);
}

/* x when v is the crossentropy of logits x with one class for all, as log_sigmoid.c writes it. */
static wf_value *logits_of(const wf_value *v, double label)
{
    const wf_node *n = v ? v->producer : NULL;

    return n && wf_node_is(n, WF_DOMAIN_WEFT, "SigmoidCrossEntropy") && n->n_in == 2 &&
                   wf_rewrite_is(n->in[1], label)
               ? n->in[0]
               : NULL;
}

/* x when v is log s(x), or with label 0 log(1 - s(x)). */
static wf_value *log_logits_of(const wf_value *v, double label)
{
    const wf_node *neg = wf_rewrite_maker(v, "Neg");

    return neg ? logits_of(neg->in[0], label) : NULL;
}

/* y when v is 1 - y. */
static wf_value *rest_of(const wf_value *v)
{
    const wf_node *sub = wf_rewrite_maker(v, "Sub");

    return sub && wf_rewrite_is(sub->in[0], 1.0) ? sub->in[1] : NULL;
}

static wf_value *emit_binary_loss(wf_emit *e, wf_value *x, wf_value *y)
{
    wf_attr none = wf_attr_string("reduction", "none");

    return wf_emit_op(e, "SigmoidCrossEntropy", 2, (wf_value *[]){x, y}, 1, &none);
}

/* Labels are fed; what a variable is in wants its own gradient, which the loss does not give. */
static bool is_binary_label(const wf_value *y, const wf_value *x)
{
    const wf_node *cast = y ? wf_rewrite_maker(y, "Cast") : NULL;
    const wf_value *fed = cast ? cast->in[0] : y;

    return y && !fed->producer && fed->variable == WF_VAR_NOT && y->dtype == x->dtype &&
           wf_same_shape(x, y);
}

/* y log s + (1 - y) log(1 - s) */
static wf_status both_sides(wf_rewrite *r)
{
    wf_emit e = wf_emit_begin(r->u->graph, r->n->name, r->err);

    for (uint32_t i = 0; i < 2 && !r->instead; i++) {
        const wf_node *one = wf_rewrite_made_by(r->n, i, "Mul");
        const wf_node *zero = wf_rewrite_made_by(r->n, 1 - i, "Mul");

        for (uint32_t k = 0; one && zero && k < 4 && !r->instead; k++) {
            wf_value *x = log_logits_of(one->in[k & 1], 1.0), *y = one->in[1 - (k & 1)];

            if (x && log_logits_of(zero->in[k >> 1], 0.0) == x &&
                rest_of(zero->in[1 - (k >> 1)]) == y && is_binary_label(y, x))
                r->instead = wf_emit_neg(&e, emit_binary_loss(&e, x, y));
        }
    }
    return wf_emit_end(&e);
}

/* (1 - y) x - log s */
static wf_status with_logits(wf_rewrite *r)
{
    const wf_node *mul = wf_rewrite_made_by(r->n, 0, "Mul");
    wf_emit e = wf_emit_begin(r->u->graph, r->n->name, r->err);
    wf_value *x = log_logits_of(r->n->in[1], 1.0);

    for (uint32_t i = 0; mul && x && i < 2 && !r->instead; i++) {
        wf_value *y = rest_of(mul->in[i]);

        if (mul->in[1 - i] == x && is_binary_label(y, x))
            r->instead = emit_binary_loss(&e, x, y);
    }
    return wf_emit_end(&e);
}

const wf_rewrite_rule wf_rules_cross_entropy[] = {
    {WF_DOMAIN_ONNX, "Log", log_softmax},
    {WF_DOMAIN_ONNX, "NegativeLogLikelihoodLoss", likelihood},
    {WF_DOMAIN_ONNX, "GatherElements", gathered},
    {WF_DOMAIN_ONNX, "ReduceSum", hot},
    {WF_DOMAIN_ONNX, "Add", both_sides},
    {WF_DOMAIN_ONNX, "Sub", with_logits},
    {0},
};
