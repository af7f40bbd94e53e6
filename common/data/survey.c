/* SPDX-License-Identifier: Apache-2.0 */
/* common/data/survey.c - columns of any data set. */
#include "common/data/survey.h"
#include "common/base/size.h"
#include "common/data/vocabulary.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <xxhash.h>

/* Values that are counted exactly, of all columns, and numbers that are read at a time. */
enum { EXACT = 1 << 20, CHUNK = 1 << 16 };

wf_status wf_survey_columns(wf_survey *s, uint32_t n, wf_err *err)
{
    s->columns = wf_arena_array(s->arena, n, sizeof *s->columns);
    if (!s->columns)
        return wf_fail_nomem(err, n * sizeof *s->columns);
    s->n_columns = n;
    s->exact = WF_MIN((size_t)EXACT / WF_MAX(n, 1u), (size_t)WF_SURVEY_EXACT);
    return WF_OK;
}

wf_status wf_survey_number(const wf_survey *s, wf_survey_column *c, double number, wf_err *err)
{
    double gap = number - c->mean, zero = 0;

    if (isnan(number)) {
        c->empty++;
        return WF_OK;
    }
    c->least = c->numbers ? WF_MIN(c->least, number) : number;
    c->most = c->numbers ? WF_MAX(c->most, number) : number;
    c->numbers++;
    c->mean += gap / (double)c->numbers;
    c->squares += gap * (number - c->mean);
    /* 0 and -0 are one value */
    return wf_distinct_add(&c->values, XXH3_64bits(number == 0 ? &zero : &number, sizeof number),
                           s->exact, err);
}

/* ---- data sets ---- */

static size_t elems_of(const wf_dataset *d, uint32_t field)
{
    return wf_dataset_field(d, field)->record_bytes / sizeof(double);
}

static uint32_t columns_of(const wf_dataset *d, uint32_t field)
{
    size_t elems = elems_of(d, field);
    const wf_field_info *info = wf_dataset_field(d, field);

    return info->rank == 1 && !info->is_bag && elems <= WF_SURVEY_EACH ? (uint32_t)elems : 1;
}

static wf_status name_columns(wf_survey *s, const wf_dataset *d, uint32_t field, uint32_t first,
                              wf_err *err)
{
    const char *name = wf_dataset_field(d, field)->name;
    uint32_t n = columns_of(d, field);

    for (uint32_t i = 0; i < n; i++) {
        char **to = (char **)&s->columns[first + i].name;

        *to = n > 1 ? wf_arena_printf(s->arena, "%s[%" PRIu32 "]", name, i)
                    : wf_arena_strdup(s->arena, name);
        if (!*to)
            return wf_fail_nomem(err, 16);
    }
    return WF_OK;
}

static wf_status survey_field(wf_survey *s, const wf_dataset *d, uint32_t field, uint32_t first,
                              wf_err *err)
{
    size_t elems = elems_of(d, field), each = WF_MAX((size_t)CHUNK / elems, (size_t)1);
    uint64_t *at = malloc(each * sizeof *at);
    double *x = malloc(each * elems * sizeof *x);
    uint32_t n = columns_of(d, field);
    const wf_field_info *info = wf_dataset_field(d, field);
    wf_status rc = at && x ? WF_OK : wf_fail_nomem(err, each * elems * sizeof *x);

    for (uint64_t from = 0; rc == WF_OK && from < s->records; from += each) {
        size_t now = (size_t)WF_MIN(s->records - from, (uint64_t)each);

        for (size_t i = 0; i < now; i++)
            at[i] = from + i;
        rc = wf_dataset_gather(d, field, at, now, x, err);
        for (size_t i = 0; rc == WF_OK && i < now * elems; i++) {
            if (info->is_bag && info->raw_dtype == WF_I64 && x[i] < 0)
                x[i] = NAN; /* no id */
            s->columns[first + i % n].wholes += x[i] == trunc(x[i]);
            rc = wf_survey_number(s, &s->columns[first + i % n], x[i], err);
        }
    }
    free(at);
    free(x);
    return rc;
}

wf_status wf_dataset_survey(const wf_dataset *d, wf_survey *out, wf_err *err)
{
    uint32_t n = 0;

    *out = (wf_survey){.arena = wf_arena_new(0), .records = wf_dataset_records(d)};
    if (!out->arena)
        return wf_fail_nomem(err, sizeof *out);
    for (uint32_t f = 0; f < wf_dataset_n_fields(d); f++)
        n += columns_of(d, f);
    WF_TRY(wf_survey_columns(out, n, err));
    for (uint32_t f = 0, first = 0; f < wf_dataset_n_fields(d); first += columns_of(d, f++)) {
        WF_TRY(name_columns(out, d, f, first, err));
        WF_TRY(survey_field(out, d, f, first, err));
    }
    return WF_OK;
}

void wf_survey_close(wf_survey *s)
{
    for (uint32_t i = 0; s->columns && i < s->n_columns; i++) {
        wf_vocabulary_free(&s->columns[i].seen);
        wf_distinct_close(&s->columns[i].values);
    }
    wf_arena_free(&s->arena);
    *s = (wf_survey){0};
}
