/* SPDX-License-Identifier: Apache-2.0 */
/* common/data/example.h - one feature of a serialised tf.Example. For this room only.
 *
 * tf.Example is three protobuf messages deep: Example{1: Features}, Features{1: entries}, entry{1:
 * name, 2: Feature}, and Feature{1: bytes_list, 2: float_list, 3: int64_list}, each {1: values}. It
 * is read where it lies, without allocating: a record is read once, and protobuf-c would make an
 * object of each feature, wanted or not.
 */
#ifndef WF_DATA_EXAMPLE_H
#define WF_DATA_EXAMPLE_H

#include "common/base/status.h"
#include "common/tensor/tensor.h"
#include <stddef.h>
#include <stdint.h>

/* A list of values of one kind. */
typedef struct wf_feature {
    const uint8_t *at, *end; /* the serialised list; borrowed of the record */
    wf_dtype dtype;          /* f32, i64 or (bytes) u8; WF_NONE: a feature without a list */
    uint64_t n;              /* values */
    uint64_t bytes;          /* of each value of u8, which are equally long; else 0 */
} wf_feature;

/* Finds the feature of that name in n bytes of an Example, and counts its values. Errors:
 * WF_NOTFOUND, with the names that there are; WF_INVALID for bytes that are no Example, or values
 * of unequal lengths. */
WF_MUST_USE wf_status wf_example_find(const void *example, size_t n, const char *name,
                                      wf_feature *out, wf_err *err);
/* Copies the first `most` values of a feature that was found into out [most], or [most, bytes], if
 * it has as many. */
void wf_feature_copy(const wf_feature *f, uint64_t most, void *out);

#endif
