/* SPDX-License-Identifier: Apache-2.0 */
/* common/compile/losses.c - the loss functions, one row each: Keras's names, means over the batch.
 *
 * Each takes u->scores, the model's prediction, and leaves u->loss (f32 scalar), u->labels and
 * u->scores as metrics should read them. Definitions: Keras 3, keras/losses/losses.py, reduction
 * "sum_over_batch_size".
 *
 * from_logits auto: when Softmax (or Sigmoid) makes the prediction, the loss reads what goes into
 * it and not what comes out, and is computed in the form that no logit can overflow; otherwise the
 * prediction is taken for logits. Probabilities without such a node (from_logits false) are held
 * away from 0 and 1 by 1e-7, as Keras does.
 */
#include "common/base/nearest.h"
#include "common/compile/pass.h"
#include "common/graph/emit.h"
#include <string.h>

/* What the labels' feed is called. */
static const char *label_name(const wf_unit *u)
{
    if (u->spec->label)
        return u->spec->label;
    for (size_t i = 0; i < u->spec->n_fields; i++) {
        const wf_value *v = wf_graph_value(u->graph, u->spec->fields[i].name);

        if (!v || !v->is_input)
            return u->spec->fields[i].name;
    }
    return "y";
}

/* The label feed: the model's own input of that name, or a new one of this type. */
static wf_status label_feed(wf_unit *u, wf_dtype dtype, int32_t rank, const wf_axis axes[],
                            wf_err *err)
{
    const char *name = label_name(u);
    wf_value *v = wf_graph_value(u->graph, name);
    char type[128];

    if (v && !v->is_input)
        return wf_fail(err, WF_EXISTS, "name the labels differently in the job's data",
                       "the labels' feed \"%s\" has the name of a value inside the model", name);
    if (v && wf_dtype_is_float(v->dtype) != wf_dtype_is_float(dtype))
        return wf_fail(err, WF_SHAPE, "choose the loss that fits the labels",
                       "the labels' feed \"%s\" is %s, and loss %s takes %s", name,
                       wf_value_str(v, type, sizeof(type)), u->spec->loss, wf_dtype_name(dtype));
    if (!v) {
        WF_TRY(wf_graph_add_value(u->graph, name, &v, err));
        v->dtype = dtype;
        v->rank = rank;
        memcpy(v->axes, axes, (size_t)rank * sizeof(*axes));
        WF_TRY(wf_graph_add_input(u->graph, v, err));
    }
    u->labels = v;
    u->label_feed = v;
    return WF_OK;
}

/* What goes into the activation that makes v, when that is `op` over the last axis; else NULL. */
static wf_value *before_activation(const wf_value *v, const char *op)
{
    const wf_node *n = v->producer;

    while (n && wf_node_is(n, WF_DOMAIN_ONNX, "Identity"))
        n = n->in[0]->producer;
    if (!n || !wf_node_is(n, WF_DOMAIN_ONNX, op))
        return NULL;
    if (!strcmp(op, "Softmax")) {
        int64_t axis = wf_node_int(n, "axis", -1);

        if (axis != -1 && axis != v->rank - 1)
            return NULL;
    }
    return n->in[0];
}

/* Decides whether u->scores are logits, and cuts in front of the activation where there is one. */
static void choose_logits(wf_unit *u, const char *activation)
{
    wf_value *logits = before_activation(u->scores, activation);

    u->scores_are_logits = true;
    if (u->spec->from_logits == WF_COMPILE_LOGITS_TRUE)
        return;
    if (logits)
        u->scores = logits;
    else if (u->spec->from_logits == WF_COMPILE_LOGITS_FALSE)
        u->scores_are_logits = false;
}

static wf_status need_classes(const wf_unit *u, wf_err *err)
{
    const wf_value *v = u->scores;
    char type[128];

    if (v->rank >= 2 && v->axes[v->rank - 1].size != 1)
        return WF_OK;
    return wf_fail(err, WF_SHAPE, "for two classes in one number use binary_crossentropy",
                   "loss %s reads \"%s\", which is %s; it needs [batch, ..., classes]",
                   u->spec->loss, v->name, wf_value_str(v, type, sizeof(type)));
}

/* Probabilities held away from 0 and 1, where a log or its slope would not be finite. */
static wf_value *clipped(wf_emit *e, wf_value *p)
{
    wf_value *in[3] = {p, wf_emit_scalar(e, p->dtype, 1e-7), wf_emit_scalar(e, p->dtype, 1 - 1e-7)};

    return wf_emit_op(e, "Clip", 3, in, 0, NULL);
}

static wf_status attach_sparse(wf_unit *u, wf_err *err)
{
    wf_emit e = wf_emit_begin(u->graph, "loss", err);
    wf_value *in[2];

    choose_logits(u, "Softmax");
    WF_TRY(need_classes(u, err));
    WF_TRY(label_feed(u, WF_I64, u->scores->rank - 1, u->scores->axes, err));
    in[0] = u->scores;
    in[1] = u->labels;
    if (u->scores->rank > 2) {
        /* Keras has classes last, ONNX second: fold the axes before them into one. */
        int64_t classes = u->scores->axes[u->scores->rank - 1].size;

        in[0] = wf_emit_reshape(&e, in[0], 2, (const int64_t[]){-1, classes});
    }
    if (in[0] && u->labels->rank != 1)
        in[1] = wf_emit_reshape(&e, in[1], 1, (const int64_t[]){-1});
    if (in[0] && in[1]) { /* metrics read the folded forms */
        u->scores = in[0];
        u->labels = in[1];
    }
    if (u->scores_are_logits) {
        u->loss = wf_emit_op(&e, "SoftmaxCrossEntropyLoss", 2, in, 0, NULL);
    } else {
        in[0] = wf_emit_log(&e, clipped(&e, in[0]));
        u->loss = wf_emit_op(&e, "NegativeLogLikelihoodLoss", 2, in, 0, NULL);
    }
    return wf_emit_end(&e);
}

static wf_status attach_categorical(wf_unit *u, wf_err *err)
{
    wf_emit e = wf_emit_begin(u->graph, "loss", err);
    wf_attr last = wf_attr_int("axis", -1);
    const int64_t axis[] = {-1};
    wf_value *logs;

    choose_logits(u, "Softmax");
    WF_TRY(need_classes(u, err));
    WF_TRY(label_feed(u, u->scores->dtype, u->scores->rank, u->scores->axes, err));
    logs = u->scores_are_logits ? wf_emit_op(&e, "LogSoftmax", 1, &u->scores, 1, &last)
                                : wf_emit_log(&e, clipped(&e, u->scores));
    logs = wf_emit_reduce_sum(&e, wf_emit_mul(&e, u->labels, logs), 1, axis, false);
    u->loss = wf_emit_neg(&e, wf_emit_reduce_mean(&e, logs, 0, NULL, false));
    return wf_emit_end(&e);
}

/* -mean(y log p + (1 - y) log(1 - p)) for probabilities. */
static wf_value *binary_of_probabilities(wf_emit *e, wf_value *scores, wf_value *y)
{
    wf_value *p = clipped(e, scores);
    wf_value *one = wf_emit_scalar(e, scores->dtype, 1.0);
    wf_value *hit = wf_emit_mul(e, y, wf_emit_log(e, p));
    wf_value *miss = wf_emit_mul(e, wf_emit_sub(e, one, y), wf_emit_log(e, wf_emit_sub(e, one, p)));

    return wf_emit_neg(e, wf_emit_reduce_mean(e, wf_emit_add(e, hit, miss), 0, NULL, false));
}

static wf_status attach_binary(wf_unit *u, wf_err *err)
{
    wf_emit e = wf_emit_begin(u->graph, "loss", err);
    wf_value *in[2];

    choose_logits(u, "Sigmoid");
    WF_TRY(label_feed(u, u->scores->dtype, u->scores->rank, u->scores->axes, err));
    in[0] = u->scores;
    in[1] = u->labels;
    if (u->scores_are_logits)
        u->loss = wf_emit_op(&e, "SigmoidCrossEntropy", 2, in, 0, NULL);
    else
        u->loss = binary_of_probabilities(&e, u->scores, u->labels);
    return wf_emit_end(&e);
}

static wf_status attach_mse(wf_unit *u, wf_err *err)
{
    wf_emit e = wf_emit_begin(u->graph, "loss", err);
    wf_value *d;

    WF_TRY(label_feed(u, u->scores->dtype, u->scores->rank, u->scores->axes, err));
    d = wf_emit_sub(&e, u->scores, u->labels);
    u->loss = wf_emit_reduce_mean(&e, wf_emit_mul(&e, d, d), 0, NULL, false);
    return wf_emit_end(&e);
}

static wf_status attach_mae(wf_unit *u, wf_err *err)
{
    wf_emit e = wf_emit_begin(u->graph, "loss", err);
    wf_value *d;

    WF_TRY(label_feed(u, u->scores->dtype, u->scores->rank, u->scores->axes, err));
    d = wf_emit_unary(&e, "Abs", wf_emit_sub(&e, u->scores, u->labels));
    u->loss = wf_emit_reduce_mean(&e, d, 0, NULL, false);
    return wf_emit_end(&e);
}

static const wf_loss_row rows[] = {
    {"sparse_categorical_crossentropy", NULL, WF_LOSS_SPARSE, attach_sparse},
    {"categorical_crossentropy", NULL, WF_LOSS_CATEGORICAL, attach_categorical},
    {"binary_crossentropy", NULL, WF_LOSS_BINARY, attach_binary},
    {"mean_squared_error", "mse", WF_LOSS_REGRESSION, attach_mse},
    {"mean_absolute_error", "mae", WF_LOSS_REGRESSION, attach_mae},
};

const wf_loss_row *wf_loss_find(const char *name)
{
    for (size_t i = 0; i < WF_COUNT(rows); i++)
        if (!strcmp(rows[i].name, name) || (rows[i].alias && !strcmp(rows[i].alias, name)))
            return &rows[i];
    return NULL;
}

const char *wf_loss_nearest(const char *name)
{
    const char *names[WF_COUNT(rows)];

    for (size_t i = 0; i < WF_COUNT(rows); i++)
        names[i] = rows[i].name;
    return wf_nearest(name, names, WF_COUNT(rows));
}
