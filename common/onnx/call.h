/* SPDX-License-Identifier: Apache-2.0 */
/* common/onnx/call.h - one node of an operation that is expanded in a formula: its inputs are
 * tensors, and values come out. */
#ifndef WF_ONNX_CALL_H
#define WF_ONNX_CALL_H

#include "common/base/status.h"
#include "common/graph/emit.h"
#include "common/graph/graph.h"
#include "common/onnx/onnx.pb-c.h"
#include <stdbool.h>
#include <stdint.h>

enum { WF_CALL_INPUTS = 6, WF_CALL_OUTPUTS = 4 };

typedef struct wf_call {
    const Weft__Onnx__Node *p; /* for its attributes */
    wf_emit *e;
    wf_value *in[WF_CALL_INPUTS]; /* inferred; NULL: absent */
    bool wants[WF_CALL_OUTPUTS];
    wf_value *out[WF_CALL_OUTPUTS]; /* to be set where wanted; NULL is refused by name */
} wf_call;

/* The rank of input i is known, and within the bounds. Errors: WF_UNSUPPORTED, WF_SHAPE. */
WF_MUST_USE wf_status wf_call_need_rank(const wf_call *c, uint32_t i, int32_t least, int32_t most,
                                        wf_err *err);
/* The content of input i, small integers that are known while the file is read. Errors:
 * WF_UNSUPPORTED, WF_SHAPE when there are fewer than `least` or more than `most`. */
WF_MUST_USE wf_status wf_call_need_ints(const wf_call *c, uint32_t i, uint32_t least, uint32_t most,
                                        int64_t values[], uint32_t *n, wf_err *err);
/* Entry i of an integer list attribute. */
int64_t wf_call_entry(const wf_call *c, const char *list, size_t i, int64_t otherwise);
/* x from `begin` to before `end` along an axis, every `step`. */
wf_value *wf_call_slice(wf_call *c, wf_value *x, int64_t axis, int64_t begin, int64_t end,
                        int64_t step);
/* Two values one after the other. */
wf_value *wf_call_concat(wf_call *c, wf_value *a, wf_value *b, int64_t axis);
/* int64 [n]: 0, 1, ... n - 1, where n [1] is a single integer. */
wf_value *wf_call_count(wf_call *c, wf_value *n);

#endif
