/* A dispatch level: the same computations for one kind of processor, chosen when the library is opened.

   A level is one small .c file: it names its target, includes the sixteen-lane vectors of that target (lanes_*.h) and then the
   computations themselves (product.h, tokens.h, attention.h), which are written once over those vectors. */

#ifndef LMC_LEVEL_H
#define LMC_LEVEL_H

#include "native.h"

/* What becomes of the sums of a product. */
enum lmc_finish { LMC_STORE, LMC_ADD, LMC_GATE };

/* STORE: out[row][column] = sum + bias.  ADD: out += sum + bias.  GATE: out = silu(gate) * up, in the model's dtype.
   out and stride count floats for STORE and ADD, elements of the dtype for GATE; columns: how many of a row exist.
   places: the row of `out` for each row of the product, or NULL where they are the same. */
typedef struct {
    enum lmc_finish kind;
    int64_t bf16, stride, columns;
    const float *bias;
    const int32_t *places;
    void *out;
} lmc_target;

/* Consecutive queries of one row under one key head.
   q: (queries, group, q_words) words; slots: of the row's positions from 0; first: position of the first query; out: element of the first
   query's first head; shared: of its first positions, those whose slots are those of the piece before it, a multiple of LMC_BLOCK. */
typedef struct {
    int64_t queries, first, shared;
    const uint32_t *q;
    const int32_t *slots;
    void *out;
} lmc_piece;

/* Pieces of different rows that are attended to at once, in an order in which those that share a prefix stand side by side.
   keys, values: of this layer and key head, (slots, head_dim); window: as of the layer; out_stride: elements from query to query. */
typedef struct {
    int64_t bf16, head_dim, group, window, q_words, out_stride, count;
    float scale;
    const void *keys, *values;
    const lmc_piece *pieces;
} lmc_tile;

typedef struct {
    const char *name;
    /* Blocks that a piece of a product takes at once, an even number of at most six. */
    int64_t strip;
    /* y[row][0 … 16 * blocks) = x[row] . packed, or += where `add` is set; x_stride in words, y_stride in floats.  A sum that is taken up
       again has the bits of one that was never laid down.  behind: what is likely to be multiplied next, or NULL where `packed` is in the
       cache, and nothing is to be fetched from memory. */
    void (*product)(int64_t bf16, const uint32_t *x, int64_t x_stride, int64_t rows, const uint32_t *packed, int64_t words,
                    int64_t blocks, float *y, int64_t y_stride, int64_t add, const uint32_t *behind);
    /* Takes (rows, columns) sums, `sums_stride` floats a row, whose first column is output `first` of the target's matrix. */
    void (*finish)(const lmc_target *target, const float *sums, int64_t sums_stride, int64_t row, int64_t rows, int64_t first,
                   int64_t columns);
    /* x of one token from its embedding; `padded` floats. */
    void (*embed)(int64_t bf16, const void *embedding, int64_t hidden, float *x);
    /* out = weight * x / sqrt(mean(x^2) + eps) in the dtype; x and weight are padded with zeros to a multiple of 16. */
    void (*norm)(int64_t bf16, const float *x, const float *weight, int64_t hidden, float eps, void *out);
    /* One head of one token: optional norm, then the rotation, in the dtype.  cosines NULL: only the conversion. */
    void (*head)(int64_t bf16, const float *x, int64_t head_dim, const float *norm, float eps, const float *cosines,
                 const float *sines, void *out);
    /* scratch: lmc_attention_bytes of the same shape. */
    void (*attend)(const lmc_tile *tile, void *scratch);
} lmc_level;

/* Positions whose scores are held at once, in blocks that begin at multiples of 32, the keys that one AMX tile multiplies: attention merges
   spans in ascending order. */
enum { LMC_SPAN = 256, LMC_BLOCK = 32 };

/* Scratch of a tile of so many rows (queries times group) in at most so many pieces. */
int64_t lmc_attention_bytes(int64_t head_dim, int64_t rows, int64_t pieces);

extern const lmc_level lmc_scalar, lmc_neon, lmc_avx2, lmc_avx512, lmc_avx512_bf16, lmc_amx;

static inline int64_t lmc_up(int64_t n, int64_t multiple) { return (n + multiple - 1) / multiple * multiple; }

/* 32-bit words of n elements, padded to whole groups of 16. */
static inline int64_t lmc_words(int64_t n, int64_t bf16) { return lmc_up(bf16 ? (n + 1) / 2 : n, 16); }

/* `p` advanced by n elements of the dtype. */
static inline void *lmc_at(const void *p, int64_t n, int64_t bf16) { return (char *)(uintptr_t)p + n * (bf16 ? 2 : 4); }

#endif
