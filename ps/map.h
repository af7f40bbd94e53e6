/* SPDX-License-Identifier: Apache-2.0 */
/* ps/map.h - the slice map: which part of which variable a slice is, and which ps has it.
 *
 * A set-up gives the map of a generation and its version. Then it changes one slice at a time, and
 * each change has a version of its own. A ps knows the changes in which it took part, and not all:
 * so a place is as new as the version of its change, and whoever is told of a change compares it
 * with what he knows of that slice. The version of the map as a whole is the highest that is known
 * here; a message of an older one is denied, with all changes (deny.c).
 *
 * Invariants
 *   M1  the version of a slice's place only grows, and none is higher than the map's
 *   M2  a slice that the map places here is here, and no other (wf_ps_owns)
 */
#ifndef WF_PS_MAP_H
#define WF_PS_MAP_H

#include "common/base/status.h"
#include <stdbool.h>
#include <stdint.h>

typedef struct wf_map_slice {
    uint32_t variable;
    uint64_t offset, count; /* elements */
    uint32_t primary;       /* the ps that has it */
    uint32_t version;       /* of the change that put it there; that of the set-up at first */
} wf_map_slice;

typedef struct wf_map {
    wf_map_slice *slices; /* [n], by id */
    uint32_t n;
    uint32_t version; /* the highest known */
    uint32_t first;   /* that of the set-up */
} wf_map;

/* A map of n slices, all of whose places are of `version`; the caller fills in the slices. Errors:
 * WF_NOMEM. */
WF_MUST_USE wf_status wf_map_init(wf_map *m, uint32_t n, uint32_t version, wf_err *err);
void wf_map_close(wf_map *m);
/* Puts a slice on another ps, from `version` on, which has to be newer than its place (M1). */
void wf_map_move(wf_map *m, uint32_t slice, uint32_t ps, uint32_t version);
/* Whether a slice was moved since the set-up; false for an id that is none. */
bool wf_map_has_moved(const wf_map *m, uint32_t slice);

#endif
