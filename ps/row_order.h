/* SPDX-License-Identifier: Apache-2.0 */
/* ps/row_order.h - records in the order of their last use, in bits of each: the numbers of its
 * neighbours in the head, behind the stem, and the low bits of the update that used it last in the
 * note, above the twig. So the notes of neighbours are not touched.
 *
 * The high bits are those of its era, as many updates as the low bits tell apart. They are known of
 * each era's oldest record, so an update is known in full where the order is walked from its oldest
 * record on, and there alone.
 *
 * Updates are counted modulo 2^32.
 *
 * Invariants
 *   O1  each record is in the order once, and its last use is no earlier than that of an older one
 *   O2  `eras` has those that a record was last used in, in their order, with the oldest such
 *       record, which is marked
 */
#ifndef WF_PS_ROW_ORDER_H
#define WF_PS_ROW_ORDER_H

#include "ps/records.h"

typedef struct wf_row_order {
    struct wf_row_era {
        uint32_t era;
        int32_t oldest;
    } * eras; /* [n_eras] */
    uint32_t n_eras, eras_room;
    int32_t newest; /* WF_NO_RECORD: there are no records */
} wf_row_order;

/* A record in the order, with the update of its last use. */
typedef struct wf_row_use {
    int32_t row; /* WF_NO_RECORD: there are no more */
    uint32_t used;
    uint32_t era; /* its number among the eras */
} wf_row_use;

enum { WF_ROW_ORDER_HEAD = 12 /* bytes of a head */ };

void wf_row_order_init(wf_row_order *o);
void wf_row_order_close(wf_row_order *o);
/* Records may come to be used in so many more eras. Errors: WF_NOMEM. */
WF_MUST_USE wf_status wf_row_order_reserve(wf_row_order *o, uint64_t eras, wf_err *err);
/* The era of an update. */
uint32_t wf_row_order_era(uint32_t update);
/* A record becomes the newest, used now; it is not in the order, and there is room for its era. */
void wf_row_order_append(wf_row_order *o, const wf_records *r, int32_t row, uint32_t now);
/* Asks for the memory of the neighbours of a record, which is taken out soon. */
void wf_row_order_prefetch(const wf_records *r, int32_t row);
/* Takes a record out of the order. */
void wf_row_order_remove(wf_row_order *o, const wf_records *r, int32_t row);
/* A record has been copied to another number, which takes its place. */
void wf_row_order_renumber(wf_row_order *o, const wf_records *r, int32_t from, int32_t to);
/* The oldest, and the next newer one. */
wf_row_use wf_row_order_oldest(const wf_row_order *o, const wf_records *r);
wf_row_use wf_row_order_newer(const wf_row_order *o, const wf_records *r, wf_row_use than);
/* Bytes of memory held, but for those of the records. */
size_t wf_row_order_bytes(const wf_row_order *o);

#endif
