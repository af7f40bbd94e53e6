/* SPDX-License-Identifier: Apache-2.0 */
/* tests/unit/images.c - folders of PNG and JPEG files: their pixels and classes, and files that are
 * damaged, cut, or claim too much. */
#include "common/data/image.h"
#include "tests/unit/datasets.h"

#include <png.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

#include <jpeglib.h>

enum { H = 5, W = 7, PIXELS = H * W * 3 };
static char root[PATH_MAX];

static uint8_t shade(int file, int i)
{
    return (uint8_t)(file * 50 + i * 2);
}

static const char *in_folder(const char *class, const char *name)
{
    static char path[2 * PATH_MAX];

    snprintf(path, sizeof path, "%s/%s", root, class);
    mkdir(path, 0777);
    snprintf(path, sizeof path, "%s/%s/%s", root, class, name);
    return path;
}

static void write_png(const char *path, int file, int height, uint32_t format)
{
    uint8_t pixels[4 * PIXELS];
    png_image image = {
        .version = PNG_IMAGE_VERSION, .width = W, .height = (png_uint_32)height, .format = format};

    for (int i = 0; i < (int)PNG_IMAGE_SIZE(image); i++)
        pixels[i] = shade(file, i);
    assert_true(png_image_write_to_file(&image, path, 0, pixels, 0, NULL));
}

/* A grey JPEG of one shade, which its compression keeps. */
static void write_jpeg(const char *path, uint8_t value)
{
    struct jpeg_compress_struct out;
    struct jpeg_error_mgr handlers;
    uint8_t row[W];
    JSAMPROW rows[] = {row};
    FILE *f = fopen(path, "wb");

    assert_non_null(f);
    memset(row, value, sizeof row);
    out.err = jpeg_std_error(&handlers);
    jpeg_create_compress(&out);
    jpeg_stdio_dest(&out, f);
    out.image_width = W;
    out.image_height = H;
    out.input_components = 1;
    out.in_color_space = JCS_GRAYSCALE;
    jpeg_set_defaults(&out);
    jpeg_set_quality(&out, 100, TRUE);
    jpeg_start_compress(&out, TRUE);
    for (int y = 0; y < H; y++)
        jpeg_write_scanlines(&out, rows, 1);
    jpeg_finish_compress(&out);
    jpeg_destroy_compress(&out);
    fclose(f);
}

static void begin_folder(const char *name)
{
    snprintf(root, sizeof root, "%s/%s", folder.path, name);
    assert_int_equal(mkdir(root, 0777), 0);
}

static wf_dataset *open_folder(wf_err *err)
{
    static char classes[PATH_MAX + 8];
    wf_field_spec fields[] = {{.name = "x", .path = root, .want = WF_NONE},
                              {.name = "y", .path = classes, .want = WF_I64}};
    wf_dataset *d = NULL;

    snprintf(classes, sizeof classes, "%s#class", root);
    if (wf_dataset_open(&(wf_dataset_spec){.format = "images", .fields = fields, .n_fields = 2}, &d,
                        err) != WF_OK)
        assert_null(d);
    return d;
}

static void expect_bad(wf_status status, const char *says)
{
    wf_err err = {0};

    assert_null(open_folder(&err));
    assert_int_equal(err.status, status);
    if (!strstr(err.what, says))
        fail_msg("\"%s\" does not say \"%s\"", err.what, says);
}

static void images_lie_class_by_class(void **state)
{
    uint8_t out[PIXELS];
    wf_err err = {0};
    wf_dataset *d;

    (void)state;
    begin_folder("a");
    write_png(in_folder("zebra", "1.png"), 2, H, PNG_FORMAT_RGB);
    write_png(in_folder("ant", "b.PNG"), 1, H, PNG_FORMAT_GRAY);
    write_jpeg(in_folder("ant", "a.jpeg"), 77);
    fclose(fopen(in_folder("ant", "notes.txt"), "w"));
    fclose(fopen(in_folder("ant", ".hidden.png"), "w"));
    in_folder(".git", "x");
    d = open_folder(&err);
    if (!d)
        fail_msg("%s", err.what);
    assert_int_equal(wf_dataset_records(d), 3);
    assert_int_equal(wf_dataset_field(d, 0)->rank, 3);
    assert_int_equal(wf_dataset_field(d, 0)->dims[0], H);
    assert_int_equal(wf_dataset_field(d, 0)->dims[1], W);
    assert_int_equal(wf_dataset_field(d, 0)->dims[2], 3); /* one has colours */
    for (uint64_t i = 0; i < 3; i++) {
        int64_t label;

        assert_int_equal(wf_dataset_gather(d, 1, &i, 1, &label, NULL), WF_OK);
        assert_int_equal(label, i == 2);
        assert_int_equal(wf_dataset_gather(d, 0, &i, 1, out, NULL), WF_OK);
        for (int k = 0; k < PIXELS; k++)
            assert_int_equal(out[k], i == 0 ? 77 : i == 1 ? shade(1, k / 3) : shade(2, k));
    }
    wf_dataset_free(&d);
}

static void grey_images_have_one_channel(void **state)
{
    wf_err err = {0};
    wf_dataset *d;

    (void)state;
    begin_folder("g");
    write_png(in_folder("one", "1.png"), 1, H, PNG_FORMAT_GRAY);
    write_jpeg(in_folder("two", "2.jpg"), 9);
    d = open_folder(&err);
    assert_non_null(d);
    assert_int_equal(wf_dataset_field(d, 0)->dims[2], 1);
    wf_dataset_free(&d);
}

static void transparent_pixels_lie_on_black(void **state)
{
    uint8_t out[PIXELS];
    wf_image as;
    png_image image = {
        .version = PNG_IMAGE_VERSION, .width = W, .height = H, .format = PNG_FORMAT_RGBA};
    uint8_t pixels[H * W * 4];

    (void)state;
    for (int i = 0; i < H * W * 4; i++)
        pixels[i] = i % 4 == 3 ? (i % 8 == 3 ? 0 : 255) : 200; /* every second one is clear */
    begin_folder("t");
    assert_true(png_image_write_to_file(&image, in_folder("c", "1.png"), 0, pixels, 0, NULL));
    assert_int_equal(wf_image_look(in_folder("c", "1.png"), &as, NULL), WF_OK);
    assert_int_equal(as.channels, 3);
    assert_int_equal(wf_image_read(in_folder("c", "1.png"), &as, out, NULL), WF_OK);
    for (int i = 0; i < PIXELS; i++)
        assert_int_equal(out[i], i / 3 % 2 ? 200 : 0);
}

static void folders_that_are_no_classes_are_told(void **state)
{
    wf_err err = {0};

    (void)state;
    begin_folder("e");
    expect_bad(WF_INVALID, "holds no folders, one for each class");
    in_folder("empty", "x");
    expect_bad(WF_INVALID, "empty holds no PNG or JPEG files");
    write_png(in_folder("empty", "1.png"), 1, H, PNG_FORMAT_RGB);
    write_png(in_folder("other", "2.png"), 1, H - 1, PNG_FORMAT_RGB);
    expect_bad(WF_INVALID, "other/2.png has 4 x 7 pixels, ");
    test_write(&folder, "e/other/2.png", "text", 4);
    expect_bad(WF_INVALID, "other/2.png is no PNG or JPEG file");
    snprintf(root, sizeof root, "%s/e/other/2.png", folder.path);
    expect_bad(WF_INVALID, "is a file, not a folder");
    snprintf(root, sizeof root, "%s/none", folder.path);
    assert_null(open_folder(&err));
    snprintf(root, sizeof root, "%s/e#colour", folder.path);
    expect_refused("images", root, WF_USAGE, "images have no \"#colour\"");
}

static size_t read_file(const char *path, uint8_t out[], size_t room)
{
    FILE *f = fopen(path, "rb");
    size_t n;

    assert_non_null(f);
    n = fread(out, 1, room, f);
    fclose(f);
    return n;
}

/* Every cut is refused, and every flip of a bit is read or refused with a sentence. */
static void check_damage(const char *path)
{
    static uint8_t file[65536], other[65536];
    uint8_t out[PIXELS];
    size_t n = read_file(path, file, sizeof file);
    wf_image as;
    wf_err err;

    assert_int_equal(wf_image_look(path, &as, NULL), WF_OK);
    assert_int_equal(wf_image_read(path, &as, out, NULL), WF_OK);
    for (size_t k = 0; k + 12 < n; k++) { /* the last bytes say no more than that it ends */
        const char *cut = test_write(&folder, "cut", file, k);

        err = (wf_err){0};
        if (wf_image_read(cut, &as, out, &err) == WF_OK && k + 40 < n)
            fail_msg("%zu of %zu bytes of %s are an image", k, n, path);
    }
    for (size_t bit = 0; bit < 8 * n; bit += 5) {
        const char *flipped;
        wf_image has = {0};

        memcpy(other, file, n);
        other[bit / 8] ^= (uint8_t)(1u << bit % 8);
        flipped = test_write(&folder, "flip", other, n);
        err = (wf_err){0};
        if (wf_image_look(flipped, &has, &err) == WF_OK && has.height == as.height &&
            has.width == as.width && wf_image_read(flipped, &as, out, &err) == WF_OK)
            continue;
        assert_true(err.what[0] || has.height != as.height || has.width != as.width);
    }
}

static void damaged_files_never_do_harm(void **state)
{
    char path[PATH_MAX];

    (void)state;
    begin_folder("d");
    strcpy(path, in_folder("c", "1.png"));
    write_png(path, 1, H, PNG_FORMAT_RGB);
    check_damage(path);
    strcpy(path, in_folder("c", "1.jpg"));
    write_jpeg(path, 100);
    check_damage(path);
}

static void put_u32(uint8_t *at, uint32_t value)
{
    for (int i = 0; i < 4; i++)
        at[i] = (uint8_t)(value >> (24 - 8 * i));
}

/* A header of a few bytes may not cost gigabytes. */
static void what_a_header_claims_is_bounded(void **state)
{
    static uint8_t file[4096];
    char path[PATH_MAX];
    static const uint32_t sides[][2] = {{100000, 1}, {16384, 16384}, {8000, 8000}};
    wf_image as;
    wf_err err;
    size_t n;

    (void)state;
    begin_folder("h");
    strcpy(path, in_folder("c", "1.png"));
    write_png(path, 1, H, PNG_FORMAT_GRAY);
    n = read_file(path, file, sizeof file);
    for (size_t i = 0; i < 3; i++) {
        put_u32(file + 16, sides[i][0]); /* in IHDR, which begins at 12 */
        put_u32(file + 20, sides[i][1]);
        put_u32(file + 29, (uint32_t)crc32(0, file + 12, 17));
        err = (wf_err){0};
        assert_int_equal(wf_image_look(test_write(&folder, "claim.png", file, n), &as, &err),
                         WF_INVALID);
        assert_non_null(strstr(err.what, "claims"));
    }
    strcpy(path, in_folder("c", "1.jpg"));
    write_jpeg(path, 100);
    n = read_file(path, file, sizeof file);
    for (size_t k = 0; k + 8 < n; k++)
        if (file[k] == 0xFF && file[k + 1] == 0xC0) { /* SOF0: length, precision, height, width */
            file[k + 5] = file[k + 7] = 0xFF;
            break;
        }
    err = (wf_err){0};
    assert_int_equal(wf_image_look(test_write(&folder, "claim.jpg", file, n), &as, &err),
                     WF_INVALID);
    assert_non_null(strstr(err.what, "pixels; at most"));
}

static int clean(void **unused)
{
    char command[PATH_MAX];

    (void)unused;
    snprintf(command, sizeof command, "rm -rf '%s'", folder.path); /* of mkdtemp */
    return system(command);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(images_lie_class_by_class),
        cmocka_unit_test(grey_images_have_one_channel),
        cmocka_unit_test(transparent_pixels_lie_on_black),
        cmocka_unit_test(folders_that_are_no_classes_are_told),
        cmocka_unit_test(damaged_files_never_do_harm),
        cmocka_unit_test(what_a_header_claims_is_bounded),
    };

    return cmocka_run_group_tests(tests, set_up, clean);
}
