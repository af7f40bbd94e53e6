/* SPDX-License-Identifier: Apache-2.0 */
/* runtime/background.c */
#include "runtime/background.h"
#include "common/base/disk.h"
#include "common/base/file.h"
#include "common/log/log.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/stat.h>
#include <unistd.h>

enum { MOST_LINES = 10000 };

typedef struct line {
    struct line *next;
    char *folder, *file; /* file NULL: the folder is to go */
    wf_bytes head, body; /* the head goes before the body into a file that is empty */
} line;

typedef struct lines {
    line *first, **last;
    uint32_t n;
} lines;

/* A thread, and the one piece of work that it has. */
typedef struct lane {
    wf_background *of;
    pthread_t thread;
    pthread_cond_t wake;
    bool started, working;
    wf_work *todo, *done;
} lane;

struct wf_background {
    pthread_mutex_t lock; /* of all below */
    bool stop;
    lane sync, slow;
    lines writes;  /* by the lane that syncs */
    bool writing;  /* a line that is no longer among them */
    lines removes; /* by the other, when there is nothing to write */
    int fd;
};

/* ---- lines ---- */

static void free_line(line *l)
{
    if (!l)
        return;
    free(l->folder);
    free(l->file);
    wf_bytes_close(&l->head);
    wf_bytes_close(&l->body);
    free(l);
}

static int open_to_append(const char *path)
{
    return open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
}

static void write_line(line *l)
{
    char path[PATH_MAX];
    struct stat st;
    int fd;

    snprintf(path, sizeof path, "%s/%s", l->folder, l->file);
    fd = open_to_append(path);
    if (fd < 0 && errno == ENOENT && wf_disk_make_dirs(wf_disk_posix(), l->folder, NULL) == WF_OK)
        fd = open_to_append(path);
    if (fd < 0)
        return;
    if (fstat(fd, &st) == 0 && st.st_size == 0) { /* one call for all: a crash leaves no part */
        wf_bytes_add(&l->head, l->body.data, l->body.size);
        wf_bytes_close(&l->body);
        l->body = l->head;
        l->head = (wf_bytes){0};
    }
    if (l->body.failed || write(fd, l->body.data, l->body.size) < 0)
        WF_LOG_WARN("events.unwritten", "path=%s", path);
    close(fd);
}

static line *take(lines *list)
{
    line *l = list->first;

    if (!l)
        return NULL;
    list->first = l->next;
    if (!list->first)
        list->last = &list->first;
    list->n--;
    return l;
}

/* Of bytes that are copied; file NULL: a folder to be removed. */
static void add(wf_background *b, lane *by, lines *list, const char *folder, const char *file,
                const wf_bytes *head, const wf_bytes *body)
{
    line *l = calloc(1, sizeof *l);

    if (!l)
        return;
    l->folder = strdup(folder);
    l->file = file ? strdup(file) : NULL;
    if (file)
        wf_bytes_add(&l->head, head->data, head->size);
    if (file)
        wf_bytes_add(&l->body, body->data, body->size);
    pthread_mutex_lock(&b->lock);
    if (l->folder && !file == !l->file && !l->head.failed && !l->body.failed &&
        list->n < MOST_LINES) {
        *list->last = l;
        list->last = &l->next;
        list->n++;
        l = NULL;
        pthread_cond_signal(&by->wake);
    }
    pthread_mutex_unlock(&b->lock);
    free_line(l);
}

void wf_background_append(wf_background *b, const char *folder, const char *file,
                          const wf_bytes *head, const wf_bytes *body)
{
    add(b, &b->sync, &b->writes, folder, file, head, body);
}

void wf_background_write(wf_background *b, const char *folder, const char *file, const char *text)
{
    wf_bytes body = {0};

    wf_bytes_puts(&body, text);
    if (!body.failed)
        add(b, &b->sync, &b->writes, folder, file, &(wf_bytes){0}, &body);
    wf_bytes_close(&body);
}

void wf_background_remove(wf_background *b, const char *folder)
{
    add(b, &b->slow, &b->removes, folder, NULL, NULL, NULL);
}

/* ---- the threads ---- */

static void tell_loop(const wf_background *b)
{
    uint64_t one = 1;

    while (write(b->fd, &one, sizeof one) < 0 && errno == EINTR)
        ;
}

static void do_work(wf_background *b, lane *l)
{
    wf_work *w = l->todo;

    l->todo = NULL;
    l->working = true;
    pthread_mutex_unlock(&b->lock);
    wf_work_run(w);
    pthread_mutex_lock(&b->lock);
    l->working = false;
    l->done = w;
    tell_loop(b);
}

static void do_line(wf_background *b, line *l)
{
    b->writing = true;
    pthread_mutex_unlock(&b->lock);
    write_line(l);
    free_line(l);
    pthread_mutex_lock(&b->lock);
    b->writing = false;
    if (b->removes.first)
        pthread_cond_signal(&b->slow.wake); /* which waits until nothing is to be written */
}

static void do_removal(wf_background *b, line *l)
{
    wf_err why;

    pthread_mutex_unlock(&b->lock);
    if (wf_remove_tree(l->folder, &why) != WF_OK)
        WF_LOG_WARN("job.unremoved", "why=\"%s\"", why.what);
    free_line(l);
    pthread_mutex_lock(&b->lock);
}

/* Lines that are still there at the end are written, and folders removed. */
static void *run_lane(void *arg)
{
    lane *l = arg;
    wf_background *b = l->of;

    pthread_mutex_lock(&b->lock);
    for (;;) {
        line *next = NULL;

        if (l->todo && !b->stop)
            do_work(b, l);
        else if (l == &b->sync && (next = take(&b->writes)))
            do_line(b, next);
        else if (l == &b->slow && !b->writes.first && !b->writing && (next = take(&b->removes)))
            do_removal(b, next);
        else if (b->stop && (l == &b->sync || !b->removes.first))
            break;
        else
            pthread_cond_wait(&l->wake, &b->lock);
    }
    pthread_mutex_unlock(&b->lock);
    return NULL;
}

static wf_status start(wf_background *b, lane *l, wf_err *err)
{
    l->of = b;
    if (pthread_create(&l->thread, NULL, run_lane, l) != 0)
        return wf_fail(err, WF_IO, NULL, "cannot start a thread");
    l->started = true;
    return WF_OK;
}

/* ---- for the loop ---- */

wf_status wf_background_new(wf_background **out, wf_err *err)
{
    wf_background *b = calloc(1, sizeof *b);
    wf_status rc;

    *out = NULL;
    if (!b)
        return wf_fail_nomem(err, sizeof *b);
    pthread_mutex_init(&b->lock, NULL);
    pthread_cond_init(&b->sync.wake, NULL);
    pthread_cond_init(&b->slow.wake, NULL);
    b->writes.last = &b->writes.first;
    b->removes.last = &b->removes.first;
    b->fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    rc = b->fd < 0 ? wf_fail_errno(err, errno, NULL, "cannot make an eventfd") : WF_OK;
    if (rc == WF_OK)
        rc = start(b, &b->sync, err);
    if (rc == WF_OK)
        rc = start(b, &b->slow, err);
    if (rc != WF_OK)
        wf_background_end(&b, true);
    *out = b;
    return rc;
}

void wf_background_begin(wf_background *b, wf_work *w)
{
    lane *l = wf_work_is_sync(w) ? &b->sync : &b->slow;

    pthread_mutex_lock(&b->lock);
    wf_assert(!l->todo && !l->working && !l->done);
    l->todo = w;
    pthread_cond_signal(&l->wake);
    pthread_mutex_unlock(&b->lock);
}

wf_work *wf_background_done(wf_background *b)
{
    lane *l;
    wf_work *w;
    uint64_t n;

    pthread_mutex_lock(&b->lock);
    l = b->sync.done ? &b->sync : &b->slow;
    w = l->done;
    l->done = NULL;
    if (!w)
        while (read(b->fd, &n, sizeof n) < 0 && errno == EINTR)
            ;
    pthread_mutex_unlock(&b->lock);
    return w;
}

int wf_background_fd(const wf_background *b)
{
    return b->fd;
}

bool wf_background_end(wf_background **b, bool waits)
{
    wf_background *it = *b;
    bool long_work;

    if (!it)
        return true;
    pthread_mutex_lock(&it->lock);
    it->stop = true;
    long_work = it->slow.working;
    pthread_cond_signal(&it->sync.wake);
    pthread_cond_signal(&it->slow.wake);
    pthread_mutex_unlock(&it->lock);
    if (it->sync.started)
        pthread_join(it->sync.thread, NULL);
    if (long_work && !waits)
        return false;
    if (it->slow.started)
        pthread_join(it->slow.thread, NULL);
    *b = NULL; /* which the threads may find it by */
    wf_work_free(&it->sync.todo);
    wf_work_free(&it->sync.done);
    wf_work_free(&it->slow.todo);
    wf_work_free(&it->slow.done);
    if (it->fd >= 0)
        close(it->fd);
    pthread_cond_destroy(&it->sync.wake);
    pthread_cond_destroy(&it->slow.wake);
    pthread_mutex_destroy(&it->lock);
    free(it);
    return true;
}
