/* SPDX-License-Identifier: Apache-2.0 */
/* common/ckpt/manifest_check.c - the rules of a manifest, held at both ends: what was checked
 * before it was written is checked again when it is read. */
#include "common/ckpt/manifest_check.h"
#include "common/ckpt/manifest_learnt.h"

#include <inttypes.h>
#include <string.h>

static bool sum_ok(const char *sum)
{
    return strlen(sum) == WF_SUM_TEXT - 1 && strspn(sum, "0123456789abcdef") == WF_SUM_TEXT - 1;
}

static wf_status check_variable(const wf_manifest *m, const wf_ckpt_variable *v, const char *path,
                                wf_status bad, wf_err *err)
{
    int64_t elems;
    uint64_t at = 0;

    if (!wf_dims_elems(v->rank, v->dims, &elems) || wf_dtype_size(v->dtype) == 0)
        return wf_fail(err, bad, NULL, "%s: variable \"%.200s\" has no size that fits", path,
                       v->name);
    for (size_t i = 0; i < v->n_slices; i++) {
        const wf_ckpt_slice *s = &v->slices[i];

        if (s->offset != at || s->count > (uint64_t)elems - at)
            return wf_fail(err, bad, NULL,
                           "%s: variable \"%.200s\": slice %zu begins at %" PRIu64 " with %" PRIu64
                           " elements, where %" PRIu64 " of %" PRId64 " are covered",
                           path, v->name, i, s->offset, s->count, at, elems);
        if (s->file >= m->n_files)
            return wf_fail(err, bad, NULL,
                           "%s: variable \"%.200s\": slice %zu is in file %" PRIu32 " of %zu", path,
                           v->name, i, s->file, m->n_files);
        at += s->count;
    }
    if (at != (uint64_t)elems)
        return wf_fail(err, bad, NULL,
                       "%s: variable \"%.200s\": its slices cover %" PRIu64 " of %" PRId64
                       " elements",
                       path, v->name, at, elems);
    return WF_OK;
}

static wf_status check_ledger(const wf_ckpt_ledger *l, const char *path, wf_status bad, wf_err *err)
{
    uint64_t at = 0;

    for (size_t i = 0; i < l->n_finished; i++) {
        const wf_ckpt_range *r = &l->finished[i];

        if (r->begin < at || r->end <= r->begin || r->end > l->records)
            return wf_fail(err, bad, NULL,
                           "%s: finished records %" PRIu64 "-%" PRIu64 " of %" PRIu64
                           " are out of order or bounds",
                           path, r->begin, r->end, l->records);
        at = r->end;
    }
    for (size_t i = 0; i < l->n_open; i++) {
        const wf_ckpt_split *s = &l->open[i];

        if (s->next < s->begin || s->end < s->next || s->end > l->records)
            return wf_fail(err, bad, NULL,
                           "%s: open split %" PRIu64 " stands at %" PRIu64 " in %" PRIu64
                           "-%" PRIu64 " of %" PRIu64 " records",
                           path, s->id, s->next, s->begin, s->end, l->records);
    }
    return WF_OK;
}

wf_status wf_manifest_check(const wf_manifest *m, const char *path, wf_status bad, wf_err *err)
{
    for (size_t i = 0; i < m->n_files; i++) {
        const wf_ckpt_file *f = &m->files[i];

        /* A name from a file becomes a path: it must stay in its folder. */
        if (!f->name[0] || f->name[0] == '.' || strchr(f->name, '/'))
            return wf_fail(err, bad, NULL, "%s: \"%.200s\" is no name of a shard", path, f->name);
        if (!sum_ok(f->sum))
            return wf_fail(err, bad, NULL, "%s: file \"%.200s\" has no checksum", path, f->name);
        for (size_t k = 0; k < i; k++)
            if (strcmp(m->files[k].name, f->name) == 0)
                return wf_fail(err, bad, NULL, "%s: file \"%.200s\" is named twice", path, f->name);
    }
    for (size_t i = 0; i < m->n_variables; i++)
        WF_TRY(check_variable(m, &m->variables[i], path, bad, err));
    WF_TRY(wf_manifest_learnt_check(m, path, bad, err));
    return check_ledger(&m->ledger, path, bad, err);
}
