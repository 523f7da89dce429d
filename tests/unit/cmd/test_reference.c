#include "cmd/reference.h"

#include "profile/plugin_table.h"
#include "tests/check.h"

TEST(reference_is_the_page_in_the_documentation)
{
    CLEANUP(buf_done)
    struct buf out = { 0 };
    reference_print(&out);
    /* To mend: build/drydock reference > docs/plugins.md */
    CHECK_STR(check_data("../../docs/plugins.md"), buf_str(&out));
}

TEST(reference_names_every_plugin_and_key)
{
    CLEANUP(buf_done)
    struct buf out = { 0 };
    CLEANUP(buf_done)
    struct buf wanted = { 0 };
    reference_print(&out);
    for (int kind = 0; kind <= PLUGIN_KINDS; kind++) {
        const struct plugin_table *table =
            kind < PLUGIN_KINDS ? &plugin_tables[kind] : &plugin_schedules;
        for (uint32_t i = 0; i < table->n; i++) {
            const struct plugin *p = &table->items[i];
            buf_reset(&wanted);
            buf_printf(&wanted, "\n### %s\n", p->name);
            CHECK(str_contains(buf_str(&out), buf_str(&wanted)));
            for (uint32_t k = 0; k < p->key_n; k++) {
                buf_reset(&wanted);
                buf_printf(&wanted, "\n| `%s` | ", p->keys[k].name);
                CHECK(str_contains(buf_str(&out), buf_str(&wanted)));
            }
        }
    }
    CHECK(str_contains(buf_str(&out), STR("| `action` | one of `cordon`, `uncordon`, `drain` | "
                                          "**required** | what to do |\n")));
    CHECK(str_contains(buf_str(&out), STR("| `start` | time of day, `hh:mm` | **required** without "
                                          "`cron` | ")));
}
