/* SPDX-License-Identifier: Apache-2.0 */
/* common/data/digits.h - a data set that needs no download: handwritten-like digits, drawn.
 *
 * Each image is a digit's stroke description (several for each digit), bent by a random affine map
 * and a smooth random field, drawn with a pen of random width, blurred and speckled: 28 x 28 grey
 * levels, white on black, in the layout of MNIST. Image i of a file depends on (seed, file, i)
 * alone, so the same seed gives the same bytes on every machine.
 *
 * Measured (tests/unit/digits.c checks the first with seed 1): a linear model reaches 88 to 92 %
 * on the test images, an MLP 784-128-10 97 to 98 %.
 */
#ifndef WF_DATA_DIGITS_H
#define WF_DATA_DIGITS_H

#include "common/base/status.h"
#include <stdint.h>

enum { WF_DIGITS_SIDE = 28, WF_DIGITS_PIXELS = 28 * 28, WF_DIGITS_CLASSES = 10 };

/* Writes train-images-idx3-ubyte.gz, train-labels-idx1-ubyte.gz, t10k-images-idx3-ubyte.gz and
 * t10k-labels-idx1-ubyte.gz into dir, which is made if it is not there; files of these names are
 * replaced, each at once. About 8 s for 60,000 + 10,000. Errors: WF_INVALID for more than 10
 * million images; WF_IO; WF_NOMEM. */
WF_MUST_USE wf_status wf_digits_write(const char *dir, uint64_t seed, uint64_t n_train,
                                      uint64_t n_test, wf_err *err);

/* Draws image `index` of a file (0: train, 1: test) into pixels [28 * 28] and returns its label. */
uint8_t wf_digits_draw(uint64_t seed, uint32_t file, uint64_t index, uint8_t pixels[]);

#endif
