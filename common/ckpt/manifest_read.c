/* SPDX-License-Identifier: Apache-2.0 */
/* common/ckpt/manifest_read.c - a manifest from JSON text that may be anything. */
#include "common/ckpt/json.h"
#include "common/ckpt/manifest.h"
#include "common/ckpt/manifest_check.h"
#include "common/ckpt/manifest_learnt.h"
#include "common/ckpt/sum.h"

#include <inttypes.h>
#include <limits.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

typedef struct source {
    const char *path;
    wf_arena *arena;
} source;

static wf_status bad(const source *s, const char *key, const char *want, wf_err *err)
{
    return wf_fail(err, WF_CORRUPT, WF_CKPT_REPAIR, "%s: \"%s\" is not %s", s->path, key, want);
}

static wf_status get_u64(const source *s, const json_t *from, const char *key, uint64_t most,
                         uint64_t *out, wf_err *err)
{
    const json_t *v = json_object_get(from, key);

    if (!json_is_integer(v) || json_integer_value(v) < 0 || (uint64_t)json_integer_value(v) > most)
        return bad(s, key, "a whole number within bounds", err);
    *out = (uint64_t)json_integer_value(v);
    return WF_OK;
}

static wf_status get_u32(const source *s, const json_t *from, const char *key, uint32_t *out,
                         wf_err *err)
{
    uint64_t value = 0;

    WF_TRY(get_u64(s, from, key, UINT32_MAX, &value, err));
    *out = (uint32_t)value;
    return WF_OK;
}

static wf_status get_text(const source *s, const json_t *from, const char *key, const char **out,
                          wf_err *err)
{
    const char *text = json_string_value(json_object_get(from, key));

    if (!text || strlen(text) > WF_SHARD_MAX_NAME)
        return bad(s, key, "a text", err);
    *out = wf_arena_strdup(s->arena, text);
    return *out ? WF_OK : wf_fail_nomem(err, strlen(text));
}

/* A path of a file: longer than names are. */
static wf_status get_path(const source *s, const json_t *from, const char *key, const char **out,
                          wf_err *err)
{
    const char *text = json_string_value(json_object_get(from, key));

    if (!text || !text[0] || strlen(text) >= PATH_MAX)
        return bad(s, key, "a path", err);
    *out = wf_arena_strdup(s->arena, text);
    return *out ? WF_OK : wf_fail_nomem(err, strlen(text));
}

static wf_status get_hex(const source *s, const json_t *from, const char *key, uint64_t *out,
                         wf_err *err)
{
    const char *text = json_string_value(json_object_get(from, key));

    if (!text || strlen(text) != 16 || strspn(text, "0123456789abcdef") != 16)
        return bad(s, key, "16 hex digits", err);
    *out = strtoull(text, NULL, 16);
    return WF_OK;
}

/* A list and room for its n elements of `size` bytes. */
static wf_status get_list(const source *s, const json_t *from, const char *key, size_t size,
                          const json_t **list, size_t *n, void **room, wf_err *err)
{
    *list = json_object_get(from, key);
    if (!json_is_array(*list))
        return bad(s, key, "a list", err);
    *n = json_array_size(*list);
    *room = wf_arena_array(s->arena, *n, size);
    return *room ? WF_OK : wf_fail_nomem(err, *n * size);
}

static wf_status get_numbers(const source *s, const json_t *from, const char *key,
                             wf_ckpt_number **out, size_t *n, wf_err *err)
{
    json_t *map = json_object_get(from, key), *value;
    const char *name;
    wf_ckpt_number *list;

    if (!json_is_object(map))
        return bad(s, key, "an object", err);
    list = wf_arena_array(s->arena, json_object_size(map), sizeof *list);
    if (!list)
        return wf_fail_nomem(err, json_object_size(map) * sizeof *list);
    *n = 0;
    json_object_foreach(map, name, value)
    {
        wf_ckpt_number *at = &list[(*n)++];

        if (!json_is_number(value) && !json_is_null(value))
            return bad(s, name, "a number", err);
        at->name = wf_arena_strdup(s->arena, name);
        at->value = json_is_null(value) ? (double)NAN : json_number_value(value);
        if (!at->name)
            return wf_fail_nomem(err, strlen(name));
    }
    *out = list;
    return WF_OK;
}

static wf_status read_slice(const source *s, const json_t *from, wf_ckpt_slice *out, wf_err *err)
{
    WF_TRY(get_u64(s, from, "offset", INT64_MAX, &out->offset, err));
    WF_TRY(get_u64(s, from, "count", INT64_MAX, &out->count, err));
    WF_TRY(get_u32(s, from, "file", &out->file, err));
    return get_u64(s, from, "updates", INT64_MAX, &out->updates, err);
}

static wf_status read_shape(const source *s, const json_t *from, wf_ckpt_variable *v, wf_err *err)
{
    const json_t *shape = json_object_get(from, "shape");

    if (!json_is_array(shape) || json_array_size(shape) > WF_MAX_RANK)
        return bad(s, "shape", "a list of at most 8 sizes", err);
    v->rank = (uint32_t)json_array_size(shape);
    for (uint32_t i = 0; i < v->rank; i++) {
        if (!json_is_integer(json_array_get(shape, i)))
            return bad(s, "shape", "a list of sizes", err);
        v->dims[i] = json_integer_value(json_array_get(shape, i));
    }
    return WF_OK;
}

static wf_status read_slots(const source *s, const json_t *from, wf_ckpt_variable *v, wf_err *err)
{
    const json_t *slots = json_object_get(from, "slots");

    if (!json_is_array(slots) || json_array_size(slots) > WF_CKPT_MAX_SLOTS)
        return bad(s, "slots", "a list of at most 8 names", err);
    v->n_slots = (uint32_t)json_array_size(slots);
    for (uint32_t i = 0; i < v->n_slots; i++) {
        const char *name = json_string_value(json_array_get(slots, i));

        if (!name)
            return bad(s, "slots", "a list of names", err);
        v->slots[i] = wf_arena_strdup(s->arena, name);
        if (!v->slots[i])
            return wf_fail_nomem(err, strlen(name));
    }
    return WF_OK;
}

static wf_status read_rows(const source *s, const json_t *from, wf_ckpt_variable *v, wf_err *err)
{
    const char *rows = json_string_value(json_object_get(from, "rows"));

    v->unbounded = rows && strcmp(rows, "unbounded") == 0;
    if (json_object_get(from, "rows") && !v->unbounded)
        return bad(s, "rows", "\"unbounded\"", err);
    return WF_OK;
}

static wf_status read_variable(const source *s, const json_t *from, wf_ckpt_variable *v,
                               wf_err *err)
{
    const char *dtype = "";
    const json_t *list = NULL;
    void *room = NULL;

    WF_TRY(get_text(s, from, "name", &v->name, err));
    WF_TRY(get_text(s, from, "dtype", &dtype, err));
    v->dtype = wf_dtype_of(dtype);
    WF_TRY(read_shape(s, from, v, err));
    WF_TRY(get_text(s, from, "kind", &v->kind, err));
    WF_TRY(read_rows(s, from, v, err));
    WF_TRY(read_slots(s, from, v, err));
    WF_TRY(get_list(s, from, "slices", sizeof *v->slices, &list, &v->n_slices, &room, err));
    v->slices = room;
    for (size_t i = 0; i < v->n_slices; i++)
        WF_TRY(read_slice(s, json_array_get(list, i), &v->slices[i], err));
    return WF_OK;
}

static wf_status read_variables(const source *s, const json_t *root, wf_manifest *m, wf_err *err)
{
    const json_t *list = NULL;
    void *room = NULL;

    WF_TRY(
        get_list(s, root, "variables", sizeof *m->variables, &list, &m->n_variables, &room, err));
    m->variables = room;
    for (size_t i = 0; i < m->n_variables; i++)
        WF_TRY(read_variable(s, json_array_get(list, i), &m->variables[i], err));
    return WF_OK;
}

static wf_status read_files(const source *s, const json_t *root, wf_manifest *m, wf_err *err)
{
    const json_t *list = NULL;
    const char *sum = "";
    void *room = NULL;

    WF_TRY(get_list(s, root, "files", sizeof *m->files, &list, &m->n_files, &room, err));
    m->files = room;
    for (size_t i = 0; i < m->n_files; i++) {
        const json_t *from = json_array_get(list, i);

        WF_TRY(get_text(s, from, "name", &m->files[i].name, err));
        WF_TRY(get_u64(s, from, "bytes", INT64_MAX, &m->files[i].bytes, err));
        WF_TRY(get_text(s, from, "xxh3", &sum, err));
        if (strlen(sum) != WF_SUM_TEXT - 1)
            return bad(s, "xxh3", "32 hex digits", err);
        memcpy(m->files[i].sum, sum, WF_SUM_TEXT);
    }
    return WF_OK;
}

static wf_status read_ranges(const source *s, const json_t *from, wf_ckpt_ledger *l, wf_err *err)
{
    const json_t *list = NULL;
    void *room = NULL;

    WF_TRY(get_list(s, from, "finished", sizeof *l->finished, &list, &l->n_finished, &room, err));
    l->finished = room;
    for (size_t i = 0; i < l->n_finished; i++) {
        const json_t *pair = json_array_get(list, i);
        const json_t *begin = json_array_get(pair, 0), *end = json_array_get(pair, 1);

        if (!json_is_integer(begin) || !json_is_integer(end) || json_integer_value(begin) < 0 ||
            json_integer_value(end) < 0)
            return bad(s, "finished", "a list of [begin, end]", err);
        l->finished[i] =
            (wf_ckpt_range){(uint64_t)json_integer_value(begin), (uint64_t)json_integer_value(end)};
    }
    return WF_OK;
}

static wf_status read_ids(const source *s, const json_t *from, wf_ckpt_rounds *r, wf_err *err)
{
    const char *text = json_string_value(json_object_get(from, "earlier")); /* longer than names */
    size_t n = text ? strlen(text) : 0;

    if (!text || n % WF_CKPT_ID_DIGITS || strspn(text, "0123456789abcdef") != n)
        return bad(s, "earlier", "ids of 16 hex digits each", err);
    r->n_earlier = n / WF_CKPT_ID_DIGITS;
    r->earlier = wf_arena_array(s->arena, r->n_earlier + 1, sizeof *r->earlier);
    if (!r->earlier)
        return wf_fail_nomem(err, r->n_earlier * sizeof *r->earlier);
    for (size_t i = 0; i < r->n_earlier; i++) {
        char one[WF_CKPT_ID_DIGITS + 1] = "";

        memcpy(one, text + i * WF_CKPT_ID_DIGITS, WF_CKPT_ID_DIGITS);
        r->earlier[i] = strtoull(one, NULL, 16);
    }
    return WF_OK;
}

static wf_status read_rounds(const source *s, const json_t *from, wf_ckpt_ledger *l, wf_err *err)
{
    wf_ckpt_rounds *r = wf_arena_alloc(s->arena, sizeof *r);
    const json_t *list = NULL;
    void *room = NULL;

    if (!r)
        return wf_fail_nomem(err, sizeof *r);
    WF_TRY(get_list(s, from, "files", sizeof *r->files, &list, &r->n_files, &room, err));
    r->files = room;
    for (size_t i = 0; i < r->n_files; i++) {
        WF_TRY(get_path(s, json_array_get(list, i), "path", &r->files[i].path, err));
        WF_TRY(get_u64(s, json_array_get(list, i), "bytes", INT64_MAX, &r->files[i].bytes, err));
    }
    WF_TRY(get_u64(s, from, "steps_before", INT64_MAX, &r->steps_before, err));
    WF_TRY(get_u64(s, from, "records_before", INT64_MAX, &r->records_before, err));
    WF_TRY(get_hex(s, from, "digest", &r->digest, err));
    l->rounds = r;
    return read_ids(s, from, r, err);
}

static wf_status read_file_ends(const source *s, const json_t *from, wf_ckpt_ledger *l, wf_err *err)
{
    const json_t *list = NULL;
    void *room = NULL;

    WF_TRY(
        get_list(s, from, "file_ends", sizeof *l->file_ends, &list, &l->n_file_ends, &room, err));
    l->file_ends = room;
    for (size_t i = 0; i < l->n_file_ends; i++) {
        const json_t *end = json_array_get(list, i);

        if (!json_is_integer(end) || json_integer_value(end) < 0)
            return bad(s, "file_ends", "a list of numbers of records", err);
        l->file_ends[i] = (uint64_t)json_integer_value(end);
    }
    return WF_OK;
}

static wf_status read_ledger(const source *s, const json_t *root, wf_ckpt_ledger *l, wf_err *err)
{
    const json_t *from = json_object_get(root, "ledger"), *list = NULL;
    void *room = NULL;

    WF_TRY(get_u32(s, from, "epoch", &l->epoch, err));
    WF_TRY(get_u64(s, from, "records", INT64_MAX, &l->records, err));
    WF_TRY(get_u64(s, from, "split_records", INT64_MAX, &l->split_records, err));
    WF_TRY(get_u64(s, from, "next_cut", INT64_MAX, &l->next_cut, err));
    if (!json_is_boolean(json_object_get(from, "evaluated")))
        return bad(s, "evaluated", "true or false", err);
    l->evaluated = json_is_true(json_object_get(from, "evaluated"));
    WF_TRY(read_ranges(s, from, l, err));
    if (json_object_get(from, "callbacks"))
        WF_TRY(get_numbers(s, from, "callbacks", &l->callbacks, &l->n_callbacks, err));
    if (json_object_get(from, "file_ends"))
        WF_TRY(read_file_ends(s, from, l, err));
    if (json_object_get(from, "rounds"))
        WF_TRY(read_rounds(s, json_object_get(from, "rounds"), l, err));
    WF_TRY(get_list(s, from, "open", sizeof *l->open, &list, &l->n_open, &room, err));
    l->open = room;
    for (size_t i = 0; i < l->n_open; i++) {
        const json_t *split = json_array_get(list, i);

        WF_TRY(get_u64(s, split, "split", INT64_MAX, &l->open[i].id, err));
        WF_TRY(get_u64(s, split, "begin", INT64_MAX, &l->open[i].begin, err));
        WF_TRY(get_u64(s, split, "next", INT64_MAX, &l->open[i].next, err));
        WF_TRY(get_u64(s, split, "end", INT64_MAX, &l->open[i].end, err));
    }
    return WF_OK;
}

static wf_status read_clocks(const source *s, const json_t *root, wf_manifest *m, wf_err *err)
{
    const json_t *list = NULL;
    void *room = NULL;

    WF_TRY(get_list(s, root, "clocks", sizeof *m->clocks, &list, &m->n_clocks, &room, err));
    m->clocks = room;
    for (size_t i = 0; i < m->n_clocks; i++) {
        const json_t *from = json_array_get(list, i);

        WF_TRY(get_u32(s, from, "worker", &m->clocks[i].worker, err));
        WF_TRY(get_hex(s, from, "incarnation", &m->clocks[i].incarnation, err));
        WF_TRY(get_u64(s, from, "step", INT64_MAX, &m->clocks[i].step, err));
    }
    return WF_OK;
}

static wf_status read_head(const source *s, const json_t *root, wf_manifest *m, wf_err *err)
{
    const json_t *cut = json_object_get(root, "cut");
    const char *digest = "";
    uint64_t format = 0, created = 0;

    WF_TRY(get_u64(s, root, "format", INT64_MAX, &format, err));
    if (format != WF_MANIFEST_FORMAT)
        return wf_fail(err, WF_UNSUPPORTED, "read it with the weft that wrote it, or a newer one",
                       "%s: checkpoint format %" PRIu64 "; this weft reads %d", s->path, format,
                       WF_MANIFEST_FORMAT);
    WF_TRY(get_text(s, root, "weft", &m->weft, err));
    WF_TRY(get_text(s, root, "job", &m->job, err));
    WF_TRY(get_text(s, root, "digest", &digest, err));
    if (strlen(digest) >= sizeof m->digest)
        return bad(s, "digest", "a digest", err);
    memcpy(m->digest, digest, strlen(digest) + 1);
    WF_TRY(get_u64(s, root, "global_step", INT64_MAX, &m->global_step, err));
    WF_TRY(get_u32(s, cut, "generation", &m->cut.generation, err));
    WF_TRY(get_u32(s, cut, "number", &m->cut.number, err));
    WF_TRY(get_hex(s, cut, "chief", &m->cut.chief, err));
    WF_TRY(get_u64(s, root, "pause_ms", INT64_MAX, &m->pause_ms, err));
    WF_TRY(get_u64(s, root, "created_ms", INT64_MAX, &created, err));
    m->created_ms = (int64_t)created;
    WF_TRY(get_hex(s, root, "seed", &m->seed, err));
    WF_TRY(get_text(s, root, "optimizer", &m->rule, err));
    WF_TRY(get_numbers(s, root, "options", &m->options, &m->n_options, err));
    return get_numbers(s, root, "metrics", &m->metrics, &m->n_metrics, err);
}

/* The text ends in `,\n "sum": "..."\n}\n`, and the sum is that of all before it. */
static wf_status check_sum(const source *s, const char *text, size_t size, wf_err *err)
{
    char sum[WF_SUM_TEXT], tail[64];
    size_t n = (size_t)snprintf(tail, sizeof tail, ",\n \"sum\": \"%032d\"\n}\n", 0);

    if (size < n)
        return wf_fail(err, WF_CORRUPT, WF_CKPT_REPAIR,
                       "%s: cut short: %zu bytes are there, fewer than any manifest has", s->path,
                       size);
    if (memcmp(text + size - 3, "\n}\n", 3) != 0)
        return wf_fail(err, WF_CORRUPT, WF_CKPT_REPAIR,
                       "%s: cut short: %zu bytes are there, and its last line is missing", s->path,
                       size);
    wf_sum_of(text, size - n, sum);
    snprintf(tail, sizeof tail, ",\n \"sum\": \"%s\"\n}\n", sum);
    if (memcmp(text + size - n, tail, n) != 0)
        return wf_fail(err, WF_CORRUPT, WF_CKPT_REPAIR,
                       "%s: checksum differs: one of its %zu bytes changed after it was written",
                       s->path, size);
    return WF_OK;
}

wf_status wf_manifest_decode(const char *text, size_t size, const char *path, wf_arena *arena,
                             wf_manifest *out, wf_err *err)
{
    source s = {path, arena};
    json_t *root = NULL;
    wf_status rc;

    *out = (wf_manifest){0};
    WF_TRY(check_sum(&s, text, size, err));
    WF_TRY(wf_json_read(text, size, path, 0, &root, err));
    rc = read_head(&s, root, out, err);
    if (rc == WF_OK)
        rc = read_files(&s, root, out, err);
    if (rc == WF_OK)
        rc = read_variables(&s, root, out, err);
    if (rc == WF_OK)
        rc = read_ledger(&s, root, &out->ledger, err);
    if (rc == WF_OK)
        rc = read_clocks(&s, root, out, err);
    if (rc == WF_OK)
        rc = wf_manifest_learnt_read(root, path, arena, out, err);
    json_decref(root);
    return rc == WF_OK ? wf_manifest_check(out, path, WF_CORRUPT, err) : rc;
}
