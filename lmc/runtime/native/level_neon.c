/* 64-bit ARM, whose NEON is always there.  Unmeasured. */

#if defined(__aarch64__)
#include "lanes_neon.h"
#define LEVEL neon
#include "level_body.h"
#endif
