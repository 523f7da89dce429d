#include "cmd/templates_page.h"

#include "tests/check.h"

TEST(templates_page_is_the_page_in_the_documentation)
{
    CLEANUP(buf_done)
    struct buf out = { 0 };
    templates_page_print(&out);
    /* To mend: build/drydock templates --markdown > docs/templates.md */
    CHECK_STR(check_data("../../docs/templates.md"), buf_str(&out));
}
