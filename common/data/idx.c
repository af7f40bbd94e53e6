/* SPDX-License-Identifier: Apache-2.0 */
/* common/data/idx.c - the format of MNIST's files.
 *
 * Two zero bytes, a type byte (8 u8, 9 i8, 11 i16, 12 i32, 13 f32, 14 f64), the number of
 * dimensions, then each dimension and the elements, all big-endian; the first axis counts records.
 * (LeCun, Cortes, Burges, "The MNIST database", section on file formats.)
 */
#include "common/data/format.h"

static bool element_of(uint8_t code, wf_element *out)
{
    static const struct {
        uint8_t code;
        wf_element element;
    } types[] = {
        {8, {'u', 1, false}}, {9, {'i', 1, false}}, {11, {'i', 2, true}},
        {12, {'i', 4, true}}, {13, {'f', 4, true}}, {14, {'f', 8, true}},
    };

    for (size_t i = 0; i < WF_COUNT(types); i++)
        if (types[i].code == code) {
            *out = types[i].element;
            return true;
        }
    return false;
}

static wf_status idx_read(wf_source *s, size_t limit_bytes, wf_array *out, wf_err *err)
{
    uint8_t head[4], dim[4];
    int64_t dims[WF_MAX_RANK];
    wf_element e;

    WF_TRY(wf_source_read(s, head, sizeof head, err));
    if (head[0] || head[1] || !element_of(head[2], &e))
        return wf_fail(err, WF_INVALID, "check data.format and the path",
                       "%s is not an idx file: it begins with %02x %02x %02x %02x", s->path,
                       head[0], head[1], head[2], head[3]);
    if (head[3] > WF_MAX_RANK)
        return wf_fail(err, WF_INVALID, NULL, "%s has %u dimensions; weft takes up to %d", s->path,
                       head[3], WF_MAX_RANK);
    for (uint32_t i = 0; i < head[3]; i++) {
        WF_TRY(wf_source_read(s, dim, sizeof dim, err));
        dims[i] = (int64_t)((uint32_t)dim[0] << 24 | (uint32_t)dim[1] << 16 |
                            (uint32_t)dim[2] << 8 | dim[3]);
    }
    return wf_array_read(s, e, head[3], dims, limit_bytes, out, err);
}

const wf_format wf_format_idx = {
    .name = "idx",
    .missing = "correct the path, or get files into that folder: weft data get mnist DIR shows "
               "where MNIST is published, weft data digits DIR generates a data set",
    .read = idx_read,
};
