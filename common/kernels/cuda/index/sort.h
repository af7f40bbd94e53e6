/* SPDX-License-Identifier: Apache-2.0 */
/* common/kernels/cuda/index/sort.h - places in the order of their keys; those with equal keys stay
 * in the order that they had.
 *
 * A radix sort from the lowest digit up (Knuth, The Art of Computer Programming 5.2.5). For each
 * digit, blocks count those of a tile, the counts are added up to where each block's keys of a
 * digit begin, and blocks put the keys there. Of a digit a tile has those of its first thread
 * first, so the result is the same in every run.
 *
 * Some tiles, as of the ids of a batch, are sorted whole by a block each, and then each key finds
 * its place among those of the other tiles by bisection: two kernels in place of three for each
 * digit.
 */
#ifndef WF_KERNELS_CUDA_SORT_H
#define WF_KERNELS_CUDA_SORT_H

#include "common/kernels/cuda/code.h"

enum {
    WF_SORT_BITS = 4, /* of a digit */
    WF_SORT_DIGITS = 1 << WF_SORT_BITS,
    WF_SORT_EACH = 8, /* keys of a thread: their number fits in the bits of a digit */
    WF_SORT_TILE = WF_BLOCK * WF_SORT_EACH,
    WF_SORT_COUNTS = WF_BLOCK * WF_SORT_DIGITS, /* of a tile */
    /* Memory for these, with one cell for every 32 left out: then threads that go through
     * neighbouring counts read from banks of their own. */
    WF_SORT_CELLS = WF_SORT_COUNTS + WF_SORT_COUNTS / WF_WARP,
    WF_SORT_FEW_TILES = 16 /* that are merged by bisection, at most */
};

WF_CODE unsigned wf_sort_cell(unsigned i)
{
    return i + i / WF_WARP;
}

typedef struct wf_sort {
    int64_t n, tiles;
    uint32_t *keys, *places;             /* [n] */
    uint32_t *other_keys, *other_places; /* [n] */
    uint32_t *starts;                    /* [digits, tiles] */
} wf_sort;

static inline size_t wf_sort_array(int64_t n)
{
    return wf_align_up((size_t)n * sizeof(uint32_t), WF_ALIGNED);
}

static inline int64_t wf_sort_tiles(int64_t n)
{
    return wf_ceil_div(n, WF_SORT_TILE);
}

/* Workspace to sort n. */
static inline size_t wf_sort_bytes(int64_t n)
{
    return 4 * wf_sort_array(n) + wf_sort_array(wf_sort_tiles(n) * WF_SORT_DIGITS);
}

/* The parts of the workspace. */
static inline wf_sort wf_sort_in(void *workspace, int64_t n)
{
    char *at = static_cast<char *>(workspace);
    size_t each = wf_sort_array(n);
    wf_sort s = {};

    s.n = n;
    s.tiles = wf_sort_tiles(n);
    s.keys = reinterpret_cast<uint32_t *>(at);
    s.places = reinterpret_cast<uint32_t *>(at + each);
    s.other_keys = reinterpret_cast<uint32_t *>(at + 2 * each);
    s.other_places = reinterpret_cast<uint32_t *>(at + 3 * each);
    s.starts = reinterpret_cast<uint32_t *>(at + 4 * each);
    return s;
}

/* Errors: WF_UNSUPPORTED when there are more places or keys than 32 bits count. */
static inline wf_status wf_sort_check(int64_t n, int64_t keys, wf_err *err)
{
    if (n < UINT32_MAX && keys < UINT32_MAX)
        return WF_OK;
    return wf_fail(err, WF_UNSUPPORTED, "run it on the cpu",
                   "it has 2^32 places or more, which weft does not sort on a GPU");
}

template <class F> __global__ void wf_sort_number(wf_sort s, F key_of)
{
    for (int64_t i = wf_first(); i < s.n; i += wf_all()) {
        s.keys[i] = key_of(i);
        s.places[i] = (uint32_t)i;
    }
}

/* ---- one digit ---- */

WF_CODE unsigned wf_sort_digit(uint32_t key, unsigned shift)
{
    return key >> shift & (WF_SORT_DIGITS - 1);
}

/* How many of a thread's keys have each digit, in WF_SORT_BITS bits for each. */
WF_CODE uint64_t wf_sort_count_own(const wf_sort &s, int64_t first, unsigned shift)
{
    uint64_t counts = 0;

    for (int64_t i = first; i < s.n && i < first + WF_SORT_EACH; i++)
        counts += (uint64_t)1 << WF_SORT_BITS * wf_sort_digit(s.keys[i], shift);
    return counts;
}

/* Fills before[digit, thread]: the keys of the tile with a lower digit, and those of this digit
 * that lower threads have. */
template <class C> WF_CODE void wf_sort_count_before(C &before, uint64_t counts)
{
    enum { SHARE = WF_SORT_DIGITS };
    uint32_t sum = 0, all;

    for (unsigned d = 0; d < WF_SORT_DIGITS; d++)
        before[wf_sort_cell(d * WF_BLOCK + threadIdx.x)] =
            (uint32_t)(counts >> WF_SORT_BITS * d & (WF_SORT_DIGITS - 1));
    __syncthreads();
    for (unsigned i = threadIdx.x * SHARE; i < (threadIdx.x + 1) * SHARE; i++)
        sum += before[wf_sort_cell(i)];
    sum = wf_sum_before(sum, &all);
    for (unsigned i = threadIdx.x * SHARE; i < (threadIdx.x + 1) * SHARE; i++) {
        uint32_t own = before[wf_sort_cell(i)];

        before[wf_sort_cell(i)] = sum;
        sum += own;
    }
    __syncthreads();
}

__global__ static void wf_sort_count(wf_sort s, unsigned shift)
{
    WF_SHARED(uint32_t, before, WF_SORT_CELLS);

    for (int64_t tile = blockIdx.x; tile < s.tiles; tile += gridDim.x) {
        const int64_t at = tile * WF_SORT_TILE;
        const uint32_t all = (uint32_t)(s.n - at < WF_SORT_TILE ? s.n - at : (int64_t)WF_SORT_TILE);
        const unsigned d = threadIdx.x;

        wf_sort_count_before(before, wf_sort_count_own(s, at + threadIdx.x * WF_SORT_EACH, shift));
        if (d + 1 < WF_SORT_DIGITS)
            s.starts[d * s.tiles + tile] =
                before[wf_sort_cell((d + 1) * WF_BLOCK)] - before[wf_sort_cell(d * WF_BLOCK)];
        else if (d + 1 == WF_SORT_DIGITS)
            s.starts[d * s.tiles + tile] = all - before[wf_sort_cell(d * WF_BLOCK)];
        __syncthreads();
    }
}

/* Counts become starts; one block, which has 1/128 of the keys to add. */
__global__ static void wf_sort_add(wf_sort s)
{
    const int64_t n = s.tiles * WF_SORT_DIGITS;
    uint32_t base = 0;

    for (int64_t from = 0; from < n; from += WF_SORT_TILE) {
        const int64_t first = from + threadIdx.x * WF_SORT_EACH;
        const int64_t end = first + WF_SORT_EACH < n ? first + WF_SORT_EACH : n;
        uint32_t sum = 0, all;

        for (int64_t i = first; i < end; i++)
            sum += s.starts[i];
        sum = base + wf_sum_before(sum, &all);
        for (int64_t i = first; i < end; i++) {
            uint32_t own = s.starts[i];

            s.starts[i] = sum;
            sum += own;
        }
        base += all;
    }
}

__global__ static void wf_sort_put(wf_sort s, unsigned shift)
{
    WF_SHARED(uint32_t, before, WF_SORT_CELLS);

    for (int64_t tile = blockIdx.x; tile < s.tiles; tile += gridDim.x) {
        const int64_t first = tile * WF_SORT_TILE + threadIdx.x * WF_SORT_EACH;
        uint64_t seen = 0;

        wf_sort_count_before(before, wf_sort_count_own(s, first, shift));
        for (int64_t i = first; i < s.n && i < first + WF_SORT_EACH; i++) {
            const unsigned d = wf_sort_digit(s.keys[i], shift);
            const uint32_t to = s.starts[d * s.tiles + tile] +
                                (before[wf_sort_cell(d * WF_BLOCK + threadIdx.x)] -
                                 before[wf_sort_cell(d * WF_BLOCK)]) +
                                (uint32_t)(seen >> WF_SORT_BITS * d & (WF_SORT_DIGITS - 1));

            seen += (uint64_t)1 << WF_SORT_BITS * d;
            s.other_keys[to] = s.keys[i];
            s.other_places[to] = s.places[i];
        }
        __syncthreads();
    }
}

/* Sorts s->places by s->keys, none of which is above `most`: both are elsewhere afterwards. */
static inline wf_status wf_sort_all(const wf_run *run, wf_sort *s, uint32_t most, wf_err *err)
{
    const unsigned blocks = wf_blocks(run, s->tiles * WF_BLOCK);

    for (unsigned shift = 0; shift < 32 && most >> shift; shift += WF_SORT_BITS) {
        WF_TRY(wf_launch_meeting(run, "count", wf_sort_count, blocks, WF_BLOCK, err, *s, shift));
        WF_TRY(wf_launch_meeting(run, "add", wf_sort_add, 1, WF_BLOCK, err, *s));
        WF_TRY(wf_launch_meeting(run, "put", wf_sort_put, blocks, WF_BLOCK, err, *s, shift));
        std::swap(s->keys, s->other_keys);
        std::swap(s->places, s->other_places);
    }
    return WF_OK;
}

/* ---- some tiles ---- */

/* The keys of each tile, sorted, to other_keys and other_places. */
template <class F> __global__ void wf_sort_tiles_whole(wf_sort s, uint32_t most, F key_of)
{
    WF_SHARED(uint32_t, before, WF_SORT_CELLS);
    WF_SHARED(uint32_t, keys, WF_SORT_TILE);
    WF_SHARED(uint32_t, places, WF_SORT_TILE);
    const unsigned t = threadIdx.x;

    for (int64_t tile = blockIdx.x; tile < s.tiles; tile += gridDim.x) {
        const int64_t at = tile * WF_SORT_TILE;

        /* What is beyond the end is behind all others, of whose digits it has the highest. */
        for (unsigned i = t; i < WF_SORT_TILE; i += WF_BLOCK) {
            keys[i] = at + i < s.n ? key_of(at + i) : UINT32_MAX;
            places[i] = (uint32_t)(at + i);
        }
        __syncthreads();
        for (unsigned shift = 0; shift < 32 && most >> shift; shift += WF_SORT_BITS) {
            uint32_t own[WF_SORT_EACH], from[WF_SORT_EACH];
            uint64_t counts = 0, seen = 0;

            WF_UNROLL
            for (unsigned i = 0; i < WF_SORT_EACH; i++) {
                own[i] = keys[t * WF_SORT_EACH + i];
                from[i] = places[t * WF_SORT_EACH + i];
                counts += (uint64_t)1 << WF_SORT_BITS * wf_sort_digit(own[i], shift);
            }
            wf_sort_count_before(before, counts);
            WF_UNROLL
            for (unsigned i = 0; i < WF_SORT_EACH; i++) {
                const unsigned d = wf_sort_digit(own[i], shift);
                const uint32_t to = before[wf_sort_cell(d * WF_BLOCK + t)] +
                                    (uint32_t)(seen >> WF_SORT_BITS * d & (WF_SORT_DIGITS - 1));

                seen += (uint64_t)1 << WF_SORT_BITS * d;
                keys[to] = own[i];
                places[to] = from[i];
            }
            __syncthreads();
        }
        for (unsigned i = t; i < WF_SORT_TILE && at + i < s.n; i += WF_BLOCK) {
            s.other_keys[at + i] = keys[i];
            s.other_places[at + i] = places[i];
        }
        __syncthreads(); /* before the next tile is read */
    }
}

/* How many keys of [from, end) are below key, or not above it. */
WF_CODE int64_t wf_sort_below(const uint32_t *keys, int64_t from, int64_t end, uint32_t key,
                              bool or_equal)
{
    int64_t lo = from, hi = end;

    while (lo < hi) {
        const int64_t middle = (lo + hi) / 2;
        const uint32_t other = keys[middle];

        if (other < key || (or_equal && other == key))
            lo = middle + 1;
        else
            hi = middle;
    }
    return lo - from;
}

/* Sorted tiles of other_keys to keys and places: of equal keys those of lower tiles come first. */
__global__ static void wf_sort_merge(wf_sort s)
{
    for (int64_t i = wf_first(); i < s.n; i += wf_all()) {
        const int64_t own = i / WF_SORT_TILE;
        const uint32_t key = s.other_keys[i];
        int64_t to = i - own * WF_SORT_TILE;

        WF_UNROLL
        for (int64_t tile = 0; tile < WF_SORT_FEW_TILES; tile++) {
            const int64_t at = tile * WF_SORT_TILE;
            const int64_t end = at + WF_SORT_TILE < s.n ? at + WF_SORT_TILE : s.n;

            if (tile != own && at < s.n)
                to += wf_sort_below(s.other_keys, at, end, key, tile < own);
        }
        s.keys[to] = key;
        s.places[to] = s.other_places[i];
    }
}

/* Sorts n places by key_of(place), which is not above `most`. */
template <class F>
wf_status wf_sort_by(const wf_run *run, wf_sort *s, uint32_t most, F key_of, wf_err *err)
{
    if (s->tiles > WF_SORT_FEW_TILES) {
        WF_TRY(wf_launch(run, "keys", wf_sort_number<F>, wf_blocks(run, s->n), err, *s, key_of));
        return wf_sort_all(run, s, most, err);
    }
    WF_TRY(wf_launch_meeting(run, "tiles", wf_sort_tiles_whole<F>, (unsigned)s->tiles, WF_BLOCK,
                             err, *s, most, key_of));
    return wf_launch(run, "merge", wf_sort_merge, wf_blocks(run, s->n), err, *s);
}

#endif
