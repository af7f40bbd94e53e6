/* SPDX-License-Identifier: Apache-2.0 */
/* common/data/strokes.h - how digits are written: several ways each, as a pen goes. For this room
 * only. */
#ifndef WF_DATA_STROKES_H
#define WF_DATA_STROKES_H

#include <stdint.h>

enum {
    WF_PEN_UP = 255,       /* as x: the pen is lifted; what follows is another stroke */
    WF_PEN_END = 254,      /* as x: the digit is done */
    WF_STROKES_POINTS = 32 /* at most, of one way */
};

/* A point of a box of 100 x 100, y downward. A point given twice is a corner. */
typedef struct wf_pen {
    uint8_t x, y;
} wf_pen;

/* Ways of writing `digit` < 10. */
uint32_t wf_strokes_ways(uint32_t digit);
/* One of them: points up to WF_PEN_END. */
const wf_pen *wf_strokes(uint32_t digit, uint32_t way);

#endif
