/* SPDX-License-Identifier: Apache-2.0 */
/* common/conf/bags.c */
#include "common/conf/bags.h"

#include <string.h>

/* FIELD, or [IDS, WEIGHTS]. */
static wf_status read_bag(wf_conf_reader *r, const wf_tree *t, wf_conf_bag *b, wf_err *err)
{
    const char *const *names = NULL;
    size_t n = 0;

    b->line = t->line;
    if (t->kind == WF_TREE_TEXT)
        return wf_read_text(r, t, &b->ids, err);
    WF_TRY(wf_read_words(r, t, &names, &n, err));
    if (n != 2)
        return wf_read_fail(r, t, err, WF_USAGE, "write bags: [FIELD, [IDS, WEIGHTS]]",
                            "a bag is one field, or the two of ids and their weights, not %zu", n);
    b->ids = names[0];
    b->weights = names[1];
    return WF_OK;
}

wf_status wf_read_bags(wf_conf_reader *r, const wf_tree *node, void *into, wf_err *err)
{
    wf_job_conf *j = into;
    wf_conf_bag *bags;

    if (node->kind != WF_TREE_LIST || node->n == 0)
        return wf_read_fail(r, node, err, WF_USAGE, "write bags: [FIELD, [IDS, WEIGHTS]]",
                            "\"bags\" is a list of fields");
    bags = wf_arena_array(r->arena, node->n, sizeof *bags);
    if (!bags)
        return wf_fail_nomem(err, node->n * sizeof *bags);
    for (const wf_tree *t = node->first; t; t = t->next)
        WF_TRY(read_bag(r, t, &bags[j->n_bags++], err));
    j->bags = bags;
    return WF_OK;
}

wf_status wf_read_separator(wf_conf_reader *r, const wf_tree *node, void *into, wf_err *err)
{
    wf_job_conf *j = into;
    const char *text;

    WF_TRY(wf_read_text(r, node, &text, err));
    if (strlen(text) != 1 || strchr("\"\r\n", text[0]))
        return wf_read_fail(r, node, err, WF_USAGE, "write it as \"|\" or \" \"",
                            "the separator is one character, and no quote or line end");
    j->separator = text[0];
    return WF_OK;
}

wf_status wf_read_on_long_bag(wf_conf_reader *r, const wf_tree *node, void *into, wf_err *err)
{
    static const char *const known[] = {"fail", "cut"};
    wf_job_conf *j = into;
    const char *text;

    WF_TRY(wf_read_text(r, node, &text, err));
    j->cuts_bags = strcmp(text, known[1]) == 0;
    if (j->cuts_bags || strcmp(text, known[0]) == 0)
        return WF_OK;
    return wf_read_unknown(r, node, "on_long_bag", text, known, WF_COUNT(known), err);
}

static wf_status check_bag_field(const wf_conf_reader *r, const wf_job_conf *j,
                                 const wf_conf_bag *b, const char *name, wf_err *err)
{
    for (size_t i = 0; i < j->train.n; i++) {
        const wf_conf_field *f = &j->train.fields[i];

        if (strcmp(f->name, name) != 0)
            continue;
        return f->n_columns <= 1 ? WF_OK
                                 : wf_fail(err, WF_USAGE, "write columns: {FIELD: COLUMN}",
                                           "%s:%d: the bag \"%.64s\" has %zu columns, and the "
                                           "values of a bag are in one",
                                           r->path, b->line, name, f->n_columns);
    }
    return wf_fail(err, WF_USAGE, "name a field of data.columns or data.train",
                   "%s:%d: \"bags\" names \"%.64s\", which is no field", r->path, b->line, name);
}

/* Weights come with ids, and both are fields. */
wf_status wf_check_bags(const wf_conf_reader *r, const wf_tree *node, const wf_job_conf *j,
                        wf_err *err)
{
    const wf_tree *t = wf_tree_get(node, "separator");

    if (t && j->n_bags == 0)
        return wf_read_fail(r, t, err, WF_USAGE, "add bags: [FIELD]",
                            "\"separator\" is for bags, and \"bags\" names no field");
    for (size_t i = 0; i < j->n_bags; i++) {
        const wf_conf_bag *b = &j->bags[i];

        WF_TRY(check_bag_field(r, j, b, b->ids, err));
        if (b->weights)
            WF_TRY(check_bag_field(r, j, b, b->weights, err));
    }
    return WF_OK;
}
