/* SPDX-License-Identifier: Apache-2.0 */
/* common/wire/shm_conn.c */
#include "common/wire/shm_conn.h"
#include "common/wire/shm_note.h"

#include <stdlib.h>
#include <unistd.h>

/* The memory that a dialler makes: the ring from it, and the ring to it. */
typedef struct rings {
    wf_ring from_dialler, to_dialler;
} rings;

static wf_shm_conn *new_conn(int fd, wf_shm_state state, int64_t now_ns)
{
    wf_shm_conn *c = calloc(1, sizeof *c);

    if (!c) {
        close(fd);
        return NULL;
    }
    c->fd = fd;
    c->state = state;
    c->since_ns = now_ns;
    for (uint32_t i = 0; i < WF_RING_LOANS; i++)
        c->idle[c->n_idle++] = (uint16_t)(WF_RING_LOANS - 1 - i);
    return c;
}

static bool use_rings(wf_shm_conn *c, wf_shm_memory *memory, bool dialled)
{
    rings *r = (rings *)(void *)memory->at;

    c->memory = memory;
    c->out.ring = dialled ? &r->from_dialler : &r->to_dialler;
    c->in.ring = dialled ? &r->to_dialler : &r->from_dialler;
    c->pool = wf_shm_pool_new(c->fd);
    return c->pool != NULL;
}

wf_shm_conn *wf_shm_conn_ask(int fd, int64_t now_ns, const char **why)
{
    wf_shm_conn *c = new_conn(fd, WF_SHM_ASKED, now_ns);
    wf_shm_note ask = {WF_NOTE_ASK, WF_SHM_VERSION, sizeof(rings)};
    wf_shm_memory *memory;
    bool sent;
    int rings_fd;

    *why = "memory is short";
    if (!c)
        return NULL;
    rings_fd = wf_shm_memory_make(sizeof(rings), &memory);
    if (rings_fd < 0) {
        *why = "the system gives no shared memory";
        wf_shm_conn_free(&c);
        return NULL;
    }
    *why = "the other side does not take it";
    sent = use_rings(c, memory, true) && wf_shm_note_send(fd, &ask, rings_fd);
    close(rings_fd);
    if (!sent)
        wf_shm_conn_free(&c);
    return c;
}

wf_shm_conn *wf_shm_conn_await(int fd, int64_t now_ns)
{
    return new_conn(fd, WF_SHM_NEW, now_ns);
}

void wf_shm_conn_free(wf_shm_conn **conn)
{
    wf_shm_conn *c = *conn;

    *conn = NULL;
    if (!c)
        return;
    wf_shm_pool_close(&c->pool);
    for (uint32_t i = 0; i < c->n_busy; i++)
        wf_buf_unref(&c->lent[c->busy[i]]);
    for (uint32_t i = 0; i < WF_SHM_BLOCKS; i++)
        wf_shm_memory_unref(&c->blocks[i]);
    wf_shm_memory_unref(&c->memory);
    close(c->fd);
    free(c);
}

void wf_shm_conn_end(wf_shm_conn *c, const char *why)
{
    if (c->state != WF_SHM_OVER)
        c->why = why;
    c->state = WF_SHM_OVER;
}

void wf_shm_conn_ring(const wf_shm_conn *c)
{
    /* Where there is no room for a bell, there are bells that were not heard yet. */
    (void)!wf_shm_note_send(c->fd, &(wf_shm_note){.kind = WF_NOTE_BELL}, -1);
}

void wf_shm_conn_reap(wf_shm_conn *c)
{
    for (uint32_t i = 0; i < c->n_busy;) {
        uint16_t loan = c->busy[i];

        if (atomic_load_explicit(&c->out.ring->loans[loan], memory_order_acquire)) {
            i++;
            continue;
        }
        wf_buf_unref(&c->lent[loan]);
        c->busy[i] = c->busy[--c->n_busy];
        c->idle[c->n_idle++] = loan;
    }
}

/* ---- notes ---- */

static bool take_rings(wf_shm_conn *c, const wf_shm_note *note, int fd)
{
    wf_shm_memory *memory = NULL;

    if (note->number == WF_SHM_VERSION && note->bytes == sizeof(rings) && fd >= 0)
        memory = wf_shm_memory_map(fd, sizeof(rings));
    if (!memory || !use_rings(c, memory, false))
        return false;
    c->state = WF_SHM_UP;
    return wf_shm_note_send(c->fd, &(wf_shm_note){.kind = WF_NOTE_TAKEN}, -1);
}

static bool take_block(wf_shm_conn *c, const wf_shm_note *note, int fd)
{
    if (fd < 0 || note->number >= WF_SHM_BLOCKS || c->blocks[note->number] ||
        note->bytes > WF_SHM_BLOCK_MOST)
        return false;
    c->blocks[note->number] = wf_shm_memory_map(fd, note->bytes);
    return c->blocks[note->number] != NULL;
}

/* Whether the note may come now and is right. */
static bool on_note(wf_shm_conn *c, const wf_shm_note *note, int fd)
{
    if (note->kind == WF_NOTE_ASK && c->state == WF_SHM_NEW)
        return take_rings(c, note, fd);
    if (note->kind == WF_NOTE_TAKEN && c->state == WF_SHM_ASKED) {
        c->state = WF_SHM_UP;
        return true;
    }
    if (c->state == WF_SHM_NEW)
        return false;
    if (note->kind == WF_NOTE_BLOCK)
        return take_block(c, note, fd);
    if (note->kind == WF_NOTE_FORGET && note->number < WF_SHM_BLOCKS)
        wf_shm_memory_unref(&c->blocks[note->number]);
    return note->kind == WF_NOTE_BELL ||
           (note->kind == WF_NOTE_FORGET && note->number < WF_SHM_BLOCKS);
}

void wf_shm_conn_look(wf_shm_conn *c)
{
    wf_shm_note note;
    int fd, there = 0;

    while (c->state != WF_SHM_OVER && (there = wf_shm_note_take(c->fd, &note, &fd)) > 0) {
        if (!on_note(c, &note, fd))
            wf_shm_conn_end(c, "a note that cannot be right");
        if (fd >= 0)
            close(fd);
    }
    if (there < 0)
        wf_shm_conn_end(c, NULL);
}
