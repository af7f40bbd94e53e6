/* SPDX-License-Identifier: Apache-2.0 */
/* tests/unit/stage_schedule.c - one forward, one backward: the order of each stage, how many
 * micro-batches are under way, and that no stages wait in a circle. */
#include "common/base/cc.h"
#include "worker/stages/schedule.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

enum { MOST_STAGES = 9, MOST_BATCHES = 20 };

/* "F0 F1 B0 F2 B1 B2" */
static void assert_order(uint32_t stage, uint32_t stages, uint32_t batches, const char *order)
{
    wf_stage_schedule s = {.stage = stage, .stages = stages, .batches = batches, .trains = true};
    char text[512] = "";
    wf_stage_action a;
    uint32_t batch;

    while ((a = wf_schedule_next(&s, &batch)) != WF_STAGE_NOTHING) {
        size_t at = strlen(text);

        snprintf(text + at, sizeof text - at, "%s%c%u", at ? " " : "",
                 a == WF_STAGE_GO_FORWARD ? 'F' : 'B', batch);
        wf_schedule_note(&s, a);
    }
    assert_string_equal(text, order);
}

/* Figure 4 of the paper, of four stages. */
static void the_order_is_that_of_the_paper(void **state)
{
    (void)state;
    assert_order(0, 4, 6, "F0 F1 F2 F3 B0 F4 B1 F5 B2 B3 B4 B5");
    assert_order(1, 4, 6, "F0 F1 F2 B0 F3 B1 F4 B2 F5 B3 B4 B5");
    assert_order(2, 4, 6, "F0 F1 B0 F2 B1 F3 B2 F4 B3 F5 B4 B5");
    assert_order(3, 4, 6, "F0 B0 F1 B1 F2 B2 F3 B3 F4 B4 F5 B5");
    assert_order(0, 4, 2, "F0 F1 B0 B1");
    assert_order(0, 1, 2, "F0 B0 F1 B1");
}

/* One tick: each stage whose next action has what it takes from all other stages does it. */
static uint32_t tick(wf_stage_schedule s[], uint32_t n)
{
    wf_stage_action does[MOST_STAGES];
    uint32_t any = 0;

    for (uint32_t i = 0; i < n; i++) {
        uint32_t batch = 0;

        does[i] = wf_schedule_next(&s[i], &batch);
        for (uint32_t k = 0; k < n; k++)
            if ((does[i] == WF_STAGE_GO_FORWARD && k < i && s[k].forwards <= batch) ||
                (does[i] == WF_STAGE_GO_BACK && k > i && s[k].backwards <= batch))
                does[i] = WF_STAGE_NOTHING;
    }
    for (uint32_t i = 0; i < n; i++) {
        wf_schedule_note(&s[i], does[i]);
        any += does[i] != WF_STAGE_NOTHING;
    }
    return any;
}

static uint32_t ticks_of(uint32_t stages, uint32_t batches, bool trains)
{
    wf_stage_schedule s[MOST_STAGES];
    uint32_t ticks = 0;

    for (uint32_t i = 0; i < stages; i++)
        s[i] =
            (wf_stage_schedule){.stage = i, .stages = stages, .batches = batches, .trains = trains};
    while (tick(s, stages)) {
        ticks++;
        for (uint32_t i = 0; trains && i < stages; i++)
            assert_true(s[i].forwards - s[i].backwards <= stages - i);
    }
    for (uint32_t i = 0; i < stages; i++) {
        assert_int_equal(s[i].forwards, batches);
        assert_int_equal(s[i].backwards, trains ? batches : 0);
    }
    return ticks;
}

/* Where a part takes one tick forward and one back, a step takes 2 (batches + stages - 1) of them:
 * a stage rests for no longer than the pipeline fills and empties. */
static void stages_rest_while_the_pipeline_fills_and_no_longer(void **state)
{
    (void)state;
    for (uint32_t stages = 1; stages < MOST_STAGES; stages++)
        for (uint32_t batches = 1; batches < MOST_BATCHES; batches++) {
            assert_int_equal(ticks_of(stages, batches, true), 2 * (batches + stages - 1));
            assert_int_equal(ticks_of(stages, batches, false), batches + stages - 1);
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_order_is_that_of_the_paper),
        cmocka_unit_test(stages_rest_while_the_pipeline_fills_and_no_longer),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
