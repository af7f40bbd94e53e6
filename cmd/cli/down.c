/* SPDX-License-Identifier: Apache-2.0 */
/* cmd/cli/down.c */
#include "cmd/cli/ask.h"
#include "cmd/cli/cli.h"
#include "cmd/cli/following.h"
#include "cmd/cli/lost.h"
#include "cmd/cli/place.h"
#include "cmd/cli/ports.h"
#include "cmd/cli/super.h"
#include "cmd/cli/super_down.h"
#include "cmd/cli/term.h"
#include "common/base/clock.h"

#include <stdio.h>
#include <string.h>

/* Down: longer than the supervisor gives its tasks before it kills them. */
enum { DOWN_MS = 20000, ANSWER_MS = 3000, STOP_MS = 60000, LOOK_MS = 50 };
enum { FOLLOWERS_MS = 500 }; /* who follows a job looks at it five times a second */

/* ---- jobs that are under way ---- */

static const char *name_of(const json_t *job)
{
    const char *s = json_string_value(json_object_get(job, "name"));

    return s ? s : "";
}

/* Asks for each job to be stopped, the queued ones first: none of them is to begin. */
static wf_status ask_to_stop(wf_ask *a, json_t *picture, bool queued, wf_err *err)
{
    Weft__Ask ask = WEFT__ASK__INIT;
    json_t *job;
    size_t i;

    ask.command = "stop";
    json_array_foreach(json_object_get(picture, "jobs"), i, job)
    {
        const char *state = json_string_value(json_object_get(job, "state"));
        wf_status rc;

        if (wf_ask_is_over(job) || !state || (strcmp(state, "queued") == 0) != queued)
            continue;
        wf_term_print(stderr, "stopping %s with a checkpoint; Ctrl-C ends it without one\n",
                      name_of(job));
        ask.job = (char *)name_of(job);
        rc = wf_ask_send(a, &ask, ANSWER_MS, NULL, err);
        if (rc != WF_OK && rc != WF_INVALID) /* over by now */
            return rc;
    }
    return WF_OK;
}

static bool any_live(json_t *picture)
{
    json_t *job;
    size_t i;

    json_array_foreach(json_object_get(picture, "jobs"), i, job)
    {
        if (!wf_ask_is_over(job))
            return true;
    }
    return false;
}

/* Until all are over; not for a task that is down for good, nor for one who has pressed Ctrl-C. */
static wf_status wait_for_jobs(const wf_cluster_conf *conf, wf_ask *a, wf_err *err)
{
    Weft__Ask ask = WEFT__ASK__INIT;
    int64_t end_ns = wf_now_ns() + STOP_MS * WF_NS_PER_MS;

    ask.command = "status";
    for (;;) {
        json_t *picture = NULL;
        wf_status rc = wf_ask_send(a, &ask, ANSWER_MS, &picture, err);
        bool live = rc == WF_OK && any_live(picture);

        json_decref(picture);
        if (rc != WF_OK || !live || wf_follow_interrupted())
            return rc;
        WF_TRY(wf_super_check_down(conf, NULL, err));
        if (wf_now_ns() > end_ns)
            return wf_fail(err, WF_TIMEOUT, NULL, "a job did not stop within %d s", STOP_MS / 1000);
        WF_TRY(wf_ask_pass(a, LOOK_MS, err));
    }
}

static wf_status stop_jobs(const wf_cluster_conf *conf, wf_err *err)
{
    Weft__Ask ask = WEFT__ASK__INIT;
    json_t *picture = NULL;
    wf_ask *a = NULL;
    wf_status rc;

    ask.command = "status";
    rc = wf_ask_open(conf, &a, err);
    if (rc == WF_OK)
        rc = wf_ask_send(a, &ask, ANSWER_MS, &picture, err);
    if (rc == WF_OK && any_live(picture)) {
        wf_follow_catch();
        rc = ask_to_stop(a, picture, true, err);
        if (rc == WF_OK)
            rc = ask_to_stop(a, picture, false, err);
        if (rc == WF_OK)
            rc = wait_for_jobs(conf, a, err);
        if (rc == WF_OK && !wf_follow_interrupted())
            rc = wf_ask_pass(a, FOLLOWERS_MS, err); /* they see how it ended */
    }
    json_decref(picture);
    wf_ask_close(&a);
    return rc;
}

/* ---- the command ---- */

static wf_status end_lost(const wf_cluster_conf *conf, wf_err *err)
{
    bool any;

    WF_TRY(wf_lost_end(conf, DOWN_MS, &any, err));
    if (!any)
        return wf_fail(err, WF_NOTFOUND, "\"weft up\" starts it",
                       "the cluster of %s is not up on this host", conf->state_dir);
    wf_term_print(stdout, "cluster %s, which had lost its folder %s, is down\n", conf->name,
                  conf->state_dir);
    return WF_OK;
}

static wf_status down(const wf_cluster_conf *conf, bool now, wf_err *err)
{
    wf_err why;

    if (!wf_super_pid(conf))
        return end_lost(conf, err);
    if (!now && wf_port_is_here(&conf->master) && stop_jobs(conf, &why) != WF_OK)
        wf_term_print(stderr, "warning: no checkpoint is taken first: %s\n", why.what);
    WF_TRY(wf_super_stop(conf, DOWN_MS, err));
    wf_term_print(stdout, "cluster %s is down\n", conf->name);
    return WF_OK;
}

static wf_status run(int argc, char *argv[], wf_err *err)
{
    const char *cluster = NULL;
    wf_cluster_conf *conf = NULL;
    bool now = false;
    wf_words words;
    const wf_flag flags[] = {{"now", 0, .set = &now}, {"cluster", 0, .value = &cluster}, {0}};
    wf_status rc;

    WF_TRY(wf_args(flags, argc, argv, 0, 1, &words, err));
    WF_TRY(wf_place_cluster(words.n ? words.word[0] : cluster, false, &conf, err));
    rc = down(conf, now, err);
    wf_cluster_free(&conf);
    return rc;
}

const wf_cmd wf_cmd_down = {
    .name = "down",
    .help = "end the cluster",
    .usage =
        "weft down [cluster.yaml] [--now]\n"
        "\n"
        "Stops the jobs of the cluster with a checkpoint, then every task on this host: politely\n"
        "first, by force after 10 s. On a host without the master it stops only the tasks.\n"
        "\"weft recover JOB\" continues a job from its checkpoint. Tasks whose state folder was\n"
        "removed while they ran are found and ended too.\n"
        "  --now   do not stop the jobs first: training since the last checkpoint is lost\n"
        "\n"
        "  weft down\n",
    .run = run,
    .ends = true,
};
