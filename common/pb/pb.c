/* SPDX-License-Identifier: Apache-2.0 */
/* common/pb/pb.c - one pass over the tags with a stack of message ends; no recursion. */
#include "common/pb/pb.h"
#include "common/base/size.h"

#include <inttypes.h>
#include <stdbool.h>

const wf_pb_limits wf_pb_model = {
    .max_bytes = (UINT64_C(2) << 30) - 1,
    .max_depth = 32,
    .max_fields = 1000 * 1000,
    .budget_bytes = UINT64_C(64) << 20,
    .budget_times = 4,
};

const wf_pb_limits wf_pb_envelope = {
    .max_bytes = 1 << 20,
    .max_depth = 6,
    .max_fields = 1000,
    .budget_bytes = 4 << 20,
    .budget_times = 0,
};

enum wire_type { VARINT = 0, FIXED64 = 1, LENGTH = 2, GROUP = 3, GROUP_END = 4, FIXED32 = 5 };

/* Where the walk is: at byte `at` of the innermost of `depth` open messages. */
typedef struct walk {
    const uint8_t *data;
    size_t at;
    uint64_t fields;
    uint32_t depth;
    struct {
        const ProtobufCMessageDescriptor *type;
        size_t end;
    } open[WF_PB_MAX_DEPTH];
    const wf_pb_limits *limits;
} walk;

static size_t end_of(const walk *w)
{
    return w->open[w->depth - 1].end;
}

static wf_status cut_short(const walk *w, wf_err *err)
{
    if (w->depth == 1)
        return wf_fail(err, WF_INVALID, NULL, "cut short: its %zu bytes end within a field",
                       w->open[0].end);
    return wf_fail(err, WF_INVALID, NULL, "damaged at byte %zu of %zu: a %s ends within a field",
                   w->at, w->open[0].end, w->open[w->depth - 1].type->short_name);
}

static wf_status read_varint(walk *w, uint64_t *out, wf_err *err)
{
    uint64_t value = 0;

    for (unsigned shift = 0; shift < 70; shift += 7) {
        uint8_t byte;

        if (w->at >= end_of(w))
            return cut_short(w, err);
        byte = w->data[w->at++];
        if (shift < 64)
            value |= (uint64_t)(byte & 0x7F) << shift;
        if (!(byte & 0x80)) {
            *out = value;
            return WF_OK;
        }
    }
    return wf_fail(err, WF_INVALID, NULL,
                   "damaged at byte %zu of %zu: a number of more than 10 bytes", w->at,
                   w->open[0].end);
}

static wf_status skip(walk *w, uint64_t n, wf_err *err)
{
    if (n > end_of(w) - w->at)
        return wf_fail(err, WF_INVALID, NULL,
                       "cut short or damaged: %zu bytes are there, and a field of %s at byte %zu "
                       "claims %" PRIu64 " bytes, where %zu are left",
                       w->open[0].end, w->open[w->depth - 1].type->short_name, w->at, n,
                       end_of(w) - w->at);
    w->at += n;
    return WF_OK;
}

/* Opens a sub-message of n bytes that begins here. */
static wf_status enter(walk *w, const ProtobufCMessageDescriptor *type, uint64_t n, wf_err *err)
{
    size_t begin = w->at;

    WF_TRY(skip(w, n, err));
    if (w->depth >= w->limits->max_depth)
        return wf_fail(err, WF_INVALID, NULL,
                       "messages are nested deeper than %u levels, at byte %zu",
                       w->limits->max_depth, begin);
    w->open[w->depth].type = type;
    w->open[w->depth].end = w->at;
    w->depth++;
    w->at = begin;
    return WF_OK;
}

static wf_status walk_length(walk *w, uint32_t number, wf_err *err)
{
    const ProtobufCMessageDescriptor *type = w->open[w->depth - 1].type;
    const ProtobufCFieldDescriptor *field = protobuf_c_message_descriptor_get_field(type, number);
    uint64_t n = 0;

    WF_TRY(read_varint(w, &n, err));
    if (field && field->type == PROTOBUF_C_TYPE_MESSAGE)
        return enter(w, field->descriptor, n, err);
    return skip(w, n, err);
}

static wf_status walk_field(walk *w, wf_err *err)
{
    size_t begin = w->at;
    uint64_t tag = 0, ignored = 0;

    if (++w->fields > w->limits->max_fields)
        return wf_fail(err, WF_INVALID, NULL, "more than %" PRIu64 " fields, at byte %zu",
                       w->limits->max_fields, begin);
    WF_TRY(read_varint(w, &tag, err));
    if (tag >> 3 == 0 || tag >> 3 > (UINT32_C(1) << 29) - 1)
        return wf_fail(err, WF_INVALID, NULL,
                       "damaged at byte %zu of %zu: field number %" PRIu64 " is none", begin,
                       w->open[0].end, tag >> 3);
    switch ((enum wire_type)(tag & 7)) {
    case VARINT:
        return read_varint(w, &ignored, err);
    case FIXED64:
        return skip(w, 8, err);
    case FIXED32:
        return skip(w, 4, err);
    case LENGTH:
        return walk_length(w, (uint32_t)(tag >> 3), err);
    case GROUP:
    case GROUP_END:
        break;
    }
    return wf_fail(err, WF_INVALID, NULL,
                   "damaged at byte %zu of %zu: wire type %u is none that weft reads", begin,
                   w->open[0].end, (unsigned)(tag & 7));
}

wf_status wf_pb_check(const ProtobufCMessageDescriptor *type, const void *data, size_t n,
                      const wf_pb_limits *limits, wf_err *err)
{
    walk w = {.data = data, .depth = 1, .limits = limits};

    wf_assert(limits->max_depth >= 1 && limits->max_depth <= WF_PB_MAX_DEPTH);
    if (n > limits->max_bytes)
        return wf_fail(err, WF_INVALID, NULL, "%zu bytes, where %zu are allowed", n,
                       limits->max_bytes);
    w.open[0].type = type;
    w.open[0].end = n;
    while (w.depth > 0) {
        if (w.at == end_of(&w))
            w.depth--;
        else
            WF_TRY(walk_field(&w, err));
    }
    return WF_OK;
}

typedef struct pool {
    wf_arena *arena;
    bool used_up;
} pool;

static void *take(void *data, size_t bytes)
{
    pool *p = data;
    void *memory = wf_arena_alloc(p->arena, bytes);

    if (!memory)
        p->used_up = true;
    return memory;
}

/* The arena frees all at once. */
static void leave(void *data, void *memory)
{
    (void)data, (void)memory;
}

wf_status wf_pb_unpack(const ProtobufCMessageDescriptor *type, const void *data, size_t n,
                       const wf_pb_limits *limits, wf_arena **arena, ProtobufCMessage **out,
                       wf_err *err)
{
    pool p = {0};
    ProtobufCAllocator allocator = {.alloc = take, .free = leave, .allocator_data = &p};
    size_t budget = 0;

    WF_TRY(wf_pb_check(type, data, n, limits, err));
    if (!wf_mul_size(n, limits->budget_times, &budget) ||
        !wf_add_size(budget, limits->budget_bytes, &budget))
        return wf_fail_nomem(err, n);
    p.arena = wf_arena_new(budget);
    if (!p.arena)
        return wf_fail_nomem(err, n);
    *out = protobuf_c_message_unpack(type, &allocator, n, data);
    if (*out) {
        *arena = p.arena;
        return WF_OK;
    }
    wf_arena_free(&p.arena);
    /* protobuf-c does not say why. */
    if (p.used_up)
        return wf_fail(err, WF_NOMEM, NULL, "a %s of %zu bytes needs more than %zu to unpack",
                       type->short_name, n, budget);
    return wf_fail(err, WF_INVALID, NULL, "these %zu bytes are not a %s", n, type->short_name);
}
