/* SPDX-License-Identifier: Apache-2.0 */
/* common/data/libsvm_record.c */
#include "common/data/libsvm_record.h"
#include "common/base/size.h"
#include "common/data/number.h"

#include <inttypes.h>
#include <string.h>

enum { MOST_DIGITS = 18 /* of an index, which then fits */, SHOWN = 32 };

static bool is_blank(char c)
{
    return c == ' ' || c == '\t';
}

static void pass_blanks(wf_libsvm_record *r)
{
    while (r->at < r->end && is_blank(*r->at))
        r->at++;
}

/* The word at `at`, for messages. */
static int word_at(const wf_libsvm_record *r, const char *at)
{
    int n = 0;

    while (at + n < r->end && n < SHOWN && !is_blank(at[n]))
        n++;
    return n;
}

/* A number up to a blank or the end. */
static bool read_number(wf_libsvm_record *r, double *out)
{
    const char *at = r->at, *after = at + 1;

    if (at < r->end && *at >= '0' && *at <= '9' && (after == r->end || is_blank(*after))) {
        *out = *at - '0'; /* as most values of sparse data are */
        r->at = after;
        return true;
    }
    after = wf_number_read(at, r->end, out);
    if (!after || (after < r->end && !is_blank(*after)))
        return false;
    r->at = after;
    return true;
}

wf_status wf_libsvm_begin(wf_libsvm_record *r, const char *text, size_t n, bool zero_based,
                          double *label, wf_err *err)
{
    const char *comment = memchr(text, '#', n);
    const char *word;

    *r = (wf_libsvm_record){.at = text, .end = comment ? comment : text + n};
    r->base = r->least = zero_based ? 0 : 1;
    pass_blanks(r);
    word = r->at;
    if (read_number(r, label))
        return WF_OK;
    if (word == r->end)
        return wf_fail(err, WF_INVALID, "write LABEL INDEX:VALUE ...", "a line without a label");
    return wf_fail(err, WF_INVALID, "write LABEL INDEX:VALUE ...; a label is one number",
                   "the label \"%.*s\" is not a number", word_at(r, word), word);
}

static wf_status bad_pair(const wf_libsvm_record *r, const char *word, wf_err *err)
{
    int n = word_at(r, word);

    if (n >= 4 && memcmp(word, "qid:", 4) == 0)
        return wf_fail(err, WF_UNSUPPORTED, "leave query ids out; weft does not train rankings",
                       "the query id \"%.*s\"", n, word);
    return wf_fail(err, WF_INVALID, "write INDEX:VALUE, without blanks and with finite numbers",
                   "\"%.*s\" is no pair of an index and a number", n, word);
}

static wf_status bad_index(const wf_libsvm_record *r, uint64_t index, wf_err *err)
{
    if (index < r->base)
        return wf_fail(err, WF_INVALID, "write zero_based: true in data if they count from 0",
                       "the index 0, where indices count from 1");
    return wf_fail(err, WF_INVALID, "sort each line by its indices, and name each index once",
                   "the index %" PRIu64 " stands behind %" PRIu64, index, r->least - 1);
}

static bool pass_to_index(wf_libsvm_record *r, uint64_t *feature)
{
    const char *at = r->at;
    uint64_t index = 0;

    for (; at < r->end && *at >= '0' && *at <= '9' && at - r->at < MOST_DIGITS; at++)
        index = index * 10 + (uint64_t)(*at - '0');
    if (at == r->at || at == r->end || *at != ':' || index < r->least)
        return false;
    while (at < r->end && !is_blank(*at))
        at++;
    r->at = at;
    r->least = index + 1;
    *feature = index - r->base;
    return true;
}

static bool pass_to_value(wf_libsvm_record *r, double *value)
{
    wf_libsvm_record from = *r;

    while (r->at < r->end && *r->at != ':')
        r->at++;
    if (r->at++ < r->end && read_number(r, value))
        return true;
    *r = from;
    return false;
}

bool wf_libsvm_pass(wf_libsvm_record *r, wf_libsvm_part wanted, uint64_t *feature, double *value)
{
    pass_blanks(r);
    return wanted == WF_LIBSVM_INDEX ? pass_to_index(r, feature) : pass_to_value(r, value);
}

wf_status wf_libsvm_next(wf_libsvm_record *r, bool *any, uint64_t *feature, double *value,
                         wf_err *err)
{
    const char *at, *word;
    uint64_t index = 0;

    pass_blanks(r);
    *any = r->at < r->end;
    if (!*any)
        return WF_OK;
    at = word = r->at;
    for (; at < r->end && *at >= '0' && *at <= '9' && at - word < MOST_DIGITS; at++)
        index = index * 10 + (uint64_t)(*at - '0');
    if (at == word || at == r->end || *at != ':')
        return bad_pair(r, word, err);
    r->at = at + 1;
    if (!read_number(r, value))
        return bad_pair(r, word, err);
    if (index < r->least)
        return bad_index(r, index, err);
    r->least = index + 1;
    *feature = index - r->base;
    return WF_OK;
}
