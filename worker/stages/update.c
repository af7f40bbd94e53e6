/* SPDX-License-Identifier: Apache-2.0 */
/* worker/stages/update.c - the variables of a stage: they are those of an exchange of its own,
 * which holds what the start says is of this stage (exchange/local.c). */
#include "common/graph/graph.h"
#include "common/optim/finite.h"
#include "common/session/rule.h"
#include "worker/stages/state.h"

#include <stdlib.h>

static wf_status new_gradients(wf_stage *s, wf_err *err)
{
    const Weft__Start *start = s->conf.start;
    wf_gradients_variable *rows = calloc(start->n_variables + 1, sizeof *rows);
    wf_status rc;
    wf_opt opt;

    if (!rows)
        return wf_fail_nomem(err, start->n_variables * sizeof *rows);
    for (size_t i = 0; i < start->n_variables; i++) {
        const Weft__Variable *v = start->variables[i];

        rows[i] = (wf_gradients_variable){v->stage == start->stage, v->kind == WF_VAR_TRAINABLE,
                                          wf_stage_is_apart(s, (uint32_t)i)};
        for (size_t k = 0; rows[i].count && k < v->n_dims; k++)
            rows[i].count *= v->dims[k]; /* which fit: they are open */
    }
    rc = wf_rule_get(start->rule, start->options, start->n_options, &opt, err);
    if (rc == WF_OK)
        rc = wf_stage_open_sums(s, &opt, err);
    if (rc == WF_OK)
        rc = wf_gradients_new(&(wf_gradients_conf){.opt = &opt,
                                                   .variables = rows,
                                                   .n = (uint32_t)start->n_variables,
                                                   .devices = &s->conf.device,
                                                   .checked = s->sums.skips || s->sums.squares,
                                                   .pool = s->conf.pool},
                              &s->gradients, err);
    free(rows);
    return rc;
}

wf_status wf_stage_open_variables(wf_stage *s, wf_err *err)
{
    s->exchange.start = s->conf.start;
    s->exchange.pool = s->conf.pool;
    s->exchange.place = (wf_exchange_place){.device = s->on.updates ? s->on.device : NULL,
                                            .updates = s->on.updates};
    WF_TRY(wf_exchange_local.open(&s->exchange, &s->own, err));
    return new_gradients(s, err);
}

static size_t count_of(const Weft__Variable *v)
{
    size_t count = 1;

    for (size_t k = 0; k < v->n_dims; k++)
        count *= (size_t)v->dims[k];
    return count;
}

static uint32_t step_of(const wf_stage *s)
{
    return s->own->acked + 1;
}

wf_status wf_stage_gradient(wf_stage *s, uint32_t variable, float **out, wf_err *err)
{
    float *push = wf_exchange_gradient(s->own, step_of(s), variable);

    *out = push ? wf_gradients_into(s->gradients, 0, variable, push) : NULL;
    if (*out)
        return WF_OK;
    if (wf_stage_is_apart(s, variable))
        return wf_fail(err, WF_NOMEM, NULL,
                       "%s has no %zu bytes left for the gradient of \"%.200s\" in a micro-batch",
                       s->on.device->name,
                       count_of(s->conf.start->variables[variable]) * sizeof **out,
                       s->conf.start->variables[variable]->name);
    return wf_fail(err, WF_NOMEM, "give the stage fewer layers, or its worker more memory",
                   "there is no memory for the gradient of \"%.200s\"",
                   s->conf.start->variables[variable]->name);
}

/* What is on a device has been looked at (device.c). */
static wf_status look(wf_stage *s, uint32_t variable, wf_err *err)
{
    const float *push = wf_gradients_of_step(s->gradients, 0, variable);
    const Weft__Variable *v = s->conf.start->variables[variable];

    if (wf_stage_is_apart(s, variable) || wf_all_finite(push, count_of(v)))
        return WF_OK;
    s->now.is_bad = true;
    if (s->sums.skips)
        return WF_OK;
    return wf_fail(err, WF_NUMERIC,
                   "look at the data, lower the learning rate, or take on_nan: rollback",
                   "the gradient of \"%.200s\" has NaN or infinity", v->name);
}

static wf_status push(void *arg, uint32_t variable, wf_err *err)
{
    wf_stage *s = arg;

    return wf_exchange_push(s->own, step_of(s), variable, err);
}

wf_status wf_stage_take_gradient(wf_stage *s, uint32_t variable, wf_err *err)
{
    bool leaves = wf_gradients_take(s->gradients, variable);

    if (leaves || wf_gradients_waits(s->gradients, variable))
        WF_TRY(look(s, variable, err));
    return leaves ? push(s, variable, err) : WF_OK;
}

wf_status wf_stage_update(wf_stage *s, wf_err *err)
{
    if (s->now.drops) {
        WF_TRY(wf_exchange_drop_step(s->own, step_of(s), err));
    } else {
        wf_exchange_clip_by(s->own, s->now.norm);
        WF_TRY(wf_gradients_end_by(s->gradients, s->now.norm, push, s, err));
    }
    return wf_exchange_end_step(s->own, step_of(s), err);
}

wf_status wf_stage_save(wf_stage *s, uint32_t cut, const char *folder, wf_err *err)
{
    return wf_exchange_save_begin(s->own, cut, folder, err);
}
