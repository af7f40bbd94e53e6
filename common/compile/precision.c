/* SPDX-License-Identifier: Apache-2.0 */
/* common/compile/precision.c - which values of a job with `compute: bfloat16` or `float16` are kept
 * in that type between nodes.
 *
 * The graph is whole here, gradients included, and fused: what lies inside of a product or a chain
 * is never in memory, and has no type. A narrow node (common/graph/narrow.h) computes in float32
 * and may read and give both types, so the type of a value is a matter of that value alone.
 *
 * A value is kept narrow where this saves work: some reader rounds it anyway, since it multiplies
 * (Conv, Linear, attention, and their gradients), and every other reader takes it narrow at no cost
 * (elementwise operations, sums, the search for the largest of a window). Its maker then rounds it
 * once, in the pass that makes it; the gradient of softmax with crossentropy is such a value too.
 * Values that operations hand on as they are (Reshape, Transpose, Split, MaxPool) are decided on
 * together with what they come from.
 *
 * Float32 remain: variables and their gradients, results of the graph, what losses, metrics, norms
 * and softmax read, and results of products that nothing else multiplies.
 */
#include "common/compile/pass.h"
#include "common/graph/narrow.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define INPUT(i) (1u << (i))
#define OUTPUT(i) (1u << (i))
#define ALL UINT32_MAX

/* What an operation does with values of float32. Of an operation that is not listed none is narrow.
 */
typedef struct row {
    const char *op;
    uint32_t rounds; /* inputs that it multiplies, if `multiplies` says so of the node */
    uint32_t reads;  /* inputs that may be narrow beside them */
    uint32_t makes;  /* outputs that it may round */
    bool moves;      /* outputs are elements of its float inputs: all are narrow, or none */
    bool is_typed;   /* moves, but not whatever its elements are: the node has to be narrow */
} row;

#define FACTORS(op_, rounds_, makes_)                                                              \
    {                                                                                              \
        .op = op_, .rounds = rounds_, .makes = makes_                                              \
    }
#define ELEMENTWISE(op_)                                                                           \
    {                                                                                              \
        .op = op_, .reads = ALL, .makes = OUTPUT(0)                                                \
    }
#define CURVE(op_) ELEMENTWISE(op_), ELEMENTWISE(op_ "Grad")
#define NORM(op_)                                                                                  \
    {.op = op_, .makes = OUTPUT(0)},                                                               \
    {                                                                                              \
        .op = op_ "Grad", .makes = OUTPUT(0)                                                       \
    }
#define MOVES(op_)                                                                                 \
    {                                                                                              \
        .op = op_, .moves = true                                                                   \
    }

/* By name alone: no two operations of ONNX and ai.weft share one. */
static const row rows[] = {
    FACTORS("Conv", INPUT(0), 0),
    {.op = "ConvDataGrad", .rounds = INPUT(0), .reads = INPUT(2)}, /* of that only the shape */
    FACTORS("ConvWeightGrad", INPUT(0) | INPUT(1), 0),
    FACTORS("DotAttention", INPUT(0) | INPUT(1) | INPUT(2), OUTPUT(0)),
    FACTORS("DotAttentionGrad", INPUT(0) | INPUT(1) | INPUT(2) | INPUT(3),
            OUTPUT(0) | OUTPUT(1) | OUTPUT(2)),
    FACTORS("Gemm", INPUT(0) | INPUT(1), OUTPUT(0)),
    FACTORS("Linear", INPUT(0) | INPUT(1), OUTPUT(0)),
    FACTORS("MatMul", INPUT(0) | INPUT(1), OUTPUT(0)),
    FACTORS("Product", INPUT(0) | INPUT(1), OUTPUT(0)),
    ELEMENTWISE("Add"),
    ELEMENTWISE("Chain"),
    ELEMENTWISE("Div"),
    ELEMENTWISE("Mul"),
    ELEMENTWISE("Sub"),
    CURVE("Celu"),
    CURVE("Elu"),
    CURVE("Gelu"),
    CURVE("HardSigmoid"),
    CURVE("HardSwish"),
    CURVE("LeakyRelu"),
    CURVE("Mish"),
    CURVE("Relu"),
    CURVE("Selu"),
    CURVE("Shrink"),
    CURVE("Sigmoid"),
    CURVE("Softplus"),
    CURVE("Softsign"),
    CURVE("Swish"),
    CURVE("Tanh"),
    CURVE("ThresholdedRelu"),
    NORM("BatchNormalization"),
    NORM("LayerNormalization"),
    NORM("RMSNormalization"),
    {.op = "BatchNormalizationTrain", .makes = OUTPUT(0)},
    {.op = "MaxPool", .moves = true, .is_typed = true},
    {.op = "MaxPoolGrad", .reads = INPUT(1) | INPUT(2)}, /* compares them */
    {.op = "SoftmaxCrossEntropyGrad", .makes = OUTPUT(0)},
    {.op = "ReduceMean", .reads = INPUT(0)},
    {.op = "ReduceSum", .reads = INPUT(0)},
    MOVES("Concat"),
    MOVES("Flatten"),
    MOVES("Identity"),
    MOVES("Reshape"),
    MOVES("Split"),
    MOVES("Squeeze"),
    MOVES("Transpose"),
    MOVES("Unsqueeze"),
};

static const row *row_of(const wf_node *n)
{
    static const row none;

    for (size_t i = 0; i < WF_COUNT(rows); i++)
        if (strcmp(rows[i].op, n->op->name) == 0)
            return &rows[i];
    return &none;
}

static bool has(uint32_t set, uint32_t i)
{
    return i < 32 && (set >> i & 1u);
}

/* Elements of v at the largest batch; infinite where that is not known. */
static double elems(const wf_value *v)
{
    double n = 1;

    for (int32_t i = 0; i < v->rank; i++) {
        int64_t size = v->axes[i].size >= 0 ? v->axes[i].size : v->axes[i].bound;

        n *= size >= 0 ? (double)size : (double)INFINITY;
    }
    return n;
}

/* Multiply-adds of a product below which rounding its factors outweighs what it gains; channels of
 * a convolution. docs/jobs.md names both. */
#define LEAST_PRODUCT 1e6
enum { LEAST_CHANNELS = 16 };

static bool is_large_product(const wf_node *n)
{
    const wf_value *a = n->in[0], *b = n->in[1], *c = n->out[0];

    if (a->rank < 1 || b->rank < 1 || (b->rank > 2 && a->rank > 1)) /* one for each of a batch */
        return false;
    /* m k, k n and m n elements */
    return sqrt(elems(a)) * sqrt(elems(b)) * sqrt(elems(c)) >= LEAST_PRODUCT;
}

static bool is_large_convolution(const wf_node *n)
{
    bool of_weights = strcmp(n->op->name, "ConvWeightGrad") == 0;
    const wf_value *w = n->n_in > 2 && of_weights ? n->in[2] : n->in[1];
    int64_t m, c, taps = 1;

    if (!w || w->rank < 3 || w->rank > 4 || wf_node_int(n, "group", 1) != 1)
        return false;
    m = w->axes[0].size;
    c = w->axes[1].size;
    for (int32_t i = 2; i < w->rank; i++)
        taps *= w->axes[i].size;
    if (strcmp(n->op->name, "ConvDataGrad") == 0)
        return m >= LEAST_CHANNELS && c >= LEAST_CHANNELS;
    return m >= LEAST_CHANNELS && c * taps >= LEAST_CHANNELS;
}

/* Whether n rounds its factors. */
static bool multiplies(const wf_node *n, const row *r)
{
    if (!r->rounds)
        return false;
    if (strncmp(n->op->name, "Conv", 4) == 0)
        return is_large_convolution(n);
    return strncmp(n->op->name, "DotAttention", 12) == 0 || is_large_product(n);
}

static bool grows_with_the_batch(const wf_value *v)
{
    for (int32_t i = 0; i < v->rank; i++)
        if (v->axes[i].size < 0)
            return true;
    return false;
}

/* Values that moves join: all narrow or none. By wf_value.index. */
typedef struct groups {
    uint32_t *parent; /* [n_values], up to the group's first value, which is its own */
    bool *refused;    /* [n_values], of a group's first value: one of it stays float32 */
    bool *wanted;     /* likewise: somebody multiplies one of it */
} groups;

static uint32_t group_of(const groups *g, const wf_value *v)
{
    uint32_t i = v->index;

    while (g->parent[i] != i)
        i = g->parent[i] = g->parent[g->parent[i]];
    return i;
}

static bool is_moved(const wf_value *v)
{
    return v && v->dtype == WF_F32;
}

/* Joins what a node moves. */
static void join(groups *g, const wf_node *n)
{
    for (uint32_t i = 0; i < n->n_in; i++)
        for (uint32_t k = 0; k < n->n_out; k++)
            if (is_moved(n->in[i]) && is_moved(n->out[k]))
                g->parent[group_of(g, n->in[i])] = group_of(g, n->out[k]);
}

/* Whether v's maker can round it. */
static bool is_made(const wf_value *v)
{
    const row *r = v->producer ? row_of(v->producer) : NULL;
    uint32_t k = 0;

    if (!r || v->producer->n_in > WF_NARROW_INPUTS)
        return false;
    while (v->producer->out[k] != v)
        k++;
    return r->moves || has(r->makes, k);
}

/* What v and its maker say to its group. */
static void ask_maker(const wf_unit *u, groups *g, const wf_value *v)
{
    if (v->dtype != WF_F32 || v->known || wf_is_output(u->graph, v) || !grows_with_the_batch(v) ||
        !is_made(v))
        g->refused[group_of(g, v)] = true;
}

/* What n says to the groups of its operands. */
static void ask_reader(groups *g, const wf_node *n)
{
    const row *r = row_of(n);
    bool rounds = multiplies(n, r);

    for (uint32_t i = 0; i < n->n_in; i++) {
        uint32_t at;

        if (!n->in[i])
            continue;
        at = group_of(g, n->in[i]);
        if (rounds && has(r->rounds, i))
            g->wanted[at] = true;
        else if (!r->moves && (n->n_in > WF_NARROW_INPUTS || !has(r->reads, i)))
            g->refused[at] = true;
    }
}

/* Makes n what its operands and results want, which have their dtypes. */
static wf_status mark(wf_unit *u, wf_node *n, wf_dtype to, wf_err *err)
{
    const row *r = row_of(n);
    bool reads = false;
    uint32_t out = 0;

    for (uint32_t i = 0; i < n->n_in; i++)
        reads = reads || (n->in[i] && n->in[i]->dtype == to);
    for (uint32_t i = 0; i < n->n_out && i < 32; i++)
        if (n->out[i] && n->out[i]->dtype == to)
            out |= OUTPUT(i);
    if ((!reads && !out) || (r->moves && !r->is_typed))
        return WF_OK;
    WF_TRY(wf_node_set_string(u->graph, n, WF_NARROW, wf_dtype_name(to), err));
    return wf_node_set_int(u->graph, n, WF_NARROW_OUT, out, err);
}

static wf_status decide(wf_unit *u, groups *g, wf_err *err)
{
    wf_graph *graph = u->graph;
    wf_dtype to = u->spec->narrow;

    for (size_t i = 0; i < graph->n_values; i++)
        g->parent[i] = (uint32_t)i;
    for (size_t i = 0; i < graph->n_nodes; i++)
        if (row_of(graph->nodes[i])->moves)
            join(g, graph->nodes[i]);
    for (size_t i = 0; i < graph->n_values; i++)
        ask_maker(u, g, graph->values[i]);
    for (size_t i = 0; i < graph->n_nodes; i++)
        ask_reader(g, graph->nodes[i]);
    for (size_t i = 0; i < graph->n_values; i++) {
        uint32_t at = group_of(g, graph->values[i]);

        if (g->wanted[at] && !g->refused[at])
            graph->values[i]->dtype = to;
    }
    for (size_t i = 0; i < graph->n_nodes; i++)
        WF_TRY(mark(u, graph->nodes[i], to, err));
    return wf_infer(graph, err);
}

wf_status wf_pass_precision(wf_unit *u, wf_err *err)
{
    size_t n = u->graph->n_values + 1;
    groups g = {0};
    wf_status rc;

    if (u->spec->narrow == WF_NONE || u->spec->is_portable ||
        (u->spec->mode != WF_COMPILE_TRAIN && u->spec->mode != WF_COMPILE_EVAL))
        return WF_OK;
    g.parent = calloc(n, sizeof *g.parent);
    g.refused = calloc(n, sizeof *g.refused);
    g.wanted = calloc(n, sizeof *g.wanted);
    rc = g.parent && g.refused && g.wanted ? decide(u, &g, err)
                                           : wf_fail_nomem(err, n * sizeof *g.parent);
    free(g.parent);
    free(g.refused);
    free(g.wanted);
    return rc;
}
