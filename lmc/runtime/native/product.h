/* Products of rows with a packed matrix, over sixteen lanes.

       y[row][16 * block + lane] = sum over words w, ascending, of  x[row][w] . packed[block][w][lane]

   A tile of rows and blocks is summed in registers at once so that each weight is read once for all rows of the tile; which tile an
   element falls into, and whether its sum rests in y between two runs of words, does not change its chain of additions.  Keys and
   values are multiplied by the same code, packed like weights. */

#define ALWAYS static inline __attribute__((always_inline))

/* x_stride in words, y_stride in floats; words: of a row of x and of a block, whose words lie word_stride apart, and blocks block_stride.
   add: whether the sums go on from what y holds; they begin at zero otherwise.
   next: where to fetch from meanwhile, as much as is multiplied, shared by `sharers` tiles; nothing where sharers is 0. */
typedef struct {
    const uint32_t *x, *packed, *next;
    float *y;
    int64_t x_stride, y_stride, words, word_stride, block_stride, add, sharers;
} product_part;

/* The words of a block between two calls for memory. */
enum { WORDS_AT_ONCE = 16 };

/* The cache lines that a tile calls for each time, its share of those that it reads itself; a line is a block's sixteen words. */
ALWAYS int64_t lines_to_fetch(const product_part *p, int64_t wide) {
    return p->sharers ? (WORDS_AT_ONCE * wide + p->sharers - 1) / p->sharers : 0;
}

/* How many blocks a tile of so many rows is wide: as many sums as fit in the registers. */
#define TILE_WIDE(tall) (LANES_SUMS / (tall) > 4 ? 4 : LANES_SUMS / (tall))
enum { MOST_WIDE = 4 };

/* tall and wide are constants at every call: the loops over them vanish and the sums stay in registers. */
ALWAYS void product_tile(int64_t bf16, product_part p, const int tall, const int wide) {
    lanes sums[LANES_TALL][MOST_WIDE];
#pragma GCC unroll 8
    for (int row = 0; row < tall; row++)
#pragma GCC unroll 4
        for (int block = 0; block < wide; block++)
            sums[row][block] = p.add ? lanes_load(p.y + row * p.y_stride + block * LMC_LANES) : lanes_set(0.0f);
    const int64_t lines = lines_to_fetch(&p, wide);
    for (int64_t first = 0; first < p.words; first += WORDS_AT_ONCE) {
        for (int64_t line = 0; line < lines; line++, p.next += LMC_LANES) __builtin_prefetch(p.next, 0, 2);
#pragma GCC unroll 4
        for (int64_t word = first; word < first + WORDS_AT_ONCE; word++) {
#pragma GCC unroll 8
            for (int row = 0; row < tall; row++)
#pragma GCC unroll 4
                for (int block = 0; block < wide; block++) {
                    const uint32_t *w = p.packed + block * p.block_stride + word * p.word_stride;
                    uint32_t input = p.x[row * p.x_stride + word];
                    sums[row][block] = bf16 ? dot_bf16(sums[row][block], input, w) : dot_f32(sums[row][block], input, w);
                }
        }
    }
#pragma GCC unroll 8
    for (int row = 0; row < tall; row++)
#pragma GCC unroll 4
        for (int block = 0; block < wide; block++) lanes_store(p.y + row * p.y_stride + block * LMC_LANES, sums[row][block]);
}

/* `tall` rows over all blocks. */
ALWAYS void product_rows(int64_t bf16, product_part p, int64_t blocks, const int tall) {
    while (blocks > 0) {
        int64_t wide = blocks < TILE_WIDE(tall) ? blocks : TILE_WIDE(tall);
#define WIDE(n) case n: if (n <= TILE_WIDE(tall)) product_tile(bf16, p, tall, n); break;
        switch (wide) { WIDE(1) WIDE(2) WIDE(3) WIDE(4) }
#undef WIDE
        p.packed += wide * p.block_stride;
        p.y += wide * LMC_LANES;
        p.next += lines_to_fetch(&p, wide) * p.words;
        blocks -= wide;
    }
}

/* Eight is the most of LANES_TALL. */
ALWAYS void product_some_rows(int64_t bf16, product_part p, int64_t blocks, int64_t tall) {
#define TALL(n) case n: if (n <= LANES_TALL) product_rows(bf16, p, blocks, n); break;
    switch (tall) { TALL(1) TALL(2) TALL(3) TALL(4) TALL(5) TALL(6) TALL(7) TALL(8) }
#undef TALL
}

/* All rows over some blocks: tiles of nearly equal height. */
ALWAYS void product_all_rows(int64_t bf16, product_part p, int64_t rows, int64_t blocks) {
    while (rows > 0) {
        int64_t tall = rows <= LANES_TALL ? rows : rows < 2 * LANES_TALL ? (rows + 1) / 2 : LANES_TALL;
        product_some_rows(bf16, p, blocks, tall);
        p.x += tall * p.x_stride;
        p.y += tall * p.y_stride;
        p.next += lines_to_fetch(&p, blocks) * p.words;
        rows -= tall;
    }
}

/* So few rows keep memory busy by themselves, and calling for more delays them (measured: 20 ms a pass became 27 at one row). */
enum { FEW_ROWS = 2 };

/* A tile's blocks stay in the cache while the rows pass by. */
ALWAYS void product_blocks(int64_t bf16, product_part p, int64_t rows, int64_t blocks, const uint32_t *behind) {
    int64_t together = TILE_WIDE(rows < LANES_TALL ? rows : LANES_TALL), size = together * p.block_stride;
    p.sharers = behind && rows > FEW_ROWS ? (rows + LANES_TALL - 1) / LANES_TALL : 0;
    for (; blocks > 0; blocks -= together) {
        p.next = blocks > together ? p.packed + size : behind;
        product_all_rows(bf16, p, rows, blocks < together ? blocks : together);
        p.packed += size;
        p.y += together * LMC_LANES;
    }
}

/* See level.h. */
static void product_lanes(int64_t bf16, const uint32_t *x, int64_t x_stride, int64_t rows, const uint32_t *packed, int64_t words,
                          int64_t blocks, float *y, int64_t y_stride, int64_t add, const uint32_t *behind) {
    product_part p = {.x = x, .packed = packed, .y = y, .x_stride = x_stride, .y_stride = y_stride, .words = words,
                      .word_stride = LMC_LANES, .block_stride = words * LMC_LANES, .add = add};
    if (bf16)
        product_blocks(1, p, rows, blocks, behind);
    else
        product_blocks(0, p, rows, blocks, behind);
}

/* The same with a float32 matrix that lies as it is: (words, 16 * blocks), row after row. */
static void product_plain(const uint32_t *x, int64_t x_stride, int64_t rows, const uint32_t *matrix, int64_t words, int64_t blocks,
                          float *y, int64_t y_stride, int64_t add) {
    product_part p = {.x = x, .packed = matrix, .y = y, .x_stride = x_stride, .y_stride = y_stride, .words = words,
                      .word_stride = blocks * LMC_LANES, .block_stride = LMC_LANES, .add = add};
    product_blocks(0, p, rows, blocks, NULL);
}
