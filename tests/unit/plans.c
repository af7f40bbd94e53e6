/* SPDX-License-Identifier: Apache-2.0 */
/* tests/unit/plans.c - plans for several batch sizes: they are made once, the one used longest ago
 * gives way, and all do where memory does not suffice for one more. */
#include "common/session/plans.h"
#include "tests/unit/graph_test.h"

/* What makes plans, of a graph x -> Tanh, and how many of them memory suffices for. */
typedef struct maker {
    const wf_graph *g;
    const wf_plans *plans;
    int fit, made, refused;
} maker;

static int count(const wf_plans *p)
{
    int n = 0;

    for (int i = 0; i < WF_PLANS_MOST; i++)
        n += p->rows[i].plan != NULL;
    return n;
}

static wf_status make(void *arg, uint64_t records, wf_plan **out, wf_err *err)
{
    maker *m = arg;

    (void)records;
    if (count(m->plans) >= m->fit) {
        m->refused++;
        return wf_fail(err, WF_NOMEM, NULL, "there is room for %d plans", m->fit);
    }
    m->made++;
    return wf_plan_new(m->g, &(wf_plan_options){0}, out, err);
}

static wf_graph *tanh_graph(void)
{
    wf_graph *g = new_graph();
    wf_value *x = input(g, "x", 1, (int64_t[]){1});
    wf_emit e = wf_emit_begin(g, "m", NULL);
    wf_err err;

    assert_ok(wf_graph_add_output(g, wf_emit_unary(&e, "Tanh", x), &err), err);
    assert_ok(wf_emit_end(&e), err);
    return g;
}

static void get(maker *m, wf_plans *p, uint64_t records)
{
    wf_plan *plan = NULL;
    wf_err err;

    assert_ok(wf_plans_get(p, records, make, m, &plan, &err), err);
    assert_non_null(plan);
}

static void the_one_used_longest_ago_gives_way(void **state)
{
    wf_plans p = {0};
    maker m = {.g = tanh_graph(), .plans = &p, .fit = WF_PLANS_MOST};

    (void)state;
    for (uint64_t n = 1; n <= WF_PLANS_MOST; n++)
        get(&m, &p, n);
    get(&m, &p, 1);
    assert_int_equal(m.made, WF_PLANS_MOST);
    get(&m, &p, 100); /* in place of 2 */
    get(&m, &p, 1);
    assert_int_equal(m.made, WF_PLANS_MOST + 1);
    get(&m, &p, 2);
    assert_int_equal(m.made, WF_PLANS_MOST + 2);
    assert_int_equal(m.refused, 0);
    wf_plans_close(&p);
    wf_graph_free((wf_graph **)&m.g);
}

static void all_give_way_where_memory_does_not_suffice(void **state)
{
    wf_plans p = {0};
    maker m = {.g = tanh_graph(), .plans = &p, .fit = 2};
    wf_plan *plan = NULL;
    wf_err err;

    (void)state;
    for (uint64_t n = 1; n <= 3; n++)
        get(&m, &p, n);
    assert_int_equal(m.refused, 1);
    assert_int_equal(count(&p), 1);
    get(&m, &p, 3);
    assert_int_equal(m.made, 3);
    m.fit = 0;
    assert_int_equal(wf_plans_get(&p, 4, make, &m, &plan, &err), WF_NOMEM);
    assert_int_equal(m.refused, 3); /* beside another, and alone */
    assert_int_equal(wf_plans_get(&p, 4, make, &m, &plan, &err), WF_NOMEM);
    assert_int_equal(m.refused, 4);
    m.fit = 1;
    get(&m, &p, 4);
    wf_plans_close(&p);
    wf_graph_free((wf_graph **)&m.g);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_one_used_longest_ago_gives_way),
        cmocka_unit_test(all_give_way_where_memory_does_not_suffice),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
