/* x86 with AMX tiles for bfloat16 (2023 and later); everything else as with AVX-512. */

#if defined(__x86_64__)
#include "target.h"
TARGET_BEGIN("amx-tile,amx-bf16,avx512bf16,avx512f,avx512bw,avx512vl,avx512dq,avx2,fma")
#define LANES_NATIVE_BF16
#include "lanes_avx512.h"
#define LEVEL amx
#define PRODUCT product_amx
#define PRODUCT_FILE "amx_product.h"
#undef LANES_STRIP
#define LANES_STRIP 4
#include "level_body.h"
TARGET_END
#endif
