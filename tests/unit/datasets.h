/* SPDX-License-Identifier: Apache-2.0 */
/* tests/unit/datasets.h - data files of a test, opened or refused. */
#ifndef WF_TESTS_DATASETS_H
#define WF_TESTS_DATASETS_H

#include "common/data/data.h"
#include "tests/unit/files.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

static test_folder folder;

static inline int set_up(void **unused)
{
    (void)unused;
    test_folder_make(&folder);
    return 0;
}

static inline int tear_down(void **unused)
{
    (void)unused;
    test_folder_remove(&folder);
    return 0;
}

/* One field "x" of one file. */
static inline wf_status open_one(const char *format, const char *path, const wf_map_step *steps,
                                 size_t n_steps, wf_dtype want, wf_dataset **out, wf_err *err)
{
    const wf_field_spec field = {
        .name = "x", .path = path, .steps = steps, .n_steps = n_steps, .want = want};

    return wf_dataset_open(&(wf_dataset_spec){.format = format, .fields = &field, .n_fields = 1},
                           out, err);
}

static inline void expect_refused(const char *format, const char *path, wf_status status,
                                  const char *part)
{
    wf_dataset *d = NULL;
    wf_err err = {0};

    assert_int_equal(open_one(format, path, NULL, 0, WF_NONE, &d, &err), status);
    assert_null(d);
    if (!strstr(err.what, part))
        fail_msg("\"%s\" does not say \"%s\"", err.what, part);
}

/* A version 1 file with this dict and data; its size. */
static inline size_t make_npy(uint8_t *out, const char *dict, const void *data, size_t n)
{
    size_t length = strlen(dict);

    memcpy(out, "\x93NUMPY\x01\x00", 8);
    out[8] = (uint8_t)length;
    out[9] = (uint8_t)(length >> 8);
    memcpy(out + 10, dict, length);
    memcpy(out + 10 + length, data, n);
    return 10 + length + n;
}

#endif
