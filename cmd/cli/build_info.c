/* SPDX-License-Identifier: Apache-2.0 */
/* cmd/cli/build_info.c */
#include "cmd/cli/build_info.h"
#include "common/base/cc.h"
#include "common/kernels/cpu/device.h"

#include "commit.h"
#include <cblas.h>
#include <inttypes.h>
#include <jansson.h>
#include <libdeflate.h>
#include <oneapi/dnnl/dnnl.h>
#include <protobuf-c/protobuf-c.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <xxhash.h>
#include <yaml.h>
#include <zlib.h>
#include <zmq.h>

const char *wf_build_commit(void)
{
    return WEFT_COMMIT;
}

const char *wf_build_compiler(void)
{
#ifdef __clang__
    return "clang " __clang_version__;
#else
    return "gcc " __VERSION__;
#endif
}

/* ---- libraries ---- */

static void put_zeromq(char *text)
{
    int major, minor, patch;

    zmq_version(&major, &minor, &patch);
    snprintf(text, WF_BUILD_TEXT, "%d.%d.%d%s", major, minor, patch,
             zmq_has("curve") ? " curve" : "");
}

static void put_protobuf(char *text)
{
    snprintf(text, WF_BUILD_TEXT, "%s", protobuf_c_version());
}

/* "OpenBLAS 0.3.21 NO_LAPACKE DYNAMIC_ARCH NO_AFFINITY Haswell MAX_THREADS=64": the number, and
 * what it has chosen for this processor. */
static void put_openblas(char *text)
{
    char config[256], *save = NULL, *word;

    snprintf(config, sizeof config, "%s", openblas_get_config());
    word = strtok_r(config, " ", &save);
    word = word ? strtok_r(NULL, " ", &save) : NULL;
    snprintf(text, WF_BUILD_TEXT, "%.32s %.32s", word ? word : "?", openblas_get_corename());
}

static void put_onednn(char *text)
{
    const dnnl_version_t *v = dnnl_version();

    snprintf(text, WF_BUILD_TEXT, "%d.%d.%d", v->major, v->minor, v->patch);
}

static void put_yaml(char *text)
{
    snprintf(text, WF_BUILD_TEXT, "%s", yaml_get_version_string());
}

static void put_jansson(char *text)
{
    snprintf(text, WF_BUILD_TEXT, "%s", jansson_version_str());
}

static void put_xxhash(char *text)
{
    unsigned n = XXH_versionNumber();

    snprintf(text, WF_BUILD_TEXT, "%u.%u.%u", n / 10000, n / 100 % 100, n % 100);
}

static void put_zlib(char *text)
{
    snprintf(text, WF_BUILD_TEXT, "%s", zlibVersion());
}

static void put_deflate(char *text)
{
    snprintf(text, WF_BUILD_TEXT, "%s", LIBDEFLATE_VERSION_STRING);
}

static const struct {
    const char *name;
    void (*version)(char *text);
} libraries[] = {
    {"zeromq", put_zeromq}, {"protobuf-c", put_protobuf}, {"openblas", put_openblas},
    {"onednn", put_onednn}, {"libyaml", put_yaml},        {"jansson", put_jansson},
    {"xxhash", put_xxhash}, {"zlib", put_zlib},           {"libdeflate", put_deflate},
};

const char *wf_build_library(size_t i, char version[static WF_BUILD_TEXT])
{
    if (i >= WF_COUNT(libraries))
        return NULL;
    libraries[i].version(version);
    return libraries[i].name;
}

const char *wf_build_version_of(const char *library, char version[static WF_BUILD_TEXT])
{
    const char *name;

    for (size_t i = 0; (name = wf_build_library(i, version)); i++)
        if (strcmp(name, library) == 0)
            return version;
    version[0] = 0;
    return version;
}

/* ---- the processor ---- */

const char *wf_build_unit(size_t i)
{
    const wf_cpu_units *cpu = wf_cpu_has();
    const struct {
        const char *name;
        bool there;
    } units[] = {
#ifdef __x86_64__
        {"avx2", __builtin_cpu_supports("avx2")},
#endif
        {"avx512", cpu->avx512},
        {"bf16", cpu->bf16},
        {"amx", cpu->tiles},
    };

    for (size_t k = 0; k < WF_COUNT(units); k++)
        if (units[k].there && i-- == 0)
            return units[k].name;
    return NULL;
}
