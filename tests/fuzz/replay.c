/* SPDX-License-Identifier: Apache-2.0 */
/* tests/fuzz/replay.c - the corpus of a fuzzer in every build, without libFuzzer: what it once
 * found stays mended. And each file some times with a few bytes changed, the same in every run.
 *
 *   unit_fuzz_NAME FOLDER CHANGES */
#include "common/base/file.h"
#include "common/base/rng.h"
#include "common/base/size.h"
#include "tests/fuzz/fuzz.h"

#include <cblas.h>
#include <dirent.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

enum {
    FILE_BYTES = 1 << 20,
    MOST_ADDED = 16, /* bytes */
    MOST_EDITS = 4,  /* in one change */
};

static const char *folder;
static long changes;

static uint64_t draw(uint64_t *at, uint64_t below)
{
    return wf_rng_below((wf_rng_key){1, 0}, (*at)++, below);
}

/* Some bytes from `at` on are others, gone, or there twice. Returns how many there are now. */
static size_t edit(uint8_t *data, size_t n, uint64_t *random)
{
    static const uint8_t bytes[] = {0, 1, 0x7f, 0x80, 0xff, '0', '9', '-', ':', ',', '\n', '"'};
    size_t at = draw(random, n), some = 1 + draw(random, WF_MIN((uint64_t)(n - at), MOST_ADDED));

    switch (draw(random, 4)) {
    case 0:
        data[at] ^= (uint8_t)(1u << draw(random, 8));
        return n;
    case 1:
        data[at] = bytes[draw(random, WF_COUNT(bytes))];
        return n;
    case 2:
        memmove(data + at, data + at + some, n - at - some);
        return n - some;
    default:
        memmove(data + at + some, data + at, n - at);
        return n + some;
    }
}

/* The first two bytes stay: they may say what the rest is. */
static void change(const wf_bytes *file, uint64_t *random)
{
    enum { HEAD = 2 };
    uint8_t *copy = malloc(file->size + MOST_EDITS * MOST_ADDED);
    size_t n = file->size;

    assert_non_null(copy);
    memcpy(copy, file->data, n);
    for (uint64_t edits = 1 + draw(random, MOST_EDITS); edits > 0 && n > HEAD; edits--)
        n = HEAD + edit(copy + HEAD, n - HEAD, random);
    copy = realloc(copy, n); /* so that a sanitizer sees what is read behind its end */
    assert_non_null(copy);
    wf_fuzz(copy, n);
    free(copy);
}

static void no_file_of_the_corpus_does_harm(void **state)
{
    DIR *d = opendir(folder);
    struct dirent *e;
    size_t n = 0;

    (void)state;
    assert_non_null(d);
    while ((e = readdir(d))) {
        wf_bytes bytes = {0};
        uint64_t random = 0; /* anew for each: folders list their files in any order */
        char path[1024];
        wf_err err = {0};

        if (e->d_name[0] == '.')
            continue;
        snprintf(path, sizeof path, "%s/%s", folder, e->d_name);
        if (wf_file_read(path, FILE_BYTES, &bytes, &err) != WF_OK)
            fail_msg("%s", err.what);
        print_message("%s\n", e->d_name); /* the last one, if this ends the process */
        wf_fuzz(bytes.data, bytes.size);
        for (long i = 0; i < changes; i++)
            change(&bytes, &random);
        wf_bytes_close(&bytes);
        n++;
    }
    closedir(d);
    assert_true(n > 0);
}

int main(int argc, char *argv[])
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(no_file_of_the_corpus_does_harm)};

    if (argc != 3) {
        fprintf(stderr, "usage: %s FOLDER CHANGES\n", argv[0]);
        return 2;
    }
    folder = argv[1];
    changes = strtol(argv[2], NULL, 10);
    openblas_set_num_threads(1);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
