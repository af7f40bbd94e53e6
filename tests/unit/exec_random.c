/* SPDX-License-Identifier: Apache-2.0 */
/* tests/unit/exec_random.c - plans of random graphs against each node computed by itself into
 * memory of its own: what sharing memory, working in place and views must never change. A failure
 * prints its seed. */
#include "common/base/rng.h"
#include "common/exec/exec.h"
#include "common/kernels/kernel.h"
#include "tests/kit/remote_device.h"
#include "tests/unit/graph_test.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { SEEDS = 2000, NODES = 40, SIDE = 6, INPUTS = 3, MOST = NODES * 2 + 16 };

typedef struct seeded {
    wf_rng_key key;
    uint64_t at;
} seeded;

static uint64_t below(seeded *l, uint64_t n)
{
    return wf_rng_below(l->key, l->at++, n);
}

/* One more value, [SIDE, SIDE], from earlier ones. */
static wf_value *grow(wf_emit *e, wf_value *const pool[], uint32_t n, seeded *l)
{
    static const char *const unary[] = {"Relu",       "Sigmoid", "Tanh",     "Neg",       "Softmax",
                                        "LogSoftmax", "Gelu",    "Softplus", "HardSwish", "Erf"};
    static const char *const binary[] = {"Add", "Sub", "Mul", "Max"};
    wf_value *a = pool[below(l, n)], *b = pool[below(l, n)];

    switch (below(l, 9)) {
    case 0:
    case 1:
        return wf_emit_unary(e, unary[below(l, 10)], a);
    case 2:
    case 3:
        return wf_emit_binary(e, binary[below(l, 4)], a, b);
    case 4:
        return wf_emit_transpose(e, a, (int64_t[]){1, 0});
    case 5: /* views of views */
        a = wf_emit_reshape(e, a, 3, (int64_t[]){2, 3, SIDE});
        return wf_emit_reshape(e, wf_emit_unary(e, "Relu", a), 2, (int64_t[]){SIDE, SIDE});
    case 6: /* a row spread over the other operand */
        return wf_emit_add(e, a, wf_emit_reduce_sum(e, b, 1, (int64_t[]){0}, false));
    case 7:
        return wf_emit_identity(e, a);
    default:
        return wf_emit_unary(e, "Tanh", wf_emit_matmul(e, a, b));
    }
}

static wf_graph *random_graph(seeded *l, wf_value *inputs[INPUTS])
{
    wf_graph *g = new_graph();
    wf_value *pool[MOST];
    wf_emit e = wf_emit_begin(g, "r", NULL);
    uint32_t n = 0;
    char name[16];

    for (; n < INPUTS; n++) {
        snprintf(name, sizeof name, "in%u", n);
        inputs[n] = pool[n] = input(g, name, 2, (int64_t[]){SIDE, SIDE});
    }
    for (int i = 0; i < NODES; i++) {
        pool[n] = grow(&e, pool, n, l);
        n++;
    }
    assert_int_equal(wf_emit_end(&e), WF_OK);
    for (uint64_t i = 1 + below(l, 5); i-- > 0;)
        assert_int_equal(wf_graph_add_output(g, pool[below(l, n)], NULL), WF_OK);
    return g;
}

/* All values by single nodes; content[i] belongs to g->values[i]. */
static void compute_alone(const wf_graph *g, wf_tensor **content)
{
    for (size_t i = 0; i < g->n_nodes; i++) {
        const wf_node *n = g->nodes[i];
        const wf_tensor *in[4] = {0};
        wf_tensor *out[4];
        wf_err err;

        for (uint32_t k = 0; k < n->n_in; k++)
            in[k] = n->in[k] ? content[n->in[k]->index] : NULL;
        assert_ok(wf_kernel_eval(n, n->n_in, in, n->n_out, out, SIZE_MAX / 2, &err), err);
        for (uint32_t k = 0; k < n->n_out; k++)
            if (n->out[k])
                content[n->out[k]->index] = out[k];
    }
}

/* Values that are neither computed nor fed hold what the graph knows of them. */
static wf_tensor **start_content(wf_graph *g, wf_value *const inputs[INPUTS], seeded *l)
{
    wf_tensor **content = calloc(g->n_values, sizeof *content);

    assert_non_null(content);
    for (size_t i = 0; i < g->n_values; i++) {
        g->values[i]->index = (uint32_t)i;
        if (!g->values[i]->producer && g->values[i]->known)
            assert_int_equal(wf_tensor_copy(g->values[i]->known, &content[i], NULL), WF_OK);
    }
    for (int i = 0; i < INPUTS; i++) {
        wf_tensor **t = &content[inputs[i]->index];

        assert_int_equal(wf_tensor_new(WF_F32, 2, (int64_t[]){SIDE, SIDE}, t, NULL), WF_OK);
        for (int k = 0; k < SIDE * SIDE; k++)
            wf_f32_mut(*t)[k] = wf_rng_f32(l->key, l->at++) * 4 - 2;
    }
    return content;
}

/* The same inputs, each element one step of float32 up or down: what the results differ by then
 * says how much of a result is rounding. */
static wf_tensor **content_beside(const wf_graph *g, wf_value *const inputs[INPUTS],
                                  wf_tensor **content)
{
    wf_tensor **beside = calloc(g->n_values, sizeof *beside);

    assert_non_null(beside);
    for (size_t i = 0; i < g->n_values; i++)
        if (!g->values[i]->producer && content[i])
            assert_int_equal(wf_tensor_copy(content[i], &beside[i], NULL), WF_OK);
    for (int i = 0; i < INPUTS; i++)
        for (int k = 0; k < SIDE * SIDE; k++) {
            float *x = &wf_f32_mut(beside[inputs[i]->index])[k];

            *x = nextafterf(*x, (k + i) % 2 ? INFINITY : -INFINITY);
        }
    compute_alone(g, beside);
    return beside;
}

/* The bits of the cpu's kernels; those of others round elsewhere, in each node about as much as
 * `beside` does in the inputs. */
static bool is_like(const float *got, const float *want, const float *beside, int64_t n)
{
    float moved = 0;

    if (strncmp(test_device()->name, "cuda", 4) != 0)
        return memcmp(got, want, (size_t)n * sizeof *got) == 0;
    for (int64_t i = 0; i < n; i++)
        moved = fmaxf(moved, fabsf(beside[i] - want[i]));
    for (int64_t i = 0; i < n; i++)
        if (!(fabsf(got[i] - want[i]) <= 1e-5f * (1 + fabsf(want[i])) + 4 * moved) &&
            memcmp(&got[i], &want[i], sizeof *got) != 0 && !(isnan(got[i]) && isnan(want[i])))
            return false;
    return true;
}

static void check_outputs(uint64_t seed, const wf_graph *g, const wf_plan *p, wf_tensor **content,
                          wf_tensor **beside)
{
    for (uint32_t i = 0; i < wf_plan_n_outputs(p); i++) {
        const wf_tensor *want = content[g->outputs[i]->index];

        if (!is_like(wf_plan_output_data(p, i), want->data, beside[g->outputs[i]->index]->data,
                     wf_elems(want)))
            fail_msg("seed %llu: output %u differs", (unsigned long long)seed, i);
    }
}

static void drop(const wf_graph *g, wf_tensor **content)
{
    for (size_t i = 0; i < g->n_values; i++)
        wf_tensor_free(&content[i]);
    free(content);
}

static void one_history(uint64_t seed)
{
    seeded l = {{seed, 1}, 0};
    wf_value *inputs[INPUTS];
    wf_graph *g = random_graph(&l, inputs);
    wf_tensor **content = start_content(g, inputs, &l), **beside;
    float bound[8][SIDE * SIDE];
    wf_plan *p = NULL;
    wf_err err;

    compute_alone(g, content);
    beside = content_beside(g, inputs, content);
    assert_ok(wf_plan_new(g, &(wf_plan_options){.device = test_device()}, &p, &err), err);
    for (uint32_t i = 0; i < INPUTS; i++)
        wf_plan_bind_input(p, i, content[inputs[i]->index]->data);
    for (int round = 0; round < 3; round++) { /* own memory, some bound, all bound */
        for (uint32_t i = 0; i < wf_plan_n_outputs(p); i++)
            if (round == 2 || (round == 1 && below(&l, 2)))
                wf_plan_bind_output(p, i, bound[i]);
        assert_ok(wf_plan_run(p, &(wf_step_key){0}, NULL, NULL, &err), err);
        check_outputs(seed, g, p, content, beside);
    }
    drop(g, content);
    drop(g, beside);
    wf_plan_free(&p);
    wf_graph_free(&g);
}

static void sharing_memory_changes_no_result(void **state)
{
    (void)state;
    for (uint64_t seed = 0; seed < SEEDS; seed++)
        one_history(seed);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(sharing_memory_changes_no_result)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
