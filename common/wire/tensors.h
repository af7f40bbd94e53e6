/* SPDX-License-Identifier: Apache-2.0 */
/* common/wire/tensors.h - messages of a protobuf body with tensors behind it, as sessions of
 * clients exchange them.
 *
 * The control bytes are a part table (parts.h), so bounds and checksums are looked at before a
 * message is acknowledged. Part 0 is the body, and part 1 + i the content of tensor i, whose dtype
 * and shape the body says: parts of codec "bytes", or of codec "none" where there are none. The
 * body has at most the bytes that the grammar gives the kind for its control bytes.
 */
#ifndef WF_WIRE_TENSORS_H
#define WF_WIRE_TENSORS_H

#include "common/base/status.h"
#include "common/tensor/tensor.h"
#include "common/wire/control.pb-c.h"
#include "common/wire/msg.h"
#include <protobuf-c/protobuf-c.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    WF_TENSORS_MOST = 256,               /* of one message */
    WF_TENSORS_BYTES = 256 * 1024 * 1024 /* of all of them */
};

/* Fills in a head; `dims` [WF_MAX_RANK] is its memory. */
void wf_tensor_head(const wf_tensor *t, Weft__TensorHead *head, int64_t dims[]);
/* The bytes of a tensor of a peer's head, into *bytes. Errors: WF_PROTO for a dtype, rank or extent
 * that no tensor has, or more than WF_TENSORS_BYTES. */
WF_MUST_USE wf_status wf_tensor_head_check(const Weft__TensorHead *head, size_t *bytes,
                                           wf_err *err);

/* Writes body and tensors [n] into an empty message, which shares the tensors' storage. Where it
 * is lent memory, or where there are more tensors than a message has frames, they are copied. With
 * `checksums`, each part gets one. Errors: WF_FULL, with both numbers; WF_NOMEM. */
WF_MUST_USE wf_status wf_tensors_put(wf_msg *m, const ProtobufCMessage *body, uint32_t n,
                                     const wf_tensor *const tensors[], bool checksums, wf_err *err);
/* Unpacks the body as wf_control_get does; it is freed by wf_control_free. Errors: WF_PROTO,
 * WF_NOMEM. */
WF_MUST_USE wf_status wf_tensors_body(const wf_msg *m, const ProtobufCMessageDescriptor *type,
                                      void *out, wf_err *err);
/* A copy of tensor i, which the caller owns. Errors: WF_PROTO when the message has not just the
 * bytes that the head says; WF_NOMEM. */
WF_MUST_USE wf_status wf_tensors_take(const wf_msg *m, uint32_t i, const Weft__TensorHead *head,
                                      wf_tensor **out, wf_err *err);

#endif
