/* Sixteen float32 lanes in four NEON registers (64-bit ARM).  See lanes_scalar.h for what each name means.
   Written with care and compiled for ARM in a test where a cross compiler is at hand; nobody has measured it. */

#include <arm_neon.h>
#include <stdint.h>
#include <string.h>

typedef struct { float32x4_t at[4]; } lanes;

#define EACH for (int i = 0; i < 4; i++)

static inline lanes lanes_set(float x) { lanes r; EACH r.at[i] = vdupq_n_f32(x); return r; }
static inline lanes lanes_load(const float *p) { lanes r; EACH r.at[i] = vld1q_f32(p + 4 * i); return r; }
static inline void lanes_store(float *p, lanes x) { EACH vst1q_f32(p + 4 * i, x.at[i]); }
static inline lanes lanes_add(lanes a, lanes b) { EACH a.at[i] = vaddq_f32(a.at[i], b.at[i]); return a; }
static inline lanes lanes_sub(lanes a, lanes b) { EACH a.at[i] = vsubq_f32(a.at[i], b.at[i]); return a; }
static inline lanes lanes_mul(lanes a, lanes b) { EACH a.at[i] = vmulq_f32(a.at[i], b.at[i]); return a; }
static inline lanes lanes_div(lanes a, lanes b) { EACH a.at[i] = vdivq_f32(a.at[i], b.at[i]); return a; }
static inline lanes lanes_fma(lanes a, lanes b, lanes c) { EACH c.at[i] = vfmaq_f32(c.at[i], a.at[i], b.at[i]); return c; }
static inline lanes lanes_max(lanes a, lanes b) { EACH a.at[i] = vmaxq_f32(a.at[i], b.at[i]); return a; }
static inline lanes lanes_min(lanes a, lanes b) { EACH a.at[i] = vminq_f32(a.at[i], b.at[i]); return a; }
static inline lanes lanes_round(lanes x) { EACH x.at[i] = vrndnq_f32(x.at[i]); return x; }

static inline lanes lanes_pow2(lanes n) {
    EACH {
        int32x4_t bits = vshlq_n_s32(vaddq_s32(vcvtq_s32_f32(n.at[i]), vdupq_n_s32(127)), 23);
        // NaN stays NaN: as an integer it would become a plain power.
        n.at[i] = vbslq_f32(vceqq_f32(n.at[i], n.at[i]), vreinterpretq_f32_s32(bits), n.at[i]);
    }
    return n;
}
static inline lanes lanes_unless_below(lanes test, float limit, lanes x) {
    EACH x.at[i] = vbslq_f32(vcltq_f32(test.at[i], vdupq_n_f32(limit)), vdupq_n_f32(0.0f), x.at[i]);
    return x;
}
static inline lanes lanes_first(int64_t n, lanes x, float fill) {
    static const int32_t places[4] = {0, 1, 2, 3};
    int32_t bound = n < 0 ? 0 : n > 16 ? 16 : (int32_t)n;
    EACH {
        uint32x4_t kept = vcltq_s32(vld1q_s32(places), vdupq_n_s32(bound - 4 * i));
        x.at[i] = vbslq_f32(kept, x.at[i], vdupq_n_f32(fill));
    }
    return x;
}
static inline lanes lanes_from_bf16(const uint16_t *p) {
    lanes r;
    EACH r.at[i] = vreinterpretq_f32_u32(vshll_n_u16(vld1_u16(p + 4 * i), 16));
    return r;
}
static inline void lanes_to_bf16(uint16_t *p, lanes x) {
    EACH {
        uint32x4_t bits = vreinterpretq_u32_f32(x.at[i]), top = vshrq_n_u32(bits, 16);
        uint32x4_t odd = vandq_u32(top, vdupq_n_u32(1));
        uint32x4_t rounded = vshrq_n_u32(vaddq_u32(vaddq_u32(bits, vdupq_n_u32(0x7fff)), odd), 16);
        rounded = vbslq_u32(vceqq_f32(x.at[i], x.at[i]), rounded, vorrq_u32(top, vdupq_n_u32(64)));
        vst1_u16(p + 4 * i, vmovn_u32(rounded));
    }
}
static inline float lanes_sum(lanes x) {
    float32x4_t four = vaddq_f32(vaddq_f32(x.at[0], x.at[2]), vaddq_f32(x.at[1], x.at[3]));
    return vaddvq_f32(four);
}
static inline float lanes_top(lanes x) {
    return vmaxvq_f32(vmaxq_f32(vmaxq_f32(x.at[0], x.at[1]), vmaxq_f32(x.at[2], x.at[3])));
}
static inline lanes dot_f32(lanes sums, uint32_t x, const uint32_t *w) {
    float32x4_t value = vreinterpretq_f32_u32(vdupq_n_u32(x));
    EACH sums.at[i] = vfmaq_f32(sums.at[i], value, vreinterpretq_f32_u32(vld1q_u32(w + 4 * i)));
    return sums;
}
static inline lanes dot_bf16(lanes sums, uint32_t x, const uint32_t *w) {
    uint32x4_t pair = vdupq_n_u32(x), high = vdupq_n_u32(0xffff0000u);
    float32x4_t even = vreinterpretq_f32_u32(vshlq_n_u32(pair, 16)), odd = vreinterpretq_f32_u32(vandq_u32(pair, high));
    EACH {
        uint32x4_t weights = vld1q_u32(w + 4 * i);
        sums.at[i] = vfmaq_f32(sums.at[i], even, vreinterpretq_f32_u32(vshlq_n_u32(weights, 16)));
        sums.at[i] = vfmaq_f32(sums.at[i], odd, vreinterpretq_f32_u32(vandq_u32(weights, high)));
    }
    return sums;
}
static inline void transpose(const uint32_t *const rows[16], uint32_t *out) {
    for (int word = 0; word < 16; word++)
        for (int i = 0; i < 16; i++) out[16 * word + i] = rows[i][word];
}

/* Sums of four registers each, of 32. */
#define LANES_TALL 4
#define LANES_SUMS 6
#define LANES_STRIP 4
