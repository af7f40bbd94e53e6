/* SPDX-License-Identifier: Apache-2.0 */
/* tests/kit/remote.h - what the files of the remote devices share; nobody else includes it. */
#ifndef TESTS_KIT_REMOTE_H
#define TESTS_KIT_REMOTE_H

#include "common/kernels/kernel.h"
#include "common/tensor/device.h"
#include <stddef.h>
#include <stdint.h>

/* One lock for memory and streams; a thread may take it again. remote_set_up makes it. */
void remote_set_up(void);
void remote_lock(void);
void remote_unlock(void);

/* remote_memory.c: the calls of wf_device. */
size_t remote_memory(const wf_device *d);
void *remote_alloc(const wf_device *d, size_t bytes);
void remote_free(const wf_device *d, void *data);
/* In the lock: the address behind [p, p + bytes), which has to be a device's; aborts and names
 * `who` otherwise. */
void *remote_behind(const void *p, size_t bytes, const char *who);
/* In the lock: aborts, naming `who`, if any of it is a device's. */
void remote_need_host(const void *p, size_t bytes, const char *who);

/* A piece of work that waits in a stream, with copies of all that it was called with. */
typedef struct remote_work {
    struct remote_work *next;
    wf_status (*act)(struct remote_work *w, wf_err *err); /* in the lock */
    /* a copy or fill */
    wf_copy_way way;
    void *to;
    const void *from;
    size_t bytes;
    int byte;
    /* a wait for another stream */
    struct remote_stream *other;
    uint64_t target;
    /* a kernel: headers as they were when it was queued */
    wf_run run;
    uint32_t n_in, n_out;
    const wf_tensor **in; /* these two lie behind the headers */
    wf_tensor **out;
    wf_tensor headers[]; /* [n_in + n_out] */
} remote_work;

/* remote_stream.c: puts work behind what is queued; takes it. */
void remote_append(wf_stream *s, remote_work *w);
/* A device of that name, for memory and streams. */
wf_device remote_device_called(const char *name);

#endif
