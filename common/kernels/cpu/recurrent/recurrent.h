/* SPDX-License-Identifier: Apache-2.0 */
/* common/kernels/cpu/recurrent/recurrent.h - what the two ways through LSTM, GRU and RNN share:
 * sizes, where things lie in the workspace, and the products. For the files recurrent*.c.
 *
 * Rows of a batch do not depend on each other. They are cut into parts, and a part goes through all
 * steps on one thread without waiting for another; only the products over the whole sequence are
 * split otherwise.
 */
#ifndef WF_KERNELS_CPU_RECURRENT_H
#define WF_KERNELS_CPU_RECURRENT_H

#include "common/kernels/cpu/product/packed.h"
#include "common/kernels/cpu/product/product.h"
#include "common/kernels/cpu/recurrent/recurrent_cells.h"
#include "common/kernels/kernel.h"
#include "common/kernels/shape/recurrent.h"

/* Where the arrays of the workspace begin, in elements. */
typedef struct wf_recurrent_rooms {
    size_t x, dx;                    /* [steps batch, input]: batch-first files only */
    size_t gates, slope, dgates, dr; /* [steps batch, gates hidden] */
    size_t before;                   /* [steps batch, hidden] */
    size_t beside; /* [steps batch, hidden]; GRU alone, and kept: [batch, hidden] */
    size_t h, cell, dh, dc, product, direct; /* [batch, hidden] */
    size_t one;                              /* [batch, gates hidden] */
    size_t bias;                             /* [gates hidden] */
    size_t lens;                             /* [batch] int64 */
    size_t end;
} wf_recurrent_rooms;

typedef struct wf_recurrent {
    wf_recurrent_sizes of;
    int64_t share; /* rows of the batch in a part, but the last */
    int64_t parts;
    bool thin; /* the products by W are those of each step */
    wf_recurrent_rooms at;
    size_t rooms_at; /* bytes of workspace before them, which the products use */
    /* NULL where the operation has no such product, or when the way does not need it. Of the
     * input's part and dx there is the product over the whole sequence, or that of each step: while
     * a step's rows are in cache, where the library is as fast with few rows. */
    wf_product_way *input_way, *dx, *dx_more, *dw, *dr; /* over the whole sequence */
    wf_packed *state, *reset;                           /* of each step, by R */
    wf_packed *input_step, *dx_step;                    /* and by W */
    wf_packed *state_back, *reset_back;
} wf_recurrent;

typedef struct wf_recurrent_job {
    const wf_recurrent *v;
    const wf_recurrent_args *a;
    const wf_run *run;
    int64_t dir;
    wf_tensor *y, *yh, *yc; /* forward's outputs, NULL when they are not wanted */
    const char *x;          /* time first */
    const char *bias;       /* the biases that are only added, [gates hidden] */
    char *dx;               /* time first */
    /* Of this direction, [steps batch, ...]: the activations; the cells of LSTM, or what the
     * product with gate h of R takes (GRU) or gives (GRU, linear), NULL when nobody keeps it; the
     * derivatives of the activations, NULL when these tell them. */
    char *gates, *beside, *slope;
} wf_recurrent_job;

static inline char *wf_recurrent_at(const wf_recurrent_job *j, size_t room, int64_t elem)
{
    return (char *)j->run->workspace + j->v->rooms_at + (room + (size_t)elem) * j->v->of.size;
}

static inline int64_t *wf_recurrent_lens(const wf_recurrent_job *j)
{
    return (int64_t *)(void *)wf_recurrent_at(j, j->v->at.lens, 0);
}

/* Element `elem` of direction dir's part of a parameter; NULL when it is absent. */
char *wf_recurrent_part(const wf_recurrent_job *j, const wf_tensor *t, int64_t per_dir,
                        int64_t elem);
/* Row b of a state [dirs, batch, hidden], or batch first. */
char *wf_recurrent_state_row(const wf_recurrent_job *j, const wf_tensor *t, int64_t b);
/* Row (t, b) of Y [steps, dirs, batch, hidden], or [batch, steps, dirs, hidden]. */
char *wf_recurrent_y_row(const wf_recurrent_job *j, const wf_tensor *y, int64_t t, int64_t b);
/* The t of step s; the t before t in a row of len elements, or -1 at its beginning. */
int64_t wf_recurrent_time(const wf_recurrent_job *j, int64_t s);
int64_t wf_recurrent_before(const wf_recurrent_job *j, int64_t t, int64_t len);
/* The arrays of row (t, b) that both ways have. */
wf_cell wf_recurrent_cell(const wf_recurrent_job *j, int64_t t, int64_t b);

/* sequence_lens into the workspace, and x with time first. Errors: WF_INVALID. */
WF_MUST_USE wf_status wf_recurrent_begin(wf_recurrent_job *j, wf_err *err);
/* The initial states of rows [begin, end) into h and cell. */
void wf_recurrent_begin_states(const wf_recurrent_job *j, int64_t begin, int64_t end);
/* All steps of one direction, into y, yh, yc, gates and beside, as far as they are there. */
void wf_recurrent_forward(wf_recurrent_job *j);

/* All arrays of row (t, b) on the way back. */
wf_cell wf_recurrent_back_row(const wf_recurrent_job *j, int64_t t, int64_t b);
/* The gradients of one direction from those of its gates, as far as they are wanted; out as in the
 * node. */
void wf_recurrent_put_grads(const wf_recurrent_job *j, wf_tensor *const out[]);

wf_run_fn wf_recurrent_run, wf_recurrent_run_grad;

#endif
