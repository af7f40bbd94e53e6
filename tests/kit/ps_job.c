/* SPDX-License-Identifier: Apache-2.0 */
/* tests/kit/ps_job.c */
#include "tests/kit/ps_job.h"
#include "common/base/cc.h"
#include "common/ckpt/shard.h"

#include <stdlib.h>

void wf_ps_job_init(wf_ps_job *j, uint32_t slices, uint32_t each, const char *rule)
{
    wf_assert(slices <= WF_PS_JOB_SLICES);
    j->dims[0] = (int64_t)slices * each;
    weft__variable__init(&j->variable);
    j->variable.name = (char *)"w";
    j->variable.dtype = WF_F32;
    j->variable.kind = 1;
    j->variable.dims = j->dims;
    j->variable.n_dims = 1;
    j->variables[0] = &j->variable;
    for (uint32_t i = 0; i < slices; i++) {
        weft__slice__init(&j->rows[i]);
        j->rows[i].offset = i * each;
        j->rows[i].count = each;
        j->slices[i] = &j->rows[i];
    }
    weft__setup__init(&j->setup);
    j->setup.job = (char *)"job";
    j->setup.digest = (char *)"d";
    j->setup.rule = (char *)rule;
    j->setup.checkpoint_dir = (char *)"/ckpt";
    j->setup.initial = true;
    j->setup.variables = j->variables;
    j->setup.n_variables = 1;
    j->setup.slices = j->slices;
    j->setup.n_slices = slices;
}

void wf_ps_job_write(const wf_ps_job *j, wf_disk *disk, const float values[])
{
    wf_shard_tensor t = {.name = "w", .dtype = WF_F32, .rank = 1, .dims = {j->dims[0]}};
    size_t bytes = (size_t)j->dims[0] * sizeof(float);
    float *zeroes = calloc(1, bytes);
    wf_shard_writer *writer = NULL;
    char sum[WF_SUM_TEXT];
    uint64_t written;

    wf_assert(zeroes);
    wf_assert(wf_disk_make_dirs(disk, "/ckpt/job", NULL) == WF_OK);
    wf_assert(wf_shard_create(disk, "/ckpt/job/initial.safetensors", &t, 1, NULL, 0, &writer,
                              NULL) == WF_OK);
    wf_assert(wf_shard_write(writer, values ? values : zeroes, bytes, NULL) == WF_OK);
    wf_assert(wf_shard_finish(&writer, &written, sum, NULL) == WF_OK);
    free(zeroes);
}
