#include "tests/lib/fake_dialer.h"

static struct api *fake_dial(struct dialer *dialer, const struct dialer_spec *spec UNUSED,
                             struct err *err UNUSED)
{
    struct fake_dialer *d = CONTAINER_OF(dialer, struct fake_dialer, dialer);
    ASSERT(!d->open);
    d->open = true;
    d->dial_count++;
    fake_api_init(&d->api);
    return &d->api.api;
}

static void fake_hang_up(struct dialer *dialer, struct api *api)
{
    struct fake_dialer *d = CONTAINER_OF(dialer, struct fake_dialer, dialer);
    ASSERT(d->open && api == &d->api.api);
    d->open = false;
    fake_api_done(&d->api);
}

static const struct dialer_ops fake_ops = { .dial = fake_dial, .hang_up = fake_hang_up };

void fake_dialer_init(struct fake_dialer *d)
{
    *d = (struct fake_dialer){ .dialer = { .ops = &fake_ops } };
}
