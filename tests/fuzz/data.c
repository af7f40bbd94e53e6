/* SPDX-License-Identifier: Apache-2.0 */
/* tests/fuzz/data.c - files of training data: they are opened as a job opens them, and their first
 * and last records gathered; or surveyed, as by `weft data stats`.
 *
 * The first byte of an input says what its file is, the second is bits of how it is read; the file
 * follows. Records of tfrecord are each a byte of their length and so many bytes: their checksums
 * are written here, else nothing got past these. */
#include "common/data/data.h"
#include "common/base/crc32c.h"
#include "common/base/size.h"
#include "common/data/survey.h"
#include "tests/fuzz/fuzz.h"

#include <limits.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
    LIMIT_BYTES = 32 << 20, /* of a field in memory */
    RECORD_BYTES = 1 << 20, /* larger ones are not gathered */
    GATHERED = 5,           /* records, of any data set */
    MOST_OF_BAG = 3,        /* values, where many have more, */
    ROOM_OF_BAG = 50        /* and where few do */
};

typedef struct input {
    const uint8_t *data; /* [n]: the file */
    size_t n;
    uint8_t bits;
} input;

static bool bit(const input *in, int i)
{
    return in->bits >> i & 1;
}

/* ---- the file ---- */

static char folder[64];

static void remove_folder(void)
{
    static const char *const names[] = {"a/x.png", "a/x.jpg", "a", "x", "x.npz", "x.gz", "x.zst"};
    char path[PATH_MAX];

    for (size_t i = 0; i < WF_COUNT(names); i++) {
        snprintf(path, sizeof path, "%s/%s", folder, names[i]);
        (void)remove(path);
    }
    (void)rmdir(folder);
}

static const char *path_of(const char *name)
{
    static char path[PATH_MAX];

    if (!folder[0]) {
        strcpy(folder, "/tmp/weft-fuzz-XXXXXX");
        if (!mkdtemp(folder) || atexit(remove_folder) != 0)
            abort();
        snprintf(path, sizeof path, "%s/a", folder);
        if (mkdir(path, 0700) != 0)
            abort();
    }
    snprintf(path, sizeof path, "%s/%s", folder, name);
    return path;
}

static const char *write_file(const char *name, const uint8_t *data, size_t n)
{
    const char *path = path_of(name);
    FILE *f = fopen(path, "wb");

    if (!f || fwrite(data, 1, n, f) != n || fclose(f) != 0)
        abort();
    return path;
}

/* ---- a data set ---- */

static void gather(const wf_dataset *d, uint32_t field)
{
    const uint64_t n = wf_dataset_records(d), at[GATHERED] = {0, n - 1, n / 2, n / 3, 0};
    size_t bytes = wf_dataset_field(d, field)->record_bytes * GATHERED;
    void *out = aligned_alloc(64, wf_align_up(bytes, 64));
    wf_err err = {0};

    if (!out)
        abort();
    (void)wf_fuzz_refused(wf_dataset_gather_in(d, field, 1, at, GATHERED, out, &err), &err);
    free(out);
}

static void read_all(const wf_dataset_spec *spec)
{
    wf_dataset *d = NULL;
    wf_err err = {0};

    if (wf_fuzz_refused(wf_dataset_open(spec, &d, &err), &err))
        return;
    for (uint32_t i = 0; i < wf_dataset_n_fields(d); i++) {
        int64_t classes = spec->fields[i].classes;

        (void)wf_dataset_range(d, i);
        if (classes)
            (void)wf_fuzz_refused(wf_dataset_check_labels(d, i, classes, &err), &err);
        if (wf_dataset_field(d, i)->record_bytes <= RECORD_BYTES)
            gather(d, i);
    }
    wf_dataset_free(&d);
}

/* One field of one file; `of_bags`: as bags, which are cut or not. */
static void read_array(const input *in, const char *format, const char *path, bool of_bags)
{
    const wf_field_spec field = {.name = "x",
                                 .path = path,
                                 .want = bit(in, 4) ? WF_F32 : WF_NONE,
                                 .is_bag = of_bags,
                                 .bag_most = bit(in, 5) ? MOST_OF_BAG : ROOM_OF_BAG};

    read_all(&(wf_dataset_spec){.format = format,
                                .fields = &field,
                                .n_fields = 1,
                                .cuts_bags = bit(in, 6),
                                .limit_bytes = LIMIT_BYTES});
}

static void read_idx(const input *in)
{
    read_array(in, "idx", write_file("x", in->data, in->n), false);
}

static void read_npy(const input *in)
{
    const char *path = write_file("x", in->data, in->n);
    wf_tensor *t = NULL;
    wf_err err = {0};

    if (bit(in, 0)) {
        read_array(in, "npy", path, false);
        return;
    }
    (void)wf_fuzz_refused(wf_data_load("npy", path, &t, &err), &err);
    wf_tensor_free(&t);
}

static void read_npz(const input *in)
{
    char path[PATH_MAX + 2];

    snprintf(path, sizeof path, "%s%s", write_file("x.npz", in->data, in->n),
             bit(in, 0) ? "#x" : "");
    read_array(in, "npz", path, false);
}

static void read_packed(const input *in)
{
    const char *path = write_file(bit(in, 0) ? "x.gz" : "x.zst", in->data, in->n);

    read_array(in, bit(in, 1) ? "npy" : "idx", path, false);
}

static void write_crc(FILE *f, const void *data, size_t n)
{
    uint32_t crc = wf_crc32c(0, data, n);

    crc = (crc >> 15 | crc << 17) + 0xa282ead8u;
    if (fwrite(&crc, 1, sizeof crc, f) != sizeof crc)
        abort();
}

static void write_records(const uint8_t *data, size_t n, const char *path)
{
    FILE *f = fopen(path, "wb");

    if (!f)
        abort();
    while (n > 0) {
        uint64_t length = WF_MIN((size_t)*data, n - 1);

        if (fwrite(&length, 1, sizeof length, f) != sizeof length)
            abort();
        write_crc(f, &length, sizeof length);
        if (fwrite(data + 1, 1, length, f) != length)
            abort();
        write_crc(f, data + 1, length);
        data += 1 + length;
        n -= 1 + length;
    }
    if (fclose(f) != 0)
        abort();
}

static void read_tfrecord(const input *in)
{
    static const char *const features[] = {"#f", "#i", "#b", ""};
    char path[PATH_MAX + 2];

    snprintf(path, sizeof path, "%s%s", path_of("x"), features[in->bits & 3]);
    if (bit(in, 2))
        write_file("x", in->data, in->n);
    else
        write_records(in->data, in->n, path_of("x"));
    read_array(in, "tfrecord", path, bit(in, 3));
}

/* Columns of numbers, of words by a list, by hashing and by a vocabulary, and of bags. */
static void read_csv(const input *in)
{
    static const char *const numbers[] = {"a", "b"}, *const c[] = {"c"}, *const d[] = {"d"};
    static const char *const words[] = {"red", "blue"};
    static const wf_map_step standard[] = {{.type = "fill", .number = 1}, {.type = "standardise"}};
    static const wf_map_step hash = {.type = "hash", .number = 100};
    static const wf_map_step vocabulary = {.type = "vocabulary", .number = 5};
    const char *file = write_file("x", in->data, in->n);
    bool hashes = bit(in, 2);
    const wf_column_spec schema[] = {{.name = "a", .dtype = WF_F32},
                                     {.name = "b", .dtype = WF_F32},
                                     {.name = "c",
                                      .dtype = hashes ? WF_U8 : WF_I64,
                                      .words = bit(in, 3) && !hashes ? words : NULL,
                                      .n_words = bit(in, 3) && !hashes ? 2 : 0},
                                     {.name = "d", .dtype = WF_U8}};
    const wf_field_spec fields[] = {{.name = "x",
                                     .columns = numbers,
                                     .n_columns = 2,
                                     .is_row = true,
                                     .want = WF_F32,
                                     .steps = standard,
                                     .n_steps = 1 + bit(in, 4)},
                                    {.name = "y",
                                     .columns = c,
                                     .n_columns = 1,
                                     .want = WF_I64,
                                     .steps = &hash,
                                     .n_steps = hashes,
                                     .is_bag = bit(in, 5),
                                     .bag_most = MOST_OF_BAG},
                                    {.name = "z",
                                     .columns = d,
                                     .n_columns = 1,
                                     .want = WF_I64,
                                     .steps = bit(in, 7) ? &vocabulary : &hash,
                                     .n_steps = 1}};

    read_all(&(wf_dataset_spec){.format = "csv",
                                .fields = fields,
                                .n_fields = WF_COUNT(fields),
                                .files = &file,
                                .n_files = 1,
                                .header = bit(in, 0),
                                .schema = schema,
                                .n_schema = WF_COUNT(schema),
                                .delimiter = bit(in, 1) ? '\t' : ',',
                                .skips_bad_lines = bit(in, 1),
                                .cuts_bags = bit(in, 6),
                                .held_out = bit(in, 7) ? 0.3 : 0,
                                .limit_bytes = LIMIT_BYTES});
}

static void read_libsvm(const input *in)
{
    static const char *const features[] = {"features"}, *const label[] = {"label"};
    static const char *const indices[] = {"indices"}, *const values[] = {"values"};
    const char *file = write_file("x", in->data, in->n);
    uint64_t most = bit(in, 1) ? MOST_OF_BAG : 0;
    const wf_field_spec rows[] = {
        {.name = "x", .columns = features, .n_columns = 1, .want = bit(in, 1) ? WF_F32 : WF_F64},
        {.name = "y",
         .columns = label,
         .n_columns = 1,
         .want = bit(in, 2) ? WF_I64 : WF_F32,
         .classes = bit(in, 2) ? 3 : 0}};
    const wf_field_spec bags[] = {{.name = "ids",
                                   .columns = indices,
                                   .n_columns = 1,
                                   .is_bag = true,
                                   .want = WF_I64,
                                   .bag_most = most},
                                  {.name = "w",
                                   .columns = values,
                                   .n_columns = 1,
                                   .is_bag = true,
                                   .want = WF_F32,
                                   .bag_ids = "ids",
                                   .bag_most = most}};

    read_all(&(wf_dataset_spec){.format = "libsvm",
                                .fields = bit(in, 0) ? rows : bags,
                                .n_fields = 2,
                                .files = &file,
                                .n_files = 1,
                                .features = bit(in, 3) ? 100 : 0,
                                .zero_based = bit(in, 4),
                                .cuts_bags = bit(in, 5),
                                .limit_bytes = LIMIT_BYTES});
}

static void read_text(const input *in)
{
    static const char *const text[] = {"text"}, *const label[] = {"label"},
                             *const next[] = {"next"};
    const char *file = write_file("x", in->data, in->n);
    bool windows = bit(in, 5), labelled = bit(in, 6) && !windows;
    wf_split split = (wf_split)((in->bits & 3) % 3);
    bool has_words = split != WF_SPLIT_BYTES, hashes = bit(in, 4) && has_words;
    const wf_map_step tokens = {.type = "text_vectorization",
                                .number = hashes || !has_words ? 0 : 20,
                                .tokens = {.split = split,
                                           .lowers = bit(in, 3),
                                           .strips = bit(in, 3),
                                           .length = windows ? 0 : 7,
                                           .bins = hashes ? 50 : 0}};
    const wf_field_spec fields[] = {{.name = "x",
                                     .columns = text,
                                     .n_columns = 1,
                                     .want = WF_I64,
                                     .steps = &tokens,
                                     .n_steps = 1},
                                    {.name = "y",
                                     .columns = windows ? next : label,
                                     .n_columns = 1,
                                     .want = WF_I64,
                                     .steps = &tokens,
                                     .n_steps = windows,
                                     .classes = windows ? 0 : 3}};

    read_all(&(wf_dataset_spec){.format = "text",
                                .fields = fields,
                                .n_fields = 1 + (windows || labelled),
                                .files = &file,
                                .n_files = 1,
                                .labelled = labelled,
                                .sequence_length = windows ? 5 : 0,
                                .sequence_stride = windows ? 1 + bit(in, 7) : 0,
                                .limit_bytes = LIMIT_BYTES});
}

/* The one image of the one class of a folder. */
static void read_images(const input *in)
{
    static const int64_t size[] = {8, 9};
    static const wf_map_step resize = {.type = "resize", .ints = size, .n_ints = 2};
    const wf_field_spec field = {
        .name = "x", .path = folder, .steps = &resize, .n_steps = bit(in, 1), .want = WF_NONE};

    (void)remove(path_of(bit(in, 0) ? "a/x.jpg" : "a/x.png"));
    write_file(bit(in, 0) ? "a/x.png" : "a/x.jpg", in->data, in->n);
    read_all(&(wf_dataset_spec){
        .format = "images", .fields = &field, .n_fields = 1, .limit_bytes = LIMIT_BYTES});
}

static void survey(const input *in)
{
    static const char *const names[] = {"x", "x", "x.gz", "x.zst"};
    const char *path = write_file(names[in->bits >> 2 & 3], in->data, in->n);
    wf_libsvm_facts libsvm;
    wf_text_facts text;
    wf_survey s = {0};
    wf_err err = {0};
    wf_status rc;

    switch (in->bits & 3) {
    case 0:
        rc = wf_libsvm_survey(path, &s, &libsvm, &err);
        break;
    case 1:
        rc = wf_text_survey(path, &s, &text, &err);
        break;
    default:
        rc = wf_csv_survey(path, &s, &err);
    }
    (void)wf_fuzz_refused(rc, &err);
    wf_survey_close(&s);
}

void wf_fuzz(const uint8_t *data, size_t n)
{
    static void (*const ways[])(const input *) = {read_idx,      read_npy, read_npz,    read_packed,
                                                  read_tfrecord, read_csv, read_libsvm, read_text,
                                                  read_images,   survey};

    if (n >= 2)
        ways[data[0] % WF_COUNT(ways)](&(input){data + 2, n - 2, data[1]});
}
