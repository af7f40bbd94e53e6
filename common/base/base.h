/* SPDX-License-Identifier: Apache-2.0 */
/* common/base/base.h - the front door of common/base: status and errors, arenas, byte strings, size
 * arithmetic, counter-based random numbers, files, the clocks. It knows nothing of weft. */
#ifndef WF_BASE_BASE_H
#define WF_BASE_BASE_H

#include "common/base/arena.h"
#include "common/base/bytes.h"
#include "common/base/cc.h"
#include "common/base/clock.h"
#include "common/base/file.h"
#include "common/base/machine.h"
#include "common/base/nearest.h"
#include "common/base/pages.h"
#include "common/base/rng.h"
#include "common/base/size.h"
#include "common/base/status.h"
#include "common/base/text.h"

#endif
