/* Causal attention of some consecutive queries of a row over the row's slots, read from the pool where they lie.

       span of 256 positions:  keys   -> packed like a weight matrix of 256 outputs     scores = q . keys
                               values -> packed like one of head_dim outputs            sums   = weights . values
       spans are merged in ascending order by their largest scores (log-sum-exp)

   The span of a position is fixed (position / 256), keys that a query may not see have weight zero, and adding zero changes no bit: so
   a query's result does not depend on the queries beside it.  All heads of a key head share its packed keys and values. */

typedef struct {
    const lmc_tile *tile;
    int64_t rows, key_words, value_words, value_blocks;
    uint32_t *keys, *values, *weights;
    float *scores, *part, *sums, *tops, *totals;
} attention;

/* Row `n` of a pool of (slots, head_dim). */
ALWAYS const void *pool_row(const lmc_tile *tile, const void *pool, int64_t n) {
    return lmc_at(pool, (int64_t)tile->slots[n] * tile->head_dim, tile->bf16);
}

/* Positions between a key that is called for and the one in hand: long enough for memory, short enough for the first cache. */
enum { AHEAD = 32 };

ALWAYS void fetch(const void *row, int64_t words) {
    for (int64_t at = 0; at < words * 4; at += 64) __builtin_prefetch((const char *)row + at);
}

/* Sixteen keys as a block: out[word][key].  Keys from `count` on are zeros. */
static void pack_key_block(const lmc_tile *tile, int64_t first, int64_t count, int64_t words, uint32_t *out) {
    static const uint32_t nothing[LONGEST_HEAD];
    int64_t whole = tile->bf16 ? tile->head_dim / 2 : tile->head_dim;
    const uint32_t *rows[LMC_LANES];
    for (int64_t key = 0; key < LMC_LANES; key++) {
        rows[key] = key < count ? pool_row(tile, tile->keys, first + key) : nothing;
        if (key >= count) continue;
        // What is read soon is called for now: the values of these positions, and keys some way ahead.
        fetch(pool_row(tile, tile->values, first + key), whole);
        if (key + AHEAD < count) fetch(pool_row(tile, tile->keys, first + key + AHEAD), whole);
    }
    int64_t word = 0;
    for (; word + LMC_LANES <= whole; word += LMC_LANES) {
        transpose(rows, out + word * LMC_LANES);
        for (int64_t key = 0; key < LMC_LANES; key++) rows[key] += LMC_LANES;
    }
    if (word == words) return;
    uint32_t tail[LMC_LANES][LMC_LANES] = {0};  // behind the head's end lies another slot
    for (int64_t key = 0; key < LMC_LANES; key++) {
        memcpy(tail[key], rows[key], (size_t)(whole - word) * 4);
        rows[key] = tail[key];
    }
    transpose(rows, out + word * LMC_LANES);
}

/* Values as blocks of sixteen of their elements: out[block][word][element]; a word is one value, or two neighbouring ones in bfloat16. */
static void pack_values(const attention *a, int64_t first, int64_t count, int64_t words) {
    const lmc_tile *tile = a->tile;
    int64_t per_word = tile->bf16 ? 2 : 1;
    for (int64_t word = 0; word < words; word++) {
        int64_t at = word * per_word;
        const void *even = at < count ? pool_row(tile, tile->values, first + at) : NULL;
        const void *odd = tile->bf16 && at + 1 < count ? pool_row(tile, tile->values, first + at + 1) : NULL;
        for (int64_t block = 0; block < a->value_blocks; block++) {
            uint32_t *out = a->values + (block * words + word) * LMC_LANES;
            int64_t begin = block * LMC_LANES, n = tile->head_dim - begin < LMC_LANES ? tile->head_dim - begin : LMC_LANES;
            for (int64_t i = 0; i < LMC_LANES; i++) out[i] = 0;
            if (!tile->bf16) {
                if (even) memcpy(out, (const uint32_t *)even + begin, (size_t)n * 4);
                continue;
            }
            const uint16_t *low = even ? (const uint16_t *)even + begin : NULL, *high = odd ? (const uint16_t *)odd + begin : NULL;
            if (low && high && n == LMC_LANES)
                for (int64_t i = 0; i < LMC_LANES; i++) out[i] = low[i] | (uint32_t)high[i] << 16;
            else if (low)
                for (int64_t i = 0; i < n; i++) out[i] = low[i] | (high ? (uint32_t)high[i] << 16 : 0);
        }
    }
}

/* The first position that the query at `position` sees. */
ALWAYS int64_t first_seen(const lmc_tile *tile, int64_t position) {
    return tile->window && position >= tile->window ? position + 1 - tile->window : 0;
}

/* Scores of one query -> weights in the dtype, with the largest scaled score taken off; of `keys` keys it sees those from `hidden` to
   `seen`. */
ALWAYS void weigh(const attention *a, int64_t row, int64_t keys, int64_t hidden, int64_t seen, float *top, float *total) {
    float *scores = a->scores + row * LMC_SPAN;
    lanes scale = lanes_set(a->tile->scale), largest = lanes_set(-INFINITY), sum = lanes_set(0.0f);
    for (int64_t i = 0; i < keys; i += LMC_LANES) {
        lanes score = lanes_first(seen - i, lanes_mul(lanes_load(scores + i), scale), -INFINITY);
        if (i < hidden) score = lanes_min(lanes_first(hidden - i, lanes_set(-INFINITY), INFINITY), score);
        lanes_store(scores + i, score);
        largest = lanes_max(score, largest);
    }
    *top = lanes_top(largest);
    for (int64_t i = 0; i < keys; i += LMC_LANES) {
        lanes weight = exp_lanes(lanes_sub(lanes_load(scores + i), lanes_set(*top)));
        store_lanes(a->tile->bf16, a->weights + row * lmc_words(LMC_SPAN, a->tile->bf16), i, weight);
        sum = lanes_add(sum, weight);
    }
    *total = lanes_sum(sum);
}

static float exp_one(float x) {
    float all[LMC_LANES];
    lanes_store(all, exp_lanes(lanes_set(x)));
    return all[0];
}

/* The running sums of a query and those of its first span, or of a further one, brought to the larger top. */
ALWAYS void merge(const attention *a, int64_t row, int is_first, float top, float total) {
    int64_t width = a->value_blocks * LMC_LANES;
    float *sums = a->sums + row * width, *part = a->part + row * width;
    if (is_first) {
        memcpy(sums, part, (size_t)width * sizeof *sums);
        a->tops[row] = top;
        a->totals[row] = total;
        return;
    }
    float larger = top > a->tops[row] ? top : a->tops[row];
    float before = exp_one(a->tops[row] - larger), now = exp_one(top - larger);
    for (int64_t i = 0; i < width; i += LMC_LANES) {
        lanes scaled = lanes_mul(lanes_load(sums + i), lanes_set(before));
        lanes_store(sums + i, lanes_fma(lanes_load(part + i), lanes_set(now), scaled));
    }
    a->totals[row] = a->totals[row] * before + total * now;
    a->tops[row] = larger;
}

/* The keys first … first + keys - 1, `count` of which the last query sees. */
static void attend_span(const attention *a, int64_t span, int64_t count) {
    const lmc_tile *tile = a->tile;
    int64_t first = span * LMC_SPAN, keys = lmc_up(count, 32), words = tile->bf16 ? keys / 2 : keys;
    int64_t width = a->value_blocks * LMC_LANES, stride = lmc_words(LMC_SPAN, tile->bf16);
    for (int64_t key = 0; key < keys; key += LMC_LANES)
        pack_key_block(tile, first + key, count - key, a->key_words, a->keys + key * a->key_words);
    PRODUCT(tile->bf16, tile->q, tile->q_words, a->rows, a->keys, a->key_words, keys / LMC_LANES, a->scores, LMC_SPAN);
    pack_values(a, first, count, words);
    float tops[a->rows], totals[a->rows];
    for (int64_t row = 0; row < a->rows; row++) {
        int64_t position = tile->first + row / tile->group;
        weigh(a, row, keys, first_seen(tile, position) - first, position + 1 - first, tops + row, totals + row);
    }
    PRODUCT(tile->bf16, a->weights, stride, a->rows, a->values, words, a->value_blocks, a->part, width);
    for (int64_t row = 0; row < a->rows; row++) {
        int64_t position = tile->first + row / tile->group, first_span = first_seen(tile, position) / LMC_SPAN;
        if (position >= first && span >= first_span) merge(a, row, span == first_span, tops[row], totals[row]);
    }
}

static void write_out(const attention *a) {
    const lmc_tile *tile = a->tile;
    int64_t width = a->value_blocks * LMC_LANES;
    for (int64_t row = 0; row < a->rows; row++) {
        int64_t at = row / tile->group * tile->out_stride + row % tile->group * tile->head_dim;
        lanes share = lanes_set(1.0f / a->totals[row]);
        for (int64_t i = 0; i < tile->head_dim; i += LMC_LANES)
            store_first(tile->bf16, tile->out, at + i, lanes_mul(lanes_load(a->sums + row * width + i), share), tile->head_dim - i);
    }
}

static void *take(char **scratch, int64_t words) {
    void *p = *scratch;
    *scratch += lmc_up(words * 4, 64);
    return p;
}

static void attend_tile(const lmc_tile *tile, void *scratch) {
    char *rest = scratch;
    attention a = {.tile = tile, .rows = tile->queries * tile->group, .key_words = tile->q_words};
    a.value_words = lmc_words(LMC_SPAN, tile->bf16);
    a.value_blocks = lmc_up(tile->head_dim, LMC_LANES) / LMC_LANES;
    a.keys = take(&rest, LMC_SPAN * a.key_words);
    a.values = take(&rest, a.value_words * a.value_blocks * LMC_LANES);
    a.scores = take(&rest, a.rows * LMC_SPAN);
    a.weights = take(&rest, a.rows * a.value_words);
    a.part = take(&rest, a.rows * a.value_blocks * LMC_LANES);
    a.sums = take(&rest, a.rows * a.value_blocks * LMC_LANES);
    a.tops = take(&rest, a.rows);
    a.totals = take(&rest, a.rows);
    int64_t seen = tile->first + tile->queries;
    for (int64_t span = first_seen(tile, tile->first) / LMC_SPAN; span * LMC_SPAN < seen; span++) {
        int64_t left = seen - span * LMC_SPAN;
        attend_span(&a, span, left < LMC_SPAN ? left : LMC_SPAN);
    }
    write_out(&a);
}
