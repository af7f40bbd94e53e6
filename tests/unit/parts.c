/* SPDX-License-Identifier: Apache-2.0 */
/* tests/unit/parts.c - a part table says nothing about bytes that are not there. */
#include "common/wire/parts.h"
#include "common/base/size.h"
#include "common/wire/grammar.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

enum { N = 3, FRAME_BYTES = 96 };

typedef struct fixture {
    wf_msg_pool pool;
    wf_msg *msg;
    wf_buf *buf;
    wf_part parts[WF_MAX_PARTS];
} fixture;

static int set_up(void **state)
{
    static fixture f;

    f = (fixture){.buf = wf_buf_new(FRAME_BYTES)};
    assert_int_equal(wf_msg_new(&f.pool, WF_WEIGHTS, &f.msg, NULL), WF_OK);
    for (int i = 0; i < FRAME_BYTES; i++)
        ((uint8_t *)f.buf->data)[i] = (uint8_t)i;
    assert_int_equal(wf_msg_add_frame(f.msg, f.buf, f.buf->data, FRAME_BYTES, NULL), WF_OK);
    for (uint32_t i = 0; i < N; i++)
        f.parts[i] = (wf_part){.slice = 10 + i, .offset = 32 * i, .bytes = 32};
    assert_int_equal(wf_parts_put(f.msg, f.parts, N, NULL), WF_OK);
    *state = &f;
    return 0;
}

static int tear_down(void **state)
{
    fixture *f = *state;

    wf_msg_free(&f->pool, &f->msg);
    wf_msg_pool_close(&f->pool);
    wf_buf_unref(&f->buf);
    return 0;
}

static wf_status get(fixture *f, uint32_t *n)
{
    return wf_parts_get(f->msg, f->parts, n, NULL);
}

static void parts_come_back_as_they_were_put(void **state)
{
    fixture *f = *state;
    uint32_t n = 0;

    assert_int_equal(get(f, &n), WF_OK);
    assert_int_equal(n, N);
    assert_int_equal(f->parts[2].slice, 12);
    assert_ptr_equal(wf_part_data(f->msg, &f->parts[2]), (uint8_t *)f->buf->data + 64);
}

/* Each field of the second entry, beyond what the frame holds. */
static void a_part_outside_its_frame_is_refused(void **state)
{
    static const struct {
        size_t at;
        uint32_t value;
    } bad[] = {
        {8, FRAME_BYTES},
        {8, 68},
        {8, 2},
        {8, UINT32_MAX},
        {12, 30},
        {12, 65},
        {12, UINT32_C(1) << 31},
        {12, UINT32_MAX - 31},
    };
    fixture *f = *state;
    uint8_t *entry = f->msg->control + WF_PART_TABLE_BYTES + WF_PART_BYTES;

    for (size_t i = 0; i < WF_COUNT(bad); i++) {
        uint32_t was = wf_get_u32(entry + bad[i].at);
        uint32_t n;

        wf_put_u32(entry + bad[i].at, bad[i].value);
        assert_int_equal(get(f, &n), WF_PROTO);
        wf_put_u32(entry + bad[i].at, was);
    }
    entry[5] = 1; /* a frame that is not there */
    assert_int_equal(get(f, &(uint32_t){0}), WF_PROTO);
    entry[5] = 0;
    entry[4] = 9; /* a codec of a later release */
    assert_int_equal(get(f, &(uint32_t){0}), WF_PROTO);
}

/* 32 bytes as 16 halves, 28 numbers of int8 and its scale, and 3 pairs of top-k behind their head.
 */
static void numbers_may_be_written_in_fewer_bytes(void **state)
{
    static const struct {
        uint8_t coding;
        uint64_t bytes, n;
    } parts[N] = {{WF_CODING_BF16, 32, 16}, {WF_CODING_INT8, 32, 28}, {WF_CODING_TOPK, 28, 1000}};
    fixture *f = *state;
    uint32_t n;

    wf_put_u32((uint8_t *)f->buf->data + 64, 1000);
    for (uint32_t i = 0; i < N; i++) {
        f->parts[i].coding = parts[i].coding;
        f->parts[i].bytes = parts[i].bytes;
    }
    assert_int_equal(wf_parts_put(f->msg, f->parts, N, NULL), WF_OK);
    memset(f->parts, 0, sizeof f->parts);
    assert_int_equal(get(f, &n), WF_OK);
    for (uint32_t i = 0; i < N; i++) {
        wf_coded c = wf_part_coded(f->msg, &f->parts[i]);

        assert_int_equal(c.coding, parts[i].coding);
        assert_int_equal(c.n, parts[i].n);
        assert_ptr_equal(c.data, (uint8_t *)f->buf->data + 32 * i);
    }
}

static void bytes_that_a_coding_cannot_have_are_refused(void **state)
{
    static const wf_part bad[] = {
        {.coding = WF_CODING_BF16, .bytes = 31},
        {.coding = WF_CODING_INT8, .bytes = 4},
        {.coding = WF_CODING_TOPK, .bytes = 32},              /* half a pair */
        {.coding = WF_CODING_TOPK, .offset = 4, .bytes = 28}, /* three of two */
        {.coding = WF_N_CODINGS, .bytes = 32},
        {.coding = WF_CODING_BF16, .codec = WF_CODEC_BYTES, .bytes = 32},
        {.coding = WF_CODING_TOPK, .codec = WF_CODEC_ROWS, .bytes = 12, .ids = {.bytes = 8}},
        {.coding = WF_CODING_F16, .codec = WF_CODEC_ROWS, .bytes = 6, .ids = {.bytes = 16}},
    };
    fixture *f = *state;
    uint32_t n;

    memset(f->buf->data, 0, FRAME_BYTES);
    wf_put_u32(f->buf->data, 8);
    wf_put_u32((uint8_t *)f->buf->data + 4, 2);
    for (size_t i = 0; i < WF_COUNT(bad); i++) {
        assert_int_equal(wf_parts_put(f->msg, &bad[i], 1, NULL), WF_OK);
        assert_int_equal(get(f, &n), WF_PROTO);
        assert_int_equal(wf_parts_verify(f->msg, NULL), WF_PROTO);
    }
}

static void a_count_that_the_table_does_not_hold_is_refused(void **state)
{
    static const uint32_t counts[] = {0, N - 1, N + 1, WF_MAX_PARTS + 1, UINT32_MAX, 1u << 27};
    fixture *f = *state;

    for (size_t i = 0; i < WF_COUNT(counts); i++) {
        wf_put_u32(f->msg->control, counts[i]);
        assert_int_equal(get(f, &(uint32_t){0}), WF_PROTO);
    }
    wf_put_u32(f->msg->control, N);
    for (uint32_t k = 0; k < WF_PART_TABLE_BYTES + N * WF_PART_BYTES; k++) {
        f->msg->head.control_bytes = k;
        assert_int_equal(get(f, &(uint32_t){0}), WF_PROTO);
    }
}

static void a_flipped_byte_of_a_part_is_found_by_its_checksum(void **state)
{
    fixture *f = *state;
    uint8_t *data = f->buf->data;
    uint32_t n;

    for (uint32_t i = 0; i < N; i++)
        f->parts[i].checksum = wf_part_checksum(data + 32 * i, 32);
    assert_int_equal(wf_parts_put(f->msg, f->parts, N, NULL), WF_OK);
    assert_int_equal(wf_parts_verify(f->msg, NULL), WF_OK);
    data[40] ^= 1;
    assert_int_equal(wf_parts_verify(f->msg, NULL), WF_CORRUPT);
    assert_int_equal(get(f, &n), WF_OK); /* it reads the table, and not the bytes */
}

static void more_parts_than_a_message_holds_are_refused(void **state)
{
    fixture *f = *state;

    assert_int_equal(wf_parts_put(f->msg, f->parts, WF_MAX_PARTS + 1, NULL), WF_FULL);
}

static void a_list_of_slices_is_read_in_whole_words(void **state)
{
    fixture *f = *state;
    uint32_t ids[WF_MAX_PARTS], n = 0;

    assert_int_equal(wf_slices_put(f->msg, (uint32_t[]){10, 11, 12}, N, NULL), WF_OK);
    assert_int_equal(wf_slices_get(f->msg, ids, &n, NULL), WF_OK);
    assert_int_equal(n, N);
    assert_int_equal(ids[1], 11);
    f->msg->head.control_bytes--;
    assert_int_equal(wf_slices_get(f->msg, ids, &n, NULL), WF_PROTO);
    assert_non_null(wf_msg_control(f->msg, (WF_MAX_PARTS + 1) * sizeof(uint32_t)));
    assert_int_equal(wf_slices_get(f->msg, ids, &n, NULL), WF_PROTO);
}

/* The message as a pull of rows: 2 ids of slice 10, 3 of slice 12. */
static void put_pull(fixture *f)
{
    const wf_part rows[] = {
        {.slice = 10, .codec = WF_CODEC_IDS, .ids = {.bytes = 16}},
        {.slice = 12, .codec = WF_CODEC_IDS, .ids = {.offset = 16, .bytes = 24}},
    };

    f->msg->head.kind = WF_PULL;
    assert_int_equal(wf_pull_put(f->msg, (wf_pull_body){3, 77, 9}, rows, 2, NULL), WF_OK);
}

static void a_pull_is_three_words_and_the_rows_that_it_asks_for(void **state)
{
    fixture *f = *state;
    wf_pull_body body;
    wf_rows rows;
    uint32_t n;

    put_pull(f);
    wf_put_u64((uint8_t *)f->buf->data + 24, 70);
    assert_int_equal(wf_pull_get(f->msg, &body, f->parts, &n, NULL), WF_OK);
    assert_int_equal(body.list, 3);
    assert_int_equal(body.after, 77);
    assert_int_equal(body.clock, 9);
    assert_int_equal(n, 2);
    assert_int_equal(f->parts[1].slice, 12);
    rows = wf_part_rows(f->msg, &f->parts[1]);
    assert_int_equal(rows.n, 3);
    assert_int_equal(wf_row_id(&rows, 1), 70);
    for (uint32_t bytes = f->msg->head.control_bytes; bytes-- > 0;) {
        f->msg->head.control_bytes = bytes;
        assert_int_equal(wf_pull_get(f->msg, &body, f->parts, &n, NULL), WF_PROTO);
    }
}

static void a_push_is_two_words_and_the_parts(void **state)
{
    fixture *f = *state;
    wf_push_body body;
    uint32_t n;

    f->msg->head.kind = WF_PUSH;
    assert_int_equal(wf_push_put(f->msg, (wf_push_body){41, 32}, f->parts, N, NULL), WF_OK);
    f->parts[1].slice = 0;
    assert_int_equal(wf_push_get(f->msg, &body, f->parts, &n, NULL), WF_OK);
    assert_int_equal(body.clock, 41);
    assert_int_equal(body.records, 32);
    assert_int_equal(n, N);
    assert_int_equal(f->parts[1].slice, 11);
    for (uint32_t bytes = f->msg->head.control_bytes; bytes-- > 0;) {
        f->msg->head.control_bytes = bytes;
        assert_int_equal(wf_push_get(f->msg, &body, f->parts, &n, NULL), WF_PROTO);
    }
}

static void a_decision_is_a_clock_and_who_counts(void **state)
{
    static uint64_t who[] = {7, UINT64_MAX, 1}, room[WF_MAX_CONTRIBUTORS];
    wf_decision made = {9, 7, 3, who}, got = {.workers = room};
    fixture *f = *state;

    f->msg->head.kind = WF_DECIDED;
    assert_int_equal(wf_decided_put(f->msg, &made, NULL), WF_OK);
    assert_int_equal(wf_decided_get(f->msg, &got, NULL), WF_OK);
    assert_int_equal(got.clock, 9);
    assert_int_equal(got.before, 7);
    assert_int_equal(got.n, 3);
    assert_memory_equal(got.workers, who, sizeof who);
    for (uint32_t bytes = 0; bytes < 32; bytes++) {
        bool whole = bytes >= 8 && bytes % 8 == 0;

        f->msg->head.control_bytes = bytes;
        assert_int_equal(wf_decided_get(f->msg, &got, NULL), whole ? WF_OK : WF_PROTO);
    }
    f->msg->head.control_bytes = 8 + 8 * (WF_MAX_CONTRIBUTORS + 1);
    assert_int_equal(wf_decided_get(f->msg, &got, NULL), WF_PROTO);
    made.before = 9;
    assert_int_equal(wf_decided_put(f->msg, &made, NULL), WF_OK);
    assert_int_equal(wf_decided_get(f->msg, &got, NULL), WF_PROTO);
}

static void ids_outside_their_frame_are_refused(void **state)
{
    static const struct {
        size_t at;
        uint32_t value;
    } bad[] = {{8, FRAME_BYTES}, {8, 2}, {8, UINT32_MAX}, {12, 0}, {12, 12}, {12, 88}};
    fixture *f = *state;
    wf_pull_body body;
    uint32_t n;

    put_pull(f);
    for (size_t i = 0; i < WF_COUNT(bad); i++) {
        uint8_t *entry = f->msg->control + WF_PULL_BYTES + WF_PART_TABLE_BYTES + WF_PART_BYTES;
        uint32_t was = wf_get_u32(entry + bad[i].at);

        wf_put_u32(entry + bad[i].at, bad[i].value);
        assert_int_equal(wf_pull_get(f->msg, &body, f->parts, &n, NULL), WF_PROTO);
        wf_put_u32(entry + bad[i].at, was);
    }
    f->msg->control[WF_PULL_BYTES + WF_PART_TABLE_BYTES + 4] = WF_CODEC_F32; /* values of a pull */
    assert_int_equal(wf_pull_get(f->msg, &body, f->parts, &n, NULL), WF_PROTO);
}

/* The first part becomes one of two rows of four elements, the second is another, and the third
 * one's bytes are the ids of the first. */
static void put_rows(fixture *f, uint64_t ids_bytes)
{
    f->parts[0].codec = WF_CODEC_ROWS;
    f->parts[0].ids = (wf_part_range){.offset = 64, .bytes = ids_bytes};
    assert_int_equal(wf_parts_put(f->msg, f->parts, 2, NULL), WF_OK);
    wf_put_u64((uint8_t *)f->buf->data + 64, 70);
    wf_put_u64((uint8_t *)f->buf->data + 72, UINT64_MAX - 1);
}

static void row_ids_follow_their_values(void **state)
{
    fixture *f = *state;
    uint32_t n = 0;
    wf_coded values;
    wf_rows rows;

    put_rows(f, 16);
    assert_int_equal(wf_get_u32(f->msg->control), 3); /* entries */
    assert_int_equal(get(f, &n), WF_OK);
    assert_int_equal(n, 2);
    rows = wf_part_rows(f->msg, &f->parts[0]);
    values = wf_part_coded(f->msg, &f->parts[0]);
    assert_int_equal(rows.n, 2);
    assert_int_equal(wf_row_id(&rows, 0), 70);
    assert_int_equal(wf_row_id(&rows, 1), UINT64_MAX - 1);
    assert_int_equal(values.n, 8);
    assert_ptr_equal(values.data, f->buf->data);
    assert_int_equal(f->parts[1].slice, 11);
    assert_int_equal(wf_part_rows(f->msg, &f->parts[1]).n, 0); /* its neighbour names none */
}

static void a_flipped_byte_of_ids_is_found_by_their_checksum(void **state)
{
    fixture *f = *state;

    put_rows(f, 16);
    f->parts[0].ids.checksum = wf_part_checksum((uint8_t *)f->buf->data + 64, 16);
    assert_int_equal(wf_parts_put(f->msg, f->parts, 2, NULL), WF_OK);
    assert_int_equal(wf_parts_verify(f->msg, NULL), WF_OK);
    ((uint8_t *)f->buf->data)[70] ^= 1;
    assert_int_equal(wf_parts_verify(f->msg, NULL), WF_CORRUPT);
}

static void rows_that_do_not_fit_their_values_are_refused(void **state)
{
    fixture *f = *state;
    uint32_t n;

    put_rows(f, 24); /* 32 bytes of values for 3 rows */
    assert_int_equal(get(f, &n), WF_PROTO);
    put_rows(f, 0);
    assert_int_equal(get(f, &n), WF_PROTO);
    put_rows(f, 12); /* one and a half */
    assert_int_equal(get(f, &n), WF_PROTO);
    put_rows(f, 16);
    wf_put_u32(f->msg->control + WF_PART_TABLE_BYTES + WF_PART_BYTES, 13); /* of another slice */
    assert_int_equal(get(f, &n), WF_PROTO);
    put_rows(f, 16);
    f->msg->control[WF_PART_TABLE_BYTES + WF_PART_BYTES + 4] = WF_CODEC_F32; /* no ids */
    assert_int_equal(get(f, &n), WF_PROTO);
    f->parts[1].codec = WF_CODEC_ROWS; /* the last entry of all, with nothing behind it */
    f->parts[1].slice = 14;
    put_rows(f, 16);
    wf_put_u32(f->msg->control, 3);
    f->msg->head.control_bytes = WF_PART_TABLE_BYTES + 3 * WF_PART_BYTES;
    assert_int_equal(get(f, &n), WF_PROTO);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(parts_come_back_as_they_were_put, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_part_outside_its_frame_is_refused, set_up, tear_down),
        cmocka_unit_test_setup_teardown(numbers_may_be_written_in_fewer_bytes, set_up, tear_down),
        cmocka_unit_test_setup_teardown(bytes_that_a_coding_cannot_have_are_refused, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(a_count_that_the_table_does_not_hold_is_refused, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(a_flipped_byte_of_a_part_is_found_by_its_checksum, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(more_parts_than_a_message_holds_are_refused, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(a_list_of_slices_is_read_in_whole_words, set_up, tear_down),
        cmocka_unit_test_setup_teardown(row_ids_follow_their_values, set_up, tear_down),
        cmocka_unit_test_setup_teardown(rows_that_do_not_fit_their_values_are_refused, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(ids_outside_their_frame_are_refused, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_flipped_byte_of_ids_is_found_by_their_checksum, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(a_pull_is_three_words_and_the_rows_that_it_asks_for, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(a_push_is_two_words_and_the_parts, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_decision_is_a_clock_and_who_counts, set_up, tear_down),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
