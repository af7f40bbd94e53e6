/* SPDX-License-Identifier: Apache-2.0 */
/* worker/trainer_prediction.c - a job that predicts: a step is a split, whose outputs become a part
 * file. The split is done when the part is durable, so whoever is given it again finds it there.
 */
#include "common/base/clock.h"
#include "common/base/disk.h"
#include "common/log/log.h"
#include "common/session/prediction.h"
#include "worker/trainer_state.h"

#include <inttypes.h>
#include <string.h>

static void warn(void *arg, const char *sentence)
{
    (void)arg;
    WF_LOG_INFO("predict.warning", "%s", sentence);
}

static wf_status open_prediction(wf_trainer *t, const Weft__Start *start, wf_err *err)
{
    const wf_device *device = t->devices[0]->is_host ? NULL : t->devices[0];
    wf_prediction_how how = {.pool = t->conf.pool,
                             .device = device,
                             .disk = wf_disk_posix(),
                             .warn = warn,
                             .tell = warn};
    wf_prediction_ask ask;

    t->prediction_arena = wf_arena_new(0);
    if (!t->prediction_arena)
        return wf_fail_nomem(err, 0);
    if (start->n_stages > 0) {
        WF_TRY(wf_predicted_open(t, start, err));
        how.divides = true;
        how.model = &t->predicted.model;
    }
    WF_TRY(wf_prediction_read(start->prediction, strlen(start->prediction), t->prediction_arena,
                              &ask, err));
    WF_TRY(wf_prediction_open(&ask, &how, &t->prediction, err));
    if (wf_prediction_split_records(t->prediction) == ask.split_records)
        return WF_OK;
    return wf_fail(err, WF_PROTO, "let all tasks run one release of weft",
                   "a request in splits of %" PRIu64 " records, which are %" PRIu64 " here",
                   ask.split_records, wf_prediction_split_records(t->prediction));
}

wf_status wf_trainer_begin_prediction(wf_trainer *t, const Weft__Start *start, wf_worker_job *out,
                                      wf_err *err)
{
    t->start = start;
    WF_TRY(open_prediction(t, start, err));
    *out = (wf_worker_job){.batch = wf_prediction_split_records(t->prediction),
                           .train_records = wf_prediction_records(t->prediction),
                           .train_digest = wf_prediction_digest(t->prediction),
                           .at_once = 1,
                           .checksums = t->conf.checksums};
    return start->n_stages > 0 ? wf_predicted_begin(t, out, err) : WF_OK;
}

wf_status wf_trainer_make_prediction(wf_trainer *t, wf_worker *w, wf_err *err)
{
    const wf_batch_id *batch = &t->step.batch;
    int64_t began_ns = wf_now_ns();
    wf_train_result out = {0};
    wf_status rc;

    if (batch->begin % wf_prediction_split_records(t->prediction) != 0 ||
        batch->begin >= wf_prediction_records(t->prediction))
        rc = wf_fail(&out.why, WF_PROTO, "this is a bug in weft",
                     "a split that begins at record %" PRIu64, batch->begin);
    else if (t->stage)
        return wf_predicted_split(t, batch->begin / wf_prediction_split_records(t->prediction), w,
                                  err);
    else
        rc = wf_prediction_split(
            t->prediction, batch->begin / wf_prediction_split_records(t->prediction), &out.why);
    out.why.status = rc;
    out.compute_ns = (uint64_t)(wf_now_ns() - began_ns);
    return wf_worker_on_computed(w, &out, err);
}

void wf_trainer_end_prediction(wf_trainer *t)
{
    wf_prediction_free(&t->prediction);
    wf_predicted_close(t);
    wf_arena_free(&t->prediction_arena);
}
