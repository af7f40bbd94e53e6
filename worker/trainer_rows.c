/* SPDX-License-Identifier: Apache-2.0 */
/* worker/trainer_rows.c - the rows of tables that steps and units of evaluations take, before they
 * do. */
#include "common/base/size.h"
#include "common/data/reader.h"
#include "worker/trainer_state.h"

/* Reads the batch of a step, in its turn. */
static wf_status read_ahead(wf_trainer *t, struct batch_ahead *a, uint32_t step, bool *known)
{
    wf_side *s = &t->train;
    const wf_batch *batch = NULL;
    wf_status rc = wf_data_reader_next(s->reader, &batch, &a->why);

    *known = rc != WF_OK || batch;
    if (!*known)
        return WF_OK;
    a->step = step;
    a->batch = batch;
    t->next_ahead = step + 1;
    wf_named_rows_clear(&a->rows, &s->tables);
    if (rc == WF_OK)
        rc = wf_named_rows_add(&a->rows, &s->tables, batch, &a->why);
    if (rc == WF_OK)
        rc = wf_named_rows_end(&a->rows, &s->tables, &a->why);
    a->why.status = rc;
    return rc;
}

wf_status wf_trainer_name_step(void *arg, wf_exchange *x, int set, uint32_t step, bool *known,
                               wf_err *err)
{
    wf_trainer *t = arg;
    struct batch_ahead *a = &t->ahead[step % WF_COUNT(t->ahead)];

    *known = a->step == step;
    if (!*known && t->next_ahead != 0 && t->next_ahead != step) /* others come before it */
        return WF_OK;
    if (!*known)
        a->why.status = read_ahead(t, a, step, known);
    if (!*known)
        return WF_OK;
    if (a->why.status != WF_OK) {
        *err = a->why;
        return wf_err_wrap(err, a->why.status, "step %u", step);
    }
    return wf_named_rows_tell(&a->rows, &t->train.tables, x, set, err);
}

static wf_status note_unit(wf_trainer *t, uint64_t begin, uint64_t end, wf_err *err)
{
    wf_side *s = &t->eval;
    const wf_batch *batch;
    wf_status rc;

    wf_named_rows_clear(&t->eval_rows, &s->tables);
    WF_TRY(wf_trainer_join_opening(t, err));
    if (!s->reader)
        return WF_OK;
    rc = wf_data_reader_open(s->reader, 0, 0, 0, WF_MIN(end, wf_dataset_records(s->data)),
                             begin / s->batch, err);
    while (rc == WF_OK && (rc = wf_data_reader_next(s->reader, &batch, err)) == WF_OK && batch) {
        rc = wf_named_rows_add(&t->eval_rows, &s->tables, batch, err);
        wf_data_reader_release(s->reader, &batch);
    }
    wf_data_reader_cancel(s->reader);
    return rc == WF_OK ? wf_named_rows_end(&t->eval_rows, &s->tables, err) : rc;
}

wf_status wf_trainer_name_unit(void *arg, wf_exchange *x, int set, uint64_t begin, uint64_t end,
                               wf_err *err)
{
    wf_trainer *t = arg;

    t->eval_why.status = note_unit(t, begin, end, &t->eval_why);
    if (t->eval_why.status != WF_OK)
        wf_named_rows_clear(&t->eval_rows, &t->eval.tables);
    return wf_named_rows_tell(&t->eval_rows, &t->eval.tables, x, set, err);
}
