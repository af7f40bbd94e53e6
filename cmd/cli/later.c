/* SPDX-License-Identifier: Apache-2.0 */
/* cmd/cli/later.c - the rows. Whoever builds one takes it out (tests/unit/cli.c asks for that). */
#include "cmd/cli/later.h"
#include "common/base/cc.h"

#include <string.h>

static const struct {
    const char *command, *word, *instead; /* word: an option, or a verb; NULL: all of it */
} rows[] = {
    {"events", NULL, "read the file STATE_DIR/jobs/RUN/events.jsonl"},
    {"keys", NULL, "leave \"security\" out, and keep the cluster's ports behind a firewall"},
    {"launch", NULL, "write the hosts into cluster.yaml, and run weft up on each of them"},
    {"scale", NULL, "change the tasks in cluster.yaml, then run weft down and weft recover JOB"},
    {"serve", NULL, "run weft export JOB -o m.onnx, and serve that file with onnxruntime"},
    {"sweep", NULL,
     "train once for each value, weft train JOB.yaml --set KEY=VALUE, and compare with weft plot"},
    {"top", NULL, "use weft status --watch"},
    {"trace", NULL, "weft status --json shows the time spent computing, waiting and receiving"},
    {"ckpt", "export", "use weft export JOB -o m.onnx --from STEP"},
    {"export", "--int8", "export as it is, and quantize the file with onnxruntime.quantization"},
    {"train", "--json", "follow it with weft status --json"},
};

wf_status wf_later_command(const char *name, wf_err *err)
{
    for (size_t i = 0; i < WF_COUNT(rows); i++)
        if (!rows[i].word && strcmp(rows[i].command, name) == 0)
            return wf_fail(err, WF_UNSUPPORTED, rows[i].instead, "\"%s\" is not built yet", name);
    return WF_OK;
}

wf_status wf_later_word(const char *command, const char *word, wf_err *err)
{
    for (size_t i = 0; i < WF_COUNT(rows); i++)
        if (rows[i].word && strcmp(rows[i].command, command) == 0 &&
            strcmp(rows[i].word, word) == 0)
            return wf_fail(err, WF_UNSUPPORTED, rows[i].instead, "\"weft %s %s\" is not built yet",
                           command, word);
    return WF_OK;
}

const char *wf_later_at(size_t i, const char **word)
{
    *word = i < WF_COUNT(rows) ? rows[i].word : NULL;
    return i < WF_COUNT(rows) ? rows[i].command : NULL;
}
