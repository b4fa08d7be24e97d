/* What a level's file includes last: all computations over its lanes, and the table of them.

   LEVEL is the name; PRODUCT, where it is defined already, is the level's own product, from PRODUCT_FILE. */

#include <math.h>
#include <stddef.h>
#include <string.h>

#include "level.h"
#include "product.h"
#include "tokens.h"

#ifdef PRODUCT_FILE
#include PRODUCT_FILE
#else
#define PRODUCT product_lanes
#endif
#include "attention.h"

#define NAMED(level) lmc_##level
#define TABLE(level) NAMED(level)
#define TEXT(level) #level
#define SPELT(level) TEXT(level)

const lmc_level TABLE(LEVEL) = {
    .name = SPELT(LEVEL), .strip = LANES_STRIP, .product = PRODUCT, .finish = finish_rows, .embed = embed_token,
    .norm = norm_token, .head = head_token, .attend = attend_tile,
};
