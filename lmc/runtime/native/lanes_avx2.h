/* Sixteen float32 lanes in two AVX2 registers.  See lanes_scalar.h for what each name means. */

#include <immintrin.h>
#include <stdint.h>
#include <string.h>

typedef struct { __m256 low, high; } lanes;

#define BOTH(f, a, b) (lanes){f((a).low, (b).low), f((a).high, (b).high)}

static inline lanes lanes_set(float x) { return (lanes){_mm256_set1_ps(x), _mm256_set1_ps(x)}; }
static inline lanes lanes_load(const float *p) { return (lanes){_mm256_loadu_ps(p), _mm256_loadu_ps(p + 8)}; }
static inline void lanes_store(float *p, lanes x) { _mm256_storeu_ps(p, x.low); _mm256_storeu_ps(p + 8, x.high); }
static inline lanes lanes_add(lanes a, lanes b) { return BOTH(_mm256_add_ps, a, b); }
static inline lanes lanes_sub(lanes a, lanes b) { return BOTH(_mm256_sub_ps, a, b); }
static inline lanes lanes_mul(lanes a, lanes b) { return BOTH(_mm256_mul_ps, a, b); }
static inline lanes lanes_div(lanes a, lanes b) { return BOTH(_mm256_div_ps, a, b); }
static inline lanes lanes_max(lanes a, lanes b) { return BOTH(_mm256_max_ps, a, b); }
static inline lanes lanes_min(lanes a, lanes b) { return BOTH(_mm256_min_ps, a, b); }
static inline lanes lanes_fma(lanes a, lanes b, lanes c) {
    return (lanes){_mm256_fmadd_ps(a.low, b.low, c.low), _mm256_fmadd_ps(a.high, b.high, c.high)};
}

static inline __m256 round8(__m256 x) { return _mm256_round_ps(x, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC); }
static inline lanes lanes_round(lanes x) { return (lanes){round8(x.low), round8(x.high)}; }

static inline __m256 pow2_8(__m256 n) {
    __m256i bits = _mm256_slli_epi32(_mm256_add_epi32(_mm256_cvtps_epi32(n), _mm256_set1_epi32(127)), 23);
    // NaN stays NaN: as an integer it would become a plain power.
    return _mm256_blendv_ps(_mm256_castsi256_ps(bits), n, _mm256_cmp_ps(n, n, _CMP_UNORD_Q));
}
static inline lanes lanes_pow2(lanes n) { return (lanes){pow2_8(n.low), pow2_8(n.high)}; }

static inline __m256 unless_below8(__m256 test, float limit, __m256 x) {
    return _mm256_and_ps(_mm256_cmp_ps(test, _mm256_set1_ps(limit), _CMP_NLT_UQ), x);
}
static inline lanes lanes_unless_below(lanes test, float limit, lanes x) {
    return (lanes){unless_below8(test.low, limit, x.low), unless_below8(test.high, limit, x.high)};
}
static inline __m256 first8(int64_t n, __m256 x, float fill) {
    int bound = n < 0 ? 0 : n > 8 ? 8 : (int)n;
    __m256i kept = _mm256_cmpgt_epi32(_mm256_set1_epi32(bound), _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7));
    return _mm256_blendv_ps(_mm256_set1_ps(fill), x, _mm256_castsi256_ps(kept));
}
static inline lanes lanes_first(int64_t n, lanes x, float fill) {
    return (lanes){first8(n, x.low, fill), first8(n - 8, x.high, fill)};
}

static inline __m256 from_bf16_8(const uint16_t *p) {
    __m256i bits = _mm256_cvtepu16_epi32(_mm_loadu_si128((const __m128i *)p));
    return _mm256_castsi256_ps(_mm256_slli_epi32(bits, 16));
}
static inline lanes lanes_from_bf16(const uint16_t *p) { return (lanes){from_bf16_8(p), from_bf16_8(p + 8)}; }

static inline __m256i to_bf16_8(__m256 x) {
    __m256i bits = _mm256_castps_si256(x), top = _mm256_srli_epi32(bits, 16);
    __m256i odd = _mm256_and_si256(top, _mm256_set1_epi32(1));
    __m256i rounded = _mm256_srli_epi32(_mm256_add_epi32(_mm256_add_epi32(bits, _mm256_set1_epi32(0x7fff)), odd), 16);
    __m256i quiet = _mm256_or_si256(top, _mm256_set1_epi32(64));
    return _mm256_blendv_epi8(rounded, quiet, _mm256_castps_si256(_mm256_cmp_ps(x, x, _CMP_UNORD_Q)));
}
static inline void lanes_to_bf16(uint16_t *p, lanes x) {
    __m256i both = _mm256_packus_epi32(to_bf16_8(x.low), to_bf16_8(x.high));
    _mm256_storeu_si256((__m256i *)p, _mm256_permute4x64_epi64(both, 0xd8));
}

static inline float lanes_sum(lanes x) {
    __m256 eight = _mm256_add_ps(x.low, x.high);
    __m128 four = _mm_add_ps(_mm256_castps256_ps128(eight), _mm256_extractf128_ps(eight, 1));
    __m128 two = _mm_add_ps(four, _mm_movehl_ps(four, four));
    return _mm_cvtss_f32(_mm_add_ss(two, _mm_shuffle_ps(two, two, 1)));
}
static inline float lanes_top(lanes x) {
    __m256 eight = _mm256_max_ps(x.low, x.high);
    __m128 four = _mm_max_ps(_mm256_castps256_ps128(eight), _mm256_extractf128_ps(eight, 1));
    __m128 two = _mm_max_ps(four, _mm_movehl_ps(four, four));
    return _mm_cvtss_f32(_mm_max_ss(two, _mm_shuffle_ps(two, two, 1)));
}

static inline lanes dot_f32(lanes sums, uint32_t x, const uint32_t *w) {
    __m256 value = _mm256_castsi256_ps(_mm256_set1_epi32((int)x));
    return lanes_fma((lanes){value, value}, lanes_load((const float *)w), sums);
}
static inline __m256 dot_bf16_8(__m256 sums, __m256i pair, const uint32_t *w) {
    __m256i weights = _mm256_loadu_si256((const __m256i *)w), high = _mm256_set1_epi32((int)0xffff0000u);
    sums = _mm256_fmadd_ps(_mm256_castsi256_ps(_mm256_slli_epi32(pair, 16)), _mm256_castsi256_ps(_mm256_slli_epi32(weights, 16)), sums);
    return _mm256_fmadd_ps(_mm256_castsi256_ps(_mm256_and_si256(pair, high)),
                           _mm256_castsi256_ps(_mm256_and_si256(weights, high)), sums);
}
static inline lanes dot_bf16(lanes sums, uint32_t x, const uint32_t *w) {
    __m256i pair = _mm256_set1_epi32((int)x);
    return (lanes){dot_bf16_8(sums.low, pair, w), dot_bf16_8(sums.high, pair, w + 8)};
}
/* Eight rows of eight words: three rounds of exchanges, at distances 1, 2 and 4. */
static inline void transpose8(const uint32_t *const rows[8], int64_t at, uint32_t *out) {
    __m256 a[8], b[8];
    for (int i = 0; i < 8; i++) a[i] = _mm256_loadu_ps((const float *)(const void *)(rows[i] + at));
    for (int i = 0; i < 8; i += 2) {
        b[i] = _mm256_unpacklo_ps(a[i], a[i + 1]);
        b[i + 1] = _mm256_unpackhi_ps(a[i], a[i + 1]);
    }
    for (int i = 0; i < 8; i += 4) {
        a[i] = _mm256_shuffle_ps(b[i], b[i + 2], 0x44);
        a[i + 1] = _mm256_shuffle_ps(b[i], b[i + 2], 0xee);
        a[i + 2] = _mm256_shuffle_ps(b[i + 1], b[i + 3], 0x44);
        a[i + 3] = _mm256_shuffle_ps(b[i + 1], b[i + 3], 0xee);
    }
    for (int i = 0; i < 4; i++) {
        _mm256_storeu_ps((float *)(void *)(out + 16 * i), _mm256_permute2f128_ps(a[i], a[i + 4], 0x20));
        _mm256_storeu_ps((float *)(void *)(out + 16 * (i + 4)), _mm256_permute2f128_ps(a[i], a[i + 4], 0x31));
    }
}
static inline void transpose(const uint32_t *const rows[16], uint32_t *out) {
    for (int half = 0; half < 2; half++)
        for (int at = 0; at < 16; at += 8) transpose8(rows + 8 * half, at, out + 16 * at + 8 * half);
}

/* Sums of two registers each; the weights and the broadcast come from memory. */
#define LANES_TALL 4
#define LANES_SUMS 4
#define LANES_STRIP 4
