/* SPDX-License-Identifier: Apache-2.0 */
/* cmd/cli/tail.c */
#include "cmd/cli/tail.h"
#include "common/base/file.h"
#include "common/base/size.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static wf_status read_from(int fd, off_t at, size_t n, const char *path, wf_bytes *out, wf_err *err)
{
    uint8_t *to = n ? wf_bytes_extend(out, n) : NULL;
    size_t got = 0;

    while (to && got < n) {
        ssize_t k = pread(fd, to + got, n - got, at + (off_t)got);

        if (k < 0 && errno == EINTR)
            continue;
        if (k < 0)
            return wf_fail_errno(err, errno, NULL, "cannot read %s", path);
        if (k == 0)
            break; /* it has become shorter meanwhile */
        got += (size_t)k;
    }
    out->size = got;
    return n && !to ? wf_fail_nomem(err, n) : WF_OK;
}

wf_status wf_tail_read(const char *path, size_t most, wf_bytes *out, uint64_t *end, wf_err *err)
{
    const uint8_t *line;
    struct stat st;
    off_t at = 0;
    int fd = -1;
    wf_status rc;

    WF_TRY(wf_file_open(path, O_RDONLY, &fd, err));
    if (fstat(fd, &st) != 0)
        rc = wf_fail_errno(err, errno, NULL, "cannot read %s", path);
    else if (!S_ISREG(st.st_mode))
        rc = wf_fail(err, WF_INVALID, "move it away", "%s is no file", path);
    else {
        at = st.st_size > (off_t)most ? st.st_size - (off_t)most : 0;
        rc = read_from(fd, at, (size_t)(st.st_size - at), path, out, err);
    }
    close(fd);
    if (end)
        *end = (uint64_t)at + out->size;
    line = rc == WF_OK && at > 0 && out->size ? memchr(out->data, '\n', out->size) : NULL;
    if (line) { /* not the second half of a line */
        out->size -= (size_t)(line + 1 - out->data);
        memmove(out->data, line + 1, out->size);
    }
    if (out->data)
        out->data[out->size] = 0;
    return rc;
}
