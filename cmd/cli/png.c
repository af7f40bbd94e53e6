/* SPDX-License-Identifier: Apache-2.0 */
/* cmd/cli/png.c - the program reads and writes files in memory, so that nothing of it stays. */
#include "cmd/cli/png.h"
#include "common/base/file.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

enum { IN, OUT, SAID, FILES };

static wf_status open_files(int fds[FILES], const wf_bytes *svg, wf_err *err)
{
    for (int i = 0; i < FILES; i++) {
        fds[i] = memfd_create("weft-plot", MFD_CLOEXEC);
        if (fds[i] < 0)
            return wf_fail_errno(err, errno, NULL, "cannot make a file in memory");
    }
    WF_TRY(wf_write_all(fds[IN], svg->data, svg->size, "a file in memory", err));
    if (lseek(fds[IN], 0, SEEK_SET) != 0)
        return wf_fail_errno(err, errno, NULL, "cannot read a file in memory");
    return WF_OK;
}

enum { NOT_FOUND = 127 /* its own exit codes are 0 and 1 */ };

static void become(const int fds[FILES])
{
    static const char *const argv[] = {"rsvg-convert", "--format=png", "--zoom=2", NULL};

    for (int i = 0; i < FILES; i++) /* standard input, output and error */
        dup2(fds[i], i);
    execvp(argv[0], (char *const *)argv);
    _exit(NOT_FOUND);
}

/* *status is as waitpid gives it. */
static wf_status run(const int fds[FILES], int *status, wf_err *err)
{
    pid_t pid = fork();

    if (pid == 0)
        become(fds);
    if (pid < 0)
        return wf_fail_errno(err, errno, "write -o FILE.svg", "cannot run rsvg-convert");
    while (waitpid(pid, status, 0) < 0)
        if (errno != EINTR)
            return wf_fail_errno(err, errno, NULL, "cannot wait for rsvg-convert");
    if (WIFEXITED(*status) && WEXITSTATUS(*status) == NOT_FOUND)
        return wf_fail(err, WF_UNSUPPORTED,
                       "install it (Debian and Ubuntu: apt-get install librsvg2-bin), or write "
                       "-o FILE.svg",
                       "rsvg-convert, which draws PNG files, is not installed");
    return WF_OK;
}

static wf_status read_back(int fd, wf_bytes *out, wf_err *err)
{
    struct stat st;
    uint8_t *to;

    if (fstat(fd, &st) != 0)
        return wf_fail_errno(err, errno, NULL, "cannot read a file in memory");
    to = wf_bytes_extend(out, (size_t)st.st_size);
    if (to && pread(fd, to, (size_t)st.st_size, 0) != st.st_size)
        return wf_fail(err, WF_IO, NULL, "cannot read a file in memory");
    return wf_bytes_check(out, err);
}

/* The first line of what it said. */
static wf_status fail(int fd, int status, wf_err *err)
{
    char said[200] = "";
    ssize_t n = pread(fd, said, sizeof said - 1, 0);

    said[n > 0 ? strcspn(said, "\n") : 0] = 0;
    if (WIFSIGNALED(status))
        snprintf(said, sizeof said, "it was ended by signal %d", WTERMSIG(status));
    return wf_fail(err, WF_IO, "write -o FILE.svg", "rsvg-convert draws no picture: %s",
                   said[0] ? said : "it does not say why");
}

wf_status wf_png_write(const wf_bytes *svg, const char *file, wf_err *err)
{
    int fds[FILES] = {-1, -1, -1}, status = 0;
    wf_bytes png = {0};
    wf_status rc;

    rc = open_files(fds, svg, err);
    if (rc == WF_OK)
        rc = run(fds, &status, err);
    if (rc == WF_OK)
        rc = read_back(fds[OUT], &png, err);
    if (rc == WF_OK && (status != 0 || png.size == 0))
        rc = fail(fds[SAID], status, err);
    if (rc == WF_OK)
        rc = wf_file_write(file, png.data, png.size, err);
    wf_bytes_close(&png);
    for (int i = 0; i < FILES; i++)
        if (fds[i] >= 0)
            close(fds[i]);
    return rc;
}
