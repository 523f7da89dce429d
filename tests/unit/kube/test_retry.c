#include "kube/retry.h"

#include "kube/client.h"
#include "sandbox/sim/virtual_loop.h"
#include "tests/check.h"

TEST(retry_judge_follows_its_table)
{
    static const struct {
        int status;
        enum retry_verdict verdict;
    } cases[] = {
        { 200, RETRY_DONE },    { 201, RETRY_DONE },    { 400, RETRY_REFUSED },
        { 401, RETRY_REFUSED }, { 403, RETRY_REFUSED }, { 404, RETRY_ABSENT },
        { 408, RETRY_LATER },   { 409, RETRY_OBSERVE }, { 410, RETRY_RELIST },
        { 415, RETRY_REFUSED }, { 422, RETRY_REFUSED }, { 429, RETRY_QUIET },
        { 500, RETRY_LATER },   { 502, RETRY_QUIET },   { 503, RETRY_QUIET },
        { 504, RETRY_LATER },   { 302, RETRY_REFUSED }, { 0, RETRY_QUIET },
        { 777, RETRY_LATER },
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        const struct api_reply reply = { .status = cases[i].status };
        check_case(cases[i].status);
        CHECK_EQ(retry_judge(&reply), cases[i].verdict);
    }
}

/* As a webhook or a registry answers for one object, and as the server answers for itself. */
TEST(retry_judge_lets_one_object_wait_when_the_status_names_it)
{
    static const struct {
        int status;
        const char *body;
        enum retry_verdict verdict;
    } cases[] = {
        { 429,
          "{\"kind\":\"Status\",\"reason\":\"TooManyRequests\",\"details\":{\"name\":\"n1\","
          "\"kind\":\"nodes\",\"retryAfterSeconds\":5}}",
          RETRY_LATER },
        { 503, "{\"kind\":\"Status\",\"details\":{\"name\":\"n1\"}}", RETRY_LATER },
        { 429, "{\"kind\":\"Status\",\"details\":{\"retryAfterSeconds\":5}}", RETRY_QUIET },
        { 429, "{\"kind\":\"Node\",\"details\":{\"name\":\"n1\"}}", RETRY_QUIET },
        { 429, "Too many requests, please try again later.\n", RETRY_QUIET },
        { 429, "", RETRY_QUIET },
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        const struct api_reply reply = {
            .status = cases[i].status,
            .body = str_from(cases[i].body),
        };
        check_case((int)i);
        CHECK_EQ(retry_judge(&reply), cases[i].verdict);
    }
}

TEST(client_pause_says_since_when_until_when_and_who_said_so)
{
    CLEANUP(arena_done)
    struct arena out = { 0 };
    struct virtual_loop *time = virtual_loop_new(1, SECONDS(1767323045)); /* 2026-01-02T03:04:05Z */
    struct client client;
    struct client_pause pause;
    client_init(&client, virtual_loop_root(time), NULL);
    CHECK(!client_pause(&client, &pause));
    CHECK_STR(client_pause_text(&client, STR("api:6443"), &out), "");
    /* For one object: nobody else waits. */
    (void)client_note(
        &client, API_PATCH,
        &(struct api_reply){ .status = 429,
                             .body = STR("{\"kind\":\"Status\",\"details\":{\"name\":\"n1\"}}"),
                             .retry_after = SECONDS(20) });
    CHECK(client_open(&client));
    CHECK_EQ(client_note(&client, API_GET,
                         &(struct api_reply){ .status = 429, .retry_after = SECONDS(20) }),
             RETRY_QUIET);
    (void)virtual_loop_run(time, SECONDS(5));
    CHECK(client_pause(&client, &pause));
    CHECK_EQ(pause.since, SECONDS(1767323045));
    CHECK_EQ(pause.status, 429);
    CHECK_STR(client_pause_text(&client, STR("api:6443"), &out),
              "no requests to the API server since 2026-01-02T03:04:05Z and until "
              "2026-01-02T03:04:25Z: api:6443 answered 429 with Retry-After (20 s are waited)");
    (void)virtual_loop_run(time, SECONDS(25));
    CHECK_EQ(client_note(&client, API_GET, &(struct api_reply){ 0 }), RETRY_QUIET);
    CHECK(str_ends(client_pause_text(&client, STR_NONE, &out), STR("Z: it did not answer")));
    virtual_loop_free(time);
}

PROPERTY(backoff_next_grows_within_its_bounds)
{
    struct backoff b = { .base = MSECONDS(200), .max = SECONDS(30) };
    usec_t full = b.base;
    for (int i = 0; i < 40; i++) {
        usec_t wait = backoff_next(&b, rng_next(rng));
        CHECK(wait >= full / 2 && wait <= full);
        full = MIN(full * 2, b.max);
    }
    backoff_reset(&b);
    CHECK(backoff_next(&b, rng_next(rng)) <= b.base);
}

TEST(retry_gate_obeys_the_server)
{
    struct retry_gate g;
    retry_gate_init(&g);
    CHECK(retry_gate_open(&g, 0));
    retry_gate_note(&g, RETRY_QUIET,
                    &(struct api_reply){ .status = 429, .retry_after = SECONDS(9) }, SECONDS(1), 0);
    CHECK(!retry_gate_open(&g, SECONDS(10) - 1));
    CHECK(retry_gate_open(&g, SECONDS(11)));
    /* A day is more than any server may ask for. */
    retry_gate_note(&g, RETRY_QUIET, &(struct api_reply){ .status = 503, .retry_after = DAYS(1) },
                    SECONDS(20), 0);
    CHECK(!retry_gate_open(&g, SECONDS(20) + SECONDS(29)));
    CHECK(retry_gate_open(&g, SECONDS(20) + SECONDS(40)));
}

TEST(retry_gate_counts_failures_that_came_together_once)
{
    struct retry_gate g;
    retry_gate_init(&g);
    for (int i = 0; i < 32; i++) {
        retry_gate_note(&g, RETRY_QUIET, &(struct api_reply){ 0 }, 0, 7);
    }
    CHECK_EQ(g.backoff.failures, 1);
    retry_gate_note(&g, RETRY_OBSERVE, &(struct api_reply){ .status = 409 }, SECONDS(1), 7);
    CHECK_EQ(g.backoff.failures, 0);
}

TEST(client_explain_prefers_the_servers_words)
{
    struct err err = { 0 };
    client_explain(403, STR("{\"kind\":\"Status\",\"message\":\"nodes is forbidden\"}"), NULL,
                   &err);
    CHECK_STR(err.msg, "the server answered 403: nodes is forbidden");
    CHECK_EQ(err.code, ERR_DENIED);
    client_explain(502, STR("<html>bad gateway</html>\n"), NULL, &err);
    CHECK_STR(err.msg, "the server answered 502: <html>bad gateway</html>");
    client_explain(410, STR(""), NULL, &err);
    CHECK_STR(err.msg, "the server answered 410");
    CHECK_EQ(err.code, ERR_GONE);
}

TEST(client_add_segment_keeps_a_name_within_its_segment)
{
    CLEANUP(buf_done)
    struct buf path = { 0 };
    client_add_segment(&path, STR("a.b-c/../x?y=\xff%"));
    CHECK_STR(buf_str(&path), "a.b-c%2F..%2Fx%3Fy%3D%FF%25");
}
