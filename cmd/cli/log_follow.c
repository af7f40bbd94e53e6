/* SPDX-License-Identifier: Apache-2.0 */
/* cmd/cli/log_follow.c - looks at the logs five times a second. */
#include "cmd/cli/following.h"
#include "cmd/cli/log_files.h"
#include "cmd/cli/term.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* A longer line is printed in parts. */
enum { LOOK_MS = 200, MOST_LINE = 64 << 10 };

typedef struct followed {
    const wf_log_file *log;
    int fd; /* -1: it is not there */
    off_t at;
    size_t n; /* bytes of a line that has no end yet */
    char line[MOST_LINE + 1];
} followed;

static void print_line(const followed *f, bool named)
{
    if (named)
        wf_term_print(stdout, "%-10s ", f->log->task);
    wf_term_print(stdout, "%s\n", f->line);
}

/* What has come since the last look. */
static void read_more(followed *f, bool named)
{
    char *end;
    ssize_t k;

    while ((k = pread(f->fd, f->line + f->n, MOST_LINE - f->n, f->at)) > 0) {
        f->at += k;
        f->n += (size_t)k;
        f->line[f->n] = 0;
        while ((end = memchr(f->line, '\n', f->n)) || f->n == MOST_LINE) {
            size_t length = end ? (size_t)(end - f->line) : f->n, used = length + (end != NULL);

            f->line[length] = 0;
            print_line(f, named);
            f->n -= used;
            memmove(f->line, f->line + used, f->n);
        }
    }
}

/* Whether the name stands for another file by now, or for a shorter one. */
static bool is_another(const followed *f)
{
    struct stat here, named;

    if (stat(f->log->path, &named) != 0)
        return false; /* moved away; a new one follows perhaps */
    return fstat(f->fd, &here) != 0 || here.st_ino != named.st_ino || here.st_dev != named.st_dev ||
           named.st_size < f->at;
}

static void open_again(followed *f, off_t at)
{
    f->fd = open(f->log->path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    f->at = at;
    f->n = 0;
}

static void look(followed *f, bool named)
{
    if (f->fd < 0)
        open_again(f, 0);
    if (f->fd < 0)
        return;
    read_more(f, named);
    if (!is_another(f))
        return;
    close(f->fd);
    open_again(f, 0);
    if (f->fd >= 0)
        read_more(f, named);
}

wf_status wf_log_follow(const wf_log_file logs[], size_t n, wf_err *err)
{
    followed *all = calloc(n, sizeof *all);
    wf_status rc = WF_OK;

    if (!all)
        return wf_fail_nomem(err, n * sizeof *all);
    wf_follow_catch();
    for (size_t i = 0; i < n; i++) {
        all[i].log = &logs[i];
        open_again(&all[i], (off_t)logs[i].read);
    }
    while (rc == WF_OK && !wf_follow_interrupted()) {
        for (size_t i = 0; i < n; i++)
            look(&all[i], n > 1);
        if (fflush(stdout) != 0)
            rc = wf_fail_errno(err, errno, NULL, "cannot write the lines");
        else
            poll(NULL, 0, LOOK_MS);
    }
    for (size_t i = 0; i < n; i++)
        if (all[i].fd >= 0)
            close(all[i].fd);
    free(all);
    return rc;
}
