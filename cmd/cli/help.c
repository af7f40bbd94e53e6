/* SPDX-License-Identifier: Apache-2.0 */
/* cmd/cli/help.c */
#include "cmd/cli/cli.h"
#include "cmd/cli/operators.h"

#include <stdio.h>
#include <string.h>

static void list_all(void)
{
    const wf_cmd *cmd;

    printf("weft - trains models on parameter servers\n\n");
    for (size_t i = 0; (cmd = wf_cmd_at(i)); i++)
        printf("  weft %-9s %s\n", cmd->name, cmd->help);
    printf("\n\"weft help COMMAND\" says more.  To begin:  weft train examples/digits.yaml\n");
}

static wf_status run(int argc, char *argv[], wf_err *err)
{
    bool as_json = false;
    const wf_flag flags[] = {{"json", 0, .set = &as_json}, {0}};
    const wf_cmd *cmd;
    wf_words words;

    WF_TRY(wf_args(flags, argc, argv, 0, 1, &words, err));
    if (words.n == 0) {
        list_all();
        return WF_OK;
    }
    if (strcmp(words.word[0], "operators") == 0)
        return wf_operators_print(as_json, err);
    cmd = wf_cmd_find(words.word[0]);
    if (!cmd)
        return wf_fail(err, WF_USAGE, "\"weft help\" lists them", "there is no command \"%.64s\"",
                       words.word[0]);
    printf("%s", cmd->usage);
    return WF_OK;
}

const wf_cmd wf_cmd_help = {
    .name = "help",
    .help = "list the commands, or explain one",
    .usage =
        "weft help [COMMAND | operators]\n\n"
        "Lists the commands, or explains one of them. \"operators\" lists the operations that\n"
        "weft has, of ONNX and its own, as docs/operators.md does.\n"
        "  --json             the operations for programs\n\n"
        "  weft help train\n"
        "  weft help operators\n",
    .run = run,
};
