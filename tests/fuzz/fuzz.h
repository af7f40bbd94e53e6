/* SPDX-License-Identifier: Apache-2.0 */
/* tests/fuzz/model.h - what is done with one file that calls itself an ONNX model: by the fuzzer,
 * and by the replay of its corpus in every build. */
#ifndef WF_TESTS_FUZZ_MODEL_H
#define WF_TESTS_FUZZ_MODEL_H

#include <stddef.h>
#include <stdint.h>

/* Reads the model, compiles it for training and as it stands, sends the result through a file as
 * the master does, and makes plans for batches of 2. Whatever it holds, all that may happen is a
 * refusal in words; anything else ends the process. */
void wf_fuzz_model(const uint8_t *data, size_t n);

#endif
