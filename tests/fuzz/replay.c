/*
 * Runs a target over the files of a corpus, without libFuzzer: replay FOLDER. Fails when there are
 * none, so that a corpus cannot get lost.
 */
#include <dirent.h>

#include "base/alloc.h"
#include "tests/fuzz/target.h"

static void replay_file(const char *path)
{
    FILE *file = fopen(path, "rb");
    ASSERT(file != NULL);
    (void)fseek(file, 0, SEEK_END);
    long size = ftell(file);
    ASSERT(size >= 0);
    rewind(file);
    /* Exactly as large as the input: a read past its end is the sanitizer's to find. */
    uint8_t *data = alloc_bytes(size > 0 ? (size_t)size : 1);
    size_t n = fread(data, 1, (size_t)size, file);
    ASSERT(n == (size_t)size);
    (void)fclose(file);
    (void)LLVMFuzzerTestOneInput(data, n); /* always 0 */
    alloc_free(data);
}

int main(int argc, char **argv)
{
    if (argc != 2) {
        (void)fprintf(stderr, "usage: %s FOLDER\n", argv[0]);
        return 2;
    }
    struct dirent **entries = NULL;
    int count = scandir(argv[1], &entries, NULL, alphasort);
    int files = 0;
    for (int i = 0; i < count; i++) {
        if (entries[i]->d_name[0] != '.') {
            CLEANUP(arena_done)
            struct arena a = { 0 };
            replay_file(arena_printf(&a, "%s/%s", argv[1], entries[i]->d_name).p);
            files++;
        }
        alloc_free(entries[i]);
    }
    alloc_free(entries);
    if (files == 0) {
        (void)fprintf(stderr, "%s: no files\n", argv[1]);
        return 1;
    }
    (void)printf("%d inputs\n", files);
    return 0;
}
