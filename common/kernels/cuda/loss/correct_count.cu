/* SPDX-License-Identifier: Apache-2.0 */
/* common/kernels/cuda/loss/correct_count.cu - ai.weft CorrectCount(scores, labels): how many rows
 * hit their label. Without `threshold` scores are [n, classes], labels [n] integers, and a hit is
 * the first largest score at the label; with `k`, a label with fewer than k scores above its own.
 * With `threshold`, element by element: (score > threshold) == (label > 0.5).
 *
 * A block looks at a row after the other and says in the workspace which are hits; then these are
 * counted. */
#include "common/kernels/cuda/elementwise/number.h"
#include "common/kernels/cuda/reduce/total.h"

#include <cinttypes>

namespace
{

struct hits {
    const uint8_t *of;

    WF_CODE int64_t operator()(int64_t i) const
    {
        return of[i];
    }
};

template <class T> struct hits_by_threshold {
    const T *scores;
    wf_numbers labels;
    double threshold;

    WF_CODE int64_t operator()(int64_t i) const
    {
        return ((double)scores[i] > threshold) == (wf_number_of(labels, i) > 0.5);
    }
};

/* The first largest of a row, for all threads of the block. A NaN in front is not exceeded by any,
 * and one behind exceeds none. */
template <class T> WF_CODE int64_t first_largest(const T *x, int64_t n)
{
    T top = -T(INFINITY);
    int64_t first = n;

    if (x[0] != x[0])
        return 0;
    for (int64_t k = threadIdx.x; k < n; k += blockDim.x)
        top = x[k] > top ? x[k] : top;
    top = wf_join_block(top, -T(INFINITY), wf_greater());
    for (int64_t k = threadIdx.x; k < n && first == n; k += blockDim.x)
        first = x[k] == top ? k : n;
    return wf_join_block(first, n, wf_lower());
}

template <class T>
__global__ void find_largest(const T *scores, wf_numbers labels, int64_t rows, int64_t classes,
                             uint8_t *hit)
{
    for (int64_t row = blockIdx.x; row < rows; row += gridDim.x) {
        int64_t best = first_largest(scores + row * classes, classes);

        if (threadIdx.x == 0)
            hit[row] = best == wf_int_of(labels, row);
    }
}

/* Ties count for the label, and a NaN or an infinity never does. */
template <class T>
__global__ void find_among(const T *scores, wf_numbers labels, int64_t rows, int64_t classes,
                           int64_t k, uint8_t *hit)
{
    for (int64_t row = blockIdx.x; row < rows; row += gridDim.x) {
        const T *x = scores + row * classes;
        int64_t label = wf_int_of(labels, row), above = 0;
        bool is_class = label >= 0 && label < classes;
        T own = is_class ? x[label] : T(0);

        for (int64_t i = threadIdx.x; i < classes; i += blockDim.x)
            above += x[i] > own;
        above = wf_join_block(above, (int64_t)0, wf_plus());
        if (threadIdx.x == 0)
            hit[row] = is_class && own - own == T(0) && above < k;
    }
}

/* Sums first in the workspace, then a byte for each row. */
size_t bytes_of_sums(int64_t rows)
{
    return wf_align_up(wf_total_bytes<int64_t>(rows), WF_ALIGNED);
}

wf_status prepare(wf_prep *prep, const wf_tensor *const in[], const wf_tensor *const out[],
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
    prep->workspace_bytes = bytes_of_sums(labels) + (binary ? 0 : (size_t)labels);
    return WF_OK;
}

template <class T>
wf_status find_hits(const wf_run *run, const wf_tensor *const in[], uint8_t *hit, wf_err *err)
{
    int64_t rows = in[0]->dims[0], classes = in[0]->dims[1];
    const T *scores = static_cast<const T *>(in[0]->data);
    unsigned blocks = wf_blocks(run, rows * WF_BLOCK), threads = wf_threads(classes);

    if (rows == 0)
        return WF_OK;
    if (classes == 0)
        return wf_stream_fill(run->stream, hit, 0, (size_t)rows, err);
    if (wf_node_attr(run->node, "k"))
        return wf_launch_meeting(run, "CorrectCount", find_among<T>, blocks, threads, err, scores,
                                 wf_numbers_of(in[1]), rows, classes,
                                 wf_node_int(run->node, "k", 1), hit);
    return wf_launch_meeting(run, "CorrectCount", find_largest<T>, blocks, threads, err, scores,
                             wf_numbers_of(in[1]), rows, classes, hit);
}

template <class T>
wf_status correct_count(const wf_run *run, const wf_tensor *const in[], wf_tensor *const out[],
                        wf_err *err)
{
    int64_t n = wf_elems(in[1]), *sums = static_cast<int64_t *>(run->workspace);

    if (wf_node_attr(run->node, "threshold")) {
        hits_by_threshold<T> of = {static_cast<const T *>(in[0]->data), wf_numbers_of(in[1]),
                                   (double)wf_node_float(run->node, "threshold", 0.5f)};

        WF_TRY(wf_total_chunks(run, of, n, sums, err));
    } else {
        uint8_t *hit = static_cast<uint8_t *>(run->workspace) + bytes_of_sums(n);

        WF_TRY(find_hits<T>(run, in, hit, err));
        WF_TRY(wf_total_chunks(run, hits{hit}, n, sums, err));
    }
    return wf_total(run, sums, n, static_cast<int64_t *>(out[0]->data), (int64_t)1, err);
}

} // namespace

#define ROW(dtype, T)                                                                              \
    {                                                                                              \
        .op = "CorrectCount", .domain = WF_DOMAIN_WEFT, .dtypes = WF_TYPE(dtype),                  \
        .prepare = prepare, .run = correct_count<T>                                                \
    }

WF_CUDA_ROWS(correct_count){ROW(WF_F32, float), ROW(WF_F64, double), {}};
