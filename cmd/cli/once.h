/* SPDX-License-Identifier: Apache-2.0 */
/* cmd/cli/once.h - an ONNX file evaluated once, here, from files into files: what `weft run` and
 * `weft grad` share. */
#ifndef WF_CMD_CLI_ONCE_H
#define WF_CMD_CLI_ONCE_H

#include "cmd/cli/cli.h"
#include "common/compile/compile.h"
#include <stdint.h>

typedef struct wf_once {
    const char *model;
    wf_words inputs;  /* NAME=FILE.npy */
    wf_words fetches; /* names of values; none: all outputs */
    const char *loss; /* of `grad`; NULL for `run` */
    const char *output_dir;
    uint64_t seed;
    uint32_t threads;
    size_t limit_bytes; /* of memory; 0: what the file and its feeds account for */
} wf_once;

/* What to do when a plan for a file takes more memory than the file accounts for. */
extern const char wf_memory_hint[];

/* Compiles the file as it stands, feeds it and writes each result as a .npy file; says on stdout
 * what was written. */
WF_MUST_USE wf_status wf_once_run(const wf_once *o, wf_compile_mode mode, wf_err *err);
/* Fills *o from the words of `weft run` and `weft grad`; `has_loss`: --loss is wanted. */
WF_MUST_USE wf_status wf_once_args(int argc, char *argv[], bool has_loss, wf_once *o, wf_err *err);

#endif
