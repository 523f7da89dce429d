#include "format/xml.h"

#include "tests/check.h"

TEST(xml_reads_elements_attributes_and_text)
{
    CLEANUP(arena_done)
    struct arena a = { 0 };
    struct err err = { 0 };
    const struct xml_node *root = NULL;
    struct str text =
        STR("<?xml version=\"1.0\"?>\n"
            "<s:Envelope xmlns:s=\"urn:soap\" "
            "xmlns:xsi=\"http://www.w3.org/2001/XMLSchema-instance\">"
            " <!-- passed over --> <s:Body><name>a &lt;&amp;&#x41;<![CDATA[<b>]]></name>"
            "<val xsi:type=\"vim25:Ref\" type=\"HostSystem\">host-1</val><empty/>"
            "</s:Body></s:Envelope>");
    CHECK_EQ(xml_parse(text, &a, &root, &err), 0);
    CHECK_STR(root->name, "Envelope");
    CHECK_STR(root->namespace, "urn:soap");
    CHECK_STR(root->text, "");
    const struct xml_node *body = xml_child(root, STR("Body"));
    CHECK_STR(xml_child_text(body, STR("name")), "a <&A<b>");
    const struct xml_node *val = xml_child(body, STR("val"));
    CHECK_STR(val->namespace, "");
    CHECK_STR(val->text, "host-1");
    CHECK_STR(xml_type(val), "Ref");
    CHECK_STR(xml_attribute(val, STR("type")), "HostSystem");
    CHECK(xml_attribute(val, STR("none")).p == NULL);
    CHECK(xml_type(body).p == NULL);
    CHECK(xml_child(body, STR("empty"))->text.n == 0);
    CHECK(xml_child(NULL, STR("x")) == NULL);
    CHECK(xml_child_text(body, STR("none")).p == NULL);
}

TEST(xml_refuses_what_is_broken_or_hostile)
{
    static const struct {
        const char *text;
        enum err_code code;
        const char *part; /* of the message */
    } cases[] = {
        { "", ERR_INVALID, "" },
        { "no XML", ERR_INVALID, "" },
        { "<a>", ERR_INVALID, "line 1" },
        { "<a></b>", ERR_INVALID, "mismatch" },
        { "<a/><b/>", ERR_INVALID, "line 1" },
        { "<a>&nothing;</a>", ERR_INVALID, "undefined entity" },
        { "<a b='&nothing;'/>", ERR_INVALID, "undefined entity" },
        { "<a>\x80</a>", ERR_INVALID, "" },
        { "<?xml version='1.0' encoding='UTF-16'?><a>\x80</a>", ERR_INVALID, "" },
        { "<!DOCTYPE a><a/>", ERR_INVALID, "document type" },
        { "<!DOCTYPE a SYSTEM 'file:///etc/hostname'><a/>", ERR_INVALID, "document type" },
        { "<!DOCTYPE a [<!ENTITY x SYSTEM 'file:///etc/hostname'>]><a>&x;</a>", ERR_INVALID,
          "document type" },
        { "<!DOCTYPE a [<!ENTITY x 'xxxxxxxx'><!ENTITY y '&x;&x;&x;&x;'>]><a b='&y;'>&y;</a>",
          ERR_INVALID, "document type" },
        { "<!DOCTYPE a PUBLIC 'x' 'http://127.0.0.1/x'><a/>", ERR_INVALID, "document type" },
        { "<x:a/>", ERR_INVALID, "" }, /* a prefix that nobody has declared */
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        CLEANUP(arena_done)
        struct arena a = { 0 };
        struct err err = { 0 };
        const struct xml_node *root = NULL;
        check_case((int64_t)i);
        CHECK_EQ(xml_parse(str_from(cases[i].text), &a, &root, &err), -(int)cases[i].code);
        CHECK(root == NULL);
        CHECK(str_contains(str_from(err.msg), str_from(cases[i].part)));
    }
    check_case(-1);
}

TEST(xml_has_limits)
{
    CLEANUP(buf_done)
    struct buf text = { 0 };
    const struct xml_node *root = NULL;
    for (uint32_t depth = XML_DEPTH_MAX; depth <= XML_DEPTH_MAX + 1; depth++) {
        CLEANUP(arena_done)
        struct arena a = { 0 };
        struct err err = { 0 };
        buf_reset(&text);
        for (uint32_t i = 0; i < depth; i++) {
            buf_add(&text, STR("<a>"));
        }
        for (uint32_t i = 0; i < depth; i++) {
            buf_add(&text, STR("</a>"));
        }
        CHECK_EQ(xml_parse(buf_str(&text), &a, &root, &err),
                 depth > XML_DEPTH_MAX ? -ERR_LIMIT : 0);
    }
    buf_reset(&text);
    buf_add(&text, STR("<a>"));
    for (uint32_t i = 0; i < XML_NODES_MAX; i++) {
        buf_add(&text, STR("<b/>"));
    }
    CLEANUP(arena_done)
    struct arena a = { 0 };
    struct err err = { 0 };
    CHECK_EQ(xml_parse(buf_str(&text), &a, &root, &err), -ERR_LIMIT);
    CHECK_EQ(xml_parse((struct str){ .p = text.p, .n = XML_BYTES_MAX + 1 }, &a, &root, &err),
             -ERR_LIMIT);
}

TEST(xml_that_is_cut_anywhere_is_an_error)
{
    struct str text = STR("<a b=\"c\"><d>text &amp; more</d><e xmlns=\"urn:x\"/></a>");
    const struct xml_node *root = NULL;
    for (size_t n = 0; n < text.n; n++) {
        CLEANUP(arena_done)
        struct arena a = { 0 };
        struct err err = { 0 };
        check_case((int64_t)n);
        CHECK(xml_parse(str_sub(text, 0, n), &a, &root, &err) < 0);
        CHECK(err.msg[0] != '\0');
    }
    check_case(-1);
}

PROPERTY(xml_text_comes_back_as_it_was_written)
{
    CLEANUP(arena_done)
    struct arena a = { 0 };
    CLEANUP(buf_done)
    struct buf text = { 0 };
    CLEANUP(buf_done)
    struct buf document = { 0 };
    struct err err = { 0 };
    const struct xml_node *root = NULL;
    static const char *const pieces[] = { "&",  "<", ">", "\"", "'", "]]>", "\n",    "\r",
                                          "\t", "a", "ä", "€",  "🚢", " ",   "&amp;", "%s" };
    for (uint32_t i = rng_below(rng, 40); i > 0; i--) {
        buf_add(&text, str_from(pieces[rng_below(rng, ARRAY_LEN(pieces))]));
    }
    buf_add(&document, STR("<a b=\""));
    xml_add_text(&document, buf_str(&text));
    buf_add(&document, STR("\">"));
    xml_add_text(&document, buf_str(&text));
    buf_add(&document, STR("</a>"));
    CHECK_EQ(xml_parse(buf_str(&document), &a, &root, &err), 0);
    CHECK_STR(root->text, buf_str(&text));
    CHECK_STR(xml_attribute(root, STR("b")), buf_str(&text));
}

TEST(xml_text_that_no_document_may_contain_is_replaced)
{
    CLEANUP(buf_done)
    struct buf out = { 0 };
    xml_add_text(&out, STR("a\x01\x80\xef\xbf\xbf"));
    CHECK_STR(buf_str(&out), "a\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd");
}
