/* SPDX-License-Identifier: Apache-2.0 */
/* common/onnx/expand/older.h - rows of forms that operations had in older opsets. */
#ifndef WF_ONNX_EXPAND_OLDER_H
#define WF_ONNX_EXPAND_OLDER_H

#include "common/onnx/expand.h"

/* Row wf_expansion_older_ID: the form of files of opsets `from_` to before `until_`, with
 * attributes in `attrs_` and the function `call_`. */
#define WF_OLDER(id, name_, from_, until_, least_in, most_in, most_out, attrs_, call_)             \
    const wf_expansion wf_expansion_older_##id = {.op = {.name = name_,                            \
                                                         .domain = WF_DOMAIN_ONNX,                 \
                                                         .since = from_,                           \
                                                         .n_in_min = least_in,                     \
                                                         .n_in_max = most_in,                      \
                                                         .n_out_min = 1,                           \
                                                         .n_out_max = most_out,                    \
                                                         .attrs = attrs_},                         \
                                                  .from = from_,                                   \
                                                  .until = until_,                                 \
                                                  .call = call_};

#endif
