/* SPDX-License-Identifier: Apache-2.0 */
/* common/kernels/cuda/index/scatter.h - rows of items joined in the rows of a result that their
 * keys name, in the order of the items.
 *
 * Items are sorted by their keys, so that those of one row stand together, and cut into chunks.
 * A thread joins the items of a chunk in one column. Rows that lie in one chunk are done; the
 * others leave a part at each end of the chunk, and these are the items of the next round. So a row
 * that half of all items name costs no more than others. The order of a sum follows from shapes and
 * ids.
 *
 * How items are joined is a type with the members
 *
 *   A                       what it joins in
 *   key(i)                  the row of item i; `rows` or more: it has none
 *   take(i, column)         an element of it
 *   join(A, A)              two in their order
 *   put(row, column, A)     writes the result; nobody else writes there
 */
#ifndef WF_KERNELS_CUDA_SCATTER_H
#define WF_KERNELS_CUDA_SCATTER_H

#include "common/kernels/cuda/index/sort.h"

enum { WF_SCATTER_CHUNK = 32 };

typedef struct wf_scatter {
    int64_t items, rows, columns;
} wf_scatter;

/* Keys, in their order, and the places of the items, or in later rounds [n, columns] parts. */
template <class A> struct wf_scatter_round {
    int64_t n;
    const uint32_t *keys, *places;
    const A *parts;
    uint32_t *next_keys; /* two for each chunk; NULL: there is one chunk */
    A *next_parts;
};

template <class F> struct wf_scatter_key {
    F f;
    WF_CODE uint32_t operator()(int64_t i) const
    {
        return f.key(i);
    }
};

template <class F>
WF_CODE typename F::A wf_scatter_item(const F &f, const wf_scatter_round<typename F::A> &r,
                                      int64_t columns, int64_t i, int64_t column)
{
    return r.parts ? r.parts[i * columns + column] : f.take(r.places[i], column);
}

template <class F>
__global__ void wf_scatter_chunks(F f, wf_scatter s, wf_scatter_round<typename F::A> r)
{
    const uint32_t none = UINT32_MAX;
    const int64_t chunks = (r.n + WF_SCATTER_CHUNK - 1) / WF_SCATTER_CHUNK;

    for (int64_t e = wf_first(); e < chunks * s.columns; e += wf_all()) {
        const int64_t chunk = e / s.columns, column = e % s.columns;
        const int64_t begin = chunk * WF_SCATTER_CHUNK;
        const int64_t end = begin + WF_SCATTER_CHUNK < r.n ? begin + WF_SCATTER_CHUNK : r.n;
        const uint32_t before = begin > 0 ? r.keys[begin - 1] : none;
        const uint32_t after = end < r.n ? r.keys[end] : none;
        /* One row that begins before the chunk and ends behind it leaves its last item as the
         * second part: so the parts of a row have nothing between them. */
        const bool through = before == r.keys[begin] && before == after;
        uint32_t left[2] = {none, none};

        for (int64_t i = begin; i < end;) {
            const uint32_t key = r.keys[i];
            const bool begins_before = i == begin && key == before;
            const int64_t stop = through && i < end - 1 ? end - 1 : end;
            typename F::A all;

            if (key >= s.rows) {
                i++;
                continue;
            }
            all = wf_scatter_item(f, r, s.columns, i, column);
            for (i++; i < stop && r.keys[i] == key; i++)
                all = f.join(all, wf_scatter_item(f, r, s.columns, i, column));
            if (begins_before || (i == end && key == after)) {
                const int64_t part = begins_before ? 0 : 1;

                left[part] = key;
                r.next_parts[(2 * chunk + part) * s.columns + column] = all;
            } else {
                f.put(key, column, all);
            }
        }
        for (int64_t part = 0; r.next_keys && column == 0 && part < 2; part++)
            r.next_keys[2 * chunk + part] = left[part];
    }
}

/* The parts that a round of n leaves; 0: it is the last. */
static inline int64_t wf_scatter_parts(int64_t n)
{
    return n > WF_SCATTER_CHUNK ? 2 * wf_ceil_div(n, WF_SCATTER_CHUNK) : 0;
}

/* Room for n parts, whose elements have `size` bytes, and their keys. */
static inline size_t wf_scatter_room(const wf_scatter *s, int64_t n, size_t size)
{
    return wf_sort_array(n) + wf_align_up((size_t)(n * s->columns) * size, WF_ALIGNED);
}

static inline size_t wf_scatter_bytes(const wf_scatter *s, size_t size)
{
    int64_t first = wf_scatter_parts(s->items);

    return wf_sort_bytes(s->items) + wf_scatter_room(s, first, size) +
           wf_scatter_room(s, wf_scatter_parts(first), size);
}

/* Joins all items; `workspace` has wf_scatter_bytes(s, sizeof A). Rows that no item names are left
 * as they are. */
template <class F>
wf_status wf_scatter_all(const wf_run *run, F f, const wf_scatter *s, void *workspace, wf_err *err)
{
    using A = typename F::A;
    wf_sort order = wf_sort_in(workspace, s->items);
    char *rooms[2];
    wf_scatter_round<A> r = {};

    if (s->items == 0 || s->columns == 0)
        return WF_OK;
    rooms[0] = static_cast<char *>(workspace) + wf_sort_bytes(s->items);
    rooms[1] = rooms[0] + wf_scatter_room(s, wf_scatter_parts(s->items), sizeof(A));
    WF_TRY(wf_launch(run, "keys", wf_sort_number<wf_scatter_key<F>>, wf_blocks(run, s->items), err,
                     order, wf_scatter_key<F>{f}));
    WF_TRY(wf_sort_all(run, &order, (uint32_t)s->rows, err));
    r.keys = order.keys;
    r.places = order.places;
    for (int64_t n = s->items, next; n > 0; n = next) {
        next = wf_scatter_parts(n);
        r.n = n;
        r.next_keys = next ? reinterpret_cast<uint32_t *>(rooms[0]) : nullptr;
        r.next_parts = reinterpret_cast<A *>(rooms[0] + wf_sort_array(next));
        WF_TRY(wf_launch(run, run->node->op->name, wf_scatter_chunks<F>,
                         wf_blocks(run, wf_ceil_div(n, WF_SCATTER_CHUNK) * s->columns), err, f, *s,
                         r));
        r.keys = r.next_keys;
        r.parts = r.next_parts;
        std::swap(rooms[0], rooms[1]);
    }
    return WF_OK;
}

#endif
