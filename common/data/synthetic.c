/* SPDX-License-Identifier: Apache-2.0 */
/* common/data/synthetic.c - noise in the shape of data, for measuring without files. Nothing can be
 * learned from it: labels do not depend on anything. */
#include "common/base/rng.h"
#include "common/base/size.h"
#include "common/data/format.h"

#include <inttypes.h>
#include <string.h>

static void fill_noise(wf_rng_key key, uint8_t out[], size_t n)
{
    uint32_t block[4];

    for (size_t at = 0; at < n; at += sizeof block) {
        wf_rng_block(key, at / sizeof block, block);
        memcpy(out + at, block, WF_MIN(n - at, sizeof block));
    }
}

static wf_status synthetic_make(const wf_dataset_spec *spec, const wf_field_spec *field,
                                size_t limit_bytes, wf_array *out, wf_err *err)
{
    wf_rng_key key = {spec->seed, wf_rng_fold_str(wf_rng_fold_str(0, "synthetic"), field->name)};
    wf_array a = {.dtype = field->classes ? WF_I32 : WF_U8, .rank = field->rank + 1};

    if (spec->records == 0 || spec->records > INT64_MAX)
        return wf_fail(err, WF_USAGE, "give \"records\"", "synthetic data of %" PRIu64 " records",
                       spec->records);
    if (field->rank >= WF_MAX_RANK || field->classes < 0 || field->classes > INT32_MAX)
        return wf_fail(err, WF_USAGE, NULL,
                       "synthetic data \"%s\" of %u dimensions and %" PRId64 " classes",
                       field->name, field->rank, field->classes);
    a.dims[0] = (int64_t)spec->records;
    memcpy(a.dims + 1, field->dims, field->rank * sizeof a.dims[0]);
    WF_TRY(wf_array_make(&a, "synthetic data", limit_bytes, err));
    if (field->classes)
        for (size_t i = 0; i < a.bytes / sizeof(int32_t); i++)
            ((int32_t *)a.data)[i] = (int32_t)wf_rng_below(key, i, (uint64_t)field->classes);
    else
        fill_noise(key, a.data, a.bytes);
    *out = a;
    return WF_OK;
}

const wf_format wf_format_synthetic = {.name = "synthetic", .make = synthetic_make};
