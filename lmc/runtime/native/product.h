/* Products of rows with a packed matrix, over sixteen lanes.

       y[row][16 * block + lane] = sum over words w, ascending, of  x[row][w] . packed[block][w][lane]

   A tile of rows and blocks is summed in registers at once so that each weight is read once for all rows of the tile; which tile an
   element falls into does not change its chain of additions.  Keys and values are multiplied by the same code, packed like weights. */

#define ALWAYS static inline __attribute__((always_inline))

/* tall and wide are constants at every call: the loops over them vanish and the sums stay in registers. */
ALWAYS void product_tile(int64_t bf16, const uint32_t *x, int64_t x_stride, const uint32_t *packed, int64_t words, float *y,
                         int64_t y_stride, const int tall, const int wide) {
    lanes sums[8][3];
#pragma GCC unroll 8
    for (int row = 0; row < tall; row++)
#pragma GCC unroll 3
        for (int block = 0; block < wide; block++) sums[row][block] = lanes_set(0.0f);
    for (int64_t word = 0; word < words; word++) {
#pragma GCC unroll 8
        for (int row = 0; row < tall; row++)
#pragma GCC unroll 3
            for (int block = 0; block < wide; block++) {
                const uint32_t *w = packed + (block * words + word) * LMC_LANES;
                uint32_t input = x[row * x_stride + word];
                sums[row][block] = bf16 ? dot_bf16(sums[row][block], input, w) : dot_f32(sums[row][block], input, w);
            }
    }
#pragma GCC unroll 8
    for (int row = 0; row < tall; row++)
#pragma GCC unroll 3
        for (int block = 0; block < wide; block++) lanes_store(y + row * y_stride + block * LMC_LANES, sums[row][block]);
}

/* All rows over `wide` blocks. */
ALWAYS void product_column(int64_t bf16, const uint32_t *x, int64_t x_stride, int64_t rows, const uint32_t *packed, int64_t words,
                           float *y, int64_t y_stride, const int wide) {
    int64_t row = 0;
    for (; row + LANES_TALL <= rows; row += LANES_TALL)
        product_tile(bf16, x + row * x_stride, x_stride, packed, words, y + row * y_stride, y_stride, LANES_TALL, wide);
    for (; row + 2 <= rows; row += 2)
        product_tile(bf16, x + row * x_stride, x_stride, packed, words, y + row * y_stride, y_stride, 2, wide);
    if (row < rows) product_tile(bf16, x + row * x_stride, x_stride, packed, words, y + row * y_stride, y_stride, 1, wide);
}

ALWAYS void product_blocks(int64_t bf16, const uint32_t *x, int64_t x_stride, int64_t rows, const uint32_t *packed, int64_t words,
                           int64_t blocks, float *y, int64_t y_stride) {
    int64_t block = 0, size = words * LMC_LANES;
    for (; block + LANES_WIDE <= blocks; block += LANES_WIDE)
        product_column(bf16, x, x_stride, rows, packed + block * size, words, y + block * LMC_LANES, y_stride, LANES_WIDE);
    for (; block < blocks; block++)
        product_column(bf16, x, x_stride, rows, packed + block * size, words, y + block * LMC_LANES, y_stride, 1);
}

static void product_lanes(int64_t bf16, const uint32_t *x, int64_t x_stride, int64_t rows, const uint32_t *packed, int64_t words,
                          int64_t blocks, float *y, int64_t y_stride) {
    if (bf16)
        product_blocks(1, x, x_stride, rows, packed, words, blocks, y, y_stride);
    else
        product_blocks(0, x, x_stride, rows, packed, words, blocks, y, y_stride);
}
