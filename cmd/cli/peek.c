/* SPDX-License-Identifier: Apache-2.0 */
/* cmd/cli/peek.c */
#include "cmd/cli/peek.h"
#include "cmd/cli/peek_csv.h"
#include "cmd/cli/peek_text.h"
#include "cmd/cli/term.h"
#include "common/base/size.h"
#include "common/data/data.h"
#include "common/data/formats.h"
#include "common/data/survey.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { CHUNK = 1 << 16 /* elements read at a time */, MOST_CLASSES = 32, SHOWN = 3, LONGEST = 12 };

/* ---- numbers ---- */

typedef struct figures {
    double mean, squares;
    uint64_t n, counts[MOST_CLASSES];
    bool whole; /* all are whole numbers from 0 to MOST_CLASSES - 1 */
    uint64_t nan;
} figures;

static void take(figures *f, double x)
{
    double gap = x - f->mean;

    if (isnan(x)) {
        f->nan++;
        return;
    }
    f->n++;
    f->mean += gap / (double)f->n;
    f->squares += gap * (x - f->mean);
    if (x >= 0 && x < MOST_CLASSES && x == trunc(x))
        f->counts[(size_t)x]++;
    else
        f->whole = false;
}

/* Of all elements of a data set that is opened with `want` float64. */
static wf_status take_all(const wf_dataset *d, figures *f, wf_err *err)
{
    size_t elems = wf_dataset_field(d, 0)->record_bytes / sizeof(double);
    size_t each = WF_MAX((size_t)CHUNK / elems, (size_t)1);
    uint64_t *at = malloc(each * sizeof *at), records = wf_dataset_records(d);
    double *x = malloc(each * elems * sizeof *x);
    wf_status rc = at && x ? WF_OK : wf_fail_nomem(err, each * elems * sizeof *x);

    *f = (figures){.whole = true};
    for (uint64_t from = 0; rc == WF_OK && from < records; from += each) {
        size_t now = (size_t)WF_MIN(records - from, (uint64_t)each);

        for (size_t i = 0; i < now; i++)
            at[i] = from + i;
        rc = wf_dataset_gather(d, 0, at, now, x, err);
        for (size_t i = 0; rc == WF_OK && i < now * elems; i++)
            take(f, x[i]);
    }
    free(at);
    free(x);
    return rc;
}

/* The first records, where one fits on a line. */
static wf_status print_records(const wf_dataset *d, wf_err *err)
{
    size_t elems = wf_dataset_field(d, 0)->record_bytes / sizeof(double);
    uint64_t n = WF_MIN(wf_dataset_records(d), (uint64_t)(elems == 1 ? LONGEST : SHOWN));
    double x[LONGEST];

    if (elems > LONGEST)
        return WF_OK;
    wf_term_print(stdout, "  records ");
    for (uint64_t r = 0; r < n; r++) {
        WF_TRY(wf_dataset_gather(d, 0, &r, 1, x, err));
        wf_term_print(stdout, elems > 1 ? " [" : " ");
        for (size_t i = 0; i < elems; i++)
            wf_term_print(stdout, "%s%.6g", i ? ", " : "", x[i]);
        wf_term_print(stdout, elems > 1 ? "]" : "");
    }
    wf_term_print(stdout, n < wf_dataset_records(d) ? " ...\n" : "\n");
    return WF_OK;
}

static void print_classes(const figures *f)
{
    wf_term_print(stdout, "  classes ");
    for (size_t i = 0; i < MOST_CLASSES; i++)
        if (f->counts[i])
            wf_term_print(stdout, " %zu: %" PRIu64, i, f->counts[i]);
    wf_term_print(stdout, "\n");
}

/* One array: its records, extent, mean and deviation, and the classes if it holds such. `format`
 * may be NULL where the line before has named it. */
static wf_status print_array(const char *format, const char *path, bool names_format, wf_err *err)
{
    wf_field_spec field = {.name = "x", .path = path, .want = WF_F64};
    wf_dataset_spec spec = {.format = format, .fields = &field, .n_fields = 1};
    const wf_field_info *info;
    wf_dataset *d = NULL;
    wf_field_range range;
    char shape[128];
    figures f;
    wf_status rc = wf_dataset_open(&spec, &d, err);

    if (rc != WF_OK)
        return rc;
    info = wf_dataset_field(d, 0);
    range = wf_dataset_range(d, 0);
    rc = take_all(d, &f, err);
    if (rc == WF_OK) {
        wf_term_print(stdout, "%s  %s%s%" PRIu64 " records of %s%s  from %g to %g", path,
                      names_format ? format : "", names_format ? "  " : "", wf_dataset_records(d),
                      wf_dtype_name(info->raw_dtype),
                      wf_dims_str(info->raw_rank, info->raw_dims, shape, sizeof shape), range.least,
                      range.most);
        wf_term_print(stdout, "  mean %.6g  deviation %.6g", f.mean,
                      f.n ? sqrt(f.squares / (double)f.n) : 0.0);
        if (f.nan)
            wf_term_print(stdout, "  %" PRIu64 " NaN", f.nan);
        wf_term_print(stdout, "\n");
        rc = print_records(d, err);
        if (rc == WF_OK && f.whole && info->raw_rank == 0 && f.nan == 0)
            print_classes(&f);
    }
    wf_dataset_free(&d);
    return rc;
}

/* ---- files with several arrays ---- */

static wf_status print_npz(const char *path, wf_err *err)
{
    wf_arena *a = wf_arena_new(0);
    const char *const *names = NULL;
    size_t n = 0;
    wf_status rc = a ? wf_npz_names(path, a, &names, &n, err) : wf_fail_nomem(err, 1);

    if (rc == WF_OK)
        wf_term_print(stdout, "%s  npz  %zu arrays\n", path, n);
    for (size_t i = 0; rc == WF_OK && i < n; i++) {
        char *member = wf_arena_printf(a, "%s#%s", path, names[i]);

        rc = member ? print_array("npz", member, false, err) : wf_fail_nomem(err, strlen(path));
    }
    if (rc == WF_OK && n > 1)
        wf_term_print(stdout,
                      "in a job file:\n  data:\n    format: npz\n    train: {x: %s#%s, y: %s#%s}\n",
                      path, names[0], path, names[1]);
    wf_arena_free(&a);
    return rc;
}

static wf_status print_images(const char *path, wf_err *err)
{
    wf_arena *a = wf_arena_new(0);
    const char *const *names = NULL;
    char *member = a ? wf_arena_printf(a, "%s#class", path) : NULL;
    size_t n = 0;
    wf_status rc = member ? wf_images_classes(path, a, &names, &n, err) : wf_fail_nomem(err, 1);

    if (rc == WF_OK)
        rc = print_array("images", path, true, err);
    for (size_t i = 0; rc == WF_OK && i < n; i++)
        wf_term_print(stdout, "  class %zu is \"%s\"\n", i, names[i]);
    if (rc == WF_OK)
        rc = print_array("images", member, false, err);
    if (rc == WF_OK)
        wf_term_print(stdout,
                      "in a job file:\n  data:\n    format: images\n    train: {x: %s, y: %s}\n"
                      "    map: {x: {scale: 1/255}}\n",
                      path, member);
    wf_arena_free(&a);
    return rc;
}

static wf_status print_libsvm(const char *path, wf_err *err)
{
    wf_survey s;
    wf_libsvm_facts f = {0};
    wf_status rc = wf_libsvm_survey(path, &s, &f, err);

    if (rc == WF_OK)
        wf_term_print(stdout,
                      "%s  libsvm  %" PRIu64 " records  %" PRIu64 " features, from %d\n"
                      "  label  %g to %g, mean %.6g\n"
                      "  pairs of a line  %" PRIu64 " to %" PRIu64 ", mean %.4g\n"
                      "in a job file:\n  data:\n    format: libsvm\n    train: %s\n"
                      "    features: %" PRIu64 "\n%s",
                      path, s.records, f.features, !f.zero_based, s.columns[0].least,
                      s.columns[0].most, s.columns[0].mean, f.least_pairs, f.most_pairs,
                      (double)f.pairs / (double)s.records, path, f.features,
                      f.zero_based ? "    zero_based: true\n" : "");
    wf_survey_close(&s);
    return rc;
}

wf_status wf_peek(const char *path, wf_err *err)
{
    const char *format = wf_format_guess(path);

    if (strcmp(format, "csv") == 0)
        return wf_peek_csv(path, err);
    if (strcmp(format, "libsvm") == 0)
        return print_libsvm(path, err);
    if (strcmp(format, "text") == 0)
        return wf_peek_text(path, err);
    if (strcmp(format, "images") == 0)
        return print_images(path, err);
    if (strcmp(format, "npz") == 0 && !strchr(path, '#'))
        return print_npz(path, err);
    return wf_format_unknown(format, path, print_array(format, path, true, err), err);
}
