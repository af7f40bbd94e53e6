/* SPDX-License-Identifier: Apache-2.0 */
/* cmd/cli/grad.c - gradients of a file's loss, or a kept step once more. */
#include "cmd/cli/once.h"
#include "cmd/cli/term.h"
#include "common/base/file.h"
#include "common/base/size.h"
#include "common/base/subnormal.h"
#include "common/kernels/pool.h"
#include "common/session/kept_step.h"
#include "common/session/npy.h"

#include <errno.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

static wf_status write_outputs(const wf_plan *p, const char *folder, wf_err *err)
{
    WF_TRY(wf_make_dirs(folder, err));
    for (uint32_t i = 0; i < wf_plan_n_outputs(p); i++) {
        const wf_port *o = wf_plan_output(p, i);

        WF_TRY(wf_npy_write(folder, o->variable ? o->variable : o->name, o->dtype, o->rank, o->dims,
                            wf_plan_output_data(p, i), err));
    }
    wf_term_print(stdout, "%u file%s written to %s\n", wf_plan_n_outputs(p),
                  wf_plan_n_outputs(p) == 1 ? "" : "s", folder);
    return WF_OK;
}

static wf_status replay(int argc, char *argv[], wf_err *err)
{
    const char *folder = NULL;
    const wf_flag flags[] = {{"output-dir", 'o', .value = &folder}, {0}};
    long n = sysconf(_SC_NPROCESSORS_ONLN);
    wf_pool *pool = NULL;
    wf_replay r = {0};
    wf_words words;
    wf_status rc;

    WF_TRY(wf_args(flags, argc, argv, 1, 1, &words, err));
    wf_flush_subnormals(); /* as every worker does */
    rc = wf_pool_new((uint32_t)WF_MAX(WF_MIN(n, (long)WF_POOL_MAX), 1L), &pool, err);
    if (rc == WF_OK)
        rc = wf_replay_open(words.word[0], pool, &r, err);
    if (rc == WF_OK)
        wf_term_print(stdout, "%s\n", r.said);
    if (rc == WF_OK && folder)
        rc = write_outputs(r.plan, folder, err);
    wf_replay_close(&r);
    wf_pool_free(&pool);
    return rc;
}

static wf_status run(int argc, char *argv[], wf_err *err)
{
    struct stat st;

    if (argc > 1 && stat(argv[1], &st) == 0 && S_ISDIR(st.st_mode))
        return replay(argc, argv, err);
    if (argc > 1 && argv[1][0] != '-' && stat(argv[1], &st) != 0)
        return wf_fail_errno(err, errno, "check the path", "cannot open %s", argv[1]);
    return wf_once_command(argc, argv, true, err);
}

const wf_cmd wf_cmd_grad = {
    .name = "grad",
    .help = "gradients of the loss of an ONNX file",
    .usage =
        "weft grad MODEL.onnx --loss NAME --input NAME=FILE.npy ... --output-dir DIR\n"
        "weft grad STATE_DIR/jobs/RUN/nan-STEP [--output-dir DIR]\n"
        "\n"
        "Differentiates the scalar output NAME with respect to every trainable initializer and\n"
        "writes each gradient as DIR/INITIALIZER.npy ('/' and ':' of the name become '_').\n"
        "Initializers that the loss does not depend on have zero gradients.\n"
        "The second form repeats a training step that made NaN, and names the operation where the\n"
        "first bad value appears; with --output-dir it also writes the gradients of the step.\n"
        "  --seed N           seed for random operations (default 0)\n"
        "  --threads N        number of threads (default: one per processor)\n"
        "  --device NAME      where to compute, like cuda:0 (default: cpu)\n"
        "  --memory-limit SIZE  the most memory, like 4GiB (default: 1 GiB plus 1024 times the\n"
        "                     size of file and inputs, within the machine's memory)\n"
        "\n"
        "  weft grad mlp.onnx --loss loss --input x=x.npy --input y=y.npy --output-dir grads\n"
        "  weft grad .weft/jobs/digits#1/nan-1204\n",
    .run = run,
};
