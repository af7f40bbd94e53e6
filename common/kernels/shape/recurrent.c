/* SPDX-License-Identifier: Apache-2.0 */
/* common/kernels/shape/recurrent.c */
#include "common/kernels/shape/recurrent.h"
#include "common/graph/op.h"

#include <inttypes.h>
#include <string.h>

wf_recurrent_args wf_recurrent_args_of(wf_recurrent_kind kind, const wf_tensor *const in[])
{
    bool lstm = kind == WF_LSTM;

    return (wf_recurrent_args){.x = in[0],
                               .w = in[1],
                               .r = in[2],
                               .b = in[3],
                               .lens = in[4],
                               .h0 = in[5],
                               .c0 = lstm ? in[6] : NULL,
                               .p = lstm ? in[7] : NULL};
}

/* LSTM: dY, dY_h, dY_c, X, W, R, B, lens, h0, c0, P, Y, gates, cells
 *   -> dX, dW, dR, dB, dh0, dc0, dP.
 * GRU, RNN: dY, dY_h, X, W, R, B, lens, h0, Y, gates, resets -> dX, dW, dR, dB, dh0. */
wf_recurrent_args wf_recurrent_grad_args(wf_recurrent_kind kind, uint32_t n_in,
                                         const wf_tensor *const in[])
{
    uint32_t x = kind == WF_LSTM ? 3 : 2, y = kind == WF_LSTM ? 11 : 8;
    wf_recurrent_args a = {.dy = in[0],
                           .dyh = in[1],
                           .x = in[x],
                           .w = in[x + 1],
                           .r = in[x + 2],
                           .b = in[x + 3],
                           .lens = in[x + 4],
                           .h0 = in[x + 5],
                           .y = in[y]};

    if (kind == WF_LSTM) {
        a.dyc = in[2];
        a.c0 = in[9];
        a.p = in[10];
    }
    if (n_in > y + 2) {
        a.gates = in[y + 1];
        a.beside = in[y + 2];
    }
    return a;
}

/* A tensor has these dims; an absent one does. */
static bool fits(const wf_tensor *t, uint32_t rank, int64_t a, int64_t b, int64_t c, int64_t d)
{
    const int64_t dims[] = {a, b, c, d};

    return !t || (t->rank == rank && memcmp(t->dims, dims, rank * sizeof dims[0]) == 0);
}

static bool state_fits(const wf_recurrent_sizes *s, const wf_tensor *t)
{
    return s->batch_first ? fits(t, 3, s->batch, s->dirs, s->hidden, 0)
                          : fits(t, 3, s->dirs, s->batch, s->hidden, 0);
}

static bool y_fits(const wf_recurrent_sizes *s, const wf_tensor *t)
{
    return s->batch_first ? fits(t, 4, s->batch, s->steps, s->dirs, s->hidden)
                          : fits(t, 4, s->steps, s->dirs, s->batch, s->hidden);
}

static wf_status check(wf_recurrent_sizes *s, const wf_recurrent_args *a, wf_err *err)
{
    int64_t n;

    if (a->x->rank != 3 || a->w->rank != 3 || a->r->rank != 3)
        return wf_fail(err, WF_SHAPE, NULL, "X, W and R must have three axes");
    s->steps = a->x->dims[s->batch_first ? 1 : 0];
    s->batch = a->x->dims[s->batch_first ? 0 : 1];
    s->input = a->x->dims[2];
    s->dirs = a->w->dims[0];
    s->hidden = a->r->dims[2];
    n = s->gates * s->hidden;
    if (!fits(a->w, 3, s->dirs, n, s->input, 0) || !fits(a->r, 3, s->dirs, n, s->hidden, 0) ||
        !fits(a->b, 2, s->dirs, 2 * n, 0, 0) || !fits(a->lens, 1, s->batch, 0, 0, 0) ||
        !fits(a->p, 2, s->dirs, 3 * s->hidden, 0, 0) || !state_fits(s, a->h0) ||
        !state_fits(s, a->c0) || !state_fits(s, a->dyh) || !state_fits(s, a->dyc) ||
        !y_fits(s, a->y) || !y_fits(s, a->dy) ||
        !fits(a->gates, 4, s->dirs, s->steps, s->batch, n) ||
        !fits(a->beside, 4, s->dirs, s->steps, s->batch, s->hidden))
        return wf_fail(err, WF_SHAPE, NULL,
                       "X, W, R, B, sequence_lens and the states do not fit each other");
    if (s->steps > INT32_MAX || s->batch > INT32_MAX || s->steps * s->batch > INT32_MAX ||
        n > INT32_MAX || s->input > INT32_MAX)
        return wf_fail(err, WF_UNSUPPORTED, NULL,
                       "steps times batch, gates and inputs must each stay below 2^31");
    return WF_OK;
}

static void read_attributes(const wf_node *n, wf_recurrent_sizes *s)
{
    const wf_attr *activations = wf_node_attr(n, "activations");
    const char *direction = wf_node_string(n, "direction", "forward");

    s->batch_first = wf_node_int(n, "layout", 0) != 0;
    s->linear = wf_node_int(n, "linear_before_reset", 0) != 0;
    s->clip = (double)wf_node_float(n, "clip", 0);
    s->reverse[0] = strcmp(direction, "reverse") == 0;
    s->reverse[1] = true;
    for (size_t i = 0; s->kind == WF_RNN && activations && i < activations->n && i < 2; i++)
        s->relu[i] = activations->strings[i][0] == 'R' || activations->strings[i][0] == 'r';
}

static wf_status make(const wf_node *n, const wf_recurrent_args *a, wf_recurrent_sizes *s,
                      wf_err *err)
{
    const char *direction = wf_node_string(n, "direction", "forward");

    s->gates = s->kind == WF_LSTM ? 4 : s->kind == WF_GRU ? 3 : 1;
    s->dtype = a->x->dtype;
    s->size = wf_dtype_size(s->dtype);
    read_attributes(n, s);
    WF_TRY(check(s, a, err));
    if (s->dirs != (strcmp(direction, "bidirectional") ? 1 : 2))
        return wf_fail(err, WF_SHAPE, NULL, "W has %" PRId64 " directions", s->dirs);
    return WF_OK;
}

static wf_recurrent_kind kind_of(const wf_node *n)
{
    char first = n->op->name[0];

    return first == 'L' ? WF_LSTM : first == 'G' ? WF_GRU : WF_RNN;
}

wf_status wf_recurrent_sizes_of(const wf_node *n, const wf_tensor *const in[],
                                const wf_tensor *const out[], wf_recurrent_sizes *s, wf_err *err)
{
    wf_recurrent_args a;

    *s = (wf_recurrent_sizes){.kind = kind_of(n)};
    a = wf_recurrent_args_of(s->kind, in);
    s->keeps = strcmp(n->op->domain, WF_DOMAIN_WEFT) == 0;
    if (s->keeps) {
        a.gates = out[s->kind == WF_LSTM ? 3 : 2];
        a.beside = out[s->kind == WF_LSTM ? 4 : 3];
        if (!a.gates || !a.beside)
            return wf_fail(err, WF_UNSUPPORTED, NULL, "both outputs that are kept must be taken");
    }
    return make(n, &a, s, err);
}

wf_status wf_recurrent_grad_sizes_of(const wf_node *n, const wf_tensor *const in[],
                                     wf_recurrent_sizes *s, wf_err *err)
{
    wf_recurrent_args a;

    *s = (wf_recurrent_sizes){.kind = kind_of(n)};
    a = wf_recurrent_grad_args(s->kind, n->n_in, in);
    WF_TRY(make(n, &a, s, err));
    /* What an RNN without bounds gives tells its slope, and so do gates that were kept. */
    s->again = !a.gates && (s->kind != WF_RNN || s->clip > 0);
    return WF_OK;
}
