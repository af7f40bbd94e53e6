/* SPDX-License-Identifier: Apache-2.0 */
/* cmd/cli/predict.c - what a model says of records in files. Inputs of a job go through its
 * data.map, as in training; those of an ONNX file are fed as they are, as by whoever exported it.
 */
#include "cmd/cli/cli.h"
#include "cmd/cli/following.h"
#include "cmd/cli/library.h"
#include "cmd/cli/place.h"
#include "cmd/cli/predict_hosts.h"
#include "cmd/cli/predict_spread.h"
#include "cmd/cli/progress.h"
#include "cmd/cli/term.h"
#include "common/base/clock.h"
#include "common/base/file.h"
#include "common/base/size.h"
#include "common/base/subnormal.h"
#include "common/kernels/pool.h"
#include "common/session/prediction.h"
#include "common/session/runs.h"
#include "common/session/weights.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

enum { QUIET_NS = 2 * WF_NS_PER_S /* shorter ones show no progress */ };

typedef struct request {
    const char *what, *cluster, *from, *out;
    wf_words inputs; /* NAME=FILE */
    wf_words hosts;  /* FILE=HOST,HOST */
    wf_prediction_ask ask;
    uint32_t threads;
    bool spread;
    bool divides; /* the job divides its model among workers */

    wf_arena *arena;
    wf_cluster_conf *conf;
    char here[PATH_MAX]; /* the folder in which the command was given */
    char path[PATH_MAX], run[WF_RUN_NAME], dir[PATH_MAX];
    wf_bytes text;
    wf_pool *pool;
    wf_prediction *prediction;
    int lock;
} request;

static bool ends_with(const char *text, const char *end)
{
    size_t n = strlen(text), m = strlen(end);

    return n >= m && strcmp(text + n - m, end) == 0;
}

/* ---- the model ---- */

/* As other processes find it; as it is given where nobody else is to. */
static wf_status shared_path(request *r, const char *path, const char **out, wf_err *err)
{
    *out = path;
    if (!r->spread || path[0] == '/')
        return WF_OK;
    *out = wf_arena_printf(r->arena, "%s/%s", r->here, path);
    return *out ? WF_OK : wf_fail_nomem(err, strlen(path));
}

/* A checkpoint's folder, CHECKPOINTS/RUN/step-N: the run of that name, at that step. */
static bool take_checkpoint(request *r, char run[WF_RUN_NAME])
{
    char path[PATH_MAX], file[PATH_MAX + 32], *step, *name;
    long long number;

    if (!realpath(r->what, path))
        return false;
    snprintf(file, sizeof file, "%s/manifest.json", path);
    step = strrchr(path, '/');
    if (!wf_file_exists(file) || !step || sscanf(step, "/step-%lld", &number) != 1)
        return false;
    *step = 0;
    name = strrchr(path, '/');
    if (!name || !wf_run_name_ok(name + 1))
        return false;
    snprintf(run, WF_RUN_NAME, "%s", name + 1);
    *name = 0;
    snprintf(r->dir, sizeof r->dir, "%s", path);
    r->ask.step = number;
    return true;
}

/* --from: a step, "latest", "best". */
static wf_status take_step(request *r, wf_err *err)
{
    unsigned long long number;

    if (!r->from || strcmp(r->from, "latest") == 0)
        return WF_OK;
    r->ask.step = WF_STEP_BEST;
    if (strcmp(r->from, "best") == 0)
        return WF_OK;
    WF_TRY(wf_arg_u64("--from", r->from, 0, INT64_MAX, &number, err));
    r->ask.step = (int64_t)number;
    return WF_OK;
}

/* What the command has to know of the job; of one that is named by its file its newest run. */
static wf_status look_at_job(request *r, wf_err *err)
{
    const char *const dirs[] = {r->dir, NULL};
    wf_job_conf *job = NULL;
    wf_status rc = wf_job_parse(wf_bytes_str(&r->text), r->text.size, r->path, &job, err);

    if (rc == WF_OK)
        r->divides = wf_job_is_divided(job);
    if (rc == WF_OK && !r->run[0])
        rc = wf_runs_find(dirs, job->name, r->run, err);
    wf_job_free(&job);
    return rc;
}

/* The job of a checkpoint: that of the cluster that writes into this folder, or the one that lies
 * beside it. Another cluster may have another job of the same name. */
static wf_status take_job_of_checkpoint(request *r, const char *run, wf_err *err)
{
    char own[PATH_MAX], file[PATH_MAX + 128];

    snprintf(r->run, sizeof r->run, "%s", run);
    if (realpath(r->conf->checkpoint_dir, own) && strcmp(own, r->dir) == 0)
        return wf_place_job(r->conf, run, r->path, r->run, &r->text, err);
    snprintf(file, sizeof file, "%s/../jobs/%s/job.yaml", r->dir, run);
    if (wf_file_exists(file))
        return wf_place_read_kept(file, r->path, &r->text, err);
    return wf_fail(err, WF_NOTFOUND, "name the cluster that wrote it: --cluster FILE",
                   "there is no job file for the checkpoint %s", r->what);
}

static wf_status take_job(request *r, wf_err *err)
{
    char run[WF_RUN_NAME];

    r->ask.step = WF_STEP_NEWEST;
    WF_TRY(wf_place_cluster(r->cluster, r->spread, &r->conf, err));
    snprintf(r->dir, sizeof r->dir, "%s", r->conf->checkpoint_dir);
    if (take_checkpoint(r, run))
        WF_TRY(take_job_of_checkpoint(r, run, err));
    else
        WF_TRY(wf_place_job(r->conf, r->what, r->path, r->run, &r->text, err));
    WF_TRY(take_step(r, err));
    WF_TRY(look_at_job(r, err));
    r->ask.job = wf_bytes_str(&r->text);
    WF_TRY(shared_path(r, r->path, &r->ask.job_path, err));
    r->ask.run = r->run;
    r->ask.checkpoint_dir = r->dir;
    return WF_OK;
}

static wf_status take_model(request *r, wf_err *err)
{
    if (!ends_with(r->what, ".onnx"))
        return take_job(r, err);
    if (r->from)
        return wf_fail(err, WF_USAGE, "leave --from out",
                       "%s has one set of weights, and no checkpoints", r->what);
    if (r->spread)
        WF_TRY(wf_place_cluster(r->cluster, true, &r->conf, err));
    return shared_path(r, r->what, &r->ask.model, err);
}

/* ---- inputs ---- */

static struct wf_prediction_input *find_input(request *r, const char *name)
{
    for (size_t i = 0; i < r->ask.n_inputs; i++)
        if (strcmp(r->ask.inputs[i].name, name) == 0)
            return &r->ask.inputs[i];
    return NULL;
}

/* NAME=FILE; files of one name follow each other. */
static wf_status take_input(request *r, const char *word, wf_err *err)
{
    const char *equals = strchr(word, '=');
    struct wf_prediction_input *in;
    const char **paths;
    char *name;

    if (!equals || equals == word || !equals[1])
        return wf_fail(err, WF_USAGE, "write --input NAME=FILE", "\"%.64s\" names no file", word);
    name = wf_arena_printf(r->arena, "%.*s", (int)(equals - word), word);
    if (!name)
        return wf_fail_nomem(err, strlen(word));
    in = find_input(r, name);
    if (!in)
        in = &r->ask.inputs[r->ask.n_inputs++]; /* there are no more words than inputs may be */
    paths = wf_arena_array(r->arena, in->n + 1, sizeof *paths);
    if (!paths)
        return wf_fail_nomem(err, in->n * sizeof *paths);
    for (size_t i = 0; i < in->n; i++)
        paths[i] = in->paths[i];
    WF_TRY(shared_path(r, equals + 1, &paths[in->n], err));
    in->paths = paths;
    in->name = name;
    in->n++;
    return WF_OK;
}

_Static_assert(WF_COUNT(((wf_words *)0)->word) <= WF_PREDICTION_INPUTS, "all words have room");

/* ---- computed here ---- */

static bool stopped(void *arg)
{
    (void)arg;
    return wf_follow_interrupted();
}

static void tell(void *arg, const char *sentence)
{
    (void)arg;
    wf_term_print(stderr, "%s\n", sentence);
}

/* By the path that was given. */
static void tell_file(void *arg, const char *file, wf_dtype dtype, uint32_t rank,
                      const int64_t dims[])
{
    const request *r = arg;
    size_t n = strlen(r->here);
    char text[128];

    if (r->out[0] != '/' && strncmp(file, r->here, n) == 0 && file[n] == '/')
        file += n + 1;
    if (dtype == WF_NONE)
        wf_term_print(stdout, "%s: %" PRId64 " rows of %" PRId64 "\n", file, dims[0], dims[1]);
    else
        wf_term_print(stdout, "%s: %s%s\n", file, wf_dtype_name(dtype),
                      wf_dims_str(rank, dims, text, sizeof text));
}

static wf_status open_here(request *r, wf_err *err)
{
    wf_prediction_how how = {
        .disk = wf_disk_posix(), .warn = wf_library_warn, .tell = tell, .stopped = stopped};

    wf_flush_subnormals(); /* as every worker does */
    WF_TRY(wf_pool_new(r->threads, &r->pool, err));
    how.pool = r->pool;
    how.divides = r->spread && r->divides;
    return wf_prediction_open(&r->ask, &how, &r->prediction, err);
}

/* The model of a job that is divided may be too large for one process. */
static wf_status advise(const request *r, wf_status rc, wf_err *err)
{
    if (rc == WF_NOMEM && r->divides && !r->spread)
        snprintf(err->hint, sizeof err->hint,
                 "add --spread: the workers that \"place\" names compute it together");
    return rc;
}

/* One process at a time has the folder of parts. */
static wf_status lock_parts(request *r, wf_err *err)
{
    const char *parts = wf_prediction_parts(r->prediction);

    if (mkdir(parts, 0777) != 0 && errno != EEXIST)
        return WF_OK; /* why, is said when the parts begin */
    r->lock = open(parts, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (r->lock >= 0 && flock(r->lock, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK)
        return wf_fail(err, WF_EXISTS, "wait for it, or write to another file",
                       "another weft predict writes %s", r->out);
    return WF_OK;
}

static wf_status begin(request *r, uint64_t *done, wf_err *err)
{
    wf_prediction *p = r->prediction;
    wf_prediction_found found;
    wf_status rc;

    WF_TRY(lock_parts(r, err));
    rc = wf_prediction_begin(p, &found, err);
    if (rc != WF_OK) {
        rmdir(wf_prediction_parts(p)); /* which fails if there is something in it */
        return rc;
    }
    *done = found.done;
    if (found.other)
        wf_term_print(stderr, "%s held parts of another prediction: it begins anew\n",
                      wf_prediction_parts(p));
    if (found.done)
        wf_term_print(stderr, "%" PRIu64 " of %" PRIu64 " parts of %s are there: it goes on\n",
                      found.done, wf_prediction_splits(p), r->out);
    return WF_OK;
}

/* `computed` of the records that are there are of this process. */
static void show(const wf_prediction *p, wf_progress *progress, int64_t began_ns, uint64_t there,
                 uint64_t computed)
{
    int64_t now_ns = wf_now_ns();
    double rate = (double)computed * WF_NS_PER_S / (double)(now_ns - began_ns);
    char facts[64], count[32];

    if (now_ns - began_ns < QUIET_NS)
        return;
    snprintf(facts, sizeof facts, "%s records/s",
             wf_count_text((unsigned long long)rate, count, sizeof count));
    wf_progress_show(progress, now_ns, (double)there / (double)wf_prediction_records(p), "predict",
                     facts);
}

static uint64_t count_parts(const request *r)
{
    uint64_t n = wf_prediction_splits(r->prediction), there = 0;

    for (uint64_t i = 0; i < n; i++)
        there += wf_prediction_has(r->prediction, i);
    return there;
}

static wf_status compute(request *r, wf_err *err)
{
    wf_prediction *p = r->prediction;
    uint64_t n = wf_prediction_splits(p), each = wf_prediction_split_records(p), computed = 0;
    wf_progress progress = wf_progress_new(stderr);
    int64_t began_ns = wf_now_ns();
    wf_status rc = WF_OK;

    for (uint64_t i = 0; rc == WF_OK && i < n; i++) {
        uint64_t there = WF_MIN((i + 1) * each, wf_prediction_records(p));

        if (wf_prediction_has(p, i))
            continue;
        rc = wf_prediction_split(p, i, err);
        computed += there - i * each;
        if (rc == WF_OK)
            show(p, &progress, began_ns, there, computed);
    }
    wf_progress_clear(&progress);
    return rc;
}

/* A split that ends several workers is set aside by the master; and it is tried here, if the model
 * is. */
static wf_status check_set_aside(const request *r, wf_err *err)
{
    uint64_t n = wf_prediction_splits(r->prediction), there = count_parts(r);

    if (there < n && wf_prediction_is_divided(r->prediction))
        return wf_fail(err, WF_AGAIN, "look for split.set_aside with: weft status --json",
                       "%" PRIu64 " of %" PRIu64 " parts of %s were not computed by the workers",
                       n - there, n, r->out);
    if (there < n)
        wf_term_print(stderr,
                      "%" PRIu64 " of %" PRIu64
                      " parts were not computed by the workers: they are computed here\n",
                      n - there, n);
    return WF_OK;
}

static wf_status interrupted(const request *r, wf_err *err)
{
    return wf_fail(err, WF_STOPPED, "the same command goes on",
                   "interrupted: %" PRIu64 " of %" PRIu64 " parts of %s are computed",
                   count_parts(r), wf_prediction_splits(r->prediction), r->out);
}

/* Whether the same command may come further another time: of files that are wrong it cannot. */
static bool may_go_on(wf_status rc)
{
    return rc == WF_OK || rc == WF_STOPPED || rc == WF_IO || rc == WF_NOMEM || rc == WF_FULL ||
           rc == WF_CORRUPT;
}

static wf_status predict(request *r, wf_err *err)
{
    uint64_t done = 0;
    wf_status rc = WF_OK;

    wf_follow_catch();
    rc = open_here(r, err);
    if (rc != WF_OK)
        return advise(r, rc, err);
    WF_TRY(begin(r, &done, err));
    if (r->spread && done < wf_prediction_splits(r->prediction))
        rc = wf_predict_spread(r->conf, r->prediction, err);
    else
        r->spread = false;
    if (rc == WF_OK && r->spread)
        WF_TRY(check_set_aside(r, err));
    if (rc == WF_OK && !wf_prediction_is_divided(r->prediction))
        rc = advise(r, compute(r, err), err);
    if (rc == WF_STOPPED)
        return interrupted(r, err);
    if (rc == WF_OK)
        rc = wf_prediction_join(r->prediction, tell_file, r, err);
    if (!may_go_on(rc) && !r->spread)
        wf_prediction_drop(r->prediction);
    return rc;
}

/* ---- the command ---- */

static wf_status take_numbers(request *r, const char *batch, const char *split, const char *threads,
                              wf_err *err)
{
    unsigned long long number;
    long processors = sysconf(_SC_NPROCESSORS_ONLN);

    r->ask.batch = WF_PREDICTION_BATCH;
    r->threads = processors < 1 ? 1 : (uint32_t)WF_MIN(processors, (long)WF_POOL_MAX);
    if (batch) {
        WF_TRY(wf_arg_u64("--batch", batch, 1, 1 << 24, &number, err));
        r->ask.batch = number;
    }
    if (split) {
        WF_TRY(wf_arg_u64("--split-records", split, 1, 1ULL << 40, &number, err));
        r->ask.split_records = number;
    }
    if (threads) {
        WF_TRY(wf_arg_u64("--threads", threads, 1, WF_POOL_MAX, &number, err));
        r->threads = (uint32_t)number;
    }
    return WF_OK;
}

static wf_status read_args(int argc, char *argv[], request *r, wf_err *err)
{
    const char *batch = NULL, *threads = NULL, *split = NULL;
    wf_words words;
    const wf_flag flags[] = {
        {"input", 'i', .words = &r->inputs},   {"output", 'o', .value = &r->out},
        {"from", 0, .value = &r->from},        {"batch", 0, .value = &batch},
        {"split-records", 0, .value = &split}, {"threads", 0, .value = &threads},
        {"spread", 0, .set = &r->spread},      {"hosts", 0, .words = &r->hosts},
        {"cluster", 0, .value = &r->cluster},  {0}};

    WF_TRY(wf_args(flags, argc, argv, 1, 1, &words, err));
    r->what = words.word[0];
    if (!getcwd(r->here, sizeof r->here))
        return wf_fail_errno(err, errno, NULL, "cannot tell which folder this is");
    WF_TRY(take_numbers(r, batch, split, threads, err));
    if (!r->out || !r->out[0])
        return wf_fail(err, WF_USAGE, "add -o OUT.npy or -o OUT.csv",
                       "weft predict needs a file to write to");
    WF_TRY(wf_prediction_check_name(r->out, err));
    WF_TRY(shared_path(r, r->out, &r->ask.out, err));
    for (size_t i = 0; i < r->inputs.n; i++)
        WF_TRY(take_input(r, r->inputs.word[i], err));
    if (r->hosts.n && !r->spread)
        return wf_fail(err, WF_USAGE, "add --spread, or leave --hosts out",
                       "--hosts says which workers get which splits, and this process has all");
    return wf_predict_hosts(&r->hosts, r->here, r->arena, &r->ask, err);
}

static wf_status run(int argc, char *argv[], wf_err *err)
{
    request r = {.arena = wf_arena_new(0), .lock = -1};
    wf_status rc = r.arena ? read_args(argc, argv, &r, err) : wf_fail_nomem(err, 0);

    if (rc == WF_OK)
        rc = take_model(&r, err);
    if (rc == WF_OK)
        rc = predict(&r, err);
    wf_prediction_free(&r.prediction);
    wf_pool_free(&r.pool);
    wf_bytes_close(&r.text);
    wf_cluster_free(&r.conf);
    wf_arena_free(&r.arena);
    if (r.lock >= 0)
        close(r.lock);
    return rc;
}

const wf_cmd wf_cmd_predict = {
    .name = "predict",
    .help = "outputs of a trained job or an ONNX file for records in files",
    .usage =
        "weft predict JOB|JOB.yaml|CHECKPOINT|MODEL.onnx --input NAME=FILE ... -o OUT [--spread]\n"
        "\n"
        "Computes the outputs for all records of the files, in this process. For a job, the files\n"
        "are npy files or files of the job's format; they pass through data.map as in training, "
        "and\n"
        "the weights are those of the newest intact checkpoint. For an ONNX file, they are npy, "
        "npz,\n"
        "idx, tfrecord, csv or libsvm files that the model takes as they are. A pattern names\n"
        "several files, and so does --input with the same name again.\n"
        "  -i, --input NAME=FILE   the records of an input; of csv columns: x=FILE.csv#age,income\n"
        "  -o OUT.npy, OUT.csv     the outputs; a folder with one npy file each if there are "
        "several\n"
        "  --from STEP   use the checkpoint of that step; \"best\": the one a callback chose\n"
        "  --batch N     records at a time (256)\n"
        "  --split-records N   records of a part\n"
        "  --threads N   number of threads (default: one per processor)\n"
        "  --spread      on the workers of the cluster, which is started if it is not up; they "
        "read\n"
        "                the files, and write parts, under the same paths; a model that \"place\"\n"
        "                divides is computed by the workers that it names, each a part of it\n"
        "  --hosts FILE=HOST,HOST   with --spread: hosts that have the file, or the files of a "
        "pattern,\n"
        "                near; their workers get its splits first (may be repeated)\n"
        "  --cluster FILE   the cluster; otherwise ./cluster.yaml, or the local one\n"
        "\n"
        "OUT takes its name when it is whole. Until then its parts are in OUT.parts: the same "
        "command\n"
        "goes on after an interruption.\n"
        "\n"
        "  weft predict digits --input x=images.npy -o scores.npy\n"
        "  weft predict digits.onnx --input x=rows.npy -o scores.csv\n",
    .run = run,
};
