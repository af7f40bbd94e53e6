/* SPDX-License-Identifier: Apache-2.0 */
/* common/tensor/first_row.c */
#include "common/tensor/first_row.h"
#include "common/base/size.h"
#include "common/tensor/row_values.h"

wf_rng_key wf_first_row_key(const wf_first_rows *f, int64_t id)
{
    return (wf_rng_key){.seed = f->seed, .stream = wf_rng_fold(f->stream, (uint64_t)id)};
}

void wf_first_row(const wf_first_rows *f, int64_t id, uint64_t n, float out[])
{
    float scale = 0, held[WF_INT8_ROW_MOST]; /* room for as many values of any type */

    wf_distribution_fill(&f->numbers, wf_first_row_key(f, id), 0, out, n);
    for (uint64_t from = 0, part; f->dtype != WF_F32 && from < n; from += part) {
        part = WF_MIN(n - from, (uint64_t)WF_INT8_ROW_MOST);
        wf_row_values_round(f->dtype, out + from, part, held, &scale);
        wf_row_values_read(f->dtype, held, &scale, part, out + from);
    }
}

void wf_mean_row(const wf_first_rows *f, uint64_t n, float out[])
{
    wf_first_rows mean = *f;

    mean.numbers.kind = WF_CONSTANT; /* all of them lie evenly about their centre */
    wf_first_row(&mean, 0, n, out);
}
