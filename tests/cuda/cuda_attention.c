/* SPDX-License-Identifier: Apache-2.0 */
/* tests/cuda/cuda_attention.c - attention by cuDNN, over the host's: which cases go through it,
 * with what result, and that the rest is computed as before. */
#include "common/base/cc.h"
#include "common/exec/exec.h"
#include "common/log/log.h"
#include "tests/cuda/host.h"
#include "tests/unit/graph_test.h"

#include <math.h>
#include <stdlib.h>

enum { SEEDS = 24, MOST_IN = 7 };

static wf_err err;
/* What cuDNN's attention computes in. */
enum { NARROW = 2 };
static const wf_compute narrow[NARROW] = {WF_COMPUTE_BF16, WF_COMPUTE_F16};

/* What stands at the scores: a mask that is given, constant ones, or what the attribute says. */
typedef enum kind { NO_MASK, SUMS, HIDDEN, LATER_BOOL, LATER_SUMS, CAUSAL } kind;

typedef struct layer {
    int64_t heads, t, s, d, e;
    kind mask;
    int64_t mask_heads; /* 1: one for all */
    bool trans_k, is_grad;
    int64_t side; /* heads that lie side by side; 0: their rows lie together */
    bool kept;    /* the gradient has y and the sums of the forward pass */
} layer;

/* Numbers of [-1, 1], other ones for another salt. */
static float *numbers(int64_t n, uint32_t salt)
{
    float *out = malloc((size_t)n * sizeof *out);

    assert_non_null(out);
    for (int64_t i = 0; i < n; i++)
        out[i] = (float)(((uint32_t)i * 2654435761u + salt * 40503u) >> 20) / 2048.0f - 1.0f;
    return out;
}

/* The columns above the diagonal are hidden. */
static wf_value *constant_mask(wf_emit *e, const layer *l)
{
    const bool sums = l->mask == LATER_SUMS;
    wf_tensor *t = NULL;

    assert_ok(wf_tensor_new(sums ? WF_F32 : WF_BOOL, 2, (int64_t[]){l->t, l->s}, &t, &err), err);
    for (int64_t i = 0; i < l->t; i++)
        for (int64_t j = 0; j < l->s; j++)
            if (sums)
                ((float *)t->data)[i * l->s + j] = j > i ? -INFINITY : 0;
            else
                ((uint8_t *)t->data)[i * l->s + j] = j > i;
    return wf_emit_constant(e, "mask", &t);
}

static wf_value *mask_of(wf_graph *g, wf_emit *e, const layer *l)
{
    wf_value *v;

    if (l->mask == NO_MASK || l->mask == CAUSAL)
        return NULL;
    if (l->mask != SUMS && l->mask != HIDDEN)
        return constant_mask(e, l);
    v = input(g, "mask", 3, (int64_t[]){l->mask_heads, l->t, l->s});
    return l->mask == SUMS ? v : wf_emit_cast(e, v, WF_BOOL);
}

static wf_value *heads(wf_graph *g, const char *name, const layer *l, int64_t rows, int64_t columns)
{
    const int64_t side = l->side ? l->side : 1, groups = l->heads / side;

    return input(g, name, 4,
                 l->side ? (int64_t[]){groups, rows, side, columns}
                         : (int64_t[]){1, l->heads, rows, columns});
}

static wf_graph *graph_of(const layer *l)
{
    const wf_attr attrs[] = {wf_attr_float("scale", 0.3f), wf_attr_float("fill", -1e30f),
                             wf_attr_int("transK", l->trans_k),
                             wf_attr_int("causal", l->mask == CAUSAL),
                             wf_attr_int("headsLast", l->side > 0)};
    wf_graph *g = new_graph();
    wf_emit e = wf_emit_begin(g, "a", &err);
    wf_value *in[MOST_IN] = {NULL}, *mask, *made[3];
    uint32_t n = 0;

    if (l->is_grad)
        in[n++] = heads(g, "dy", l, l->t, l->e);
    in[n++] = heads(g, "q", l, l->t, l->d);
    in[n++] = l->trans_k ? heads(g, "k", l, l->d, l->s) : heads(g, "k", l, l->s, l->d);
    in[n++] = heads(g, "v", l, l->s, l->e);
    mask = mask_of(g, &e, l);
    if (mask)
        in[n++] = mask;
    if (l->kept) {
        wf_emit_node(&e, "DotAttention", n - 1, in + 1, WF_COUNT(attrs), attrs, 2, in + 5);
        n = MOST_IN;
    }
    wf_emit_node(&e, l->is_grad ? "DotAttentionGrad" : "DotAttention", n, in, WF_COUNT(attrs),
                 attrs, l->is_grad ? 3 : 1, made);
    assert_ok(wf_emit_end(&e), err);
    for (uint32_t i = 0; i < (l->is_grad ? 3 : 1); i++)
        assert_ok(wf_graph_add_output(g, made[i], &err), err);
    return g;
}

typedef struct result {
    float *values[3];
    int64_t n[3];
    uint32_t outputs;
} result;

static void free_result(result *r)
{
    for (uint32_t i = 0; i < r->outputs; i++)
        free(r->values[i]);
}

static wf_plan *plan_of(const layer *l, const wf_device *device, wf_compute compute, wf_graph **g)
{
    wf_plan *p = NULL;

    *g = graph_of(l);
    assert_ok(
        wf_plan_new(*g,
                    &(wf_plan_options){.device = device, .compute = compute, .deterministic = true},
                    &p, &err),
        err);
    return p;
}

static result compute(const layer *l, const wf_device *device, wf_compute in_type)
{
    float *in[MOST_IN];
    wf_step_key key = {0};
    result r = {.outputs = l->is_grad ? 3 : 1};
    wf_graph *g;
    wf_plan *p = plan_of(l, device, in_type, &g);

    for (uint32_t i = 0; i < wf_plan_n_inputs(p); i++) {
        const wf_port *port = wf_plan_input(p, i);

        in[i] = numbers(port->elems, 7 + i);
        for (int64_t k = 0; k < port->elems && l->mask == HIDDEN && i + 1 == wf_plan_n_inputs(p);
             k++)
            in[i][k] = in[i][k] > 0.5f; /* a fourth is hidden */
        wf_plan_bind_input(p, i, in[i]);
    }
    assert_ok(wf_plan_run(p, &key, NULL, NULL, &err), err);
    for (uint32_t i = 0; i < r.outputs; i++) {
        r.n[i] = wf_plan_output(p, i)->elems;
        r.values[i] = malloc((size_t)r.n[i] * sizeof(float));
        assert_non_null(r.values[i]);
        memcpy(r.values[i], wf_plan_output_data(p, i), (size_t)r.n[i] * sizeof(float));
    }
    for (uint32_t i = 0; i < wf_plan_n_inputs(p); i++)
        free(in[i]);
    wf_plan_free(&p);
    wf_graph_free(&g);
    return r;
}

/* The largest distance of results from the CPU's in float32, of the largest of each. */
static float distance(const result *got, const result *want)
{
    float worst = 0;

    for (uint32_t i = 0; i < want->outputs; i++) {
        float most = 0, far = 0;

        assert_int_equal(got->n[i], want->n[i]);
        for (int64_t k = 0; k < want->n[i]; k++) {
            assert_true(isfinite(got->values[i][k]));
            most = fmaxf(most, fabsf(want->values[i][k]));
            far = fmaxf(far, fabsf(got->values[i][k] - want->values[i][k]));
        }
        worst = fmaxf(worst, far / most);
    }
    return worst;
}

/* How often cuDNN executed a plan for it, whose results are near to the CPU's. */
static size_t executed_for(const layer *l, wf_compute in_type)
{
    static const float most_far[WF_COMPUTES] = {
        [WF_COMPUTE_F32] = 1e-5f, [WF_COMPUTE_BF16] = 2e-2f, [WF_COMPUTE_F16] = 2.5e-3f};
    const size_t before = cuda_host_count().dnn_executed;
    result want = compute(l, &wf_cpu, WF_COMPUTE_F32),
           got = compute(l, cuda_host_device(), in_type);
    float far = distance(&got, &want);

    if (!(far <= most_far[in_type]))
        fail_msg("%s, mask %d, gradient %d, turned %d: off by %g", wf_compute_name(in_type),
                 l->mask, l->is_grad, l->trans_k, (double)far);
    free_result(&want);
    free_result(&got);
    return cuda_host_count().dnn_executed - before;
}

static void every_mask_goes_through_it(void **state)
{
    size_t executed = 0, most = 0;

    (void)state;
    for (uint64_t seed = 1; seed <= SEEDS; seed++) {
        layer l = {.heads = 3,
                   .t = 5,
                   .s = 5 + (int64_t)(seed % 2) * 2,
                   .d = 16,
                   .e = 8,
                   .mask = (kind)(seed % (CAUSAL + 1)),
                   .mask_heads = 1,
                   .trans_k = seed / 2 % 2 == 1,
                   .is_grad = seed / 4 % 2 == 1};

        cuda_host_seed(seed);
        l.heads = 2 + (int64_t)seed; /* a case that was never asked for */
        if (seed / 8 % 2 && !l.trans_k) {
            l.side = 3;
            l.heads *= l.side;
        }
        l.kept = l.is_grad && seed / 3 % 2;
        for (int i = 0; i < NARROW; i++) {
            executed += executed_for(&l, narrow[i]);
            most += l.is_grad ? 2 : 1;
        }
    }
    /* The host's cuDNN refuses some at random. */
    assert_in_range(executed, most / 2, most);
}

static void the_rest_is_computed_as_before(void **state)
{
    const layer rest[] = {
        {.heads = 2, .t = 5, .s = 4, .d = 16, .e = 12},
        {.heads = 2, .t = 5, .s = 4, .d = 12, .e = 16, .is_grad = true},
        {.heads = 3, .t = 5, .s = 4, .d = 8, .e = 8, .mask = SUMS, .mask_heads = 3},
        {.heads = 3,
         .t = 5,
         .s = 4,
         .d = 8,
         .e = 8,
         .mask = HIDDEN,
         .mask_heads = 3,
         .is_grad = true},
        {.heads = 6, .t = 5, .s = 4, .d = 12, .e = 16, .side = 2},
        {.heads = 6, .t = 5, .s = 4, .d = 12, .e = 16, .is_grad = true, .side = 3},
        {.heads = 6, .t = 5, .s = 4, .d = 12, .e = 16, .is_grad = true, .side = 3, .kept = true},
    };
    const layer exact = {.heads = 2, .t = 5, .s = 4, .d = 8, .e = 8};

    (void)state;
    for (size_t i = 0; i < WF_COUNT(rest) * NARROW; i++)
        assert_int_equal(executed_for(&rest[i / NARROW], narrow[i % NARROW]), 0);
    assert_int_equal(executed_for(&exact, WF_COMPUTE_F32), 0);
}

/* Asks for a plan until it is one that cuDNN computes. */
static size_t asked_for(const layer *l, wf_compute compute_in)
{
    const size_t before = cuda_host_count().dnn_asked;
    wf_graph *g;
    wf_plan *p = plan_of(l, cuda_host_device(), compute_in, &g);

    wf_plan_free(&p);
    wf_graph_free(&g);
    return cuda_host_count().dnn_asked - before;
}

/* Causal attention, that under a mask, and that without are three. */
static void a_case_is_asked_for_once(void **state)
{
    layer l = {.heads = 101, .t = 6, .s = 6, .d = 8, .e = 8, .mask = CAUSAL};

    (void)state;
    assert_true(asked_for(&l, WF_COMPUTE_BF16) > 0);
    assert_int_equal(asked_for(&l, WF_COMPUTE_BF16), 0);
    l.mask = LATER_SUMS;
    assert_true(asked_for(&l, WF_COMPUTE_BF16) > 0);
    l.mask = SUMS;
    l.mask_heads = 1;
    assert_int_equal(asked_for(&l, WF_COMPUTE_BF16), 0); /* any other mask is one case as well */
    l.mask = NO_MASK;
    assert_true(asked_for(&l, WF_COMPUTE_BF16) > 0);
    assert_true(asked_for(&l, WF_COMPUTE_F16) > 0); /* in the other type it is another case */
    assert_int_equal(asked_for(&l, WF_COMPUTE_F16), 0);
}

/* More heads than the gradient's workspace may be for. */
static void many_heads_are_computed_in_turns(void **state)
{
    size_t most = 0;

    (void)state;
    for (uint64_t seed = 1; seed <= 8; seed++) {
        const int64_t heads = 8000 + 2 * (int64_t)seed;
        const layer l = {.heads = heads,
                         .t = 1 + (seed > 4),
                         .s = 2,
                         .d = 8,
                         .e = 8,
                         .is_grad = true,
                         /* of several groups at a time, and of a part of one */
                         .side = (const int64_t[]){0, 2, heads}[seed % 3],
                         .kept = seed / 2 % 2};
        size_t executed;

        cuda_host_seed(seed);
        executed = executed_for(&l, narrow[seed % NARROW]);
        most = executed > most ? executed : most;
    }
    assert_true(most >= 4); /* two turns of two passes */
}

/* Where the forward pass is in the plan, with what it knew, it runs once. */
static void what_the_forward_pass_knew_is_not_computed_again(void **state)
{
    layer l = {.heads = 200, .t = 5, .s = 4, .d = 8, .e = 8, .is_grad = true, .side = 4};
    size_t again, kept;

    (void)state;
    cuda_host_seed(1);
    again = executed_for(&l, WF_COMPUTE_BF16);
    l.kept = true;
    kept = executed_for(&l, WF_COMPUTE_BF16);
    assert_int_equal(again, 2);
    assert_int_equal(kept, 2); /* with the forward pass itself, which was not in the plan before */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_mask_goes_through_it),
        cmocka_unit_test(the_rest_is_computed_as_before),
        cmocka_unit_test(a_case_is_asked_for_once),
        cmocka_unit_test(many_heads_are_computed_in_turns),
        cmocka_unit_test(what_the_forward_pass_knew_is_not_computed_again),
    };

    wf_log_init("", WF_ERROR);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
