/* SPDX-License-Identifier: Apache-2.0 */
/* common/data/npy.c - numpy's format of one array.
 *
 * "\x93NUMPY", two bytes of version, the length of a text (u16 in version 1, u32 in 2 and 3,
 * little- endian), then the text of a Python dict with the keys descr, fortran_order and shape,
 * then the elements. (numpy.lib.format, "NPY format".) The text is read as what numpy writes: flat,
 * with no expressions; anything else is refused.
 */
#include "common/data/format.h"

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum { HEAD_MAX = 64 * 1024 };

typedef struct npy {
    char descr[16];
    bool fortran, has_descr, has_fortran, has_shape;
    bool is_structured; /* descr is a list of fields: what follows is not parsed */
    uint32_t rank;      /* dims has no room for more than WF_MAX_RANK, which are refused */
    int64_t dims[WF_MAX_RANK];
} npy;

static const char *skip_spaces(const char *p)
{
    while (isspace((unsigned char)*p))
        p++;
    return p;
}

/* 'text' or "text" without escapes, into out; NULL if it is none or too long. */
static const char *parse_text(const char *p, char *out, size_t size)
{
    char quote = *p;
    size_t n;
    const char *end;

    if (quote != '\'' && quote != '"')
        return NULL;
    end = strchr(p + 1, quote);
    if (!end)
        return NULL;
    n = (size_t)(end - p - 1);
    if (n >= size || memchr(p + 1, '\\', n))
        return NULL;
    memcpy(out, p + 1, n);
    out[n] = '\0';
    return end + 1;
}

static const char *parse_bool(const char *p, bool *out)
{
    if (strncmp(p, "True", 4) == 0) {
        *out = true;
        return p + 4;
    }
    *out = false;
    return strncmp(p, "False", 5) == 0 ? p + 5 : NULL;
}

/* (60000, 28, 28), (60000,) or (). */
static const char *parse_shape(const char *p, npy *h)
{
    if (*p++ != '(')
        return NULL;
    for (p = skip_spaces(p); *p != ')'; p = skip_spaces(p)) {
        char *end;
        long long dim;

        if (!isdigit((unsigned char)*p))
            return NULL;
        errno = 0;
        dim = strtoll(p, &end, 10);
        if (errno)
            return NULL;
        if (h->rank < WF_MAX_RANK)
            h->dims[h->rank] = dim;
        h->rank++;
        p = skip_spaces(*end == 'L' ? end + 1 : end); /* Python 2 wrote 3L */
        if (*p == ',')
            p++;
        else if (*p != ')')
            return NULL;
    }
    return p + 1;
}

static const char *parse_entry(const char *p, npy *h)
{
    char key[24];

    p = parse_text(p, key, sizeof key);
    if (!p || *(p = skip_spaces(p)) != ':')
        return NULL;
    p = skip_spaces(p + 1);
    if (strcmp(key, "descr") == 0 && !h->has_descr) {
        h->has_descr = true;
        h->is_structured = *p == '[';
        return parse_text(p, h->descr, sizeof h->descr);
    }
    if (strcmp(key, "fortran_order") == 0 && !h->has_fortran) {
        h->has_fortran = true;
        return parse_bool(p, &h->fortran);
    }
    if (strcmp(key, "shape") == 0 && !h->has_shape) {
        h->has_shape = true;
        return parse_shape(p, h);
    }
    return NULL;
}

static bool parse_dict(const char *p, npy *h)
{
    p = skip_spaces(p);
    if (*p++ != '{')
        return false;
    for (p = skip_spaces(p); *p != '}'; p = skip_spaces(p)) {
        p = parse_entry(p, h);
        if (!p)
            return false;
        p = skip_spaces(p);
        if (*p == ',')
            p++;
        else if (*p != '}')
            return false;
    }
    return h->has_descr && h->has_fortran && h->has_shape && *skip_spaces(p + 1) == '\0';
}

/* "<f4", "|u1", ">i8". */
static bool parse_descr(const char *d, wf_element *e)
{
    unsigned long size;
    char *end;

    if (!*d || !strchr("<>|=", d[0]) || !d[1] || !isdigit((unsigned char)d[2]))
        return false;
    size = strtoul(d + 2, &end, 10);
    if (*end || size == 0 || size > 255)
        return false;
    *e = (wf_element){.kind = d[1], .size = (uint8_t)size, .big_endian = d[0] == '>'};
    return true;
}

static wf_status not_npy(const wf_source *s, const char *why, wf_err *err)
{
    return wf_fail(err, WF_INVALID, "check data.format and the path; numpy.save writes it",
                   "%s is not an npy file: %s", s->path, why);
}

/* The text of the header, with a zero at its end; the caller frees it. */
static wf_status read_head(wf_source *s, char **out, wf_err *err)
{
    uint8_t fixed[8], length[4] = {0};
    wf_status rc;
    size_t n;

    WF_TRY(wf_source_read(s, fixed, sizeof fixed, err));
    if (memcmp(fixed, "\x93NUMPY", 6) != 0)
        return not_npy(s, "it does not begin with \\x93NUMPY", err);
    if (fixed[6] < 1 || fixed[6] > 3)
        return wf_fail(err, WF_UNSUPPORTED, NULL, "%s: npy version %u.%u, weft reads 1 to 3",
                       s->path, fixed[6], fixed[7]);
    WF_TRY(wf_source_read(s, length, fixed[6] == 1 ? 2 : 4, err));
    n = (size_t)length[0] | (size_t)length[1] << 8 | (size_t)length[2] << 16 |
        (size_t)length[3] << 24;
    if (n > HEAD_MAX)
        return not_npy(s, "its header is too long", err);
    *out = calloc(n + 1, 1);
    if (!*out)
        return wf_fail_nomem(err, n + 1);
    rc = wf_source_read(s, *out, n, err);
    if (rc == WF_OK && strlen(*out) != n)
        rc = not_npy(s, "its header holds a zero byte", err);
    return rc;
}

wf_status wf_format_read_npy(wf_source *s, size_t limit_bytes, wf_array *out, wf_err *err)
{
    npy h = {0};
    wf_element e;
    char *text = NULL;
    wf_status rc;

    rc = read_head(s, &text, err);
    if (rc != WF_OK)
        goto out;
    if (!parse_dict(text, &h)) {
        rc = h.is_structured
                 ? wf_fail(err, WF_UNSUPPORTED, "save each field as an array of its own",
                           "%s holds records of several fields", s->path)
                 : not_npy(s, "its header does not give descr, fortran_order and a shape", err);
        goto out;
    }
    if (!parse_descr(h.descr, &e)) {
        rc = wf_fail(err, WF_UNSUPPORTED, "save plain numbers",
                     "%s holds elements \"%s\", which weft does not read", s->path, h.descr);
        goto out;
    }
    if (h.fortran && h.rank > 1) {
        rc = wf_fail(err, WF_UNSUPPORTED, "save numpy.ascontiguousarray of it",
                     "%s is in Fortran order", s->path);
        goto out;
    }
    rc = wf_array_read(s, e, h.rank, h.dims, limit_bytes, out, err);
out:
    free(text);
    return rc;
}

const wf_format wf_format_npy = {.name = "npy", .read = wf_format_read_npy};
