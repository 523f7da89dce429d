#include "base/percent.h"
#include "tests/check.h"

TEST(percent_encodes_all_but_what_a_url_may_hold)
{
    static const struct {
        const char *text;
        const char *segment;
        const char *form;
    } cases[] = {
        { "node-1.example_A~9", "node-1.example_A~9", "node-1.example_A~9" },
        { "a b", "a%20b", "a+b" },
        { "a/b?c=d&e+f", "a%2Fb%3Fc%3Dd%26e%2Bf", "a%2Fb%3Fc%3Dd%26e%2Bf" },
        { "system:admin", "system:admin", "system%3Aadmin" },
        { "\xc3\xbc\x01", "%C3%BC%01", "%C3%BC%01" },
        { "", "", "" },
    };
    CLEANUP(buf_done)
    struct buf out = { 0 };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        buf_reset(&out);
        percent_add_segment(&out, str_from(cases[i].text));
        CHECK_STR(buf_str(&out), cases[i].segment);
        buf_reset(&out);
        percent_add_form(&out, str_from(cases[i].text));
        CHECK_STR(buf_str(&out), cases[i].form);
    }
}
