/* SPDX-License-Identifier: Apache-2.0 */
/* cmd/cli/data_get.c - a file is known by the digest of what is in it: it counts packed by any
 * gzip, and unpacked. */
#include "cmd/cli/data_get.h"
#include "cmd/cli/term.h"
#include "common/base/file.h"
#include "common/base/nearest.h"
#include "common/base/size.h"
#include "common/data/data.h"

#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

/* wf_dataset_digest of the files that Yann LeCun, Corinna Cortes and Christopher Burges published.
 */
typedef struct published {
    const char *file; /* without .gz */
    uint64_t records, digest;
} published;

static const published mnist[] = {
    {"train-images-idx3-ubyte", 60000, UINT64_C(0xee3d62f55dfafffb)},
    {"train-labels-idx1-ubyte", 60000, UINT64_C(0x37f227c8f4eaefa6)},
    {"t10k-images-idx3-ubyte", 10000, UINT64_C(0x6d9df6004ed35f23)},
    {"t10k-labels-idx1-ubyte", 10000, UINT64_C(0x6df18589e2c6262f)},
};

static const struct set {
    const char *name, *format, *where, *dir, *job;
    const published *files;
    size_t n;
} sets[] = {{"mnist", "idx", "https://ossci-datasets.s3.amazonaws.com/mnist", "data/mnist",
             "examples/mnist.yaml", mnist, WF_COUNT(mnist)}};

static wf_status find_set(const char *name, const struct set **out, wf_err *err)
{
    const char *names[WF_COUNT(sets)], *near;

    for (size_t i = 0; i < WF_COUNT(sets); i++) {
        names[i] = sets[i].name;
        if (strcmp(names[i], name) == 0) {
            *out = &sets[i];
            return WF_OK;
        }
    }
    near = wf_nearest(name, names, WF_COUNT(names));
    return wf_fail(err, WF_USAGE, "examples/README.md describes the other data sets",
                   "unknown data set \"%.32s\"; there is %s", name, near ? near : names[0]);
}

/* Whether one file of the set is there; *bad is set for one that is another. */
static bool look_at(const struct set *set, const published *p, const char *dir, bool *bad)
{
    char path[PATH_MAX];
    wf_field_spec field = {.name = "x", .path = path};
    wf_dataset_spec spec = {.format = set->format, .fields = &field, .n_fields = 1};
    wf_dataset *d = NULL;
    wf_err why = {0};

    if ((size_t)snprintf(path, sizeof path, "%s/%s.gz", dir, p->file) >= sizeof path)
        return false;
    if (!wf_file_exists(path))
        path[strlen(path) - 3] = 0;
    if (!wf_file_exists(path)) {
        wf_term_print(stdout, "  %s.gz  missing\n", path);
        return false;
    }
    *bad = wf_dataset_open(&spec, &d, &why) != WF_OK;
    if (*bad) {
        wf_term_print(stdout, "  %s\n", why.what);
        return true;
    }
    *bad = wf_dataset_records(d) != p->records || wf_dataset_digest(d) != p->digest;
    wf_term_print(stdout, "  %s  %" PRIu64 " records, %s\n", path, wf_dataset_records(d),
                  *bad ? "not the published ones" : "as published");
    wf_dataset_free(&d);
    return true;
}

static void print_fetch(const struct set *set, const char *dir, const bool wanted[])
{
    wf_term_print(stdout, "weft downloads nothing; in a shell:\n  mkdir -p %s\n", dir);
    for (size_t i = 0; i < set->n; i++)
        if (wanted[i])
            wf_term_print(stdout, "  curl -L --output-dir %s -O %s/%s.gz\n", dir, set->where,
                          set->files[i].file);
}

wf_status wf_data_get(const char *name, const char *dir, wf_err *err)
{
    const struct set *set = NULL;
    bool wanted[WF_COUNT(mnist)] = {false};
    size_t missing = 0, wrong = 0;

    WF_TRY(find_set(name, &set, err));
    dir = dir ? dir : set->dir;
    for (size_t i = 0; i < set->n; i++) {
        bool bad = false, there = look_at(set, &set->files[i], dir, &bad);

        missing += !there;
        wrong += bad;
        wanted[i] = !there || bad;
    }
    if (missing || wrong)
        print_fetch(set, dir, wanted);
    if (wrong)
        return wf_fail(err, WF_INVALID, "fetch them again",
                       "%s: %zu of %zu files are not as published", dir, wrong, set->n);
    if (missing)
        return wf_fail(err, WF_NOTFOUND, "fetch them with the commands above",
                       "%s: %zu of %zu files are missing", dir, missing, set->n);
    wf_term_print(stdout, "%s is complete   try: weft train %s\n", set->name, set->job);
    return WF_OK;
}
