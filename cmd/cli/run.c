/* SPDX-License-Identifier: Apache-2.0 */
/* cmd/cli/run.c */
#include "cmd/cli/once.h"

static wf_status run(int argc, char *argv[], wf_err *err)
{
    return wf_once_command(argc, argv, false, err);
}

const wf_cmd wf_cmd_run = {
    .name = "run",
    .help = "run an ONNX file on given inputs",
    .usage =
        "weft run MODEL.onnx --input NAME=FILE.npy ... --output-dir DIR\n\n"
        "Evaluates the file as it stands and writes each output as DIR/NAME.npy, with '/' and ':'\n"
        "of the name as '_'. An operation that weft does not have ends with exit code 3.\n"
        "  --fetch NAME       other values than the outputs; may be given again\n"
        "  --seed N           of random operations (0)\n"
        "  --threads N        (one per processor)\n"
        "  --memory-limit SIZE  at most that much, like 4GiB (1 GiB and 1024 times what file and\n"
        "                     inputs hold, within the machine's memory)\n\n"
        "  weft run mlp.onnx --input x=images.npy --output-dir out\n",
    .run = run,
};
