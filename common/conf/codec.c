/* SPDX-License-Identifier: Apache-2.0 */
/* common/conf/codec.c */
#include "common/conf/codec.h"
#include "common/base/cc.h"
#include "common/conf/conf.h"

#include <stddef.h>
#include <string.h>

static const double usual_ratio = 0.01;

static const char *const pushes[] = {"f32", "bf16", "f16", "int8", "topk", NULL};
static const char *const pulls[] = {"f32", "bf16", "f16", NULL};

static wf_status read_ratio(wf_conf_reader *r, const wf_tree *node, void *into, wf_err *err)
{
    wf_conf_codec *c = into;

    WF_TRY(wf_read_number(r, node, &c->ratio, err));
    if (c->ratio > 0 && c->ratio <= 1)
        return WF_OK;
    return wf_read_fail(r, node, err, WF_USAGE, "0.01 sends one number of a hundred",
                        "\"ratio\" is %g, and must be above 0 and at most 1", c->ratio);
}

const wf_key wf_codec_keys[] = {
    {"match", WF_KEY_TEXT, .offset = offsetof(wf_conf_codec, match)},
    {"push", WF_KEY_ONLY, .offset = offsetof(wf_conf_codec, push), .known = pushes, .usual = "f32"},
    {"pull", WF_KEY_ONLY, .offset = offsetof(wf_conf_codec, pull), .known = pulls, .usual = "f32"},
    {"ratio", WF_KEY_CALL, .read = read_ratio},
    {0},
};

/* A word says how gradients travel. */
static wf_status read_word(wf_conf_reader *r, const wf_tree *node, wf_conf_codec *c, wf_err *err)
{
    WF_TRY(wf_read_text(r, node, &c->push, err));
    for (size_t i = 0; pushes[i]; i++)
        if (strcmp(c->push, pushes[i]) == 0)
            return WF_OK;
    return wf_read_unknown(r, node, "codec", c->push, pushes, WF_COUNT(pushes) - 1, err);
}

static wf_status read_codec(wf_conf_reader *r, const wf_tree *node, wf_conf_codec *c, wf_err *err)
{
    *c = (wf_conf_codec){.push = "f32", .pull = "f32", .line = node->line};
    if (node->kind == WF_TREE_TEXT)
        WF_TRY(read_word(r, node, c, err));
    else
        WF_TRY(wf_read_map(r, node, "a codec", wf_codec_keys, c, err));
    if (node->kind == WF_TREE_MAP && !wf_tree_get(node, "push") && !wf_tree_get(node, "pull"))
        return wf_read_fail(r, node, err, WF_USAGE, "add push: bf16, or pull: bf16",
                            "a codec wants a \"push\" or a \"pull\"");
    if (c->ratio > 0 && strcmp(c->push, "topk") != 0)
        return wf_read_fail(r, node, err, WF_USAGE, "add push: topk, or leave it out",
                            "\"ratio\" is for push: topk");
    if (c->ratio == 0)
        c->ratio = usual_ratio;
    return WF_OK;
}

wf_status wf_read_codecs(wf_conf_reader *r, const wf_tree *node, void *into, wf_err *err)
{
    const wf_tree *t = node->kind == WF_TREE_LIST ? node->first : node;
    size_t n = node->kind == WF_TREE_LIST ? node->n : 1;
    wf_conf_codec *codecs = wf_arena_array(r->arena, n, sizeof *codecs);
    wf_job_conf *j = into;

    if (!codecs)
        return wf_fail_nomem(err, n * sizeof *codecs);
    for (size_t i = 0; i < n; i++, t = t->next) {
        WF_TRY(read_codec(r, t, &codecs[i], err));
        if (i > 0 && !codecs[i - 1].match)
            return wf_read_fail(r, t, err, WF_USAGE, "put the one without \"match\" last",
                                "a codec behind one for all variables, so that it counts for none");
    }
    j->codecs = codecs;
    j->n_codecs = n;
    return WF_OK;
}
