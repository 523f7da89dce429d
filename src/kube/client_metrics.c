#include "kube/client_metrics.h"

#include <stdio.h>

static const int answers[CLIENT_METRICS_ANSWERS] = { 0, 429, 502, 503 }; /* 0 = there was none */

void client_metrics_init(struct client_metrics *m, struct metrics *metrics, struct str server)
{
    static const struct metric_spec since = {
        .name = "drydock_api_pause_since_timestamp_seconds",
        .help = "Since when no requests are sent, by the answer that said so; 0 = they are sent.",
        .kind = METRIC_GAUGE,
        .labels = { "code", "host" },
    };
    static const struct metric_spec until = {
        .name = "drydock_api_pause_until_timestamp_seconds",
        .help = "Until when no requests are sent, by the answer that said so; 0 = they are sent.",
        .kind = METRIC_GAUGE,
        .labels = { "code", "host" },
    };
    struct metric *begin = metrics_family(metrics, &since);
    struct metric *end = metrics_family(metrics, &until);
    for (uint32_t i = 0; i < CLIENT_METRICS_ANSWERS; i++) {
        char code[16];
        int n = snprintf(code, sizeof(code), "%d", answers[i]);
        const struct str values[] = {
            answers[i] == 0 ? STR("<error>") : (struct str){ .p = code, .n = (size_t)n },
            server,
        };
        m->since[i] = metric_series(begin, values);
        m->until[i] = metric_series(end, values);
    }
}

void client_metrics_collect(struct client_metrics *m, const struct client *client)
{
    struct client_pause pause;
    bool paused = client_pause(client, &pause);
    for (uint32_t i = 0; i < CLIENT_METRICS_ANSWERS; i++) {
        bool now = paused && pause.status == answers[i];
        metric_set(m->since[i], now ? (double)pause.since / (double)SECONDS(1) : 0);
        metric_set(m->until[i], now ? (double)pause.until / (double)SECONDS(1) : 0);
    }
}
