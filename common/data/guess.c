/* SPDX-License-Identifier: Apache-2.0 */
/* common/data/guess.c - the format of a file that nobody has named. */
#include "common/base/file.h"
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

/* How often a character stands in each whole line of the head, which all have it as often; or 0. */
static size_t each_has(const head *h, char c)
{
    size_t all = 0, lines = 0;
    const char *end = h->text + h->n, *lf;

    for (const char *line = h->text; line < end; line = lf + 1) {
        size_t count = 0;

        lf = memchr(line, '\n', (size_t)(end - line));
        if (!lf && lines)
            break; /* it is cut */
        lf = lf ? lf : end;
        for (const char *at = line; at < lf; at++)
            count += *at == c;
        if (lines++ && count != all)
            return 0;
        all = count;
    }
    return all;
}

/* Prose: letters in lines that no delimiter cuts into equally many cells; or cells that hold many
 * blanks, with at most a label before them. */
static bool is_prose(const head *h)
{
    static const char delimiters[] = ",;|";
    size_t blanks = 0, lines = 0, tabs = each_has(h, '\t');
    bool letters = false;

    for (size_t i = 0; i < h->n; i++) {
        blanks += h->text[i] == ' ';
        lines += h->text[i] == '\n';
        letters |= (uint8_t)h->text[i] >= 'A';
    }
    if (!letters)
        return false;
    if (tabs == 1 && blanks > 4 * lines)
        return true;
    for (const char *d = delimiters; *d; d++)
        if (each_has(h, *d))
            return false;
    return tabs == 0;
}

static const char *by_content(const char *path, bool is_text)
{
    wf_ranges *r = NULL;
    head h = {.n = 0};

    if (wf_ranges_open(path, &r, NULL) == WF_OK &&
        wf_ranges_scan(r, take_head, &h, NULL) != WF_FULL)
        h.n = 0;
    wf_ranges_close(&r);
    if (h.n == 0 || memchr(h.text, 0, h.n))
        return "idx";
    if (is_libsvm(&h))
        return "libsvm";
    return is_text && is_prose(&h) ? "text" : "csv";
}

const char *wf_format_guess(const char *path)
{
    static const char *const names[][2] = {{".csv", "csv"},       {".npy", "npy"},
                                           {".npz", "npz"},       {".svm", "libsvm"},
                                           {".libsvm", "libsvm"}, {".svmlight", "libsvm"},
                                           {"-ubyte", "idx"},     {".tfrecord", "tfrecord"}};
    struct stat st;

    if (stat(path, &st) == 0 && S_ISDIR(st.st_mode))
        return "images";
    for (size_t i = 0; i < WF_COUNT(names); i++)
        if (strstr(path, names[i][0]))
            return names[i][1];
    return by_content(path, strstr(path, ".txt") || strstr(path, ".tsv"));
}

wf_status wf_format_unknown(const char *format, const char *path, wf_status rc, wf_err *err)
{
    if (rc == WF_OK || strcmp(format, "idx") != 0 || strstr(path, "idx") || !wf_file_exists(path))
        return rc;
    return wf_fail(
        err, rc,
        "weft reads csv, libsvm, text, npy, npz, tfrecord, idx and folders of images; convert "
        "the file, or give it the extension of its format",
        "the format of %s is unknown: its name has no known extension, and it is not idx", path);
}
