/* SPDX-License-Identifier: Apache-2.0 */
/* tests/cuda/host.c - the streams and the calls of host.h. */
#include "tests/cuda/host.h"
#include "common/base/cc.h"
#include "common/base/rng.h"
#include "common/base/size.h"
#include "common/kernels/cuda/device.h"
#include "common/kernels/cuda/on_host_thread.h"
#include "tests/cuda/host_blas.h"
#include "tests/cuda/host_block.h"
#include "tests/cuda/host_compile.h"
#include "tests/cuda/host_dnn.h"
#include "tests/cuda/host_memory.h"
#include "tests/cuda/host_nccl.h"
#include "tests/cuda/host_pinned.h"
#include "tests/cuda/host_work.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
    MOST_STREAMS = 256,
    PAGE = 4096,
    BAD_VALUE = 1,
    NOT_PINNED = 713,
    BAD_DEVICE = 101,
    EVENT_FROM_OUTSIDE = 905
};

/* A thread may take it again: a kernel's caller has it. */
static pthread_mutex_t lock = PTHREAD_RECURSIVE_MUTEX_INITIALIZER_NP;
static struct CUstream_st *streams[MOST_STREAMS];
_Thread_local struct CUgraph_st *host_capturing;
cuda_host_counts host_counts;

static wf_rng_key seed = {1, 2};
static uint64_t drawn, n_queued;
static bool copies_last;
static int n_gpus = 2, major = 9;
static size_t memory = (size_t)8 << 30;
static bool acting; /* work is under way */
static int sticky;  /* an error of work, which stays */
static _Thread_local int used = -1;
static struct {
    const char *call;
    int after, error;
} failing;

/* ---- what is told to fail ---- */

void cuda_host_seed(uint64_t s)
{
    seed = (wf_rng_key){s, 0xC0DA};
    host_time_seed(s);
    drawn = 0;
}

void cuda_host_copies_last(bool last)
{
    copies_last = last;
}

uint64_t host_random(uint64_t end)
{
    return wf_rng_below(seed, drawn++, end);
}

uint64_t host_random_of(uint64_t what, uint64_t end)
{
    return wf_rng_below(seed, what, end);
}

void cuda_host_dnn(cuda_host_dnn_state state)
{
    host_dnn_set_state(state);
}

void cuda_host_has(int n, int of_major)
{
    n_gpus = n;
    major = of_major;
}

void cuda_host_has_memory(size_t bytes)
{
    memory = bytes;
}

void cuda_host_fail(const char *call, int after, int error)
{
    failing.call = call;
    failing.after = after;
    failing.error = error;
    sticky = 0;
}

/* Whether a name is among words, each with a blank behind it. */
static bool is_one_of(const char *name, const char *words)
{
    size_t n = strlen(name);

    for (const char *at = words; (at = strstr(at, name)); at += n)
        if ((at == words || at[-1] == ' ') && at[n] == ' ')
            return true;
    return false;
}

/* The error that a call gives instead of being made; 0: none. */
int host_begin(const char *call)
{
    pthread_mutex_lock(&lock);
    host_counts.made +=
        is_one_of(call, "alloc alloc_seen stream_new event_new product_new layout_new ");
    host_counts.waits += is_one_of(call, "stream_wait event_wait ");
    if (!failing.call || strcmp(call, failing.call) != 0 || failing.after-- > 0)
        return 0;
    failing.call = NULL;
    return failing.error;
}

/* Memory stays open from one piece of work to the next, until the host goes on. */
int host_end(int error)
{
    if (!acting)
        host_memory_shut();
    pthread_mutex_unlock(&lock);
    return error;
}

/* ---- kernels ---- */

static const work *running;

static void on_fault(const void *at)
{
    char said[256];
    int n = running ? snprintf(said, sizeof said,
                               "%s: thread %u of block %u is at %p, which is no memory\n",
                               running->name, wf_host_self()->thread.x, wf_host_self()->block.x, at)
                    : snprintf(said, sizeof said, "%p is touched, which is no memory\n", at);

    (void)!write(STDERR_FILENO, said, (size_t)n);
}

/* Blocks run one by one, from a random one on. */
static void do_kernel(work *w)
{
    unsigned blocks = w->grid.x * w->grid.y * w->grid.z;
    uint64_t first = wf_rng_below(seed, drawn++, blocks);
    void *args[16];
    size_t bytes = 0;

    for (unsigned i = 0; i < w->f.n; i++) {
        bytes = wf_align_up(bytes, (size_t)16);
        args[i] = w->args + bytes;
        bytes += w->f.bytes[i];
    }
    running = w;
    for (unsigned i = 0; i < blocks; i++) {
        unsigned b = (unsigned)((first + i) % blocks);
        wf_cuda_dim at = {b % w->grid.x, b / w->grid.x % w->grid.y, b / w->grid.x / w->grid.y};

        host_block_run(&w->f, w->grid, w->block, at, args, (wf_rng_key){drawn++, b});
    }
    running = NULL;
}

/* ---- streams ---- */

void host_free_work(work *w)
{
    free(w->product);
    free(w->execution);
    free(w);
}

static void append(struct CUstream_st *s, work *w)
{
    if (s->device != used) {
        fprintf(stderr, "%s: a stream of GPU %d is given work by a thread that uses GPU %d\n",
                w->name, s->device, used);
        abort();
    }
    w->next = NULL;
    host_counts.queued += 1 + (w->product != NULL) + (w->execution != NULL);
    if (s->capture) {
        *s->capture->last = w;
        s->capture->last = &w->next;
        return;
    }
    *s->last = w;
    s->last = &w->next;
    s->queued++;
    w->number = n_queued++;
}

static bool may_run(const struct CUstream_st *s)
{
    const work *w = s->first;

    return w && !(w->other && w->other->finished < w->target);
}

static void do_copy(work *w)
{
    memcpy(w->to, w->from, w->bytes);
}

static bool is_copy(const work *w)
{
    return w->act == do_copy && w->way != WF_CUDA_WITHIN;
}

/* Notes that w is done, if earlier copies of other streams are not. */
static void note_beside(const work *w)
{
    bool in = false, out = false;

    for (unsigned i = 0; i < MOST_STREAMS; i++)
        for (const work *c = streams[i] ? streams[i]->first : NULL; c && c->number < w->number;
             c = c->next) {
            in |= is_copy(c) && c->way == WF_CUDA_TO_DEVICE;
            out |= is_copy(c) && c->way == WF_CUDA_TO_HOST;
        }
    host_counts.beside_in += in;
    host_counts.beside_out += out;
}

static void run_first(struct CUstream_st *s)
{
    work *w = s->first;

    if (w->act && !is_copy(w))
        note_beside(w);
    if (w->act && sticky == 0) {
        host_time_pass(s, w->recorded ? w->recorded : w);
        host_memory_open(on_fault);
        acting = true;
        w->act(w->recorded ? w->recorded : w);
        acting = false;
        host_memory_check(w->name);
    }
    s->first = w->next;
    if (!s->first)
        s->last = &s->first;
    s->finished++;
    if (w->replayed)
        w->replayed->queued--;
    host_free_work(w);
}

/* The work of some stream that may run; false: none may. */
bool host_run_some(void)
{
    struct CUstream_st *able[MOST_STREAMS];
    unsigned n = 0, first = 0;

    for (unsigned i = 0; i < MOST_STREAMS; i++)
        if (streams[i] && may_run(streams[i]))
            able[n++] = streams[i];
    for (unsigned i = 0; copies_last && i < n; i++)
        if (!is_copy(able[i]->first))
            able[first++] = able[i];
    n = first ? first : n;
    if (n == 0)
        return false;
    run_first(able[wf_rng_below(seed, drawn++, n)]);
    return true;
}

static void run_until(const struct CUstream_st *s, uint64_t target)
{
    while (s->finished < target)
        wf_assert(host_run_some()); /* streams do not wait for each other in a circle */
}

/* ---- the calls ---- */

static int host_count(int *n)
{
    int error = host_begin("count");

    *n = n_gpus;
    return host_end(error ? error : n_gpus == 0 ? WF_CUDA_NO_DEVICE : 0);
}

static int host_properties(int device, wf_cuda_properties *out)
{
    int error = host_begin("properties");

    *out =
        (wf_cuda_properties){.name = "the host", .major = major, .processors = 2, .memory = memory};
    return host_end(error ? error : device < 0 || device >= n_gpus ? BAD_DEVICE : 0);
}

static int host_use(int device)
{
    int error = host_begin("use");

    if (error == 0 && (device < 0 || device >= n_gpus))
        error = BAD_DEVICE;
    if (error == 0)
        used = device;
    return host_end(error);
}

static int host_memory_left(size_t *left, size_t *all)
{
    int error = host_begin("memory_left");

    *all = memory;
    *left = memory - WF_MIN(memory, host_memory_held());
    return host_end(error);
}

static const char *host_error_string(int error)
{
    return error == WF_CUDA_NO_MEMORY ? "out of memory" : "an error of the host's GPUs";
}

static int host_alloc(void **out, size_t bytes)
{
    int error = host_outside_captures(host_begin("alloc"));

    if (error == 0) {
        *out =
            bytes > memory - WF_MIN(memory, host_memory_held()) ? NULL : host_memory_alloc(bytes);
        error = *out ? 0 : WF_CUDA_NO_MEMORY;
    }
    return host_end(error);
}

/* As CUDA's, it waits for all work. */
static int host_free(void *data)
{
    int error = host_outside_captures(host_begin("free"));

    if (error != 0)
        return host_end(error);
    while (host_run_some())
        ;
    if (!host_memory_free(data))
        error = BAD_VALUE;
    return host_end(error);
}

static int host_pin(void *at, size_t bytes)
{
    int error = host_outside_captures(host_begin("pin"));

    if (error == 0 && (uintptr_t)at % PAGE != 0) {
        fprintf(stderr, "%p is pinned, within a page\n", at);
        abort();
    }
    if (error == 0)
        host_pinned_add(at, bytes);
    host_counts.objects += error == 0;
    return host_end(error);
}

static int host_unpin(void *at)
{
    int error = host_begin("unpin");

    if (error == 0 && !host_pinned_drop(at))
        error = NOT_PINNED;
    host_counts.objects -= error == 0;
    return host_end(error);
}

static int host_alloc_seen(void **out, size_t bytes)
{
    int error = host_outside_captures(host_begin("alloc_seen"));

    *out = error ? NULL : aligned_alloc(PAGE, wf_align_up(bytes, (size_t)PAGE));
    if (*out)
        host_pinned_add(*out, bytes);
    host_counts.objects += *out != NULL;
    return host_end(error ? error : *out ? 0 : WF_CUDA_NO_MEMORY);
}

static int host_free_seen(void *data)
{
    (void)host_begin("free_seen");
    (void)host_pinned_drop(data);
    free(data);
    host_counts.objects--;
    return host_end(0);
}

static int host_stream_new(wf_cuda_stream **out)
{
    int error = host_begin("stream_new");
    unsigned at = 0;

    while (at < MOST_STREAMS && streams[at])
        at++;
    *out = error || at == MOST_STREAMS ? NULL : calloc(1, sizeof **out);
    if (*out) {
        (*out)->last = &(*out)->first;
        (*out)->device = used;
        streams[at] = *out;
        host_counts.streams++;
    }
    return host_end(error ? error : *out ? 0 : WF_CUDA_NO_MEMORY);
}

static int host_stream_free(wf_cuda_stream *s)
{
    (void)host_begin("stream_free");
    run_until(s, s->queued);
    for (unsigned i = 0; i < MOST_STREAMS; i++)
        if (streams[i] == s)
            streams[i] = NULL;
    free(s);
    host_counts.streams--;
    return host_end(0);
}

/* An error that is told to come with a wait is one of the work before it. */
static int waited(int error)
{
    sticky = sticky ? sticky : error;
    return host_end(sticky);
}

static int host_stream_wait(wf_cuda_stream *s)
{
    int error = host_begin("stream_wait");

    if (host_capturing)
        return host_end(host_outside_captures(error));
    run_until(s, s->queued);
    return waited(error);
}

int host_enqueue(wf_cuda_stream *s, const work *like, size_t args, int error)
{
    work *w = error ? NULL : malloc(sizeof *w + args);

    if (w) {
        *w = *like;
        append(s, w);
    }
    return error ? error : w ? 0 : WF_CUDA_NO_MEMORY;
}

int host_enqueue_behind(wf_cuda_stream *s, const work *like, const void *args, size_t bytes)
{
    work *w = malloc(sizeof *w + bytes);
    int uses = used;

    if (!w)
        return WF_CUDA_NO_MEMORY;
    *w = *like;
    if (bytes)
        memcpy(w->args, args, bytes);
    used = s->device;
    append(s, w);
    used = uses;
    return 0;
}

static int host_stream_after(wf_cuda_stream *s, wf_cuda_event *e)
{
    int error = host_begin("stream_after");

    if (error == 0 && s->capture) { /* events are not recorded in captures */
        s->capture->failed = true;
        return host_end(EVENT_FROM_OUTSIDE);
    }
    if (error == 0 && e->stream)
        error = host_enqueue(s, &(work){.name = "a wait", .other = e->stream, .target = e->target},
                             0, 0);
    return host_end(error);
}

static bool is_placed(const work *w)
{
    bool to = w->way == WF_CUDA_TO_HOST ? !host_memory_touches(w->to, w->bytes)
                                        : host_memory_has(w->to, w->bytes);
    bool from = w->way == WF_CUDA_TO_DEVICE ? !host_memory_touches(w->from, w->bytes)
                                            : host_memory_has(w->from, w->bytes);

    return to && from;
}

static int host_copy(void *to, const void *from, size_t bytes, wf_cuda_way way, wf_cuda_stream *s)
{
    work like = {
        .act = do_copy, .name = "a copy", .to = to, .from = from, .bytes = bytes, .way = way};
    int error = host_begin("copy");

    if (error == 0 && !is_placed(&like)) {
        fprintf(stderr, "a copy of %zu bytes from %p to %p has a place of the other side\n", bytes,
                from, to);
        abort();
    }
    if (error == 0 && ((way == WF_CUDA_TO_DEVICE && !host_pinned_has(from, bytes)) ||
                       (way == WF_CUDA_TO_HOST && !host_pinned_has(to, bytes))))
        host_counts.bytes_by_hand += bytes;
    host_counts.bytes_in += error == 0 && way == WF_CUDA_TO_DEVICE ? bytes : 0;
    host_counts.bytes_out += error == 0 && way == WF_CUDA_TO_HOST ? bytes : 0;
    host_counts.bytes_within += error == 0 && way == WF_CUDA_WITHIN ? bytes : 0;
    return host_end(host_enqueue(s, &like, 0, error));
}

static void do_fill(work *w)
{
    memset(w->to, w->byte, w->bytes);
}

static int host_fill(void *to, int byte, size_t bytes, wf_cuda_stream *s)
{
    work like = {.act = do_fill, .name = "a fill", .to = to, .bytes = bytes, .byte = byte};
    int error = host_begin("fill");

    if (error == 0 && !host_memory_has(to, bytes))
        error = BAD_VALUE;
    return host_end(host_enqueue(s, &like, 0, error));
}

static int host_event_new(wf_cuda_event **out)
{
    int error = host_begin("event_new");

    *out = error ? NULL : calloc(1, sizeof **out);
    host_counts.events += *out != NULL;
    return host_end(error ? error : *out ? 0 : WF_CUDA_NO_MEMORY);
}

static int host_event_free(wf_cuda_event *e)
{
    (void)host_begin("event_free");
    free(e);
    host_counts.events--;
    return host_end(0);
}

static int host_event_record(wf_cuda_event *e, wf_cuda_stream *s)
{
    int error = host_begin("event_record");

    if (error == 0 && s->capture) {
        fprintf(stderr, "an event is recorded in a capture, which the host cannot do\n");
        abort();
    }
    if (error == 0)
        error = host_time_stamp(e, s);
    if (error == 0) {
        e->stream = s;
        e->target = s->queued;
    }
    return host_end(error);
}

static int host_event_wait(wf_cuda_event *e)
{
    int error = host_begin("event_wait");

    if (host_capturing)
        return host_end(host_outside_captures(error));
    if (e->stream) {
        run_until(e->stream, e->target);
        host_counts.ahead += e->stream->first != NULL;
    }
    return waited(error);
}

static int host_event_query(wf_cuda_event *e)
{
    int error = host_outside_captures(host_begin("event_query"));

    if (error == 0 && e->stream && e->stream->finished < e->target) {
        (void)host_run_some();
        error = e->stream->finished < e->target ? WF_CUDA_NOT_READY : 0;
    }
    return host_end(sticky ? sticky : error);
}

static int host_launch(const wf_cuda_function *f, wf_cuda_dim grid, wf_cuda_dim block, void **args,
                       size_t shared, wf_cuda_stream *s)
{
    work like = {.act = do_kernel, .name = f->name, .f = *f, .grid = grid, .block = block};
    int error = host_begin("launch");
    size_t bytes = 0;
    work *w;

    (void)shared;
    for (unsigned i = 0; i < f->n; i++)
        bytes = wf_align_up(bytes, (size_t)16) + f->bytes[i];
    if (error == 0 && (grid.x * grid.y * grid.z == 0 || block.x * block.y * block.z > 1024))
        error = BAD_VALUE;
    w = error ? NULL : malloc(sizeof *w + bytes + 16);
    if (!w)
        return host_end(error ? error : WF_CUDA_NO_MEMORY);
    *w = like;
    bytes = 0;
    for (unsigned i = 0; i < f->n; i++) {
        bytes = wf_align_up(bytes, (size_t)16);
        memcpy(w->args + bytes, args[i], f->bytes[i]);
        bytes += f->bytes[i];
    }
    append(s, w);
    host_counts.launches++;
    host_counts.converted += strcmp(f->name, "convert") == 0;
    return host_end(0);
}

static void do_execution(work *w)
{
    host_execution_do(w->execution);
}

static int dnn_execute(wf_cuda_dnn *dnn, wf_cuda_descriptor *plan, wf_cuda_descriptor *pack)
{
    work like = {.act = do_execution, .name = "what cuDNN computes"};
    int error = host_begin("dnn_execute");
    wf_cuda_stream *s;

    if (error == 0) {
        like.execution = host_execution_new(dnn, plan, pack, &s);
        like.ms = host_execution_ms(plan);
        error = like.execution ? host_enqueue(s, &like, 0, 0) : WF_CUDA_NO_MEMORY;
    }
    return host_end(error);
}

static int dnn_new(wf_cuda_dnn **out)
{
    int error = host_begin("dnn_new");

    return host_end(error ? error : host_dnn_new(out));
}

static int dnn_free(wf_cuda_dnn *dnn)
{
    (void)host_begin("dnn_free");
    return host_end(host_dnn_free(dnn));
}

static int dnn_stream(wf_cuda_dnn *dnn, wf_cuda_stream *s)
{
    int error = host_begin("dnn_stream");

    return host_end(error ? error : host_dnn_stream(dnn, s));
}

static int dnn_make(int kind, wf_cuda_descriptor **out)
{
    int error = host_begin("dnn_make");

    return host_end(error ? error : host_dnn_make(kind, out));
}

static int dnn_unmake(wf_cuda_descriptor *d)
{
    (void)host_begin("dnn_unmake");
    return host_end(host_dnn_unmake(d));
}

static int dnn_set(wf_cuda_descriptor *d, int attribute, int type, int64_t n, const void *values)
{
    int error = host_begin("dnn_set");

    return host_end(error ? error : host_dnn_set(d, attribute, type, n, values));
}

static int dnn_get(wf_cuda_descriptor *d, int attribute, int type, int64_t most, int64_t *n,
                   void *values)
{
    int error = host_begin("dnn_get");

    return host_end(error ? error : host_dnn_get(d, attribute, type, most, n, values));
}

static int dnn_finish(wf_cuda_descriptor *d)
{
    int error = host_begin("dnn_finish");

    return host_end(error ? error : host_dnn_finish(d));
}

/* Those of host_compile.c. */
static int compiler_version(int *v_major, int *v_minor)
{
    int error = host_begin("compiler_version");

    return host_end(error ? error : host_compiler_version(v_major, v_minor));
}

static int program_new(wf_cuda_program **out, const char *source, const char *name)
{
    int error = host_begin("program_new");

    (void)name;
    return host_end(error ? error : host_program_new(out, source));
}

static int program_compile(wf_cuda_program *p, int n, const char *const options[])
{
    int error = host_begin("program_compile");

    return host_end(error ? error : host_program_compile(p, n, options));
}

static int program_log_size(wf_cuda_program *p, size_t *bytes)
{
    int error = host_begin("program_log_size");

    return host_end(error ? error : host_program_log_size(p, bytes));
}

static int program_log(wf_cuda_program *p, char *out)
{
    int error = host_begin("program_log");

    return host_end(error ? error : host_program_log(p, out));
}

static int program_code_size(wf_cuda_program *p, size_t *bytes)
{
    int error = host_begin("program_code_size");

    return host_end(error ? error : host_program_code_size(p, bytes));
}

static int program_code(wf_cuda_program *p, char *out)
{
    int error = host_begin("program_code");

    return host_end(error ? error : host_program_code(p, out));
}

static int program_free(wf_cuda_program *p)
{
    (void)host_begin("program_free");
    return host_end(host_program_free(p));
}

static int library_load(wf_cuda_library **out, const void *code)
{
    int error = host_begin("library_load");

    return host_end(error ? error : host_library_load(out, code));
}

static int library_kernel(const void **out, wf_cuda_library *l, const char *name)
{
    int error = host_begin("library_kernel");

    return host_end(error ? error : host_library_kernel(out, l, name));
}

static int library_free(wf_cuda_library *l)
{
    (void)host_begin("library_free");
    return host_end(host_library_free(l));
}

/* Those of host_nccl.c. */
static int nccl_new(wf_cuda_comm *out[], int n, const int devices[])
{
    int error = host_begin("nccl_new");

    return host_end(error ? error : host_nccl_new(out, n, devices));
}

static int nccl_free(wf_cuda_comm *comm)
{
    (void)host_begin("nccl_free");
    return host_end(host_nccl_free(comm));
}

static int nccl_begin(void)
{
    int error = host_begin("nccl_begin");

    return host_end(error ? error : host_nccl_begin());
}

static int nccl_end(void)
{
    int error = host_begin("nccl_end"), ended = host_nccl_end();

    return host_end(error ? error : ended);
}

static int nccl_sum(const float *from, float *to, size_t n, wf_cuda_comm *comm, wf_cuda_stream *s)
{
    int error = host_begin("nccl_sum");

    if (error)
        host_nccl_drop();
    return host_end(error ? error : host_nccl_sum(from, to, n, comm, s));
}

const wf_cuda_calls wf_cuda_host = {
    .count = host_count,
    .properties = host_properties,
    .use = host_use,
    .memory_left = host_memory_left,
    .error_string = host_error_string,
    .alloc = host_alloc,
    .free = host_free,
    .alloc_seen = host_alloc_seen,
    .free_seen = host_free_seen,
    .pin = host_pin,
    .unpin = host_unpin,
    .stream_new = host_stream_new,
    .stream_free = host_stream_free,
    .stream_wait = host_stream_wait,
    .stream_after = host_stream_after,
    .copy = host_copy,
    .fill = host_fill,
    .event_new = host_event_new,
    .event_free = host_event_free,
    .event_record = host_event_record,
    .event_wait = host_event_wait,
    .event_query = host_event_query,
    .timer_new = host_timer_new,
    .timer_ms = host_timer_ms,
    .launch = host_launch,
    .lt_new = host_lt_new,
    .lt_free = host_lt_free,
    .product_new = host_call_product_new,
    .product_set = host_call_product_set,
    .product_free = host_product_free,
    .layout_new = host_call_layout_new,
    .layout_set = host_call_layout_set,
    .layout_free = host_layout_free,
    .lt_version = host_lt_version,
    .choose = host_call_choose,
    .multiply = host_multiply,
    .dnn_new = dnn_new,
    .dnn_free = dnn_free,
    .dnn_version = host_dnn_version,
    .dnn_stream = dnn_stream,
    .dnn_make = dnn_make,
    .dnn_unmake = dnn_unmake,
    .dnn_set = dnn_set,
    .dnn_get = dnn_get,
    .dnn_finish = dnn_finish,
    .dnn_execute = dnn_execute,
    .compiler_version = compiler_version,
    .program_new = program_new,
    .program_compile = program_compile,
    .program_log_size = program_log_size,
    .program_log = program_log,
    .program_code_size = program_code_size,
    .program_code = program_code,
    .program_free = program_free,
    .library_load = library_load,
    .library_kernel = library_kernel,
    .library_free = library_free,
    .capture_begin = host_capture_begin,
    .capture_end = host_capture_end,
    .graph_free = host_graph_free,
    .replay_new = host_replay_new,
    .replay_free = host_replay_free,
    .replay = host_replay,
    .nccl_new = nccl_new,
    .nccl_free = nccl_free,
    .nccl_begin = nccl_begin,
    .nccl_end = nccl_end,
    .nccl_sum = nccl_sum,
};

cuda_host_counts cuda_host_count(void)
{
    cuda_host_counts c = host_counts;

    c.held = host_memory_held();
    c.objects +=
        host_blas_objects() + host_dnn_objects() + host_compile_objects() + host_nccl_objects();
    c.sums = host_nccl_sums();
    c.dnn_asked = host_dnn_asked();
    c.dnn_executed = host_dnn_executed();
    c.compilations = host_compile_count();
    return c;
}

void cuda_host_keep_code(void)
{
    setenv("WEFT_CACHE", HOST_CACHE, 0);
}

const wf_device *cuda_host_device(void)
{
    return cuda_host_gpu(0);
}

const wf_device *cuda_host_gpu(int index)
{
    static wf_cuda_gpu *gpus[2];
    wf_cuda_gpu *gpu = gpus[index];
    const char *cudnn = getenv("WEFT_TEST_CUDNN");
    wf_err err;

    if (gpu)
        return &gpu->base;
    if (cudnn && strcmp(cudnn, "missing") == 0)
        cuda_host_dnn(CUDA_HOST_DNN_MISSING);
    cuda_host_keep_code();
    if (wf_cuda_open(&wf_cuda_host, "cuda-host", index, &gpu, &err) != WF_OK ||
        wf_device_add(&gpu->rows, &err) != WF_OK) {
        fprintf(stderr, "%s\n", err.what);
        exit(2);
    }
    gpus[index] = gpu;
    return &gpu->base;
}
