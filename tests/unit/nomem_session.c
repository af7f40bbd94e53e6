/* SPDX-License-Identifier: Apache-2.0 */
/* tests/unit/nomem_session.c - variables of sessions are made and changed, and a session's graph
 * grows and is compiled for a run, while memory ends. */
#include "common/graph/emit.h"
#include "common/session/extend.h"
#include "common/session/remote.h"
#include "ps/containers.h"
#include "tests/unit/nomem.h"
#include "worker/sessions/rendezvous.h"

static wf_status act(wf_containers *c, wf_variable_action action, uint64_t sequence, float x,
                     float expected, wf_err *err)
{
    const wf_variable_change change = {
        .action = action, .session = 7, .sequence = sequence, .container = "", .name = "v"};
    const wf_tensor *value = NULL;
    wf_tensor *content = NULL;
    bool was_there = false;
    wf_status rc = wf_tensor_new(WF_F32, 0, NULL, &content, err);

    if (rc == WF_OK) {
        wf_f32_mut(content)[0] = x;
        rc = wf_containers_act(c, &change, &content, 0, &value, &was_there, err);
    }
    wf_tensor_free(&content);
    if (rc == WF_OK && (!value || wf_f32(value)[0] != expected))
        return wrong(err, "v is another");
    return rc;
}

/* C3: what fails has changed nothing, so it succeeds later under the same number. */
static wf_status until_done(wf_containers *c, wf_variable_action action, uint64_t sequence, float x,
                            float expected, wf_status *first, wf_err *err)
{
    wf_status rc = act(c, action, sequence, x, expected, err);

    if (rc != WF_NOMEM)
        return rc;
    *first = rc;
    return act(c, action, sequence, x, expected, err);
}

static wf_status change(wf_containers *c, wf_status *first, wf_err *err)
{
    const wf_tensor *value = NULL;
    wf_tensor *borrowed = NULL;
    bool was_there;
    wf_status rc;

    WF_TRY(until_done(c, WF_VARIABLE_CREATE, 1, 1, 1, first, err));
    WF_TRY(until_done(c, WF_VARIABLE_ASSIGN, 2, 3, 3, first, err));
    WF_TRY(wf_containers_act(
        c, &(wf_variable_change){.action = WF_VARIABLE_READ, .container = "", .name = "v"},
        &borrowed, 0, &value, &was_there, err));
    WF_TRY(wf_tensor_share(value, &borrowed, err)); /* so that a sum makes another buffer */
    rc = until_done(c, WF_VARIABLE_ADD, 3, 2, 5, first, err);
    wf_tensor_free(&borrowed);
    return rc;
}

static wf_status variables_are_changed(void *context, wf_err *err)
{
    wf_containers *c = NULL;
    wf_status first = WF_OK, rc;

    (void)context;
    WF_TRY(wf_containers_new(1 << 20, &c, err));
    rc = change(c, &first, err);
    wf_containers_free(&c);
    return rc == WF_OK && first != WF_OK ? wf_fail_nomem(err, 0) : rc;
}

/* y = x v; sum = AssignAdd(v, y); less = -sum; away = Send(less) */
static wf_status make_model(wf_graph **out, wf_err *err)
{
    wf_value *x = NULL, *v = NULL, *sum, *less, *away;
    wf_tensor *t = NULL;
    wf_emit e;

    WF_TRY(wf_graph_new("model", out, err));
    WF_TRY(wf_tensor_new(WF_F32, 0, NULL, &t, err));
    WF_TRY(wf_graph_add_variable(*out, "v", WF_VAR_TRAINABLE, &t, &v, err));
    WF_TRY(wf_graph_add_value(*out, "x", &x, err));
    wf_value_set_type(x, WF_F32, 0, NULL);
    WF_TRY(wf_graph_add_input(*out, x, err));
    e = wf_emit_begin(*out, "y", err);
    sum = wf_emit_binary(&e, "AssignAdd", v, wf_emit_mul(&e, x, v));
    less = wf_emit_unary(&e, "Neg", sum);
    away = wf_emit_unary(&e, "Send", less);
    WF_TRY(wf_emit_end(&e));
    WF_TRY(wf_node_set_string(*out, away->producer, "key", "k", err));
    WF_TRY(wf_node_set_string(*out, away->producer, "to", "/job:worker/task:0", err));
    WF_TRY(wf_graph_rename_value(*out, less, "less", err));
    WF_TRY(wf_graph_rename_value(*out, away, "away", err));
    return wf_graph_rename_value(*out, sum, "sum", err);
}

static wf_status prepare(const wf_graph *g, wf_err *err)
{
    static const char *const fetches[] = {"sum", "less"}, *const targets[] = {"away"};
    float one = 1;
    wf_tensor x = {.dtype = WF_F32, .data = &one};
    wf_feed feed = {.name = "x", .origin = "the feed", .content = &x};
    wf_remote_run run = {.n_feeds = 1,
                         .feeds = &feed,
                         .n_fetches = 2,
                         .fetches = fetches,
                         .n_targets = 1,
                         .targets = targets,
                         .n_workers = 1};
    char unfed[WF_UNFED_NAME];
    wf_remote *r = NULL;
    wf_status rc;

    WF_TRY(wf_remote_prepare(g, &run, &r, unfed, err));
    rc = r->n_reads == 1 && r->n_writes == 1 && r->n_feeds == 1 && r->n_fragments == 2 &&
                 r->fragments[1].n_sends == 1
             ? WF_OK
             : wrong(err, "the run is another");
    wf_remote_free(&r);
    return rc;
}

static wf_status a_graph_grows_and_is_compiled(void *context, wf_err *err)
{
    wf_graph *empty = NULL, *longer = NULL;
    wf_status rc = wf_extend_begin(&empty, err);

    if (rc == WF_OK)
        rc = wf_extend(empty, context, &longer, err);
    if (rc == WF_OK)
        rc = prepare(longer, err);
    wf_graph_free(&longer);
    wf_graph_free(&empty);
    return rc;
}

/* One value is sent and received, another waits; what fails may be tried again. */
static wf_status go_through(wf_rendezvous *r, const wf_tensor *value, wf_err *err)
{
    wf_rendezvous_name name = {"", "k", 0};
    wf_rendezvous_want want = {.name = name, .id = {2, 1, 0}, .dtype = WF_F32, .until_ns = 1};
    wf_rendezvous_end end;
    wf_tensor *got = NULL;
    bool right;

    WF_TRY(wf_rendezvous_put(r, &name, &(wf_rendezvous_id){1, 1, 0}, value, 0, err));
    WF_TRY(wf_rendezvous_take(r, &want, &got, err));
    right = got && wf_f32(got)[0] == wf_f32(value)[0];
    wf_tensor_free(&got);
    want.id.run = 2;
    WF_TRY(wf_rendezvous_take(r, &want, &got, err));
    right &= !got;
    WF_TRY(wf_rendezvous_put(r, &name, &(wf_rendezvous_id){1, 2, 0}, value, 0, err));
    right &= wf_rendezvous_next(r, &end);
    if (right && !end.value)
        return wf_fail(err, end.why.status, NULL, "%s", end.why.what);
    wf_tensor_free(&end.value);
    return right ? WF_OK : wrong(err, "other values came");
}

static wf_status values_are_sent(void *context, wf_err *err)
{
    wf_rendezvous *r = NULL;
    wf_status rc;

    WF_TRY(wf_rendezvous_new(&(wf_rendezvous_limits){1 << 10, 4}, &r, err));
    rc = go_through(r, context, err);
    wf_rendezvous_free(&r);
    return rc;
}

static void test_rendezvous(void **state)
{
    wf_tensor *value = NULL;

    (void)state;
    assert_int_equal(wf_tensor_new(WF_F32, 0, NULL, &value, NULL), WF_OK);
    wf_f32_mut(value)[0] = 5;
    assert_survives(values_are_sent, value);
    wf_tensor_free(&value);
}

static void test_variables(void **state)
{
    (void)state;
    assert_survives(variables_are_changed, NULL);
}

static void test_graphs(void **state)
{
    wf_graph *model = NULL;

    (void)state;
    assert_int_equal(make_model(&model, NULL), WF_OK);
    assert_survives(a_graph_grows_and_is_compiled, model);
    wf_graph_free(&model);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_variables),
        cmocka_unit_test(test_graphs),
        cmocka_unit_test(test_rendezvous),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
