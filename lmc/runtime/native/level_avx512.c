/* x86 with AVX-512 but without its bfloat16 products: two float32 products a pair of inputs. */

#if defined(__x86_64__)
#include "target.h"
TARGET_BEGIN("avx512f,avx512bw,avx512vl,avx512dq,avx2,fma")
#include "lanes_avx512.h"
#define LEVEL avx512
#include "level_body.h"
TARGET_END
#endif
