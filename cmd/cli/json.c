/* SPDX-License-Identifier: Apache-2.0 */
/* cmd/cli/json.c */
#include "cmd/cli/json.h"

#include <stdio.h>
#include <stdlib.h>

wf_status wf_json_print(json_t *value, size_t flags, wf_err *err)
{
    char *text = value ? json_dumps(value, flags) : NULL;

    json_decref(value);
    if (!text)
        return wf_fail_nomem(err, 0);
    printf("%s\n", text);
    free(text);
    return WF_OK;
}
