/*
 * An actor: reboots a node, or whatever the program given does, when it is its turn.
 *
 *     cc actor.c $(pkg-config --cflags --libs libdrydock) -o actor
 *     ./actor rebooter worker-7 ssh worker-7 reboot
 *
 * It asks, waits for the approval, has InProgress acknowledged, works, and reports. Without the
 * CRDs there is nobody to ask, and it refuses to work.
 */
#include <drydock.h>

#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static volatile sig_atomic_t interrupted;

static void on_signal(int signo)
{
    interrupted = signo;
}

static bool leaving(void *ctx)
{
    (void)ctx;
    return interrupted != 0;
}

static int complain(const struct drydock_error *error)
{
    (void)fprintf(stderr, "actor: %s\n", error->message);
    return 1;
}

/* The work itself: its exit code, or -1. */
static int work(char *const *argv)
{
    pid_t child = fork();
    if (child == 0) {
        (void)execvp(argv[0], argv);
        _exit(127);
    }
    int status;
    if (child < 0 || waitpid(child, &status, 0) != child) {
        return -1;
    }
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static int run(struct drydock *d, const struct drydock_target *node, char *const *argv)
{
    struct drydock_error error;
    const struct drydock_options options = { .reason = argv[0] };
    bool enabled;
    if (drydock_enabled(d, node->type, &enabled, &error) != DRYDOCK_OK) {
        return complain(&error);
    }
    if (!enabled) {
        (void)fprintf(stderr, "actor: this cluster takes no requests for a %s\n", node->type);
        return 1;
    }
    int result = drydock_begin(d, node, &options, DRYDOCK_FOREVER, &error);
    if (result == DRYDOCK_CANCELLED) {
        interrupted = 0; /* the way back is gone to its end */
        (void)drydock_withdraw(d, node, NULL);
        return 130;
    }
    if (result != DRYDOCK_OK) {
        return complain(&error);
    }
    /* From here on the node is ours. */
    (void)printf("%s: working\n", node->name);
    (void)fflush(stdout);
    int code = work(argv);
    interrupted = 0;
    if (drydock_update_state(d, node, DRYDOCK_COMPLETED, &error) != DRYDOCK_OK) {
        return complain(&error);
    }
    (void)printf("%s: done, exit code %d\n", node->name, code);
    return code == 0 ? 0 : 1;
}

int main(int argc, char **argv)
{
    if (argc < 4) {
        (void)fprintf(stderr, "usage: actor CLIENT NODE COMMAND [ARGUMENT…]\n");
        return 2;
    }
    struct sigaction action;
    memset(&action, 0, sizeof(action));
    action.sa_handler = on_signal;
    (void)sigaction(SIGINT, &action, NULL);
    (void)sigaction(SIGTERM, &action, NULL);

    struct drydock_error error;
    const struct drydock_config config = { .client = argv[1], .leaving = leaving };
    struct drydock *d = drydock_new(&config, &error);
    if (d == NULL) {
        return complain(&error);
    }
    const struct drydock_target node = { .type = "node", .name = argv[2] };
    int code = run(d, &node, argv + 3);
    drydock_free(d);
    return code;
}
