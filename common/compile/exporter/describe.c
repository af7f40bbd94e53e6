/* SPDX-License-Identifier: Apache-2.0 */
/* common/compile/exporter/describe.c - the model as its file has it, in numbers. */
#include "common/compile/exporter/exporter.h"

#include <inttypes.h>
#include <stdio.h>

enum { INPUTS_BYTES = 512 };

/* "x[batch,3,224,224], ids[batch]", cut where there is no more room. */
static const char *inputs_text(wf_unit *u)
{
    const wf_graph *g = u->graph;
    char text[INPUTS_BYTES] = "";
    size_t at = 0;

    for (size_t i = 0; i < g->n_inputs; i++) {
        const wf_value *v = g->inputs[i];

        at += (size_t)snprintf(text + at, sizeof(text) - at, "%s%.100s[", i ? ", " : "", v->name);
        for (int32_t a = 0; a < v->rank && at < sizeof(text); a++) {
            const wf_axis *axis = &v->axes[a];

            at += axis->size >= 0
                      ? (size_t)snprintf(text + at, sizeof(text) - at, "%s%" PRId64, a ? "," : "",
                                         axis->size)
                      : (size_t)snprintf(text + at, sizeof(text) - at, "%s%.40s", a ? "," : "",
                                         axis->symbol ? axis->symbol : "?");
        }
        if (at < sizeof(text))
            at += (size_t)snprintf(text + at, sizeof(text) - at, "]");
        if (at + 4 >= sizeof(text)) {
            snprintf(text + sizeof(text) - 4, 4, "...");
            break;
        }
    }
    return wf_arena_strdup(u->arena, text);
}

static wf_norm_form norm_form(const wf_graph *g)
{
    wf_norm_form form = WF_NORM_NONE;

    for (size_t i = 0; i < g->n_nodes; i++) {
        if (!wf_node_is(g->nodes[i], WF_DOMAIN_ONNX, "BatchNormalization"))
            continue;
        if (wf_node_int(g->nodes[i], "training_mode", 0))
            return WF_NORM_TRAINING;
        form = WF_NORM_INFERENCE;
    }
    return form;
}

wf_status wf_exporter_describe(wf_unit *u, wf_err *err)
{
    const wf_graph *g = u->graph;
    wf_compiled_source *s = &u->c->source;

    s->producer = wf_arena_strdup(u->arena, g->origin.producer ? g->origin.producer : "");
    s->version = wf_arena_strdup(u->arena, g->origin.version ? g->origin.version : "");
    s->opset = g->origin.opset;
    s->inputs = inputs_text(u);
    s->batch_norm = norm_form(g);
    for (size_t i = 0; i < g->n_values; i++) {
        const wf_value *v = g->values[i];

        if (!v->known || (v->variable != WF_VAR_TRAINABLE && v->variable != WF_VAR_FROZEN))
            continue;
        s->n_variables++;
        s->elems += (uint64_t)wf_elems(v->known);
        s->bytes += wf_tensor_bytes(v->known);
    }
    return s->producer && s->version && s->inputs ? WF_OK : wf_fail_nomem(err, INPUTS_BYTES);
}
