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
 * Which row item i has is keys(i); `rows` or more: it has none. Keys are a type of their own, so
 * that the sort is compiled once for all types of elements. How items are joined is a type with the
 * members
 *
 *   A                       what it joins in
 *   take(i, column)         an element of item i
 *   join(A, A)              two in their order
 *   put(row, column, A)     writes the result; nobody else writes there
 */
#ifndef WF_KERNELS_CUDA_SCATTER_H
#define WF_KERNELS_CUDA_SCATTER_H

#include "common/kernels/cuda/index/sort.h"

enum {
    WF_SCATTER_CHUNK = 32,
    WF_SCATTER_LAST = 128, /* items that are one chunk */
    WF_SCATTER_AHEAD = 8   /* items that a thread loads before it joins them */
};

typedef struct wf_scatter {
    int64_t items, rows, columns;
} wf_scatter;

/* Keys, in their order, and the places of the items, or in later rounds [n, columns] parts. */
template <class A> struct wf_scatter_round {
    int64_t n, chunk; /* chunk: items of one */
    const uint32_t *keys, *places;
    const A *parts;
    uint32_t *next_keys; /* two for each chunk; NULL: there is one chunk */
    A *next_parts;
};

template <class F>
WF_CODE typename F::A wf_scatter_item(const F &f, const wf_scatter_round<typename F::A> &r,
                                      int64_t columns, int64_t i, int64_t column)
{
    return r.parts ? r.parts[i * columns + column] : f.take(r.places[i], column);
}

/* A chunk [begin, end) in one column: the items that were joined so far have one key. */
template <class A> struct wf_scatter_run {
    int64_t chunk, begin, end, from; /* from: the first of them */
    uint32_t before, after, key;     /* of the items beside the chunk, and theirs */
    A all;
    uint32_t left[2]; /* keys of the parts that stay */
};

/* What was joined up to item `to` goes to its row, or stays as a part. */
template <class F>
WF_CODE void wf_scatter_end(const F &f, const wf_scatter &s,
                            const wf_scatter_round<typename F::A> &r,
                            wf_scatter_run<typename F::A> &at, int64_t column, int64_t to)
{
    const bool begins_before = at.from == at.begin && at.key == at.before;
    const int64_t part = begins_before ? 0 : 1;

    if (to == at.from || at.key >= s.rows)
        return;
    if (begins_before || (to == at.end && at.key == at.after)) {
        at.left[part] = at.key;
        r.next_parts[(2 * at.chunk + part) * s.columns + column] = at.all;
    } else {
        f.put(at.key, column, at.all);
    }
}

template <class F>
__global__ void wf_scatter_chunks(F f, wf_scatter s, wf_scatter_round<typename F::A> r)
{
    using A = typename F::A;
    const uint32_t none = UINT32_MAX;
    const int64_t chunks = (r.n + r.chunk - 1) / r.chunk;

    for (int64_t e = wf_first(); e < chunks * s.columns; e += wf_all()) {
        const int64_t chunk = e / s.columns, column = e % s.columns, begin = chunk * r.chunk;
        const int64_t end = begin + r.chunk < r.n ? begin + r.chunk : r.n;
        wf_scatter_run<A> at = {
            chunk, begin, end,  begin,       begin > 0 ? r.keys[begin - 1] : none,
            none,  none,  A(0), {none, none}};

        at.after = end < r.n ? r.keys[end] : none;
        for (int64_t first = begin; first < end; first += WF_SCATTER_AHEAD) {
            uint32_t keys[WF_SCATTER_AHEAD];
            A items[WF_SCATTER_AHEAD] = {};

            WF_UNROLL
            for (int u = 0; u < WF_SCATTER_AHEAD; u++)
                keys[u] = first + u < end ? r.keys[first + u] : none;
            WF_UNROLL
            for (int u = 0; u < WF_SCATTER_AHEAD; u++)
                if (keys[u] < s.rows)
                    items[u] = wf_scatter_item(f, r, s.columns, first + u, column);
            WF_UNROLL
            for (int u = 0; u < WF_SCATTER_AHEAD; u++) {
                const int64_t i = first + u;
                /* One row that begins before the chunk and ends behind it leaves its last item as
                 * the second part: so the parts of a row have nothing between them. */
                const bool through =
                    i == end - 1 && at.before == at.key && at.key == at.after && at.from == begin;
                const bool joins = i > at.from && keys[u] == at.key && !through;

                if (i < end && joins)
                    at.all = f.join(at.all, items[u]);
                if (i < end && !joins) {
                    wf_scatter_end(f, s, r, at, column, i);
                    at.from = i;
                    at.key = keys[u];
                    at.all = items[u];
                }
            }
        }
        wf_scatter_end(f, s, r, at, column, end);
        for (int64_t part = 0; r.next_keys && column == 0 && part < 2; part++)
            r.next_keys[2 * chunk + part] = at.left[part];
    }
}

/* The parts that a round of n leaves; 0: it is the last. */
static inline int64_t wf_scatter_parts(int64_t n)
{
    return n > WF_SCATTER_LAST ? 2 * wf_ceil_div(n, WF_SCATTER_CHUNK) : 0;
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
template <class K, class F>
wf_status wf_scatter_all(const wf_run *run, K keys, F f, const wf_scatter *s, void *workspace,
                         wf_err *err)
{
    using A = typename F::A;
    wf_sort order = wf_sort_in(workspace, s->items);
    char *rooms[2];
    wf_scatter_round<A> r = {};

    if (s->items == 0 || s->columns == 0)
        return WF_OK;
    rooms[0] = static_cast<char *>(workspace) + wf_sort_bytes(s->items);
    rooms[1] = rooms[0] + wf_scatter_room(s, wf_scatter_parts(s->items), sizeof(A));
    WF_TRY(wf_sort_by(run, &order, (uint32_t)s->rows, keys, err));
    r.keys = order.keys;
    r.places = order.places;
    for (int64_t n = s->items, next; n > 0; n = next) {
        next = wf_scatter_parts(n);
        r.n = n;
        r.chunk = next ? (int64_t)WF_SCATTER_CHUNK : n;
        r.next_keys = next ? reinterpret_cast<uint32_t *>(rooms[0]) : nullptr;
        r.next_parts = reinterpret_cast<A *>(rooms[0] + wf_sort_array(next));
        WF_TRY(wf_launch(run, run->node->op->name, wf_scatter_chunks<F>,
                         wf_blocks(run, wf_ceil_div(n, r.chunk) * s->columns), err, f, *s, r));
        r.keys = r.next_keys;
        r.parts = r.next_parts;
        std::swap(rooms[0], rooms[1]);
    }
    return WF_OK;
}

#endif
