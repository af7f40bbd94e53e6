/* SPDX-License-Identifier: Apache-2.0 */
/* tests/unit/kernel_gather.c - Gather and GatherGrad against loops over single elements: along any
 * axis, with ids that repeat and negative ones, and the same bits on any number of threads. */
#include "common/base/rng.h"
#include "common/graph/emit.h"
#include "common/kernels/kernel.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <string.h>

extern const wf_kernel wf_kernels_gather[];
enum { GATHER, GRAD };

/* data is [outer, axis, inner]; n ids. The last is cut into pieces for threads. */
static const struct shape {
    int64_t outer, axis, inner, n;
} shapes[] = {{1, 7, 1, 30},      {1, 5, 3, 11},    {1, 40, 16, 100},    {3, 4, 5, 9},
              {2, 1, 32, 6},      {1, 9, 4, 0},     {1, 900, 1, 100000}, {1, 3000, 16, 20000},
              {2, 700, 20, 9000}, {1, 3, 20000, 17}};

static wf_tensor *noise(uint32_t rank, const int64_t dims[], uint64_t stream)
{
    wf_tensor *t;

    assert_int_equal(wf_tensor_new(WF_F32, rank, dims, &t, NULL), WF_OK);
    wf_rng_fill_f32((wf_rng_key){5, stream}, 0, t->data, (size_t)wf_elems(t));
    return t;
}

static wf_tensor *draw_ids(const struct shape *s, wf_dtype dtype)
{
    wf_tensor *t;

    assert_int_equal(wf_tensor_new(dtype, 1, &s->n, &t, NULL), WF_OK);
    for (int64_t i = 0; i < s->n; i++) {
        int64_t id =
            (int64_t)wf_rng_below((wf_rng_key){5, 3}, (uint64_t)i, 2 * (uint64_t)s->axis) - s->axis;

        if (dtype == WF_I64)
            ((int64_t *)t->data)[i] = id;
        else
            ((int32_t *)t->data)[i] = (int32_t)id;
    }
    return t;
}

/* The element of data that element k of slice i of part o is. */
static int64_t place(const struct shape *s, const wf_tensor *ids, int64_t o, int64_t i, int64_t k)
{
    int64_t id = ids->dtype == WF_I64 ? ((int64_t *)ids->data)[i] : ((int32_t *)ids->data)[i];

    return (o * s->axis + (id < 0 ? id + s->axis : id)) * s->inner + k;
}

static void check(const struct shape *s, wf_dtype dtype, wf_pool *pool)
{
    wf_attr axis = wf_attr_int("axis", 1);
    wf_node node = {.name = "g", .n_attrs = 1, .attrs = &axis};
    const wf_run run = {.node = &node, .pool = pool};
    const int64_t dims[] = {s->outer, s->axis, s->inner}, taken[] = {s->outer, s->n, s->inner};
    wf_tensor *data = noise(3, dims, 1), *dy = noise(3, taken, 2), *y = noise(3, taken, 4),
              *grad = noise(3, dims, 5), *sums = noise(3, dims, 6), *ids = draw_ids(s, dtype);

    assert_int_equal(
        wf_kernels_gather[GATHER].run(&run, (const wf_tensor *[]){data, ids}, &y, NULL), WF_OK);
    assert_int_equal(
        wf_kernels_gather[GRAD].run(&run, (const wf_tensor *[]){dy, ids, data}, &grad, NULL),
        WF_OK);
    memset(sums->data, 0, wf_tensor_bytes(sums));
    for (int64_t o = 0, at = 0; o < s->outer; o++)
        for (int64_t i = 0; i < s->n; i++)
            for (int64_t k = 0; k < s->inner; k++, at++) {
                int64_t from = place(s, ids, o, i, k);

                assert_true(((float *)y->data)[at] == ((float *)data->data)[from]);
                ((float *)sums->data)[from] += ((float *)dy->data)[at];
            }
    assert_memory_equal(grad->data, sums->data, wf_tensor_bytes(grad));
    wf_tensor_free(&data);
    wf_tensor_free(&dy);
    wf_tensor_free(&y);
    wf_tensor_free(&grad);
    wf_tensor_free(&sums);
    wf_tensor_free(&ids);
}

static void slices_are_taken_and_added_as_ids_say(void **state)
{
    static const uint32_t threads[] = {1, 2, 5};

    (void)state;
    for (size_t t = 0; t < WF_COUNT(threads); t++) {
        wf_pool *pool = NULL;

        assert_int_equal(wf_pool_new(threads[t], &pool, NULL), WF_OK);
        for (size_t i = 0; i < WF_COUNT(shapes); i++) {
            check(&shapes[i], WF_I64, pool);
            check(&shapes[i], WF_I32, pool);
        }
        wf_pool_free(&pool);
    }
}

static void an_id_beyond_the_axis_is_named(void **state)
{
    static const int64_t bad[] = {4, -5, INT64_MAX, INT64_MIN};
    const struct shape s = {1, 4, 2, 3};
    wf_attr axis = wf_attr_int("axis", 1);
    wf_node node = {.name = "g", .n_attrs = 1, .attrs = &axis};
    const wf_run run = {.node = &node};
    wf_tensor *data = noise(3, (int64_t[]){s.outer, s.axis, s.inner}, 1), *y,
              *ids = draw_ids(&s, WF_I64);
    char want[128];
    wf_err err;

    (void)state;
    y = noise(3, (int64_t[]){s.outer, s.n, s.inner}, 2);
    for (size_t i = 0; i < WF_COUNT(bad); i++) {
        ((int64_t *)ids->data)[2] = bad[i];
        snprintf(want, sizeof want, "index %lld, number 2 of them, is not in an axis of 4",
                 (long long)bad[i]);
        assert_int_equal(
            wf_kernels_gather[GATHER].run(&run, (const wf_tensor *[]){data, ids}, &y, &err),
            WF_INVALID);
        assert_string_equal(err.what, want);
        assert_int_equal(
            wf_kernels_gather[GRAD].run(&run, (const wf_tensor *[]){y, ids, data}, &data, &err),
            WF_INVALID);
    }
    wf_tensor_free(&data);
    wf_tensor_free(&ids);
    wf_tensor_free(&y);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(slices_are_taken_and_added_as_ids_say),
        cmocka_unit_test(an_id_beyond_the_axis_is_named),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
