/* SPDX-License-Identifier: Apache-2.0 */
/* common/ckpt/initial.c */
#include "common/ckpt/initial.h"
#include "common/base/size.h"
#include "common/ckpt/ckpt.h"
#include "common/ckpt/sum.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { BLOCK = 1 << 20 };

static void add_text(wf_sum *s, const char *text)
{
    wf_sum_add(s, text, strlen(text) + 1);
}

static wf_sum *begin(const char *job, const char *digest)
{
    wf_sum *s = wf_sum_begin();

    if (s) {
        add_text(s, job);
        add_text(s, digest);
    }
    return s;
}

/* The elements' bytes follow. */
static void add_head(wf_sum *s, const wf_shard_tensor *t)
{
    char text[128];

    add_text(s, t->name);
    add_text(s, wf_dtype_name(t->dtype));
    add_text(s, wf_dims_str(t->rank, t->dims, text, sizeof text));
}

typedef struct named {
    const wf_shard_tensor *head;
    const wf_tensor *content; /* NULL: in the file */
} named;

static int by_name(const void *a, const void *b)
{
    return strcmp(((const named *)a)->head->name, ((const named *)b)->head->name);
}

wf_status wf_initial_sum(const char *job, const char *digest, size_t n,
                         const wf_shard_tensor tensors[], const wf_tensor *const content[],
                         char sum[WF_SUM_TEXT], wf_err *err)
{
    named *list = calloc(n + 1, sizeof *list);
    wf_sum *s = begin(job, digest);
    wf_status rc = s && list ? WF_OK : wf_fail_nomem(err, n * sizeof *list);

    for (size_t i = 0; rc == WF_OK && i < n; i++)
        list[i] = (named){&tensors[i], content[i]};
    if (rc == WF_OK && n)
        qsort(list, n, sizeof *list, by_name);
    for (size_t i = 0; rc == WF_OK && i < n; i++) {
        add_head(s, list[i].head);
        wf_sum_add(s, list[i].content->data, wf_tensor_bytes(list[i].content));
    }
    wf_sum_end(&s, rc == WF_OK ? sum : NULL);
    free(list);
    return rc;
}

static wf_status add_content(wf_sum *s, wf_shard *shard, const wf_shard_tensor *t, void *block,
                             wf_err *err)
{
    for (uint64_t at = 0; at < t->bytes;) {
        size_t n = (size_t)WF_MIN(t->bytes - at, (uint64_t)BLOCK);

        WF_TRY(wf_shard_read(shard, t, at, block, n, err));
        wf_sum_add(s, block, n);
        at += n;
    }
    return WF_OK;
}

static wf_status sum_of_file(wf_shard *shard, const char *job, char sum[WF_SUM_TEXT], wf_err *err)
{
    const char *digest = wf_shard_meta_find(shard, "digest");
    size_t n = wf_shard_count(shard);
    named *list = calloc(n + 1, sizeof *list);
    wf_sum *s = begin(job, digest ? digest : "");
    void *block = malloc(BLOCK);
    wf_status rc = s && list && block ? WF_OK : wf_fail_nomem(err, BLOCK + n * sizeof *list);

    for (size_t i = 0; rc == WF_OK && i < n; i++)
        list[i].head = wf_shard_at(shard, i);
    if (rc == WF_OK && n)
        qsort(list, n, sizeof *list, by_name);
    for (size_t i = 0; rc == WF_OK && i < n; i++) {
        add_head(s, list[i].head);
        rc = add_content(s, shard, list[i].head, block, err);
    }
    free(block);
    free(list);
    wf_sum_end(&s, sum);
    return rc;
}

static wf_status check(wf_shard *shard, const char *job, bool *has_sum, wf_err *err)
{
    const char *has = wf_shard_meta_find(shard, "job");
    const char *wanted = wf_shard_meta_find(shard, WF_INITIAL_SUM);
    char sum[WF_SUM_TEXT] = "";

    *has_sum = wanted;
    if (!has || strcmp(has, job) != 0)
        return wf_fail(err, WF_CORRUPT, NULL, WF_INITIAL_NAME " belongs to job \"%.64s\"",
                       has ? has : "");
    WF_TRY(sum_of_file(shard, job, sum, err));
    if (wanted && strcmp(wanted, sum) != 0)
        return wf_fail(err, WF_CORRUPT, "remove it: a job that begins anew writes it again",
                       WF_INITIAL_NAME ": checksum differs; it was damaged after it was written");
    return WF_OK;
}

static wf_status open_initial(wf_disk *disk, const char *dir, const char *job, wf_shard **out,
                              wf_err *err)
{
    char path[WF_CKPT_PATH];

    if (snprintf(path, sizeof path, "%s/%s/" WF_INITIAL_NAME, dir, job) >= (int)sizeof path)
        return wf_fail(err, WF_INVALID, NULL, "the path %.200s... is too long", dir);
    return wf_shard_open(disk, path, out, err);
}

wf_status wf_initial_matches(wf_disk *disk, const char *dir, const char *job, const char *sum,
                             bool *matches, wf_err *err)
{
    wf_shard *shard = NULL;
    wf_status rc = open_initial(disk, dir, job, &shard, err);
    const char *has = rc == WF_OK ? wf_shard_meta_find(shard, WF_INITIAL_SUM) : NULL;
    bool has_sum;

    *matches = false;
    if (has && strcmp(has, sum) == 0) {
        rc = check(shard, job, &has_sum, err);
        *matches = rc == WF_OK;
    }
    wf_shard_close(&shard);
    return rc == WF_NOTFOUND || rc == WF_CORRUPT ? WF_OK : rc;
}

wf_status wf_initial_verify(wf_disk *disk, const char *dir, const char *job, bool *has_sum,
                            wf_err *err)
{
    wf_shard *shard = NULL;
    wf_status rc = open_initial(disk, dir, job, &shard, err);

    if (rc == WF_OK)
        rc = check(shard, job, has_sum, err);
    wf_shard_close(&shard);
    return rc;
}
