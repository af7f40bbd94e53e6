/* SPDX-License-Identifier: Apache-2.0 */
/* cmd/cli/verbs.c */
#include "cmd/cli/verbs.h"
#include "cmd/cli/later.h"
#include "common/base/nearest.h"

#include <stdio.h>
#include <string.h>

enum { MOST_VERBS = 16 };

/* The verb in a line like "weft ckpt ls [JOB]", or 0 when there is none. */
static size_t verb_of(const wf_cmd *cmd, const char *line, const char **at)
{
    size_t name = strlen(cmd->name), n;

    if (strncmp(line, "weft ", 5) != 0 || strncmp(line + 5, cmd->name, name) != 0 ||
        line[5 + name] != ' ')
        return 0;
    *at = line + 5 + name + 1;
    n = strspn(*at, "abcdefghijklmnopqrstuvwxyz");
    return (*at)[n] == ' ' || (*at)[n] == '\n' ? n : 0;
}

bool wf_verb_at(const wf_cmd *cmd, size_t i, char verb[static WF_VERB])
{
    const char *line = cmd->usage, *at = NULL;

    while (line) {
        size_t n = verb_of(cmd, line, &at);

        if (n == 0 || n >= WF_VERB)
            return false;
        if (i-- == 0) {
            memcpy(verb, at, n);
            verb[n] = 0;
            return true;
        }
        line = strchr(line, '\n');
        line = line ? line + 1 : NULL;
    }
    return false;
}

static bool removes(const char *verb)
{
    return strcmp(verb, "rm") == 0 || strcmp(verb, "delete") == 0 || strcmp(verb, "gc") == 0;
}

wf_status wf_verb_check(const char *command, const char *word, wf_err *err)
{
    const wf_cmd *cmd = wf_cmd_find(command);
    char verbs[MOST_VERBS][WF_VERB], hint[WF_NEAREST_HINT];
    const char *names[MOST_VERBS];
    size_t n = 0;

    for (size_t i = 0; cmd && i < MOST_VERBS && wf_verb_at(cmd, i, verbs[n]); i++) {
        if (word && strcmp(verbs[n], word) == 0)
            return WF_OK;
        if (!removes(verbs[n])) {
            names[n] = verbs[n];
            n++;
        }
    }
    if (n == 0)
        return WF_OK;
    if (!word)
        return wf_fail(err, WF_USAGE, wf_nearest_hint("", names, n, NULL, hint),
                       "weft %s needs to know what to do", command);
    WF_TRY(wf_later_word(command, word, err));
    return wf_fail(err, WF_USAGE, wf_nearest_hint(word, names, n, NULL, hint),
                   "weft %s has no \"%.32s\"", command, word);
}
