/* SPDX-License-Identifier: Apache-2.0 */
/* tests/unit/ps_codings.c - gradients in fewer bytes: a slice of each kind is updated by what they
 * say, as it would be by the same numbers in float32; what cannot be read changes nothing. */
#include "ps/mean.h"
#include "tests/unit/ps_players.h"

#include "common/base/cc.h"
#include "common/base/rng.h"
#include "common/base/row_key.h"
#include "common/base/size.h"
#include "common/tensor/dtype.h"

enum { WIDTH = 33, N_ROWS = 150, COUNT = WIDTH * N_ROWS };

static const wf_coding lossy[] = {WF_CODING_BF16, WF_CODING_F16, WF_CODING_INT8, WF_CODING_TOPK};

typedef struct gradient {
    float values[COUNT]; /* as they are read */
    _Alignas(8) uint8_t data[COUNT * sizeof(float)];
    uint8_t ids[N_ROWS * sizeof(uint64_t)];
    wf_slice_part coded, plain;
} gradient;

static void make(gradient *g, wf_coding coding, uint64_t seed)
{
    uint64_t kept = COUNT / 10;
    float x[COUNT];

    for (uint64_t i = 0; i < COUNT; i++)
        x[i] = (float)wf_rng_f64((wf_rng_key){seed}, i) - 0.5F;
    assert_true(wf_coding_write(coding, kept, x, NULL, COUNT, g->data));
    g->plain = g->coded = (wf_slice_part){.incarnation = 7, .step = (uint32_t)seed, .n = COUNT};
    g->coded.coded = (wf_coded){coding, g->data, wf_coding_bytes(coding, COUNT, kept), COUNT};
    wf_coded_read(&g->coded.coded, 0, COUNT, g->values);
    g->plain.values = g->values;
}

static void name_rows(gradient *g, uint64_t first)
{
    for (uint64_t i = 0; i < N_ROWS; i++)
        wf_put_u64(g->ids + i * sizeof i, first + 2 * i);
    g->coded.rows = g->plain.rows = (wf_rows){N_ROWS, g->ids};
}

static void both_forms_update_alike(const wf_slice_ops *kind, const char *rule, uint64_t row)
{
    const wf_slice like = {.count = kind == &wf_slice_table    ? 3 * COUNT
                                    : kind == &wf_slice_hashed ? row
                                                               : COUNT,
                           .row = row,
                           .trainable = true};
    wf_slice *a, *b;
    gradient g;
    wf_opt opt;

    assert_int_equal(wf_opt_init(&opt, rule, 0, NULL, NULL, NULL), WF_OK);
    for (size_t k = 0; k < WF_COUNT(lossy) - (kind == &wf_slice_dense ? 0 : 1); k++) {
        assert_int_equal(wf_slice_new(kind, &like, &opt, &a, NULL), WF_OK);
        assert_int_equal(wf_slice_new(kind, &like, &opt, &b, NULL), WF_OK);
        for (uint64_t step = 1; step <= 3; step++) {
            make(&g, lossy[k], step);
            if (kind != &wf_slice_dense)
                name_rows(&g, kind == &wf_slice_table ? step : step << 3);
            assert_int_equal(kind->check(a, &g.coded, NULL), WF_OK);
            assert_int_equal(wf_slice_apply(a, &opt, &g.coded, NULL), WF_OK);
            assert_int_equal(wf_slice_apply(b, &opt, &g.plain, NULL), WF_OK);
        }
        assert_int_equal(kind->digest(a), kind->digest(b));
        wf_slice_free(&a);
        wf_slice_free(&b);
    }
}

static void every_kind_reads_every_coding(void **state)
{
    (void)state;
    both_forms_update_alike(&wf_slice_dense, "adam", WIDTH);
    both_forms_update_alike(&wf_slice_dense, "lamb", WIDTH); /* which wants all of it at once */
    both_forms_update_alike(&wf_slice_table, "adam", WIDTH);
    both_forms_update_alike(&wf_slice_hashed, "adagrad", WIDTH);
}

static void a_mean_reads_every_coding(void **state)
{
    static gradient g[4];
    static float coded[COUNT], plain[COUNT];
    wf_held_part a[4] = {{{0}}}, b[4] = {{{0}}};
    wf_slice_part rows_a, rows_b;

    (void)state;
    for (uint32_t i = 0; i < 4; i++) {
        make(&g[i], lossy[i], 1 + i);
        a[i] = (wf_held_part){.part = g[i].coded, .records = 3 + i};
        b[i] = (wf_held_part){.part = g[i].plain, .records = 3 + i};
    }
    wf_mean_range(a, 4, 18, 0, COUNT, coded);
    wf_mean_range(b, 4, 18, 0, COUNT, plain);
    assert_memory_equal(coded, plain, sizeof plain);
    for (uint32_t i = 0; i < 3; i++) {
        name_rows(&g[i], i);
        a[i].part = g[i].coded;
        b[i].part = g[i].plain;
    }
    assert_int_equal(wf_mean_rows(a, 3, 12, WIDTH, &rows_a, NULL), WF_OK);
    assert_int_equal(wf_mean_rows(b, 3, 12, WIDTH, &rows_b, NULL), WF_OK);
    assert_int_equal(rows_a.rows.n, rows_b.rows.n);
    assert_memory_equal(rows_a.values, rows_b.values, rows_a.n * sizeof(float));
    wf_mean_rows_free(&rows_a);
    wf_mean_rows_free(&rows_b);
}

/* ---- over the wire ---- */

static player *begin_worker(world *w)
{
    static const uint64_t incarnations[] = {11};

    set_up_job(w, incarnations, 1);
    enter(w, 0, 0, 11);
    list_one_slice(&w->workers[0]);
    turn(w, 20);
    return &w->workers[0];
}

/* A part of the first slice, whose ELEMENTS numbers are `value`, with 4 bytes changed. */
static void push_spoilt(player *p, uint32_t step, wf_coding coding, float value, uint64_t at,
                        uint32_t spoilt)
{
    uint64_t kept = ELEMENTS / 100;
    float *x = malloc(ELEMENTS * sizeof *x);
    wf_part part = {.coding = (uint8_t)coding, .bytes = wf_coding_bytes(coding, ELEMENTS, kept)};
    wf_buf *b = wf_buf_new(part.bytes);
    wf_msg *m = NULL;

    for (uint32_t i = 0; i < ELEMENTS; i++)
        x[i] = value;
    assert_true(wf_coding_write(coding, kept, x, NULL, ELEMENTS, b->data));
    if (at < part.bytes)
        memcpy((uint8_t *)b->data + at, &spoilt, sizeof spoilt);
    part.checksum = wf_part_checksum(b->data, part.bytes);
    assert_int_equal(wf_net_msg(p->net, WF_PUSH, &m, NULL), WF_OK);
    assert_int_equal(wf_msg_add_frame(m, b, b->data, b->bytes, NULL), WF_OK);
    assert_int_equal(wf_push_put(m, (wf_push_body){0, 8}, &part, 1, NULL), WF_OK);
    m->head.step = step;
    send_stamped(p, WF_LANE_DATA, 2, m);
    wf_buf_unref(&b);
    free(x);
}

static void push_coding(player *p, uint32_t step, wf_coding coding, float value)
{
    push_spoilt(p, step, coding, value, UINT64_MAX, 0);
}

static void a_push_may_be_coded(void **state)
{
    world *w = *state;
    player *p = begin_worker(w);

    for (uint32_t k = 0; k < 3; k++)
        push_coding(p, k + 1, lossy[k], -100);
    turn(w, 20);
    assert_int_equal(count(p, WF_PUSH_OK), 3);
    assert_int_equal(wf_ps_slice_at(w->ps, 0)->updates, 3);
    assert_true(wf_slice_values(wf_ps_slice_at(w->ps, 0))[ELEMENTS - 1] > 2.9999F);
    push_coding(p, 2, WF_CODING_INT8, -100); /* again, as over a fresh link */
    push_coding(p, 4, WF_CODING_TOPK, -100);
    turn(w, 20);
    assert_int_equal(wf_ps_slice_at(w->ps, 0)->updates, 4);
    assert_true(wf_slice_values(wf_ps_slice_at(w->ps, 0))[0] > 3.9999F);
    assert_true(wf_slice_values(wf_ps_slice_at(w->ps, 0))[ELEMENTS - 1] < 3.0001F);
}

static void bytes_that_no_worker_writes_change_nothing(void **state)
{
    static const struct {
        wf_coding coding;
        uint64_t at;
        uint32_t spoilt;
    } bad[] = {
        {WF_CODING_BF16, 16, 0x7F807F80},
        {WF_CODING_F16, 2 * ELEMENTS - 4, 0xFC000000},
        {WF_CODING_INT8, 4, 0x7F800000},   /* a scale that is infinite, */
        {WF_CODING_INT8, 8, 0xBF800000},   /* or below zero */
        {WF_CODING_TOPK, 0, ELEMENTS - 1}, /* of another number of elements */
        {WF_CODING_TOPK, 4, ELEMENTS},     /* an index beyond them, */
        {WF_CODING_TOPK, 8, 0},            /* one that does not rise */
    };
    world *w = *state;
    player *p = begin_worker(w);

    for (uint32_t i = 0; i < WF_COUNT(bad); i++)
        push_spoilt(p, 1, bad[i].coding, 1, bad[i].at, bad[i].spoilt);
    push_coded(p, 1, 0, ELEMENTS, WF_CODEC_F32); /* a quarter of them */
    turn(w, 20);
    assert_int_equal(count(p, WF_PUSH_OK), 0);
    assert_int_equal(count(&w->master, WF_FAULT), 0);
    assert_int_equal(wf_ps_slice_at(w->ps, 0)->updates, 0);
    push_coding(p, 1, WF_CODING_BF16, 1);
    turn(w, 20);
    assert_int_equal(count(p, WF_PUSH_OK), 1);
    assert_int_equal(wf_ps_slice_at(w->ps, 0)->updates, 1);
}

/* Two workers, each of which codes as it likes; one is heard twice. */
static void steps_made_together_may_be_coded(void **state)
{
    static const uint64_t incarnations[] = {11, 22};
    world *w = *state;

    w->bounded = 1;
    w->together = true;
    set_up_job(w, incarnations, 2);
    for (uint32_t i = 0; i < 2; i++) {
        enter(w, i, i, incarnations[i]);
        list_one_slice(&w->workers[i]);
        assert_int_equal(join(w, &w->workers[i], 1), 1);
    }
    for (uint32_t i = 0; i < 2; i++) {
        float *x = calloc(ELEMENTS, sizeof *x);
        wf_part part = {.coding = WF_CODING_BF16, .bytes = ELEMENTS * 2};
        wf_buf *b = wf_buf_new(part.bytes);
        wf_msg *m = NULL;

        for (uint32_t k = 0; k < ELEMENTS; k++)
            x[k] = 1 + (float)i * 2;
        assert_true(wf_coding_write(WF_CODING_BF16, 0, x, NULL, ELEMENTS, b->data));
        for (int copies = 0; copies < 2; copies++) {
            assert_int_equal(wf_net_msg(w->workers[i].net, WF_PUSH, &m, NULL), WF_OK);
            assert_int_equal(wf_msg_add_frame(m, b, b->data, b->bytes, NULL), WF_OK);
            assert_int_equal(wf_push_put(m, (wf_push_body){1, i ? 8 : 24}, &part, 1, NULL), WF_OK);
            m->head.step = 1;
            send_stamped(&w->workers[i], WF_LANE_DATA, 2, m);
        }
        wf_buf_unref(&b);
        free(x);
    }
    turn(w, 20);
    holds(w, 1, -rate * (24 * 1 + 8 * 3) / 32);
}

/* ---- pulls ---- */

/* The weights of the first slice that have come last, ELEMENTS of them, and how. */
static wf_coding weights_of(const player *p, float out[])
{
    wf_part parts[WF_MAX_PARTS];
    wf_coded c = {0};
    uint32_t n;

    for (uint32_t i = 0; i < p->n; i++)
        if (p->got[i]->head.kind == WF_WEIGHTS) {
            assert_int_equal(wf_parts_get(p->got[i], parts, &n, NULL), WF_OK);
            c = wf_part_coded(p->got[i], &parts[0]);
        }
    assert_int_equal(c.n, ELEMENTS);
    wf_coded_read(&c, 0, ELEMENTS, out);
    return c.coding;
}

static void a_pull_is_answered_in_halves_and_the_slice_keeps_its_bits(void **state)
{
    static float got[ELEMENTS];
    world *w = *state;
    player *p;
    float held;

    w->pull_coding = WF_CODING_F16;
    p = begin_worker(w);
    push_value(p, 1, 0, 8, -12.3456F);
    turn(w, 20);
    send_pull(p, 1);
    turn(w, 20);
    held = wf_slice_values(wf_ps_slice_at(w->ps, 0))[7];
    assert_int_equal(weights_of(p, got), WF_CODING_F16);
    assert_true(got[7] != held && got[7] == wf_f16_to_f32(wf_f32_to_f16(held)));
    assert_true(held == 12.3456F * (float)rate);
    push_value(p, 2, 0, 8, -7e6F); /* beyond what a half can say */
    turn(w, 20);
    send_pull(p, 2);
    turn(w, 20);
    assert_int_equal(weights_of(p, got), WF_CODING_F32);
    assert_true(got[7] == wf_slice_values(wf_ps_slice_at(w->ps, 0))[7]);
}

static void a_coding_that_weights_cannot_have_is_refused(void **state)
{
    static const uint64_t incarnations[] = {11};
    Weft__Outcome *body = NULL;
    world *w = *state;

    w->pull_coding = WF_CODING_INT8;
    set_up_job(w, incarnations, 1);
    for (uint32_t i = 0; i < w->master.n; i++)
        if (w->master.got[i]->head.kind == WF_SETUP_OK)
            assert_int_equal(
                wf_control_get(w->master.got[i], &weft__outcome__descriptor, &body, NULL), WF_OK);
    assert_int_equal(body->status, WF_UNSUPPORTED);
    wf_control_free(&body);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_kind_reads_every_coding),
        cmocka_unit_test(a_mean_reads_every_coding),
        cmocka_unit_test_setup_teardown(a_push_may_be_coded, begin, end),
        cmocka_unit_test_setup_teardown(bytes_that_no_worker_writes_change_nothing, begin, end),
        cmocka_unit_test_setup_teardown(steps_made_together_may_be_coded, begin, end),
        cmocka_unit_test_setup_teardown(a_pull_is_answered_in_halves_and_the_slice_keeps_its_bits,
                                        begin, end),
        cmocka_unit_test_setup_teardown(a_coding_that_weights_cannot_have_is_refused, begin, end),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
