/* SPDX-License-Identifier: Apache-2.0 */
/* tests/unit/pb_guard.c - bytes that would hurt protobuf-c do not reach it. */
#include "common/onnx/onnx.pb-c.h"
#include "common/pb/pb.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static wf_status check(const void *data, size_t n, const wf_pb_limits *limits, const char *words)
{
    wf_err err = {0};
    wf_status rc = wf_pb_check(&weft__onnx__model__descriptor, data, n, limits, &err);

    if (rc != WF_OK && !strstr(err.what, words))
        fail_msg("\"%s\" does not say \"%s\"", err.what, words);
    return rc;
}

static void nothing_is_a_message(void **state)
{
    (void)state;
    assert_int_equal(check("", 0, &wf_pb_model, ""), WF_OK);
}

static void each_wire_type_is_bounded(void **state)
{
    (void)state;
    assert_int_equal(check("\x08", 1, &wf_pb_model, "end within"), WF_INVALID);
    assert_int_equal(check("\x08\x80\x80\x80\x80\x80\x80\x80\x80\x80\x80\x01", 12, &wf_pb_model,
                           "more than 10 bytes"),
                     WF_INVALID);
    assert_int_equal(check("\x09\x01\x02", 3, &wf_pb_model, "8 bytes"), WF_INVALID);
    assert_int_equal(check("\x0d\x01\x02", 3, &wf_pb_model, "4 bytes"), WF_INVALID);
    assert_int_equal(check("\x0b\x0c", 2, &wf_pb_model, "wire type 3"), WF_INVALID);
    assert_int_equal(check("\x0e", 1, &wf_pb_model, "wire type 6"), WF_INVALID);
    assert_int_equal(check("\x00\x00", 2, &wf_pb_model, "field number 0"), WF_INVALID);
    assert_int_equal(check("\x08\x01", 2, &wf_pb_model, ""), WF_OK);
}

static void a_length_of_2_to_the_40_is_refused(void **state)
{
    static const char bytes[] = "\x12\x80\x80\x80\x80\x80\x20weft";

    (void)state;
    assert_int_equal(check(bytes, sizeof bytes - 1, &wf_pb_model, "1099511627776"), WF_INVALID);
    assert_int_equal(
        check("\x12\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01", 11, &wf_pb_model, "claims"),
        WF_INVALID);
}

/* graph { node { attribute { g { node { ... */
static size_t bomb(uint8_t *to, size_t room, unsigned depth)
{
    static const uint8_t tags[] = {7 << 3 | 2, 1 << 3 | 2, 5 << 3 | 2, 6 << 3 | 2};
    size_t at = room, n = 0;

    for (unsigned i = depth; i-- > 0;) {
        uint8_t head[12];
        size_t k = 0, length = n;

        head[k++] = i == 0 ? tags[0] : tags[1 + (i - 1) % 3];
        do {
            head[k++] = (uint8_t)((length & 0x7F) | (length > 0x7F ? 0x80 : 0));
            length >>= 7;
        } while (length);
        at -= k;
        memcpy(to + at, head, k);
        n += k;
    }
    memmove(to, to + at, n);
    return n;
}

static void a_depth_bomb_is_refused(void **state)
{
    static uint8_t bytes[1 << 19];

    (void)state;
    assert_int_equal(check(bytes, bomb(bytes, sizeof bytes, 31), &wf_pb_model, ""), WF_OK);
    assert_int_equal(check(bytes, bomb(bytes, sizeof bytes, 32), &wf_pb_model, "nested"),
                     WF_INVALID);
    assert_int_equal(check(bytes, bomb(bytes, sizeof bytes, 100000), &wf_pb_model, "nested"),
                     WF_INVALID);
    assert_int_equal(check(bytes, bomb(bytes, sizeof bytes, 6), &wf_pb_envelope, "nested"),
                     WF_INVALID);
}

/* What looks like a message inside a text is text. */
static void nesting_within_strings_does_not_count(void **state)
{
    static uint8_t bytes[1 << 19];
    size_t n = bomb(bytes + 4, sizeof bytes - 4, 10000);

    (void)state;
    assert_true(n < 1 << 21 && n >= 1 << 14);
    bytes[0] = 2 << 3 | 2; /* producer_name */
    bytes[1] = (uint8_t)(n & 0x7F) | 0x80;
    bytes[2] = (uint8_t)(n >> 7 & 0x7F) | 0x80;
    bytes[3] = (uint8_t)(n >> 14);
    assert_int_equal(check(bytes, n + 4, &wf_pb_model, ""), WF_OK);
}

static void a_count_bomb_is_refused(void **state)
{
    size_t n = 2 * 1000 * 1000 + 2;
    uint8_t *bytes = malloc(n);

    (void)state;
    for (size_t i = 0; i < n; i += 2) {
        bytes[i] = 8 << 3 | 2; /* opset_import {} */
        bytes[i + 1] = 0;
    }
    assert_int_equal(check(bytes, n - 2, &wf_pb_model, ""), WF_OK);
    assert_int_equal(check(bytes, n, &wf_pb_model, "more than 1000000 fields"), WF_INVALID);
    assert_int_equal(check(bytes, 2002, &wf_pb_envelope, "more than 1000 fields"), WF_INVALID);
    free(bytes);
}

static void unpacking_keeps_to_its_budget(void **state)
{
    static const wf_pb_limits tight = {1 << 20, 6, 1000 * 1000, 10000, 4};
    size_t n = 20000;
    uint8_t *bytes = malloc(n);
    ProtobufCMessage *message = NULL;
    wf_arena *arena = NULL;
    wf_err err;

    (void)state;
    for (size_t i = 0; i < n; i += 2) {
        bytes[i] = 8 << 3 | 2;
        bytes[i + 1] = 0;
    }
    assert_int_equal(
        wf_pb_unpack(&weft__onnx__model__descriptor, bytes, n, &tight, &arena, &message, &err),
        WF_NOMEM);
    assert_null(arena);
    assert_int_equal(wf_pb_unpack(&weft__onnx__model__descriptor, bytes, n, &wf_pb_model, &arena,
                                  &message, &err),
                     WF_OK);
    assert_int_equal(((Weft__Onnx__Model *)message)->n_opset_import, n / 2);
    wf_arena_free(&arena);
    free(bytes);
}

static void a_field_of_the_wrong_type_is_refused(void **state)
{
    ProtobufCMessage *message = NULL;
    wf_arena *arena = NULL;
    wf_err err;

    (void)state;
    assert_int_equal(wf_pb_unpack(&weft__onnx__model__descriptor, "\x38\x01", 2, &wf_pb_model,
                                  &arena, &message, &err),
                     WF_INVALID); /* graph: 1 */
    assert_null(arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nothing_is_a_message),
        cmocka_unit_test(each_wire_type_is_bounded),
        cmocka_unit_test(a_length_of_2_to_the_40_is_refused),
        cmocka_unit_test(a_depth_bomb_is_refused),
        cmocka_unit_test(nesting_within_strings_does_not_count),
        cmocka_unit_test(a_count_bomb_is_refused),
        cmocka_unit_test(unpacking_keeps_to_its_budget),
        cmocka_unit_test(a_field_of_the_wrong_type_is_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
