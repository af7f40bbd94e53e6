/* SPDX-License-Identifier: Apache-2.0 */
/* cmd/cli/manual.c */
#include "cmd/cli/manual.h"
#include "cmd/cli/cli.h"
#include "common/base/cc.h"

#include <stdio.h>
#include <string.h>

/* Text as roff has it: a backslash is \e, a dash stays one, and no line begins with a request. */
static void put(const char *text)
{
    bool begins = true;

    for (; *text; text++) {
        if (begins && (*text == '.' || *text == '\''))
            printf("\\&");
        if (*text == '\\')
            printf("\\e");
        else if (*text == '-')
            printf("\\-");
        else
            putchar(*text);
        begins = *text == '\n';
    }
}

static void section(const char *title)
{
    printf(".SH %s\n", title);
}

static void as_it_is(const char *text)
{
    printf(".nf\n");
    put(text);
    printf(".fi\n");
}

void wf_manual_print(void)
{
    static const char *const codes[] = {
        "done",
        "failed",
        "wrong usage: the command line, or the text of a YAML file",
        "an operation or feature that weft does not support",
        "superseded by a newer process",
        "stopped on request",
    };
    const wf_cmd *cmd;

    printf(".TH WEFT 1 \"\" \"weft %s\" \"weft\"\n", WEFT_VERSION);
    section("NAME");
    printf("weft \\- trains models on parameter servers\n");
    section("SYNOPSIS");
    printf(".B weft\n.I COMMAND\n[\\fIoption\\fR ...] [\\fIword\\fR ...]\n");
    section("DESCRIPTION");
    printf("A master compiles a model and runs the job, workers compute gradients, and parameter\n"
           "servers hold the variables and apply the updates. Models come in as ONNX or as a list\n"
           "of layers in YAML; weights go out as ONNX and safetensors.\n");
    section("COMMANDS");
    for (size_t i = 0; (cmd = wf_cmd_at(i)); i++) {
        printf(".SS %s\n", cmd->name);
        put(cmd->help);
        printf("\n.PP\n");
        as_it_is(cmd->usage);
    }
    section("EXIT STATUS");
    for (size_t i = 0; i < WF_COUNT(codes); i++) {
        printf(".TP\n%zu\n", i);
        put(codes[i]);
        putchar('\n');
    }
    section("FILES");
    printf(".TP\n.I cluster.yaml\nwhere the tasks run\n"
           ".TP\n.I .weft\nthe state of the cluster of a folder: logs, jobs, checkpoints\n");
}
