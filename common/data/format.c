/* SPDX-License-Identifier: Apache-2.0 */
/* common/data/format.c - the table of formats. */
#include "common/data/format.h"
#include "common/base/nearest.h"

#include <string.h>

static const wf_format *const formats[] = {&wf_format_idx, &wf_format_npy};
static const char *const names[] = {"idx", "npy"};
static const char *const later[] = {"csv", "libsvm", "npz", "synthetic", "text", "tfrecord"};

wf_status wf_format_find(const char *name, const wf_format **out, wf_err *err)
{
    const char *near;

    for (size_t i = 0; i < WF_COUNT(formats); i++)
        if (strcmp(formats[i]->name, name) == 0) {
            *out = formats[i];
            return WF_OK;
        }
    for (size_t i = 0; i < WF_COUNT(later); i++)
        if (strcmp(later[i], name) == 0)
            return wf_fail(err, WF_UNSUPPORTED, "save it as npy (numpy.save)",
                           "data format \"%s\" is not built yet", name);
    near = wf_nearest(name, names, WF_COUNT(names));
    if (near)
        return wf_fail(err, WF_USAGE, NULL, "unknown data format \"%s\"; did you mean \"%s\"?",
                       name, near);
    return wf_fail(err, WF_USAGE, NULL, "unknown data format \"%s\"; there are idx and npy", name);
}
