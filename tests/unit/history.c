/* SPDX-License-Identifier: Apache-2.0 */
/* tests/unit/history.c - files of TensorBoard's in the order of their names, whoever begins them.
 */
#include "runtime/history.h"
#include "common/base/clock.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#define AN_EPOCH                                                                                   \
    "{\"event\": \"job.epoch\", \"epoch\": 1, \"step\": 64, \"generation\": %d, "                  \
    "\"elapsed_s\": 1.5, \"train\": {\"loss\": 0.25}, \"val\": {\"loss\": 0.5}}"

typedef struct fixture {
    wf_background *background;
    char folder[32];
} fixture;

static void open_fixture(fixture *f)
{
    wf_err err;

    strcpy(f->folder, "/tmp/weft-test-XXXXXX");
    assert_non_null(mkdtemp(f->folder));
    assert_int_equal(wf_background_new(&f->background, &err), WF_OK);
}

static void close_fixture(fixture *f)
{
    wf_background_remove(f->background, f->folder);
    assert_true(wf_background_end(&f->background, true));
    assert_int_not_equal(access(f->folder, F_OK), 0);
}

static void take_epoch(wf_history *h, fixture *f, int generation, int64_t wall_ns)
{
    char json[256];

    snprintf(json, sizeof json, AN_EPOCH, generation);
    wf_history_take(h, f->background, f->folder, "run#1", json, wall_ns);
}

static void names_rise_with_time(void **state)
{
    static const int64_t TIMES[] = {1700000000 * WF_NS_PER_S, 1700000000 * WF_NS_PER_S + 1,
                                    1700000000 * WF_NS_PER_S + 20, 1700000001 * WF_NS_PER_S - 1,
                                    1700000001 * WF_NS_PER_S};
    char last[sizeof((wf_history *)NULL)->file] = "events.out.tfevents.0.job";
    fixture f;

    (void)state;
    open_fixture(&f);
    for (size_t i = 0; i < sizeof TIMES / sizeof *TIMES; i++) {
        wf_history h = {.files = (uint32_t)(20 - i)}; /* of a process of its own */

        take_epoch(&h, &f, (int)i + 1, TIMES[i]);
        assert_true(strcmp(last, h.file) < 0);
        strcpy(last, h.file);
        take_epoch(&h, &f, (int)i + 1, TIMES[i] + WF_NS_PER_S); /* the generation goes on */
        assert_string_equal(last, h.file);
    }
    close_fixture(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(names_rise_with_time)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
