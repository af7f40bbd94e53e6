/* SPDX-License-Identifier: Apache-2.0 */
/* common/onnx/onnx.h - graphs from and to ONNX files (ModelProto).
 *
 * Read: opsets 7 to 25 of the ONNX domain and version 1 of ai.weft; nodes are brought to opset 18,
 * Constant nodes become constants, the graph is sorted and inferred. Nothing in a file is trusted:
 * see common/pb. Names of values stay as they are; nodes without a name get one.
 *
 * Initializers and Constants that nothing uses are left out.
 *
 * Which initializers are trained:
 *   - where the file says so in metadata_props ("weft.variable.<name>" = trainable, statistic or
 *     frozen), or weft wrote it, that decides, and all others are constants;
 *   - otherwise each float initializer that a gradient of some float graph output can reach: not
 *     one that serves only as axes, bounds, ratio, class weights or the like;
 *   - except one of a single element that is a number of a formula (0.5, epsilon) and no parameter.
 *     PyTorch has such numbers in Constant nodes, unless its exporter folds: then an initializer
 *     has a name that the exporter made up. Other exporters put all of them into initializers, and
 *     tf2onnx names those that were variables ("ReadVariableOp"). Operands of Gemm and MatMul, and
 *     what is added to their result, are trained all the same. The names of the numbers are in
 *     wf_origin, and a job can name them under `trainable`.
 *   Integer and bool initializers, and all the rest, are constants. An initializer that is listed
 *   as a graph input too is an initializer.
 *
 * Written: opset 18, ir_version 8, ai.weft version 1 and ai.onnx.ml version 2 when they are used,
 * value_info with inferred shapes, symbols as dim_param, constants and variables as initializers,
 * kinds of variables in metadata_props, a node's device or task in its doc_string. Files of 2 GiB
 * and more are WF_UNSUPPORTED to write.
 */
#ifndef WF_ONNX_ONNX_H
#define WF_ONNX_ONNX_H

#include "common/base/bytes.h"
#include "common/base/status.h"
#include "common/graph/graph.h"
#include "common/tensor/tensor.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The oldest and newest opset of the ONNX domain that files may have; nodes of weft's operations
 * mean the same in them, but for what wf_op.upgrade and the rows of expand/older.h change. */
enum { WF_OPSET_OLDEST = 7, WF_OPSET_NEWEST = 25 };

/* Whether an exporter made the name up, for an initializer that is no parameter of the model as it
 * was: "onnx::Conv_193" and "val_12" (PyTorch), "const_fold_opt__7" and "W0__199" (tf2onnx). */
bool wf_onnx_made_up(const char *name);

/* Reads a model file; external data may lie in its folder or below. The caller owns *out.
 * Errors: WF_NOTFOUND, WF_IO; WF_INVALID for a file that is cut, nested too deep or contradicts
 * itself; WF_UNSUPPORTED for operations (all of them in one sentence), opsets, dtypes that weft
 * does not have; WF_SHAPE. All begin with the path. */
WF_MUST_USE wf_status wf_onnx_read(const char *path, wf_graph **out, wf_err *err);
/* What an input will be. */
typedef struct wf_onnx_feed {
    const char *name;
    wf_tensor *content;
} wf_onnx_feed;
/* The same for inputs that are fed just these: their shapes, and what small integers among them
 * are, count as known while the file is read, so that loops unroll by them. Names that are no
 * input, and what does not fit one, are passed over. */
WF_MUST_USE wf_status wf_onnx_read_fed(const char *path, size_t n, const wf_onnx_feed feeds[],
                                       wf_graph **out, wf_err *err);
/* A model from memory. `folder` is where external data may lie; NULL: external data is refused. */
WF_MUST_USE wf_status wf_onnx_decode(const void *data, size_t n, const char *folder, wf_graph **out,
                                     wf_err *err);
/* Appends a ModelProto to *out, which the caller owns. Errors: WF_NOMEM, WF_UNSUPPORTED. */
WF_MUST_USE wf_status wf_onnx_encode(const wf_graph *g, wf_bytes *out, wf_err *err);
/* Writes a model file in one step (see wf_file_write). */
WF_MUST_USE wf_status wf_onnx_write(const wf_graph *g, const char *path, wf_err *err);

#endif
