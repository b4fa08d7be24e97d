/* What belongs to one token: embedding, norms, rotation, and what becomes of the sums of a product.  Over sixteen lanes. */

ALWAYS lanes load_lanes(int64_t bf16, const void *p, int64_t at) {
    return bf16 ? lanes_from_bf16((const uint16_t *)p + at) : lanes_load((const float *)p + at);
}

ALWAYS void store_lanes(int64_t bf16, void *p, int64_t at, lanes x) {
    if (bf16)
        lanes_to_bf16((uint16_t *)p + at, x);
    else
        lanes_store((float *)p + at, x);
}

/* The first n lanes only. */
ALWAYS void store_first(int64_t bf16, void *p, int64_t at, lanes x, int64_t n) {
    uint32_t whole[LMC_LANES];
    if (n >= LMC_LANES) {
        store_lanes(bf16, p, at, x);
        return;
    }
    store_lanes(bf16, whole, 0, x);
    memcpy(lmc_at(p, at, bf16), whole, (size_t)n * (bf16 ? 2 : 4));
}

/* e^x, within two units in the last place; 0 below -87, infinity above 89. */
ALWAYS lanes exp_lanes(lanes x) {
    lanes bounded = lanes_min(lanes_set(89.0f), lanes_max(lanes_set(-87.0f), x));
    lanes n = lanes_round(lanes_mul(bounded, lanes_set(1.44269504f)));
    // ln 2 in two parts: the first has few bits, so that its product with n is exact.
    lanes r = lanes_fma(n, lanes_set(-0.693359375f), bounded);
    r = lanes_fma(n, lanes_set(2.12194440e-4f), r);
    // Taylor's polynomial, with the last coefficients fitted to |r| <= ln 2 / 2 (Cephes, expf).
    lanes p = lanes_fma(lanes_set(1.9875691500e-4f), r, lanes_set(1.3981999507e-3f));
    p = lanes_fma(p, r, lanes_set(8.3334519073e-3f));
    p = lanes_fma(p, r, lanes_set(4.1665795894e-2f));
    p = lanes_fma(p, r, lanes_set(1.6666665459e-1f));
    p = lanes_fma(p, r, lanes_set(0.5f));
    p = lanes_add(lanes_fma(p, lanes_mul(r, r), r), lanes_set(1.0f));
    return lanes_unless_below(x, -87.0f, lanes_mul(p, lanes_pow2(n)));
}

static void embed_token(int64_t bf16, const void *embedding, int64_t hidden, float *x) {
    if (!bf16) {
        memcpy(x, embedding, (size_t)hidden * sizeof *x);
        return;
    }
    const uint16_t *values = embedding;
    for (int64_t i = 0; i < hidden; i++) {
        uint32_t bits = (uint32_t)values[i] << 16;
        memcpy(x + i, &bits, 4);
    }
}

/* 1 / sqrt(mean(x^2) + eps) of n numbers, padded with zeros. */
ALWAYS float inverse_size(const float *x, int64_t n, float eps) {
    lanes squares = lanes_set(0.0f);
    for (int64_t i = 0; i < n; i += LMC_LANES) {
        lanes part = lanes_load(x + i);
        squares = lanes_fma(part, part, squares);
    }
    return 1.0f / sqrtf(lanes_sum(squares) / (float)n + eps);
}

static void norm_token(int64_t bf16, const float *x, const float *weight, int64_t hidden, float eps, void *out) {
    lanes scale = lanes_set(inverse_size(x, hidden, eps));
    for (int64_t i = 0; i < hidden; i += LMC_LANES)
        store_lanes(bf16, out, i, lanes_mul(lanes_load(weight + i), lanes_mul(lanes_load(x + i), scale)));
}

enum { LONGEST_HEAD = 512 };

/* Plain loops: they are short, and the compiler's vectors round each element as a single one does. */
static void turn(const float *x, int64_t half, const float *cosines, const float *sines, float *out) {
    for (int64_t i = 0; i < half; i++) {
        float first = x[i], second = x[half + i];
        out[i] = first * cosines[i] - second * sines[i];
        out[half + i] = second * cosines[i] + first * sines[i];
    }
}

static void head_token(int64_t bf16, const float *x, int64_t head_dim, const float *norm, float eps, const float *cosines,
                       const float *sines, void *out) {
    float normed[LONGEST_HEAD + LMC_LANES], turned[LONGEST_HEAD + LMC_LANES];
    const float *source = x;
    if (norm) {
        memset(turned + head_dim / LMC_LANES * LMC_LANES, 0, LMC_LANES * sizeof *turned);
        memcpy(turned, x, (size_t)head_dim * sizeof *x);
        norm_token(0, turned, norm, head_dim, eps, normed);
        source = normed;
    }
    if (cosines) {
        turn(source, head_dim / 2, cosines, sines, turned);
        source = turned;
    }
    for (int64_t i = 0; i < head_dim; i += LMC_LANES) {
        lanes part = lanes_first(head_dim - i, lanes_load(source + i), 0.0f);
        store_first(bf16, out, i, part, head_dim - i);
    }
}

/* Gates and values come in blocks by turns; block pair `first / 32 + …` gives sixteen elements. */
ALWAYS void finish_gate(const lmc_target *target, const float *sums, int64_t row, int64_t first, int64_t columns) {
    for (int64_t i = 0; i < columns; i += 2 * LMC_LANES) {
        lanes gate = lanes_load(sums + i), up = lanes_load(sums + i + LMC_LANES);
        if (target->bias) {
            gate = lanes_add(gate, lanes_load(target->bias + first + i));
            up = lanes_add(up, lanes_load(target->bias + first + i + LMC_LANES));
        }
        lanes silu = lanes_div(gate, lanes_add(lanes_set(1.0f), exp_lanes(lanes_sub(lanes_set(0.0f), gate))));
        int64_t at = row * target->stride + (first + i) / 2;
        store_lanes(target->bf16, target->out, at, lanes_mul(silu, up));
    }
}

ALWAYS void finish_sums(const lmc_target *target, const float *sums, int64_t row, int64_t first, int64_t columns) {
    for (int64_t i = 0; i < columns && first + i < target->columns; i += LMC_LANES) {
        float *out = (float *)target->out + row * target->stride + first + i;
        lanes value = lanes_load(sums + i);
        if (target->bias) value = lanes_add(value, lanes_load(target->bias + first + i));
        if (target->kind == LMC_ADD) value = lanes_add(lanes_load(out), value);
        store_first(0, out, 0, value, target->columns - first - i);
    }
}

static void finish_rows(const lmc_target *target, const float *sums, int64_t sums_stride, int64_t row, int64_t rows, int64_t first,
                        int64_t columns) {
    for (int64_t i = row; i < row + rows; i++, sums += sums_stride) {
        int64_t place = target->places ? target->places[i] : i;
        if (target->kind == LMC_GATE)
            finish_gate(target, sums, place, first, columns);
        else
            finish_sums(target, sums, place, first, columns);
    }
}
