/* SPDX-License-Identifier: Apache-2.0 */
/* master/job/rounds.c */
#include "master/job/rounds.h"
#include "common/base/size.h"

#include <stdlib.h>
#include <string.h>

static void free_files(wf_round_file *files, size_t n)
{
    for (size_t i = 0; files && i < n; i++)
        free(files[i].path);
    free(files);
}

static void free_waiting(wf_candidate *list, size_t n)
{
    for (size_t i = 0; list && i < n; i++)
        free(list[i].path);
    free(list);
}

void wf_rounds_close(wf_rounds *r)
{
    free_files(r->files, r->n_files);
    free_waiting(r->waiting, r->n_waiting);
    free(r->earlier);
    *r = (wf_rounds){0};
}

void wf_rounds_end(wf_rounds *r)
{
    wf_rounds kept = {.round = r->round, .n_taken = r->n_taken, .is_over = true};

    wf_rounds_close(r);
    *r = kept;
}

/* ---- what was taken ---- */

static int by_number(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

    return x < y ? -1 : x > y;
}

static int by_path(const void *path, const void *file)
{
    return strcmp(path, ((const wf_round_file *)file)->path);
}

static bool was_taken(const wf_rounds *r, const char *path)
{
    uint64_t id = wf_listed_id(path);

    if (r->n_earlier && bsearch(&id, r->earlier, r->n_earlier, sizeof id, by_number))
        return true;
    return r->n_files && bsearch(path, r->files, r->n_files, sizeof *r->files, by_path);
}

/* The ids of the files of all rounds so far, ascending; the caller's. */
static wf_status join_earlier(const wf_rounds *r, uint64_t **out, wf_err *err)
{
    size_t n = r->n_earlier + r->n_files;
    uint64_t *all;

    if (n > WF_ROUNDS_EARLIER)
        return wf_fail(err, WF_FULL, "begin a new run, with a pattern of the files to come",
                       "%zu files are trained, and a job keeps account of %d", n,
                       WF_ROUNDS_EARLIER);
    all = malloc((n + 1) * sizeof *all);
    if (!all)
        return wf_fail_nomem(err, n * sizeof *all);
    if (r->n_earlier)
        memcpy(all, r->earlier, r->n_earlier * sizeof *all);
    for (size_t i = 0; i < r->n_files; i++)
        all[r->n_earlier + i] = wf_listed_id(r->files[i].path);
    qsort(all, n, sizeof *all, by_number);
    *out = all;
    return WF_OK;
}

/* Puts a round and what was before it in place; takes files and earlier. */
static void put(wf_rounds *r, uint32_t round, wf_round_file *files, size_t n_files,
                uint64_t *earlier, size_t n_earlier)
{
    free_files(r->files, r->n_files);
    free(r->earlier);
    r->round = round;
    r->files = files;
    r->n_files = n_files;
    r->earlier = earlier;
    r->n_earlier = n_earlier;
    r->is_over = false;
    r->records = r->digest = 0;
    r->n_taken = n_files + n_earlier;
    r->idle_ns = 0;
    r->is_wanted = r->is_idle = false;
}

/* ---- what is there ---- */

static const wf_candidate *find_waiting(const wf_rounds *r, const char *path)
{
    for (size_t from = 0, to = r->n_waiting; from < to;) {
        size_t at = from + (to - from) / 2;
        int order = strcmp(path, r->waiting[at].path);

        if (order == 0)
            return &r->waiting[at];
        if (order < 0)
            to = at;
        else
            from = at + 1;
    }
    return NULL;
}

wf_status wf_rounds_see(wf_rounds *r, const wf_listed list[], size_t n, int64_t asked_ns,
                        int64_t now_ns, wf_err *err)
{
    wf_candidate *fresh = calloc(n + 1, sizeof *fresh);
    size_t used = 0;

    if (!fresh)
        return wf_fail_nomem(err, n * sizeof *fresh);
    for (size_t i = 0; i < n; i++) {
        const wf_candidate *before = find_waiting(r, list[i].path);
        bool same =
            before && before->bytes == list[i].bytes && before->changed_ns == list[i].changed_ns;

        if (list[i].bytes == 0 || was_taken(r, list[i].path))
            continue;
        fresh[used] = (wf_candidate){.path = strdup(list[i].path),
                                     .bytes = list[i].bytes,
                                     .changed_ns = list[i].changed_ns,
                                     .since_ns = same ? before->since_ns : now_ns};
        if (!fresh[used++].path) {
            free_waiting(fresh, used);
            return wf_fail_nomem(err, strlen(list[i].path));
        }
    }
    free_waiting(r->waiting, r->n_waiting);
    r->waiting = fresh;
    r->n_waiting = used;
    r->seen_ns = asked_ns;
    return WF_OK;
}

/* ---- a round ---- */

static bool is_settled(const wf_rounds *r, const wf_candidate *c, int64_t settle_ns)
{
    return r->seen_ns - c->since_ns >= settle_ns;
}

wf_status wf_rounds_take(wf_rounds *r, uint32_t round, int64_t settle_ns, bool *any, wf_err *err)
{
    wf_round_file *files;
    uint64_t *earlier = NULL;
    size_t n = 0, kept = 0, bytes = 0, n_earlier = r->n_earlier + r->n_files;

    *any = false;
    for (size_t i = 0; i < r->n_waiting; i++)
        *any |= is_settled(r, &r->waiting[i], settle_ns);
    if (!*any)
        return WF_OK;
    files = calloc(WF_MIN(r->n_waiting, (size_t)WF_ROUND_FILES), sizeof *files);
    if (!files)
        return wf_fail_nomem(err, r->n_waiting * sizeof *files);
    if (join_earlier(r, &earlier, err) != WF_OK) {
        free(files);
        return err->status;
    }
    for (size_t i = 0; i < r->n_waiting; i++) {
        wf_candidate *c = &r->waiting[i];
        size_t more = strlen(c->path) + 1;

        if (n < WF_ROUND_FILES && bytes + more <= WF_ROUND_PATHS && is_settled(r, c, settle_ns)) {
            files[n++] = (wf_round_file){c->path, c->bytes};
            bytes += more;
        } else {
            r->waiting[kept++] = *c;
        }
    }
    r->n_waiting = kept;
    put(r, round, files, n, earlier, n_earlier);
    return WF_OK;
}

static wf_status copy_files(Weft__RoundFile *const from[], size_t n, wf_round_file **out,
                            wf_err *err)
{
    wf_round_file *files;

    if (n > WF_ROUND_FILES)
        return wf_fail(err, WF_INVALID, NULL, "a round of %zu files", n);
    files = calloc(n + 1, sizeof *files);
    if (!files)
        return wf_fail_nomem(err, n * sizeof *files);
    for (size_t i = 0; i < n; i++) {
        files[i] = (wf_round_file){strdup(from[i]->path), from[i]->bytes};
        if (!files[i].path) {
            free_files(files, n);
            return wf_fail_nomem(err, strlen(from[i]->path));
        }
    }
    *out = files;
    return WF_OK;
}

wf_status wf_rounds_replay(wf_rounds *r, const Weft__Round *round, wf_err *err)
{
    size_t n_earlier = r->n_earlier + r->n_files;
    wf_round_file *files = NULL;
    uint64_t *earlier = NULL;

    WF_TRY(copy_files(round->files, round->n_files, &files, err));
    if (join_earlier(r, &earlier, err) != WF_OK) {
        free_files(files, round->n_files);
        return err->status;
    }
    put(r, round->round, files, round->n_files, earlier, n_earlier);
    return WF_OK;
}

wf_status wf_rounds_set(wf_rounds *r, uint32_t round, Weft__RoundFile *const files[], size_t n,
                        const uint64_t earlier[], size_t n_earlier, wf_err *err)
{
    wf_round_file *copy = NULL;
    uint64_t *ids;

    if (n_earlier > WF_ROUNDS_EARLIER)
        return wf_fail(err, WF_INVALID, NULL, "%zu files of earlier rounds, of at most %d",
                       n_earlier, WF_ROUNDS_EARLIER);
    WF_TRY(copy_files(files, n, &copy, err));
    ids = malloc((n_earlier + 1) * sizeof *ids);
    if (!ids) {
        free_files(copy, n);
        return wf_fail_nomem(err, n_earlier * sizeof *ids);
    }
    if (n_earlier)
        memcpy(ids, earlier, n_earlier * sizeof *ids);
    qsort(ids, n_earlier, sizeof *ids, by_number);
    free_waiting(r->waiting, r->n_waiting); /* some of them may be in rounds now */
    r->waiting = NULL;
    r->n_waiting = 0;
    put(r, round, copy, n, ids, n_earlier);
    return WF_OK;
}

wf_status wf_round_message_make(const wf_rounds *r, wf_round_message *out, wf_err *err)
{
    weft__round__init(&out->body);
    out->rows = calloc(r->n_files + 1, sizeof *out->rows);
    out->list = calloc(r->n_files + 1, sizeof(*out->list));
    if (!out->rows || !out->list) {
        wf_round_message_free(out);
        return wf_fail_nomem(err, r->n_files * sizeof *out->rows);
    }
    for (size_t i = 0; i < r->n_files; i++) {
        weft__round_file__init(&out->rows[i]);
        out->rows[i].path = r->files[i].path;
        out->rows[i].bytes = r->files[i].bytes;
        out->list[i] = &out->rows[i];
    }
    out->body.round = r->round;
    out->body.files = out->list;
    out->body.n_files = r->n_files;
    return WF_OK;
}

void wf_round_message_free(wf_round_message *m)
{
    free(m->rows);
    free(m->list);
    m->rows = NULL;
    m->list = NULL;
}
