/* SPDX-License-Identifier: Apache-2.0 */
/* cmd/cli/cli.h - the front door of the command line: what a command is, and how its words are
 * read.
 *
 * One file per subcommand, each with one const row `wf_cmd_NAME`; the table comes from the list in
 * cmd/cli/meson.build, and `weft help` from the table. Commands print results on stdout; errors and
 * progress go to stderr. A command returns a status and a sentence; main prints "weft: what; hint"
 * and turns the status into an exit code (docs/cluster.md, "Exit codes").
 *
 * Other headers: topics.h (lists for `weft help`), later.h (what is not built yet), term.h
 * (terminal, colour), table.h (aligned columns), progress.h (the bar), super.h (the supervisor
 * behind `weft up`), place.h (which cluster a command means).
 */
#ifndef WF_CMD_CLI_CLI_H
#define WF_CMD_CLI_CLI_H

#include "common/base/status.h"
#include <stdbool.h>
#include <stddef.h>

typedef struct wf_cmd {
    const char *name;
    const char *help;  /* one line for `weft help` */
    const char *usage; /* of `weft help NAME`: at most 40 lines, with an example */
    /* argv[0] is the command's name. */
    wf_status (*run)(int argc, char *argv[], wf_err *err);
    bool ends; /* it ends or removes something: never proposed for a misspelt word */
} wf_cmd;

/* By name; NULL when there is none. */
const wf_cmd *wf_cmd_find(const char *name);
/* Fails for a name of no command: WF_UNSUPPORTED for one that is not built yet (later.h), else
 * WF_USAGE with the nearest that ends nothing. */
wf_status wf_cmd_unknown(const char *name, wf_err *err);
/* Row i in the order of `weft help`; NULL past the end. */
const wf_cmd *wf_cmd_at(size_t i);
/* The whole program after the options of main: runs the command and returns the exit code. */
int wf_cli_main(int argc, char *argv[]);

/* One option of a command. Exactly one of the three targets is set. */
typedef struct wf_flag {
    const char *name;       /* without the dashes */
    char letter;            /* "-o"; 0: none */
    bool *set;              /* a switch */
    const char **value;     /* takes one value; a later one wins */
    struct wf_words *words; /* takes one value or more; may be given again */
} wf_flag;

typedef struct wf_words {
    const char *word[64]; /* borrowed from argv */
    size_t n;
} wf_words;

/* Reads argv by a table that ends with a NULL name. Options may stand anywhere; "--" ends them;
 * "--name=value" and "--name value" mean the same. What is left are the operands, of which there
 * must be least..most. Errors: WF_USAGE with the nearest option's name. "--help" is handled by
 * wf_cli_main before a command runs. */
WF_MUST_USE wf_status wf_args(const wf_flag flags[], int argc, char *argv[], size_t least,
                              size_t most, wf_words *operands, wf_err *err);

/* A whole number in [least, most]; `name` is for the message. Errors: WF_USAGE. */
WF_MUST_USE wf_status wf_arg_u64(const char *name, const char *text, unsigned long long least,
                                 unsigned long long most, unsigned long long *out, wf_err *err);

/* A number of bytes, more than 0: "500000", "512MiB", "4 GiB", "100MB". Errors: WF_USAGE. */
WF_MUST_USE wf_status wf_arg_bytes(const char *name, const char *text, size_t *out, wf_err *err);

/* Prints "weft: what; hint" (or "what: hint" where both end well) on stderr. */
void wf_cli_complain(const wf_err *err);

#endif
