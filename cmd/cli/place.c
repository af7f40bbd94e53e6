/* SPDX-License-Identifier: Apache-2.0 */
/* cmd/cli/place.c */
#include "cmd/cli/place.h"
#include "cmd/cli/lost.h"
#include "common/base/file.h"
#include "common/session/runs.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static const char LOCAL[] = ".weft/local.yaml";
enum { LOCAL_PS = 2, LOCAL_WORKERS = 2 };

static wf_status make_local(wf_err *err)
{
    wf_cluster_conf *made = NULL;
    wf_status rc;

    rc = wf_make_dirs(".weft", err);
    if (rc == WF_OK)
        rc = wf_cluster_local(".weft", LOCAL_PS, LOCAL_WORKERS, false, &made, err);
    if (rc == WF_OK)
        rc = wf_cluster_write(made, LOCAL, err);
    wf_cluster_free(&made);
    return rc;
}

/* Whether a local cluster of this folder runs on, although its file was removed: written again, it
 * is the same. */
static bool is_lost(void)
{
    char here[PATH_MAX - 32], file[PATH_MAX];
    wf_lost l;

    if (!getcwd(here, sizeof here))
        return false;
    snprintf(file, sizeof file, "%s/%s", here, LOCAL);
    return wf_lost_find(file, &l);
}

wf_status wf_place_cluster(const char *path, bool make, wf_cluster_conf **out, wf_err *err)
{
    if (path)
        return wf_cluster_load(path, out, err);
    if (wf_file_exists("cluster.yaml"))
        return wf_cluster_load("cluster.yaml", out, err);
    if (!wf_file_exists(LOCAL) && (make || is_lost()))
        WF_TRY(make_local(err));
    if (wf_file_exists(LOCAL))
        return wf_cluster_load(LOCAL, out, err);
    return wf_fail(err, WF_NOTFOUND, "go to its folder, or name it with --cluster FILE",
                   "there is no cluster.yaml here, and no local cluster was started here");
}

uint32_t wf_place_workers(const char *path, wf_cluster_conf **conf)
{
    wf_status rc = wf_place_cluster(path, false, conf, NULL);

    return rc == WF_OK ? (*conf)->n_workers : rc == WF_NOTFOUND && !path ? LOCAL_WORKERS : 0;
}

/* A copy is the text behind comment lines that say where it comes from, and how to go on with it.
 */
static const char FROM[] = "# from ", AGAIN[] = "# go on with: ";

wf_status wf_place_runs_of(const wf_cluster_conf *conf, wf_place_runs *out, wf_err *err)
{
    if (snprintf(out->jobs, sizeof out->jobs, "%s/jobs", conf->state_dir) >= (int)sizeof out->jobs)
        return wf_fail(err, WF_INVALID, NULL, "the path %.200s is too long", conf->state_dir);
    out->dirs[0] = out->jobs;
    out->dirs[1] = conf->checkpoint_dir;
    out->dirs[2] = NULL;
    return WF_OK;
}

wf_status wf_place_run(const wf_cluster_conf *conf, const char *word, char run[WF_RUN_NAME],
                       wf_err *err)
{
    wf_place_runs runs;

    if (!wf_run_name_ok(word))
        return wf_fail(err, WF_USAGE, "name it like digits, or digits#2 for its second run",
                       "\"%.64s\" is no job's name", word);
    WF_TRY(wf_place_runs_of(conf, &runs, err));
    return wf_runs_find(runs.dirs, word, run, err);
}

wf_status wf_place_keep_job(const wf_cluster_conf *conf, const char *run, const wf_place_copy *of,
                            wf_err *err)
{
    char full[PATH_MAX], folder[PATH_MAX + 80], file[PATH_MAX + 96];
    wf_bytes copy = {0};
    wf_status rc;

    if (!realpath(of->path, full))
        return wf_fail_errno(err, errno, NULL, "cannot find %s", of->path);
    snprintf(folder, sizeof folder, "%s/jobs/%s", conf->state_dir, run);
    snprintf(file, sizeof file, "%s/job.yaml", folder);
    wf_bytes_printf(&copy, "%s%s\n", FROM, full);
    if (of->again)
        wf_bytes_printf(&copy, "%s%s\n", AGAIN, of->again);
    wf_bytes_add(&copy, of->text, of->size);
    rc = wf_bytes_check(&copy, err);
    if (rc == WF_OK)
        rc = wf_make_dirs(folder, err);
    if (rc == WF_OK)
        rc = wf_file_write(file, copy.data, copy.size, err);
    wf_bytes_close(&copy);
    return rc;
}

/* Takes the first line off the text, if it begins with `start`; `rest` of PATH_MAX bytes is what
 * stands behind that. */
static bool take_line(wf_bytes *text, const char *start, char *rest)
{
    const char *at = wf_bytes_str(text);
    size_t first = strcspn(at, "\n");

    if (strncmp(at, start, strlen(start)) != 0 || !at[first] || first >= PATH_MAX)
        return false;
    snprintf(rest, PATH_MAX, "%.*s", (int)(first - strlen(start)), at + strlen(start));
    text->size -= first + 1;
    memmove(text->data, text->data + first + 1, text->size);
    text->data[text->size] = 0;
    return true;
}

wf_status wf_place_read_kept(const char *file, char path[PATH_MAX], wf_bytes *text, wf_err *err)
{
    char again[PATH_MAX];

    WF_TRY(wf_file_read(file, WF_CONF_MAX_BYTES + 2 * PATH_MAX, text, err));
    snprintf(path, PATH_MAX, "%s", file);
    if (take_line(text, FROM, path))
        (void)take_line(text, AGAIN, again);
    return WF_OK;
}

bool wf_place_again(const wf_cluster_conf *conf, const char *run, char again[PATH_MAX])
{
    char file[PATH_MAX], path[PATH_MAX];
    wf_bytes text = {0};
    wf_err why;
    bool is_known;

    is_known = snprintf(file, sizeof file, "%s/jobs/%s/job.yaml", conf->state_dir, run) <
                   (int)sizeof file &&
               wf_file_read(file, WF_CONF_MAX_BYTES + 2 * PATH_MAX, &text, &why) == WF_OK &&
               take_line(&text, FROM, path) && take_line(&text, AGAIN, again);
    wf_bytes_close(&text);
    return is_known;
}

static bool is_folder(const char *path)
{
    struct stat st;

    return stat(path, &st) == 0 && S_ISDIR(st.st_mode);
}

/* A folder may have the name of a job: that of its results, say. */
static bool is_path(const char *word)
{
    return strchr(word, '/') || !wf_run_name_ok(word) || (wf_file_exists(word) && !is_folder(word));
}

wf_status wf_place_job(const wf_cluster_conf *conf, const char *word, char path[PATH_MAX],
                       char run[WF_RUN_NAME], wf_bytes *text, wf_err *err)
{
    char file[PATH_MAX];

    run[0] = 0;
    if (is_path(word)) {
        if (is_folder(word))
            return wf_fail(err, WF_USAGE,
                           "name a job, the file of one, or the folder step-N of a checkpoint",
                           "%s is a folder, and no checkpoint of a job", word);
        snprintf(path, PATH_MAX, "%s", word);
        return wf_job_read(word, text, err);
    }
    WF_TRY(wf_place_run(conf, word, run, err));
    if (snprintf(file, sizeof file, "%s/jobs/%s/job.yaml", conf->state_dir, run) >=
        (int)sizeof file)
        return wf_fail(err, WF_INVALID, NULL, "the path %.200s is too long", conf->state_dir);
    if (!wf_file_exists(file))
        return wf_fail(err, WF_NOTFOUND,
                       "weft status lists the jobs; or give the path of a job file",
                       "no job \"%s\" was submitted from here", word);
    return wf_place_read_kept(file, path, text, err);
}

wf_status wf_place_program(const char *name, char *path, size_t size, wf_err *err)
{
    char self[PATH_MAX];
    ssize_t n = readlink("/proc/self/exe", self, sizeof self - 1);
    char *slash;

    if (n < 0)
        return wf_fail_errno(err, errno, NULL, "cannot tell where weft lies");
    self[n] = 0;
    slash = strrchr(self, '/');
    *slash = 0;
    if (snprintf(path, size, "%s/%s", self, name) >= (int)size)
        return wf_fail(err, WF_INVALID, NULL, "the path %.200s is too long", self);
    if (access(path, X_OK) != 0)
        return wf_fail(err, WF_NOTFOUND, "install or build it beside weft",
                       "%s is not in %s, where weft is", name, self);
    return WF_OK;
}
