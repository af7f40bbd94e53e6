/* SPDX-License-Identifier: Apache-2.0 */
/* tests/unit/ps_workers.c - who a ps lets in, what it does with what they send, and how much of its
 * memory a worker may hold that reads nothing. */
#include "tests/unit/ps_players.h"

static void a_worker_outside_the_view_waits_at_the_door_and_comes_in_with_the_view(void **state)
{
    world *w = *state;

    set_up_job(w, (uint64_t[]){11}, 1);
    enter(w, 0, 0, 11);
    enter(w, 1, 1, 22);
    turn(w, 1000);
    assert_non_null(w->workers[0].from_ps);
    assert_null(w->workers[1].from_ps);
    assert_int_equal(w->workers[1].refused.status, WF_OK); /* later is no final no */
    assert_non_null(strstr(w->workers[1].to_ps->delay, "worker/1"));
    assert_non_null(strstr(w->workers[1].to_ps->delay, "not in view"));
    say_view(w, VIEW + 1, (uint64_t[]){11, 22}, 2);
    turn(w, 1000);
    assert_non_null(w->workers[1].from_ps);
}

static void hellos_of_strangers_take_no_place(void **state)
{
    world *w = *state;
    wf_stranger stranger;

    begin_with_worker(w);
    wf_stranger_dial(&stranger, &w->nets, "p");
    for (uint64_t i = 0; i < 5000; i++) {
        Weft__Hello body = WEFT__HELLO__INIT;

        body.version_least = body.version_most = WF_WIRE_VERSION;
        body.cluster = "demo";
        body.role = WF_ROLE_WORKER;
        body.index = (uint32_t)i;
        body.peer_role = WF_ROLE_PS;
        body.release = "x";
        wf_stranger_send(&stranger, WF_HELLO, 1000 + i, 7, &body.base);
    }
    turn(w, 300);
    assert_null(wf_net_peer_at(w->net, 2)); /* the master and one worker */
    assert_int_equal(wf_net_bad(w->net, WF_BAD_CROWD), 5000);
    send_list(&w->workers[0]);
    turn(w, 20);
    assert_int_equal(count(&w->workers[0], WF_LIST_OK), 1);
    wf_stranger_close(&stranger);
}

static void a_worker_that_a_view_removes_leaves_at_once(void **state)
{
    world *w = *state;

    set_up_job(w, (uint64_t[]){11, 22}, 2);
    enter(w, 0, 0, 11);
    enter(w, 1, 1, 22);
    assert_non_null(wf_net_peer_at(w->net, 2));
    w->workers[1].deaf = true; /* dead, and nobody has heard its connection end */
    say_view(w, VIEW + 1, (uint64_t[]){11}, 1);
    assert_null(wf_net_peer_at(w->net, 2));
}

/* Each view names all members; nearly all may be others than before. */
static void a_view_of_many_members_is_taken_in_time_that_grows_with_their_number(void **state)
{
    enum { MANY = 50000, LONGEST_MS = 2000 };
    world *w = *state;
    uint64_t *incarnations = calloc(2 * MANY, sizeof *incarnations);
    clock_t began;

    for (uint64_t i = 0; i < 2 * MANY; i++)
        incarnations[i] = 11 + i;
    set_up_job(w, incarnations, 1);
    began = clock();
    say_view(w, VIEW + 1, incarnations, MANY);
    say_view(w, VIEW + 2, incarnations + 1, MANY);
    say_view(w, VIEW + 3, incarnations + MANY, MANY);
    assert_in_range((clock() - began) / (CLOCKS_PER_SEC / 1000), 0, LONGEST_MS);
    assert_int_equal(count(&w->master, WF_VIEW_OK), 3);
    assert_false(wf_ps_in_view(w->ps, incarnations[MANY - 1]));
    assert_true(wf_ps_in_view(w->ps, incarnations[2 * MANY - 1]));
    free(incarnations);
}

/* One that computes for long has sent for weights, and does not take them. */
static void what_a_worker_has_not_taken_is_bounded_and_follows_when_it_takes(void **state)
{
    world *w = *state;
    player *p = begin_with_worker(w);
    uint64_t bytes = 0;

    send_list(p);
    turn(w, 20);
    forget(p);
    for (uint32_t i = 0; i < 4; i++)
        send_pull(p, 1 + i);
    run_player(w, p);
    p->deaf = true;
    for (int i = 0; i < 100; i++) {
        turn(w, 10);
        for (uint32_t k = 1; k <= 2; k++)
            if (wf_net_peer_at(w->net, k - 1)->task.role == WF_ROLE_WORKER)
                assert_in_range(wf_net_owed_bytes(wf_net_peer_at(w->net, k - 1)), 0,
                                ROOM + (2 << 20));
    }
    p->deaf = false;
    turn(w, 3000);
    for (uint32_t i = 0; i < p->n; i++)
        bytes += p->got[i]->head.kind == WF_WEIGHTS ? p->got[i]->payload_bytes : 0;
    assert_int_equal(bytes, 4u * SLICES * ELEMENTS * sizeof(float));
}

static void a_malformed_push_costs_its_sender_that_push_and_nobody_the_job(void **state)
{
    world *w = *state;
    player *p = begin_with_worker(w);

    send_list(p);
    push(p, 1, 99, ELEMENTS * sizeof(float));                      /* no such slice */
    push(p, 1, 3, 8);                                              /* not of its size */
    push(p, 0, 3, ELEMENTS * sizeof(float));                       /* no such step */
    push_coded(p, 1, 3, ELEMENTS * sizeof(float), WF_CODEC_BYTES); /* as in a slice that moves */
    turn(w, 100);
    assert_int_equal(count(&w->master, WF_FAULT), 0);
    assert_int_equal(count(p, WF_PUSH_OK), 0);
    push(p, 1, 3, ELEMENTS * sizeof(float));
    turn(w, 100);
    assert_int_equal(count(p, WF_PUSH_OK), 1);
    assert_int_equal(wf_ps_slice_at(w->ps, 3)->updates, 1);
}

static void a_malformed_list_leaves_the_one_before_in_its_place(void **state)
{
    world *w = *state;
    player *p = begin_with_worker(w);

    send_list(p);
    turn(w, 100);
    send_list_from(p, 99); /* no such slice */
    send_list_from(p, 1);  /* one twice */
    turn(w, 100);
    assert_int_equal(count(p, WF_LIST_OK), 1);
    send_pull(p, 1);
    turn(w, 100);
    assert_true(count(p, WF_WEIGHTS) > 0);
}

static void a_push_that_comes_again_is_acknowledged_and_not_applied(void **state)
{
    world *w = *state;
    player *p = begin_with_worker(w);

    send_list(p);
    for (int i = 0; i < 2; i++) /* two messages for the link, one push for the ps */
        push(p, 1, 3, ELEMENTS * sizeof(float));
    turn(w, 100);
    assert_int_equal(count(p, WF_PUSH_OK), 2);
    assert_int_equal(wf_ps_slice_at(w->ps, 3)->updates, 1);
}

/* ---- kinds of slices, and row ids ---- */

/* Row 5 of rows of two elements, both 1. */
static void push_row(player *p, uint32_t step, uint32_t slice)
{
    wf_buf *b = wf_buf_new(sizeof(uint64_t) + 2 * sizeof(float));
    wf_part part = {.slice = slice,
                    .codec = WF_CODEC_ROWS,
                    .bytes = 2 * sizeof(float),
                    .ids = {.offset = 2 * sizeof(float), .bytes = sizeof(uint64_t)}};
    wf_msg *m = NULL;
    uint8_t *to = b->data;

    memcpy(to, (float[]){1, 1}, 2 * sizeof(float));
    wf_put_u64(to + part.ids.offset, 5);
    assert_int_equal(wf_net_msg(p->net, WF_PUSH, &m, NULL), WF_OK);
    assert_int_equal(wf_msg_add_frame(m, b, b->data, b->bytes, NULL), WF_OK);
    part.checksum = wf_part_checksum(b->data, part.bytes);
    assert_int_equal(wf_parts_put(m, &part, 1, NULL), WF_OK);
    m->head.step = step;
    send_stamped(p, WF_LANE_DATA, 2, m);
    wf_buf_unref(&b);
}

static void a_push_of_rows_changes_those_rows_of_a_slice_that_takes_them(void **state)
{
    world *w = *state;
    const wf_logged_line *lines;
    const float *values;
    player *p;
    uint64_t n;

    w->slice_kind = "logged";
    p = begin_with_worker(w);
    send_list(p);
    for (int i = 0; i < 2; i++) /* the second is a copy */
        push_row(p, 1, 3);
    push(p, 2, 3, ELEMENTS * sizeof(float));
    turn(w, 100);
    assert_int_equal(count(p, WF_PUSH_OK), 3);
    assert_int_equal(wf_ps_slice_at(w->ps, 3)->updates, 2);
    lines = wf_logged_lines(wf_ps_slice_at(w->ps, 3), &n);
    assert_int_equal(n, 2);
    assert_int_equal(lines[0].incarnation, 11);
    assert_int_equal(lines[0].step, 1);
    assert_int_equal(lines[0].rows, 1);
    assert_int_equal(lines[1].step, 2);
    assert_int_equal(lines[1].rows, 0);
    values = wf_slice_values(wf_ps_slice_at(w->ps, 3));
    for (int i = 0; i < ELEMENTS; i++)
        assert_int_equal(values[i] != 0, i == 10 || i == 11);
}

static void a_push_of_rows_to_a_dense_slice_costs_its_sender_that_push(void **state)
{
    world *w = *state;
    player *p = begin_with_worker(w);

    send_list(p);
    push_row(p, 1, 3);
    turn(w, 100);
    assert_int_equal(count(p, WF_PUSH_OK), 0);
    assert_int_equal(count(&w->master, WF_FAULT), 0);
    assert_int_equal(wf_ps_slice_at(w->ps, 3)->updates, 0);
}

static void a_kind_of_slice_that_a_ps_does_not_know_fails_its_set_up(void **state)
{
    world *w = *state;
    Weft__Outcome *outcome = NULL;

    w->slice_kind = "sorted";
    set_up_job(w, (uint64_t[]){11}, 1);
    for (uint32_t i = 0; i < w->master.n && !outcome; i++)
        if (w->master.got[i]->head.kind == WF_SETUP_OK)
            assert_int_equal(
                wf_control_get(w->master.got[i], &weft__outcome__descriptor, &outcome, NULL),
                WF_OK);
    assert_int_equal(outcome->status, WF_UNSUPPORTED);
    assert_non_null(strstr(outcome->what, "\"sorted\", which this ps does not know"));
    wf_control_free(&outcome);
    assert_int_equal(wf_ps_generation(w->ps), 0);
}

/* Flips a byte of each message of a kind, so many times. */
typedef struct flipper {
    world *w;
    uint16_t kind;
    uint32_t times;
} flipper;

static void flip(void *arg, const wf_packet *packet)
{
    flipper *f = arg;
    wf_packet p = *packet;

    if (p.msg->head.kind == f->kind && f->times > 0 && p.msg->n_frames > 0) {
        wf_buf *damaged = wf_buf_new(p.msg->frames[0].bytes);

        f->times--;
        memcpy(damaged->data, p.msg->frames[0].data, p.msg->frames[0].bytes);
        ((uint8_t *)damaged->data)[p.msg->frames[0].bytes / 2] ^= 4;
        wf_buf_unref(&p.msg->frames[0].buf);
        p.msg->frames[0].buf = damaged;
        p.msg->frames[0].data = damaged->data;
    }
    wf_mem_deliver(f->w->nets.mem, &p);
}

static void a_flipped_byte_is_found_before_it_is_acknowledged_and_sent_again(void **state)
{
    world *w = *state;
    player *p = begin_with_worker(w);
    flipper f = {.w = w, .kind = WF_PUSH, .times = 1};

    send_list(p);
    turn(w, 20);
    wf_mem_set_carrier(w->nets.mem, flip, &f);
    push(p, 1, 3, ELEMENTS * sizeof(float));
    turn(w, 1000);
    assert_int_equal(f.times, 0);
    assert_int_equal(wf_net_bad(w->net, WF_BAD_PAYLOAD), 1);
    assert_int_equal(count(&w->master, WF_FAULT), 0);
    assert_int_equal(count(p, WF_PUSH_OK), 1);
    assert_int_equal(wf_ps_slice_at(w->ps, 3)->updates, 1);
    assert_true(wf_net_resent_bytes(p->to_ps) >= ELEMENTS * sizeof(float));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(
            a_worker_outside_the_view_waits_at_the_door_and_comes_in_with_the_view, begin, end),
        cmocka_unit_test_setup_teardown(hellos_of_strangers_take_no_place, begin, end),
        cmocka_unit_test_setup_teardown(a_worker_that_a_view_removes_leaves_at_once, begin, end),
        cmocka_unit_test_setup_teardown(
            a_view_of_many_members_is_taken_in_time_that_grows_with_their_number, begin, end),
        cmocka_unit_test_setup_teardown(
            what_a_worker_has_not_taken_is_bounded_and_follows_when_it_takes, begin, end),
        cmocka_unit_test_setup_teardown(
            a_malformed_push_costs_its_sender_that_push_and_nobody_the_job, begin, end),
        cmocka_unit_test_setup_teardown(
            a_push_of_rows_changes_those_rows_of_a_slice_that_takes_them, begin, end),
        cmocka_unit_test_setup_teardown(a_push_of_rows_to_a_dense_slice_costs_its_sender_that_push,
                                        begin, end),
        cmocka_unit_test_setup_teardown(a_kind_of_slice_that_a_ps_does_not_know_fails_its_set_up,
                                        begin, end),
        cmocka_unit_test_setup_teardown(a_malformed_list_leaves_the_one_before_in_its_place, begin,
                                        end),
        cmocka_unit_test_setup_teardown(a_push_that_comes_again_is_acknowledged_and_not_applied,
                                        begin, end),
        cmocka_unit_test_setup_teardown(
            a_flipped_byte_is_found_before_it_is_acknowledged_and_sent_again, begin, end),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
