/* SPDX-License-Identifier: Apache-2.0 */
/* common/compile/loss.c - finds or attaches the loss, and decides what the graph's outputs are.
 *
 *   TRAIN  the loss (and metrics, when asked for)
 *   EVAL   the loss and metrics
 *   GRAD   the loss, until differentiate puts the gradients in its place
 *   RUN    the model's outputs, or the values that were named
 *   INFER  the model's outputs without its loss
 *
 * Which loss: the spec names a function, or an output of the model, or nothing: then a scalar
 * output named "loss". A function is attached to the model's prediction, also when the file brings
 * a loss of its own along; that one is left out then, with a warning.
 */
#include "common/base/nearest.h"
#include "common/compile/pass.h"
#include "common/graph/emit.h"
#include <stdio.h>
#include <string.h>

static bool is_scalar_float(const wf_value *v)
{
    if (!wf_dtype_is_float(v->dtype) || v->rank < 0)
        return false;
    for (int32_t i = 0; i < v->rank; i++)
        if (v->axes[i].size != 1)
            return false;
    return true;
}

static wf_value *model_output(const wf_unit *u, const char *name)
{
    for (size_t i = 0; i < u->n_model_outputs; i++)
        if (!strcmp(u->model_outputs[i]->name, name))
            return u->model_outputs[i];
    return NULL;
}

/* The loss that the file brings along, or NULL. */
static wf_value *own_loss(const wf_unit *u)
{
    const char *name = u->spec->loss && !wf_loss_find(u->spec->loss) ? u->spec->loss : "loss";
    wf_value *v = model_output(u, name);

    return v && is_scalar_float(v) ? v : NULL;
}

/* "out, loss" for messages. */
static const char *output_names(const wf_unit *u, char *text, size_t size)
{
    size_t at = 0;

    text[0] = '\0';
    for (size_t i = 0; i < u->n_model_outputs && at < size; i++)
        at += (size_t)snprintf(text + at, size - at, "%s\"%s\"", i ? ", " : "",
                               u->model_outputs[i]->name);
    return text;
}

static wf_status no_such_loss(wf_unit *u, wf_err *err)
{
    const char *loss = u->spec->loss, *near = loss ? wf_loss_nearest(loss) : NULL;
    const wf_value *v = loss ? model_output(u, loss) : NULL;
    char names[256], type[128];

    output_names(u, names, sizeof(names));
    if (v)
        return wf_fail(err, WF_SHAPE, "reduce it to one number in the model, or name a function",
                       "the loss \"%s\" is %s, and must be a float scalar", loss,
                       wf_value_str(v, type, sizeof(type)));
    if (!loss)
        return wf_fail(err, WF_INVALID, "name one: loss: sparse_categorical_crossentropy",
                       "no loss is named, and the model has no scalar output \"loss\"; it has %s",
                       names);
    return wf_fail(err, WF_USAGE, near ? NULL : "name a loss function of Keras or an output",
                   "loss \"%s\" is neither a known function nor an output of the model (%s)%s%s%s",
                   loss, names, near ? "; did you mean \"" : "", near ? near : "",
                   near ? "\"?" : "");
}

/* The first output that is not the loss, or the one that the spec names. */
static wf_status find_prediction(wf_unit *u, wf_value **out, wf_err *err)
{
    const wf_value *loss = own_loss(u);
    char names[256];
    size_t n = 0;

    *out = NULL;
    if (u->spec->prediction) {
        *out = wf_graph_value(u->graph, u->spec->prediction);
        if (!*out)
            return wf_fail(err, WF_NOTFOUND, NULL,
                           "the model has no value \"%s\" for the loss to read; its outputs are %s",
                           u->spec->prediction, output_names(u, names, sizeof(names)));
        return WF_OK;
    }
    for (size_t i = 0; i < u->n_model_outputs; i++) {
        wf_value *v = u->model_outputs[i];

        if (v == loss || !wf_dtype_is_float(v->dtype))
            continue;
        if (!n++)
            *out = v;
    }
    if (!n)
        return wf_fail(err, WF_INVALID, "add the model's prediction to its outputs",
                       "the model has no output for a loss function to read, only %s",
                       output_names(u, names, sizeof(names)));
    if (n > 1)
        return wf_unit_warn(u, err, "the loss reads \"%s\", the first of the model's outputs %s",
                            (*out)->name, output_names(u, names, sizeof(names)));
    return WF_OK;
}

static wf_status attach(wf_unit *u, const wf_loss_row *row, wf_err *err)
{
    const wf_value *left = own_loss(u);

    WF_TRY(find_prediction(u, &u->scores, err));
    u->loss_kind = row->kind;
    WF_TRY(row->attach(u, err));
    if (left)
        WF_TRY(wf_unit_warn(u, err,
                            "the model's own loss \"%s\" is left out, since the job names %s",
                            left->name, row->name));
    return WF_OK;
}

/* What the file's own loss compares, from the node that makes it: metrics read it. */
static void read_own_loss(wf_unit *u)
{
    const wf_node *n = u->loss->producer;

    if (wf_node_is(n, WF_DOMAIN_ONNX, "SoftmaxCrossEntropyLoss") ||
        wf_node_is(n, WF_DOMAIN_ONNX, "NegativeLogLikelihoodLoss")) {
        u->loss_kind = WF_LOSS_SPARSE;
        u->scores = n->in[0];
        u->labels = n->in[1];
        u->label_feed = n->in[1]->is_input ? n->in[1] : NULL;
        u->scores_are_logits = true;
    }
}

static wf_status fetch_loss(wf_unit *u, wf_err *err)
{
    return wf_unit_fetch(u, (wf_fetch){.value = u->loss, .meaning = WF_MEANS_LOSS, .label = "loss"},
                         err);
}

static wf_status fetch_outputs(wf_unit *u, const wf_value *but, wf_err *err)
{
    size_t n = 0;

    for (size_t i = 0; i < u->n_model_outputs; i++) {
        wf_value *v = u->model_outputs[i];

        if (v == but)
            continue;
        n++;
        WF_TRY(wf_unit_fetch(
            u, (wf_fetch){.value = v, .meaning = WF_MEANS_OUTPUT, .label = v->name}, err));
    }
    if (!n)
        return wf_fail(err, WF_INVALID, "add the model's prediction to its outputs",
                       "the model has no output but its loss \"%s\"", but->name);
    return WF_OK;
}

static wf_status fetch_named(wf_unit *u, wf_err *err)
{
    for (size_t i = 0; i < u->spec->n_fetches; i++) {
        const char *name = u->spec->fetches[i];
        wf_value *v = wf_graph_value(u->graph, name);
        char names[256];

        if (!v)
            return wf_fail(err, WF_NOTFOUND, NULL,
                           "the model has no value \"%s\"; its outputs are %s", name,
                           output_names(u, names, sizeof(names)));
        WF_TRY(wf_unit_fetch(
            u, (wf_fetch){.value = v, .meaning = WF_MEANS_OUTPUT, .label = v->name}, err));
    }
    return WF_OK;
}

static wf_status set_loss(wf_unit *u, wf_err *err)
{
    const wf_loss_row *row = u->spec->loss ? wf_loss_find(u->spec->loss) : NULL;

    /* A name of both an output and a function is the function's: jobs speak Keras. */
    if (row && u->spec->mode != WF_COMPILE_GRAD)
        return attach(u, row, err);
    u->loss = own_loss(u);
    if (!u->loss)
        return no_such_loss(u, err);
    read_own_loss(u);
    return WF_OK;
}

static wf_status in_file(const wf_unit *u, int line, wf_status rc, wf_err *err)
{
    return u->spec->file ? wf_err_wrap(err, rc, "%s:%d", u->spec->file, line) : rc;
}

wf_status wf_pass_loss(wf_unit *u, wf_err *err)
{
    switch (u->spec->mode) {
    case WF_COMPILE_RUN:
        WF_TRY(u->spec->n_fetches ? fetch_named(u, err) : fetch_outputs(u, NULL, err));
        break;
    case WF_COMPILE_INFER:
        WF_TRY(fetch_outputs(u, own_loss(u), err));
        break;
    case WF_COMPILE_GRAD:
        WF_TRY(set_loss(u, err));
        WF_TRY(fetch_loss(u, err));
        break;
    case WF_COMPILE_TRAIN:
    case WF_COMPILE_EVAL:
        WF_TRY(in_file(u, u->spec->loss_line, set_loss(u, err), err));
        WF_TRY(fetch_loss(u, err));
        if (u->spec->mode == WF_COMPILE_EVAL || u->spec->train_metrics)
            WF_TRY(in_file(u, u->spec->metrics_line, wf_attach_metrics(u, err), err));
        break;
    }
    return wf_unit_set_outputs(u, err);
}
