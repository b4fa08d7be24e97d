/* What a step's tokens are to attention, found once for all layers: positions, slots, pieces of rows, and tiles of pieces.

   Rows are put into the order of their slots, so that those with a common prefix stand side by side; a tile takes neighbours that have
   one, and reads it once for all of them (attention.h).  The order changes no bit. */

#include "pass.h"

#include <stdlib.h>
#include <string.h>

static int by_slots(const void *left, const void *right) {
    const lmc_piece_place *a = left, *b = right;
    int64_t both = a->seen < b->seen ? a->seen : b->seen;
    int order = a->slots == b->slots ? 0 : memcmp(a->slots, b->slots, (size_t)both * sizeof *a->slots);
    // A beginning stands before what goes on: a complete order.
    if (order || a->seen != b->seen) return order ? order : a->seen < b->seen ? -1 : 1;
    return a->token < b->token ? -1 : 1;
}

/* Whole blocks of positions from the first on that have the same slots. */
static int64_t common(const lmc_piece_place *a, const lmc_piece_place *b) {
    int64_t both = a->seen < b->seen ? a->seen : b->seen, at = 0;
    while (at + LMC_BLOCK <= both && memcmp(a->slots + at, b->slots + at, LMC_BLOCK * sizeof *a->slots) == 0) at += LMC_BLOCK;
    return at;
}

static void place_tokens(lmc_pass *p) {
    const lmc_step *step = p->step;
    int64_t most = p->engine->tile_queries;
    for (int64_t row = 0; row < step->rows; row++) {
        int64_t begin = step->row_token[row], end = step->row_token[row + 1], start = step->row_start[row];
        const int32_t *slots = step->slots + step->row_slot[row];
        for (int64_t token = begin; token < end; token++) {
            p->positions[token] = (int32_t)(start + token - begin);
            p->new_slots[token] = slots[p->positions[token]];
        }
        for (int64_t token = begin; token < end; token += most) {
            int64_t queries = end - token < most ? end - token : most;
            p->pieces[p->piece_count++] = (lmc_piece_place){
                .token = token, .queries = queries, .seen = start + token - begin + queries, .slots = slots};
        }
    }
}

/* The most queries of a tile of several pieces: few enough that all threads have some. */
static int64_t queries_together(const lmc_pass *p) {
    int64_t heads = p->engine->model.kv_heads, parts = (2 * p->engine->thread_count + heads - 1) / heads;
    int64_t queries = (p->step->tokens + parts - 1) / parts, most = p->engine->tile_queries;
    return queries < most ? queries : most;
}

static void join_pieces(lmc_pass *p) {
    int64_t most = queries_together(p), queries = 0;
    for (int64_t i = 0; i < p->piece_count; i++) {
        lmc_piece_place *piece = p->pieces + i;
        if (i > 0) piece->shared = common(piece - 1, piece);
        queries += piece->queries;
        if (i > 0 && piece->shared && queries <= most) {
            p->tiles[p->tile_count - 1].count++;
            continue;
        }
        p->tiles[p->tile_count++] = (lmc_tile_place){i, 1};
        queries = piece->queries;
    }
}

int lmc_plan(lmc_pass *p) {
    int64_t tokens = p->step->tokens;
    p->pieces = malloc((size_t)tokens * (sizeof *p->pieces + sizeof *p->tiles + 2 * sizeof *p->positions));
    if (!p->pieces) return 0;
    p->memory = p->pieces;
    p->tiles = (lmc_tile_place *)(p->pieces + tokens);
    p->positions = (int32_t *)(p->tiles + tokens);
    p->new_slots = p->positions + tokens;
    p->piece_count = p->tile_count = 0;
    place_tokens(p);
    qsort(p->pieces, (size_t)p->piece_count, sizeof *p->pieces, by_slots);
    join_pieces(p);
    return 1;
}
