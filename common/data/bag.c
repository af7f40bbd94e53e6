/* SPDX-License-Identifier: Apache-2.0 */
/* common/data/bag.c */
#include "common/data/bag.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

wf_bag wf_bag_of(const wf_field_spec *field, const wf_dataset_spec *set, wf_dtype dtype,
                 atomic_uint_fast64_t *cut)
{
    bool hashes = field->n_steps && strcmp(field->steps[0].type, "hash") == 0;

    return (wf_bag){.most = field->is_bag ? field->bag_most : 0,
                    .dtype = dtype,
                    .cuts = set->cuts_bags,
                    .marks_gaps = set->marks_gaps,
                    .filler = dtype == WF_I64 ? (hashes ? WF_BAG_NO_WORD : -1) : 0,
                    .cut = cut};
}

wf_status wf_bag_is_full(const wf_bag *b, bool *ends, wf_err *err)
{
    *ends = b->cuts;
    if (!b->cuts)
        return wf_fail(err, WF_INVALID,
                       "make the input longer, or write on_long_bag: cut in data to leave the rest "
                       "out",
                       "a bag of more than the %" PRIu64 " values that the model's input has",
                       b->most);
    atomic_fetch_add_explicit(b->cut, 1, memory_order_relaxed);
    return WF_OK;
}

void wf_bag_fill(const wf_bag *b, void *out, uint64_t n)
{
    size_t size = wf_dtype_size(b->dtype);

    for (uint64_t i = n; b->dtype == WF_I64 && i < b->most; i++)
        ((int64_t *)out)[i] = b->filler;
    for (uint64_t i = n; b->dtype == WF_F64 && i < b->most; i++)
        ((double *)out)[i] = b->marks_gaps ? NAN : 0;
    if (b->dtype != WF_I64 && b->dtype != WF_F64)
        memset((char *)out + n * size, 0, (b->most - n) * size);
}

wf_status wf_bag_check_id(int64_t id, wf_err *err)
{
    return id >= 0 ? WF_OK
                   : wf_fail(err, WF_INVALID, "give ids from 0 on, or hash them",
                             "the id %" PRId64 " of a bag is below 0, which stands for no id", id);
}
