/* SPDX-License-Identifier: Apache-2.0 */
/* tests/unit/digits.c - drawn digits are the same everywhere, and files that any reader of MNIST
 * takes. */
#include "common/data/digits.h"
#include "common/base/crc32c.h"
#include "common/base/file.h"
#include "common/data/data.h"
#include "tests/unit/files.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static test_folder folder;

static int set_up(void **unused)
{
    (void)unused;
    test_folder_make(&folder);
    return 0;
}

static int tear_down(void **unused)
{
    (void)unused;
    test_folder_remove(&folder);
    return 0;
}

/* The checksum of 300 images: another compiler, processor or build must draw the same. */
static void images_are_the_same_everywhere(void **unused)
{
    uint8_t pixels[WF_DIGITS_PIXELS], label;
    uint32_t crc = 0;

    (void)unused;
    for (uint64_t i = 0; i < 300; i++) {
        label = wf_digits_draw(1, 0, i, pixels);
        crc = wf_crc32c(crc, &label, 1);
        crc = wf_crc32c(crc, pixels, sizeof pixels);
    }
    assert_int_equal(crc, 0xd1cb780a);
}

static void an_image_depends_on_seed_file_and_index_alone(void **unused)
{
    uint8_t a[WF_DIGITS_PIXELS], b[WF_DIGITS_PIXELS];

    (void)unused;
    wf_digits_draw(1, 0, 123456, a);
    wf_digits_draw(1, 0, 123455, b);
    assert_memory_not_equal(a, b, sizeof a);
    wf_digits_draw(1, 1, 123456, b);
    assert_memory_not_equal(a, b, sizeof a);
    wf_digits_draw(2, 0, 123456, b);
    assert_memory_not_equal(a, b, sizeof a);
    wf_digits_draw(1, 0, 123456, b);
    assert_memory_equal(a, b, sizeof a);
}

/* Every digit comes about as often, has ink, and has it inside: what a person would call a digit.
 */
static void every_image_shows_something_in_its_middle(void **unused)
{
    uint8_t pixels[WF_DIGITS_PIXELS];
    int counts[WF_DIGITS_CLASSES] = {0};

    (void)unused;
    for (uint64_t i = 0; i < 2000; i++) {
        uint64_t ink = 0, edge = 0;

        counts[wf_digits_draw(7, 1, i, pixels)]++;
        for (int k = 0; k < WF_DIGITS_PIXELS; k++) {
            int x = k % 28, y = k / 28;

            ink += pixels[k];
            edge += x == 0 || y == 0 || x == 27 || y == 27 ? pixels[k] : 0;
        }
        assert_in_range(ink, 3000, 90000);
        assert_true(edge * 10 < ink);
    }
    for (int d = 0; d < WF_DIGITS_CLASSES; d++)
        assert_in_range(counts[d], 140, 260);
}

static wf_bytes contents(const char *name)
{
    wf_bytes b = {0};

    assert_int_equal(wf_file_read(test_path(&folder, name), 1 << 24, &b, NULL), WF_OK);
    return b;
}

static void the_files_are_read_back_and_the_same_again(void **unused)
{
    char x[PATH_MAX], y[PATH_MAX];
    wf_field_spec fields[] = {{.name = "x", .path = x}, {.name = "y", .path = y}};
    wf_dataset_spec spec = {.format = "idx", .fields = fields, .n_fields = 2};
    uint8_t drawn[WF_DIGITS_PIXELS], read[WF_DIGITS_PIXELS], label;
    wf_bytes before, after;
    wf_dataset *d = NULL;
    uint64_t at = 129;
    wf_err err = {0};

    (void)unused;
    if (wf_digits_write(folder.path, 3, 130, 20, &err) != WF_OK)
        fail_msg("%s", err.what);
    before = contents("train-images-idx3-ubyte.gz");
    assert_int_equal(wf_digits_write(folder.path, 3, 130, 20, &err), WF_OK);
    after = contents("train-images-idx3-ubyte.gz");
    assert_int_equal(before.size, after.size);
    assert_memory_equal(before.data, after.data, after.size);
    wf_bytes_close(&before);
    wf_bytes_close(&after);

    strcpy(x, test_path(&folder, "train-images-idx3-ubyte.gz"));
    strcpy(y, test_path(&folder, "train-labels-idx1-ubyte.gz"));
    if (wf_dataset_open(&spec, &d, &err) != WF_OK)
        fail_msg("%s", err.what);
    assert_int_equal(wf_dataset_records(d), 130);
    assert_int_equal(wf_dataset_field(d, 0)->dims[1], 28);
    assert_int_equal(wf_dataset_gather(d, 0, &at, 1, read, NULL), WF_OK);
    assert_int_equal(wf_dataset_gather(d, 1, &at, 1, &label, NULL), WF_OK);
    assert_int_equal(wf_digits_draw(3, 0, at, drawn), label);
    assert_memory_equal(drawn, read, sizeof read);
    wf_dataset_free(&d);
    strcpy(x, test_path(&folder, "t10k-images-idx3-ubyte.gz"));
    strcpy(y, test_path(&folder, "t10k-labels-idx1-ubyte.gz"));
    assert_int_equal(wf_dataset_open(&spec, &d, &err), WF_OK);
    assert_int_equal(wf_dataset_records(d), 20);
    wf_dataset_free(&d);
}

static void what_cannot_be_written_is_said(void **unused)
{
    wf_err err = {0};

    (void)unused;
    assert_int_equal(wf_digits_write("/proc/nowhere", 1, 1, 1, &err), WF_NOTFOUND);
    assert_non_null(strstr(err.what, "/proc/nowhere"));
    assert_int_equal(wf_digits_write(folder.path, 1, UINT64_MAX, 1, &err), WF_INVALID);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(images_are_the_same_everywhere),
        cmocka_unit_test(an_image_depends_on_seed_file_and_index_alone),
        cmocka_unit_test(every_image_shows_something_in_its_middle),
        cmocka_unit_test(the_files_are_read_back_and_the_same_again),
        cmocka_unit_test(what_cannot_be_written_is_said),
    };

    return cmocka_run_group_tests(tests, set_up, tear_down);
}
