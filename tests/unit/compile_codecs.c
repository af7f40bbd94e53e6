/* SPDX-License-Identifier: Apache-2.0 */
/* tests/unit/compile_codecs.c - which codec each variable gets, and patterns that get none. */
#include "tests/unit/compile_util.h"

/* mean(table[id] @ w + still) */
static wf_graph *make(void)
{
    wf_err err = {0};
    wf_graph *g = NULL;
    wf_value *in[2], *loss;
    wf_emit e;

    must(wf_graph_new("m", &g, &err), &err);
    in[0] = add_variable(g, "table", 2, (const int64_t[]){500, 4});
    in[1] = add_input(g, "id", WF_I64, 1, (const int64_t[]){-1});
    e = wf_emit_begin(g, "m", &err);
    loss = wf_emit_matmul(&e, wf_emit_op(&e, "Gather", 2, in, 0, NULL),
                          add_variable(g, "w", 2, (const int64_t[]){4, 1}));
    loss = wf_emit_add(&e, loss, add_variable(g, "still", 1, (const int64_t[]){1}));
    loss = wf_emit_reduce_mean(&e, loss, 0, NULL, false);
    must(wf_emit_end(&e), &err);
    must(wf_graph_rename_value(g, loss, "loss", &err), &err);
    must(wf_graph_add_output(g, loss, &err), &err);
    return g;
}

static wf_compile_spec spec_of(const wf_graph *g, const wf_conf_codec codecs[], size_t n)
{
    static const wf_conf_table tables[] = {{.match = "table", .line = 3}};
    static const char *const frozen[] = {"still"};

    return (wf_compile_spec){.graph = g,
                             .mode = WF_COMPILE_TRAIN,
                             .strategy = wf_strategy_find("parameter_server"),
                             .tables = tables,
                             .n_tables = 1,
                             .freeze = frozen,
                             .n_freeze = 1,
                             .codecs = codecs,
                             .n_codecs = n,
                             .n_ps = 2,
                             .batch = 8,
                             .file = "j.yaml"};
}

static const wf_conf_codec *codec_of(const wf_compiled *c, const char *name)
{
    for (size_t i = 0; i < c->n_variables; i++)
        if (strcmp(c->variables[i].name, name) == 0)
            return c->variables[i].codec;
    fail_msg("there is no variable \"%s\"", name);
    return NULL;
}

static void the_first_entry_that_matches_counts(void **state)
{
    static const wf_conf_codec codecs[] = {
        {.match = "t*", .push = "bf16", .pull = "f16"},
        {.match = "*", .push = "topk", .pull = "f32", .ratio = 0.5},
        {.push = "int8", .pull = "f32"},
    };
    wf_graph *g = make();
    wf_compile_spec spec = spec_of(g, codecs, 3);
    wf_compiled *c = compile(&spec), *without;

    (void)state;
    assert_ptr_equal(codec_of(c, "table"), &codecs[0]);
    assert_ptr_equal(codec_of(c, "w"), &codecs[1]);
    assert_null(codec_of(c, "still"));
    spec.n_codecs = 0;
    without = compile(&spec);
    assert_null(codec_of(without, "w"));
    assert_int_equal(c->digest, without->digest); /* the same job */
    wf_compiled_free(&without);
    wf_compiled_free(&c);
    wf_graph_free(&g);
}

/* Rows of tables have no residual: what is said of all variables is not of these. */
static void a_codec_of_all_is_of_those_that_can_take_it(void **state)
{
    static const wf_conf_codec codecs[] = {{.push = "int8", .pull = "f32"}};
    static const wf_conf_codec halves[] = {{.push = "f16", .pull = "f32"}};
    wf_graph *g = make();
    wf_compile_spec spec = spec_of(g, codecs, 1);
    wf_compiled *c = compile(&spec);

    (void)state;
    assert_ptr_equal(codec_of(c, "w"), codecs);
    assert_null(codec_of(c, "table"));
    wf_compiled_free(&c);
    spec = spec_of(g, halves, 1);
    c = compile(&spec);
    assert_ptr_equal(codec_of(c, "w"), halves);
    assert_ptr_equal(codec_of(c, "table"), halves);
    wf_compiled_free(&c);
    wf_graph_free(&g);
}

static void a_pattern_that_cannot_have_its_codec_is_refused(void **state)
{
    static const struct {
        wf_conf_codec codec;
        const char *says;
    } bad[] = {
        {{.match = "*", .push = "int8", .pull = "f32", .line = 7},
         "j.yaml:7: codec: \"*\" matches the table \"table\", whose rows are pushed as f32, bf16 "
         "or "
         "f16, not as int8"},
        {{.match = "st*", .push = "f32", .pull = "bf16", .line = 8},
         "j.yaml:8: codec: \"st*\" matches \"still\", which is frozen"},
        {{.match = "tabel", .push = "bf16", .pull = "f32", .line = 9},
         "j.yaml:9: codec: \"tabel\" matches no variable; there is \"table\""},
    };
    wf_graph *g = make();

    (void)state;
    for (size_t i = 0; i < WF_COUNT(bad); i++) {
        wf_compile_spec spec = spec_of(g, &bad[i].codec, 1);
        wf_err err;

        assert_int_equal(refused(&spec, &err), WF_USAGE);
        assert_says(err, bad[i].says);
    }
    wf_graph_free(&g);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_first_entry_that_matches_counts),
        cmocka_unit_test(a_codec_of_all_is_of_those_that_can_take_it),
        cmocka_unit_test(a_pattern_that_cannot_have_its_codec_is_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
