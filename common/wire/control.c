/* SPDX-License-Identifier: Apache-2.0 */
/* common/wire/control.c - the guard, then protobuf-c.
 *
 * A body is freed by protobuf-c's own allocator (malloc), so the budget only counts: what it gives
 * is malloc's.
 */
#include "common/wire/control.h"
#include "common/pb/pb.h"
#include "common/wire/grammar.h"

#include <stdlib.h>

enum {
    DEPTH = 6,          /* the deepest of ours: record, view, members */
    BUDGET = 256 << 10, /* of memory that unpacking may take: this, */
    BUDGET_TIMES = 32,  /* and so many times the bytes: a split of 6 bytes takes 100 */
    LARGEST_ELSEWHERE =
        256 << 20, /* of bytes that are no message's; whoever read them bounds them */
};

wf_status wf_control_put(wf_msg *m, const ProtobufCMessage *body, wf_err *err)
{
    size_t n = protobuf_c_message_get_packed_size(body);
    const wf_kind_row *row = wf_kind_find(m->head.kind);
    uint8_t *to;

    if (row && n > row->control_limit)
        return wf_fail(err, WF_FULL, NULL, "a %s of %zu bytes, where %zu are allowed", row->name, n,
                       row->control_limit);
    to = wf_msg_control(m, n);
    if (!to && n)
        return wf_fail_nomem(err, n);
    protobuf_c_message_pack(body, to);
    return WF_OK;
}

typedef struct budget {
    size_t left;
    bool no_memory; /* malloc's, which is no fault of the peer */
} budget;

static void *take(void *data, size_t bytes)
{
    budget *b = data;
    void *p;

    if (bytes > b->left)
        return NULL;
    b->left -= bytes;
    p = malloc(bytes);
    b->no_memory |= !p;
    return p;
}

static void leave(void *data, void *memory)
{
    (void)data;
    free(memory);
}

static wf_status unpack(const void *bytes, size_t n, size_t most,
                        const ProtobufCMessageDescriptor *type, void *out, wf_err *err)
{
    budget b = {.left = BUDGET + BUDGET_TIMES * n}; /* n is at most a few hundred MiB */
    ProtobufCAllocator allocator = {.alloc = take, .free = leave, .allocator_data = &b};
    wf_pb_limits limits = {.max_bytes = most, .max_depth = DEPTH, .max_fields = 1000 + n / 2};
    ProtobufCMessage *body;
    wf_status rc;

    rc = wf_pb_check(type, bytes, n, &limits, err);
    if (rc != WF_OK) {
        if (err)
            err->status = WF_PROTO;
        return WF_PROTO;
    }
    body = protobuf_c_message_unpack(type, &allocator, n, bytes);
    if (b.no_memory) {
        if (body)
            protobuf_c_message_free_unpacked(body, NULL);
        return wf_fail_nomem(err, n);
    }
    if (!body)
        return wf_fail(err, WF_PROTO, NULL, "%zu bytes are no %s message", n, type->short_name);
    *(ProtobufCMessage **)out = body;
    return WF_OK;
}

wf_status wf_control_unpack(const void *bytes, size_t n, const ProtobufCMessageDescriptor *type,
                            void *out, wf_err *err)
{
    return unpack(bytes, n, LARGEST_ELSEWHERE, type, out, err);
}

wf_status wf_control_get(const wf_msg *m, const ProtobufCMessageDescriptor *type, void *out,
                         wf_err *err)
{
    const wf_kind_row *row = wf_kind_find(m->head.kind);

    return unpack(m->control, m->head.control_bytes, row ? row->control_limit : 0, type, out, err);
}

wf_status wf_control_copy(const ProtobufCMessage *body, void *out, wf_err *err)
{
    size_t n = protobuf_c_message_get_packed_size(body);
    uint8_t *bytes = malloc(n + 1);
    wf_status rc;

    if (!bytes)
        return wf_fail_nomem(err, n);
    protobuf_c_message_pack(body, bytes);
    rc = wf_control_unpack(bytes, n, body->descriptor, out, err);
    free(bytes);
    return rc;
}

void wf_control_free(void *body)
{
    ProtobufCMessage **m = body;

    if (*m)
        protobuf_c_message_free_unpacked(*m, NULL);
    *m = NULL;
}
