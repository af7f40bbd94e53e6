/* SPDX-License-Identifier: Apache-2.0 */
/* cmd/cli/predict_hosts.c */
#include "cmd/cli/predict_hosts.h"

#include <string.h>

static wf_status names_none(const char *word, wf_err *err)
{
    return wf_fail(err, WF_USAGE, "write --hosts FILE=HOST,HOST", "\"%.64s\" names no host", word);
}

/* The hosts behind "=", between commas. */
static wf_status take_names(const char *word, const char *names, wf_arena *a,
                            wf_prediction_hosts *out, wf_err *err)
{
    size_t room = 1;
    const char **hosts;

    for (const char *c = names; *c; c++)
        room += *c == ',';
    hosts = wf_arena_array(a, room, sizeof *hosts);
    if (!hosts)
        return wf_fail_nomem(err, room * sizeof *hosts);
    for (const char *c = names; out->n < room; c++) {
        size_t n = strcspn(c, ",");

        if (n == 0)
            return names_none(word, err);
        hosts[out->n] = wf_arena_printf(a, "%.*s", (int)n, c);
        if (!hosts[out->n++])
            return wf_fail_nomem(err, n);
        c += n;
    }
    out->hosts = hosts;
    return WF_OK;
}

static wf_status take(const char *word, const char *here, wf_arena *a, wf_prediction_hosts *out,
                      wf_err *err)
{
    const char *equals = strrchr(word, '=');
    int n = equals ? (int)(equals - word) : 0;

    if (n == 0)
        return names_none(word, err);
    out->match = word[0] == '/' ? wf_arena_printf(a, "%.*s", n, word)
                                : wf_arena_printf(a, "%s/%.*s", here, n, word);
    if (!out->match)
        return wf_fail_nomem(err, strlen(word));
    return take_names(word, equals + 1, a, out, err);
}

wf_status wf_predict_hosts(const wf_words *words, const char *here, wf_arena *a,
                           wf_prediction_ask *ask, wf_err *err)
{
    wf_prediction_hosts *rows = wf_arena_array(a, words->n + 1, sizeof *rows);

    if (!rows)
        return wf_fail_nomem(err, words->n * sizeof *rows);
    for (size_t i = 0; i < words->n; i++)
        WF_TRY(take(words->word[i], here, a, &rows[i], err));
    ask->hosts = rows;
    ask->n_hosts = words->n;
    return WF_OK;
}
