#include "cmd/options.h"
#include "tests/check.h"

struct config {
    struct str address;
    struct str format;
    bool elect;
    bool devel;
    uint32_t nodes;
    int32_t offset;
    uint64_t seed;
    double speed;
    usec_t timeout;
    struct str output;
};

static const struct option flags[] = {
    { .name = "metrics-addr",
      .kind = OPTION_TEXT,
      OPTION(struct config, address),
      .value = "ADDRESS",
      .initial = ":8080",
      .help = "where metrics, dashboard and API are served; an empty host means all of them" },
    { .name = "format",
      .kind = OPTION_CHOICE,
      OPTION(struct config, format),
      .initial = "text",
      .choices = "text|json",
      .help = "form of the log" },
    { .name = "elect",
      .kind = OPTION_BOOL,
      OPTION(struct config, elect),
      .help = "elect a leader" },
    { .name = "devel",
      .kind = OPTION_BOOL,
      OPTION(struct config, devel),
      .initial = "true",
      .help = "readable log" },
    { .name = "nodes",
      .kind = OPTION_U32,
      OPTION(struct config, nodes),
      .value = "N",
      .help = "how many" },
    { .name = "offset",
      .kind = OPTION_I32,
      OPTION(struct config, offset),
      .value = "N",
      .help = "from the middle" },
    { .name = "seed",
      .kind = OPTION_U64,
      OPTION(struct config, seed),
      .value = "N",
      .help = "of chance" },
    { .name = "speed",
      .kind = OPTION_F64,
      OPTION(struct config, speed),
      .value = "X",
      .initial = "1",
      .help = "of time" },
    { .name = "a-flag-with-a-name-that-is-long",
      .kind = OPTION_DURATION,
      OPTION(struct config, timeout),
      .value = "DURATION",
      .initial = "65s",
      .help = "how long" },
    { .name = "o",
      .kind = OPTION_CHOICE,
      OPTION(struct config, output),
      .choices = "text|yaml",
      .help = "form of the report",
      .also = "output" },
};
static const struct option_table table = { .options = flags, .count = ARRAY_LEN(flags) };

#define PARSE(config, args, err, ...)                                                              \
    options_parse(&table, (char *[]){ __VA_ARGS__ __VA_OPT__(, ) NULL }, &memory, (config),        \
                  (args), (err))

static char *word(const char *text)
{
    return (char *)(uintptr_t)text; /* argv is not const by tradition; nobody writes to it */
}
#define W(text) word(text)

TEST(options_parse_gives_defaults)
{
    CLEANUP(arena_done)
    struct arena memory = { 0 };
    struct config c = { 0 };
    struct option_args args;
    struct err err = { 0 };
    char *none[] = { NULL };
    CHECK_EQ(options_parse(&table, none, &memory, &c, &args, &err), 0);
    CHECK_STR(c.address, ":8080");
    CHECK_STR(c.format, "text");
    CHECK(!c.elect);
    CHECK(c.devel);
    CHECK_EQ(c.timeout, SECONDS(65));
    CHECK_EQ(args.count, 0);
    CHECK(!args.help);
}

TEST(options_parse_takes_the_four_forms_of_go)
{
    static const char *const forms[][3] = {
        { "-nodes", "7", NULL },
        { "-nodes=7", NULL, NULL },
        { "--nodes", "7", NULL },
        { "--nodes=7", NULL, NULL },
    };
    for (size_t i = 0; i < ARRAY_LEN(forms); i++) {
        CLEANUP(arena_done)
        struct arena memory = { 0 };
        struct config c = { 0 };
        struct option_args args;
        struct err err = { 0 };
        char *argv[3] = { W(forms[i][0]), W(forms[i][1]), NULL };
        CHECK_EQ(options_parse(&table, argv, &memory, &c, &args, &err), 0);
        CHECK_EQ(c.nodes, 7);
        CHECK_EQ(args.count, 0);
    }
}

TEST(options_parse_takes_numbers_below_zero)
{
    CLEANUP(arena_done)
    struct arena memory = { 0 };
    struct config c = { 0 };
    struct option_args args;
    struct err err = { 0 };
    CHECK_EQ(PARSE(&c, &args, &err, W("--offset"), W("-5")), 0);
    CHECK_EQ(c.offset, -5);
    CHECK_EQ(PARSE(&c, &args, &err, W("--offset=2147483648")), -ERR_INVALID);
    CHECK_STR(err.msg, "flag '--offset': found '2147483648', want a whole number");
}

TEST(options_parse_never_takes_the_next_word_for_a_boolean)
{
    CLEANUP(arena_done)
    struct arena memory = { 0 };
    struct config c = { 0 };
    struct option_args args;
    struct err err = { 0 };
    CHECK_EQ(PARSE(&c, &args, &err, W("--elect"), W("false"), W("-devel=F")), 0);
    CHECK(c.elect);
    CHECK(!c.devel);
    CHECK_EQ(args.count, 1);
    CHECK_STR(args.items[0], "false");
}

TEST(options_parse_takes_a_letter_and_its_long_name_as_kubectl_does)
{
    static const char *const forms[][2] = {
        { "-o", "yaml" },       { "-oyaml", NULL },        { "-o=yaml", NULL },
        { "--output", "yaml" }, { "--output=yaml", NULL }, { "--o", "yaml" },
    };
    for (size_t i = 0; i < ARRAY_LEN(forms); i++) {
        CLEANUP(arena_done)
        struct arena memory = { 0 };
        struct config c = { 0 };
        struct option_args args;
        struct err err = { 0 };
        char *argv[3] = { W(forms[i][0]), W(forms[i][1]), NULL };
        CHECK_EQ(options_parse(&table, argv, &memory, &c, &args, &err), 0);
        CHECK_STR(c.output, "yaml");
        CHECK_EQ(args.count, 0);
    }
}

TEST(options_parse_says_where_two_dashes_stood)
{
    CLEANUP(arena_done)
    struct arena memory = { 0 };
    struct config c = { 0 };
    struct option_args args;
    struct err err = { 0 };
    CHECK_EQ(PARSE(&c, &args, &err, W("a"), W("--"), W("b"), W("--")), 0);
    CHECK_EQ(args.before_dashes, 1);
    CHECK_EQ(args.count, 3);
    CHECK_EQ(PARSE(&c, &args, &err, W("a")), 0);
    CHECK_EQ(args.before_dashes, UINT32_MAX);
}

TEST(options_parse_keeps_arguments_and_stops_at_two_dashes)
{
    CLEANUP(arena_done)
    struct arena memory = { 0 };
    struct config c = { 0 };
    struct option_args args;
    struct err err = { 0 };
    CHECK_EQ(PARSE(&c, &args, &err, W("a"), W("--seed"), W("18446744073709551615"), W("-"), W("--"),
                   W("--nodes")),
             0);
    CHECK(c.seed == UINT64_MAX);
    CHECK_EQ(args.count, 3);
    CHECK_STR(args.items[0], "a");
    CHECK_STR(args.items[1], "-");
    CHECK_STR(args.items[2], "--nodes");
}

TEST(options_parse_names_what_is_wrong)
{
    static const struct {
        const char *argv[3];
        const char *message;
    } cases[] = {
        { { "--wrong" }, "unknown flag '--wrong'" },
        { { "-metrics-adr=x" }, "unknown flag '--metrics-adr', did you mean '--metrics-addr'?" },
        { { "--nodes" }, "flag '--nodes' needs a value: N" },
        { { "--nodes=-1" }, "flag '--nodes': found '-1', want a whole number" },
        { { "--nodes", "4294967296" }, "flag '--nodes': found '4294967296', want a whole number" },
        { { "--speed=fast" }, "flag '--speed': found 'fast', want a number" },
        { { "--elect=yes" }, "flag '--elect': found 'yes', want true or false" },
        { { "--format", "xml" }, "flag '--format': found 'xml', want one of text|json" },
        { { "--a-flag-with-a-name-that-is-long=5" },
          "flag '--a-flag-with-a-name-that-is-long': found '5', want a duration such as 1h30m or "
          "200ms" },
        { { "--ouptut=yaml" }, "unknown flag '--ouptut', did you mean '--output'?" },
        { { "-ouptut=yaml" }, "unknown flag '--ouptut', did you mean '--output'?" },
        { { "-oxml" }, "flag '-o': found 'xml', want one of text|yaml" },
        { { "-o" }, "flag '-o' needs a value: text|yaml" },
        { { "---nodes=1" }, "'---nodes=1' is no flag" },
        { { "--=1" }, "'--=1' is no flag" },
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        CLEANUP(arena_done)
        struct arena memory = { 0 };
        struct config c = { 0 };
        struct option_args args;
        struct err err = { 0 };
        char *argv[] = { W(cases[i].argv[0]), W(cases[i].argv[1]), NULL };
        CHECK_EQ(options_parse(&table, argv, &memory, &c, &args, &err), -ERR_INVALID);
        CHECK_STR(err.msg, cases[i].message);
    }
}

TEST(options_parse_notices_a_wish_for_help)
{
    static const char *const wishes[] = { "-h", "--help", "-help" };
    for (size_t i = 0; i < ARRAY_LEN(wishes); i++) {
        CLEANUP(arena_done)
        struct arena memory = { 0 };
        struct config c = { 0 };
        struct option_args args;
        struct err err = { 0 };
        CHECK_EQ(PARSE(&c, &args, &err, W("x"), W(wishes[i]), W("--not-even-a-flag")), 0);
        CHECK(args.help);
    }
}

TEST(options_help_is_aligned_and_narrow)
{
    CLEANUP(buf_done)
    struct buf out = { 0 };
    options_help(&table, &out);
    CHECK(str_starts(
        buf_str(&out),
        STR("  --metrics-addr ADDRESS      where metrics, dashboard and API are served; an\n"
            "                              empty host means all of them (default :8080)\n"
            "  --format text|json          form of the log (default text)\n"
            "  --elect                     elect a leader\n")));
    struct str rest = buf_str(&out);
    struct str line;
    while (str_split_next(&rest, '\n', &line)) {
        CHECK(line.n <= OPTIONS_COLUMNS);
    }
    CHECK(str_contains(buf_str(&out), STR("  --a-flag-with-a-name-that-is-long DURATION\n"
                                          "                              how long (default 65s)")));
    CHECK(str_ends(buf_str(&out), STR("  -o, --output text|yaml      form of the report\n")));
}
