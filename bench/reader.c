/* SPDX-License-Identifier: Apache-2.0 */
/* bench/reader.c - what a batch costs the thread that trains, by how far a reader works ahead.
 *
 * 60,000 drawn digits, u8 to f32, shuffled. Between batches the trainer is busy for `step` us, as
 * if it computed. Depth 0 has no thread: its figure is what gathering costs.
 */
#include "common/data/reader.h"
#include "common/base/clock.h"
#include "common/data/digits.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum { RECORDS = 60000 };

static void die(const wf_err *err)
{
    fprintf(stderr, "%s\n", err->what);
    exit(1);
}

/* Draws the images into a folder of its own and reads them back. */
static wf_dataset *make_data(void)
{
    static const int64_t flat[] = {WF_DIGITS_PIXELS};
    const wf_map_step steps[] = {{.type = "scale", .number = 1.0 / 255},
                                 {.type = "reshape", .ints = flat, .n_ints = 1}};
    static const char *const names[] = {"train-images-idx3-ubyte.gz", "train-labels-idx1-ubyte.gz",
                                        "t10k-images-idx3-ubyte.gz", "t10k-labels-idx1-ubyte.gz"};
    char dir[] = "/tmp/weft-bench-XXXXXX", paths[4][PATH_MAX];
    wf_field_spec fields[] = {{.name = "x", .path = paths[0], .steps = steps, .n_steps = 2},
                              {.name = "y", .path = paths[1], .want = WF_I64}};
    wf_dataset *d = NULL;
    int64_t from, drawn, opened;
    wf_err err;

    if (!mkdtemp(dir))
        exit(1);
    for (int i = 0; i < 4; i++)
        snprintf(paths[i], sizeof paths[i], "%s/%s", dir, names[i]);
    from = wf_now_ns();
    if (wf_digits_write(dir, 1, RECORDS, 10000, &err) != WF_OK)
        die(&err);
    drawn = wf_now_ns();
    if (wf_dataset_open(&(wf_dataset_spec){.format = "idx", .fields = fields, .n_fields = 2}, &d,
                        &err) != WF_OK)
        die(&err);
    opened = wf_now_ns();
    printf("drawing and packing 70,000 images %.2f s, opening 60,000 %.0f ms\n",
           (double)(drawn - from) / 1e9, (double)(opened - drawn) / 1e6);
    for (int i = 0; i < 4; i++)
        unlink(paths[i]);
    rmdir(dir);
    return d;
}

static void measure(const wf_dataset *d, uint64_t batch, uint32_t depth, int64_t step_us)
{
    wf_data_reader_spec spec = {
        .dataset = d, .batch = batch, .seed = 1, .shuffle = true, .depth = depth};
    int64_t spent = 0;
    uint64_t n = 0;
    wf_data_reader *r = NULL;
    wf_err err;

    if (wf_data_reader_new(&spec, &r, &err) != WF_OK)
        die(&err);
    for (uint64_t epoch = 0; epoch < 2; epoch++) {
        if (wf_data_reader_open(r, epoch, 0, 0, RECORDS, 0, &err) != WF_OK)
            die(&err);
        for (;;) {
            int64_t from = wf_now_ns(), now;
            const wf_batch *b;

            if (wf_data_reader_next(r, &b, &err) != WF_OK)
                die(&err);
            now = wf_now_ns();
            if (!b)
                break;
            spent += epoch ? now - from : 0; /* the first epoch touches fresh memory */
            n += epoch;
            wf_data_reader_release(r, &b);
            while (wf_now_ns() < now + step_us * 1000)
                ;
        }
    }
    printf("batch %4lu  step %4ld us  depth %u: %6.2f us a batch, %4.1f %% late\n",
           (unsigned long)batch, (long)step_us, depth, (double)spent / 1e3 / (double)n,
           100.0 * (double)wf_data_reader_late(r) / (double)wf_data_reader_given(r));
    wf_data_reader_free(&r);
}

int main(void)
{
    static const struct {
        uint64_t batch;
        int64_t step_us;
    } rows[] = {{32, 150}, {128, 300}, {512, 900}};
    static const uint32_t depths[] = {0, 1, 2, 4, 8};
    wf_dataset *d = make_data();

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        for (size_t k = 0; k < sizeof depths / sizeof depths[0]; k++)
            measure(d, rows[i].batch, depths[k], rows[i].step_us);
    wf_dataset_free(&d);
    return 0;
}
