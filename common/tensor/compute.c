/* SPDX-License-Identifier: Apache-2.0 */
/* common/tensor/compute.c */
#include "common/tensor/compute.h"

#include <string.h>

static const struct {
    const char *name;
    wf_dtype kept;
} computes[WF_COMPUTES] = {
    [WF_COMPUTE_F32] = {"float32", WF_NONE},
    [WF_COMPUTE_BF16] = {"bfloat16", WF_BF16},
    [WF_COMPUTE_F16] = {"float16", WF_F16},
    [WF_COMPUTE_TF32] = {"tf32", WF_NONE},
};

const char *wf_compute_name(wf_compute c)
{
    return computes[c].name;
}

wf_compute wf_compute_of(const char *name)
{
    wf_compute c = 0;

    while (c < WF_COMPUTES && strcmp(computes[c].name, name) != 0)
        c++;
    return c;
}

wf_dtype wf_compute_kept(wf_compute c)
{
    return computes[c].kept;
}
