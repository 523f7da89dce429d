#include "base/list.h"
#include "tests/check.h"

struct item {
    struct list link;
    int number;
};

TEST(list_keeps_the_order_in_which_items_came)
{
    struct list head;
    struct item items[3] = { { .number = 1 }, { .number = 2 }, { .number = 3 } };
    list_init(&head);
    CHECK(list_empty(&head));
    for (int i = 0; i < 3; i++) {
        CHECK(!list_linked(&items[i].link));
        list_add(&head, &items[i].link);
        CHECK(list_linked(&items[i].link));
    }
    int want = 1;
    LIST_EACH (&head, link) {
        CHECK_EQ(CONTAINER_OF(link, struct item, link)->number, want++);
    }
    CHECK_EQ(want, 4);
}

TEST(list_moves_all_items_in_their_order)
{
    struct list from;
    struct list to;
    struct item items[3] = { { .number = 1 }, { .number = 2 }, { .number = 3 } };
    list_init(&from);
    for (int i = 0; i < 3; i++) {
        list_add(&from, &items[i].link);
    }
    list_move(&to, &from);
    CHECK(list_empty(&from));
    int want = 1;
    LIST_EACH (&to, link) {
        CHECK_EQ(CONTAINER_OF(link, struct item, link)->number, want++);
    }
    CHECK_EQ(want, 4);
}

TEST(list_items_may_leave_while_it_is_walked)
{
    struct list head;
    struct item items[5] = { 0 };
    list_init(&head);
    for (int i = 0; i < 5; i++) {
        list_add(&head, &items[i].link);
    }
    LIST_EACH (&head, link) {
        list_del(link);
        list_del(link); /* a second time does nothing */
    }
    CHECK(list_empty(&head));
    CHECK(!list_linked(&items[4].link));
}
