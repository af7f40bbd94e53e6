/* SPDX-License-Identifier: Apache-2.0 */
/* tests/unit/compile_place.c - slices cover their variables, and ps hold about equal bytes. */
#include "tests/unit/compile_util.h"

static void check_cover(const wf_compiled *c, uint32_t n_ps)
{
    size_t at = 0;

    for (size_t i = 0; i < c->n_variables; i++) {
        const wf_compiled_variable *v = &c->variables[i];
        int64_t next = 0;

        assert_int_equal(v->first_slice, at);
        assert_true(v->n_slices >= 1);
        for (uint32_t k = 0; k < v->n_slices; k++, at++) {
            const wf_compiled_slice *s = &c->slices[at];

            assert_int_equal(s->variable, i);
            assert_int_equal(s->offset, next);
            assert_true(s->count > 0 && s->ps < n_ps);
            next += s->count;
        }
        assert_int_equal(next, v->elems);
    }
    assert_int_equal(at, c->n_slices);
}

static double imbalance(const wf_compiled *c, uint32_t n_ps)
{
    double most = 0.0, least = 1e300;

    for (uint32_t p = 0; p < n_ps; p++) {
        double bytes = 0.0;

        for (size_t i = 0; i < c->n_slices; i++)
            if (c->slices[i].ps == p)
                bytes += 4.0 * (double)c->slices[i].count;
        most = bytes > most ? bytes : most;
        least = bytes < least ? bytes : least;
    }
    return most / least;
}

static void the_mlp_is_balanced_on_two_and_three_ps(void **state)
{
    wf_model m = mlp();

    (void)state;
    for (uint32_t n_ps = 2; n_ps <= 3; n_ps++) {
        wf_compile_spec spec = train_spec(&m, n_ps);
        wf_compiled *c = compile(&spec);

        check_cover(c, n_ps);
        assert_int_equal(c->n_variables, 4);
        assert_true(c->n_slices > n_ps && c->n_slices <= 6 * n_ps);
        assert_true(imbalance(c, n_ps) <= 1.1);
        for (size_t i = 0; i < c->n_slices; i++) {
            const wf_compiled_variable *v = &c->variables[c->slices[i].variable];

            if (!strcmp(v->name, "dense/kernel"))
                assert_int_equal(c->slices[i].offset % 128, 0); /* whole rows */
            else
                assert_int_equal(v->n_slices, 1); /* small ones stay whole */
        }
        wf_compiled_free(&c);
    }
}

static void one_ps_holds_all_and_many_get_no_crumbs(void **state)
{
    wf_model m = mlp();
    wf_compile_spec one = train_spec(&m, 1), many = train_spec(&m, 64);
    wf_compiled *c = compile(&one);

    (void)state;
    check_cover(c, 1);
    assert_true(c->n_slices > 1);
    wf_compiled_free(&c);
    c = compile(&many);
    check_cover(c, 64);
    for (size_t i = 0; i < c->n_slices; i++)
        if (!strcmp(c->variables[c->slices[i].variable].name, "dense/kernel"))
            assert_true(c->slices[i].count * 4 >= 8 * 1024);
    wf_compiled_free(&c);
}

static void no_slice_is_larger_than_its_bound(void **state)
{
    wf_model m = mlp();
    wf_compile_spec spec = train_spec(&m, 2);
    wf_compiled *c;

    (void)state;
    spec.slice_bytes = 20000; /* 39 rows and a bit */
    c = compile(&spec);
    check_cover(c, 2);
    for (size_t i = 0; i < c->n_slices; i++)
        assert_true(c->slices[i].count * 4 <= 20000);
    assert_true(imbalance(c, 2) <= 1.1);
    wf_compiled_free(&c);
}

static void two_compilations_place_alike(void **state)
{
    wf_model m = mlp();
    wf_compile_spec spec = train_spec(&m, 3);
    wf_compiled *a = compile(&spec), *b = compile(&spec);

    (void)state;
    assert_int_equal(a->n_slices, b->n_slices);
    assert_memory_equal(a->slices, b->slices, a->n_slices * sizeof(*a->slices));
    wf_compiled_free(&a);
    wf_compiled_free(&b);
}

/* What is not pinned makes up for it. */
static void what_is_pinned_lies_on_its_ps(void **state)
{
    static const wf_conf_pin pins[] = {{"dense/kernel", 1, 7}, {"*", 0, 8}};
    wf_model m = mlp();
    wf_compile_spec spec = train_spec(&m, 2);
    wf_compiled *c;

    (void)state;
    spec.pins = pins;
    spec.n_pins = 1;
    c = compile(&spec);
    check_cover(c, 2);
    for (size_t i = 0; i < c->n_variables; i++) {
        const wf_compiled_variable *v = &c->variables[i];
        bool pinned = strcmp(v->name, "dense/kernel") == 0;

        assert_int_equal(v->pinned, pinned);
        for (uint32_t k = 0; k < v->n_slices; k++)
            assert_int_equal(c->slices[v->first_slice + k].ps, pinned); /* else on ps 0 */
    }
    wf_compiled_free(&c);
    spec.n_pins = 2; /* the first that matches counts */
    c = compile(&spec);
    for (size_t i = 0; i < c->n_slices; i++)
        assert_int_equal(c->slices[i].ps,
                         !strcmp(c->variables[c->slices[i].variable].name, "dense/kernel"));
    wf_compiled_free(&c);
}

/* Where slices are to move, there is enough to choose from. */
static void more_slices_are_cut_where_they_are_to_move(void **state)
{
    wf_model m = mlp();
    wf_compile_spec spec = train_spec(&m, 2);
    wf_compiled *c = compile(&spec);
    size_t few = c->n_slices;

    (void)state;
    wf_compiled_free(&c);
    spec.balances = true;
    c = compile(&spec);
    check_cover(c, 2);
    assert_true(few < 10 && c->n_slices >= 16 && c->n_slices <= 32);
    assert_true(imbalance(c, 2) <= 1.1);
    wf_compiled_free(&c);
}

static void a_pin_that_cannot_be_is_refused(void **state)
{
    wf_conf_pin pin = {"dense*", 2, 7};
    wf_model m = mlp();
    wf_compile_spec spec = train_spec(&m, 2);
    wf_compiled *c = NULL;
    wf_err err;

    (void)state;
    spec.file = "j.yaml";
    spec.pins = &pin;
    spec.n_pins = 1;
    assert_int_equal(wf_compile(&spec, &c, &err), WF_USAGE);
    assert_non_null(
        strstr(err.what, "j.yaml:7: pin: \"dense*\" is to lie on ps/2, and there are 2"));
    pin = (wf_conf_pin){"dense/kernal", 1, 9};
    assert_int_equal(wf_compile(&spec, &c, &err), WF_USAGE);
    assert_non_null(strstr(err.what, "j.yaml:9: pin: \"dense/kernal\" matches no variable on a ps; "
                                     "there is \"dense/kernel\""));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_mlp_is_balanced_on_two_and_three_ps),
        cmocka_unit_test(one_ps_holds_all_and_many_get_no_crumbs),
        cmocka_unit_test(no_slice_is_larger_than_its_bound),
        cmocka_unit_test(two_compilations_place_alike),
        cmocka_unit_test(what_is_pinned_lies_on_its_ps),
        cmocka_unit_test(more_slices_are_cut_where_they_are_to_move),
        cmocka_unit_test(a_pin_that_cannot_be_is_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
