/* SPDX-License-Identifier: Apache-2.0 */
/* tests/unit/lib_folder.h - a folder for jobs of libweft and their data; a test makes it with
 * mkdtemp.
 */
#ifndef WF_TESTS_LIB_FOLDER_H
#define WF_TESTS_LIB_FOLDER_H

#include "tests/unit/lib_stage.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>

static char folder[] = "/tmp/weft-test-XXXXXX";

static const char *in(const char *name)
{
    static char path[PATH_MAX];

    snprintf(path, sizeof path, "%s/%s", folder, name);
    return path;
}

static weft_job *parse(const char *text)
{
    char path[PATH_MAX];
    weft_job *j = NULL;

    snprintf(path, sizeof path, "%s", in("job.yaml"));
    assert_works(weft_job_parse(text, strlen(text), path, &j, &error));
    return j;
}

/* A header of numpy's (NEP 1) and `bytes` of data. */
static void write_npy(const char *name, const char *descr, const char *shape, const void *data,
                      size_t bytes)
{
    unsigned char start[10] = {0x93, 'N', 'U', 'M', 'P', 'Y', 1, 0, 118, 0};
    char head[119];
    FILE *f = fopen(in(name), "wb");
    int n = snprintf(head, sizeof head, "{'descr': '%s', 'fortran_order': False, 'shape': (%s), }",
                     descr, shape);

    memset(head + n, ' ', sizeof head - (size_t)n);
    head[117] = '\n';
    assert_true(f && fwrite(start, 1, 10, f) == 10 && fwrite(head, 1, 118, f) == 118 &&
                fwrite(data, 1, bytes, f) == bytes && fclose(f) == 0);
}

#endif
