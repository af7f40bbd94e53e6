/* SPDX-License-Identifier: Apache-2.0 */
/* common/conf/presets.h - layouts of text files that many share, by name: `schema: criteo`. For
 * this room only.
 *
 * A preset says the delimiter, that there is no header, the names and kinds of all columns, the
 * fields that these make and the steps of the fields. Each of them gives way to what the job file
 * says of its own: header, delimiter, columns, and map field by field.
 */
#ifndef WF_CONF_PRESETS_H
#define WF_CONF_PRESETS_H

#include "common/conf/conf.h"
#include "common/conf/read.h"

/* Takes what the preset that `schema` names says into a job whose `data` was read; does nothing
 * where `schema` is a map of columns or not there. Errors: WF_USAGE for an unknown name, with the
 * nearest; WF_NOMEM. */
WF_MUST_USE wf_status wf_preset_take(wf_conf_reader *r, const wf_tree *data, wf_job_conf *j,
                                     wf_err *err);

#endif
