/* SPDX-License-Identifier: Apache-2.0 */
/* common/data/npy.c - numpy's .npy, versions 1 to 3 (numpy.lib.format): magic, version, the length
 * of a header, and the header: a Python dictionary literal of three known keys. It is parsed, not
 * evaluated. C order, little-endian; of bool, unsigned byte, int32, int64, float32, float64. */
#include "common/data/format.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

enum { HEADER_LIMIT = 65536 };

typedef struct header {
    wf_dtype dtype;
    bool fortran;
    uint32_t rank;
    int64_t dims[WF_MAX_RANK];
    bool has_descr, has_order, has_shape;
} header;

static bool knows(const char *path)
{
    return wf_path_is(path, ".npy");
}

static wf_dtype dtype_of(const char *descr, size_t n)
{
    static const struct {
        const char *descr;
        wf_dtype dtype;
    } rows[] = {{"<f4", WF_F32}, {"<f8", WF_F64}, {"<i4", WF_I32},  {"<i8", WF_I64},
                {"|u1", WF_U8},  {"|b1", WF_BOOL}};

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        if (strlen(rows[i].descr) == n && memcmp(rows[i].descr, descr, n) == 0)
            return rows[i].dtype;
    return WF_NONE;
}

static const char *skip(const char *p)
{
    while (*p == ' ' || *p == '\n')
        p++;
    return p;
}

/* 'text' or "text"; gives its span and what follows, or NULL. */
static const char *quoted(const char *p, const char **text, size_t *n)
{
    char quote = *p;
    const char *end;

    if (quote != '\'' && quote != '"')
        return NULL;
    end = strchr(p + 1, quote);
    if (!end)
        return NULL;
    *text = p + 1;
    *n = (size_t)(end - p - 1);
    return skip(end + 1);
}

static const char *read_shape(const char *p, header *h)
{
    if (*p++ != '(')
        return NULL;
    for (p = skip(p); *p != ')'; p = skip(p)) {
        char *end;

        if (!isdigit((unsigned char)*p) || h->rank == WF_MAX_RANK)
            return NULL;
        h->dims[h->rank++] = strtoll(p, &end, 10); /* saturates; then the product is refused */
        p = skip(end);
        if (*p == ',')
            p++;
        else if (*p != ')')
            return NULL;
    }
    h->has_shape = true;
    return skip(p + 1);
}

/* One `'key': value` and what follows, or NULL. */
static const char *read_entry(const char *p, header *h)
{
    const char *key, *text;
    size_t n, m;

    p = quoted(p, &key, &n);
    if (!p || *p != ':')
        return NULL;
    p = skip(p + 1);
    if (n == 5 && memcmp(key, "descr", 5) == 0) {
        p = quoted(p, &text, &m);
        if (p) {
            h->dtype = dtype_of(text, m);
            h->has_descr = true;
        }
        return p;
    }
    if (n == 13 && memcmp(key, "fortran_order", 13) == 0) {
        h->fortran = strncmp(p, "True", 4) == 0;
        if (!h->fortran && strncmp(p, "False", 5) != 0)
            return NULL;
        h->has_order = true;
        return skip(p + (h->fortran ? 4 : 5));
    }
    if (n == 5 && memcmp(key, "shape", 5) == 0)
        return read_shape(p, h);
    return NULL;
}

static bool parse(const char *p, header *h)
{
    p = skip(p);
    if (*p++ != '{')
        return false;
    for (p = skip(p); *p != '}'; p = skip(p)) {
        p = read_entry(p, h);
        if (!p)
            return false;
        if (*p == ',')
            p++;
        else if (*p != '}')
            return false;
    }
    return *skip(p + 1) == '\0' && h->has_descr && h->has_order && h->has_shape;
}

static wf_status check(const header *h, const char *path, wf_err *err)
{
    if (h->dtype == WF_NONE)
        return wf_fail(err, WF_UNSUPPORTED,
                       "save it as float32, float64, int32, int64, uint8 or bool",
                       "%s: elements of this type cannot be read", path);
    if (h->fortran && h->rank > 1)
        return wf_fail(err, WF_UNSUPPORTED, "save numpy.ascontiguousarray(a)",
                       "%s is in Fortran order", path);
    return WF_OK;
}

static wf_status read_from(wf_source *s, const char *path, wf_array *out, wf_err *err)
{
    uint8_t head[8], length[4];
    char text[HEADER_LIMIT + 1];
    header h = {0};
    size_t n;

    WF_TRY(wf_source_all(s, head, sizeof head, err));
    if (memcmp(head, "\x93NUMPY", 6) != 0 || head[6] < 1 || head[6] > 3)
        return wf_fail(err, WF_INVALID, NULL, "%s is no .npy file of version 1 to 3", path);
    WF_TRY(wf_source_all(s, length, head[6] == 1 ? 2 : 4, err));
    n = length[0] | (size_t)length[1] << 8;
    if (head[6] > 1)
        n |= (size_t)length[2] << 16 | (size_t)length[3] << 24;
    if (n > HEADER_LIMIT)
        return wf_fail(err, WF_INVALID, NULL, "%s: a header of %zu bytes; %d are read at most",
                       path, n, HEADER_LIMIT);
    WF_TRY(wf_source_all(s, text, n, err));
    text[n] = '\0';
    if (!parse(text, &h))
        return wf_fail(err, WF_INVALID, NULL, "%s: the header is not what numpy writes", path);
    WF_TRY(check(&h, path, err));
    return wf_source_array(s, h.dtype, h.rank, h.dims, out, err);
}

static wf_status read_npy(const char *path, wf_array *out, wf_err *err)
{
    wf_source *s = NULL;
    wf_status rc;

    WF_TRY(wf_source_open(path, &s, err));
    rc = read_from(s, path, out, err);
    wf_source_close(&s);
    return rc;
}

const wf_format wf_format_npy = {.name = "npy", .knows = knows, .read = read_npy};
