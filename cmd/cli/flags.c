/* SPDX-License-Identifier: Apache-2.0 */
/* cmd/cli/flags.c */
#include "cmd/cli/flags.h"

/* Known by its address: what it says does not matter. */
static char question[] = "";

bool wf_flags_asked(const wf_flag flags[], int argc, char *argv[])
{
    wf_flag_list *out;

    if (argc != 3 || argv[1] != question)
        return false;
    out = (wf_flag_list *)(void *)argv[2];
    for (; flags->name && out->n < WF_COUNT(out->at); flags++, out->n++) {
        out->at[out->n].name = flags->name;
        out->at[out->n].letter = flags->letter;
        out->at[out->n].has_value = !flags->set;
    }
    return true;
}

void wf_flags_of(const wf_cmd *cmd, wf_flag_list *out)
{
    char *argv[] = {(char *)cmd->name, question, (char *)(void *)out, NULL};
    wf_err err;

    *out = (wf_flag_list){0};
    (void)!cmd->run(3, argv, &err);
}
