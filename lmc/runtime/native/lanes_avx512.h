/* Sixteen float32 lanes in one AVX-512 register.  See lanes_scalar.h for what each name means. */

#include <immintrin.h>
#include <stdint.h>
#include <string.h>

typedef __m512 lanes;

static inline lanes lanes_set(float x) { return _mm512_set1_ps(x); }
static inline lanes lanes_load(const float *p) { return _mm512_loadu_ps(p); }
static inline void lanes_store(float *p, lanes x) { _mm512_storeu_ps(p, x); }
static inline lanes lanes_add(lanes a, lanes b) { return _mm512_add_ps(a, b); }
static inline lanes lanes_sub(lanes a, lanes b) { return _mm512_sub_ps(a, b); }
static inline lanes lanes_mul(lanes a, lanes b) { return _mm512_mul_ps(a, b); }
static inline lanes lanes_div(lanes a, lanes b) { return _mm512_div_ps(a, b); }
static inline lanes lanes_fma(lanes a, lanes b, lanes c) { return _mm512_fmadd_ps(a, b, c); }
static inline lanes lanes_max(lanes a, lanes b) { return _mm512_max_ps(a, b); }
static inline lanes lanes_min(lanes a, lanes b) { return _mm512_min_ps(a, b); }
static inline lanes lanes_round(lanes x) { return _mm512_roundscale_ps(x, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC); }
static inline lanes lanes_pow2(lanes n) { return _mm512_scalef_ps(_mm512_set1_ps(1.0f), n); }

static inline lanes lanes_unless_below(lanes test, float limit, lanes x) {
    return _mm512_maskz_mov_ps(_mm512_cmp_ps_mask(test, _mm512_set1_ps(limit), _CMP_NLT_UQ), x);
}
static inline lanes lanes_first(int64_t n, lanes x, float fill) {
    __mmask16 kept = n >= 16 ? 0xffff : n <= 0 ? 0 : (__mmask16)((1u << n) - 1);
    return _mm512_mask_mov_ps(_mm512_set1_ps(fill), kept, x);
}
static inline lanes lanes_from_bf16(const uint16_t *p) {
    __m512i bits = _mm512_cvtepu16_epi32(_mm256_loadu_si256((const __m256i *)p));
    return _mm512_castsi512_ps(_mm512_slli_epi32(bits, 16));
}
static inline void lanes_to_bf16(uint16_t *p, lanes x) {
    __m512i bits = _mm512_castps_si512(x), top = _mm512_srli_epi32(bits, 16);
    __m512i odd = _mm512_and_si512(top, _mm512_set1_epi32(1));
    __m512i rounded = _mm512_srli_epi32(_mm512_add_epi32(_mm512_add_epi32(bits, _mm512_set1_epi32(0x7fff)), odd), 16);
    __mmask16 nan = _mm512_cmp_ps_mask(x, x, _CMP_UNORD_Q);
    rounded = _mm512_mask_or_epi32(rounded, nan, top, _mm512_set1_epi32(64));
    _mm256_storeu_si256((__m256i *)p, _mm512_cvtepi32_epi16(rounded));
}
static inline float lanes_sum(lanes x) { return _mm512_reduce_add_ps(x); }
static inline float lanes_top(lanes x) { return _mm512_reduce_max_ps(x); }

static inline lanes dot_f32(lanes sums, uint32_t x, const uint32_t *w) {
    return _mm512_fmadd_ps(_mm512_castsi512_ps(_mm512_set1_epi32((int)x)), _mm512_loadu_ps((const float *)w), sums);
}
#ifdef LANES_NATIVE_BF16
static inline lanes dot_bf16(lanes sums, uint32_t x, const uint32_t *w) {
    return _mm512_dpbf16_ps(sums, (__m512bh)_mm512_set1_epi32((int)x), (__m512bh)_mm512_loadu_si512(w));
}
#else
static inline lanes dot_bf16(lanes sums, uint32_t x, const uint32_t *w) {
    __m512i pair = _mm512_set1_epi32((int)x), weights = _mm512_loadu_si512(w), high = _mm512_set1_epi32((int)0xffff0000u);
    sums = _mm512_fmadd_ps(_mm512_castsi512_ps(_mm512_slli_epi32(pair, 16)), _mm512_castsi512_ps(_mm512_slli_epi32(weights, 16)), sums);
    return _mm512_fmadd_ps(_mm512_castsi512_ps(_mm512_and_si512(pair, high)),
                           _mm512_castsi512_ps(_mm512_and_si512(weights, high)), sums);
}
#endif

/* Four rounds of exchanges, at distances 1, 2, 4 and 8. */
static inline void transpose(const uint32_t *const rows[16], uint32_t *out) {
    __m512i a[16], b[16];
    for (int i = 0; i < 16; i++) a[i] = _mm512_loadu_si512(rows[i]);
    for (int i = 0; i < 16; i += 2) {
        b[i] = _mm512_unpacklo_epi32(a[i], a[i + 1]);
        b[i + 1] = _mm512_unpackhi_epi32(a[i], a[i + 1]);
    }
    for (int i = 0; i < 16; i += 4) {
        a[i] = _mm512_unpacklo_epi64(b[i], b[i + 2]);
        a[i + 1] = _mm512_unpackhi_epi64(b[i], b[i + 2]);
        a[i + 2] = _mm512_unpacklo_epi64(b[i + 1], b[i + 3]);
        a[i + 3] = _mm512_unpackhi_epi64(b[i + 1], b[i + 3]);
    }
    for (int i = 0; i < 4; i++) {
        b[i] = _mm512_shuffle_i32x4(a[i], a[i + 4], 0x88);
        b[i + 4] = _mm512_shuffle_i32x4(a[i], a[i + 4], 0xdd);
        b[i + 8] = _mm512_shuffle_i32x4(a[i + 8], a[i + 12], 0x88);
        b[i + 12] = _mm512_shuffle_i32x4(a[i + 8], a[i + 12], 0xdd);
    }
    for (int i = 0; i < 4; i++) {
        _mm512_storeu_si512(out + 16 * i, _mm512_shuffle_i32x4(b[i], b[i + 8], 0x88));
        _mm512_storeu_si512(out + 16 * (i + 4), _mm512_shuffle_i32x4(b[i + 4], b[i + 12], 0x88));
        _mm512_storeu_si512(out + 16 * (i + 8), _mm512_shuffle_i32x4(b[i], b[i + 8], 0xdd));
        _mm512_storeu_si512(out + 16 * (i + 12), _mm512_shuffle_i32x4(b[i + 4], b[i + 12], 0xdd));
    }
}

/* 24 sums, three weights and a broadcast: 28 of 32 registers. */
#define LANES_TALL 8
#define LANES_SUMS 24
#define LANES_STRIP 6
