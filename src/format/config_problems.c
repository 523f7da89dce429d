/* The list of problems of one file. */
#include "format/config_problems.h"

#include <stdarg.h>
#include <stdio.h>

static void add(struct problems *p, struct problem problem, const char *fmt, va_list args)
    PRINTF_LIKE(3, 0);

static void add(struct problems *p, struct problem problem, const char *fmt, va_list args)
{
    if (p->n == PROBLEMS_MAX) {
        p->more++;
        return;
    }
    char text[sizeof(((struct err *)0)->msg)];
    (void)vsnprintf(text, sizeof(text), fmt, args); /* what does not fit is for nobody to read */
    if (p->n == p->cap) {
        ARENA_GROW(p->out, p->items, p->n, p->cap);
    }
    problem.text = arena_str(p->out, str_from(text));
    p->items[p->n++] = problem;
}

void problems_add(struct problems *p, struct pos pos, const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    p->errors++;
    add(p, (struct problem){ .pos = pos }, fmt, args);
    va_end(args);
}

void problems_warn(struct problems *p, struct pos pos, const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    add(p, (struct problem){ .pos = pos, .warning = true }, fmt, args);
    va_end(args);
}

static bool before(struct pos a, struct pos b)
{
    return a.line != b.line ? a.line < b.line : a.column < b.column;
}

void problems_sort(struct problems *p)
{
    for (uint32_t i = 1; i < p->n; i++) {
        struct problem one = p->items[i];
        uint32_t at = i;
        while (at > 0 && before(one.pos, p->items[at - 1].pos)) {
            p->items[at] = p->items[at - 1];
            at--;
        }
        p->items[at] = one;
    }
}
