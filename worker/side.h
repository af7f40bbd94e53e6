/* SPDX-License-Identifier: Apache-2.0 */
/* worker/side.h - one side of a job, train or eval: a graph, its data, and for each replica of the
 * model a plan for each batch size: the full batch, and the short ones at the ends of splits.
 *
 * Belongs to one thread at a time.
 */
#ifndef WF_WORKER_SIDE_H
#define WF_WORKER_SIDE_H

#include "common/compile/compile.h"
#include "common/data/reader.h"
#include "common/exec/exec.h"
#include "common/session/job_data.h"
#include "common/session/plans.h"
#include "worker/tables.h"
#include "worker/worker.h"

/* Where the plans of a replica run. */
typedef struct wf_side_replica {
    const wf_device *const *devices; /* [n_devices] */
    size_t n_devices;
    wf_pool *pool;
} wf_side_replica;

typedef struct wf_side_spec {
    const Weft__Start *start;        /* of the job in hand */
    const wf_side_replica *replicas; /* [n_replicas], all on devices of one kind */
    uint32_t n_replicas;
    const wf_device *place; /* for variables (wf_exchange_place); NULL: the host's memory alone */
    const ProtobufCBinaryData *graph, *ids; /* ids: of tables; empty: there are none */
    Weft__TableUse *const *uses;            /* [n_uses] */
    size_t n_uses;
    const Weft__Output *const *meanings; /* [n_fetches]: the first outputs of the graph */
    size_t n_fetches;
    const Weft__JobData *data;
    const struct wf_memory *memory; /* of data of that format; NULL: there is none */
    const float *loss_scale; /* what the input start->loss_scale is bound to; NULL: there is none */
    const wf_learnt_list *learnt; /* what the data's steps go by; NULL: as they say */
    const Weft__Round *round;     /* of data that grows: its files; read while opening only */
} wf_side_spec;

/* What a port of a plan carries. */
typedef struct wf_side_port {
    int32_t field;    /* of the dataset, or -1 */
    int32_t variable; /* of the job, or -1 */
    int32_t use;      /* of a table, whose places it takes, or -1 */
    bool is_scale;    /* of the loss */
} wf_side_port;

typedef struct wf_side {
    wf_side_spec spec;
    wf_graph *graph;
    uint64_t batch; /* records */
    wf_dataset *data;
    wf_data_reader *reader;         /* NULL: this side is not open */
    wf_side_port *inputs, *outputs; /* the ports of every plan of the graph */
    uint32_t n_inputs, n_outputs;
    const char **resident; /* [n_resident]: variables that live on the device */
    size_t n_resident;
    size_t apart;    /* bytes of the device that variables are still to take of it */
    wf_plans *plans; /* [n_replicas] */
    wf_tables tables;
    const wf_named_rows *rows; /* of the batch in hand, where there are tables: borrowed */
    size_t rows_batch;         /* which of theirs it is */
} wf_side;

/* Opens a side that is all zero. Memory that the spec points to is borrowed until the side is
 * closed. Close it after an error as well. Errors: those of graph and data. */
WF_MUST_USE wf_status wf_side_open(wf_side *s, const wf_side_spec *spec, wf_err *err);
void wf_side_close(wf_side *s);
/* Has an open side, none of whose batches is out, read the files of another round; its graph, plans
 * and tables stay. Errors: those of the data; WF_SHAPE when its records are laid out otherwise. The
 * side then is as it was. */
WF_MUST_USE wf_status wf_side_renew(wf_side *s, const Weft__Round *round, wf_err *err);
/* Lends the plan of a replica for so many records, until the next call for that replica. */
WF_MUST_USE wf_status wf_side_plan(wf_side *s, uint32_t replica, uint64_t records, wf_plan **out,
                                   wf_err *err);
/* What input i of a plan is bound to: of a batch, or the weights in a set of the exchange's, in
 * memory of the port's device; NULL: the graph holds its content. */
const void *wf_side_input(const wf_side *s, uint32_t i, const wf_exchange *x, int set,
                          const wf_batch *batch);
/* Gives a plan its inputs; its next run begins when they are there. `x` is the exchange of the
 * plan's replica (wf_exchange_of_replica). Errors: what a device says. */
WF_MUST_USE wf_status wf_side_bind(const wf_side *s, wf_plan *p, const wf_exchange *x, int set,
                                   const wf_batch *batch, wf_err *err);
/* While a run of the plan is under way: begins to bring it as many records of a batch, from record
 * `begin` on, for its next run, which takes them after wf_plan_take_ahead. Errors: what a device
 * says. */
WF_MUST_USE wf_status wf_side_bring_ahead(const wf_side *s, wf_plan *p, const wf_batch *batch,
                                          uint64_t begin, wf_err *err);
/* Adds the results of a batch of n records to the measures m [WF_MEASURES_MOST]; sets *used to how
 * many are in use. The first is the loss. */
WF_MUST_USE wf_status wf_side_measure(const wf_side *s, const wf_plan *p, uint64_t n,
                                      wf_measure m[], uint32_t *used, wf_err *err);

#endif
