/* Sixteen float32 lanes in plain C: for any processor, and what the other lanes are compared with.

   Every lanes_*.h gives the same names.  A `lanes` is sixteen float32; masks never leave this file.  `fma` may round once or twice: a
   level's bits are its own. */

#include <math.h>
#include <stdint.h>
#include <string.h>

typedef struct { float at[16]; } lanes;

#define EACH for (int i = 0; i < 16; i++)

static inline lanes lanes_set(float x) { lanes r; EACH r.at[i] = x; return r; }
static inline lanes lanes_load(const float *p) { lanes r; memcpy(r.at, p, sizeof r.at); return r; }
static inline void lanes_store(float *p, lanes x) { memcpy(p, x.at, sizeof x.at); }
static inline lanes lanes_add(lanes a, lanes b) { EACH a.at[i] += b.at[i]; return a; }
static inline lanes lanes_sub(lanes a, lanes b) { EACH a.at[i] -= b.at[i]; return a; }
static inline lanes lanes_mul(lanes a, lanes b) { EACH a.at[i] *= b.at[i]; return a; }
static inline lanes lanes_div(lanes a, lanes b) { EACH a.at[i] /= b.at[i]; return a; }
/* a * b + c */
static inline lanes lanes_fma(lanes a, lanes b, lanes c) { EACH c.at[i] += a.at[i] * b.at[i]; return c; }
/* NaN in `b` stays NaN. */
static inline lanes lanes_max(lanes a, lanes b) { EACH b.at[i] = a.at[i] > b.at[i] ? a.at[i] : b.at[i]; return b; }
static inline lanes lanes_min(lanes a, lanes b) { EACH b.at[i] = a.at[i] < b.at[i] ? a.at[i] : b.at[i]; return b; }

static inline float word_float(uint32_t bits) { float x; memcpy(&x, &bits, 4); return x; }
static inline uint32_t float_word(float x) { uint32_t bits; memcpy(&bits, &x, 4); return bits; }

/* To the nearest whole number, by the rounding of an addition; |x| < 2^22. */
static inline lanes lanes_round(lanes x) {
    EACH { volatile float shifted = x.at[i] + 12582912.0f; x.at[i] = shifted - 12582912.0f; }
    return x;
}
/* 2^n of whole n, -126 <= n <= 128 (128 gives infinity). */
static inline lanes lanes_pow2(lanes n) {
    EACH n.at[i] = n.at[i] == n.at[i] ? word_float((uint32_t)((int32_t)n.at[i] + 127) << 23) : n.at[i];
    return n;
}
/* `x` where `test` is not below `limit` (or NaN), 0 elsewhere. */
static inline lanes lanes_unless_below(lanes test, float limit, lanes x) {
    EACH x.at[i] = test.at[i] < limit ? 0.0f : x.at[i];
    return x;
}
/* The first n lanes of x (n may be anything), `fill` in the rest. */
static inline lanes lanes_first(int64_t n, lanes x, float fill) { EACH x.at[i] = i < n ? x.at[i] : fill; return x; }

static inline lanes lanes_from_bf16(const uint16_t *p) {
    lanes r;
    EACH r.at[i] = word_float((uint32_t)p[i] << 16);
    return r;
}
/* Rounds to the nearest, ties to even; NaN stays NaN. */
static inline void lanes_to_bf16(uint16_t *p, lanes x) {
    EACH {
        uint32_t bits = float_word(x.at[i]);
        p[i] = (uint16_t)(x.at[i] != x.at[i] ? bits >> 16 | 64 : (bits + 0x7fff + (bits >> 16 & 1)) >> 16);
    }
}
/* In one fixed order. */
static inline float lanes_sum(lanes x) {
    for (int half = 8; half; half /= 2)
        for (int i = 0; i < half; i++) x.at[i] += x.at[i + half];
    return x.at[0];
}
static inline float lanes_top(lanes x) {
    float top = x.at[0];
    EACH top = x.at[i] > top ? x.at[i] : top;
    return top;
}
/* sums + x * w for sixteen outputs, of one word of inputs: a float32, or two bfloat16. */
static inline lanes dot_f32(lanes sums, uint32_t x, const uint32_t *w) {
    float value = word_float(x);
    EACH sums.at[i] += value * word_float(w[i]);
    return sums;
}
static inline lanes dot_bf16(lanes sums, uint32_t x, const uint32_t *w) {
    float low = word_float(x << 16), high = word_float(x & 0xffff0000u);
    EACH sums.at[i] = sums.at[i] + low * word_float(w[i] << 16) + high * word_float(w[i] & 0xffff0000u);
    return sums;
}
/* out[word][row] = rows[row][word] for sixteen rows and words. */
static inline void transpose(const uint32_t *const rows[16], uint32_t *out) {
    for (int word = 0; word < 16; word++)
        EACH out[16 * word + i] = rows[i][word];
}

/* The most rows of a product that are summed at once, how many sums of sixteen lanes, and the blocks of a piece (see level.h). */
#define LANES_TALL 4
#define LANES_SUMS 4
#define LANES_STRIP 4
