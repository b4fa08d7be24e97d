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

/* Asked by hand: __builtin_cpu_supports knows nothing in libraries of some clangs. */
static int has(unsigned word, unsigned bits) { return (word & bits) == bits; }

/* Whether the system keeps these registers of a thread (XCR0): it must, before the instructions may be used. */
static int kept(unsigned registers) {
    unsigned a, b, c, d;
    enum { OSXSAVE = 1u << 27 };
    if (!__get_cpuid(1, &a, &b, &c, &d) || !has(c, OSXSAVE)) return 0;
    __asm__ volatile("xgetbv" : "=a"(a), "=d"(d) : "c"(0));
    return has(a, registers);
}

static int works_avx2(void) {
    unsigned a, b, c, d;
    enum { FMA = 1u << 12, AVX2 = 1u << 5, YMM = 0x6 };
    if (!__get_cpuid(1, &a, &b, &c, &d) || !has(c, FMA)) return 0;
    return __get_cpuid_count(7, 0, &a, &b, &c, &d) && has(b, AVX2) && kept(YMM);
}

static int works_avx512(void) {
    unsigned a, b, c, d;
    const unsigned F = 1u << 16, DQ = 1u << 17, BW = 1u << 30, VL = 1u << 31, ZMM = 0xe6;
    return works_avx2() && __get_cpuid_count(7, 0, &a, &b, &c, &d) && has(b, F | DQ | BW | VL) && kept(ZMM);
}

static int works_avx512_bf16(void) {
    unsigned a, b, c, d;
    enum { AVX512_BF16 = 1u << 5 };
    return works_avx512() && __get_cpuid_count(7, 1, &a, &b, &c, &d) && has(a, AVX512_BF16);
}

static int works_amx(void) {
    unsigned a, b, c, d;
    enum { AMX_BF16 = 1u << 22, AMX_TILE = 1u << 24, TILES = 0x600e6 };
    return works_avx512_bf16() && __get_cpuid_count(7, 0, &a, &b, &c, &d) && has(d, AMX_BF16 | AMX_TILE) && kept(TILES)
        && amx_allowed();
}
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
