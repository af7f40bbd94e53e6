/* SPDX-License-Identifier: Apache-2.0 */
/* common/kernels/cpu/product/product_tiles.c */
#include "common/kernels/cpu/product/product_tiles.h"
#include "common/base/size.h"
#include "common/kernels/cpu/cpu.h"
#include "common/kernels/cpu/product/split.h"
#include "common/kernels/cpu/product/tiles.h"

#include <stdatomic.h>
#include <string.h>

/* Multiply-adds that are worth a thread of their own: about 5 us. */
#define THREAD_WORK 2e6
/* What one of float32 is worth: products of so many pieces. */
#define SPLIT_WORK 6
/* Bytes of the shared factor up to which all of it is packed at once: it stays in a second cache,
 * and a block of the result is finished before the next begins. */
#define WHOLE_BYTES ((int64_t)3 << 19)
/* The most values along k of a block, so that a panel stays in the first cache; blocks of sums of a
 * part that follow each other on one panel. */
enum { ALONG = 512, AT_A_TIME = 4 };
/* Bytes of a result up to which its sums wait in blocks of their own between cuts that are packed
 * one by one. */
#define WAITING_BYTES ((size_t)8 << 20)
/* Bytes of a result from which it is written past the caches. */
#define PAST_BYTES ((size_t)1 << 20)

/* One factor as it is packed: panels of WF_TILE rows of A, or columns of B. */
typedef struct side {
    bool is_b;
    wf_along along;
    int64_t outer, row; /* rows or columns; floats from row to row as stored */
} side;

struct wf_product_tiles {
    wf_product p;
    uint32_t then;
    bool past;        /* the result is larger than the caches */
    int pieces;       /* of each factor */
    side own, shared; /* each part packs its own blocks of the one, all share the other */
    int64_t blocks;   /* of own */
    int64_t parts, cuts, along, whole; /* along: values along k of a cut; whole: all cuts at once */
    size_t own_at, own_bytes;          /* of a part, behind the shared factor */
    size_t sums_at;                    /* in them: sums between cuts; 0: there are none */
    int64_t waiting;                   /* blocks of own that have them at a time */
};

typedef struct job {
    const wf_product_tiles *v;
    wf_factors a, b, y;
    const float *bias;
    void *c;
    float *sums; /* of B's rows, or NULL */
    char *workspace;
    int64_t cut, end;    /* cuts of k [cut, end) */
    atomic_bool *beyond; /* a value has no pieces */
} job;

static int64_t panels(int64_t outer)
{
    return (outer + WF_TILE - 1) / WF_TILE;
}

static int64_t blocks(int64_t outer)
{
    return (outer + WF_TILE_BLOCK - 1) / WF_TILE_BLOCK;
}

/* Values of cut i, and bytes of a panel of them. */
static int64_t along(const wf_product_tiles *v, int64_t i)
{
    return WF_MIN(v->along, v->p.k - i * v->along);
}

static int64_t panel_bytes(const wf_product_tiles *v)
{
    return v->along / WF_TILE_K * WF_TILE_BYTES * v->pieces;
}

static side side_of(const wf_product *p, bool is_b)
{
    if (is_b)
        return (side){true, p->trans_b ? WF_ALONG_K : WF_ACROSS_K, p->n, p->trans_b ? p->k : p->n};
    return (side){false, p->trans_a ? WF_ACROSS_K : WF_ALONG_K, p->m, p->trans_a ? p->m : p->k};
}

wf_status wf_product_tiles_prepare(wf_prep *prep, const wf_product *p, uint32_t then, bool split,
                                   wf_product_tiles **out, wf_err *err)
{
    wf_product_tiles *v = wf_arena_alloc(prep->arena, sizeof *v);
    int64_t shared;

    if (!v)
        return wf_fail_nomem(err, sizeof *v);
    *v = (wf_product_tiles){.p = *p, .then = then, .pieces = split ? WF_PIECES : 1};
    v->past = (size_t)p->m * (size_t)p->n * (p->c_is_bf16 ? 2 : 4) >= PAST_BYTES;
    v->own = side_of(p, p->n > p->m);
    v->shared = side_of(p, p->n <= p->m);
    v->blocks = blocks(v->own.outer);
    v->cuts = WF_MAX((p->k + ALONG - 1) / ALONG, (int64_t)1);
    v->along = ((p->k + v->cuts - 1) / v->cuts + WF_TILE_K - 1) / WF_TILE_K * WF_TILE_K;
    shared = panels(v->shared.outer) * panel_bytes(v);
    v->whole = shared * v->cuts <= WHOLE_BYTES;
    v->parts = WF_MIN((int64_t)prep->threads, v->blocks);
    if ((double)p->m * (double)p->n * (double)p->k * (split ? SPLIT_WORK : 1) <
        THREAD_WORK * (double)v->parts)
        v->parts = 1;
    v->own_at = (size_t)(v->whole ? shared * v->cuts : shared);
    v->own_bytes = (size_t)(WF_MIN(2 * (int64_t)AT_A_TIME, panels(v->own.outer)) * panel_bytes(v));
    if (v->cuts > 1)
        v->waiting = v->whole ? WF_MIN((int64_t)AT_A_TIME, v->blocks)
                     : p->c_is_bf16 || (size_t)p->m * (size_t)p->n * sizeof(float) <= WAITING_BYTES
                         ? (v->blocks + v->parts - 1) / v->parts
                         : 0;
    if (v->waiting > 0) {
        v->sums_at = v->own_bytes;
        v->own_bytes += sizeof(float) * WF_TILE_BLOCK * WF_TILE_BLOCK *
                        (size_t)(v->waiting * blocks(v->shared.outer));
    }
    prep->workspace_bytes =
        WF_MAX(prep->workspace_bytes, v->own_at + (size_t)v->parts * v->own_bytes);
    *out = v;
    return WF_OK;
}

/* Panels [begin, end) of a side, of one cut of k. */
static void pack(const job *j, const side *s, int64_t cut, int64_t begin, int64_t end, char *to)
{
    const wf_product_tiles *v = j->v;
    wf_factors x = s->is_b ? j->b : j->a;
    int64_t outer = begin * WF_TILE, k = cut * v->along;

    x = wf_factors_at(x, s->along == WF_ALONG_K ? outer * s->row + k : k * s->row + outer);
    if (v->pieces > 1) {
        if (!wf_split_pack(x.x, s->row, s->along, s->is_b, WF_MIN(end * WF_TILE, s->outer) - outer,
                           along(v, cut), to, panel_bytes(v)))
            atomic_store_explicit(j->beyond, true, memory_order_relaxed);
        return;
    }
    if (s->is_b && j->sums)
        wf_tiles_pack_and_sum(x, s->row, WF_MIN(end * WF_TILE, s->outer) - outer, along(v, cut), to,
                              panel_bytes(v), j->sums + outer);
    else
        wf_tiles_pack((wf_strided){x, s->row, 1}, s->along, s->is_b,
                      WF_MIN(end * WF_TILE, s->outer) - outer, along(v, cut), to, panel_bytes(v));
}

static char *shared_at(const job *j, int64_t cut)
{
    return j->workspace + (cut - j->cut) * panels(j->v->shared.outer) * panel_bytes(j->v);
}

static void pack_shared(void *arg, int64_t begin, int64_t end)
{
    const job *j = arg;

    for (int64_t cut = j->cut; cut < j->end; cut++)
        pack(j, &j->v->shared, cut, begin, end, shared_at(j, cut) + begin * panel_bytes(j->v));
}

/* Where the sums of block (own, shared) wait for their next cut. */
static float *waiting(const job *j, float *sums, int64_t own, int64_t shared)
{
    return sums + (own * blocks(j->v->shared.outer) + shared) * WF_TILE_BLOCK * WF_TILE_BLOCK;
}

/* What the sums of a block start with, where that has to be brought to `sums` first: bias or
 * result, where they end within a tile. */
static void begin_sums(wf_tiles *t, int64_t rows, int64_t columns, float *sums)
{
    if (!t->start || (rows % WF_TILE == 0 && columns % WF_TILE == 0) ||
        (columns % WF_TILE == 0 && t->start_row == 0))
        return;
    for (int64_t i = 0; i < rows; i++)
        memcpy(sums + i * WF_TILE_BLOCK, t->start + i * t->start_row,
               (size_t)columns * sizeof(float));
    t->start = sums;
    t->start_row = WF_TILE_BLOCK;
}

/* Adds what the sums of a block start with. */
WF_MULTIVERSION static void add_start(const float *start, int64_t start_row, int64_t rows,
                                      int64_t columns, float *sums)
{
    for (int64_t i = 0; i < rows; i++)
        for (int64_t j = 0; j < columns; j++)
            sums[i * WF_TILE_BLOCK + j] += start[i * start_row + j];
}

/* The sums of products of pieces, and then what the block starts with. */
static void multiply_pieces(const wf_tiles *t, int64_t rows, int64_t columns)
{
    float here[WF_TILE_BLOCK * WF_TILE_BLOCK] WF_ALIGNED(64);
    bool on = t->start == t->c;
    wf_split s = {.a = t->a,
                  .b = t->b,
                  .a_next = t->a_next,
                  .b_next = t->b_next,
                  .steps = t->steps,
                  .rows = t->rows,
                  .columns = t->columns,
                  .c = on ? here : t->c,
                  .c_row = WF_TILE_BLOCK};

    wf_split_multiply(&s);
    if (on)
        add_start(here, WF_TILE_BLOCK, rows, columns, t->c);
    else if (t->start)
        add_start(t->start, t->start_row, rows, columns, t->c);
}

/* The block of the result at (row, column), of one cut of k. `wait`: memory of its own between the
 * cuts; NULL: between them its sums lie in the result. */
static void multiply(const job *j, int64_t row, int64_t column, int64_t cut, const char *a,
                     const char *b, float *wait)
{
    float here[WF_TILE_BLOCK * WF_TILE_BLOCK] WF_ALIGNED(64), *sums = wait ? wait : here;
    const wf_product *p = &j->v->p;
    int64_t rows = WF_MIN(p->m - row, (int64_t)WF_TILE_BLOCK);
    int64_t columns = WF_MIN(p->n - column, (int64_t)WF_TILE_BLOCK);
    bool last = cut + 1 == j->v->cuts, relu = last && j->v->then & WF_PRODUCT_RELU;
    int64_t at = row * p->n + column;
    float *c = (float *)j->c + at; /* unless it is of bfloat16 */
    wf_tiles t = {.a = a,
                  .b = b,
                  .a_row = 64,
                  .a_next = panel_bytes(j->v),
                  .a_step = WF_TILE_BYTES,
                  .b_row = 64,
                  .b_next = panel_bytes(j->v),
                  .b_step = WF_TILE_BYTES,
                  .steps = (along(j->v, cut) + WF_TILE_K - 1) / WF_TILE_K,
                  .hops = 1,
                  .rows = (int)panels(rows),
                  .columns = (int)panels(columns),
                  .c = sums,
                  .c_row = WF_TILE_BLOCK};

    if (cut > 0 && wait) {
        t.start = wait;
        t.start_row = WF_TILE_BLOCK;
    } else if (cut > 0 || p->beta == 1) {
        t.start = c;
        t.start_row = p->n;
    } else if (j->v->then & WF_PRODUCT_BIAS) {
        t.start = j->bias + column;
    }
    if (j->v->pieces > 1)
        multiply_pieces(&t, rows, columns);
    else {
        begin_sums(&t, rows, columns, sums);
        wf_tiles_multiply(&t);
    }
    if (last && j->v->then & WF_PRODUCT_RELU_GRAD)
        wf_tiles_relu_grad(sums, rows, columns, wf_factors_at(j->y, at), p->n);
    if (last && p->c_is_bf16)
        wf_tiles_move_bf16(sums, rows, columns, relu, j->v->past, (uint16_t *)j->c + at, p->n);
    else if (last || !wait)
        wf_tiles_move(sums, rows, columns, relu, last && j->v->past, c, p->n);
}

/* Blocks [begin, end) of the own side, packed at `own`, times all of the shared one. `sums`: of
 * blocks from `first` on, or NULL. */
static void multiply_blocks(const job *j, int64_t begin, int64_t end, int64_t cut, const char *own,
                            float *sums, int64_t first)
{
    const wf_product_tiles *v = j->v;
    const char *shared = shared_at(j, cut);
    int64_t two = 2 * panel_bytes(v);

    for (int64_t s = 0; s < blocks(v->shared.outer); s++)
        for (int64_t i = begin; i < end; i++) {
            const char *mine = own + (i - begin) * two, *other = shared + s * two;
            float *wait = sums ? waiting(j, sums, i - first, s) : NULL;

            if (v->own.is_b)
                multiply(j, s * WF_TILE_BLOCK, i * WF_TILE_BLOCK, cut, other, mine, wait);
            else
                multiply(j, i * WF_TILE_BLOCK, s * WF_TILE_BLOCK, cut, mine, other, wait);
        }
}

static void parts(void *arg, int64_t begin, int64_t end)
{
    const job *j = arg;
    const wf_product_tiles *v = j->v;

    wf_tiles_begin();
    for (int64_t p = begin; p < end; p++) {
        char *own = j->workspace + v->own_at + (size_t)p * v->own_bytes;
        float *sums = v->sums_at ? (float *)(void *)(own + v->sums_at) : NULL;
        int64_t first = p * v->blocks / v->parts, last = (p + 1) * v->blocks / v->parts;

        for (int64_t i = first; i < last; i += AT_A_TIME) {
            int64_t next = WF_MIN(i + AT_A_TIME, last);

            for (int64_t cut = j->cut; cut < j->end; cut++) {
                pack(j, &v->own, cut, 2 * i, WF_MIN(2 * next, panels(v->own.outer)), own);
                multiply_blocks(j, i, next, cut, own, sums, v->whole ? i : first);
            }
        }
    }
    wf_tiles_end();
}

bool wf_product_tiles_go(const wf_product_tiles *v, const wf_run *run,
                         const wf_product_operands *of)
{
    atomic_bool beyond = false;
    job j = {.v = v,
             .a = {of->a, v->p.a_is_bf16},
             .b = {of->b, v->p.b_is_bf16},
             .y = {of->y, v->p.y_is_bf16},
             .bias = of->bias,
             .c = of->c,
             .sums = v->then & WF_PRODUCT_SUMS_B ? of->sums : NULL,
             .workspace = run->workspace,
             .beyond = &beyond};
    int64_t step = v->whole ? v->cuts : 1;

    if (j.sums) /* panels are packed once for each cut, and cuts in turn */
        memset(j.sums, 0, (size_t)v->p.n * sizeof *j.sums);
    for (; j.cut < v->cuts; j.cut += step) {
        j.end = j.cut + step;
        wf_pool_for(run->pool, panels(v->shared.outer),
                    WF_MAX(panels(v->shared.outer) / v->parts, (int64_t)1), pack_shared, &j);
        wf_pool_for(run->pool, v->parts, 1, parts, &j);
    }
    return !beyond;
}

static int64_t strided_panel(int64_t k)
{
    return (k + WF_TILE_K - 1) / WF_TILE_K * WF_TILE_BYTES;
}

size_t wf_product_tiles_room(int64_t m, int64_t n, int64_t k)
{
    return (size_t)((panels(m) + panels(n)) * strided_panel(k));
}

void wf_product_tiles_strided(const wf_strided_product *p, void *room)
{
    float sums[WF_TILE_BLOCK * WF_TILE_BLOCK] WF_ALIGNED(64);
    int64_t panel = strided_panel(p->k);
    char *a = room, *b = a + panels(p->m) * panel;

    wf_tiles_pack((wf_strided){{p->a, p->a_is_bf16}, p->lda, 1},
                  p->trans_a ? WF_ACROSS_K : WF_ALONG_K, false, p->m, p->k, a, panel);
    wf_tiles_pack((wf_strided){{p->b, p->b_is_bf16}, p->ldb, 1},
                  p->trans_b ? WF_ALONG_K : WF_ACROSS_K, true, p->n, p->k, b, panel);
    for (int64_t j = 0; j < p->n; j += WF_TILE_BLOCK)
        for (int64_t i = 0; i < p->m; i += WF_TILE_BLOCK) {
            int64_t rows = WF_MIN(p->m - i, (int64_t)WF_TILE_BLOCK);
            int64_t columns = WF_MIN(p->n - j, (int64_t)WF_TILE_BLOCK);
            float *c = (float *)p->c + i * p->ldc + j;
            wf_tiles t = {.a = a + i / WF_TILE * panel,
                          .b = b + j / WF_TILE * panel,
                          .a_row = 64,
                          .a_next = panel,
                          .a_step = WF_TILE_BYTES,
                          .b_row = 64,
                          .b_next = panel,
                          .b_step = WF_TILE_BYTES,
                          .steps = panel / WF_TILE_BYTES,
                          .hops = 1,
                          .rows = (int)panels(rows),
                          .columns = (int)panels(columns),
                          .start = p->beta != 0.0 ? c : NULL,
                          .start_row = p->ldc,
                          .c = sums,
                          .c_row = WF_TILE_BLOCK};

            begin_sums(&t, rows, columns, sums);
            wf_tiles_multiply(&t);
            wf_tiles_move(sums, rows, columns, false, false, c, p->ldc);
        }
}
