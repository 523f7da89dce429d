#include "cmd/picture.h"

#include "profile/controller.h"

enum tone { TONE_PLAIN, TONE_GOOD, TONE_WAIT, TONE_BAD, TONE_DIM, TONE_BOLD };

static const char *const tone_codes[] = {
    [TONE_PLAIN] = "\x1b[0m", [TONE_GOOD] = "\x1b[32m", [TONE_WAIT] = "\x1b[33m",
    [TONE_BAD] = "\x1b[31m",  [TONE_DIM] = "\x1b[2m",   [TONE_BOLD] = "\x1b[1m",
};

static void picture_tone(const struct picture *p, struct buf *out, enum tone tone)
{
    if (p->colour) {
        buf_add(out, str_from(tone_codes[tone]));
    }
}

static void picture_say(const struct picture *p, struct buf *out, enum tone tone, struct str text)
{
    picture_tone(p, out, tone);
    buf_add(out, text);
    picture_tone(p, out, TONE_PLAIN);
}

/* Ends a line and clears what an earlier frame left behind it. */
static void picture_newline(struct buf *out)
{
    buf_add(out, STR("\x1b[K\n"));
}

void picture_time(struct buf *out, usec_t time)
{
    long long seconds = (long long)(time / 1000000);
    buf_printf(out, "%02lld:%02lld", seconds / 60, seconds % 60);
}

void picture_add(struct picture *p, usec_t at, struct str text)
{
    if (p->n == PICTURE_LINES_MAX) {
        memmove(&p->lines[0], &p->lines[1], sizeof(p->lines) - sizeof(p->lines[0]));
        p->n--;
    }
    struct picture_line *line = &p->lines[p->n++];
    size_t n = MIN(text.n, sizeof(line->text) - 1);
    memcpy(line->text, text.p, n);
    line->text[n] = '\0';
    line->at = at;
}

static void picture_replicas(const struct picture *p, const struct story *s, struct buf *out)
{
    buf_add(out, STR("  replicas  "));
    for (uint32_t i = 0; i < STORY_REPLICAS; i++) {
        const struct story_replica *r = &s->replicas[i];
        bool leads = r->controller != NULL && controller_leading(r->controller);
        enum tone tone = r->controller == NULL ? TONE_BAD : leads ? TONE_GOOD : TONE_DIM;
        const char *what = r->controller == NULL ? "killed" : leads ? "leads" : "stands by";
        picture_tone(p, out, tone);
        buf_printf(out, STR_FMT " %-11s", STR_ARG(r->name), what);
        picture_tone(p, out, TONE_PLAIN);
    }
    buf_add(out, STR("   API server "));
    picture_say(p, out, s->network.down ? TONE_BAD : TONE_GOOD,
                s->network.down ? STR("away") : STR("serving"));
    picture_newline(out);
}

static void picture_zone(const struct picture *p, const struct story_view *view, struct str zone,
                         struct buf *out)
{
    buf_printf(out, "  %-10.*s", (int)MIN(zone.n, (size_t)10), zone.p);
    uint32_t column = 12;
    for (uint32_t i = 0; i < view->n; i++) {
        const struct story_node *node = &view->nodes[i];
        if (!str_eq(str_from(node->zone), zone)) {
            continue;
        }
        if (column + 2 > PICTURE_COLUMNS) {
            picture_newline(out);
            buf_add(out, STR("            "));
            column = 12;
        }
        enum tone tone = !node->ready ? TONE_DIM : node->labelled ? TONE_GOOD : TONE_WAIT;
        const char *cell = !node->ready ? "·" : node->labelled ? "■" : "□";
        picture_say(p, out, tone, str_from(cell));
        buf_add_char(out, ' ');
        column += 2;
    }
    picture_newline(out);
}

static void picture_fleet(const struct picture *p, const struct story_view *view, struct buf *out)
{
    /* Zones in the order in which their first node stands. */
    for (uint32_t i = 0; i < view->n; i++) {
        struct str zone = str_from(view->nodes[i].zone);
        bool first = true;
        for (uint32_t j = 0; j < i; j++) {
            first = first && !str_eq(str_from(view->nodes[j].zone), zone);
        }
        if (first) {
            picture_zone(p, view, zone, out);
        }
    }
}

/* A milestone, wrapped behind its time. */
static void picture_milestone(const struct picture *p, const struct picture_line *line,
                              struct buf *out)
{
    buf_add(out, STR("  "));
    picture_tone(p, out, TONE_DIM);
    picture_time(out, line->at);
    picture_tone(p, out, TONE_PLAIN);
    buf_add(out, STR("  "));
    size_t column = 9;
    struct str rest = str_from(line->text);
    struct str word;
    while (str_split_next(&rest, ' ', &word)) {
        if (column + word.n > PICTURE_COLUMNS) {
            picture_newline(out);
            buf_add(out, STR("         "));
            column = 9;
        }
        buf_add(out, word);
        buf_add_char(out, ' ');
        column += word.n + 1;
    }
    picture_newline(out);
}

void picture_draw(const struct picture *p, struct story *story, struct buf *out)
{
    struct story_view view;
    story_look(story, &view);
    buf_add(out, STR("\x1b[H"));
    picture_newline(out);
    buf_add(out, STR("  "));
    picture_say(p, out, TONE_BOLD, STR("drydock demo"));
    buf_printf(out, "   dashboard " STR_FMT, STR_ARG(p->url));
    picture_newline(out);
    picture_newline(out);
    picture_replicas(p, story, out);
    buf_add(out, STR("  clock     "));
    picture_time(out, story_elapsed(story));
    buf_printf(out, ", %.0f times real time", p->speed);
    picture_newline(out);
    picture_newline(out);
    picture_fleet(p, &view, out);
    picture_newline(out);
    buf_printf(out, "  %u nodes   %u ready   %u labelled   %llu writes   %llu API requests", view.n,
               view.ready, view.labelled, (unsigned long long)story_writes(story),
               (unsigned long long)story_requests(story));
    picture_newline(out);
    buf_add(out, STR("  "));
    picture_say(p, out, TONE_DIM, STR("■ labelled  □ not yet  · booting        Ctrl-C ends"));
    picture_newline(out);
    picture_newline(out);
    for (uint32_t i = 0; i < p->n; i++) {
        picture_milestone(p, &p->lines[i], out);
    }
    buf_add(out, STR("\x1b[J"));
}
