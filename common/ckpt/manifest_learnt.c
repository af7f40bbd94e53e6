/* SPDX-License-Identifier: Apache-2.0 */
/* common/ckpt/manifest_learnt.c */
#include "common/ckpt/manifest_learnt.h"

#include <math.h>
#include <string.h>

/* ---- written ---- */

static json_t *ints(uint32_t n, const int64_t values[])
{
    json_t *out = json_array();

    for (uint32_t i = 0; i < n; i++)
        if (json_array_append_new(out, json_integer(values[i])) != 0) {
            json_decref(out);
            return NULL;
        }
    return out;
}

/* Seventeen digits, which give the very numbers back. */
static json_t *reals(size_t n, const double values[])
{
    json_t *out = json_array();

    for (size_t i = 0; i < n; i++)
        if (json_array_append_new(out, json_real(values[i])) != 0) {
            json_decref(out);
            return NULL;
        }
    return out;
}

static json_t *texts(size_t n, const char *const values[])
{
    json_t *out = json_array();

    for (size_t i = 0; i < n; i++)
        if (json_array_append_new(out, json_string(values[i])) != 0) {
            json_decref(out);
            return NULL;
        }
    return out;
}

json_t *wf_manifest_learnt_of(const wf_manifest *m)
{
    json_t *out = json_array();

    for (size_t i = 0; i < m->n_learnt; i++) {
        const wf_learnt *l = &m->learnt[i];
        json_t *row =
            json_pack("{s:s, s:I, s:s, s:s, s:o, s:o}", "field", l->field, "step",
                      (json_int_t)l->step, "type", l->type, "dtype", wf_dtype_name(l->dtype),
                      "shape", ints(l->rank, l->dims), "numbers", reals(l->n_numbers, l->numbers));

        if (json_array_append_new(out, row) != 0 ||
            (l->n_words && json_object_set_new(row, "words", texts(l->n_words, l->words)) != 0)) {
            json_decref(out);
            return NULL;
        }
    }
    return out;
}

/* ---- read ---- */

static wf_status bad_row(const char *path, size_t i, const char *what, wf_err *err)
{
    return wf_fail(err, WF_CORRUPT, WF_CKPT_REPAIR, "%s: \"learnt\", row %zu: %s", path, i, what);
}

static const char *text_of(const json_t *row, const char *key)
{
    const char *text = json_string_value(json_object_get(row, key));

    return text && strlen(text) <= WF_SHARD_MAX_NAME ? text : NULL;
}

static wf_status read_numbers(const json_t *row, wf_arena *arena, wf_learnt *l, wf_err *err)
{
    const json_t *list = json_object_get(row, "numbers");
    double *numbers = wf_arena_array(arena, json_array_size(list), sizeof *numbers);

    if (!numbers)
        return wf_fail_nomem(err, json_array_size(list) * sizeof *numbers);
    for (l->n_numbers = 0; l->n_numbers < json_array_size(list); l->n_numbers++) {
        const json_t *value = json_array_get(list, l->n_numbers);

        numbers[l->n_numbers] = json_is_number(value) ? json_number_value(value) : (double)NAN;
    }
    l->numbers = numbers; /* their bounds are checked with all the rest */
    return WF_OK;
}

/* A row of an older weft has none. */
static wf_status read_words(const json_t *row, wf_arena *arena, wf_learnt *l, wf_err *err)
{
    const json_t *list = json_object_get(row, "words");
    const char **words = wf_arena_array(arena, json_array_size(list), sizeof *words);

    if (!words)
        return wf_fail_nomem(err, json_array_size(list) * sizeof *words);
    for (l->n_words = 0; l->n_words < json_array_size(list); l->n_words++) {
        const char *word = json_string_value(json_array_get(list, l->n_words));

        words[l->n_words] = wf_arena_strdup(arena, word ? word : ""); /* which is out of bounds */
        if (!words[l->n_words])
            return wf_fail_nomem(err, word ? strlen(word) : 1);
    }
    l->words = words;
    return WF_OK;
}

static wf_status read_row(const json_t *row, const char *path, size_t i, wf_arena *arena,
                          wf_learnt *l, wf_err *err)
{
    const json_t *shape = json_object_get(row, "shape"), *step = json_object_get(row, "step");
    const char *field = text_of(row, "field"), *type = text_of(row, "type"),
               *dtype = text_of(row, "dtype");

    if (!field || !type || !dtype || !json_is_integer(step) || json_integer_value(step) < 0 ||
        json_integer_value(step) >= WF_DATA_MAX_STEPS || !json_is_array(shape) ||
        json_array_size(shape) > WF_MAX_RANK)
        return bad_row(path, i, "a field, a step, its type, a dtype and a shape are wanted", err);
    *l = (wf_learnt){.field = wf_arena_strdup(arena, field),
                     .step = (uint32_t)json_integer_value(step),
                     .type = wf_arena_strdup(arena, type),
                     .dtype = wf_dtype_of(dtype),
                     .rank = (uint32_t)json_array_size(shape)};
    if (!l->field || !l->type)
        return wf_fail_nomem(err, strlen(field) + strlen(type));
    for (uint32_t k = 0; k < l->rank; k++)
        l->dims[k] = json_integer_value(json_array_get(shape, k));
    WF_TRY(read_numbers(row, arena, l, err));
    return read_words(row, arena, l, err);
}

wf_status wf_manifest_learnt_read(const json_t *root, const char *path, wf_arena *arena,
                                  wf_manifest *out, wf_err *err)
{
    const json_t *list = json_object_get(root, "learnt");
    size_t n = json_array_size(list);

    if (!list)
        return WF_OK;
    if (!json_is_array(list) || n > WF_LEARNT_MOST)
        return wf_fail(err, WF_CORRUPT, WF_CKPT_REPAIR,
                       "%s: \"learnt\" is no list of %d rows or fewer", path, WF_LEARNT_MOST);
    out->learnt = wf_arena_array(arena, n, sizeof *out->learnt);
    if (!out->learnt)
        return wf_fail_nomem(err, n * sizeof *out->learnt);
    for (; out->n_learnt < n; out->n_learnt++)
        WF_TRY(read_row(json_array_get(list, out->n_learnt), path, out->n_learnt, arena,
                        &out->learnt[out->n_learnt], err));
    return WF_OK;
}

/* ---- at both ends ---- */

static bool is_sound(const wf_learnt *l)
{
    size_t bytes = 0;
    bool sound = l->n_numbers <= WF_LEARNT_NUMBERS && l->n_words <= WF_LEARNT_WORDS &&
                 wf_dtype_computes(l->dtype) && l->rank < WF_MAX_RANK &&
                 l->step < WF_DATA_MAX_STEPS;

    for (uint32_t k = 0; sound && k < l->rank; k++)
        sound = l->dims[k] > 0;
    for (size_t i = 0; sound && i < l->n_numbers; i++)
        sound = isfinite(l->numbers[i]);
    for (size_t i = 0; sound && i < l->n_words; i++) {
        size_t n = strlen(l->words[i]);

        bytes += n + 1;
        sound = n > 0 && n <= WF_LEARNT_WORD && bytes <= WF_LEARNT_BYTES;
    }
    return sound;
}

wf_status wf_manifest_learnt_check(const wf_manifest *m, const char *path, wf_status bad,
                                   wf_err *err)
{
    if (m->n_learnt > WF_LEARNT_MOST)
        return wf_fail(err, bad, NULL, "%s: %zu steps have learnt; %d may", path, m->n_learnt,
                       WF_LEARNT_MOST);
    for (size_t i = 0; i < m->n_learnt; i++)
        if (!is_sound(&m->learnt[i]))
            return wf_fail(err, bad, NULL,
                           "%s: what step %u of \"%.64s\" has learnt is out of bounds", path,
                           m->learnt[i].step + 1, m->learnt[i].field);
    return WF_OK;
}
