/* SPDX-License-Identifier: Apache-2.0 */
/* tests/kit/nomem.c - an allocator that refuses on demand and knows what was not freed. */
#include "tests/kit/nomem.h"
#include "common/base/arena.h"
#include "common/base/size.h"

#include <errno.h>
#include <execinfo.h>
#include <inttypes.h>
#include <limits.h>
#include <link.h>
#include <malloc.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

/* What stands behind the names that are replaced here. This file is compiled without sanitizers: it
 * serves theirs before they are ready. */
#ifdef BEHIND_SANITIZER
#define BEHIND(name) __interceptor_##name
#else
#define BEHIND(name) __libc_##name
#endif
extern void *BEHIND(malloc)(size_t n);
extern void *BEHIND(calloc)(size_t n, size_t size);
extern void *BEHIND(realloc)(void *p, size_t n);
extern void *BEHIND(memalign)(size_t align, size_t n);
extern void BEHIND(free)(void *p);

#ifdef BEHIND_SANITIZER
/* The leak sanitizer knows what the dynamic linker keeps by who called its malloc. Here this file
 * does, for all, so it is told the linker's name. Returns: what is left out of its reports. */
extern const char *__lsan_default_suppressions(void);

const char *__lsan_default_suppressions(void)
{
    return "leak:ld-linux";
}
#endif

enum { MAX_LIVE = 1 << 18, N_BUCKETS = 1 << 14, MAX_RANGES = 32, MAX_FRAMES = 24, MAX_FAULTS = 8 };

/* A live allocation of the run, in the chain of its bucket or of the free ones. */
typedef struct live {
    void *p;
    uint64_t index;
    struct live *next;
} live;

static live pool[MAX_LIVE], *buckets[N_BUCKETS], *unused;
static size_t n_pooled, n_live;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

/* Code whose allocations count. */
static struct range {
    uintptr_t begin, end;
} ranges[MAX_RANGES];
static size_t n_ranges;
static uintptr_t program; /* where its addresses begin */

typedef struct trace {
    void *frames[MAX_FRAMES];
    int n;
} trace;

/* The run under way. It is of one thread; others allocate as ever. */
static __thread bool counts, is_spared;
static const char *swept;
static uint64_t n_allocations, fail_at, watch_at; /* counted from 1; 0: none */
static bool onwards;
static trace failed, watched;

static bool is_counted(const void *caller)
{
    uintptr_t at = (uintptr_t)caller;

    for (size_t i = 0; i < n_ranges; i++)
        if (at >= ranges[i].begin && at < ranges[i].end)
            return true;
    return false;
}

static void take_trace(trace *t)
{
    is_spared = true;
    t->n = backtrace(t->frames, MAX_FRAMES);
    is_spared = false;
}

/* Counts an allocation; false when it must fail. *index is 0 for one that is not of the run. */
static bool allowed(const void *caller, uint64_t *index)
{
    *index = 0;
    if (WF_LIKELY(!counts) || is_spared || !is_counted(caller))
        return true;
    *index = ++n_allocations;
    if (*index == watch_at)
        take_trace(&watched);
    if (*index == fail_at)
        take_trace(&failed);
    if (!fail_at || *index < fail_at || (*index > fail_at && !onwards))
        return true;
    errno = ENOMEM;
    return false;
}

static live **bucket_of(const void *p)
{
    return &buckets[((uintptr_t)p >> 4) * UINT64_C(0x9E3779B97F4A7C15) >> 50];
}

static void *remember(void *p, uint64_t index)
{
    live *it, **at = bucket_of(p);

    if (!p || !index)
        return p;
    pthread_mutex_lock(&lock);
    it = unused;
    if (it)
        unused = it->next;
    else
        it = n_pooled < MAX_LIVE ? &pool[n_pooled++] : NULL;
    wf_assert(it); /* the work is too large for MAX_LIVE */
    *it = (live){p, index, *at};
    *at = it;
    __atomic_add_fetch(&n_live, 1, __ATOMIC_RELAXED);
    pthread_mutex_unlock(&lock);
    return p;
}

/* Gives the index of the allocation, 0 when it is not of the run. */
static uint64_t forget(const void *p)
{
    uint64_t index = 0;

    if (!p || __atomic_load_n(&n_live, __ATOMIC_RELAXED) == 0)
        return 0;
    pthread_mutex_lock(&lock);
    for (live **at = bucket_of(p); *at; at = &(*at)->next) {
        live *it = *at;

        if (it->p != p)
            continue;
        index = it->index;
        *at = it->next;
        it->next = unused;
        unused = it;
        __atomic_sub_fetch(&n_live, 1, __ATOMIC_RELAXED);
        break;
    }
    pthread_mutex_unlock(&lock);
    return index;
}

#define CALLER __builtin_return_address(0)

void *malloc(size_t n)
{
    uint64_t index;

    return allowed(CALLER, &index) ? remember(BEHIND(malloc)(n), index) : NULL;
}

void *calloc(size_t n, size_t size)
{
    uint64_t index;

    return allowed(CALLER, &index) ? remember(BEHIND(calloc)(n, size), index) : NULL;
}

void *realloc(void *p, size_t n)
{
    uint64_t index, before;
    void *moved;

    if (!allowed(CALLER, &index))
        return NULL;
    before = forget(p);
    if (p && !before)
        index = 0; /* what was there before the run may grow in it */
    else if (!index)
        index = before;
    moved = BEHIND(realloc)(p, n);
    if (!moved && n > 0)
        remember(p, before);
    return remember(moved, index);
}

static void *aligned(const void *caller, size_t align, size_t n)
{
    uint64_t index;

    return allowed(caller, &index) ? remember(BEHIND(memalign)(align, n), index) : NULL;
}

void *aligned_alloc(size_t align, size_t n)
{
    return aligned(CALLER, align, n);
}

void *memalign(size_t align, size_t n)
{
    return aligned(CALLER, align, n);
}

int posix_memalign(void **p, size_t align, size_t n)
{
    void *got = aligned(CALLER, align, n);

    if (!got)
        return ENOMEM;
    *p = got;
    return 0;
}

static char *copy_of(const void *caller, const char *s, size_t n)
{
    uint64_t index;
    char *p = allowed(caller, &index) ? remember(BEHIND(malloc)(n + 1), index) : NULL;

    if (!p)
        return NULL;
    memcpy(p, s, n);
    p[n] = 0;
    return p;
}

char *strdup(const char *s)
{
    return copy_of(CALLER, s, strlen(s));
}

char *strndup(const char *s, size_t n)
{
    return copy_of(CALLER, s, strnlen(s, n));
}

void free(void *p)
{
    forget(p);
    BEHIND(free)(p);
}

/* An arena asks for memory once in many calls, so each call counts as an allocation too: the linker
 * leads weft's calls here (--wrap). It is the arena's then, and nothing to remember. */
#define WRAPPED(name) __wrap_wf_arena_##name
#define REAL(name) __real_wf_arena_##name
void *REAL(alloc)(wf_arena *a, size_t bytes);
void *REAL(array)(wf_arena *a, size_t n, size_t size);
char *REAL(strdup)(wf_arena *a, const char *s);
char *REAL(strndup)(wf_arena *a, const char *s, size_t n);
void *REAL(memdup)(wf_arena *a, const void *p, size_t n);
void *WRAPPED(alloc)(wf_arena *a, size_t bytes);
void *WRAPPED(array)(wf_arena *a, size_t n, size_t size);
char *WRAPPED(strdup)(wf_arena *a, const char *s);
char *WRAPPED(strndup)(wf_arena *a, const char *s, size_t n);
void *WRAPPED(memdup)(wf_arena *a, const void *p, size_t n);
char *WRAPPED(printf)(wf_arena *a, const char *fmt, ...) WF_PRINTF(2, 3);

void *WRAPPED(alloc)(wf_arena *a, size_t bytes)
{
    return allowed(CALLER, &(uint64_t){0}) ? REAL(alloc)(a, bytes) : NULL;
}

void *WRAPPED(array)(wf_arena *a, size_t n, size_t size)
{
    return allowed(CALLER, &(uint64_t){0}) ? REAL(array)(a, n, size) : NULL;
}

char *WRAPPED(strdup)(wf_arena *a, const char *s)
{
    return allowed(CALLER, &(uint64_t){0}) ? REAL(strdup)(a, s) : NULL;
}

char *WRAPPED(strndup)(wf_arena *a, const char *s, size_t n)
{
    return allowed(CALLER, &(uint64_t){0}) ? REAL(strndup)(a, s, n) : NULL;
}

void *WRAPPED(memdup)(wf_arena *a, const void *p, size_t n)
{
    return allowed(CALLER, &(uint64_t){0}) ? REAL(memdup)(a, p, n) : NULL;
}

char *WRAPPED(printf)(wf_arena *a, const char *fmt, ...)
{
    char *text = NULL;
    va_list ap;
    int n;

    if (!allowed(CALLER, &(uint64_t){0}))
        return NULL;
    va_start(ap, fmt);
    n = vsnprintf(NULL, 0, fmt, ap);
    va_end(ap);
    if (n >= 0)
        text = REAL(alloc)(a, (size_t)n + 1);
    va_start(ap, fmt);
    if (text)
        vsnprintf(text, (size_t)n + 1, fmt, ap);
    va_end(ap);
    return text;
}

bool wf_nomem_spare(bool spared)
{
    bool before = is_spared;

    is_spared = spared;
    return before;
}

static int add_ranges(struct dl_phdr_info *info, size_t size, void *arg)
{
    static const char *const names[] = {"libc.so",       "libjansson", "libyaml",
                                        "libprotobuf-c", "libz.so",    "libdeflate"};
    bool is_program = n_ranges == 0, is_ours = is_program; /* it comes first */

    (void)size, (void)arg;
    for (size_t i = 0; i < WF_COUNT(names); i++)
        is_ours |= strstr(info->dlpi_name, names[i]) != NULL;
    if (is_program)
        program = info->dlpi_addr;
    for (int i = 0; is_ours && i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *h = &info->dlpi_phdr[i];
        uintptr_t begin = info->dlpi_addr + h->p_vaddr;

        if (h->p_type != PT_LOAD || !(h->p_flags & PF_X))
            continue;
        wf_assert(n_ranges < MAX_RANGES);
        ranges[n_ranges++] = (struct range){begin, begin + h->p_memsz};
    }
    return 0;
}

/* The command that names the places of a trace that are in the program. */
static void tell_trace(const char *what, const trace *t)
{
    char path[PATH_MAX];
    ssize_t n = readlink("/proc/self/exe", path, sizeof path);

    fprintf(stderr, "  %s: addr2line -fpse %.*s", what, (int)WF_MAX(n, 0), path);
    for (int i = 0; i < t->n; i++)
        if ((uintptr_t)t->frames[i] >= ranges[0].begin && (uintptr_t)t->frames[i] < ranges[0].end)
            fprintf(stderr, " %#lx", (unsigned long)((uintptr_t)t->frames[i] - program - 1));
    fprintf(stderr, "\n");
}

static void tell(const char *fault)
{
    fprintf(stderr, "%s, allocation %lu failing%s: %s\n", swept, (unsigned long)fail_at,
            onwards ? " with all that follow" : "", fault);
    tell_trace("failing", &failed);
}

static void on_crash(int signal)
{
    trace here;

    counts = false;
    take_trace(&here);
    tell(strsignal(signal));
    tell_trace("crash", &here);
    /* Back in the code that crashed, it does so again, for who was asked before. */
}

static const int crashes[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT};
static struct sigaction before[WF_COUNT(crashes)];

static void watch_crashes(bool on)
{
    struct sigaction mine = {.sa_handler = on_crash, .sa_flags = SA_RESETHAND | SA_NODEFER};

    for (size_t i = 0; i < WF_COUNT(crashes); i++)
        sigaction(crashes[i], on ? &mine : &before[i], on ? &before[i] : NULL);
}

static wf_status run(wf_nomem_work *work, void *context, wf_err *err)
{
    wf_status rc;

    *err = (wf_err){0};
    n_allocations = 0;
    failed.n = 0;
    counts = true;
    rc = work(context, err);
    counts = false;
    return rc;
}

/* Forgets what is left of a run; gives the first of it, 0 when there is nothing. */
static uint64_t leak(size_t *n)
{
    uint64_t first = 0;

    *n = n_live;
    for (size_t i = 0; i < N_BUCKETS && n_live > 0; i++)
        while (buckets[i]) {
            uint64_t index = forget(buckets[i]->p);

            first = !first || index < first ? index : first;
        }
    return first;
}

/* A run with the allocation fail_at failing. */
static bool stands(wf_nomem_work *work, void *context)
{
    char text[1200];
    wf_err err;
    wf_status rc = run(work, context, &err);
    bool is_right = true;
    size_t n_left;

    if (rc != WF_OK && rc != WF_NOMEM) {
        snprintf(text, sizeof text, "status %d: %s", (int)rc, err.what);
        tell(text);
        is_right = false;
    } else if (rc == WF_NOMEM && (!err.what[0] || err.status != WF_NOMEM)) {
        snprintf(text, sizeof text, "no sentence with WF_NOMEM, but \"%s\"", err.what);
        tell(text);
        is_right = false;
    } else if (rc == WF_NOMEM && n_allocations < fail_at) {
        snprintf(text, sizeof text, "WF_NOMEM and nothing failed: %s", err.what);
        tell(text);
        is_right = false;
    }
    watch_at = leak(&n_left);
    if (watch_at) {
        snprintf(text, sizeof text, "%zu left, of them allocation %lu", n_left,
                 (unsigned long)watch_at);
        rc = run(work, context, &err); /* once more, to see where that was made */
        (void)leak(&n_left);
        tell(text);
        tell_trace("left", &watched);
        watch_at = 0;
        is_right = false;
    }
    return is_right;
}

uint64_t wf_nomem_sweep(const char *name, wf_nomem_work *work, void *context, uint64_t stride)
{
    int n_faults = 0;
    uint64_t n_whole;
    wf_err err;
    size_t n;

    if (n_ranges == 0)
        dl_iterate_phdr(add_ranges, NULL);
    take_trace(&watched); /* the first one loads a library */
    tzset();              /* and the first line of a log the time zone */
    swept = name;
    fail_at = 0;
    if (run(work, context, &err) != WF_OK) {
        tell(err.what);
        return 0;
    }
    (void)leak(&n);
    watch_crashes(true);
    n_faults += !stands(work, context); /* nothing fails: nothing may be left either */
    n_whole = n_allocations;
    for (fail_at = 1; n_faults < MAX_FAULTS; fail_at += stride) {
        bool is_right;

        onwards = false;
        is_right = stands(work, context);
        n_faults += !is_right;
        if (n_allocations < fail_at)
            break;
        onwards = true;
        if (is_right) /* else it would be told twice */
            n_faults += !stands(work, context);
    }
    watch_crashes(false);
    fail_at = 0;
    onwards = false;
    printf("%s: %" PRIu64 " allocations, %d faults\n", name, n_whole, n_faults);
    return n_faults == 0 ? WF_MAX(n_whole, UINT64_C(1)) : 0;
}
