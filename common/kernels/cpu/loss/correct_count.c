/* SPDX-License-Identifier: Apache-2.0 */
/* common/kernels/cpu/loss/correct_count.c - ai.weft CorrectCount(scores, labels): how many rows hit
 * their label. Without `threshold` scores are [n, classes], labels [n] integers, and a hit is the
 * first largest score at the label; with `k`, a label with fewer than k scores above its own. With
 * `threshold`, element by element: (score > threshold) == (label > 0.5). */
#include "common/graph/graph.h"
#include "common/kernels/cpu/cpu.h"

#include <inttypes.h>
#include <math.h>

static wf_status prepare(wf_prep *prep, const wf_tensor *const in[], const wf_tensor *const out[],
                         wf_err *err)
{
    int64_t scores = wf_elems(in[0]), labels = wf_elems(in[1]);
    bool binary = wf_node_attr(prep->node, "threshold") != NULL;

    (void)out;
    if (!binary && in[0]->rank == 2)
        scores = in[0]->dims[0];
    if (scores != labels)
        return wf_fail(err, WF_SHAPE, NULL, "%" PRId64 " rows of scores and %" PRId64 " labels",
                       scores, labels);
    return WF_OK;
}

static int64_t above(const wf_tensor *scores, const wf_tensor *labels, double threshold)
{
    int64_t hits = 0;

    for (int64_t i = 0; i < wf_elems(labels); i++)
        hits += (wf_number_at(scores, i) > threshold) == (wf_number_at(labels, i) > 0.5);
    return hits;
}

#define LARGEST(name, T)                                                                           \
    static int64_t name(const T *x, int64_t n)                                                     \
    {                                                                                              \
        int64_t best = 0;                                                                          \
                                                                                                   \
        for (int64_t k = 1; k < n; k++)                                                            \
            best = x[k] > x[best] ? k : best;                                                      \
        return best;                                                                               \
    }
LARGEST(largest_f32, float)
LARGEST(largest_f64, double)

/* Whether fewer than k scores lie above the label's; ties count for it, NaN never does. */
#define AMONG(name, T)                                                                             \
    static bool name(const T *x, int64_t n, int64_t label, int64_t k)                              \
    {                                                                                              \
        int64_t n_above = 0;                                                                       \
                                                                                                   \
        if (label < 0 || label >= n || !isfinite(x[label]))                                        \
            return false;                                                                          \
        for (int64_t i = 0; i < n; i++)                                                            \
            n_above += x[i] > x[label];                                                            \
        return n_above < k;                                                                        \
    }
AMONG(among_f32, float)
AMONG(among_f64, double)

static int64_t top_k(const wf_tensor *scores, const wf_tensor *labels, int64_t k)
{
    int64_t hits = 0, classes = scores->dims[1];

    for (int64_t i = 0; i < scores->dims[0]; i++)
        hits += scores->dtype == WF_F32 ? among_f32((const float *)scores->data + i * classes,
                                                    classes, wf_int_at(labels, i), k)
                                        : among_f64((const double *)scores->data + i * classes,
                                                    classes, wf_int_at(labels, i), k);
    return hits;
}

static wf_status correct_count(const wf_run *run, const wf_tensor *const in[],
                               wf_tensor *const out[], wf_err *err)
{
    int64_t hits = 0, classes;

    (void)err;
    if (wf_node_attr(run->node, "threshold")) {
        hits = above(in[0], in[1], (double)wf_node_float(run->node, "threshold", 0.5f));
    } else if (wf_node_attr(run->node, "k")) {
        hits = top_k(in[0], in[1], wf_node_int(run->node, "k", 1));
    } else {
        classes = in[0]->dims[1];
        for (int64_t i = 0; i < in[0]->dims[0] && classes > 0; i++) {
            int64_t best = in[0]->dtype == WF_F32
                               ? largest_f32((const float *)in[0]->data + i * classes, classes)
                               : largest_f64((const double *)in[0]->data + i * classes, classes);

            hits += best == wf_int_at(in[1], i);
        }
    }
    *(int64_t *)out[0]->data = hits;
    return WF_OK;
}

const wf_kernel wf_kernels_correct_count[] = {
    WF_ROW("CorrectCount", WF_TYPES_FLOAT, correct_count, .domain = WF_DOMAIN_WEFT,
           .prepare = prepare),
    {0},
};
