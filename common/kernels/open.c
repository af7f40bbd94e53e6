/* SPDX-License-Identifier: Apache-2.0 */
/* common/kernels/open.c - devices by their names, those of the plug-in for GPUs included.
 *
 * weft-cuda.so is looked for where WEFT_CUDA says; or, from the folder of the program or library
 * that this code is in, where `meson install` puts it, and where a build has it.
 */
#include "common/base/cc.h"
#include "common/kernels/cuda/plugin.h"
#include "common/kernels/kernel.h"

#include <dlfcn.h>
#include <limits.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define PLUGIN "weft-cuda.so"

/* From the folder of a program, of a library, and of a program or library of a build. */
static const char *const places[] = {"../" WEFT_LIBDIR "/weft/" PLUGIN, "weft/" PLUGIN,
                                     "../common/kernels/cuda/" PLUGIN};

/* The file that this code was loaded from, without its name. */
static void find_folder(char out[static PATH_MAX])
{
    Dl_info info;
    ssize_t n;
    char *slash;

    if (dladdr((const void *)(uintptr_t)wf_device_open, &info) == 0 || !info.dli_fname ||
        !strstr(info.dli_fname, ".so") || !realpath(info.dli_fname, out)) {
        n = readlink("/proc/self/exe", out, PATH_MAX - 1);
        out[n > 0 ? n : 0] = 0;
    }
    slash = strrchr(out, '/');
    *(slash ? slash : out) = 0;
}

static bool find_plugin(char out[static PATH_MAX])
{
    const char *given = getenv("WEFT_CUDA");
    char folder[PATH_MAX];

    if (given && given[0]) {
        snprintf(out, PATH_MAX, "%s", given);
        return true;
    }
    find_folder(folder);
    for (size_t i = 0; i < WF_COUNT(places); i++)
        if (snprintf(out, PATH_MAX, "%s/%s", folder, places[i]) < PATH_MAX &&
            access(out, R_OK) == 0)
            return true;
    return false;
}

/* Its lines are those of this program. */
static void *open_plugin(const char *path)
{
    void *plugin = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    void *init = plugin ? dlsym(plugin, WEFT_CUDA_LOG) : NULL;

    if (init)
        wf_log_pass((__typeof__(weft_cuda_log) *)(uintptr_t)init);
    return plugin;
}

/* A function of the plug-in, which stays loaded. */
static wf_status find_in_plugin(const char *name, const char *function, weft_cuda_device_fn **out,
                                wf_err *err)
{
    static void *plugin;
    char path[PATH_MAX] = PLUGIN;

    if (!plugin && !find_plugin(path))
        return wf_fail(
            err, WF_UNSUPPORTED,
            "build weft where nvcc of CUDA 13 is, or say with WEFT_CUDA where the file is",
            "%s: this weft has no " PLUGIN, name);
    if (!plugin)
        plugin = open_plugin(path);
    if (!plugin)
        return wf_fail(err, WF_UNSUPPORTED,
                       "it needs the libraries of CUDA 13; where they are elsewhere, name their "
                       "folder in LD_LIBRARY_PATH",
                       "%s: " PLUGIN " cannot be loaded: %s", name, dlerror());
    *out = (weft_cuda_device_fn *)(uintptr_t)dlsym(plugin, function);
    return *out ? WF_OK
                : wf_fail(err, WF_UNSUPPORTED, "use the one that was built with this weft",
                          "%s: %s is none of weft " WEFT_VERSION, name, path);
}

static wf_status look_up(const char *name, const char *function, const wf_device **out, wf_err *err)
{
    const wf_device_rows *rows = NULL;
    weft_cuda_device_fn *device;
    int index;

    if (wf_device_find(wf_device_is_cpu(name) ? wf_cpu.name : name, out, err) == WF_OK)
        return WF_OK;
    if (!wf_device_is_gpu(name, &index))
        return wf_fail(err, WF_NOTFOUND,
                       "known: cpu, or cpu:0, cpu:1 and so on; and GPUs as cuda:0, cuda:1",
                       "unknown device \"%.64s\"", name);
    WF_TRY(find_in_plugin(name, function, &device, err));
    WF_TRY(device(index, &rows, err));
    WF_TRY(wf_device_add(rows, err));
    *out = rows->device;
    return WF_OK;
}

static wf_status open_as(const char *name, const char *function, const wf_device **out, wf_err *err)
{
    static pthread_mutex_t one_at_a_time = PTHREAD_MUTEX_INITIALIZER;
    wf_status rc;

    pthread_mutex_lock(&one_at_a_time);
    rc = look_up(name, function, out, err);
    pthread_mutex_unlock(&one_at_a_time);
    return rc;
}

wf_status wf_device_open(const char *name, const wf_device **out, wf_err *err)
{
    return open_as(name, WEFT_CUDA_DEVICE, out, err);
}

wf_status wf_device_open_planned(const char *name, const wf_device **out, wf_err *err)
{
    return open_as(name, WEFT_CUDA_PLANNED_DEVICE, out, err);
}
