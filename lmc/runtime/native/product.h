/* Products of rows with a packed matrix, over sixteen lanes.

       y[row][16 * block + lane] = sum over words w, ascending, of  x[row][w] . packed[block][w][lane]

   A tile of rows and blocks is summed in registers at once so that each weight is read once for all rows of the tile; which tile an
   element falls into, and whether its sum rests in y between two runs of words, does not change its chain of additions.  Keys and
   values are multiplied by the same code, packed like weights. */

#define ALWAYS static inline __attribute__((always_inline))

/* x_stride in words, y_stride in floats; words: of a row of x and of a block.
   add: whether the sums go on from what y holds; they begin at zero otherwise. */
typedef struct {
    const uint32_t *x, *packed;
    float *y;
    int64_t x_stride, y_stride, words, add;
} product_part;

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
    for (int64_t word = 0; word < p.words; word++) {
#pragma GCC unroll 8
        for (int row = 0; row < tall; row++)
#pragma GCC unroll 4
            for (int block = 0; block < wide; block++) {
                const uint32_t *w = p.packed + (block * p.words + word) * LMC_LANES;
                uint32_t input = p.x[row * p.x_stride + word];
                sums[row][block] = bf16 ? dot_bf16(sums[row][block], input, w) : dot_f32(sums[row][block], input, w);
            }
    }
#pragma GCC unroll 8
    for (int row = 0; row < tall; row++)
#pragma GCC unroll 4
        for (int block = 0; block < wide; block++) lanes_store(p.y + row * p.y_stride + block * LMC_LANES, sums[row][block]);
}

/* `tall` rows over all blocks. */
ALWAYS void product_rows(int64_t bf16, product_part p, int64_t blocks, const int tall) {
    const int wide = TILE_WIDE(tall);
    for (; blocks >= wide; blocks -= wide) {
        product_tile(bf16, p, tall, wide);
        p.packed += wide * p.words * LMC_LANES;
        p.y += wide * LMC_LANES;
    }
    for (; blocks > 0; blocks--) {
        product_tile(bf16, p, tall, 1);
        p.packed += p.words * LMC_LANES;
        p.y += LMC_LANES;
    }
}

/* Eight is the most of LANES_TALL. */
ALWAYS void product_some_rows(int64_t bf16, product_part p, int64_t blocks, int64_t tall) {
#define TALL(n) case n: if (n <= LANES_TALL) product_rows(bf16, p, blocks, n); break;
    switch (tall) { TALL(1) TALL(2) TALL(3) TALL(4) TALL(5) TALL(6) TALL(7) TALL(8) }
#undef TALL
}

/* All rows over all blocks: tiles of nearly equal height. */
ALWAYS void product_all_rows(int64_t bf16, product_part p, int64_t rows, int64_t blocks) {
    while (rows > 0) {
        int64_t tall = rows <= LANES_TALL ? rows : rows < 2 * LANES_TALL ? (rows + 1) / 2 : LANES_TALL;
        product_some_rows(bf16, p, blocks, tall);
        p.x += tall * p.x_stride;
        p.y += tall * p.y_stride;
        rows -= tall;
    }
}

ALWAYS void product_blocks(int64_t bf16, product_part p, int64_t rows, int64_t blocks) {
    // A tile's blocks stay in the cache while the rows pass by; where all rows are one tile there is nothing to come back to.
    int64_t together = rows <= LANES_TALL ? blocks : TILE_WIDE(LANES_TALL);
    for (; blocks > 0; blocks -= together) {
        product_all_rows(bf16, p, rows, blocks < together ? blocks : together);
        p.packed += together * p.words * LMC_LANES;
        p.y += together * LMC_LANES;
    }
}

static void product_lanes(int64_t bf16, const uint32_t *x, int64_t x_stride, int64_t rows, const uint32_t *packed, int64_t words,
                          int64_t blocks, float *y, int64_t y_stride, int64_t add) {
    product_part p = {.x = x, .packed = packed, .y = y, .x_stride = x_stride, .y_stride = y_stride, .words = words,
                      .add = add};
    if (bf16)
        product_blocks(1, p, rows, blocks);
    else
        product_blocks(0, p, rows, blocks);
}
