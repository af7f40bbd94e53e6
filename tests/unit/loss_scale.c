/* SPDX-License-Identifier: Apache-2.0 */
/* tests/unit/loss_scale.c - the scale of a loss falls when gradients are not finite, and grows
 * after many steps in which they are. */
#include "worker/loss_scale.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

static void it_halves_down_to_one(void **state)
{
    wf_loss_scale s = wf_loss_scale_begin(true, 5, 3);

    (void)state;
    assert_true(wf_loss_scale_may_fall(&s));
    assert_true(wf_loss_scale_note(&s, false));
    assert_true(s.scale == 2.5f);
    assert_true(wf_loss_scale_note(&s, false));
    assert_true(wf_loss_scale_note(&s, false));
    assert_true(s.scale == 1);
    assert_false(wf_loss_scale_may_fall(&s));
    assert_false(wf_loss_scale_note(&s, false)); /* nothing has changed */
}

static void it_doubles_after_so_many_steps_in_a_row(void **state)
{
    wf_loss_scale s = wf_loss_scale_begin(true, 8, 3);

    (void)state;
    assert_false(wf_loss_scale_note(&s, true));
    assert_false(wf_loss_scale_note(&s, true));
    assert_true(wf_loss_scale_note(&s, false)); /* the row begins anew */
    assert_false(wf_loss_scale_note(&s, true));
    assert_false(wf_loss_scale_note(&s, true));
    assert_true(wf_loss_scale_note(&s, true));
    assert_true(s.scale == 8);
    for (int i = 0; i < 3000; i++)
        (void)wf_loss_scale_note(&s, true);
    assert_true(isfinite(s.scale) && s.scale > 0x1p100f);
    for (int i = 0; i < 3; i++)
        assert_false(wf_loss_scale_note(&s, true));
}

static void it_stays_one_where_nothing_is_computed_in_float16(void **state)
{
    wf_loss_scale s = wf_loss_scale_begin(false, 1024, 2), none = {0};

    (void)state;
    for (int i = 0; i < 5; i++)
        assert_false(wf_loss_scale_note(&s, i % 3 == 0));
    assert_true(s.scale == 1);
    assert_false(wf_loss_scale_may_fall(&s));
    assert_false(wf_loss_scale_may_fall(&none));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(it_halves_down_to_one),
        cmocka_unit_test(it_doubles_after_so_many_steps_in_a_row),
        cmocka_unit_test(it_stays_one_where_nothing_is_computed_in_float16),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
