/* SPDX-License-Identifier: Apache-2.0 */
/* tests/unit/nomem.h - what the sweeps over failing allocations share. */
#ifndef WF_TESTS_UNIT_NOMEM_H
#define WF_TESTS_UNIT_NOMEM_H

#include "common/base/cc.h"
#include "tests/kit/nomem.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define assert_survives(work, context) assert_survives_by(1, work, context)
#define assert_survives_by(stride, work, context)                                                  \
    assert_true(wf_nomem_sweep(#work, (work), (context), (stride)) > 0)

/* For a result that is there and is not right. */
#define wrong(err, ...) wf_fail((err), WF_MISMATCH, NULL, __VA_ARGS__)

#endif
