/* SPDX-License-Identifier: Apache-2.0 */
/* common/data/digits.c - drawn digits as the four files of MNIST. */
#include "common/data/digits.h"
#include "common/base/bytes.h"
#include "common/base/file.h"

#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <zlib.h>

enum { IMAGES_MOST = 10000000, CHUNK = 64 /* images */, LEVEL = 1, GZIP = 16 /* zlib's flag */ };

/* gzip into memory. */
typedef struct packer {
    z_stream z;
    wf_bytes out;
} packer;

static wf_status packer_open(packer *p, wf_err *err)
{
    *p = (packer){0};
    if (deflateInit2(&p->z, LEVEL, Z_DEFLATED, MAX_WBITS | GZIP, 9, Z_DEFAULT_STRATEGY) != Z_OK)
        return wf_fail_nomem(err, 1 << 18);
    return WF_OK;
}

static void packer_close(packer *p)
{
    deflateEnd(&p->z); /* fine on one that was never opened */
    wf_bytes_close(&p->out);
}

/* Packs n more bytes; `finish` ends the file. Errors: WF_NOMEM. */
static wf_status packer_add(packer *p, const void *data, size_t n, bool finish, wf_err *err)
{
    uint8_t buffer[32 * 1024];

    p->z.next_in = (Bytef *)data; /* zlib only reads it */
    p->z.avail_in = (uInt)n;
    do {
        p->z.next_out = buffer;
        p->z.avail_out = sizeof buffer;
        deflate(&p->z, finish ? Z_FINISH : Z_NO_FLUSH);
        wf_bytes_add(&p->out, buffer, sizeof buffer - p->z.avail_out);
    } while (p->z.avail_out == 0);
    return wf_bytes_check(&p->out, err);
}

static void put_u32(uint8_t out[], uint32_t x)
{
    out[0] = (uint8_t)(x >> 24);
    out[1] = (uint8_t)(x >> 16);
    out[2] = (uint8_t)(x >> 8);
    out[3] = (uint8_t)x;
}

static wf_status pack_heads(packer *images, packer *labels, uint32_t n, wf_err *err)
{
    uint8_t head[16];

    put_u32(head, 0x00000801); /* u8, one dimension */
    put_u32(head + 4, n);
    WF_TRY(packer_add(labels, head, 8, false, err));
    put_u32(head, 0x00000803);
    put_u32(head + 8, WF_DIGITS_SIDE);
    put_u32(head + 12, WF_DIGITS_SIDE);
    return packer_add(images, head, 16, false, err);
}

static wf_status draw_all(packer *images, packer *labels, uint64_t seed, uint32_t file, uint64_t n,
                          wf_err *err)
{
    uint8_t pixels[CHUNK * WF_DIGITS_PIXELS], digits[CHUNK];

    for (uint64_t first = 0; first < n; first += CHUNK) {
        size_t now = n - first < CHUNK ? (size_t)(n - first) : CHUNK;

        for (size_t i = 0; i < now; i++)
            digits[i] = wf_digits_draw(seed, file, first + i, pixels + i * WF_DIGITS_PIXELS);
        WF_TRY(packer_add(images, pixels, now * WF_DIGITS_PIXELS, false, err));
        WF_TRY(packer_add(labels, digits, now, false, err));
    }
    WF_TRY(packer_add(images, NULL, 0, true, err));
    return packer_add(labels, NULL, 0, true, err);
}

static wf_status save(const packer *p, const char *dir, const char *prefix, const char *rest,
                      wf_err *err)
{
    char path[PATH_MAX];

    if (snprintf(path, sizeof path, "%s/%s-%s", dir, prefix, rest) >= (int)sizeof path)
        return wf_fail(err, WF_INVALID, NULL, "the path %s is too long", dir);
    return wf_file_write(path, p->out.data, p->out.size, err);
}

static wf_status write_pair(const char *dir, const char *prefix, uint64_t seed, uint32_t file,
                            uint64_t n, wf_err *err)
{
    packer images = {0}, labels = {0};
    wf_status rc;

    rc = packer_open(&images, err);
    if (rc == WF_OK)
        rc = packer_open(&labels, err);
    if (rc == WF_OK)
        rc = pack_heads(&images, &labels, (uint32_t)n, err);
    if (rc == WF_OK)
        rc = draw_all(&images, &labels, seed, file, n, err);
    if (rc == WF_OK)
        rc = save(&images, dir, prefix, "images-idx3-ubyte.gz", err);
    if (rc == WF_OK)
        rc = save(&labels, dir, prefix, "labels-idx1-ubyte.gz", err);
    packer_close(&images);
    packer_close(&labels);
    return rc;
}

wf_status wf_digits_write(const char *dir, uint64_t seed, uint64_t n_train, uint64_t n_test,
                          wf_err *err)
{
    if (n_train > IMAGES_MOST || n_test > IMAGES_MOST)
        return wf_fail(err, WF_INVALID, NULL, "%" PRIu64 " images; at most %d a file",
                       n_train > n_test ? n_train : n_test, IMAGES_MOST);
    WF_TRY(wf_make_dirs(dir, err));
    WF_TRY(write_pair(dir, "train", seed, 0, n_train, err));
    return write_pair(dir, "t10k", seed, 1, n_test, err);
}
