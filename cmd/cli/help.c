/* SPDX-License-Identifier: Apache-2.0 */
/* cmd/cli/help.c */
#include "cmd/cli/cli.h"
#include "cmd/cli/operators.h"
#include "common/compile/compile.h"
#include "common/conf/conf.h"

#include <stdio.h>
#include <string.h>

static void list_all(void)
{
    const wf_cmd *cmd;

    printf("weft - trains models on parameter servers\n\n");
    for (size_t i = 0; (cmd = wf_cmd_at(i)); i++)
        printf("  weft %-9s %s\n", cmd->name, cmd->help);
    printf("\n\"weft help COMMAND\" says more; keys, losses, metrics and operators are pages too.\n"
           "To begin:  weft train examples/digits.yaml\n");
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

static void list_keys(void)
{
    const char *map, *name, *usual;

    for (size_t i = 0; wf_job_key_at(i, &map, &name, &usual); i++)
        printf("  %s%s%s%s%s\n", map ? map : "", map ? "." : "", name, usual ? ": " : "",
               usual ? usual : "");
    printf(
        "\nKeys of a job file, and what they are when they are left out. docs/jobs.md says what\n"
        "each is.\n");
}

/* Lists of words for a job file, by the tables that read it. */
static bool list_words(const char *topic)
{
    if (strcmp(topic, "keys") == 0)
        list_keys();
    else if (strcmp(topic, "losses") == 0)
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
    .usage = "weft help [COMMAND | keys | losses | metrics | operators]\n\n"
             "Lists the commands, or explains one of them. \"keys\", \"losses\" and \"metrics\" "
             "list what\n"
             "a job file may say, with defaults and options, as docs/jobs.md does; \"operators\" "
             "lists the\n"
             "operations that weft has, of ONNX and its own, as docs/operators.md does.\n"
             "  --json             the operations for programs\n\n"
             "  weft help train\n"
             "  weft help operators\n",
    .run = run,
};
