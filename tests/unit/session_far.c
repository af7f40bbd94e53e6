/* SPDX-License-Identifier: Apache-2.0 */
/* tests/unit/session_far.c - Sends and Recvs of a session's graph are taken out of it, and become
 * lists of the fragments that make and need their values. */
#include "common/base/size.h"
#include "common/graph/op.h"
#include "common/session/extend.h"
#include "common/session/remote.h"
#include "tests/unit/graph_test.h"

#define LIST(...) ((const char *const[]){__VA_ARGS__, NULL})

static wf_err err;

static wf_value *named(wf_emit *e, wf_value *v, const char *name)
{
    assert_int_equal(wf_emit_end(e), WF_OK);
    assert_ok(wf_graph_rename_value(e->g, v, name, &err), err);
    return v;
}

static wf_tensor *zeros(uint32_t rank, const int64_t dims[])
{
    wf_tensor *t = NULL;

    assert_ok(wf_tensor_new(WF_F32, rank, dims, &t, &err), err);
    return t;
}

/* One fetch of a run by worker 0, which is fed x. */
static wf_status prepare(const wf_graph *g, const char *fetch, wf_remote **out)
{
    wf_tensor *x = zeros(DIMS(2));
    wf_feed feed = {.name = "x", .origin = "the feed", .content = x};
    char unfed[WF_UNFED_NAME];
    wf_remote_run run = {.n_feeds = wf_graph_value(g, "x") ? 1 : 0,
                         .feeds = &feed,
                         .n_fetches = 1,
                         .fetches = LIST(fetch),
                         .n_workers = 2};
    wf_status rc = wf_remote_prepare(g, &run, out, unfed, &err);

    wf_tensor_free(&x);
    return rc;
}

static void set_text(wf_graph *g, wf_value *v, const char *name, const char *text)
{
    assert_ok(wf_node_set_string(g, v->producer, name, text, &err), err);
}

static wf_value *sent(wf_emit *e, wf_value *v, const char *key, const char *to, const char *at)
{
    wf_value *y = named(e, wf_emit_unary(e, "Send", v), key);

    set_text(e->g, y, "key", key);
    if (to)
        set_text(e->g, y, "to", to);
    y->producer->device = (char *)at;
    return y;
}

/* A Recv of float32 [2]; `takes`: an input, as between stages. */
static wf_value *received(wf_graph *g, const char *name, const char *key, const char *from,
                          const char *at, wf_value *takes)
{
    const wf_op *op = wf_op_find(WF_DOMAIN_WEFT, "Recv");
    wf_value *v = NULL;
    wf_node *n = NULL;

    assert_ok(wf_graph_add_value(g, name, &v, &err), err);
    assert_ok(wf_graph_add_node_like(g, op, name, takes ? 1 : 0, &takes, 1, &v, &n, &err), err);
    set_text(g, v, "key", key);
    if (from)
        set_text(g, v, "from", from);
    assert_ok(wf_node_set_int(g, n, "dtype", WF_F32, &err), err);
    assert_ok(wf_node_set_attr(
                  g, n,
                  &(wf_attr){.name = "shape", .kind = WF_ATTR_INTS, .ints = (int64_t[]){2}, .n = 1},
                  &err),
              err);
    n->device = (char *)at;
    return v;
}

static wf_graph *session_of(wf_graph **model)
{
    wf_graph *empty = NULL, *s = NULL;

    assert_ok(wf_infer(*model, &err), err);
    assert_ok(wf_extend_begin(&empty, &err), err);
    assert_ok(wf_extend(empty, *model, &s, &err), err);
    wf_graph_free(&empty);
    wf_graph_free(model);
    return s;
}

static const char W1[] = "/job:worker/task:1";

/* Worker 0 sends x and waits for an answer; worker 1 makes it of what it receives, and sends it. */
static void a_fragment_waits_for_what_it_depends_on_alone(void **state)
{
    wf_graph *g = new_graph(), *s;
    wf_emit e = wf_emit_begin(g, "model", &err);
    wf_value *x = input(g, "x", DIMS(2)), *b, *z;
    const wf_remote_fragment *f;
    wf_remote *r = NULL;
    wf_tensor *t = zeros(DIMS(2));
    wf_feed feed = {.name = "x", .origin = "the feed", .content = t};
    wf_remote_run run = {.n_feeds = 1, .feeds = &feed, .n_workers = 2};
    char unfed[WF_UNFED_NAME];

    (void)state;
    sent(&e, named(&e, wf_emit_neg(&e, x), "minus"), "there", W1, NULL);
    b = named(&e, wf_emit_exp(&e, received(g, "b", "there", "/job:worker/task:0", W1, NULL)), "eb");
    b->producer->device = (char *)W1;
    sent(&e, b, "back", "/job:worker/task:0", W1);
    z = received(g, "z", "back", W1, NULL, NULL);
    named(&e, wf_emit_add(&e, z, x), "end");
    s = session_of(&g);
    run.n_fetches = 1;
    run.fetches = LIST("end");
    run.n_targets = 2;
    run.targets = LIST("there", "back");
    assert_ok(wf_remote_prepare(s, &run, &r, unfed, &err), err);
    assert_int_equal(r->n_fragments, 3);
    for (size_t i = 0; i < 3; i++) { /* no fragment both sends and waits for the answer */
        f = &r->fragments[i];
        if (f->worker == 1) {
            assert_int_equal(f->n_receives, 1);
            assert_int_equal(f->receives[0].from, 0);
            assert_string_equal(f->receives[0].value, "b");
            assert_int_equal(f->receives[0].rank, 1);
            assert_true(f->receives[0].dims[0] == 2);
            assert_int_equal(f->n_sends, 1);
            assert_string_equal(f->sends[0].key, "back");
            assert_string_equal(f->sends[0].value, "eb");
            assert_int_equal(f->n_inputs, 0);
        } else if (f->n_receives) {
            assert_int_equal(f->n_sends, 0);
            assert_string_equal(f->inputs[0], "x");
        } else {
            assert_int_equal(f->n_sends, 1);
            assert_int_equal(f->sends[0].to, 1);
            assert_string_equal(f->sends[0].value, "minus");
        }
    }
    wf_remote_free(&r);
    run.n_targets = 0; /* and who sends nothing of it waits alone */
    assert_ok(wf_remote_prepare(s, &run, &r, unfed, &err), err);
    assert_int_equal(r->n_fragments, 1);
    assert_int_equal(r->n_feeds, 1);
    wf_remote_free(&r);
    wf_tensor_free(&t);
    wf_graph_free(&s);
}

/* A feed that is sent as it is, and a value that is given on as it came: nobody computes. */
static void a_fragment_may_compute_nothing(void **state)
{
    wf_graph *g = new_graph(), *s;
    wf_emit e = wf_emit_begin(g, "model", &err);
    wf_remote *r = NULL;

    (void)state;
    sent(&e, input(g, "x", DIMS(2)), "away", W1, W1);
    received(g, "y", "here", W1, NULL, NULL);
    s = session_of(&g);
    assert_ok(prepare(s, "y", &r), err);
    assert_int_equal(r->n_fragments, 1);
    assert_null(r->fragments[0].compiled);
    assert_int_equal(r->fragments[0].n_receives, 1);
    assert_int_equal(r->n_feeds, 0);
    assert_string_equal(r->results[0].value, "y");
    wf_remote_free(&r);
    assert_ok(prepare(s, "away", &r), err);
    assert_int_equal(r->n_fragments, 1);
    assert_int_equal(r->fragments[0].worker, 1);
    assert_string_equal(r->fragments[0].inputs[0], "x");
    assert_int_equal(r->n_feeds, 1);
    wf_remote_free(&r);
    wf_graph_free(&s);
}

static void sends_and_recvs_say_who_and_what(void **state)
{
    static const struct {
        const char *key, *from;
        bool takes;
        wf_status rc;
        const char *says;
    } rows[] = {
        {"", W1, false, WF_INVALID, "Recv \"y\" has a key of 0 bytes; it has 1 to 1000"},
        {"k", NULL, false, WF_INVALID, "Recv \"y\" does not say the worker that sends it"},
        {"k", "/job:worker/task:2", false, WF_NOTFOUND, "and there are 2 workers"},
        {"k", "worker/1", false, WF_NOTFOUND, "is placed on \"worker/1\""},
        {"k", W1, true, WF_UNSUPPORTED, "takes \"x\", as those between stages do"},
    };
    wf_remote *r = NULL;
    wf_graph *g, *s;

    (void)state;
    for (size_t i = 0; i < WF_COUNT(rows); i++) {
        g = new_graph();
        received(g, "y", rows[i].key, rows[i].from, NULL,
                 rows[i].takes ? input(g, "x", DIMS(2)) : NULL);
        s = session_of(&g);
        assert_int_equal(prepare(s, "y", &r), rows[i].rc);
        assert_says(err, rows[i].says);
        wf_graph_free(&s);
    }
    g = new_graph();
    assert_ok(
        wf_node_set_int(g, received(g, "y", "k", W1, NULL, NULL)->producer, "dtype", 77, &err),
        err);
    assert_int_equal(wf_infer(g, &err), WF_INVALID);
    assert_says(err, "dtype 77 is no type of ONNX");
    wf_graph_free(&g);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_fragment_waits_for_what_it_depends_on_alone),
        cmocka_unit_test(a_fragment_may_compute_nothing),
        cmocka_unit_test(sends_and_recvs_say_who_and_what),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
