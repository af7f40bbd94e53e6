/* SPDX-License-Identifier: Apache-2.0 */
/* common/tensor/compute.h - what products and convolutions of float32 may round their factors to
 * (key `compute` of a job). Their sums stay float32. */
#ifndef WF_TENSOR_COMPUTE_H
#define WF_TENSOR_COMPUTE_H

#include "common/tensor/dtype.h"

/* The numbers are those of a Start. */
typedef enum wf_compute {
    WF_COMPUTE_F32 = 0, /* to nothing */
    WF_COMPUTE_BF16,
    WF_COMPUTE_F16,
    WF_COMPUTE_TF32, /* on GPUs: to 11 significant bits */
    WF_COMPUTES      /* how many there are */
} wf_compute;

/* "float32", "bfloat16", "float16" or "tf32". */
const char *wf_compute_name(wf_compute c);
/* The one of a name as wf_compute_name gives it; WF_COMPUTES if there is none. */
wf_compute wf_compute_of(const char *name);
/* What values are kept in between nodes: WF_BF16, WF_F16, or WF_NONE, which keeps float32. */
wf_dtype wf_compute_kept(wf_compute c);

#endif
