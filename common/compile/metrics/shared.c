/* SPDX-License-Identifier: Apache-2.0 */
/* common/compile/metrics/shared.c - the table of metrics, and what several of them share. */
#include "common/compile/metrics/metrics.h"
#include <math.h>
#include <stdio.h>
#include <string.h>

#define WF_METRIC(name) extern const wf_metric_row wf_metric_##name;
#include "common/compile/metrics.def"
#undef WF_METRIC

#define WF_METRIC(name) &wf_metric_##name,
static const wf_metric_row *const rows[] = {
#include "common/compile/metrics.def"
};
#undef WF_METRIC

const wf_metric_row *wf_metric_find(const char *name)
{
    for (size_t i = 0; i < WF_COUNT(rows); i++) {
        if (wf_same_name(rows[i]->name, name))
            return rows[i];
        for (size_t k = 0; k < WF_COUNT(rows[i]->aliases) && rows[i]->aliases[k]; k++)
            if (wf_same_name(rows[i]->aliases[k], name))
                return rows[i];
    }
    return NULL;
}

const char *wf_metric_name_at(size_t i)
{
    return i < WF_COUNT(rows) ? rows[i]->name : NULL;
}

bool wf_compile_metric_at(size_t i, const char **name, const char **alias, char *options,
                          size_t size)
{
    if (i >= WF_COUNT(rows))
        return false;
    *name = rows[i]->name;
    *alias = rows[i]->aliases[0];
    wf_option_names(rows[i]->options, options, size);
    return true;
}

double wf_metric_ratio(double a, double b)
{
    return b != 0.0 ? a / b : 0.0;
}

double wf_metric_value(wf_measure *m)
{
    const wf_metric_row *row = m->metric[0] ? wf_metric_find(m->metric) : NULL;

    wf_sums_settle(&m->sums);
    if (row && row->value)
        return row->value(m);
    if (m->sums.n)
        return wf_metric_ratio(wf_sums_get(&m->sums, 0), wf_sums_get(&m->sums, 1));
    return wf_metric_ratio(m->sum, m->count);
}

bool wf_metric_mean(wf_measure *m, double *sum, double *count)
{
    const wf_metric_row *row = m->metric[0] ? wf_metric_find(m->metric) : NULL;

    wf_sums_settle(&m->sums);
    *sum = m->sums.n ? wf_sums_get(&m->sums, 0) : m->sum;
    *count = m->sums.n ? wf_sums_get(&m->sums, 1) : m->count;
    return !(row && row->value);
}

/* Numbers in one record of v; 0 when that is not fixed. */
static double per_record(const wf_value *v)
{
    double n = 1.0;

    for (int32_t i = 1; i < v->rank; i++)
        n *= v->axes[i].size > 0 ? (double)v->axes[i].size : 0.0;
    return n;
}

wf_status wf_metric_fetch(const wf_metric *m, const char *row, wf_value *v, wf_meaning meaning,
                          const wf_value *like, wf_err *err)
{
    return wf_unit_fetch(m->u,
                         (wf_fetch){.value = v,
                                    .meaning = meaning,
                                    .label = m->label,
                                    .per_record = like ? per_record(like) : 1.0,
                                    .metric = row},
                         err);
}

wf_status wf_metric_fetch_sums(const wf_metric *m, wf_emit *e, uint32_t n, wf_value *const parts[],
                               wf_err *err)
{
    wf_attr axis = wf_attr_int("axis", 0);
    wf_value *in[8] = {NULL}, *all;

    wf_assert(n <= WF_COUNT(in));
    for (uint32_t i = 0; i < n && e->rc == WF_OK; i++)
        in[i] = wf_emit_reshape(e, wf_emit_cast(e, parts[i], WF_F64), 1, (const int64_t[]){-1});
    all = e->rc == WF_OK ? wf_emit_op(e, "Concat", n, in, 1, &axis) : NULL;
    WF_TRY(wf_emit_end(e));
    return wf_metric_fetch(m, m->row->name, all, WF_MEANS_SUMS, NULL, err);
}

/* How many numbers v has, when the run is known. */
static wf_value *count_of(wf_emit *e, wf_value *v)
{
    wf_value *n = NULL;

    for (uint32_t i = 0; v && i < (uint32_t)v->rank; i++)
        n = n ? wf_emit_mul(e, n, wf_emit_dim_of(e, v, i)) : wf_emit_dim_of(e, v, i);
    return n;
}

/* Which labels count, as numbers 1 and 0 of the scores' dtype; NULL when all do. */
static wf_value *counting(wf_emit *e, const wf_goal *g)
{
    wf_value *equal;

    if (!g->ignores)
        return NULL;
    equal = wf_emit_binary(e, "Equal", g->labels,
                           wf_emit_scalar(e, g->labels->dtype, (double)g->ignored));
    return wf_emit_cast(e, wf_emit_unary(e, "Not", equal), g->scores->dtype);
}

/* A sum over places like `labels`: with a fixed number a record, or with the number beside it. */
static wf_status fetch_over(const wf_metric *m, wf_emit *e, wf_value *sum, wf_meaning meaning,
                            const wf_value *places, wf_err *err)
{
    wf_value *parts[2] = {sum, NULL}, *counts = counting(e, m->goal);

    if (!counts && per_record(places) > 0.0) {
        WF_TRY(wf_emit_end(e));
        return wf_metric_fetch(m, m->row->name, sum, meaning, places, err);
    }
    parts[1] =
        counts ? wf_emit_reduce_sum(e, counts, 0, NULL, false) : count_of(e, (wf_value *)places);
    return wf_metric_fetch_sums(m, e, 2, parts, err);
}

wf_status wf_metric_fetch_hits(const wf_metric *m, wf_emit *e, wf_value *hits,
                               const wf_value *labels, wf_err *err)
{
    return fetch_over(m, e, hits, WF_MEANS_HITS, labels, err);
}

wf_status wf_metric_fetch_loss(const wf_metric *m, const wf_loss_row *loss, wf_err *err)
{
    wf_emit e = wf_emit_begin(m->u->graph, m->label, err);
    wf_goal own = *m->goal;
    wf_value *v, *sum;

    own.row = loss;
    own.item = m->item; /* the metric's options, not those of the loss */
    v = loss->values(&e, &own);
    sum = wf_emit_reduce_sum(&e, v, 0, NULL, false);
    WF_TRY(wf_emit_end(&e));
    return fetch_over(m, &e, sum, WF_MEANS_SUM, v, err);
}

wf_value *wf_metric_probabilities(wf_emit *e, const wf_goal *g)
{
    wf_attr axis = wf_attr_int("axis", -1);
    wf_value *scores = g->scores;

    if (!g->scores_are_logits)
        return scores;
    return g->kind == WF_LOSS_CATEGORICAL ? wf_emit_op(e, "Softmax", 1, &scores, 1, &axis)
                                          : wf_emit_unary(e, "Sigmoid", scores);
}
