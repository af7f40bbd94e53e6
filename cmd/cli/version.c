/* SPDX-License-Identifier: Apache-2.0 */
/* cmd/cli/version.c */
#include "cmd/cli/build_info.h"
#include "cmd/cli/cli.h"
#include "cmd/cli/json.h"

#include <jansson.h>
#include <stdio.h>

static void print_line(void)
{
    char zeromq[WF_BUILD_TEXT], blas[WF_BUILD_TEXT], dnn[WF_BUILD_TEXT];
    const char *commit = wf_build_commit();

    printf("weft %s%s%s  %s  zeromq %s  openblas %s  onednn %s\n", WEFT_VERSION,
           *commit ? "  commit " : "", commit, wf_build_compiler(),
           wf_build_version_of("zeromq", zeromq), wf_build_version_of("openblas", blas),
           wf_build_version_of("onednn", dnn));
}

static wf_status print_json(wf_err *err)
{
    json_t *libraries = json_object(), *units = json_array(), *all;
    const char *name;
    char version[WF_BUILD_TEXT];

    for (size_t i = 0; (name = wf_build_library(i, version)); i++)
        json_object_set_new(libraries, name, json_string(version));
    for (size_t i = 0; (name = wf_build_unit(i)); i++)
        json_array_append_new(units, json_string(name));
    all = json_pack("{s:s, s:s*, s:s, s:o, s:o}", "weft", WEFT_VERSION, "commit",
                    *wf_build_commit() ? wf_build_commit() : NULL, "compiler", wf_build_compiler(),
                    "libraries", libraries, "processor", units);
    return wf_json_print(all, JSON_INDENT(2), err);
}

static wf_status run(int argc, char *argv[], wf_err *err)
{
    bool as_json = false;
    wf_words words;

    WF_TRY(wf_args((const wf_flag[]){{"json", 0, .set = &as_json}, {0}}, argc, argv, 0, 0, &words,
                   err));
    if (as_json)
        return print_json(err);
    print_line();
    return WF_OK;
}

const wf_cmd wf_cmd_version = {
    .name = "version",
    .help = "print the version of weft and its libraries",
    .usage = "weft version [--json]\n"
             "\n"
             "Prints the version of weft, the commit it was built from, the compiler and the "
             "libraries.\n"
             "weft -v is the same.\n"
             "  --json   all libraries, and the processor features that kernels use\n"
             "\n"
             "  weft version\n",
    .run = run,
};
