/* SPDX-License-Identifier: Apache-2.0 */
/* tests/cuda/ending.h - for tests of what ends a program. */
#ifndef TESTS_CUDA_ENDING_H
#define TESTS_CUDA_ENDING_H

#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

enum { SAID = 8192 };

/* How a program that does this ends; what it says goes to `said`. */
static inline int ends_by(void (*act)(void), char said[SAID])
{
    int pipes[2], how;
    size_t used = 0;

    assert_int_equal(pipe(pipes), 0);
    if (fork() == 0) {
        setrlimit(RLIMIT_CORE, &(struct rlimit){0, 0});
        dup2(pipes[1], STDERR_FILENO);
        signal(SIGABRT, SIG_DFL);
        act();
        _exit(0);
    }
    close(pipes[1]);
    for (ssize_t n = 1; n > 0 && used<SAID - 1; used += n> 0 ? (size_t)n : 0)
        n = read(pipes[0], said + used, SAID - 1 - used);
    said[used] = '\0';
    close(pipes[0]);
    assert_true(wait(&how) > 0);
    return WIFSIGNALED(how) ? WTERMSIG(how) : 0;
}

#endif
