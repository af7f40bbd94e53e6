/* SPDX-License-Identifier: Apache-2.0 */
/* cmd/cli/super_down.c */
#include "cmd/cli/super_down.h"
#include "cmd/cli/super.h"
#include "common/base/bytes.h"
#include "common/base/file.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { MOST_BYTES = 1 << 20 };

static wf_status open_list(const wf_cluster_conf *conf, int how, int *fd, wf_err *err)
{
    char path[PATH_MAX];

    if (snprintf(path, sizeof path, "%s/tasks.down", conf->state_dir) >= (int)sizeof path)
        return wf_fail(err, WF_INVALID, NULL, "the path %.200s... is too long", conf->state_dir);
    *fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC | how, 0644);
    return *fd >= 0 ? WF_OK : wf_fail_errno(err, errno, NULL, "cannot open %s", path);
}

wf_status wf_super_down_clear(const wf_cluster_conf *conf, wf_err *err)
{
    int fd = -1;

    WF_TRY(open_list(conf, O_TRUNC, &fd, err));
    close(fd);
    return WF_OK;
}

wf_status wf_super_down_add(const wf_cluster_conf *conf, const char *task, const char *why,
                            wf_err *err)
{
    char line[PATH_MAX + 512];
    wf_status rc;
    int fd = -1, n;

    n = snprintf(line, sizeof line, "%s: %s\n", task, why);
    if (n >= (int)sizeof line)
        return wf_fail(err, WF_INVALID, NULL, "the reason of %s is too long", task);
    WF_TRY(open_list(conf, O_APPEND, &fd, err));
    rc = wf_write_all(fd, line, (size_t)n, "tasks.down", err);
    close(fd);
    return rc;
}

bool wf_super_is_down(const wf_cluster_conf *conf, const char *task, char *why, size_t size)
{
    size_t n = task ? strlen(task) : 0;
    char path[PATH_MAX];
    wf_bytes text = {0};
    bool found = false;

    if (!wf_super_pid(conf)) /* the list is of one that has ended */
        return false;
    if (snprintf(path, sizeof path, "%s/tasks.down", conf->state_dir) >= (int)sizeof path ||
        wf_file_read(path, MOST_BYTES, &text, NULL) != WF_OK)
        return false;
    for (const char *line = wf_bytes_str(&text); *line && !found;) {
        size_t length = strcspn(line, "\n");

        found = length > 0 && (!task || (strncmp(line, task, n) == 0 && line[n] == ':'));
        if (found)
            snprintf(why, size, "%.*s", (int)length, line);
        line += length + (line[length] != 0);
    }
    wf_bytes_close(&text);
    return found;
}

wf_status wf_super_check_down(const wf_cluster_conf *conf, const char *task, wf_err *err)
{
    char why[PATH_MAX + 512];

    if (!wf_super_is_down(conf, task, why, sizeof why))
        return WF_OK;
    return wf_fail(err, WF_IO, "put that right, then: weft down && weft up",
                   "down for good: %.900s", why);
}
