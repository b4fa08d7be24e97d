/* x86 with AVX2 and FMA (2013 and later). */

#if defined(__x86_64__)
#include "target.h"
TARGET_BEGIN("avx2,fma")
#include "lanes_avx2.h"
#define LEVEL avx2
#include "level_body.h"
TARGET_END
#endif
