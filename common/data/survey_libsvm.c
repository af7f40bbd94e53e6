/* SPDX-License-Identifier: Apache-2.0 */
/* common/data/survey_libsvm.c - what the features of a libsvm file hold. */
#include "common/base/size.h"
#include "common/data/format.h"
#include "common/data/libsvm_record.h"
#include "common/data/survey.h"

#include <inttypes.h>
#include <math.h>

/* A pass over the file; the first, without columns, finds the largest index. */
typedef struct pass {
    wf_survey *survey;
    uint64_t end; /* one more than the largest index */
    uint64_t least_pairs, most_pairs, pairs;
    bool has_zero;
    bool each; /* columns are of one index each */
} pass;

static wf_status take_number(wf_survey *s, uint32_t column, double value, wf_err *err)
{
    s->columns[column].wholes += value == trunc(value);
    return wf_survey_number(s, &s->columns[column], value, err);
}

static wf_status take_pair(pass *p, uint64_t index, double value, wf_err *err)
{
    wf_survey *s = p->survey;

    if (s->columns)
        return take_number(s, 1 + (p->each ? (uint32_t)index - !p->has_zero : 0), value, err);
    p->end = WF_MAX(p->end, index + 1);
    p->has_zero |= index == 0;
    return WF_OK;
}

static wf_status take_record(void *arg, const char *text, size_t n, wf_err *err)
{
    pass *p = arg;
    wf_libsvm_record r;
    uint64_t index = 0;
    double value;
    uint64_t pairs = 0;
    bool any = true;

    WF_TRY(wf_libsvm_begin(&r, text, n, true, &value, err));
    if (p->survey->columns)
        WF_TRY(take_number(p->survey, 0, value, err));
    for (; any; pairs += any) {
        WF_TRY(wf_libsvm_next(&r, &any, &index, &value, err));
        if (any)
            WF_TRY(take_pair(p, index, value, err));
    }
    p->least_pairs = WF_MIN(p->least_pairs, pairs);
    p->most_pairs = WF_MAX(p->most_pairs, pairs);
    p->pairs += p->survey->columns == NULL ? pairs : 0;
    return WF_OK;
}

static wf_status name_columns(pass *p, uint64_t features, wf_err *err)
{
    wf_survey *s = p->survey;

    p->each = features <= WF_SURVEY_EACH;
    WF_TRY(wf_survey_columns(s, 1 + (p->each ? (uint32_t)features : 1), err));
    s->columns[0].name = "label";
    s->columns[s->n_columns - 1].name = "features";
    for (uint32_t i = 1; p->each && i < s->n_columns; i++) {
        s->columns[i].name = wf_arena_printf(s->arena, "%u", i - p->has_zero);
        if (!s->columns[i].name)
            return wf_fail_nomem(err, 16);
    }
    return WF_OK;
}

wf_status wf_libsvm_survey(const char *path, wf_survey *out, wf_libsvm_facts *facts, wf_err *err)
{
    pass p = {.survey = out, .least_pairs = UINT64_MAX};
    uint64_t *features = &facts->features;
    wf_stock stock = {0};
    wf_status rc;

    *out = (wf_survey){.arena = wf_arena_new(0)};
    if (!out->arena)
        return wf_fail_nomem(err, sizeof *out);
    rc = wf_stock_take(&stock, &path, 1, &wf_format_libsvm.text->form, err);
    if (rc == WF_OK)
        rc = wf_stock_each(&stock, take_record, &p, err);
    out->records = stock.records;
    *facts = (wf_libsvm_facts){.zero_based = p.has_zero,
                               .least_pairs = p.least_pairs,
                               .most_pairs = p.most_pairs,
                               .pairs = p.pairs};
    *features = p.end - (p.end && !p.has_zero);
    if (rc == WF_OK)
        rc = name_columns(&p, *features, err);
    if (rc == WF_OK)
        rc = wf_stock_each(&stock, take_record, &p, err);
    for (uint32_t i = 1; rc == WF_OK && i < out->n_columns; i++)
        out->columns[i].empty = out->records * (p.each ? 1 : *features) - out->columns[i].numbers;
    wf_stock_close(&stock);
    return rc;
}
