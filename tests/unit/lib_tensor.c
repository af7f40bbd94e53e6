/* SPDX-License-Identifier: Apache-2.0 */
/* tests/unit/lib_tensor.c - libweft's tensors, lists of them, and words for codes and dtypes. */
#include "tests/unit/lib_stage.h"

#include <limits.h>

static void codes_and_dtypes_have_names(void **state)
{
    (void)state;
    assert_string_equal(weft_version(), WEFT_VERSION);
    assert_string_equal(weft_code_name(WEFT_OK), "WEFT_OK");
    assert_string_equal(weft_code_name(WEFT_SHAPE), "WEFT_SHAPE");
    assert_string_equal(weft_code_name(WEFT_AGAIN), "WEFT_AGAIN");
    assert_string_equal(weft_code_name((weft_code)99), "?");
    assert_string_equal(weft_dtype_name(WEFT_BF16), "bfloat16");
    assert_string_equal(weft_dtype_name((weft_dtype)3), "?");
    assert_int_equal(weft_dtype_of("int64"), WEFT_I64);
    assert_int_equal(weft_dtype_of("int"), 0);
    assert_int_equal(weft_dtype_of(NULL), 0);
    assert_int_equal(weft_dtype_size(WEFT_F16), 2);
    assert_int_equal(weft_dtype_size((weft_dtype)3), 0);
}

static void a_tensor_is_made_of_zeroes(void **state)
{
    weft_tensor *t = NULL;

    (void)state;
    assert_works(weft_tensor_new(WEFT_I64, 2, (int64_t[]){2, 3}, &t, &error));
    assert_int_equal(t->dtype, WEFT_I64);
    assert_int_equal(t->rank, 2);
    assert_int_equal(t->shape[1], 3);
    assert_null(t->strides);
    assert_int_equal(weft_tensor_elements(t), 6);
    for (int i = 0; i < 6; i++)
        assert_int_equal(((int64_t *)t->data)[i], 0);
    weft_tensor_free(&t);
    assert_null(t);
    weft_tensor_free(&t);
    weft_tensor_free(NULL);
    assert_works(weft_tensor_new(WEFT_F32, 0, NULL, &t, &error));
    assert_int_equal(weft_tensor_elements(t), 1);
    weft_tensor_free(&t);
}

static void a_tensor_that_cannot_be_is_refused(void **state)
{
    const int64_t nine[9] = {1, 1, 1, 1, 1, 1, 1, 1, 1};
    weft_tensor bad = {.dtype = WEFT_F32, .rank = -1};
    weft_tensor *t = &bad;

    (void)state;
    assert_fails(weft_tensor_new((weft_dtype)3, 0, NULL, &t, &error), WEFT_INVALID,
                 "3 is no dtype");
    assert_null(t);
    assert_fails(weft_tensor_new(WEFT_F32, 9, nine, &t, &error), WEFT_SHAPE, "0 to 8 axes, not 9");
    assert_fails(weft_tensor_new(WEFT_F32, -1, nine, &t, &error), WEFT_SHAPE, "not -1");
    assert_fails(weft_tensor_new(WEFT_F32, 1, NULL, &t, &error), WEFT_INVALID, "shape of 1 axes");
    assert_fails(weft_tensor_new(WEFT_F32, 1, (int64_t[]){-2}, &t, &error), WEFT_SHAPE, "no shape");
    assert_fails(weft_tensor_new(WEFT_F32, 2, (int64_t[]){INT64_MAX / 2, 8}, &t, &error),
                 WEFT_SHAPE, "no shape");
    assert_fails(weft_tensor_new(WEFT_F64, 1, (int64_t[]){INT64_MAX / 4}, &t, &error), WEFT_SHAPE,
                 "no shape");
    assert_fails(weft_tensor_new(WEFT_F32, 0, NULL, NULL, &error), WEFT_INVALID, "out is NULL");
    assert_fails(weft_tensor_view(NULL, WEFT_F32, 0, NULL, NULL, &t, &error), WEFT_INVALID,
                 "data is NULL");
    assert_int_equal(weft_tensor_view(NULL, WEFT_F32, 0, NULL, NULL, &t, NULL), WEFT_INVALID);
    assert_int_equal(weft_tensor_elements(&bad), -1);
    assert_int_equal(weft_tensor_elements(NULL), -1);
}

static void a_view_has_the_callers_memory(void **state)
{
    float data[6] = {0, 1, 2, 3, 4, 5};
    weft_tensor *t = NULL, *empty = NULL;

    (void)state;
    assert_works(
        weft_tensor_view(data, WEFT_F32, 2, (int64_t[]){3, 2}, (int64_t[]){1, 3}, &t, &error));
    assert_ptr_equal(t->data, data);
    assert_int_equal(t->strides[1], 3);
    weft_tensor_free(&t);
    assert_works(weft_tensor_view(NULL, WEFT_F32, 1, (int64_t[]){0}, NULL, &empty, &error));
    assert_int_equal(weft_tensor_elements(empty), 0);
    weft_tensor_free(&empty);
}

static void a_list_keeps_copies(void **state)
{
    float data[6] = {0, 1, 2, 3, 4, 5};
    int64_t shape[2] = {3, 2}, strides[2] = {1, 3}, backwards[2] = {-1, 3};
    weft_tensor across = {data, WEFT_F32, 2, shape, strides, NULL};
    weft_tensor back = {data + 2, WEFT_F32, 2, shape, backwards, NULL};
    const weft_tensor *got;
    weft_list *l = NULL;

    (void)state;
    assert_works(weft_list_new(&l, &error));
    assert_works(weft_list_add(l, "across", &across, &error));
    assert_works(weft_list_add(l, "back", &back, &error));
    data[0] = 9;
    assert_int_equal(weft_list_count(l), 2);
    assert_string_equal(weft_list_name(l, 1), "back");
    assert_string_equal(weft_list_origin(l), "");
    got = weft_list_tensor(l, 0);
    assert_memory_equal(got->data, ((float[]){0, 3, 1, 4, 2, 5}), sizeof data);
    assert_null(got->strides);
    assert_memory_equal(weft_list_find(l, "back")->data, ((float[]){2, 5, 1, 4, 0, 3}),
                        sizeof data);
    assert_null(weft_list_find(l, "none"));
    assert_null(weft_list_name(l, 2));
    assert_null(weft_list_tensor(l, 2));
    assert_fails(weft_list_add(l, "back", &back, &error), WEFT_EXISTS, "\"back\" already");
    across.dtype = (weft_dtype)5;
    assert_fails(weft_list_add(l, "other", &across, &error), WEFT_INVALID, "5 is no dtype");
    assert_fails(weft_list_add(NULL, "a", &back, &error), WEFT_INVALID, "l is NULL");
    assert_fails(weft_list_add(l, NULL, &back, &error), WEFT_INVALID, "name is NULL");
    assert_fails(weft_list_add(l, "a", NULL, &error), WEFT_INVALID, "t is NULL");
    assert_int_equal(weft_list_count(l), 2);
    weft_list_free(&l);
    assert_null(l);
    weft_list_free(&l);
    assert_int_equal(weft_list_count(NULL), 0);
    assert_string_equal(weft_list_origin(NULL), "");
}

static void a_list_that_is_no_file_of_weights_is_refused(void **state)
{
    test_folder f;
    weft_list *l = NULL;

    (void)state;
    test_folder_make(&f);
    assert_fails(weft_list_read(NULL, &l, &error), WEFT_INVALID, "path is NULL");
    assert_fails(weft_list_read("a.npz", &l, &error), WEFT_USAGE, "no file of weights");
    assert_fails(weft_list_read(test_path(&f, "a.safetensors"), &l, &error), WEFT_NOTFOUND,
                 "a.safetensors");
    assert_fails(weft_list_read(test_write(&f, "b.safetensors", "1234567890", 10), &l, &error),
                 WEFT_CORRUPT, "b.safetensors");
    assert_null(l);
    test_folder_remove(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(codes_and_dtypes_have_names),
        cmocka_unit_test(a_tensor_is_made_of_zeroes),
        cmocka_unit_test(a_tensor_that_cannot_be_is_refused),
        cmocka_unit_test(a_view_has_the_callers_memory),
        cmocka_unit_test(a_list_keeps_copies),
        cmocka_unit_test(a_list_that_is_no_file_of_weights_is_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
