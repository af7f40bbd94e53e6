/* SPDX-License-Identifier: Apache-2.0 */
/* common/data/order.c */
#include "common/data/order.h"
#include "common/base/rng.h"
#include "common/base/size.h"
#include "common/base/status.h"

wf_order wf_order_of(uint64_t seed, uint64_t epoch, uint64_t n, uint64_t block, uint64_t window,
                     bool on)
{
    wf_order o = {.seed = seed, .epoch = epoch, .n = n, .block = block, .window = window, .on = on};
    wf_rng_key key = {seed, wf_rng_fold(wf_rng_fold_str(0, "shuffle blocks"), epoch)};

    if (!block) {
        o.whole = wf_shuffle_of(seed, epoch, n, on);
        return o;
    }
    wf_assert(window > 0);
    o.windows = WF_MAX(n / block / window, (uint64_t)1);
    o.whole = wf_shuffle_by(key, n / block, on);
    return o;
}

uint64_t wf_order_record(const wf_order *o, uint64_t at)
{
    uint64_t size = o->window * o->block, w, records, full, inside, block;
    wf_shuffle within;
    wf_rng_key key;

    wf_assert(at < o->n);
    if (!o->on)
        return at;
    if (!o->block)
        return wf_shuffle_record(&o->whole, at);
    w = WF_MIN(at / size, o->windows - 1);
    records = w + 1 < o->windows ? size : o->n - w * size;
    key = (wf_rng_key){o->seed,
                       wf_rng_fold(wf_rng_fold(wf_rng_fold_str(0, "shuffle window"), o->epoch), w)};
    within = wf_shuffle_by(key, records, true);
    inside = wf_shuffle_record(&within, at - w * size);
    block = w * o->window + inside / o->block;
    full = o->n / o->block;
    if (block < full)
        block = wf_shuffle_record(&o->whole, block);
    return block * o->block + inside % o->block;
}
