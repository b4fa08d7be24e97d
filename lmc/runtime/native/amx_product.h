/* bfloat16 products in AMX tiles: sixteen rows of x by sixteen outputs, 32 inputs at a time, from the same packed layout.

       A: 16 rows of x, 64 bytes each        B: packed[block][16 words][16]        C: 16 x 16 float32 sums

   A block's words are a B tile as they lie.  A tile of fewer rows has fewer rows of A and C; rows of a tile do not mix, so the bits of
   a row do not depend on how many there are. */

enum { TILE_WORDS = 16 };

typedef struct {
    uint8_t palette, start_row, unused[14];
    uint16_t row_bytes[16];
    uint8_t rows[16];
} tile_config;

/* Tiles 0 to 3 are sums, 4 and 5 rows of x, 6 and 7 weights; 0 and 1 belong to the first sixteen rows. */
static void configure_tiles(int64_t first_rows, int64_t second_rows) {
    tile_config config = {.palette = 1};
    for (int tile = 0; tile < 8; tile++) {
        config.row_bytes[tile] = 64;
        config.rows[tile] = 16;
    }
    config.rows[0] = config.rows[1] = config.rows[4] = (uint8_t)first_rows;
    config.rows[2] = config.rows[3] = config.rows[5] = (uint8_t)(second_rows ? second_rows : first_rows);
    _tile_loadconfig(&config);
}

/* The sums of a tile, its number a constant: from zero, or from what y holds. */
#define AMX_BEGIN(tile, y) \
    if (add) _tile_loadd(tile, y, y_stride * 4); \
    else _tile_zero(tile)

/* Up to 32 rows over two blocks. */
ALWAYS void amx_two_by_two(const uint32_t *x, int64_t x_stride, const uint32_t *packed, int64_t words, float *y, int64_t y_stride,
                           int64_t add) {
    int64_t block = words * LMC_LANES;
    AMX_BEGIN(0, y);
    AMX_BEGIN(1, y + LMC_LANES);
    AMX_BEGIN(2, y + 16 * y_stride);
    AMX_BEGIN(3, y + 16 * y_stride + LMC_LANES);
    for (int64_t word = 0; word < words; word += TILE_WORDS) {
        _tile_loadd(6, packed + word * LMC_LANES, 64);
        _tile_loadd(4, x + word, x_stride * 4);
        _tile_dpbf16ps(0, 4, 6);
        _tile_loadd(7, packed + block + word * LMC_LANES, 64);
        _tile_dpbf16ps(1, 4, 7);
        _tile_loadd(5, x + 16 * x_stride + word, x_stride * 4);
        _tile_dpbf16ps(2, 5, 6);
        _tile_dpbf16ps(3, 5, 7);
    }
    _tile_stored(0, y, y_stride * 4);
    _tile_stored(1, y + LMC_LANES, y_stride * 4);
    _tile_stored(2, y + 16 * y_stride, y_stride * 4);
    _tile_stored(3, y + 16 * y_stride + LMC_LANES, y_stride * 4);
}

/* Up to 16 rows over four blocks. */
ALWAYS void amx_one_by_four(const uint32_t *x, int64_t x_stride, const uint32_t *packed, int64_t words, float *y, int64_t y_stride,
                            int64_t add) {
    int64_t block = words * LMC_LANES;
    AMX_BEGIN(0, y);
    AMX_BEGIN(1, y + LMC_LANES);
    AMX_BEGIN(2, y + 2 * LMC_LANES);
    AMX_BEGIN(3, y + 3 * LMC_LANES);
    for (int64_t word = 0; word < words; word += TILE_WORDS) {
        const uint32_t *w = packed + word * LMC_LANES;
        _tile_loadd(4, x + word, x_stride * 4);
        _tile_loadd(6, w, 64);
        _tile_dpbf16ps(0, 4, 6);
        _tile_loadd(7, w + block, 64);
        _tile_dpbf16ps(1, 4, 7);
        _tile_loadd(6, w + 2 * block, 64);
        _tile_dpbf16ps(2, 4, 6);
        _tile_loadd(7, w + 3 * block, 64);
        _tile_dpbf16ps(3, 4, 7);
    }
    _tile_stored(0, y, y_stride * 4);
    _tile_stored(1, y + LMC_LANES, y_stride * 4);
    _tile_stored(2, y + 2 * LMC_LANES, y_stride * 4);
    _tile_stored(3, y + 3 * LMC_LANES, y_stride * 4);
}

/* Up to 16 rows over one block. */
ALWAYS void amx_one_by_one(const uint32_t *x, int64_t x_stride, const uint32_t *packed, int64_t words, float *y, int64_t y_stride,
                           int64_t add) {
    AMX_BEGIN(0, y);
    for (int64_t word = 0; word < words; word += TILE_WORDS) {
        _tile_loadd(4, x + word, x_stride * 4);
        _tile_loadd(6, packed + word * LMC_LANES, 64);
        _tile_dpbf16ps(0, 4, 6);
    }
    _tile_stored(0, y, y_stride * 4);
}

static void product_amx_rows(const uint32_t *x, int64_t x_stride, int64_t rows, const uint32_t *packed, int64_t words, int64_t blocks,
                             float *y, int64_t y_stride, int64_t add) {
    int64_t block = 0, size = words * LMC_LANES;
    if (rows > 16) {
        configure_tiles(16, rows - 16);
        for (; block + 2 <= blocks; block += 2)
            amx_two_by_two(x, x_stride, packed + block * size, words, y + block * LMC_LANES, y_stride, add);
        if (block < blocks) {
            product_amx_rows(x, x_stride, 16, packed + block * size, words, 1, y + block * LMC_LANES, y_stride, add);
            product_amx_rows(x + 16 * x_stride, x_stride, rows - 16, packed + block * size, words, 1,
                             y + 16 * y_stride + block * LMC_LANES, y_stride, add);
        }
        return;
    }
    configure_tiles(rows, 0);
    for (; block + 4 <= blocks; block += 4)
        amx_one_by_four(x, x_stride, packed + block * size, words, y + block * LMC_LANES, y_stride, add);
    for (; block < blocks; block++)
        amx_one_by_one(x, x_stride, packed + block * size, words, y + block * LMC_LANES, y_stride, add);
}

static void product_amx(int64_t bf16, const uint32_t *x, int64_t x_stride, int64_t rows, const uint32_t *packed, int64_t words,
                        int64_t blocks, float *y, int64_t y_stride, int64_t add, const uint32_t *behind) {
    if (!bf16) {
        product_lanes(0, x, x_stride, rows, packed, words, blocks, y, y_stride, add, behind);
        return;
    }
    for (int64_t row = 0; row < rows; row += 32)
        product_amx_rows(x + row * x_stride, x_stride, rows - row < 32 ? rows - row : 32, packed, words, blocks, y + row * y_stride,
                         y_stride, add);
    _tile_release();
}
