/* SPDX-License-Identifier: Apache-2.0 */
/* master/member/view.h - the view: the numbered list of members, made of who lives. */
#ifndef WF_MASTER_MEMBER_VIEW_H
#define WF_MASTER_MEMBER_VIEW_H

#include "master/member/member.h"

/* Journals and announces a new view if membership has changed. `lost_steps` are those of the job in
 * hand, whose workers are in the view with their steps. */
WF_MUST_USE wf_status wf_view_advance(wf_master *m, uint64_t lost_steps, wf_err *err);
/* Fills a view of all live members; free with wf_view_free. */
WF_MUST_USE wf_status wf_view_make(const wf_master *m, Weft__View *out, wf_err *err);
/* The same of the live ps alone. */
WF_MUST_USE wf_status wf_view_of_ps(const wf_master *m, Weft__View *out, wf_err *err);
/* The same of those who have done their part of a generation's set-up. */
WF_MUST_USE wf_status wf_view_of_part(const wf_master *m, uint16_t generation, Weft__View *out,
                                      wf_err *err);
void wf_view_free(Weft__View *v);
/* The newest view as a record of the journal. */
WF_MUST_USE wf_status wf_view_journal(wf_master *m, Weft__View *view, uint64_t lost_steps,
                                      wf_err *err);

#endif
