/* SPDX-License-Identifier: Apache-2.0 */
/* common/tensor/dtype.h - element types. The numbers are ONNX's (TensorProto.DataType), so files
 * need no translation. */
#ifndef WF_TENSOR_DTYPE_H
#define WF_TENSOR_DTYPE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef enum wf_dtype {
    WF_NONE = 0, /* not known yet */
    WF_F32 = 1,
    WF_U8 = 2,
    WF_I8 = 3, /* of rows of tables alone: neither graphs nor data have it */
    WF_I32 = 6,
    WF_I64 = 7,
    WF_BOOL = 9,
    WF_F16 = 10,
    WF_F64 = 11,
    WF_BF16 = 16
} wf_dtype;

/* Bytes of one element; 0 for a number that is none of the above. */
size_t wf_dtype_size(wf_dtype dtype);
/* "float32", "int64", ...: numpy's names, and "bfloat16". "?" for an unknown one. */
const char *wf_dtype_name(wf_dtype dtype);
/* The dtype of a name as wf_dtype_name gives it; WF_NONE if there is none. */
wf_dtype wf_dtype_of(const char *name);
/* All but int8: those that graphs and data may have. */
bool wf_dtype_computes(wf_dtype dtype);
/* f16, bf16, f32, f64: the ones that carry gradients. */
bool wf_dtype_is_float(wf_dtype dtype);
bool wf_dtype_is_int(wf_dtype dtype); /* u8, i32, i64 */

/* IEEE half and bfloat16 to f32 and back, rounding to nearest even. */
float wf_f16_to_f32(uint16_t h);
uint16_t wf_f32_to_f16(float f);
float wf_bf16_to_f32(uint16_t h);
uint16_t wf_f32_to_bf16(float f);

#endif
