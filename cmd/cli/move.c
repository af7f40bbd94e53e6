/* SPDX-License-Identifier: Apache-2.0 */
/* cmd/cli/move.c */
#include "cmd/cli/ask.h"
#include "cmd/cli/cli.h"
#include "cmd/cli/place.h"
#include "cmd/cli/super.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* "fc1/w[3]" or "fc1/w", which is its first slice, into the ask; `text` is cut at the bracket. */
static wf_status read_slice(char *text, Weft__Ask *ask, wf_err *err)
{
    char *open = strrchr(text, '['), *end = NULL;
    unsigned long long n = 0;

    ask->variable = text;
    if (!open || text[strlen(text) - 1] != ']')
        return WF_OK;
    n = strtoull(open + 1, &end, 10);
    if (open[1] < '0' || open[1] > '9' || strcmp(end, "]") != 0 || n > UINT32_MAX)
        return wf_fail(err, WF_USAGE, "write it as VARIABLE[3]", "\"%.200s\" is no slice", text);
    *open = 0;
    ask->slice = (uint32_t)n;
    return WF_OK;
}

static wf_status read_ps(const char *text, Weft__Ask *ask, wf_err *err)
{
    const char *digits = strncmp(text, "ps/", 3) == 0 ? text + 3 : text;
    char *end = NULL;
    unsigned long long n = strtoull(digits, &end, 10);

    if (*digits < '0' || *digits > '9' || *end || n > UINT32_MAX)
        return wf_fail(err, WF_USAGE, "write it as ps/1", "\"%.64s\" is no ps", text);
    ask->ps = (uint32_t)n;
    return WF_OK;
}

static wf_status move(const wf_cluster_conf *conf, Weft__Ask *ask, wf_err *err)
{
    enum { ANSWER_MS = 10000 };
    wf_ask *a = NULL;
    wf_status rc;

    WF_TRY(wf_super_check_up(conf, err));
    WF_TRY(wf_ask_open(conf, &a, err));
    rc = wf_ask_send(a, ask, ANSWER_MS, NULL, err);
    wf_ask_close(&a);
    if (rc == WF_OK)
        printf("slice %u of %s moves to ps/%u\n", ask->slice, ask->variable, ask->ps);
    return rc;
}

static wf_status run(int argc, char *argv[], wf_err *err)
{
    Weft__Ask ask = WEFT__ASK__INIT;
    const char *cluster = NULL;
    wf_cluster_conf *conf = NULL;
    wf_words words;
    const wf_flag flags[] = {{"cluster", 0, .value = &cluster}, {0}};
    char *slice;
    wf_status rc;

    WF_TRY(wf_args(flags, argc, argv, 3, 3, &words, err));
    slice = strdup(words.word[1]);
    if (!slice)
        return wf_fail_nomem(err, strlen(words.word[1]));
    ask.command = "move";
    ask.job = (char *)words.word[0];
    rc = read_slice(slice, &ask, err);
    if (rc == WF_OK)
        rc = read_ps(words.word[2], &ask, err);
    if (rc == WF_OK)
        rc = wf_place_cluster(cluster, false, &conf, err);
    if (rc == WF_OK)
        rc = move(conf, &ask, err);
    wf_cluster_free(&conf);
    free(slice);
    return rc;
}

const wf_cmd wf_cmd_move = {
    .name = "move",
    .help = "move a slice of a variable to another ps",
    .usage =
        "weft move JOB VARIABLE[SLICE] PS [--cluster FILE]\n"
        "\n"
        "Orders that a slice of a running job's variable move to another parameter server while\n"
        "training goes on. SLICE counts from 0 and is 0 if it is left out. An event of the job\n"
        "says when the slice is there, or why it stays: \"weft follow JOB\" shows it.\n"
        "\"weft status --placement\" shows which variables are on which ps.\n"
        "\n"
        "  weft move digits 'dense/kernel[1]' ps/0\n",
    .run = run,
};
