/* SPDX-License-Identifier: Apache-2.0 */
/* worker/stages/part.h - a part of a stage's graph, with a plan for each number of records; and the
 * book of the values that a stage has: of a step, or of an evaluation. For this room only. */
#ifndef WF_WORKER_STAGES_PART_H
#define WF_WORKER_STAGES_PART_H

#include "common/data/data.h"
#include "common/exec/exec.h"
#include "common/session/plans.h"
#include "common/tensor/buf.h"
#include "common/wire/control.pb-c.h"
#include "worker/exchange.h"
#include "worker/stages/stage.h"

/* What a port carries: a value of the book, or a variable of the job; -1: not. */
typedef struct wf_stage_port {
    int32_t value, variable;
} wf_stage_port;

typedef struct wf_stage_part {
    wf_graph *graph; /* NULL: there is nothing to do */
    wf_plans plans;
    wf_stage_port *in, *out; /* [n_in], [n_out]: of every plan */
    uint32_t n_in, n_out;
} wf_stage_part;

typedef struct wf_stage_value {
    const char *name;
    int32_t field;  /* of the data set that it is fed from, or -1 */
    int32_t edge;   /* that it comes in by, or -1 */
    int32_t result; /* of the first stage: which of the graph's outputs it is, or -1 */
    bool goes;      /* some edge takes it to another stage */
    bool is_taken;  /* the forward part reads it, made elsewhere */
    bool is_kept;   /* the backward part does */
} wf_stage_value;

enum { WF_PART_FORWARD = 0, WF_PART_BACKWARD, WF_PARTS };

typedef struct wf_stage_book {
    const Weft__Start *start;
    Weft__StageEdge *const *edges; /* [n_edges], borrowed */
    size_t n_edges;
    wf_stage_value *values; /* [n_values] */
    uint32_t n_values;
    wf_stage_part parts[WF_PARTS];
    wf_buf **rooms; /* [n_rooms]: values on a device (device.c); NULL: none were needed */
    size_t n_rooms;
} wf_stage_book;

typedef struct wf_stage_book_spec {
    const Weft__Start *start;                      /* borrowed for the book's life */
    const ProtobufCBinaryData *forward, *backward; /* NULL: none */
    Weft__StageEdge *const *edges;
    size_t n_edges;
    Weft__Output *const *outputs; /* [n_outputs] */
    size_t n_outputs;
    const wf_dataset *data;    /* of the first stage; else NULL */
    const wf_graph *predicted; /* the same of a prediction: its inputs are the fields */
} wf_stage_book_spec;

/* book.c: opens a book that is all zero; close it after an error as well. Errors: those of graphs;
 * WF_PROTO for what does not belong together; WF_NOMEM. */
WF_MUST_USE wf_status wf_stage_book_open(wf_stage_book *b, const wf_stage_book_spec *spec,
                                         wf_err *err);
void wf_stage_book_close(wf_stage_book *b);

/* Where a part computes. */
typedef struct wf_stage_place {
    const wf_device *device; /* values are its memory, in and out */
    const wf_device *home;   /* so are variables, if it is not NULL */
    wf_pool *pool;
} wf_stage_place;

/* part.c: lends a plan for so many records, until the next call of the part. Errors: those of
 * plans. */
WF_MUST_USE wf_status wf_stage_part_plan(wf_stage_book *b, int which, uint64_t records,
                                         const wf_stage_place *place, wf_plan **out, wf_err *err);

#endif
