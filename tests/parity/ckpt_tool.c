/* SPDX-License-Identifier: Apache-2.0 */
/* tests/parity/ckpt_tool.c - checkpoints on a real disk for the Python tests.
 *
 *   ckpt_tool make DIR JOB DIGEST STEP   one with the variables of tests/unit/ckpt_make.h
 *   ckpt_tool list FILE                  name, dtype, shape and sum of each f32 tensor of any shard
 */
#include "../unit/ckpt_make.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int complain(const wf_err *err)
{
    fprintf(stderr, "%s\n", err->what);
    return 1;
}

static int make(char *argv[])
{
    wf_cut_id cut = {1, 1, 0xabc};
    wf_err err = {0};

    if (make_ckpt(wf_disk_posix(), argv[0], argv[1], argv[2], cut, strtoull(argv[3], NULL, 10), 0,
                  &err) != WF_OK)
        return complain(&err);
    return 0;
}

static wf_status print_one(wf_shard *s, const wf_shard_tensor *t, wf_err *err)
{
    char shape[128];
    double sum = 0;

    for (uint64_t at = 0; t->dtype == WF_F32 && at < t->bytes; at += 4) {
        float x;

        WF_TRY(wf_shard_read(s, t, at, &x, sizeof x, err));
        sum += x;
    }
    printf("%s %s %s %.9g\n", t->name, wf_dtype_name(t->dtype),
           wf_dims_str(t->rank, t->dims, shape, sizeof shape), sum);
    return WF_OK;
}

static int list(const char *path)
{
    wf_shard *s = NULL;
    wf_err err = {0};
    wf_status rc = wf_shard_open(wf_disk_posix(), path, &s, &err);

    for (size_t i = 0; rc == WF_OK && i < wf_shard_count(s); i++)
        rc = print_one(s, wf_shard_at(s, i), &err);
    wf_shard_close(&s);
    return rc == WF_OK ? 0 : complain(&err);
}

int main(int argc, char *argv[])
{
    if (argc == 6 && strcmp(argv[1], "make") == 0)
        return make(argv + 2);
    if (argc == 3 && strcmp(argv[1], "list") == 0)
        return list(argv[2]);
    fprintf(stderr, "ckpt_tool make DIR JOB DIGEST STEP | list FILE\n");
    return 2;
}
