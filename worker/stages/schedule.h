/* SPDX-License-Identifier: Apache-2.0 */
/* worker/stages/schedule.h - the order in which a stage of a divided model takes the micro-batches
 * of a step: one forward, one backward (Narayanan et al. 2021, "Efficient Large-Scale Language
 * Model Training on GPU Clusters Using Megatron-LM", section 2.2.1; PipeDream-Flush).
 *
 * Stage s of S computes the forward parts of S - s micro-batches, or of all if they are fewer, then
 * in turn a backward part and the next forward part, and at last the backward parts that are left.
 * All are in the order of the micro-batches.
 *
 * Invariants
 *   H1  no more than S - s micro-batches have gone forward and not back
 *   H2  stages that each wait for what the next action takes, and for nothing else, never wait in a
 *       circle: activations go to later stages alone, and gradients to earlier ones
 *
 * An evaluation goes forward alone. Without state but this: a pure function of what was done.
 */
#ifndef WF_WORKER_STAGES_SCHEDULE_H
#define WF_WORKER_STAGES_SCHEDULE_H

#include <stdbool.h>
#include <stdint.h>

typedef struct wf_stage_schedule {
    uint32_t stage, stages;
    uint32_t batches;             /* micro-batches of the round */
    bool trains;                  /* they also go back */
    uint32_t forwards, backwards; /* done */
} wf_stage_schedule;

typedef enum wf_stage_action {
    WF_STAGE_NOTHING = 0,
    WF_STAGE_GO_FORWARD,
    WF_STAGE_GO_BACK
} wf_stage_action;

/* What comes next, for micro-batch *batch; NOTHING: all is done. */
wf_stage_action wf_schedule_next(const wf_stage_schedule *s, uint32_t *batch);
/* The action is done. */
void wf_schedule_note(wf_stage_schedule *s, wf_stage_action done);

#endif
