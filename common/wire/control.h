/* SPDX-License-Identifier: Apache-2.0 */
/* common/wire/control.h - packs protobuf bodies into messages and unpacks them; every body is
 * checked by the guard (common/pb/pb.h) before it is unpacked. */
#ifndef WF_WIRE_CONTROL_H
#define WF_WIRE_CONTROL_H

#include "common/base/status.h"
#include "common/wire/msg.h"
#include <protobuf-c/protobuf-c.h>

/* Packs a body into the message's control bytes. Errors: WF_NOMEM; WF_FULL when it is larger than
 * the grammar allows for the kind: every receiver would refuse it. */
WF_MUST_USE wf_status wf_control_put(wf_msg *m, const ProtobufCMessage *body, wf_err *err);
/* Unpacks the control bytes as `type`; *out is freed by wf_control_free. Strings are never NULL.
 * Errors: WF_PROTO for bytes that are no such body, or that exceed the guard's limits; WF_NOMEM. */
WF_MUST_USE wf_status wf_control_get(const wf_msg *m, const ProtobufCMessageDescriptor *type,
                                     void *out, wf_err *err);
/* The same from bytes that are not a message's (a journal record). */
WF_MUST_USE wf_status wf_control_unpack(const void *bytes, size_t n,
                                        const ProtobufCMessageDescriptor *type, void *out,
                                        wf_err *err);
/* A copy of a body; *out is freed by wf_control_free. Errors: WF_NOMEM; WF_PROTO for one that
 * exceeds the guard's limits. */
WF_MUST_USE wf_status wf_control_copy(const ProtobufCMessage *body, void *out, wf_err *err);
/* Frees what wf_control_get gave, through a pointer to the pointer, and sets it to NULL. */
void wf_control_free(void *body);

#endif
