/* SPDX-License-Identifier: Apache-2.0 */
/* cmd/cli/grad.c */
#include "cmd/cli/once.h"

static wf_status run(int argc, char *argv[], wf_err *err)
{
    return wf_once_command(argc, argv, true, err);
}

const wf_cmd wf_cmd_grad = {
    .name = "grad",
    .help = "gradients of the loss of an ONNX file",
    .usage =
        "weft grad MODEL.onnx --loss NAME --input NAME=FILE.npy ... --output-dir DIR\n\n"
        "Differentiates the scalar output NAME by every trainable initializer and writes each\n"
        "gradient as DIR/INITIALIZER.npy, with '/' and ':' of the name as '_'. An initializer "
        "that\n"
        "the loss does not depend on gets zeroes.\n"
        "  --seed N           of random operations (0)\n"
        "  --threads N        (one per processor)\n"
        "  --memory-limit SIZE  at most that much, like 4GiB (1 GiB and 1024 times what file and\n"
        "                     inputs hold, within the machine's memory)\n\n"
        "  weft grad mlp.onnx --loss loss --input x=x.npy --input y=y.npy --output-dir grads\n",
    .run = run,
};
