/* SPDX-License-Identifier: Apache-2.0 */
/* common/conf/codec.h - the job key `codec`. For this room only. */
#ifndef WF_CONF_CODEC_H
#define WF_CONF_CODEC_H

#include "common/conf/read.h"

/* Of one entry. */
extern const wf_key wf_codec_keys[];

/* A word, an entry or a list of entries; `into` is a wf_job_conf. */
WF_MUST_USE wf_status wf_read_codecs(wf_conf_reader *r, const wf_tree *node, void *into,
                                     wf_err *err);

#endif
