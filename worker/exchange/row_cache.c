/* SPDX-License-Identifier: Apache-2.0 */
/* worker/exchange/row_cache.c */
#include "worker/exchange/row_cache.h"
#include "common/base/row_key.h"
#include "common/base/size.h"

#include <stdlib.h>
#include <string.h>

/* The places of a set. */
typedef struct way_set {
    uint64_t ids[WF_ROW_WAYS];
    uint32_t steps[WF_ROW_WAYS]; /* that the rows were pulled for; 0: the place is free */
    uint8_t used[WF_ROW_WAYS];   /* how often since it came, halved when another came */
} way_set;

struct wf_row_cache {
    uint64_t row;
    uint32_t staleness;
    uint64_t n_sets; /* a power of two */
    way_set *sets;   /* [n_sets] */
    float *values;   /* [n_sets][WF_ROW_WAYS][row] */
};

wf_status wf_row_cache_new(uint64_t rows, uint64_t row, uint32_t staleness, wf_row_cache **out,
                           wf_err *err)
{
    wf_row_cache *c = calloc(1, sizeof *c);
    size_t bytes = 0, bytes_of_row = 0;

    *out = c;
    if (!c)
        return wf_fail_nomem(err, sizeof *c);
    c->row = row;
    c->staleness = staleness;
    c->n_sets = 1;
    while (c->n_sets * WF_ROW_WAYS < rows && c->n_sets < UINT64_C(1) << 40)
        c->n_sets *= 2;
    if (!wf_mul_size(row, WF_ROW_WAYS * sizeof(float), &bytes_of_row) ||
        !wf_mul_size(c->n_sets, WF_MAX(bytes_of_row, sizeof *c->sets), &bytes)) {
        wf_row_cache_free(out);
        return wf_fail(err, WF_INVALID, "lower cache_rows", "a cache of rows is too large");
    }
    c->sets = calloc(c->n_sets, sizeof *c->sets);
    c->values = malloc(c->n_sets * bytes_of_row + 1);
    if (c->sets && c->values)
        return WF_OK;
    wf_row_cache_free(out);
    return wf_fail_nomem(err, bytes);
}

void wf_row_cache_free(wf_row_cache **c)
{
    if (!*c)
        return;
    free((*c)->sets);
    free((*c)->values);
    free(*c);
    *c = NULL;
}

static uint64_t set_of(const wf_row_cache *c, uint64_t id)
{
    return wf_row_key((int64_t)id) & (c->n_sets - 1);
}

static int way_of(const way_set *s, uint64_t id)
{
    for (int i = 0; i < WF_ROW_WAYS; i++)
        if (s->ids[i] == id && s->steps[i] > 0)
            return i;
    return -1;
}

static float *values_of(const wf_row_cache *c, uint64_t set, int way)
{
    return c->values + (set * WF_ROW_WAYS + (uint64_t)way) * c->row;
}

static bool is_fresh(const wf_row_cache *c, uint32_t pulled, uint32_t step)
{
    return pulled > 0 && step - pulled <= c->staleness;
}

const float *wf_row_cache_find(const wf_row_cache *c, uint64_t id, uint32_t step)
{
    uint64_t at = set_of(c, id);
    int way = way_of(&c->sets[at], id);

    return way >= 0 && is_fresh(c, c->sets[at].steps[way], step) ? values_of(c, at, way) : NULL;
}

void wf_row_cache_use(wf_row_cache *c, uint64_t id)
{
    way_set *s = &c->sets[set_of(c, id)];
    int way = way_of(s, id);

    if (way >= 0 && s->used[way] < UINT8_MAX)
        s->used[way]++;
}

/* A place for one more row. */
static int give_up(const wf_row_cache *c, way_set *s, uint32_t step)
{
    int least = 0;

    for (int i = 0; i < WF_ROW_WAYS; i++)
        if (!is_fresh(c, s->steps[i], step))
            return i;
    for (int i = 1; i < WF_ROW_WAYS; i++)
        if (s->used[i] < s->used[least])
            least = i;
    for (int i = 0; i < WF_ROW_WAYS; i++)
        s->used[i] /= 2;
    return least;
}

void wf_row_cache_put(wf_row_cache *c, uint64_t id, uint32_t step, const float values[])
{
    uint64_t at = set_of(c, id);
    way_set *s = &c->sets[at];
    int way = way_of(s, id);

    wf_assert(step > 0);
    if (way < 0) {
        way = give_up(c, s, step);
        s->ids[way] = id;
        s->used[way] = 0;
    }
    s->steps[way] = step;
    memcpy(values_of(c, at, way), values, c->row * sizeof *values);
}

void wf_row_cache_clear(wf_row_cache *c)
{
    memset(c->sets, 0, c->n_sets * sizeof *c->sets);
}
