/* SPDX-License-Identifier: Apache-2.0 */
/* common/data/reader.c - who gathers a batch claims it first, under the lock, in the order of the
 * queue; gathering itself holds no lock.
 *
 * Slots hold batches: EMPTY, FILLING (claimed), READY (in the line, in order), HELD (the caller has
 * it). The line holds the claimed slots in the order in which they are given.
 *
 * Invariants
 *   R1  line[] holds at most `depth` slots, each FILLING or READY
 *   R2  at most WF_READER_HELD slots are HELD, and at most one is FILLING after a cancel took it
 * out of the line: so with depth + WF_READER_HELD + 1 slots there is always an EMPTY one to claim
 */
#include "common/data/reader.h"
#include "common/base/pages.h"
#include "common/base/rng.h"
#include "common/base/size.h"
#include "common/data/order.h"

#include <inttypes.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

enum {
    SMALL_BATCH = 512 * 1024, /* bytes that are gathered in less time than a wake-up takes */
    SHARE = 32 * 1024         /* bytes that are worth a thread of the caller's */
};

typedef enum slot_state { EMPTY, FILLING, READY, HELD } slot_state;

typedef struct slot {
    wf_batch batch; /* the first member: a batch is found back by its address */
    slot_state state;
    bool dropped;            /* cancelled while FILLING */
    uint64_t position, base; /* base: the first record of those that the order is of */
    wf_order order;
    uint64_t *at;      /* [batch] record numbers */
    wf_tensor *fields; /* [n_fields], over memory of the slot's own */
    wf_buf **memory;   /* [n_fields] of fields, where batches go to a device */
    wf_status rc;      /* of filling it, with why */
    wf_err err;
} slot;

typedef struct range {
    uint64_t epoch, split, position, end, index, base;
    wf_order order;
} range;

struct wf_data_reader {
    wf_data_reader_spec spec;
    uint32_t n_fields, n_slots;
    int64_t grain; /* records that are worth a thread of the caller's */
    slot slots[WF_READER_MAX_DEPTH + WF_READER_HELD + 1];
    pthread_t thread;
    bool started;
    uint64_t given, late; /* the caller's */

    pthread_mutex_t lock; /* of all below, and of the slots' states */
    pthread_cond_t work;  /* the thread waits for something to claim */
    pthread_cond_t ready; /* the caller waits for the first of the line */
    bool stop, asleep, awaited;
    uint32_t line[WF_READER_MAX_DEPTH], line_first, line_n;
    range *ranges; /* from first_range on */
    size_t first_range, n_ranges, room;
};

static slot *empty_slot(wf_data_reader *r)
{
    for (uint32_t i = 0; i < r->n_slots; i++) /* the lowest, so that few are ever touched */
        if (r->slots[i].state == EMPTY)
            return &r->slots[i];
    return NULL;
}

/* Takes the next batch of the queue into a slot that is then FILLING; NULL when nothing is queued.
 * Under the lock. */
static slot *claim(wf_data_reader *r)
{
    range *from;
    slot *s;

    if (r->first_range == r->n_ranges)
        return NULL;
    from = &r->ranges[r->first_range];
    s = empty_slot(r);
    wf_assert(s); /* R2: more than WF_READER_HELD batches are out */
    s->batch.epoch = from->epoch;
    s->batch.split = from->split;
    s->batch.index = from->index++;
    s->batch.n = WF_MIN(from->end - from->position, r->spec.batch);
    s->position = from->position;
    s->base = from->base;
    s->order = from->order;
    from->position += s->batch.n;
    s->batch.last = from->position == from->end;
    if (s->batch.last && ++r->first_range == r->n_ranges)
        r->first_range = r->n_ranges = 0;
    s->state = FILLING;
    s->dropped = false;
    return s;
}

typedef struct filling {
    const wf_data_reader *r;
    slot *s;
    pthread_mutex_t lock; /* of the slot's rc and err, and of first */
    int64_t first;        /* of the records whose error they are */
} filling;

/* Of several errors that of the first records counts, as if they had been gathered in order. */
static void note_error(filling *f, int64_t begin, wf_status rc, const wf_err *err)
{
    pthread_mutex_lock(&f->lock);
    if (f->s->rc == WF_OK || begin < f->first) {
        f->s->rc = rc;
        f->s->err = *err;
        f->first = begin;
    }
    pthread_mutex_unlock(&f->lock);
}

static void fill_range(void *arg, int64_t begin, int64_t end)
{
    filling *all = arg;
    const wf_data_reader *r = all->r;
    slot *s = all->s;
    size_t n = (size_t)(end - begin);
    wf_status rc = WF_OK;
    wf_err err;

    for (int64_t i = begin; i < end; i++)
        s->at[i] = s->base + wf_order_record(&s->order, s->position - s->base + (uint64_t)i);
    for (uint32_t f = 0; rc == WF_OK && f < r->n_fields; f++)
        rc = wf_dataset_gather_in(r->spec.dataset, f, s->batch.epoch, s->at + begin, n,
                                  (char *)s->fields[f].data +
                                      (size_t)begin *
                                          wf_dataset_field(r->spec.dataset, f)->record_bytes,
                                  &err);
    if (rc != WF_OK)
        note_error(all, begin, rc, &err);
}

/* Gathers a claimed batch; nobody else touches the slot meanwhile. */
static void fill(const wf_data_reader *r, slot *s, const wf_reader_threads *by)
{
    filling all = {.r = r, .s = s, .lock = PTHREAD_MUTEX_INITIALIZER};

    s->rc = WF_OK;
    for (uint32_t f = 0; f < r->n_fields; f++)
        s->fields[f].dims[0] = (int64_t)s->batch.n;
    if (by && by->share)
        by->share(by->pool, (int64_t)s->batch.n, r->grain, fill_range, &all);
    else
        fill_range(&all, 0, (int64_t)s->batch.n);
}

static void *run_thread(void *arg)
{
    wf_data_reader *r = arg;

    pthread_mutex_lock(&r->lock);
    while (!r->stop) {
        slot *s = r->line_n < r->spec.depth ? claim(r) : NULL;

        if (!s) {
            r->asleep = true;
            pthread_cond_wait(&r->work, &r->lock);
            r->asleep = false;
            continue;
        }
        r->line[(r->line_first + r->line_n++) % r->spec.depth] = (uint32_t)(s - r->slots);
        pthread_mutex_unlock(&r->lock);
        fill(r, s, NULL);
        pthread_mutex_lock(&r->lock);
        s->state = s->dropped ? EMPTY : READY;
        if (r->awaited)
            pthread_cond_signal(&r->ready);
    }
    pthread_mutex_unlock(&r->lock);
    return NULL;
}

/* For a field; where batches go to a device, *pinned owns it. */
static void *take_memory(const wf_data_reader *r, size_t bytes, wf_buf **pinned)
{
    if (!r->spec.device)
        return wf_pages_alloc(bytes);
    *pinned = wf_buf_new_pinned(r->spec.device, bytes);
    return *pinned ? (*pinned)->data : NULL;
}

/* Memory of one slot. */
static wf_status make_slot(wf_data_reader *r, slot *s, wf_err *err)
{
    uint64_t most = WF_MAX(wf_dataset_records(r->spec.dataset), 1); /* no batch is larger */
    size_t batch = (size_t)WF_MIN(r->spec.batch, most), bytes;

    if (!wf_mul_size(batch, sizeof s->at[0], &bytes))
        return wf_fail(err, WF_INVALID, "lower batch", "a batch of %zu records", batch);
    s->batch.at = s->at = malloc(bytes);
    s->fields = calloc(r->n_fields, sizeof s->fields[0]);
    s->memory = calloc(r->n_fields, sizeof(*s->memory));
    if (!s->at || !s->fields || !s->memory)
        return wf_fail_nomem(err, bytes);
    s->batch.fields = s->fields;
    for (uint32_t f = 0; f < r->n_fields; f++) {
        const wf_field_info *info = wf_dataset_field(r->spec.dataset, f);
        wf_tensor *t = &s->fields[f];

        t->dtype = info->dtype;
        t->rank = info->rank + 1; /* a record leaves room for the batch axis */
        memcpy(t->dims + 1, info->dims, info->rank * sizeof t->dims[0]);
        if (!wf_mul_size(batch, info->record_bytes, &bytes) || bytes > SIZE_MAX / 2)
            return wf_fail(err, WF_INVALID, "lower batch",
                           "a batch of %zu records of %zu bytes (\"%s\")", batch,
                           info->record_bytes, info->name);
        t->data = take_memory(r, bytes, &s->memory[f]);
        if (!t->data)
            return wf_fail_nomem(err, bytes);
    }
    return WF_OK;
}

static wf_status start_thread(wf_data_reader *r, wf_err *err)
{
    sigset_t all, before;
    int why;

    /* Signals are for the threads that wait for them. */
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    why = pthread_create(&r->thread, NULL, run_thread, r);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (why)
        return wf_fail_errno(err, why, "raise the limit on threads (ulimit -u)",
                             "starting the data reader's thread");
    pthread_setname_np(r->thread, "weft-reader");
    r->started = true;
    return WF_OK;
}

/* Bytes of a record in all fields, UINT64_MAX if they are more. */
static uint64_t bytes_of_record(const wf_dataset *d)
{
    uint64_t record = 0;

    for (uint32_t i = 0; i < wf_dataset_n_fields(d); i++)
        if (__builtin_add_overflow(record, wf_dataset_field(d, i)->record_bytes, &record))
            return UINT64_MAX;
    return record;
}

uint32_t wf_data_reader_depth_for(const wf_dataset *d, uint64_t batch)
{
    uint64_t record = bytes_of_record(d), block, window;

    wf_dataset_blocks(d, &block, &window);
    if (block) /* reading and parsing take longer than a wake-up */
        return WF_READER_DEPTH;
    return record && batch <= SMALL_BATCH / record ? 0 : WF_READER_DEPTH;
}

wf_status wf_data_reader_new(const wf_data_reader_spec *spec, wf_data_reader **out, wf_err *err)
{
    wf_data_reader *r;
    wf_status rc = WF_OK;

    if (spec->batch == 0)
        return wf_fail(err, WF_INVALID, NULL, "a batch of 0 records");
    if (spec->depth > WF_READER_MAX_DEPTH)
        return wf_fail(err, WF_INVALID, NULL, "%u batches ahead; at most %d", spec->depth,
                       WF_READER_MAX_DEPTH);
    r = calloc(1, sizeof *r);
    if (!r)
        return wf_fail_nomem(err, sizeof *r);
    r->spec = *spec;
    r->n_fields = wf_dataset_n_fields(spec->dataset);
    r->n_slots = spec->depth + WF_READER_HELD + 1;
    r->grain = 1 + (int64_t)(SHARE / WF_MAX(bytes_of_record(spec->dataset), 1));
    pthread_mutex_init(&r->lock, NULL); /* these three cannot fail on Linux */
    pthread_cond_init(&r->work, NULL);
    pthread_cond_init(&r->ready, NULL);
    for (uint32_t i = 0; rc == WF_OK && i < r->n_slots; i++)
        rc = make_slot(r, &r->slots[i], err);
    if (rc == WF_OK && spec->depth)
        rc = start_thread(r, err);
    if (rc == WF_OK)
        *out = r;
    else
        wf_data_reader_free(&r);
    return rc;
}

static void free_fields(const wf_data_reader *r, slot *s)
{
    for (uint32_t f = 0; s->memory && s->fields && f < r->n_fields; f++) {
        if (!s->memory[f])
            free(s->fields[f].data);
        wf_buf_unref(&s->memory[f]);
    }
    free(s->memory);
    free(s->fields);
}

void wf_data_reader_free(wf_data_reader **reader)
{
    wf_data_reader *r = *reader;

    if (!r)
        return;
    if (r->started) {
        pthread_mutex_lock(&r->lock);
        r->stop = true;
        pthread_cond_signal(&r->work);
        pthread_mutex_unlock(&r->lock);
        pthread_join(r->thread, NULL);
    }
    for (uint32_t i = 0; i < r->n_slots; i++) {
        free_fields(r, &r->slots[i]);
        free(r->slots[i].at);
    }
    pthread_cond_destroy(&r->ready);
    pthread_cond_destroy(&r->work);
    pthread_mutex_destroy(&r->lock);
    free(r->ranges);
    free(r);
    *reader = NULL;
}

/* Room for one more range. Under the lock. */
static bool grow(wf_data_reader *r)
{
    size_t room = WF_MAX(2 * r->room, 16), bytes;
    range *more;

    if (r->n_ranges < r->room)
        return true;
    if (r->first_range) {
        r->n_ranges -= r->first_range;
        memmove(r->ranges, r->ranges + r->first_range, r->n_ranges * sizeof *more);
        r->first_range = 0;
        return true;
    }
    if (!wf_mul_size(room, sizeof *more, &bytes))
        return false;
    more = realloc(r->ranges, bytes);
    if (!more)
        return false;
    r->ranges = more;
    r->room = room;
    return true;
}

wf_status wf_data_reader_open(wf_data_reader *r, uint64_t epoch, uint64_t split, uint64_t first,
                              uint64_t end, uint64_t next_batch, wf_err *err)
{
    return wf_data_reader_open_within(r, epoch, split, first, end, next_batch, 0, 0, err);
}

wf_status wf_data_reader_open_within(wf_data_reader *r, uint64_t epoch, uint64_t split,
                                     uint64_t first, uint64_t end, uint64_t next_batch,
                                     uint64_t order_begin, uint64_t order_end, wf_err *err)
{
    const uint64_t all = wf_dataset_records(r->spec.dataset);
    const bool within = order_end > 0;
    /* Files of one size are not to have one order. */
    const uint64_t seed = within ? wf_rng_fold(r->spec.seed, order_begin) : r->spec.seed;
    uint64_t records = within ? order_end : all, block, window;
    bool room;

    if (first > end || end > records || records > all || (within && first < order_begin))
        return wf_fail(err, WF_INVALID, "check that all tasks read the same files",
                       "split %" PRIu64 " is records %" PRIu64 " to %" PRIu64
                       ", the data set has %" PRIu64,
                       split, first, end, records);
    if (first == end || next_batch > (end - first - 1) / r->spec.batch)
        return WF_OK; /* nothing is left of it */
    wf_dataset_blocks(r->spec.dataset, &block, &window);
    pthread_mutex_lock(&r->lock);
    room = grow(r);
    if (room)
        r->ranges[r->n_ranges++] = (range){
            .epoch = epoch,
            .split = split,
            .position = first + next_batch * r->spec.batch,
            .end = end,
            .index = next_batch,
            .base = within ? order_begin : 0,
            .order = wf_order_of(seed, epoch, within ? records - order_begin : records, block,
                                 window, r->spec.shuffle),
        };
    if (r->asleep)
        pthread_cond_signal(&r->work);
    pthread_mutex_unlock(&r->lock);
    return room ? WF_OK : wf_fail_nomem(err, r->room * 2 * sizeof(range));
}

/* Wakes the thread when half of what it may keep ready is gone. Under the lock. */
static void wake_if_half(wf_data_reader *r)
{
    if (r->asleep && r->first_range < r->n_ranges && r->line_n <= r->spec.depth / 2)
        pthread_cond_signal(&r->work);
}

/* The first of the line, once it is ready, or the next of the queue to be filled by the caller
 * (*mine); NULL when there is none. */
static slot *take_next(wf_data_reader *r, bool *mine)
{
    slot *s = NULL;

    *mine = false;
    pthread_mutex_lock(&r->lock);
    if (r->line_n) {
        s = &r->slots[r->line[r->line_first]];
        while (s->state != READY) {
            r->awaited = true;
            pthread_cond_wait(&r->ready, &r->lock);
            r->awaited = false;
        }
        r->line_first = (r->line_first + 1) % r->spec.depth;
        r->line_n--;
    } else {
        s = claim(r);
        *mine = s != NULL;
    }
    if (s)
        s->state = HELD;
    wake_if_half(r);
    pthread_mutex_unlock(&r->lock);
    return s;
}

wf_status wf_data_reader_next(wf_data_reader *r, const wf_batch **out, wf_err *err)
{
    bool mine;
    slot *s = take_next(r, &mine);

    *out = s ? &s->batch : NULL;
    if (!s)
        return WF_OK;
    if (mine) {
        fill(r, s, &r->spec.threads);
        r->late++;
    }
    if (s->rc != WF_OK) {
        if (err)
            *err = s->err;
        wf_data_reader_release(r, out);
        return s->rc;
    }
    r->given++;
    return WF_OK;
}

void wf_data_reader_release(wf_data_reader *r, const wf_batch **b)
{
    if (!*b)
        return;
    for (uint32_t i = 0; i < r->n_slots; i++)
        if (&r->slots[i].batch == *b) {
            pthread_mutex_lock(&r->lock);
            wf_assert(r->slots[i].state == HELD);
            r->slots[i].state = EMPTY;
            pthread_mutex_unlock(&r->lock);
            *b = NULL;
            return;
        }
    wf_assert(false && "a batch of this reader");
}

void wf_data_reader_cancel(wf_data_reader *r)
{
    pthread_mutex_lock(&r->lock);
    r->first_range = r->n_ranges = 0;
    for (; r->line_n; r->line_n--) {
        slot *s = &r->slots[r->line[r->line_first]];

        s->dropped = true;
        if (s->state == READY)
            s->state = EMPTY;
        r->line_first = (r->line_first + 1) % r->spec.depth;
    }
    pthread_mutex_unlock(&r->lock);
}

uint64_t wf_data_reader_given(const wf_data_reader *r)
{
    return r->given;
}

uint64_t wf_data_reader_late(const wf_data_reader *r)
{
    return r->late;
}
