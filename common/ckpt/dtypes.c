/* SPDX-License-Identifier: Apache-2.0 */
/* common/ckpt/dtypes.c */
#include "common/ckpt/dtypes.h"
#include "common/base/cc.h"

#include <string.h>

static const struct {
    const char *name;
    wf_dtype dtype;
} rows[] = {
    {"F32", WF_F32}, {"F64", WF_F64}, {"F16", WF_F16}, {"BF16", WF_BF16}, {"I32", WF_I32},
    {"I64", WF_I64}, {"U8", WF_U8},   {"I8", WF_I8},   {"BOOL", WF_BOOL},
};

const char *wf_shard_dtype_name(wf_dtype dtype)
{
    for (size_t i = 0; i < WF_COUNT(rows); i++)
        if (rows[i].dtype == dtype)
            return rows[i].name;
    return NULL;
}

wf_dtype wf_shard_dtype_of(const char *name)
{
    for (size_t i = 0; i < WF_COUNT(rows); i++)
        if (strcmp(rows[i].name, name) == 0)
            return rows[i].dtype;
    return WF_NONE;
}
