/* SPDX-License-Identifier: Apache-2.0 */
/* lib/error.c - errors and versions; settings of the process. */
#include "common/base/process.h"
#include "common/base/subnormal.h"
#include "common/kernels/kernel.h"
#include "lib/lib.h"

#include <stdio.h>
#include <string.h>

#define SAME(code) _Static_assert((int)WEFT_##code == (int)WF_##code, "codes are statuses")
SAME(OK);
SAME(NOMEM);
SAME(SHAPE);
SAME(IO);
SAME(MISMATCH);
SAME(AGAIN);

const char *weft_version(void)
{
    return WEFT_VERSION;
}

void weft_process_settings(void)
{
    wf_kernels_own_process();
    wf_process_keep_blocks();
    wf_flush_subnormals();
}

const char *weft_code_name(weft_code code)
{
    static const char *const names[] = {
        "WEFT_OK",         "WEFT_NOMEM",   "WEFT_INVALID",     "WEFT_USAGE",    "WEFT_SHAPE",
        "WEFT_NOTFOUND",   "WEFT_EXISTS",  "WEFT_UNSUPPORTED", "WEFT_IO",       "WEFT_CORRUPT",
        "WEFT_PROTO",      "WEFT_TIMEOUT", "WEFT_FULL",        "WEFT_MISMATCH", "WEFT_NUMERIC",
        "WEFT_SUPERSEDED", "WEFT_STOPPED", "WEFT_AGAIN"};

    return (size_t)code < WF_COUNT(names) ? names[code] : "?";
}

weft_code wf_lib_end(wf_status rc, const wf_err *err, weft_error *error)
{
    if (!error)
        return (weft_code)rc;
    *error = (weft_error){.code = (weft_code)rc};
    if (rc != WF_OK) {
        snprintf(error->message, sizeof error->message, "%s", err->what);
        snprintf(error->hint, sizeof error->hint, "%s", err->hint);
    }
    return (weft_code)rc;
}

weft_code wf_lib_null(const char *function, const char *argument, weft_error *error)
{
    wf_err err = {0};

    return wf_lib_end(wf_fail(&err, WF_INVALID, NULL, "%s: %s is NULL", function, argument), &err,
                      error);
}
