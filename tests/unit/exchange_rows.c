/* SPDX-License-Identifier: Apache-2.0 */
/* tests/unit/exchange_rows.c - the ids by which a pull asks for rows of a table: sent from where
 * they were named, unless that takes more frames than a message has or not all are asked for. */
#include "common/base/size.h"
#include "common/wire/parts.h"
#include "worker/exchange/ps_state.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { MOST_SLICES = 160, ROWS = 10, WIDTH = 2, PULLED = 1 };

/* A client with one table in `n` slices of ROWS rows, on 2 ps in turns of `turn` slices. */
typedef struct stage {
    wf_client client;
    wf_client_variable variable;
    wf_client_slice slices[MOST_SLICES];
    uint32_t first_slice[2];
    wf_peer *ps[2];
    uint8_t have[MOST_SLICES];
    wf_part parts[WF_MAX_PARTS];
    wf_msg_pool pool;
} stage;

static stage *begin(uint32_t n, uint32_t turn)
{
    stage *s = calloc(1, sizeof *s);
    weight_set *set;

    assert_non_null(s);
    s->variable = (wf_client_variable){.count = (uint64_t)n * ROWS * WIDTH,
                                       .trainable = true,
                                       .row = WIDTH,
                                       .rows_most = n * ROWS};
    for (uint32_t i = 0; i < n; i++)
        s->slices[i] = (wf_client_slice){.ps = i / turn % 2,
                                         .offset = (uint64_t)i * ROWS * WIDTH,
                                         .count = (uint64_t)ROWS * WIDTH};
    s->first_slice[1] = n;
    s->client.variables = &s->variable;
    s->client.n_variables = 1;
    s->client.slices = s->slices;
    s->client.n_slices = n;
    s->client.first_slice = s->first_slice;
    s->client.ps = s->ps;
    s->client.n_ps = 2;
    set = &s->client.sets[PULLED];
    set->step = 1;
    set->have = s->have;
    assert_int_equal(wf_rows_init(&s->client, &set->rows, NULL), WF_OK);
    return s;
}

static void end(stage *s)
{
    wf_rows_free(&s->client, &s->client.sets[PULLED].rows);
    wf_msg_pool_close(&s->pool);
    free(s);
}

/* Every third row, so that slices have 3 or 4. */
static void name(stage *s)
{
    uint64_t ids[MOST_SLICES * ROWS], n = 0;

    for (uint64_t id = 0; id < (uint64_t)s->client.n_slices * ROWS; id += 3)
        ids[n++] = id;
    assert_int_equal(wf_rows_name(&s->client.base, PULLED, 0, ids, n, NULL), WF_OK);
}

/* Asks ps 0, and checks each part against what was named; returns the frames of the pull. */
static uint32_t ask(stage *s, bool in_place)
{
    const weight_set *set = &s->client.sets[PULLED];
    wf_pull_body body;
    wf_msg *m = NULL;
    uint32_t n, frames, read, slice = 0;

    assert_int_equal(wf_msg_new(&s->pool, WF_PULL, &m, NULL), WF_OK);
    assert_int_equal(wf_rows_ask(&s->client, 0, set, m, s->parts, &n, NULL), WF_OK);
    assert_int_equal(wf_pull_put(m, (wf_pull_body){0}, s->parts, n, NULL), WF_OK);
    memset(s->parts, 0, sizeof s->parts);
    assert_int_equal(wf_pull_get(m, &body, s->parts, &read, NULL), WF_OK);
    assert_int_equal(read, n);
    for (uint32_t i = 0; i < n; i++, slice++) {
        wf_rows rows = wf_part_rows(m, &s->parts[i]);

        while (s->slices[slice].ps != 0 || s->have[slice])
            slice++;
        assert_int_equal(s->parts[i].slice, slice);
        assert_int_equal(rows.n, set->rows.of_slice[slice].n);
        assert_int_equal(wf_row_id(&rows, 0), 3 * wf_ceil_div((int64_t)slice * ROWS, 3));
        for (uint64_t k = 1; k < rows.n; k++)
            assert_int_equal(wf_row_id(&rows, k), wf_row_id(&rows, 0) + 3 * k);
    }
    while (slice < s->client.n_slices && (s->slices[slice].ps != 0 || s->have[slice]))
        slice++;
    assert_int_equal(slice, s->client.n_slices);
    frames = m->n_frames;
    for (uint32_t i = 0; i < frames; i++)
        assert_true((m->frames[i].buf == set->rows.ids[0]) == in_place);
    wf_msg_free(&s->pool, &m);
    return frames;
}

static void ids_are_sent_from_where_they_were_named(void **state)
{
    stage *s = begin(24, 12);

    (void)state;
    name(s);
    assert_int_equal(ask(s, true), 1); /* slices side by side share a frame */
    s->have[5] = 1;                    /* it has come already */
    assert_int_equal(ask(s, true), 2);
    end(s);
    s = begin(2 * WF_MAX_FRAMES, 1);
    name(s);
    assert_int_equal(ask(s, true), WF_MAX_FRAMES);
    end(s);
}

static void too_many_pieces_are_copied_into_one(void **state)
{
    stage *s = begin(2 * WF_MAX_FRAMES + 1, 1);

    (void)state;
    name(s);
    assert_int_equal(ask(s, false), 1);
    end(s);
}

/* The cache has some: what is missing does not lie side by side. */
static void those_that_a_cache_has_are_left_out(void **state)
{
    uint64_t places[] = {1, 2, 5};
    struct wf_client_range of_slice[] = {{0, 2}, {2, 1}};
    wf_client_missing missing = {.places = places, .n = 3};
    static const uint64_t want[] = {3, 6, 15};
    stage *s = begin(2, 2);
    weight_set *set = &s->client.sets[PULLED];
    wf_msg *m = NULL;
    uint32_t n;

    (void)state;
    name(s);
    assert_int_equal(wf_row_cache_new(64, WIDTH, 1, &s->variable.cache, NULL), WF_OK);
    set->missing = &missing;
    set->missing_of = of_slice;
    assert_int_equal(wf_msg_new(&s->pool, WF_PULL, &m, NULL), WF_OK);
    assert_int_equal(wf_rows_ask(&s->client, 0, set, m, s->parts, &n, NULL), WF_OK);
    assert_int_equal(n, 2);
    for (uint32_t i = 0, k = 0; i < n; i++) {
        wf_rows rows = wf_part_rows(m, &s->parts[i]);

        assert_int_equal(rows.n, of_slice[i].n);
        for (uint64_t r = 0; r < rows.n; r++)
            assert_int_equal(wf_row_id(&rows, r), want[k++]);
    }
    assert_ptr_not_equal(m->frames[0].buf, set->rows.ids[0]);
    wf_msg_free(&s->pool, &m);
    wf_row_cache_free(&s->variable.cache);
    end(s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ids_are_sent_from_where_they_were_named),
        cmocka_unit_test(too_many_pieces_are_copied_into_one),
        cmocka_unit_test(those_that_a_cache_has_are_left_out),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
