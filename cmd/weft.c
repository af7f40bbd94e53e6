/* SPDX-License-Identifier: Apache-2.0 */
/* cmd/weft.c - the command line. */
#include "cmd/cli/cli.h"
#include "common/kernels/kernel.h"

#include <signal.h>

int main(int argc, char *argv[])
{
    /* `weft status | head` ends quietly: a broken pipe is an error of write, not a death; and so is
     * a file that may grow no more. */
    signal(SIGPIPE, SIG_IGN);
    signal(SIGXFSZ, SIG_IGN);
    wf_kernels_own_process();
    return wf_cli_main(argc, argv);
}
