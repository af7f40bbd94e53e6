/* SPDX-License-Identifier: Apache-2.0 */
/* tests/unit/containers.c - variables of sessions: made, changed once, summed, bounded. */
#include "ps/containers.h"
#include "common/base/clock.h"
#include "common/base/size.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

enum { LIMIT = 1 << 20 };

typedef struct world {
    wf_containers *c;
    int64_t now_ns;
    uint64_t sequence; /* given by act */
    const wf_tensor *value;
    bool was_there;
    wf_err err;
} world;

static int begin(void **state)
{
    static world w;

    w = (world){0};
    *state = &w;
    return wf_containers_new(LIMIT, &w.c, NULL);
}

static int end(void **state)
{
    wf_containers_free(&((world *)*state)->c);
    return 0;
}

static wf_tensor *tensor(wf_dtype dtype, uint32_t rank, const int64_t dims[], const void *data)
{
    wf_tensor *t = NULL;

    assert_int_equal(wf_tensor_new(dtype, rank, dims, &t, NULL), WF_OK);
    if (data)
        memcpy(t->data, data, wf_tensor_bytes(t));
    return t;
}

/* As session `session`, whose changes have rising numbers unless `sequence` says which. */
static wf_status act_as(world *w, uint64_t session, uint64_t sequence, wf_variable_action action,
                        const char *container, const char *name, wf_tensor *content)
{
    wf_variable_change change = {.action = action,
                                 .session = session,
                                 .sequence = sequence ? sequence : ++w->sequence,
                                 .container = container,
                                 .name = name};
    wf_status rc =
        wf_containers_act(w->c, &change, &content, w->now_ns, &w->value, &w->was_there, &w->err);

    wf_tensor_free(&content);
    return rc;
}

static wf_status act(world *w, wf_variable_action action, const char *name, wf_tensor *content)
{
    return act_as(w, 7, 0, action, "", name, content);
}

static wf_tensor *scalar(float x)
{
    return tensor(WF_F32, 0, NULL, &x);
}

static void holds(world *w, const char *container, const char *name, float x)
{
    assert_int_equal(act_as(w, 7, 0, WF_VARIABLE_READ, container, name, NULL), WF_OK);
    assert_non_null(w->value);
    assert_true(wf_f32(w->value)[0] == x);
}

static void a_variable_is_made_once_and_keeps_its_value(void **state)
{
    world *w = *state;

    assert_int_equal(act(w, WF_VARIABLE_CREATE, "v", scalar(1)), WF_OK);
    assert_false(w->was_there);
    assert_int_equal(act(w, WF_VARIABLE_CREATE, "v", scalar(5)), WF_OK);
    assert_true(w->was_there);
    holds(w, "", "v", 1);
    assert_int_equal(act(w, WF_VARIABLE_ASSIGN, "v", scalar(3)), WF_OK);
    holds(w, "", "v", 3);
    assert_int_equal(act(w, WF_VARIABLE_ADD, "v", scalar(2)), WF_OK);
    holds(w, "", "v", 5);
    assert_int_equal(wf_containers_count(w->c), 1);
}

static void containers_do_not_share_names(void **state)
{
    world *w = *state;

    assert_int_equal(act_as(w, 7, 0, WF_VARIABLE_CREATE, "a", "v", scalar(1)), WF_OK);
    assert_int_equal(act_as(w, 7, 0, WF_VARIABLE_CREATE, "b", "v", scalar(2)), WF_OK);
    holds(w, "a", "v", 1);
    holds(w, "b", "v", 2);
    assert_int_equal(act_as(w, 7, 0, WF_VARIABLE_READ, "", "v", NULL), WF_NOTFOUND);
    assert_int_equal(act_as(w, 7, 0, WF_VARIABLE_REMOVE, "a", "v", NULL), WF_OK);
    assert_int_equal(act_as(w, 7, 0, WF_VARIABLE_READ, "a", "v", NULL), WF_NOTFOUND);
    holds(w, "b", "v", 2);
}

static void a_change_that_comes_twice_is_made_once(void **state)
{
    world *w = *state;

    assert_int_equal(act_as(w, 7, 1, WF_VARIABLE_CREATE, "", "v", scalar(0)), WF_OK);
    assert_int_equal(act_as(w, 7, 2, WF_VARIABLE_ADD, "", "v", scalar(1)), WF_OK);
    assert_int_equal(act_as(w, 7, 2, WF_VARIABLE_ADD, "", "v", scalar(1)), WF_OK);
    assert_true(wf_f32(w->value)[0] == 1); /* the answer has the value all the same */
    assert_int_equal(act_as(w, 7, 1, WF_VARIABLE_CREATE, "", "v", scalar(9)), WF_OK);
    assert_int_equal(act_as(w, 8, 2, WF_VARIABLE_ADD, "", "v", scalar(1)), WF_OK);
    holds(w, "", "v", 2); /* another session's sequence is another one */
}

/* C4: whoever asks again is told what its own addition came to. */
static void an_addition_that_comes_twice_gives_its_own_sum(void **state)
{
    world *w = *state;
    int64_t large = LIMIT / 8 / 4;
    wf_variable_change add = {
        .action = WF_VARIABLE_ADD, .session = 7, .wants_value = true, .container = "", .name = "v"};

    assert_int_equal(act_as(w, 7, 1, WF_VARIABLE_CREATE, "", "v", scalar(0)), WF_OK);
    assert_int_equal(
        act_as(w, 7, 2, WF_VARIABLE_CREATE, "", "big", tensor(WF_F32, 1, &large, NULL)), WF_OK);
    for (int again = 0; again < 2; again++) {
        for (add.sequence = 3; add.sequence < 6; add.sequence++) {
            wf_tensor *one = scalar(1);

            add.since = 3; /* as a run of three additions says */
            assert_int_equal(
                wf_containers_act(w->c, &add, &one, 0, &w->value, &w->was_there, &w->err), WF_OK);
            assert_true(wf_f32(w->value)[0] == (float)add.sequence - 2);
            wf_tensor_free(&one);
        }
        assert_int_equal(act_as(w, 8, 1 + again, WF_VARIABLE_ADD, "", "v", scalar(10)), WF_OK);
    }
    holds(w, "", "v", 23);
    for (int again = 0; again < 2; again++) { /* too large to be kept */
        wf_tensor *t = tensor(WF_F32, 1, &large, NULL);

        add = (wf_variable_change){.action = WF_VARIABLE_ADD,
                                   .session = 7,
                                   .sequence = 6,
                                   .since = 6,
                                   .wants_value = true,
                                   .container = "",
                                   .name = "big"};
        assert_int_equal(wf_containers_act(w->c, &add, &t, 0, &w->value, &w->was_there, &w->err),
                         again ? WF_AGAIN : WF_OK);
        wf_tensor_free(&t);
    }
    assert_string_equal(w->err.what, "what the addition to \"big\" came to is not kept any more");
    add.sequence = 5; /* below what the session has said that it asks for */
    add.name = "v";
    assert_int_equal(act_as(w, 7, 5, WF_VARIABLE_READ, "", "v", NULL), WF_OK);
    for (uint64_t s = 100; s < 100 + WF_CONTAINERS_SESSIONS - 2; s++) { /* others take the room */
        wf_tensor *one = scalar(1);

        add.session = s;
        add.sequence = add.since = 1;
        w->now_ns++;
        assert_int_equal(
            wf_containers_act(w->c, &add, &one, w->now_ns, &w->value, &w->was_there, &w->err),
            WF_OK);
        wf_tensor_free(&one);
    }
}

static void variables_are_listed_in_order(void **state)
{
    world *w = *state;
    const char *container = NULL;
    wf_contained it;
    uint64_t session;
    bool uses;

    assert_int_equal(act_as(w, 7, 1, WF_VARIABLE_CREATE, "b", "v", scalar(1)), WF_OK);
    assert_int_equal(act_as(w, 7, 2, WF_VARIABLE_CREATE, "a", "w", scalar(2)), WF_OK);
    assert_int_equal(act_as(w, 7, 3, WF_VARIABLE_CREATE, "a", "v", scalar(3)), WF_OK);
    assert_int_equal(wf_containers_behind(w->c, "", "", true), 0);
    assert_int_equal(wf_containers_behind(w->c, "a", "v", false), 1);
    assert_int_equal(wf_containers_behind(w->c, "a", "vv", false), 1);
    assert_int_equal(wf_containers_behind(w->c, "b", "v", false), 3);
    assert_true(wf_containers_at(w->c, 1, &it));
    assert_string_equal(it.container, "a");
    assert_string_equal(it.name, "w");
    assert_true(wf_f32(it.value)[0] == 2);
    assert_false(wf_containers_at(w->c, 3, &it));
    assert_int_equal(act_as(w, 9, 0, WF_VARIABLE_READ, "b", "v", NULL), WF_OK);
    assert_true(wf_containers_user(w->c, 0, w->now_ns, &session, &container, &uses));
    assert_true(session == 7 && uses);
    assert_string_equal(container, "a");
    assert_true(wf_containers_user(w->c, 1, w->now_ns, &session, &container, &uses));
    assert_true(session == 9 && uses);
    assert_string_equal(container, "b");
    assert_false(wf_containers_user(w->c, 2, w->now_ns, &session, &container, &uses));
    assert_true(wf_containers_user(w->c, 1, w->now_ns + (WF_CONTAINERS_USED_S + 1) * WF_NS_PER_S,
                                   &session, &container, &uses));
    assert_false(uses);
}

/* C3: and it may be sent again with the same number. */
static void a_change_that_fails_is_not_counted(void **state)
{
    world *w = *state;
    int64_t two = 2;

    assert_int_equal(act_as(w, 7, 1, WF_VARIABLE_ADD, "", "v", scalar(1)), WF_NOTFOUND);
    assert_int_equal(act_as(w, 7, 1, WF_VARIABLE_CREATE, "", "v", scalar(1)), WF_OK);
    assert_int_equal(act_as(w, 7, 2, WF_VARIABLE_ASSIGN, "", "v", tensor(WF_F32, 1, &two, NULL)),
                     WF_SHAPE);
    assert_string_equal(w->err.what,
                        "variable \"v\" is float32 [], and what is given is float32 [2]");
    assert_int_equal(act_as(w, 7, 2, WF_VARIABLE_ASSIGN, "", "v", tensor(WF_I64, 0, NULL, NULL)),
                     WF_SHAPE);
    assert_int_equal(act_as(w, 7, 2, WF_VARIABLE_ADD, "", "v", scalar(1)), WF_OK);
    holds(w, "", "v", 2);
    assert_int_equal(act_as(w, 7, 3, WF_VARIABLE_CREATE, "", "v", tensor(WF_I64, 0, NULL, NULL)),
                     WF_SHAPE);
}

static void a_missing_name_is_answered_with_the_nearest(void **state)
{
    world *w = *state;

    assert_int_equal(act(w, WF_VARIABLE_CREATE, "weights", scalar(0)), WF_OK);
    assert_int_equal(act(w, WF_VARIABLE_READ, "wieghts", NULL), WF_NOTFOUND);
    assert_string_equal(w->err.hint, "did you mean \"weights\"?");
    assert_int_equal(act(w, WF_VARIABLE_READ, "", NULL), WF_INVALID);
}

/* Whoever reads holds the value of that moment, whatever comes after. */
static void a_value_that_is_borrowed_is_not_written(void **state)
{
    world *w = *state;
    wf_tensor *borrowed = NULL;

    assert_int_equal(act(w, WF_VARIABLE_CREATE, "v", scalar(1)), WF_OK);
    assert_int_equal(act(w, WF_VARIABLE_READ, "v", NULL), WF_OK);
    assert_int_equal(wf_tensor_share(w->value, &borrowed, NULL), WF_OK);
    assert_int_equal(act(w, WF_VARIABLE_ADD, "v", scalar(1)), WF_OK);
    assert_true(wf_f32(borrowed)[0] == 1);
    holds(w, "", "v", 2);
    wf_tensor_free(&borrowed);
}

static void values_have_a_limit(void **state)
{
    world *w = *state;
    int64_t half = LIMIT / 2 / 4, more = half + 1;

    assert_int_equal(act(w, WF_VARIABLE_CREATE, "a", tensor(WF_F32, 1, &half, NULL)), WF_OK);
    assert_int_equal(act(w, WF_VARIABLE_CREATE, "b", tensor(WF_F32, 1, &more, NULL)), WF_FULL);
    assert_int_equal(act(w, WF_VARIABLE_CREATE, "b", tensor(WF_F32, 1, &half, NULL)), WF_OK);
    assert_int_equal(wf_containers_bytes(w->c), LIMIT);
    assert_int_equal(act(w, WF_VARIABLE_ASSIGN, "b", tensor(WF_F32, 1, &half, NULL)), WF_OK);
    assert_int_equal(act(w, WF_VARIABLE_REMOVE, "a", NULL), WF_OK);
    assert_int_equal(wf_containers_bytes(w->c), LIMIT / 2);
    assert_int_equal(act(w, WF_VARIABLE_CREATE, "c", scalar(1)), WF_OK);
}

/* What is known of a session is not forgotten while it may still send its change again. */
static void sessions_have_a_limit_and_are_kept_for_an_hour(void **state)
{
    const uint64_t late = WF_CONTAINERS_SESSIONS + 1;
    world *w = *state;

    assert_int_equal(act_as(w, 1, 1, WF_VARIABLE_CREATE, "", "v", scalar(0)), WF_OK);
    for (uint64_t s = 2; s <= WF_CONTAINERS_SESSIONS; s++)
        assert_int_equal(act_as(w, s, 1, WF_VARIABLE_ADD, "", "v", scalar(1)), WF_OK);
    assert_int_equal(act_as(w, late, 1, WF_VARIABLE_ADD, "", "v", scalar(1)), WF_AGAIN);
    assert_int_equal(act_as(w, late, 1, WF_VARIABLE_READ, "", "v", NULL), WF_OK);
    w->now_ns += WF_CONTAINERS_REST_S * WF_NS_PER_S;
    assert_int_equal(act_as(w, 5, 1, WF_VARIABLE_ADD, "", "v", scalar(1)), WF_OK);
    w->now_ns += WF_NS_PER_S;
    assert_int_equal(act_as(w, late, 1, WF_VARIABLE_ADD, "", "v", scalar(1)), WF_OK);
    assert_int_equal(act_as(w, 5, 1, WF_VARIABLE_ADD, "", "v", scalar(1)), WF_OK);
    holds(w, "", "v", WF_CONTAINERS_SESSIONS);
}

static void sums(world *w, const char *name, wf_dtype dtype, const void *first, const void *more,
                 const void *expected)
{
    int64_t n = 3;

    assert_int_equal(act(w, WF_VARIABLE_CREATE, name, tensor(dtype, 1, &n, first)), WF_OK);
    assert_int_equal(act(w, WF_VARIABLE_ADD, name, tensor(dtype, 1, &n, more)), WF_OK);
    assert_memory_equal(w->value->data, expected, 3 * wf_dtype_size(dtype));
}

static void every_dtype_but_bool_is_summed(void **state)
{
    world *w = *state;
    int64_t one = 1;

    sums(w, "f32", WF_F32, (float[]){1, 2, 3}, (float[]){0.5f, -2, 1e-9f}, (float[]){1.5f, 0, 3});
    sums(w, "f64", WF_F64, (double[]){1, 2, 3}, (double[]){0.5, -2, 1e-9},
         (double[]){1.5, 0, 3 + 1e-9});
    sums(w, "i32", WF_I32, (int32_t[]){1, INT32_MAX, -1}, (int32_t[]){2, 1, 1},
         (int32_t[]){3, INT32_MIN, 0});
    sums(w, "i64", WF_I64, (int64_t[]){1, INT64_MAX, -1}, (int64_t[]){2, 1, 1},
         (int64_t[]){3, INT64_MIN, 0});
    sums(w, "u8", WF_U8, (uint8_t[]){1, 255, 7}, (uint8_t[]){2, 2, 0}, (uint8_t[]){3, 1, 7});
    /* 1 + 2^-11 lies between two float16, and is rounded to the even one; 65504 is the largest. */
    sums(w, "f16", WF_F16, (uint16_t[]){0x3C00, 0x3C00, 0x7BFF},
         (uint16_t[]){0x3C00, 0x1000, 0x0000}, (uint16_t[]){0x4000, 0x3C00, 0x7BFF});
    sums(w, "bf16", WF_BF16, (uint16_t[]){0x3F80, 0x4000, 0xBF80},
         (uint16_t[]){0x3F80, 0x3F80, 0x3F80}, (uint16_t[]){0x4000, 0x4040, 0x0000});
    assert_int_equal(act(w, WF_VARIABLE_CREATE, "b", tensor(WF_BOOL, 1, &one, NULL)), WF_OK);
    assert_int_equal(act(w, WF_VARIABLE_ADD, "b", tensor(WF_BOOL, 1, &one, NULL)), WF_UNSUPPORTED);
}

static void a_variable_may_be_empty(void **state)
{
    world *w = *state;
    int64_t none = 0;

    assert_int_equal(act(w, WF_VARIABLE_CREATE, "v", tensor(WF_F32, 1, &none, NULL)), WF_OK);
    assert_int_equal(act(w, WF_VARIABLE_ADD, "v", tensor(WF_F32, 1, &none, NULL)), WF_OK);
    assert_int_equal(wf_elems(w->value), 0);
}

static void many_names_are_found(void **state)
{
    world *w = *state;
    char name[32];

    for (int i = 0; i < 1000; i++) {
        snprintf(name, sizeof name, "v%d", i * 7919 % 1000);
        assert_int_equal(act(w, WF_VARIABLE_CREATE, name, scalar((float)(i * 7919 % 1000))), WF_OK);
    }
    for (int i = 0; i < 1000; i++) {
        snprintf(name, sizeof name, "v%d", i);
        holds(w, "", name, (float)i);
    }
}

/* Another number of ps is another cluster; but every client finds the same one. */
static void homes_follow_from_names(void **state)
{
    uint32_t n[3] = {0};
    char name[32];

    (void)state;
    for (int i = 0; i < 3000; i++) {
        snprintf(name, sizeof name, "v%d", i);
        n[wf_variable_home("", name, 3)]++;
    }
    for (int i = 0; i < 3; i++)
        assert_in_range(n[i], 900, 1100);
    assert_int_equal(wf_variable_home("", "v", 1), 0);
    assert_true(wf_variable_home("a", "v", 1000) != wf_variable_home("b", "v", 1000));
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, begin, end)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_variable_is_made_once_and_keeps_its_value),
        TEST(containers_do_not_share_names),
        TEST(a_change_that_comes_twice_is_made_once),
        TEST(an_addition_that_comes_twice_gives_its_own_sum),
        TEST(variables_are_listed_in_order),
        TEST(a_change_that_fails_is_not_counted),
        TEST(a_missing_name_is_answered_with_the_nearest),
        TEST(a_value_that_is_borrowed_is_not_written),
        TEST(values_have_a_limit),
        TEST(sessions_have_a_limit_and_are_kept_for_an_hour),
        TEST(every_dtype_but_bool_is_summed),
        TEST(a_variable_may_be_empty),
        TEST(many_names_are_found),
        TEST(homes_follow_from_names),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
