/* SPDX-License-Identifier: Apache-2.0 */
/* common/compile/compile.h - the front door of common/compile: the one door, and the passes.
 *
 * wf_compile takes a model and what is wanted of it, runs the passes of the table in compile.c one
 * after the other, each graph in, graph out, and gives the graph together with what others need to
 * know of it: variables, slices and their ps, feeds, outputs, warnings. Everybody compiles here:
 * the master for jobs, `weft run`, `grad`, `graph` and `export`. Compiling is a pure function of
 * the spec: two masters that compile one job get equal graphs, initial weights and slices.
 *
 * Train, eval and infer are three graphs over the same variables by name; compile once per mode
 * from one spec, changing `mode`. Variables, slices and initial values for the ps come from the
 * train graph; the eval graph names some of the same variables.
 *
 * What a worker's graph holds under parameter_server:
 *   Pull   (ai.weft, attribute `variable`) one node per variable that the graph uses
 *   Push   (ai.weft, attribute `variable`) one node per variable of the train graph: of a gradient
 *          or, for a statistic, of what the batch has
 * Statistics are the running values of BatchNormalization; the train graph does not read them.
 * Frozen variables (and trainable ones that no gradient can reach) are never updated. They live on
 * the ps like others, and so does a large constant, as a frozen variable CONSTANT@CHECKSUM; what of
 * them is smaller than WF_FROZEN_BYTES stays in the graph with its content.
 *
 * A table is a variable of which a step pulls and pushes the rows that its batch names. The graph
 * has a Pull of [rows_most, ...] for it, and inputs that say which of these rows each Gather takes;
 * the ids graph computes from the feeds which rows these are (tables.c).
 *
 * Other headers of this room: model.h (a model as a list of layers). pass.h is for the room.
 */
#ifndef WF_COMPILE_COMPILE_H
#define WF_COMPILE_COMPILE_H

#include "common/base/arena.h"
#include "common/base/distribution.h"
#include "common/base/status.h"
#include "common/compile/model.h"
#include "common/compile/strategy.h"
#include "common/conf/conf.h"
#include "common/graph/graph.h"
#include "common/metrics/measure.h"
#include "common/optim/rule.h"
#include "common/tensor/named.h"
#include "common/tensor/tensor.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    WF_SLICE_BYTES = 4 * 1024 * 1024, /* the default upper bound of a slice */
    WF_SLICE_BYTES_LEAST = 16 * 1024, /* a slice is not made smaller than this to balance */
    WF_FROZEN_BYTES = 1024, /* frozen variables and constants of fewer bytes stay in the graph */
    WF_COMPILE_PS_MOST = 65536,
    WF_STAGES_MOST = 64 /* into which a model is divided */
};

/* Behind a table's name: the ids of its rows. */
#define WF_ROW_IDS "/ids"

typedef enum wf_compile_mode {
    WF_COMPILE_TRAIN = 1, /* Dropout on; loss; a gradient for each trainable variable */
    WF_COMPILE_EVAL,      /* Dropout off; loss and metrics as sums */
    WF_COMPILE_INFER,     /* Dropout off; no loss, no labels: what is served and exported */
    WF_COMPILE_RUN,       /* the file taken literally: all its outputs, or `fetches` */
    WF_COMPILE_GRAD       /* the file taken literally: gradients of the scalar `loss` */
} wf_compile_mode;

typedef enum wf_compile_logits {
    WF_COMPILE_LOGITS_AUTO = 0, /* true unless Softmax or Sigmoid makes the model's output */
    WF_COMPILE_LOGITS_TRUE,
    WF_COMPILE_LOGITS_FALSE
} wf_compile_logits;

/* An input of a model that is evaluated once, with what will be fed. */
typedef struct wf_compile_feed {
    const char *name;
    const wf_tensor *content; /* gives the input its shape */
    bool is_constant;         /* and more: the graph holds it as a constant, and feeds it no more */
} wf_compile_feed;

/* Where a stage of a divided model is. */
typedef struct wf_stage_home {
    uint32_t worker;
    const char *device; /* as cluster.yaml names it; NULL: the worker's first, whatever it is */
} wf_stage_home;

/* What a cluster has for stages. */
typedef struct wf_worker_devices {
    const char *const *devices; /* [n_devices] */
    uint32_t n_devices;
} wf_worker_devices;
typedef struct wf_stage_workers {
    const wf_worker_devices *workers; /* [n]; NULL: nobody knows what they have, and it is
                                       * what the job names, in the order in which it does */
    uint32_t n;
} wf_stage_workers;

/* What to compile. Zero is the default of every field but a source and `mode`. All borrowed for the
 * call. */
typedef struct wf_compile_spec {
    /* The source: exactly one of the three. */
    const wf_graph *graph; /* imported already; it is copied */
    const char *onnx_path; /* read here */
    const wf_model *model; /* layers */

    wf_compile_mode mode;
    const wf_strategy *strategy; /* NULL: variables stay in the graph */
    /* A loss function of Keras (a row of losses/), or the name of a scalar output of the model, or
     * NULL for a scalar output named "loss". With a loss function a loss that the file brings along
     * is left out, with a warning. `losses` [n_losses], when there are any, stand in its place:
     * functions with their options, of one output or of several, whose weighted sum is the loss. */
    const char *loss;
    const wf_conf_term *losses;
    size_t n_losses;
    const wf_conf_said *loss_weights; /* [n_loss_weights]; 1 for outputs not named */
    size_t n_loss_weights;
    wf_compile_logits from_logits; /* of losses that do not say it themselves */
    /* [n_labels]: the feeds with the labels, by output. What is not named: with one loss the first
     * of `fields` that is no input of the model, or "y"; with several the field that has the
     * output's name. */
    const wf_conf_said *labels;
    size_t n_labels;
    /* Weights of examples: feeds with one number a record, by output; or one weight a class. */
    const wf_conf_said *sample_weights;
    size_t n_sample_weights;
    const wf_conf_class_weight *class_weights;
    size_t n_class_weights;
    const wf_conf_field *fields; /* [n_fields]: what the data offers; only names are read */
    size_t n_fields;
    const wf_conf_term *metrics; /* [n_metrics]: rows of metrics/, by output */
    size_t n_metrics;
    bool train_metrics;         /* metrics in the train graph too */
    const char *const *fetches; /* [n_fetches], RUN: names of values; none: all outputs */
    size_t n_fetches;
    /* [n_feeds], RUN and GRAD: the inputs of the one evaluation that this graph is for. */
    const wf_compile_feed *feeds;
    size_t n_feeds;

    /* RUN: no other content will be put into variables, so what depends on them alone is computed
     * once, here. */
    bool are_final;

    /* RUN: the model will be trained, so what an exporter did to it is warned of, as in TRAIN. */
    bool warns_of_export;

    /* Constants of the file that are trained all the same: patterns like those of freeze. */
    const char *const *trainable; /* [n_trainable] */
    size_t n_trainable;
    /* What is left as it is: fnmatch patterns of variables' names, '*' matches '/' and '.' too. */
    const char *const *freeze; /* [n_freeze] */
    size_t n_freeze;
    /* Variables of which a worker is to pull the rows that a batch names, and no others: patterns
     * like those of freeze, and limits. TRAIN and EVAL with parameter servers; else they count for
     * the digest alone. */
    const wf_conf_table *tables; /* [n_tables] */
    size_t n_tables;
    const wf_conf_codec *codecs; /* [n_codecs]: of variables that are trained, the first counts */
    size_t n_codecs;
    int64_t unit_batches;           /* EVAL: batches that share what is bound of a table; 0: 1 */
    const wf_conf_weights *weights; /* first weights out of a file; NULL or no file: the model's */
    /* Reads that file: wf_pretrained_read of common/ckpt, a room beside this one. */
    wf_status (*read_weights)(const char *path, wf_named_list *out, wf_err *err);

    /* EVAL and INFER without parameter servers: of each unbounded table its rows by their ids, as
     * NAME [rows + 1, width] with one for all other ids at the end (common/graph/table_rows.h), and
     * NAME with WF_ROW_IDS [rows], which rise. One that is not in it has no rows yet; other names
     * are passed over. NULL: none is. Their storage is shared. */
    const wf_named_list *rows;

    int64_t batch;           /* the most records in a feed's leading axis; 0: not bounded */
    uint64_t seed;           /* initial weights of layers */
    uint32_t n_ps;           /* PARAMETER_SERVER: at least 1 */
    size_t slice_bytes;      /* 0: WF_SLICE_BYTES */
    const wf_conf_pin *pins; /* [n_pins], PARAMETER_SERVER: variables that lie on one ps */
    size_t n_pins;
    /* A strategy that divides the model: where its stages are, in their order. */
    wf_stage_home stage_homes[WF_STAGES_MOST];
    uint32_t n_stages; /* 0: the model is not divided. INFER: it may be, with a strategy or without;
                          then axes are fixed, or follow from the records as in TRAIN */
    const wf_conf_stage *stages; /* [n_stage_rules]: which variables are where */
    size_t n_stage_rules;
    bool finds_stages; /* in place of them: by memory */
    uint32_t slots;    /* of the optimizer, then */
    /* [n_settled]: variables of another graph of the job, whose stages are settled. */
    const struct wf_compiled_variable *settled;
    size_t n_settled;
    int place_line;
    bool balances;          /* slices are to move: there are more of them to choose from */
    bool whole_variables;   /* one slice each: the optimizer's rule takes norms over variables */
    bool accumulates;       /* a step adds up the gradients of several batches */
    bool is_portable;       /* ONNX's own operations alone, for others to run: nothing is fused */
    bool is_blank;          /* nobody reads the content of variables of layers: they get none */
    wf_dtype narrow;        /* TRAIN, EVAL: WF_BF16 or WF_F16, for jobs that compute in it; or
                             * WF_NONE */
    bool scales_loss;       /* TRAIN: gradients are those of the loss times an input, and divided
                             * by it */
    const char *stop_after; /* a pass's name: the graph as it is then; NULL: all passes */

    /* Where errors of loss, metrics, freeze and weights lie; NULL: they came from no file. */
    const char *file;
    int loss_line, metrics_line, freeze_line, trainable_line, tables_line;
} wf_compile_spec;

/* Fills *spec from a job file: source, loss, metrics, fields, batch, seed, slice size, strategy.
 * What it points to is the job's: keep that until after wf_compile. */
void wf_compile_spec_of_job(const wf_job_conf *job, wf_compile_mode mode,
                            const wf_strategy *strategy, uint32_t n_ps, wf_model *model,
                            wf_compile_spec *spec);

/* A job's optimizer with its options, schedule included. Errors: as wf_opt_init, with file and line
 * in front. */
WF_MUST_USE wf_status wf_compile_optimizer_of_job(const wf_job_conf *job, wf_opt *out, wf_err *err);

/* Of a table: how its rows begin; of an unbounded one (common/base/row_key.h) also when they come
 * and go. */
typedef struct wf_compiled_rows {
    wf_distribution first;
    uint64_t seed, stream; /* element i has number i of the stream; of an unbounded table a row's
                              numbers are those of the stream with its id folded in */
    uint32_t admit_after, evict_after;
    uint64_t max_rows, max_bytes;
    uint64_t
        filter_bytes; /* ids without a row are counted by filters of so many in all; 0: exactly */
    bool fails_full, by_frequency, on_disk;
} wf_compiled_rows;

/* A variable of the compiled graph, in the order of their first use; the frozen ones on the ps come
 * last. */
typedef struct wf_compiled_variable {
    const char *name;
    wf_dtype dtype;
    uint32_t rank;
    int64_t dims[WF_MAX_RANK];
    int64_t elems;
    size_t bytes;
    wf_var_kind kind;
    bool pinned;              /* to one ps, by the job */
    uint32_t pinned_to;       /* then */
    bool on_ps;               /* pulled; otherwise it stays in the graph with its content */
    bool on_workers;          /* then: each worker holds it, while tables are on ps */
    bool pushed;              /* gets a gradient, or a batch's statistic, in this graph */
    double momentum;          /* of a statistic: how much of the old value an update keeps */
    const wf_tensor *initial; /* dims and dtype as above; never NULL */
    bool is_table;            /* TRAIN: the graph has [rows_most, ...] of it in its place */
    uint64_t rows_most;       /* of a table: the most that a batch names */
    uint64_t cache_rows;      /* of a table: that a worker caches, for so many steps */
    uint32_t cache_staleness;
    bool is_unbounded;          /* a table whose dims[0] are its buckets; in a graph without
                                   parameter servers the rows that it has, and one more */
    bool is_seeded;             /* a table whose first values follow from `rows`, and are not in
                                   `initial`; an unbounded one is that too */
    wf_compiled_rows rows;      /* then */
    wf_dtype row_dtype;         /* of a table: the type in which a ps holds its values */
    uint64_t rounding;          /* of a table: seeds their stochastic rounding */
    const wf_conf_codec *codec; /* of one that is trained: how it travels, in the spec; NULL: f32 */
    uint32_t first_slice, n_slices; /* in slices, when on_ps. EVAL: of frozen ones only */
    uint32_t stage;                 /* of a model that is divided */
} wf_compiled_variable;

/* A contiguous range of a variable's elements, row-major; slice i is the one in slices[i]. Slices
 * of one variable follow each other and cover it. */
typedef struct wf_compiled_slice {
    uint32_t variable;     /* index in variables */
    int64_t offset, count; /* elements */
    uint32_t ps;           /* task of its first primary; of what workers hold: no ps' */
} wf_compiled_slice;

/* One use of a table. The ids graph gives the ids that a batch names; whoever runs the graph pulls
 * each row once, binds the rows in place of the variable, and feeds `places`: for each id its row
 * among them. */
typedef struct wf_compiled_use {
    uint32_t variable;  /* index in variables */
    const char *places; /* an input of the graph: int64, of the shape of the ids */
    const char *ids;    /* an output of ids_graph: int64, whatever the feeds make of it */
    bool is_bag;        /* of EmbeddingBag: an id below 0 names no row, and its place is -1 */
} wf_compiled_use;

typedef enum wf_meaning {
    WF_MEANS_LOSS = 1, /* f32 scalar: mean over the batch; weight it by the batch's records */
    WF_MEANS_HITS,     /* i64 scalar: a count; rate = sum of counts / (records * per_record) */
    WF_MEANS_SUM,      /* f32 scalar: a sum; mean = sum of sums / (records * per_record) */
    WF_MEANS_GRADIENT, /* GRAD: d loss / d `label`, with its dtype and dims */
    WF_MEANS_OUTPUT,   /* RUN, INFER: an output of the model */
    WF_MEANS_SUMS,     /* [k] numbers: number i is to be added to the metric's sum i */
    WF_MEANS_KEYS      /* i64 [n]: 1 is to be added to the sum of each key */
} wf_meaning;

/* One fetched output. */
typedef struct wf_compiled_output {
    const char *name; /* of the graph's output; NULL for a gradient that is zero: the loss does not
                       * depend on that variable, and the graph holds nothing for it */
    wf_meaning meaning;
    const char *label;  /* "loss", "accuracy", a variable's name, or the output's own name */
    double per_record;  /* HITS, SUM: how many are counted for each record of the batch */
    const char *metric; /* its row's name, which wf_metric_value goes by; NULL: no metric */
    uint32_t variable;  /* GRADIENT: index in variables */
} wf_compiled_output;

/* A value that goes from one stage of a divided model to another. Axis i has sizes[i] elements, or
 * where that is negative -sizes[i] for each record. */
typedef struct wf_compiled_edge {
    const char *name; /* of the value, before it is sent */
    wf_dtype dtype;
    uint32_t rank;
    int64_t sizes[WF_MAX_RANK];
    uint32_t from, to;
    bool is_result; /* one of the outputs, which goes to the first stage; no node reads it there */
} wf_compiled_edge;

/* One input to be fed, of the graph or of the ids graph; the places of tables are none. Axis 0 is
 * the batch when it is symbolic. Labels that are classes are int64 here, whatever the data file
 * has. An input that nothing needs is no feed. */
typedef struct wf_compiled_feed {
    const char *name;
    wf_dtype dtype;
    uint32_t rank;
    wf_axis axes[WF_MAX_RANK];
    bool is_label;
    const char *loss; /* the function that reads the labels, when it is one of weft's; else NULL */
    bool is_share;    /* its labels are from 0 to 1 */
    int64_t classes; /* of class labels: each is below it, or is to be ignored; 0: no such labels */
    bool may_ignore;
} wf_compiled_feed;

typedef enum wf_norm_form {
    WF_NORM_NONE = 0,  /* no BatchNormalization */
    WF_NORM_INFERENCE, /* by the running values alone; TRAIN normalises by the batch all the same */
    WF_NORM_TRAINING
} wf_norm_form;

/* The model as its file has it, before any pass changed it. */
typedef struct wf_compiled_source {
    const char *producer, *version; /* "" where the file does not say */
    int64_t opset;                  /* 0: the model came from no file */
    const char *inputs;             /* "x[batch,3,224,224], ids[batch]" */
    size_t n_variables;             /* trained or frozen; running statistics do not count */
    uint64_t elems, bytes;          /* of them */
    wf_norm_form batch_norm;
} wf_compiled_source;

/* The result. Everything is borrowed for its life; all lists may be empty. */
typedef struct wf_compiled {
    wf_graph *graph;   /* after the last pass that ran */
    const char *stage; /* that pass's name */
    wf_compiled_variable *variables;
    size_t n_variables;
    wf_compiled_slice *slices;
    size_t n_slices;
    wf_compiled_output *outputs;
    size_t n_outputs;
    wf_compiled_feed *feeds;
    size_t n_feeds;
    wf_graph *ids_graph; /* from feeds to the ids of all tables; NULL: there are no tables */
    wf_compiled_use *uses;
    size_t n_uses;
    const char *loss_scale; /* an input of the graph, float32 and no feed; NULL: there is none */
    wf_compiled_source source;
    const char *stage_marks[WF_STAGES_MOST]; /* of the nodes of each stage: wf_node.device */
    uint32_t n_stages;                       /* as in the spec */
    wf_compiled_edge *edges;                 /* [n_edges]: between stages */
    size_t n_edges;
    const char **warnings; /* whole sentences */
    size_t n_warnings;
    /* XXH3-64 over the model's structure after import: operations, attributes, names, dtypes,
     * shapes and small integer constants, and the loss; not weights, nor batch, seed, mode or
     * cluster. Names that `freeze` froze, and those of tables, count. Equal for all modes of one
     * job; it is what a checkpoint belongs to. */
    uint64_t digest;
    size_t given_bytes;       /* of the constants and variables that the model came with */
    wf_arena *arena;          /* of the lists */
    struct wf_shared *shared; /* storage that the lists borrow; for result.c */
} wf_compiled;

/* Compiles; the caller owns *out. After `stop_after`, lists that later passes make are empty.
 * Errors: WF_INVALID, WF_USAGE, WF_SHAPE, WF_NOTFOUND, WF_UNSUPPORTED, WF_NOMEM: a sentence that
 * names the pass's finding: the node, the variable, the shapes. */
WF_MUST_USE wf_status wf_compile(const wf_compile_spec *spec, wf_compiled **out, wf_err *err);
/* Frees *c with its graph and sets it to NULL; NULL is fine. */
void wf_compiled_free(wf_compiled **c);
/* Takes the graph out, for a caller that outlives the rest; c->graph is NULL then. */
wf_graph *wf_compiled_take_graph(wf_compiled *c);

/* The passes in their order: name and a line of help; false past the end. */
bool wf_compile_pass_at(size_t i, const char **name, const char **help);

/* The loss functions and the metrics in the order of their names, for help: the name of row i, an
 * alias or NULL, and its options in words ("delta, label_smoothing"); false past the end. */
bool wf_compile_loss_at(size_t i, const char **name, const char **alias, char *options,
                        size_t size);
bool wf_compile_metric_at(size_t i, const char **name, const char **alias, char *options,
                          size_t size);
/* The name of activation i, NULL past the end. */
const char *wf_compile_activation_at(size_t i);

/* Where the stages of a job are in a cluster, in their order: by worker, and by the worker's list
 * of devices. homes[].device is borrowed of the job or of the list. Errors: WF_USAGE, with file and
 * line, for a worker or a device that there is not, one device under two names, and fewer than two
 * stages. */
WF_MUST_USE wf_status wf_stages_of_job(const wf_job_conf *job, const wf_stage_workers *of,
                                       wf_stage_home homes[WF_STAGES_MOST], uint32_t *n,
                                       wf_err *err);
/* As many workers as a job's `place` speaks of, for whoever has no cluster; 1 without one, and two
 * for `place: auto`. */
uint32_t wf_stages_workers(const wf_job_conf *job);
/* Fails if workers are to have equal copies of variables and cannot: an update that takes norms of
 * whole variables rounds otherwise on a GPU than on a processor. Errors: WF_USAGE, with file and
 * line; those of the optimizer's options. */
WF_MUST_USE wf_status wf_strategy_check_devices(const wf_job_conf *job, const wf_strategy *s,
                                                const wf_stage_workers *of, wf_err *err);
/* Whether it names devices, which a cluster alone brings into an order. */
bool wf_stages_name_devices(const wf_job_conf *job);
/* The devices that it names, in the order in which it does, borrowed of the job, for whoever has
 * the first worker alone; 0, if they are fewer than two, or it speaks of anything else. */
size_t wf_stages_devices(const wf_job_conf *job, const char *devices[WF_STAGES_MOST]);
/* Has a spec of the job divide its model among these homes, whose names it borrows: batches are
 * micro-batches then. */
void wf_stages_put(const wf_job_conf *job, const wf_stage_home homes[], uint32_t n,
                   wf_compile_spec *spec);
/* "worker/0" or "worker/0/cuda:1", into text; returns it. */
const char *wf_stage_home_str(const wf_stage_home *h, char *text, size_t size);
/* Whether two names are of one device ("cpu" is "cpu:0"); NULL is a name of its own. */
bool wf_stage_same_device(const char *a, const char *b);
/* The part of a divided model's graph that a stage computes: forward, which depends on no later
 * stage, or the rest of it. Inputs are feeds, what other stages send, and what the stage's forward
 * part leaves for the rest of it, all by the names of their values; so are outputs. The first
 * stage's forward part has all feeds. *out has no nodes where there is nothing to do; the caller
 * owns it. Errors: WF_NOMEM. */
WF_MUST_USE wf_status wf_stages_cut(const wf_compiled *c, uint32_t stage, bool backward,
                                    wf_graph **out, wf_err *err);

/* How many elements a value has along each axis: sizes[i], or where that is negative -sizes[i] for
 * each record. False if one follows from something else, or the rank is not known. */
bool wf_value_sizes(const wf_value *v, int64_t sizes[WF_MAX_RANK]);

/* The index of a variable by name, or -1. */
int64_t wf_compiled_find(const wf_compiled *c, const char *name);

/* Puts content in place of a variable's own, in a graph where variables stay (INFER, RUN, GRAD,
 * EVAL with LOCAL). On success the graph takes *content and sets it to NULL.
 * Errors: WF_NOTFOUND naming the nearest; WF_SHAPE with both shapes. */
WF_MUST_USE wf_status wf_compiled_set_variable(wf_compiled *c, const char *name,
                                               wf_tensor **content, wf_err *err);

/* Adds what one batch of `records` gave, `elems` numbers of `dtype`, to a metric (or the loss), by
 * what the output means. Errors: WF_NOMEM. */
WF_MUST_USE wf_status wf_metric_add(wf_measure *m, wf_meaning meaning, double per_record,
                                    uint64_t records, wf_dtype dtype, size_t elems,
                                    const void *data, wf_err *err);
/* The number that a metric's sums stand for, by the row m->metric; their mean when there is no such
 * row (the loss). Settles the sums. */
double wf_metric_value(wf_measure *m);
/* Whether that is sum / count, so that two values with their counts give the value of both; fills
 * them. Settles the sums. */
bool wf_metric_mean(wf_measure *m, double *sum, double *count);

/* For `weft export`: the model's inference form with the given weights, ready for wf_onnx_write.
 * Loss, labels and Dropout are gone, names of inputs, outputs and variables are the model's.
 * `weights` [n] gives a variable's content by its name; what is not given keeps its initial content
 * (frozen variables). Weights that this form does not use (of the loss alone) are passed over.
 * Reads its arguments during the call only; the caller owns *out. Errors: as wf_compile; WF_SHAPE
 * for weights that do not fit. */
typedef struct wf_named_tensor {
    const char *name;
    const wf_tensor *tensor;
} wf_named_tensor;
WF_MUST_USE wf_status wf_compile_export(const wf_compile_spec *spec, size_t n,
                                        const wf_named_tensor weights[], wf_graph **out,
                                        wf_err *err);

#endif
