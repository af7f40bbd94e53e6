/* SPDX-License-Identifier: Apache-2.0 */
/* common/compile/update.c - gradients become what an update takes.
 *
 * Each one is divided by the scale of the loss, has its variable's dtype and a value of its own:
 * two variables may share a gradient (biases that are added), and a gradient may be an input
 * itself, but whoever sends it writes it into a buffer of its own. They become outputs of the graph
 * here: of GRAD for good, of TRAIN until the strategy says where they go.
 */
#include "common/compile/pass.h"
#include "common/graph/emit.h"

static bool is_shared(const wf_unit *u, size_t i)
{
    const wf_value *v = u->targets[i].gradient;

    for (size_t k = 0; k < i; k++)
        if (u->targets[k].gradient == v)
            return true;
    return !v->producer || wf_is_output(u->graph, v);
}

static wf_status own_gradient(wf_unit *u, size_t i, wf_err *err)
{
    wf_target *t = &u->targets[i];
    wf_emit e = wf_emit_begin(u->graph, t->gradient->name, err);

    if (u->loss_scale)
        t->gradient =
            wf_emit_div(&e, t->gradient, wf_emit_cast(&e, u->loss_scale, t->gradient->dtype));
    t->gradient = wf_emit_cast(&e, t->gradient, t->variable->dtype);
    WF_TRY(wf_emit_end(&e));
    if (is_shared(u, i))
        t->gradient = wf_emit_identity(&e, t->gradient);
    return wf_emit_end(&e);
}

wf_status wf_pass_update(wf_unit *u, wf_err *err)
{
    if (u->spec->mode != WF_COMPILE_TRAIN && u->spec->mode != WF_COMPILE_GRAD)
        return WF_OK;
    for (size_t i = 0; i < u->n_targets; i++) {
        const wf_target *t = &u->targets[i];

        if (t->gradient)
            WF_TRY(own_gradient(u, i, err));
        else if (u->spec->mode == WF_COMPILE_TRAIN)
            continue;
        WF_TRY(wf_unit_fetch(u,
                             (wf_fetch){.value = t->gradient,
                                        .meaning = WF_MEANS_GRADIENT,
                                        .label = t->variable->name,
                                        .variable = t->variable->name},
                             err));
    }
    return wf_unit_set_outputs(u, err);
}
