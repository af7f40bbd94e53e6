/* SPDX-License-Identifier: Apache-2.0 */
/* common/compile/codecs.c - how gradients and weights of each variable travel, as the job's `codec`
 * says. The graph does not change, and neither does the digest: a job may go on with another. */
#include "common/compile/pass.h"
#include <fnmatch.h>
#include <string.h>

/* Whether rows of tables may be pushed so: they keep no residual (worker/exchange/ps_codings.c),
 * and without one these lose too much. */
static bool suits_rows(const wf_conf_codec *codec)
{
    return strcmp(codec->push, "int8") != 0 && strcmp(codec->push, "topk") != 0;
}

static bool is_table(const wf_unit *u, const char *name)
{
    for (size_t i = 0; i < u->n_tables; i++)
        if (strcmp(u->tables[i].name, name) == 0)
            return true;
    return false;
}

const wf_conf_codec *wf_unit_codec(const wf_unit *u, const char *name)
{
    for (size_t i = 0; i < u->spec->n_codecs; i++) {
        const wf_conf_codec *codec = &u->spec->codecs[i];

        if (codec->match ? fnmatch(codec->match, name, 0) == 0
                         : suits_rows(codec) || !is_table(u, name))
            return codec;
    }
    return NULL;
}

static wf_status cannot_take(const wf_unit *u, const wf_conf_codec *codec, const wf_value *v,
                             wf_err *err)
{
    bool statistic = v->variable != WF_VAR_FROZEN;

    return wf_unit_in_file(u, codec->line,
                           wf_fail(err, WF_USAGE, "take it out of \"codec\"",
                                   "codec: \"%.200s\" matches \"%s\", %s", codec->match, v->name,
                                   statistic ? "a statistic, and statistics travel as float32"
                                             : "which is frozen and travels once, as float32"),
                           err);
}

/* A pattern has to match a variable that takes what it says. */
static wf_status check(const wf_unit *u, const wf_conf_codec *codec, wf_err *err)
{
    const wf_value *other = NULL;
    bool any = false;

    for (size_t i = 0; codec->match && i < u->graph->n_values; i++) {
        const wf_value *v = u->graph->values[i];

        if (fnmatch(codec->match, v->name, 0) != 0 || !wf_is_variable(u->graph, v))
            continue;
        if (v->variable != WF_VAR_TRAINABLE) {
            other = v;
            continue;
        }
        any = true;
        if (is_table(u, v->name) && !suits_rows(codec) && wf_unit_codec(u, v->name) == codec)
            return wf_unit_in_file(
                u, codec->line,
                wf_fail(err, WF_USAGE, "take push: bf16 for it, in an entry before this one",
                        "codec: \"%.200s\" matches the table \"%s\", whose rows are pushed as f32, "
                        "bf16 or f16, not as %s",
                        codec->match, v->name, codec->push),
                err);
    }
    if (any || !codec->match)
        return WF_OK;
    return other ? cannot_take(u, codec, other, err)
                 : wf_matches_nothing(u, "codec", codec->line, codec->match, wf_is_variable,
                                      "variable", err);
}

wf_status wf_check_codecs(const wf_unit *u, wf_err *err)
{
    for (size_t i = 0; i < u->spec->n_codecs; i++)
        WF_TRY(check(u, &u->spec->codecs[i], err));
    return WF_OK;
}
