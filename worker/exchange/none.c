/* SPDX-License-Identifier: Apache-2.0 */
/* worker/exchange/none.c - nothing is exchanged: of a job without variables, whose steps are done
 * with what each worker has read itself. A step is acknowledged when it ends.
 */
#include "worker/exchange.h"

#include <stdlib.h>

static void none_free(wf_exchange *x)
{
    free(x);
}

static wf_status want(wf_exchange *x, int set, uint32_t step, wf_err *err)
{
    (void)x, (void)set, (void)step, (void)err;
    return WF_OK;
}

static bool ready(const wf_exchange *x, int set)
{
    (void)x, (void)set;
    return true;
}

static wf_status drop_step(wf_exchange *x, uint32_t step, wf_err *err)
{
    (void)x, (void)step, (void)err;
    return WF_OK;
}

static wf_status end_step(wf_exchange *x, uint32_t step, wf_err *err)
{
    (void)err;
    x->begun = x->acked = step;
    return WF_OK;
}

static uint32_t count_shards(const wf_exchange *x)
{
    (void)x;
    return 0;
}

static wf_status save(wf_exchange *x, wf_err *err)
{
    (void)x;
    return wf_fail(err, WF_UNSUPPORTED, NULL, "a job without variables has no checkpoints");
}

static const wf_exchange_ops ops = {.free = none_free,
                                    .want = want,
                                    .ready = ready,
                                    .drop_step = drop_step,
                                    .end_step = end_step,
                                    .count_shards = count_shards,
                                    .save = save};

static wf_status none_open(const wf_exchange_conf *conf, wf_exchange **out, wf_err *err)
{
    wf_exchange *x = calloc(1, sizeof *x);

    if (conf->start->n_variables) {
        free(x);
        return wf_fail(err, WF_PROTO, NULL, "a start of a job without variables that has some");
    }
    if (!x)
        return wf_fail_nomem(err, sizeof *x);
    x->ops = &ops;
    *out = x;
    return WF_OK;
}

const wf_exchange_kind wf_exchange_none = {.name = "none", .open = none_open};
