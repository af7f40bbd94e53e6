/* SPDX-License-Identifier: Apache-2.0 */
/* master/member/beat.h - signs of life, and what tasks report of themselves with them. */
#ifndef WF_MASTER_MEMBER_BEAT_H
#define WF_MASTER_MEMBER_BEAT_H

#include "master/member/member.h"

/* A heartbeat of a member. Errors: WF_PROTO. */
WF_MUST_USE wf_status wf_member_on_beat(wf_master *m, wf_member *who, const wf_msg *msg,
                                        wf_err *err);

#endif
