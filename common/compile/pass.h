/* SPDX-License-Identifier: Apache-2.0 */
/* common/compile/pass.h - what the passes of this room share; nobody outside includes it.
 *
 * A pass rewrites u->graph and may leave facts for those after it in the unit. Pointers to values
 * stay valid all through a compilation (the graph's arena keeps them), but a value that a rewrite
 * bypassed is no longer what flows: passes that look for one later go by the graph's outputs and by
 * the Pull and Push nodes, which rewrites respect.
 */
#ifndef WF_COMPILE_PASS_H
#define WF_COMPILE_PASS_H

#include "common/base/arena.h"
#include "common/base/cc.h"
#include "common/base/distribution.h"
#include "common/base/status.h"
#include "common/compile/compile.h"
#include "common/graph/graph.h"
#include "common/graph/op.h"
#include "common/tensor/tensor.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* An output that was asked for. */
typedef struct wf_fetch {
    wf_value *value; /* NULL: a gradient that is zero */
    wf_meaning meaning;
    const char *label;
    double per_record;
    const char *metric;   /* its row's name, of metrics */
    const char *variable; /* GRADIENT */
} wf_fetch;

/* A trainable variable and its gradient, NULL when the loss does not reach it. */
typedef struct wf_target {
    wf_value *variable, *gradient;
    const wf_tensor *initial; /* of the variable, shared: pruning may take the variable away */
} wf_target;

/* A variable whose value left the graph for the ps: what is known of it. `initial` is shared. */
typedef struct wf_held {
    const char *name;
    wf_var_kind kind;
    const wf_tensor *initial;
    double momentum; /* of a statistic */
} wf_held;

/* A variable of a layer whose rows have any ids: in the graph it has a row for each bucket, without
 * content. */
typedef struct wf_unbounded {
    const char *name;
    wf_distribution first; /* of its rows */
    int line;              /* of the layer */
    struct wf_unbounded *next;
} wf_unbounded;

/* A variable of a layer that the job calls a table: a ps computes its first values, and in the
 * graph it has a shape without content. */
typedef struct wf_seeded {
    const char *name;
    wf_distribution first; /* of its elements, each by its number */
    const void *blank;     /* the content that stands for them; another: they were given */
    struct wf_seeded *next;
} wf_seeded;

/* A variable that the job calls a table. */
typedef struct wf_table {
    const char *name;
    const wf_conf_table *conf;     /* what the job says of it */
    const wf_unbounded *unbounded; /* NULL: its rows are numbered from 0 */
    wf_value *value;               /* the variable; after the pass `tables` the rows of a batch */
    const wf_tensor *initial;      /* of all its rows, shared; NULL: it has not been cut out */
    uint64_t rows_most;
} wf_table;

/* The type in which a ps holds its values. */
static inline wf_dtype wf_table_dtype(const wf_table *t)
{
    return t->conf->dtype ? wf_dtype_of(t->conf->dtype) : WF_F32;
}

/* One use of a table: an input of the graph that stands for an output of the ids graph. */
typedef struct wf_table_use {
    const wf_table *table;
    const wf_value *places;
    const wf_value *cut; /* the ids in the graph, which it reads no more */
    const char *ids;     /* their name in the ids graph */
    bool is_bag;         /* an id below 0 names no row */
} wf_table_use;

/* A running value of BatchNormalization in TRAIN: the graph makes the batch's own. */
typedef struct wf_statistic {
    const char *name;
    const wf_tensor *initial; /* shared */
    wf_value *batch;
    double momentum;
} wf_statistic;

/* What a loss compares: labels of which form with scores of which. Metrics go by it. */
typedef enum wf_loss_kind {
    WF_LOSS_OTHER = 0,
    WF_LOSS_SPARSE,      /* scores [batch, ..., classes], labels [batch, ...] are classes */
    WF_LOSS_CATEGORICAL, /* labels [batch, ..., classes] are weights of classes */
    WF_LOSS_BINARY,      /* labels have the scores' shape, 0 or 1 */
    WF_LOSS_REGRESSION   /* the same shapes, any numbers */
} wf_loss_kind;

struct wf_loss_row;

/* One loss of the model: a function over an output and its labels. */
typedef struct wf_goal {
    const char *output;            /* as the job names it; NULL: the first output */
    const wf_conf_item *item;      /* the function and its options; NULL: the file's own loss */
    const struct wf_loss_row *row; /* NULL: the file's own loss */
    double weight;                 /* in the sum of all losses */
    wf_loss_kind kind;
    wf_value *scores, *labels;  /* NULL when what the loss compares is not known */
    const wf_value *label_feed; /* the input that holds the labels, when it is known */
    bool scores_are_logits;
    bool classes_second; /* SPARSE scores are [batch, classes, ...], as ONNX has them */
    bool ignores;        /* labels of the class `ignored` count nowhere */
    int64_t ignored;
    wf_value *weights; /* of examples, as labels or [batch]; NULL: none */
    wf_value *loss;    /* scalar */
} wf_goal;

typedef struct wf_unit {
    const wf_compile_spec *spec;
    wf_compiled *c;
    wf_graph *graph;
    wf_arena *arena; /* c's */

    wf_value **model_outputs; /* [n_model_outputs]: what the model gives, loss included */
    size_t n_model_outputs;
    wf_value *loss;       /* scalar; NULL in RUN and INFER */
    wf_value *loss_scale; /* an input that the loss is multiplied by; NULL: none */
    wf_value *penalty;    /* scalar: what regularizers add to a loss; NULL: nothing */
    wf_goal *goals;       /* [n_goals]: the losses whose sum `loss` is */
    size_t n_goals;

    wf_unbounded *unbounded; /* those of the model's layers */
    wf_seeded *seeded;
    wf_table *tables;
    size_t n_tables;
    wf_table_use *uses; /* [n_uses]: of all tables */
    size_t n_uses;
    wf_target *targets;
    size_t n_targets;
    wf_fetch *fetches;
    size_t n_fetches, fetches_room;
    wf_held *held;
    size_t n_held;
    wf_statistic *statistics;
    size_t n_statistics;
    size_t warnings_room;
} wf_unit;

typedef struct wf_pass {
    const char *name, *help;
    wf_status (*run)(wf_unit *u, wf_err *err);
} wf_pass;

WF_MUST_USE wf_status wf_pass_import(wf_unit *u, wf_err *err);
/* Part of import: halves become float32, in widen.c; and a tensor of halves as float32 and back,
 * which the caller owns. */
WF_MUST_USE wf_status wf_import_widen(wf_unit *u, wf_err *err);
WF_MUST_USE wf_status wf_widened(const wf_tensor *t, wf_tensor **out, wf_err *err);
WF_MUST_USE wf_status wf_narrowed(const wf_tensor *t, wf_dtype half, wf_tensor **out, wf_err *err);
WF_MUST_USE wf_status wf_pass_weights(wf_unit *u, wf_err *err);
WF_MUST_USE wf_status wf_pass_loss(wf_unit *u, wf_err *err);
WF_MUST_USE wf_status wf_pass_recognise(wf_unit *u, wf_err *err);
WF_MUST_USE wf_status wf_pass_mode(wf_unit *u, wf_err *err);
/* Part of mode: BatchNormalization, in batch_norm.c. */
WF_MUST_USE wf_status wf_mode_batch_norm(wf_unit *u, wf_err *err);
WF_MUST_USE wf_status wf_pass_tables(wf_unit *u, wf_err *err);
/* Part of tables, in table_uses.c: the live nodes that read table t, Gathers all of them, into
 * gathers [n_nodes] in the order of nodes. `live` by node: those that someone needs. Errors:
 * WF_USAGE, which says why the variable can be no table. */
WF_MUST_USE wf_status wf_table_gathers(const wf_unit *u, const wf_table *t, const bool live[],
                                       wf_node *gathers[], size_t *n, wf_err *err);
/* Part of tables, in tables.c: marks by index the nodes that an output needs or a statistic, which
 * is pushed later. The graph is sorted. */
WF_MUST_USE wf_status wf_mark_live(wf_unit *u, bool live[], wf_err *err);
/* Part of tables, in whole_tables.c: unbounded tables of a graph without parameter servers. */
WF_MUST_USE wf_status wf_put_whole_tables(wf_unit *u, wf_err *err);
/* The most elements that a value has for a batch of the spec's size; -1: nothing bounds them. */
int64_t wf_most_elems(const wf_value *v);
WF_MUST_USE wf_status wf_pass_differentiate(wf_unit *u, wf_err *err);
/* Part of differentiate: marks by index what `from` is computed from, itself included. The graph is
 * sorted. */
void wf_mark_ancestors(const wf_graph *g, const wf_value *from, bool seen[]);
WF_MUST_USE wf_status wf_pass_update(wf_unit *u, wf_err *err);
WF_MUST_USE wf_status wf_pass_strategy(wf_unit *u, wf_err *err);
/* The rewrite of strategies: variables become Pull, gradients and statistics Push. In
 * strategies/ports.c. */
WF_MUST_USE wf_status wf_rewrite_to_ports(wf_unit *u, wf_err *err);
WF_MUST_USE wf_status wf_pass_prune(wf_unit *u, wf_err *err);
/* Part of prune: marks by index the nodes that the outputs, the sinks and the values wanted before
 * need, and the values that they read. The graph is sorted. */
void wf_mark_needed(const wf_graph *g, bool keep[], bool wanted[]);
WF_MUST_USE wf_status wf_pass_infer(wf_unit *u, wf_err *err);
WF_MUST_USE wf_status wf_pass_fold(wf_unit *u, wf_err *err);
WF_MUST_USE wf_status wf_pass_simplify(wf_unit *u, wf_err *err);
WF_MUST_USE wf_status wf_pass_cse(wf_unit *u, wf_err *err);
WF_MUST_USE wf_status wf_pass_fuse(wf_unit *u, wf_err *err);
WF_MUST_USE wf_status wf_pass_precision(wf_unit *u, wf_err *err);
WF_MUST_USE wf_status wf_pass_frozen(wf_unit *u, wf_err *err);
WF_MUST_USE wf_status wf_pass_place(wf_unit *u, wf_err *err);
WF_MUST_USE wf_status wf_pass_partition(wf_unit *u, wf_err *err);
/* Part of partition: a stage for each node and variable of a model that is divided, in stages.c and
 * stage_find.c; then Send and Recv on each edge between two, and c->edges, in stage_edges.c.
 * Errors: WF_USAGE, with file and line. */
typedef struct wf_stages {
    wf_unit *u;
    uint32_t *of;      /* [n_nodes]: the stage of a node */
    uint8_t *kinds;    /* [n_nodes]: of bits WF_STAGE_ */
    int64_t *variable; /* [n_nodes]: of a Pull or a Push, in c->variables; else -1 */
    bool *placed;      /* [n_variables]: it has a stage */
} wf_stages;
enum {
    WF_STAGE_FORWARD = 1, /* an output needs it */
    WF_STAGE_FLOATS =
        2,              /* it computes with feeds, constants, and variables without a stage alone */
    WF_STAGE_WEIGHS = 4 /* it computes with a variable */
};
WF_MUST_USE wf_status wf_stages_assign(wf_unit *u, wf_err *err);
WF_MUST_USE wf_status wf_stages_find(wf_stages *s, wf_err *err);
WF_MUST_USE wf_status wf_stages_connect(const wf_stages *s, wf_err *err);
/* What marks the nodes of each stage: c->stage_marks. Errors: WF_NOMEM. */
WF_MUST_USE wf_status wf_stages_name(wf_unit *u, wf_err *err);
/* The stage of a node by its mark. */
uint32_t wf_stage_of_node(const wf_compiled *c, const wf_node *n);
/* Whether a node depends on a later stage than its own, for each into late[n_nodes]. The graph is
 * sorted, and its nodes are marked. */
void wf_stages_mark_late(const wf_compiled *c, const wf_graph *g, bool late[]);
WF_MUST_USE wf_status wf_pass_schedule(wf_unit *u, wf_err *err);

/* Keeps a sentence for the person; printf form. */
WF_MUST_USE wf_status wf_unit_warn(wf_unit *u, wf_err *err, const char *fmt, ...) WF_PRINTF(3, 4);
/* "FILE:LINE: " in front of a failure, when the spec came from a job file; returns rc. */
WF_MUST_USE wf_status wf_unit_in_file(const wf_unit *u, int line, wf_status rc, wf_err *err);
/* pins.c: marks the variables that the job pins. Errors: WF_USAGE for a ps that there is not, and
 * for a pattern that matches nothing. */
WF_MUST_USE wf_status wf_unit_pin(wf_unit *u, wf_err *err);
/* Asks for an output; f is copied, its strings are not. */
WF_MUST_USE wf_status wf_unit_fetch(wf_unit *u, wf_fetch f, wf_err *err);
/* Makes the graph's outputs those of the fetches, once each, and no others. */
WF_MUST_USE wf_status wf_unit_set_outputs(wf_unit *u, wf_err *err);

/* Everyone who reads `from` reads `to` from now on, the unit's own pointers included. When `from`
 * is an output of the graph, its name goes over to `to`, or to an Identity of it where `to` is
 * given from outside or is an output itself. */
WF_MUST_USE wf_status wf_hand_over(wf_unit *u, wf_value *from, wf_value *to, wf_err *err);
/* Whether that needs no Identity: nothing would be written twice (an output, a pushed gradient), or
 * be lent from outside while someone expects to own it. */
bool wf_may_hand_over(const wf_graph *g, const wf_value *from, const wf_value *to);

/* Those who read v read a Pull of `variable` from now on, and v's content is held for whoever has
 * the variables. There is room in u->held. In strategies/ports.c. */
WF_MUST_USE wf_status wf_make_pull(wf_unit *u, wf_value *v, const char *variable, wf_var_kind kind,
                                   wf_err *err);

/* weights.c: a variable, or a running value of a BatchNormalization. */
bool wf_is_variable(const wf_graph *g, const wf_value *v);
/* Says that a pattern of the job's `key` matches none of the values that it may, called `among`,
 * and names the one that is nearest: WF_USAGE. */
typedef bool wf_may_match(const wf_graph *g, const wf_value *v);
WF_MUST_USE wf_status wf_matches_nothing(const wf_unit *u, const char *key, int line,
                                         const char *pattern, wf_may_match *may, const char *among,
                                         wf_err *err);

/* codecs.c: what the job says of a variable that is trained; NULL: nothing. */
const wf_conf_codec *wf_unit_codec(const wf_unit *u, const char *name);
/* Whether each entry is for variables that can take it. Errors: WF_USAGE. */
WF_MUST_USE wf_status wf_check_codecs(const wf_unit *u, wf_err *err);

/* The table of that name, of whose rows the graph has those of a batch; NULL: none. */
const wf_table *wf_unit_table(const wf_unit *u, const char *name);
/* Whether a node is that operation; domain "" or "ai.weft". */
bool wf_node_is(const wf_node *n, const char *domain, const char *op);
bool wf_is_output(const wf_graph *g, const wf_value *v);
/* How many nodes' inputs and graph outputs read v. */
size_t wf_uses(const wf_graph *g, const wf_value *v);
/* The one element of a constant float or integer as a number; false when v is no such constant. */
bool wf_scalar_of(const wf_value *v, double *out);
/* Whether v is made so that its last axis sums to 1: a softmax, a pair of p and 1 - p, or what is
 * divided by its sum. */
bool wf_makes_shares(const wf_value *v);

/* Sets what the graph says of class labels that this input holds; f is zero there before. */
void wf_label_feed(const wf_graph *g, const wf_value *input, wf_compiled_feed *f);
/* Sets up c->variables, outputs and feeds from the graph as it is now. */
WF_MUST_USE wf_status wf_unit_collect(wf_unit *u, wf_err *err);
/* Sets up c->uses, once the variables have their places. */
WF_MUST_USE wf_status wf_unit_collect_uses(wf_unit *u, wf_err *err);
/* Shares a tensor's storage under a header in the unit's arena; released by wf_compiled_free. */
WF_MUST_USE wf_status wf_unit_share(wf_unit *u, const wf_tensor *t, const wf_tensor **out,
                                    wf_err *err);
/* XXH3-64 of the model's structure and its losses, see wf_compiled. */
WF_MUST_USE wf_status wf_graph_digest(const wf_graph *g, const wf_compile_spec *spec, uint64_t *out,
                                      wf_err *err);

/* Part of infer. Errors: WF_UNSUPPORTED: an extent of a job's graph depends on what is fed. */
WF_MUST_USE wf_status wf_check_open(const wf_unit *u, wf_err *err);

/* Adds the metrics of the spec to the fetches. */
WF_MUST_USE wf_status wf_attach_metrics(wf_unit *u, wf_err *err);

/* What an initializer takes for the inputs and outputs of one unit. */
typedef struct wf_fans {
    double in, out;
    bool out_first; /* the variable's first axis is the one that Keras has last */
} wf_fans;

/* Whether an initializer gives the elements of a variable of this shape one distribution: then
 * *out. Errors: WF_USAGE: no such initializer. */
WF_MUST_USE wf_status wf_initial_of_shape(const wf_conf_item *how, uint32_t rank,
                                          const int64_t dims[], bool *has, wf_distribution *out,
                                          wf_err *err);
/* The distribution of first values by an initializer, for rows that come one by one. Errors:
 * WF_USAGE: no such initializer, or one that goes by the whole variable. */
WF_MUST_USE wf_status wf_initial_distribution(const wf_conf_item *how, wf_distribution *out,
                                              wf_err *err);
/* The stream of a variable's first values; a row that comes by itself folds its id into it. */
uint64_t wf_initial_stream(const char *variable);
/* Fills a variable's first content, f32, by an initializer with its options. `fans` NULL: by the
 * shape, as Keras counts them. Errors: WF_USAGE: no such initializer, or one that has no meaning
 * for the shape; WF_UNSUPPORTED; WF_NOMEM. */
WF_MUST_USE wf_status wf_initialize(const wf_conf_item *how, const wf_fans *fans, uint64_t seed,
                                    const char *variable, wf_tensor *t, wf_err *err);

#endif
