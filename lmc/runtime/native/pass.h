/* One forward pass while it runs: what its jobs share. */

#ifndef LMC_PASS_H
#define LMC_PASS_H

#include "engine.h"

/* Consecutive tokens of a row that attend together; slots: of the row, `seen` of which its last token sees; shared: as of lmc_piece. */
typedef struct {
    int64_t token, queries, seen, shared;
    const int32_t *slots;
} lmc_piece_place;

/* Pieces first … first + count - 1 are a tile. */
typedef struct { int64_t first, count; } lmc_tile_place;

typedef struct {
    lmc_engine *engine;
    const lmc_step *step;
    const lmc_layer *layer;
    int64_t number;
    int32_t *positions, *new_slots;
    lmc_piece_place *pieces;
    lmc_tile_place *tiles;
    int64_t piece_count, tile_count;
    void *memory;
} lmc_pass;

/* Positions and slots of the step's tokens, and the tiles of attention: until `memory` is freed.  0 without memory. */
int lmc_plan(lmc_pass *pass);

enum { LMC_TOKENS_AT_ONCE = 8 };

static inline int64_t lmc_token_items(int64_t tokens) { return (tokens + LMC_TOKENS_AT_ONCE - 1) / LMC_TOKENS_AT_ONCE; }

/* The tokens of an item. */
#define EACH_TOKEN(token, item, tokens) \
    for (int64_t token = (item) * LMC_TOKENS_AT_ONCE; token < (tokens) && token < ((item) + 1) * LMC_TOKENS_AT_ONCE; token++)

/* The product of rows with a matrix, and what becomes of it; strides as in level.h. */
void lmc_multiply(lmc_pass *pass, const uint32_t *x, int64_t x_stride, int64_t rows, const lmc_matrix *matrix, enum lmc_finish kind,
                  void *out, int64_t stride);

/* The second half of a layer with experts, from what is normed, added to x. */
void lmc_run_experts(lmc_pass *pass);

#endif
