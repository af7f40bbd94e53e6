/* SPDX-License-Identifier: Apache-2.0 */
/* common/compile/metrics/add.c - one batch's outputs added to a measure, by what they mean. */
#include "common/compile/compile.h"

static double number_at(wf_dtype dtype, const void *data, size_t i)
{
    switch (dtype) {
    case WF_F32:
        return ((const float *)data)[i];
    case WF_F64:
        return ((const double *)data)[i];
    case WF_I64:
        return (double)((const int64_t *)data)[i];
    case WF_I32:
        return ((const int32_t *)data)[i];
    default:
        return 0;
    }
}

static wf_status add_keys(wf_measure *m, wf_dtype dtype, size_t n, const void *data, wf_err *err)
{
    const int64_t *keys = data;

    for (size_t i = 0; i < n && dtype == WF_I64; i++)
        WF_TRY(wf_sums_add(&m->sums, (uint64_t)keys[i], 1.0, err));
    return WF_OK;
}

wf_status wf_metric_add(wf_measure *m, wf_meaning meaning, double per_record, uint64_t records,
                        wf_dtype dtype, size_t elems, const void *data, wf_err *err)
{
    double first = elems ? number_at(dtype, data, 0) : 0.0, n = (double)records;

    switch (meaning) {
    case WF_MEANS_LOSS:
        m->sum += first * n;
        m->count += n;
        break;
    case WF_MEANS_HITS:
    case WF_MEANS_SUM:
        m->sum += first;
        m->count += n * per_record;
        break;
    case WF_MEANS_SUMS:
        m->count += n;
        for (size_t i = 0; i < elems; i++)
            WF_TRY(wf_sums_add(&m->sums, i, number_at(dtype, data, i), err));
        break;
    case WF_MEANS_KEYS:
        m->count += n;
        return add_keys(m, dtype, elems, data, err);
    case WF_MEANS_GRADIENT:
    case WF_MEANS_OUTPUT:
        break;
    }
    return WF_OK;
}
