/* SPDX-License-Identifier: Apache-2.0 */
/* common/data/words.c - the words of the training records, for the steps `vocabulary` and
 * `text_vectorization`.
 *
 * They are counted in one pass over the records before any is gathered: every worker reads the same
 * ones, and comes to the same words in the same order.
 */
#include "common/base/size.h"
#include "common/data/dataset.h"
#include "common/data/tokens.h"

#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

enum { CHUNK = 4096 /* records that are read at a time, at most */, CHUNK_BYTES = 1 << 20 };

/* Reads all records of a field, which counts their words. */
static wf_status count(const wf_dataset *d, uint32_t field, wf_err *err)
{
    const wf_field_info *info = &d->fields[field].info;
    size_t each = WF_MAX(WF_MIN(CHUNK_BYTES / info->raw_record_bytes, (size_t)CHUNK), (size_t)1);
    void *raw = malloc(each * info->raw_record_bytes);
    wf_steps none;
    wf_status rc = raw ? WF_OK : wf_fail_nomem(err, each * info->raw_record_bytes);

    if (rc == WF_OK)
        rc = wf_steps_plan(&(wf_field_spec){.name = info->name}, info->raw_dtype, info->raw_rank,
                           info->raw_dims, &none, err);
    for (uint64_t at = 0; rc == WF_OK && at < d->n_records; at += each)
        rc = wf_dataset_read(d, field, &none, at, (size_t)WF_MIN(d->n_records - at, (uint64_t)each),
                             raw, err);
    free(raw);
    return rc;
}

/* Tokens are kept as Keras does: equally frequent ones from the last to the first, and of
 * max_tokens two numbers are for what is no word. */
static wf_status keep(wf_vocabulary *words, const wf_field_spec *spec, wf_err *err)
{
    double most = spec->steps[0].number;

    if (!wf_tokens_are_read(spec))
        return wf_vocabulary_keep(words, (size_t)most, false, err);
    return wf_vocabulary_keep(words, most > 0 ? (size_t)most - WF_TOKENS_FIRST : SIZE_MAX, true,
                              err);
}

static wf_status learn(wf_dataset *d, uint32_t field, wf_vocabulary *words,
                       const wf_field_spec *spec, wf_err *err)
{
    WF_TRY(count(d, field, err));
    if (wf_vocabulary_n(words) == 0)
        return wf_fail(err, WF_INVALID, "leave the field out", "%s: %s: all of \"%s\" is empty",
                       d->fields[field].info.path, d->fields[field].steps.words,
                       d->fields[field].info.name);
    return keep(words, spec, err);
}

static wf_status settle(wf_dataset *d, uint32_t field, const wf_dataset *from,
                        const wf_field_spec *spec, wf_err *err)
{
    int at = from ? wf_dataset_find(from, d->fields[field].info.name) : -1;
    bool learns, same;
    wf_vocabulary *words = wf_text_words(d->text, field, &learns);
    const wf_vocabulary *other = at < 0 ? NULL : wf_text_words(from->text, (uint32_t)at, &same);

    if (!words)
        return WF_OK;
    if (learns && other)
        WF_TRY(wf_vocabulary_add(words, wf_vocabulary_words(other), wf_vocabulary_n(other), err));
    else if (learns)
        WF_TRY(learn(d, field, words, spec, err));
    wf_text_learnt(d->text, field);
    for (size_t i = 0; i < wf_vocabulary_n(words); i++) {
        const char *word = wf_vocabulary_words(words)[i];

        d->digest = XXH3_64bits_withSeed(word, strlen(word) + 1, d->digest);
    }
    return WF_OK;
}

wf_status wf_dataset_settle_words(wf_dataset *d, const wf_dataset *from,
                                  const wf_dataset_spec *spec, wf_err *err)
{
    for (uint32_t f = 0; f < d->n_fields; f++)
        WF_TRY(settle(d, f, from, &spec->fields[f], err));
    return WF_OK;
}
