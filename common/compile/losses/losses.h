/* SPDX-License-Identifier: Apache-2.0 */
/* common/compile/losses/losses.h - the loss functions, one file and row each; for this room only.
 *
 * Names, options and definitions are those of Keras 3 (keras/src/losses/losses.py), reduction
 * "sum_over_batch_size": the sum of the values, each times its example's weight, divided by their
 * number. A row says what it compares and gives a value for each label; loss.c makes one number of
 * them. A function that has nothing to say of its own but a formula is its `values` alone.
 *
 * from_logits auto: when the row's activation (Softmax, Sigmoid) makes the prediction, the loss
 * reads what goes into it and not what comes out, and is computed in the form that no logit can
 * overflow; a prediction that another activation makes a probability is one, and any other is taken
 * for logits. Probabilities without such a node are held away from 0 and 1 by 1e-7, as Keras does.
 *
 * To add one: its file beside mean_squared_error.c, named in ../meson.build.
 */
#ifndef WF_COMPILE_LOSSES_H
#define WF_COMPILE_LOSSES_H

#include "common/base/nearest.h"
#include "common/compile/pass.h"
#include "common/conf/layers.h"
#include "common/graph/emit.h"
#include <stdbool.h>

typedef struct wf_loss_row {
    const char *name;
    const char *aliases[3];
    wf_loss_kind kind;
    bool margin;                  /* scores know no bounds, with the border at 0, as logits */
    const char *activation;       /* "Softmax" or "Sigmoid" when it may read logits; else NULL */
    const wf_option_row *options; /* ends with a NULL name; NULL: none */
    /* A value for each label, or for each number of a label of many: g->scores' shape or one that
     * lacks its last axis. */
    wf_value *(*values)(wf_emit *e, const wf_goal *g);
    /* The mean of all values in one operation, or NULL; of goals that weigh nothing. */
    wf_value *(*mean)(wf_emit *e, const wf_goal *g);
} wf_loss_row;

/* NULL when there is no such function. */
const wf_loss_row *wf_loss_find(const char *name);
/* What to do about an unknown name: the nearest, or how to see all (wf_nearest_hint). */
const char *wf_loss_hint(const char *name, char hint[static WF_NEAREST_HINT]);
/* Row i of the table, NULL past its end. */
const wf_loss_row *wf_loss_at(size_t i);

/* Whether two names are one in Keras's ways of writing them: mean_squared_error, MeanSquaredError;
 * mse, MSE. */
bool wf_same_name(const char *a, const char *b);
/* "delta, gamma": the names of options. */
void wf_option_names(const wf_option_row *options, char *text, size_t size);

/* What the rows share. */
#define WF_LOSS_FROM_LOGITS                                                                        \
    {                                                                                              \
        .name = "from_logits", .kind = WF_CONF_TEXT, .choice = wf_loss_logits_words                \
    }
#define WF_LOSS_NUMBER(name_, least_, most_)                                                       \
    {                                                                                              \
        .name = (name_), .kind = WF_CONF_NUMBER, .least = (least_), .most = (most_)                \
    }
extern const char *const wf_loss_logits_words[];

/* An option of the goal's function, or `otherwise`. */
double wf_goal_number(const wf_goal *g, const char *name, double otherwise);
/* Scores of probabilities held away from 0 and 1, where a log or its slope would not be finite. */
wf_value *wf_loss_clipped(wf_emit *e, wf_value *p);
/* The same, of classes: made to add up to 1 along the last axis before. */
wf_value *wf_loss_class_probabilities(wf_emit *e, wf_value *p);
/* Labels with `label_smoothing`: y (1 - s) + s * even. */
wf_value *wf_loss_smoothed(wf_emit *e, const wf_goal *g, double even);
/* scores - labels. */
wf_value *wf_loss_difference(wf_emit *e, const wf_goal *g);
/* Labels of 0 and 1 as -1 and 1. */
wf_value *wf_loss_signs(wf_emit *e, const wf_goal *g);
/* -log p of each label for binary labels; by logits in the stable form. */
wf_value *wf_loss_binary_values(wf_emit *e, const wf_goal *g);
/* SPARSE: scores as [rows, classes] and labels as [rows]; the goal's own where they are that. */
void wf_goal_rows(wf_emit *e, const wf_goal *g, wf_value **scores, wf_value **labels);
/* The number of classes along the scores' axis for them; -1 when it is not fixed. */
int64_t wf_goal_classes(const wf_goal *g);

/* Finds or makes the labels' feed of a goal whose scores are known. */
WF_MUST_USE wf_status wf_goal_find_labels(wf_unit *u, wf_goal *g, wf_err *err);
/* Sets g->weights from the spec's sample_weights, or in training from its class_weights, if they
 * name any. */
WF_MUST_USE wf_status wf_goal_find_weights(wf_unit *u, wf_goal *g, wf_err *err);

#endif
