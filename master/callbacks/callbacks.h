/* SPDX-License-Identifier: Apache-2.0 */
/* master/callbacks/callbacks.h - what follows from an evaluation: stop, another learning rate, a
 * checkpoint.
 *
 * Keras 3's EarlyStopping, ReduceLROnPlateau and ModelCheckpoint, with its options, defaults and
 * order of comparisons. They see metrics of the evaluation only ("val_loss"): what a training batch
 * gives depends on who trained it when. No clock, no I/O: an epoch's metrics go in, a decision
 * comes out, and all that is remembered is in the state, which goes into the journal and into every
 * checkpoint as named numbers.
 */
#ifndef WF_MASTER_CALLBACKS_CALLBACKS_H
#define WF_MASTER_CALLBACKS_CALLBACKS_H

#include "common/base/status.h"
#include "common/conf/conf.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef enum wf_callback_kind {
    WF_CALLBACK_STOP = 1, /* early_stopping */
    WF_CALLBACK_RATE,     /* reduce_lr_on_plateau */
    WF_CALLBACK_SAVE      /* model_checkpoint */
} wf_callback_kind;

typedef struct wf_callback {
    wf_callback_kind kind;
    char metric[64]; /* of the evaluation: "loss" for val_loss */
    bool larger_is_better;
    double min_delta, baseline; /* baseline NaN: none */
    double factor, min_rate;
    uint32_t patience, cooldown, start_from_epoch;
    bool restore_best, best_only;
} wf_callback;

typedef struct wf_callbacks {
    wf_callback rows[WF_CONF_MAX_CALLBACKS];
    uint32_t n;
    double rate;     /* the learning rate of the job file */
    uint64_t epochs; /* its epochs */
} wf_callbacks;

typedef struct wf_callbacks_state {
    struct wf_callback_state {
        bool any; /* there is a best value */
        double best;
        uint32_t wait, cooldown;
    } each[WF_CONF_MAX_CALLBACKS];
    double rate;       /* the learning rate now; 0: that of the job file */
    double configured; /* that of the job file when `rate` was chosen */
    /* No epoch follows: the epochs that the job file had then. With another number of them a
     * finished job is taken up again. */
    uint64_t stopped;
    bool save;          /* the end of this epoch wants a checkpoint, which has not been made yet */
    bool best;          /* and that one is the best so far */
    uint64_t best_step; /* 1 + the step of the best checkpoint; 0: none */
    uint32_t best_epoch;
} wf_callbacks_state;

typedef struct wf_callbacks_metric {
    const char *name;
    double value;
} wf_callbacks_metric;

/* Reads a job's callbacks. `metrics` [n_metrics] are the names that its evaluation gives; `rate` is
 * its constant learning rate, or NaN under a schedule. Errors: WF_USAGE, WF_UNSUPPORTED with file
 * and line. */
WF_MUST_USE wf_status wf_callbacks_init(wf_callbacks *c, const wf_job_conf *job,
                                        const char *const metrics[], size_t n_metrics, double rate,
                                        wf_err *err);

/* An epoch (from 0) was evaluated: moves the state on. `said` gets a sentence for each decision,
 * "" for none, lines divided by newlines. */
void wf_callbacks_step(const wf_callbacks *c, wf_callbacks_state *s, uint32_t epoch,
                       const wf_callbacks_metric metrics[], size_t n, char *said, size_t size);

/* The checkpoint that the state wanted is made, at `step` of `epoch`; or could not be. */
void wf_callbacks_saved(wf_callbacks_state *s, uint64_t step, uint32_t epoch);
void wf_callbacks_not_saved(wf_callbacks_state *s);
/* The job is at its end after `epoch`, and is to end with the weights of another: of best_step - 1.
 */
bool wf_callbacks_restores(const wf_callbacks *c, const wf_callbacks_state *s, uint32_t epoch);

/* The state as named numbers, at most WF_CALLBACKS_NUMBERS, and back; names that are not known are
 * passed over. The names are static. */
enum { WF_CALLBACKS_NUMBERS = 7 + 4 * WF_CONF_MAX_CALLBACKS };
size_t wf_callbacks_put(const wf_callbacks_state *s, uint32_t n, const char *names[],
                        double values[]);
void wf_callbacks_take(wf_callbacks_state *s, const char *name, double value);
/* After a state was taken out of the checkpoint of a step, whose ledger is in `epoch`. */
void wf_callbacks_restored(const wf_callbacks *c, wf_callbacks_state *s, uint64_t step,
                           uint32_t epoch);

#endif
