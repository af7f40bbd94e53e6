/* SPDX-License-Identifier: Apache-2.0 */
/* master/generation/restore.c */
#include "master/generation/restore.h"
#include "common/ckpt/ckpt.h"
#include "common/ckpt/initial.h"
#include "common/graph/graph.h"
#include "common/log/log.h"
#include "common/session/rule.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void wf_restored_free(wf_restored *r)
{
    wf_arena_free(&r->arena);
    wf_learnt_close(&r->learnt);
    free(r->passed);
    *r = (wf_restored){0};
}

/* First values that a file is to hold: those of all variables but tables that a ps computes. */
typedef struct first_values {
    wf_shard_tensor *tensors;  /* [n] */
    const wf_tensor **content; /* [n] */
    size_t n;
} first_values;

/* What the optimizer to go on with has of a variable: a slot, or the number of updates. */
static wf_status list_beside(const wf_prepared *p, size_t variable, const char *slot,
                             first_values *f, wf_err *err)
{
    const char *name = p->start.variables[variable]->name;
    const wf_tensor *like = p->initial[variable], *from;
    bool counts = strcmp(slot, WF_INITIAL_UPDATES) == 0;
    char full[WF_SHARD_MAX_NAME];
    const wf_named *row =
        wf_named_find(p->optimizer, wf_ckpt_tensor_name(name, slot, 0, true, full, sizeof full));
    wf_shard_tensor *t = &f->tensors[f->n];

    if (!row)
        return WF_OK;
    from = row->tensor;
    if (counts ? from->dtype != WF_I64 || wf_elems(from) != 1
               : from->dtype != WF_F32 || from->rank != like->rank ||
                     memcmp(from->dims, like->dims, like->rank * sizeof like->dims[0]) != 0)
        return wf_fail(err, WF_MISMATCH, "begin with a new optimizer",
                       "\"%.200s\" of the optimizer's state does not fit the variable", full);
    *t = (wf_shard_tensor){.name = row->name, .dtype = from->dtype, .rank = from->rank};
    memcpy(t->dims, from->dims, sizeof t->dims);
    f->content[f->n++] = from;
    return WF_OK;
}

/* All of them. */
static wf_status list_optimizer(const wf_prepared *p, first_values *f, wf_err *err)
{
    wf_opt opt;

    WF_TRY(wf_rule_get(p->start.rule, p->start.options, p->start.n_options, &opt, err));
    for (size_t i = 0; i < p->start.n_variables; i++) {
        if (p->start.variables[i]->kind == WF_VAR_FROZEN)
            continue;
        for (uint32_t k = 0; k < wf_opt_n_slots(&opt); k++)
            WF_TRY(list_beside(p, i, wf_opt_slot_name(&opt, k), f, err));
        WF_TRY(list_beside(p, i, WF_INITIAL_UPDATES, f, err));
    }
    return WF_OK;
}

static wf_status list_initial(const wf_prepared *p, first_values *f, wf_err *err)
{
    size_t most = (p->start.n_variables + 1) * (p->optimizer ? 2 + WF_MAX_SLOTS : 1);

    f->n = 0;
    f->tensors = calloc(most, sizeof *f->tensors);
    f->content = calloc(most, sizeof(*f->content));
    if (!f->tensors || !f->content)
        return wf_fail_nomem(err, most * sizeof *f->tensors);
    for (size_t i = 0; i < p->start.n_variables; i++) {
        const wf_tensor *from = p->initial[i];
        wf_shard_tensor *t = &f->tensors[f->n];

        if (!from->data)
            continue;
        *t = (wf_shard_tensor){
            .name = p->start.variables[i]->name, .dtype = WF_F32, .rank = from->rank};
        memcpy(t->dims, from->dims, sizeof t->dims);
        f->content[f->n++] = from;
    }
    return p->optimizer ? list_optimizer(p, f, err) : WF_OK;
}

static void free_list(first_values *f)
{
    free(f->tensors);
    free(f->content);
}

static wf_status write_list(const wf_restore_from *from, const wf_prepared *p,
                            const first_values *f, wf_err *err)
{
    char folder[WF_CKPT_PATH], path[WF_CKPT_PATH + 32], temporary[WF_CKPT_PATH + 40];
    char sum[WF_SUM_TEXT], content[WF_SUM_TEXT] = "";
    const wf_shard_meta meta[] = {
        {"job", p->start.job}, {"digest", p->start.digest}, {WF_INITIAL_SUM, content}};
    wf_shard_writer *w = NULL;
    uint64_t bytes;
    wf_status rc;

    snprintf(folder, sizeof folder, "%s/%s", from->checkpoint_dir, p->start.job);
    snprintf(path, sizeof path, "%s/" WF_INITIAL_NAME, folder);
    snprintf(temporary, sizeof temporary, "%s.tmp", path);
    rc = wf_initial_sum(p->start.job, p->start.digest, f->n, f->tensors, f->content, content, err);
    if (rc == WF_OK)
        rc = wf_disk_make_dirs(from->disk, folder, err);
    if (rc == WF_OK)
        rc =
            wf_shard_create(from->disk, temporary, f->tensors, f->n, meta, WF_COUNT(meta), &w, err);
    for (size_t i = 0; rc == WF_OK && i < f->n; i++)
        rc = wf_shard_write(w, f->content[i]->data, wf_tensor_bytes(f->content[i]), err);
    if (rc == WF_OK)
        rc = wf_shard_finish(&w, &bytes, sum, err);
    if (rc == WF_OK)
        rc = wf_disk_rename(from->disk, temporary, path, err);
    if (rc == WF_OK)
        rc = wf_disk_sync_dir(from->disk, folder, err);
    wf_shard_abort(&w);
    return wf_err_wrap(err, rc, "writing the first values of job %s", p->start.job);
}

static wf_status write_initial(const wf_restore_from *from, const wf_prepared *p, wf_err *err)
{
    first_values list;
    wf_status rc = list_initial(p, &list, err);

    if (rc == WF_OK)
        rc = write_list(from, p, &list, err);
    free_list(&list);
    return rc;
}

static bool has_frozen(const wf_prepared *p)
{
    for (size_t i = 0; i < p->start.n_variables; i++)
        if (p->start.variables[i]->kind == WF_VAR_FROZEN)
            return true;
    return false;
}

/* Frozen variables are in no checkpoint: beside one the file of first values has to be whole, and
 * of this very model. It is written anew if it is not. */
static wf_status keep_initial(const wf_restore_from *from, const wf_prepared *p, wf_err *err)
{
    char sum[WF_SUM_TEXT] = "";
    first_values list;
    bool matches = false;
    wf_status rc;

    if (!has_frozen(p))
        return WF_OK;
    rc = list_initial(p, &list, err);
    if (rc == WF_OK)
        rc = wf_initial_sum(p->start.job, p->start.digest, list.n, list.tensors, list.content, sum,
                            err);
    free_list(&list);
    if (rc == WF_OK)
        rc = wf_initial_matches(from->disk, from->checkpoint_dir, p->start.job, sum, &matches, err);
    if (rc != WF_OK || matches)
        return rc;
    WF_LOG_INFO("job.first_values",
                "job=%s why=\"frozen variables are not in " WF_INITIAL_NAME "\"", p->start.job);
    return write_initial(from, p, err);
}

static Weft__Split *range_of(wf_arena *a, uint64_t begin, uint64_t end)
{
    Weft__Split *s = wf_arena_alloc(a, sizeof *s);

    if (!s)
        return NULL;
    weft__split__init(s);
    s->begin = begin;
    s->next = s->end = end;
    return s;
}

static wf_status copy_metrics(const wf_manifest *from, wf_arena *a, Weft__Ledger *to, wf_err *err)
{
    Weft__Option *rows = wf_arena_array(a, from->n_metrics + 1, sizeof *rows);

    to->metrics = wf_arena_array(a, from->n_metrics + 1, sizeof(*to->metrics));
    if (!rows || !to->metrics)
        return wf_fail_nomem(err, from->n_metrics * sizeof *rows);
    for (size_t i = 0; i < from->n_metrics; i++) {
        weft__option__init(&rows[i]);
        rows[i].name = wf_arena_strdup(a, from->metrics[i].name);
        rows[i].value = from->metrics[i].value;
        to->metrics[to->n_metrics++] = &rows[i];
        if (!rows[i].name)
            return wf_fail_nomem(err, strlen(from->metrics[i].name));
    }
    return WF_OK;
}

static wf_status copy_rounds(const wf_ckpt_rounds *from, wf_arena *a, Weft__Ledger *to, wf_err *err)
{
    Weft__RoundFile *rows;

    if (!from)
        return WF_OK;
    rows = wf_arena_array(a, from->n_files + 1, sizeof *rows);
    to->files = wf_arena_array(a, from->n_files + 1, sizeof(*to->files));
    to->earlier = wf_arena_memdup(a, from->earlier, from->n_earlier * sizeof *from->earlier);
    if (!rows || !to->files || (!to->earlier && from->n_earlier))
        return wf_fail_nomem(err, from->n_earlier * sizeof *from->earlier);
    to->n_earlier = from->n_earlier;
    for (size_t i = 0; i < from->n_files; i++) {
        weft__round_file__init(&rows[i]);
        rows[i].path = wf_arena_strdup(a, from->files[i].path);
        rows[i].bytes = from->files[i].bytes;
        to->files[to->n_files++] = &rows[i];
        if (!rows[i].path)
            return wf_fail_nomem(err, strlen(from->files[i].path));
    }
    to->steps_before = from->steps_before;
    to->records_before = from->records_before;
    to->train_digest = from->digest;
    return WF_OK;
}

static wf_status copy_ledger(const wf_manifest *manifest, wf_restored *out, wf_err *err)
{
    const wf_ckpt_ledger *from = &manifest->ledger;
    size_t n = from->n_finished + from->n_open;
    Weft__Ledger *l = wf_arena_alloc(out->arena, sizeof *l);

    if (!l)
        return wf_fail_nomem(err, sizeof *l);
    weft__ledger__init(l);
    l->epoch = from->epoch;
    l->records = from->records;
    l->split_records = from->split_records;
    l->evaluated = from->evaluated;
    l->next_cut = from->next_cut;
    l->n_file_ends = from->n_file_ends;
    l->file_ends = wf_arena_array(out->arena, from->n_file_ends + 1, sizeof *l->file_ends);
    if (!l->file_ends)
        return wf_fail_nomem(err, from->n_file_ends * sizeof *l->file_ends);
    if (from->n_file_ends)
        memcpy(l->file_ends, from->file_ends, from->n_file_ends * sizeof *l->file_ends);
    l->finished = wf_arena_array(out->arena, n, sizeof(*l->finished));
    if (!l->finished)
        return wf_fail_nomem(err, n * sizeof(*l->finished));
    for (size_t i = 0; i < from->n_finished; i++)
        l->finished[l->n_finished++] =
            range_of(out->arena, from->finished[i].begin, from->finished[i].end);
    for (size_t i = 0; i < from->n_open; i++)
        if (from->open[i].next > from->open[i].begin)
            l->finished[l->n_finished++] =
                range_of(out->arena, from->open[i].begin, from->open[i].next);
    for (size_t i = 0; i < l->n_finished; i++)
        if (!l->finished[i])
            return wf_fail_nomem(err, sizeof **l->finished);
    out->ledger = l;
    WF_TRY(copy_rounds(from->rounds, out->arena, l, err));
    return copy_metrics(manifest, out->arena, l, err);
}

static void passed_over(void *arg, uint64_t step, const char *sentence)
{
    wf_restored *r = arg;
    char *longer = NULL;

    (void)step;
    WF_LOG_WARN("ckpt.passed_over", "%s", sentence);
    if (asprintf(&longer, "%s%s%s", r->passed ? r->passed : "", r->passed ? "\n" : "", sentence) <
        0)
        return;
    free(r->passed);
    r->passed = longer;
}

static wf_status open_checkpoint(const wf_restore_from *from, const wf_prepared *p, wf_restored *r,
                                 wf_ckpt **out, wf_err *err)
{
    if (from->step >= 0)
        return wf_ckpt_open(from->disk, from->checkpoint_dir, p->start.job, (uint64_t)from->step,
                            true, out, err);
    return wf_ckpt_newest(from->disk, from->checkpoint_dir, p->start.job, p->start.digest,
                          UINT64_MAX, passed_over, r, out, err);
}

/* Beginning anew without a word would throw away what a person may still save. */
static wf_status none_verifies(const wf_restore_from *from, const wf_prepared *p,
                               const wf_restored *r, wf_err *err)
{
    char hint[160];

    snprintf(hint, sizeof hint, "look with: weft ckpt verify %.64s; or begin a new run: weft train",
             p->start.job);
    return wf_fail(err, WF_CORRUPT, hint,
                   "no checkpoint of job %s in %s verifies; the newest: %.*s", p->start.job,
                   from->checkpoint_dir, (int)strcspn(r->passed, "\n"), r->passed);
}

wf_status wf_master_restore(const wf_restore_from *from, const wf_prepared *p, wf_restored *out,
                            wf_err *err)
{
    wf_ckpt *c = NULL;
    wf_status rc;

    *out = (wf_restored){.arena = wf_arena_new(0)};
    if (!out->arena)
        return wf_fail_nomem(err, 4096);
    if (p->predicts) { /* its parts are what is kept, and workers find them there */
        out->initial = true;
        return has_frozen(p) ? write_initial(from, p, err) : WF_OK;
    }
    /* What a crash left: one that has stepped aside for another may be the only one. */
    rc = wf_ckpt_sweep(from->disk, from->checkpoint_dir, p->start.job, err);
    if (rc == WF_OK)
        rc = open_checkpoint(from, p, out, &c, err);
    if (rc == WF_OK && strcmp(wf_ckpt_manifest(c)->digest, p->start.digest) != 0)
        rc = wf_fail(err, WF_MISMATCH, "train it as a new run, without --resume",
                     "%s of job %s was saved by another model", wf_ckpt_name(c), p->start.job);
    if (rc == WF_OK && wf_ckpt_manifest(c)->cut.generation >= UINT16_MAX)
        rc =
            wf_fail(err, WF_FULL, "give the job a new name",
                    "%s of job %s is of generation %" PRIu32 ", and there can be %d",
                    wf_ckpt_name(c), p->start.job, wf_ckpt_manifest(c)->cut.generation, UINT16_MAX);
    if (rc == WF_OK) {
        const wf_ckpt_ledger *l = &wf_ckpt_manifest(c)->ledger;

        out->generation = (uint16_t)wf_ckpt_manifest(c)->cut.generation;
        out->global_step = wf_ckpt_manifest(c)->global_step;
        for (size_t i = 0; i < l->n_callbacks; i++)
            wf_callbacks_take(&out->callbacks, l->callbacks[i].name, l->callbacks[i].value);
        wf_callbacks_restored(&p->callbacks, &out->callbacks, out->global_step, l->epoch);
        rc = copy_ledger(wf_ckpt_manifest(c), out, err);
        if (rc == WF_OK)
            rc = wf_learnt_keep(wf_ckpt_manifest(c)->learnt, wf_ckpt_manifest(c)->n_learnt,
                                &out->learnt, err);
        if (rc == WF_OK)
            rc = keep_initial(from, p, err);
    } else if (rc == WF_NOTFOUND && from->step < 0 && out->passed) {
        rc = none_verifies(from, p, out, err);
    } else if (rc == WF_NOTFOUND && from->step < 0) {
        out->initial = true;
        rc = write_initial(from, p, err);
    }
    wf_ckpt_close(&c);
    if (rc != WF_OK)
        wf_restored_free(out);
    return rc;
}

/* One row to the step that it is of, if the data has it and it does not know it yet. */
static wf_status give_row(const wf_learnt *l, Weft__JobData *data, wf_arena *a, wf_err *err)
{
    for (size_t i = 0; data && i < data->n_fields; i++) {
        const Weft__DataField *f = data->fields[i];
        Weft__MapStep *step = l->step < f->n_steps ? f->steps[l->step] : NULL;

        if (strcmp(f->name, l->field) != 0 || !step || strcmp(step->type, l->type) != 0 ||
            step->n_numbers || step->n_words)
            continue;
        step->numbers = wf_arena_memdup(a, l->numbers, l->n_numbers * sizeof(double));
        step->words = (char **)wf_words_copy(a, l->words, l->n_words);
        if ((!step->numbers && l->n_numbers) || !step->words)
            return wf_fail_nomem(err, l->n_numbers * sizeof(double));
        step->n_numbers = l->n_numbers;
        step->n_words = l->n_words;
    }
    return WF_OK;
}

wf_status wf_restored_give(const wf_restored *r, wf_prepared *p, wf_err *err)
{
    for (size_t i = 0; i < r->learnt.n; i++) {
        WF_TRY(give_row(&r->learnt.rows[i], p->start.train_data, p->arena, err));
        WF_TRY(give_row(&r->learnt.rows[i], p->start.eval_data, p->arena, err));
    }
    return WF_OK;
}
