/* SPDX-License-Identifier: Apache-2.0 */
/* tests/unit/compile_tables.c - the graph is cut at the ids of tables: what the two halves take and
 * give, and what cannot be a table. That both together compute what the whole graph does is shown
 * by tests/cluster/tables.py. */
#include "tests/unit/compile_util.h"

enum { ROWS = 500, WIDTH = 4, PER_RECORD = 3, BATCH = 8 };

/* mean(table[ids + 7 if shifted]), and with `tied` also of table * 2. */
static wf_graph *make(int64_t rows, bool shifted, bool tied)
{
    const int64_t seven = 7;
    wf_err err = {0};
    wf_graph *g = NULL;
    wf_value *in[2], *loss;
    wf_emit e;

    must(wf_graph_new("m", &g, &err), &err);
    in[0] = add_variable(g, "table", 2, (const int64_t[]){rows, WIDTH});
    in[1] = add_input(g, "ids", WF_I64, 2, (const int64_t[]){-1, PER_RECORD});
    e = wf_emit_begin(g, "m", &err);
    if (shifted)
        in[1] = wf_emit_add(&e, in[1], wf_emit_ints(&e, 1, &seven));
    loss = wf_emit_reduce_mean(&e, wf_emit_op(&e, "Gather", 2, in, 0, NULL), 0, NULL, false);
    if (tied)
        loss = wf_emit_add(&e, loss, wf_emit_reduce_mean(&e, in[0], 0, NULL, false));
    must(wf_emit_end(&e), &err);
    must(wf_graph_rename_value(g, loss, "loss", &err), &err);
    must(wf_graph_add_output(g, loss, &err), &err);
    return g;
}

static const char *const patterns[] = {"tab*"};

static wf_compile_spec spec_of(const wf_graph *g, wf_compile_mode mode)
{
    return (wf_compile_spec){.graph = g,
                             .mode = mode,
                             .strategy = wf_strategy_find("parameter_server"),
                             .tables = patterns,
                             .n_tables = 1,
                             .n_ps = 2,
                             .batch = BATCH,
                             .file = "j.yaml",
                             .tables_line = 9};
}

static const wf_value *input_of(const wf_graph *g, const char *name)
{
    for (size_t i = 0; i < g->n_inputs; i++)
        if (strcmp(g->inputs[i]->name, name) == 0)
            return g->inputs[i];
    fail_msg("there is no input \"%s\"", name);
    return NULL;
}

static const wf_node *pull_of(const wf_graph *g)
{
    for (size_t i = 0; i < g->n_nodes; i++)
        if (strcmp(g->nodes[i]->op->name, "Pull") == 0)
            return g->nodes[i];
    fail_msg("there is no Pull");
    return NULL;
}

static void check_uses(const wf_compiled *c)
{
    const wf_value *places, *ids;

    assert_int_equal(c->n_uses, 1);
    assert_int_equal(c->uses[0].variable, 0);
    assert_string_equal(c->uses[0].places, "table/places");
    assert_non_null(c->ids_graph);
    assert_int_equal(c->ids_graph->n_outputs, 1);
    ids = c->ids_graph->outputs[0];
    assert_string_equal(ids->name, c->uses[0].ids);
    places = input_of(c->graph, c->uses[0].places);
    assert_int_equal(places->dtype, WF_I64);
    assert_int_equal(ids->dtype, WF_I64);
    assert_int_equal(places->rank, 2);
    assert_int_equal(places->axes[1].size, PER_RECORD);
    assert_int_equal(c->n_feeds, 1); /* of the ids graph */
    assert_string_equal(c->feeds[0].name, "ids");
    assert_int_equal(c->graph->n_inputs, 1);
    input_of(c->ids_graph, "ids");
}

static void the_graph_is_cut_at_the_ids(void **state)
{
    (void)state;
    for (int shifted = 0; shifted < 2; shifted++) {
        wf_graph *g = make(ROWS, shifted, false);
        wf_compile_spec spec = spec_of(g, WF_COMPILE_TRAIN);
        wf_compiled *c = compile(&spec);

        check_uses(c);
        assert_int_equal(count_op(c->ids_graph, "Add"), shifted);
        assert_int_equal(count_op(c->graph, "Add"), 0);
        assert_true(c->variables[0].is_table);
        assert_int_equal(c->variables[0].rows_most, BATCH * PER_RECORD);
        assert_int_equal(c->variables[0].dims[0], ROWS); /* of the whole table */
        assert_int_equal(c->variables[0].initial->dims[0], ROWS);
        assert_int_equal(pull_of(c->graph)->out[0]->axes[0].size, BATCH * PER_RECORD);
        wf_compiled_free(&c);
        spec = spec_of(g, WF_COMPILE_EVAL);
        c = compile(&spec);
        check_uses(c);
        assert_int_equal(pull_of(c->graph)->out[0]->axes[0].size, ROWS);
        wf_compiled_free(&c);
        wf_graph_free(&g);
    }
}

static void a_small_table_has_no_more_rows_than_there_are(void **state)
{
    wf_graph *g = make(5, false, false);
    wf_compile_spec spec = spec_of(g, WF_COMPILE_TRAIN);
    wf_compiled *c = compile(&spec);

    (void)state;
    assert_int_equal(c->variables[0].rows_most, 5);
    wf_compiled_free(&c);
    wf_graph_free(&g);
}

static void slices_are_whole_rows_on_all_ps(void **state)
{
    wf_graph *g = make(ROWS, false, false);
    wf_compile_spec spec = spec_of(g, WF_COMPILE_TRAIN);
    int64_t next = 0;
    wf_compiled *c;

    (void)state;
    spec.slice_bytes = 100; /* not a number of rows */
    c = compile(&spec);
    assert_in_range(c->n_slices, 2, 64);
    for (size_t i = 0; i < c->n_slices; i++) {
        assert_int_equal(c->slices[i].offset, next);
        assert_int_equal(c->slices[i].offset % WIDTH, 0);
        assert_int_equal(c->slices[i].count % WIDTH, 0);
        assert_true(i == 0 || c->slices[i].ps != c->slices[i - 1].ps);
        next += c->slices[i].count;
    }
    assert_int_equal(next, ROWS * WIDTH);
    wf_compiled_free(&c);
    wf_graph_free(&g);
}

static void tables_are_another_job(void **state)
{
    wf_graph *g = make(ROWS, false, false);
    wf_compile_spec spec = spec_of(g, WF_COMPILE_TRAIN);
    wf_compiled *with = compile(&spec), *without;

    (void)state;
    spec.n_tables = 0;
    without = compile(&spec);
    assert_true(with->digest != without->digest);
    assert_null(without->ids_graph);
    assert_false(without->variables[0].is_table);
    wf_compiled_free(&with);
    wf_compiled_free(&without);
    wf_graph_free(&g);
}

static void check_refused(const wf_compile_spec *spec, wf_status rc, const char *part)
{
    wf_err err;

    assert_int_equal(refused(spec, &err), rc);
    assert_says(err, part);
    assert_says(err, "j.yaml:9: ");
}

static void what_cannot_be_a_table_is_refused(void **state)
{
    static const char *const others[] = {"nothing*"};
    wf_graph *g = make(ROWS, false, false), *tied = make(ROWS, false, true);
    wf_compile_spec spec = spec_of(tied, WF_COMPILE_TRAIN);

    (void)state;
    check_refused(&spec, WF_USAGE, "\"table\" cannot be a table: ReduceMean");
    spec = spec_of(g, WF_COMPILE_TRAIN);
    spec.whole_variables = true;
    check_refused(&spec, WF_UNSUPPORTED, "norms over whole variables");
    spec = spec_of(g, WF_COMPILE_TRAIN);
    spec.accumulates = true;
    check_refused(&spec, WF_UNSUPPORTED, "gradient_accumulation_steps");
    spec = spec_of(g, WF_COMPILE_TRAIN);
    spec.strategy = wf_strategy_find("local");
    spec.n_ps = 0;
    check_refused(&spec, WF_UNSUPPORTED, "strategy local");
    spec = spec_of(g, WF_COMPILE_TRAIN);
    spec.tables = others;
    check_refused(&spec, WF_USAGE, "\"nothing*\" matches no variable");
    wf_graph_free(&g);
    wf_graph_free(&tied);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_graph_is_cut_at_the_ids),
        cmocka_unit_test(a_small_table_has_no_more_rows_than_there_are),
        cmocka_unit_test(slices_are_whole_rows_on_all_ps),
        cmocka_unit_test(tables_are_another_job),
        cmocka_unit_test(what_cannot_be_a_table_is_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
