/* SPDX-License-Identifier: Apache-2.0 */
/* ps/weights.c - weights in fewer bytes, for pulls: rounded for the way alone, the slice keeps
 * float32. Statistics and frozen variables go as they are, and so does what is small. */
#include "common/base/size.h"
#include "ps/state.h"

#include <stdatomic.h>

enum { CHUNK = 32 << 10 /* numbers that one thread takes at a time */ };

wf_coding wf_weights_coding(const wf_ps *ps, const wf_slice *s, uint64_t n)
{
    return s->trainable && n >= WF_CODING_LEAST ? ps->variables[s->variable].pull : WF_CODING_F32;
}

typedef struct writing {
    wf_coding coding;
    const float *from;
    uint64_t n;
    uint16_t *to; /* halves alone are written so: each number for itself */
    atomic_bool unfit;
} writing;

static void write_chunks(void *arg, int64_t begin, int64_t end)
{
    writing *w = arg;
    uint64_t first = (uint64_t)begin * CHUNK, last = WF_MIN((uint64_t)end * CHUNK, w->n);

    if (!wf_coding_write(w->coding, 0, w->from + first, NULL, last - first, w->to + first))
        atomic_store_explicit(&w->unfit, true, memory_order_relaxed);
}

wf_status wf_weights_write(const wf_ps *ps, const wf_slice *s, const wf_peer *to, wf_buf **values,
                           wf_coding *coding, wf_err *err)
{
    uint64_t n = (*values)->bytes / sizeof(float);
    writing w = {.coding = wf_weights_coding(ps, s, n), .from = (*values)->data, .n = n};
    size_t bytes = wf_coding_bytes(w.coding, n, 0);
    wf_buf *coded;

    *coding = WF_CODING_F32;
    if (!w.coding)
        return WF_OK;
    coded = wf_net_buf(to, bytes);
    if (!coded)
        return wf_fail_nomem(err, bytes);
    w.to = coded->data;
    wf_pool_for(ps->pool, (int64_t)wf_ceil_div((int64_t)n, CHUNK), 1, write_chunks, &w);
    if (!atomic_load_explicit(&w.unfit, memory_order_relaxed)) {
        *coding = w.coding;
        wf_buf_unref(values);
        *values = wf_buf_ref(coded);
    }
    wf_buf_unref(&coded);
    return WF_OK;
}
