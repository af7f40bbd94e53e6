/* SPDX-License-Identifier: Apache-2.0 */
/* common/data/digits.h - a data set that weft draws: 28x28 grey images of handwritten-like digits.
 *
 * Each digit has several templates of strokes (polylines and Bezier curves). A drawing takes one,
 * moves its points, bends it by a smooth elastic field, turns, shears and scales it, and paints it
 * with a pen of varying thickness; noise comes on top. The bytes depend on the seed alone.
 */
#ifndef WF_DATA_DIGITS_H
#define WF_DATA_DIGITS_H

#include "common/base/status.h"
#include <stdint.h>

enum { WF_DIGITS_SIDE = 28, WF_DIGITS_TRAIN = 60000, WF_DIGITS_TEST = 10000 };

/* Writes MNIST's four IDX files (train-images-idx3-ubyte.gz, train-labels-idx1-ubyte.gz,
 * t10k-images-idx3-ubyte.gz, t10k-labels-idx1-ubyte.gz) into `dir`, which is made if need be. Each
 * file appears whole or not at all. Errors: WF_INVALID for a count of 0 or above 10 million; WF_IO;
 * WF_NOMEM. */
WF_MUST_USE wf_status wf_digits_write(const char *dir, uint64_t seed, uint32_t n_train,
                                      uint32_t n_test, wf_err *err);

/* Draws one image, row-major, 0 black to 255 white, and returns its label. */
uint8_t wf_digits_draw(uint64_t seed, uint64_t index,
                       uint8_t image[WF_DIGITS_SIDE * WF_DIGITS_SIDE]);

#endif
