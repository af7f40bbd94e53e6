/* SPDX-License-Identifier: Apache-2.0 */
/* tests/unit/compile_frozen.c - frozen variables and large constants live on the ps, and the graphs
 * that go to workers stay small. */
#include "common/base/bytes.h"
#include "common/onnx/onnx.h"
#include "tests/unit/compile_util.h"

static size_t encoded_bytes(const wf_graph *g)
{
    wf_bytes bytes = {0};
    wf_err err = {0};
    size_t n;

    must(wf_onnx_encode(g, &bytes, &err), &err);
    n = bytes.size;
    wf_bytes_close(&bytes);
    return n;
}

/* mean(table[id] @ w): `table` [rows, 4] is no variable; each element of it is `value`. */
static wf_graph *looked_up(wf_dtype dtype, int64_t rows, float value)
{
    wf_err err = {0};
    wf_graph *g = NULL;
    wf_value *in[2], *row, *loss;
    wf_tensor *t = NULL;
    wf_emit e;

    must(wf_graph_new("looked_up", &g, &err), &err);
    must(wf_tensor_new(dtype, 2, (const int64_t[]){rows, 4}, &t, &err), &err);
    memset(t->data, 0, wf_tensor_bytes(t));
    for (int64_t i = 0; dtype == WF_F32 && i < wf_elems(t); i++)
        wf_f32_mut(t)[i] = value;
    must(wf_graph_add_constant(g, "table", &t, &in[0], &err), &err);
    in[1] = add_input(g, "id", WF_I64, 1, (const int64_t[]){-1});
    e = wf_emit_begin(g, "m", &err);
    row = wf_emit_cast(&e, wf_emit_op(&e, "Gather", 2, in, 0, NULL), WF_F32);
    loss = wf_emit_matmul(&e, row, add_variable(g, "w", 2, (const int64_t[]){4, 1}));
    loss = wf_emit_reduce_mean(&e, loss, 0, NULL, false);
    must(wf_emit_end(&e), &err);
    must(wf_graph_rename_value(g, loss, "loss", &err), &err);
    must(wf_graph_add_output(g, loss, &err), &err);
    return g;
}

static wf_compile_spec spec_of(const wf_graph *g, wf_compile_mode mode)
{
    return (wf_compile_spec){.graph = g,
                             .mode = mode,
                             .strategy = wf_strategy_find("parameter_server"),
                             .n_ps = 2,
                             .batch = 8};
}

/* The frozen variable on the ps that a graph pulls; there is one. */
static const wf_compiled_variable *frozen_of(const wf_compiled *c)
{
    const wf_compiled_variable *found = NULL;

    for (size_t i = 0; i < c->n_variables; i++)
        if (c->variables[i].on_ps && c->variables[i].kind == WF_VAR_FROZEN) {
            assert_null(found);
            found = &c->variables[i];
        }
    assert_non_null(found);
    return found;
}

static void a_large_constant_is_pulled_by_a_name_of_its_content(void **state)
{
    static const wf_compile_mode modes[] = {WF_COMPILE_TRAIN, WF_COMPILE_EVAL, WF_COMPILE_TRAIN};
    static const float values[] = {1, 1, 2};
    char names[3][128];

    (void)state;
    for (int i = 0; i < 3; i++) {
        wf_graph *g = looked_up(WF_F32, 100000, values[i]);
        wf_compile_spec spec = spec_of(g, modes[i]);
        wf_compiled *c = compile(&spec);
        const wf_compiled_variable *v = frozen_of(c);

        snprintf(names[i], sizeof names[i], "%s", v->name);
        assert_false(v->pushed);
        assert_int_equal(v->bytes, 1600000);
        assert_true(wf_f32(v->initial)[1234] == values[i]);
        assert_int_equal(count_op(c->graph, "Pull"), 2);
        assert_true(encoded_bytes(c->graph) < 4096);
        wf_compiled_free(&c);
        wf_graph_free(&g);
    }
    assert_memory_equal(names[0], "table@", 6);
    assert_string_equal(names[0], names[1]);     /* one variable for both graphs */
    assert_string_not_equal(names[0], names[2]); /* and never another's content */
}

/* Names of 1000 bytes are read from files; in a shard a checksum and an offset follow. */
static void a_constant_of_a_long_name_fits_in_a_shard(void **state)
{
    wf_graph *g = looked_up(WF_F32, 100000, 1);
    char name[1001] = "";
    wf_compile_spec spec = spec_of(g, WF_COMPILE_TRAIN);
    wf_compiled *c;
    wf_err err = {0};

    (void)state;
    memset(name, 'c', sizeof name - 1);
    must(wf_graph_rename_value(g, wf_graph_value(g, "table"), name, &err), &err);
    c = compile(&spec);
    assert_in_range(strlen(frozen_of(c)->name), 32, 1000);
    wf_compiled_free(&c);
    wf_graph_free(&g);
}

static void a_small_constant_stays_in_the_graph(void **state)
{
    wf_graph *g = looked_up(WF_F32, 10, 1);
    wf_compile_spec spec = spec_of(g, WF_COMPILE_TRAIN);
    wf_compiled *c = compile(&spec);

    (void)state;
    assert_int_equal(count_op(c->graph, "Pull"), 1);
    assert_int_equal(c->n_variables, 1);
    wf_compiled_free(&c);
    wf_graph_free(&g);
}

/* Frozen bytes cross the links once: they must not move what crosses them in each step. */
static void frozen_slices_lie_behind_the_others_and_move_none(void **state)
{
    wf_graph *small = looked_up(WF_F32, 10, 1), *large = looked_up(WF_F32, 100000, 1);
    wf_compile_spec spec = spec_of(small, WF_COMPILE_TRAIN);
    size_t on_ps[2] = {0}, n_others;
    wf_compiled *few = compile(&spec), *many;

    (void)state;
    spec.graph = large;
    spec.slice_bytes = 100000;
    many = compile(&spec);
    n_others = many->n_slices - frozen_of(many)->n_slices;
    assert_int_equal(n_others, few->n_slices);
    assert_memory_equal(many->slices, few->slices, n_others * sizeof few->slices[0]);
    assert_int_equal(frozen_of(many)->first_slice, n_others);
    for (size_t i = n_others; i < many->n_slices; i++) {
        assert_true(many->slices[i].count * 4 <= 100000);
        on_ps[many->slices[i].ps] += (size_t)many->slices[i].count * 4;
    }
    assert_int_equal(on_ps[0] + on_ps[1], 1600000);
    assert_in_range(on_ps[0], 700000, 900000);
    wf_compiled_free(&few);
    wf_compiled_free(&many);
    wf_graph_free(&small);
    wf_graph_free(&large);
}

static void a_table_that_neither_ps_nor_message_can_hold_is_refused(void **state)
{
    wf_graph *g = looked_up(WF_I64, 4 << 20, 0);
    wf_compile_spec spec = spec_of(g, WF_COMPILE_TRAIN);
    wf_err err = {0};

    (void)state;
    assert_int_equal(refused(&spec, &err), WF_UNSUPPORTED);
    assert_says(err, "constant \"table\" is int64[4194304, 4], and parameter servers hold float32");
    wf_graph_free(&g);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_large_constant_is_pulled_by_a_name_of_its_content),
        cmocka_unit_test(a_constant_of_a_long_name_fits_in_a_shard),
        cmocka_unit_test(a_small_constant_stays_in_the_graph),
        cmocka_unit_test(frozen_slices_lie_behind_the_others_and_move_none),
        cmocka_unit_test(a_table_that_neither_ps_nor_message_can_hold_is_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
