/* SPDX-License-Identifier: Apache-2.0 */
/* common/data/learnt.c */
#include "common/data/learnt.h"
#include "common/data/dataset.h"

#include <inttypes.h>
#include <string.h>

const char *const *wf_words_copy(wf_arena *a, const char *const words[], size_t n)
{
    const char **out = wf_arena_array(a, n, sizeof *out);

    for (size_t i = 0; out && i < n; i++) {
        out[i] = wf_arena_strdup(a, words[i]);
        if (!out[i])
            return NULL;
    }
    return out;
}

static wf_status copy_row(wf_arena *a, const wf_learnt *from, wf_learnt *to, wf_err *err)
{
    *to = *from;
    to->field = wf_arena_strdup(a, from->field);
    to->type = wf_arena_strdup(a, from->type);
    to->numbers = wf_arena_memdup(a, from->numbers, from->n_numbers * sizeof(double));
    to->words = wf_words_copy(a, from->words, from->n_words);
    return to->field && to->type && (to->numbers || !to->n_numbers) && to->words
               ? WF_OK
               : wf_fail_nomem(err, from->n_numbers * sizeof(double));
}

wf_status wf_learnt_keep(const wf_learnt rows[], size_t n, wf_learnt_list *out, wf_err *err)
{
    wf_status rc = WF_OK;

    *out = (wf_learnt_list){.arena = wf_arena_new(0)};
    out->rows = out->arena ? wf_arena_array(out->arena, n, sizeof *out->rows) : NULL;
    if (!out->rows)
        rc = wf_fail_nomem(err, n * sizeof *out->rows);
    for (; rc == WF_OK && out->n < n; out->n++)
        rc = copy_row(out->arena, &rows[out->n], &out->rows[out->n], err);
    if (rc != WF_OK)
        wf_learnt_close(out);
    return rc;
}

void wf_learnt_close(wf_learnt_list *l)
{
    wf_arena_free(&l->arena);
    *l = (wf_learnt_list){0};
}

/* A row without what was learnt. */
static wf_learnt row_of(const wf_field_info *info, uint32_t step, const char *type)
{
    wf_learnt row = {.field = info->name,
                     .step = step,
                     .type = type,
                     .dtype = info->raw_dtype,
                     .rank = info->raw_rank};

    memcpy(row.dims, info->raw_dims, sizeof info->raw_dims);
    return row;
}

size_t wf_dataset_learnt(const wf_dataset *d, wf_learnt out[WF_LEARNT_MOST])
{
    size_t n = 0;

    for (uint32_t f = 0; f < d->n_fields; f++) {
        const wf_field_info *info = &d->fields[f].info;
        bool learns;
        const wf_vocabulary *words = d->text ? wf_text_words(d->text, f, &learns) : NULL;

        if (words) {
            out[n] = row_of(info, 0, d->fields[f].steps.words);
            out[n].words = wf_vocabulary_words(words);
            out[n++].n_words = wf_vocabulary_n(words);
        }
        for (uint32_t i = 0; i < d->fields[f].steps.n; i++) {
            const wf_stage *stage = &d->fields[f].steps.stages[i];

            if (stage->kind != WF_STAGE_STANDARDISE)
                continue;
            out[n] = row_of(info, stage->step, "standardise");
            out[n].numbers = stage->numbers;
            out[n++].n_numbers = stage->n_numbers;
        }
    }
    return n;
}

wf_status wf_learnt_give(const wf_learnt rows[], size_t n, const char *field, wf_map_step steps[],
                         size_t n_steps, wf_err *err)
{
    for (size_t i = 0; i < n; i++) {
        const wf_learnt *l = &rows[i];

        if (strcmp(l->field, field) != 0)
            continue;
        if (l->step >= n_steps || strcmp(steps[l->step].type, l->type) != 0)
            return wf_fail(
                err, WF_MISMATCH, "give the job file that the model was trained with",
                "step %" PRIu32 " of data.map of \"%.64s\" is %s, and was %s in training",
                l->step + 1, field, l->step < n_steps ? steps[l->step].type : "not there", l->type);
        steps[l->step].numbers = l->numbers;
        steps[l->step].n_numbers = l->n_numbers;
        steps[l->step].words = l->words;
        steps[l->step].n_words = l->n_words;
    }
    return WF_OK;
}

wf_status wf_map_shape(const wf_map_step steps[], size_t n, wf_dtype *dtype, uint32_t *rank,
                       int64_t dims[WF_MAX_RANK], wf_err *err)
{
    wf_field_spec field = {.name = "", .steps = steps, .n_steps = n};
    wf_steps plan;

    WF_TRY(wf_steps_plan(&field, *dtype, *rank, dims, &plan, err));
    *dtype = plan.dtype;
    *rank = plan.rank;
    memcpy(dims, plan.dims, sizeof plan.dims);
    return WF_OK;
}
