/* SPDX-License-Identifier: Apache-2.0 */
/* ps/mean.c */
#include "ps/mean.h"
#include "common/base/bytes.h"
#include "common/base/size.h"

#include <stdlib.h>
#include <string.h>

static float weight(const wf_held_part *p, uint64_t total)
{
    return total ? (float)p->records / (float)total : 1;
}

/* Values [begin, begin + n) of a part. */
static void add(float w, const wf_slice_part *p, uint64_t begin, uint64_t n, float *out)
{
    float room[WF_SLICE_READ];

    for (uint64_t i = 0, now; i < n; i += now) {
        const float *values;

        now = WF_MIN(n - i, (uint64_t)WF_SLICE_READ);
        values = wf_slice_part_values(p, begin + i, now, room);
        for (uint64_t k = 0; k < now; k++)
            out[i + k] += w * values[k];
    }
}

void wf_mean_range(const wf_held_part parts[], uint32_t n, uint64_t total, uint64_t begin,
                   uint64_t end, float out[])
{
    memset(out + begin, 0, (end - begin) * sizeof *out);
    for (uint32_t i = 0; i < n; i++)
        if (wf_slice_part_has_values(&parts[i].part) && parts[i].records)
            add(weight(&parts[i], total), &parts[i].part, begin, end - begin, out + begin);
}

/* ---- rows ---- */

/* The smallest id that a part names next; false: none is left. */
static bool next_id(const wf_held_part parts[], uint32_t n, const uint64_t at[], uint64_t *id)
{
    bool any = false;

    for (uint32_t i = 0; i < n; i++) {
        const wf_rows *rows = &parts[i].part.rows;
        uint64_t here = at[i] < rows->n ? wf_row_id(rows, at[i]) : 0;

        if (at[i] < rows->n && (!any || here < *id)) {
            any = true;
            *id = here;
        }
    }
    return any;
}

static void merge(const wf_held_part parts[], uint32_t n, uint64_t total, uint64_t row,
                  uint64_t at[], uint8_t *ids, wf_slice_part *out)
{
    float *values = (float *)out->values;
    uint64_t id = 0;

    for (; next_id(parts, n, at, &id); out->rows.n++) {
        wf_put_u64(ids + out->rows.n * sizeof id, id);
        for (uint32_t i = 0; i < n; i++) {
            const wf_slice_part *p = &parts[i].part;

            if (at[i] < p->rows.n && wf_row_id(&p->rows, at[i]) == id)
                add(weight(&parts[i], total), p, at[i]++ * row, row, values + out->rows.n * row);
        }
    }
}

wf_status wf_mean_rows(const wf_held_part parts[], uint32_t n, uint64_t total, uint64_t row,
                       wf_slice_part *out, wf_err *err)
{
    uint64_t most = 0, *at = calloc(n + 1, sizeof *at);
    uint8_t *ids;
    float *values;

    for (uint32_t i = 0; i < n; i++)
        most += parts[i].part.rows.n;
    ids = calloc(most + 1, sizeof(uint64_t));
    values = calloc(most * row + 1, sizeof *values);
    if (!at || !ids || !values) {
        free(at);
        free(ids);
        free(values);
        return wf_fail_nomem(err, most * (row + 1) * sizeof *values);
    }
    *out = (wf_slice_part){.values = values, .rows = {0, ids}};
    merge(parts, n, total, row, at, ids, out);
    out->n = out->rows.n * row;
    free(at);
    return WF_OK;
}

void wf_mean_rows_free(wf_slice_part *out)
{
    free((void *)out->rows.ids);
    free((float *)out->values);
    *out = (wf_slice_part){0};
}
