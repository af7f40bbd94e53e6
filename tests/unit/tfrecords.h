/* SPDX-License-Identifier: Apache-2.0 */
/* tests/unit/tfrecords.h - files of tf.Example, byte by byte. */
#ifndef WF_TESTS_TFRECORDS_H
#define WF_TESTS_TFRECORDS_H

#include "common/base/crc32c.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

enum { TEXT_ROOM = 1 << 16 };

typedef struct test_text {
    uint8_t data[TEXT_ROOM];
    size_t n;
} test_text;

/* Adds bytes. */
static inline void put(test_text *t, const void *data, size_t n)
{
    assert_true(t->n + n <= TEXT_ROOM);
    memcpy(t->data + t->n, data, n);
    t->n += n;
}

static inline void put_varint(test_text *t, uint64_t v)
{
    for (; v >= 0x80; v >>= 7)
        put(t, &(uint8_t){(uint8_t)(v | 0x80)}, 1);
    put(t, &(uint8_t){(uint8_t)v}, 1);
}

/* A field with a length. */
static inline void put_body(test_text *t, uint32_t number, const void *data, size_t n)
{
    put_varint(t, number << 3 | 2);
    put_varint(t, n);
    put(t, data, n);
}

/* An entry of Features: the list is the field `kind` of its Feature. */
static inline void put_feature(test_text *features, const char *name, uint32_t kind,
                               const test_text *list)
{
    static test_text feature, entry;

    feature.n = entry.n = 0;
    put_body(&feature, kind, list->data, list->n);
    put_body(&entry, 1, name, strlen(name));
    put_body(&entry, 2, feature.data, feature.n);
    put_body(features, 1, entry.data, entry.n);
}

static inline void put_crc(test_text *t, const void *data, size_t n)
{
    uint32_t crc = wf_crc32c(0, data, n);

    crc = (crc >> 15 | crc << 17) + 0xa282ead8u;
    put(t, &crc, sizeof crc);
}

static inline void put_record(test_text *file, const void *data, size_t n)
{
    uint64_t length = n;

    put(file, &length, sizeof length);
    put_crc(file, &length, sizeof length);
    put(file, data, n);
    put_crc(file, data, n);
}

/* Record i: "f" = {i, i / 2}, "i" = {-i}, "b" = two strings of 3 bytes; odd ones are not packed. */
static inline void put_example(test_text *file, int i)
{
    static test_text list, features, example;
    const float f[] = {(float)i, (float)i / 2};
    const char b[] = {'a', (char)i, 0, 'b', 'c', (char)i};

    features.n = example.n = list.n = 0;
    if (i % 2)
        for (int k = 0; k < 2; k++) {
            put_varint(&list, 1 << 3 | 5);
            put(&list, &f[k], 4);
        }
    else
        put_body(&list, 1, f, sizeof f);
    put_feature(&features, "f", 2, &list);
    list.n = 0;
    if (i % 2) {
        put_varint(&list, 1 << 3);
        put_varint(&list, (uint64_t)(int64_t)-i);
    } else {
        static test_text packed;

        packed.n = 0;
        put_varint(&packed, (uint64_t)(int64_t)-i);
        put_body(&list, 1, packed.data, packed.n);
    }
    put_feature(&features, "i", 3, &list);
    list.n = 0;
    put_body(&list, 1, b, 3);
    put_body(&list, 1, b + 3, 3);
    put_feature(&features, "b", 1, &list);
    put_body(&example, 1, features.data, features.n);
    put_record(file, example.data, example.n);
}

#endif
