/* SPDX-License-Identifier: Apache-2.0 */
/* worker/stepper.c */
#include "worker/stepper.h"

#include <errno.h>
#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>
#include <unistd.h>

struct wf_stepper {
    pthread_t thread;
    bool started;
    int fd;
    pthread_mutex_t lock; /* of what follows */
    pthread_cond_t turn;  /* work was given, or is done */
    bool ending, busy;
    void (*fn)(void *arg);
    void *arg;
};

static void tell(int fd)
{
    const uint64_t one = 1;

    while (write(fd, &one, sizeof one) < 0 && errno == EINTR)
        ;
}

static void *work(void *arg)
{
    wf_stepper *s = arg;

    pthread_mutex_lock(&s->lock);
    for (;;) {
        while (!s->busy && !s->ending)
            pthread_cond_wait(&s->turn, &s->lock);
        if (!s->busy)
            break;
        pthread_mutex_unlock(&s->lock);
        s->fn(s->arg);
        pthread_mutex_lock(&s->lock);
        s->busy = false;
        pthread_cond_broadcast(&s->turn);
        tell(s->fd);
    }
    pthread_mutex_unlock(&s->lock);
    return NULL;
}

wf_status wf_stepper_new(int fd, wf_stepper **out, wf_err *err)
{
    wf_stepper *s = calloc(1, sizeof *s);
    int rc;

    if (!s)
        return wf_fail_nomem(err, sizeof *s);
    s->fd = fd;
    pthread_mutex_init(&s->lock, NULL);
    pthread_cond_init(&s->turn, NULL);
    *out = s;
    rc = pthread_create(&s->thread, NULL, work, s);
    s->started = rc == 0;
    if (rc == 0) {
        pthread_setname_np(s->thread, "weft-step");
        return WF_OK;
    }
    wf_stepper_free(out);
    return wf_fail_errno(err, rc, "lower \"threads\"", "starting a thread for steps");
}

void wf_stepper_free(wf_stepper **it)
{
    wf_stepper *s = *it;

    *it = NULL;
    if (!s)
        return;
    pthread_mutex_lock(&s->lock);
    s->ending = true;
    pthread_cond_broadcast(&s->turn);
    pthread_mutex_unlock(&s->lock);
    if (s->started)
        pthread_join(s->thread, NULL);
    pthread_cond_destroy(&s->turn);
    pthread_mutex_destroy(&s->lock);
    free(s);
}

void wf_stepper_give(wf_stepper *s, void (*fn)(void *arg), void *arg)
{
    pthread_mutex_lock(&s->lock);
    wf_assert(!s->busy);
    s->fn = fn;
    s->arg = arg;
    s->busy = true;
    pthread_cond_broadcast(&s->turn);
    pthread_mutex_unlock(&s->lock);
}

bool wf_stepper_is_done(wf_stepper *s)
{
    bool done;

    pthread_mutex_lock(&s->lock);
    done = !s->busy;
    pthread_mutex_unlock(&s->lock);
    return done;
}

void wf_stepper_wait(wf_stepper *s)
{
    pthread_mutex_lock(&s->lock);
    while (s->busy)
        pthread_cond_wait(&s->turn, &s->lock);
    pthread_mutex_unlock(&s->lock);
}
