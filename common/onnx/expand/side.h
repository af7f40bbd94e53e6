/* SPDX-License-Identifier: Apache-2.0 */
/* common/onnx/expand/side.h - sides of images and kernels, bounded before they are multiplied. */
#ifndef WF_ONNX_EXPAND_SIDE_H
#define WF_ONNX_EXPAND_SIDE_H

#include "common/base/status.h"
#include <stdint.h>

/* The most elements of a side. */
enum { WF_LONGEST_SIDE = 1 << 24 };

/* `what` begins the sentence, as "a stride is". Errors: WF_SHAPE below `least`, WF_UNSUPPORTED. */
WF_MUST_USE wf_status wf_check_side(int64_t v, int64_t least, const char *what, wf_err *err);

#endif
