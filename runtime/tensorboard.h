/* SPDX-License-Identifier: Apache-2.0 */
/* runtime/tensorboard.h - records of TensorBoard's event files: TFRecord framing (length, masked
 * CRC-32C of it, data, masked CRC-32C of them; TensorFlow, lib/io/record_writer.cc) around the
 * protobuf message Event (TensorFlow, util/event.proto). */
#ifndef WF_RUNTIME_TENSORBOARD_H
#define WF_RUNTIME_TENSORBOARD_H

#include "common/base/bytes.h"
#include <stdint.h>

/* What each file begins with. */
void wf_tb_version(wf_bytes *out, double wall_s);
/* The run has gone back to `step`: later points of files before are void. */
void wf_tb_restart(wf_bytes *out, double wall_s, int64_t step);
/* One number under a name. */
void wf_tb_scalar(wf_bytes *out, double wall_s, int64_t step, const char *tag, float value);

/* A text in Markdown under a name, as the Text plugin reads it. */
void wf_tb_text(wf_bytes *out, double wall_s, const char *tag, const char *text);
/* A packed GraphDef (runtime/graph_def.h). */
void wf_tb_graph(wf_bytes *out, double wall_s, const wf_bytes *graph);

#endif
