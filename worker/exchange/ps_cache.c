/* SPDX-License-Identifier: Apache-2.0 */
/* worker/exchange/ps_cache.c - rows of tables that a worker has cached are not asked for.
 *
 * Weights of a step then hold this worker's own pushes to such a row up to the moment when it was
 * pulled, which is `cache_staleness` steps ago at most (K1 holds for all other rows).
 *
 * What a cache has must not depend on which answer comes first, nor on whether a step was asked for
 * ahead. So the rows of a set go into the cache when the set is named rows for another step, and
 * only if its own step was computed; and a look-up changes nothing. A barrier empties the caches:
 * what follows a checkpoint is what a recovery from it would compute. An evaluation uses none. */
#include "worker/exchange/ps_state.h"

#include <stdlib.h>
#include <string.h>

wf_status wf_missing_init(const wf_client *c, weight_set *s, wf_err *err)
{
    s->missing = calloc(c->n_variables + 1, sizeof *s->missing);
    s->missing_of = calloc(c->n_slices + 1, sizeof *s->missing_of);
    return s->missing && s->missing_of ? WF_OK
                                       : wf_fail_nomem(err, c->n_slices * sizeof *s->missing_of);
}

void wf_missing_free(const wf_client *c, weight_set *s)
{
    for (uint32_t v = 0; s->missing && v < c->n_variables; v++)
        free(s->missing[v].places);
    free(s->missing);
    free(s->missing_of);
}

bool wf_rows_cached(const wf_client *c, const weight_set *s, uint32_t variable)
{
    return c->variables[variable].cache && s != &c->sets[WF_EVAL_SET];
}

uint64_t wf_rows_asked(const wf_client *c, const weight_set *s, uint32_t i)
{
    return wf_rows_cached(c, s, c->slices[i].variable) ? s->missing_of[i].n : s->rows.of_slice[i].n;
}

static wf_status reserve(wf_client_missing *m, uint64_t n, wf_err *err)
{
    uint64_t *places;

    if (m->room >= n)
        return WF_OK;
    places = realloc(m->places, n * sizeof *places);
    if (!places)
        return wf_fail_nomem(err, n * sizeof *places);
    m->places = places;
    m->room = n;
    return WF_OK;
}

/* Of one slice: what is cached goes into the set, the rest is missing. */
static void look_up_slice(wf_client *c, weight_set *s, uint32_t i, float values[])
{
    uint32_t variable = c->slices[i].variable;
    const wf_client_variable *v = &c->variables[variable];
    const struct wf_client_range *r = &s->rows.of_slice[i];
    wf_client_missing *m = &s->missing[variable];
    const uint64_t *ids = r->n ? s->rows.ids[variable]->data : NULL;
    uint64_t first = m->n;

    for (uint64_t at = r->first; at < r->first + r->n; at++) {
        const float *row = wf_row_cache_find(v->cache, ids[at], s->step);

        if (row)
            memcpy(values + at * v->row, row, v->row * sizeof *row);
        else
            m->places[m->n++] = at;
    }
    s->missing_of[i] = (struct wf_client_range){first, m->n - first};
}

static void empty_at_barrier(wf_client *c)
{
    if (c->cached_from == c->base.base)
        return;
    c->cached_from = c->base.base;
    for (uint32_t v = 0; v < c->n_variables; v++)
        if (c->variables[v].cache)
            wf_row_cache_clear(c->variables[v].cache);
}

void wf_rows_keep(wf_client *c, weight_set *s, uint32_t variable)
{
    const wf_client_variable *v = &c->variables[variable];
    wf_client_missing *m = &s->missing[variable];
    const uint64_t *ids;

    if (!wf_rows_cached(c, s, variable) || m->kept == s->step)
        return;
    empty_at_barrier(c);
    if (s->step <= c->base.base || s->step > c->base.begun)
        return;
    m->kept = s->step;
    if (s->rows.n[variable] == 0)
        return;
    ids = s->rows.ids[variable]->data;
    for (uint64_t at = 0, k = 0; at < s->rows.n[variable]; at++)
        if (k < m->n && m->places[k] == at) {
            wf_row_cache_put(v->cache, ids[at], s->step, s->values[variable].at + at * v->row);
            k++;
        } else {
            wf_row_cache_use(v->cache, ids[at]);
        }
}

wf_status wf_rows_look_up(wf_client *c, weight_set *s, wf_err *err)
{
    empty_at_barrier(c);
    for (uint32_t v = 0; v < c->n_variables; v++) {
        float *values;

        if (!wf_rows_cached(c, s, v))
            continue;
        WF_TRY(wf_values_own(c, s, v, &values, err));
        WF_TRY(reserve(&s->missing[v], s->rows.n[v], err));
        s->missing[v].n = 0;
        for (uint32_t i = c->first_slice[v]; i < c->first_slice[v + 1]; i++)
            look_up_slice(c, s, i, values);
        c->base.rows_named += s->rows.n[v];
        c->base.rows_cached += s->rows.n[v] - s->missing[v].n;
    }
    return WF_OK;
}

void wf_rows_take(const wf_client *c, const weight_set *s, uint32_t i, const wf_coded *from,
                  float values[])
{
    uint32_t variable = c->slices[i].variable;
    uint64_t row = c->variables[variable].row;

    for (uint64_t k = 0; k < s->missing_of[i].n; k++) {
        uint64_t at = s->missing[variable].places[s->missing_of[i].first + k];

        wf_coded_read(from, k * row, row, values + at * row);
    }
}
