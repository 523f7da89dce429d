#include "base/closest.h"

#define EDITS_MAX 2u    /* further away it is another word, not a slip */
#define LETTERS_MAX 63u /* no name of a command, flag or key is longer */

/* The optimal string alignment distance, row by row; more than EDITS_MAX for words too long. */
static uint32_t closest_distance(struct str a, struct str b)
{
    uint32_t rows[3][LETTERS_MAX + 1] = { { 0 } };
    if (a.n > LETTERS_MAX || b.n > LETTERS_MAX) {
        return EDITS_MAX + 1;
    }
    for (uint32_t j = 0; j <= b.n; j++) {
        rows[0][j] = j;
    }
    for (uint32_t i = 1; i <= a.n; i++) {
        uint32_t *row = rows[i % 3];
        const uint32_t *above = rows[(i - 1) % 3];
        row[0] = i;
        for (uint32_t j = 1; j <= b.n; j++) {
            uint32_t changed = above[j - 1] + (a.p[i - 1] == b.p[j - 1] ? 0u : 1u);
            uint32_t dropped = MIN(above[j], row[j - 1]) + 1;
            row[j] = MIN(changed, dropped);
            if (i > 1 && j > 1 && a.p[i - 1] == b.p[j - 2] && a.p[i - 2] == b.p[j - 1]) {
                row[j] = MIN(row[j], rows[(i - 2) % 3][j - 2] + 1);
            }
        }
    }
    return rows[a.n % 3][b.n];
}

struct str closest_find(struct str word, const struct str *candidates, size_t n)
{
    struct str nearest = STR_NONE;
    size_t least = MIN((size_t)EDITS_MAX, word.n / 3) + 1;
    for (size_t i = 0; i < n; i++) {
        uint32_t edits = closest_distance(word, candidates[i]);
        if (edits < least) {
            least = edits;
            nearest = candidates[i];
        }
    }
    return nearest;
}
