/* SPDX-License-Identifier: Apache-2.0 */
/* common/session/subject.c */
#include "common/session/subject.h"
#include "common/session/near.h"

#include <string.h>

/* The place of an input in g->inputs, where fed has it too. */
static size_t place_of(const wf_graph *g, const wf_value *v)
{
    size_t i = 0;

    while (g->inputs[i] != v)
        i++;
    return i;
}

static wf_status hold_feed(wf_graph *g, wf_value *v, wf_fed *fed, wf_err *err)
{
    size_t at = place_of(g, v);
    const wf_tensor *content = fed->inputs[at].content;
    wf_tensor *copy = NULL;

    if (!content)
        return wf_fail(err, WF_SHAPE, "feed it too",
                       "the gradient is taken where input \"%.64s\" is, and it is not fed",
                       v->name);
    WF_TRY(wf_tensor_copy(content, &copy, err));
    wf_value_set_type(v, copy->dtype, copy->rank, copy->dims);
    wf_value_set_known(v, &copy);
    v->is_input = false;
    g->n_inputs--;
    memmove(&g->inputs[at], &g->inputs[at + 1], (g->n_inputs - at) * sizeof(g->inputs[0]));
    wf_fed_drop(fed, at);
    return WF_OK;
}

static wf_status set(wf_graph *g, const char *model, wf_fed *fed, const char *name, wf_err *err)
{
    wf_value *v = wf_graph_value(g, name);
    char hint[WF_NEAR_TEXT];

    if (!v || (!wf_is_weight(v) && !v->is_input))
        return wf_fail(err, WF_USAGE, wf_near_text(g, true, true, name, hint),
                       "%s has no variable or input \"%.64s\"", model, name);
    if (v->variable == WF_VAR_TRAINABLE)
        return wf_fail(err, WF_USAGE, "name it once", "the gradient for \"%.64s\" is wanted twice",
                       name);
    if (!wf_dtype_is_float(v->dtype))
        return wf_fail(err, WF_SHAPE, NULL, "\"%.64s\" is %s: gradients are of floats", name,
                       wf_dtype_name(v->dtype));
    if (v->is_input)
        WF_TRY(hold_feed(g, v, fed, err));
    v->variable = WF_VAR_TRAINABLE;
    return WF_OK;
}

wf_status wf_subjects_set(wf_graph *g, const char *model, wf_fed *fed, size_t n,
                          const char *const names[], wf_err *err)
{
    for (size_t i = 0; i < g->n_values; i++)
        if (g->values[i]->variable == WF_VAR_TRAINABLE)
            g->values[i]->variable = WF_VAR_FROZEN;
    for (size_t i = 0; i < n; i++)
        WF_TRY(set(g, model, fed, names[i], err));
    return WF_OK;
}
