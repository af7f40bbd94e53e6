/* SPDX-License-Identifier: Apache-2.0 */
/* common/kernels/cuda/planned.c - a GPU that need not be there: plans for it can be measured, and
 * not run.
 *
 * Objects are places in this file, memory is refused, nothing is timed, and a product or a
 * convolution takes all the workspace that it may. Nothing is compiled: a chain has its
 * interpreter, which needs no other memory.
 */
#include "common/kernels/cuda/planned.h"
#include "common/kernels/cuda/dnn/choose.h"

static char anything; /* what all objects are */

enum { REFUSED = 801 /* cudaErrorNotSupported */ };

static int count(int *n)
{
    *n = WF_CUDA_PLANNED_GPUS;
    return 0;
}

static int properties(int device, wf_cuda_properties *out)
{
    (void)device;
    *out = (wf_cuda_properties){
        .name = "any GPU", .major = 9, .processors = 132, .memory = SIZE_MAX / 2};
    return 0;
}

static int use(int device)
{
    (void)device;
    return 0;
}

static int memory_left(size_t *left, size_t *all)
{
    *left = *all = SIZE_MAX / 2;
    return 0;
}

static const char *error_string(int error)
{
    (void)error;
    return "this device is for measuring plans";
}

static int alloc(void **out, size_t bytes)
{
    (void)out, (void)bytes;
    return REFUSED;
}

static int free_any(void *data)
{
    (void)data;
    return 0;
}

/* Where kernels would say what they find: of one stream as of all. */
static int alloc_seen(void **out, size_t bytes)
{
    static wf_cuda_fault fault;

    if (bytes > sizeof fault)
        return REFUSED;
    *out = &fault;
    return 0;
}

static int pin(void *at, size_t bytes)
{
    (void)at, (void)bytes;
    return REFUSED;
}

#define MADE(name, type)                                                                           \
    static int name(type **out)                                                                    \
    {                                                                                              \
        *out = (type *)&anything;                                                                  \
        return 0;                                                                                  \
    }
#define FREED(name, type)                                                                          \
    static int name(type *any)                                                                     \
    {                                                                                              \
        (void)any;                                                                                 \
        return 0;                                                                                  \
    }

MADE(stream_new, wf_cuda_stream)
FREED(stream_free, wf_cuda_stream)
FREED(stream_wait, wf_cuda_stream)
MADE(event_new, wf_cuda_event)
FREED(event_free, wf_cuda_event)
FREED(event_wait, wf_cuda_event)
FREED(event_query, wf_cuda_event)
MADE(lt_new, wf_cuda_lt)
FREED(lt_free, wf_cuda_lt)
FREED(product_free, wf_cuda_product)
FREED(layout_free, wf_cuda_layout)
MADE(dnn_new, wf_cuda_dnn)
FREED(dnn_free, wf_cuda_dnn)
FREED(dnn_finish, wf_cuda_descriptor)
FREED(dnn_unmake, wf_cuda_descriptor)

static int stream_after(wf_cuda_stream *s, wf_cuda_event *e)
{
    (void)s, (void)e;
    return REFUSED;
}

static int event_record(wf_cuda_event *e, wf_cuda_stream *s)
{
    (void)s, (void)e;
    return REFUSED;
}

static int copy(void *to, const void *from, size_t bytes, wf_cuda_way way, wf_cuda_stream *s)
{
    (void)to, (void)from, (void)bytes, (void)way, (void)s;
    return REFUSED;
}

static int fill(void *to, int byte, size_t bytes, wf_cuda_stream *s)
{
    (void)to, (void)byte, (void)bytes, (void)s;
    return REFUSED;
}

static int launch(const wf_cuda_function *f, wf_cuda_dim grid, wf_cuda_dim block, void **args,
                  size_t shared, wf_cuda_stream *s)
{
    (void)f, (void)grid, (void)block, (void)args, (void)shared, (void)s;
    return REFUSED;
}

static int product_new(wf_cuda_product **out, int compute, int scale)
{
    (void)compute, (void)scale;
    *out = (wf_cuda_product *)&anything;
    return 0;
}

static int product_set(wf_cuda_product *p, int attribute, const void *value, size_t bytes)
{
    (void)p, (void)attribute, (void)value, (void)bytes;
    return 0;
}

static int layout_new(wf_cuda_layout **out, int type, uint64_t rows, uint64_t columns, int64_t ld)
{
    (void)type, (void)rows, (void)columns, (void)ld;
    *out = (wf_cuda_layout *)&anything;
    return 0;
}

static int layout_set(wf_cuda_layout *l, int attribute, const void *value, size_t bytes)
{
    (void)l, (void)attribute, (void)value, (void)bytes;
    return 0;
}

static int choose(wf_cuda_lt *lt, wf_cuda_product *p, wf_cuda_layout *a, wf_cuda_layout *b,
                  wf_cuda_layout *c, size_t workspace, uint32_t aligned, int most,
                  wf_cuda_algorithm out[], int *n)
{
    (void)lt, (void)p, (void)a, (void)b, (void)c, (void)aligned, (void)most;
    out[0] = (wf_cuda_algorithm){.workspace = workspace};
    *n = 1;
    return 0;
}

static uint64_t no_version(void)
{
    return 0;
}

static int multiply(wf_cuda_lt *lt, wf_cuda_product *p, const void *alpha, const void *a,
                    wf_cuda_layout *of_a, const void *b, wf_cuda_layout *of_b, const void *beta,
                    void *c, wf_cuda_layout *of_c, const wf_cuda_algorithm *algorithm,
                    void *workspace, wf_cuda_stream *s)
{
    (void)lt, (void)p, (void)alpha, (void)a, (void)of_a, (void)b, (void)of_b, (void)beta, (void)c;
    (void)of_c, (void)algorithm, (void)workspace, (void)s;
    return REFUSED;
}

static int dnn_stream(wf_cuda_dnn *dnn, wf_cuda_stream *s)
{
    (void)dnn, (void)s;
    return REFUSED;
}

static int dnn_make(int kind, wf_cuda_descriptor **out)
{
    (void)kind;
    *out = (wf_cuda_descriptor *)&anything;
    return 0;
}

static int dnn_set(wf_cuda_descriptor *d, int attribute, int type, int64_t n, const void *values)
{
    (void)d, (void)attribute, (void)type, (void)n, (void)values;
    return 0;
}

/* One configuration, whose engine has no notes. */
static int dnn_get(wf_cuda_descriptor *d, int attribute, int type, int64_t most, int64_t *n,
                   void *values)
{
    (void)d, (void)type, (void)most;
    *n = attribute != WF_DNN_ENGINE_NOTES;
    if (attribute == WF_DNN_PLAN_WORKSPACE)
        *(int64_t *)values = WF_DNN_MOST_WORKSPACE;
    return 0;
}

static int dnn_execute(wf_cuda_dnn *dnn, wf_cuda_descriptor *plan, wf_cuda_descriptor *pack)
{
    (void)dnn, (void)plan, (void)pack;
    return REFUSED;
}

const wf_cuda_calls wf_cuda_planned = {.count = count,
                                       .properties = properties,
                                       .use = use,
                                       .memory_left = memory_left,
                                       .error_string = error_string,
                                       .alloc = alloc,
                                       .free = free_any,
                                       .alloc_seen = alloc_seen,
                                       .free_seen = free_any,
                                       .pin = pin,
                                       .unpin = free_any,
                                       .stream_new = stream_new,
                                       .stream_free = stream_free,
                                       .stream_wait = stream_wait,
                                       .stream_after = stream_after,
                                       .copy = copy,
                                       .fill = fill,
                                       .event_new = event_new,
                                       .event_free = event_free,
                                       .event_record = event_record,
                                       .event_wait = event_wait,
                                       .event_query = event_query,
                                       .launch = launch,
                                       .lt_new = lt_new,
                                       .lt_free = lt_free,
                                       .product_new = product_new,
                                       .product_set = product_set,
                                       .product_free = product_free,
                                       .layout_new = layout_new,
                                       .layout_set = layout_set,
                                       .layout_free = layout_free,
                                       .lt_version = no_version,
                                       .choose = choose,
                                       .multiply = multiply,
                                       .dnn_new = dnn_new,
                                       .dnn_free = dnn_free,
                                       .dnn_version = no_version,
                                       .dnn_stream = dnn_stream,
                                       .dnn_make = dnn_make,
                                       .dnn_unmake = dnn_unmake,
                                       .dnn_set = dnn_set,
                                       .dnn_get = dnn_get,
                                       .dnn_finish = dnn_finish,
                                       .dnn_execute = dnn_execute};
