/* SPDX-License-Identifier: Apache-2.0 */
/* tests/unit/header.c - a header goes there and back; cut or flipped it is refused. */
#include "common/wire/header.h"
#include "common/wire/grammar.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

enum { BODY = 37 };

static size_t make(uint8_t frame[WF_HEADER_BYTES + BODY], wf_header *h)
{
    uint8_t *control = frame + WF_HEADER_BYTES;

    for (int i = 0; i < BODY; i++)
        control[i] = (uint8_t)(i * 7);
    *h = (wf_header){
        .version = WF_WIRE_VERSION,
        .kind = WF_PUSH,
        .view = 0x01020304,
        .map = 0x11121314,
        .incarnation = UINT64_C(0x2122232425262728),
        .sequence = UINT64_C(0x3132333435363738),
        .ack = UINT64_C(0x4142434445464748),
        .request = 0x51525354,
        .job = 0x6162,
        .generation = 0x7172,
        .step = 0x81828384,
        .cut = 0x91929394,
        .control_bytes = BODY,
    };
    wf_header_encode(h, control, frame);
    return WF_HEADER_BYTES + BODY;
}

static void what_is_encoded_is_decoded(void **state)
{
    uint8_t frame[WF_HEADER_BYTES + BODY], again[WF_HEADER_BYTES];
    wf_header h, got;
    size_t n = make(frame, &h);

    (void)state;
    assert_int_equal(wf_header_decode(frame, n, &got, NULL), WF_OK);
    assert_int_equal(got.incarnation, h.incarnation);
    assert_int_equal(got.sequence, h.sequence);
    assert_int_equal(got.ack, h.ack);
    wf_header_encode(&got, frame + WF_HEADER_BYTES, again);
    assert_memory_equal(again, frame, sizeof again);
}

static void words_are_little_endian_at_fixed_places(void **state)
{
    uint8_t frame[WF_HEADER_BYTES + BODY];
    wf_header h;

    (void)state;
    make(frame, &h);
    assert_memory_equal(frame, "WEFT", 4);
    assert_memory_equal(frame + 8, "\x04\x03\x02\x01", 4);
    assert_memory_equal(frame + 16, "\x28\x27\x26\x25\x24\x23\x22\x21", 8);
    assert_memory_equal(frame + 46, "\x72\x71", 2);
}

static void every_cut_is_refused(void **state)
{
    uint8_t frame[WF_HEADER_BYTES + BODY];
    wf_header h, got;
    size_t n = make(frame, &h);

    (void)state;
    for (size_t k = 0; k < n; k++)
        assert_int_equal(wf_header_decode(frame, k, &got, NULL), WF_PROTO);
}

static void every_flipped_bit_is_found(void **state)
{
    uint8_t frame[WF_HEADER_BYTES + BODY];
    wf_header h, got;
    size_t n = make(frame, &h);

    (void)state;
    for (size_t bit = 0; bit < 8 * n; bit++) {
        frame[bit / 8] ^= (uint8_t)(1 << bit % 8);
        assert_int_equal(wf_header_decode(frame, n, &got, NULL), WF_PROTO);
        frame[bit / 8] ^= (uint8_t)(1 << bit % 8);
    }
    assert_int_equal(wf_header_decode(frame, n, &got, NULL), WF_OK);
}

static void a_claim_of_4_gib_of_control_bytes_is_refused(void **state)
{
    uint8_t frame[WF_HEADER_BYTES];
    wf_header h = {.version = WF_WIRE_VERSION, .kind = WF_ASK}, got;
    wf_err err;

    (void)state;
    wf_header_encode(&h, NULL, frame);
    wf_put_u32(frame + 56, UINT32_MAX);
    assert_int_equal(wf_header_decode(frame, sizeof frame, &got, &err), WF_PROTO);
    assert_non_null(strstr(err.what, "4294967295"));
}

static void each_kind_has_a_row_with_senders_and_takers(void **state)
{
    (void)state;
    for (uint16_t kind = 0; kind < 256; kind++) {
        const wf_kind_row *row = wf_kind_find(kind);

        if (!row)
            continue;
        assert_int_equal(row->kind, kind);
        assert_true(row->from && row->to);
        assert_true(row->control_limit <= (size_t)256 << 20);
        assert_string_equal(wf_kind_name(kind), row->name);
    }
    assert_null(wf_kind_find(0));
    assert_string_equal(wf_kind_name(9999), "?");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_encoded_is_decoded),
        cmocka_unit_test(words_are_little_endian_at_fixed_places),
        cmocka_unit_test(every_cut_is_refused),
        cmocka_unit_test(every_flipped_bit_is_found),
        cmocka_unit_test(a_claim_of_4_gib_of_control_bytes_is_refused),
        cmocka_unit_test(each_kind_has_a_row_with_senders_and_takers),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
