/* SPDX-License-Identifier: Apache-2.0 */
/* tests/unit/numbered.h - messages that tell their own content, and the two ends that exchange
 * them through wf_wires. */
#ifndef WF_TESTS_UNIT_NUMBERED_H
#define WF_TESTS_UNIT_NUMBERED_H

#include "common/wire/shm_pool.h"
#include "common/wire/wires.h"

enum { DEADLINE_S = 30, BIG = 300 << 10 };

void fill(uint8_t *data, size_t n, uint64_t seed);
bool is_filled(const uint8_t *data, size_t n, uint64_t seed);
/* Message i: its frames, one part for each; some frames of `own`, where that gives memory. */
wf_msg *make(wf_msg_pool *pool, wf_shm_pool *own, uint32_t i);
bool is_whole(const wf_msg *m, uint32_t i);

/* ---- ends at an address of this process's own ---- */

typedef struct side {
    wf_wires *w;
    wf_transport *t;
    wf_msg_pool pool;
} side;

/* The address, made and removed by these, for cmocka: a path, or a port of this host. */
extern char address[64];
int set_up(void **state);
int set_up_tcp(void **state);
int tear_down(void **state);

void open_side(side *s, bool listens);
void close_side(side *s);
/* The next message, or NULL after the deadline. */
wf_msg *await(side *s, wf_route *from);
/* Sends message i, again until it goes; false after the deadline. */
bool send_soon(side *s, const wf_route *to, uint32_t i);
/* Sends messages from first on, and takes each back; false when one does not come back whole. */
bool exchange(side *s, uint32_t first, uint32_t count);
/* Answers so many messages, each with itself. */
void answer(side *s, uint32_t count);

#endif
