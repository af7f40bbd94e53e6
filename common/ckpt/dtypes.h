/* SPDX-License-Identifier: Apache-2.0 */
/* common/ckpt/dtypes.h - the names that safetensors has for dtypes. */
#ifndef WF_CKPT_DTYPES_H
#define WF_CKPT_DTYPES_H

#include "common/tensor/dtype.h"

/* NULL for one that the format does not have. */
const char *wf_shard_dtype_name(wf_dtype dtype);
/* WF_NONE for a name that weft does not keep. */
wf_dtype wf_shard_dtype_of(const char *name);

#endif
