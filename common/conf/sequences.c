/* SPDX-License-Identifier: Apache-2.0 */
/* common/conf/sequences.c */
#include "common/conf/sequences.h"
#include "common/data/formats.h"

#include <string.h>

static const wf_conf_field *column(const wf_job_conf *j, const char *name)
{
    for (size_t i = 0; i < j->n_columns; i++)
        if (j->columns[i].n_columns == 1 && strcmp(j->columns[i].columns[0], name) == 0)
            return &j->columns[i];
    return NULL;
}

static const wf_conf_item *tokens_of(const wf_job_conf *j, const wf_conf_field *f)
{
    for (size_t i = 0; f && i < j->n_map; i++)
        if (strcmp(j->map[i].name, f->name) == 0 && j->map[i].n_steps &&
            strcmp(j->map[i].steps[0].type, "text_vectorization") == 0)
            return &j->map[i].steps[0];
    return NULL;
}

/* The tokens that come next are those of the text: they are numbered once, for both. */
static wf_status check_next(const wf_conf_reader *r, const wf_job_conf *j, wf_err *err)
{
    const wf_conf_field *next = column(j, "next"), *text = column(j, "text");
    const wf_conf_item *own = tokens_of(j, next);

    if (next && !text)
        return wf_fail(err, WF_USAGE, "write columns: {x: text, y: next}",
                       "%s:%d: \"%.64s\" is what comes next in a text that no field reads", r->path,
                       next->line, next->name);
    if (own)
        return wf_fail(err, WF_USAGE, "leave it out",
                       "%s:%d: \"%.64s\" has the tokens of \"%.64s\", whose text_vectorization it "
                       "takes",
                       r->path, own->line, next->name, text->name);
    return WF_OK;
}

wf_status wf_check_sequences(wf_conf_reader *r, const wf_tree *node, wf_job_conf *j, wf_err *err)
{
    const wf_tree *stride = wf_tree_get(node, "sequence_stride");

    if (!wf_format_has_key(j->format, "sequence_length"))
        return WF_OK;
    if (stride && !j->sequence_length)
        return wf_read_fail(r, stride, err, WF_USAGE, "add sequence_length",
                            "\"sequence_stride\" is for windows, and \"sequence_length\" is not "
                            "there");
    if (!stride)
        j->sequence_stride = j->sequence_length;
    j->labelled = column(j, "label") != NULL;
    return check_next(r, j, err);
}
