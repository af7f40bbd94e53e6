/* SPDX-License-Identifier: Apache-2.0 */
/* common/wire/header.h - the 64 bytes that every message starts with.
 *
 * Little-endian, at fixed places:
 *   0 magic u32   4 version u8   5 zero u8   6 kind u16   8 view u32   12 map u32
 *   16 incarnation u64   24 sequence u64   32 ack u64   40 request u32   44 job u16
 *   46 generation u16   48 step u32   52 cut u32   56 control bytes u32   60 crc32c u32
 * The checksum covers the header (with its own place as zero) and the control bytes behind it.
 */
#ifndef WF_WIRE_HEADER_H
#define WF_WIRE_HEADER_H

#include "common/base/status.h"
#include <stddef.h>
#include <stdint.h>

enum { WF_HEADER_BYTES = 64, WF_WIRE_VERSION = 1 };
#define WF_WIRE_MAGIC 0x54464557u /* "WEFT" */

typedef struct wf_header {
    uint8_t version;
    uint16_t kind;        /* wf_kind, grammar.h */
    uint32_t view, map;   /* of the sender; the slice map's version */
    uint64_t incarnation; /* of the sender */
    uint64_t sequence;    /* of this message on its link; 0: outside the sequence */
    uint64_t ack;         /* the sender has taken all messages up to this one */
    uint32_t request;     /* the number of a question, pull or list (docs/wire.md) */
    uint16_t job, generation;
    uint32_t step, cut;
    uint32_t control_bytes; /* behind the header in the same frame */
} wf_header;

/* Writes the header for `control` [h->control_bytes] into out [WF_HEADER_BYTES]. */
void wf_header_encode(const wf_header *h, const void *control, uint8_t out[]);
/* Reads a frame of n bytes: header, then exactly control_bytes. The version and the kind are the
 * caller's to check. Errors: WF_PROTO, naming the fault (too short, magic, length, checksum). */
WF_MUST_USE wf_status wf_header_decode(const void *frame, size_t n, wf_header *h, wf_err *err);

/* Little-endian words at any address. */
void wf_put_u16(uint8_t *p, uint16_t v);
void wf_put_u32(uint8_t *p, uint32_t v);
void wf_put_u64(uint8_t *p, uint64_t v);
uint16_t wf_get_u16(const uint8_t *p);
uint32_t wf_get_u32(const uint8_t *p);
uint64_t wf_get_u64(const uint8_t *p);

#endif
