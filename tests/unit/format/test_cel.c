#include "format/cel.h"

#include "tests/check.h"

#define SELF                                                                                       \
    "{\"a\":1,\"s\":\"text\",\"t\":true,\"n\":null,\"l\":[1,2,3],\"m\":{\"x\":1,\"y\":2},"         \
    "\"namespace\":\"ns\",\"o\":[{\"name\":\"p\"},{\"name\":\"q\",\"after\":[\"p\"]}],"            \
    "\"five\":\"5m\",\"from\":\"2020-01-01T00:00:00Z\",\"to\":\"2020-01-01T01:30:00+02:00\","      \
    "\"r\":{\"cpu\":1.5},\"u\":\"\xc3\xbc\"}"
#define SCHEMA                                                                                     \
    "{\"properties\":{\"five\":{\"type\":\"string\",\"format\":\"duration\"},"                     \
    "\"from\":{\"type\":\"string\",\"format\":\"date-time\"},"                                     \
    "\"to\":{\"type\":\"string\",\"format\":\"date-time\"},"                                       \
    "\"r\":{\"additionalProperties\":{\"type\":\"number\"}}}}"

static int run(struct arena *a, const char *rule, bool *ret, struct err *err)
{
    const struct cel_program *program;
    struct tree *self;
    struct tree *old;
    struct tree *schema;
    struct err ignored = { 0 };
    CHECK_EQ(tree_parse(STR(SELF), a, &self, &ignored), 0);
    CHECK_EQ(tree_parse(STR("{\"a\":0,\"s\":\"old\"}"), a, &old, &ignored), 0);
    CHECK_EQ(tree_parse(STR(SCHEMA), a, &schema, &ignored), 0);
    struct cel_input input = { .self = self, .old_self = old, .schema = schema };
    int r = cel_compile(str_from(rule), a, &program, err);
    return r < 0 ? r : cel_evaluate(program, &input, a, ret, err);
}

TEST(cel_evaluates_rules)
{
    static const struct {
        const char *rule;
        bool want;
    } cases[] = {
        { "true", true },
        { "!true", false },
        { "!!true", true },
        { "self.a == 1 && self.s == 'text'", true },
        { "self.a == 2 || self.s != \"text\"", false },
        { "self.a + 1 == 2 && self.a - 2 == -1 && 7 / 2 == 3 && 7 % 4 == 3 && 2 * 3 == 6", true },
        { "1 + 2 * 3 == 7 && (1 + 2) * 3 == 9", true },
        { "0.5 + 0.25 == 0.75 && 1.0 == 1 && 2 > 1.5", true },
        { "'a' + 'b' == 'ab' && 'a' < 'b' && !('b' <= 'a')", true },
        { "'it\\'s' == \"it's\" && '\\n'.size() == 1", true },
        { "has(self.a) && !has(self.zz)", true },
        { "has(self.a) != has(self.zz)", true },
        { "!has(self.zz) || self.zz == 1", true },
        { "self.zz == 1 || true", true },
        { "false && self.zz == 1", false },
        { "self.zz == 1 && false", false },
        { "self.t ? self.a == 1 : self.zz == 1", true },
        { "(has(self.zz) ? self.zz : self.s) == 'text'", true },
        { "self.s in ['text', 'other']", true },
        { "!(self.s in [])", true },
        { "2 in self.l && !(4 in self.l)", true },
        { "'x' in self.m && !('z' in self.m)", true },
        { "self.l[0] == 1 && self.m['y'] == 2", true },
        { "self.l == [1, 2, 3] && self.l != [1, 2]", true },
        { "self.l.all(x, x > 0) && !self.l.all(x, x > 1)", true },
        { "self.l.exists(x, x == 2) && self.l.exists_one(x, x == 2)", true },
        { "self.l.filter(x, x > 1).size() == 2", true },
        { "self.l.map(x, x * 2) == [2, 4, 6]", true },
        { "[has(self.a),has(self.zz),has(self.s)].filter(x,x).size()==2", true },
        { "self.m.all(k, self.m[k] >= 1)", true },
        { "self.r.all(k, self.r[k] >= 1.0)", true },
        { "self.o.all(o, !has(o.after) || o.after.all(a, self.o.exists(p, p.name==a)))", true },
        { "size(self.s) == 4 && self.u.size() == 1 && size(self.m) == 2", true },
        { "self.s.startsWith('te') && self.s.endsWith('xt') && self.s.contains('ex')", true },
        { "self.s.matches('^[a-z]+$') && !self.s.matches('^[0-9]')", true },
        { "self.five == duration('300s') && duration('1h') > self.five", true },
        { "duration('5m') + duration('55m') == duration('1h')", true },
        { "self.to < self.from", true }, /* half past eleven the day before, in UTC */
        { "timestamp('2020-01-01T00:00:00Z') == self.from", true },
        { "self.__namespace__ == 'ns'", true },
        { "self.n == null && self.a != null", true },
        { "self.a > oldSelf.a && self != oldSelf && self == self", true },
        { "string(self.a) == '1' && int(1.9) == 1 && double(2) == 2.0", true },
        { " self.a\n==\t1 ", true },
        { "self.inside == 1 || self.a in[1]", true },
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        CLEANUP(arena_done)
        struct arena a = { 0 };
        struct err err = { 0 };
        bool got = !cases[i].want;
        check_case((int64_t)i);
        int r = run(&a, cases[i].rule, &got, &err);
        CHECK_STR(r < 0 ? err.msg : "", "");
        CHECK_EQ(got, cases[i].want);
    }
    check_case(-1);
}

TEST(cel_says_what_is_wrong)
{
    static const struct {
        const char *rule;
        int r;
        const char *message;
    } cases[] = {
        { "", -ERR_INVALID, "column 1: found '', want a value" },
        { "self.", -ERR_INVALID, "column 6: found '', want a name" },
        { "self.a ==", -ERR_INVALID, "column 10: found '', want a value" },
        { "(true", -ERR_INVALID, "column 6: found '', want ')'" },
        { "true false", -ERR_INVALID, "column 6: found 'false', want the end" },
        { "'open", -ERR_INVALID, "column 6: found '', want the end of the text" },
        { "'\\q'", -ERR_INVALID, "column 3: found 'q'', want a known escape" },
        { "has(self)", -ERR_INVALID, "column 9: found ')', want has(a.b)" },
        { "true ? 1", -ERR_INVALID, "column 9: found '', want ':'" },
        { "self.isURL()", -ERR_INVALID, "method 'isURL' with 0 arguments is not known" },
        { "cidr('x')", -ERR_INVALID, "function 'cidr' with 1 arguments is not known" },
        { "self.l.all(x)", -ERR_INVALID, "column 13: found ')', want a variable and ','" },
        { "self.zz", -ERR_INVALID, "no such key: zz" },
        { "self.l[3] == 1", -ERR_INVALID, "index out of bounds: 3" },
        { "self.m['q'] == 1", -ERR_INVALID, "no such key: q" },
        { "self.a", -ERR_INVALID, "a rule gives a bool, this one a int" },
        { "self.s < 1", -ERR_INVALID, "no such overload" },
        { "self.s && true", -ERR_INVALID, "no such overload" },
        { "1 / 0 == 1", -ERR_INVALID, "division by zero" },
        { "duration('x') > duration('1s')", -ERR_INVALID,
          "type conversion error from 'string' to 'google.protobuf.Duration'" },
        { "timestamp('x') > self.from", -ERR_INVALID,
          "type conversion error from 'string' to 'google.protobuf.Timestamp'" },
        { "9223372036854775807 + 1 > 0", -ERR_INVALID, "integer overflow" },
        { "unknown == 1", -ERR_INVALID, "no such attribute: unknown" },
        { "self.zz == 1 || false", -ERR_INVALID, "no such key: zz" },
        { "self.l.all(x, x > 'a')", -ERR_INVALID, "no such overload" },
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        CLEANUP(arena_done)
        struct arena a = { 0 };
        struct err err = { 0 };
        bool got = false;
        check_case((int64_t)i);
        CHECK_EQ(run(&a, cases[i].rule, &got, &err), cases[i].r);
        CHECK_STR(err.msg, cases[i].message);
    }
    check_case(-1);
}

TEST(cel_knows_rules_about_changes)
{
    CLEANUP(arena_done)
    struct arena a = { 0 };
    const struct cel_program *program;
    struct err err = { 0 };
    CHECK_EQ(cel_compile(STR("self == oldSelf"), &a, &program, &err), 0);
    CHECK(cel_uses_old_self(program));
    CHECK_EQ(cel_compile(STR("self.oldSelf == 'oldSelf'"), &a, &program, &err), 0);
    CHECK(!cel_uses_old_self(program));
}

TEST(cel_bounds_its_work)
{
    CLEANUP(arena_done)
    struct arena a = { 0 };
    struct err err = { 0 };
    bool got;
    struct str nested = STR("true");
    for (uint32_t i = 0; i < CEL_DEPTH_MAX; i++) {
        nested = arena_printf(&a, "(" STR_FMT ")", STR_ARG(nested));
    }
    CHECK_EQ(run(&a, nested.p, &got, &err), -ERR_LIMIT);
    /* Four loops over three elements in each other are fine, twelve are not. */
    struct str loops = STR("true");
    for (uint32_t i = 0; i < 12; i++) {
        loops = arena_printf(&a, "self.l.all(x%u, " STR_FMT ")", i, STR_ARG(loops));
    }
    CHECK_EQ(run(&a, loops.p, &got, &err), -ERR_LIMIT);
    CHECK_STR(err.msg, "the rule takes too long");
}
