/* SPDX-License-Identifier: Apache-2.0 */
/* tests/cuda/host_block.c - threads of a block as coroutines, which change where they meet.
 *
 * A coroutine lives as long as the process, and runs a thread of one block after the other. They
 * change by the compiler's own longjmp, which saves a few words: swapcontext makes a system call
 * each time. */
#include "tests/cuda/host_block.h"
#include "common/base/size.h"
#include "common/base/status.h"
#include "common/kernels/cuda/on_host_thread.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <ucontext.h>
#include <unistd.h>

enum {
    MOST_THREADS = 1024,
    STACK = 64 << 10,
    STAGGER = 9 * 64, /* of the stacks' ends: at one distance from each other they would share sets
                         of the first cache */
    WARP = 32,
    MOST_SHARED = 32,
    ROOM = 48 << 10,
    EXCHANGED = 8
};

typedef enum place { RUNS, IN_WARP, IN_BLOCK, OVER } place;

typedef void *jump[5]; /* of __builtin_setjmp */

typedef struct thread {
    jump at;
    bool begun;
    uint32_t exchanges;             /* so many it has begun */
    unsigned mask;                  /* of the one that it waits in: */
    unsigned char value[EXCHANGED]; /* what it gives, then what it gets */
} thread;

/* Where a thread runs. */
typedef struct ground {
    ucontext_t context; /* where it begins */
    unsigned char *stack;
} ground;

/* Who touched an element last since the threads met. */
typedef struct mark {
    uint64_t written, read; /* at that meeting */
    uint32_t writer, reader;
} mark;

struct wf_host_shared {
    const void *key;
    const char *name;
    size_t bytes, n;
    unsigned char *data;
    mark *marks;
};

static thread threads[MOST_THREADS];
static ground grounds[MOST_THREADS];
static unsigned char places[MOST_THREADS]; /* place */
static jump to_scheduler;
static uint32_t current; /* the thread that runs */
static bool meeting;     /* threads are coroutines */
static uint64_t meetings;
/* Of the block that runs, which has as much memory as a GPU gives it without being asked. */
static wf_host_shared shared[MOST_SHARED];
static unsigned n_shared;
static _Alignas(16) unsigned char room[ROOM];
static mark marks[ROOM / 4];
static size_t room_used, marks_used;
static wf_host_thread self;
static const wf_cuda_function *function;
static void *const *arguments;

const wf_host_thread *wf_host_self(void)
{
    return &self;
}

static void end_with(const char *what)
{
    fprintf(stderr, "%s: thread %u of block %u %s\n", function->name, self.thread.x, self.block.x,
            what);
    abort();
}

/* ---- changes ---- */

static void set_self(uint32_t i)
{
    wf_cuda_dim d = self.block_dim;

    current = i;
    self.thread = (wf_cuda_dim){i % d.x, i / d.x % d.y, i / d.x / d.y};
}

/* In a function that sets one jump and makes another, the compiler sees no way back to the first.
 */
__attribute__((noinline, noreturn)) static void make(jump to)
{
    __builtin_longjmp(to, 1);
}

/* The scheduler lets a thread run until that leaves. */
static void enter(uint32_t i)
{
    if (__builtin_setjmp(to_scheduler) != 0)
        return;
    if (threads[i].begun)
        make(threads[i].at);
    threads[i].begun = true;
    setcontext(&grounds[i].context);
}

static void leave(uint32_t i)
{
    if (__builtin_setjmp(threads[i].at) == 0)
        make(to_scheduler);
}

/* ---- meetings ---- */

static void wait_in(place p)
{
    uint32_t me = current;

    if (!meeting)
        end_with("meets others, and was not launched so");
    places[me] = p;
    leave(me);
}

void wf_host_meet(void)
{
    wait_in(IN_BLOCK);
}

/* Nearly all are of four bytes. */
static void copy_exchanged(void *to, const void *from, size_t bytes)
{
    if (bytes == 4)
        memcpy(to, from, 4);
    else
        memcpy(to, from, bytes);
}

/* The first of two leaves its value and waits; the second takes it, leaves its own, and goes on: it
 * may be some exchanges ahead of the first when that goes on. */
void wf_host_exchange(const void *mine, void *theirs, size_t bytes, unsigned mask)
{
    thread *me = &threads[current], *other = &threads[current ^ mask];
    unsigned char given[EXCHANGED];

    wf_assert(bytes <= EXCHANGED && mask < WARP);
    me->exchanges++;
    if (places[current ^ mask] == IN_WARP && other->mask == mask) {
        copy_exchanged(given, other->value, bytes);
        copy_exchanged(other->value, mine, bytes);
        places[current ^ mask] = RUNS;
        copy_exchanged(theirs, given, bytes);
        return;
    }
    me->mask = mask;
    copy_exchanged(me->value, mine, bytes);
    wait_in(IN_WARP);
    copy_exchanged(theirs, me->value, bytes);
}

/* Whether all that are not over wait for the block, and some does. */
static bool all_in_block(uint32_t n)
{
    bool some = false;

    for (uint32_t i = 0; i < n; i++) {
        if (places[i] != IN_BLOCK && places[i] != OVER)
            return false;
        some |= places[i] == IN_BLOCK;
    }
    return some;
}

static bool all_over(uint32_t n)
{
    for (uint32_t i = 0; i < n; i++)
        if (places[i] != OVER)
            return false;
    return true;
}

/* Pairs can meet without the rest of their warp, which a GPU's instruction takes part in too. */
static void check_exchanges(uint32_t n)
{
    for (uint32_t i = 0; i < n; i++)
        if (threads[i].exchanges != threads[i / WARP * WARP].exchanges) {
            set_self(i);
            end_with("exchanged more or less often than the first thread of its warp");
        }
}

/* The threads of the block have met. */
static void release(uint32_t n)
{
    check_exchanges(n);
    meetings++;
    for (uint32_t i = 0; i < n; i++)
        if (places[i] != OVER)
            places[i] = RUNS;
}

/* ---- memory of the block ---- */

wf_host_shared *wf_host_share(const void *key, const char *name, size_t bytes, size_t n)
{
    wf_host_shared *s;

    for (unsigned i = 0; i < n_shared; i++)
        if (shared[i].key == key)
            return &shared[i];
    if (n_shared == MOST_SHARED || n * bytes > ROOM - room_used || n > ROOM / 4 - marks_used)
        end_with("shares more memory than a block has");
    s = &shared[n_shared++];
    *s = (wf_host_shared){key, name, bytes, n, room + room_used, marks + marks_used};
    room_used = wf_align_up(room_used + n * bytes, (size_t)16);
    marks_used += n;
    memset(s->data, 0xFF, n * bytes);
    memset(s->marks, 0, n * sizeof *s->marks);
    return s;
}

static void fail_at(const wf_host_shared *s, size_t i, const char *what)
{
    char said[128];

    snprintf(said, sizeof said, "%s %s[%zu]", what, s->name, i);
    end_with(said);
}

void *wf_host_shared_at(wf_host_shared *s, size_t i, int writes)
{
    uint32_t me = current + 1, some = UINT32_MAX;
    mark *m = i < s->n ? &s->marks[i] : NULL;

    if (!m)
        fail_at(s, i, "goes beyond the end at");
    if (m->writer && m->written == meetings && m->writer != me)
        fail_at(s, i, "did not meet the thread that wrote");
    if (writes && m->reader && m->read == meetings && m->reader != me)
        fail_at(s, i, "writes what another reads, without meeting it:");
    if (writes) {
        m->writer = me;
        m->written = meetings;
    } else {
        m->reader = m->reader && m->read == meetings && m->reader != me ? some : me;
        m->read = meetings;
    }
    return s->data + i * s->bytes;
}

/* ---- a block ---- */

static void run_threads(void)
{
    uint32_t me = current;

    for (;;) {
        function->call(function->kernel, arguments);
        places[me] = OVER;
        leave(me);
    }
}

static void begin_thread(uint32_t i)
{
    ground *g = &grounds[i];

    places[i] = RUNS;
    threads[i].exchanges = 0;
    if (g->stack)
        return;
    g->stack = malloc(STACK);
    wf_assert(g->stack && getcontext(&g->context) == 0);
    g->context.uc_stack =
        (stack_t){.ss_sp = g->stack, .ss_size = STACK - (size_t)(i % 16 * STAGGER)};
    makecontext(&g->context, run_threads, 0);
}

static void run_meeting(uint32_t n, wf_rng_key seed)
{
    uint32_t able[MOST_THREADS], n_able;
    uint64_t rounds = 0, random;

    for (uint32_t i = 0; i < n; i++)
        begin_thread(i);
    for (uint32_t i = n; i < MOST_THREADS && i % WARP; i++)
        places[i] = OVER; /* of the last warp: nobody is there */
    for (;;) {
        n_able = 0;
        for (uint32_t i = 0; i < n; i++)
            if (places[i] == RUNS)
                able[n_able++] = i;
        if (n_able == 0 && all_over(n)) {
            check_exchanges(n);
            return;
        }
        if (n_able == 0 && !all_in_block(n))
            end_with("waits for others that do not come");
        if (n_able == 0)
            release(n);
        /* Each once, in a random order: a linear congruential generator (Knuth, TAOCP 3.3.4,
         * MMIX's) from the round's draw; a draw for each took a twelfth of all time. */
        random = wf_rng_u64(seed, rounds++);
        while (n_able > 0) {
            uint32_t k = (uint32_t)((random >> 32) * n_able >> 32);

            random = random * 6364136223846793005U + 1442695040888963407U;
            set_self(able[k]);
            able[k] = able[--n_able];
            enter(current);
        }
    }
}

void host_block_run(const wf_cuda_function *f, wf_cuda_dim grid, wf_cuda_dim block, wf_cuda_dim at,
                    void *const args[], wf_rng_key seed)
{
    uint32_t n = block.x * block.y * block.z;

    wf_assert(n <= MOST_THREADS);
    self = (wf_host_thread){.block = at, .block_dim = block, .grid_dim = grid};
    function = f;
    arguments = args;
    meeting = f->meets;
    meetings = 1;
    n_shared = 0;
    room_used = marks_used = 0;
    if (meeting)
        run_meeting(n, seed);
    for (uint32_t i = 0; !meeting && i < n; i++) {
        set_self(i);
        f->call(f->kernel, args);
    }
}
