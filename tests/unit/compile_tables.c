/* SPDX-License-Identifier: Apache-2.0 */
/* tests/unit/compile_tables.c - the graph is cut at the ids of tables: what the two halves take and
 * give, and what cannot be a table. That both together compute what the whole graph does is shown
 * by tests/cluster/tables.py. */
#include "common/base/row_key.h"
#include "common/compile/pass.h"
#include "tests/unit/compile_util.h"

#include <math.h>

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

static const wf_conf_table patterns[] = {{.match = "tab*", .line = 9}};

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

static const wf_node *pull_of_variable(const wf_graph *g, const char *variable)
{
    for (size_t i = 0; i < g->n_nodes; i++)
        if (strcmp(g->nodes[i]->op->name, "Pull") == 0 &&
            strcmp(wf_node_string(g->nodes[i], "variable", ""), variable) == 0)
            return g->nodes[i];
    fail_msg("there is no Pull of \"%s\"", variable);
    return NULL;
}

static const wf_node *pull_of(const wf_graph *g)
{
    return pull_of_variable(g, "table");
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

static void ids_of_bags_may_name_no_row(void **state)
{
    wf_err err = {0};
    wf_graph *g = NULL;
    wf_value *in[2], *loss;
    wf_emit e;

    (void)state;
    must(wf_graph_new("m", &g, &err), &err);
    in[0] = add_variable(g, "table", 2, (const int64_t[]){ROWS, WIDTH});
    in[1] = add_input(g, "ids", WF_I64, 2, (const int64_t[]){-1, PER_RECORD});
    e = wf_emit_begin(g, "m", &err);
    loss = wf_emit_reduce_mean(&e, wf_emit_op(&e, "EmbeddingBag", 2, in, 0, NULL), 0, NULL, false);
    must(wf_emit_end(&e), &err);
    must(wf_graph_rename_value(g, loss, "loss", &err), &err);
    must(wf_graph_add_output(g, loss, &err), &err);
    for (int eval = 0; eval < 2; eval++) {
        wf_compile_spec spec = spec_of(g, eval ? WF_COMPILE_EVAL : WF_COMPILE_TRAIN);
        wf_compiled *c = compile(&spec);

        check_uses(c);
        assert_true(c->uses[0].is_bag);
        assert_int_equal(count_op(c->graph, "EmbeddingBagGrad"), !eval);
        wf_compiled_free(&c);
    }
    wf_graph_free(&g);
}

static void the_graph_is_cut_at_the_ids(void **state)
{
    (void)state;
    for (int shifted = 0; shifted < 2; shifted++) {
        wf_graph *g = make(ROWS, shifted, false);
        wf_compile_spec spec = spec_of(g, WF_COMPILE_TRAIN);
        wf_compiled *c = compile(&spec);

        check_uses(c);
        assert_false(c->uses[0].is_bag);
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
    static const wf_conf_table others[] = {{.match = "nothing*", .line = 9}};
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

/* A job with an embedding and an entry of tables. */
static wf_job_conf *job_of_width(const char *layer, int width, const char *table)
{
    char text[1024];
    wf_job_conf *j = NULL;
    wf_err err = {0};

    snprintf(text, sizeof(text),
             "job: j\n"
             "model:\n"
             "  input: {ids: {shape: [3], dtype: int64}}\n"
             "  layers:\n"
             "    - embedding: {%s, output_dim: %d, name: emb}\n"
             "    - flatten\n"
             "    - dense: 1\n"
             "loss: mse\n"
             "data: {format: npy, train: {ids: a.npy, y: b.npy}}\n"
             "batch: 8\n"
             "seed: 5\n"
             "optimizer: adagrad\n"
             "tables:\n"
             "  - %s\n",
             layer, width, table);
    must(wf_job_parse(text, strlen(text), "j.yaml", &j, &err), &err);
    return j;
}

static wf_job_conf *job_of(const char *layer, const char *table)
{
    return job_of_width(layer, 4, table);
}

static wf_compile_spec spec_of_job(const wf_job_conf *j, wf_compile_mode mode, wf_model *m)
{
    wf_compile_spec spec;

    wf_compile_spec_of_job(j, mode, wf_strategy_find("parameter_server"), 3, m, &spec);
    return spec;
}

static const char limits[] = "{match: emb/*, rows: unbounded, admit_after: 2, evict_after: 9, "
                             "max_rows: 640, when_full: fail, dtype: bfloat16}";

static void an_unbounded_table_has_a_slice_for_each_bucket(void **state)
{
    wf_job_conf *j = job_of("input_dim: unbounded", limits);
    wf_model m;
    wf_compile_spec spec = spec_of_job(j, WF_COMPILE_TRAIN, &m);
    wf_compiled *c = compile(&spec);
    const wf_compiled_variable *v = &c->variables[wf_compiled_find(c, "emb/embeddings")];

    (void)state;
    assert_true(v->is_table && v->is_unbounded);
    assert_int_equal(v->rows_most, 8 * 3);
    assert_int_equal(v->n_slices, WF_ROW_BUCKETS);
    for (uint32_t k = 0; k < v->n_slices; k++) {
        assert_int_equal(c->slices[v->first_slice + k].offset, k * 4);
        assert_int_equal(c->slices[v->first_slice + k].count, 4);
        assert_int_equal(c->slices[v->first_slice + k].ps, k % 3);
    }
    assert_int_equal(v->rows.first.kind, WF_UNIFORM);
    assert_true(v->rows.first.centre == 0 && v->rows.first.spread == 0.05);
    assert_true(v->rows.seed == 5 && v->rows.stream == wf_initial_stream("emb/embeddings"));
    assert_int_equal(v->rows.admit_after, 2);
    assert_int_equal(v->rows.evict_after, 9);
    assert_int_equal(v->rows.max_rows, 640);
    assert_int_equal(v->row_dtype, WF_BF16);
    assert_int_equal(v->dtype, WF_F32); /* what the graph computes with */
    assert_true(v->rows.fails_full && !v->rows.on_disk);
    assert_int_equal(pull_of_variable(c->graph, v->name)->out[0]->axes[0].size, 24);
    wf_compiled_free(&c);
    spec = spec_of_job(j, WF_COMPILE_EVAL, &m);
    spec.unit_batches = 250; /* that share what is bound */
    c = compile(&spec);
    assert_int_equal(pull_of_variable(c->graph, "emb/embeddings")->out[0]->axes[0].size, 6000);
    wf_compiled_free(&c);
    wf_job_free(&j);
}

static void rows_that_no_ps_can_hold_are_refused(void **state)
{
    static const struct {
        const char *layer, *table;
        int width;
        const char *says;
    } rows[] = {
        {"input_dim: 46", "{match: emb/*, dtype: int8}", 2048, NULL},
        {"input_dim: 46", "{match: emb/*, dtype: int8}", 2049,
         "has 2049 elements, and with dtype: int8 it has 2048 at most"},
        {"input_dim: 46", "{match: emb/*, dtype: bfloat16}", 2049, NULL},
        {"input_dim: unbounded", "{match: emb/*, rows: unbounded, max_bytes: 1024}", 4, NULL},
        {"input_dim: unbounded", "{match: emb/*, rows: unbounded, max_bytes: 1023}", 4,
         "has 15 bytes, and a row of 4 elements needs more"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        wf_job_conf *j = job_of_width(rows[i].layer, rows[i].width, rows[i].table);
        wf_model m;
        wf_compile_spec spec = spec_of_job(j, WF_COMPILE_TRAIN, &m);
        wf_compiled *c = NULL;
        wf_err err = {0};
        wf_status rc = wf_compile(&spec, &c, &err);

        assert_int_equal(rc == WF_OK, rows[i].says == NULL);
        if (rows[i].says) {
            assert_non_null(strstr(err.what, rows[i].says));
            assert_non_null(strstr(err.what, "j.yaml:"));
        }
        wf_compiled_free(&c);
        wf_job_free(&j);
    }
}

/* No initializer but those that look at the whole variable makes its content here. */
static void a_table_of_a_layer_is_made_by_its_ps(void **state)
{
    static const struct {
        const char *layer;
        bool seeded;
        double spread;
    } rows[] = {
        {"input_dim: 1000000000", true, 0.05},
        {"input_dim: 46, embeddings_initializer: glorot_uniform", true, 0.34641016151377546},
        {"input_dim: 40, embeddings_initializer: orthogonal", false, 0},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        wf_job_conf *j = job_of(rows[i].layer, "emb/*");
        wf_model m;
        wf_compile_spec spec = spec_of_job(j, WF_COMPILE_TRAIN, &m);
        wf_compiled *c = compile(&spec);
        const wf_compiled_variable *v = &c->variables[wf_compiled_find(c, "emb/embeddings")];

        assert_true(v->is_table && !v->is_unbounded);
        assert_int_equal(v->is_seeded, rows[i].seeded);
        if (v->is_seeded) {
            assert_int_equal(v->rows.first.kind, WF_UNIFORM);
            assert_true(fabs(v->rows.first.spread - rows[i].spread) < 1e-12);
            assert_true(v->rows.seed == 5 && v->rows.stream == wf_initial_stream(v->name));
        }
        wf_compiled_free(&c);
        wf_job_free(&j);
    }
}

static void check_job_refused(const char *layer, const char *table, const char *says)
{
    wf_job_conf *j = job_of(layer, table);
    wf_model m;
    wf_compile_spec spec = spec_of_job(j, WF_COMPILE_TRAIN, &m);
    wf_err err = {0};

    assert_int_equal(refused(&spec, &err), WF_USAGE);
    assert_says(err, says);
    assert_says(err, "j.yaml:");
    wf_job_free(&j);
}

static void an_unbounded_table_is_said_in_both_places(void **state)
{
    (void)state;
    check_job_refused("input_dim: 100", "{match: emb/*, rows: unbounded}",
                      "\"emb/embeddings\" has rows: unbounded, and is of a fixed size");
    check_job_refused("input_dim: unbounded", "emb/*", "has input_dim: unbounded");
    check_job_refused("input_dim: unbounded", "{match: emb/*}", "has input_dim: unbounded");
    check_job_refused("input_dim: unbounded, embeddings_initializer: glorot_uniform", limits,
                      "glorot_uniform goes by the number of rows");
    check_job_refused("input_dim: unbounded, embeddings_initializer: orthogonal", limits,
                      "orthogonal goes by the number of rows");
    check_job_refused("input_dim: unbounded, embeddings_regularizer: l2", limits,
                      "reads all of it");
}

/* Adds [n, width] rows of emb/embeddings, and n_ids ids. */
static void give(wf_named_list *l, int64_t n, int64_t width, int64_t n_ids)
{
    const int64_t dims[] = {n, width};
    wf_tensor *rows = NULL, *ids = NULL;
    wf_err err = {0};

    must(wf_tensor_new(WF_F32, 2, dims, &rows, &err), &err);
    must(wf_tensor_new(WF_I64, 1, &n_ids, &ids, &err), &err);
    must(wf_named_add(l, "emb/embeddings", &rows, true, &err), &err);
    must(wf_named_add(l, "emb/embeddings" WF_ROW_IDS, &ids, true, &err), &err);
}

static void a_graph_without_ps_has_the_rows_that_it_is_given(void **state)
{
    wf_job_conf *j = job_of("input_dim: unbounded", limits);
    wf_named_list rows = {0}, none = {0};
    const wf_named_list *lists[] = {NULL, &none, &rows};
    const wf_compile_mode modes[] = {WF_COMPILE_INFER, WF_COMPILE_EVAL};
    wf_model m;
    wf_compile_spec spec;

    (void)state;
    give(&rows, 4, 4, 3);
    for (size_t k = 0; k < WF_COUNT(modes) * WF_COUNT(lists); k++) {
        wf_compiled *c;
        const wf_compiled_variable *v;

        wf_compile_spec_of_job(j, modes[k % 2], NULL, 0, &m, &spec);
        spec.rows = lists[k / 2];
        c = compile(&spec);
        v = &c->variables[wf_compiled_find(c, "emb/embeddings")];
        assert_true(v->is_unbounded && !v->is_table && !v->on_ps);
        assert_int_equal(v->dims[0], spec.rows == &rows ? 4 : 1);
        assert_int_equal(v->row_dtype, WF_BF16);
        assert_int_equal(v->rows.first.kind, WF_UNIFORM);
        assert_int_equal(count_op(c->graph, "TableRows"), 1);
        if (spec.rows == &rows) /* shared, not copied */
            assert_ptr_equal(wf_graph_value(c->graph, v->name)->known->data,
                             rows.rows[0].tensor->data);
        wf_compiled_free(&c);
    }
    wf_named_close(&rows);
    wf_job_free(&j);
}

static void rows_that_do_not_fit_are_refused(void **state)
{
    static const int64_t cases[][3] = {{4, 5, 3}, {4, 4, 4}, {4, 4, 2}};
    wf_job_conf *j = job_of("input_dim: unbounded", limits);
    wf_model m;
    wf_compile_spec spec;

    (void)state;
    for (size_t i = 0; i < WF_COUNT(cases); i++) {
        wf_named_list rows = {0};
        wf_err err = {0};

        give(&rows, cases[i][0], cases[i][1], cases[i][2]);
        wf_compile_spec_of_job(j, WF_COMPILE_INFER, NULL, 0, &m, &spec);
        spec.rows = &rows;
        assert_int_equal(refused(&spec, &err), WF_SHAPE);
        assert_says(err, "which must be [rows + 1, 4] and [rows]");
        rows.rows[1].name[0] = 'x'; /* the ids are missing */
        assert_int_equal(refused(&spec, &err), WF_SHAPE);
        assert_says(err, "their ids missing");
        wf_named_close(&rows);
    }
    wf_job_free(&j);
}

static void nobody_but_ps_trains_an_unbounded_table(void **state)
{
    wf_job_conf *j = job_of("input_dim: unbounded", limits);
    wf_model m;
    wf_compile_spec spec;
    wf_err err = {0};

    (void)state;
    wf_compile_spec_of_job(j, WF_COMPILE_TRAIN, NULL, 0, &m, &spec);
    assert_int_equal(refused(&spec, &err), WF_UNSUPPORTED);
    assert_says(err, "\"emb/embeddings\" is an unbounded table");
    wf_job_free(&j);
}

static void an_embedding_without_bounds_is_another_job(void **state)
{
    wf_job_conf *j = job_of("input_dim: unbounded", limits),
                *fixed = job_of("input_dim: 64", "emb/*");
    wf_model m;
    wf_compile_spec spec = spec_of_job(j, WF_COMPILE_TRAIN, &m);
    wf_compiled *c = compile(&spec);
    uint64_t digest = c->digest;

    (void)state;
    wf_compiled_free(&c);
    spec = spec_of_job(fixed, WF_COMPILE_TRAIN, &m);
    c = compile(&spec);
    assert_true(c->digest != digest);
    wf_compiled_free(&c);
    wf_job_free(&fixed);
    wf_job_free(&j);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_graph_is_cut_at_the_ids),
        cmocka_unit_test(a_small_table_has_no_more_rows_than_there_are),
        cmocka_unit_test(slices_are_whole_rows_on_all_ps),
        cmocka_unit_test(tables_are_another_job),
        cmocka_unit_test(a_table_of_a_layer_is_made_by_its_ps),
        cmocka_unit_test(what_cannot_be_a_table_is_refused),
        cmocka_unit_test(an_unbounded_table_has_a_slice_for_each_bucket),
        cmocka_unit_test(rows_that_no_ps_can_hold_are_refused),
        cmocka_unit_test(an_unbounded_table_is_said_in_both_places),
        cmocka_unit_test(a_graph_without_ps_has_the_rows_that_it_is_given),
        cmocka_unit_test(rows_that_do_not_fit_are_refused),
        cmocka_unit_test(nobody_but_ps_trains_an_unbounded_table),
        cmocka_unit_test(an_embedding_without_bounds_is_another_job),
        cmocka_unit_test(ids_of_bags_may_name_no_row),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
