/* SPDX-License-Identifier: Apache-2.0 */
/* common/conf/placement.c - what a job says of where its variables lie: `placement`. */
#include "common/conf/placement.h"
#include "common/conf/conf.h"

/* {"emb/...": 0} */
static wf_status read_pins(wf_conf_reader *r, const wf_tree *node, void *into, wf_err *err)
{
    enum { MOST = 65535 };
    wf_job_conf *j = into;
    wf_conf_pin *pins;

    if (node->kind != WF_TREE_MAP)
        return wf_read_fail(r, node, err, WF_USAGE, "write it as {\"emb/*\": 0}",
                            "\"pin\" gives patterns of variables' names the number of a ps");
    pins = wf_arena_array(r->arena, node->n, sizeof *pins);
    if (!pins)
        return wf_fail_nomem(err, node->n * sizeof *pins);
    for (const wf_tree *t = node->first; t; t = t->next) {
        uint64_t ps = 0;

        WF_TRY(wf_read_u64(r, t, 0, MOST, &ps, err));
        pins[j->n_pins++] =
            (wf_conf_pin){.match = t->key->text, .ps = (uint32_t)ps, .line = t->line};
    }
    j->pins = pins;
    return WF_OK;
}

static wf_status read_between(wf_conf_reader *r, const wf_tree *node, double least, double most,
                              double *out, wf_err *err)
{
    WF_TRY(wf_read_number(r, node, out, err));
    if (!(*out >= least && *out <= most))
        return wf_read_fail(r, node, err, WF_USAGE, NULL, "\"%s\" is %g, and may be %g to %g",
                            wf_read_name(node), *out, least, most);
    return WF_OK;
}

static wf_status read_over(wf_conf_reader *r, const wf_tree *node, void *into, wf_err *err)
{
    return read_between(r, node, 1.05, 100, &((wf_job_conf *)into)->balance_over, err);
}

static wf_status read_after(wf_conf_reader *r, const wf_tree *node, void *into, wf_err *err)
{
    return read_between(r, node, 0, 86400, &((wf_job_conf *)into)->balance_after_s, err);
}

const wf_key wf_placement_keys[] = {
    {"pin", WF_KEY_CALL, .read = read_pins},
    {"balance", WF_KEY_BOOL, .offset = offsetof(wf_job_conf, balance), .usual = "false"},
    {"over", WF_KEY_CALL, .read = read_over, .usual = "1.25"},
    {"after_s", WF_KEY_CALL, .read = read_after, .usual = "5"},
    {0},
};
