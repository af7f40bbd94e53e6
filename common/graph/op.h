/* SPDX-License-Identifier: Apache-2.0 */
/* common/graph/op.h - what the graph knows about one operation. No data, no device.
 *
 * One const row per operation, in common/graph/ops/NAME.c; the table is made from the list in
 * common/graph/ops/meson.build. Kernels register apart from this, in common/kernels.
 *
 * weft's own operations, domain ai.weft; (x) in brackets may be absent:
 *
 *   Pull() -> value
 *      attr variable: its name. The output has the type that its maker gave it
 *   Push(gradient) ->
 *      attr variable
 *   Chain(x1, ... xn) -> y
 *      attrs steps (names of elementwise operations), args (two operands for each: an input, or
 *      n + i for the result of step i; -1: none); common/graph/chain.h
 *   Choose(condition, a1, ... an, b1, ... bn) -> y1, ... yn
 *      a where the condition, one bool, is true, and b otherwise: what stands for an If
 *   DotAttention(q, k, v, (mask)) -> y; DotAttentionGrad(dy, q, k, v, (mask)) -> dq, dk, dv
 *      attrs scale = 1, fill = -inf, transK = 0: softmax(scale q k^T, masked) v over the last two
 *      axes, q [..., t, d], k [..., s, d], or [..., d, s] with transK, v [..., s, e]. The mask
 *      broadcasts to [..., t, s]: true where the score is fill, or numbers that are added
 *   Linear(x, W, (bias)) -> y
 *      attrs activation = "" or "Relu", transB = 0: activation(x W + bias), W a matrix, bias a row
 *   Product(a, b) -> y
 *      attrs transA = 0, transB = 0: MatMul of matrices, with their last two axes exchanged
 *   SumToLike(x, ref) -> as ref
 *      sums the axes along which ref was broadcast to x; of ref only the shape is read
 *   Training() -> bool []
 *      whether the graph trains; the compiler takes it out
 *   ReluGrad(dy, y), SigmoidGrad(dy, y), TanhGrad(dy, y) -> dx
 *      y is the forward output
 *   CeluGrad, EluGrad, GeluGrad, HardSigmoidGrad, HardSwishGrad, LeakyReluGrad, MishGrad, SeluGrad,
 *   ShrinkGrad, SoftplusGrad, SoftsignGrad, SwishGrad, ThresholdedReluGrad, each (dy, x) -> dx
 *      x is the forward input, and the attributes are the forward operation's
 *   SoftmaxGrad(dy, y), LogSoftmaxGrad(dy, y) -> dx
 *      attr axis = -1
 *   SoftmaxCrossEntropyGrad(dloss, log_prob, labels, (weights)) -> dscores, as log_prob
 *      attrs ignore_index (none when absent), reduction = "mean"; dloss is a scalar, or as
 *      labels for "none"
 *   NegativeLogLikelihoodLossGrad(dloss, input, labels, (weights)) -> dinput
 *      the same attrs; of input only the shape is read
 *   GatherGrad(dy, ids, data) -> as data
 *      attr axis = 0; adds up where ids repeat; negative ids count from the end; of data only the
 *      shape is read
 *   SliceGrad(dy, x, starts, ends, (axes), (steps)) -> as x
 *      zeros, and dy where Slice took from; of x only the shape is read
 *   GatherNDGrad(dy, ids, data) -> as data
 *      attr batch_dims = 0; zeros, and dy added where GatherND took from; of data only the shape is
 *      read
 *   TileGrad(dy, x) -> as x
 *      dy's copies of each element of x, added up; of x only the shape is read
 *   PadGrad(dy, x, pads, (axes)) -> as x
 *      attr mode; dy added where Pad took from; of x only the shape is read
 *   DepthToSpaceGrad(dy) -> dx
 *      attrs blocksize, mode = "DCR": dy's elements where DepthToSpace took them from
 *   GridSampleGrad(dy, x, grid) -> dx, (dgrid)
 *      attrs mode, padding_mode, align_corners: the gradient of GridSample by both
 *   DropoutGrad(dy, mask, (ratio), (training_mode)) -> dx
 *      mask ? dy / (1 - ratio) : 0; dy itself when training_mode is false or absent
 *   CorrectCount(scores, labels) -> int64 []
 *      scores [n, classes], labels [n]: rows whose largest score, the first of equals, is the
 *      label's; with attr k, rows in which fewer than k scores are above the label's. With attr
 *      threshold, scores [n] or [n, 1]: rows where (score > threshold) equals (label > 0.5)
 *   ScoreKeys(scores, labels) -> int64, as scores
 *      for a histogram of scores by class: 2 b + (label > 0.5), where b is the bin of the score's
 *      logit, or of the score itself with attr logits = 1: the leading 24 bits of its f32, in an
 *      order that ascends with the number
 *   SigmoidCrossEntropy(logits, labels) -> loss
 *      attr reduction = "mean", "sum" or "none"; labels broadcast to logits;
 *      max(x, 0) - x z + log(1 + exp(-|x|))
 *   SigmoidCrossEntropyGrad(dloss, logits, labels) -> dlogits
 *      the same attr; (sigmoid(x) - z) dloss, divided by the number of logits for "mean"
 *   ConvDataGrad(dy, W, X) -> dX; ConvWeightGrad(dy, X, W) -> dW
 *      Conv's attrs; of the last input only the shape is read
 *   ConvTransposeDataGrad(dy, W, X) -> dX; ConvTransposeWeightGrad(dy, X, W) -> dW
 *      ConvTranspose's attrs; the same
 *   AveragePoolGrad(dy, x), MaxPoolGrad(dy, x, y), LpPoolGrad(dy, x, y) -> dx
 *      the pooling's attrs; without kernel_shape the window is the whole of the input. MaxPoolGrad
 *      gives dy to the first element of a window that equals y
 *   BatchNormalizationTrain(x, scale, bias) -> y, (mean), (var)
 *      attr epsilon = 1e-5; by the batch's own mean and (population) variance, which are given
 *   BatchNormalizationGrad(dy, x, scale, (mean), (var)) -> dx, (dscale), (dbias)
 *      attrs epsilon, training_mode = 0: by the given values; 1: by those of the batch, worked out
 *      when they are absent
 *   GroupNormalizationGrad(dy, x, scale) -> dx, (dscale), (dbias)
 *      attrs epsilon, num_groups (as many as channels when absent)
 *   LayerNormalizationGrad(dy, x, scale) -> dx, (dscale), (dbias)
 *   RMSNormalizationGrad(dy, x, scale) -> dx, (dscale)
 *      attrs axis = -1, epsilon = 1e-5
 *   LSTMGrad((dY), (dY_h), (dY_c), X, W, R, (B), (lens), (h0), (c0), (P), Y, (gates), (cells))
 *      -> dX, dW, dR, dB, dh0, dc0, dP
 *   GRUGrad((dY), (dY_h), X, W, R, (B), (lens), (h0), Y, (gates), (resets)) -> dX, dW, dR, dB, dh0
 *   RNNGrad((dY), (dY_h), X, W, R, (B), (lens), (h0), Y) -> dX, dW, dR, dB, dh0
 *      the operation's attrs; any output may be left out
 *   LSTMKeep(X, W, R, ...) -> Y, (Y_h), (Y_c), gates, cells; GRUKeep -> Y, (Y_h), gates, resets
 *      LSTM and GRU that keep for their gradients what these would work out again: activations, and
 *      cells or what gate r gives (linear_before_reset: takes), zero behind a row's end; no clip
 *   LRNGrad(dy, x) -> dx
 *      LRN's attrs
 *   ResizeGrad(dy, x, (roi), (scales), (sizes)) -> dx
 *      Resize's attrs; of x only the shape is read
 */
#ifndef WF_GRAPH_OP_H
#define WF_GRAPH_OP_H

#include "common/graph/graph.h"
#include <stdbool.h>
#include <stdint.h>

typedef struct wf_grads wf_grads; /* emit.h */

enum { WF_ANY_NUMBER = 255 }; /* n_in_max or n_out_max without limit (Concat) */

typedef enum wf_op_flag {
    WF_OP_ELEMENTWISE = 1, /* output element i depends on input elements i (broadcast) alone */
    WF_OP_STATEFUL = 2,    /* must run once per step, in order: never merged or folded */
    WF_OP_RANDOM = 4,    /* draws from (seed, node, epoch, split, batch): never merged or folded */
    WF_OP_FOLDABLE = 8,  /* may be computed at compile time when all inputs are constant */
} wf_op_flag;

/* One attribute that the operation knows. Others in a file are an error that names the nearest. */
typedef struct wf_attr_row {
    const char *name;
    wf_attr_kind kind;
    bool required;
} wf_attr_row;

struct wf_op {
    const char *name, *domain;
    uint8_t since; /* the opset version of this form of the operation (docs/operators.md) */
    uint8_t n_in_min, n_in_max, n_out_min, n_out_max;
    uint32_t flags;           /* wf_op_flag */
    const char *note;         /* what is refused, for docs/operators.md; NULL: nothing */
    uint32_t no_grad_in;      /* bit i: input i carries no gradient by definition (axes, labels) */
    const wf_attr_row *attrs; /* ends with a NULL name; NULL: none */
    /* dtype and axes (and known content of small integers) of the outputs from those of the inputs.
     * An unknown input rank gives unknown outputs, not an error. */
    wf_status (*infer)(wf_graph *g, wf_node *n, wf_err *err);
    /* Adds the nodes that turn d loss/d outputs into d loss/d inputs. NULL: not differentiable. */
    wf_status (*grad)(wf_grads *grads, const wf_node *n, wf_err *err);
    /* Brings a node as another opset `from`, 7 to 25, has it to the form of WF_OPSET (attributes
     * that became inputs, and so on), or NULL when it means the same in all of them. Errors:
     * WF_UNSUPPORTED. */
    wf_status (*upgrade)(wf_graph *g, wf_node *n, int64_t from, wf_err *err);
};

/* True when input i never carries a gradient, whatever its dtype. */
static inline bool wf_op_cuts_grad(const wf_op *op, uint32_t i)
{
    return i < 32 && (op->no_grad_in >> i & 1u);
}

/* NULL when weft has no such operation. Domain "ai.onnx" is "". */
const wf_op *wf_op_find(const char *domain, const char *name);
/* The registered operation with the nearest name, or NULL: for "did you mean". */
const char *wf_op_nearest(const char *name);
/* Row i of the table, NULL past its end; for documentation and table-driven tests. */
const wf_op *wf_op_at(size_t i);

#endif
