/* One forward pass: the layers in order, each a few jobs that the threads share out.

   A job's items are pieces of tokens, of outputs or of attention; which thread computes an item changes no bit. */

#include "pass.h"

#include <stdlib.h>

enum { ROWS_AT_ONCE = 32, ROWS_OF_AN_ITEM = 256, STRIP = 6 };

/* A product with a packed matrix, by strips of outputs and pieces of rows. */
typedef struct {
    const lmc_engine *engine;
    const uint32_t *x;
    int64_t x_stride, rows, strip;
    const lmc_matrix *matrix;
    const int32_t *blocks; /* only these, a strip each; or NULL */
    int64_t strips;
    lmc_target target;
} product_job;

/* The first block of an item's strip. */
static int64_t first_block(const product_job *p, int64_t item) {
    int64_t strip = item % p->strips;
    return p->blocks ? p->blocks[strip] : strip * p->strip;
}

static const uint32_t *block_at(const product_job *p, int64_t block) { return p->matrix->packed + block * p->matrix->words * LMC_LANES; }

static void product_item(void *job, int64_t item, int thread) {
    (void)thread;
    const product_job *p = job;
    const lmc_level *level = p->engine->level;
    int64_t begin = item / p->strips * ROWS_OF_AN_ITEM, first = first_block(p, item), left = p->matrix->blocks - first;
    int64_t end = begin + ROWS_OF_AN_ITEM < p->rows ? begin + ROWS_OF_AN_ITEM : p->rows;
    int64_t count = p->blocks ? 1 : left < p->strip ? left : p->strip;
    // Items are taken in descending order, by as many threads.
    int64_t following = item - p->engine->thread_count;
    const uint32_t *packed = block_at(p, first), *behind = block_at(p, first_block(p, following < 0 ? item : following));
    _Alignas(64) float sums[ROWS_AT_ONCE * STRIP * LMC_LANES];
    for (int64_t row = begin; row < end; row += ROWS_AT_ONCE) {
        int64_t rows = end - row < ROWS_AT_ONCE ? end - row : ROWS_AT_ONCE;
        level->product(p->target.bf16, p->x + row * p->x_stride, p->x_stride, rows, packed, p->matrix->words, count, sums,
                       STRIP * LMC_LANES, 0, row + ROWS_AT_ONCE < end ? packed : behind);
        level->finish(&p->target, sums, STRIP * LMC_LANES, row, rows, first * LMC_LANES, count * LMC_LANES);
    }
}

static void run_product(product_job *job) {
    lmc_threads_run(job->engine->threads, product_item, job, job->strips * ((job->rows + ROWS_OF_AN_ITEM - 1) / ROWS_OF_AN_ITEM));
}

static product_job product_of(const lmc_engine *engine, const uint32_t *x, int64_t x_stride, int64_t rows, const lmc_matrix *matrix) {
    int64_t strip = engine->level->strip;
    return (product_job){.engine = engine, .x = x, .x_stride = x_stride, .rows = rows, .matrix = matrix, .strip = strip,
                         .strips = (matrix->blocks + strip - 1) / strip};
}

void lmc_multiply(lmc_pass *pass, const uint32_t *x, int64_t x_stride, int64_t rows, const lmc_matrix *matrix, enum lmc_finish kind,
                  void *out, int64_t stride) {
    product_job job = product_of(pass->engine, x, x_stride, rows, matrix);
    job.target = (lmc_target){.kind = kind, .bf16 = pass->engine->model.bf16, .stride = stride, .columns = matrix->outputs,
                              .bias = matrix->bias, .out = out};
    run_product(&job);
}

static void embed_item(void *job, int64_t item, int thread) {
    (void)thread;
    const lmc_pass *p = job;
    const lmc_model *model = &p->engine->model;
    const lmc_buffers *b = &p->engine->buffers;
    EACH_TOKEN(token, item, p->step->tokens) {
        const void *embedding = lmc_at(model->embedding, p->step->ids[token] * model->hidden, model->bf16);
        p->engine->level->embed(model->bf16, embedding, model->hidden, b->x + token * b->x_stride);
    }
}

static void norm_one(const lmc_engine *engine, const float *weight, int64_t from, int64_t to) {
    const lmc_buffers *b = &engine->buffers;
    const lmc_model *model = &engine->model;
    engine->level->norm(model->bf16, b->x + from * b->x_stride, weight, model->hidden, model->norm_eps, b->normed + to * b->normed_words);
}

static void attention_norm_item(void *job, int64_t item, int thread) {
    (void)thread;
    const lmc_pass *p = job;
    EACH_TOKEN(token, item, p->step->tokens) norm_one(p->engine, p->layer->attention_norm, token, token);
}

static void mlp_norm_item(void *job, int64_t item, int thread) {
    (void)thread;
    const lmc_pass *p = job;
    EACH_TOKEN(token, item, p->step->tokens) norm_one(p->engine, p->layer->mlp_norm, token, token);
}

static void final_norm_item(void *job, int64_t item, int thread) {
    (void)thread;
    const lmc_pass *p = job;
    EACH_TOKEN(output, item, p->step->outputs) norm_one(p->engine, p->engine->model.final_norm, p->step->wanted[output], output);
}

/* The pool of this layer from key head `head` on, slot `slot`. */
static void *pool_at(const lmc_pass *p, void *pool, int64_t head, int64_t slot) {
    const lmc_model *model = &p->engine->model;
    return lmc_at(pool, ((p->number * model->kv_heads + head) * model->slots + slot) * model->head_dim, model->bf16);
}

/* Queries, keys and values of a token: norm and rotation, then the queries to their buffer and the rest to the pool. */
static void place_token(const lmc_pass *p, int64_t token) {
    const lmc_model *model = &p->engine->model;
    const lmc_buffers *b = &p->engine->buffers;
    const lmc_level *level = p->engine->level;
    int64_t group = p->engine->group, dim = model->head_dim, angle = p->positions[token] * (dim / 2), slot = p->new_slots[token];
    const float *cosines = model->cosines + angle, *sines = model->sines + angle, *x = b->qkv + token * b->qkv_stride;
    for (int64_t head = 0; head < model->heads; head++, x += dim) {
        int64_t place = ((head / group * b->tokens + token) * group + head % group) * b->query_words;
        level->head(model->bf16, x, dim, p->layer->query_norm, model->norm_eps, cosines, sines, b->queries + place);
    }
    for (int64_t head = 0; head < model->kv_heads; head++, x += dim)
        level->head(model->bf16, x, dim, p->layer->key_norm, model->norm_eps, cosines, sines, pool_at(p, model->keys, head, slot));
    for (int64_t head = 0; head < model->kv_heads; head++, x += dim)
        level->head(model->bf16, x, dim, NULL, model->norm_eps, NULL, NULL, pool_at(p, model->values, head, slot));
}

static void place_item(void *job, int64_t item, int thread) {
    (void)thread;
    const lmc_pass *p = job;
    EACH_TOKEN(token, item, p->step->tokens) place_token(p, token);
}

static lmc_piece piece_at(const lmc_pass *p, const lmc_piece_place *place, int64_t head) {
    const lmc_model *model = &p->engine->model;
    const lmc_buffers *b = &p->engine->buffers;
    int64_t group = p->engine->group;
    return (lmc_piece){
        .queries = place->queries, .first = p->positions[place->token], .shared = place->shared, .slots = place->slots,
        .q = b->queries + (head * b->tokens + place->token) * group * b->query_words,
        .out = lmc_at(b->attended + place->token * b->attended_words, head * group * model->head_dim, model->bf16),
    };
}

static void attend_item(void *job, int64_t item, int thread) {
    const lmc_pass *p = job;
    const lmc_model *model = &p->engine->model;
    const lmc_buffers *b = &p->engine->buffers;
    const lmc_tile_place *place = p->tiles + item / model->kv_heads;
    int64_t head = item % model->kv_heads;
    lmc_piece pieces[LMC_MOST_QUERIES];
    for (int64_t i = 0; i < place->count; i++) pieces[i] = piece_at(p, p->pieces + place->first + i, head);
    lmc_tile tile = {
        .bf16 = model->bf16, .head_dim = model->head_dim, .group = p->engine->group, .scale = model->scale, .window = p->layer->window,
        .q_words = b->query_words, .out_stride = b->attended_words * (model->bf16 ? 2 : 1), .count = place->count, .pieces = pieces,
        .keys = pool_at(p, model->keys, head, 0), .values = pool_at(p, model->values, head, 0),
    };
    p->engine->level->attend(&tile, p->engine->scratch + thread * p->engine->scratch_bytes);
}

static void run_layer(lmc_pass *p) {
    const lmc_buffers *b = &p->engine->buffers;
    const lmc_layer *layer = p->layer;
    lmc_threads *threads = p->engine->threads;
    int64_t tokens = p->step->tokens, items = lmc_token_items(tokens);
    lmc_threads_run(threads, attention_norm_item, p, items);
    lmc_multiply(p, b->normed, b->normed_words, tokens, &layer->qkv, LMC_STORE, b->qkv, b->qkv_stride);
    lmc_threads_run(threads, place_item, p, items);
    lmc_threads_run(threads, attend_item, p, p->tile_count * p->engine->model.kv_heads);
    lmc_multiply(p, b->attended, b->attended_words, tokens, &layer->output, LMC_ADD, b->x, b->x_stride);
    lmc_threads_run(threads, mlp_norm_item, p, items);
    if (layer->expert_count) {
        lmc_run_experts(p);
        return;
    }
    int64_t gated = b->gated_words * (p->engine->model.bf16 ? 2 : 1);
    lmc_multiply(p, b->normed, b->normed_words, tokens, &layer->gate_up, LMC_GATE, b->gated, gated);
    lmc_multiply(p, b->gated, b->gated_words, tokens, &layer->down, LMC_ADD, b->x, b->x_stride);
}

/* Logits of the outputs first … first + rows - 1. */
static void multiply_head(lmc_pass *p, int64_t first, int64_t rows, const int32_t *blocks, int64_t block_count) {
    const lmc_buffers *b = &p->engine->buffers;
    const lmc_matrix *head = &p->engine->model.head;
    product_job job = product_of(p->engine, b->normed + first * b->normed_words, b->normed_words, rows, head);
    job.target = (lmc_target){.kind = LMC_STORE, .bf16 = p->engine->model.bf16, .stride = head->outputs, .columns = head->outputs,
                              .bias = head->bias, .places = p->step->places + first, .out = p->step->logits};
    if (blocks) {
        job.blocks = blocks;
        job.strips = block_count;
    }
    run_product(&job);
}

static void run_head(lmc_pass *p) {
    const lmc_step *step = p->step;
    lmc_threads_run(p->engine->threads, final_norm_item, p, lmc_token_items(step->outputs));
    if (step->whole) multiply_head(p, 0, step->whole, NULL, 0);
    if (step->outputs > step->whole)
        multiply_head(p, step->whole, step->outputs - step->whole, step->head_blocks, step->head_block_count);
}

int lmc_run(lmc_engine *engine, const lmc_step *step) {
    lmc_pass pass = {.engine = engine, .step = step};
    if (!lmc_reserve(engine, step->tokens)) return LMC_NO_MEMORY;
    if (!lmc_plan(&pass)) return LMC_NO_MEMORY;
    int cancelled = 0;
    lmc_threads_run(engine->threads, embed_item, &pass, lmc_token_items(step->tokens));
    for (; pass.number < engine->model.layers && !cancelled; pass.number++) {
        pass.layer = engine->model.layer + pass.number;
        run_layer(&pass);
        cancelled = atomic_exchange(&engine->cancel, 0);
    }
    if (!cancelled && step->outputs) run_head(&pass);
    free(pass.memory);
    return cancelled ? LMC_CANCELLED : LMC_DONE;
}
