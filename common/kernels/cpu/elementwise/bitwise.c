/* SPDX-License-Identifier: Apache-2.0 */
/* common/kernels/cpu/elementwise/bitwise.c - BitwiseAnd, BitwiseOr, BitwiseXor, BitwiseNot,
 * BitShift, of integers. A shift by the width of the type or more leaves 0 (to the right, of a
 * negative number, -1), where C leaves it open. */
#include "common/kernels/cpu/elementwise/broadcast.h"

#include <string.h>

#define BITWISE(type, T, U, bits, sign)                                                            \
    WF_BINARY(and_##type, T, T, x &y)                                                              \
    WF_BINARY(or_##type, T, T, x | y)                                                              \
    WF_BINARY(xor_##type, T, T, x ^ y)                                                             \
    WF_UNARY(not_##type, T, T, ~x)                                                                 \
    WF_BINARY(left_##type, T, T, (U)y >= (bits) ? 0 : (U)x << (U)y)                                \
    WF_BINARY(right_##type, T, T, (U)y >= (bits) ? (sign) : x >> (U)y)                             \
    static wf_status shift_##type(const wf_run *run, const wf_tensor *const in[],                  \
                                  wf_tensor *const out[], wf_err *err)                             \
    {                                                                                              \
        return strcmp(wf_node_string(run->node, "direction", ""), "LEFT") == 0                     \
                   ? left_##type(run, in, out, err)                                                \
                   : right_##type(run, in, out, err);                                              \
    }
BITWISE(i32, int32_t, uint32_t, 32, x < 0 ? -1 : 0)
BITWISE(i64, int64_t, uint64_t, 64, x < 0 ? -1 : 0)
BITWISE(u8, uint8_t, uint8_t, 8, 0)

#define ROW(op, dtype, fn)                                                                         \
    WF_ROW(op, WF_TYPE(dtype), fn, .prepare = wf_binary_prepare, .in_place = 3)
#define ROWS(op, name)                                                                             \
    ROW(op, WF_I32, name##_i32), ROW(op, WF_I64, name##_i64), ROW(op, WF_U8, name##_u8)
#define NOT(dtype, fn) WF_ROW("BitwiseNot", WF_TYPE(dtype), fn, .in_place = 1)

const wf_kernel wf_kernels_bitwise[] = {
    ROWS("BitwiseAnd", and), ROWS("BitwiseOr", or),
    ROWS("BitwiseXor", xor), ROWS("BitShift", shift),
    NOT(WF_I32, not_i32),    NOT(WF_I64, not_i64),
    NOT(WF_U8, not_u8),      {0},
};
