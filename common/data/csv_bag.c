/* SPDX-License-Identifier: Apache-2.0 */
/* common/data/csv_bag.c */
#include "common/data/csv_bag.h"

#include <string.h>

/* The value of a bag that begins at text[*at] of its cell. */
static wf_csv_cell next_value(const wf_csv_cell *cell, char separator, size_t *at)
{
    const char *begin = cell->text + *at, *end = memchr(begin, separator, cell->n - *at);
    wf_csv_cell value = {.text = begin, .quoted = cell->quoted};

    value.n = end ? (size_t)(end - begin) : cell->n - *at;
    *at += value.n + 1;
    while (value.n && wf_csv_is_blank(value.text[0])) {
        value.text++;
        value.n--;
    }
    while (value.n && wf_csv_is_blank(value.text[value.n - 1]))
        value.n--;
    return value;
}

uint64_t wf_csv_bag_count(const wf_csv_cell *cell, char separator)
{
    uint64_t n = 0;

    for (size_t at = 0; cell->n && at <= cell->n; n++)
        next_value(cell, separator, &at);
    return n;
}

/* A value as element n of a bag; ids are held against what stands for none. */
static wf_status put_value(const wf_csv_values *v, const wf_csv_column *c, const wf_csv_cell *value,
                           void *out, uint64_t n, wf_err *err)
{
    int64_t *id = v->dtype == WF_I64 ? (int64_t *)out + n : NULL;

    WF_TRY(wf_csv_value(v, c, value, out, (size_t)n, err));
    if (id && v->hashes && *id == WF_BAG_NO_WORD)
        ++*id; /* one word of 2^64 shares its number with another */
    if (!id || v->hashes)
        return WF_OK;
    return wf_err_wrap(err, wf_bag_check_id(*id, err), "column \"%.64s\"", c->name);
}

wf_status wf_csv_bag_put(const wf_csv_values *v, const wf_csv_column *c, const wf_bag *b,
                         const wf_csv_cell *cell, char separator, void *out, wf_err *err)
{
    uint64_t n = 0;
    bool ends = false;

    for (size_t at = 0; cell->n && at <= cell->n; n++) {
        wf_csv_cell value = next_value(cell, separator, &at);

        if (n == b->most)
            WF_TRY(wf_err_wrap(err, wf_bag_is_full(b, &ends, err), "column \"%.64s\"", c->name));
        if (ends)
            break;
        WF_TRY(put_value(v, c, &value, out, n, err));
    }
    wf_bag_fill(b, out, n);
    return WF_OK;
}
