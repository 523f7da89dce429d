#include "format/yaml_writer.h"

#include "format/json_writer.h"
#include "format/yaml.h"
#include "tests/check.h"

static void check_yaml(const char *json, const char *want)
{
    CLEANUP(arena_done)
    struct arena memory = { 0 };
    CLEANUP(buf_done)
    struct buf out = { 0 };
    struct err err = { 0 };
    const struct jval *v;
    CHECK_EQ(json_parse(str_from(json), 0, &memory, &v, &err), 0);
    yaml_write(v, &out);
    CHECK_STR(buf_str(&out), want);
}

TEST(yaml_write_prints_blocks_as_kubectl_does)
{
    check_yaml("{\"kind\":\"List\",\"items\":[{\"metadata\":{\"name\":\"a\",\"labels\":{}}},"
               "{\"x\":[1,[2,null]]}],\"empty\":[]}",
               "kind: List\n"
               "items:\n"
               "- metadata:\n"
               "    name: a\n"
               "    labels: {}\n"
               "- x:\n"
               "  - 1\n"
               "  - - 2\n"
               "    - null\n"
               "empty: []\n");
    check_yaml("\"alone\"", "alone\n");
}

TEST(yaml_write_quotes_what_could_be_read_as_something_else)
{
    check_yaml(
        "[\"yes\",\"null\",\"1\",\"1e3\",\"2026-01-02\",\"\",\" a\",\"a \",\"a: b\",\"a #b\","
        "\"#a\",\"- a\",\"*\",\"two\\nlines\",\"a:b\",\"in 5 m (Mon, 03:00)\",true,1.5]",
        "- \"yes\"\n- \"null\"\n- \"1\"\n- \"1e3\"\n- \"2026-01-02\"\n- \"\"\n- \" a\"\n"
        "- \"a \"\n- \"a: b\"\n- \"a #b\"\n- \"#a\"\n- \"- a\"\n- \"*\"\n"
        "- \"two\\nlines\"\n- a:b\n- in 5 m (Mon, 03:00)\n- true\n- 1.5\n");
}

/* Whatever the texts are, the document reads back as it was. */
PROPERTY(yaml_write_reads_back_as_the_same_value)
{
    static const char letters[] = "aby01-:#*&!|>'\"%@`{}[],? \t\n~._/\\\x7f";
    CLEANUP(arena_done)
    struct arena memory = { 0 };
    CLEANUP(buf_done)
    struct buf json = { 0 };
    CLEANUP(buf_done)
    struct buf yaml = { 0 };
    struct err err = { 0 };
    const struct jval *was;
    struct ydoc is;
    struct json_writer w = json_writer_on(&json);
    jw_arr(&w);
    for (int i = 0; i < 8; i++) {
        char text[8];
        uint32_t n = rng_below(rng, sizeof(text));
        for (uint32_t k = 0; k < n; k++) {
            text[k] = letters[rng_below(rng, sizeof(letters) - 1)];
        }
        jw_obj(&w);
        jw_key(&w, (struct str){ .p = text, .n = n });
        jw_str(&w, (struct str){ .p = text, .n = n });
        jw_obj_end(&w);
    }
    jw_arr_end(&w);
    CHECK_EQ(json_parse(buf_str(&json), 0, &memory, &was, &err), 0);
    yaml_write(was, &yaml);
    CHECK_EQ(ydoc_parse(buf_str(&yaml), &memory, &is, &err), 0);
    CHECK(jval_eq(was, is.root));
}
