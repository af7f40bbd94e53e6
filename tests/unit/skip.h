/* SPDX-License-Identifier: Apache-2.0 */
/* tests/unit/skip.h - a test that cannot run here makes its file skipped, whatever else passed:
 * meson knows that by an exit code, and cmocka ends with 0. */
#ifndef WF_TESTS_UNIT_SKIP_H
#define WF_TESTS_UNIT_SKIP_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

static bool cannot_run;

/* Ends the test. */
static inline void skip_file(void)
{
    cannot_run = true;
    skip();
}

/* What main returns, of the number of tests that failed. */
static inline int exit_code(int failed)
{
    enum { SKIPPED = 77 };

    return failed || !cannot_run ? failed : SKIPPED;
}

#endif
