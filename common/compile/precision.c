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
 * together with what they come from; a Concat rounds instead what has to stay float32, as rows of
 * tables that something else reads too.
 *
 * Float32 remain: variables and their gradients, results of the graph, what losses, metrics, norms
 * and softmax read, and results of products that nothing else multiplies.
 *
 * GPUs keep more: there a convolution and attention have narrow results in any case (cuDNN makes no
 * others of narrow factors), so they stay so, and batch normalisations read and write them. A
 * product rounds its result as it writes it, which halves what it writes and what is read of it.
 * What is computed of narrow values alone follows, as types do in frameworks that compute in mixed
 * precision: the activations behind, sums of residuals, poolings, and the gradients of all. A sum
 * of a product and a residual of float32 is float32. The graph has the types of processors, and
 * attributes where those of GPUs differ.
 */
#include "common/compile/pass.h"
#include "common/graph/narrow.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define INPUT(i) (1u << (i))
#define OUTPUT(i) (1u << (i))
#define ALL UINT32_MAX

/* What GPUs do beside. */
typedef struct gpu_row {
    uint32_t reads, makes; /* as below; `makes` of what multiplies only where it does */
    uint32_t follows;      /* output 0 is kept narrow where all of these inputs are that are as
                            * large as a batch */
    uint32_t asks;         /* inputs that are then wanted narrow too */
} gpu_row;

/* What an operation does with values of float32. Of an operation that is not listed none is narrow.
 */
typedef struct row {
    const char *op;
    uint32_t rounds; /* inputs that it multiplies, if `multiplies` says so of the node */
    uint32_t reads;  /* inputs that may be narrow beside them */
    uint32_t makes;  /* outputs that it may round */
    bool moves;      /* outputs are elements of its float inputs: all are narrow, or none */
    bool is_typed;   /* moves, but not whatever its elements are: the node has to be narrow */
    gpu_row gpu;
} row;

#define FACTORS(op_, rounds_, makes_)                                                              \
    {                                                                                              \
        .op = op_, .rounds = rounds_, .makes = makes_, .gpu = {.makes = makes_ }                   \
    }
#define ELEMENTWISE(op_)                                                                           \
    {                                                                                              \
        .op = op_, .reads = ALL, .makes = OUTPUT(0), .gpu = {.follows = ALL }                      \
    }
#define CURVE(op_) ELEMENTWISE(op_), ELEMENTWISE(op_ "Grad")
#define NORM(op_)                                                                                  \
    {.op = op_, .makes = OUTPUT(0)},                                                               \
    {                                                                                              \
        .op = op_ "Grad", .makes = OUTPUT(0), .gpu = {.reads = INPUT(0) }                          \
    }
#define BATCH_NORM(op_)                                                                            \
    {                                                                                              \
        .op = op_, .makes = OUTPUT(0), .gpu = {.reads = INPUT(0), .follows = INPUT(0) }            \
    }
#define POOL(op_)                                                                                  \
    {                                                                                              \
        .op = op_, .gpu = {.reads = INPUT(0), .makes = OUTPUT(0), .follows = INPUT(0) }            \
    }
#define MOVES(op_)                                                                                 \
    {                                                                                              \
        .op = op_, .moves = true                                                                   \
    }

/* By name alone: no two operations of ONNX and ai.weft share one. */
static const row rows[] = {
    {.op = "Conv", .rounds = INPUT(0), .gpu = {.makes = OUTPUT(0)}},
    {.op = "ConvDataGrad",
     .rounds = INPUT(0),
     .reads = INPUT(2), /* of that only the shape */
     .gpu = {.makes = OUTPUT(0)}},
    FACTORS("ConvWeightGrad", INPUT(0) | INPUT(1), 0),
    FACTORS("DotAttention", INPUT(0) | INPUT(1) | INPUT(2), OUTPUT(0)),
    {.op = "DotAttentionGrad",
     .rounds = INPUT(0) | INPUT(1) | INPUT(2) | INPUT(3),
     .reads = INPUT(5), /* y */
     .makes = OUTPUT(0) | OUTPUT(1) | OUTPUT(2),
     .gpu = {.makes = OUTPUT(0) | OUTPUT(1) | OUTPUT(2)}},
    FACTORS("Gemm", INPUT(0) | INPUT(1), OUTPUT(0)),
    {.op = "Linear",
     .rounds = INPUT(0) | INPUT(1),
     .reads = INPUT(3), /* compares it */
     .makes = OUTPUT(0),
     .gpu = {.makes = OUTPUT(0)}},
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
    BATCH_NORM("BatchNormalization"),
    BATCH_NORM("BatchNormalizationTrain"),
    {.op = "BatchNormalizationGrad",
     .makes = OUTPUT(0),
     .gpu = {.reads = INPUT(0) | INPUT(1), .follows = INPUT(1), .asks = INPUT(0)}},
    NORM("LayerNormalization"),
    NORM("RMSNormalization"),
    POOL("AveragePool"),
    POOL("GlobalAveragePool"),
    {.op = "AveragePoolGrad",
     .gpu = {.reads = ALL, .makes = OUTPUT(0), .follows = INPUT(1)}}, /* of that only the shape */
    {.op = "MaxPool", .moves = true, .is_typed = true},
    {.op = "MaxPoolGrad",
     .reads = INPUT(1) | INPUT(2), /* compares them */
     .gpu = {.reads = INPUT(0), .makes = OUTPUT(0), .follows = ALL}},
    {.op = "SoftmaxCrossEntropyGrad", .makes = OUTPUT(0)},
    {.op = "ReduceMean", .reads = INPUT(0)},
    {.op = "ReduceSum", .reads = INPUT(0)},
    {.op = "Shape", .gpu = {.reads = INPUT(0)}},
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

/* Values that moves join: all narrow or none, but for those of a Concat that rounds. By
 * wf_value.index. */
typedef struct groups {
    bool on_gpus;     /* what is decided on, or else on processors */
    uint32_t *parent; /* [n_values], up to the group's first value, which is its own */
    bool *refused;    /* [n_values], of a group's first value: one of it stays float32 */
    bool *wanted;     /* likewise: somebody multiplies one of it, or it follows others */
} groups;

static uint32_t group_of(const groups *g, const wf_value *v)
{
    uint32_t i = v->index;

    while (g->parent[i] != i)
        i = g->parent[i] = g->parent[g->parent[i]];
    return i;
}

static bool is_kept(const groups *g, const wf_value *v)
{
    const uint32_t at = group_of(g, v);

    return g->wanted[at] && !g->refused[at];
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
            if (is_moved(n->in[i]) && is_moved(n->out[k])) {
                uint32_t from = group_of(g, n->in[i]), to = group_of(g, n->out[k]);

                g->parent[from] = to;
                g->refused[to] |= g->refused[from];
                g->wanted[to] |= g->wanted[from];
            }
}

static bool is_concat(const wf_node *n)
{
    return strcmp(n->op->name, "Concat") == 0;
}

/* Whether a Concat rounds: its result is wanted, and some input stays float32 whatever becomes of
 * the result. */
static bool rounds_some(const groups *g, const wf_node *n)
{
    bool some = false;

    if (n->n_in > WF_NARROW_INPUTS || n->out[0]->dtype != WF_F32 || !is_kept(g, n->out[0]))
        return false;
    for (uint32_t i = 0; i < n->n_in; i++)
        some = some || g->refused[group_of(g, n->in[i])];
    return some;
}

/* The outputs of n that it can round, but for those that it moves. */
static uint32_t made_by(const groups *g, const wf_node *n, const row *r)
{
    return r->makes | (g->on_gpus && (!r->rounds || multiplies(n, r)) ? r->gpu.makes : 0);
}

static void ask_concat(groups *g, const wf_node *n)
{
    if (!rounds_some(g, n)) {
        join(g, n);
        return;
    }
    for (uint32_t i = 0; i < n->n_in; i++) /* of those that can be */
        g->wanted[group_of(g, n->in[i])] = true;
}

/* Whether v's maker can round it. */
static bool is_made(const groups *g, const wf_value *v)
{
    const row *r = v->producer ? row_of(v->producer) : NULL;
    uint32_t k = 0;

    if (!r || v->producer->n_in > WF_NARROW_INPUTS)
        return false;
    while (v->producer->out[k] != v)
        k++;
    return r->moves || has(made_by(g, v->producer, r), k);
}

/* What v and its maker say to its group. */
static void ask_maker(const wf_unit *u, groups *g, const wf_value *v)
{
    if (v->dtype != WF_F32 || v->known || wf_is_output(u->graph, v) || !grows_with_the_batch(v) ||
        !is_made(g, v))
        g->refused[group_of(g, v)] = true;
}

/* What n says to the groups of its operands, and on GPUs of results that come out narrow. */
static void ask_reader(groups *g, const wf_node *n)
{
    const row *r = row_of(n);
    const uint32_t reads = r->reads | (g->on_gpus ? r->gpu.reads : 0);
    bool rounds = multiplies(n, r);

    for (uint32_t i = 0; i < n->n_in; i++) {
        uint32_t at;

        if (!n->in[i])
            continue;
        at = group_of(g, n->in[i]);
        if (rounds && has(r->rounds, i))
            g->wanted[at] = true;
        else if (!r->moves && (n->n_in > WF_NARROW_INPUTS || !has(reads, i)))
            g->refused[at] = true;
    }
    for (uint32_t k = 0; rounds && g->on_gpus && k < n->n_out; k++)
        if (n->out[k] && has(r->gpu.makes, k))
            g->wanted[group_of(g, n->out[k])] = true;
}

/* Whether something else than sums reads what v holds: a square that is computed for a mean alone,
 * as of a loss, stays float32. */
static bool is_read_beside_sums(const wf_value *v)
{
    static const char *const others[] = {"ReduceMean", "ReduceSum", "Shape"};

    for (const wf_use *use = v->first_use; use; use = use->next) {
        size_t i = 0;

        while (i < WF_COUNT(others) && strcmp(use->node->op->name, others[i]) != 0)
            i++;
        if (i == WF_COUNT(others))
            return true;
    }
    return false;
}

/* Whether some of these inputs of n are as large as a batch, and those that are are kept narrow. */
static bool are_kept(const groups *g, const wf_node *n, uint32_t inputs)
{
    bool any = false;

    for (uint32_t i = 0; i < n->n_in; i++) {
        if (!has(inputs, i) || !n->in[i] || !grows_with_the_batch(n->in[i]))
            continue;
        if (!is_kept(g, n->in[i]))
            return false;
        any = true;
    }
    return any;
}

/* On GPUs: wants v, and says whether that is news of a value that is then kept. */
static bool want(groups *g, const wf_value *v)
{
    const uint32_t at = group_of(g, v);
    const bool was = g->wanted[at];

    g->wanted[at] = true;
    return !was && !g->refused[at];
}

/* On GPUs: what follows from the values that are kept so far. */
static bool follow(groups *g, const wf_node *n)
{
    const gpu_row *r = &row_of(n)->gpu;
    bool news = false;

    if (!r->follows || !are_kept(g, n, r->follows))
        return false;
    if (n->out[0] && is_read_beside_sums(n->out[0]))
        news = want(g, n->out[0]);
    for (uint32_t i = 0; i < n->n_in; i++)
        if (has(r->asks, i) && n->in[i])
            news |= want(g, n->in[i]);
    return news;
}

/* Fills g, all of whose values are float32 in the graph. */
static void decide(const wf_unit *u, groups *g)
{
    const wf_graph *graph = u->graph;
    bool news = g->on_gpus;

    for (size_t i = 0; i < graph->n_values; i++) {
        g->parent[i] = (uint32_t)i;
        g->refused[i] = g->wanted[i] = false;
    }
    for (size_t i = 0; i < graph->n_nodes; i++)
        if (row_of(graph->nodes[i])->moves && !is_concat(graph->nodes[i]))
            join(g, graph->nodes[i]);
    for (size_t i = 0; i < graph->n_values; i++)
        ask_maker(u, g, graph->values[i]);
    for (size_t i = 0; i < graph->n_nodes; i++)
        ask_reader(g, graph->nodes[i]);
    for (size_t i = graph->n_nodes; i-- > 0;) /* readers before makers */
        if (is_concat(graph->nodes[i]))
            ask_concat(g, graph->nodes[i]);
    while (news) { /* each round wants a value more than the one before, or is the last */
        news = false;
        for (size_t i = 0; i < graph->n_nodes; i++)
            news |= follow(g, graph->nodes[i]);
    }
}

/* How a node is narrow: whether it is, and the bits of its outputs. */
typedef struct marks {
    bool reads;
    uint32_t out;
} marks;

static marks marks_of(const groups *g, const wf_node *n)
{
    const row *r = row_of(n);
    marks m = {0};
    bool is_mixed = false;

    for (uint32_t i = 0; i < n->n_in; i++) {
        m.reads = m.reads || (n->in[i] && is_kept(g, n->in[i]));
        is_mixed = is_mixed || (is_concat(n) && is_kept(g, n->in[i]) != is_kept(g, n->out[0]));
    }
    if (r->moves && !r->is_typed && !is_mixed)
        return (marks){0};
    for (uint32_t i = 0; i < n->n_out && i < 32; i++)
        if (n->out[i] && is_kept(g, n->out[i]))
            m.out |= OUTPUT(i);
    return m;
}

static wf_status mark_for_gpus(wf_unit *u, const groups *g, wf_err *err)
{
    for (size_t i = 0; i < u->graph->n_nodes; i++) {
        const marks m = marks_of(g, u->graph->nodes[i]);

        if (m.reads || m.out)
            WF_TRY(wf_node_set_int(u->graph, u->graph->nodes[i], WF_NARROW_OUT_GPU, m.out, err));
    }
    return WF_OK;
}

/* Of a node that is the same on GPUs, their attribute goes. */
static wf_status mark(wf_unit *u, const groups *g, wf_node *n, wf_dtype to, wf_err *err)
{
    const marks m = marks_of(g, n);

    if (!m.reads && !m.out)
        return WF_OK;
    if (wf_node_int(n, WF_NARROW_OUT_GPU, -1) == (int64_t)m.out)
        wf_node_drop_attr(n, WF_NARROW_OUT_GPU);
    WF_TRY(wf_node_set_string(u->graph, n, WF_NARROW, wf_dtype_name(to), err));
    return wf_node_set_int(u->graph, n, WF_NARROW_OUT, m.out, err);
}

static wf_status mark_all(wf_unit *u, groups *g, wf_err *err)
{
    wf_graph *graph = u->graph;
    wf_dtype to = u->spec->narrow;

    g->on_gpus = true;
    decide(u, g);
    WF_TRY(mark_for_gpus(u, g, err));
    g->on_gpus = false;
    decide(u, g);
    for (size_t i = 0; i < graph->n_nodes; i++)
        WF_TRY(mark(u, g, graph->nodes[i], to, err));
    for (size_t i = 0; i < graph->n_values; i++)
        if (is_kept(g, graph->values[i]))
            graph->values[i]->dtype = to;
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
    rc = g.parent && g.refused && g.wanted ? mark_all(u, &g, err)
                                           : wf_fail_nomem(err, n * sizeof *g.parent);
    free(g.parent);
    free(g.refused);
    free(g.wanted);
    return rc;
}
