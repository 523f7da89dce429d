#include "base/closest.h"

static char lower(char c)
{
    return c >= 'A' && c <= 'Z' ? (char)(c - 'A' + 'a') : c;
}

uint32_t closest_distance(struct str a, struct str b, uint32_t max)
{
    if (a.n > CLOSEST_WORD_MAX || b.n > CLOSEST_WORD_MAX) {
        return max;
    }
    /* Three rows of the table: two letters back for swaps, one back, and the present one. */
    uint32_t rows[3][CLOSEST_WORD_MAX + 1];
    for (uint32_t j = 0; j <= b.n; j++) {
        rows[0][j] = j;
    }
    for (uint32_t i = 1; i <= a.n; i++) {
        uint32_t *now = rows[i % 3];
        const uint32_t *last = rows[(i + 2) % 3];
        const uint32_t *before = rows[(i + 1) % 3];
        now[0] = i;
        for (uint32_t j = 1; j <= b.n; j++) {
            char x = lower(a.p[i - 1]);
            char y = lower(b.p[j - 1]);
            uint32_t least = last[j - 1] + (x == y ? 0 : 1);
            least = MIN(least, last[j] + 1);
            least = MIN(least, now[j - 1] + 1);
            if (i > 1 && j > 1 && x == lower(b.p[j - 2]) && lower(a.p[i - 2]) == y) {
                least = MIN(least, before[j - 2] + 1);
            }
            now[j] = least;
        }
    }
    return MIN(rows[a.n % 3][b.n], max);
}

struct closest closest_to(struct str word)
{
    size_t third = word.n / 3;
    uint32_t most = third < 1 ? 1 : third > CLOSEST_WORD_MAX ? CLOSEST_WORD_MAX : (uint32_t)third;
    return (struct closest){ .word = word, .best = STR_NONE, .distance = most + 1 };
}

void closest_offer(struct closest *c, struct str candidate)
{
    uint32_t distance = closest_distance(c->word, candidate, c->distance);
    if (distance < c->distance) {
        c->distance = distance;
        c->best = candidate;
    }
}

struct str closest_find(struct str word, const struct str *candidates, size_t n)
{
    struct closest c = closest_to(word);
    for (size_t i = 0; i < n; i++) {
        closest_offer(&c, candidates[i]);
    }
    return c.best;
}
