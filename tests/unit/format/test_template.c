#include "format/template.h"
#include "format/goprintf.h"
#include "tests/vectors.h"

/* The root the original gives to its messages, of a fixture's node and parameters. */
struct fixture {
    struct gomember fields[6];
    struct gomember profile[2];
    struct govalue root;
};

static void fixture_init(struct fixture *f, const struct jval *node, const struct jval *params,
                         struct arena *a)
{
    struct err err = { 0 };
    struct timestamp time = timestamp_zero;
    CHECK_EQ(timestamp_parse(jval_str(jval_get(params, STR("LastTransition"))), &time, &err), 0);
    struct str profile = jval_str(jval_get(params, STR("Profile")));
    f->profile[0] = (struct gomember){ STR("Current"), govalue_str(profile) };
    f->profile[1] = (struct gomember){ STR("Last"), govalue_str(STR("before")) };
    f->fields[0] =
        (struct gomember){ STR("State"), govalue_str(jval_str(jval_get(params, STR("State")))) };
    f->fields[1] = (struct gomember){ STR("Profile"), govalue_str_with(profile, f->profile, 2) };
    f->fields[2] = (struct gomember){ STR("Node"), govalue_from(&gotype_node, node, a) };
    f->fields[3] =
        (struct gomember){ STR("InMaintenance"),
                           govalue_bool(jval_bool(jval_get(params, STR("InMaintenance")), false)) };
    f->fields[4] =
        (struct gomember){ STR("LogDetails"),
                           govalue_bool(jval_bool(jval_get(params, STR("LogDetails")), false)) };
    f->fields[5] = (struct gomember){ STR("LastTransition"), govalue_time(time) };
    f->root = govalue_struct(f->fields, ARRAY_LEN(f->fields));
}

enum stage { STAGE_OUT, STAGE_PARSE, STAGE_EXEC };

/* Runs the text; the answer is the output, or the error's words. */
static struct str render(struct str text, const struct govalue *root, enum stage *ret_stage,
                         struct arena *a)
{
    struct err err = { 0 };
    struct template *t = NULL;
    *ret_stage = STAGE_PARSE;
    if (template_parse(text, a, &t, &err) < 0) {
        return arena_printf(a, "%s", err.msg);
    }
    CLEANUP(buf_done)
    struct buf out = { 0 };
    *ret_stage = STAGE_EXEC;
    if (template_render(t, root, &out, &err) < 0) {
        CHECK_EQ(out.n, 0);
        return arena_printf(a, "%s", err.msg);
    }
    *ret_stage = STAGE_OUT;
    return arena_str(a, buf_str(&out));
}

/* Where drydock decides otherwise than the recorded Go program, and what is wanted then. */
static const struct exception {
    int64_t n;
    const char *out; /* NULL: the output is Go's own dump of a struct, which nobody reads */
    const char *why;
} exceptions[] = {
    { 57, NULL, "a condition as Go's generated String() dumps it" },
    { 63, NULL, "quantities as Go dumps their insides; here they print as quantities" },
    { 59, "8", "a quantity by name works, beside the method" },
    { 267, "flatcar", ".Profile.Current works, as the original's documentation promises" },
};

static const struct exception *exception_of(int64_t n)
{
    for (size_t i = 0; i < ARRAY_LEN(exceptions); i++) {
        if (exceptions[i].n == n) {
            return &exceptions[i];
        }
    }
    return NULL;
}

static void check_vector(const struct jval *fixtures, const struct jval *one,
                         const struct exception *e, struct arena *a)
{
    struct fixture f;
    enum stage stage;
    struct str node = jval_str(jval_get(one, STR("node")));
    struct str params = jval_str(jval_get(one, STR("params")));
    fixture_init(&f, jval_get(jval_get(fixtures, STR("nodes")), node),
                 jval_get(jval_get(fixtures, STR("params")), params), a);
    struct str got = render(vectors_text(one, "t", a), &f.root, &stage, a);
    if (e != NULL) {
        CHECK_EQ(stage, STAGE_OUT);
        CHECK(got.n > 0);
        CHECK_STR(got, e->out != NULL ? str_from(e->out) : got);
    } else if (vectors_ok(one)) {
        CHECK_STR(got, vectors_text(one, "out", a));
        CHECK_EQ(stage, STAGE_OUT);
    } else {
        struct str class = vectors_text(one, "class", a);
        CHECK_STR(stage == STAGE_PARSE ? "parse" : stage == STAGE_EXEC ? "exec" : "out", class);
        CHECK(str_starts(got, STR("line ")));
    }
}

TEST(template_gives_what_the_original_gives)
{
    CLEANUP(arena_done)
    struct arena a = { 0 };
    const struct jval *all = vectors_load("vectors/template.json", &a);
    uint32_t count = 0;
    JVAL_EACH (jval_get(all, STR("cases")), one) {
        vectors_enter(one);
        check_vector(all, one, exception_of(vectors_i64(one, "n")), &a);
        count++;
    }
    check_case(-1);
    CHECK_EQ(count, 315);
}

/* Recorded beside the vectors: all verbs, layouts, literals, scopes and mistakes. */
TEST(template_gives_what_go_gives)
{
    CLEANUP(arena_done)
    struct arena a = { 0 };
    const struct jval *fixtures = vectors_load("vectors/template.json", &a);
    const struct jval *cases = jval_get(vectors_load("template/go.json", &a), STR("cases"));
    uint32_t count = 0;
    JVAL_EACH (cases, one) {
        vectors_enter(one);
        check_vector(fixtures, one, NULL, &a);
        count++;
    }
    check_case(-1);
    CHECK_EQ(count, 1065);
}

/* Cut anywhere, a template is text, another template or an error with its place. */
TEST(template_cut_at_every_byte_has_an_answer)
{
    CLEANUP(arena_done)
    struct arena a = { 0 };
    CLEANUP(arena_done)
    struct arena tmp = { 0 };
    struct fixture f;
    const struct jval *all = vectors_load("vectors/template.json", &a);
    const struct jval *cases = jval_get(all, STR("cases"));
    fixture_init(&f, jval_at(all, "nodes.full"), jval_at(all, "params.p1"), &a);
    JVAL_EACH (cases, one) {
        vectors_enter(one);
        struct str text = vectors_text(one, "t", &a);
        for (size_t n = 0; n < text.n; n++) {
            enum stage stage;
            arena_reset(&tmp);
            struct str got = render(str_sub(text, 0, n), &f.root, &stage, &tmp);
            CHECK(stage == STAGE_OUT || str_starts(got, STR("line ")));
        }
    }
    check_case(-1);
}

/* A node of our own, for what the recorded ones do not have. */
static const char node_text[] =
    "{\"metadata\":{\"name\":\"n1\",\"labels\":{\"b\":\"2\",\"a\":\"0\",\"a\":\"1\",\"n\":7},"
    "\"annotations\":[],\"creationTimestamp\":\"yesterday\",\"generation\":\"x\","
    "\"ownerReferences\":"
    "[{\"kind\":\"Machine\",\"name\":\"m\",\"controller\":true}]},"
    "\"spec\":{\"taints\":{},\"unschedulable\":\"x\"},"
    "\"status\":{\"capacity\":{\"cpu\":4,\"memory\":\"1Gi\",\"huge\":\"1E\",\"bad\":\"1x\","
    "\"many\":\"99999999999999999999\"},"
    "\"volumesAttached\":[{\"name\":\"v\",\"devicePath\":\"/dev/v\"}]}}";

static void own_init(struct fixture *f, struct arena *a)
{
    struct err err = { 0 };
    const struct jval *node = NULL;
    const struct jval *params = NULL;
    CHECK_EQ(json_parse(STR(node_text), 0, a, &node, &err), 0);
    CHECK_EQ(json_parse(STR("{\"State\":\"operational\",\"Profile\":\"kernel\",\"InMaintenance\":"
                            "false,\"LastTransition\":\"2026-03-01T10:00:00Z\"}"),
                        0, a, &params, &err),
             0);
    fixture_init(f, node, params, a);
}

/* What the text renders to on that node. */
static void check_own(const char *text, enum stage wanted, const char *out)
{
    CLEANUP(arena_done)
    struct arena a = { 0 };
    struct fixture f;
    enum stage stage;
    own_init(&f, &a);
    struct str got = render(str_from(text), &f.root, &stage, &a);
    CHECK_STR(got, out);
    CHECK_EQ(stage, wanted);
}

TEST(template_profile_is_a_name_with_fields)
{
    check_own("{{.Profile}} {{.Profile.Current}} {{.Profile.Last}}", STAGE_OUT,
              "kernel kernel before");
    check_own("{{len .Profile}} {{eq .Profile \"kernel\"}} {{printf \"%q\" .Profile}}", STAGE_OUT,
              "6 true \"kernel\"");
    check_own("{{.Profile.Next}}", STAGE_EXEC,
              "line 1, column 3: found '.Next', want a field that string has");
}

TEST(template_copies_what_go_can_copy)
{
    check_own("{{.Node.DeepCopy.Status.Capacity.cpu}} {{.Node.DeepCopyObject.DeepCopy.Name}} "
              "{{eq .Node.Name .Node.DeepCopy.Name}} {{with .Node.DeepCopy}}{{.GetName}}{{end}} "
              "{{.Node.Status.Capacity.DeepCopy.cpu.DeepCopy.MilliValue}}",
              STAGE_OUT, "4 n1 true n1 4000");
    check_own("{{.Node.DeepCopy 1}}", STAGE_EXEC,
              "line 1, column 3: 'DeepCopy': found 1 arguments, want 0");
    check_own("{{.Profile.DeepCopy}}", STAGE_EXEC,
              "line 1, column 3: found '.DeepCopy', want a field that string has");
}

TEST(template_resources_are_had_by_name_and_by_method)
{
    check_own("{{.Node.Status.Capacity.cpu}} {{index .Node.Status.Capacity \"memory\"}} "
              "{{.Node.Status.Capacity.cpu.MilliValue}} {{.Node.Status.Capacity.Memory.Value}}",
              STAGE_OUT, "4 1Gi 4000 1073741824");
    check_own("{{.Node.Status.Capacity.gpu}} {{index .Node.Status.Capacity \"gpu\"}}", STAGE_OUT,
              "<no value> 0");
    check_own("{{range $k, $v := .Node.Status.Capacity}}{{$k}}={{$v}};{{end}}", STAGE_OUT,
              "bad=1x;cpu=4;huge=1E;many=99999999999999999999;memory=1Gi;");
    check_own("{{.Node.Status.Capacity.huge.Value}} {{.Node.Status.Capacity.huge.Sign}}", STAGE_OUT,
              "1000000000000000000 1");
    check_own("{{eq .Node.Status.Capacity.cpu .Node.Status.Capacity.Cpu}} "
              "{{printf \"%s|%q|%6v|%d\" .Node.Status.Capacity.cpu .Node.Status.Capacity.cpu "
              ".Node.Status.Capacity.cpu .Node.Status.Capacity.cpu}}",
              STAGE_OUT, "true 4|\"4\"|     4|%!d(resource.Quantity=4)");
    check_own(
        "{{.Node.Status.Capacity.many.Value}}", STAGE_EXEC,
        "line 1, column 3: 'Value': quantity '99999999999999999999' is too large for a number");
    static const char *const bad[] = { "Value", "IsZero", "Sign" };
    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        CLEANUP(arena_done)
        struct arena a = { 0 };
        struct fixture f;
        enum stage stage;
        own_init(&f, &a);
        (void)render(arena_printf(&a, "{{.Node.Status.Capacity.bad.%s}}", bad[i]), &f.root, &stage,
                     &a);
        CHECK_EQ(stage, STAGE_EXEC);
    }
}

/* What the server would never write reads as the zero of its type, and does no harm. */
TEST(template_reads_a_wrong_node_as_zeros)
{
    check_own(
        "{{.Node.Labels}} {{.Node.Annotations}} {{.Node.Generation}} "
        "{{.Node.CreationTimestamp.IsZero}} {{.Node.Spec.Taints}} {{.Node.Spec.Unschedulable}}",
        STAGE_OUT, "map[a:1 b:2 n:] map[] 0 true [] false");
    check_own("{{range .Node.OwnerReferences}}{{.Kind}}/{{.Name}} {{.Controller}} "
              "{{.BlockOwnerDeletion}}{{end}} {{.Node.Status.VolumesAttached}}",
              STAGE_OUT, "Machine/m true <nil> [{v /dev/v}]");
    check_own("{{printf \"%v|%+v|%#v\" .Node.Status.DaemonEndpoints .Node.Status.DaemonEndpoints "
              ".Node.Status.DaemonEndpoints}}",
              STAGE_OUT,
              "{{0}}|{KubeletEndpoint:{Port:0}}|"
              "v1.NodeDaemonEndpoints{KubeletEndpoint:v1.DaemonEndpoint{Port:0}}");
    check_own("{{eq . .}} {{eq .Node.Spec .Node.Spec}} {{printf \"%T\" .}}", STAGE_OUT,
              "true true struct");
    check_own("{{printf \"%+v\" .Profile}} {{(print .) | len | lt 100}}", STAGE_OUT, "kernel true");
}

TEST(template_errors_name_the_place_what_was_found_and_what_is_wanted)
{
    check_own("a\nbc{{.State", STAGE_PARSE,
              "line 2, column 11: found the end of the template, want '}}'");
    check_own("{{if .State}}\n x", STAGE_PARSE,
              "line 2, column 3: found the end of the template, want {{end}} for if");
    check_own("\n {{nope}}", STAGE_PARSE,
              "line 2, column 4: found 'nope', want a function that templates have");
    check_own("{{$x}}", STAGE_PARSE,
              "line 1, column 3: found '$x', want a variable declared before");
    check_own("{{.Nope}}", STAGE_EXEC,
              "line 1, column 3: found '.Nope', want a field that struct has");
    check_own("x\n{{len 3}}", STAGE_EXEC,
              "line 2, column 3: 'len': found int, want a string, list or map to measure");
    check_own("{{.LastTransition.AddDate 0 0 1000001}}", STAGE_EXEC,
              "line 1, column 3: 'AddDate': found 1000001, want at most 1000000 of them");
    check_own("{{ne 1}}", STAGE_EXEC, "line 1, column 3: 'ne': found 1 arguments, want 2");
    check_own("{{printf}}", STAGE_EXEC,
              "line 1, column 3: 'printf': found 0 arguments, want at least 1");
    check_own("{{.Node.DeletionTimestamp.Year}}", STAGE_EXEC,
              "line 1, column 3: found '.Year', want a field that the nil pointer of type *v1.Time "
              "has");
}

/* -ERR_LIMIT in either stage, with nothing written. */
static void check_limit(struct str text, const char *words)
{
    CLEANUP(arena_done)
    struct arena a = { 0 };
    CLEANUP(buf_done)
    struct buf out = { 0 };
    struct fixture f;
    struct err err = { 0 };
    struct template *t = NULL;
    own_init(&f, &a);
    int r = template_parse(text, &a, &t, &err);
    r = r == 0 ? template_render(t, &f.root, &out, &err) : r;
    CHECK_EQ(r, -ERR_LIMIT);
    CHECK(str_contains(str_from(err.msg), str_from(words)));
    CHECK_EQ(out.n, 0);
}

/* `left` so many times, then `middle`, then `right` as often. */
static struct str nest(struct arena *a, const char *left, const char *middle, const char *right,
                       uint32_t times)
{
    CLEANUP(buf_done)
    struct buf text = { 0 };
    for (uint32_t i = 0; i < times; i++) {
        buf_add(&text, str_from(left));
    }
    buf_add(&text, str_from(middle));
    for (uint32_t i = 0; i < times; i++) {
        buf_add(&text, str_from(right));
    }
    return arena_str(a, buf_str(&text));
}

TEST(template_stops_at_its_limits)
{
    CLEANUP(arena_done)
    struct arena a = { 0 };
    uint32_t deep = TEMPLATE_DEPTH_MAX + 1;
    check_limit(STR("{{range 1000000000}}{{end}}"), "steps");
    check_limit(STR("{{define \"r\"}}{{template \"r\"}}{{end}}{{template \"r\"}}"), "levels");
    check_limit(
        STR("{{define \"r\"}}{{template \"r\" (print (print .))}}{{end}}{{template \"r\" 1}}"),
        "levels");
    check_limit(STR("{{range 300}}{{printf \"%1000d\" 1}}{{end}}"), "bytes of output");
    check_limit(STR("{{range 262144}}x{{end}}"), "steps");
    check_limit(STR("{{printf \"%1000000d\" 1}}"), "more than 262144 bytes");
    check_limit(STR("{{printf \"%.1000000d\" 1}}"), "more than 262144 bytes");
    check_limit(STR("{{printf \"%.1000000f\" 1.5}}"), "more than 262144 bytes");
    struct str months = nest(&a, "1", "", "", 30000); /* in December each takes two digits */
    check_limit(arena_printf(&a,
                             "{{(.LastTransition.AddDate 0 9 0).Format (printf "
                             "\"%%[1]s%%[1]s%%[1]s%%[1]s%%[1]s%%[1]s%%[1]s%%[1]s\" \"" STR_FMT
                             "\")}}",
                             STR_ARG(months)),
                "more than 262144 bytes");
    check_limit(STR("{{range 100}}{{$x := printf \"%200000d\" 1}}{{end}}"), "bytes of memory");
    check_limit(nest(&a, "{{if 1}}", "x", "{{end}}", deep), "nested deeper");
    struct str parens = nest(&a, "(", "1", ")", deep);
    check_limit(arena_printf(&a, "{{" STR_FMT "}}", STR_ARG(parens)), "nested deeper");
    check_limit(nest(&a, "xxxxxxxx", "", "", TEMPLATE_TEXT_MAX / 8 + 1), "a template of");
}

TEST(template_output_is_exact_up_to_the_limit)
{
    CLEANUP(arena_done)
    struct arena a = { 0 };
    struct fixture f;
    enum stage stage;
    own_init(&f, &a);
    struct str got =
        render(STR("{{range 4}}{{printf \"%065536d\" .}}{{end}}"), &f.root, &stage, &a);
    CHECK_EQ(stage, STAGE_OUT);
    CHECK_EQ(got.n, TEMPLATE_OUTPUT_MAX);
    check_limit(STR("{{range 4}}{{printf \"%065536d\" .}}{{end}}x"), "bytes of output");
}

/* A template is read once and run often, and what it adds stands behind what was there. */
TEST(template_runs_again_and_adds_to_the_output)
{
    CLEANUP(arena_done)
    struct arena a = { 0 };
    CLEANUP(buf_done)
    struct buf out = { 0 };
    struct fixture f;
    struct err err = { 0 };
    struct template *t = NULL;
    own_init(&f, &a);
    CHECK_EQ(template_parse(STR("{{$x := 1}}{{.Node.Name}};"), &a, &t, &err), 0);
    for (int i = 0; i < 3; i++) {
        CHECK_EQ(template_render(t, &f.root, &out, &err), 0);
    }
    CHECK_STR(buf_str(&out), "n1;n1;n1;");
}

/* Text without braces is itself, whatever bytes it has. */
PROPERTY(template_text_without_actions_is_itself)
{
    CLEANUP(arena_done)
    struct arena a = { 0 };
    CLEANUP(buf_done)
    struct buf text = { 0 };
    struct fixture f;
    enum stage stage;
    own_init(&f, &a);
    for (uint32_t i = rng_below(rng, 60); i > 0; i--) {
        char c = (char)rng_below(rng, 256);
        buf_add_char(&text, c == '{' ? '}' : c);
    }
    CHECK_STR(render(buf_str(&text), &f.root, &stage, &a), buf_str(&text));
    CHECK_EQ(stage, STAGE_OUT);
}

/* A string that %q writes is read back by the lexer as it was. */
PROPERTY(template_quoting_and_reading_are_inverse)
{
    CLEANUP(arena_done)
    struct arena a = { 0 };
    CLEANUP(buf_done)
    struct buf text = { 0 };
    CLEANUP(buf_done)
    struct buf quoted = { 0 };
    enum stage stage;
    static const char *const pieces[] = { "a",    "\"",           "\\", "\n", "é",  "\x01",
                                          "\xff", "\xe2\x80\xa8", "😀",  "}}", "{{", "`",
                                          "'" };
    for (uint32_t i = rng_below(rng, 20); i > 0; i--) {
        buf_add(&text, str_from(pieces[rng_below(rng, ARRAY_LEN(pieces))]));
    }
    goprintf_quote(&quoted, buf_str(&text), '"', rng_chance(rng, 500));
    struct govalue root = govalue_str(STR("root"));
    struct str shown = buf_str(&quoted);
    CHECK_STR(render(arena_printf(&a, "{{" STR_FMT "}}", STR_ARG(shown)), &root, &stage, &a),
              buf_str(&text));
}

/* Pieces of templates in any order: an answer, always the same, with a place when it is an error.
 */
PROPERTY(template_answers_whatever_it_is_given)
{
    static const char *const pieces[] = {
        "{{",
        "}}",
        "{{- ",
        " -}}",
        "if ",
        "range ",
        "with ",
        "else ",
        "end",
        "define \"t\"",
        "template \"t\" ",
        "block \"b\" ",
        "$x",
        ":=",
        "=",
        "|",
        "(",
        ")",
        ".",
        ".Node",
        ".Name",
        " ",
        "print ",
        "index ",
        "1",
        "\"a\"",
        ".Labels",
        "nil ",
        "break",
        "continue",
        ",",
        "'a'",
        "0x",
        "/*",
        "*/",
        "text",
        "\n",
        ".State",
        "and ",
        "or ",
        "printf \"%v\" ",
        "len ",
        "3 ",
        "{{end}}",
        "{{range 2}}",
        "{{if .State}}",
        "{{else}}",
        "{{.}}",
        "{{$x := 1}}",
        "{{$x}}",
    };
    CLEANUP(arena_done)
    struct arena a = { 0 };
    CLEANUP(buf_done)
    struct buf text = { 0 };
    struct fixture f;
    own_init(&f, &a);
    for (uint32_t i = rng_below(rng, 25); i > 0; i--) {
        buf_add(&text, str_from(pieces[rng_below(rng, ARRAY_LEN(pieces))]));
    }
    enum stage first;
    enum stage second;
    struct str once = render(buf_str(&text), &f.root, &first, &a);
    CHECK_STR(render(buf_str(&text), &f.root, &second, &a), once);
    CHECK_EQ(first, second);
    CHECK(first == STAGE_OUT || str_starts(once, STR("line ")));
}
