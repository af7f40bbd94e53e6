/* SPDX-License-Identifier: Apache-2.0 */
/* common/compile/place.c - cuts variables into slices and gives each slice a ps.
 *
 * Slices go largest first to the ps that holds the fewest bytes so far (longest processing time
 * first; Graham 1969: the fullest bin is at most 4/3 of the best). What decides the balance is the
 * size of a slice against a ps's share, so the slice size starts at half a share, or the job's
 * bound if that is less, and is halved until the fullest ps holds at most 1.1 times the emptiest,
 * or slices would fall below 16 KiB. That gives each ps two to a few slices of a large variable,
 * and not thousands: 784-128-10 on two ps has 7 slices.
 *
 * Slices are cut at row boundaries while a row fits in one, so that what reads a slice reads whole
 * rows. Where the optimizer takes norms over variables, or workers hold them, each is one slice;
 * what workers hold while tables lie on ps has the number behind that of the last ps.
 * The result depends on the variables' order, names left out, and the cluster's size only.
 *
 * Tables and frozen variables are placed by themselves, behind the others: few of their bytes cross
 * the links in a step, or none, so these must not decide where those lie that cross them in each.
 * Where slices are to move later there are eight on each ps to begin with, and eight of each table,
 * as long as they do not fall below 16 KiB: with two of them a move would only turn the scale
 * round. What a job pins to a ps is given first, and counts there when the others are dealt. A
 * table is cut into about 64 slices of whole rows, so that ids find their slice in a short list;
 * they are dealt in turn, for ids that are often named are often neighbours.
 */
#include "common/base/size.h"
#include "common/compile/pass.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum {
    MOST_SLICES = 1 << 20,
    TABLE_SLICES = 64,
    TO_CHOOSE_FROM = 8 /* slices of a ps, and of a table on a ps, where they are to move */
};
static const size_t MOVED = 1 << 20; /* bytes of a slice that is to move: workers wait meanwhile */
static const size_t MOST_WHOLE = 1 << 30; /* bytes of a variable that stays in one piece */
static const double balanced = 1.1;       /* max / min bytes per ps that is good enough */

/* Elements of one slice of v when slices should hold about `target` bytes: an even cut, rounded
 * to whole rows. */
static int64_t slice_elems(const wf_compiled_variable *v, size_t target)
{
    size_t n = (v->bytes + target - 1) / target;
    int64_t row = v->rank > 1 && v->dims[0] > 0 ? v->elems / v->dims[0] : 1;
    int64_t each;

    if (n <= 1)
        return v->elems;
    each = (v->elems + (int64_t)n - 1) / (int64_t)n;
    if ((size_t)row * wf_dtype_size(v->dtype) <= target) {
        int64_t rows = (each + row - 1) / row;

        /* Rounding up may pass the target by a part of a row: then one slice more. */
        if ((size_t)(rows * row) * wf_dtype_size(v->dtype) > target)
            rows--;
        each = rows * row;
    }
    return each;
}

/* What is placed together, in the order of the slices. */
typedef enum group { NOWHERE, DENSE, TABLES, FROZEN, GROUPS } group;

static group group_of(const wf_compiled_variable *v)
{
    if (!v->on_ps || !v->elems)
        return NOWHERE;
    return v->is_table ? TABLES : v->kind == WF_VAR_FROZEN ? FROZEN : DENSE;
}

/* The number of slices at this target; MOST_SLICES + 1 when there are too many. */
static size_t count_slices(const wf_compiled *c, group which, size_t target)
{
    size_t n = 0;

    for (size_t i = 0; i < c->n_variables; i++) {
        const wf_compiled_variable *v = &c->variables[i];

        if (group_of(v) != which)
            continue;
        n += (size_t)((v->elems - 1) / slice_elems(v, target)) + 1;
        if (n > MOST_SLICES)
            return (size_t)MOST_SLICES + 1;
    }
    return n;
}

static void cut(const wf_compiled *c, group which, size_t target, wf_compiled_slice slices[])
{
    size_t n = 0;

    for (size_t i = 0; i < c->n_variables; i++) {
        const wf_compiled_variable *v = &c->variables[i];

        if (group_of(v) != which)
            continue;
        for (int64_t at = 0, each = slice_elems(v, target); at < v->elems; at += each)
            slices[n++] = (wf_compiled_slice){
                .variable = (uint32_t)i, .offset = at, .count = WF_MIN(each, v->elems - at)};
    }
}

typedef struct weight {
    size_t bytes;
    uint32_t slice;
} weight;

/* Largest first; equal ones in the order of slices, so that the order is the same everywhere. */
static int by_bytes(const void *a, const void *b)
{
    const weight *x = a, *y = b;

    if (x->bytes != y->bytes)
        return x->bytes < y->bytes ? 1 : -1;
    return x->slice < y->slice ? -1 : x->slice > y->slice;
}

static uint32_t least_of(const size_t load[], uint32_t n_ps)
{
    uint32_t best = 0;

    for (uint32_t p = 1; p < n_ps; p++)
        if (load[p] < load[best])
            best = p;
    return best;
}

/* Gives each slice the ps that holds least, or that it is pinned to; returns max / min bytes, or
 * infinity when a ps has none. */
static double pack(const wf_compiled *c, wf_compiled_slice slices[], size_t n, weight order[],
                   size_t load[], uint32_t n_ps)
{
    size_t most = 0, least = SIZE_MAX;

    for (size_t i = 0; i < n; i++)
        order[i] = (weight){.bytes = (size_t)slices[i].count *
                                     wf_dtype_size(c->variables[slices[i].variable].dtype),
                            .slice = (uint32_t)i};
    qsort(order, n, sizeof(*order), by_bytes);
    for (uint32_t p = 0; p < n_ps; p++)
        load[p] = 0;
    for (int pinned = 1; pinned >= 0; pinned--)
        for (size_t i = 0; i < n; i++) {
            wf_compiled_slice *s = &slices[order[i].slice];
            const wf_compiled_variable *v = &c->variables[s->variable];

            if (v->pinned != pinned)
                continue;
            s->ps = pinned ? v->pinned_to : least_of(load, n_ps);
            load[s->ps] += order[i].bytes;
        }
    for (uint32_t p = 0; p < n_ps; p++) {
        most = WF_MAX(most, load[p]);
        least = WF_MIN(least, load[p]);
    }
    return least ? (double)most / (double)least : HUGE_VAL;
}

static size_t total_bytes(const wf_compiled *c, group which)
{
    size_t total = 0;

    for (size_t i = 0; i < c->n_variables; i++)
        if (group_of(&c->variables[i]) == which)
            total += c->variables[i].bytes;
    return total;
}

/* Among how many ps slices are dealt; those of a worker's variables are on none. */
static uint32_t places_of(const wf_unit *u)
{
    return wf_strategy_has_tables(u->spec->strategy) ? u->spec->n_ps : 1;
}

/* What workers hold beside tables on the ps. */
static void keep_on_workers(const wf_unit *u, wf_compiled_slice slices[], size_t n)
{
    for (size_t i = 0; i < n && u->spec->strategy->tables_on_ps; i++) {
        slices[i].ps = u->spec->n_ps;
        u->c->variables[slices[i].variable].on_workers = true;
    }
}

/* Where the search for a slice size begins: half a ps's share, or the job's bound. */
static size_t first_target(const wf_unit *u, group which, size_t limit)
{
    size_t share = total_bytes(u->c, which) / places_of(u);

    if (u->spec->strategy->on_worker)
        return limit;
    share /= u->spec->balances ? TO_CHOOSE_FROM : 2;
    return WF_MIN(limit, WF_MAX(share, (size_t)WF_SLICE_BYTES_LEAST));
}

static wf_status too_many(size_t target, wf_err *err)
{
    return wf_fail(err, WF_INVALID, "raise slice_bytes",
                   "slices of %zu bytes cut the variables into more than %d pieces", target,
                   MOST_SLICES);
}

/* Cuts and packs at smaller and smaller targets; keeps the best balance, and among equal ones the
 * fewest slices. */
static wf_status place_all(wf_unit *u, size_t limit, weight **order, size_t *load, wf_err *err)
{
    wf_compiled *c = u->c;
    size_t target = first_target(u, DENSE, limit);
    bool whole = u->spec->whole_variables || u->spec->strategy->on_worker;
    double best = HUGE_VAL;

    if (whole)
        target = u->spec->strategy->on_worker ? limit : MOST_WHOLE;
    for (; c->slices == NULL || (!whole && best > balanced && target >= WF_SLICE_BYTES_LEAST);
         target /= 2) {
        size_t n = count_slices(c, DENSE, target);
        wf_compiled_slice *slices;
        double ratio;

        if (n > MOST_SLICES) {
            if (c->slices)
                break;
            return too_many(target, err);
        }
        slices = wf_arena_array(u->arena, n, sizeof(*slices));
        free(*order);
        *order = calloc(n ? n : 1, sizeof(**order));
        if (!slices || !*order)
            return wf_fail_nomem(err, n * sizeof(*slices));
        cut(c, DENSE, target, slices);
        ratio = pack(c, slices, n, *order, load, places_of(u));
        if (!c->slices || ratio < best) {
            c->slices = slices;
            c->n_slices = n;
            best = ratio;
        }
    }
    keep_on_workers(u, c->slices, c->n_slices);
    return WF_OK;
}

/* The slices so far in a list that has room for n more, which are counted already. */
static wf_status make_room(wf_unit *u, size_t n, size_t target, wf_compiled_slice **added,
                           wf_err *err)
{
    wf_compiled *c = u->c;
    wf_compiled_slice *slices;

    if (n + c->n_slices > MOST_SLICES)
        return too_many(target, err);
    slices = wf_arena_array(u->arena, c->n_slices + n, sizeof(*slices));
    if (!slices)
        return wf_fail_nomem(err, (c->n_slices + n) * sizeof(*slices));
    if (c->n_slices)
        memcpy(slices, c->slices, c->n_slices * sizeof(*slices));
    *added = slices + c->n_slices;
    c->slices = slices;
    c->n_slices += n;
    return WF_OK;
}

static wf_status place_frozen(wf_unit *u, size_t limit, size_t *load, wf_err *err)
{
    size_t target = first_target(u, FROZEN, limit), n = count_slices(u->c, FROZEN, target);
    wf_compiled_slice *slices;
    weight *order;

    if (!n)
        return WF_OK;
    WF_TRY(make_room(u, n, target, &slices, err));
    order = calloc(n, sizeof(*order));
    if (!order)
        return wf_fail_nomem(err, n * sizeof(*order));
    cut(u->c, FROZEN, target, slices);
    pack(u->c, slices, n, order, load, places_of(u));
    keep_on_workers(u, slices, n);
    free(order);
    return WF_OK;
}

/* Rows of a table's slice: TABLE_SLICES of them, or fewer that hold limit bytes; and never fewer
 * than there are ps. */
static int64_t table_rows(const wf_unit *u, const wf_compiled_variable *v, size_t limit)
{
    int64_t rows = v->dims[0];
    size_t row = v->bytes / (size_t)rows;
    int64_t each = (int64_t)(limit / row);

    if (v->is_unbounded) /* a bucket each, whatever the cluster: checkpoints have them */
        return 1;
    each = WF_MAX(each, (rows + TABLE_SLICES - 1) / TABLE_SLICES);
    if (u->spec->balances)
        each = WF_MIN(each, WF_MAX(rows / (TO_CHOOSE_FROM * (int64_t)places_of(u)),
                                   (int64_t)((size_t)WF_SLICE_BYTES_LEAST / row)));
    return WF_MAX(WF_MIN(each, rows / (int64_t)places_of(u)), (int64_t)1);
}

static wf_status place_tables(wf_unit *u, size_t limit, wf_err *err)
{
    wf_compiled *c = u->c;
    uint32_t next = 0;

    for (size_t i = 0; i < c->n_variables; i++) {
        const wf_compiled_variable *v = &c->variables[i];
        wf_compiled_slice *slices;
        int64_t row, each;
        size_t n;

        if (group_of(v) != TABLES)
            continue;
        row = v->elems / v->dims[0];
        each = table_rows(u, v, limit);
        n = (size_t)((v->dims[0] + each - 1) / each);
        WF_TRY(make_room(u, n, (size_t)(each * row) * wf_dtype_size(v->dtype), &slices, err));
        for (size_t k = 0; k < n; k++) {
            int64_t at = (int64_t)k * each * row;

            slices[k] = (wf_compiled_slice){.variable = (uint32_t)i,
                                            .offset = at,
                                            .count = WF_MIN(each * row, v->elems - at),
                                            .ps = v->pinned ? v->pinned_to : next};
            if (!v->pinned)
                next = (next + 1) % places_of(u);
        }
    }
    return WF_OK;
}

/* So that slices are in the order of their variables. */
static wf_status sort_variables(wf_unit *u, wf_err *err)
{
    wf_compiled *c = u->c;
    wf_compiled_variable *sorted = wf_arena_array(u->arena, c->n_variables, sizeof(*sorted));
    size_t n = 0;

    if (!sorted)
        return wf_fail_nomem(err, c->n_variables * sizeof(*sorted));
    for (group which = DENSE; which < GROUPS; which++)
        for (size_t i = 0; i < c->n_variables; i++)
            if (WF_MAX(group_of(&c->variables[i]), DENSE) == which)
                sorted[n++] = c->variables[i];
    c->variables = sorted;
    return WF_OK;
}

/* The variables' index into slices, for the cut that was kept. */
static void index_slices(wf_compiled *c)
{
    for (size_t i = 0; i < c->n_variables; i++)
        c->variables[i].first_slice = c->variables[i].n_slices = 0;
    for (size_t i = 0; i < c->n_slices; i++) {
        wf_compiled_variable *v = &c->variables[c->slices[i].variable];

        if (!v->n_slices++)
            v->first_slice = (uint32_t)i;
    }
}

/* A rule with norms over whole variables, like lamb's, wants each in one slice. */
static wf_status check_whole(const wf_compiled *c, wf_err *err)
{
    for (size_t i = 0; i < c->n_variables; i++)
        if (group_of(&c->variables[i]) == DENSE && c->variables[i].bytes > MOST_WHOLE)
            return wf_fail(err, WF_UNSUPPORTED, "take adamw, which may be cut into slices",
                           "variable \"%s\" has %zu bytes; this optimizer takes norms over whole "
                           "variables, which may have %zu",
                           c->variables[i].name, c->variables[i].bytes, MOST_WHOLE);
    return WF_OK;
}

/* Bytes of a slice on a ps. */
static size_t slice_limit(const wf_compile_spec *s)
{
    size_t limit = WF_MAX(s->slice_bytes ? s->slice_bytes : (size_t)WF_SLICE_BYTES, (size_t)64);

    return s->balances ? WF_MIN(limit, MOVED) : limit;
}

wf_status wf_pass_place(wf_unit *u, wf_err *err)
{
    wf_status rc;
    weight *order = NULL;
    size_t *load = NULL;
    size_t limit = slice_limit(u->spec), dense;
    bool trains = u->spec->mode == WF_COMPILE_TRAIN;

    WF_TRY(wf_unit_collect(u, err));
    if (!u->spec->strategy)
        return WF_OK;
    dense = u->spec->strategy->on_worker ? SIZE_MAX / 2 : limit;
    if (trains && u->spec->whole_variables && !u->spec->strategy->on_worker)
        WF_TRY(check_whole(u->c, err));
    if (wf_strategy_has_tables(u->spec->strategy))
        WF_TRY(wf_unit_pin(u, err));
    WF_TRY(sort_variables(u, err));
    load = calloc(places_of(u), sizeof(*load));
    if (!load)
        return wf_fail_nomem(err, places_of(u) * sizeof(*load));
    rc = trains ? place_all(u, dense, &order, load, err) : WF_OK;
    if (rc == WF_OK && trains)
        rc = place_tables(u, limit, err);
    if (rc == WF_OK)
        rc = place_frozen(u, dense, load, err);
    if (rc == WF_OK)
        index_slices(u->c);
    free(order);
    free(load);
    return rc;
}
