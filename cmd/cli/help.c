/* SPDX-License-Identifier: Apache-2.0 */
/* cmd/cli/help.c */
#include "cmd/cli/cli.h"
#include "cmd/cli/manual.h"
#include "cmd/cli/operators.h"
#include "cmd/cli/topics.h"

#include <stdio.h>
#include <string.h>

static void list_all(void)
{
    const wf_cmd *cmd;
    const char *topic;

    printf("weft - trains models on parameter servers\n\n");
    for (size_t i = 0; (cmd = wf_cmd_at(i)); i++)
        printf("  weft %-9s %s\n", cmd->name, cmd->help);
    printf("\n\"weft help COMMAND\" says more. Lists of what a job file can contain: weft help");
    for (size_t i = 0; (topic = wf_topic_at(i)); i++)
        printf("%s%s", i ? " | " : "\n  ", topic);
    printf("\n\nTo begin, beside the examples (\"weft doctor\" says where they are):\n"
           "    weft data digits data/digits && weft train examples/digits.yaml\n");
}

static wf_status run(int argc, char *argv[], wf_err *err)
{
    bool as_json = false;
    bool man = false;
    const char *shell = NULL;
    const wf_flag flags[] = {{"json", 0, .set = &as_json},
                             {"man", 0, .set = &man},
                             {"completion", 0, .value = &shell},
                             {0}};
    const wf_cmd *cmd;
    wf_words words;

    WF_TRY(wf_args(flags, argc, argv, 0, 1, &words, err));
    if (man)
        wf_manual_print();
    if (man)
        return WF_OK;
    if (shell)
        return wf_completion_print(shell, err);
    if (words.n == 0) {
        list_all();
        return WF_OK;
    }
    if (strcmp(words.word[0], "operators") == 0)
        return wf_operators_print(as_json, err);
    if (wf_topic_print(words.word[0]))
        return WF_OK;
    cmd = wf_cmd_find(words.word[0]);
    if (!cmd)
        return wf_cmd_unknown(words.word[0], err);
    printf("%s", cmd->usage);
    return WF_OK;
}

const wf_cmd wf_cmd_help = {
    .name = "help",
    .help = "list the commands, or explain one",
    .usage =
        "weft help [COMMAND | TOPIC]\n"
        "\n"
        "Lists the commands, or explains one. A topic lists what a job file can contain, with\n"
        "options and defaults: keys, layers, activations, initializers, steps, losses, metrics,\n"
        "optimizers, callbacks. \"operators\" lists the operations that weft supports, as in\n"
        "docs/operators.md.\n"
        "  --json             the operations, for programs\n"
        "  --man              all commands as a manual page, for man -l\n"
        "  --completion SHELL   a completion script for bash or zsh\n"
        "\n"
        "  weft help train\n"
        "  weft help layers\n",
    .run = run,
};
