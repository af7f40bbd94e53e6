/* SPDX-License-Identifier: Apache-2.0 */
/* common/onnx/expand/side.c - see side.h. */
#include "common/onnx/expand/side.h"

#include <inttypes.h>
#include <stddef.h>

/* A side that a file names. */
wf_status wf_check_side(int64_t v, int64_t least, const char *what, wf_err *err)
{
    if (v >= least && v <= WF_LONGEST_SIDE)
        return WF_OK;
    return wf_fail(err, WF_INVALID, NULL, "%s %" PRId64 "; it must be %" PRId64 " to %d", what, v,
                   least, WF_LONGEST_SIDE);
}
