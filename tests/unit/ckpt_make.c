/* SPDX-License-Identifier: Apache-2.0 */
/* tests/unit/ckpt_make.c */
#include "ckpt_make.h"

#include <stdio.h>
#include <string.h>

static const char *const slots[] = {NULL, "m", "v"};
static const double learnt_numbers[] = {1.0 / 3, 5e-324};

static wf_status put_slice(wf_shard_writer *w, uint64_t step, uint64_t offset, uint64_t count,
                           wf_err *err)
{
    float values[KERNEL];

    for (int slot = 0; slot < 3; slot++) {
        for (uint64_t i = 0; i < count; i++)
            values[i] = value_at(step, slot, offset + i);
        WF_TRY(wf_shard_write(w, values, count * sizeof values[0], err));
    }
    return WF_OK;
}

static size_t declare(wf_shard_tensor t[], char names[][64], size_t n, const char *variable,
                      uint64_t offset, uint64_t count, int whole)
{
    for (int slot = 0; slot < 3; slot++, n++) {
        wf_ckpt_tensor_name(variable, slots[slot], offset, whole, names[n], sizeof names[n]);
        t[n] = (wf_shard_tensor){.name = names[n], .dtype = WF_F32, .rank = 1};
        t[n].dims[0] = (int64_t)count;
    }
    return n;
}

static wf_status make_shard(wf_disk *disk, const char *folder, uint32_t index, const char *job,
                            wf_cut_id cut, uint64_t step, wf_ckpt_file *file, wf_err *err)
{
    char path[WF_CKPT_PATH + 80], cut_text[WF_CUT_TEXT], names[6][64];
    wf_shard_meta meta[WF_CKPT_N_META];
    wf_shard_tensor t[6];
    wf_shard_writer *w = NULL;
    uint64_t first = index ? CUT_AT : 0, count = index ? KERNEL - CUT_AT : CUT_AT;
    size_t n = declare(t, names, 0, "dense/kernel", first, count, 0);
    wf_status rc;

    if (index)
        n = declare(t, names, n, "dense/bias", 0, BIAS, 1);
    wf_ckpt_meta(job, cut, cut_text, meta);
    snprintf(path, sizeof path, "%s/%s", folder, file->name);
    WF_TRY(wf_shard_create(disk, path, t, n, meta, WF_CKPT_N_META, &w, err));
    rc = put_slice(w, step, first, count, err);
    if (rc == WF_OK && index)
        rc = put_slice(w, step, 0, BIAS, err);
    if (rc == WF_OK)
        rc = wf_shard_finish(&w, &file->bytes, file->sum, err);
    wf_shard_abort(&w);
    return rc;
}

static wf_status write_all(wf_disk *disk, const char *dir, const char *folder, const char *job,
                           const char *digest, wf_cut_id cut, uint64_t step, wf_err *err)
{
    char names[2][64];
    wf_ckpt_file files[2] = {{.name = names[0]}, {.name = names[1]}};
    wf_ckpt_slice kernel[] = {{0, CUT_AT, 0, step}, {CUT_AT, KERNEL - CUT_AT, 1, step + 1}};
    wf_ckpt_slice bias[] = {{0, BIAS, 1, step}};
    wf_ckpt_variable variables[] = {
        {.name = "dense/kernel",
         .dtype = WF_F32,
         .rank = 2,
         .dims = {6, 4},
         .kind = "trainable",
         .slots = {"m", "v"},
         .n_slots = 2,
         .slices = kernel,
         .n_slices = 2},
        {.name = "dense/bias",
         .dtype = WF_F32,
         .rank = 1,
         .dims = {4},
         .kind = "trainable",
         .slots = {"m", "v"},
         .n_slots = 2,
         .slices = bias,
         .n_slices = 1},
    };
    wf_ckpt_number options[] = {{"learning_rate", 0.001}, {"beta_1", 0.9}};
    wf_ckpt_number metrics[] = {{"loss", 0.125}};
    wf_ckpt_range finished[] = {{0, 100}, {200, 300}};
    wf_ckpt_split open[] = {{7, 100, 132, 200}};
    wf_learnt learnt[] = {{.field = "x",
                           .step = 1,
                           .type = "standardise",
                           .dtype = WF_U8,
                           .rank = 2,
                           .dims = {28, 28},
                           .numbers = learnt_numbers,
                           .n_numbers = 2}};
    wf_ckpt_clock clocks[] = {{0, UINT64_C(0xfedcba9876543210), step / 2}, {1, 5, step / 2}};
    wf_manifest m = {.job = job,
                     .global_step = step,
                     .cut = cut,
                     .pause_ms = 3,
                     .created_ms = INT64_C(1700000000000),
                     .seed = UINT64_MAX,
                     .weft = "0.1.0",
                     .rule = "adam",
                     .options = options,
                     .n_options = 2,
                     .variables = variables,
                     .n_variables = 2,
                     .files = files,
                     .n_files = 2,
                     .clocks = clocks,
                     .n_clocks = 2,
                     .metrics = metrics,
                     .n_metrics = 1,
                     .learnt = learnt,
                     .n_learnt = 1,
                     .ledger = {.epoch = 2,
                                .records = 600,
                                .split_records = 100,
                                .evaluated = true,
                                .next_cut = step + 50,
                                .finished = finished,
                                .n_finished = 2,
                                .open = open,
                                .n_open = 1}};

    snprintf(m.digest, sizeof m.digest, "%s", digest);
    for (uint32_t i = 0; i < 2; i++) {
        wf_ckpt_shard_name(i, 2, names[i], sizeof names[i]);
        WF_TRY(make_shard(disk, folder, i, job, cut, step, &files[i], err));
    }
    return wf_ckpt_commit(disk, dir, folder, &m, err);
}

wf_status make_ckpt(wf_disk *disk, const char *dir, const char *job, const char *digest,
                    wf_cut_id cut, uint64_t step, uint32_t keep, wf_err *err)
{
    char folder[WF_CKPT_PATH];
    wf_status rc;

    WF_TRY(wf_ckpt_begin(disk, dir, job, cut, folder, err));
    rc = write_all(disk, dir, folder, job, digest, cut, step, err);
    if (rc != WF_OK) {
        wf_status gone = wf_ckpt_abandon(disk, folder, NULL);

        (void)gone; /* tests look at what is left */
        return rc;
    }
    return keep ? wf_ckpt_gc(disk, dir, job, keep, 0, err) : WF_OK;
}

static bool knows_learnt(const wf_manifest *m)
{
    const wf_learnt *l = m->learnt;

    return m->n_learnt == 1 && strcmp(l->field, "x") == 0 && l->step == 1 &&
           strcmp(l->type, "standardise") == 0 && l->dtype == WF_U8 && l->rank == 2 &&
           l->dims[1] == 28 && l->n_numbers == 2 &&
           memcmp(l->numbers, learnt_numbers, sizeof learnt_numbers) == 0;
}

int ckpt_is_of(wf_ckpt *c, uint64_t step)
{
    float values[KERNEL];

    if (wf_ckpt_manifest(c)->global_step != step || !knows_learnt(wf_ckpt_manifest(c)))
        return 0;
    for (int slot = 0; slot < 3; slot++) {
        if (wf_ckpt_read_range(c, "dense/kernel", slots[slot], 0, KERNEL, values, NULL) != WF_OK)
            return 0;
        for (uint64_t i = 0; i < KERNEL; i++)
            if (values[i] != value_at(step, slot, i))
                return 0;
        if (wf_ckpt_read_range(c, "dense/bias", slots[slot], 0, BIAS, values, NULL) != WF_OK)
            return 0;
        for (uint64_t i = 0; i < BIAS; i++)
            if (values[i] != value_at(step, slot, i))
                return 0;
    }
    return 1;
}
