/* SPDX-License-Identifier: Apache-2.0 */
/* cmd/cli/once.h - an ONNX file evaluated once, here, from files into files: what `weft run` and
 * `weft grad` share. */
#ifndef WF_CMD_CLI_ONCE_H
#define WF_CMD_CLI_ONCE_H

#include "cmd/cli/cli.h"

/* What to do when a plan for a file takes more memory than the file accounts for. */
extern const char wf_memory_hint[];

/* The whole of `weft run`, or of `weft grad` (`has_loss`): reads the words, feeds the file and
 * writes each result as a .npy file; says on stdout what was written. */
WF_MUST_USE wf_status wf_once_command(int argc, char *argv[], bool has_loss, wf_err *err);

#endif
