/* SPDX-License-Identifier: Apache-2.0 */
/* common/data/labels.c - labels that a loss cannot read: no class, or no share of one. */
#include "common/base/size.h"
#include "common/data/convert.h"
#include "common/data/dataset.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

enum { TILE = 256 };

static wf_status bad_label(const char *begin, double label, int64_t classes, wf_err *err)
{
    if (label != trunc(label))
        return wf_fail(err, WF_INVALID, "write class numbers, or take a loss for numbers, like mse",
                       "%s %.15g; classes are whole numbers, 0 to %" PRId64, begin, label,
                       classes - 1);
    return wf_fail(err, WF_INVALID, "change the data, or the number of units of the last layer",
                   "%s %.15g; there are %" PRId64 " classes, 0 to %" PRId64, begin, label, classes,
                   classes - 1);
}

wf_status wf_label_check_class(const char *begin, double label, int64_t classes, wf_err *err)
{
    if (label != trunc(label) || label < 0 || label >= (double)classes)
        return bad_label(begin, label, classes, err);
    return WF_OK;
}

wf_status wf_label_check_share(const wf_field *f, const void *record, const char *begin,
                               wf_err *err)
{
    size_t size = wf_dtype_size(f->info.dtype);

    for (size_t i = 0; i < f->info.record_bytes / size; i++) {
        double label;

        wf_convert(f->info.dtype, (const uint8_t *)record + i * size, WF_F64, &label, 1);
        if (!(label >= 0 && label <= 1))
            return wf_fail(err, WF_INVALID,
                           "write 0 and 1 into the data; hinge losses take -1 and 1",
                           "%s %.9g, and must be from 0 to 1", begin, label);
    }
    return WF_OK;
}

wf_field_range wf_dataset_range(const wf_dataset *d, uint32_t field_index)
{
    const wf_field *f = &d->fields[field_index];
    size_t size = wf_dtype_size(f->array.dtype), n, each;
    wf_field_range r = {.least = INFINITY, .most = -INFINITY};
    double tile[TILE];

    wf_assert(field_index < d->n_fields);
    if (size == 0) /* text, which is not here */
        return (wf_field_range){0};
    n = f->array.bytes / size;
    each = f->info.raw_record_bytes / size;
    for (size_t from = 0; from < n; from += TILE) {
        size_t now = WF_MIN(n - from, (size_t)TILE);

        wf_convert(f->array.dtype, (const uint8_t *)f->array.data + from * size, WF_F64, tile, now);
        for (size_t i = 0; i < now; i++) {
            if (tile[i] < r.least) {
                r.least = tile[i];
                r.least_at = (from + i) / each;
            }
            if (tile[i] > r.most) {
                r.most = tile[i];
                r.most_at = (from + i) / each;
            }
            if (r.broken == 0 && isfinite(tile[i]) && tile[i] != trunc(tile[i])) {
                r.broken = tile[i];
                r.broken_at = (from + i) / each;
            }
        }
    }
    if (r.least > r.most)
        return (wf_field_range){0};
    return r;
}

const char *wf_dataset_file(const wf_dataset *d, uint32_t field, uint64_t *record)
{
    const wf_field *f = &d->fields[field];

    *record += d->first;
    return f->parts.n ? wf_parts_find(&f->parts, *record, record)->path : f->info.path;
}

wf_status wf_dataset_check_labels(wf_dataset *d, uint32_t field_index, int64_t classes, wf_err *err)
{
    wf_field *f = &d->fields[field_index];
    const char *path = f->info.path;
    char begin[4096 + 64];
    wf_field_range r;
    bool low, high;
    uint64_t at;

    if (wf_steps_made(&f->steps)) {
        if (wf_steps_made(&f->steps) <= classes)
            return WF_OK;
        return wf_fail(err, WF_INVALID, "hash into fewer bins, or give the last layer more units",
                       "%s: labels \"%s\" are hashed into %" PRId64 " bins, and there are %" PRId64
                       " classes",
                       path, f->info.name, wf_steps_made(&f->steps), classes);
    }
    if (d->text) {
        f->classes = f->classes ? WF_MIN(f->classes, classes) : classes;
        return WF_OK;
    }
    r = wf_dataset_range(d, field_index);
    low = trunc(r.least) < 0;
    high = r.most >= (double)classes;
    if (!low && !high && r.broken == 0)
        return WF_OK;
    at = low ? r.least_at : high ? r.most_at : r.broken_at;
    path = wf_dataset_file(d, field_index, &at);
    snprintf(begin, sizeof begin, "%.4096s: record %" PRIu64 " has the label", path, at);
    return bad_label(begin, low ? r.least : high ? r.most : r.broken, classes, err);
}

wf_status wf_dataset_check_shares(wf_dataset *d, uint32_t field_index, wf_err *err)
{
    wf_field *f = &d->fields[field_index];
    void *record;
    wf_status rc = WF_OK;

    f->shares = true;
    if (d->text)
        return WF_OK;
    record = malloc(f->info.record_bytes + 1);
    if (!record)
        return wf_fail_nomem(err, f->info.record_bytes);
    for (uint64_t at = 0; rc == WF_OK && at < d->n_records; at++) {
        uint64_t in_file = at;
        const char *path = wf_dataset_file(d, field_index, &in_file);
        char begin[96];

        rc = wf_dataset_gather(d, field_index, &at, 1, record, err);
        if (rc != WF_OK)
            break;
        snprintf(begin, sizeof begin, "record %" PRIu64 " has the label", in_file);
        rc = wf_err_wrap(err, wf_label_check_share(f, record, begin, err), "%s", path);
    }
    free(record);
    return rc;
}
