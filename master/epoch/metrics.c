/* SPDX-License-Identifier: Apache-2.0 */
/* master/epoch/metrics.c */
#include "master/epoch/metrics.h"
#include "common/base/clock.h"

#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

static const char VAL[] = "val_", EPOCH[] = "epoch";

/* ---- kept ---- */

void wf_epoch_forget_trained(wf_epoch *e)
{
    wf_measures_close(e->trained, e->n_trained);
    e->n_trained = 0;
}

uint32_t wf_epoch_trained(wf_job *j, wf_tally to[])
{
    wf_epoch *e = j->epoch;

    if (!e->n_trained) {
        memcpy(to, e->before, e->n_before * sizeof *to);
        return e->n_before;
    }
    for (uint32_t i = 0; i < e->n_trained; i++)
        wf_tally_keep(&to[i], &e->trained[i]);
    return e->n_trained;
}

size_t wf_epoch_metrics(const wf_job *j, wf_epoch_numbers *to)
{
    const wf_epoch *e = j->epoch;

    if (!e->eval_epoch)
        return 0;
    for (uint32_t i = 0; i <= e->n_eval; i++) {
        weft__option__init(&to->rows[i]);
        if (i == 0)
            snprintf(to->names[i], sizeof to->names[i], "%s", EPOCH);
        else
            snprintf(to->names[i], sizeof to->names[i], "%s%s", VAL, e->eval[i - 1].name);
        to->rows[i].name = to->names[i];
        to->rows[i].value = i == 0 ? e->eval_epoch : wf_tally_mean(&e->eval[i - 1], 0);
        to->list[i] = &to->rows[i];
    }
    return e->n_eval + 1;
}

void wf_epoch_restore_metrics(wf_epoch *e, const Weft__Ledger *l)
{
    uint32_t epoch = 0;

    for (size_t i = 0; i < l->n_metrics; i++)
        if (strcmp(l->metrics[i]->name, EPOCH) == 0)
            epoch = (uint32_t)l->metrics[i]->value;
    if (epoch == e->eval_epoch)
        return;
    e->eval_epoch = epoch;
    e->n_eval = 0;
    for (size_t i = 0; i < l->n_metrics && e->n_eval < WF_MASTER_METRICS; i++) {
        wf_tally *t = &e->eval[e->n_eval];

        if (strncmp(l->metrics[i]->name, VAL, strlen(VAL)) != 0)
            continue;
        snprintf(t->name, sizeof t->name, "%s", l->metrics[i]->name + strlen(VAL));
        t->sum = l->metrics[i]->value;
        t->count = 1;
        e->n_eval++;
    }
}

/* ---- told ---- */

static void add_metrics(const wf_tally list[], uint32_t n, const char *prefix, json_t *numbers,
                        char *text, size_t size)
{
    for (uint32_t i = 0; i < n; i++) {
        double value = wf_tally_mean(&list[i], (double)NAN);
        size_t at = strlen(text);

        snprintf(text + at, size - at, "  %s%.63s %.4f", prefix, list[i].name, value);
        json_object_set_new(numbers, list[i].name, /* JSON has no other numbers */
                            isfinite(value) ? json_real(value) : json_null());
    }
}

/* Each epoch of a run has the same numbers, in the same order, known or not. */
static void add_names(Weft__Output *const outputs[], size_t n, json_t *numbers)
{
    char name[WF_MEASURE_NAME];

    for (size_t i = 0; i < n; i++) {
        snprintf(name, sizeof name, "%s", outputs[i]->label); /* as a measure has it */
        json_object_set_new(numbers, name, json_null());
    }
}

void wf_epoch_tell(wf_master *m, wf_job *j, const char *failed)
{
    wf_epoch *e = j->epoch;
    uint32_t epoch = e->ledger.epoch + 1;
    double rate = e->callbacks.rate > 0 ? e->callbacks.rate : j->prepared->callbacks.rate;
    double elapsed_s = 0;
    json_t *numbers = json_object(), *train = json_object(), *val = json_object();
    const Weft__Start *start = &j->prepared->start;
    char facts[512] = "", of[24] = "";

    add_names(start->train_outputs, start->n_train_outputs, train);
    add_names(start->eval_outputs, j->prepared->evaluates ? start->n_eval_outputs : 0, val);
    e->n_before = 0;
    if (e->n_trained)
        e->n_before = wf_epoch_trained(j, e->before);
    add_metrics(e->before, e->n_before, "", train, facts, sizeof facts);
    if (failed[0])
        snprintf(facts, sizeof facts, "  the evaluation failed: %.240s", failed);
    else if (e->eval_epoch == epoch)
        add_metrics(e->eval, e->n_eval, VAL, val, facts, sizeof facts);
    json_object_set_new(numbers, "epoch", json_integer(epoch));
    if (wf_job_grows(j)) {
        json_object_set_new(numbers, "files", json_integer((json_int_t)j->rounds.n_files));
        json_object_set_new(numbers, "records", json_integer((json_int_t)e->train_records));
    }
    if (j->began_ns) /* 0: it goes on behind its last record */
        elapsed_s = (double)(m->now_ns - j->began_ns) / WF_NS_PER_S;
    json_object_set_new(numbers, "elapsed_s", json_real(elapsed_s));
    if (rate > 0) /* 0: it follows a schedule */
        json_object_set_new(numbers, "learning_rate", json_real(rate));
    json_object_set_new(numbers, "train", train);
    json_object_set_new(numbers, "val", val);
    if (j->prepared->epochs != WF_EPOCHS_ANY)
        snprintf(of, sizeof of, "/%lu", (unsigned long)j->prepared->epochs);
    wf_job_note_with(m, j, "job.epoch", &numbers, "epoch %u%s:%s", epoch, of,
                     facts + (facts[0] != 0));
}
