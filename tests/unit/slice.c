/* SPDX-License-Identifier: Apache-2.0 */
/* tests/unit/slice.c - weights that somebody reads are never written, and each update counts one.
 */
#include "ps/slice.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

enum { COUNT = 1000 };

static void open_slice(wf_slice *s, wf_opt *opt, const char *rule, bool trainable)
{
    const char *names[] = {"learning_rate"};
    const double values[] = {1};

    assert_int_equal(wf_opt_init(opt, rule, 1, names, values, NULL), WF_OK);
    *s = (wf_slice){.id = 3, .count = COUNT, .trainable = trainable};
    assert_int_equal(wf_slice_init(s, opt, NULL), WF_OK);
    memset(s->weights->data, 0, s->weights->bytes);
}

static const float *minus_one(void)
{
    static float g[COUNT];

    for (int i = 0; i < COUNT; i++)
        g[i] = -1;
    return g;
}

static void each_part_moves_updates_on_by_one(void **state)
{
    wf_slice s;
    wf_opt opt;

    (void)state;
    open_slice(&s, &opt, "sgd", true);
    for (uint64_t i = 1; i <= 5; i++) {
        assert_int_equal(wf_slice_apply(&s, &opt, minus_one(), NULL), WF_OK);
        assert_int_equal(s.updates, i); /* V1 */
        assert_true(wf_slice_weights(&s)[0] == (float)i);
        assert_true(wf_slice_weights(&s)[COUNT - 1] == (float)i);
    }
    wf_slice_close(&s);
}

static void weights_that_are_read_are_not_written(void **state)
{
    wf_buf *readers[7];
    wf_slice s;
    wf_opt opt;

    (void)state;
    open_slice(&s, &opt, "sgd", true);
    for (int i = 0; i < 7; i++) { /* more readers than there are spares */
        readers[i] = wf_buf_ref(s.weights);
        assert_int_equal(wf_slice_apply(&s, &opt, minus_one(), NULL), WF_OK);
    }
    for (int i = 0; i < 7; i++) { /* V2: each still sees its own instant */
        assert_true(((float *)readers[i]->data)[0] == (float)i);
        assert_true(((float *)readers[i]->data)[COUNT - 1] == (float)i);
        wf_buf_unref(&readers[i]);
    }
    assert_true(wf_slice_weights(&s)[1] == 7);
    wf_slice_close(&s);
}

static void without_readers_weights_stay_where_they_are(void **state)
{
    wf_slice s;
    wf_opt opt;
    const wf_buf *before;

    (void)state;
    open_slice(&s, &opt, "sgd", true);
    before = s.weights;
    assert_int_equal(wf_slice_apply(&s, &opt, minus_one(), NULL), WF_OK);
    assert_ptr_equal(s.weights, before);
    wf_slice_close(&s);
}

/* What was lent and came back is used again: a step allocates nothing once it has begun. */
static void buffers_rotate(void **state)
{
    const wf_buf *known[3] = {0};
    wf_slice s;
    wf_opt opt;

    (void)state;
    open_slice(&s, &opt, "sgd", true);
    for (int i = 0; i < 20; i++) {
        wf_buf *reader = wf_buf_ref(s.weights);
        bool found = false;

        assert_int_equal(wf_slice_apply(&s, &opt, minus_one(), NULL), WF_OK);
        wf_buf_unref(&reader);
        for (int k = 0; k < 3 && !found; k++) {
            found = !known[k] || known[k] == s.weights;
            known[k] = found ? s.weights : known[k];
        }
        assert_true(found);
    }
    wf_slice_close(&s);
}

static void only_trainable_slices_have_slots(void **state)
{
    wf_slice s;
    wf_opt opt;

    (void)state;
    open_slice(&s, &opt, "adam", true);
    assert_int_equal(s.n_slots, 2);
    wf_slice_close(&s);
    open_slice(&s, &opt, "adam", false);
    assert_int_equal(s.n_slots, 0);
    wf_slice_close(&s);
}

static void a_slice_too_large_for_memory_is_refused(void **state)
{
    wf_slice s = {.count = UINT64_MAX / 2};
    wf_opt opt;

    (void)state;
    assert_int_equal(wf_opt_init(&opt, "sgd", 0, NULL, NULL, NULL), WF_OK);
    assert_int_equal(wf_slice_init(&s, &opt, NULL), WF_INVALID);
    wf_slice_close(&s);
}

/* What threads share among them gives the same bits as one: for each rule, with and without a
 * reader, over several updates. */
static void ranges_give_the_bits_of_the_whole(void **state)
{
    static const uint64_t ends[] = {1, 7, 64, 65, 500, COUNT};
    float g[COUNT];

    (void)state;
    for (int i = 0; i < COUNT; i++)
        g[i] = (float)((i * 37 % 101) - 50) / 17.0f;
    for (const wf_rule *const *rule = wf_rules; *rule; rule++) {
        wf_slice whole, parts;
        wf_opt opt;

        if ((*rule)->whole)
            continue;
        open_slice(&whole, &opt, (*rule)->name, true);
        open_slice(&parts, &opt, (*rule)->name, true);
        for (int update = 0; update < 4; update++) {
            wf_buf *reader = update % 2 ? wf_buf_ref(parts.weights) : NULL;
            wf_slice_update u;
            uint64_t at = 0;

            assert_int_equal(wf_slice_apply(&whole, &opt, g, NULL), WF_OK);
            assert_int_equal(wf_slice_update_begin(&parts, &u, NULL), WF_OK);
            for (int i = 0; i < 6; at = ends[i++])
                wf_slice_update_range(&u, &opt, g, at, ends[i]);
            wf_slice_update_end(&u);
            wf_buf_unref(&reader);
            assert_memory_equal(whole.weights->data, parts.weights->data, COUNT * sizeof(float));
            for (uint32_t i = 0; i < whole.n_slots; i++)
                assert_memory_equal(whole.slots[i], parts.slots[i], COUNT * sizeof(float));
        }
        wf_slice_close(&whole);
        wf_slice_close(&parts);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_part_moves_updates_on_by_one),
        cmocka_unit_test(weights_that_are_read_are_not_written),
        cmocka_unit_test(without_readers_weights_stay_where_they_are),
        cmocka_unit_test(buffers_rotate),
        cmocka_unit_test(ranges_give_the_bits_of_the_whole),
        cmocka_unit_test(only_trainable_slices_have_slots),
        cmocka_unit_test(a_slice_too_large_for_memory_is_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
