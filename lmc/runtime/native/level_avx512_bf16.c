/* x86 with AVX-512 and its product of bfloat16 pairs. */

#if defined(__x86_64__)
#include "target.h"
TARGET_BEGIN("avx512bf16,avx512f,avx512bw,avx512vl,avx512dq,avx2,fma")
#define LANES_NATIVE_BF16
#include "lanes_avx512.h"
#define LEVEL avx512_bf16
#include "level_body.h"
TARGET_END
#endif
