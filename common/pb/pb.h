/* SPDX-License-Identifier: Apache-2.0 */
/* common/pb/pb.h - the front door of common/pb: the guard for protobuf from files and peers.
 *
 * protobuf-c's unpack recurses for every nested message without counting, and turns an empty
 * sub-message of 2 bytes into some 100 of memory. So untrusted bytes are walked first, without
 * allocating, and are then unpacked into an arena with a budget. What is a sub-message and what is
 * a string is not written on the wire: the walk follows the generated descriptor, so only real
 * nesting counts as depth. Unpack uses about 1 KiB of stack per level; the deepest preset, 32,
 * needs no special thread.
 */
#ifndef WF_PB_PB_H
#define WF_PB_PB_H

#include "common/base/arena.h"
#include "common/base/status.h"
#include <protobuf-c/protobuf-c.h>
#include <stddef.h>
#include <stdint.h>

enum { WF_PB_MAX_DEPTH = 64 }; /* what a preset may ask for at most */

typedef struct wf_pb_limits {
    size_t max_bytes;    /* of the whole message; below 2 GiB, for protobuf-c counts in 32 bits */
    uint32_t max_depth;  /* the outermost message is depth 1; at most WF_PB_MAX_DEPTH */
    uint64_t max_fields; /* in all messages together */
    size_t budget_bytes; /* memory that unpacking may take: this, */
    size_t budget_times; /* and this many times the message's size */
} wf_pb_limits;

/* Model files. The fixed part of the budget is for graphs of many small nodes without weights,
 * where a node of 30 bytes becomes 500 in memory. */
extern const wf_pb_limits wf_pb_model;
/* Control messages between tasks. */
extern const wf_pb_limits wf_pb_envelope;

/* Walks the tags of an untrusted message of the given type. Errors: WF_INVALID, saying what is
 * wrong and at which byte: cut short, a length beyond the end, groups, an unknown wire type, field
 * number 0, too deep, too many fields, too long. */
WF_MUST_USE wf_status wf_pb_check(const ProtobufCMessageDescriptor *type, const void *data,
                                  size_t n, const wf_pb_limits *limits, wf_err *err);

/* Checks, then unpacks. *out and *arena are the caller's; the message lives in the arena and dies
 * with it (never call free_unpacked). Errors: as wf_pb_check; WF_INVALID when protobuf-c refuses
 * the bytes; WF_NOMEM when the budget is used up. */
WF_MUST_USE wf_status wf_pb_unpack(const ProtobufCMessageDescriptor *type, const void *data,
                                   size_t n, const wf_pb_limits *limits, wf_arena **arena,
                                   ProtobufCMessage **out, wf_err *err);

#endif
