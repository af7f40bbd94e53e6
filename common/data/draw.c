/* SPDX-License-Identifier: Apache-2.0 */
/* common/data/draw.c - one drawn digit: points of a stroke, bent; a smooth line through them, bent
 * again; a pen of some width along it; noise.
 *
 * Only + - * / and sqrt of f32 (the build sets -ffp-contract=off), and random numbers from a
 * counter: so a pixel is the same everywhere. Rotation is by the tangent of half its angle, for
 * want of sin.
 */
#include "common/base/rng.h"
#include "common/base/size.h"
#include "common/data/digits.h"
#include "common/data/strokes.h"

#include <math.h>
#include <string.h>

enum {
    SIDE = WF_DIGITS_SIDE,
    BLOCKS = 256, /* of random numbers, at most, for one image */
    LATTICE = 4,  /* nodes of the bending field along each axis */
    PIECES = 5    /* straight pieces between two points of a stroke */
};

/* How far things vary; tuned so that a linear model does badly and a small network well. All are
 * ends of a range, in pixels where nothing else is said. */
static const float height_least = 16.9f, height_most = 20.6f;
static const float aspect_least = 0.59f, aspect_most = 0.91f; /* width by height */
static const float turn_most = 0.10f; /* tan of half the angle: 11.4 degrees */
static const float shear_most = 0.26f;
static const float shift_most = 1.15f;
static const float wobble = 0.047f;                     /* of a point, of the box */
static const float bend = 1.07f;                        /* of a node of the field */
static const float pen_least = 0.75f, pen_most = 1.75f; /* radius */
static const float ink_least = 0.70f;                   /* darkest grey of a pen, of white */
static const float grain = 0.22f;                       /* noise on ink, of its grey */
static const float speck = 0.06f;                       /* noise everywhere */

typedef struct seeded {
    wf_rng_key key;
    uint64_t counter;
    uint32_t words[4], left;
} seeded;

static uint32_t draw_word(seeded *l)
{
    if (l->left == 0) {
        wf_rng_block(l->key, l->counter++, l->words);
        l->left = 4;
    }
    return l->words[--l->left];
}

/* In [least, most). */
static float between(seeded *l, float least, float most)
{
    return least + (float)(draw_word(l) >> 8) * 0x1p-24f * (most - least);
}

/* Bell-shaped around 0 with the standard deviation `spread`: four uniform numbers. */
static float around(seeded *l, float spread)
{
    float sum = 0;

    for (int i = 0; i < 4; i++)
        sum += between(l, -1, 1);
    return sum * spread * 0.8660254f; /* the sum's own deviation is sqrt(4 / 3) */
}

typedef struct point {
    float x, y;
} point;

/* An image being drawn: how its box is laid on the pixels, and its pen. */
typedef struct sheet {
    float xx, xy, yx, yy, x0, y0; /* the affine map */
    point field[LATTICE][LATTICE];
    float pen, taper, soft; /* radius at the start, its change to the end, width of the edge */
    float ink[WF_DIGITS_PIXELS];
} sheet;

static void lay_out(sheet *s, seeded *l)
{
    float height = between(l, height_least, height_most);
    float width = height * between(l, aspect_least, aspect_most);
    float t = between(l, -turn_most, turn_most), square = 1 + t * t;
    float c = (1 - t * t) / square, sine = 2 * t / square;
    float shear = between(l, -shear_most, shear_most);

    s->xx = c * width;
    s->xy = (c * shear - sine) * height;
    s->yx = sine * width;
    s->yy = (sine * shear + c) * height;
    s->x0 = (float)SIDE / 2 + between(l, -shift_most, shift_most);
    s->y0 = (float)SIDE / 2 + between(l, -shift_most, shift_most);
    for (int i = 0; i < LATTICE; i++)
        for (int k = 0; k < LATTICE; k++)
            s->field[i][k] = (point){around(l, bend), around(l, bend)};
    s->pen = between(l, pen_least, pen_most);
    s->taper = between(l, -0.35f, 0.35f) * s->pen;
    s->soft = between(l, 0.8f, 1.5f);
}

/* The smooth step from 0 to 1, so that the field has no creases. */
static float ease(float x)
{
    return x * x * (3 - 2 * x);
}

/* From the box, x and y about -0.5 to 0.5, to pixels. */
static point place(const sheet *s, point p)
{
    point q = {s->x0 + s->xx * p.x + s->xy * p.y, s->y0 + s->yx * p.x + s->yy * p.y};
    float u = WF_MIN(WF_MAX(q.x / SIDE, 0), 0.999f) * (LATTICE - 1);
    float v = WF_MIN(WF_MAX(q.y / SIDE, 0), 0.999f) * (LATTICE - 1);
    int i = (int)v, k = (int)u;
    float a = ease(u - (float)k), b = ease(v - (float)i);
    const point *n = &s->field[i][k], *m = &s->field[i + 1][k];

    q.x += (1 - b) * ((1 - a) * n[0].x + a * n[1].x) + b * ((1 - a) * m[0].x + a * m[1].x);
    q.y += (1 - b) * ((1 - a) * n[0].y + a * n[1].y) + b * ((1 - a) * m[0].y + a * m[1].y);
    return q;
}

static int clamp_pixel(float x)
{
    return x < 0 ? 0 : x > SIDE - 1 ? SIDE - 1 : (int)x;
}

/* A straight piece of pen of radius r: grey by the distance of a pixel's middle from it. */
static void draw_piece(sheet *s, point a, point b, float r)
{
    float dx = b.x - a.x, dy = b.y - a.y, length = dx * dx + dy * dy + 1e-9f;
    float reach = r + s->soft;
    int left = clamp_pixel(WF_MIN(a.x, b.x) - reach), right = clamp_pixel(WF_MAX(a.x, b.x) + reach);
    int top = clamp_pixel(WF_MIN(a.y, b.y) - reach), end = clamp_pixel(WF_MAX(a.y, b.y) + reach);

    for (int y = top; y <= end; y++)
        for (int x = left; x <= right; x++) {
            float px = (float)x + 0.5f - a.x, py = (float)y + 0.5f - a.y;
            float t = WF_MIN(WF_MAX((px * dx + py * dy) / length, 0), 1);
            float ex = px - t * dx, ey = py - t * dy;
            float grey = (r - sqrtf(ex * ex + ey * ey)) / s->soft + 0.5f;
            float *ink = &s->ink[y * SIDE + x];

            *ink = WF_MAX(*ink, WF_MIN(grey, 1));
        }
}

/* Catmull and Rom's curve from b to c, a and d being before and after. */
static point on_curve(point a, point b, point c, point d, float t)
{
    float t2 = t * t, t3 = t2 * t;
    float wa = -t3 + 2 * t2 - t, wb = 3 * t3 - 5 * t2 + 2, wc = -3 * t3 + 4 * t2 + t, wd = t3 - t2;

    return (point){0.5f * (wa * a.x + wb * b.x + wc * c.x + wd * d.x),
                   0.5f * (wa * a.y + wb * b.y + wc * c.y + wd * d.y)};
}

static void draw_stroke(sheet *s, const point p[], size_t n)
{
    point from = place(s, p[0]);

    for (size_t i = 0; i + 1 < n; i++) {
        point a = p[i ? i - 1 : 0], d = p[i + 2 < n ? i + 2 : n - 1];
        float r = s->pen + s->taper * ((float)i / (float)n - 0.5f);

        for (int k = 1; k <= PIECES; k++) {
            point to = place(s, on_curve(a, p[i], p[i + 1], d, (float)k / PIECES));

            draw_piece(s, from, to, r);
            from = to;
        }
    }
}

static void draw_strokes(sheet *s, const wf_pen *pen, seeded *l)
{
    point points[WF_STROKES_POINTS], moved = {0};
    size_t n = 0;

    for (const wf_pen *p = pen;; p++) {
        if (p->x == WF_PEN_UP || p->x == WF_PEN_END) {
            draw_stroke(s, points, n);
            n = 0;
            if (p->x == WF_PEN_END)
                return;
            continue;
        }
        if (n == 0 || p->x != p[-1].x || p->y != p[-1].y) /* a corner's two points stay one place */
            moved = (point){around(l, wobble), around(l, wobble)};
        points[n++] =
            (point){(float)p->x / 100 - 0.5f + moved.x, (float)p->y / 100 - 0.5f + moved.y};
    }
}

/* One byte of noise a pixel, from -1 to 1. */
static void develop(const sheet *s, seeded *l, uint8_t pixels[])
{
    float white = between(l, ink_least, 1);
    uint32_t word = 0;

    for (int i = 0; i < WF_DIGITS_PIXELS; i++, word >>= 8) {
        float noise, grey;

        if (i % 4 == 0)
            word = draw_word(l);
        noise = (float)((int)(word & 255) - 128) / 128;
        grey = s->ink[i] * white * (1 + grain * noise) + (s->ink[i] > 0 ? speck * noise : 0);
        pixels[i] = (uint8_t)(WF_MIN(WF_MAX(grey, 0), 1) * 255 + 0.5f);
    }
}

uint8_t wf_digits_draw(uint64_t seed, uint32_t file, uint64_t index, uint8_t pixels[])
{
    seeded l = {.key = {seed, wf_rng_fold(wf_rng_fold_str(0, "digits"), file)},
                .counter = index * BLOCKS};
    uint32_t digit = draw_word(&l) % WF_DIGITS_CLASSES;
    sheet s = {0};

    lay_out(&s, &l);
    draw_strokes(&s, wf_strokes(digit, draw_word(&l) % wf_strokes_ways(digit)), &l);
    develop(&s, &l, pixels);
    return (uint8_t)digit;
}
