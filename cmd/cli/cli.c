/* SPDX-License-Identifier: Apache-2.0 */
/* cmd/cli/cli.c - finds the command, prints its help or its error. */
#include "cmd/cli/cli.h"
#include "cmd/cli/later.h"
#include "cmd/cli/term.h"
#include "common/base/nearest.h"
#include "common/log/log.h"

#include <stdio.h>
#include <string.h>

#define WF_CMD(name) extern const wf_cmd wf_cmd_##name;
#include "cmd/cli/rows.def"
#undef WF_CMD

#define WF_CMD(name) &wf_cmd_##name,
static const wf_cmd *const rows[] = {
#include "cmd/cli/rows.def"
};
#undef WF_CMD

const wf_cmd *wf_cmd_at(size_t i)
{
    return i < WF_COUNT(rows) ? rows[i] : NULL;
}

const wf_cmd *wf_cmd_find(const char *name)
{
    for (size_t i = 0; i < WF_COUNT(rows); i++)
        if (strcmp(rows[i]->name, name) == 0)
            return rows[i];
    return NULL;
}

void wf_cli_complain(const wf_err *err)
{
    wf_term_print(stderr, "weft: %s%s%s\n", err->what, err->hint[0] ? "; " : "", err->hint);
}

wf_status wf_cmd_unknown(const char *name, wf_err *err)
{
    const char *names[WF_COUNT(rows)], *near;
    char hint[128];
    size_t n = 0;

    WF_TRY(wf_later_command(name, err));
    for (size_t i = 0; i < WF_COUNT(rows); i++)
        if (!rows[i]->ends)
            names[n++] = rows[i]->name;
    near = wf_nearest(name, names, n);
    if (near)
        snprintf(hint, sizeof hint, "did you mean \"weft %s\"?", near);
    else
        snprintf(hint, sizeof hint, "\"weft help\" lists them");
    return wf_fail(err, WF_USAGE, hint, "there is no command \"%.64s\"", name);
}

static bool wants_help(int argc, char *argv[])
{
    for (int i = 1; i < argc && strcmp(argv[i], "--") != 0; i++)
        if (strcmp(argv[i], "--help") == 0 || strcmp(argv[i], "-h") == 0)
            return true;
    return false;
}

int wf_cli_main(int argc, char *argv[])
{
    char help[] = "help", version[] = "version";
    char *alone[] = {help, NULL};
    wf_err err = {0};
    const wf_cmd *cmd;
    wf_status rc;

    wf_log_init("weft", WF_WARN);
    argc -= argc > 0;
    argv += argc >= 0;
    if (argc == 0 || strcmp(argv[0], "--help") == 0 || strcmp(argv[0], "-h") == 0)
        argv = alone, argc = 1;
    else if (strcmp(argv[0], "--version") == 0 || strcmp(argv[0], "-v") == 0 ||
             strcmp(argv[0], "-V") == 0)
        argv[0] = version;
    cmd = wf_cmd_find(argv[0]);
    if (!cmd) {
        rc = wf_cmd_unknown(argv[0], &err);
    } else if (wants_help(argc, argv)) {
        printf("%s", cmd->usage);
        rc = WF_OK;
    } else {
        rc = cmd->run(argc, argv, &err);
    }
    if (fflush(stdout) != 0 && rc == WF_OK)
        rc = WF_IO; /* nobody is left to read it: quiet, as a pipe's end expects */
    if (rc != WF_OK && err.what[0])
        wf_cli_complain(&err);
    return wf_exit_code(rc);
}
