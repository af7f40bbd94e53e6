/* SPDX-License-Identifier: Apache-2.0 */
/* tests/kit/model.h - the ledger model (tests/sim/sim.h) as a compiled job. */
#ifndef WF_TESTS_KIT_MODEL_H
#define WF_TESTS_KIT_MODEL_H

#include "common/base/status.h"
#include "common/wire/coding.h"
#include "master/master.h"
#include <stdbool.h>
#include <stdint.h>

enum {
    WF_MODEL_STEPS = 0,
    WF_MODEL_RECORDS = 1,
    WF_MODEL_FROZEN = 2, /* never pushed: element i is wf_model_frozen(i) for ever */
    WF_MODEL_SHARED = 3, /* of a job with some variables on ps and some in the workers: one number
                          * in each of these, which counts their common steps */
    WF_MODEL_VARIABLES,
    WF_MODEL_STEP_SLICES = 2,
    WF_MODEL_FROZEN_SIZE = 12,
    WF_MODEL_EVAL_RECORDS = 8
};

typedef struct wf_model_spec {
    uint64_t seed;
    uint32_t ps;   /* 0: one worker holds the variables, whole, */
    bool hybrid;   /* there is WF_MODEL_SHARED beside them */
    bool mirrored; /* or each worker does, */
    bool divides;  /* which then has the optimizer's state of a share of them */
    uint32_t records, batch, epochs, every_steps, every_seconds, keep;
    uint32_t eval_unit; /* records; 0: all of an evaluation */
    bool evaluates, calls_back;
    bool drains, rolls_back; /* as in wf_prepared */
    bool restores_best;      /* early stopping that ends the job with its best weights */
    bool logged;             /* what is trained lies in slices of the kind `logged` */
    uint32_t bounded;        /* 1 + the staleness that workers wait for; 0: they do not */
    bool together;           /* workers make steps together, */
    uint32_t backups;        /* and need not wait for so many of them */
    wf_coding push, pull;    /* of `records`, in slices that are large enough */
    bool balances;           /* all slices lie on ps 0 at first, and the master moves them */
    bool grows;              /* the records come in files that appear: as many epochs as it takes */
} wf_model_spec;

enum { WF_MODEL_POLL_MS = 100, WF_MODEL_SETTLE_MS = 300, WF_MODEL_IDLE_MS = 3000 };

/* The loss after an epoch, from 0; and how early stopping judges these: the last epoch that is
 * trained, and the best. */
double wf_model_loss(const wf_model_spec *spec, uint32_t epoch);
void wf_model_epochs(const wf_model_spec *spec, uint32_t *last, uint32_t *best);

/* Among how many tasks the variables are divided. */
static inline uint32_t wf_model_shards(uint32_t ps)
{
    return ps ? ps : 1;
}

static inline float wf_model_frozen(uint32_t i)
{
    return 1000.0F + (float)i;
}

/* What wf_master_ops.prepare gives in tests. */
WF_MUST_USE wf_status wf_model_prepare(const wf_model_spec *spec, const char *job,
                                       wf_prepared **out, wf_err *err);

#endif
