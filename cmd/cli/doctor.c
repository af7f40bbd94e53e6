/* SPDX-License-Identifier: Apache-2.0 */
/* cmd/cli/doctor.c - what of this machine would stand in weft's way: all that `weft up` would fail
 * on is found here, without starting anything. */
#include "cmd/cli/build_info.h"
#include "cmd/cli/cli.h"
#include "cmd/cli/json.h"
#include "cmd/cli/place.h"
#include "cmd/cli/ports.h"
#include "cmd/cli/super.h"
#include "cmd/cli/term.h"
#include "common/base/disk.h"
#include "common/base/file.h"
#include "common/base/machine.h"
#include "common/kernels/kernel.h"

#include <errno.h>
#include <jansson.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/statvfs.h>
#include <unistd.h>

/* Files that a task of a cluster of n tasks holds open: a connection to each other, and its own;
 * room that a first job needs on a disk, and a worker in memory. */
enum { FILES_A_TASK = 24, FILES_EACH = 2 };
#define LEAST_DISK (UINT64_C(1) << 30)
#define LEAST_MEMORY (UINT64_C(1) << 29)

typedef struct checkup {
    wf_term term;
    json_t *rows; /* NULL: lines are printed */
} checkup;

/* `what` is one word, for programs. */
static void say(checkup *c, const char *what, bool ok, const char *fmt, ...) WF_PRINTF(4, 5);

static void say(checkup *c, const char *what, bool ok, const char *fmt, ...)
{
    char text[3 * PATH_MAX];
    va_list args;

    va_start(args, fmt);
    vsnprintf(text, sizeof text, fmt, args);
    va_end(args);
    if (c->rows)
        json_array_append_new(c->rows,
                              json_pack("{s:s, s:b, s:s}", "check", what, "ok", ok, "text", text));
    else
        wf_term_print(stdout, "%s%s%s %s\n", wf_term_style(&c->term, ok ? WF_GREEN : WF_YELLOW),
                      ok ? "ok  " : "warn", wf_term_style(&c->term, WF_PLAIN), text);
}

static void say_error(checkup *c, const char *what, const wf_err *err)
{
    say(c, what, false, "%s%s%s", err->what, err->hint[0] ? "; " : "", err->hint);
}

/* ---- the machine ---- */

static void check_programs(checkup *c)
{
    static const char *const names[] = {"weft-master", "weft-ps", "weft-worker"};
    char path[PATH_MAX], zeromq[WF_BUILD_TEXT];

    say(c, "weft", true, "weft %s %s  zeromq %s", WEFT_VERSION, wf_build_commit(),
        wf_build_version_of("zeromq", zeromq));
    for (size_t i = 0; i < WF_COUNT(names); i++) {
        wf_err err = {0};

        if (wf_place_program(names[i], path, sizeof path, &err) != WF_OK)
            say_error(c, "programs", &err);
    }
}

static void check_processor(checkup *c)
{
    char units[64] = "", blas[WF_BUILD_TEXT], dnn[WF_BUILD_TEXT];
    const char *unit;
    size_t at = 0;

    for (size_t i = 0; (unit = wf_build_unit(i)); i++)
        at += (size_t)snprintf(units + at, sizeof units - at, "%s%s", i ? " " : "", unit);
    say(c, "processor", true, "%ld processors with %s  openblas %s  onednn %s%s",
        sysconf(_SC_NPROCESSORS_ONLN), at ? units : "no vector units that weft knows",
        wf_build_version_of("openblas", blas), wf_build_version_of("onednn", dnn),
        strstr(units, "avx512") ? "" : " (unused: it needs avx512)");
}

static void check_memory(checkup *c)
{
    uint64_t bytes = wf_machine_memory();
    struct statvfs shm;
    char text[32];

    say(c, "memory", bytes >= LEAST_MEMORY, "%s of memory",
        wf_bytes_text(bytes, text, sizeof text));
    if (statvfs("/dev/shm", &shm) == 0)
        say(c, "shm", true, "%s in /dev/shm",
            wf_bytes_text((uint64_t)shm.f_bavail * shm.f_frsize, text, sizeof text));
}

static void check_devices(checkup *c)
{
    char found[512] = "cpu", name[16], bytes[32];
    const wf_device *d;
    size_t at = strlen(found);
    wf_err err;
    int n = 0;

    for (snprintf(name, sizeof name, "cuda:0"); wf_device_open(name, &d, &err) == WF_OK;
         snprintf(name, sizeof name, "cuda:%d", ++n))
        if (at < sizeof found)
            at += (size_t)snprintf(found + at, sizeof found - at, "; %s (%s, %s)", name, d->about,
                                   wf_bytes_text(wf_device_memory(d), bytes, sizeof bytes));
    say(c, "devices", true, "%s%s%s", found, n ? "" : "; ", n ? "" : err.what);
}

static void check_limits(checkup *c)
{
    struct rlimit files;
    unsigned long tasks;

    if (getrlimit(RLIMIT_NOFILE, &files) != 0)
        return;
    tasks = files.rlim_cur > FILES_A_TASK ? (files.rlim_cur - FILES_A_TASK) / FILES_EACH : 0;
    say(c, "files", tasks >= 100, "open files limit %lu: enough for %lu tasks%s",
        (unsigned long)files.rlim_cur, tasks,
        tasks < 100 ? "; raise it with: ulimit -n 65536" : "");
}

/* ---- the cluster ---- */

/* The folder itself, or the nearest one above that is there: where it would be made. */
static void nearest_folder(const char *path, char out[static PATH_MAX])
{
    snprintf(out, PATH_MAX, "%s", path);
    while (access(out, F_OK) != 0) {
        char *slash = strrchr(out, '/');

        if (!slash || slash == out) {
            snprintf(out, PATH_MAX, "%s", slash ? "/" : ".");
            return;
        }
        *slash = 0;
    }
}

static void check_folder(checkup *c, const char *key, const char *path)
{
    char folder[PATH_MAX], room[32];
    uint64_t bytes = 0;

    nearest_folder(path, folder);
    if (access(folder, W_OK | X_OK) != 0) {
        say(c, key, false,
            "%s %s: %s cannot be written by this user: %s; write another %s into "
            "cluster.yaml",
            key, path, folder, strerror(errno), key);
        return;
    }
    if (wf_disk_free_bytes(wf_disk_posix(), folder, &bytes, NULL) == WF_OK)
        say(c, key, bytes >= LEAST_DISK, "%s %s: %s are free%s", key, path,
            wf_bytes_text(bytes, room, sizeof room),
            bytes >= LEAST_DISK ? "" : "; a job needs room for its checkpoints");
}

static void check_port(checkup *c, const wf_task_conf *t, const char *role, uint32_t index)
{
    char who[32];
    wf_err err = {0};

    snprintf(who, sizeof who, index == UINT32_MAX ? "%s" : "%s/%u", role, index);
    if (wf_port_is_here(t) && wf_port_check_free(t, who, &err) != WF_OK)
        say_error(c, "ports", &err);
}

static void check_ports(checkup *c, const wf_cluster_conf *conf)
{
    check_port(c, &conf->master, "master", UINT32_MAX);
    for (uint32_t i = 0; i < conf->n_ps; i++)
        check_port(c, &conf->ps[i], "ps", i);
    for (uint32_t i = 0; i < conf->n_workers; i++)
        check_port(c, &conf->workers[i], "worker", i);
}

/* The first job to try: here, or where "ninja install" puts the examples. */
static void say_no_cluster(checkup *c)
{
    static const char *const places[] = {"examples", WEFT_EXAMPLES};
    char path[PATH_MAX];

    for (size_t i = 0; i < WF_COUNT(places); i++) {
        snprintf(path, sizeof path, "%s/digits.yaml", places[i]);
        if (wf_file_exists(path)) {
            say(c, "cluster", true, "no cluster here yet; a job to begin with is %s", path);
            return;
        }
    }
    say(c, "cluster", true, "no cluster here yet; weft train JOB.yaml starts one");
}

static void check_cluster(checkup *c, const char *cluster)
{
    wf_cluster_conf *conf = NULL;
    wf_err err = {0};
    wf_status rc = wf_place_cluster(cluster, false, &conf, &err);
    bool up;

    if (rc == WF_NOTFOUND && !cluster) {
        say_no_cluster(c);
        return;
    }
    if (rc != WF_OK) {
        say_error(c, "cluster", &err);
        return;
    }
    up = wf_super_pid(conf) != 0;
    say(c, "cluster", true, "cluster %s: 1 master, %u ps, %u workers, %s", conf->name, conf->n_ps,
        conf->n_workers, up ? "up" : "down");
    if (!up)
        check_ports(c, conf);
    check_folder(c, "state_dir", conf->state_dir);
    check_folder(c, "checkpoint_dir", conf->checkpoint_dir);
    wf_cluster_free(&conf);
}

static wf_status run(int argc, char *argv[], wf_err *err)
{
    checkup c = {.term = wf_term_of(stdout)};
    const char *cluster = NULL;
    bool as_json = false;
    const wf_flag flags[] = {{"json", 0, .set = &as_json}, {"cluster", 0, .value = &cluster}, {0}};
    wf_status rc = WF_OK;
    wf_words words;

    WF_TRY(wf_args(flags, argc, argv, 0, 0, &words, err));
    if (as_json)
        c.rows = json_array();
    check_programs(&c);
    check_processor(&c);
    check_memory(&c);
    check_devices(&c);
    check_limits(&c);
    check_cluster(&c, cluster);
    if (as_json)
        rc = wf_json_print(json_incref(c.rows), JSON_INDENT(2), err);
    json_decref(c.rows);
    return rc;
}

const wf_cmd wf_cmd_doctor = {
    .name = "doctor",
    .help = "check this machine: programs, limits, disk, the cluster here",
    .usage =
        "weft doctor [--json] [--cluster FILE]\n"
        "\n"
        "Checks this machine: programs, processor features, memory, open-file limit, and for the\n"
        "cluster in this folder its addresses, the folders that it writes and their free space. "
        "It\n"
        "starts nothing. Each line begins with ok or warn.\n"
        "  --json           a list of {check, ok, text}\n"
        "  --cluster FILE   the cluster; otherwise ./cluster.yaml, or the local one\n"
        "\n"
        "  weft doctor\n",
    .run = run,
};
