/*
 * target: what the programs of this folder share. Each fuzz_X.c has one LLVMFuzzerTestOneInput;
 * libFuzzer calls it with inputs it invents, replay.c with the files of corpus/X.
 *
 * A finding is an ASSERT that fails or a sanitizer's report. It becomes a file of the corpus.
 */
#pragma once

#include "base/arena.h"
#include "base/buf.h"
#include "base/err.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define FUZZ_TARGET(text)                                                                          \
    static void fuzz_one(struct str text);                                                         \
    int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)                                   \
    {                                                                                              \
        fuzz_one((struct str){ .p = (const char *)data, .n = size });                              \
        return 0;                                                                                  \
    }                                                                                              \
    static void fuzz_one(struct str text)
