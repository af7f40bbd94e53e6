/* SPDX-License-Identifier: Apache-2.0 */
/* tests/sim/checkpoints.c - what must hold on disk: what was committed stays, and holds what its
 * ledger of data claims. Looked at when the master hears of a checkpoint, when the power has gone,
 * and at the end. */
#include "common/base/bytes.h"
#include "common/base/size.h"
#include "common/ckpt/ckpt.h"
#include "tests/sim/world.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A committed checkpoint holds each record that its ledger claims, and while no worker has died no
 * other: the cut is one instant of data and weights. */
static void check_records(wf_sim *s, wf_ckpt *c)
{
    const wf_ckpt_ledger *l = &wf_ckpt_manifest(c)->ledger;
    float *records = calloc(s->spec.records, sizeof *records);
    uint8_t *wanted = calloc(s->spec.records, 1);
    wf_err err;

    wf_assert(records && wanted);
    if (wf_ckpt_read_range(c, "records", NULL, 0, s->spec.records, records, &err) != WF_OK)
        wf_sim_failed(s, "reading a checkpoint", err.status, &err);
    if (wf_sim_copies(s))
        wf_sim_count_times(s, records);
    wf_sim_claimed(s, l, wanted);
    for (uint32_t r = 0; r < s->spec.records; r++) {
        uint64_t got = (uint64_t)records[r];

        if (got < wanted[r] && !wf_sim_left_out(s) && !s->spec.backups)
            wf_sim_broken(s, "a checkpoint holds every record that its ledger claims", got,
                          wanted[r]);
        if (s->oracle.worker_deaths == 0 && got > wanted[r])
            wf_sim_broken(s, "a checkpoint holds no record that its ledger does not claim", got,
                          wanted[r]);
    }
    free(records);
    free(wanted);
}

/* Steps that are made together are one update of each slice, whoever was in them. */
static void check_updates(wf_sim *s, wf_ckpt *c)
{
    const wf_manifest *m = wf_ckpt_manifest(c);
    const wf_ckpt_slice *first = m->n_variables ? m->variables[0].slices : NULL;

    for (size_t v = 0; s->spec.together && s->oracle.worker_deaths == 0 && v < m->n_variables; v++)
        for (size_t i = 0; i < m->variables[v].n_slices; i++)
            if (m->variables[v].slices[i].updates != first->updates)
                wf_sim_broken(s, "a step made together is one update of each slice",
                              m->variables[v].slices[i].updates, first->updates);
}

static void check_newest(wf_sim *s, const wf_ckpt_entry *e)
{
    wf_ckpt *c = NULL;
    wf_err err;

    if (e->step == s->oracle.checked_step)
        return;
    s->oracle.checked_step = e->step;
    s->result.checkpoints++;
    if (wf_ckpt_open(s->disk, "/ckpt", s->job, e->step, true, &c, &err) == WF_OK) {
        check_records(s, c);
        check_updates(s, c);
    } else {
        wf_sim_failed(s, "a committed checkpoint verifies", err.status, &err);
    }
    wf_ckpt_close(&c);
}

/* The hint must not lead to nothing: it moves after its checkpoint is durable. */
static void check_latest(wf_sim *s, const wf_ckpt_entry list[], size_t n)
{
    size_t size = 0;
    char path[64];
    const uint8_t *text;

    snprintf(path, sizeof path, "/ckpt/%s/latest", s->job);
    text = wf_memdisk_bytes(s->memdisk, path, &size);

    if (!text || size < strlen("step-00000000"))
        return; /* never written, or torn: a hint only */
    for (size_t i = 0; i < n; i++)
        if (!list[i].fault && size > strlen(list[i].name) &&
            memcmp(list[i].name, text, strlen(list[i].name)) == 0)
            return;
    wf_sim_broken(s, "`latest` names a checkpoint that is complete", size, n);
}

static void check_disk(wf_sim *s)
{
    wf_arena *a = wf_arena_new(0);
    wf_ckpt_entry *list = NULL, *newest = NULL;
    oracle *o = &s->oracle;
    uint32_t whole = 0;
    size_t n = 0;
    wf_err err;

    if (wf_ckpt_list(s->disk, "/ckpt", s->job, a, &list, &n, &err) != WF_OK)
        n = 0; /* the job has no folder yet */
    for (size_t i = 0; i < n; i++) {
        whole += !list[i].fault;
        if (!newest && !list[i].fault)
            newest = &list[i];
    }
    if (o->committed_generation &&
        (!newest || newest->generation < o->committed_generation ||
         (newest->generation == o->committed_generation && newest->step < o->committed_step)))
        wf_sim_broken(s, "what was committed stays", o->committed_generation, o->committed_step);
    /* One whose commit failed at its last sync is whole, and may go with the power: the master was
     * told that it failed. */
    if (whole < WF_MIN(o->most_complete, o->n_committed))
        wf_sim_broken(s, "as many checkpoints stay as are to be kept", whole, o->most_complete);
    o->most_complete = WF_MAX(o->most_complete, WF_MIN(whole, (uint32_t)KEEP));
    if (newest) {
        check_newest(s, newest);
        check_latest(s, list, n);
    }
    wf_arena_free(&a);
}

void wf_sim_check_disk(wf_sim *s)
{
    s->oracle.look_at_disk = false;
    s->oracle.disk_changes = wf_memdisk_changes(s->memdisk);
    wf_memdisk_quiet(s->memdisk, true);
    check_disk(s);
    wf_memdisk_quiet(s->memdisk, false);
}

int64_t wf_sim_old_step(wf_sim *s)
{
    wf_arena *a = wf_arena_new(0);
    wf_ckpt_entry *list = NULL;
    int64_t step = -1;
    size_t n = 0;
    wf_err err;

    wf_memdisk_quiet(s->memdisk, true);
    if (wf_ckpt_list(s->disk, "/ckpt", s->job, a, &list, &n, &err) != WF_OK)
        n = 0;
    for (size_t i = 0; i < n && i < 2; i++)
        if (!list[i].fault)
            step = (int64_t)list[i].step;
    wf_memdisk_quiet(s->memdisk, false);
    wf_arena_free(&a);
    return step;
}

/* A best checkpoint that the disk refused costs that one: then others may be the best. */
static bool is_known_which_is_best(const wf_sim *s)
{
    return s->spec.restores_best && !s->spec.disk_errors && !s->spec.stuck_per_mille;
}

bool wf_sim_left_out(const wf_sim *s)
{
    const process *p = &s->procs[0];
    char *text = p->alive ? wf_master_status(p->master, wf_sim_clock(p)) : NULL, job[48];
    const char *at;
    bool out;

    snprintf(job, sizeof job, "\"job\":\"%s\"", s->job);
    at = text ? strstr(text, job) : NULL;
    at = at ? strstr(at, "\"left_out_records\":") : NULL;
    out = !at || at[strlen("\"left_out_records\":")] != '0'; /* a master that is away cannot say */
    free(text);
    return out;
}

/* How often each record has been trained when the job is done. */
static void check_trained(wf_sim *s, const float *records)
{
    const wf_model_spec model = wf_sim_model(s);
    uint32_t last, best, least = s->spec.epochs, most = s->spec.epochs;

    if (s->spec.restores_best) {
        wf_model_epochs(&model, &last, &best);
        least = is_known_which_is_best(s) ? best + 1 : 1;
        most = is_known_which_is_best(s) ? best + 1 : last + 1;
    }
    for (uint32_t r = 0; r < s->spec.records; r++) {
        if (records[r] < (float)least && !wf_sim_left_out(s) && !s->spec.backups)
            wf_sim_broken(s, "every record is trained once an epoch", r, (uint64_t)records[r]);
        if (s->oracle.worker_deaths == 0 && records[r] > (float)most)
            wf_sim_broken(s, "without a worker's death no record is trained twice", r,
                          (uint64_t)records[r]);
    }
}

/* Whatever has started anew since: the evaluation of the weights that the job ends with is known.
 */
static void check_evaluation(wf_sim *s)
{
    char *text = wf_master_status(s->procs[0].master, wf_sim_clock(&s->procs[0])), job[48];
    const char *key = "\"eval_epoch\":", *at, *value;
    const wf_model_spec model = wf_sim_model(s);
    uint32_t last = s->spec.epochs - 1, best, shown = 0, least, most;

    if (s->spec.restores_best)
        wf_model_epochs(&model, &last, &best);
    most = is_known_which_is_best(s) ? best + 1 : last + 1;
    least = s->spec.restores_best && !is_known_which_is_best(s) ? 1 : most;
    if (s->spec.files) { /* an epoch of each round, whose number is the luck of their times */
        least = 1;
        most = s->spec.files;
    }
    snprintf(job, sizeof job, "\"job\":\"%s\"", s->job);
    at = text ? strstr(text, job) : NULL;
    value = at ? strstr(at, key) : NULL;
    if (value)
        shown = (uint32_t)strtoul(value + strlen(key), NULL, 10);
    if (shown < least || shown > most || strstr(at, "\"eval\":{}"))
        wf_sim_broken(s, "the evaluation of the last weights is known", most, shown);
    free(text);
}

void wf_sim_check_end(wf_sim *s)
{
    wf_ckpt *c = NULL;
    float *records = calloc(s->spec.records, sizeof *records);
    wf_err err;

    wf_assert(records);
    if (s->spec.evaluates)
        check_evaluation(s);
    wf_memdisk_quiet(s->memdisk, true);
    if (wf_ckpt_newest(s->disk, "/ckpt", s->job, "ledger", UINT64_MAX, NULL, NULL, &c, &err) !=
        WF_OK) {
        wf_sim_failed(s, "a job that is done has a checkpoint", err.status, &err);
    } else if (wf_ckpt_read_range(c, "records", NULL, 0, s->spec.records, records, &err) == WF_OK) {
        if (wf_sim_copies(s))
            wf_sim_count_times(s, records);
        check_trained(s, records);
        s->result.generation = wf_ckpt_manifest(c)->cut.generation;
    }
    wf_ckpt_close(&c);
    free(records);
}
