/* SPDX-License-Identifier: Apache-2.0 */
/* common/wire/control.c */
#include "common/wire/control.h"

wf_status wf_control_put(wf_msg *m, const ProtobufCMessage *body, wf_err *err)
{
    size_t n = protobuf_c_message_get_packed_size(body);
    uint8_t *to = wf_msg_control(m, n);

    if (!to && n)
        return wf_fail_nomem(err, n);
    protobuf_c_message_pack(body, to);
    return WF_OK;
}

wf_status wf_control_unpack(const void *bytes, size_t n, const ProtobufCMessageDescriptor *type,
                            void *out, wf_err *err)
{
    ProtobufCMessage *body = protobuf_c_message_unpack(type, NULL, n, bytes);

    if (!body)
        return wf_fail(err, WF_PROTO, NULL, "%zu bytes are no %s message", n, type->short_name);
    *(ProtobufCMessage **)out = body;
    return WF_OK;
}

wf_status wf_control_get(const wf_msg *m, const ProtobufCMessageDescriptor *type, void *out,
                         wf_err *err)
{
    return wf_control_unpack(m->control, m->head.control_bytes, type, out, err);
}

void wf_control_free(void *body)
{
    ProtobufCMessage **m = body;

    if (*m)
        protobuf_c_message_free_unpacked(*m, NULL);
    *m = NULL;
}
