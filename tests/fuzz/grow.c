#include "tests/fuzz/grow.h"

#define N "\x01"
#define GROW_NUMBER_FIRST 10000000u /* all have as many digits: units differ in nothing else */
#define GROW_NUMBER_STEP 6700417u   /* a prime: all differ, and come in no order */
#define FLAT(name_, head_, unit_, tail_)                                                           \
    {                                                                                              \
        .name = (name_), .head = STR_INIT(head_), .unit = STR_INIT(unit_), .tail = STR_INIT(tail_) \
    }
#define NESTED(name_, unit_, middle_, close_)                                                      \
    {                                                                                              \
        .name = (name_), .unit = STR_INIT(unit_), .middle = STR_INIT(middle_),                     \
        .close = STR_INIT(close_)                                                                  \
    }

const struct growth grow_patterns[] = {
    NESTED("brackets", "[", "", "]"),
    NESTED("braces", "{\"a\":", "1", "}"),
    NESTED("parentheses", "(", "1", ")"),
    NESTED("negations", "!(", "a", ")"),
    NESTED("template blocks", "{{ if . }}", "x", "{{ end }}"),
    FLAT("open brackets", "", "[", ""),
    FLAT("JSON keys", "{", "\"k" N "\":" N ",", "\"z\":0}"),
    FLAT("JSON keys of metadata", "{\"metadata\":{\"name\":\"a\",\"labels\":{", "\"k" N "\":\"v\",",
         "\"z\":\"\"}}}"),
    FLAT("one JSON key again and again", "{", "\"k\":" N ",", "\"z\":0}"),
    FLAT("JSON numbers", "[", N ",", "0]"),
    FLAT("JSON objects", "[", "{\"name\":\"n" N "\",\"value\":" N "},", "{}]"),
    FLAT("JSON items", "{\"items\":[", "{\"metadata\":{\"name\":\"n" N "\"}},", "{}]}"),
    FLAT("JSON escapes", "\"", "\\u0041\\n", "\""),
    FLAT("two lines of JSON keys", "{\"a\":1}\n{", "\"k" N "\":" N ",", "\"z\":0}"),
    FLAT("a patch", "{}\n[", "{\"op\":\"add\",\"path\":\"/k" N "\",\"value\":" N "},",
         "{\"op\":\"test\",\"path\":\"\",\"value\":0}]"),
    FLAT("YAML keys", "", "k" N ": v" N "\n", ""),
    FLAT("YAML items", "", "- k" N ": v\n", ""),
    FLAT("YAML anchors", "", "k" N ": &a" N " v\n", ""),
    FLAT("YAML aliases", "a: &a {b: c}\n", "k" N ": *a\n", ""),
    FLAT("YAML merges of one", "a: &a {b: c}\n", "k" N ": {<<: *a}\n", ""),
    FLAT("YAML merges of many", "", "k" N ": &a" N " {b" N ": c}\nm" N ": {<<: *a" N "}\n", ""),
    FLAT("YAML documents", "", "---\nk" N ": v\n", ""),
    FLAT("a YAML block", "a: |\n", "  line " N "\n", ""),
    FLAT("a YAML text", "a: \"", "x" N " ", "\"\n"),
    FLAT("YAML comments", "", "# " N "\n", "a: b\n"),
    FLAT("a list of names", "", "n" N ",", "n"),
    FLAT("requirements", "", "k" N "=v" N ",", "k=v"),
    FLAT("a set of values", "k in (", "v" N ",", "v)"),
    FLAT("conjunctions", "a", " && a" N, ""),
    FLAT("sums", "1", "+" N, ""),
    FLAT("digits", "", "9", ""),
    FLAT("a fraction", "1.", "9", ""),
    FLAT("spaces", "", " ", "x"),
    FLAT("newlines", "", "\n", "x"),
    FLAT("slashes", "", "/a" N, ""),
    FLAT("a query", "/api/v1/nodes?", "k" N "=v%41&", "z=1"),
    NESTED("XML elements in each other", "<a>", "x", "</a>"),
    FLAT("XML elements", "<a>", "<b c=\"" N "\">" N "</b>", "</a>"),
    FLAT("XML attributes", "<a", " b" N "=\"" N "\"", "/>"),
    FLAT("XML text", "<a>", "&amp;&#65;x", "</a>"),
    FLAT("open XML elements", "", "<a>", ""),
    FLAT("template actions", "", "{{ ." N " }}x", ""),
    FLAT("events", "BEGIN:VCALENDAR\r\n",
         "BEGIN:VEVENT\r\nUID:" N "\r\nDTSTART:20260101T000000Z\r\nDTEND:20260101T010000Z\r\n"
         "END:VEVENT\r\n",
         "END:VCALENDAR\r\n"),
    FLAT("replies of a mail server", "", "250-x" N "\r\n", "250 x\r\n"),
};
const size_t grow_patterns_n = ARRAY_LEN(grow_patterns);

static void grow_add(struct buf *ret, struct str unit, uint64_t number)
{
    size_t at;
    while ((at = str_find_char(unit, GROW_NUMBER)) != SIZE_MAX) {
        buf_add(ret, str_sub(unit, 0, at));
        uint64_t scattered = number * GROW_NUMBER_STEP % (9 * GROW_NUMBER_FIRST);
        buf_printf(ret, "%llu", (unsigned long long)(GROW_NUMBER_FIRST + scattered));
        unit = str_sub(unit, at + 1, SIZE_MAX);
    }
    buf_add(ret, unit);
}

void grow_write(const struct growth *g, size_t size, struct buf *ret)
{
    size_t rest = g->middle.n + g->tail.n;
    uint64_t n = 0;
    size_t longest = 0;
    buf_add(ret, g->head);
    do {
        size_t before = ret->n;
        grow_add(ret, g->unit, n++);
        longest = MAX(longest, ret->n - before);
        rest += g->close.n;
    } while (ret->n + rest + longest + g->close.n + 1 <= size);
    buf_add(ret, g->middle);
    for (uint64_t i = 0; i < n; i++) {
        buf_add(ret, g->close);
    }
    buf_add(ret, g->tail);
}

/* The line in the middle: [*ret_from, *ret_to), with its newline. */
static void grow_middle_line(struct str seed, size_t *ret_from, size_t *ret_to)
{
    size_t newline = str_rfind_char(str_sub(seed, 0, seed.n / 2), '\n');
    size_t from = newline == SIZE_MAX ? 0 : newline + 1;
    size_t length = str_find_char(str_sub(seed, from, SIZE_MAX), '\n');
    *ret_from = from;
    *ret_to = length == SIZE_MAX ? seed.n : from + length + 1;
}

/* A number behind the first letter: the name of a key, an anchor or an entry. */
static struct str grow_numbered(struct arena *out, struct str line)
{
    size_t at = 0;
    while (at < line.n && !((line.p[at] >= 'a' && line.p[at] <= 'z') ||
                            (line.p[at] >= 'A' && line.p[at] <= 'Z'))) {
        at++;
    }
    at = MIN(at + 1, line.n);
    return arena_printf(out, STR_FMT N STR_FMT, STR_ARG(str_sub(line, 0, at)),
                        STR_ARG(str_sub(line, at, SIZE_MAX)));
}

void grow_seeded(struct str seed, struct arena *out, struct growth ret[GROW_SEEDED])
{
    size_t from;
    size_t to;
    grow_middle_line(seed, &from, &to);
    struct str line = str_sub(seed, from, to - from);
    struct str head = str_sub(seed, 0, from);
    struct str tail = str_sub(seed, to, SIZE_MAX);
    const struct growth made[GROW_SEEDED] = {
        { .name = "seed ", .unit = seed },
        { .name = "lines of seed ", .unit = arena_concat(out, seed, STR("\n")), .tail = seed },
        { .name = "a list of seed ",
          .head = STR("["),
          .unit = arena_concat(out, seed, STR(",")),
          .middle = seed,
          .tail = STR("]") },
        { .name = "middle lines of seed ", .head = head, .unit = line, .tail = tail },
        { .name = "numbered middle lines of seed ",
          .head = head,
          .unit = grow_numbered(out, line),
          .tail = tail },
        { .name = "last bytes of seed ", .head = seed, .unit = str_sub(seed, seed.n - 1, 1) },
    };
    memcpy(ret, made, sizeof(made));
}
