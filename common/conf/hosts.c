/* SPDX-License-Identifier: Apache-2.0 */
/* common/conf/hosts.c */
#include "common/conf/hosts.h"

wf_status wf_read_hosts(wf_conf_reader *r, const wf_tree *node, void *into, wf_err *err)
{
    wf_job_conf *j = into;
    wf_conf_hosts *rows;

    if (node->kind != WF_TREE_MAP || node->n == 0)
        return wf_read_fail(r, node, err, WF_USAGE, "write hosts: {FILE: [HOST, HOST]}",
                            "\"hosts\" is a map of files");
    rows = wf_arena_array(r->arena, node->n, sizeof *rows);
    if (!rows)
        return wf_fail_nomem(err, node->n * sizeof *rows);
    for (const wf_tree *t = node->first; t; t = t->next) {
        wf_conf_hosts *row = &rows[j->n_hosts++];

        row->line = t->line;
        WF_TRY(wf_read_path(r, t->key, &row->match, err));
        WF_TRY(wf_read_words(r, t, &row->hosts, &row->n, err));
        if (row->n == 0)
            return wf_read_fail(r, t, err, WF_USAGE, "write FILE: [HOST, HOST]",
                                "\"%.64s\" names no host", t->key->text);
    }
    j->hosts = rows;
    return WF_OK;
}

wf_status wf_check_hosts(const wf_conf_reader *r, const wf_tree *node, const wf_job_conf *j,
                         wf_err *err)
{
    const wf_tree *t = wf_tree_get(node, "hosts");

    if (!t)
        return WF_OK;
    if (j->shuffle && j->shard != WF_SHARD_FILE)
        return wf_read_fail(r, t, err, WF_USAGE,
                            "add shuffle: false or shard: file, or leave \"hosts\" out",
                            "a split of shuffled records is of all files, and near no host");
    if (j->grows)
        return wf_read_fail(r, t, err, WF_USAGE, "leave one of them out",
                            "the data has both \"hosts\" and \"new_files\"");
    if (j->train.n == 0 && j->train.n_files == 0)
        return wf_read_fail(r, t, err, WF_USAGE, "leave it out",
                            "data of the format \"%s\" has no files", j->format);
    return WF_OK;
}
