/* Plain C, for any processor. */

#include "lanes_scalar.h"
#define LEVEL scalar
#include "level_body.h"
