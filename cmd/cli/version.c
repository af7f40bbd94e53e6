/* SPDX-License-Identifier: Apache-2.0 */
/* cmd/cli/version.c */
#include "cmd/cli/cli.h"

#include <stdio.h>
#include <zmq.h>

static wf_status run(int argc, char *argv[], wf_err *err)
{
    int major, minor, patch;
    wf_words words;

    WF_TRY(wf_args((const wf_flag[]){{0}}, argc, argv, 0, 0, &words, err));
    zmq_version(&major, &minor, &patch);
    printf("weft %s  (zeromq %d.%d.%d, %s)\n", WEFT_VERSION, major, minor, patch, __VERSION__);
    return WF_OK;
}

const wf_cmd wf_cmd_version = {
    .name = "version",
    .help = "say which weft this is",
    .usage = "weft version\n\n"
             "Prints the release of weft and of what it was built with.\n\n"
             "  weft version\n",
    .run = run,
};
