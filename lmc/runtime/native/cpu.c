/* What this processor can run. */

#if defined(__linux__)
#define _GNU_SOURCE
#endif

#include "level.h"

#include <stddef.h>

#if defined(__x86_64__)
#include <cpuid.h>
#if defined(__linux__)
#include <sys/syscall.h>
#include <unistd.h>
#endif

/* Tiles need the kernel's permission, for the whole process: their state is large. */
static int amx_allowed(void) {
#if defined(__linux__) && defined(SYS_arch_prctl)
    enum { ARCH_REQ_XCOMP_PERM = 0x1023, XFEATURE_XTILEDATA = 18 };
    return syscall(SYS_arch_prctl, ARCH_REQ_XCOMP_PERM, XFEATURE_XTILEDATA) == 0;
#else
    return 0;
#endif
}

static int has_amx_bf16(void) {
    unsigned a, b, c, d;
    enum { AMX_BF16 = 1u << 22, AMX_TILE = 1u << 24 };
    return __get_cpuid_count(7, 0, &a, &b, &c, &d) && d & AMX_BF16 && d & AMX_TILE && amx_allowed();
}

static int works_avx2(void) { return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"); }

static int works_avx512(void) {
    return works_avx2() && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw")
        && __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512dq");
}

static int works_avx512_bf16(void) { return works_avx512() && __builtin_cpu_supports("avx512bf16"); }

static int works_amx(void) { return works_avx512_bf16() && has_amx_bf16(); }
#endif

static int works_anywhere(void) { return 1; }

typedef struct { const lmc_level *level; int (*works)(void); } choice;

/* Best first. */
static const choice choices[] = {
#if defined(__x86_64__)
    {&lmc_amx, works_amx}, {&lmc_avx512_bf16, works_avx512_bf16}, {&lmc_avx512, works_avx512}, {&lmc_avx2, works_avx2},
#elif defined(__aarch64__)
    {&lmc_neon, works_anywhere},
#endif
    {&lmc_scalar, works_anywhere},
};

enum { CHOICES = sizeof choices / sizeof *choices };

const lmc_level *lmc_level_at(int number) { return number >= 0 && number < CHOICES ? choices[number].level : NULL; }

const char *lmc_level_name(int number) {
    const lmc_level *level = lmc_level_at(number);
    return level ? level->name : NULL;
}

int lmc_level_works(int number) { return lmc_level_at(number) ? choices[number].works() : 0; }
