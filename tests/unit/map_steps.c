/* SPDX-License-Identifier: Apache-2.0 */
/* tests/unit/map_steps.c - the map steps that change numbers by the data, and those that choose
 * pixels by chance; against sums and copies that are written out. */
#include "common/base/rng.h"
#include "common/data/learnt.h"
#include "tests/unit/datasets.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#define COUNT(a) (sizeof(a) / sizeof(a)[0])
enum { RECORDS = 300, MOST = 4096 };

static float numbers[RECORDS * 64];

/* An npy file of `records` f32 records of that shape: element i is value(i). */
static const char *write_floats(const char *name, int records, const char *shape, int each,
                                float (*value)(int i))
{
    static uint8_t file[sizeof numbers + 256];
    char dict[128];

    for (int i = 0; i < records * each; i++)
        numbers[i] = value(i);
    snprintf(dict, sizeof dict, "{'descr': '<f4', 'fortran_order': False, 'shape': (%d,%s), }\n",
             records, shape);
    return test_write(&folder, name, file,
                      make_npy(file, dict, numbers, (size_t)(records * each) * sizeof(float)));
}

static float wild(int i)
{
    return 1000 + 3 * (float)(i % 5) * wf_rng_f32((wf_rng_key){8, 8}, (uint64_t)i);
}

static float counting(int i)
{
    return (float)i;
}

/* Opens one field with the steps; `spec` holds what else is wanted. */
static wf_dataset *open_steps(wf_dataset_spec spec, const char *path, const wf_map_step steps[],
                              size_t n, wf_dtype want)
{
    const wf_field_spec field = {
        .name = "x", .path = path, .steps = steps, .n_steps = n, .want = want};
    wf_dataset *d = NULL;
    wf_err err = {0};

    spec.format = "npy";
    spec.fields = &field;
    spec.n_fields = 1;
    if (wf_dataset_open(&spec, &d, &err) != WF_OK)
        fail_msg("%s", err.what);
    return d;
}

static void refuse_steps(const char *path, const wf_map_step steps[], size_t n, wf_status status,
                         const char *says)
{
    wf_dataset *d = NULL;
    wf_err err = {0};

    assert_int_equal(open_one("npy", path, steps, n, WF_NONE, &d, &err), status);
    if (!strstr(err.what, says))
        fail_msg("\"%s\" does not say \"%s\"", err.what, says);
}

/* ---- standardise ---- */

static const wf_map_step standardise = {.type = "standardise"};

/* Mean and deviation of column k of `each`, over records [first, end), in two plain passes. */
static void plain_sums(int k, int each, int step, int first, int end, double *mean, double *dev)
{
    double sum = 0, squares = 0, n = 0;

    for (int i = first * each + k; i < end * each; i += step, n++)
        sum += (double)numbers[i];
    *mean = sum / n;
    for (int i = first * each + k; i < end * each; i += step)
        squares += ((double)numbers[i] - *mean) * ((double)numbers[i] - *mean);
    *dev = sqrt(squares / n);
}

static void check_standard(const wf_dataset *d, int records, int each, int step, int first, int end,
                           int offset)
{
    double got[64];

    for (uint64_t r = 0; r < (uint64_t)records; r++) {
        assert_int_equal(wf_dataset_gather(d, 0, &r, 1, got, NULL), WF_OK);
        for (int k = 0; k < each; k++) {
            double mean, dev, want;

            plain_sums(step == 1 ? 0 : k, each, step, first, end, &mean, &dev);
            want = ((double)numbers[(offset + (int)r) * each + k] - mean) / (dev > 0 ? dev : 1);
            if (fabs(got[k] - want) > 1e-9)
                fail_msg("record %d, column %d: %.12g, not %.12g", (int)r, k, got[k], want);
        }
    }
}

static void columns_of_a_row_are_standardised_by_themselves(void **state)
{
    wf_map_step steps[] = {{.type = "cast", .text = "float64"}, standardise};
    wf_dataset *d = open_steps((wf_dataset_spec){0}, write_floats("r.npy", RECORDS, "5", 5, wild),
                               steps, 2, WF_F64);

    (void)state;
    check_standard(d, RECORDS, 5, 5, 0, RECORDS, 0); /* column 0 is constant */
    wf_dataset_free(&d);
}

static void an_image_is_standardised_as_a_whole(void **state)
{
    wf_map_step steps[] = {{.type = "cast", .text = "float64"}, standardise};
    wf_dataset *d = open_steps((wf_dataset_spec){0},
                               write_floats("i.npy", RECORDS, "3,4", 12, wild), steps, 2, WF_F64);

    (void)state;
    check_standard(d, RECORDS, 12, 1, 0, RECORDS, 0);
    wf_dataset_free(&d);
}

static void what_is_held_out_takes_the_numbers_of_the_rest(void **state)
{
    wf_map_step steps[] = {{.type = "cast", .text = "float64"}, standardise};
    const char *path = write_floats("h.npy", RECORDS, "5", 5, wild);
    wf_field_spec field = {.name = "x", .path = path, .steps = steps, .n_steps = 2, .want = WF_F64};
    wf_dataset_spec train = {.format = "npy", .fields = &field, .n_fields = 1, .held_out = 0.2};
    wf_dataset_spec eval = train;
    wf_dataset *d = NULL;

    (void)state;
    assert_int_equal(wf_dataset_open(&train, &d, NULL), WF_OK);
    check_standard(d, 240, 5, 5, 0, 240, 0);
    wf_dataset_free(&d);
    eval.is_held_out = true;
    eval.reference = &train;
    assert_int_equal(wf_dataset_open(&eval, &d, NULL), WF_OK);
    check_standard(d, 60, 5, 5, 0, 240, 240);
    wf_dataset_free(&d);
}

static float with_nan(int i)
{
    return i % 7 == 3 ? NAN : (float)(i % 11);
}

static void numbers_that_are_none_are_filled_or_named(void **state)
{
    const char *path = write_floats("n.npy", RECORDS, "4", 4, with_nan);
    wf_map_step steps[] = {{.type = "fill", .number = 2.5}, standardise};
    float row[4];
    wf_dataset *d;

    (void)state;
    refuse_steps(path, &standardise, 1, WF_INVALID, "of \"x\" holds NaN or infinity");
    d = open_steps((wf_dataset_spec){0}, path, steps, 1, WF_F32);
    for (uint64_t r = 0; r < RECORDS; r++) {
        assert_int_equal(wf_dataset_gather(d, 0, &r, 1, row, NULL), WF_OK);
        for (int k = 0; k < 4; k++) {
            float x = with_nan((int)r * 4 + k);

            assert_true(row[k] == (isnan(x) ? 2.5f : x));
        }
    }
    wf_dataset_free(&d);
    d = open_steps((wf_dataset_spec){0}, path, steps, 2, WF_F32);
    wf_dataset_free(&d);
}

/* ---- one by one ---- */

static void logarithms_and_hashes(void **state)
{
    static const int32_t ids[] = {0, 1, 2, -1, 1000000, INT32_MAX, INT32_MIN, 1};
    wf_map_step log1p_step = {.type = "log1p"}, hash = {.type = "hash", .number = 97};
    const char *path = write_floats("l.npy", 50, "", 1, counting);
    uint64_t at[8] = {0, 1, 2, 3, 4, 5, 6, 7};
    int64_t hashed[8], again[8];
    uint8_t file[256];
    float logs[8];
    wf_dataset *d;

    (void)state;
    d = open_steps((wf_dataset_spec){0}, path, &log1p_step, 1, WF_F32);
    assert_int_equal(wf_dataset_gather(d, 0, at, 8, logs, NULL), WF_OK);
    for (int i = 0; i < 8; i++)
        assert_true(logs[i] == (float)log1p(i));
    wf_dataset_free(&d);
    refuse_steps(path, &hash, 1, WF_SHAPE, "hash: takes integers, the field holds float32");

    path = test_write(
        &folder, "ids.npy", file,
        make_npy(file, "{'descr': '<i4', 'fortran_order': False, 'shape': (8,), }\n", ids, 32));
    for (int round = 0; round < 2; round++) {
        d = open_steps((wf_dataset_spec){.seed = (uint64_t)round}, path, &hash, 1, WF_I64);
        assert_int_equal(wf_dataset_gather(d, 0, at, 8, round ? again : hashed, NULL), WF_OK);
        assert_int_equal(wf_dataset_check_labels(d, 0, 97, NULL), WF_OK);
        assert_int_equal(wf_dataset_check_labels(d, 0, 96, NULL), WF_INVALID);
        wf_dataset_free(&d);
    }
    assert_memory_equal(hashed, again, sizeof hashed); /* whatever the seed */
    assert_int_equal(hashed[1], hashed[7]);
    for (int i = 0; i < 8; i++)
        assert_in_range(hashed[i], 0, 96);
    refuse_steps(path, &(wf_map_step){.type = "fill"}, 1, WF_SHAPE, "fill: int32 has no missing");
}

/* Without bins: each column by itself, or all alike. */
static void hashes_without_bins_hardly_ever_clash(void **state)
{
    enum { ROWS = 2000, COLUMNS = 3 };
    static int64_t rows[ROWS][COLUMNS], got[2][ROWS][COLUMNS];
    static uint64_t at[ROWS];
    static uint8_t file[sizeof rows + 256];
    const char *path;

    (void)state;
    for (int i = 0; i < ROWS; i++) {
        at[i] = (uint64_t)i;
        for (int k = 0; k < COLUMNS; k++)
            rows[i][k] = i - ROWS / 2;
    }
    path = test_write(&folder, "wide.npy", file,
                      make_npy(file,
                               "{'descr': '<i8', 'fortran_order': False, 'shape': (2000, 3), }\n",
                               rows, sizeof rows));
    for (int separate = 0; separate < 2; separate++) {
        wf_map_step hash = {.type = "hash", .text = separate ? "separate" : NULL};
        wf_dataset *d = open_steps((wf_dataset_spec){0}, path, &hash, 1, WF_I64);

        assert_int_equal(wf_dataset_gather(d, 0, at, ROWS, got[separate], NULL), WF_OK);
        wf_dataset_free(&d);
    }
    for (int i = 0; i < ROWS; i++) {
        assert_true(got[0][i][0] >= 0 && got[1][i][2] >= 0);
        assert_int_equal(got[0][i][0], got[0][i][2]);
        assert_true(got[1][i][0] != got[1][i][1] && got[1][i][1] != got[1][i][2]);
        for (int k = 0; k < i; k++)
            assert_true(got[0][i][0] != got[0][k][0]);
    }
}

static void numbers_are_clipped(void **state)
{
    static const double bounds[] = {2, 4}, wrong[] = {4, 2};
    static const float between[6] = {2, 2, 2, 3, 4, 4}, above[6] = {2, 2, 2, 3, 4, 5};
    wf_map_step clip = {.type = "clip", .numbers = bounds, .n_numbers = 2};
    const char *path = write_floats("k.npy", 6, "", 1, counting);
    float got[6];
    wf_dataset *d;

    (void)state;
    for (; clip.n_numbers; clip.n_numbers--) {
        d = open_steps((wf_dataset_spec){0}, path, &clip, 1, WF_F32);
        assert_int_equal(wf_dataset_gather(d, 0, (uint64_t[]){0, 1, 2, 3, 4, 5}, 6, got, NULL),
                         WF_OK);
        assert_memory_equal(got, clip.n_numbers == 2 ? between : above, sizeof got);
        wf_dataset_free(&d);
    }
    refuse_steps(path, &clip, 1, WF_USAGE, "clip: takes the least number");
    clip = (wf_map_step){.type = "clip", .numbers = wrong, .n_numbers = 2};
    refuse_steps(path, &clip, 1, WF_USAGE, "clip: takes the least number");
}

/* ---- crop and flip ---- */

/* Gathers one record in an epoch. */
static void get(const wf_dataset *d, uint64_t epoch, uint64_t r, void *out)
{
    assert_int_equal(wf_dataset_gather_in(d, 0, epoch, &r, 1, out, NULL), WF_OK);
}

static void a_crop_of_an_evaluation_is_the_middle(void **state)
{
    static const int64_t size[] = {2, 3};
    wf_map_step crop = {.type = "crop", .ints = size, .n_ints = 2};
    static const struct {
        const char *shape;
        int each, planes, channels;
    } rows[] = {{"6,7", 42, 1, 1}, {"6,7,1", 42, 1, 1}, {"6,5,2", 60, 1, 2}, {"3,6,5", 90, 3, 1}};
    float out[64];

    (void)state;
    for (size_t i = 0; i < COUNT(rows) - 1; i++) {
        int width = rows[i].each / 6 / rows[i].channels, c = rows[i].channels;
        wf_dataset *d = open_steps((wf_dataset_spec){0},
                                   write_floats("c.npy", 2, rows[i].shape, rows[i].each, counting),
                                   &crop, 1, WF_F32);

        get(d, 4, 1, out);
        for (int y = 0; y < 2; y++)
            for (int x = 0; x < 3; x++)
                for (int k = 0; k < c; k++)
                    assert_true(
                        out[(y * 3 + x) * c + k] ==
                        (float)(rows[i].each + ((y + 2) * width + x + (width - 3) / 2) * c + k));
        wf_dataset_free(&d);
    }
}

static void planes_are_cropped_alike(void **state)
{
    static const int64_t size[] = {2};
    wf_map_step steps[] = {{.type = "reshape", .ints = (int64_t[]){3, 6, 5}, .n_ints = 3},
                           {.type = "crop", .ints = size, .n_ints = 1}};
    float out[12], flat[64];
    wf_dataset *d = open_steps((wf_dataset_spec){0}, write_floats("p.npy", 2, "30", 30, counting),
                               steps, 0, WF_F32);

    (void)state;
    get(d, 0, 0, flat);
    wf_dataset_free(&d);
    refuse_steps(folder.file, steps, 2, WF_SHAPE, "does not fit");
    d = open_steps((wf_dataset_spec){0}, write_floats("p.npy", 1, "90", 90, counting), steps, 2,
                   WF_F32);
    assert_int_equal(wf_dataset_field(d, 0)->dims[1], 2);
    get(d, 0, 0, out);
    for (int p = 0; p < 3; p++)
        for (int y = 0; y < 2; y++)
            for (int x = 0; x < 2; x++)
                assert_true(out[(p * 2 + y) * 2 + x] == (float)(p * 30 + (y + 2) * 5 + x + 1));
    wf_dataset_free(&d);
}

/* Every place of the padded image comes up, with zeros where the image is not, about as often. */
static void a_crop_of_training_is_anywhere(void **state)
{
    static const int64_t size[] = {3, 3};
    wf_map_step crop = {.type = "crop", .ints = size, .n_ints = 2, .number = 1};
    const char *path = write_floats("t.npy", 1, "3,3", 9, counting);
    wf_dataset *d =
        open_steps((wf_dataset_spec){.is_random = true, .seed = 5}, path, &crop, 1, WF_F32);
    int seen[9] = {0};
    float out[9];

    (void)state;
    for (uint64_t epoch = 0; epoch < 900; epoch++) {
        bool found = false;

        get(d, epoch, 0, out);
        for (int place = 0; place < 9 && !found; place++) {
            int down = place / 3 - 1, right = place % 3 - 1;

            found = true;
            for (int y = 0; y < 3; y++)
                for (int x = 0; x < 3; x++) {
                    int from_y = y + down, from_x = x + right;
                    bool inside = from_y >= 0 && from_y < 3 && from_x >= 0 && from_x < 3;

                    found =
                        found && out[y * 3 + x] == (inside ? (float)(from_y * 3 + from_x) : 0.0f);
                }
            seen[place] += found;
        }
        assert_true(found);
    }
    for (int place = 0; place < 9; place++)
        assert_in_range(seen[place], 60, 140); /* 100 of 900; 4 deviations are 38 */
    wf_dataset_free(&d);
}

static void half_of_the_images_are_flipped(void **state)
{
    static const char *const directions[] = {"horizontal", "vertical", NULL};
    const char *path = write_floats("f.npy", 200, "3,3,2", 18, counting);
    float out[18];

    (void)state;
    for (int k = 0; k < 3; k++) {
        wf_map_step flip = {.type = "flip", .text = directions[k]};
        wf_dataset *train =
            open_steps((wf_dataset_spec){.is_random = true}, path, &flip, 1, WF_F32);
        wf_dataset *eval = open_steps((wf_dataset_spec){0}, path, &flip, 1, WF_F32);
        int flipped = 0;

        for (uint64_t r = 0; r < 200; r++) {
            bool is_flipped;

            get(eval, 1, r, out);
            assert_memory_equal(out, numbers + r * 18, sizeof out);
            get(train, 1, r, out);
            is_flipped = out[0] != numbers[r * 18];
            flipped += is_flipped;
            for (int y = 0; y < 3; y++)
                for (int x = 0; x < 3; x++)
                    for (int c = 0; c < 2; c++) {
                        int from_y = is_flipped && k == 1 ? 2 - y : y;
                        int from_x = is_flipped && k != 1 ? 2 - x : x;

                        assert_true(out[(y * 3 + x) * 2 + c] ==
                                    numbers[r * 18 + (uint64_t)((from_y * 3 + from_x) * 2 + c)]);
                    }
        }
        assert_in_range(flipped, 70, 130);
        wf_dataset_free(&train);
        wf_dataset_free(&eval);
    }
}

/* The same record of the same epoch is the same, in whatever batch and data set it is read. */
static void chance_is_of_seed_epoch_and_record(void **state)
{
    static const int64_t size[] = {4, 4};
    wf_map_step steps[] = {{.type = "crop", .ints = size, .n_ints = 2, .number = 2},
                           {.type = "flip"},
                           {.type = "flip", .text = "vertical"}};
    const char *path = write_floats("s.npy", 100, "6,6", 36, counting);
    wf_dataset *a = open_steps((wf_dataset_spec){.is_random = true}, path, steps, 3, WF_F32);
    wf_dataset *b = open_steps((wf_dataset_spec){.is_random = true}, path, steps, 3, WF_F32);
    wf_dataset *other =
        open_steps((wf_dataset_spec){.is_random = true, .seed = 1}, path, steps, 3, WF_F32);
    static float all[100 * 16], one[16];
    uint64_t at[100];
    int same_epoch = 0, same_seed = 0;

    (void)state;
    for (uint64_t i = 0; i < 100; i++)
        at[i] = 99 - i;
    assert_int_equal(wf_dataset_gather_in(a, 0, 3, at, 100, all, NULL), WF_OK);
    for (uint64_t i = 0; i < 100; i++) {
        get(b, 3, 99 - i, one);
        assert_memory_equal(one, all + 16 * i, sizeof one);
        get(b, 4, 99 - i, one);
        same_epoch += memcmp(one, all + 16 * i, sizeof one) == 0;
        get(other, 3, 99 - i, one);
        same_seed += memcmp(one, all + 16 * i, sizeof one) == 0;
    }
    assert_true(same_epoch < 15 && same_seed < 15);
    wf_dataset_free(&a);
    wf_dataset_free(&b);
    wf_dataset_free(&other);
}

static float around(int i)
{
    static const float values[] = {-1, 0, 0.5f, 0.7f, 1, 9.999f, 10, 1e9f, -INFINITY, INFINITY};

    return i % 11 == 10 ? (float)NAN : values[i % 11];
}

/* Numpy's digitize: the boundaries that are not above the number. */
static void buckets_begin_at_their_boundaries(void **state)
{
    static const double boundaries[] = {0, 0.7, 10};
    static const int64_t want[] = {0, 1, 1, 2, 2, 2, 3, 3, 0, 3, 3};
    const wf_map_step step = {.type = "bucketise", .numbers = boundaries, .n_numbers = 3};
    const wf_map_step after[] = {
        {.type = "scale", .number = 1}, step, {.type = "one_hot", .number = 4}};
    wf_dataset *d = open_steps((wf_dataset_spec){0}, write_floats("u.npy", 11, "1", 1, around),
                               &step, 1, WF_I64);
    float row[4];
    int64_t got;

    (void)state;
    for (uint64_t r = 0; r < 11; r++) {
        assert_int_equal(wf_dataset_gather(d, 0, &r, 1, &got, NULL), WF_OK);
        assert_int_equal(got, want[r]);
    }
    wf_dataset_free(&d);
    d = open_steps((wf_dataset_spec){0}, write_floats("u.npy", 11, "1", 1, around), after, 3,
                   WF_F32);
    for (uint64_t r = 0; r < 11; r++) {
        assert_int_equal(wf_dataset_gather(d, 0, &r, 1, row, NULL), WF_OK);
        for (int k = 0; k < 4; k++)
            assert_true(row[k] == (k == want[r]));
    }
    wf_dataset_free(&d);
}

static void boundaries_that_do_not_ascend_are_refused(void **state)
{
    static const double falling[] = {1, 1}, endless[] = {0, INFINITY};
    const char *path = write_floats("w.npy", 2, "3", 3, counting);

    (void)state;
    refuse_steps(path, &(wf_map_step){.type = "bucketise"}, 1, WF_USAGE, "0 boundaries; 1 to 4096");
    refuse_steps(path, &(wf_map_step){.type = "bucketise", .numbers = falling, .n_numbers = 2}, 1,
                 WF_USAGE, "boundary 2 is 1");
    refuse_steps(path, &(wf_map_step){.type = "bucketise", .numbers = endless, .n_numbers = 2}, 1,
                 WF_USAGE, "boundary 2 is inf");
}

/* Against ONNX's Resize, linear and half_pixel, by hand: the middle of the first of two pixels from
 * four is at 0.5, that of the first of eight at -0.25. */
static void arrays_of_images_are_resized(void **state)
{
    static const int64_t down[] = {1, 2}, up[] = {2, 8}, one[] = {3};
    static const float wide[] = {0, 0.25f, 0.75f, 1.25f, 1.75f, 2.25f, 2.75f, 3};
    wf_map_step step = {.type = "resize", .ints = down, .n_ints = 2};
    const wf_map_step late[] = {{.type = "log1p"}, step};
    const char *path = write_floats("r1.npy", 2, "2,4", 8, counting);
    wf_dataset *d = open_steps((wf_dataset_spec){0}, path, &step, 1, WF_F32);
    float got[16];

    (void)state;
    get(d, 0, 1, got); /* of 8 to 11 above 12 to 15 */
    assert_true(got[0] == 10.5f && got[1] == 12.5f);
    wf_dataset_free(&d);
    step.ints = up;
    d = open_steps((wf_dataset_spec){0}, path, &step, 1, WF_F32);
    get(d, 0, 0, got);
    for (int i = 0; i < 16; i++)
        assert_true(got[i] == wide[i % 8] + (i < 8 ? 0 : 4));
    wf_dataset_free(&d);
    refuse_steps(path, late, 2, WF_USAGE, "resize: images are resized as they are read");
    refuse_steps(path, &(wf_map_step){.type = "resize", .ints = one, .n_ints = 1}, 1, WF_USAGE,
                 "a height and a width are wanted");
    step.ints = down;
    refuse_steps(write_floats("r2.npy", 2, "4", 4, counting), &step, 1, WF_SHAPE,
                 "is [4], which is no image");
}

/* The numbers of one data set, kept and given to the steps of another. */
static void numbers_that_were_learnt_are_given(void **state)
{
    wf_map_step steps[] = {{.type = "cast", .text = "float64"}, standardise};
    wf_dataset *d = open_steps((wf_dataset_spec){0}, write_floats("l.npy", RECORDS, "5", 5, wild),
                               steps, 2, WF_F64);
    double first[5], again[5], other[5];
    wf_learnt rows[WF_LEARNT_MOST];
    wf_learnt_list kept = {0};
    uint64_t digest = wf_dataset_digest(d);
    wf_err err = {0};

    (void)state;
    get(d, 0, 7, first);
    assert_int_equal(wf_learnt_keep(rows, wf_dataset_learnt(d, rows), &kept, NULL), WF_OK);
    wf_dataset_free(&d);
    assert_int_equal(kept.n, 1);
    assert_string_equal(kept.rows[0].field, "x");
    assert_int_equal(kept.rows[0].step, 1);
    assert_int_equal(kept.rows[0].dtype, WF_F32);
    assert_int_equal(kept.rows[0].dims[0], 5);
    assert_int_equal(kept.rows[0].n_numbers, 10);
    assert_int_equal(wf_learnt_give(kept.rows, 1, "y", steps, 2, NULL), WF_OK);
    assert_int_equal(steps[1].n_numbers, 0);
    assert_int_equal(wf_learnt_give(kept.rows, 1, "x", steps, 1, &err), WF_MISMATCH);
    assert_int_equal(wf_learnt_give(kept.rows, 1, "x", steps, 2, NULL), WF_OK);
    refuse_steps(write_floats("n.npy", 9, "4", 4, wild), steps, 2, WF_SHAPE,
                 "standardise: 4 columns, and 5 in the training data");

    /* A record alone has no deviation of its own. */
    d = open_steps((wf_dataset_spec){0}, write_floats("o.npy", 1, "5", 5, counting), steps, 2,
                   WF_F64);
    get(d, 0, 0, other);
    for (int k = 0; k < 5; k++)
        assert_true(other[k] == (k - kept.rows[0].numbers[k]) / kept.rows[0].numbers[5 + k]);
    wf_dataset_free(&d);
    d = open_steps((wf_dataset_spec){0}, write_floats("l.npy", RECORDS, "5", 5, wild), steps, 2,
                   WF_F64);
    get(d, 0, 7, again);
    assert_memory_equal(first, again, sizeof first);
    assert_true(wf_dataset_digest(d) == digest); /* the same records, and the same numbers */
    wf_dataset_free(&d);
    ((double *)kept.rows[0].numbers)[0] += 1;
    d = open_steps((wf_dataset_spec){0}, write_floats("l.npy", RECORDS, "5", 5, wild), steps, 2,
                   WF_F64);
    assert_true(wf_dataset_digest(d) != digest);
    wf_dataset_free(&d);
    wf_learnt_close(&kept);
}

static void steps_that_do_not_fit_are_told(void **state)
{
    static const int64_t size[] = {4, 4}, none[] = {0};
    const wf_map_step crop = {.type = "crop", .ints = size, .n_ints = 2};
    const char *path = write_floats("b.npy", 2, "3,3", 9, counting);
    char row[PATH_MAX];

    (void)state;
    refuse_steps(path, &crop, 1, WF_SHAPE, "crop: 4 x 4 out of 3 x 3");
    refuse_steps(path, (wf_map_step[]){standardise, crop}, 2, WF_USAGE, "crop: after standardise");
    refuse_steps(path, &(wf_map_step){.type = "crop", .ints = none, .n_ints = 1}, 1, WF_USAGE,
                 "height and width are wanted");
    refuse_steps(path,
                 &(wf_map_step){.type = "crop", .ints = size, .n_ints = 1, .number = 0.0 / 0.0}, 1,
                 WF_USAGE, "a padding of");
    refuse_steps(path, &(wf_map_step){.type = "crop", .ints = size, .n_ints = 1, .number = 9}, 1,
                 WF_USAGE, "from 0 to 3");
    strcpy(row, write_floats("v.npy", 2, "9", 9, counting));
    refuse_steps(row, &(wf_map_step){.type = "flip"}, 1, WF_SHAPE, "is [9], which is no image");
    refuse_steps(row, &(wf_map_step){.type = "hash", .number = 1.5}, 1, WF_USAGE, "hash: 1.5 bins");
    refuse_steps(row, &(wf_map_step){.type = "standardize"}, 1, WF_USAGE,
                 "did you mean \"standardise\"?");
    refuse_steps(write_floats("q.npy", 2, "3,3,3", 27, counting), &(wf_map_step){.type = "flip"}, 1,
                 WF_SHAPE, "is [3, 3, 3], which is no image");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(columns_of_a_row_are_standardised_by_themselves),
        cmocka_unit_test(an_image_is_standardised_as_a_whole),
        cmocka_unit_test(what_is_held_out_takes_the_numbers_of_the_rest),
        cmocka_unit_test(numbers_that_are_none_are_filled_or_named),
        cmocka_unit_test(logarithms_and_hashes),
        cmocka_unit_test(hashes_without_bins_hardly_ever_clash),
        cmocka_unit_test(numbers_are_clipped),
        cmocka_unit_test(a_crop_of_an_evaluation_is_the_middle),
        cmocka_unit_test(planes_are_cropped_alike),
        cmocka_unit_test(a_crop_of_training_is_anywhere),
        cmocka_unit_test(half_of_the_images_are_flipped),
        cmocka_unit_test(chance_is_of_seed_epoch_and_record),
        cmocka_unit_test(buckets_begin_at_their_boundaries),
        cmocka_unit_test(boundaries_that_do_not_ascend_are_refused),
        cmocka_unit_test(arrays_of_images_are_resized),
        cmocka_unit_test(numbers_that_were_learnt_are_given),
        cmocka_unit_test(steps_that_do_not_fit_are_told),
    };

    return cmocka_run_group_tests(tests, set_up, tear_down);
}
