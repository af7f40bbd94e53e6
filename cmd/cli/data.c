/* SPDX-License-Identifier: Apache-2.0 */
/* cmd/cli/data.c - generates a data set, checks published ones, and looks into files. */
#include "cmd/cli/cli.h"
#include "cmd/cli/data_get.h"
#include "cmd/cli/peek.h"
#include "cmd/cli/stats.h"
#include "cmd/cli/term.h"
#include "common/base/cc.h"
#include "common/base/file.h"
#include "common/data/digits.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

static const char *const digit_files[] = {"train-images-idx3-ubyte.gz",
                                          "train-labels-idx1-ubyte.gz", "t10k-images-idx3-ubyte.gz",
                                          "t10k-labels-idx1-ubyte.gz"};

typedef struct request {
    const char *seed, *train, *test, *job;
    bool force, json;
} request;

/* What was drawn with which numbers: drawing the same again would change nothing. */
static bool is_drawn(const char *dir, const char *note)
{
    char path[4096];
    wf_bytes text = {0};
    bool same;

    for (size_t i = 0; i < WF_COUNT(digit_files); i++) {
        snprintf(path, sizeof path, "%s/%s", dir, digit_files[i]);
        if (!wf_file_exists(path))
            return false;
    }
    snprintf(path, sizeof path, "%s/digits.txt", dir);
    same = wf_file_read(path, 4096, &text, NULL) == WF_OK && strcmp(wf_bytes_str(&text), note) == 0;
    wf_bytes_close(&text);
    return same;
}

static wf_status digits(const char *dir, const request *r, wf_err *err)
{
    unsigned long long seed, n_train, n_test;
    char note[128], path[4096];

    WF_TRY(wf_arg_u64("--seed", r->seed, 0, INT64_MAX, &seed, err));
    WF_TRY(wf_arg_u64("--train", r->train, 1, 10000000, &n_train, err));
    WF_TRY(wf_arg_u64("--test", r->test, 1, 10000000, &n_test, err));
    snprintf(note, sizeof note, "weft %s digits seed %llu train %llu test %llu\n", WEFT_VERSION,
             seed, n_train, n_test);
    if (!r->force && is_drawn(dir, note)) {
        wf_term_print(stdout, "%s: %llu + %llu images are there already\n", dir, n_train, n_test);
        return WF_OK;
    }
    WF_TRY(wf_digits_write(dir, seed, n_train, n_test, err));
    snprintf(path, sizeof path, "%s/digits.txt", dir);
    WF_TRY(wf_file_write(path, note, strlen(note), err));
    wf_term_print(
        stdout,
        "%s: %llu + %llu images generated, seed %llu   try: weft train examples/digits.yaml\n", dir,
        n_train, n_test, seed);
    return WF_OK;
}

static wf_status bad_words(const wf_words *words, wf_err *err)
{
    static const char *const forms[] = {"digits DIR", "peek FILE...", "stats FILE",
                                        "get mnist DIR"};

    for (size_t i = 0; i < WF_COUNT(forms); i++) {
        size_t verb = strcspn(forms[i], " ");

        if (strncmp(words->word[0], forms[i], verb) == 0 && !words->word[0][verb])
            return wf_fail(err, WF_USAGE, "see \"weft help data\"",
                           words->n == 1 ? "weft data %s needs more: weft data %s"
                                         : "weft data %s has too many words: weft data %s",
                           words->word[0], forms[i]);
    }
    return wf_fail(err, WF_USAGE, "see \"weft help data\"", "weft data has no \"%.32s\"",
                   words->word[0]);
}

static wf_status run(int argc, char *argv[], wf_err *err)
{
    request r = {.seed = "1", .train = "60000", .test = "10000"};
    wf_words words;
    const wf_flag flags[] = {{"seed", 0, .value = &r.seed},
                             {"train", 0, .value = &r.train},
                             {"test", 0, .value = &r.test},
                             {"force", 0, .set = &r.force},
                             {"job", 0, .value = &r.job},
                             {"json", 0, .set = &r.json},
                             {0}};

    WF_TRY(wf_args(flags, argc, argv, 1, 32, &words, err));
    if (strcmp(words.word[0], "digits") == 0 && words.n == 2)
        return digits(words.word[1], &r, err);
    if (strcmp(words.word[0], "get") == 0 && (words.n == 2 || words.n == 3))
        return wf_data_get(words.word[1], words.n == 3 ? words.word[2] : NULL, err);
    if (strcmp(words.word[0], "stats") == 0 && (words.n == 2 || (words.n == 1 && r.job)))
        return wf_stats(words.n == 2 ? words.word[1] : NULL, r.job, r.json, err);
    if (strcmp(words.word[0], "peek") != 0 || words.n == 1)
        return bad_words(&words, err);
    for (size_t i = 1; i < words.n; i++)
        WF_TRY(wf_peek(words.word[i], err));
    return WF_OK;
}

const wf_cmd wf_cmd_data = {
    .name = "data",
    .help = "generate the digits data set, check MNIST, look into data files",
    .usage =
        "weft data digits DIR [--seed N] [--train N] [--test N] [--force]\n"
        "weft data peek FILE...\n"
        "weft data stats [FILE] [--job JOB.yaml] [--json]\n"
        "weft data get mnist [DIR]\n"
        "\n"
        "digits generates a synthetic data set, 60,000 and 10,000 grey images of 28x28, as IDX\n"
        "files with MNIST's names. The same seed gives the same bytes; existing files are kept\n"
        "unless --force is given.\n"
        "peek shows what a file contains as weft reads it: records, dtype, shape, range, mean and\n"
        "deviation, and the first records. The name decides the format: csv (.csv, .tsv),\n"
        "libsvm (.svm, .libsvm, .svmlight), npy, npz (all arrays, or FILE.npz#NAME), tfrecord\n"
        "(FILE.tfrecord#FEATURE) or a folder of images; any other file is read as idx. A .txt or\n"
        ".tsv file is csv or libsvm if its lines look so, and plain text otherwise. For csv and\n"
        "text peek suggests the lines of a job file.\n"
        "stats shows each column's range, mean, deviation, share of missing values and number of\n"
        "distinct ones (exact up to 65,536, then to 2 %). Rows of up to 256 numbers have a line\n"
        "for each. Empty cells, NaN, and features that a libsvm line does not name are missing "
        "values.\n"
        "With --job, stats reads the file (csv, libsvm or text; without FILE the training data)\n"
        "as the job does, and shows it after data.map.\n"
        "get prints the commands that download a published data set, and checks the files in DIR\n"
        "(data/mnist).\n"
        "\n"
        "  weft data digits data/digits\n"
        "  weft data peek data/digits/train-images-idx3-ubyte.gz\n"
        "  weft data stats customers.csv\n"
        "  weft data get mnist data/mnist\n",
    .run = run,
};
