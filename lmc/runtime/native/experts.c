/* The second half of a layer that has several MLPs, of which each token goes through a few (Mixtral).

       router . normed                       -> of each token the likeliest experts, and their shares, which sum to one
       each expert, in ascending order       -> its tokens' rows side by side, gate and up, down; x += share * what came out

   Which experts a token goes through, and in which order they are added, hangs on the token alone; so no bit hangs on those beside it. */

#include "pass.h"

#include <math.h>
#include <string.h>

/* The `chosen` greatest logits, the lower number first where they are equal, and their softmax among themselves. */
static void choose(const lmc_layer *layer, const float *logits, int32_t *taken, float *shares) {
    float total = 0.0f;
    for (int64_t n = 0; n < layer->chosen; n++) {
        int64_t best = -1;
        for (int64_t expert = 0; expert < layer->expert_count; expert++) {
            int free = 1;
            for (int64_t before = 0; before < n; before++) free &= taken[before] != expert;
            if (free && (best < 0 || logits[expert] > logits[best])) best = expert;
        }
        taken[n] = (int32_t)best;
        shares[n] = expf(logits[best] - logits[taken[0]]);
        total += shares[n];
    }
    for (int64_t n = 0; n < layer->chosen; n++) shares[n] /= total;
}

static void choose_item(void *job, int64_t item, int thread) {
    (void)thread;
    const lmc_pass *p = job;
    const lmc_buffers *b = &p->engine->buffers;
    int64_t chosen = p->layer->chosen;
    EACH_TOKEN(token, item, p->step->tokens)
        choose(p->layer, b->routed + token * b->routed_stride, b->taken + token * chosen, b->shares + token * chosen);
}

/* The tokens that go through `expert`, their shares and their inputs, side by side.  How many there are. */
static int64_t gather(const lmc_pass *p, int64_t expert) {
    const lmc_buffers *b = &p->engine->buffers;
    int64_t chosen = p->layer->chosen, count = 0;
    for (int64_t place = 0; place < p->step->tokens * chosen; place++) {
        if (b->taken[place] != expert) continue;
        int64_t token = place / chosen;
        b->members[count] = (int32_t)token;
        b->member_shares[count] = b->shares[place];
        memcpy(b->gathered + count * b->normed_words, b->normed + token * b->normed_words, (size_t)b->normed_words * 4);
        count++;
    }
    return count;
}

static void add(const lmc_pass *p, int64_t count) {
    const lmc_buffers *b = &p->engine->buffers;
    for (int64_t i = 0; i < count; i++) {
        float share = b->member_shares[i], *x = b->x + b->members[i] * b->x_stride;
        const float *out = b->through + i * b->x_stride;
        for (int64_t at = 0; at < b->x_stride; at++) x[at] += share * out[at];
    }
}

void lmc_run_experts(lmc_pass *p) {
    const lmc_buffers *b = &p->engine->buffers;
    int64_t tokens = p->step->tokens, gated = b->gated_words * (p->engine->model.bf16 ? 2 : 1);
    lmc_multiply(p, b->normed, b->normed_words, tokens, &p->layer->router, LMC_STORE, b->routed, b->routed_stride);
    lmc_threads_run(p->engine->threads, choose_item, p, lmc_token_items(tokens));
    for (int64_t number = 0; number < p->layer->expert_count; number++) {
        const lmc_expert *expert = p->layer->experts + number;
        int64_t count = gather(p, number);
        if (!count) continue;
        lmc_multiply(p, b->gathered, b->normed_words, count, &expert->gate_up, LMC_GATE, b->gated, gated);
        lmc_multiply(p, b->gated, b->gated_words, count, &expert->down, LMC_STORE, b->through, b->x_stride);
        add(p, count);
    }
}
