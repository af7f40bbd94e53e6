/* SPDX-License-Identifier: Apache-2.0 */
/* common/onnx/known.h - numbers that are known while a file is read. */
#ifndef WF_ONNX_KNOWN_H
#define WF_ONNX_KNOWN_H

#include "common/graph/graph.h"
#include <stdbool.h>
#include <stdint.h>

/* The content of a single integer or bool, if it is known. */
bool wf_onnx_known(const wf_value *v, int64_t *content);

#endif
