/* SPDX-License-Identifier: Apache-2.0 */
/* common/conf/layers.h - the layers, map steps and callbacks that a job file may name, with their
 * options.
 *
 * Names and options are Keras's. One table row each: the parser types and bounds by it, and the
 * compiler may rely on it: an option that arrives is known, of its kind and within its bounds, and
 * a required one is there. Layers with their options and defaults are in docs/jobs.md; what they
 * mean is common/compile/layers. Initializers and regularizers are options that have options.
 *
 * Map steps:
 *   scale       factor (number, required)
 *   reshape     shape (ints, required)
 *   one_hot     classes (1..2^24, required)
 *   cast        dtype (text, required)
 *   standardise, log1p
 *   fill        value (number, required)
 *   clip        bounds (one number or two, ascending, required)
 *   hash        bins (1..2^24), columns (shared, separate)
 *   vocabulary  vocabulary (1..2^20, or a path; required)
 *   text_vectorization
 *               max_tokens (3..2^20 + 2), standardize (lower_and_strip_punctuation, lower,
 *               strip_punctuation, none), split (whitespace, character, bytes),
 *               output_sequence_length (1..2^16), vocabulary (a path), hash (2..2^24)
 *   bucketise   bin_boundaries (numbers, ascending, required)
 *   resize      size (ints, required)
 *   crop        size (ints, required), padding
 *   flip        direction (horizontal, vertical)
 *
 *   early_stopping        monitor (val_loss), min_delta, patience, mode, baseline,
 *                         restore_best_weights, start_from_epoch
 *   reduce_lr_on_plateau  monitor (val_loss), factor, patience, mode, min_delta, cooldown, min_lr
 *   model_checkpoint      monitor (val_loss), mode, save_best_only
 *
 * The short form `- dropout: 0.5` gives the first required option, or the first of all where none
 * is required and it is no name; `- flatten` gives none.
 */
#ifndef WF_CONF_LAYERS_H
#define WF_CONF_LAYERS_H

#include "common/conf/conf.h"
#include <stdbool.h>
#include <stddef.h>

struct wf_item_row;

typedef struct wf_option_row {
    const char *name;
    wf_conf_kind kind;
    bool required;
    bool pairs;                /* of WF_CONF_INTS: one may be a list, whose numbers count */
    double least, most;        /* of WF_CONF_INT, _INTS, _NUMBER, _NUMBERS and _INT_OR_PATH */
    const char *const *choice; /* of WF_CONF_TEXT and _INT_OR_WORD: ends with NULL; NULL: any */
    const struct wf_item_row *items; /* of WF_CONF_ITEM: what it may be */
} wf_option_row;

typedef struct wf_item_row {
    const char *type;
    const wf_option_row *options; /* ends with a NULL name; NULL in a row whose type is known and
                                   * not built yet */
} wf_item_row;

/* Each ends with a NULL type. */
extern const wf_item_row wf_layer_rows[];
extern const wf_item_row wf_initializer_rows[];
extern const wf_item_row wf_regularizer_rows[];
extern const wf_item_row wf_step_rows[];
extern const wf_item_row wf_callback_rows[];

#endif
