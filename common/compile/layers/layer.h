/* SPDX-License-Identifier: Apache-2.0 */
/* common/compile/layers/layer.h - the layers of `model:`, one family a file; for this room only.
 *
 * Names, options, defaults and meanings are those of Keras 3 (keras/src/layers). The rows of
 * options are in common/conf/layers.c and are checked before a layer is built. A builder takes the
 * layer's inputs, emits nodes through l->e and returns what the layer gives; the first failure
 * stays in l->e, and all that is done after it gives NULL.
 *
 * Images. Keras has channels last, ONNX and the kernels have them second. A flow may hold an image
 * with its channels second while everybody speaks of it in Keras's order: wf_layer_image takes it
 * as it is, wf_layer_in turns it back. So a chain of convolutions, normalisations, activations and
 * poolings turns the image once.
 *
 * Invariants
 *   L1  a flow has the batch as its axis 0; all other extents are known and at least 1
 *   L2  a flow with channels second has 3 axes or more
 *
 * To add one: its file beside dense.c, named in ../meson.build, and its options in
 * common/conf/layers.c.
 */
#ifndef WF_COMPILE_LAYER_H
#define WF_COMPILE_LAYER_H

#include "common/base/nearest.h"
#include "common/compile/pass.h"
#include "common/conf/conf.h"
#include "common/conf/layers.h"
#include "common/graph/emit.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* What goes from layer to layer. */
typedef struct wf_flow {
    wf_value *value;      /* NULL after a failure */
    bool channels_second; /* held as [batch, channels, ...], in Keras's order [batch, ..., channels]
                           */
} wf_flow;

/* A layer that is being built. */
typedef struct wf_layer {
    wf_graph *g;
    const struct wf_model *model;
    const wf_conf_item *item; /* its type and options */
    const char *name;         /* before the names of its variables and nodes; e.hint is the same */
    uint64_t seed;
    const wf_flow *in; /* [n_in] */
    size_t n_in;
    wf_emit e;
    wf_model_facts facts; /* of all layers so far */
} wf_layer;

typedef struct wf_layer_row {
    const char *type;
    uint32_t n_in_min, n_in_max;
    wf_flow (*build)(wf_layer *l);
} wf_layer_row;

/* NULL when there is no such layer; then the hint says what to do (wf_nearest_hint). */
const wf_layer_row *wf_layer_find(const char *type, char hint[static WF_NEAREST_HINT]);

/* Ends the layer with a sentence; `return wf_layer_refuse(l, WF_USAGE, hint, "...", ...)`. */
#define wf_layer_refuse(l, status, hint, ...)                                                      \
    wf_layer_stop((l), wf_fail((l)->e.err, (status), (hint), __VA_ARGS__))
/* Keeps a failure, whose sentence is in l->e.err already. */
wf_flow wf_layer_stop(wf_layer *l, wf_status rc);

/* Input i in Keras's order, integers made float32. */
wf_value *wf_layer_in(wf_layer *l, size_t i);
/* The same of any flow, whatever its dtype. */
wf_value *wf_layer_plain(wf_layer *l, wf_flow f);
/* Input 0 as an image [batch, channels, ...] of `spatial` axes, by the option data_format; fails
 * for another number of axes. */
wf_value *wf_layer_image(wf_layer *l, uint32_t spatial);
/* What wf_layer_image took, changed, as the layer's output. */
wf_flow wf_layer_give_image(const wf_layer *l, wf_value *v);
/* An output in Keras's order. */
wf_flow wf_layer_give(wf_value *v);
/* The axis of the value that holds Keras's `axis` (may count from the end) of f; fails outside of
 * the record. -1 after that. */
int64_t wf_layer_axis(wf_layer *l, wf_flow f, int64_t axis);
/* f with its channels second, whatever the option data_format says: an image of 3 axes or more is
 * turned if need be, [batch, channels] is that already. */
wf_flow wf_layer_channels_second(wf_layer *l, wf_flow f);
/* Makes input i float32 and keeps its form. */
wf_flow wf_layer_float(wf_layer *l, size_t i);

/* A trainable variable "<layer>/<part>". Its options are "<stem>_initializer" (else `otherwise`)
 * and "<stem>_regularizer", where stem is the part without what stands before '/' and without
 * "_kernel": kernel, bias, recurrent, depthwise. fans: NULL when the shape says them. */
wf_value *wf_layer_variable(wf_layer *l, const char *part, uint32_t rank, const int64_t dims[],
                            const char *otherwise, const wf_fans *fans);
/* A trainable variable "<layer>/<part>" of rows [width] for any ids, whose first values have a
 * distribution by the option or `otherwise`: a row for each bucket, without content. */
wf_value *wf_layer_unbounded(wf_layer *l, const char *part, int64_t width, const char *otherwise);
/* The same as wf_layer_variable of any kind, with first values made here: [dims], taken. */
wf_value *wf_layer_keep(wf_layer *l, const char *part, wf_var_kind kind, wf_tensor **first);
/* First values of a variable, by its option or `otherwise`; NULL after a failure. */
wf_tensor *wf_layer_first(wf_layer *l, const char *part, uint32_t rank, const int64_t dims[],
                          const char *otherwise, const wf_fans *fans);
/* Adds "<stem>_regularizer" of v to the layer's penalty. */
void wf_layer_penalize(wf_layer *l, const char *stem, wf_value *v);
/* "activity_regularizer" of what the layer gives: its penalty for the mean record. */
void wf_layer_penalize_activity(wf_layer *l, wf_flow out);

/* f through the activation that `option` names, or `otherwise`. */
wf_flow wf_layer_activate(wf_layer *l, wf_flow f, const char *option, const char *otherwise);

/* Options. */
bool wf_layer_flag(const wf_layer *l, const char *option, bool otherwise);
/* n numbers from a list of n, or of one that is meant for all; none: `otherwise`. False, with the
 * failure kept, for another count. */
bool wf_layer_ints(wf_layer *l, const char *option, uint32_t n, int64_t otherwise, int64_t out[]);
/* Constants. */
wf_value *wf_layer_number(wf_layer *l, double value);
wf_value *wf_layer_numbers(wf_layer *l, uint32_t rank, const int64_t dims[], double value);
/* A copy of v for messages: "[batch, 4, 8]". */
const char *wf_layer_shape(wf_flow f, char *text, size_t size);

/* Windows of convolutions and poolings, by the options `size`, strides, dilation_rate, padding. */
typedef struct wf_layer_window {
    uint32_t n;
    int64_t kernel[3], stride[3], dilation[3], pads[6]; /* all before, then all after */
    wf_attr attrs[4];                                   /* of Conv; they point into this struct */
} wf_layer_window;

/* x [batch, channels, n axes]. kernel_otherwise 0: the size must be given; strides_otherwise 0: as
 * the size. Fails where the window does not fit into x. */
bool wf_layer_read_window(wf_layer *l, const wf_value *x, uint32_t n, const char *size,
                          int64_t kernel_otherwise, int64_t strides_otherwise, wf_layer_window *w);

/* How many axes the type's name says: "conv2d" has 2. */
uint32_t wf_layer_spatial(const wf_layer *l);

#endif
