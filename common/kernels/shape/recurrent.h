/* SPDX-License-Identifier: Apache-2.0 */
/* common/kernels/shape/recurrent.h - sizes and operands of LSTM, GRU, RNN, their Keep forms and
 * their gradients, for kernels of any device.
 *
 * A row takes part in a step while the step lies inside its sequence_lens: the reverse direction
 * begins at a row's last element, and what lies behind it is zero in Y.
 */
#ifndef WF_KERNELS_SHAPE_RECURRENT_H
#define WF_KERNELS_SHAPE_RECURRENT_H

#include "common/base/cc.h"
#include "common/base/status.h"
#include "common/graph/graph.h"
#include "common/tensor/tensor.h"
#include <stdbool.h>
#include <stdint.h>

typedef enum wf_recurrent_kind { WF_RNN, WF_GRU, WF_LSTM } wf_recurrent_kind;

typedef struct wf_recurrent_sizes {
    wf_recurrent_kind kind;
    wf_dtype dtype;
    size_t size; /* of an element */
    int64_t steps, batch, input, hidden, dirs, gates;
    bool batch_first, linear, relu[2], reverse[2];
    bool keeps; /* on the way there: gates and beside are outputs */
    bool again; /* on the way back: the activations must be worked out again */
    double clip;
} wf_recurrent_sizes;

/* A node's tensors, NULL when absent; back: what is made has a d in front. `gates` and `beside`
 * [dirs, steps, batch, ...] are what the forward kept, for a gradient that takes it. */
typedef struct wf_recurrent_args {
    const wf_tensor *x, *w, *r, *b, *lens, *h0, *c0, *p, *y, *dy, *dyh, *dyc, *gates, *beside;
} wf_recurrent_args;

/* The inputs of a node, and of a gradient's. */
wf_recurrent_args wf_recurrent_args_of(wf_recurrent_kind kind, const wf_tensor *const in[]);
wf_recurrent_args wf_recurrent_grad_args(wf_recurrent_kind kind, uint32_t n_in,
                                         const wf_tensor *const in[]);

/* The sizes of a node, and of a gradient's. Errors: WF_SHAPE when tensors do not fit each other;
 * WF_UNSUPPORTED. */
WF_MUST_USE wf_status wf_recurrent_sizes_of(const wf_node *n, const wf_tensor *const in[],
                                            const wf_tensor *const out[], wf_recurrent_sizes *s,
                                            wf_err *err);
WF_MUST_USE wf_status wf_recurrent_grad_sizes_of(const wf_node *n, const wf_tensor *const in[],
                                                 wf_recurrent_sizes *s, wf_err *err);

/* Whether gate h is worked out after the others, since gate r goes through R with the state. */
static inline bool wf_recurrent_two(const wf_recurrent_sizes *s)
{
    return s->kind == WF_GRU && !s->linear;
}

/* The t before t in a row of len elements, or -1 at its beginning. */
WF_ALSO_GPU static inline int64_t wf_recurrent_earlier(bool reverse, int64_t t, int64_t len)
{
    if (reverse)
        return t + 1 < len ? t + 1 : -1;
    return t - 1;
}

#endif
