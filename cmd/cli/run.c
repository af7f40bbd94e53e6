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
        "weft run MODEL.onnx --input NAME=FILE.npy ... --output-dir DIR\n"
        "\n"
        "Runs an ONNX file and writes each output as DIR/NAME.npy ('/' and ':' of the name become\n"
        "'_'). Exit code 3: the file has an operation that weft does not support.\n"
        "  --fetch NAME       write this value instead of the outputs; may be given several times\n"
        "  --seed N           seed for random operations (default 0)\n"
        "  --threads N        number of threads (default: one per processor)\n"
        "  --device NAME      where to compute, like cuda:0 (default: cpu)\n"
        "  --memory-limit SIZE  the most memory, like 4GiB (default: 1 GiB plus 1024 times the\n"
        "                     size of file and inputs, within the machine's memory)\n"
        "\n"
        "  weft run mlp.onnx --input x=images.npy --output-dir out\n",
    .run = run,
};
