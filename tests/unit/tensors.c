/* SPDX-License-Identifier: Apache-2.0 */
/* tests/unit/tensors.c - a body with tensors behind it comes out of a message as it went in. */
#include "common/wire/tensors.h"
#include "common/wire/control.h"
#include "common/wire/grammar.h"
#include "common/wire/parts.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { MOST = WF_TENSORS_MOST + 1 };

static wf_msg_pool pool;
static wf_tensor *made[MOST];

static wf_msg *message(void)
{
    wf_msg *m = NULL;

    assert_int_equal(wf_msg_new(&pool, WF_VARIABLE, &m, NULL), WF_OK);
    return m;
}

/* Tensor i has i % 5 elements, i among them. */
static void make(uint32_t n)
{
    for (uint32_t i = 0; i < n; i++) {
        int64_t elements = i % 5;

        assert_int_equal(wf_tensor_new(WF_I32, 1, &elements, &made[i], NULL), WF_OK);
        for (int64_t k = 0; k < elements; k++)
            ((int32_t *)made[i]->data)[k] = (int32_t)i;
    }
}

static void drop(uint32_t n)
{
    for (uint32_t i = 0; i < n; i++)
        wf_tensor_free(&made[i]);
}

static void there_and_back(uint32_t n)
{
    Weft__VariableAsk body = WEFT__VARIABLE_ASK__INIT, *got = NULL;
    wf_msg *m = message();

    make(n);
    body.name = "name";
    assert_int_equal(wf_tensors_put(m, &body.base, n, (const wf_tensor *const *)made, true, NULL),
                     WF_OK);
    assert_int_equal(wf_parts_verify(m, NULL), WF_OK);
    assert_int_equal(wf_tensors_body(m, &weft__variable_ask__descriptor, &got, NULL), WF_OK);
    assert_string_equal(got->name, "name");
    for (uint32_t i = 0; i < n; i++) {
        Weft__TensorHead head;
        int64_t dims[WF_MAX_RANK];
        wf_tensor *t = NULL;

        wf_tensor_head(made[i], &head, dims);
        assert_int_equal(wf_tensors_take(m, i, &head, &t, NULL), WF_OK);
        assert_memory_equal(t->data, made[i]->data, wf_tensor_bytes(t));
        wf_tensor_free(&t);
    }
    wf_control_free(&got);
    wf_msg_free(&pool, &m);
    drop(n);
}

static void any_number_of_tensors_comes_back(void **state)
{
    (void)state;
    there_and_back(0);
    there_and_back(7);
    there_and_back(WF_MAX_FRAMES - 1);
    there_and_back(WF_MAX_FRAMES);
    there_and_back(WF_TENSORS_MOST);
}

static void too_many_are_refused(void **state)
{
    Weft__VariableAsk body = WEFT__VARIABLE_ASK__INIT;
    int64_t half = WF_TENSORS_BYTES / 2 + 1;
    wf_msg *m = message();

    (void)state;
    make(MOST);
    assert_int_equal(
        wf_tensors_put(m, &body.base, MOST, (const wf_tensor *const *)made, true, NULL), WF_FULL);
    drop(MOST);
    assert_int_equal(wf_tensor_new_blank(WF_U8, 1, &half, &made[0], NULL), WF_OK);
    made[1] = made[0];
    assert_int_equal(wf_tensors_put(m, &body.base, 2, (const wf_tensor *const *)made, true, NULL),
                     WF_FULL);
    wf_tensor_free(&made[0]);
    made[1] = NULL;
    wf_msg_free(&pool, &m);
}

static void a_body_beyond_the_grammar_is_refused(void **state)
{
    size_t n = wf_kind_find(WF_VARIABLE)->control_limit;
    Weft__VariableAsk body = WEFT__VARIABLE_ASK__INIT;
    char *name = calloc(1, n + 1);
    wf_msg *m = message();

    (void)state;
    memset(name, 'x', n);
    body.name = name;
    assert_int_equal(wf_tensors_put(m, &body.base, 0, NULL, true, NULL), WF_FULL);
    free(name);
    wf_msg_free(&pool, &m);
}

/* The body says one shape, and other bytes are there; or there is no such part. */
static void a_head_that_does_not_fit_is_refused(void **state)
{
    Weft__VariableAsk body = WEFT__VARIABLE_ASK__INIT;
    Weft__TensorHead head = WEFT__TENSOR_HEAD__INIT;
    int64_t dims[1] = {4};
    wf_msg *m = message();
    wf_tensor *t = NULL;

    (void)state;
    make(5);
    assert_int_equal(wf_tensors_put(m, &body.base, 5, (const wf_tensor *const *)made, true, NULL),
                     WF_OK);
    head.dtype = WF_I32;
    head.dims = dims;
    head.n_dims = 1;
    assert_int_equal(wf_tensors_take(m, 4, &head, &t, NULL), WF_OK);
    wf_tensor_free(&t);
    assert_int_equal(wf_tensors_take(m, 3, &head, &t, NULL), WF_PROTO);
    dims[0] = 2;
    assert_int_equal(wf_tensors_take(m, 3, &head, &t, NULL), WF_PROTO);
    dims[0] = 4;
    assert_int_equal(wf_tensors_take(m, 5, &head, &t, NULL), WF_PROTO);
    assert_null(t);
    head.dtype = WF_I8;
    assert_int_equal(wf_tensors_take(m, 4, &head, &t, NULL), WF_PROTO);
    wf_msg_free(&pool, &m);
    drop(5);
}

static int close_pool(void **state)
{
    (void)state;
    wf_msg_pool_close(&pool);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(any_number_of_tensors_comes_back),
        cmocka_unit_test(too_many_are_refused),
        cmocka_unit_test(a_body_beyond_the_grammar_is_refused),
        cmocka_unit_test(a_head_that_does_not_fit_is_refused),
    };

    return cmocka_run_group_tests(tests, NULL, close_pool);
}
