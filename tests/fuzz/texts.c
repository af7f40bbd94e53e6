/* SPDX-License-Identifier: Apache-2.0 */
/* tests/fuzz/texts.c - what else comes from files of people and from the network: job files with
 * the models of their layers, cluster files, manifests of checkpoints, safetensors, and the tables
 * and codings of messages.
 *
 * The first byte of an input says what it is, the second is bits of how it is read. */
#include "common/base/arena.h"
#include "common/base/size.h"
#include "common/ckpt/manifest.h"
#include "common/ckpt/pretrained.h"
#include "common/ckpt/sum.h"
#include "common/compile/compile.h"
#include "common/compile/model.h"
#include "common/conf/conf.h"
#include "common/wire/grammar.h"
#include "common/wire/parts.h"
#include "tests/fuzz/fuzz.h"

#include <string.h>
#include <unistd.h>

enum { NUMBERS = 1 << 16 /* of a coded part: more are not read */ };

typedef struct input {
    const uint8_t *data; /* [n] */
    size_t n;
    uint8_t bits;
} input;

/* ---- files of people ---- */

/* Nobody reads the content of variables here: they get none. */
static void compile(const wf_job_conf *job, wf_compile_mode mode)
{
    wf_compile_spec spec = {0};
    wf_compiled *c = NULL;
    wf_model model;
    wf_err err = {0};

    wf_compile_spec_of_job(job, mode, wf_strategy_find("parameter_server"), 2, &model, &spec);
    spec.is_blank = true;
    (void)wf_fuzz_refused(wf_compile(&spec, &c, &err), &err);
    wf_compiled_free(&c);
}

static void read_job(const input *in)
{
    wf_job_conf *job = NULL;
    wf_err err = {0};

    if (!wf_fuzz_refused(wf_job_parse((const char *)in->data, in->n, "/tmp/job.yaml", &job, &err),
                         &err) &&
        job->n_layers > 0)
        compile(job, in->bits & 1 ? WF_COMPILE_TRAIN : WF_COMPILE_EVAL);
    wf_job_free(&job);
}

static void read_cluster(const input *in)
{
    wf_cluster_conf *c = NULL;
    wf_err err = {0};

    (void)wf_fuzz_refused(
        wf_cluster_parse((const char *)in->data, in->n, "/tmp/cluster.yaml", &c, &err), &err);
    wf_cluster_free(&c);
}

/* ---- checkpoints ---- */

static wf_status decode(const uint8_t *data, size_t n, wf_arena *a, wf_manifest *out, wf_err *err)
{
    return wf_manifest_decode((const char *)data, n, "manifest.json", a, out, err);
}

/* The input is what stands before the checksum. One that is read can be written, and read again. */
static void read_manifest(const input *in)
{
    wf_arena *a = wf_arena_new(0);
    wf_bytes text = {0}, again = {0};
    char sum[WF_SUM_TEXT];
    wf_manifest m;
    wf_err err = {0};

    wf_sum_of(in->data, in->n, sum);
    wf_bytes_add(&text, in->data, in->n);
    wf_bytes_printf(&text, ",\n \"sum\": \"%s\"\n}\n", sum);
    if (!a || wf_bytes_check(&text, NULL) != WF_OK)
        abort();
    if (!wf_fuzz_refused(decode(text.data, text.size, a, &m, &err), &err) &&
        (wf_manifest_encode(&m, &again, &err) != WF_OK ||
         decode(again.data, again.size, a, &m, &err) != WF_OK)) {
        fprintf(stderr, "a manifest does not come through a file: %s\n", err.what);
        abort();
    }
    wf_bytes_close(&again);
    wf_bytes_close(&text);
    wf_arena_free(&a);
}

static char tensors[] = "/tmp/weft-fuzz-XXXXXX.safetensors";

static void remove_tensors(void)
{
    (void)remove(tensors);
}

static void read_tensors(const input *in)
{
    static int fd = -1;
    wf_named_list l = {0};
    wf_err err = {0};

    if (fd < 0) {
        fd = mkstemps(tensors, (int)strlen(".safetensors"));
        if (fd < 0 || atexit(remove_tensors) != 0)
            abort();
    }
    if (ftruncate(fd, 0) != 0 || pwrite(fd, in->data, in->n, 0) != (ssize_t)in->n)
        abort();
    (void)wf_fuzz_refused(wf_pretrained_read(tensors, &l, &err), &err);
    wf_named_close(&l);
}

/* ---- messages ---- */

/* A header's control bytes, of which the first byte says how many there are, and two frames. */
static wf_msg *make_message(const input *in, uint16_t kind, wf_msg_pool *pool)
{
    size_t n = in->n > 0 ? in->n - 1 : 0;
    size_t control = in->n > 0 ? WF_MIN(n, 4 * (size_t)in->data[0]) : 0;
    size_t half = (n - control) / 2, sizes[] = {half, n - control - half};
    const uint8_t *from = in->data + 1;
    wf_msg *m = NULL;
    uint8_t *to;

    if (wf_msg_new(pool, kind, &m, NULL) != WF_OK)
        abort();
    to = wf_msg_control(m, control);
    if (control > 0 && !to)
        abort();
    if (control > 0)
        memcpy(to, from, control);
    from += control;
    for (size_t i = 0; in->n > 0 && i < WF_COUNT(sizes); i++) {
        wf_buf *b = wf_buf_new(sizes[i] + 1);

        if (!b)
            abort();
        memcpy(b->data, from, sizes[i]);
        if (wf_msg_add_frame(m, b, b->data, sizes[i], NULL) != WF_OK)
            abort();
        wf_buf_unref(&b);
        from += sizes[i];
    }
    return m;
}

static wf_status get_parts(const wf_msg *m, wf_part parts[], uint32_t *n, wf_err *err)
{
    wf_push_body push;
    wf_pull_body pull;

    switch (m->head.kind) {
    case WF_PULL:
        return wf_pull_get(m, &pull, parts, n, err);
    case WF_PUSH:
        return wf_push_get(m, &push, parts, n, err);
    default:
        return wf_parts_get(m, parts, n, err);
    }
}

static void read_part(const wf_msg *m, const wf_part *p)
{
    static float numbers[NUMBERS];
    wf_err err = {0};

    if (p->codec == WF_CODEC_ROWS || p->codec == WF_CODEC_IDS) {
        wf_rows rows = wf_part_rows(m, p);

        (void)wf_rows_rise(&rows);
    }
    if (p->codec == WF_CODEC_F32 || p->codec == WF_CODEC_ROWS) {
        wf_coded c = wf_part_coded(m, p);

        if (c.n > 1 && c.n <= NUMBERS && !wf_fuzz_refused(wf_coded_check(&c, &err), &err)) {
            wf_coded_read(&c, 0, c.n, numbers);
            wf_coded_read(&c, 1, c.n - 1, numbers);
        }
    }
}

static void read_parts(const input *in)
{
    static const uint16_t kinds[] = {WF_WEIGHTS, WF_PULL, WF_PUSH};
    static wf_part parts[WF_MAX_PARTS];
    wf_msg_pool pool = {0};
    wf_msg *m = make_message(in, kinds[in->bits % WF_COUNT(kinds)], &pool);
    uint32_t n = 0;
    wf_err err = {0};

    (void)wf_fuzz_refused(wf_parts_verify(m, &err), &err);
    if (!wf_fuzz_refused(get_parts(m, parts, &n, &err), &err))
        for (uint32_t i = 0; i < n; i++)
            read_part(m, &parts[i]);
    wf_msg_free(&pool, &m);
    wf_msg_pool_close(&pool);
}

static void read_words(const input *in)
{
    static uint64_t workers[WF_MAX_CONTRIBUTORS];
    static uint32_t slices[WF_MAX_PARTS];
    wf_msg_pool pool = {0};
    wf_msg *m = make_message(in, WF_DECIDED, &pool), *decoded;
    wf_clock_body clock;
    wf_decision decision = {.workers = workers};
    uint32_t n;
    wf_err err = {0};

    (void)wf_fuzz_refused(wf_decided_get(m, &decision, &err), &err);
    (void)wf_fuzz_refused(wf_slices_get(m, slices, &n, &err), &err);
    (void)wf_fuzz_refused(wf_clock_get(m, &clock, &err), &err);
    decoded = wf_msg_decode(&pool, in->data, in->n);
    wf_msg_free(&pool, &decoded);
    wf_msg_free(&pool, &m);
    wf_msg_pool_close(&pool);
}

void wf_fuzz(const uint8_t *data, size_t n)
{
    static void (*const ways[])(const input *) = {read_job,     read_cluster, read_manifest,
                                                  read_tensors, read_parts,   read_words};

    if (n >= 2)
        ways[data[0] % WF_COUNT(ways)](&(input){data + 2, n - 2, data[1]});
}
