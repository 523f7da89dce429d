#include "core/secret_source.h"

#include "tests/check.h"
#include "tests/lib/integration_fixture.h"

struct fixture {
    struct integration_fixture base;
    struct secret_source source;
    uint32_t ready;
};

static void on_ready(void *ctx)
{
    struct fixture *f = ctx;
    f->ready++;
}

static void begin(struct fixture *f, const struct secret_source_place *place)
{
    *f = (struct fixture){ 0 };
    integration_fixture_init(&f->base, "kubernikus");
    secret_source_init(&f->source, &f->base.core->client, &f->base.files, on_ready, f);
    CHECK(secret_source_set_place(&f->source, place));
    CHECK(!secret_source_set_place(&f->source, place));
}

static void end(struct fixture *f)
{
    secret_source_done(&f->source);
    integration_fixture_done(&f->base);
}

TEST(secret_source_reads_a_file_each_time_it_is_needed)
{
    struct fixture f;
    struct str text = STR_NONE;
    struct err err = { 0 };
    begin(&f, &(struct secret_source_place){ .file = STR("c.conf") });
    CHECK_EQ(secret_source_get(&f.source, &text, &err), -ERR_NOTFOUND);
    CHECK_STR(err.msg, "c.conf: there is no such file");
    CHECK_EQ(f.base.reads, 1);
    f.base.file = STR("pass");
    CHECK_EQ(secret_source_get(&f.source, &text, &err), -ERR_NOTFOUND); /* it waits */
    CHECK_EQ(f.base.reads, 1);
    integration_fixture_run(&f.base, SECONDS(5));
    CHECK_EQ(secret_source_get(&f.source, &text, &err), 0);
    CHECK_STR(text, "pass");
    CHECK_EQ(secret_source_get(&f.source, &text, &err), 0);
    CHECK_EQ(f.base.reads, 2);
    secret_source_wipe(&f.source);
    f.base.file = STR("word");
    CHECK_EQ(secret_source_get(&f.source, &text, &err), 0);
    CHECK_STR(text, "word");
    end(&f);
}

TEST(secret_source_reads_a_secret_and_says_what_is_missing)
{
    struct fixture f;
    struct str text = STR_NONE;
    struct err err = { 0 };
    begin(&f, &(struct secret_source_place){
                  .namespace = STR("kube-system"), .name = STR("os"), .key = STR("conf") });
    CHECK_EQ(secret_source_get(&f.source, &text, &err), -ERR_BUSY);
    integration_fixture_run(&f.base, SECONDS(1));
    CHECK_EQ(f.ready, 1);
    CHECK_EQ(secret_source_get(&f.source, &text, &err), -ERR_NOTFOUND);
    CHECK_STR(err.msg, "Secret 'kube-system/os': there is no such Secret");

    (void)integration_fixture_ask(&f.base, "POST", "/api/v1/namespaces/kube-system/secrets",
                                  "{\"metadata\":{\"name\":\"os\"},\"data\":{\"x\":\"cGFzcw==\"}}");
    integration_fixture_run(&f.base, SECONDS(5));
    CHECK_EQ(secret_source_get(&f.source, &text, &err), -ERR_BUSY);
    integration_fixture_run(&f.base, SECONDS(1));
    CHECK_EQ(secret_source_get(&f.source, &text, &err), -ERR_INVALID);
    CHECK_STR(err.msg,
              "Secret 'kube-system/os': secret kube-system/os does not contain key 'conf'");

    (void)integration_fixture_ask(&f.base, "PATCH", "/api/v1/namespaces/kube-system/secrets/os",
                                  "{\"data\":{\"conf\":\"cGFzcw==\"}}");
    integration_fixture_run(&f.base, SECONDS(10));
    CHECK_EQ(secret_source_get(&f.source, &text, &err), -ERR_BUSY);
    integration_fixture_run(&f.base, SECONDS(1));
    CHECK_EQ(secret_source_get(&f.source, &text, &err), 0);
    CHECK_STR(text, "pass");
    end(&f);
}
