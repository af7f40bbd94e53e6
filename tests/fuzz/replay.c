/* SPDX-License-Identifier: Apache-2.0 */
/* tests/fuzz/replay.c - the corpus of the fuzzer in every build, without libFuzzer: what it once
 * found stays mended. */
#include "common/base/file.h"
#include "tests/fuzz/model.h"

#include <cblas.h>
#include <dirent.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

enum { FILE_BYTES = 1 << 20 };

static const char *folder;

static void no_file_of_the_corpus_does_harm(void **state)
{
    DIR *d = opendir(folder);
    struct dirent *e;
    size_t n = 0;

    (void)state;
    assert_non_null(d);
    while ((e = readdir(d))) {
        wf_bytes bytes = {0};
        char path[1024];
        wf_err err = {0};

        if (e->d_name[0] == '.')
            continue;
        snprintf(path, sizeof path, "%s/%s", folder, e->d_name);
        if (wf_file_read(path, FILE_BYTES, &bytes, &err) != WF_OK)
            fail_msg("%s", err.what);
        print_message("%s\n", e->d_name); /* the last one, if this ends the process */
        wf_fuzz_model(bytes.data, bytes.size);
        wf_bytes_close(&bytes);
        n++;
    }
    closedir(d);
    assert_true(n > 0);
}

int main(int argc, char *argv[])
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(no_file_of_the_corpus_does_harm)};

    if (argc != 2) {
        fprintf(stderr, "usage: %s FOLDER\n", argv[0]);
        return 2;
    }
    folder = argv[1];
    openblas_set_num_threads(1);
    return cmocka_run_group_tests_name("fuzz_replay", tests, NULL, NULL);
}
