/* SPDX-License-Identifier: Apache-2.0 */
/* common/wire/header.c */
#include "common/wire/header.h"
#include "common/base/crc32c.h"

#include <endian.h>
#include <string.h>

void wf_put_u16(uint8_t *p, uint16_t v)
{
    v = htole16(v);
    memcpy(p, &v, sizeof v);
}

void wf_put_u32(uint8_t *p, uint32_t v)
{
    v = htole32(v);
    memcpy(p, &v, sizeof v);
}

void wf_put_u64(uint8_t *p, uint64_t v)
{
    v = htole64(v);
    memcpy(p, &v, sizeof v);
}

uint16_t wf_get_u16(const uint8_t *p)
{
    uint16_t v;

    memcpy(&v, p, sizeof v);
    return le16toh(v);
}

uint32_t wf_get_u32(const uint8_t *p)
{
    uint32_t v;

    memcpy(&v, p, sizeof v);
    return le32toh(v);
}

uint64_t wf_get_u64(const uint8_t *p)
{
    uint64_t v;

    memcpy(&v, p, sizeof v);
    return le64toh(v);
}

void wf_header_encode(const wf_header *h, const void *control, uint8_t out[])
{
    uint32_t crc;

    wf_put_u32(out, WF_WIRE_MAGIC);
    out[4] = h->version;
    out[5] = 0;
    wf_put_u16(out + 6, h->kind);
    wf_put_u32(out + 8, h->view);
    wf_put_u32(out + 12, h->map);
    wf_put_u64(out + 16, h->incarnation);
    wf_put_u64(out + 24, h->sequence);
    wf_put_u64(out + 32, h->ack);
    wf_put_u32(out + 40, h->request);
    wf_put_u16(out + 44, h->job);
    wf_put_u16(out + 46, h->generation);
    wf_put_u32(out + 48, h->step);
    wf_put_u32(out + 52, h->cut);
    wf_put_u32(out + 56, h->control_bytes);
    wf_put_u32(out + 60, 0);
    crc = wf_crc32c(0, out, WF_HEADER_BYTES);
    crc = wf_crc32c(crc, control, h->control_bytes);
    wf_put_u32(out + 60, crc);
}

wf_status wf_header_decode(const void *frame, size_t n, wf_header *h, wf_err *err)
{
    const uint8_t *p = frame;
    uint8_t zeroed[WF_HEADER_BYTES];
    uint32_t crc;

    if (n < WF_HEADER_BYTES)
        return wf_fail(err, WF_PROTO, NULL, "a message of %zu bytes is too short for a header", n);
    if (wf_get_u32(p) != WF_WIRE_MAGIC)
        return wf_fail(err, WF_PROTO, NULL, "a message does not begin as weft's do");
    *h = (wf_header){
        .version = p[4],
        .kind = wf_get_u16(p + 6),
        .view = wf_get_u32(p + 8),
        .map = wf_get_u32(p + 12),
        .incarnation = wf_get_u64(p + 16),
        .sequence = wf_get_u64(p + 24),
        .ack = wf_get_u64(p + 32),
        .request = wf_get_u32(p + 40),
        .job = wf_get_u16(p + 44),
        .generation = wf_get_u16(p + 46),
        .step = wf_get_u32(p + 48),
        .cut = wf_get_u32(p + 52),
        .control_bytes = wf_get_u32(p + 56),
    };
    if (h->control_bytes != n - WF_HEADER_BYTES)
        return wf_fail(err, WF_PROTO, NULL, "a message claims %u control bytes and has %zu",
                       h->control_bytes, n - WF_HEADER_BYTES);
    memcpy(zeroed, p, sizeof zeroed);
    wf_put_u32(zeroed + 60, 0);
    crc = wf_crc32c(0, zeroed, sizeof zeroed);
    if (wf_crc32c(crc, p + WF_HEADER_BYTES, h->control_bytes) != wf_get_u32(p + 60))
        return wf_fail(err, WF_PROTO, NULL, "a message's checksum differs");
    return WF_OK;
}
