/* SPDX-License-Identifier: Apache-2.0 */
/* master/placement/shown.c - the picture of the placement that the command line gets. */
#include "master/placement/state.h"

#include <stdlib.h>
#include <string.h>

enum { SHOWN = 8 /* slices of a ps, the busiest */ };

static void put(json_t *o, const char *key, json_t *value)
{
    json_object_set_new(o, key, value);
}

/* The place of each slice in its variable: [n_slices]. */
static uint32_t *count_places(const Weft__Setup *s)
{
    uint32_t *at = calloc(s->n_slices + 1, sizeof *at);

    for (size_t i = 1; at && i < s->n_slices; i++)
        if (s->slices[i]->variable == s->slices[i - 1]->variable)
            at[i] = at[i - 1] + 1;
    return at;
}

static json_t *slice_json(const Weft__Setup *s, const wf_balance_slice *b, const uint32_t at[])
{
    const Weft__Slice *slice = s->slices[b->slice];
    json_t *o = json_object();

    put(o, "slice", json_integer(b->slice));
    put(o, "variable", json_string(s->variables[slice->variable]->name));
    put(o, "at", json_integer(at[b->slice]));
    put(o, "held_bytes", json_integer((json_int_t)b->held_bytes));
    put(o, "bytes_per_sec", json_real(b->load));
    put(o, "pinned", json_boolean(slice->pinned));
    return o;
}

static json_t *ps_json(const wf_master *m, const Weft__Setup *s, uint32_t index, double mean,
                       double over, const uint32_t at[])
{
    const wf_placement_ps *ps = &m->placement->ps[index];
    double load = ps->pulled + ps->pushed;
    json_t *o = json_object(), *busiest = json_array();
    uint32_t n = 0;

    for (uint32_t i = 0; i < m->placement->n_slices; i++)
        n += m->placement->slices[i].ps == index;
    put(o, "task", json_sprintf("ps/%u", index));
    put(o, "slices", json_integer(n));
    put(o, "held_bytes", json_integer((json_int_t)ps->held_bytes));
    put(o, "told_s",
        ps->told_ns ? json_real((double)(m->now_ns - ps->told_ns) / 1e9) : json_null());
    put(o, "bytes_per_sec", json_real(load));
    put(o, "pulled_per_sec", json_real(ps->pulled));
    put(o, "pushed_per_sec", json_real(ps->pushed));
    put(o, "parts_per_sec", json_real(ps->parts));
    put(o, "applying", json_real(ps->applying));
    put(o, "of_mean", json_real(mean > 0 ? load / mean : 0));
    put(o, "hot", json_boolean(mean > 0 && load > over * mean));
    for (uint32_t i = 0; i < ps->n && i < SHOWN; i++)
        json_array_append_new(busiest, slice_json(s, &ps->busiest[i], at));
    put(o, "busiest", busiest);
    return o;
}

/* One variable, whose slices [first, end) are, and how many of them each ps has. */
static json_t *variable_json(const wf_placement *p, const Weft__Setup *s, uint32_t first,
                             uint32_t end, uint32_t counts[])
{
    json_t *o = json_object(), *on = json_object();
    char name[32];

    memset(counts, 0, p->n_ps * sizeof *counts);
    for (uint32_t i = first; i < end; i++)
        if (p->slices[i].ps < p->n_ps)
            counts[p->slices[i].ps]++;
    if (p->slices[first].ps >= p->n_ps)
        put(on, "workers", json_integer(end - first));
    for (uint32_t i = 0; i < p->n_ps; i++) {
        if (!counts[i])
            continue;
        snprintf(name, sizeof name, "ps/%u", i);
        put(on, name, json_integer(counts[i]));
    }
    put(o, "name", json_string(s->variables[s->slices[first]->variable]->name));
    put(o, "slices", json_integer(end - first));
    put(o, "pinned", json_boolean(s->slices[first]->pinned));
    put(o, "on", on);
    return o;
}

static json_t *variables_json(const wf_placement *p, const Weft__Setup *s)
{
    uint32_t *counts = calloc((size_t)p->n_ps + 1, sizeof *counts), first = 0;
    json_t *list = json_array();

    for (uint32_t i = 1; counts && i <= p->n_slices; i++) {
        if (i < p->n_slices && s->slices[i]->variable == s->slices[first]->variable)
            continue;
        json_array_append_new(list, variable_json(p, s, first, i, counts));
        first = i;
    }
    free(counts);
    return list;
}

static json_t *move_json(const wf_master *m)
{
    const wf_placement *p = m->placement;
    json_t *o;

    if (p->state != WF_BALANCE_MOVING)
        return json_null();
    o = json_object();
    put(o, "slice", json_integer(p->move.slice));
    put(o, "from", json_sprintf("ps/%u", p->move.from));
    put(o, "to", json_sprintf("ps/%u", p->move.to));
    put(o, "since_s", json_real((double)(m->now_ns - p->move.since_ns) / 1e9));
    return o;
}

/* Of bytes per second; 0 until each ps has told of its own: a mean without one of them would call
 * the others hot. */
static double mean_traffic(const wf_placement *p)
{
    double sum = 0;

    for (uint32_t i = 0; i < p->n_ps; i++) {
        if (!p->ps[i].told_ns)
            return 0;
        sum += p->ps[i].pulled + p->ps[i].pushed;
    }
    return p->n_ps ? sum / p->n_ps : 0;
}

json_t *wf_placement_json(const wf_master *m, const wf_job *j)
{
    const wf_placement *p = m->placement;
    const Weft__Setup *s = &j->prepared->setup;
    uint32_t *at = count_places(s);
    json_t *o = json_object(), *list = json_array();
    double mean = mean_traffic(p);

    if (!at)
        return NULL;
    for (uint32_t i = 0; i < p->n_ps; i++)
        json_array_append_new(list, ps_json(m, s, i, mean, j->prepared->balance_over, at));
    free(at);
    put(o, "job", json_string(j->name));
    put(o, "generation", json_integer(j->generation));
    put(o, "balance", json_boolean(j->prepared->balances));
    put(o, "over", json_real(j->prepared->balance_over));
    put(o, "state", json_string(wf_balance_states.names[p->state]));
    put(o, "map", json_integer(p->version));
    put(o, "moves", json_integer(p->n_moved));
    put(o, "refused", json_integer(p->n_refused));
    put(o, "moved_bytes", json_integer((json_int_t)p->moved_bytes));
    put(o, "frozen_most_ms", json_real((double)p->frozen_most_ns / 1e6));
    put(o, "moving", move_json(m));
    put(o, "ps", list);
    put(o, "variables", variables_json(p, s));
    return o;
}
