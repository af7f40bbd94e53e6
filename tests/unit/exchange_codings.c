/* SPDX-License-Identifier: Apache-2.0 */
/* tests/unit/exchange_codings.c - gradients that a worker sends in fewer bytes, to a ps played by
 * hand: all that is given arrives in the end, once, but for the residual; and weights that come as
 * halves. */
#include "tests/unit/exchange_stage.h"

#include <math.h>
#include <stdlib.h>

#include "common/base/cc.h"
#include "common/base/rng.h"

static double sums[ELEMENTS], given[ELEMENTS];

static int begin_coding(void **state, wf_coding coding)
{
    world *w;

    push_coding = coding;
    begin_with(state, 1, 1, 0);
    push_coding = WF_CODING_F32;
    w = *state;
    memset(sums, 0, sizeof sums);
    memset(given, 0, sizeof given);
    w->sums = sums;
    turn(w, 100);
    return 0;
}

/* clang-format off */
static int begin_bf16(void **state) { return begin_coding(state, WF_CODING_BF16); }
static int begin_f16(void **state) { return begin_coding(state, WF_CODING_F16); }
static int begin_int8(void **state) { return begin_coding(state, WF_CODING_INT8); }
static int begin_topk(void **state) { return begin_coding(state, WF_CODING_TOPK); }
/* clang-format on */

static wf_coding coding_of(const world *w)
{
    return ((const wf_client *)w->exchange)->variables[0].push;
}

static const float *residual_of(const world *w)
{
    return ((const wf_client *)w->exchange)->variables[0].residual;
}

/* A gradient of whole sixteenths, so that sums are exact. */
static void make(world *w, uint32_t step)
{
    float *g = wf_exchange_gradient(w->exchange, step, 0);

    for (uint32_t i = 0; i < ELEMENTS; i++) {
        g[i] = (floorf((float)wf_rng_f64((wf_rng_key){step}, i) * 64) - 32) / 16;
        given[i] += (double)g[i];
    }
}

static void push_made(world *w, uint32_t step)
{
    assert_int_equal(wf_exchange_push(w->exchange, step, 0, NULL), WF_OK);
    assert_int_equal(wf_exchange_end_step(w->exchange, step, NULL), WF_OK);
    turn(w, 20);
}

static void expect_all_but_the_residual(const world *w)
{
    for (uint32_t i = 0; i < ELEMENTS; i++)
        assert_true(fabs(given[i] - sums[i] - (double)residual_of(w)[i]) < 1e-4);
}

static void what_is_sent_and_the_residual_are_what_was_given(void **state)
{
    world *w = *state;
    double most = 0;

    for (uint32_t step = 1; step <= 12; step++) {
        make(w, step);
        push_made(w, step);
        assert_int_equal(w->pushed.coding, coding_of(w));
        assert_int_equal(w->pushed.bytes,
                         wf_coding_bytes(coding_of(w), ELEMENTS, wf_coding_kept(ELEMENTS, 0.01)));
        send_push_ok(w, step);
        turn(w, 20);
        assert_int_equal(w->exchange->acked, step);
        expect_all_but_the_residual(w);
    }
    for (uint32_t i = 0; i < ELEMENTS; i++)
        most = fmax(most, fabs((double)residual_of(w)[i]));
    assert_true(most < (coding_of(w) == WF_CODING_TOPK ? 12 : 0.1));
    assert_int_equal(w->exchange->plain_bytes, 12 * ELEMENTS * sizeof(float));
    assert_int_equal(w->exchange->pushed_bytes, 12 * w->pushed.bytes);
}

static void what_is_sent_again_has_the_same_bytes(void **state)
{
    world *w = *state;
    uint64_t first;

    make(w, 1);
    push_made(w, 1);
    first = w->digest;
    make(w, 2); /* the residual is that of a later step now */
    push_made(w, 2);
    assert_true(w->digest != first);
    memset(sums, 0, sizeof sums);
    assert_int_equal(wf_exchange_on_up(w->exchange, w->to_ps, NULL), WF_OK); /* a fresh link */
    turn(w, 100);
    assert_int_equal(w->got[WF_PUSH], 4);
    expect_all_but_the_residual(w);
    send_push_ok(w, 2);
    turn(w, 20);
    memset(sums, 0, sizeof sums);
    assert_int_equal(wf_exchange_on_up(w->exchange, w->to_ps, NULL), WF_OK);
    turn(w, 100);
    assert_int_equal(w->digest, first);
    assert_int_equal(w->exchange->plain_bytes, 2 * ELEMENTS * sizeof(float));
}

static void a_dropped_step_leaves_the_residual(void **state)
{
    world *w = *state;

    make(w, 1);
    push_made(w, 1);
    assert_int_equal(wf_exchange_drop_step(w->exchange, 2, NULL), WF_OK);
    assert_int_equal(wf_exchange_end_step(w->exchange, 2, NULL), WF_OK);
    turn(w, 20);
    assert_int_equal(w->pushed.codec, WF_CODEC_NONE);
    expect_all_but_the_residual(w);
    make(w, 3);
    push_made(w, 3);
    expect_all_but_the_residual(w);
    assert_int_equal(w->exchange->plain_bytes, 2 * ELEMENTS * sizeof(float));
}

/* It goes as it is: the ps finds NaN, and the numbers that fit again later go with their residual.
 */
static void what_a_coding_cannot_say_goes_as_float32(void **state)
{
    world *w = *state;
    double before;

    make(w, 1);
    push_made(w, 1);
    before = sums[9];
    make(w, 2);
    given[9] -= (double)wf_exchange_gradient(w->exchange, 2, 0)[9];
    wf_exchange_gradient(w->exchange, 2, 0)[9] = INFINITY;
    push_made(w, 2);
    assert_int_equal(w->pushed.coding, WF_CODING_F32);
    assert_int_equal(w->pushed.bytes, ELEMENTS * sizeof(float));
    assert_true(isinf(sums[9]));
    sums[9] = before;
    expect_all_but_the_residual(w);
    make(w, 3);
    push_made(w, 3);
    assert_int_equal(w->pushed.coding, coding_of(w));
    expect_all_but_the_residual(w);
}

static void two_runs_send_the_same_bits(void **state)
{
    uint64_t digests[2] = {0};
    wf_coding coding = coding_of(*state);

    for (int run = 0; run < 2; run++) {
        world *w = *state;

        for (uint32_t step = 1; step <= 3; step++) {
            make(w, step);
            push_made(w, step);
            digests[run] = digests[run] * 31 + w->digest;
        }
        end(state);
        begin_coding(state, coding);
    }
    assert_int_equal(digests[0], digests[1]);
}

/* ---- starts and weights ---- */

static wf_status open_with(uint32_t kind, uint32_t coding, double kept, uint64_t rows_most)
{
    Weft__Variable v = WEFT__VARIABLE__INIT;
    wf_client_variable to = {.rows_most = rows_most};

    v.kind = kind;
    v.push_coding = coding;
    v.push_kept = kept;
    return wf_codings_take(&v, &to, NULL);
}

static void a_start_with_a_coding_that_cannot_be_is_refused(void **state)
{
    (void)state;
    assert_int_equal(open_with(WF_KIND_TRAINABLE, WF_CODING_INT8, 0, 0), WF_OK);
    assert_int_equal(open_with(WF_KIND_TRAINABLE, WF_CODING_F16, 0, 9), WF_OK);
    assert_int_equal(open_with(WF_KIND_TRAINABLE, WF_CODING_TOPK, 1, 0), WF_OK);
    assert_int_equal(open_with(WF_KIND_TRAINABLE, WF_N_CODINGS, 0, 0), WF_PROTO);
    assert_int_equal(open_with(WF_KIND_STATISTIC, WF_CODING_BF16, 0, 0), WF_PROTO);
    assert_int_equal(open_with(WF_KIND_FROZEN, WF_CODING_BF16, 0, 0), WF_PROTO);
    assert_int_equal(open_with(WF_KIND_TRAINABLE, WF_CODING_INT8, 0, 9), WF_PROTO);
    assert_int_equal(open_with(WF_KIND_TRAINABLE, WF_CODING_TOPK, 0, 0), WF_PROTO);
    assert_int_equal(open_with(WF_KIND_TRAINABLE, WF_CODING_TOPK, NAN, 0), WF_PROTO);
    assert_int_equal(open_with(WF_KIND_TRAINABLE, WF_CODING_TOPK, 1.5, 0), WF_PROTO);
}

/* All of the first slice in a coding, or but for the last number. */
static void give_coded(world *w, wf_coding coding, float value, uint64_t n)
{
    wf_part part = {.coding = (uint8_t)coding, .bytes = wf_coding_bytes(coding, n, 9)};
    wf_buf *b = wf_buf_new(part.bytes);
    float *x = malloc(n * sizeof *x);
    wf_msg *m = NULL;

    for (uint64_t i = 0; i < n; i++)
        x[i] = value;
    assert_true(wf_coding_write(coding, 9, x, NULL, n, b->data));
    assert_int_equal(wf_net_msg(w->ps, WF_WEIGHTS, &m, NULL), WF_OK);
    m->head.generation = GENERATION;
    m->head.request = w->request[MOVING_LIST];
    assert_int_equal(wf_msg_add_frame(m, b, b->data, b->bytes, NULL), WF_OK);
    assert_int_equal(wf_parts_put(m, &part, 1, NULL), WF_OK);
    assert_int_equal(wf_net_send(w->ps, w->to_worker, WF_LANE_DATA, 0, &m, NULL), WF_OK);
    wf_buf_unref(&b);
    free(x);
}

static void weights_may_come_as_halves(void **state)
{
    static const wf_coding bad[] = {WF_CODING_INT8, WF_CODING_TOPK};
    world *w = *state;

    turn(w, 100);
    for (uint32_t step = 1; step <= 2; step++) {
        assert_int_equal(wf_exchange_want(w->exchange, 0, step, NULL), WF_OK);
        turn(w, 20);
        w->says = WF_PROTO;
        for (size_t i = 0; i < WF_COUNT(bad); i++)
            give_coded(w, bad[i], 1, ELEMENTS);
        give_coded(w, WF_CODING_BF16, 1, ELEMENTS - 2);
        turn(w, 20);
        assert_false(wf_exchange_ready(w->exchange, 0));
        w->says = WF_OK;
        give_coded(w, step == 1 ? WF_CODING_BF16 : WF_CODING_F16, (float)step + 0.25F, ELEMENTS);
        turn(w, 20);
        assert_true(wf_exchange_ready(w->exchange, 0));
        assert_true(wf_exchange_weights(w->exchange, 0, 0)[ELEMENTS - 1] == (float)step + 0.25F);
    }
}

#define EACH(test)                                                                                 \
    cmocka_unit_test_setup_teardown(test, begin_bf16, end),                                        \
        cmocka_unit_test_setup_teardown(test, begin_f16, end),                                     \
        cmocka_unit_test_setup_teardown(test, begin_int8, end),                                    \
        cmocka_unit_test_setup_teardown(test, begin_topk, end)

int main(void)
{
    const struct CMUnitTest tests[] = {
        EACH(what_is_sent_and_the_residual_are_what_was_given),
        EACH(what_is_sent_again_has_the_same_bytes),
        EACH(a_dropped_step_leaves_the_residual),
        EACH(what_a_coding_cannot_say_goes_as_float32),
        EACH(two_runs_send_the_same_bits),
        cmocka_unit_test(a_start_with_a_coding_that_cannot_be_is_refused),
        cmocka_unit_test_setup_teardown(weights_may_come_as_halves, begin, end),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
