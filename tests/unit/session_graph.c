/* SPDX-License-Identifier: Apache-2.0 */
/* tests/unit/session_graph.c - a session's graph grows, and what a run needs of it is found and
 * compiled: what is read, what is written, what comes back. */
#include "common/graph/op.h"
#include "common/onnx/onnx.h"
#include "common/session/extend.h"
#include "common/session/remote.h"
#include "tests/unit/graph_test.h"

static wf_err err;

static wf_value *named(wf_emit *e, wf_value *v, const char *name)
{
    assert_int_equal(wf_emit_end(e), WF_OK);
    assert_ok(wf_graph_rename_value(e->g, v, name, &err), err);
    return v;
}

/* y = x w; set = Assign(last, y); counted = AssignAdd(count, one); seen = Read(last). */
static wf_graph *model(void)
{
    wf_graph *g = new_graph();
    wf_emit e = wf_emit_begin(g, "model", &err);
    wf_value *x = input(g, "x", DIMS(-1, 2)), *w = variable(g, "w", DIMS(2, 3)), *y;
    wf_value *last = variable(g, "last", DIMS(4, 3)), *count = variable(g, "count", 0, NULL);

    y = named(&e, wf_emit_matmul(&e, x, w), "y");
    named(&e, wf_emit_binary(&e, "Assign", last, y), "set");
    named(&e, wf_emit_binary(&e, "AssignAdd", count, wf_emit_scalar(&e, WF_F32, 1)), "counted");
    named(&e, wf_emit_unary(&e, "Read", last), "seen");
    assert_ok(wf_infer(g, &err), err);
    return g;
}

static wf_graph *session(void)
{
    wf_graph *empty = NULL, *g = NULL, *m = model();

    assert_ok(wf_extend_begin(&empty, &err), err);
    assert_ok(wf_extend(empty, m, &g, &err), err);
    wf_graph_free(&m);
    wf_graph_free(&empty);
    return g;
}

static wf_tensor *zeros(uint32_t rank, const int64_t dims[])
{
    wf_tensor *t = NULL;

    assert_ok(wf_tensor_new(WF_F32, rank, dims, &t, &err), err);
    return t;
}

/* Fetches and targets end with NULL. */
static wf_status prepare(const wf_graph *g, const wf_tensor *x, const char *const fetches[],
                         const char *const targets[], wf_remote **out)
{
    char unfed[WF_UNFED_NAME];
    wf_feed feed = {.name = "x", .origin = "the feed", .content = x};
    wf_remote_run run = {
        .n_feeds = x ? 1 : 0, .feeds = &feed, .fetches = fetches, .targets = targets};
    wf_status rc;

    while (fetches && fetches[run.n_fetches])
        run.n_fetches++;
    while (targets && targets[run.n_targets])
        run.n_targets++;
    rc = wf_remote_prepare(g, &run, out, unfed, &err);
    assert_int_equal(rc == WF_OK, *out != NULL);
    return rc;
}

#define LIST(...) ((const char *const[]){__VA_ARGS__, NULL})

static void only_what_is_wanted_is_read_and_written(void **state)
{
    wf_graph *g = session();
    wf_tensor *x = zeros(DIMS(4, 2));
    wf_remote *r = NULL;

    (void)state;
    assert_ok(prepare(g, x, LIST("y"), NULL, &r), err);
    assert_int_equal(r->n_reads, 1);
    assert_string_equal(r->reads[0], "w");
    assert_int_equal(r->n_writes, 0);
    assert_int_equal(r->n_feeds, 1);
    assert_false(r->is_for_once);
    assert_type(r->fragments[0].compiled->graph->outputs[0], "float32[4, 3]");
    wf_remote_free(&r);
    assert_ok(prepare(g, NULL, LIST("count"), NULL, &r), err);
    assert_int_equal(r->n_reads, 1);
    assert_int_equal(r->n_feeds, 0);
    wf_remote_free(&r);
    wf_tensor_free(&x);
    wf_graph_free(&g);
}

static void assignments_become_writes_in_the_order_of_the_graph(void **state)
{
    wf_graph *g = session();
    wf_tensor *x = zeros(DIMS(4, 2));
    wf_remote *r = NULL;

    (void)state;
    assert_ok(prepare(g, x, LIST("counted", "set", "seen"), NULL, &r), err);
    assert_int_equal(r->n_writes, 2);
    assert_int_equal(r->writes[0].action, WF_VARIABLE_ASSIGN);
    assert_string_equal(r->writes[0].variable, "last");
    assert_int_equal(r->writes[1].action, WF_VARIABLE_ADD);
    assert_string_equal(r->writes[1].variable, "count");
    assert_int_equal(r->n_results, 3);
    assert_null(r->results[0].value); /* the variable as the ps has it, after write 1 */
    assert_int_equal(r->results[0].write, 1);
    assert_string_equal(r->results[1].value, r->writes[0].value);
    assert_string_equal(r->results[2].label, "seen"); /* as it was before */
    assert_string_equal(r->results[2].value, "last");
    assert_int_equal(r->n_reads, 2); /* w and last, and not count */
    wf_remote_free(&r);
    assert_ok(prepare(g, NULL, LIST("counted"), NULL, &r), err);
    assert_int_equal(r->n_writes, 1);
    assert_int_equal(r->results[0].write, 0); /* the first of those that are needed */
    wf_remote_free(&r);
    wf_tensor_free(&x);
    wf_graph_free(&g);
}

/* Others compute with a variable that is read as with the variable. */
static void what_is_read_is_the_variable(void **state)
{
    wf_graph *g = session(), *more = new_graph(), *both = NULL;
    wf_emit e = wf_emit_begin(more, "more", &err);
    wf_remote *r = NULL;

    (void)state;
    named(&e, wf_emit_unary(&e, "Neg", input(more, "seen", DIMS(4, 3))), "minus");
    assert_ok(wf_extend(g, more, &both, &err), err);
    assert_ok(prepare(both, NULL, LIST("minus"), NULL, &r), err);
    assert_int_equal(r->n_reads, 1);
    assert_string_equal(r->reads[0], "last");
    for (size_t i = 0; i < r->fragments[0].compiled->graph->n_nodes; i++)
        assert_string_not_equal(r->fragments[0].compiled->graph->nodes[i]->op->name, "Read");
    wf_remote_free(&r);
    wf_graph_free(&more);
    wf_graph_free(&both);
    wf_graph_free(&g);
}

static void a_target_is_a_value_or_a_node(void **state)
{
    wf_graph *g = session();
    wf_tensor *x = zeros(DIMS(4, 2));
    const char *node = wf_graph_value(g, "set")->producer->name;
    wf_remote *r = NULL;

    (void)state;
    assert_ok(prepare(g, x, NULL, LIST(node), &r), err);
    assert_int_equal(r->n_results, 0);
    assert_int_equal(r->n_writes, 1);
    wf_remote_free(&r);
    assert_ok(prepare(g, NULL, NULL, LIST("counted"), &r), err);
    assert_int_equal(r->n_writes, 1);
    assert_int_equal(r->n_reads, 0);
    wf_remote_free(&r);
    wf_tensor_free(&x);
    wf_graph_free(&g);
}

static void what_cannot_be_run_is_told(void **state)
{
    wf_graph *g = session();
    wf_tensor *x = zeros(DIMS(4, 2)), *wide = zeros(DIMS(4, 5));
    wf_remote *r = NULL;

    (void)state;
    assert_int_equal(prepare(g, x, NULL, NULL, &r), WF_USAGE);
    assert_int_equal(prepare(g, x, LIST("z", "nothing"), NULL, &r), WF_NOTFOUND);
    assert_int_equal(prepare(g, x, LIST("conted"), NULL, &r), WF_NOTFOUND);
    assert_string_equal(err.hint, "did you mean \"counted\"?");
    assert_int_equal(prepare(g, NULL, LIST("y"), NULL, &r), WF_USAGE);
    assert_says(err, "wants input \"x\"");
    assert_int_equal(prepare(g, wide, LIST("y"), NULL, &r), WF_SHAPE);
    assert_says(err, "input \"x\" is float32[batch, 2]");
    wf_tensor_free(&x);
    wf_tensor_free(&wide);
    wf_graph_free(&g);
}

/* Variables are not fed: they are what the cluster has. */
static void a_variable_is_no_input(void **state)
{
    wf_graph *g = session();
    wf_tensor *w = zeros(DIMS(2, 3));
    wf_feed feed = {.name = "w", .origin = "the feed", .content = w};
    char unfed[WF_UNFED_NAME];
    wf_remote *r = NULL;

    (void)state;
    assert_int_equal(
        wf_remote_prepare(
            g, &(wf_remote_run){.n_feeds = 1, .feeds = &feed, .n_fetches = 1, .fetches = LIST("w")},
            &r, unfed, &err),
        WF_USAGE);
    assert_says(err, "no input \"w\"");
    wf_tensor_free(&w);
    wf_graph_free(&g);
}

static void models_meet_by_names(void **state)
{
    wf_graph *g = session(), *more = new_graph(), *both = NULL;
    wf_emit e = wf_emit_begin(more, "more", &err);
    wf_tensor *x = zeros(DIMS(4, 2));
    wf_value *y = input(more, "y", DIMS(-1, 3));
    wf_value *b = variable(more, "b", DIMS(3)), *w = variable(more, "w", DIMS(2, 3));
    wf_remote *r = NULL;

    (void)state;
    named(&e, wf_emit_add(&e, y, b), "z");
    named(&e, wf_emit_unary(&e, "Neg", w), "v");
    assert_ok(wf_infer(more, &err), err);
    assert_ok(wf_extend(g, more, &both, &err), err);
    assert_ok(prepare(both, x, LIST("z"), NULL, &r), err);
    assert_int_equal(r->n_reads, 2);
    assert_int_equal(r->n_feeds, 1);
    assert_string_equal(r->feeds[0]->name, "x");
    wf_remote_free(&r);
    assert_ok(prepare(both, NULL, LIST("v"), NULL, &r), err);
    wf_remote_free(&r);
    wf_graph_free(&more);
    wf_graph_free(&both);
    wf_graph_free(&g);
    wf_tensor_free(&x);
}

static void a_name_that_is_taken_is_refused(void **state)
{
    wf_graph *g = session(), *again = model(), *other = new_graph(), *both = NULL;

    (void)state;
    assert_int_equal(wf_extend(g, again, &both, &err), WF_EXISTS);
    assert_says(err, "a value \"y\" already");
    variable(other, "w", DIMS(2, 4));
    assert_int_equal(wf_extend(g, other, &both, &err), WF_SHAPE);
    assert_string_equal(err.what, "variable \"w\" is float32[2, 3] in the session, and "
                                  "float32[2, 4] in the model");
    assert_null(both);
    wf_graph_free(&again);
    wf_graph_free(&other);
    wf_graph_free(&g);
}

static void only_variables_are_assigned(void **state)
{
    wf_graph *g = session(), *more = new_graph(), *both = NULL;
    wf_emit e = wf_emit_begin(more, "more", &err);
    wf_value *x = input(more, "x", DIMS(-1, 2));

    (void)state;
    named(&e, wf_emit_binary(&e, "Assign", wf_emit_unary(&e, "Neg", x), x), "bad");
    assert_int_equal(wf_extend(g, more, &both, &err), WF_INVALID);
    assert_says(err, "which is no variable");
    wf_graph_free(&more);
    more = new_graph();
    e = wf_emit_begin(more, "more", &err);
    x = input(more, "x", DIMS(-1, 2)); /* an input of the session, and no variable */
    named(&e, wf_emit_unary(&e, "Read", x), "bad");
    assert_int_equal(wf_extend(g, more, &both, &err), WF_INVALID);
    wf_graph_free(&more);
    more = new_graph();
    e = wf_emit_begin(more, "more", &err);
    x = input(more, "count", DIMS(4)); /* is [] */
    named(&e, wf_emit_binary(&e, "Assign", x, input(more, "v", DIMS(4))), "bad");
    assert_int_equal(wf_extend(g, more, &both, &err), WF_SHAPE);
    assert_says(err, "the variable is float32[], and the value float32[4]");
    wf_graph_free(&more);
    wf_graph_free(&g);
}

/* Of Assign, others get the value that is assigned. What a sum comes to the ps says: it is made
 * first, and comes in as an input. */
static void what_follows_an_assignment(void **state)
{
    wf_graph *g = session(), *more = new_graph(), *both = NULL;
    wf_emit e = wf_emit_begin(more, "more", &err);
    wf_tensor *x = zeros(DIMS(4, 2));
    wf_value *counted;
    wf_remote *r = NULL;

    (void)state;
    named(&e, wf_emit_unary(&e, "Neg", input(more, "set", DIMS(4, 3))), "minus");
    counted = input(more, "counted", 0, NULL);
    named(&e, wf_emit_unary(&e, "Neg", counted), "less");
    assert_ok(wf_extend(g, more, &both, &err), err);
    assert_ok(prepare(both, x, LIST("minus"), NULL, &r), err);
    assert_int_equal(r->n_writes, 1);
    assert_null(r->writes[0].after);
    wf_remote_free(&r);
    assert_ok(prepare(both, x, LIST("set", "less", "counted", "counted"), NULL, &r), err);
    assert_int_equal(r->n_writes, 2);
    assert_int_equal(r->writes[0].action, WF_VARIABLE_ADD);
    assert_string_equal(r->writes[0].after, "counted");
    assert_null(r->writes[1].after);
    assert_string_equal(r->results[2].value, "counted"); /* the same sum that "less" is of */
    assert_int_equal(r->n_fragments, 2);
    assert_int_equal(r->fragments[1].n_inputs, 1);
    assert_string_equal(r->fragments[1].inputs[0], "counted");
    assert_string_equal(r->fragments[1].values[0], "less");
    assert_type(r->fragments[1].compiled->graph->inputs[0], "float32[]");
    assert_int_equal(r->n_reads, 1); /* w */
    wf_remote_free(&r);
    assert_ok(prepare(both, NULL, NULL, LIST("less"), &r), err);
    assert_int_equal(r->n_writes, 1);
    wf_remote_free(&r);
    wf_tensor_free(&x);
    wf_graph_free(&more);
    wf_graph_free(&both);
    wf_graph_free(&g);
}

/* x -> a (worker 1) -> b (here) -> c (worker 1); d = a + a (worker 2); all of x [2]. */
static wf_graph *spread(void)
{
    wf_graph *g = new_graph(), *empty = NULL, *s = NULL;
    wf_emit e = wf_emit_begin(g, "model", &err);
    wf_value *x = input(g, "x", DIMS(2)), *a, *b, *c, *d;

    a = named(&e, wf_emit_neg(&e, x), "a");
    a->producer->device = "/job:worker/task:1";
    b = named(&e, wf_emit_exp(&e, a), "b");
    c = named(&e, wf_emit_neg(&e, b), "c");
    c->producer->device = "/job:worker/task:1/device:cpu";
    d = named(&e, wf_emit_add(&e, a, a), "d");
    d->producer->device = "/job:worker/task:2";
    assert_ok(wf_infer(g, &err), err);
    assert_ok(wf_extend_begin(&empty, &err), err);
    assert_ok(wf_extend(empty, g, &s, &err), err);
    wf_graph_free(&empty);
    wf_graph_free(&g);
    return s;
}

static wf_status prepare_spread(const wf_graph *g, uint32_t n_workers, const char *const fetches[],
                                size_t n_fetches, wf_remote **out)
{
    wf_tensor *x = zeros(DIMS(2));
    wf_feed feed = {.name = "x", .origin = "the feed", .content = x};
    char unfed[WF_UNFED_NAME];
    wf_status rc = wf_remote_prepare(g,
                                     &(wf_remote_run){.n_feeds = 1,
                                                      .feeds = &feed,
                                                      .n_fetches = n_fetches,
                                                      .fetches = fetches,
                                                      .worker = 0,
                                                      .n_workers = n_workers},
                                     out, unfed, &err);

    wf_tensor_free(&x);
    return rc;
}

static void is_fragment(const wf_remote *r, size_t at, uint32_t worker, const char *takes,
                        const char *gives)
{
    const wf_remote_fragment *f = &r->fragments[at];

    assert_int_equal(f->worker, worker);
    assert_int_equal(f->n_inputs, 1);
    assert_string_equal(f->inputs[0], takes);
    assert_int_equal(f->n_outputs, 1);
    assert_string_equal(f->values[0], gives);
}

static void edges_between_workers_are_cut(void **state)
{
    wf_graph *g = spread();
    wf_remote *r = NULL;

    (void)state;
    assert_ok(prepare_spread(g, 3, LIST("c", "d"), 2, &r), err);
    assert_int_equal(r->n_fragments, 4);
    is_fragment(r, 0, 1, "x", "a");
    is_fragment(r, 1, 0, "a", "b");
    is_fragment(r, 2, 2, "a", "d");
    is_fragment(r, 3, 1, "b", "c");
    assert_type(r->fragments[3].compiled->graph->inputs[0], "float32[2]");
    wf_remote_free(&r);
    assert_ok(prepare_spread(g, 3, LIST("a"), 1, &r), err); /* and only what is needed */
    assert_int_equal(r->n_fragments, 1);
    is_fragment(r, 0, 1, "x", "a");
    wf_remote_free(&r);
    assert_ok(prepare_spread(g, 3, LIST("x"), 1, &r), err); /* which nobody computes */
    assert_int_equal(r->n_fragments, 0);
    assert_int_equal(r->n_feeds, 1);
    wf_remote_free(&r);
    assert_int_equal(prepare_spread(g, 2, LIST("d"), 1, &r), WF_NOTFOUND);
    assert_says(err, "is placed on \"/job:worker/task:2\", and there are 2 workers");
    wf_graph_free(&g);
}

/* A place goes with the file. */
static void a_place_is_written_and_read(void **state)
{
    wf_graph *g = spread(), *back = NULL;
    wf_bytes file = {0};

    (void)state;
    assert_ok(wf_graph_add_output(g, wf_graph_value(g, "c"), &err), err);
    assert_ok(wf_onnx_encode(g, &file, &err), err);
    assert_ok(wf_onnx_decode(file.data, file.size, NULL, &back, &err), err);
    assert_string_equal(wf_graph_value(back, "a")->producer->device, "/job:worker/task:1");
    assert_null(wf_graph_value(back, "b")->producer->device);
    wf_bytes_close(&file);
    wf_graph_free(&back);
    wf_graph_free(&g);
}

/* A shape that is fed is known to the compiler, and the run is compiled for it alone. */
static void a_shape_may_be_fed(void **state)
{
    wf_graph *g = new_graph(), *empty = NULL, *s = NULL;
    wf_emit e = wf_emit_begin(g, "model", &err);
    wf_value *v = variable(g, "v", DIMS(2, 3)), *shape = NULL;
    int64_t two = 2, dims[2] = {3, 2};
    wf_tensor *fed = NULL;
    wf_feed feed = {.name = "shape", .origin = "the feed"};
    char unfed[WF_UNFED_NAME];
    wf_remote *r = NULL;

    (void)state;
    assert_ok(wf_graph_add_value(g, "shape", &shape, &err), err);
    wf_value_set_type(shape, WF_I64, 1, &two);
    assert_ok(wf_graph_add_input(g, shape, &err), err);
    named(&e, wf_emit_binary(&e, "Reshape", v, shape), "y");
    assert_ok(wf_infer(g, &err), err);
    assert_ok(wf_extend_begin(&empty, &err), err);
    assert_ok(wf_extend(empty, g, &s, &err), err);
    assert_ok(wf_tensor_over(WF_I64, 1, &two, dims, &fed, &err), err);
    feed.content = fed;
    assert_ok(
        wf_remote_prepare(
            s, &(wf_remote_run){.n_feeds = 1, .feeds = &feed, .n_fetches = 1, .fetches = LIST("y")},
            &r, unfed, &err),
        err);
    assert_true(r->is_for_once);
    assert_int_equal(r->n_feeds, 0);
    assert_type(r->fragments[0].compiled->graph->outputs[0], "float32[3, 2]");
    wf_remote_free(&r);
    wf_tensor_free(&fed);
    wf_graph_free(&s);
    wf_graph_free(&empty);
    wf_graph_free(&g);
}

/* What is fed need not fit the nodes that the run does not compute. */
static void other_nodes_do_not_count(void **state)
{
    wf_graph *g = new_graph(), *empty = NULL, *s = NULL;
    wf_emit e = wf_emit_begin(g, "model", &err);
    wf_value *x = input(g, "x", DIMS(-1, 2)), *v = variable(g, "v", DIMS(4, 2));
    wf_tensor *five = zeros(DIMS(5, 2));
    wf_remote *r = NULL;

    (void)state;
    named(&e, wf_emit_unary(&e, "Relu", x), "y");
    named(&e, wf_emit_binary(&e, "Add", x, v), "sum");
    assert_ok(wf_infer(g, &err), err);
    assert_ok(wf_extend_begin(&empty, &err), err);
    assert_ok(wf_extend(empty, g, &s, &err), err);
    assert_ok(prepare(s, five, LIST("y"), NULL, &r), err);
    assert_type(r->fragments[0].compiled->graph->outputs[0], "float32[5, 2]");
    assert_int_equal(r->n_reads, 0);
    wf_remote_free(&r);
    assert_ok(prepare(s, five, LIST("y", "v"), NULL, &r), err);
    assert_int_equal(r->n_reads, 1);
    wf_remote_free(&r);
    assert_true(prepare(s, five, LIST("sum"), NULL, &r) != WF_OK);
    assert_non_null(strstr(err.what, "Add"));
    wf_tensor_free(&five);
    wf_graph_free(&s);
    wf_graph_free(&empty);
    wf_graph_free(&g);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(only_what_is_wanted_is_read_and_written),
        cmocka_unit_test(assignments_become_writes_in_the_order_of_the_graph),
        cmocka_unit_test(what_is_read_is_the_variable),
        cmocka_unit_test(a_target_is_a_value_or_a_node),
        cmocka_unit_test(what_cannot_be_run_is_told),
        cmocka_unit_test(a_variable_is_no_input),
        cmocka_unit_test(models_meet_by_names),
        cmocka_unit_test(a_name_that_is_taken_is_refused),
        cmocka_unit_test(only_variables_are_assigned),
        cmocka_unit_test(what_follows_an_assignment),
        cmocka_unit_test(edges_between_workers_are_cut),
        cmocka_unit_test(a_place_is_written_and_read),
        cmocka_unit_test(a_shape_may_be_fed),
        cmocka_unit_test(other_nodes_do_not_count),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
