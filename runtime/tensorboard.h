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

#endif
