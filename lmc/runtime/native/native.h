/* The native CPU step: what Python hands over, by ctypes, and what it calls.

   One step computes the tokens of some rows (see lmc/runtime/batch.py) over a pool of keys and values:

       ids -> embedding -> per layer: norm, qkv, rotation, pool, attention, output, norm, gate and up, down -> norm, head -> logits

   Everything is row-invariant by construction: the bits of a token depend on its row's tokens alone, never on the rows beside it, on
   how its prompt was cut into chunks, on where its slots lie, or on the number of threads.  Three rules give that:
     - an element of a product is one chain of additions over the inputs in ascending order, whatever tile it is computed in;
     - attention runs over blocks and spans of positions that begin at fixed absolute positions, in ascending order;
     - everything else (norms, rotation, gate) belongs to one token and runs in one order.

   A matrix is packed in blocks of 16 outputs over 32-bit words; a word is one float32, or two neighbouring bfloat16 inputs:

       packed[block][word][16]      word w of output 16 * block + lane

   This library knows no files, no requests and no sampling, and calls nothing but the C library. */

#ifndef LMC_NATIVE_H
#define LMC_NATIVE_H

#include <stdint.h>

/* Raised with every change of the structures below; Python refuses another number. */
#define LMC_ABI 2

enum { LMC_LANES = 16 };

/* outputs: as the model has them; blocks: of 16 outputs, the last one padded with zeros; words: of one row of inputs, a multiple of 16.
   bias: (16 * blocks,) or NULL. */
typedef struct {
    const uint32_t *packed;
    const float *bias;
    int64_t outputs, blocks, words;
} lmc_matrix;

/* One of several MLPs of a layer. */
typedef struct {
    lmc_matrix gate_up, down;
} lmc_expert;

/* Norms are padded with zeros to a multiple of 16.  query_norm and key_norm may be NULL.  gate_up has blocks of gate and up by turns.
   window: how many positions a query sees, its own included, or 0 where it sees all.
   expert_count: of MLPs, of which each token goes through the `chosen` ones that `router` rates highest, in the place of gate_up and down;
   or 0 where there is only one. */
typedef struct {
    const float *attention_norm, *mlp_norm, *query_norm, *key_norm;
    lmc_matrix qkv, output, gate_up, down;
    int64_t window;
    lmc_matrix router;
    const lmc_expert *experts;
    int64_t expert_count, chosen;
} lmc_layer;

/* embedding: (vocab, hidden), cosines and sines: (positions, head_dim / 2), keys and values: (layers, kv_heads, slots, head_dim).
   bf16: whether embedding, matrices, keys and values are bfloat16; they are float32 otherwise. */
typedef struct {
    int64_t bf16, layers, hidden, heads, kv_heads, head_dim, slots;
    float norm_eps, scale;
    const void *embedding;
    const lmc_layer *layer;
    const float *final_norm;
    lmc_matrix head;
    const float *cosines, *sines;
    void *keys, *values;
} lmc_model;

/* Row r has tokens row_token[r] … row_token[r + 1] - 1, of which the first stands at position row_start[r]; its slots begin at
   slots[row_slot[r]].  wanted: indexes of the tokens whose logits are asked for, and places: their rows in `logits` (outputs, vocab).
   The first `whole` of them get all logits; the others those in the given blocks of the head, and the rest of their rows is left alone. */
typedef struct {
    int64_t tokens, rows, outputs, whole, head_block_count;
    const int32_t *ids, *row_token, *row_start, *row_slot, *slots, *wanted, *places, *head_blocks;
    float *logits;
} lmc_step;

typedef struct lmc_engine lmc_engine;

enum { LMC_DONE = 0, LMC_CANCELLED = 1, LMC_NO_MEMORY = 2 };

int lmc_abi(void);
/* Name of dispatch level `number`, best first, or NULL behind the last; whether this machine can run it. */
const char *lmc_level_name(int number);
int lmc_level_works(int number);

/* NULL without memory, or where the level does not work.  The model's arrays must outlive the engine.
   threads: at least 1, the caller's included. */
lmc_engine *lmc_open(const lmc_model *model, int level, int threads);
void lmc_close(lmc_engine *engine);
int lmc_run(lmc_engine *engine, const lmc_step *step);
/* Ends the step in progress between two layers, or else the next one, from any thread; steps after that run again. */
void lmc_cancel(lmc_engine *engine);

#endif
