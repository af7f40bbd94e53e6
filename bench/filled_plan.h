/* SPDX-License-Identifier: Apache-2.0 */
/* bench/filled_plan.h - a plan on some device that has something to compute: a model's loss and
 * gradients over a batch of random numbers, or a chain of large matrix products.
 *
 * The batch, the loss and metrics are memory of the host, and a run on another device copies them.
 * Weights and gradients are memory of the device, as those of a worker that holds its variables;
 * the optimizer alone is left out.
 */
#ifndef BENCH_FILLED_PLAN_H
#define BENCH_FILLED_PLAN_H

#include "common/compile/compile.h"
#include "common/exec/exec.h"
#include "common/session/job_data.h"

enum { FILLED_PRODUCTS = 8, FILLED_MOST_LIMITS = 16 };

/* The values of an input are whole numbers from 0 to limit - 1. */
typedef struct filled_limit {
    const char *input;
    int64_t limit;
} filled_limit;

/* All borrowed. */
typedef struct filled_spec {
    const char *path; /* a job file (.yaml), or an ONNX file whose output "loss" is its loss */
    int64_t batch;
    uint64_t seed;
    const filled_limit *limits; /* [n_limits]: of inputs that hold ids or classes */
    size_t n_limits;
    wf_compute compute;
} filled_spec;

/* A model's compiled graph and what is fed to it; several plans can be made of one. */
typedef struct filled_model {
    const filled_spec *spec;
    wf_job_conf *job; /* NULL: an ONNX file */
    wf_model layers;
    wf_compiled *compiled;
    void **fed; /* [compiled->graph->n_inputs] */
} filled_model;

/* Compiles the model for a worker of parameter servers, and makes its batch. The caller closes *out
 * in either case. Errors: those of the compiler; WF_USAGE for whole numbers without a limit. */
WF_MUST_USE wf_status filled_model_open(const filled_spec *spec, filled_model *out, wf_err *err);
void filled_model_close(filled_model *m);

/* A plan of it with all inputs and outputs bound. */
typedef struct filled_plan {
    wf_plan *plan;
    const wf_device *device;
    void **results; /* [outputs of the plan] of the host: what filled_plan_fetch brought last */
    const void **inputs;                  /* borrowed: what was bound, or copied to the device */
    void **inputs_there, **results_there; /* of those that lie on the device */
    wf_buf **pinned;                      /* inputs of the host's, as batches of a job lie */
    void **moved;                         /* see filled_plan_move; NULL: not called */
    size_t bytes_in, bytes_out;           /* of those that do not */
} filled_plan;

/* The caller closes *out in either case. */
WF_MUST_USE wf_status filled_plan_of_model(const filled_model *m, const wf_device *device,
                                           wf_pool *pool, filled_plan *out, wf_err *err);
/* FILLED_PRODUCTS matrix products of n x n, each of one matrix with the result before it, both kept
 * in the type of `compute` where that is narrow. Constants are on the device before a run begins: a
 * run copies two single numbers. The caller closes *out in either case. */
WF_MUST_USE wf_status filled_plan_of_products(int64_t n, wf_compute compute,
                                              const wf_device *device, wf_pool *pool,
                                              filled_plan *out, wf_err *err);
void filled_plan_close(filled_plan *p);

/* Runs once, as the step `number`; the batch of the next run is brought meanwhile, as a job's is.
 */
WF_MUST_USE wf_status filled_plan_run(filled_plan *p, uint64_t number, wf_err *err);
/* Moves all float32 inputs of a plan for the cpu, weights too, up and down in turns by 2^-18 of
 * theirs, which is about what the order of some thousand additions does: how far a run's results
 * differ then says how much of them is rounding. Behind a MaxPool or a Relu that is a lot. */
WF_MUST_USE wf_status filled_plan_move(filled_plan *p, wf_err *err);
/* Brings to the host what the last run left on the device, for the two below. */
WF_MUST_USE wf_status filled_plan_fetch(filled_plan *p, wf_err *err);
/* Over all outputs' bytes: XXH3-64. */
uint64_t filled_plan_digest(const filled_plan *p);

typedef struct filled_difference {
    double largest; /* relative to the largest element of an output, or a hundredth of all outputs'
                       where that is more: rounding is all that some gradients are */
    const char *output; /* borrowed from the plan */
} filled_difference;

/* How far two plans of one model differ; what is not finite in one alone differs by infinity. */
filled_difference filled_plan_compare(const filled_plan *p, const filled_plan *of_cpu);

#endif
