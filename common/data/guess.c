/* SPDX-License-Identifier: Apache-2.0 */
/* common/data/guess.c - the format of a file that nobody has named. */
#include "common/base/size.h"
#include "common/data/formats.h"
#include "common/data/libsvm_record.h"
#include "common/data/ranges.h"

#include <string.h>
#include <sys/stat.h>

enum { HEAD = 4096 };

typedef struct head {
    char text[HEAD];
    size_t n;
} head;

static wf_status take_head(void *arg, const char *text, size_t n, wf_err *err)
{
    head *h = arg;

    (void)err;
    h->n = WF_MIN(n, (size_t)HEAD);
    memcpy(h->text, text, h->n);
    return WF_FULL; /* no more is wanted */
}

/* Whether the first line that is no comment is a label and a pair, as far as it is there. */
static bool is_libsvm(const head *h)
{
    size_t at = 0, n;
    const char *line;
    wf_libsvm_record r;
    uint64_t index;
    double value;
    bool any = false;

    while (at < h->n && (h->text[at] == '#' || h->text[at] == '\n')) {
        line = memchr(h->text + at, '\n', h->n - at);
        at = line ? (size_t)(line - h->text) + 1 : h->n;
    }
    line = memchr(h->text + at, '\n', h->n - at);
    n = line ? (size_t)(line - h->text) - at : h->n - at;
    return wf_libsvm_begin(&r, h->text + at, n, true, &value, NULL) == WF_OK &&
           wf_libsvm_next(&r, &any, &index, &value, NULL) == WF_OK && any;
}

static const char *by_content(const char *path)
{
    wf_ranges *r = NULL;
    head h = {.n = 0};

    if (wf_ranges_open(path, &r, NULL) == WF_OK &&
        wf_ranges_scan(r, take_head, &h, NULL) != WF_FULL)
        h.n = 0;
    wf_ranges_close(&r);
    if (h.n == 0 || memchr(h.text, 0, h.n))
        return "idx";
    return is_libsvm(&h) ? "libsvm" : "csv";
}

const char *wf_format_guess(const char *path)
{
    static const char *const names[][2] = {
        {".csv", "csv"},         {".tsv", "csv"},    {".npy", "npy"},
        {".npz", "npz"},         {".svm", "libsvm"}, {".libsvm", "libsvm"},
        {".svmlight", "libsvm"}, {"-ubyte", "idx"},  {".tfrecord", "tfrecord"}};
    struct stat st;

    if (stat(path, &st) == 0 && S_ISDIR(st.st_mode))
        return "images";
    for (size_t i = 0; i < WF_COUNT(names); i++)
        if (strstr(path, names[i][0]))
            return names[i][1];
    return by_content(path);
}
