/* SPDX-License-Identifier: Apache-2.0 */
/* tests/fuzz/target.h - the functions that libFuzzer calls, by names of its choice, and the one of
 * its own that mutators may call. */
#ifndef WF_TESTS_FUZZ_TARGET_H
#define WF_TESTS_FUZZ_TARGET_H

#include <stddef.h>
#include <stdint.h>

int LLVMFuzzerInitialize(int *argc, char ***argv);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);
/* Changes data[n] in place and returns its new size, `room` at most. */
size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t n, size_t room, unsigned seed);
/* Makes out[room] of two inputs and returns its size. */
size_t LLVMFuzzerCustomCrossOver(const uint8_t *a, size_t n_a, const uint8_t *b, size_t n_b,
                                 uint8_t *out, size_t room, unsigned seed);
/* libFuzzer's own way: blind bytes. */
size_t LLVMFuzzerMutate(uint8_t *data, size_t n, size_t room);

#endif
