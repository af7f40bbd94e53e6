/* SPDX-License-Identifier: Apache-2.0 */
/* cmd/cli/log_files.c */
#include "cmd/cli/log_files.h"
#include "cmd/cli/tail.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

/* Of one log; older lines are for other tools. */
enum { MOST_BYTES = 64 << 20, TIME_TEXT = 24 };

/* Whether the word means that task: by its name, with a slash or as its file has it, or its role.
 */
static bool means(const char *word, const char *role, const char *task)
{
    const char *slash = strchr(task, '/');

    if (!word || strcmp(word, role) == 0 || strcmp(word, task) == 0)
        return true;
    return slash && strncmp(word, role, strlen(role)) == 0 && word[strlen(role)] == '-' &&
           strcmp(word + strlen(role) + 1, slash + 1) == 0;
}

static wf_status add(const wf_cluster_conf *conf, const char *word, const char *role, uint32_t i,
                     wf_arena *arena, wf_log_file *list, size_t *n, wf_err *err)
{
    bool one = strcmp(role, "ps") != 0 && strcmp(role, "worker") != 0;
    const char *task = one ? role : wf_arena_printf(arena, "%s/%u", role, i);
    const char *path = strcmp(role, "supervisor") == 0
                           ? wf_arena_printf(arena, "%s/logs/supervisor.log", conf->state_dir)
                           : wf_arena_printf(arena, "%s/logs/%s-%u.log", conf->state_dir, role, i);

    if (!task || !path)
        return wf_fail_nomem(err, PATH_MAX);
    if (means(word, role, task))
        list[(*n)++] = (wf_log_file){task, path, 0};
    return WF_OK;
}

wf_status wf_log_files(const wf_cluster_conf *conf, const char *word, wf_arena *arena,
                       wf_log_file **out, size_t *n, wf_err *err)
{
    *n = 0;
    *out = wf_arena_array(arena, 2 + (size_t)conf->n_ps + conf->n_workers, sizeof **out);
    if (!*out)
        return wf_fail_nomem(err, sizeof **out);
    WF_TRY(add(conf, word, "master", 0, arena, *out, n, err));
    for (uint32_t i = 0; i < conf->n_ps; i++)
        WF_TRY(add(conf, word, "ps", i, arena, *out, n, err));
    for (uint32_t i = 0; i < conf->n_workers; i++)
        WF_TRY(add(conf, word, "worker", i, arena, *out, n, err));
    if (word && strcmp(word, "supervisor") == 0)
        WF_TRY(add(conf, word, "supervisor", 0, arena, *out, n, err));
    if (*n == 0)
        return wf_fail(err, WF_NOTFOUND,
                       "name one like worker/1, ps for all of them, master or supervisor",
                       "%s names no task \"%.64s\"", conf->path, word);
    return WF_OK;
}

/* When the supervisor of the cluster was started last, as lines have times; "" if that is not
 * known. Its lock is written then, before any task is started. */
static void find_begin(const wf_cluster_conf *conf, char text[TIME_TEXT + 1])
{
    char path[PATH_MAX + 32], seconds[20];
    struct stat st;
    struct tm tm;

    text[0] = 0;
    snprintf(path, sizeof path, "%s/supervisor.lock", conf->state_dir);
    if (stat(path, &st) != 0 || !gmtime_r(&st.st_mtim.tv_sec, &tm))
        return;
    strftime(seconds, sizeof seconds, "%Y-%m-%dT%H:%M:%S", &tm);
    snprintf(text, TIME_TEXT + 1, "%s.%03uZ", seconds,
             (unsigned)(st.st_mtim.tv_nsec / 1000000) % 1000U);
}

static bool has_time(const char *line)
{
    return strlen(line) > TIME_TEXT && line[4] == '-' && line[10] == 'T' &&
           line[TIME_TEXT - 1] == 'Z';
}

/* Behind the last line that is older. What has no time belongs to the line before it. */
static const char *skip_before(const char *text, const char *begin)
{
    const char *from = text;

    for (const char *line = text; line && *line; line = line ? line + 1 : NULL) {
        bool old = has_time(line) && strncmp(line, begin, TIME_TEXT) < 0;

        line = strchr(line, '\n');
        if (old)
            from = line ? line + 1 : from + strlen(from);
        if (!line)
            break;
    }
    return from;
}

wf_status wf_log_tail(const wf_cluster_conf *conf, wf_log_file *log, unsigned long long lines,
                      bool all, wf_bytes *out, wf_err *err)
{
    char begin[TIME_TEXT + 1];
    const char *first, *from;

    WF_TRY(wf_tail_read(log->path, MOST_BYTES, out, &log->read, err));
    find_begin(conf, begin);
    first = all || !begin[0] ? wf_bytes_str(out) : skip_before(wf_bytes_str(out), begin);
    from = wf_bytes_str(out) + out->size;
    for (unsigned long long n = 0; from > first; from--)
        if (from[-1] == '\n' && n++ == lines)
            break;
    if (out->size) {
        out->size -= (size_t)(from - wf_bytes_str(out));
        memmove(out->data, from, out->size + 1);
    }
    return WF_OK;
}
