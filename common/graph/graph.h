/* SPDX-License-Identifier: Apache-2.0 */
/* common/graph/graph.h - the front door of common/graph: the dataflow graph, its operations, ONNX.
 *
 * A graph is a list of nodes (operations) over values (the tensors that flow between them). Values
 * have one producer at most: a node, or nobody when the value is an input, a variable or a
 * constant. Everything of a graph lives in its arena and dies with it, but for constant tensors,
 * which the graph owns by itself. A graph is built and rewritten by one thread; a finished one may
 * be read by many.
 *
 * Other headers of this room: op.h (the registry: what weft knows about one operation), emit.h
 * (building nodes, gradients), onnx.h (read and write ModelProto), einsum.h (Einsum's equation),
 * table_rows.h (unbounded tables); infer.h is for ops/ alone.
 *
 * Invariants (wf_graph_check holds them)
 *   G1  nodes are in topological order: a node's inputs are made before it
 *   G2  names of values are unique, and so are names of nodes
 *   G3  every value has a dtype and shape once wf_infer has run; -1 is an extent known at run time
 *   G4  a value's list of uses holds each input of a node that names it, once; so a node's inputs
 *       are written through wf_node_set_in alone
 */
#ifndef WF_GRAPH_GRAPH_H
#define WF_GRAPH_GRAPH_H

#include "common/base/arena.h"
#include "common/base/status.h"
#include "common/tensor/tensor.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct wf_graph wf_graph;
typedef struct wf_node wf_node;
typedef struct wf_value wf_value;
typedef struct wf_op wf_op; /* op.h */

/* The one opset that graphs have inside; older ones are upgraded at import. */
enum { WF_OPSET = 18 };

/* Bytes of a name of a value or node, without its end. */
enum { WF_GRAPH_LONGEST_NAME = 1000 };

#define WF_DOMAIN_ONNX ""
#define WF_DOMAIN_WEFT "ai.weft"
#define WF_DOMAIN_ML "ai.onnx.ml" /* reading a file leaves LabelEncoder of it */

/* One axis. `size` is -1 when it is known at run time only; then `symbol` names it ("batch") or is
 * NULL, and `bound` is the most it can be (-1 when nothing bounds it). */
typedef struct wf_axis {
    int64_t size;
    const char *symbol;
    int64_t bound;
} wf_axis;

/* One element of a small integer tensor whose content inference follows: a number, or the size of a
 * symbolic axis (then never negative), or neither (symbol NULL). Unlike an axis, it may be -1. */
typedef struct wf_elem {
    bool is_known;
    int64_t value;
    const char *symbol;
    int64_t bound; /* as in wf_axis */
} wf_elem;

/* Tensors of more elements than this are not followed. */
enum { WF_MAX_CARRIED = 64 };

typedef enum wf_var_kind {
    WF_VAR_NOT = 0,   /* not a variable */
    WF_VAR_TRAINABLE, /* gets a gradient and an optimizer's rule */
    WF_VAR_STATISTIC, /* a moving average over pushed batch statistics */
    WF_VAR_FROZEN     /* kept with the model, never updated */
} wf_var_kind;

/* One input of a node, in the list of the value that it names; for uses.c. */
typedef struct wf_use {
    wf_node *node;
    struct wf_use *next, **from; /* from: what points here */
} wf_use;

struct wf_value {
    const char *name; /* unique in the graph, never NULL */
    uint32_t index;   /* in graph->values; holds no meaning and may change when a pass runs */
    wf_dtype dtype;   /* WF_NONE: not known yet */
    int32_t rank;     /* -1: not known yet */
    wf_axis axes[WF_MAX_RANK];
    wf_node *producer; /* NULL for inputs, variables and constants */
    uint32_t output;   /* which output of the producer */
    bool is_input;     /* fed from outside */
    /* Who reads it, in no order that means something; outputs of the graph are not among them. */
    wf_use *first_use;
    size_t n_uses;
    /* What is known of the content before a run, or NULL. For a value without producer that is not
     * an input and not a variable it is the value (a constant); for a variable its initial value;
     * for a value with a producer what inference worked out (carried integers, folding). Owned by
     * the graph. */
    wf_tensor *known;
    wf_var_kind variable;
    /* Elements of an int32, int64 or bool tensor of rank 0 or 1, as inference follows them from
     * Shape to Reshape, or NULL. When all of them are known, so is `known`. In the arena. */
    wf_elem *carried;
    uint32_t n_carried;
};

typedef enum wf_attr_kind {
    WF_ATTR_INT = 1,
    WF_ATTR_FLOAT,
    WF_ATTR_STRING,
    WF_ATTR_TENSOR,
    WF_ATTR_INTS,
    WF_ATTR_FLOATS,
    WF_ATTR_STRINGS,
    WF_ATTR_GRAPH /* kept as bytes: weft does not run subgraphs yet, but says so by name */
} wf_attr_kind;

typedef struct wf_attr {
    const char *name;
    wf_attr_kind kind;
    union {
        int64_t i;
        float f;
        const char *s; /* zero-terminated; ONNX strings that hold a zero byte are refused */
        const wf_tensor *t;
    };
    size_t n; /* of the lists */
    const int64_t *ints;
    const float *floats;
    const char *const *strings;
} wf_attr;

struct wf_node {
    const char *name; /* unique, never NULL: made up at import where the file has none */
    uint32_t index;   /* in graph->nodes; graph.c keeps it right */
    const wf_op *op;
    uint32_t n_in, n_out;
    wf_value *const *in; /* NULL: an optional input that is absent; wf_node_set_in writes it */
    wf_use *uses;        /* [n_in]; for uses.c */
    wf_value **out;      /* NULL: an optional output that nobody wants */
    uint32_t n_attrs;
    wf_attr *attrs;
    /* Of a branch that may not be taken: what does not fit leaves its results unknown, and is no
     * error. Gone from a file that is written: by then the branch should be. */
    bool is_tentative;
    const char *device; /* of those that a task lists, the one that runs it; NULL: the first */
};

/* What the file of a model says of itself, for messages. All of it is in the graph's arena. */
typedef struct wf_origin {
    const char *producer, *version; /* "pytorch" and "2.4.0"; "" where the file does not say */
    int64_t opset;                  /* of the file; 0: the graph was read from no file */
    bool names_variables;           /* it says which initializers are trained */
    /* Initializers of one element that were taken for numbers of a formula: constants. */
    const char *const *numbers; /* [n_numbers]: their names */
    size_t n_numbers;
} wf_origin;

struct wf_graph {
    wf_arena *arena;
    const char *name;
    wf_origin origin;
    wf_node **nodes; /* [n_nodes], in topological order (G1) */
    size_t n_nodes;
    wf_value **values; /* [n_values]: all of them, in order of creation */
    size_t n_values;
    wf_value **inputs; /* [n_inputs]: fed values */
    size_t n_inputs;
    wf_value **outputs; /* [n_outputs]: fetched values */
    size_t n_outputs;
    const char
        *device; /* that nodes are marked with as they are added; borrowed; NULL: with none */
    /* Sizes of the arrays above; for graph.c. */
    size_t nodes_room, values_room, inputs_room, outputs_room;
    /* Names to values and nodes; for graph.c. */
    struct wf_names *names;
    uint64_t next_name;
};

/* An empty graph that the caller owns. Errors: WF_NOMEM. */
WF_MUST_USE wf_status wf_graph_new(const char *name, wf_graph **out, wf_err *err);
/* Frees *g with all its nodes, values and tensors, and sets it to NULL; NULL is fine. */
void wf_graph_free(wf_graph **g);
/* A deep copy; constant tensors share their storage. */
WF_MUST_USE wf_status wf_graph_copy(const wf_graph *g, wf_graph **out, wf_err *err);

/* Adds a value. `name` is copied; NULL makes one up. Errors: WF_NOMEM; WF_EXISTS, naming it, when
 * the name is taken. */
WF_MUST_USE wf_status wf_graph_add_value(wf_graph *g, const char *name, wf_value **out,
                                         wf_err *err);
/* A new value with a name like `hint` ("grad/x", "grad/x_1", ...), dtype and axes unknown. A hint
 * longer than WF_GRAPH_LONGEST_NAME is cut: a graph that is written can be read again. */
WF_MUST_USE wf_status wf_graph_add_value_like(wf_graph *g, const char *hint, wf_value **out,
                                              wf_err *err);
/* Adds a constant; on success the graph takes *t and sets it to NULL. */
WF_MUST_USE wf_status wf_graph_add_constant(wf_graph *g, const char *hint, wf_tensor **t,
                                            wf_value **out, wf_err *err);
/* Adds a variable with its initial value, which gives dtype and shape; on success the graph takes
 * *t. Errors: WF_EXISTS, WF_NOMEM. */
WF_MUST_USE wf_status wf_graph_add_variable(wf_graph *g, const char *name, wf_var_kind kind,
                                            wf_tensor **t, wf_value **out, wf_err *err);
/* Gives a value another name, cut to WF_GRAPH_LONGEST_NAME. Errors: WF_EXISTS, WF_NOMEM; the old
 * name stays. */
WF_MUST_USE wf_status wf_graph_rename_value(wf_graph *g, wf_value *v, const char *name,
                                            wf_err *err);
/* Sets dtype and fixed dimensions (-1: unknown, without a symbol). rank <= WF_MAX_RANK. */
void wf_value_set_type(wf_value *v, wf_dtype dtype, uint32_t rank, const int64_t dims[]);
/* Sets what is known of a value; frees what was known. Takes *t and sets it to NULL. */
void wf_value_set_known(wf_value *v, wf_tensor **t);
/* Appends a node. in [n_in] and out [n_out] may hold NULL for what is absent; the outputs must have
 * no producer yet. `name` NULL makes one up. Attributes are added with wf_node_set_*. */
WF_MUST_USE wf_status wf_graph_add_node(wf_graph *g, const wf_op *op, const char *name,
                                        uint32_t n_in, wf_value *const in[], uint32_t n_out,
                                        wf_value *const out[], wf_node **node, wf_err *err);
/* The same with a name like `hint` ("fc1/Mul", "fc1/Mul_1", ...). */
WF_MUST_USE wf_status wf_graph_add_node_like(wf_graph *g, const wf_op *op, const char *hint,
                                             uint32_t n_in, wf_value *const in[], uint32_t n_out,
                                             wf_value *const out[], wf_node **node, wf_err *err);
/* Input i of n is v from now on; NULL: absent. */
void wf_node_set_in(wf_node *n, uint32_t i, wf_value *v);
/* All inputs of n anew. Errors: WF_NOMEM. */
WF_MUST_USE wf_status wf_node_set_ins(wf_graph *g, wf_node *n, uint32_t n_in, wf_value *const in[],
                                      wf_err *err);
/* Output i of a node that nobody wanted so far (Dropout's mask) is made and inferred; one that is
 * there is given as it is. Errors: WF_NOMEM. */
WF_MUST_USE wf_status wf_node_want_output(wf_graph *g, wf_node *n, uint32_t i, wf_value **out,
                                          wf_err *err);
WF_MUST_USE wf_status wf_graph_add_input(wf_graph *g, wf_value *v, wf_err *err);
WF_MUST_USE wf_status wf_graph_add_output(wf_graph *g, wf_value *v, wf_err *err);

/* NULL when there is no such name. */
wf_value *wf_graph_value(const wf_graph *g, const char *name);
wf_node *wf_graph_node(const wf_graph *g, const char *name);

/* Every use of `from` as a node's input or a graph output becomes `to`. */
void wf_graph_replace_uses(wf_graph *g, const wf_value *from, wf_value *to);
/* Drops nodes for which keep[index in g->nodes] is false; their outputs lose their producer. Values
 * that nothing makes or uses any more are dropped too, inputs and outputs excepted. */
void wf_graph_keep_nodes(wf_graph *g, const bool keep[]);
/* Restores G1 after a rewrite. Errors: WF_INVALID, naming a node of a cycle. */
WF_MUST_USE wf_status wf_graph_sort(wf_graph *g, wf_err *err);
/* Checks G1 and G2 and that every input is made or given. Errors: WF_INVALID with the node's name.
 */
WF_MUST_USE wf_status wf_graph_check(const wf_graph *g, wf_err *err);

/* Attributes, by name; a missing one gives the default. A present one of another kind is caught at
 * import, against the operation's table row. */
const wf_attr *wf_node_attr(const wf_node *n, const char *name);
int64_t wf_node_int(const wf_node *n, const char *name, int64_t otherwise);
float wf_node_float(const wf_node *n, const char *name, float otherwise);
const char *wf_node_string(const wf_node *n, const char *name, const char *otherwise);
/* Borrowed list and its length; NULL and 0 when absent. */
const int64_t *wf_node_ints(const wf_node *n, const char *name, size_t *count);
WF_MUST_USE wf_status wf_node_set_int(wf_graph *g, wf_node *n, const char *name, int64_t value,
                                      wf_err *err);
WF_MUST_USE wf_status wf_node_set_string(wf_graph *g, wf_node *n, const char *name,
                                         const char *value, wf_err *err);
/* A copy of any attribute; a tensor in it is copied too (its storage is shared). */
WF_MUST_USE wf_status wf_node_set_attr(wf_graph *g, wf_node *n, const wf_attr *attr, wf_err *err);
/* Drops an attribute; it is fine when it is not there. */
void wf_node_drop_attr(wf_node *n, const char *name);

/* True when input i is there (optional inputs may be missing or NULL). */
static inline bool wf_node_has_in(const wf_node *n, uint32_t i)
{
    return i < n->n_in && n->in[i];
}
static inline bool wf_node_has_out(const wf_node *n, uint32_t i)
{
    return i < n->n_out && n->out[i];
}
/* A value whose content is fixed before any run and is not a variable. */
static inline bool wf_value_is_constant(const wf_value *v)
{
    return v->known && v->variable == WF_VAR_NOT && !v->is_input;
}

/* Works out dtype and axes of every value, and the content of small integer ones, from inputs,
 * variables and constants. To plan for a batch of 32, set the inputs' axes and run it again: what
 * was worked out before is forgotten first. Errors: WF_SHAPE, WF_UNSUPPORTED: a sentence with the
 * node, its operation, and the shapes that do not fit. */
WF_MUST_USE wf_status wf_infer(wf_graph *g, wf_err *err);
/* The same for one node whose inputs are inferred already. */
WF_MUST_USE wf_status wf_infer_node(wf_graph *g, wf_node *n, wf_err *err);

/* True when no axis is unknown; then dims [rank] gets the sizes. */
bool wf_value_dims(const wf_value *v, int64_t dims[WF_MAX_RANK]);
/* Whether the shape of a value of the graph is not known. */
bool wf_graph_is_open(const wf_graph *g);
/* The elements of a small integer (or bool) value, from its carried content or its constant tensor.
 * False when they are not followed; otherwise elems [WF_MAX_CARRIED] and *n are set. */
bool wf_value_elems(const wf_value *v, wf_elem elems[WF_MAX_CARRIED], uint32_t *n);

/* "float32[batch, 784]" for messages. */
const char *wf_value_str(const wf_value *v, char *text, size_t size);

#endif
