/* The memory of one opened model: buffers for the tokens of a step, and scratch for each thread. */

#ifndef LMC_ENGINE_H
#define LMC_ENGINE_H

#include <stdatomic.h>

#include "level.h"
#include "threads.h"

/* Buffers of a step.  A row of each has a fixed length and place, so that what pads a row stays zero from the beginning.

   x: the residual stream, (tokens, hidden) float32          normed: (tokens, hidden) in the dtype
   qkv: (tokens, outputs) float32                            queries: (kv_heads, tokens, group, head_dim) in the dtype
   attended: (tokens, heads * head_dim) in the dtype         gated: (tokens, intermediate) in the dtype

   With experts: routed, (tokens, experts) float32; taken and shares, (tokens, chosen): of each token; of one expert at a time: members and
   member_shares, its tokens and their shares; gathered, as normed; through, as x: what comes out. */
typedef struct {
    int64_t tokens;
    int64_t x_stride, normed_words, qkv_stride, query_words, attended_words, gated_words, routed_stride;
    float *x, *qkv;
    uint32_t *normed, *queries, *attended, *gated;
    float *routed, *shares, *member_shares, *through;
    int32_t *taken, *members;
    uint32_t *gathered;
    void *memory;
} lmc_buffers;

/* Of a tile of attention. */
enum { LMC_MOST_QUERIES = 64 };

struct lmc_engine {
    lmc_model model;
    const lmc_level *level;
    lmc_threads *threads;
    int thread_count;
    int64_t group, tile_queries, scratch_bytes;
    char *scratch;
    lmc_buffers buffers;
    atomic_int cancel;
};

const lmc_level *lmc_level_at(int number);

/* Makes room for a step of so many tokens; 0 without memory. */
int lmc_reserve(lmc_engine *engine, int64_t tokens);

#endif
