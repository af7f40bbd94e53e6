/* SPDX-License-Identifier: Apache-2.0 */
/* tests/unit/ps_tables.c - a worker pulls and pushes rows of a table, one element each, by their
 * ids. */
#include "common/base/size.h"
#include "tests/unit/ps_players.h"

/* Row i of a slice. */
static uint64_t row(uint32_t slice, uint64_t i)
{
    return (uint64_t)slice * ELEMENTS + i;
}

static player *begin_table(world *w)
{
    w->slice_kind = "table";
    set_up_job(w, (uint64_t[]){11}, 1);
    enter(w, 0, 0, 11);
    send_list(&w->workers[0]);
    turn(w, 20);
    return &w->workers[0];
}

static void push_rows(player *p, uint32_t step, uint32_t slice, const uint64_t ids[],
                      const float values[], uint64_t n)
{
    wf_buf *b = wf_buf_new(n * (sizeof *ids + sizeof *values));
    wf_part part = {.slice = slice,
                    .codec = WF_CODEC_ROWS,
                    .offset = n * sizeof *ids,
                    .bytes = n * sizeof *values,
                    .ids = {.bytes = n * sizeof *ids}};
    wf_msg *m = NULL;

    for (uint64_t i = 0; i < n; i++)
        wf_put_u64((uint8_t *)b->data + i * sizeof *ids, ids[i]);
    memcpy((uint8_t *)b->data + part.offset, values, part.bytes);
    assert_int_equal(wf_net_msg(p->net, WF_PUSH, &m, NULL), WF_OK);
    assert_int_equal(wf_msg_add_frame(m, b, b->data, b->bytes, NULL), WF_OK);
    assert_int_equal(wf_parts_put(m, &part, 1, NULL), WF_OK);
    m->head.step = step;
    send_stamped(p, WF_LANE_DATA, 2, m);
    wf_buf_unref(&b);
}

/* Two rows of each of two slices, or what ids has in their place. */
static void pull_rows(player *p, uint32_t request, uint32_t after, const uint64_t ids[4])
{
    wf_buf *b = wf_buf_new(4 * sizeof *ids);
    wf_part rows[2];
    wf_msg *m = NULL;

    for (uint32_t i = 0; i < 4; i++)
        wf_put_u64((uint8_t *)b->data + i * sizeof *ids, ids[i]);
    for (uint32_t i = 0; i < 2; i++)
        rows[i] = (wf_part){.slice = 3 + i,
                            .codec = WF_CODEC_IDS,
                            .ids = {.offset = 2 * i * sizeof *ids, .bytes = 2 * sizeof *ids}};
    assert_int_equal(wf_net_msg(p->net, WF_PULL, &m, NULL), WF_OK);
    assert_int_equal(wf_msg_add_frame(m, b, b->data, b->bytes, NULL), WF_OK);
    assert_int_equal(wf_pull_put(m, (wf_pull_body){.after = after}, rows, 2, NULL), WF_OK);
    m->head.request = request;
    m->head.step = 1;
    send_stamped(p, WF_LANE_DATA, 1, m);
    wf_buf_unref(&b);
}

/* What has come of slices 3 and 4: two rows each. */
static void expect_rows(const player *p, const float expected[4])
{
    uint32_t seen = 0;

    for (uint32_t i = 0; i < p->n; i++) {
        wf_part parts[WF_MAX_PARTS];
        uint32_t n;

        if (p->got[i]->head.kind != WF_WEIGHTS)
            continue;
        assert_int_equal(wf_parts_get(p->got[i], parts, &n, NULL), WF_OK);
        for (uint32_t k = 0; k < n; k++, seen++) {
            wf_coded values = wf_part_coded(p->got[i], &parts[k]);

            assert_in_range(parts[k].slice, 3, 4);
            assert_int_equal(values.n, 2);
            assert_memory_equal(values.data, &expected[2 * (parts[k].slice - 3)], values.bytes);
        }
    }
    assert_int_equal(seen, 2);
}

static void rows_come_as_they_are_pushed(void **state)
{
    world *w = *state;
    player *p = begin_table(w);

    /* sgd with its default rate of 0.01, and first values of zero */
    push_rows(p, 1, 3, (uint64_t[]){row(3, 5), row(3, 7)}, (float[]){-100, -200}, 2);
    push_rows(p, 1, 4, (uint64_t[]){row(4, 0)}, (float[]){-300}, 1);
    turn(w, 20);
    assert_int_equal(count(p, WF_PUSH_OK), 2);
    pull_rows(p, 9, 1, (uint64_t[]){row(3, 6), row(3, 7), row(4, 0), row(4, ELEMENTS - 1)});
    turn(w, 20);
    expect_rows(p, (float[]){0, 0.01F * 200, 0.01F * 300, 0});
}

static void a_pull_of_rows_waits_for_its_own_pushes(void **state)
{
    world *w = *state;
    player *p = begin_table(w);
    const uint64_t ids[] = {row(3, 5), row(3, 6), row(4, 5), row(4, 6)};

    pull_rows(p, 9, 1, ids);
    turn(w, 20);
    assert_int_equal(count(p, WF_WEIGHTS), 0);
    push_rows(p, 1, 3, ids, (float[]){-100, -200}, 2);
    push_rows(p, 1, 4, ids + 2, (float[]){-300, -400}, 2);
    turn(w, 20);
    expect_rows(p, (float[]){0.01F * 100, 0.01F * 200, 0.01F * 300, 0.01F * 400});
}

static void a_pull_of_rows_that_are_not_there_is_a_bad_message(void **state)
{
    static const uint64_t bad[][4] = {
        {3 * (uint64_t)ELEMENTS - 1, 3 * (uint64_t)ELEMENTS, 4 * (uint64_t)ELEMENTS,
         4 * (uint64_t)ELEMENTS + 1},
        {3 * (uint64_t)ELEMENTS + 1, 3 * (uint64_t)ELEMENTS, 4 * (uint64_t)ELEMENTS,
         4 * (uint64_t)ELEMENTS + 1},
        {3 * (uint64_t)ELEMENTS, 3 * (uint64_t)ELEMENTS + 1, 4 * (uint64_t)ELEMENTS, UINT64_MAX},
    };
    world *w = *state;
    player *p = begin_table(w);

    for (uint32_t i = 0; i < WF_COUNT(bad); i++)
        pull_rows(p, 20 + i, 0, bad[i]);
    turn(w, 20);
    assert_int_equal(count(p, WF_WEIGHTS), 0);
    pull_rows(p, 9, 0, (uint64_t[]){row(3, 1), row(3, 2), row(4, 1), row(4, 2)});
    turn(w, 20);
    expect_rows(p, (float[]){0, 0, 0, 0});
    assert_int_equal(count(&w->master, WF_FAULT), 0);
}

static void rows_of_a_dense_slice_cannot_be_pulled(void **state)
{
    world *w = *state;
    player *p = &w->workers[0];

    set_up_job(w, (uint64_t[]){11}, 1);
    enter(w, 0, 0, 11);
    send_list(p);
    pull_rows(p, 9, 0, (uint64_t[]){row(3, 1), row(3, 2), row(4, 1), row(4, 2)});
    turn(w, 20);
    assert_int_equal(count(p, WF_WEIGHTS), 0);
}

static void an_empty_part_of_a_table_counts_as_a_step(void **state)
{
    world *w = *state;
    player *p = begin_table(w);

    push_rows(p, 1, 3, (uint64_t[]){row(3, 5)}, (float[]){-100}, 1);
    push_part(p, 1, (wf_part){.slice = 4, .codec = WF_CODEC_NONE});
    pull_rows(p, 9, 1, (uint64_t[]){row(3, 5), row(3, 6), row(4, 5), row(4, 6)});
    turn(w, 20);
    expect_rows(p, (float[]){0.01F * 100, 0, 0, 0});
    assert_int_equal(wf_ps_slice_at(w->ps, 4)->updates, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(rows_come_as_they_are_pushed, begin, end),
        cmocka_unit_test_setup_teardown(a_pull_of_rows_waits_for_its_own_pushes, begin, end),
        cmocka_unit_test_setup_teardown(a_pull_of_rows_that_are_not_there_is_a_bad_message, begin,
                                        end),
        cmocka_unit_test_setup_teardown(rows_of_a_dense_slice_cannot_be_pulled, begin, end),
        cmocka_unit_test_setup_teardown(an_empty_part_of_a_table_counts_as_a_step, begin, end),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
