/* Causal attention of some rows' queries over their slots, read from the pool where they lie.

       span of 256 positions:  keys   -> packed like a weight matrix of 256 outputs     scores = q . keys
                               values -> packed like one of head_dim outputs, or as     sums   = weights . values
                                         they lie where slots follow one another
       spans are merged in ascending order by their largest scores (log-sum-exp)

   Rows that share a prefix read it once: a span is cut into segments, each some positions that some neighbouring pieces have in common,
   and a segment is packed and multiplied for all of them at once.

       piece 0   |  0 … 63  |  64 … 100 |            0 … 63 of all three, then 64 … 127 of 1 and 2, then what each has alone
       piece 1   |          |  64 … 127  |  128 … 140
       piece 2   |          |            |  128 … 133

   The span of a position is fixed (position / 256), segments begin at multiples of 32, a sum is one chain over the positions however they
   are cut, keys that a query may not see have weight zero, and adding zero changes no bit: so a query's result does not depend on the
   queries beside it.  All heads of a key head share its packed keys and values. */

/* Positions begin … end - 1, an `end` of one piece alone being anything, of the pieces from … to - 1; their rows begin at `row`. */
typedef struct { int64_t from, to, begin, end, row; } segment;

typedef struct {
    const lmc_tile *tile;
    const uint32_t *q;
    int64_t rows, key_words, value_words, value_blocks, segment_count;
    segment *segments;
    uint32_t *keys, *values, *weights;
    float *scores, *part, *sums, *tops, *totals;
} attention;

/* What a pool of (slots, head_dim) holds in a slot. */
ALWAYS const void *pool_row(const lmc_tile *tile, const void *pool, int32_t slot) {
    return lmc_at(pool, (int64_t)slot * tile->head_dim, tile->bf16);
}

/* Positions between a key that is called for and the one in hand: long enough for memory, short enough for the first cache. */
enum { AHEAD = 32 };

ALWAYS void fetch(const void *row, int64_t words) {
    for (int64_t at = 0; at < words * 4; at += 64) __builtin_prefetch((const char *)row + at);
}

/* Sixteen keys as a block: out[word][key].  Keys from `count` on are zeros. */
static void pack_key_block(const lmc_tile *tile, const int32_t *slots, int64_t count, int64_t words, uint32_t *out) {
    static const uint32_t nothing[LONGEST_HEAD];
    int64_t whole = tile->bf16 ? tile->head_dim / 2 : tile->head_dim;
    const uint32_t *rows[LMC_LANES];
    for (int64_t key = 0; key < LMC_LANES; key++) {
        rows[key] = key < count ? pool_row(tile, tile->keys, slots[key]) : nothing;
        if (key >= count) continue;
        // What is read soon is called for now: the values of these positions, and keys some way ahead.
        fetch(pool_row(tile, tile->values, slots[key]), whole);
        if (key + AHEAD < count) fetch(pool_row(tile, tile->keys, slots[key + AHEAD]), whole);
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
static void pack_values(const attention *a, const int32_t *slots, int64_t count, int64_t words) {
    const lmc_tile *tile = a->tile;
    int64_t per_word = tile->bf16 ? 2 : 1;
    for (int64_t word = 0; word < words; word++) {
        int64_t at = word * per_word;
        const void *even = at < count ? pool_row(tile, tile->values, slots[at]) : NULL;
        const void *odd = tile->bf16 && at + 1 < count ? pool_row(tile, tile->values, slots[at + 1]) : NULL;
        for (int64_t block = 0; block < a->value_blocks; block++) {
            uint32_t *out = a->values + (block * words + word) * LMC_LANES;
            int64_t begin = block * LMC_LANES, n = tile->head_dim - begin < LMC_LANES ? tile->head_dim - begin : LMC_LANES;
            if (!tile->bf16 && even && n == LMC_LANES) {
                lanes_store((float *)out, lanes_load((const float *)even + begin));
                continue;
            }
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

/* The positions of the span that the last query of the piece sees, counted from its begin; none where it ends before. */
ALWAYS int64_t seen_of(const lmc_piece *piece, int64_t first) {
    int64_t seen = piece->first + piece->queries - first;
    return seen < 0 ? 0 : seen < LMC_SPAN ? seen : LMC_SPAN;
}

/* The segments of pieces that agree before `begin`, and what follows, up to the end of the span that begins at `first`. */
static void cut(attention *a, int64_t from, int64_t to, int64_t row, int64_t first, int64_t begin) {
    const lmc_piece *pieces = a->tile->pieces;
    int64_t end = first + LMC_SPAN;
    if (to - from == 1) end = first + seen_of(pieces + from, first);
    for (int64_t i = from + 1; i < to; i++) end = pieces[i].shared < end ? pieces[i].shared : end;
    if (end > begin) {
        a->segments[a->segment_count++] = (segment){from, to, begin, end, row};
        begin = end;
    }
    if (to - from == 1 || end == first + LMC_SPAN) return;
    for (int64_t i = from + 1, start = from, next = row + pieces[from].queries * a->tile->group; i <= to; i++) {
        if (i == to || pieces[i].shared <= end) {
            cut(a, start, i, row, first, begin);
            start = i;
            row = next;
        }
        if (i < to) next += pieces[i].queries * a->tile->group;
    }
}

static int64_t rows_of(const lmc_tile *tile, const segment *s) {
    int64_t queries = 0;
    for (int64_t i = s->from; i < s->to; i++) queries += tile->pieces[i].queries;
    return queries * tile->group;
}

/* Of the segment, whose first position is the `at`-th of the span: scores of its rows. */
static void score_segment(const attention *a, const segment *s, int64_t at) {
    const lmc_tile *tile = a->tile;
    const int32_t *slots = tile->pieces[s->from].slots;
    int64_t count = s->end - s->begin, keys = lmc_up(count, LMC_BLOCK);
    for (int64_t key = 0; key < keys; key += LMC_LANES)
        pack_key_block(tile, slots + s->begin + key, count - key, a->key_words, a->keys + key * a->key_words);
    PRODUCT(tile->bf16, a->q + s->row * tile->q_words, tile->q_words, rows_of(tile, s), a->keys, a->key_words, keys / LMC_LANES,
            a->scores + s->row * LMC_SPAN + at, LMC_SPAN, 0, NULL);
}

/* How many of the positions can be multiplied where they lie: whole blocks of slots that follow one another, in float32, without padding. */
static int64_t in_place(const attention *a, const int32_t *slots, int64_t count) {
    int64_t run = 0;
    if (a->tile->bf16 || a->tile->head_dim % LMC_LANES) return 0;
    while (run < count && slots[run] == slots[0] + run) run++;
    return run / LMC_BLOCK * LMC_BLOCK;
}

/* The weighted sum of its values, added to those of the segments before. */
static void sum_segment(const attention *a, const segment *s, int64_t at) {
    const lmc_tile *tile = a->tile;
    const int32_t *slots = tile->pieces[s->from].slots + s->begin;
    int64_t count = s->end - s->begin, per_word = tile->bf16 ? 2 : 1, rows = rows_of(tile, s), width = a->value_blocks * LMC_LANES;
    const uint32_t *weights = a->weights + s->row * a->value_words;
    float *part = a->part + s->row * width;
    int64_t lying = in_place(a, slots, count), words = lmc_up(count - lying, LMC_BLOCK) / per_word;
    if (lying)
        product_plain(weights + at, a->value_words, rows, pool_row(tile, tile->values, slots[0]), lying, a->value_blocks, part, width, at > 0);
    if (!words) return;
    pack_values(a, slots + lying, count - lying, words);
    PRODUCT(tile->bf16, weights + (at + lying) / per_word, a->value_words, rows, a->values, words, a->value_blocks, part, width,
            at + lying > 0, NULL);
}

/* The positions from `first` on, a multiple of LMC_SPAN. */
static void attend_span(attention *a, int64_t first) {
    const lmc_tile *tile = a->tile;
    a->segment_count = 0;
    cut(a, 0, tile->count, 0, first, first);
    for (int64_t i = 0; i < a->segment_count; i++) score_segment(a, a->segments + i, a->segments[i].begin - first);
    float tops[a->rows], totals[a->rows];
    int64_t row = 0;
    for (const lmc_piece *piece = tile->pieces; piece < tile->pieces + tile->count; piece++) {
        int64_t keys = lmc_up(seen_of(piece, first), LMC_BLOCK);
        for (int64_t i = 0; i < piece->queries * tile->group; i++, row++) {
            int64_t position = piece->first + i / tile->group;
            if (keys) weigh(a, row, keys, first_seen(tile, position) - first, position + 1 - first, tops + row, totals + row);
        }
    }
    for (int64_t i = 0; i < a->segment_count; i++) sum_segment(a, a->segments + i, a->segments[i].begin - first);
    row = 0;
    for (const lmc_piece *piece = tile->pieces; piece < tile->pieces + tile->count; piece++)
        for (int64_t i = 0; i < piece->queries * tile->group; i++, row++) {
            int64_t position = piece->first + i / tile->group, first_span = first_seen(tile, position) / LMC_SPAN * LMC_SPAN;
            if (position >= first && first >= first_span) merge(a, row, first == first_span, tops[row], totals[row]);
        }
}

static void write_out(const attention *a) {
    const lmc_tile *tile = a->tile;
    int64_t width = a->value_blocks * LMC_LANES, row = 0;
    for (const lmc_piece *piece = tile->pieces; piece < tile->pieces + tile->count; piece++)
        for (int64_t i = 0; i < piece->queries * tile->group; i++, row++) {
            int64_t at = i / tile->group * tile->out_stride + i % tile->group * tile->head_dim;
            lanes share = lanes_set(1.0f / a->totals[row]);
            for (int64_t j = 0; j < tile->head_dim; j += LMC_LANES)
                store_first(tile->bf16, piece->out, at + j, lanes_mul(lanes_load(a->sums + row * width + j), share), tile->head_dim - j);
        }
}

static void *take(char **scratch, int64_t words) {
    void *p = *scratch;
    *scratch += lmc_up(words * 4, 64);
    return p;
}

/* The queries of all pieces one behind the other. */
static void gather_queries(const lmc_tile *tile, uint32_t *out) {
    for (const lmc_piece *piece = tile->pieces; piece < tile->pieces + tile->count; piece++) {
        int64_t words = piece->queries * tile->group * tile->q_words;
        memcpy(out, piece->q, (size_t)words * 4);
        out += words;
    }
}

static void attend_tile(const lmc_tile *tile, void *scratch) {
    char *rest = scratch;
    attention a = {.tile = tile, .q = tile->pieces->q, .key_words = tile->q_words, .value_words = lmc_words(LMC_SPAN, tile->bf16)};
    int64_t begin = INT64_MAX, seen = 0;
    for (const lmc_piece *piece = tile->pieces; piece < tile->pieces + tile->count; piece++) {
        int64_t first = first_seen(tile, piece->first), end = piece->first + piece->queries;
        a.rows += piece->queries * tile->group;
        begin = first < begin ? first : begin;
        seen = end > seen ? end : seen;
    }
    a.value_blocks = lmc_up(tile->head_dim, LMC_LANES) / LMC_LANES;
    a.keys = take(&rest, LMC_SPAN * a.key_words);
    a.values = take(&rest, a.value_words * a.value_blocks * LMC_LANES);
    a.scores = take(&rest, a.rows * LMC_SPAN);
    a.weights = take(&rest, a.rows * a.value_words);
    a.part = take(&rest, a.rows * a.value_blocks * LMC_LANES);
    a.sums = take(&rest, a.rows * a.value_blocks * LMC_LANES);
    a.tops = take(&rest, a.rows);
    a.totals = take(&rest, a.rows);
    a.segments = take(&rest, 2 * tile->count * (int64_t)(sizeof *a.segments / 4));
    if (tile->count > 1) {
        uint32_t *gathered = take(&rest, a.rows * tile->q_words);
        gather_queries(tile, gathered);
        a.q = gathered;
    }
    for (int64_t first = begin / LMC_SPAN * LMC_SPAN; first < seen; first += LMC_SPAN) attend_span(&a, first);
    write_out(&a);
}
