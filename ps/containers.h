/* SPDX-License-Identifier: Apache-2.0 */
/* ps/containers.h - variables of clients' sessions, by container and name: apart from the slices of
 * a job, which come and go without them. They live as long as the process of the ps.
 *
 * The value lies in a counted buffer that answers borrow. A buffer that anybody else holds is never
 * written: a change makes another one.
 *
 * Invariants
 *   C1  a change of a session is applied at most once: one whose sequence is not above the last
 *       that was applied of this session changes nothing, and succeeds
 *   C2  values never exceed limit_bytes, and sums that are kept (C4) an eighth of it
 *   C3  a change that fails has changed nothing
 *   C4  an addition that is asked for again gives what it came to when it was made, or an error
 */
#ifndef WF_PS_CONTAINERS_H
#define WF_PS_CONTAINERS_H

#include "common/base/status.h"
#include "common/tensor/tensor.h"
#include "common/wire/variables.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    WF_CONTAINERS_VARIABLES = 65536,
    WF_CONTAINERS_SESSIONS = 65536, /* whose last sequence is kept */
    WF_CONTAINERS_REST_S = 60 * 60, /* after a session's last change it may be forgotten */
    WF_CONTAINERS_USED_S = 10 * 60, /* a session counts as a user for so long after an ask */
};

typedef struct wf_containers wf_containers;

/* What a session wants; strings are borrowed for the call. */
typedef struct wf_variable_change {
    wf_variable_action action;
    uint64_t session, sequence; /* of what changes something (C1); of a read the session, or 0 */
    uint64_t since;             /* what has a smaller sequence is not asked for again */
    bool wants_value;           /* of an addition (C4) */
    const char *container, *name;
} wf_variable_change;

/* A variable; lent until the next change. */
typedef struct wf_contained {
    const char *container, *name;
    const wf_tensor *value;
} wf_contained;

/* The caller owns *out. Errors: WF_NOMEM. */
WF_MUST_USE wf_status wf_containers_new(size_t limit_bytes, wf_containers **out, wf_err *err);
/* Frees *c and sets it to NULL; NULL is fine. */
void wf_containers_free(wf_containers **c);

/* Carries out one action. `content` comes with those that bring a tensor; it is taken when it
 * becomes the value, and stays the caller's otherwise. *value, lent until the next call, is the
 * variable afterwards; NULL when it is removed. *was_there: before it was to be created.
 * Errors: WF_NOTFOUND with the nearest name; WF_SHAPE with both shapes or dtypes; WF_FULL with both
 * numbers; WF_UNSUPPORTED for a sum of bool; WF_INVALID for a name that cannot be; WF_AGAIN when
 * too many sessions have changed something in the last hour, or for a sum that is not kept any
 * more; WF_NOMEM. */
WF_MUST_USE wf_status wf_containers_act(wf_containers *c, const wf_variable_change *change,
                                        wf_tensor **content, int64_t now_ns,
                                        const wf_tensor **value, bool *was_there, wf_err *err);

/* The place of the first variable behind that one, in the order of container and name; `any`: of
 * the first of all. */
uint32_t wf_containers_behind(const wf_containers *c, const char *container, const char *name,
                              bool any);
/* The variable at a place; false past the last. */
bool wf_containers_at(const wf_containers *c, uint32_t at, wf_contained *out);
/* Session i of those that are known, with the container that it asked about last; *uses: within
 * WF_CONTAINERS_USED_S. False past the last. */
bool wf_containers_user(const wf_containers *c, uint32_t i, int64_t now_ns, uint64_t *session,
                        const char **container, bool *uses);

/* For metrics and tests. */
size_t wf_containers_limit(const wf_containers *c);
size_t wf_containers_bytes(const wf_containers *c);
uint32_t wf_containers_count(const wf_containers *c);

#endif
