/* SPDX-License-Identifier: Apache-2.0 */
/* common/data/example.c */
#include "common/data/example.h"
#include "common/base/nearest.h"
#include "common/base/size.h"

#include <stdbool.h>
#include <string.h>

enum { VARINT = 0, FIXED64 = 1, LENGTH = 2, FIXED32 = 5 }; /* wire types */
enum { SHOWN = 24 /* names in a hint */, NAME = 64 };

typedef struct span {
    const uint8_t *at, *end;
} span;

/* One field of a message. */
typedef struct item {
    uint64_t number, wire, value; /* the value of a varint */
    span body;                    /* of all others */
} item;

/* ---- fields ---- */

static bool read_varint(span *s, uint64_t *out)
{
    *out = 0;
    for (int shift = 0; s->at < s->end && shift < 64; shift += 7) {
        uint8_t byte = *s->at++;

        *out |= (uint64_t)(byte & 0x7f) << shift;
        if (byte < 0x80)
            return true;
    }
    return false;
}

static bool read_body(span *s, uint64_t n, span *out)
{
    if (n > (uint64_t)(s->end - s->at))
        return false;
    *out = (span){s->at, s->at + n};
    s->at += n;
    return true;
}

/* The next field of a message that has not ended. */
static bool next(span *s, item *out)
{
    uint64_t tag, n = 0;

    if (!read_varint(s, &tag))
        return false;
    *out = (item){.number = tag >> 3, .wire = tag & 7};
    if (out->number == 0)
        return false;
    if (out->wire == VARINT)
        return read_varint(s, &out->value);
    if (out->wire == LENGTH && !read_varint(s, &n))
        return false;
    return (out->wire == FIXED64 || out->wire == LENGTH || out->wire == FIXED32) &&
           read_body(s,
                     out->wire == FIXED64   ? 8
                     : out->wire == FIXED32 ? 4
                                            : n,
                     &out->body);
}

/* The name and the feature of an entry; one that is not there is empty. */
static bool read_entry(span s, span *name, span *feature)
{
    item it;

    *name = *feature = (span){s.end, s.end};
    while (s.at < s.end) {
        if (!next(&s, &it))
            return false;
        if (it.wire == LENGTH && it.number == 1)
            *name = it.body;
        else if (it.wire == LENGTH && it.number == 2)
            *feature = it.body;
    }
    return true;
}

/* ---- values ---- */

/* Counts the values of a field of a list, packed or not. */
static bool count_values(wf_feature *f, const item *it)
{
    span s = it->body;
    uint64_t value;

    if (f->dtype == WF_U8) {
        uint64_t n = (uint64_t)(s.end - s.at);

        if (it->wire != LENGTH || (f->n++ > 0 && f->bytes != n))
            return false;
        f->bytes = n;
        return true;
    }
    if (it->wire == (f->dtype == WF_F32 ? FIXED32 : VARINT)) {
        f->n++;
        return true;
    }
    if (it->wire != LENGTH || (f->dtype == WF_F32 && (s.end - s.at) % 4 != 0))
        return false;
    if (f->dtype == WF_F32)
        f->n += (uint64_t)(s.end - s.at) / 4;
    for (; f->dtype == WF_I64 && s.at < s.end; f->n++)
        if (!read_varint(&s, &value))
            return false;
    return true;
}

/* The list of a feature, of which one kind is set. */
static bool read_feature(span s, wf_feature *f)
{
    static const wf_dtype kinds[] = {WF_NONE, WF_U8, WF_F32, WF_I64};
    item it;

    *f = (wf_feature){.dtype = WF_NONE};
    while (s.at < s.end) {
        if (!next(&s, &it))
            return false;
        if (it.wire == LENGTH && it.number < WF_COUNT(kinds))
            *f = (wf_feature){it.body.at, it.body.end, kinds[it.number], 0, 0};
    }
    s = (span){f->at, f->end};
    while (s.at < s.end) {
        if (!next(&s, &it) || (it.number == 1 && !count_values(f, &it)))
            return false;
    }
    return true;
}

/* The values of a packed list, or of one that is not packed, one field at a time: how many. */
static uint64_t copy_some(const wf_feature *f, const item *it, uint64_t most, uint8_t *to)
{
    size_t n = (size_t)(it->body.end - it->body.at);
    uint64_t copied = 0, value;

    if (f->dtype == WF_U8) {
        memcpy(to, it->body.at, n);
        return 1;
    }
    if (f->dtype == WF_F32) {
        copied = WF_MIN(n / sizeof(float), most);
        memcpy(to, it->body.at, (size_t)copied * sizeof(float));
        return copied;
    }
    if (it->wire != LENGTH) {
        memcpy(to, &it->value, sizeof it->value);
        return 1;
    }
    for (span packed = it->body; packed.at < packed.end && copied < most; copied++)
        if (read_varint(&packed, &value))
            memcpy(to + copied * sizeof value, &value, sizeof value);
    return copied;
}

void wf_feature_copy(const wf_feature *f, uint64_t most, void *out)
{
    size_t each = f->dtype == WF_U8 ? (size_t)f->bytes : wf_dtype_size(f->dtype);
    span s = {f->at, f->end};
    uint64_t copied = 0;
    item it = {0};

    while (copied < most && s.at < s.end && next(&s, &it))
        if (it.number == 1)
            copied += copy_some(f, &it, most - copied, (uint8_t *)out + copied * each);
}

/* ---- examples ---- */

static wf_status no_example(wf_err *err)
{
    return wf_fail(err, WF_INVALID, "write records of tf.train.Example, not SequenceExample",
                   "it is no tf.Example");
}

static wf_status not_there(const char names[][NAME], size_t n, const char *name, wf_err *err)
{
    const char *known[SHOWN];
    char hint[WF_NEAREST_HINT];

    for (size_t i = 0; i < n; i++)
        known[i] = names[i];
    wf_nearest_hint(name, known, n, NULL, hint);
    return name[0] ? wf_fail(err, WF_NOTFOUND, hint, "it has no feature \"%.64s\"", name)
                   : wf_fail(err, WF_NOTFOUND, hint, "name a feature of it, FILE#FEATURE");
}

wf_status wf_example_find(const void *example, size_t n, const char *name, wf_feature *out,
                          wf_err *err)
{
    span s = {example, (const uint8_t *)example + n}, features, key, body, found = {0};
    char names[SHOWN][NAME];
    size_t n_names = 0;
    item it;

    while (s.at < s.end) {
        if (!next(&s, &it))
            return no_example(err);
        if (it.wire != LENGTH || it.number != 1)
            continue;
        for (features = it.body; features.at < features.end;) {
            if (!next(&features, &it) || (it.number == 1 && it.wire != LENGTH))
                return no_example(err);
            if (it.number != 1)
                continue;
            if (!read_entry(it.body, &key, &body))
                return no_example(err);
            n = (size_t)(key.end - key.at);
            if (n == strlen(name) && memcmp(key.at, name, n) == 0)
                found = body; /* of equal names the last counts, as in any protobuf map */
            if (n_names < SHOWN && n < NAME) {
                memcpy(names[n_names], key.at, n);
                names[n_names++][n] = 0;
            }
        }
    }
    if (!found.at)
        return not_there(names, n_names, name, err);
    if (read_feature(found, out))
        return WF_OK;
    return wf_fail(err, WF_INVALID, "write values of one length in each feature",
                   "the feature \"%.64s\" is damaged, or its values are of several lengths", name);
}
