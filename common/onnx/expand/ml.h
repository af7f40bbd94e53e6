/* SPDX-License-Identifier: Apache-2.0 */
/* common/onnx/expand/ml.h - what operations of ai.onnx.ml share. Their meaning: ONNX-ML operators,
 * versions 1 to 3. Results are float32, whatever the input is. */
#ifndef WF_ONNX_EXPAND_ML_H
#define WF_ONNX_EXPAND_ML_H

#include "common/base/status.h"
#include "common/onnx/call.h"
#include <stddef.h>

/* A vector of floats as a constant [n]. */
wf_value *wf_ml_constant(wf_call *c, const char *hint, size_t n, const float values[]);
/* A list attribute that has one element for each feature, or one for all. Errors: WF_INVALID,
 * WF_SHAPE. */
WF_MUST_USE wf_status wf_ml_list(const wf_call *c, const char *name, const float **values,
                                 size_t *n, wf_err *err);

#endif
