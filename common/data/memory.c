/* SPDX-License-Identifier: Apache-2.0 */
/* common/data/memory.c - data that the program itself has in memory: read where it is, without a
 * copy. */
#include "common/data/memory.h"
#include "common/base/size.h"
#include "common/data/format.h"
#include "common/data/resize.h"

#include <stdio.h>
#include <string.h>

/* ---- the tensors ---- */

static wf_status check_name(const char *name, wf_err *err)
{
    static const char allowed[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
                                  "_.-";
    size_t n = strlen(name);

    if (n > 0 && n < WF_MEMORY_NAME && strspn(name, allowed) == n)
        return WF_OK;
    return wf_fail(err, WF_INVALID, "take letters, digits, \"_\", \".\" and \"-\"",
                   "\"%.64s\" is no name for data in memory", name);
}

/* A file's bools become 0 and 1 as they are read; these are read where they are. */
static wf_status check_bools(const char *name, const wf_tensor *t, size_t n, wf_err *err)
{
    const uint8_t *p = t->data;

    for (size_t i = 0; t->dtype == WF_BOOL && i < n; i++)
        if (p[i] > 1)
            return wf_fail(err, WF_INVALID, "bools are bytes of 0 and 1",
                           "data \"%s\": byte %zu is %u", name, i, p[i]);
    return WF_OK;
}

static wf_status check_tensor(const char *name, const wf_tensor *t, wf_err *err)
{
    int64_t elems;
    size_t bytes;

    if (t->rank == 0)
        return wf_fail(err, WF_INVALID, "give it a first axis, one entry a record",
                       "data \"%s\" is a single number and no records", name);
    if (!wf_dims_elems(t->rank, t->dims, &elems) || elems == 0 ||
        !wf_mul_size((size_t)elems, wf_dtype_size(t->dtype), &bytes))
        return wf_fail(err, WF_INVALID, NULL, "data \"%s\" holds no records", name);
    if ((uintptr_t)t->data % wf_dtype_size(t->dtype))
        return wf_fail(err, WF_INVALID, "copy it to memory of its own",
                       "data \"%s\": its elements are %zu bytes long and begin at an address that "
                       "is no multiple of that",
                       name, wf_dtype_size(t->dtype));
    return check_bools(name, t, (size_t)elems, err);
}

wf_status wf_memory_put(wf_memory *m, const char *name, wf_tensor **t, wf_err *err)
{
    size_t at = 0;

    WF_TRY(check_name(name, err));
    WF_TRY(check_tensor(name, *t, err));
    while (at < m->n && strcmp(m->rows[at].name, name) != 0)
        at++;
    if (at == WF_MEMORY_MOST)
        return wf_fail(err, WF_FULL, NULL, "data \"%s\": there are %d already, and no more may be",
                       name, WF_MEMORY_MOST);
    if (at == m->n)
        snprintf(m->rows[m->n++].name, WF_MEMORY_NAME, "%s", name);
    wf_tensor_free(&m->rows[at].tensor);
    m->rows[at].tensor = *t;
    *t = NULL;
    return WF_OK;
}

void wf_memory_close(wf_memory *m)
{
    while (m->n)
        wf_tensor_free(&m->rows[--m->n].tensor);
}

/* ---- the format ---- */

static wf_status memory_lend(const wf_dataset_spec *set, const wf_field_spec *field,
                             size_t limit_bytes, wf_array *out, wf_err *err)
{
    const char *slash = strrchr(field->path, '/'), *name = slash ? slash + 1 : field->path;
    const wf_memory *m = set->memory;
    const wf_tensor *t = NULL;
    size_t bytes = 0;

    if (!m)
        return wf_fail(err, WF_USAGE, "name files, in another format",
                       "field \"%.64s\": data of the format \"memory\" is only there in the "
                       "program that has it (weft_job_feed)",
                       field->name);
    for (size_t i = 0; !t && i < m->n; i++)
        if (strcmp(m->rows[i].name, name) == 0)
            t = m->rows[i].tensor;
    if (!t)
        return wf_fail(err, WF_USAGE, "give it with weft_job_feed",
                       "field \"%.64s\": there is no data \"%.64s\" in memory", field->name, name);
    bytes = wf_tensor_bytes(t);
    if (limit_bytes && bytes > limit_bytes)
        return wf_fail(err, WF_NOMEM, NULL, "\"%s\" takes %zu bytes, %zu are allowed", name, bytes,
                       limit_bytes);
    *out = (wf_array){.dtype = t->dtype, .rank = t->rank, .lent = true};
    memcpy(out->dims, t->dims, t->rank * sizeof t->dims[0]);
    if (!field->head_only || wf_resize_of(field)) {
        out->data = t->data;
        out->bytes = bytes;
    }
    return WF_OK;
}

const wf_format wf_format_memory = {.name = "memory", .lend = memory_lend};
