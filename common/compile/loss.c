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
 * a loss of its own along; that one is left out then, with a warning. Each function is a goal; the
 * loss is the sum of theirs, each times its weight, and of what the model's regularizers add.
 */
#include "common/base/nearest.h"
#include "common/compile/losses/losses.h"
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

/* The one name that may be a function's or an output's; NULL when there is none, or several. */
static const char *loss_name(const wf_unit *u)
{
    const wf_compile_spec *s = u->spec;

    if (!s->n_losses)
        return s->loss;
    return s->n_losses == 1 && !s->losses[0].output ? s->losses[0].item.type : NULL;
}

/* The loss that the file brings along, or NULL. */
static wf_value *own_loss(const wf_unit *u)
{
    const char *loss = loss_name(u);
    wf_value *v = model_output(u, loss && !wf_loss_find(loss) ? loss : "loss");

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

static wf_status no_such_loss(wf_unit *u, const char *loss, wf_err *err)
{
    const wf_value *v = loss ? model_output(u, loss) : NULL;
    char names[256], type[128], hint[WF_NEAREST_HINT];

    output_names(u, names, sizeof(names));
    if (v)
        return wf_fail(err, WF_SHAPE, "reduce it to one number in the model, or name a function",
                       "the loss \"%s\" is %s, and must be a float scalar", loss,
                       wf_value_str(v, type, sizeof(type)));
    if (!loss)
        return wf_fail(err, WF_INVALID, "name one: loss: sparse_categorical_crossentropy",
                       "no loss is named, and the model has no scalar output \"loss\"; it has %s",
                       names);
    return wf_fail(err, WF_USAGE, wf_loss_hint(loss, hint),
                   "loss \"%s\" is neither a known function nor an output of the model (%s)", loss,
                   names);
}

/* The first output that is not the loss. */
static wf_status first_prediction(wf_unit *u, wf_value **out, wf_err *err)
{
    const wf_value *loss = own_loss(u);
    char names[256];
    size_t n = 0;

    *out = NULL;
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

static wf_status find_prediction(wf_unit *u, wf_goal *g, wf_err *err)
{
    const char *outputs[32], *near;
    char names[256], hint[160] = "name an output of the model";
    size_t n = 0;

    if (!g->output)
        return first_prediction(u, &g->scores, err);
    g->scores = model_output(u, g->output);
    if (g->scores && wf_dtype_is_float(g->scores->dtype) && g->scores->rank >= 1)
        return WF_OK;
    for (; n < u->n_model_outputs && n < WF_COUNT(outputs); n++)
        outputs[n] = u->model_outputs[n]->name;
    near = wf_nearest(g->output, outputs, n);
    if (near)
        snprintf(hint, sizeof(hint), "did you mean \"%.100s\"?", near);
    return wf_fail(err, WF_USAGE, hint, "the model has no output \"%.64s\" for a loss; it has %s",
                   g->output, output_names(u, names, sizeof(names)));
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

static wf_compile_logits logits_of(const wf_unit *u, const wf_goal *g)
{
    const char *word = wf_conf_text(g->item, "from_logits", NULL);

    if (!word)
        return u->spec->from_logits;
    return !strcmp(word, "true")    ? WF_COMPILE_LOGITS_TRUE
           : !strcmp(word, "false") ? WF_COMPILE_LOGITS_FALSE
                                    : WF_COMPILE_LOGITS_AUTO;
}

/* Decides whether the scores are logits, and cuts in front of the activation where there is one. */
static void choose_logits(const wf_unit *u, wf_goal *g)
{
    wf_compile_logits way = logits_of(u, g);
    wf_value *logits;

    g->scores_are_logits = g->row->activation || g->row->margin;
    if (!g->row->activation || way == WF_COMPILE_LOGITS_TRUE)
        return;
    logits = before_activation(g->scores, g->row->activation);
    if (logits)
        g->scores = logits;
    else if (way == WF_COMPILE_LOGITS_FALSE || wf_makes_shares(g->scores) ||
             before_activation(g->scores, "Sigmoid"))
        g->scores_are_logits = false;
}

static wf_status need_classes(const wf_goal *g, wf_err *err)
{
    const wf_value *v = g->scores;
    char type[128];

    if (g->kind != WF_LOSS_SPARSE && g->kind != WF_LOSS_CATEGORICAL)
        return WF_OK;
    if (v->rank >= 2 && v->axes[v->rank - 1].size > 1)
        return WF_OK;
    return wf_fail(err, WF_SHAPE, "for two classes in one number use binary_crossentropy",
                   "loss %s reads \"%s\", which is %s; it needs [batch, ..., classes]",
                   g->row->name, v->name, wf_value_str(v, type, sizeof(type)));
}

/* The mean of the values that count, each times its example's weight. */
static wf_value *reduced(wf_emit *e, const wf_goal *g)
{
    wf_value *v = NULL, *w = g->weights, *counts;
    int64_t axes[WF_MAX_RANK];
    uint32_t n = 0;

    if (!w && !g->ignores && g->row->mean)
        v = g->row->mean(e, g);
    if (v || e->rc != WF_OK)
        return v;
    v = g->row->values(e, g);
    if (v && w) {
        for (int32_t i = w->rank; i < v->rank; i++)
            axes[n++] = i;
        v = wf_emit_mul(e, v, n ? wf_emit_unsqueeze(e, w, n, axes) : w);
    }
    if (!g->ignores)
        return wf_emit_reduce_mean(e, v, 0, NULL, false);
    counts = wf_emit_binary(e, "Equal", g->labels,
                            wf_emit_scalar(e, g->labels->dtype, (double)g->ignored));
    counts = wf_emit_cast(e, wf_emit_unary(e, "Not", counts), g->scores->dtype);
    counts = wf_emit_reduce_sum(e, counts, 0, NULL, false);
    /* A batch of which nothing counts has the loss 0. */
    counts = wf_emit_binary(e, "Max", counts, wf_emit_scalar(e, g->scores->dtype, 1.0));
    return wf_emit_div(e, wf_emit_reduce_sum(e, v, 0, NULL, false), counts);
}

static wf_status attach(wf_unit *u, wf_goal *g, wf_err *err)
{
    const wf_conf_option *ignored = wf_conf_find(g->item, "ignore_class");
    wf_emit e = wf_emit_begin(u->graph, "loss", err);

    if (!ignored)
        ignored = wf_conf_find(g->item, "ignore_index");
    g->kind = g->row->kind;
    g->ignores = ignored != NULL;
    g->ignored = ignored ? (int64_t)ignored->number : 0;
    choose_logits(u, g);
    WF_TRY(need_classes(g, err));
    WF_TRY(wf_goal_find_labels(u, g, err));
    WF_TRY(wf_goal_find_weights(u, g, err));
    g->loss = reduced(&e, g);
    return wf_emit_end(&e);
}

/* The goal of one function, its names and options checked. */
static wf_status begin_goal(wf_unit *u, const wf_conf_term *term, wf_goal *g, wf_err *err)
{
    const wf_compile_spec *s = u->spec;

    g->output = term->output;
    g->item = &term->item;
    g->weight = 1.0;
    for (size_t i = 0; i < s->n_loss_weights; i++)
        if (g->output && s->loss_weights[i].output && !strcmp(s->loss_weights[i].output, g->output))
            g->weight = s->loss_weights[i].number;
    g->row = wf_loss_find(term->item.type);
    if (!g->row)
        return wf_unit_in_file(u, term->item.line, no_such_loss(u, term->item.type, err), err);
    WF_TRY(wf_conf_check_item(&term->item, "loss", g->row->options, s->file, err));
    return wf_unit_in_file(u, term->item.line, find_prediction(u, g, err), err);
}

static wf_status add_up(wf_unit *u, wf_err *err)
{
    wf_emit e = wf_emit_begin(u->graph, "loss", err);

    for (size_t i = 0; i < u->n_goals; i++) {
        wf_value *part = wf_emit_scale(&e, u->goals[i].loss, u->goals[i].weight);

        u->loss = i ? wf_emit_add(&e, u->loss, part) : part;
    }
    if (u->penalty)
        u->loss = wf_emit_add(&e, u->loss, u->penalty);
    return wf_emit_end(&e);
}

static wf_status attach_all(wf_unit *u, const wf_conf_term terms[], size_t n, wf_err *err)
{
    const wf_value *left = own_loss(u);

    u->goals = wf_arena_array(u->arena, n, sizeof(*u->goals));
    if (!u->goals)
        return wf_fail_nomem(err, n * sizeof(*u->goals));
    memset(u->goals, 0, n * sizeof(*u->goals));
    u->n_goals = n;
    for (size_t i = 0; i < n; i++)
        WF_TRY(begin_goal(u, &terms[i], &u->goals[i], err));
    for (size_t i = 0; i < n; i++)
        WF_TRY(wf_unit_in_file(u, terms[i].item.line, attach(u, &u->goals[i], err), err));
    WF_TRY(add_up(u, err));
    if (left)
        WF_TRY(wf_unit_warn(u, err,
                            "the model's own loss \"%s\" is left out, since the job names %s",
                            left->name, terms[0].item.type));
    return WF_OK;
}

/* What the file's own loss compares, from the node that makes it: metrics read it. */
static wf_status read_own_loss(wf_unit *u, wf_err *err)
{
    const wf_node *n = u->loss->producer;
    wf_goal *g = wf_arena_array(u->arena, 1, sizeof(*g));

    if (!g)
        return wf_fail_nomem(err, sizeof(*g));
    if (u->spec->n_sample_weights || u->spec->n_class_weights)
        return wf_fail(err, WF_USAGE, "name a loss function in the job",
                       "weights of examples do not reach the model's own loss \"%s\"",
                       u->loss->name);
    *g = (wf_goal){.weight = 1.0, .loss = u->loss};
    u->goals = g;
    u->n_goals = 1;
    if (!wf_node_is(n, WF_DOMAIN_ONNX, "SoftmaxCrossEntropyLoss") &&
        !wf_node_is(n, WF_DOMAIN_ONNX, "NegativeLogLikelihoodLoss"))
        return WF_OK;
    g->kind = WF_LOSS_SPARSE;
    g->scores = n->in[0];
    g->labels = n->in[1];
    g->label_feed = n->in[1]->is_input ? n->in[1] : NULL;
    g->scores_are_logits = true; /* logarithms of probabilities are logits too */
    g->classes_second = true;
    g->ignores = wf_node_attr(n, "ignore_index") != NULL;
    g->ignored = wf_node_int(n, "ignore_index", 0);
    return WF_OK;
}

static wf_status fetch_loss(wf_unit *u, wf_err *err)
{
    WF_TRY(wf_unit_fetch(u, (wf_fetch){.value = u->loss, .meaning = WF_MEANS_LOSS, .label = "loss"},
                         err));
    for (size_t i = 0; u->n_goals > 1 && i < u->n_goals; i++) {
        char *label = wf_arena_printf(u->arena, "%s_loss", u->goals[i].output);

        if (!label)
            return wf_fail_nomem(err, strlen(u->goals[i].output));
        WF_TRY(wf_unit_fetch(
            u, (wf_fetch){.value = u->goals[i].loss, .meaning = WF_MEANS_LOSS, .label = label},
            err));
    }
    return WF_OK;
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
                       "the model has no output%s%s%s", but ? " but its loss \"" : "",
                       but ? but->name : "", but ? "\"" : "");
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
    const wf_compile_spec *s = u->spec;
    int line = s->n_losses ? s->losses[0].item.line : s->loss_line;
    const char *name = loss_name(u);
    wf_conf_term *one;

    /* A name of both an output and a function is the function's: jobs speak Keras. */
    if (s->n_losses > 1 || (s->n_losses && s->losses[0].output) ||
        (s->n_losses && wf_loss_find(name)))
        return attach_all(u, s->losses, s->n_losses, err);
    if (name && wf_loss_find(name) && s->mode != WF_COMPILE_GRAD) {
        one = wf_arena_array(u->arena, 1, sizeof(*one));
        if (!one)
            return wf_fail_nomem(err, sizeof(*one));
        *one = (wf_conf_term){.item = {.type = name, .line = s->loss_line}};
        return attach_all(u, one, 1, err);
    }
    u->loss = own_loss(u);
    if (!u->loss)
        return wf_unit_in_file(u, line, no_such_loss(u, name, err), err);
    if (s->n_losses)
        WF_TRY(wf_conf_check_item(&s->losses[0].item, "loss", NULL, s->file, err));
    return wf_unit_in_file(u, line, read_own_loss(u, err), err);
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
        WF_TRY(set_loss(u, err));
        WF_TRY(fetch_loss(u, err));
        if (u->spec->mode == WF_COMPILE_EVAL || u->spec->train_metrics)
            WF_TRY(wf_attach_metrics(u, err));
        break;
    }
    return wf_unit_set_outputs(u, err);
}
