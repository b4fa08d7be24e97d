/* Opening and closing: threads, scratch, and buffers that grow with the largest step. */

#define _DEFAULT_SOURCE

#include "engine.h"

#include <stdlib.h>
#include <string.h>
#if defined(__linux__)
#include <sys/mman.h>
#endif

enum { LINE = 64, HUGE_PAGE = 2 << 20 };

int lmc_abi(void) { return LMC_ABI; }

int64_t lmc_attention_bytes(int64_t head_dim, int64_t rows, int64_t pieces) {
    // For the wider dtype; as `attend_tile` takes it: keys, values, scores, weights, parts, sums and queries, tops and totals, segments.
    int64_t width = lmc_up(head_dim, LMC_LANES), segment_bytes = 5 * 8;
    int64_t floats = LMC_SPAN * 2 * width + rows * LMC_SPAN * 2 + rows * width * 3 + rows * 2;
    return lmc_up(floats * 4 + 2 * pieces * segment_bytes, LINE) + 10 * LINE;
}

static void *zeros(int64_t bytes) {
    void *p = NULL;
    int64_t page = bytes < HUGE_PAGE ? LINE : HUGE_PAGE, size = lmc_up(bytes, page);
    if (posix_memalign(&p, (size_t)page, (size_t)size) != 0) return NULL;
#if defined(__linux__) && defined(MADV_HUGEPAGE)
    if (page == HUGE_PAGE) madvise(p, (size_t)size, MADV_HUGEPAGE); /* only advice: large_memory.py says why */
#endif
    return memset(p, 0, (size_t)size);
}

/* More queries in a tile share the packing of keys and values, but score more keys that they may not see. */
static int64_t queries_of_a_tile(int64_t group) {
    enum { ROWS = 96 };
    int64_t queries = ROWS / group;
    return queries < 1 ? 1 : queries > LMC_MOST_QUERIES ? LMC_MOST_QUERIES : queries;
}

lmc_engine *lmc_open(const lmc_model *model, int level, int threads) {
    // Asked of the processor each time: AMX works only after the kernel's permission.
    if (!lmc_level_works(level)) return NULL;
    lmc_engine *engine = calloc(1, sizeof *engine);
    if (!engine) return NULL;
    engine->model = *model;
    engine->level = lmc_level_at(level);
    engine->thread_count = threads;
    engine->group = model->heads / model->kv_heads;
    engine->tile_queries = queries_of_a_tile(engine->group);
    engine->scratch_bytes = lmc_up(lmc_attention_bytes(model->head_dim, engine->tile_queries * engine->group, engine->tile_queries), LINE);
    engine->scratch = zeros(engine->scratch_bytes * threads);
    engine->threads = lmc_threads_open(threads);
    if (engine->scratch && engine->threads && lmc_reserve(engine, 1)) return engine;
    lmc_close(engine);
    return NULL;
}

void lmc_close(lmc_engine *engine) {
    if (!engine) return;
    lmc_threads_close(engine->threads);
    free(engine->scratch);
    free(engine->buffers.memory);
    free(engine);
}

void lmc_cancel(lmc_engine *engine) { atomic_store(&engine->cancel, 1); }

static void measure(const lmc_model *model, lmc_buffers *b) {
    b->x_stride = lmc_up(model->hidden, LMC_LANES);
    b->normed_words = lmc_words(model->hidden, model->bf16);
    b->qkv_stride = model->layer->qkv.blocks * LMC_LANES;
    b->query_words = lmc_words(model->head_dim, model->bf16);
    b->attended_words = model->layer->output.words;
    b->gated_words = (model->layer->expert_count ? model->layer->experts->down : model->layer->down).words;
    b->routed_stride = model->layer->router.blocks * LMC_LANES;
}

int lmc_reserve(lmc_engine *engine, int64_t tokens) {
    const lmc_model *model = &engine->model;
    if (tokens <= engine->buffers.tokens) return 1;
    // Steps of many sizes come: growing by half keeps the number of copies small.
    if (tokens < engine->buffers.tokens * 3 / 2) tokens = engine->buffers.tokens * 3 / 2;
    lmc_buffers b = {.tokens = tokens};
    measure(model, &b);
    // In words of four bytes for each token; those of experts are nothing where there are none.
    int64_t chosen = model->layer->expert_count ? model->layer->chosen : 0, some = chosen > 0;
    struct { void **place; int64_t words; } parts[] = {
        {(void **)&b.x, b.x_stride}, {(void **)&b.qkv, b.qkv_stride}, {(void **)&b.normed, b.normed_words},
        {(void **)&b.queries, model->heads * b.query_words}, {(void **)&b.attended, b.attended_words}, {(void **)&b.gated, b.gated_words},
        {(void **)&b.routed, b.routed_stride}, {(void **)&b.taken, chosen}, {(void **)&b.shares, chosen}, {(void **)&b.members, some},
        {(void **)&b.member_shares, some}, {(void **)&b.gathered, some * b.normed_words}, {(void **)&b.through, some * b.x_stride},
    };
    enum { PARTS = sizeof parts / sizeof *parts };
    int64_t total = 0;
    for (int i = 0; i < PARTS; i++) total += lmc_up(tokens * parts[i].words * 4, LINE);
    b.memory = zeros(total);
    if (!b.memory) return 0;
    char *at = b.memory;
    for (int i = 0; i < PARTS; i++) {
        *parts[i].place = at;
        at += lmc_up(tokens * parts[i].words * 4, LINE);
    }
    free(engine->buffers.memory);
    engine->buffers = b;
    return 1;
}
