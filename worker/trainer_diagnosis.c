/* SPDX-License-Identifier: Apache-2.0 */
/* worker/trainer_diagnosis.c - a step with a loss or a gradient that is no number: which replica
 * made it, and of what. */
#include "common/exec/exec.h"
#include "worker/diagnosis.h"
#include "worker/trainer_state.h"

#include <math.h>
#include <stdlib.h>

bool wf_output_is_finite(const wf_plan *p, uint32_t i)
{
    wf_err ignored;

    return wf_plan_check_finite(p, 1, &i, &ignored) == WF_OK;
}

/* The loss or metric that is no number, by the outputs of the last run; -1: none. */
static int64_t bad_loss(const wf_side *s, const wf_plan *p, const char **label)
{
    for (size_t i = 0; i < s->spec.n_fetches; i++) {
        int64_t at = wf_plan_find_output(p, s->spec.meanings[i]->name);

        if (at < 0 || wf_output_is_finite(p, (uint32_t)at))
            continue;
        *label = s->spec.meanings[i]->label;
        return at;
    }
    return -1;
}

static bool any_nan(const wf_port *out, const void *data)
{
    for (int64_t i = 0; i < out->elems; i++)
        if (isnan(out->dtype == WF_F32 ? (double)((const float *)data)[i]
                                       : ((const double *)data)[i]))
            return true;
    return false;
}

static wf_status holds_nan(const wf_plan *p, uint32_t output, bool *out, wf_err *err)
{
    const wf_port *port = wf_plan_output(p, output);
    const void *data = wf_plan_output_data(p, output);
    void *copy;
    wf_status rc;

    if (port->device->is_host) {
        *out = any_nan(port, data);
        return WF_OK;
    }
    copy = malloc(port->bytes + 1);
    if (!copy)
        return wf_fail_nomem(err, port->bytes);
    rc = wf_device_read(port->device, copy, data, port->bytes, err);
    *out = rc == WF_OK && any_nan(port, copy);
    free(copy);
    return rc;
}

/* Says where a bad loss or gradient of a replica came from. The plan is run again, on the same
 * weights and draws, and into memory of its own: what it wrote before may be on its way, but for
 * what stays on the device. */
static wf_status diagnose_replica(wf_trainer *t, const wf_batch_id *id, uint32_t number,
                                  wf_err *err)
{
    const wf_replica *r = &t->hand->replicas.of[number];
    wf_bad_step bad = {.worker = t->conf.index,
                       .step = t->hand->step.step,
                       .id = *id,
                       .side = &t->train,
                       .batch = &r->batch,
                       .exchange = wf_exchange_of_replica(t->hand->step.exchange, number),
                       .set = t->hand->step.set,
                       .jobs_dir = t->conf.jobs_dir,
                       .host = t->conf.host};
    wf_plan *p = r->plan;
    int64_t at;

    for (uint32_t i = 0; i < t->train.n_outputs; i++)
        if (t->train.outputs[i].variable >= 0 && wf_plan_output(p, i)->device->is_host)
            wf_plan_bind_output(p, i, NULL);
    WF_TRY(wf_plan_run(p, &r->key, NULL, NULL, err));
    at = bad_loss(&t->train, p, &bad.label);
    bad.is_loss = at >= 0;
    if (at < 0 && r->bad_output >= 0) {
        at = r->bad_output;
        bad.label = wf_plan_output(p, (uint32_t)at)->variable;
    }
    if (at < 0) /* only the sum of a step's batches is too large */
        return wf_fail(err, WF_NUMERIC, "lower the learning rate",
                       "a metric's sum is infinite at step %u", bad.step);
    bad.output = (uint32_t)at;
    WF_TRY(holds_nan(p, bad.output, &bad.is_nan, err));
    return wf_diagnose(p, &r->key, &bad, err);
}

wf_status wf_step_diagnose(wf_trainer *t, const wf_batch_id *id, wf_err *err)
{
    const char *ignored;
    uint32_t bad = 0;

    for (uint32_t i = t->hand->replicas.n; i-- > 0;) {
        const wf_replica *r = &t->hand->replicas.of[i];

        if (r->plan &&
            (r->rc != WF_OK || r->bad_output >= 0 || bad_loss(&t->train, r->plan, &ignored) >= 0))
            bad = i;
    }
    return diagnose_replica(t, id, bad, err);
}
