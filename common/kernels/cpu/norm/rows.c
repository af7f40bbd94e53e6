/* SPDX-License-Identifier: Apache-2.0 */
/* common/kernels/cpu/norm/rows.c */
#include "common/kernels/cpu/norm/rows.h"
#include "common/base/cc.h"
#include "common/base/size.h"
#include "common/kernels/cpu/lanes.h"

enum { BLOCK = 4096 };

#define T float
#define SUFFIX f32
#include "common/kernels/cpu/norm/rows_template.h"

#define T double
#define SUFFIX f64
#include "common/kernels/cpu/norm/rows_template.h"
