/* SPDX-License-Identifier: Apache-2.0 */
/* cmd/cli/bench/job.c */
#include "cmd/cli/bench/job.h"
#include "common/base/file.h"
#include "common/base/size.h"
#include "common/ckpt/initial.h"
#include "common/compile/compile.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static const char JOB[] = "bench";
static const double KEPT = 0.01; /* of top-k, as jobs have it when they do not say */

size_t wf_bench_slice_bytes(const wf_bench_case *of)
{
    size_t half = of->bytes / of->n_ps / 2;

    return WF_MIN(WF_MAX(half, (size_t)WF_SLICE_BYTES_LEAST), (size_t)WF_SLICE_BYTES) &
           ~(sizeof(float) - 1);
}

uint64_t wf_bench_slice_rows(const wf_bench_case *of)
{
    enum { TABLE_SLICES = 64 };
    uint64_t each = WF_SLICE_BYTES / (of->dim * sizeof(float));

    each = WF_MAX(each, (of->rows + TABLE_SLICES - 1) / TABLE_SLICES);
    return WF_MAX(WF_MIN(each, of->rows / of->n_ps), (uint64_t)1);
}

static wf_status add_variable(wf_bench_stage *s, wf_err *err)
{
    Weft__Variable *v = wf_arena_alloc(s->arena, sizeof *v);
    int64_t *dims = wf_arena_array(s->arena, 2, sizeof *dims);

    s->start->variables = wf_arena_array(s->arena, 1, sizeof(*s->start->variables));
    if (!v || !dims || !s->start->variables)
        return wf_fail_nomem(err, sizeof *v);
    weft__variable__init(v);
    dims[0] = (int64_t)(s->of.draw ? s->of.rows : s->of.bytes / sizeof(float));
    dims[1] = s->of.dim;
    v->name = (char *)"w";
    v->dtype = s->of.draw ? s->of.dtype : WF_F32;
    v->kind = 1; /* trainable */
    v->dims = dims;
    v->n_dims = s->of.draw ? 2 : 1;
    v->push_coding = s->of.push;
    v->push_kept = KEPT;
    v->pull_coding = s->of.pull;
    if (s->of.draw) {
        v->slice_kind = (char *)"table";
        v->rows_most = WF_MIN(s->of.drawn, s->of.rows);
    }
    s->start->variables[0] = v;
    s->start->n_variables = 1;
    return WF_OK;
}

static uint64_t slice_elements(const wf_bench_case *of)
{
    return of->draw ? wf_bench_slice_rows(of) * of->dim : wf_bench_slice_bytes(of) / sizeof(float);
}

static wf_status add_slices(wf_bench_stage *s, wf_err *err)
{
    uint64_t all = s->of.bytes / sizeof(float), each = slice_elements(&s->of);
    size_t n = (size_t)((all + each - 1) / each);
    Weft__Slice *rows = wf_arena_array(s->arena, n, sizeof *rows);

    s->start->slices = wf_arena_array(s->arena, n, sizeof(*s->start->slices));
    if (!rows || !s->start->slices)
        return wf_fail_nomem(err, n * sizeof *rows);
    for (size_t i = 0; i < n; i++) {
        weft__slice__init(&rows[i]);
        rows[i].offset = i * each;
        rows[i].count = WF_MIN(each, all - i * each);
        rows[i].ps = (uint32_t)(i % s->of.n_ps);
        s->start->slices[i] = &rows[i];
    }
    s->start->n_slices = n;
    return WF_OK;
}

wf_status wf_bench_job_add(wf_bench_stage *s, wf_task task, uint64_t incarnation, wf_err *err)
{
    Weft__Member *m = wf_arena_alloc(s->arena, sizeof *m);

    if (!m)
        return wf_fail_nomem(err, sizeof *m);
    weft__member__init(m);
    m->role = task.role;
    m->index = task.index;
    m->incarnation = incarnation;
    s->start->view->members[s->start->view->n_members++] = m;
    return WF_OK;
}

wf_status wf_bench_job_make(wf_bench_stage *s, wf_err *err)
{
    Weft__Start *start = wf_arena_alloc(s->arena, sizeof *start);
    Weft__View *view = wf_arena_alloc(s->arena, sizeof *view);

    if (!start || !view)
        return wf_fail_nomem(err, sizeof *start);
    weft__start__init(start);
    weft__view__init(view);
    view->members = wf_arena_array(s->arena, s->of.n_ps + s->of.n_workers, sizeof(*view->members));
    if (!view->members)
        return wf_fail_nomem(err, sizeof(*view->members));
    view->number = WF_BENCH_VIEW;
    start->job = (char *)JOB;
    start->digest = (char *)"bench";
    start->rule = (char *)s->of.rule;
    start->checkpoint_dir = (char *)s->conf->checkpoint_dir;
    start->strategy = (char *)"parameter_server";
    start->initial = true;
    start->view = view;
    s->start = start;
    for (uint32_t i = 0; i < s->of.n_workers; i++)
        WF_TRY(wf_bench_job_add(s, (wf_task){WF_ROLE_WORKER, i}, s->incarnation[i], err));
    WF_TRY(add_variable(s, err));
    return add_slices(s, err);
}

/* A safetensors file whose data is a hole: it takes no time and no disk. */
wf_status wf_bench_job_write(const wf_bench_stage *s, wf_err *err)
{
    enum { HEAD = 8 + 120 };
    char path[PATH_MAX], text[HEAD], shape[64];
    uint64_t n = htole64(HEAD - sizeof n);
    wf_status rc;
    int fd;

    if (snprintf(path, sizeof path, "%s/%s", s->conf->checkpoint_dir, JOB) >= (int)sizeof path)
        return wf_fail(err, WF_INVALID, NULL, "the path %.200s is too long", s->folder);
    WF_TRY(wf_make_dirs(path, err));
    snprintf(path + strlen(path), sizeof path - strlen(path), "/" WF_INITIAL_NAME);
    memset(text, ' ', sizeof text);
    memcpy(text, &n, sizeof n);
    if (s->of.draw)
        snprintf(shape, sizeof shape, "%" PRIu64 ",%" PRIu32, s->of.rows, s->of.dim);
    else
        snprintf(shape, sizeof shape, "%zu", s->of.bytes / sizeof(float));
    n = (uint64_t)snprintf(text + sizeof n, sizeof text - sizeof n,
                           "{\"w\":{\"dtype\":\"F32\",\"shape\":[%s],\"data_offsets\":[0,%zu]}}",
                           shape, s->of.bytes);
    text[sizeof n + n] = ' '; /* for the zero behind the text */
    fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    if (fd < 0)
        return wf_fail_errno(err, errno, NULL, "cannot write %s", path);
    rc = wf_write_all(fd, text, sizeof text, path, err);
    if (rc == WF_OK && ftruncate(fd, (off_t)(sizeof text + s->of.bytes)) != 0)
        rc = wf_fail_errno(err, errno, NULL, "cannot write %s", path);
    close(fd);
    return rc;
}
