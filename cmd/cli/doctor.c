/* SPDX-License-Identifier: Apache-2.0 */
/* cmd/cli/doctor.c - what of this machine would stand in weft's way. */
#include "cmd/cli/cli.h"
#include "cmd/cli/place.h"
#include "cmd/cli/super.h"
#include "cmd/cli/term.h"
#include "common/base/disk.h"

#include <stdio.h>
#include <sys/resource.h>
#include <unistd.h>
#include <zmq.h>

/* Files that a task of a cluster of n tasks holds open: a connection to each other, and its own. */
enum { FILES_A_TASK = 24, FILES_EACH = 2 };

typedef struct checkup {
    wf_term term;
    int warnings;
} checkup;

static void say(checkup *c, bool ok, const char *text)
{
    printf("%s%s%s %s\n", wf_term_style(&c->term, ok ? WF_GREEN : WF_YELLOW), ok ? "ok  " : "warn",
           wf_term_style(&c->term, WF_PLAIN), text);
    c->warnings += !ok;
}

static void check_programs(checkup *c)
{
    static const char *const names[] = {"weft-master", "weft-ps", "weft-worker"};
    char path[4096], text[4200];
    int major, minor, patch;

    zmq_version(&major, &minor, &patch);
    snprintf(text, sizeof text, "weft %s  zeromq %d.%d.%d%s  %ld processors", WEFT_VERSION, major,
             minor, patch, zmq_has("curve") ? " curve" : "", sysconf(_SC_NPROCESSORS_ONLN));
    say(c, true, text);
    for (size_t i = 0; i < WF_COUNT(names); i++) {
        wf_err err;

        if (wf_place_program(names[i], path, sizeof path, &err) != WF_OK)
            say(c, false, err.what);
    }
}

static void check_limits(checkup *c)
{
    struct rlimit files;
    char text[160];
    unsigned long tasks;

    if (getrlimit(RLIMIT_NOFILE, &files) != 0)
        return;
    tasks = files.rlim_cur > FILES_A_TASK ? (files.rlim_cur - FILES_A_TASK) / FILES_EACH : 0;
    snprintf(text, sizeof text, "open files limit %lu: enough for %lu tasks%s",
             (unsigned long)files.rlim_cur, tasks,
             tasks < 100 ? "; raise it with: ulimit -n 65536" : "");
    say(c, tasks >= 100, text);
}

static void check_cluster(checkup *c)
{
    wf_cluster_conf *conf = NULL;
    char text[4400], room[32];
    uint64_t bytes = 0;
    wf_err err;
    wf_status rc = wf_place_cluster(NULL, false, &conf, &err);

    if (rc == WF_NOTFOUND) {
        say(c, true, "no cluster here yet; try:  weft train examples/digits.yaml");
        return;
    }
    if (rc != WF_OK) {
        say(c, false, err.what);
        return;
    }
    snprintf(text, sizeof text, "cluster %s: 1 master, %u ps, %u workers, %s", conf->name,
             conf->n_ps, conf->n_workers, wf_super_pid(conf) ? "up" : "down");
    say(c, true, text);
    if (wf_disk_exists(wf_disk_posix(), conf->checkpoint_dir) &&
        wf_disk_free_bytes(wf_disk_posix(), conf->checkpoint_dir, &bytes, NULL) == WF_OK) {
        snprintf(text, sizeof text, "%s are free in %s", wf_bytes_text(bytes, room, sizeof room),
                 conf->checkpoint_dir);
        say(c, bytes >= (UINT64_C(1) << 30), text);
    }
    wf_cluster_free(&conf);
}

static wf_status run(int argc, char *argv[], wf_err *err)
{
    checkup c = {.term = wf_term_of(stdout)};
    wf_words words;

    WF_TRY(wf_args((const wf_flag[]){{0}}, argc, argv, 0, 0, &words, err));
    check_programs(&c);
    check_limits(&c);
    check_cluster(&c);
    return WF_OK;
}

const wf_cmd wf_cmd_doctor = {
    .name = "doctor",
    .help = "check this machine: programs, limits, disk, the cluster here",
    .usage =
        "weft doctor\n\n"
        "Looks at what weft needs on this machine: its programs, the limit of open files, the\n"
        "cluster of this folder and the room on its disk. Each line begins with ok or warn.\n\n"
        "  weft doctor\n",
    .run = run,
};
