/* SPDX-License-Identifier: Apache-2.0 */
/* common/compile/losses/weights.c - weights of examples: from the data, or by the label's class.
 *
 * A weight multiplies its example's values; what they are divided by stays the number of values
 * (Keras's "sum_over_batch_size"), so that an example of weight 2 counts as two and one of weight 0
 * still takes part in the mean. A class that class_weight does not name has the weight 1.
 */
#include "common/base/size.h"
#include "common/compile/losses/losses.h"
#include <inttypes.h>
#include <string.h>

static const wf_conf_said *said_of(const wf_unit *u, const wf_goal *g)
{
    for (size_t i = 0; i < u->spec->n_sample_weights; i++) {
        const wf_conf_said *s = &u->spec->sample_weights[i];

        if (!s->output || (g->output && !strcmp(s->output, g->output)))
            return s;
    }
    return NULL;
}

static bool is_label(const wf_unit *u, const wf_value *v)
{
    for (size_t i = 0; i < u->n_goals; i++)
        if (u->goals[i].label_feed == v)
            return true;
    return false;
}

/* One number a record; several goals may read one feed. */
static wf_status find_feed(wf_unit *u, wf_goal *g, const char *name, wf_err *err)
{
    wf_value *v = wf_graph_value(u->graph, name);
    bool known = u->spec->n_fields == 0;

    for (size_t i = 0; i < u->spec->n_fields; i++)
        known = known || !strcmp(u->spec->fields[i].name, name);
    if (!known)
        return wf_fail(err, WF_USAGE, "name it in data.train",
                       "sample_weight: the data has no field \"%.64s\"", name);
    for (size_t i = 0; v && i < u->n_goals; i++)
        if (u->goals[i].weights == v && v->dtype == g->scores->dtype) {
            g->weights = v;
            return WF_OK;
        }
    if (v)
        return wf_fail(err, WF_EXISTS, "give the weights a field of their own",
                       "sample_weight: \"%.64s\" is %s", name,
                       is_label(u, v) ? "the labels"
                                      : (v->is_input ? "an input of the model"
                                                     : "the name of a value inside the model"));
    WF_TRY(wf_graph_add_value(u->graph, name, &v, err));
    v->dtype = g->scores->dtype;
    v->rank = 1;
    v->axes[0] = g->scores->axes[0];
    g->weights = v;
    return wf_graph_add_input(u->graph, v, err);
}

/* [most + 2] weights by class; the last is that of all classes beyond. */
static wf_status class_table(const wf_unit *u, wf_dtype dtype, int64_t *most, wf_tensor **out,
                             wf_err *err)
{
    int64_t n = 0;

    for (size_t i = 0; i < u->spec->n_class_weights; i++)
        n = WF_MAX(n, u->spec->class_weights[i].class_id + 1);
    *most = n++;
    WF_TRY(wf_tensor_new(dtype, 1, &n, out, err));
    for (int64_t i = 0; i < n; i++) {
        double weight = 1.0;

        for (size_t k = 0; k < u->spec->n_class_weights; k++)
            if (u->spec->class_weights[k].class_id == i)
                weight = u->spec->class_weights[k].weight;
        if (dtype == WF_F64)
            ((double *)(*out)->data)[i] = weight;
        else
            ((float *)(*out)->data)[i] = (float)weight;
    }
    return WF_OK;
}

/* Whether labels have a number for each class. */
static bool is_one_hot(const wf_goal *g)
{
    const wf_value *y = g->labels;

    return g->kind != WF_LOSS_SPARSE && y->rank > 1 && y->axes[y->rank - 1].size != 1;
}

static wf_status check_classes(const wf_unit *u, const wf_goal *g, wf_err *err)
{
    int64_t n = g->kind == WF_LOSS_SPARSE || is_one_hot(g) ? wf_goal_classes(g) : -1;

    for (size_t i = 0; n > 0 && i < u->spec->n_class_weights; i++)
        if (u->spec->class_weights[i].class_id >= n)
            return wf_fail(err, WF_USAGE, "correct its number",
                           "class_weight: there is no class %" PRId64
                           "; the scores \"%s\" are of %" PRId64 ", 0 to %" PRId64,
                           u->spec->class_weights[i].class_id, g->scores->name, n, n - 1);
    return WF_OK;
}

/* The class of each label: itself, the largest of several, or the rounded one. */
static wf_value *class_of(wf_emit *e, const wf_goal *g)
{
    wf_attr attrs[] = {wf_attr_int("axis", -1), wf_attr_int("keepdims", 0)};
    wf_value *y = g->labels;

    if (g->kind == WF_LOSS_SPARSE)
        return wf_emit_cast(e, y, WF_I64);
    if (is_one_hot(g))
        return wf_emit_op(e, "ArgMax", 1, &y, 2, attrs);
    return wf_emit_cast(e, wf_emit_unary(e, "Round", y), WF_I64);
}

static wf_status by_class(wf_unit *u, wf_goal *g, wf_err *err)
{
    wf_emit e = wf_emit_begin(u->graph, "class_weight", err);
    wf_tensor *table = NULL;
    wf_value *in[2], *ids;
    int64_t most;

    if (g->scores->dtype != WF_F32 && g->scores->dtype != WF_F64)
        return wf_fail(err, WF_UNSUPPORTED, "cast the model's output to float32",
                       "class_weight: the scores \"%s\" are %s", g->scores->name,
                       wf_dtype_name(g->scores->dtype));
    WF_TRY(check_classes(u, g, err));
    WF_TRY(class_table(u, g->scores->dtype, &most, &table, err));
    in[0] = wf_emit_constant(&e, "weights", &table);
    /* -1 is the last entry, which is that of classes without a weight. */
    ids = wf_emit_binary(&e, "Max", class_of(&e, g), wf_emit_scalar(&e, WF_I64, -1.0));
    in[1] = wf_emit_binary(&e, "Min", ids, wf_emit_scalar(&e, WF_I64, (double)most));
    g->weights = wf_emit_op(&e, "Gather", 2, in, 0, NULL);
    return wf_emit_end(&e);
}

wf_status wf_goal_find_weights(wf_unit *u, wf_goal *g, wf_err *err)
{
    const wf_conf_said *said = said_of(u, g);

    if (said)
        return find_feed(u, g, said->text, err);
    /* As in Keras weights of classes say what to learn, and not how good it is. */
    return u->spec->n_class_weights && u->spec->mode != WF_COMPILE_EVAL ? by_class(u, g, err)
                                                                        : WF_OK;
}
