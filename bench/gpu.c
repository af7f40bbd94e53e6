/* SPDX-License-Identifier: Apache-2.0 */
/* bench/gpu.c - how fast a device runs a plan: the loss and gradients of a model over a batch of
 * random numbers, or large matrix products.
 *
 *     bench_gpu MODEL --batch N [--below NAME=N]... [--check] [OPTION]...
 *     bench_gpu --product N [OPTION]...
 *
 * MODEL is a job file, or an ONNX file with its loss. Options: --device cpu (or cuda:0, or a device
 * of tests/kit/remote_device.h), --threads N of the host (all), --seconds S (5), --compute TYPE
 * (float32), as the key of a job.
 *
 * Prints a JSON object: the time of a step as the median, least and most of five windows; what the
 * plan takes; the operations that it leaves to the host; the bytes that a step copies between host
 * and device; and a digest of the first step's results, which a further run of that step has to
 * give too (`same_bits`). --check adds the largest difference from the cpu's plan, and what the
 * cpu's own results differ by if its inputs are moved as rounding does (filled_plan_move);
 * --profile N what the steps take, each run N times by itself: the sums of operations, and the
 * slowest steps.
 */
#include "bench/filled_plan.h"
#include "common/base/clock.h"
#include "common/base/subnormal.h"
#include "common/graph/op.h"
#include "common/log/log.h"
#include "tests/kit/remote_device.h"

#include <getopt.h>
#include <inttypes.h>
#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { WINDOWS = 5, WARM_UP = 3, SLOWEST = 40 };

typedef struct options {
    filled_spec model;
    filled_limit limits[FILLED_MOST_LIMITS];
    int64_t product; /* 0: a model is measured */
    const char *device;
    uint32_t threads;
    double seconds;
    bool check;
    uint32_t profile; /* times that each step is run; 0: not */
} options;

typedef struct figures {
    double plan_ms, first_ms, step_ms[WINDOWS]; /* in order of size */
    uint64_t digest;
    bool same_bits;
    filled_difference difference;
    double rounding;     /* the difference between two runs of the cpu, of one with moved inputs */
    wf_step_time *steps; /* [wf_plan_n_steps]: slowest first; NULL: not measured */
} figures;

static double since_ms(int64_t from_ns)
{
    return (double)(wf_now_ns() - from_ns) / 1e6;
}

static int by_size(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

static wf_status measure(filled_plan *p, double seconds, figures *f, wf_err *err)
{
    int64_t from = wf_now_ns();

    WF_TRY(filled_plan_run(p, 0, err));
    f->first_ms = since_ms(from);
    WF_TRY(filled_plan_fetch(p, err));
    f->digest = filled_plan_digest(p);
    for (uint64_t i = 1; i < WARM_UP; i++)
        WF_TRY(filled_plan_run(p, i, err));
    for (int w = 0; w < WINDOWS; w++) {
        uint64_t steps = 0;

        from = wf_now_ns();
        do {
            WF_TRY(filled_plan_run(p, steps, err));
            steps++;
        } while (since_ms(from) < seconds * 1e3 / WINDOWS);
        f->step_ms[w] = since_ms(from) / (double)steps;
    }
    qsort(f->step_ms, WINDOWS, sizeof f->step_ms[0], by_size);
    WF_TRY(filled_plan_run(p, 0, err));
    WF_TRY(filled_plan_fetch(p, err));
    f->same_bits = filled_plan_digest(p) == f->digest;
    return WF_OK;
}

static wf_status run_and_fetch(filled_plan *p, wf_err *err)
{
    WF_TRY(filled_plan_run(p, 0, err));
    return filled_plan_fetch(p, err);
}

/* The plan holds what step 0 gave. */
static wf_status check(const filled_model *m, wf_pool *pool, const filled_plan *p, figures *f,
                       wf_err *err)
{
    filled_plan of_cpu, moved;
    wf_status rc = filled_plan_of_model(m, &wf_cpu, pool, &of_cpu, err);

    if (rc == WF_OK)
        rc = run_and_fetch(&of_cpu, err);
    if (rc == WF_OK)
        f->difference = filled_plan_compare(p, &of_cpu);
    moved = (filled_plan){.plan = NULL};
    if (rc == WF_OK)
        rc = filled_plan_of_model(m, &wf_cpu, pool, &moved, err);
    if (rc == WF_OK)
        rc = filled_plan_move(&moved, err);
    if (rc == WF_OK)
        rc = run_and_fetch(&moved, err);
    if (rc == WF_OK)
        f->rounding = filled_plan_compare(&moved, &of_cpu).largest;
    filled_plan_close(&moved);
    filled_plan_close(&of_cpu);
    return rc;
}

static int by_time(const void *a, const void *b)
{
    double x = ((const wf_step_time *)a)->us, y = ((const wf_step_time *)b)->us;

    return (x < y) - (x > y);
}

static wf_status profile(filled_plan *p, uint32_t times, figures *f, wf_err *err)
{
    uint32_t n = wf_plan_n_steps(p->plan);

    f->steps = calloc(n + (size_t)1, sizeof *f->steps);
    if (!f->steps)
        return wf_fail_nomem(err, n * sizeof *f->steps);
    WF_TRY(wf_plan_profile(p->plan, &(wf_step_key){.seed = 1}, times, f->steps, err));
    qsort(f->steps, n, sizeof *f->steps, by_time);
    return WF_OK;
}

/* ---- JSON ---- */

static void add(json_t *to, const char *name, json_t *value)
{
    json_object_set_new(to, name, value);
}

static json_t *memory_of(const filled_plan *p)
{
    wf_plan_usage u = wf_plan_memory(p->plan);
    json_t *j = json_object();
    char host[512];

    wf_plan_host_operations(p->plan, host, sizeof host);
    add(j, "device_bytes", json_integer((json_int_t)u.device_bytes));
    add(j, "arena_bytes", json_integer((json_int_t)u.arena_bytes));
    add(j, "constants_bytes", json_integer((json_int_t)u.constants_bytes));
    add(j, "workspace_bytes", json_integer((json_int_t)u.workspace_bytes));
    add(j, "bytes_in", json_integer((json_int_t)p->bytes_in));
    add(j, "bytes_out", json_integer((json_int_t)p->bytes_out));
    add(j, "nodes", json_integer(u.n_nodes));
    add(j, "nodes_on_host", json_integer(u.n_on_host));
    add(j, "host_operations", json_string(host));
    return j;
}

/* {operation: [steps, microseconds of all of them]}. */
static json_t *sums_of(const wf_step_time *steps, uint32_t n)
{
    json_t *sums = json_object();

    for (uint32_t i = 0; i < n; i++) {
        const char *op = steps[i].node->op->name;
        json_t *sum = json_object_get(sums, op);

        if (!sum)
            add(sums, op, sum = json_pack("[i, f]", 0, 0.0));
        json_array_set_new(sum, 0, json_integer(json_integer_value(json_array_get(sum, 0)) + 1));
        json_array_set_new(sum, 1,
                           json_real(json_real_value(json_array_get(sum, 1)) + steps[i].us));
    }
    return sums;
}

/* [operation, name, type of its first result, microseconds]. */
static json_t *step_of(const wf_step_time *s)
{
    const wf_value *v = s->node->n_out ? s->node->out[0] : NULL;
    char type[128] = "";
    size_t at = 0;

    if (v)
        at = (size_t)snprintf(type, sizeof type, "%s", wf_dtype_name(v->dtype));
    for (int32_t k = 0; v && k < v->rank && at < sizeof type; k++)
        at += (size_t)snprintf(type + at, sizeof type - at, " %" PRId64, v->axes[k].size);
    return json_pack("[s, s, s, f]", s->node->op->name, s->node->name, type, s->us);
}

static json_t *profile_of(const filled_plan *p, const wf_step_time *steps)
{
    uint32_t n = wf_plan_n_steps(p->plan);
    json_t *slowest = json_array();

    for (uint32_t i = 0; i < n && i < SLOWEST; i++)
        json_array_append_new(slowest, step_of(&steps[i]));
    return json_pack("{s:o, s:o}", "operations", sums_of(steps, n), "slowest", slowest);
}

static json_t *result_of(const options *o, const wf_device *d, const filled_plan *p,
                         const figures *f)
{
    double ms = f->step_ms[WINDOWS / 2], n = (double)o->product;
    json_t *j = json_object();
    char digest[20];

    snprintf(digest, sizeof digest, "%016" PRIx64, f->digest);
    add(j, "device", json_string(d->name));
    add(j, "about", d->about ? json_string(d->about) : json_null());
    add(j, "compute", json_string(wf_compute_name(o->model.compute)));
    add(j, "plan_ms", json_real(f->plan_ms));
    add(j, "first_ms", json_real(f->first_ms));
    add(j, "ms_per_step", json_real(ms));
    add(j, "ms_least", json_real(f->step_ms[0]));
    add(j, "ms_most", json_real(f->step_ms[WINDOWS - 1]));
    add(j, "steps_per_s", json_real(1e3 / ms));
    if (o->product) {
        add(j, "n", json_integer(o->product));
        add(j, "tflops", json_real(FILLED_PRODUCTS * 2 * n * n * n / (ms * 1e9)));
    } else {
        add(j, "model", json_string(o->model.path));
        add(j, "batch", json_integer(o->model.batch));
        add(j, "examples_per_s", json_real((double)o->model.batch * 1e3 / ms));
    }
    add(j, "digest", json_string(digest));
    add(j, "same_bits", json_boolean(f->same_bits));
    /* JSON has no infinity: what differs by it, as when one result is NaN, differs by 1e300. */
    if (o->check)
        add(j, "check",
            json_pack("{s:f, s:s, s:f}", "largest", fmin(f->difference.largest, 1e300), "output",
                      f->difference.output, "rounding", fmin(f->rounding, 1e300)));
    add(j, "plan", memory_of(p));
    if (f->steps)
        add(j, "profile", profile_of(p, f->steps));
    return j;
}

static wf_status print(json_t *j, wf_err *err)
{
    wf_status rc = j && json_dumpf(j, stdout, JSON_REAL_PRECISION(6)) == 0
                       ? WF_OK
                       : wf_fail(err, WF_IO, NULL, "the result cannot be written");

    putchar('\n');
    json_decref(j);
    return rc;
}

/* ---- the program ---- */

static wf_status bench(const options *o, wf_err *err)
{
    filled_model model = {.spec = NULL};
    filled_plan plan = {.plan = NULL};
    figures f = {.plan_ms = 0};
    const wf_device *device;
    wf_pool *pool = NULL;
    int64_t from;
    wf_status rc = test_device_called(o->device, &device, err);

    if (rc == WF_OK)
        rc = wf_pool_new(o->threads, &pool, err);
    if (rc == WF_OK && !o->product)
        rc = filled_model_open(&o->model, &model, err);
    from = wf_now_ns();
    if (rc == WF_OK)
        rc = o->product
                 ? filled_plan_of_products(o->product, o->model.compute, device, pool, &plan, err)
                 : filled_plan_of_model(&model, device, pool, &plan, err);
    f.plan_ms = since_ms(from);
    if (rc == WF_OK)
        rc = measure(&plan, o->seconds, &f, err);
    if (rc == WF_OK && o->check)
        rc = check(&model, pool, &plan, &f, err);
    if (rc == WF_OK && o->profile)
        rc = profile(&plan, o->profile, &f, err);
    if (rc == WF_OK)
        rc = print(result_of(o, device, &plan, &f), err);
    filled_plan_close(&plan);
    filled_model_close(&model);
    wf_pool_free(&pool);
    free(f.steps);
    return rc;
}

/* "NAME=N", which it takes apart. */
static bool take_limit(options *o, char *text)
{
    char *equal = strchr(text, '=');
    int64_t limit = equal ? strtoll(equal + 1, NULL, 10) : 0;

    if (limit < 1 || o->model.n_limits == FILLED_MOST_LIMITS)
        return false;
    *equal = 0;
    o->limits[o->model.n_limits++] = (filled_limit){text, limit};
    return true;
}

static bool take_option(options *o, int which, char *text)
{
    switch (which) {
    case 'b':
        return (o->model.batch = strtoll(text, NULL, 10)) > 0;
    case 'l':
        return take_limit(o, text);
    case 'p':
        return (o->product = strtoll(text, NULL, 10)) > 0;
    case 'd':
        o->device = text;
        return true;
    case 't':
        return (o->threads = (uint32_t)strtoul(text, NULL, 10)) > 0;
    case 's':
        return (o->seconds = strtod(text, NULL)) > 0;
    case 'f':
        return (o->model.compute = wf_compute_of(text)) != WF_COMPUTES;
    case 'c':
        return o->check = true;
    case 'o':
        return (o->profile = (uint32_t)strtoul(text, NULL, 10)) > 0;
    default:
        return false;
    }
}

static bool take_options(options *o, int argc, char *argv[])
{
    static const struct option names[] = {
        {"batch", required_argument, NULL, 'b'},   {"below", required_argument, NULL, 'l'},
        {"product", required_argument, NULL, 'p'}, {"device", required_argument, NULL, 'd'},
        {"threads", required_argument, NULL, 't'}, {"seconds", required_argument, NULL, 's'},
        {"compute", required_argument, NULL, 'f'}, {"check", no_argument, NULL, 'c'},
        {"profile", required_argument, NULL, 'o'}, {NULL, 0, NULL, 0},
    };
    int which;

    while ((which = getopt_long(argc, argv, "", names, NULL)) != -1)
        if (!take_option(o, which, optarg))
            return false;
    o->model.path = argv[optind];
    return o->product ? optind == argc && !o->check : optind + 1 == argc && o->model.batch;
}

int main(int argc, char *argv[])
{
    long processors = sysconf(_SC_NPROCESSORS_ONLN);
    options o = {.model = {.seed = 1},
                 .device = "cpu",
                 .threads = processors > 0 ? (uint32_t)processors : 1,
                 .seconds = 5};
    wf_err err = {0};
    wf_status rc;

    o.model.limits = o.limits;
    if (!take_options(&o, argc, argv)) {
        fprintf(stderr, "bench_gpu MODEL --batch N, or bench_gpu --product N; the options are at "
                        "the top of bench/gpu.c\n");
        return wf_exit_code(WF_USAGE);
    }
    wf_log_init("", WF_INFO); /* which algorithms were chosen, and for how long */
    wf_flush_subnormals();
    rc = bench(&o, &err);
    if (rc != WF_OK)
        fprintf(stderr, "%s%s%s\n", err.what, err.hint[0] ? "; " : "", err.hint);
    return wf_exit_code(rc);
}
