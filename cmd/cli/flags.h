/* SPDX-License-Identifier: Apache-2.0 */
/* cmd/cli/flags.h - the options of a command, for whoever describes it.
 *
 * A command's options stand in a table inside its run function, beside the variables that they set.
 * So the command is run with an argument that no command line can hold, at which wf_args copies the
 * table and ends the command before it has done anything. */
#ifndef WF_CMD_CLI_FLAGS_H
#define WF_CMD_CLI_FLAGS_H

#include "cmd/cli/cli.h"

typedef struct wf_flag_list {
    struct {
        const char *name;
        char letter; /* 0: none */
        bool has_value;
    } at[32];
    size_t n;
} wf_flag_list;

/* The options of a command, in the order of its table. */
void wf_flags_of(const wf_cmd *cmd, wf_flag_list *out);

/* For wf_args: whether argv asks for the table, which is then copied. */
bool wf_flags_asked(const wf_flag flags[], int argc, char *argv[]);

#endif
