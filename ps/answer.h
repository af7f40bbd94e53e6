/* SPDX-License-Identifier: Apache-2.0 */
/* ps/answer.h - the messages that the weights of a pull leave in, of about a megabyte each, so that
 * the worker takes one while the next is on its way, and while later slices are still being
 * updated.
 *
 * A worker that reads this process's memory (wf_net_lends) uses weights where they lie. So what a
 * pull is answered with is written side by side: the rows of a table in the order of their ids, and
 * the slices of a variable, if all of them are here. */
#ifndef WF_PS_ANSWER_H
#define WF_PS_ANSWER_H

#include "ps/state.h"

/* The message under construction: all zero but for ps, w and pull. */
typedef struct wf_answer {
    wf_ps *ps;
    wf_ps_worker *w;
    wf_ps_pull *pull;
    wf_msg *msg;
    uint32_t n; /* of ps->parts */
} wf_answer;

/* Adds the weights of a slice, or the rows of it that the pull asks for: `at` is its place in the
 * pull's list. A message that is full leaves. Errors: WF_NOMEM. */
WF_MUST_USE wf_status wf_answer_add(wf_answer *a, wf_slice *s, uint32_t at, wf_err *err);
/* Sends what has been added. */
WF_MUST_USE wf_status wf_answer_send(wf_answer *a, wf_err *err);
/* The pull is over: lets go of the memory that its weights were written into. */
void wf_answer_drop_room(wf_ps_pull *pull);

#endif
