/* SPDX-License-Identifier: Apache-2.0 */
/* tests/unit/conf.h - a table of texts and the sentence that each must give. */
#ifndef WF_TESTS_UNIT_CONF_H
#define WF_TESTS_UNIT_CONF_H

#include "common/base/status.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <string.h>

typedef struct bad_text {
    const char *text;
    wf_status status;
    const char
        *says; /* the beginning of `what`, or a part of "what; hint" when it begins with '*' */
} bad_text;

static inline void check_bad(const bad_text *bad, wf_status rc, const wf_err *err)
{
    char all[2048];

    snprintf(all, sizeof all, "%s; %s", err->what, err->hint);
    if (rc != bad->status ||
        (bad->says[0] == '*' ? !strstr(all, bad->says + 1)
                             : strncmp(all, bad->says, strlen(bad->says)) != 0))
        fail_msg("status %d, said: %s\nwanted %d: %s\ntext:\n%s", (int)rc, rc ? all : "(nothing)",
                 (int)bad->status, bad->says, bad->text);
}

#endif
