/* SPDX-License-Identifier: Apache-2.0 */
/* common/data/bag.c */
#include "common/data/bag.h"

#include <inttypes.h>
#include <string.h>

wf_bag wf_bag_of(const wf_field_spec *field, bool cuts, wf_dtype dtype, atomic_uint_fast64_t *cut)
{
    bool hashes = field->n_steps && strcmp(field->steps[0].type, "hash") == 0;

    return (wf_bag){.most = field->is_bag ? field->bag_most : 0,
                    .dtype = dtype,
                    .cuts = cuts,
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

    if (b->dtype != WF_I64) {
        memset((char *)out + n * size, 0, (b->most - n) * size);
        return;
    }
    for (; n < b->most; n++)
        ((int64_t *)out)[n] = b->filler;
}

wf_status wf_bag_check_id(int64_t id, wf_err *err)
{
    return id >= 0 ? WF_OK
                   : wf_fail(err, WF_INVALID, "give ids from 0 on, or hash them",
                             "the id %" PRId64 " of a bag is below 0, which stands for no id", id);
}
