/* SPDX-License-Identifier: Apache-2.0 */
/* cmd/cli/help.c */
#include "cmd/cli/cli.h"
#include "common/compile/compile.h"

#include <stdio.h>
#include <string.h>

static void list_all(void)
{
    const wf_cmd *cmd;

    printf("weft - trains models on parameter servers\n\n");
    for (size_t i = 0; (cmd = wf_cmd_at(i)); i++)
        printf("  weft %-9s %s\n", cmd->name, cmd->help);
    printf("\n\"weft help COMMAND\" says more, \"weft help losses\" and \"weft help metrics\" list "
           "them.\nTo begin:  weft train examples/digits.yaml\n");
}

typedef bool row_at(size_t i, const char **name, const char **alias, char *options, size_t size);

static void list_rows(row_at *at, const char *more)
{
    const char *name, *alias;
    char options[160];

    for (size_t i = 0; at(i, &name, &alias, options, sizeof options); i++)
        printf("  %s%s%s%s%s\n", name, alias ? ", " : "", alias ? alias : "", *options ? ": " : "",
               options);
    printf("%s", more);
}

/* Lists of words for a job file, by the tables that read it. */
static bool list_words(const char *topic)
{
    if (strcmp(topic, "losses") == 0)
        list_rows(wf_compile_loss_at,
                  "\nNames and options: loss: huber, or loss: {huber: {delta: 2.0}}, or by "
                  "output.\ndocs/jobs.md says what each is.\n");
    else if (strcmp(topic, "metrics") == 0)
        list_rows(wf_compile_metric_at,
                  "\nNames and options: metrics: [accuracy, {auc: {curve: PR}}]. The name "
                  "of any loss\nfunction is a metric too. docs/jobs.md says what each is.\n");
    else
        return false;
    return true;
}

static wf_status run(int argc, char *argv[], wf_err *err)
{
    const wf_cmd *cmd;
    wf_words words;

    WF_TRY(wf_args((const wf_flag[]){{0}}, argc, argv, 0, 1, &words, err));
    if (words.n == 0) {
        list_all();
        return WF_OK;
    }
    if (list_words(words.word[0]))
        return WF_OK;
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
    .usage = "weft help [COMMAND|losses|metrics]\n\n"
             "Lists the commands, or explains one of them; or lists the loss functions or metrics "
             "that a\njob file may name, with their options.\n\n"
             "  weft help train\n",
    .run = run,
};
