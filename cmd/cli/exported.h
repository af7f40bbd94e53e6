/* SPDX-License-Identifier: Apache-2.0 */
/* cmd/cli/exported.h - what `weft export` says of the file that it has written. */
#ifndef WF_CMD_CLI_EXPORTED_H
#define WF_CMD_CLI_EXPORTED_H

#include "cmd/cli/library.h"
#include "cmd/cli/read_back.h"

/* "digits.onnx: 398 KiB, input x[batch,784] -> output[batch,10], accuracy 0.9785 (eval); 4 weights
 * of step-00018750" on stdout: `m` is the file read back, the metrics are those of the checkpoint.
 * `r` says what the weights were, and how they were rounded; `mapped` names the
 * inputs whose steps the file has in front, "" for none. */
void wf_exported_print(const wf_trained *t, const wf_read_back *r, const weft_model *m,
                       const char *file, const char *mapped);

#endif
